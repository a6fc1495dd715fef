/* SPDX-License-Identifier: Apache-2.0 */
/* own_tag: see own_tag.h. What makes a number a rank's: it stands in front of most lines, its values go to and fro as the lines
 * of processes do, every one comes more than once, and the word beside it is one for a process. A counter of steps or
 * batches only rises, or rises and starts again. Or the lines behind it say so themselves: "[4]: rank 4 of 5 starts". */
#include "format/own_tag.h"

#include "base/vec.h"
#include "format/dialect.h"

enum {
    VALUES = 1024,    /* ranks beyond are no longer told apart by such tags */
    SHAPES = 8,       /* ways to begin a line that are weighed */
    LINES_MAX = 500,  /* lines looked at */
    LINES_FEW = 96,   /* of them without a thing that may be a tag: none will come */
    LINES_MIN = 6,    /* tagged, for less proves nothing */
    RESTLESS = 3      /* changes that no counter makes */
};

struct shape {
    struct fr_own_tag tag;
    bool bare; /* no word stands beside the number */
    uint32_t lines, falls, leaps, metrics, distinct;
    uint32_t agree, differ;     /* lines that name their own rank: the number's, or another one */
    int32_t last, least, most, agreed; /* agreed: the first number that was so named; -1: none */
    bool agreed_twice;          /* and another one */
    uint16_t seen[VALUES];
};

struct census {
    struct shape v[SHAPES];
    uint32_t n, lines;
};

/* ---- one tag ---- */

struct word {
    const char *text;
    enum fr_own_number number;
};
static const struct word words[] = {
    {"rank", FR_OWN_RANK},        {"r", FR_OWN_RANK},
    {"rk", FR_OWN_RANK},          {"global rank", FR_OWN_RANK},
    {"global_rank", FR_OWN_RANK}, {"local_rank", FR_OWN_LOCAL_RANK},
    {"gpu", FR_OWN_LOCAL_RANK},   {"local rank", FR_OWN_LOCAL_RANK},
    {"cuda", FR_OWN_LOCAL_RANK},  {"device", FR_OWN_LOCAL_RANK},
    {"worker", FR_OWN_TASK},      {"w", FR_OWN_TASK},
    {"process", FR_OWN_TASK},     {"proc", FR_OWN_TASK},
    {"trainer", FR_OWN_TASK},     {"task", FR_OWN_TASK},
    {"replica", FR_OWN_TASK},     {"p", FR_OWN_TASK},
    {"", FR_OWN_TASK},
};

static enum fr_own_number number_of(fr_sv before, bool *ret_bare)
{
    char word[FR_OWN_TAG_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < before.n; i++) {
        bool inner = (before.p[i] == ' ' || before.p[i] == '_') && n > 0 && i + 1 < before.n && fr_is_alpha(before.p[i + 1]);
        if (fr_is_alpha(before.p[i]) || inner) {
            word[n++] = fr_is_alpha(before.p[i]) ? (char)(before.p[i] | 0x20) : before.p[i];
        }
    }
    *ret_bare = n == 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (fr_sv_eq((fr_sv){word, n}, fr_sv_z(words[i].text))) {
            return words[i].number;
        }
    }
    return FR_OWN_NONE;
}

/* Up to the number: letters, blanks and what people put around a tag. */
static bool take_before(fr_sv *at, fr_sv *ret)
{
    static const char around[] = " _-:=#@<([{|";
    size_t i = 0;
    while (i < at->n && i < FR_OWN_TAG_BYTES && (fr_is_alpha(at->p[i]) || memchr(around, at->p[i], sizeof around - 1) != NULL)) {
        i++;
    }
    if (i == FR_OWN_TAG_BYTES || !fr_is_digit(fr_lex_peek(*at, i)) || fr_lex_peek(*at, 0) == ' ') {
        return false;
    }
    *ret = fr_sv_head(*at, i);
    while (ret->n > 0 && ret->p[ret->n - 1] == ' ' && fr_lex_peek(*ret, 0) == '[') { /* "[ 3]" beside "[12]" */
        ret->n--;
    }
    *at = fr_sv_skip(*at, i);
    return true;
}

