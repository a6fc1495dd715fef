/* SPDX-License-Identifier: Apache-2.0 */
/* series: points of one source to lanes, lanes to findings. Points arrive in file order and from
 * few speakers, so the last speaker is tried first; a speaker's lanes are found by index. */
#include "series/series.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "series/lane.h"

int fr_series_new(struct fr_series **ret)
{
    struct fr_series *s = fr_calloc(1, sizeof *s);
    if (s == NULL) {
        return -FR_NOMEM;
    }
    s->last_step = s->max_step = s->top_step = -1;
    s->top_when = s->end_when = FR_WHEN_NONE;
    *ret = s;
    return 0;
}

static bool is_pace(unsigned metric)
{
    return metric == FR_METRIC_STEP_TIME || metric == FR_METRIC_THROUGHPUT;
}

static void free_lane(struct fr_lane *l)
{
    if (l != NULL && is_pace(l->metric)) {
        fr_free(l->pace);
    }
    fr_free(l);
}

void fr_series_free(struct fr_series **sp)
{
    struct fr_series *s = *sp;
    if (s == NULL) {
        return;
    }
    for (unsigned i = 0; i < s->n_speakers; i++) {
        for (unsigned d = 0; d < FR_DIALECTS_MAX; d++) {
            struct fr_group *g = s->groups[i][d];
            for (unsigned m = 0; g != NULL && m < FR_METRIC_COUNT_; m++) {
                free_lane(g->lanes[m]);
            }
            fr_free(g);
        }
    }
    while (s->marks != NULL) {
        struct fr_mark *next = s->marks->next;
        fr_free(s->marks);
        s->marks = next;
    }
    fr_free(s->speakers);
    fr_free(s->names);
    fr_vec_free(s->pending.v);
    fr_free(s);
    *sp = NULL;
}

static bool same_name(fr_sv a, fr_sv b)
{
    return (a.n | b.n) == 0 || fr_sv_eq(fr_sv_head(a, 64), fr_sv_head(b, 64));
}

static bool same_speaker(const struct fr_who *a, const struct fr_who *b)
{
    return a->rank == b->rank && a->local_rank == b->local_rank && a->task == b->task &&
           a->pid == b->pid && same_name(a->node, b->node) && same_name(a->role, b->role);
}

static fr_sv keep_name(char *to, fr_sv name)
{
    size_t n = name.n < 64 ? name.n : 64;
    if (n != 0) {
        memcpy(to, name.p, n);
    }
    return (fr_sv){to, n};
}

/* Names point into s->names, which moves when it grows. */
static bool grow_speakers(struct fr_series *s)
{
    uint16_t cap = s->cap_speakers == 0 ? 2 : (uint16_t)(s->cap_speakers * 2);
    struct fr_who *who = fr_realloc(s->speakers, cap * sizeof *who);
    s->speakers = who != NULL ? who : s->speakers;
    char(*names)[2][64] = who != NULL ? fr_realloc(s->names, cap * sizeof *names) : NULL;
    if (names == NULL) {
        s->no_memory = true;
        return false;
    }
    s->names = names;
    for (unsigned i = 0; i < s->n_speakers; i++) {
        s->speakers[i].node.p = names[i][0];
        s->speakers[i].role.p = names[i][1];
    }
    s->cap_speakers = cap;
    return true;
}

static int speaker(struct fr_series *s, const struct fr_who *who)
{
    if (s->n_speakers != 0 && same_speaker(&s->speakers[s->last_speaker], who)) {
        return s->last_speaker;
    }
    for (uint16_t i = 0; i < s->n_speakers; i++) {
        if (same_speaker(&s->speakers[i], who)) {
            return s->last_speaker = i;
        }
    }
    if (s->n_speakers == FR_SPEAKERS_MAX) {
        s->full = true;
        return -1;
    }
    if (s->n_speakers == s->cap_speakers && !grow_speakers(s)) {
        return -1;
    }
    uint16_t i = s->n_speakers++;
    s->speakers[i] = *who;
    s->speakers[i].node = keep_name(s->names[i][0], who->node);
    s->speakers[i].role = keep_name(s->names[i][1], who->role);
    return s->last_speaker = i;
}

