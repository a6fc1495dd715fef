/* SPDX-License-Identifier: Apache-2.0 */
#include "base/view.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

int fr_sv_cmp(fr_sv a, fr_sv b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n != 0 ? memcmp(a.p, b.p, n) : 0;
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares the digit runs at both heads by value and moves past them; 0 when equal in value. */
static int cmp_digits(fr_sv *a, fr_sv *b)
{
    while (a->n > 1 && a->p[0] == '0' && is_digit(a->p[1])) {
        *a = fr_sv_skip(*a, 1);
    }
    while (b->n > 1 && b->p[0] == '0' && is_digit(b->p[1])) {
        *b = fr_sv_skip(*b, 1);
    }
    size_t i = 0, j = 0;
    while (i < a->n && is_digit(a->p[i])) {
        i++;
    }
    while (j < b->n && is_digit(b->p[j])) {
        j++;
    }
    int c = i != j ? (i < j ? -1 : 1) : memcmp(a->p, b->p, i);
    *a = fr_sv_skip(*a, i);
    *b = fr_sv_skip(*b, j);
    return c;
}

int fr_sv_cmp_natural(fr_sv a, fr_sv b)
{
    fr_sv x = a, y = b;
    while (x.n != 0 && y.n != 0) {
        if (is_digit(x.p[0]) && is_digit(y.p[0])) {
            int c = cmp_digits(&x, &y);
            if (c != 0) {
                return c;
            }
        } else if (x.p[0] != y.p[0]) {
            return (unsigned char)x.p[0] < (unsigned char)y.p[0] ? -1 : 1;
        } else {
            x = fr_sv_skip(x, 1);
            y = fr_sv_skip(y, 1);
        }
    }
    if (x.n != y.n) {
        return x.n < y.n ? -1 : 1;
    }
    return fr_sv_cmp(a, b); /* 01 and 1: a total order */
}

#ifdef __SSE2__
/* The places in 16 that begin with the word's first byte and end with its last, as bits. */
static uint32_t ends_of(const char *p, fr_sv what, __m128i first, __m128i last)
{
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(p + what.n - 1));
    return (uint32_t)_mm_movemask_epi8(
        _mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));
}

/* A word of two bytes or more. memmem would look at every byte by itself and skip where it can,
 * which takes four times as long on lines of some hundred bytes. */
static const char *find(fr_sv s, fr_sv what)
{
    const __m128i first = _mm_set1_epi8(what.p[0]), last = _mm_set1_epi8(what.p[what.n - 1]);
    const size_t places = s.n - what.n + 1;
    if (places < 16) {
        return memmem(s.p, s.n, what.p, what.n);
    }
    for (size_t i = 0; i < places; i += 16) {
        i = i < places - 16 ? i : places - 16; /* the last step goes over some places twice */
        for (uint32_t ends = ends_of(s.p + i, what, first, last); ends != 0; ends &= ends - 1) {
            const char *at = s.p + i + __builtin_ctz(ends);
            if (memcmp(at + 1, what.p + 1, what.n - 2) == 0) {
                return at;
            }
        }
    }
    return NULL;
}
#else
static const char *find(fr_sv s, fr_sv what)
{
    return memmem(s.p, s.n, what.p, what.n);
}
#endif

size_t fr_sv_find(fr_sv s, fr_sv what)
{
    if (what.n < 2) {
        return what.n == 0 ? 0 : fr_sv_chr(s, what.p[0]);
    }
    const char *at = s.n < what.n ? NULL : find(s, what);
    return at == NULL ? FR_NPOS : (size_t)(at - s.p);
}

size_t fr_sv_find_ci(fr_sv s, fr_sv what)
{
    for (size_t i = 0; what.n <= s.n && i <= s.n - what.n; i++) {
        size_t k = 0;
        while (k < what.n && tolower((unsigned char)s.p[i + k]) == tolower((unsigned char)what.p[k])) {
            k++;
        }
        if (k == what.n) {
            return i;
        }
    }
    return FR_NPOS;
}