/* Behind the number, up to the blank that ends the tag: "]", "):", " |", " -". */
static bool take_after(fr_sv *at, fr_sv *ret)
{
    static const char around[] = ")]>}|:;-";
    size_t i = 0;
    bool apart = fr_lex_peek(*at, 0) == ' ' && fr_lex_peek(*at, 1) != '\0' && strchr("|:->", fr_lex_peek(*at, 1)) != NULL &&
                 fr_lex_peek(*at, 2) == ' ';
    while (i < at->n && i < FR_OWN_TAG_BYTES && memchr(around, at->p[i], sizeof around - 1) != NULL) {
        i++;
    }
    i = apart ? 2 : i;
    char next = fr_lex_peek(*at, i);
    bool closed = i == 2 && fr_sv_starts(*at, FR_SV("]:")); /* "[4]:Traceback" */
    if (next != ' ' && next != '\t' && !(next == '[' && i > 0) && !closed) {
        return false;
    }
    *ret = fr_sv_head(*at, i);
    *at = fr_sv_skip(*at, i);
    return true;
}

bool fr_own_tag_like(fr_sv name)
{
    fr_sv before;
    uint64_t value = 0;
    bool bare = true;
    return take_before(&name, &before) && fr_lex_digits(&name, 1, 4, &value) && name.n == 0 &&
           number_of(before, &bare) != FR_OWN_NONE && !bare;
}

static int32_t take_of(fr_sv *at)
{
    fr_sv rest = *at;
    int32_t of = -1;
    if ((fr_lex_char(&rest, '/') || fr_lex_lit(&rest, " of ")) && fr_lex_index(&rest, &of)) {
        *at = rest;
        return of;
    }
    return -1;
}

/* Reads a tag of any shape; *at moves behind it. */
static bool read_tag(fr_sv *at, struct fr_own_tag *ret, int32_t *ret_value, bool *ret_bare)
{
    fr_sv rest = *at, before, after;
    uint64_t value = 0;
    if (!take_before(&rest, &before) || !fr_lex_digits(&rest, 1, 4, &value) || fr_is_digit(fr_lex_peek(rest, 0))) {
        return false;
    }
    int32_t of = take_of(&rest);
    enum fr_own_number number = number_of(before, ret_bare);
    if (number == FR_OWN_NONE || !take_after(&rest, &after) || (before.n == 0 && after.n == 0 && of < 0)) {
        return false;
    }
    *ret = (struct fr_own_tag){.n_before = (uint8_t)before.n, .n_after = (uint8_t)after.n, .number = (uint8_t)number, .of = of};
    memcpy(ret->before, before.p, before.n);
    memcpy(ret->after, after.p, after.n);
    *ret_value = (int32_t)value;
    *at = rest;
    return true;
}

static bool same_tag(const struct fr_own_tag *a, const struct fr_own_tag *b)
{
    return a->of == b->of && a->n_before == b->n_before && a->n_after == b->n_after &&
           memcmp(a->before, b->before, a->n_before) == 0 && memcmp(a->after, b->after, a->n_after) == 0;
}

/* ---- many lines ---- */

static bool tells_progress(fr_sv text)
{
    static const fr_sv said[] = {FR_SV("step"), FR_SV("iter"), FR_SV("epoch"), FR_SV("loss"), FR_SV("batch")};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        if (fr_sv_find_ci(text, said[i]) != FR_NPOS) {
            return true;
        }
    }
    return false;
}

/* "rank 4 of 5 starts", "rank=4": the first rank that the text names; -1: none. */
static int32_t named_rank(fr_sv text)
{
    int32_t rank = -1;
    size_t at = fr_sv_find_ci(text, FR_SV("rank"));
    fr_sv rest = at == FR_NPOS ? FR_SV_NONE : fr_sv_skip(text, at + 4);
    if (!fr_lex_char(&rest, ' ') && !fr_lex_char(&rest, '=')) {
        return -1;
    }
    return fr_lex_index(&rest, &rank) ? rank : -1;
}

static void compare(struct shape *s, int32_t value, fr_sv text)
{
    int32_t rank = named_rank(text);
    s->agree += rank == value;
    s->differ += rank >= 0 && rank != value;
    if (rank == value) {
        s->agreed_twice |= s->agreed >= 0 && s->agreed != value;
        s->agreed = s->agreed < 0 ? value : s->agreed;
    }
}

static void count(struct census *c, const struct fr_own_tag *tag, int32_t value, bool bare, fr_sv text)
{
    uint32_t i = 0;
    while (i < c->n && !same_tag(&c->v[i].tag, tag)) {
        i++;
    }
    if (i == c->n) {
        if (i == SHAPES) {
            return;
        }
        c->v[c->n++] = (struct shape){.tag = *tag, .bare = bare, .last = value, .least = value, .most = value, .agreed = -1};
    }
    struct shape *s = &c->v[i];
    bool again = value == s->least && s->last == s->most;
    s->lines++;
    s->falls += value < s->last;
    s->leaps += value != s->last && value != s->last + 1 && !again;
    s->metrics += tells_progress(text);
    compare(s, value, text);
    s->least = value < s->least ? value : s->least;
    s->most = value > s->most ? value : s->most;
    s->last = value;
    if (value < VALUES) {
        s->distinct += s->seen[value] == 0;
        s->seen[value] += s->seen[value] < UINT16_MAX;
    }
}

