/* SPDX-License-Identifier: Apache-2.0 */
/* num: numbers and keys of metric lines, read in place with a moving pointer. Nothing is
 * allocated or kept. Three paths, each exact for what it takes: short decimals inline, up to 19
 * digits with an exponent within +-27 in fr_num_long(), and nan, inf and everything odd in
 * fr_num_slow(). */
#ifndef FR_SERIES_NUM_H
#define FR_SERIES_NUM_H

#include "base/view.h"

bool fr_num_slow(const char **p, const char *e, double *ret);
extern const long double fr_num_pow10[28];
extern const double fr_num_double10[23];

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

/* Past spaces and tabs. */
static inline const char *fr_skip_space(const char *p, const char *e)
{
    while (p < e && (*p == ' ' || *p == '\t')) {
        p++;
    }
    return p;
}

/* Past spaces, where one is usual and a padded column has a run of them: those go eight at a
 * time. */
static inline const char *fr_skip_pad(const char *p, const char *e)
{
    if (e - p < 16) {
        return fr_skip_space(p, e);
    }
    p += *p == ' ';
    if (*p != ' ') {
        return p;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t w;
    memcpy(&w, p, 8);
    w ^= 0x2020202020202020u;
    if (w != 0) {
        return p + __builtin_ctzll(w) / 8;
    }
#endif
    return fr_skip_space(p, e);
}

/* Plain decimals of at most 18 digits before an 'e'. Digit by digit: columns of a log keep their
 * width, so the branches are foreseen, and a value does not wait for the length of the one
 * before as it would with a word-wise parser. */
/* bounded false: the caller knows that a byte that is no part of a number stands before e, so no
 * digit need be checked against it. */
static inline bool fr_num_short(const char **p, const char *e, bool bounded, double *ret)
{
    const char *q = *p, *stop = e - *p > 19 ? *p + 19 : e;
    bool minus = *q == '-';
    q += minus;
    uint64_t m = 0;
    unsigned c;
    const char *first = q;
    for (; (!bounded || q < stop) && (c = (unsigned char)*q - (unsigned)'0') < 10; q++) {
        m = m * 10 + c;
    }
    if (q == first || q >= stop) {
        return false;
    }
    int ten = 0;
    if (*q == '.') {
        const char *part = ++q;
        for (; (!bounded || q < stop) && (c = (unsigned char)*q - (unsigned)'0') < 10; q++) {
            m = m * 10 + c;
        }
        ten = (int)(part - q);
    }
    if (q >= stop || (bounded && e - q < 5) || m >= (uint64_t)1 << 53) {
        return false;
    }
    if ((*q | 0x20) == 'e') {
        if ((q[1] != '-' && q[1] != '+') || !fr_is_digit(q[2]) || !fr_is_digit(q[3]) ||
            fr_is_digit(q[4])) {
            return false;
        }
        int x = (q[2] - '0') * 10 + (q[3] - '0');
        ten += q[1] == '-' ? -x : x;
        q += 4;
    }
    if (ten < -22 || ten > 22) {
        return false;
    }
    double v = ten < 0 ? (double)m / fr_num_double10[-ten] : (double)m * fr_num_double10[ten];
    *ret = minus ? -v : v;
    *p = q;
    return true;
}

bool fr_num_long(const char **p, const char *e, double *ret);

/* The number at *p. On success *p moves past it; on failure nothing changes. */
static inline bool fr_num(const char **p, const char *e, double *ret)
{
    if (e - *p >= 6 && fr_num_short(p, e, true, ret)) {
        return true;
    }
    return fr_num_long(p, e, ret);
}

/* The same with thousands commas allowed ("7,282"). */
bool fr_num_grouped(const char **p, const char *e, double *ret);

/* A non-negative integer at *p; false when there is none or it does not fit. */
static inline bool fr_num_int(const char **p, const char *e, int64_t *ret)
{
    const char *q = *p, *stop = e - q > 18 ? q + 18 : e;
    uint64_t v = 0;
    unsigned c;
    for (; q < stop && (c = (unsigned char)*q - (unsigned)'0') < 10; q++) {
        v = v * 10 + c;
    }
    if (q == *p || (q < e && fr_is_digit(*q))) {
        return false;
    }
    *ret = (int64_t)v;
    *p = q;
    return true;
}

/* "12/345" or "12 / 345" or "12 of 345" at *p. */
bool fr_num_ratio(const char **p, const char *e, int64_t *ret_at, int64_t *ret_of);

/* Where c stands in [p, e), ascending, at most max places; returns how many. */
unsigned fr_seek_all(const char *p, const char *e, char c, const char **ret, unsigned max);

/* The next ':' or '=' at or after p; e when there is none. */
const char *fr_seek_separator(const char *p, const char *e);

/* The place of what[0..n) in [p, e), or NULL; n >= 2. Short needles in short lines, where
 * memmem's set-up costs most. */
const char *fr_seek(const char *p, const char *e, const char *what, size_t n);
#define FR_SEEK(p, e, lit) fr_seek((p), (e), (lit), sizeof(lit) - 1)
#define FR_AT(p, e, lit) \
    ((size_t)((e) - (p)) >= sizeof(lit) - 1 && memcmp((p), (lit), sizeof(lit) - 1) == 0)

/* A tqdm bar "  1%|#  | 6/1184 [00:21<1:09:10, ..." anywhere in [p, e): its position and total. */
bool fr_bar_ratio(const char *p, const char *e, int64_t *ret_at, int64_t *ret_of);
/* The same of a bar that knows no end: "12it [00:00, 76.46it/s, loss=0.693]". */
bool fr_bar_count(const char *p, const char *e, int64_t *ret_at);

#endif