size_t fr_sv_chr(fr_sv s, char c)
{
    const char *at = s.n == 0 ? NULL : memchr(s.p, c, s.n);
    return at == NULL ? FR_NPOS : (size_t)(at - s.p);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

fr_sv fr_sv_trim(fr_sv s)
{
    while (s.n != 0 && is_space(s.p[0])) {
        s = fr_sv_skip(s, 1);
    }
    while (s.n != 0 && is_space(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

bool fr_sv_take(fr_sv *s, fr_sv prefix)
{
    if (!fr_sv_starts(*s, prefix)) {
        return false;
    }
    *s = fr_sv_skip(*s, prefix.n);
    return true;
}

bool fr_sv_cut(fr_sv s, char at, fr_sv *left, fr_sv *right)
{
    size_t i = fr_sv_chr(s, at);
    if (i == FR_NPOS) {
        *left = s;
        *right = (fr_sv){s.p + s.n, 0};
        return false;
    }
    *left = fr_sv_head(s, i);
    *right = fr_sv_skip(s, i + 1);
    return true;
}

bool fr_sv_take_u64(fr_sv *s, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < s->n && is_digit(s->p[i]); i++) {
        uint64_t d = (uint64_t)(s->p[i] - '0');
        if (v > (UINT64_MAX - d) / 10) {
            return false;
        }
        v = v * 10 + d;
    }
    if (i == 0) {
        return false;
    }
    *ret = v;
    *s = fr_sv_skip(*s, i);
    return true;
}

bool fr_sv_take_i64(fr_sv *s, int64_t *ret)
{
    fr_sv r = *s;
    bool minus = fr_sv_take(&r, FR_SV("-"));
    if (!minus) {
        fr_sv_take(&r, FR_SV("+"));
    }
    uint64_t v;
    if (!fr_sv_take_u64(&r, &v) || v > (uint64_t)INT64_MAX) {
        return false;
    }
    *ret = minus ? -(int64_t)v : (int64_t)v;
    *s = r;
    return true;
}

static bool take_word_ci(fr_sv *s, const char *word)
{
    fr_sv w = fr_sv_z(word);
    if (s->n < w.n || fr_sv_find_ci(fr_sv_head(*s, w.n), w) != 0) {
        return false;
    }
    *s = fr_sv_skip(*s, w.n);
    return true;
}

/* Copies a decimal number without its thousands commas; returns how many input bytes it spans. */
static size_t copy_number(fr_sv s, char *out, size_t cap)
{
    size_t i = 0, k = 0, digits = 0;
    if (i < s.n && (s.p[i] == '-' || s.p[i] == '+')) {
        out[k++] = s.p[i++];
    }
    bool dot = false;
    for (; i < s.n && k < cap - 8; i++) {
        char c = s.p[i];
        bool comma = c == ',' && !dot && digits != 0 && i + 3 < s.n && is_digit(s.p[i + 1]) && is_digit(s.p[i + 2]) &&
                     is_digit(s.p[i + 3]) && (i + 4 == s.n || !is_digit(s.p[i + 4]));
        if (comma) {
            continue;
        }
        if (c == '.' && !dot) {
            dot = true;
        } else if (!is_digit(c)) {
            break;
        } else {
            digits++;
        }
        out[k++] = c;
    }
    if (digits == 0) {
        return 0;
    }
    if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
        size_t e = i + 1;
        if (e < s.n && (s.p[e] == '-' || s.p[e] == '+')) {
            e++;
        }
        if (e < s.n && is_digit(s.p[e])) {
            out[k++] = 'e';
            for (i++; i < s.n && k < cap - 1 && (i < e || is_digit(s.p[i])); i++) {
                out[k++] = s.p[i];
            }
        }
    }
    out[k] = '\0';
    return i;
}

bool fr_sv_take_double(fr_sv *s, double *ret)
{
    fr_sv r = *s;
    bool minus = fr_sv_take(&r, FR_SV("-"));
    if (!minus) {
        fr_sv_take(&r, FR_SV("+"));
    }
    if (take_word_ci(&r, "nan")) {
        *ret = NAN;
    } else if (take_word_ci(&r, "infinity") || take_word_ci(&r, "inf")) {
        *ret = minus ? -INFINITY : INFINITY;
    } else {
        char text[64];
        size_t n = copy_number(*s, text, sizeof text);
        if (n == 0) {
            return false;
        }
        *ret = strtod(text, NULL);
        *s = fr_sv_skip(*s, n);
        return true;
    }
    if (r.n != 0 && (isalnum((unsigned char)r.p[0]) || r.p[0] == '_')) {
        return false; /* "nano", "info" */
    }
    *s = r;
    return true;
}

uint64_t fr_sv_hash(fr_sv s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < s.n; i++) {
        h = (h ^ (unsigned char)s.p[i]) * 0x100000001b3u;
    }
    return h;
}
