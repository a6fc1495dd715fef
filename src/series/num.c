/* SPDX-License-Identifier: Apache-2.0 */
/* num: the slow paths. Long double holds 10^27 exactly, so one multiplication or division rounds
 * once. */
#include "series/num.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

const long double fr_num_pow10[28] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,
                                      1e7L,  1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L,
                                      1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L, 1e20L,
                                      1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

const double fr_num_double10[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#ifdef __SSE2__
unsigned fr_seek_all(const char *p, const char *e, char c, const char **ret, unsigned max)
{
    const __m128i what = _mm_set1_epi8(c);
    unsigned n = 0;
    for (; e - p >= 64 && n < max; p += 64) {
        uint64_t hits = 0;
        for (int i = 0; i < 4; i++) {
            __m128i a = _mm_loadu_si128((const __m128i *)(p + 16 * i));
            hits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, what)) << (16 * i);
        }
        for (; hits != 0 && n < max; hits &= hits - 1) {
            ret[n++] = p + __builtin_ctzll(hits);
        }
    }
    for (; e - p >= 16 && n < max; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        unsigned hits = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, what));
        for (; hits != 0 && n < max; hits &= hits - 1) {
            ret[n++] = p + __builtin_ctz(hits);
        }
    }
    for (; p < e && n < max; p++) {
        if (*p == c) {
            ret[n++] = p;
        }
    }
    return n;
}

const char *fr_seek_separator(const char *p, const char *e)
{
    const __m128i colon = _mm_set1_epi8(':'), equal = _mm_set1_epi8('=');
    for (; e - p >= 16; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)p);
        unsigned hits = (unsigned)_mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(a, colon), _mm_cmpeq_epi8(a, equal)));
        if (hits != 0) {
            return p + __builtin_ctz(hits);
        }
    }
    while (p < e && *p != ':' && *p != '=') {
        p++;
    }
    return p;
}

/* Sixteen places at once: where the first and the last byte of the needle are both right, the
 * middle is compared. */
const char *fr_seek(const char *p, const char *e, const char *what, size_t n)
{
    const __m128i first = _mm_set1_epi8(what[0]), last = _mm_set1_epi8(what[n - 1]);
    for (; e - p >= (ptrdiff_t)(n - 1) + 16; p += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)p),
                b = _mm_loadu_si128((const __m128i *)(p + n - 1));
        unsigned hits = (unsigned)_mm_movemask_epi8(
            _mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));
        for (; hits != 0; hits &= hits - 1) {
            const char *at = p + __builtin_ctz(hits);
            if (memcmp(at, what, n) == 0) {
                return at;
            }
        }
    }
    for (; e - p >= (ptrdiff_t)n; p++) {
        if (*p == what[0] && memcmp(p, what, n) == 0) {
            return p;
        }
    }
    return NULL;
}
#else
unsigned fr_seek_all(const char *p, const char *e, char c, const char **ret, unsigned max)
{
    unsigned n = 0;
    for (; p < e && n < max; p++) {
        if (*p == c) {
            ret[n++] = p;
        }
    }
    return n;
}

const char *fr_seek_separator(const char *p, const char *e)
{
    while (p < e && *p != ':' && *p != '=') {
        p++;
    }
    return p;
}

const char *fr_seek(const char *p, const char *e, const char *what, size_t n)
{
    return p < e ? memmem(p, (size_t)(e - p), what, n) : NULL;
}
#endif

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

bool fr_num_long(const char **p, const char *e, double *ret)
{
    const char *q = *p;
    bool minus = q < e && *q == '-';
    q += minus;
    uint64_t m = 0;
    int whole = fr_num_digits(&q, e, &m, 19), ten = 0;
    if (whole == 0 && !(q + 1 < e && *q == '.' && fr_is_digit(q[1]))) {
        return fr_num_slow(p, e, ret);
    }
    if (q < e && *q == '.') {
        q++;
        ten = -fr_num_digits(&q, e, &m, 19 - whole);
    }
    if (q < e && fr_is_digit(*q)) {
        return fr_num_slow(p, e, ret); /* more than 19 digits */
    }
    if (q + 1 < e && (*q == 'e' || *q == 'E')) {
        const char *x = q + 1;
        bool down = *x == '-';
        x += down || *x == '+';
        uint64_t k = 0;
        if (fr_num_digits(&x, e, &k, 4) != 0) {
            ten += down ? -(int)k : (int)k;
            q = x;
        }
    }
    if (ten < -27 || ten > 27) {
        return fr_num_slow(p, e, ret);
    }
    double v;
    if (m < (uint64_t)1 << 53 && ten >= -22 &&
        ten <= 22) { /* both exact: one rounding, and no x87 */
        v = ten < 0 ? (double)m / fr_num_double10[-ten] : (double)m * fr_num_double10[ten];
    } else {
        v = (double)(ten < 0 ? (long double)m / fr_num_pow10[-ten]
                             : (long double)m * fr_num_pow10[ten]);
    }
    *ret = minus ? -v : v;
    *p = q;
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
    const char *q = fr_skip_pad(*p, e);
    int64_t at, of;
    if (!fr_num_int(&q, e, &at)) {
        return false;
    }
    q = fr_skip_pad(q, e);
    if (q < e && *q == '/') {
        q++;
    } else if (FR_AT(q, e, "of ")) {
        q += 3;
    } else {
        return false;
    }
    q = fr_skip_pad(q, e);
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

bool fr_bar_count(const char *p, const char *e, int64_t *ret_at)
{
    bool found = false;
    for (const char *q = p; (q = FR_SEEK(q, e, "it [")) != NULL; q += 4) { /* the last one is the newest */
        const char *at = q;
        while (at > p && fr_is_digit(at[-1])) {
            at--;
        }
        if (at < q && q - at <= 9 && e - q > 4 && fr_is_digit(q[4])) {
            *ret_at = 0;
            for (; at < q; at++) {
                *ret_at = *ret_at * 10 + (*at - '0');
            }
            found = true;
        }
    }
    return found;
}
