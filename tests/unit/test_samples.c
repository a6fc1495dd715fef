/* SPDX-License-Identifier: Apache-2.0 */
/* Every signal of the library against its own samples, the way lines really come: text through the scan with the built-in rules,
 * metrics through the scan, the dialects and the detectors of a series. All that fail are listed. */
#include "failure/library.h"
#include "format/format.h"
#include "match/scan.h"
#include "series/series.h"
#include "support/t.h"

static const struct fr_library *lib;
static struct fr_scanner *scanner;

struct metrics {
    struct fr_series *series;
    struct fr_arena scratch;
};

static int take_line(void *ctx, const struct fr_hit *hit)
{
    struct metrics *m = ctx;
    fr_sv rest = hit->line, segment;
    while (hit->metrics != 0 && fr_segment_next(&rest, &segment)) {
        struct fr_peel_ctx peel = {.scratch = &m->scratch, .year = 2026};
        struct fr_record rec;
        struct fr_point point;
        fr_arena_reset(&m->scratch);
        fr_peel(&peel, segment, &rec);
        if (fr_point_parse(segment, hit->metrics, &point)) {
            fr_series_add(m->series, &point, &rec.who, &rec.when, hit->lineno, hit->offset, segment);
        }
    }
    return FR_SCAN_HITS;
}

/* 1: one of the findings over these lines is the signal's. */
static int metric_fires(const struct fr_signal *s, const char *sample)
{
    struct metrics m = {.scratch = FR_ARENA_INIT(0)};
    struct fr_arena arena = FR_ARENA_INIT(0);
    fr_findings found = {0};
    int fired = -1;
    uint64_t newlines = 0;
    if (fr_series_new(&m.series) == 0 && fr_scan(scanner, fr_sv_z(sample), 0, 1, FR_SCAN_HITS, take_line, &m, &newlines) >= 0 &&
        fr_series_finish(m.series, &arena, &found) == 0) {
        fired = 0;
        for (uint32_t i = 0; i < found.n; i++) {
            const struct fr_finding *f = &found.v[i];
            fired |= s->metric == (int)f->metric && s->finding == (int)f->kind && (s->until_step < 0 || (f->step >= 0 && f->step <= s->until_step));
        }
    }
    fr_vec_free(found.v);
    fr_series_free(&m.series);
    fr_arena_release(&m.scratch);
    fr_arena_release(&arena);
    return fired;
}

static unsigned check(uint16_t index, const char *const *samples, int want)
{
    const struct fr_signal *s = &lib->signals[index];
    unsigned failed = 0;
    for (const char *const *y = samples; y != NULL && *y != NULL; y++) {
        int got = s->metric >= 0 ? metric_fires(s, *y) : fr_scan_fires(scanner, index, fr_sv_z(*y));
        t_checks_++;
        if (got != want) {
            failed++;
            fprintf(stderr, "  %s: %s: a '%s' sample %s: %.160s\n", lib->failures[s->failure].path, s->id, want ? "yes" : "no",
                    got < 0 ? "cannot be checked" : want ? "does not fire" : "fires", *y);
        }
    }
    return failed;
}

T_TEST(every_sample_of_every_signal)
{
    unsigned failed = 0;
    for (uint32_t i = 0; i < lib->n_signals; i++) {
        failed += check((uint16_t)i, lib->signals[i].yes, 1);
        failed += check((uint16_t)i, lib->signals[i].no, 0);
    }
    T_EQ_INT(failed, 0);
}

T_TEST(every_signal_has_samples_of_both_kinds)
{
    for (uint32_t i = 0; i < lib->n_signals; i++) {
        const struct fr_signal *s = &lib->signals[i];
        bool both = s->yes != NULL && s->yes[0] != NULL && s->no != NULL && s->no[0] != NULL;
        if (!both) {
            T_FAIL("%s: %s", lib->failures[s->failure].path, s->id);
        }
    }
}

int main(void)
{
    const struct fr_rules *rules = NULL;
    struct fr_err err = {0};
    lib = fr_library_builtin();
    if (fr_rules_builtin(&rules, &err) != 0 || fr_scanner_new(rules, FR_ENGINE_AUTO, &scanner, &err) != 0) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    int rc = t_run();
    fr_scanner_free(&scanner);
    return rc;
}
