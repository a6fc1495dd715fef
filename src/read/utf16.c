/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-16 to UTF-8 as a stream. base/utf8 converts whole texts; here a surrogate pair or a code unit may be cut by the end of a
 * block, so what is incomplete waits for the next one. */
#include "read/stream.h"

static uint32_t unit(const struct fr_utf16 *u, size_t i)
{
    unsigned a = (unsigned char)u->raw[i], b = (unsigned char)u->raw[i + 1];
    return u->big_endian ? a << 8 | b : b << 8 | a;
}

static void put(struct fr_utf16 *u, uint32_t c)
{
    char *p = u->text + u->n;
    if (c < 0x80) {
        p[0] = (char)c;
        u->n += 1;
    } else if (c < 0x800) {
        p[0] = (char)(0xC0 | c >> 6);
        p[1] = (char)(0x80 | (c & 0x3F));
        u->n += 2;
    } else if (c < 0x10000) {
        p[0] = (char)(0xE0 | c >> 12);
        p[1] = (char)(0x80 | (c >> 6 & 0x3F));
        p[2] = (char)(0x80 | (c & 0x3F));
        u->n += 3;
    } else {
        p[0] = (char)(0xF0 | c >> 18);
        p[1] = (char)(0x80 | (c >> 12 & 0x3F));
        p[2] = (char)(0x80 | (c >> 6 & 0x3F));
        p[3] = (char)(0x80 | (c & 0x3F));
        u->n += 4;
    }
}

/* Converts raw[0..have); at the end of input nothing may wait any more. 2 raw bytes make at most 3: text has room. */
static void convert(struct fr_utf16 *u, bool end)
{
    size_t i = 0;
    u->at = u->n = 0;
    while (i + 1 < u->have) {
        uint32_t c = unit(u, i);
        if (c >= 0xD800 && c < 0xDC00) {
            if (i + 3 >= u->have && !end) {
                break;
            }
            uint32_t low = i + 3 < u->have ? unit(u, i + 2) : 0;
            if (low >= 0xDC00 && low < 0xE000) {
                put(u, 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00));
                i += 4;
                continue;
            }
        }
        put(u, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
        i += 2;
    }
    if (end && i < u->have) {
        put(u, 0xFFFD);
        i = u->have;
    }
    memmove(u->raw, u->raw + i, u->have - i);
    u->have -= i;
}

static int64_t utf16_read(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct fr_utf16 *u = (struct fr_utf16 *)s;
    while (u->at == u->n) {
        if (u->done) {
            s->ended = true;
            return 0;
        }
        int64_t got = u->under->ended ? 0 : u->under->read(u->under, u->raw + u->have, sizeof u->raw - u->have, err);
        if (got < 0) {
            return got;
        }
        u->have += (size_t)got;
        u->done = got == 0;
        convert(u, u->done);
    }
    size_t take = u->n - u->at < n ? u->n - u->at : n;
    memcpy(p, u->text + u->at, take);
    u->at += take;
    s->ended = u->done && u->at == u->n;
    return (int64_t)take;
}

void fr_utf16_start(struct fr_utf16 *u, struct fr_stream *under, bool big_endian)
{
    u->s = (struct fr_stream){.read = utf16_read};
    u->under = under;
    u->big_endian = big_endian;
    u->n = u->at = u->have = 0;
    u->done = false;
}
