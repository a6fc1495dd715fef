/* SPDX-License-Identifier: Apache-2.0 */
/* dialect: the table of dialects and its dispatcher. */
#include "series/keys.h"
#include "series/series.h"

#define X(name) extern const struct fr_dialect fr_dialect_##name;
#include "series/dialects.def"
#undef X

const struct fr_dialect *const fr_dialects[] = {
#define X(name) &fr_dialect_##name,
#include "series/dialects.def"
#undef X
};
const unsigned fr_dialects_count = sizeof fr_dialects / sizeof *fr_dialects;

bool fr_point_parse(fr_sv text, uint64_t dialects, struct fr_point *ret)
{
    if (text.n >
        FR_POINT_LINE_MAX) { /* a dumped batch is no metric line, and must not cost like one */
        return false;
    }
    for (uint64_t left = dialects; left != 0; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        if (i >= fr_dialects_count) {
            break;
        }
        fr_point_init(ret);
        if (fr_dialects[i]->parse(text, ret)) {
            ret->dialect = (uint8_t)i;
            return true;
        }
    }
    return false;
}
