/* SPDX-License-Identifier: Apache-2.0 */
/* num: the slow paths. Long double holds 10^27 exactly, so one multiplication or division rounds once. */
#include "series/num.h"

const long double fr_num_pow10[28] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                      1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                      1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

bool fr_num_slow(const char **p, const char *e, double *ret)
{
    fr_sv s = fr_sv_range(*p, e);
    fr_sv plain = s;
    size_t comma = fr_sv_chr(fr_sv_head(s, 48), ',');
    if (comma != FR_NPOS && comma != 0 && fr_is_digit(s.p[comma - 1])) {
        plain = fr_sv_head(s, comma); /* grouping is only for callers that ask for it */
    }
    if (!fr_sv_take_double(&plain, ret)) {
        return false;
    }
    *p = plain.p;
    return true;
}

bool fr_num_grouped(const char **p, const char *e, double *ret)
{
    const char *q = *p;
    if (!fr_num(&q, e, ret)) {
        return false;
    }
    if (q < e && *q == ',') {
        fr_sv s = fr_sv_range(*p, e);
        if (!fr_sv_take_double(&s, ret)) {
            return false;
        }
        q = s.p;
    }
    *p = q;
    return true;
}

bool fr_num_ratio(const char **p, const char *e, int64_t *ret_at, int64_t *ret_of)
{
    const char *q = fr_skip_space(*p, e);
    int64_t at, of;
    if (!fr_num_int(&q, e, &at)) {
        return false;
    }
    q = fr_skip_space(q, e);
    if (q < e && *q == '/') {
        q++;
    } else if (FR_AT(q, e, "of ")) {
        q += 3;
    } else {
        return false;
    }
    q = fr_skip_space(q, e);
    if (!fr_num_int(&q, e, &of)) {
        return false;
    }
    *ret_at = at;
    *ret_of = of;
    *p = q;
    return true;
}

bool fr_bar_ratio(const char *p, const char *e, int64_t *ret_at, int64_t *ret_of)
{
    bool found = false;
    while ((p = FR_SEEK(p, e, "%|")) != NULL) { /* the last bar on the line is the newest */
        p += 2;
        const char *bar = memchr(p, '|', (size_t)(e - p));
        if (bar == NULL) {
            break;
        }
        const char *q = bar + 1;
        found |= fr_num_ratio(&q, e, ret_at, ret_of);
        p = bar + 1;
    }
    return found;
}
