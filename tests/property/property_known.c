/* SPDX-License-Identifier: Apache-2.0 */
/* A line known by example brings what the long way brings: for each metric line of the cases, and
 * many with other digits in it, the same segment, speaker, time and point, or it is not known. And
 * where digits do not matter, the literals on it are the same. */
#include "engine/known.h"
#include "format/format.h"
#include "match/scan.h"
#include "series/series.h"
#include "support/pipeline.h"
#include "support/t.h"

#include <stdio.h>

enum { SEED = 20260312, FILE_MAX = 4 << 20, MUTATIONS = 12, LEARN_TRIES = 8 };

static struct fr_known known;
static struct fr_forms forms;
static struct fr_arena scratch = FR_ARENA_INIT(0);
static const struct fr_peel_ctx peel = {.scratch = &scratch, .year = 2026};
static struct fr_scanner *scanner;
static unsigned n_learned, n_found, n_whole;

static uint64_t dialects_of(fr_sv line)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        for (const char *const *l = fr_dialects[i]->literals; *l != NULL; l++) {
            bits |= (uint64_t)fr_sv_has(line, fr_sv_z(*l)) << i;
        }
    }
    return bits;
}

static bool same_who(const struct fr_who *a, const struct fr_who *b)
{
    return a->rank == b->rank && a->local_rank == b->local_rank && a->task == b->task &&
           a->pg_rank == b->pg_rank && a->world == b->world && a->gpu == b->gpu &&
           a->pid == b->pid && fr_sv_eq(a->node, b->node) && fr_sv_eq(a->role, b->role);
}

static bool same_bits(const void *a, const void *b, size_t n)
{
    return memcmp(a, b, n) == 0;
}

static bool same_point(const struct fr_point *a, const struct fr_point *b)
{
    bool same = a->step == b->step && a->max_step == b->max_step && a->present == b->present &&
                a->missing == b->missing && a->flags == b->flags && a->dialect == b->dialect &&
                a->global_batch == b->global_batch && same_bits(&a->epoch, &b->epoch, 8) &&
                same_bits(&a->attempted, &b->attempted, 8) && same_bits(&a->best, &b->best, 8);
    for (unsigned m = 0; m < FR_METRIC_COUNT_; m++) {
        same = same && ((a->present >> m & 1) == 0 || same_bits(&a->value[m], &b->value[m], 8));
    }
    return same;
}

static const char *difference(struct fr_known_line *line, uint64_t kind, fr_sv text,
                              const struct fr_when *when)
{
    struct fr_record rec;
    struct fr_point point;
    fr_sv rest = text, segment;
    const struct fr_point *got = fr_shape_point(&line->shape, text);
    if (!fr_segment_next(&rest, &segment) || !fr_sv_eq(segment, text)) {
        return "segment";
    }
    fr_peel(&peel, text, &rec);
    if (!same_who(&line->form.who, &rec.who)) {
        return "speaker";
    }
    if (when->ns != rec.when.ns || when->basis != rec.when.basis ||
        when->resolution_ns != rec.when.resolution_ns ||
        rec.outer.basis != FR_TIME_BASIS_NONE) {
        return "time";
    }
    bool is_point = fr_point_parse(text, kind, &point);
    return is_point != (got != NULL) || (is_point && !same_point(got, &point)) ? "point" : NULL;
}

static void look_up(uint64_t kind, fr_sv text)
{
    struct fr_when when;
    struct fr_known_line *line = fr_known_find(&known, kind, text, &when);
    t_checks_++;
    if (line == NULL) {
        return;
    }
    n_found++;
    const char *what = difference(line, kind, text, &when);
    if (what != NULL) {
        T_FAIL("another %s: '%.*s'", what, FR_SV_ARG(text));
    }
}

/* Other digits, now and then another byte. */
static void mutate(struct dice *d, fr_sv text, char *ret)
{
    memcpy(ret, text.p, text.n);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] >= '0' && text.p[i] <= '9' && dice_below(d, 3) == 0) {
            ret[i] = (char)('0' + dice_below(d, 10));
        }
    }
    if (dice_below(d, 8) == 0) {
        ret[dice_below(d, (uint32_t)text.n)] = (char)dice_below(d, 256);
    }
}