static struct fr_group *group(struct fr_series *s, unsigned who, unsigned dialect)
{
    struct fr_group *g = s->groups[who][dialect];
    if (g == NULL) {
        g = fr_calloc(1, sizeof *g);
        if (g == NULL) {
            s->no_memory = true;
            return NULL;
        }
        g->speaker = (uint16_t)who;
        g->dialect = (uint8_t)dialect;
        g->step = g->max_step = g->batch = -1;
        g->epoch = NAN;
        s->groups[who][dialect] = g;
    }
    return g;
}

static struct fr_lane *lane(struct fr_series *s, struct fr_group *g, unsigned metric)
{
    struct fr_lane *l = g->lanes[metric];
    if (l == NULL) {
        l = fr_calloc(1, sizeof *l);
        if (l == NULL) {
            s->no_memory = true;
            return NULL;
        }
        l->metric = (uint8_t)metric;
        l->speaker = g->speaker;
        l->first_step = l->last_step = l->good_step = -1;
        l->limit = INFINITY;
        if (metric == FR_METRIC_LOSS_SCALE) {
            l->scale.last_step = -1;
        }
        l->typical = l->same_at = NAN;
        g->lanes[metric] = l;
    }
    return l;
}

static void close_lane(struct fr_series *s, struct fr_group *g, struct fr_lane *l, bool at_end)
{
    switch (l->metric) {
    case FR_METRIC_LOSS:
        if (at_end && l->zero_n != 0) {
            fr_zero_close(s, g, l, true);
        }
        if (fr_growth_close(s, l, at_end)) {
            l->level.open = false;
            l->level.found = true;
        }
        fr_level_close(s, l, at_end);
        fr_brief_close(s, g, l, at_end);
        fr_trend_close(s, l, at_end);
        fr_flat_close(s, g, l, at_end);
        break;
    case FR_METRIC_STEP_TIME:
    case FR_METRIC_THROUGHPUT:
        fr_pace_close(s, l, at_end);
        break;
    case FR_METRIC_GRAD_NORM:
        fr_norm_zero_close(s, g, l, at_end);
        fr_level_close(s, l, at_end);
        break;
    case FR_METRIC_AUX_LOSS:
        fr_level_close(s, l, at_end);
        break;
    case FR_METRIC_ACCURACY:
        fr_chance_close(s, l, at_end);
        break;
    case FR_METRIC_SKIPPED:
        fr_skips_close(s, l, at_end);
        break;
    case FR_METRIC_EVAL_LOSS:
        fr_eval_close(s, l, at_end);
        break;
    case FR_METRIC_LOSS_SCALE:
        fr_scale_close(s, l, at_end);
        break;
    default:
        break;
    }
}

/* A lower step (or epoch) than before: the run was restarted. What is compared with the past
 * starts anew; an open run of bad values goes on, since a restart that is bad at once has not
 * cured it. */
static void restart(struct fr_series *s, struct fr_group *g)
{
    g->restarts++;
    for (unsigned m = 0; m < FR_METRIC_COUNT_; m++) {
        struct fr_lane *l = g->lanes[m];
        if (l != NULL) {
            close_lane(s, g, l, false);
            l->ring_n = l->ring_at = 0;
            l->limit = INFINITY;
        }
    }
}

static bool went_back(const struct fr_group *g, const struct fr_point *p)
{
    if (!isnan(p->epoch) && !isnan(g->epoch) && p->epoch != g->epoch) {
        return p->epoch < g->epoch - 1e-9; /* within a later epoch a lower step is no step back */
    }
    int64_t back = g->step - p->step;
    return p->step >= 0 && g->step >= 0 && back > 2 * g->interval + 1;
}

