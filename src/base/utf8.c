/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

static uint32_t decode(const unsigned char *u, size_t n)
{
    switch (n) {
    case 1: return u[0];
    case 2: return (uint32_t)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
    case 3: return (uint32_t)(u[0] & 0x0f) << 12 | (uint32_t)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
    default:
        return (uint32_t)(u[0] & 0x07) << 18 | (uint32_t)(u[1] & 0x3f) << 12 | (uint32_t)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
    }
}

size_t fr_utf8_len(fr_sv s)
{
    const unsigned char *u = (const unsigned char *)s.p;
    if (s.n == 0) {
        return 0;
    }
    size_t n = u[0] < 0x80 ? 1 : u[0] >= 0xc2 && u[0] < 0xe0 ? 2 : u[0] >= 0xe0 && u[0] < 0xf0 ? 3 : u[0] >= 0xf0 && u[0] < 0xf5 ? 4 : 0;
    if (n == 0 || n > s.n) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((u[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    uint32_t c = decode(u, n);
    bool bad = (n == 3 && (c < 0x800 || (c >= 0xd800 && c < 0xe000))) || (n == 4 && (c < 0x10000 || c > 0x10ffff));
    return bad ? 0 : n;
}

bool fr_utf8_valid(fr_sv s)
{
    while (s.n != 0) {
        size_t n = fr_utf8_len(s);
        if (n == 0) {
            return false;
        }
        s = fr_sv_skip(s, n);
    }
    return true;
}

/* Length of the ANSI sequence at s (ESC or literal "^["), 0 when there is none. */
static size_t ansi_len(fr_sv s)
{
    size_t i;
    if (s.p[0] == 0x1b) {
        i = 1;
    } else if (s.n >= 3 && s.p[0] == '^' && s.p[1] == '[' && (s.p[2] == '[' || s.p[2] == ']')) {
        i = 2;
    } else {
        return 0;
    }
    if (i < s.n && s.p[i] == '[') {
        for (i++; i < s.n && (unsigned char)s.p[i] >= 0x20 && (unsigned char)s.p[i] < 0x40; i++) {
        }
        return i < s.n ? i + 1 : i;
    }
    if (i < s.n && s.p[i] == ']') {
        while (i < s.n && s.p[i] != 0x07 && s.p[i] != 0x1b) {
            i++;
        }
        return i < s.n ? i + 1 : i;
    }
    return i < s.n && (s.p[i] == '(' || s.p[i] == ')') && i + 1 < s.n ? i + 2 : i;
}

/* Characters that could move the cursor, hide text or reorder it. */
static bool is_hostile(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

void fr_utf8_clean(struct fr_buf *out, fr_sv s, size_t max)
{
    size_t start = out->n;
    while (s.n != 0) {
        size_t skip = ansi_len(s);
        if (skip != 0) {
            s = fr_sv_skip(s, skip);
            continue;
        }
        size_t n = fr_utf8_len(s);
        fr_sv add = n == 0 ? FR_SV("\xef\xbf\xbd") : fr_sv_head(s, n);
        uint32_t c = n == 0 ? 0xfffd : decode((const unsigned char *)s.p, n);
        s = fr_sv_skip(s, n == 0 ? 1 : n);
        if (c == '\t') {
            add = FR_SV("\t");
        } else if (c == '\n' || c == '\r') {
            add = FR_SV(" ");
        } else if (is_hostile(c)) {
            continue;
        }
        if (max != 0 && out->n - start + add.n > max) {
            fr_buf_addz(out, "...");
            return;
        }
        fr_buf_add(out, add);
    }
}

static void add_char(struct fr_buf *out, uint32_t c)
{
    char u[4];
    size_t n;
    if (c < 0x80) {
        u[0] = (char)c;
        n = 1;
    } else if (c < 0x800) {
        u[0] = (char)(0xc0 | c >> 6);
        u[1] = (char)(0x80 | (c & 0x3f));
        n = 2;
    } else if (c < 0x10000) {
        u[0] = (char)(0xe0 | c >> 12);
        u[1] = (char)(0x80 | (c >> 6 & 0x3f));
        u[2] = (char)(0x80 | (c & 0x3f));
        n = 3;
    } else {
        u[0] = (char)(0xf0 | c >> 18);
        u[1] = (char)(0x80 | (c >> 12 & 0x3f));
        u[2] = (char)(0x80 | (c >> 6 & 0x3f));
        u[3] = (char)(0x80 | (c & 0x3f));
        n = 4;
    }
    fr_buf_add(out, (fr_sv){u, n});
}

static uint32_t unit16(const char *p, bool big)
{
    const unsigned char *u = (const unsigned char *)p;
    return big ? (uint32_t)u[0] << 8 | u[1] : (uint32_t)u[1] << 8 | u[0];
}

void fr_utf8_from_utf16(struct fr_buf *out, fr_sv s, bool big_endian)
{
    size_t i = 0;
    for (; i + 1 < s.n; i += 2) {
        uint32_t c = unit16(s.p + i, big_endian);
        if (c >= 0xd800 && c < 0xdc00 && i + 3 < s.n) {
            uint32_t low = unit16(s.p + i + 2, big_endian);
            if (low >= 0xdc00 && low < 0xe000) {
                add_char(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
                i += 2;
                continue;
            }
        }
        add_char(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c);
    }
    if (i < s.n) {
        add_char(out, 0xfffd);
    }
}

void fr_utf8_from_latin1(struct fr_buf *out, fr_sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        add_char(out, (unsigned char)s.p[i]);
    }
}
