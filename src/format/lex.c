/* SPDX-License-Identifier: Apache-2.0 */
/* lex: see lex.h. */
#include "format/lex.h"

bool fr_lex_int(fr_sv *s, int64_t *ret)
{
    fr_sv at = *s;
    bool negative = fr_lex_char(&at, '-');
    if (!negative) {
        (void)fr_lex_char(&at, '+');
    }
    uint64_t v = 0;
    if (!fr_lex_digits(&at, 1, 18, &v)) {
        return false;
    }
    *ret = negative ? -(int64_t)v : (int64_t)v;
    *s = at;
    return true;
}

bool fr_lex_index(fr_sv *s, int32_t *ret)
{
    uint64_t v = 0;
    if (!fr_lex_digits(s, 1, 7, &v)) {
        return false;
    }
    *ret = (int32_t)v;
    return true;
}

bool fr_lex_hex(fr_sv *s, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < s->n && i < 17 && fr_is_hex(s->p[i]); i++) {
        char c = s->p[i];
        unsigned d = fr_is_digit(c) ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
        v = (v << 4) | d;
    }
    if (i == 0 || i > 16) {
        return false;
    }
    *ret = v;
    *s = fr_sv_skip(*s, i);
    return true;
}

bool fr_lex_after(fr_sv s, fr_sv lit, fr_sv *ret_rest)
{
    size_t at = fr_sv_find(s, lit);
    if (at == FR_NPOS) {
        return false;
    }
    *ret_rest = fr_sv_skip(s, at + lit.n);
    return true;
}

bool fr_lex_num_after(fr_sv s, fr_sv lit, int64_t *ret, fr_sv *ret_text)
{
    fr_sv at;
    if (!fr_lex_after(s, lit, &at)) {
        return false;
    }
    const char *begin = at.p;
    if (!fr_lex_int(&at, ret)) {
        return false;
    }
    *ret_text = fr_sv_range(begin, at.p);
    return true;
}
