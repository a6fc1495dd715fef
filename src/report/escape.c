/* SPDX-License-Identifier: Apache-2.0 */
/* escape: see escape.h. */
#include "report/escape.h"

#include "base/utf8.h"

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

static void add(struct fr_buf *out, fr_sv s)
{
    size_t plain = 0; /* begin of the run that needs nothing */
    for (size_t i = 0; i < s.n; i++) {
        const char *e = entity(s.p[i]);
        /* U+FFFE and U+FFFF are UTF-8 but not XML. */
        bool noncharacter = i + 2 < s.n && memcmp(s.p + i, "\xEF\xBF", 2) == 0 && (unsigned char)s.p[i + 2] >= 0xBE;
        if (e == NULL && !noncharacter) {
            continue;
        }
        fr_buf_add(out, (fr_sv){s.p + plain, i - plain});
        fr_buf_addz(out, e != NULL ? e : "");
        i += noncharacter ? 2 : 0;
        plain = i + 1;
    }
    fr_buf_add(out, (fr_sv){s.p + plain, s.n - plain});
}

void fr_escape(struct fr_buf *out, fr_sv s, size_t max)
{
    FR_AUTO(fr_buf) clean = FR_BUF_INIT(0);
    fr_utf8_clean(&clean, s, max);
    out->failed |= !fr_buf_ok(&clean);
    add(out, fr_buf_sv(&clean));
}

void fr_escape_flush(struct fr_buf *out, struct fr_buf *scratch)
{
    out->failed |= !fr_buf_ok(scratch);
    add(out, fr_buf_sv(scratch));
    fr_buf_clear(scratch);
}