static void follow_step(struct fr_series *s, struct fr_group *g, const struct fr_point *p)
{
    if ((p->flags & FR_POINT_BAR) == 0 && went_back(g, p)) {
        restart(s, g);
        g->interval = 0;
    } else if (p->step > g->step && g->step >= 0) {
        g->interval = p->step - g->step;
    }
    if (p->step >= 0) {
        g->step = p->step;
        s->last_step = p->step;
    }
    if (p->max_step >= 0) {
        g->max_step = s->max_step = p->max_step;
    }
    g->epoch = isnan(p->epoch) ? g->epoch : p->epoch;
}

/* A changed batch explains a changed pace. */
static void follow_batch(struct fr_series *s, struct fr_group *g, const struct fr_point *p)
{
    if (p->global_batch < 0 || p->global_batch == g->batch) {
        return;
    }
    for (unsigned m = 0; m < FR_METRIC_COUNT_ && g->batch >= 0; m++) {
        struct fr_lane *l = g->lanes[m];
        if (l != NULL && is_pace(m) && l->pace != NULL) {
            fr_pace_close(s, l, false);
            fr_free(l->pace);
            l->pace = NULL;
        }
    }
    g->batch = p->global_batch;
}

/* The metrics of the point that tell their detectors nothing new: those without one, no skipped
 * step after another, the loss scale where it was. */
static uint32_t plain_ones(const struct fr_group *g, const struct fr_point *p)
{
    const struct fr_lane *skipped = g->lanes[FR_METRIC_SKIPPED],
                         *scale = g->lanes[FR_METRIC_LOSS_SCALE];
    uint32_t plain = FR_PLAIN;
    if (fr_point_has(p, FR_METRIC_SKIPPED) && skipped != NULL && skipped->skips.n == 0 &&
        p->value[FR_METRIC_SKIPPED] == 0 && (p->flags & FR_POINT_SKIPPED_SUM) == 0) {
        plain |= 1u << FR_METRIC_SKIPPED;
    }
    if (fr_point_has(p, FR_METRIC_LOSS_SCALE) && scale != NULL && scale->scale.known &&
        scale->scale.now == p->value[FR_METRIC_LOSS_SCALE] &&
        (p->flags & (FR_POINT_AT_MINIMUM | FR_POINT_OVERFLOW)) == 0) {
        plain |= 1u << FR_METRIC_LOSS_SCALE;
    }
    return p->present & plain;
}

/* Numbers that are only looked at for NaN: most of a line, so they go the short way. */
static bool add_plain(struct fr_lane *l, const struct fr_at *at, double v)
{
    if (l == NULL || !isfinite(v) || l->bad_open || l->first_step < 0) {
        return false;
    }
    l->n++;
    l->n_good++;
    l->last = v;
    l->last_line = at->line;
    l->last_step = at->step >= 0 ? at->step : l->last_step;
    l->good_step = l->last_step;
    return true;
}

static void add_values(struct fr_series *s, struct fr_group *g, const struct fr_at *at)
{
    const struct fr_point *p = at->point;
    uint32_t left = p->present;
    for (uint32_t bits = plain_ones(g, p); bits != 0; bits &= bits - 1) {
        unsigned m = (unsigned)__builtin_ctz(bits);
        left ^= add_plain(g->lanes[m], at, p->value[m]) ? 1u << m : 0;
    }
    for (; left != 0; left &= left - 1) {
        unsigned m = (unsigned)__builtin_ctz(left);
        struct fr_lane *l = lane(s, g, m);
        if (l == NULL) {
            continue;
        }
        if (m == FR_METRIC_LOSS_SCALE) {
            fr_scale_add(s, l, at, p->value[m], true);
        }
        fr_lane_add(s, g, l, at, p->value[m]);
    }
}

