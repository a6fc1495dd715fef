/* SPDX-License-Identifier: Apache-2.0 */
/* recognise: which signals fire on a piece of text: what `explain TEXT` and `lint` ask. The same
 * rules, dialects and detectors as a diagnosis uses, without identity, time or judgement. */
#include "engine/recognise.h"

#include "base/err.h"
#include "format/format.h"
#include "series/series.h"

struct recognise {
    const struct fr_library *lib;
    struct fr_series *series;
    struct fr_arena scratch;
    uint16_t *ret;
    uint32_t n, max;
};

static void add(struct recognise *r, uint16_t signal)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->ret[i] == signal) {
            return;
        }
    }
    if (r->n < r->max) {
        r->ret[r->n++] = signal;
    }
}

static int on_hit(void *ctx, const struct fr_hit *hit)
{
    struct recognise *r = ctx;
    for (unsigned i = 0; i < hit->n_signals; i++) {
        add(r, hit->signals[i]);
    }
    struct fr_point point;
    if (hit->metrics != 0 && fr_point_parse(hit->line, hit->metrics, &point)) {
        struct fr_peel_ctx peel = {.scratch = &r->scratch, .year = 2026};
        struct fr_record rec = {.who = FR_WHO_NONE, .when = FR_WHEN_NONE, .outer = FR_WHEN_NONE};
        fr_arena_reset(&r->scratch);
        fr_peel(&peel, hit->line, &rec);
        fr_series_add(r->series, &point, &rec.who, &rec.when, hit->lineno, hit->offset, hit->line);
    }
    return FR_SCAN_HITS;
}

static void add_findings(struct recognise *r, const fr_findings *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        for (uint32_t s = 0; s < r->lib->n_signals; s++) {
            const struct fr_signal *sig = &r->lib->signals[s];
            bool soon = sig->until_step < 0 || f->v[i].step <= sig->until_step;
            if (sig->metric == (int)f->v[i].metric && sig->finding == (int)f->v[i].kind && soon) {
                add(r, (uint16_t)s);
            }
        }
    }
}

int fr_recognise(const struct fr_library *lib, struct fr_scanner *scanner, fr_sv text,
                 uint16_t *ret, uint32_t max)
{
    struct recognise r = {.lib = lib, .ret = ret, .max = max, .scratch = FR_ARENA_INIT(1u << 20)};
    struct fr_arena arena = FR_ARENA_INIT(0);
    fr_findings findings = {0};
    uint64_t newlines = 0;
    int rc = fr_series_new(&r.series);
    if (rc == 0) {
        rc = fr_scan(scanner, text, 0, 1, FR_SCAN_HITS, on_hit, &r, &newlines);
    }
    if (rc >= 0) {
        rc = fr_series_finish(r.series, &arena, &findings);
    }
    if (rc >= 0) {
        add_findings(&r, &findings);
    }
    fr_series_free(&r.series);
    fr_vec_free(findings.v);
    fr_arena_release(&arena);
    fr_arena_release(&r.scratch);
    return rc < 0 ? rc : (int)r.n;
}
