/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: see wrap.h. */
#include "report/wrap.h"

int fr_wrap_columns(fr_sv s)
{
    int n = 0;
    for (size_t i = 0; i < s.n; i++) {
        n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    }
    return n;
}

static fr_sv next_word(fr_sv *s)
{
    size_t b = 0, e;
    while (b < s->n && s->p[b] == ' ') {
        b++;
    }
    e = b;
    while (e < s->n && s->p[e] != ' ') {
        e++;
    }
    fr_sv word = {s->p + b, e - b};
    *s = fr_sv_skip(*s, e);
    return word;
}

static void wrap_line(struct fr_buf *out, fr_sv line, const char **margin, const char *next, int width)
{
    fr_buf_addz(out, *margin);
    int at = fr_wrap_columns(fr_sv_z(*margin));
    bool fresh = true;
    *margin = next;
    while (line.n > 0) {
        fr_sv word = next_word(&line);
        if (word.n == 0) {
            break;
        }
        int columns = fr_wrap_columns(word);
        if (!fresh && at + 1 + columns > width) {
            fr_buf_addc(out, '\n');
            fr_buf_addz(out, next);
            at = fr_wrap_columns(fr_sv_z(next));
            fresh = true;
        }
        if (!fresh) {
            fr_buf_addc(out, ' ');
            at++;
        }
        fr_buf_add(out, word);
        at += columns;
        fresh = false;
    }
    fr_buf_addc(out, '\n');
}

void fr_wrap(struct fr_buf *out, fr_sv text, const char *first, const char *next, int width)
{
    const char *margin = first;
    do {
        fr_sv line;
        fr_sv_cut(text, '\n', &line, &text);
        wrap_line(out, line, &margin, next, width > 20 ? width : 20);
    } while (text.n > 0);
}