struct fr_group *fr_series_seat(struct fr_series *s, const struct fr_who *who, uint8_t dialect)
{
    int k = speaker(s, who);
    return k < 0 ? NULL : group(s, (unsigned)k, dialect % FR_DIALECTS_MAX);
}

void fr_series_put(struct fr_series *s, struct fr_group *g, const struct fr_point *p,
                   const struct fr_when *when, uint64_t line, uint64_t offset, fr_sv text)
{
    s->points++;
    const uint32_t eval = 1u << FR_METRIC_EVAL_LOSS;
    if ((p->present & ~eval) != 0 || (p->present | p->missing) == 0 || p->missing != 0) {
        follow_step(s, g, p);
    }
    follow_batch(s, g, p);
    struct fr_at at = {p, when, line, offset, text, p->step >= 0 ? p->step : g->step, g->speaker};
    if (at.step >= 0 && when->basis != FR_TIME_BASIS_NONE) {
        fr_clock_add(s, &at);
    }
    add_values(s, g, &at);
    if ((p->flags & FR_POINT_AT_MINIMUM) != 0) {
        struct fr_lane *l = lane(s, g, FR_METRIC_LOSS_SCALE);
        if (l != NULL) {
            fr_scale_add(s, l, &at, NAN, false);
        }
    }
    for (uint32_t bits = p->missing; bits != 0; bits &= bits - 1) {
        struct fr_lane *l = lane(s, g, (unsigned)__builtin_ctz(bits));
        if (l != NULL) {
            fr_lane_missing(s, l, &at);
        }
    }
}

void fr_series_add(struct fr_series *s, const struct fr_point *p, const struct fr_who *who,
                   const struct fr_when *when, uint64_t line, uint64_t offset, fr_sv text)
{
    struct fr_group *seat = fr_series_seat(s, who, p->dialect);
    if (seat != NULL) {
        fr_series_put(s, seat, p, when, line, offset, text);
    }
}

uint64_t fr_series_points(const struct fr_series *s)
{
    return s->points;
}

int64_t fr_series_last_step(const struct fr_series *s)
{
    return s->last_step;
}

int64_t fr_series_max_step(const struct fr_series *s)
{
    return s->max_step;
}

void fr_series_ends(struct fr_series *s, const struct fr_when *when)
{
    s->end_when = *when;
}

bool fr_series_full(const struct fr_series *s)
{
    return s->full || s->no_memory;
}

static void each_lane(struct fr_series *s,
                      void (*fn)(struct fr_series *, struct fr_group *, struct fr_lane *))
{
    for (unsigned i = 0; i < s->n_speakers; i++) {
        for (unsigned d = 0; d < fr_dialects_count; d++) {
            for (unsigned m = 0; s->groups[i][d] != NULL && m < FR_METRIC_COUNT_; m++) {
                if (s->groups[i][d]->lanes[m] != NULL) {
                    fn(s, s->groups[i][d], s->groups[i][d]->lanes[m]);
                }
            }
        }
    }
}

static void finish_scale(struct fr_series *s, struct fr_group *g, struct fr_lane *l)
{
    if (l->metric ==
        FR_METRIC_LOSS_SCALE) { /* before the losses are closed: it asks how they are */
        close_lane(s, g, l, true);
    }
}

static void finish_rest(struct fr_series *s, struct fr_group *g, struct fr_lane *l)
{
    if (l->metric != FR_METRIC_LOSS_SCALE) {
        close_lane(s, g, l, true);
    }
    fr_bad_finish(s, l);
}

static int by_line(const void *a, const void *b)
{
    const struct fr_finding *x = a, *y = b;
    if (x->line != y->line) {
        return x->line < y->line ? -1 : 1;
    }
    return x->metric != y->metric ? (int)x->metric - (int)y->metric : (int)x->kind - (int)y->kind;
}

