/* SPDX-License-Identifier: Apache-2.0 */
/* lex: small steps through a line, for the dialects of this folder. A cursor is an fr_sv; a step that fails leaves it
 * where it was. Nothing here allocates or reads past the view. */
#ifndef FR_FORMAT_LEX_H
#define FR_FORMAT_LEX_H

#include "base/view.h"

static inline bool fr_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool fr_is_upper(char c) { return c >= 'A' && c <= 'Z'; }
static inline bool fr_is_lower(char c) { return c >= 'a' && c <= 'z'; }
static inline bool fr_is_alpha(char c) { return fr_is_upper(c) || fr_is_lower(c); }
static inline bool fr_is_space(char c) { return c == ' ' || c == '\t'; }
static inline bool fr_is_word(char c) { return fr_is_alpha(c) || fr_is_digit(c) || c == '_'; }
static inline bool fr_is_hex(char c) { return fr_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

static inline char fr_lex_peek(fr_sv s, size_t i) { return i < s.n ? s.p[i] : '\0'; }

static inline bool fr_lex_char(fr_sv *s, char c)
{
    if (s->n == 0 || s->p[0] != c) {
        return false;
    }
    *s = fr_sv_skip(*s, 1);
    return true;
}

/* A literal at the cursor; inline, so that its comparison is one or two machine words. */
static inline bool fr_lex_take(fr_sv *s, fr_sv lit)
{
    if (!fr_sv_starts(*s, lit)) {
        return false;
    }
    *s = fr_sv_skip(*s, lit.n);
    return true;
}
#define fr_lex_lit(s, lit) fr_lex_take((s), FR_SV(lit))

/* Between min and max digits (max <= 18), no digit after them. */
static inline bool fr_lex_digits(fr_sv *s, size_t min, size_t max, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;
    while (i < s->n && i <= max && fr_is_digit(s->p[i])) {
        v = v * 10 + (uint64_t)(s->p[i] - '0');
        i++;
    }
    if (i < min || i > max) {
        return false;
    }
    *ret = v;
    *s = fr_sv_skip(*s, i);
    return true;
}

/* Exactly n digits; what follows does not matter. */
static inline bool fr_lex_fixed(fr_sv *s, size_t n, int *ret)
{
    int v = 0;
    if (s->n < n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!fr_is_digit(s->p[i])) {
            return false;
        }
        v = v * 10 + (s->p[i] - '0');
    }
    *ret = v;
    *s = fr_sv_skip(*s, n);
    return true;
}
/* A whole number that fits: optional sign, at most 18 digits. */
bool fr_lex_int(fr_sv *s, int64_t *ret);
/* A number of a rank or an index: 0 to 9,999,999. */
bool fr_lex_index(fr_sv *s, int32_t *ret);
bool fr_lex_hex(fr_sv *s, uint64_t *ret); /* at most 16 digits, without 0x */

/* Drops spaces and tabs, says how many. */
static inline size_t fr_lex_spaces(fr_sv *s)
{
    size_t i = 0;
    while (i < s->n && fr_is_space(s->p[i])) {
        i++;
    }
    *s = fr_sv_skip(*s, i);
    return i;
}

/* Up to the first `end` (dropped too). False: there is none. */
static inline bool fr_lex_until(fr_sv *s, char end, fr_sv *ret)
{
    const char *at = s->n == 0 ? NULL : memchr(s->p, end, s->n);
    if (at == NULL) {
        return false;
    }
    *ret = fr_sv_range(s->p, at);
    *s = fr_sv_range(at + 1, s->p + s->n);
    return true;
}
/* Run of bytes that are not white space; empty = false. */
static inline bool fr_lex_token(fr_sv *s, fr_sv *ret)
{
    size_t i = 0;
    while (i < s->n && !fr_is_space(s->p[i])) {
        i++;
    }
    if (i == 0) {
        return false;
    }
    *ret = fr_sv_head(*s, i);
    *s = fr_sv_skip(*s, i);
    return true;
}

/* Run of [A-Za-z0-9_.-]; empty = false. */
static inline bool fr_lex_name(fr_sv *s, fr_sv *ret)
{
    size_t i = 0;
    while (i < s->n && (fr_is_word(s->p[i]) || s->p[i] == '.' || s->p[i] == '-')) {
        i++;
    }
    if (i == 0) {
        return false;
    }
    *ret = fr_sv_head(*s, i);
    *s = fr_sv_skip(*s, i);
    return true;
}

/* Finds lit anywhere; *ret_rest is what follows it (untouched when it is absent). */
bool fr_lex_after(fr_sv s, fr_sv lit, fr_sv *ret_rest);
#define fr_lex_find(s, lit, ret_rest) fr_lex_after((s), FR_SV(lit), (ret_rest))
/* Finds "lit" and a whole number behind it. */
bool fr_lex_num_after(fr_sv s, fr_sv lit, int64_t *ret, fr_sv *ret_text);

#endif
