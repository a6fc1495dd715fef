/* SPDX-License-Identifier: Apache-2.0 */
/* series_run: a series under test: points and lines in, findings out. Noise comes from a fixed
 * generator, so a failure repeats. begin() and end() bracket each run; expect() finishes it. */
#ifndef FR_TESTS_SERIES_RUN_H
#define FR_TESTS_SERIES_RUN_H

#include <math.h>

#include "base/arena.h"
#include "series/series.h"
#include "support/t.h"

struct run {
    struct fr_series *s;
    struct fr_arena arena;
    fr_findings found;
    uint64_t line;
    struct fr_who who;
    uint64_t rnd;
};

static inline double uniform(struct run *r)
{
    r->rnd ^= r->rnd << 13;
    r->rnd ^= r->rnd >> 7;
    r->rnd ^= r->rnd << 17;
    return (double)(r->rnd >> 11) / 9007199254740992.0;
}

static inline double normal(struct run *r)
{
    double u = uniform(r), v = uniform(r);
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

static inline void begin(struct run *r, unsigned seed)
{
    *r = (struct run){
        .arena = FR_ARENA_INIT(0), .who = FR_WHO_NONE, .rnd = 0x9e3779b97f4a7c15u * (seed + 1)};
    for (int i = 0; i < 8; i++) {
        uniform(r);
    }
    if (fr_series_new(&r->s) != 0) {
        abort();
    }
}

static inline struct fr_point point(int64_t step)
{
    struct fr_point p = {.step = step,
                         .max_step = -1,
                         .epoch = NAN,
                         .attempted = NAN,
                         .best = NAN,
                         .global_batch = -1};
    return p;
}

static inline void set(struct fr_point *p, enum fr_metric m, double v)
{
    p->present |= 1u << m;
    p->value[m] = v;
}

static inline void add(struct run *r, const struct fr_point *p)
{
    struct fr_when when = FR_WHEN_NONE;
    r->line++;
    fr_series_add(r->s, p, &r->who, &when, r->line, r->line * 100, FR_SV("the line"));
}

static inline void add1(struct run *r, int64_t step, enum fr_metric m, double v)
{
    struct fr_point p = point(step);
    set(&p, m, v);
    add(r, &p);
}

static inline void add_text(struct run *r, const char *text)
{
    struct fr_point p;
    struct fr_when when = FR_WHEN_NONE;
    r->line++;
    if (fr_point_parse(fr_sv_z(text), ~0ull, &p)) {
        fr_series_add(r->s, &p, &r->who, &when, r->line, r->line * 100, fr_sv_z(text));
    }
}

static inline void finish(struct run *r)
{
    T_EQ_INT(fr_series_finish(r->s, &r->arena, &r->found), 0);
}

static inline void end(struct run *r)
{
    fr_vec_free(r->found.v);
    fr_arena_release(&r->arena);
    fr_series_free(&r->s);
}

static const struct fr_finding *find(const struct run *r, enum fr_metric m, enum fr_finding_kind k)
{
    for (uint32_t i = 0; i < r->found.n; i++) {
        if (r->found.v[i].metric == m && r->found.v[i].kind == k) {
            return &r->found.v[i];
        }
    }
    return NULL;
}

static inline bool harmless(const struct fr_finding *f)
{
    return f->kind == FR_FINDING_SPIKE || f->kind == FR_FINDING_RECOVERED ||
           f->kind == FR_FINDING_SCALE_SEARCH;
}

static inline void expect_healthy(struct run *r, const char *what, unsigned seed)
{
    finish(r);
    t_checks_++;
    for (uint32_t i = 0; i < r->found.n; i++) {
        const struct fr_finding *f = &r->found.v[i];
        if (!harmless(f)) {
            T_FAIL("%s (seed %u): %s %s at line %llu of %llu: %.*s", what, seed,
                   fr_metric_name((enum fr_metric)f->metric),
                   fr_finding_name((enum fr_finding_kind)f->kind), (unsigned long long)f->line,
                   (unsigned long long)r->line, FR_SV_ARG(f->note));
        }
    }
    end(r);
}

/* Finishes, expects the finding to begin at `line`, and returns it (or a zeroed one). */
static inline struct fr_finding expect(struct run *r, enum fr_metric m, enum fr_finding_kind k,
                                       uint64_t line)
{
    static const struct fr_finding none;
    if (r->found.n == 0) {
        finish(r);
    }
    const struct fr_finding *f = find(r, m, k);
    t_checks_++;
    if (f == NULL) {
        T_FAIL("no %s %s", fr_metric_name(m), fr_finding_name(k));
        return none;
    }
    if (f->line != line) {
        T_FAIL("%s %s begins at line %llu, want %llu", fr_metric_name(m), fr_finding_name(k),
               (unsigned long long)f->line, (unsigned long long)line);
    }
    T_OK(f->note.n > 10 && f->text.n > 0);
    return *f;
}

#endif
