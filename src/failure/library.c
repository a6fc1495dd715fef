/* SPDX-License-Identifier: Apache-2.0 */
/* library: find a failure by its id. */
#include "failure/library.h"

int fr_library_find(const struct fr_library *lib, fr_sv id)
{
    uint32_t lo = 0, hi = lib->n_failures;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        const int c = fr_sv_cmp(fr_sv_z(lib->failures[mid].id), id);
        if (c == 0) {
            return (int)mid;
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return -1;
}
