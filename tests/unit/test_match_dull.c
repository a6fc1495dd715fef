/* SPDX-License-Identifier: Apache-2.0 */
/* Dull lines: no literal has place in what is learnt, and what is delivered is what the portable
 * engine delivers, which looks at every line. */
#include "base/vec.h"
#include "match/scanner.h"
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINES = 12000, OFTEN = 80 };

static uint64_t seed = 20261202;

static uint32_t roll(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % below);
}

static const struct fr_rules *rules;

static struct fr_scanner *scanner_new(enum fr_scan_engine engine)
{
    struct fr_scanner *s = NULL;
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, engine, &s, NULL), 0);
    return s;
}

/* ---- shapes ---- */

static bool may_stand(uint8_t like, char c)
{
    const bool digit = c >= '0' && c <= '9', letter = c >= 'a' && c <= 'f';
    return like < 0x80 ? like == (uint8_t)c : digit || (like == FR_DULL_HEX && letter);
}

/* By the definition, place by place. */
static bool has_place(const uint8_t *like, unsigned n, const struct fr_literal *l)
{
    for (unsigned at = 0; at + l->n <= n; at++) {
        uint32_t i = 0;
        while (i < l->n && may_stand(like[at + i], l->text[i])) {
            i++;
        }
        if (i == l->n) {
            return true;
        }
    }
    return false;
}

static unsigned check_shapes(const struct fr_dull *d)
{
    unsigned n = 0;
    for (unsigned i = 0; i < FR_DULL_SHAPES; i++) {
        for (uint32_t k = 0; d->slots[i].n != 0 && k < rules->n_literals; k++) {
            if (has_place(d->like[i], d->slots[i].n, &rules->literals[k])) {
                T_FAIL("'%s' has place in '%.*s'", rules->literals[k].text, d->slots[i].n,
                       (const char *)d->like[i]);
                return 0;
            }
        }
        n += d->slots[i].n != 0;
    }
    return n;
}

/* Whether a line like this is dull once it was seen often. */
static bool becomes_dull(struct fr_scanner *s, const char *line)
{
    static char text[2048];
    struct fr_dull_stop stop = {0, 0};
    uint64_t lines = 0;
    const size_t n = (size_t)snprintf(text, sizeof text, "%s\n", line);
    memset(text + n, ' ', sizeof text - n);
    for (int i = 0; i < OFTEN; i++) {
        if (s->engine->dull(s->dull, (const uint8_t *)text, sizeof text, &lines, &stop) != 0) {
            return lines == 1;
        }
        T_EQ_INT(stop.n, n - 1);
        if (stop.tag != 0) {
            fr_dull_note(s->dull, rules, (fr_sv){text, n - 1}, stop.tag);
        }
    }
    return false;
}

#define FORTY "the quick brown fox jumps over a lazy dog"

T_TEST(lines_without_place_for_a_literal_become_dull)
{
    struct fr_scanner *s = scanner_new(FR_ENGINE_AUTO);
    if (s->dull != NULL) {
        T_OK(becomes_dull(s, FORTY " 12"));
        T_OK(becomes_dull(s, "host:1:2 [3] NCCL INFO AllGather: opCount 18f0 sendbuff 0x7fb52bf52eee"));
        T_OK(becomes_dull(s, FORTY " " FORTY " " FORTY " " FORTY " " FORTY " 0123456789012345678901234567890123456789012345"));
        T_OK(!becomes_dull(s, FORTY " " FORTY " " FORTY " " FORTY " " FORTY " 01234567890123456789012345678901234567890123456"));
        T_OK(!becomes_dull(s, "the quick brown fox jumps over"));       /* too short */
        T_OK(!becomes_dull(s, FORTY " \xc3\xa9"));                      /* bars */
        T_OK(!becomes_dull(s, FORTY " os error 37"));                   /* 28 is a literal's */
        T_OK(!becomes_dull(s, FORTY " Traceback (most recent call last):"));
        T_OK(check_shapes(s->dull) == 3);
    }
    fr_scanner_free(&s);
}

T_TEST(a_shape_grows_where_it_still_has_no_place)
{
    struct fr_scanner *s = scanner_new(FR_ENGINE_AUTO);
    if (s->dull != NULL) {
        T_OK(becomes_dull(s, FORTY " 1234 is it"));
        T_OK(becomes_dull(s, FORTY " 12ab is it"));
        T_OK(becomes_dull(s, FORTY " cdae is it"));
        T_OK(becomes_dull(s, FORTY " 99ff is it"));
        T_OK(!becomes_dull(s, FORTY " 99fg is it") || check_shapes(s->dull) == 2);
        T_OK(check_shapes(s->dull) != 0);
    }
    fr_scanner_free(&s);
}

