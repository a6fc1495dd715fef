/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tally: the first byte is a type, the rest its elements; every engine that works here counts
 * the same. */
#include "fuzz/fuzz.h"
#include "numerics/tally.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_tally first = {0}, t;
    if (size == 0) {
        return 0;
    }
    for (unsigned i = 0; i < fr_tally_engines_count; i++) {
        if (!fr_tally_use(fr_tally_engines[i].name)) {
            continue;
        }
        t = (struct fr_tally){0};
        const int rc = fr_tally_add(data[0] % (FR_DTYPE_END + 1), data + 1, size - 1, &t);
        CHECK(rc == 0 || t.elements == 0);
        if (i == 0) {
            first = t;
        }
        CHECK(t.elements == first.elements && t.nan == first.nan && t.inf == first.inf &&
              t.zero == first.zero && t.subnormal == first.subnormal && t.abs_max == first.abs_max);
        CHECK(memcmp(t.beyond, first.beyond, sizeof t.beyond) == 0);
        CHECK(t.sum_squares == first.sum_squares ||
              fabs(t.sum_squares - first.sum_squares) <= 0x1p-13 * first.sum_squares);
        CHECK(t.nan + t.inf + t.zero + t.subnormal <= t.elements);
    }
    return 0;
}
