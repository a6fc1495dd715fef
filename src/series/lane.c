/* SPDX-License-Identifier: Apache-2.0 */
/* lane: what every value goes through. The hot path is a handful of compares and adds;
 * statistics that cost (a median of the ring) are refreshed every few points, and detectors are
 * entered only when a value leaves the cached limit. */
#include "series/lane.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"

struct fr_mark *fr_mark_take(struct fr_series *s, struct fr_mark *old, const struct fr_at *at,
                             double value, int64_t good_step, double baseline)
{
    struct fr_mark *m = old;
    if (m == NULL) {
        m = fr_calloc(1, sizeof *m);
        if (m == NULL) {
            s->no_memory = true;
            return NULL;
        }
        m->next = s->marks;
        s->marks = m;
    }
    m->line = at->line;
    m->offset = at->offset;
    m->when = *at->when;
    m->step = at->step;
    m->good_step = good_step;
    m->value = value;
    m->baseline = baseline;
    m->speaker = at->speaker;
    m->n = (uint16_t)(at->text.n < FR_MARK_TEXT ? at->text.n : FR_MARK_TEXT);
    memcpy(m->text, at->text.p, m->n);
    return m;
}

struct fr_pending *fr_pend(struct fr_series *s, struct fr_lane *l, enum fr_finding_kind kind,
                           const struct fr_mark *m, uint32_t n_bad, bool open, const char *note,
                           ...)
{
    if (m == NULL || s->pending.n >= FR_PENDING_MAX) {
        s->full |= m != NULL;
        return NULL;
    }
    struct fr_pending *f = FR_PUSH(&s->pending);
    if (f == NULL) {
        s->no_memory = true;
        return NULL;
    }
    f->lane = l;
    f->mark = *m;
    f->kind = (uint8_t)kind;
    f->metric = l->metric;
    f->last_line = l->last_line;
    f->good_then = l->n_good;
    f->n_bad = n_bad;
    f->open = open;
    va_list ap;
    va_start(ap, note);
    vsnprintf(f->note, sizeof f->note, note, ap);
    va_end(ap);
    return f;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double fr_median(double *v, unsigned n)
{
    if (n == 0) {
        return NAN;
    }
    if (n <= FR_RING) { /* the common case; qsort would cost more than the rest of a point */
        for (unsigned i = 1; i < n; i++) {
            double x = v[i];
            unsigned k = i;
            for (; k > 0 && v[k - 1] > x; k--) {
                v[k] = v[k - 1];
            }
            v[k] = x;
        }
    } else {
        qsort(v, n, sizeof *v, by_value);
    }
    return n % 2 != 0 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* The median distance from `middle`, the median of v[0..n), which is in order: so the nearest are
 * found on the way outwards from it. */
static double median_distance(const double *v, unsigned n, double middle)
{
    unsigned below = n / 2, above = n / 2; /* v[below] to v[above - 1] are taken */
    double last = NAN, before = NAN;
    for (unsigned taken = 0; taken <= n / 2 && taken < n; taken++) {
        before = last;
        if (above == n || (below > 0 && middle - v[below - 1] < v[above] - middle)) {
            last = fabs(v[--below] - middle);
        } else {
            last = fabs(v[above++] - middle);
        }
    }
    return n % 2 != 0 ? last : (before + last) / 2;
}

/* Median and robust sigma (1.4826 x median absolute deviation) of the ring. */
void fr_lane_baseline(struct fr_lane *l)
{
    double v[FR_RING];
    unsigned n = l->ring_n;
    memcpy(v, l->ring, n * sizeof *v);
    l->typical = fr_median(v, n);
    l->spread = 1.4826 * median_distance(v, n, l->typical);
    l->since_baseline = 0;
    fr_level_limit(l);
}

static void push(struct fr_lane *l, double v)
{
    l->ring[l->ring_at] = v;
    l->ring_at = (uint8_t)((l->ring_at + 1) % FR_RING);
    l->ring_n += l->ring_n < FR_RING;
    if (++l->since_baseline >= FR_RING || l->n_good <= FR_RING) {
        fr_lane_baseline(l);
    }
}

/* What lies over a level that was only a spike belongs to the noise: without it, a series that
 * alternates between two values would learn only the lower one and see a spike in every other
 * point. */
void fr_lane_learn(struct fr_lane *l, double v, uint32_t times)
{
    for (uint32_t i = 0; i < times && i < FR_RING / 2; i++) {
        l->ring[l->ring_at] = v;
        l->ring_at = (uint8_t)((l->ring_at + 1) % FR_RING);
        l->ring_n += l->ring_n < FR_RING;
    }
    fr_lane_baseline(l);
}

static void seen(struct fr_lane *l, const struct fr_at *at)
{
    l->n++;
    l->last_line = at->line;
    if (at->step >= 0) {
        l->first_step = l->first_step < 0 ? at->step : l->first_step;
        l->last_step = at->step;
    }
}

static void good_loss(struct fr_series *s, struct fr_group *g, struct fr_lane *l,
                      const struct fr_at *at, double v)
{
    s->good_losses++;
    if (l->rl) {
        return; /* a policy loss has no level: it hovers around zero */
    }
    fr_zero_add(s, g, l, at, v);
    if (l->zero_n != 0) {
        return;
    }
    if (!l->bar) {
        fr_flat_add(s, l, at, v);
    }
    fr_brief_add(s, l, at, v);
    bool normal = !fr_level_add(s, l, at, v);
    fr_trend_add(s, l, at, v);
    if (normal) {
        push(l, v);
    }
}

static void good(struct fr_series *s, struct fr_group *g, struct fr_lane *l, const struct fr_at *at,
                 double v)
{
    switch (l->metric) {
    case FR_METRIC_LOSS:
        good_loss(s, g, l, at, v);
        break;
    case FR_METRIC_GRAD_NORM:
        fr_norm_zero_add(s, l, at, v);
        fr_brief_add(s, l, at, v);
        if (!fr_level_add(s, l, at, v)) {
            push(l, v);
        }
        break;
    case FR_METRIC_AUX_LOSS:
        if (!fr_level_add(s, l, at, v)) {
            push(l, v);
        }
        break;
    case FR_METRIC_ACCURACY:
        fr_chance_add(s, l, at, v);
        break;
    case FR_METRIC_SKIPPED:
        fr_skips_add(s, l, at, v);
        break;
    case FR_METRIC_STEP_TIME:
        fr_pace_add(s, l, at, v);
        break;
    case FR_METRIC_THROUGHPUT:
        fr_pace_add(s, l, at, v > 0 ? 1 / v : 0); /* as time, so that worse is more */
        break;
    case FR_METRIC_EVAL_LOSS:
        fr_eval_add(s, l, at, v);
        break;
    default:
        break;
    }
}

void fr_lane_add(struct fr_series *s, struct fr_group *g, struct fr_lane *l, const struct fr_at *at,
                 double v)
{
    bool repeat = at->step >= 0 && at->step == l->last_step &&
                  v == l->last; /* printed twice: by two loggers, or two ranks */
    seen(l, at);
    l->last = v;
    if (!isfinite(v)) {
        struct fr_lane *grad = g->lanes[FR_METRIC_GRAD_NORM];
        if (grad != NULL && (l->metric == FR_METRIC_LOSS || l == grad)) {
            grad->level.broke |= grad->level.open;
        }
        if ((at->point->flags & FR_POINT_SAID) != 0 && l->n == 1) {
            l->good_step = at->step - 1;
        }
        fr_bad_add(s, l, at, v, isnan(v) ? 0 : 1);
        return;
    }
    l->n_good++;
    if (l->bad_open) {
        fr_bad_good(l);
    }
    if (!repeat || l->metric == FR_METRIC_SKIPPED) {
        l->rl |= (at->point->flags & FR_POINT_RL) != 0;
        l->bar |= (at->point->flags & FR_POINT_BAR) != 0;
        good(s, g, l, at, v);
    }
    if (at->step >= 0) {
        l->good_step = at->step; /* last, so that a mark taken above knows the one before */
    }
}

void fr_lane_missing(struct fr_series *s, struct fr_lane *l, const struct fr_at *at)
{
    seen(l, at);
    l->last = NAN;
    fr_bad_add(s, l, at, NAN, 2);
}