/* Two kinds of lines whose tags meet are both learnt, and a third one does not push out what is in
 * use. */
T_TEST(tags_that_meet_do_not_push_each_other_out)
{
    struct fr_scanner *s = scanner_new(FR_ENGINE_AUTO);
    static const uint32_t tags[] = {0x11000001, 0x11000003, 0x11000005};
    for (int i = 0; s->dull != NULL && i < OFTEN * 2; i++) {
        fr_dull_note(s->dull, rules, FR_SV(FORTY " 1"), tags[0]);
        fr_dull_note(s->dull, rules, FR_SV(FORTY " 12"), tags[1]);
        for (unsigned k = 0; k < 2; k++) {
            struct fr_dull_slot *slot = fr_dull_slot_of(s->dull, tags[k]);
            T_OK(slot->tag == tags[k]);
            slot->in_use = slot->n != 0;
        }
        if (i > OFTEN) {
            fr_dull_note(s->dull, rules, FR_SV(FORTY " 123"), tags[2]);
        }
    }
    T_OK(s->dull == NULL || check_shapes(s->dull) == 2);
    fr_scanner_free(&s);
}

/* The digits of a literal are free, so it would have place if its line were learnt. */
T_TEST(no_literal_is_learnt_with_other_digits)
{
    struct fr_scanner *s = scanner_new(FR_ENGINE_AUTO);
    unsigned n = 0;
    for (uint32_t i = 0; s->dull != NULL && i < rules->n_literals; i++) {
        char line[400];
        snprintf(line, sizeof line, FORTY " %.200s ", rules->literals[i].text);
        for (char *p = line; *p != '\0'; p++) {
            *p = *p >= '0' && *p <= '9' ? (char)('0' + roll(10)) : *p;
        }
        n++;
        T_OK(!becomes_dull(s, line));
    }
    T_OK(s->dull == NULL || (n > 500 && check_shapes(s->dull) == 0));
    fr_scanner_free(&s);
}

/* ---- the same lines are delivered ---- */

/* '#' a digit, '@' a digit or a letter from a to f, '~' often nothing, else a literal. */
static const char *const templates[] = {
    "2024-03-05 12:##:##,### DEBUG dataloader worker=# fetched shard=/data/part-#####.bin ms=##.#~",
    "2024-03-05 12:##:##,### DEBUG dataloader worker=# fetched shard=/data/part-####.bin ms=###.#~",
    "gpu-node-0##:####:#### [#] NCCL INFO AllGather: opCount @@@ sendbuff 0x7@@@@@@@@@@@ count 1024~",
    "gpu-node-0##:####:#### [#] NCCL INFO Broadcast: opCount @@@ sendbuff 0x7@@@@@@@@@@@ count 1024~",
    "    forward-backward................................: (###.##, ####.#)~",
    "    a line of thirty-two bytes##",
    "    a line of thirty-one bytes#",
    "                                        sixty-three                 ###",
    "                                        sixty-four                  ####",
    "                                        sixty-five                  #####",
    " iteration ### | lm loss: 2.5####E+00 |",
    "step ##: os error ## in some place of the text~",
    "progress \xe2\x96\x88\xe2\x96\x88 ##/## [00:##<00:##] of something else here ~",
    "",
    "x",
};
static const char *const rare[] = {" CUDA out of memory", "os error 28", "\r", " Traceback (most recent call last):",
                                   "\xc3\xa9", "exitcode: -9", "0x"};

static size_t add_line(char *to, const char *like)
{
    size_t n = 0;
    for (; *like != '\0'; like++) {
        if (*like == '~') {
            const char *word = roll(40) == 0 ? rare[roll(sizeof rare / sizeof rare[0])] : "";
            memcpy(to + n, word, strlen(word));
            n += strlen(word);
            continue;
        }
        to[n++] = *like == '#'   ? (char)('0' + roll(10))
                  : *like == '@' ? "0123456789abcdef"[roll(16)]
                                 : *like;
    }
    return n;
}

