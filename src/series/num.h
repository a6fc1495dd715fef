/* SPDX-License-Identifier: Apache-2.0 */
/* num: numbers and keys of metric lines, read in place with a moving pointer. Nothing is allocated or kept.
 * Plain decimals (up to 19 digits, exponent within +-27) take the inline path, which rounds as strtod does;
 * nan, inf, grouped thousands and everything odd go through fr_num_slow(). */
#ifndef FR_SERIES_NUM_H
#define FR_SERIES_NUM_H

#include "base/view.h"

bool fr_num_slow(const char **p, const char *e, double *ret);
extern const long double fr_num_pow10[28];

static inline bool fr_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Digits at p into *m; returns how many. At most 19 are taken, so *m cannot wrap. */
static inline int fr_num_digits(const char **p, const char *e, uint64_t *m, int room)
{
    const char *q = *p;
    uint64_t v = *m;
    while (q < e && fr_is_digit(*q) && q - *p < room) {
        v = v * 10 + (uint64_t)(*q++ - '0');
    }
    int n = (int)(q - *p);
    *p = q;
    *m = v;
    return n;
}

/* The number at *p. On success *p moves past it; on failure nothing changes. */
static inline bool fr_num(const char **p, const char *e, double *ret)
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
    long double v = ten < 0 ? (long double)m / fr_num_pow10[-ten] : (long double)m * fr_num_pow10[ten];
    *ret = minus ? -(double)v : (double)v;
    *p = q;
    return true;
}

/* The same with thousands commas allowed ("7,282"). */
bool fr_num_grouped(const char **p, const char *e, double *ret);

/* A non-negative integer at *p; false when there is none or it does not fit. */
static inline bool fr_num_int(const char **p, const char *e, int64_t *ret)
{
    uint64_t v = 0;
    const char *q = *p;
    if (fr_num_digits(&q, e, &v, 18) == 0 || (q < e && fr_is_digit(*q))) {
        return false;
    }
    *ret = (int64_t)v;
    *p = q;
    return true;
}

/* "12/345" or "12 / 345" or "12 of 345" at *p. */
bool fr_num_ratio(const char **p, const char *e, int64_t *ret_at, int64_t *ret_of);

static inline const char *fr_skip_space(const char *p, const char *e)
{
    while (p < e && (*p == ' ' || *p == '\t')) {
        p++;
    }
    return p;
}

/* The place of what[0..n) in [p, e), or NULL. */
static inline const char *fr_seek(const char *p, const char *e, const char *what, size_t n)
{
    return p < e ? memmem(p, (size_t)(e - p), what, n) : NULL;
}
#define FR_SEEK(p, e, lit) fr_seek((p), (e), (lit), sizeof(lit) - 1)
#define FR_AT(p, e, lit) ((size_t)((e) - (p)) >= sizeof(lit) - 1 && memcmp((p), (lit), sizeof(lit) - 1) == 0)

/* A tqdm bar "  1%|#  | 6/1184 [00:21<1:09:10, ..." anywhere in [p, e): its position and total. */
bool fr_bar_ratio(const char *p, const char *e, int64_t *ret_at, int64_t *ret_of);

#endif