/* Every number from 0 to the highest came, and more than once. */
static bool is_dense(const struct shape *s)
{
    for (int32_t i = 0; i <= s->most; i++) {
        if (s->seen[i] < 2) {
            return false;
        }
    }
    return true;
}

static bool says_so(const struct shape *s)
{
    return s->agreed_twice && s->agree >= 3 * s->differ;
}

static bool is_proven(const struct shape *s, uint32_t lines)
{
    if (s->lines < LINES_MIN || s->most >= VALUES || (s->tag.of >= 0 && s->most >= s->tag.of)) {
        return false;
    }
    if (says_so(s)) {
        return s->lines * 2 >= lines;
    }
    if (s->tag.number == FR_OWN_RANK) {
        bool alone = s->distinct == 1 && fr_sv_find_ci((fr_sv){s->tag.before, s->tag.n_before}, FR_SV("rank")) != FR_NPOS;
        return s->lines * 2 >= lines && (alone || s->falls >= 2);
    }
    if (s->distinct < 2 || s->lines * 5 < lines * 3 || s->metrics * 5 < s->lines || !is_dense(s)) {
        return false;
    }
    return s->bare ? s->leaps >= RESTLESS && s->falls >= RESTLESS : s->falls >= 2;
}

static void look_at(const struct fr_peel_ctx *ctx, struct census *c, fr_sv line)
{
    struct fr_record rec;
    struct fr_own_tag tag;
    int32_t value;
    bool bare;
    fr_peel(ctx, line, &rec);
    if (rec.text.n == 0 || fr_is_space(rec.text.p[0]) || rec.is_kernel || rec.who.rank >= 0 || rec.who.local_rank >= 0 ||
        rec.who.task >= 0) {
        return;
    }
    c->lines++;
    fr_sv at = rec.text;
    if (read_tag(&at, &tag, &value, &bare)) {
        count(c, &tag, value, bare, at);
    }
}

bool fr_own_tag_learn(const struct fr_peel_ctx *ctx, fr_sv head, struct fr_own_tag *ret)
{
    const struct fr_peel_ctx plain = {.scratch = ctx->scratch, .year = ctx->year, .relay = ctx->relay};
    struct census *c = FR_NEW(ctx->scratch, struct census);
    const struct shape *best = NULL;
    *ret = (struct fr_own_tag){0};
    for (unsigned i = 0; c != NULL && i < LINES_MAX && head.n > 0 && (c->n > 0 || c->lines < LINES_FEW); i++) {
        const char *nl = memchr(head.p, '\n', head.n);
        fr_sv line = nl != NULL ? fr_sv_range(head.p, nl) : head;
        look_at(&plain, c, line);
        head = fr_sv_skip(head, line.n + (nl != NULL));
    }
    for (uint32_t i = 0; c != NULL && i < c->n; i++) {
        if (is_proven(&c->v[i], c->lines) && (best == NULL || c->v[i].lines > best->lines)) {
            best = &c->v[i];
        }
    }
    if (best != NULL) {
        *ret = best->tag;
        ret->number = says_so(best) ? FR_OWN_RANK : ret->number;
    }
    return best != NULL;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    const struct fr_own_tag *own = ctx->own;
    struct fr_own_tag tag;
    fr_sv at = rec->text;
    int32_t value;
    bool bare;
    if (own == NULL || own->number == FR_OWN_NONE || rec->is_kernel || rec->who.rank >= 0 || rec->who.local_rank >= 0 ||
        rec->who.task >= 0 || !fr_sv_starts(at, (fr_sv){own->before, own->n_before}) || !read_tag(&at, &tag, &value, &bare) ||
        !same_tag(&tag, own)) {
        return false;
    }
    switch (own->number) {
    case FR_OWN_RANK:
        rec->who.rank = value;
        break;
    case FR_OWN_LOCAL_RANK:
        rec->who.local_rank = value;
        break;
    default:
        rec->who.task = value;
    }
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {{"[R2] step 5 loss 1.5", "rank=- task=- text=\"[R2] step 5 loss 1.5\""},
                                                  {"(3/8) step 5", "rank=- task=- text=\"(3/8) step 5\""},
                                                  {NULL, NULL}};

const struct fr_format fr_format_own_tag = {.name = "own_tag",
                                            .summary = "the tag that a script made up for its ranks, once it is learned",
                                            .peel = peel,
                                            .samples = samples};
