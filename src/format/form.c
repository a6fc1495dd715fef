/* SPDX-License-Identifier: Apache-2.0 */
/* form: see form.h. A form reaches from the segment's start through its prefix to the first digit
 * of the text, so that the peeler's decision to stop there is the same. */
#include "format/form.h"

#include "format/lex.h"
#include "format/peel.h"

enum { TEXT_MAX = 32 }; /* of the text, when no digit comes */

/* a[0..n) and b[0..n), from the end, where forms of one kind differ: their line numbers, ranks. */
static inline bool same_backwards(const char *a, const char *b, size_t n)
{
    uint64_t x, y;
    if (n < sizeof x) {
        return memcmp(a, b, n) == 0;
    }
    while (n > sizeof x) {
        n -= sizeof x;
        memcpy(&x, a + n, sizeof x);
        memcpy(&y, b + n, sizeof y);
        if (x != y) {
            return false;
        }
    }
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x == y;
}

static inline bool same_bytes(const struct fr_form *f, fr_sv segment)
{
    return segment.n > f->n &&
           same_backwards(segment.p + f->stamp_end, f->bytes + f->stamp_end,
                          (size_t)(f->n - f->stamp_end)) &&
           same_backwards(segment.p, f->bytes, f->stamp) &&
           (!f->digit_follows || fr_is_digit(segment.p[f->n]));
}

enum { CLOCK = sizeof "2026-01-31 " - 1, CLOCK_END = CLOCK + sizeof "23:59:59" - 1 };

/* "23:59:59" in seconds; false when it is none. Its digits are looked at all at once: over '0' they
 * are at most 9, and the colons equal. */
static inline bool read_seconds(const char *p, int64_t *ret)
{
    const uint64_t top = 0x8080808080808080u, room = 0x76767f76767f7676u;
    uint64_t x, like;
    memcpy(&x, p, sizeof x);
    memcpy(&like, "00:00:00", sizeof like);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
    like = __builtin_bswap64(like);
#endif
    x ^= like;
    if ((((x & ~top) + room) | x) & top) {
        return false;
    }
    x = x * 10 + (x >> 8);
    unsigned h = x & 0xff, m = x >> 24 & 0xff, s = x >> 48 & 0xff;
    *ret = h * 3600 + m * 60 + s;
    return h <= 23 && m <= 59 && s <= 60;
}

/* Nanoseconds since midnight of the clock at p, which goes on to e as `like` does: the same bytes
 * but for digits. */
static inline bool read_clock(const char *p, const char *e, const char *like, int64_t *ret)
{
    static const int64_t unit[] = {1000000000, 100000000, 10000000, 1000000, 100000,
                                   10000,      1000,      100,      10,      1};
    int64_t seconds, fraction = 0;
    unsigned n = 0;
    if (!read_seconds(p, &seconds)) {
        return false;
    }
    p += 8;
    like += 8;
    if (p < e && (*p == '.' || *p == ',')) {
        for (p++, like++; n < 9 && p < e && fr_is_digit(*p) && fr_is_digit(*like); n++) {
            fraction = fraction * 10 + (*p++ - '0');
            like++;
        }
    }
    *ret = seconds * FR_NS_PER_S + fraction * unit[n];
    return p == e || memcmp(p, like, (size_t)(e - p)) == 0;
}

bool fr_form_time(const struct fr_form *f, fr_sv segment, struct fr_when *ret)
{
    const char *p = segment.p + f->stamp, *e = segment.p + f->stamp_end;
    int64_t since;
    *ret = f->day;
    if (p == e) {
        return true;
    }
    if (f->has_day && same_backwards(p, f->bytes + f->stamp, CLOCK) &&
        read_clock(p + CLOCK, e, f->bytes + f->stamp + CLOCK, &since)) {
        ret->ns += since;
        return true;
    }
    fr_sv at = fr_sv_range(p, segment.p + f->n);
    return fr_stamp_iso(&at, ret) && at.p == e;
}

/* Later times of the same day need not be read in full. */
static void learn_day(struct fr_form *f, const struct fr_when *when)
{
    const char *p = f->bytes + f->stamp + CLOCK, *e = f->bytes + f->stamp_end;
    int64_t since;
    f->day = *when;
    f->has_day = e - p >= CLOCK_END - CLOCK && read_clock(p, e, p, &since);
    if (f->has_day) {
        f->day.ns -= since;
    }
}

