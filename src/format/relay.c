/* SPDX-License-Identifier: Apache-2.0 */
/* relay: see relay.h. A program that logs for itself gives a message one header, whatever lines it has. So headers in front of
 * indented lines, of empty ones, of tracebacks and of other headers show that lines are passed on one by one; how bad each of them is,
 * the relay does not know. */
#include "format/relay.h"

#include "format/dialect.h"

enum {
    LINES_MAX = 100, /* lines looked at */
    LINES_MIN = 4,
    SIGNS_MIN = 3,   /* and one line in five: loggers indent what they list, too */
    HEADER_SIGNS = 3 /* a traceback's header counts so many */
};

struct heads {
    uint32_t lines, by_level[FR_LEVEL_FATAL + 1], texts, signs;
    fr_sv texts_of[LINES_MAX]; /* behind all known prefixes */
    char text[FR_RELAY_BYTES]; /* what all of them begin with, so far */
    size_t n;
};

static void compare(struct heads *h, fr_sv whole)
{
    fr_sv text = fr_sv_head(whole, sizeof h->text);
    if (text.n < h->n && h->texts != 0 && memcmp(h->text, text.p, text.n) == 0) {
        return; /* an empty line was passed on: blanks at the end are gone */
    }
    if (h->texts++ == 0) {
        memcpy(h->text, text.p, text.n);
        h->n = text.n;
    }
    size_t same = 0;
    while (same < h->n && same < text.n && h->text[same] == text.p[same]) {
        same++;
    }
    h->n = same;
}

/* False: lines differ from their beginning on, and some have no level. */
static bool read_lines(const struct fr_peel_ctx *plain, fr_sv head, struct heads *h)
{
    while (h->lines < LINES_MAX && head.n > 0) {
        const char *nl = memchr(head.p, '\n', head.n);
        fr_sv line = nl != NULL ? fr_sv_range(head.p, nl) : head;
        head = fr_sv_skip(head, line.n + (nl != NULL));
        if (fr_sv_trim(line).n == 0) {
            continue;
        }
        struct fr_record rec;
        fr_peel(plain, line, &rec);
        h->texts_of[h->lines++] = rec.text;
        h->by_level[rec.level <= FR_LEVEL_FATAL ? rec.level : 0]++;
        compare(h, rec.text);
        if (h->n == 0 && h->by_level[FR_LEVEL_NONE] != 0) {
            return false;
        }
    }
    return h->lines >= LINES_MIN;
}

/* Behind the fixed text another speaker begins, who says more of himself than a number. */
static bool has_header(const struct fr_peel_ctx *plain, const struct heads *h, fr_sv rest)
{
    struct fr_record rec;
    if (h->n == 0) {
        return false;
    }
    fr_peel(plain, rest, &rec);
    return rec.when.basis != FR_TIME_BASIS_NONE || rec.level != FR_LEVEL_NONE || rec.who.pid >= 0 || rec.who.rank >= 0 || rec.who.node.n != 0;
}

/* All lines are indented: a quotation. Frames of a traceback are, too. */
static bool is_margin(const struct heads *h)
{
    return h->n > 0 && fr_sv_trim((fr_sv){h->text, h->n}).n == 0;
}

static void look_behind(const struct fr_peel_ctx *plain, struct heads *h, fr_sv text)
{
    if (text.n < h->n || memcmp(text.p, h->text, h->n) != 0) {
        return;
    }
    fr_sv rest = fr_sv_skip(text, h->n);
    bool goes_on = rest.n == 0 || fr_is_space(rest.p[0]);
    bool opens = is_margin(h) ? fr_sv_starts(rest, FR_SV("Traceback ")) : fr_trace_opens(rest);
    if (opens) {
        h->signs += HEADER_SIGNS;
    } else if (is_margin(h) ? !goes_on && has_header(plain, h, rest) : goes_on || has_header(plain, h, rest)) {
        h->signs++;
    }
}

static bool is_proven(const struct fr_peel_ctx *plain, struct heads *h)
{
    h->signs = 0;
    for (uint32_t i = 0; i < h->lines; i++) {
        look_behind(plain, h, h->texts_of[i]);
    }
    return h->signs >= SIGNS_MIN && h->signs * 5 >= h->lines;
}

/* The fixed text ends where a word does: "stdout: ", and not "stdout: [rank". The shortest one that is proven: what follows it in all
 * lines may be one speaker's own header. */
static bool find_text(const struct fr_peel_ctx *plain, struct heads *h)
{
    const size_t most = h->n;
    for (size_t n = is_margin(h) ? most : 3; n > 0 && n <= most; n++) {
        h->n = n;
        if (h->text[n - 1] == ' ' && is_proven(plain, h)) {
            return true;
        }
    }
    h->n = 0;
    return false;
}

static uint8_t usual_level(const struct heads *h)
{
    uint8_t best = FR_LEVEL_NONE;
    for (uint8_t i = 0; i <= FR_LEVEL_FATAL; i++) {
        best = i != FR_LEVEL_NONE && h->by_level[i] > h->by_level[best] ? i : best;
    }
    return h->by_level[FR_LEVEL_NONE] == 0 && h->by_level[best] * 5 >= h->lines * 4 ? best : FR_LEVEL_NONE;
}

bool fr_relay_learn(const struct fr_peel_ctx *ctx, fr_sv head, struct fr_relay *ret)
{
    const struct fr_peel_ctx plain = {.scratch = ctx->scratch, .year = ctx->year};
    struct heads *h = FR_NEW(ctx->scratch, struct heads);
    *ret = (struct fr_relay){.level = FR_LEVEL_NONE};
    if (h == NULL || !read_lines(&plain, head, h)) {
        return false;
    }
    const uint8_t level = usual_level(h);
    if (!find_text(&plain, h) && (level == FR_LEVEL_NONE || !is_proven(&plain, h))) {
        return false;
    }
    ret->level = level;
    ret->n = (uint8_t)h->n;
    memcpy(ret->text, h->text, h->n);
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    const struct fr_relay *relay = ctx->relay;
    if (relay == NULL || relay->n == 0 || !fr_sv_starts(rec->text, (fr_sv){relay->text, relay->n})) {
        return false;
    }
    rec->text = fr_sv_skip(rec->text, relay->n);
    return true;
}

static const struct fr_format_sample samples[] = {{"[base] step 5 loss 1.5", "text=\"[base] step 5 loss 1.5\""},
                                                  {"INFO:root:step 5", "level=info text=\"step 5\""},
                                                  {NULL, NULL}};

const struct fr_format fr_format_relay = {
    .name = "relay", .summary = "the text in front of lines that are passed on, once it is learned", .peel = peel, .samples = samples};