static bool harmless(unsigned kind)
{
    return kind == FR_FINDING_SPIKE || kind == FR_FINDING_RECOVERED ||
           kind == FR_FINDING_SCALE_SEARCH;
}

static int convert(struct fr_series *s, const struct fr_pending *p, struct fr_arena *arena,
                   fr_findings *ret)
{
    struct fr_finding *f = FR_PUSH(ret);
    if (f == NULL) {
        return -FR_NOMEM;
    }
    uint64_t after = p->lane->n_good > p->good_then ? p->lane->n_good - p->good_then : 0;
    f->metric = p->metric;
    f->kind = p->kind;
    f->who = s->speakers[p->mark.speaker];
    f->who.node = fr_arena_dup(arena, f->who.node);
    f->who.role = fr_arena_dup(arena, f->who.role);
    f->line = p->mark.line;
    f->offset = p->mark.offset;
    f->last_line = p->last_line > f->line ? p->last_line : f->line;
    f->when = p->mark.when;
    f->step = p->mark.step;
    f->last_good_step = p->mark.good_step;
    f->value = p->mark.value;
    f->baseline = p->mark.baseline;
    f->n_bad = p->n_bad;
    f->n_after_good = (uint32_t)(after < UINT32_MAX ? after : UINT32_MAX);
    f->terminal = !harmless(p->kind) && (p->open || after == 0);
    f->text = fr_arena_dup(arena, (fr_sv){p->mark.text, p->mark.n});
    f->note = fr_arena_dup(arena, fr_sv_z(p->note));
    return f->note.p != NULL && f->text.p != NULL ? 0 : -FR_NOMEM;
}

int fr_series_finish(struct fr_series *s, struct fr_arena *arena, fr_findings *ret)
{
    each_lane(s, finish_scale);
    each_lane(s, finish_rest);
    fr_pace_finish(s);
    fr_clock_finish(s);
    uint32_t first = ret->n;
    for (uint32_t i = 0; i < s->pending.n; i++) {
        int rc = convert(s, &s->pending.v[i], arena, ret);
        if (rc != 0) {
            return rc;
        }
    }
    if (ret->n > first + 1) {
        qsort(ret->v + first, ret->n - first, sizeof *ret->v, by_line);
    }
    return s->no_memory ? -FR_NOMEM : 0;
}

/* Of what this speaker prints of a metric, in whichever dialects. */
static const struct fr_lane *longest_lane(const struct fr_series *s, unsigned speaker, unsigned m)
{
    const struct fr_lane *best = NULL;
    for (unsigned d = 0; d < fr_dialects_count; d++) {
        const struct fr_lane *l =
            s->groups[speaker][d] != NULL ? s->groups[speaker][d]->lanes[m] : NULL;
        best = l != NULL && (best == NULL || l->n > best->n) ? l : best;
    }
    return best;
}

void fr_series_each(const struct fr_series *s,
                    void (*fn)(void *ctx, enum fr_metric m, const struct fr_who *who,
                               uint64_t points, int64_t first_step, int64_t last_step, double last),
                    void *ctx)
{
    for (unsigned m = 0; m < FR_METRIC_COUNT_; m++) {
        const struct fr_lane *nobodys = NULL;
        for (unsigned i = 0; i < s->n_speakers; i++) {
            const struct fr_lane *l = longest_lane(s, i, m);
            if (s->speakers[i].rank < 0) {
                nobodys = l != NULL && (nobodys == NULL || l->n > nobodys->n) ? l : nobodys;
            } else if (l != NULL) {
                fn(ctx, (enum fr_metric)m, &s->speakers[i], l->n, l->first_step, l->last_step,
                   l->last);
            }
        }
        if (nobodys != NULL) {
            fn(ctx, (enum fr_metric)m, &s->speakers[nobodys->speaker], nobodys->n,
               nobodys->first_step, nobodys->last_step, nobodys->last);
        }
    }
}