static fr_sv make_text(unsigned kinds)
{
    static char text[LINES * 340];
    size_t n = 0;
    for (unsigned i = 0; i < LINES; i++) {
        const size_t size = add_line(text + n, templates[roll(kinds)]);
        n += size;
        if (roll(97) == 0) { /* around the longest shape, and what is counted at most */
            const uint32_t more = (roll(2) != 0 ? 250 : 506) + roll(12);
            if (more < 300) {
                memset(text + n, '.', more);
                n += more;
            }
        }
        if (roll(61) == 0 && size > 20) { /* other bytes somewhere */
            text[n - 1 - roll(20)] = (char)(32 + roll(200));
        }
        text[n++] = '\n';
    }
    n -= roll(2);
    return (fr_sv){text, n};
}

struct seen {
    uint64_t offset, lineno, metrics, facts;
    size_t n;
    uint32_t traces;
    uint16_t n_signals, first;
    bool in_every;
};
struct seen_list {
    FR_VEC(struct seen) v;
    bool modes; /* change them now and then */
};

static int collect(void *ctx, const struct fr_hit *h)
{
    struct seen_list *list = ctx;
    *FR_PUSH(&list->v) = (struct seen){
        h->offset, h->lineno,    h->metrics, h->facts, h->line.n, h->traces,
        h->n_signals, h->n_signals > 0 ? h->signals[0] : 0, h->in_every};
    return list->modes && h->lineno % 5 < 2 ? FR_SCAN_EVERY : FR_SCAN_HITS;
}

static size_t chunk_at(fr_sv text, size_t at, uint32_t chunk, uint64_t *dice)
{
    *dice = *dice * 6364136223846793005u + 1442695040888963407u;
    size_t n = 1 + (*dice >> 33) % chunk;
    n = n > text.n - at ? text.n - at : n;
    const char *nl = memchr(text.p + at + n - 1, '\n', text.n - at - n + 1);
    return nl != NULL ? (size_t)(nl - text.p) + 1 - at : text.n - at;
}

static uint64_t newlines_in(fr_sv text)
{
    uint64_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += text.p[i] == '\n';
    }
    return n;
}

static void scan(struct fr_scanner *s, fr_sv text, uint32_t chunk, struct seen_list *ret)
{
    uint64_t lineno = 1, dice = 7;
    for (size_t at = 0; at < text.n;) {
        const size_t n = chunk_at(text, at, chunk, &dice);
        uint64_t newlines = 0;
        T_OK(fr_scan(s, (fr_sv){text.p + at, n}, at, lineno, FR_SCAN_HITS, collect, ret,
                     &newlines) >= 0);
        lineno += newlines;
        at += n;
    }
    T_EQ_INT(lineno, 1 + newlines_in(text));
}

static void compare(const struct seen_list *want, const struct seen_list *got)
{
    for (uint32_t i = 0; i < want->v.n && i < got->v.n; i++) {
        const struct seen *a = &want->v.v[i], *b = &got->v.v[i];
        if (a->offset != b->offset || a->lineno != b->lineno || a->n != b->n ||
            a->metrics != b->metrics || a->facts != b->facts || a->traces != b->traces ||
            a->n_signals != b->n_signals || a->first != b->first || a->in_every != b->in_every) {
            T_FAIL("hit %u is line %llu, not %llu", i, (unsigned long long)b->lineno,
                   (unsigned long long)a->lineno);
            return;
        }
    }
    T_EQ_INT(got->v.n, want->v.n);
    T_OK(want->v.n > 20);
}

T_TEST(the_same_lines_are_delivered)
{
    struct fr_scanner *plain = scanner_new(FR_ENGINE_PORTABLE), *s = scanner_new(FR_ENGINE_AUTO);
    static const uint32_t chunks[] = {1 << 30, 300000, 5000, 700, 90};
    const unsigned all = sizeof templates / sizeof templates[0];
    T_OK(plain->dull == NULL);
    for (unsigned round = 0; round < 40; round++) {
        struct seen_list want = {.modes = round % 3 == 1}, got = {.modes = round % 3 == 1};
        const fr_sv text = make_text(round % 2 == 0 ? all : 5 + roll(all - 5));
        const uint32_t chunk = chunks[round % 5];
        scan(plain, text, chunk, &want);
        scan(s, text, chunk, &got);
        compare(&want, &got);
        fr_vec_free(want.v.v);
        fr_vec_free(got.v.v);
    }
    T_OK(s->dull == NULL || check_shapes(s->dull) >= 5);
    fr_scanner_free(&plain);
    fr_scanner_free(&s);
}

int main(void)
{
    return t_run();
}