static int keep_hit(void *ctx, const struct fr_hit *hit)
{
    *(struct fr_hit *)ctx = *hit;
    return FR_SCAN_HITS;
}

static bool is_plain(fr_sv line, uint64_t kind)
{
    struct fr_hit hit = {0};
    T_OK(fr_scan(scanner, line, 0, 1, FR_SCAN_HITS, keep_hit, &hit, NULL) >= 0);
    return hit.metrics == kind && hit.facts == 0 && hit.traces == 0 && !hit.asked;
}

/* Whatever its digits, such a line is a metric line and nothing else. */
static void on_line(struct dice *d, uint64_t kind, fr_sv line)
{
    char other[FR_SHAPE_BYTES];
    if (line.n > sizeof other || !is_plain(line, kind) || fr_scan_digits_matter(scanner, line)) {
        return;
    }
    n_whole++;
    for (unsigned i = 0; i < MUTATIONS; i++) {
        memcpy(other, line.p, line.n);
        for (size_t k = 0; k < line.n; k++) {
            const bool change = other[k] >= '0' && other[k] <= '9' && dice_below(d, 2) == 0;
            other[k] = change ? (char)('0' + dice_below(d, 10)) : other[k];
        }
        T_OK(is_plain((fr_sv){other, line.n}, kind));
    }
}

static void on_segment(struct dice *d, uint64_t kind, fr_sv segment)
{
    struct fr_form bar = {.who = FR_WHO_NONE, .day = FR_WHEN_NONE};
    const struct fr_form *form = fr_form_is_bar(segment) ? &bar : NULL;
    struct fr_record rec;
    struct fr_when when;
    char other[FR_SHAPE_BYTES];
    if (form == NULL) {
        forms.n = forms.next = 0;
        fr_peel(&peel, segment, &rec);
        fr_forms_learn(&forms, kind, segment, &rec, &rec.who, 0);
        form = fr_forms_find(&forms, kind, segment, &when);
    }
    if (form == NULL || segment.n > sizeof other) {
        return;
    }
    fr_known_clear(&known);
    for (unsigned i = 0; i < LEARN_TRIES; i++) {
        fr_known_learn(&known, kind, segment, form);
    }
    n_learned += known.n != 0;
    look_up(kind, segment);
    for (unsigned i = 0; known.n != 0 && i < MUTATIONS; i++) {
        mutate(d, segment, other);
        look_up(kind, (fr_sv){other, segment.n});
    }
}

static void on_file(struct dice *d, const char *path, char *bytes)
{
    FILE *f = fopen(path, "rb");
    size_t n = f != NULL ? fread(bytes, 1, FILE_MAX, f) : 0;
    fr_sv rest = {bytes, n}, line, segment;
    if (f != NULL) {
        fclose(f);
    }
    while (rest.n != 0) {
        fr_sv_cut(rest, '\n', &line, &rest);
        uint64_t kind = line.n <= FR_POINT_LINE_MAX ? dialects_of(line) : 0;
        if (kind != 0) {
            on_line(d, kind, line);
        }
        while (kind != 0 && fr_segment_next(&line, &segment)) {
            fr_arena_reset(&scratch);
            on_segment(d, kind, segment);
        }
    }
}

T_TEST(metric_lines_of_the_cases)
{
    struct corpus c;
    struct dice d = {SEED};
    const struct fr_rules *rules = NULL;
    T_OK(fr_rules_builtin(&rules, NULL) == 0 &&
         fr_scanner_new(rules, FR_ENGINE_AUTO, &scanner, NULL) == 0);
    char *bytes = malloc(FILE_MAX);
    corpus_load(&c, false, true);
    for (unsigned i = 0; bytes != NULL && i < c.n; i++) {
        on_file(&d, c.v[i], bytes);
    }
    printf("# %u lines learned, %u found, %u whole\n", n_learned, n_found, n_whole);
    T_OK(n_whole > 500);
    T_OK(n_learned > 500);
    T_OK(n_found > n_learned);
    corpus_free(&c);
    fr_scanner_free(&scanner);
    free(bytes);
}

int main(void)
{
    int failed = t_run();
    fr_arena_release(&scratch);
    return failed;
}