const struct fr_form *fr_forms_find(struct fr_forms *f, uint64_t kind, fr_sv segment,
                                    struct fr_when *ret_when)
{
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->v[i].kind != kind || !same_bytes(&f->v[i], segment) ||
            !fr_form_time(&f->v[i], segment, ret_when)) {
            continue;
        }
        if (i < FR_FORMS / 8) {
            return &f->v[i];
        }
        struct fr_form up = f->v[i];
        f->v[i] = f->v[i / 2];
        f->v[i / 2] = up;
        return &f->v[i / 2];
    }
    return NULL;
}

/* Where the prefix ends in the segment as it was read; FR_NPOS when that cannot be told. */
static size_t text_begins(fr_sv segment, fr_sv text)
{
    char clean[4 * FR_FORM_BYTES];
    if (text.p >= segment.p && text.p < segment.p + segment.n) {
        return (size_t)(text.p - segment.p);
    }
    if (segment.n > sizeof clean || !fr_peel_has_ansi(segment)) { /* unescaped */
        return FR_NPOS;
    }
    size_t n = fr_peel_strip_ansi(segment, clean), at = fr_sv_find(segment, fr_sv_head(text, 8));
    while (n > text.n && (fr_is_space(clean[n - 1]) || clean[n - 1] == '\r')) {
        n--;
    }
    if (at == FR_NPOS || n < text.n || memcmp(clean + n - text.n, text.p, text.n) != 0) {
        return FR_NPOS;
    }
    return fr_peel_strip_ansi(fr_sv_head(segment, at), clean) == n - text.n ? at : FR_NPOS;
}

/* The place of the time that was peeled off. False: there is one, and it is of another shape. */
static bool find_stamp(fr_sv prefix, const struct fr_when *when, struct fr_form *f)
{
    f->stamp = f->stamp_end = 0;
    for (size_t i = 0; when->basis != FR_TIME_BASIS_NONE && i < prefix.n; i++) {
        fr_sv at = fr_sv_skip(prefix, i);
        struct fr_when seen;
        bool begins = fr_is_digit(prefix.p[i]) && (i == 0 || !fr_is_digit(prefix.p[i - 1]));
        if (begins && fr_stamp_iso(&at, &seen) && seen.ns == when->ns &&
            seen.resolution_ns == when->resolution_ns && seen.basis == when->basis) {
            f->stamp = (uint16_t)i;
            f->stamp_end = (uint16_t)(at.p - prefix.p);
            return true;
        }
    }
    return when->basis == FR_TIME_BASIS_NONE;
}

void fr_forms_learn(struct fr_forms *f, uint64_t kind, fr_sv segment, const struct fr_record *rec,
                    const struct fr_who *who, uint32_t tag)
{
    size_t n = rec->text.n == 0 ? FR_NPOS : text_begins(segment, rec->text);
    if (n > FR_FORM_BYTES - TEXT_MAX || fr_is_digit(segment.p[n]) || rec->repeated || rec->bound ||
        rec->is_kernel || rec->outer.basis != FR_TIME_BASIS_NONE) {
        return;
    }
    struct fr_form form = {.kind = kind, .who = *who, .tag = tag};
    if (!find_stamp(fr_sv_head(segment, n), &rec->when, &form)) {
        return;
    }
    size_t most = n + TEXT_MAX < segment.n ? n + TEXT_MAX : segment.n - 1;
    while (n < most && !fr_is_digit(segment.p[n])) {
        n++;
    }
    form.n = (uint16_t)n;
    form.digit_follows = fr_is_digit(segment.p[n]);
    memcpy(form.bytes, segment.p, n);
    learn_day(&form, &rec->when);
    if (f->n < FR_FORMS) {
        f->v[f->n++] = form;
        return;
    }
    f->v[FR_FORMS / 2 + f->next] = form; /* the front half is in use */
    f->next = (f->next + 1) % (FR_FORMS / 2);
}

bool fr_form_is_bar(fr_sv segment)
{
    size_t i = 0, digits = 0;
    while (i < segment.n && segment.p[i] == ' ') {
        i++;
    }
    while (digits < 4 && fr_is_digit(fr_lex_peek(segment, i + digits))) {
        digits++;
    }
    i += digits;
    return digits > 0 && digits < 4 && fr_lex_peek(segment, i) == '%' &&
           fr_lex_peek(segment, i + 1) == '|';
}
