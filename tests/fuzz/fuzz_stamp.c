/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_stamp: any bytes as a time: a taken time moves forward, lies in the calendar and prints as
 * itself; a refused one moves nothing. */
#include "format/stamp.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int kind = 0; kind < 9; kind++) {
        fr_sv s = {(const char *)data, size}, before = s;
        struct fr_when w = FR_WHEN_NONE;
        bool took = kind == 0   ? fr_stamp_iso(&s, &w)
                    : kind == 1 ? fr_stamp_glog(&s, 2026, &w)
                    : kind == 2 ? fr_stamp_syslog(&s, 2026, &w)
                    : kind == 3 ? fr_stamp_ctime(&s, 2026, &w)
                    : kind == 4 ? fr_stamp_month_day(&s, 2026, &w)
                    : kind == 5 ? fr_stamp_boot(&s, &w)
                    : kind == 6 ? fr_stamp_clock(&s, &w)
                    : kind == 7 ? fr_stamp_epoch(&s, &w)
                                : fr_stamp_any(&s, 0, &w);
        if (!took) {
            CHECK(fr_sv_eq(s, before) && s.p == before.p);
            continue;
        }
        char text[48];
        struct fr_civil c;
        CHECK(s.p > before.p && s.p + s.n == before.p + before.n);
        CHECK(w.basis > FR_TIME_BASIS_NONE && w.basis <= FR_TIME_BASIS_BOOT &&
              w.resolution_ns > 0 && w.resolution_ns <= FR_NS_PER_S);
        fr_time_to_civil(w.ns, &c);
        CHECK(fr_time_from_civil(&c) == w.ns && fr_time_iso(w.ns, 9, text) == 29);
    }
    return 0;
}
