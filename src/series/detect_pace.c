/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: step times, and throughput as time per item.
 *   DROP   a streak of points over the limit of the run so far (its 90 % quantile, at least 4 %
 *          over its median), broken by three points in a row under it or one in four: >= 16
 *          points (at the end 8, or 12 with less than 64 before) whose mean is 1.15 x the median
 *          and 3 sigma, or at the end 1.04 x and 8 sigma (from the quartiles), or 5 at the end with
 *          1.15 x and 8 sigma. Single values count at most 1.5 x the median; where four in five
 *          are over 3 x the median, the noise before does not matter. Needs 8 points before.
 *          A changed batch starts anew.
 *          Shorter series: two to seven even steps (range <= 0.3 %), then at least three, each not
 *          shorter than the one before (0.5 % slack), up to the end, the last 1.04 to 1.6 x: a
 *          slow-down caught as it happens.
 *   STALL  no new step for 10 minutes and 20 x the usual time of the steps made (8 or more seen):
 *          to the end of the source, or until it went on. Begins at the last line before.
 *   SLOW   speakers of one dialect with >= 8 points each, three or more of them: the median of
 *          one is over 1.2 x the median of all, and its fastest quarter is slower than that too;
 *          at most a quarter of the speakers. */
#include <math.h>

#include "base/alloc.h"
#include "series/lane.h"

enum { CREEP_MAX = 64, WARM = 8 };

/* Every k-th value of the run, k doubling when the store is full: the same points whatever the
 * machine. */
static void keep(struct fr_pace *c, uint64_t n, double v)
{
    if ((n & (c->keep_every - 1)) != 0) {
        return;
    }
    if (c->keep_n == FR_KEEP) {
        for (unsigned i = 0; i < FR_KEEP / 2; i++) {
            c->keep[i] = c->keep[2 * i + 1];
        }
        c->keep_n = FR_KEEP / 2;
        c->keep_every *= 2;
        if ((n & (c->keep_every - 1)) != 0) {
            return;
        }
    }
    c->keep[c->keep_n++] = v;
}

static unsigned sorted(const struct fr_pace *c, double *v)
{
    memcpy(v, c->keep, c->keep_n * sizeof *v);
    fr_median(v, c->keep_n); /* leaves v sorted */
    return c->keep_n;
}

/* Sorting is dear, so it happens at points that thin out as the run grows. */
static void learn(struct fr_pace *c, uint64_t points)
{
    double v[FR_KEEP];
    unsigned n = sorted(c, v);
    c->middle = v[n / 2];
    c->limit = fmax(v[n * 9 / 10], 1.04 * c->middle);
    c->next_learn = points + points / 4 + WARM;
    c->sigma = fmax((v[n * 3 / 4] - v[n / 4]) / 1.349, 0.001 * c->middle);
}

static void creep(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    struct fr_pace *c = l->pace;
    double last = c->creep_last, base = c->creep_base;
    c->creep_last = v;
    if (l->n_good == 1) {
        c->creep_base = v;
        return;
    }
    if (c->creep_n == 0) {
        if (fabs(v - base) <= 0.003 * base) {
            c->creep_dead = l->n_good > 7;
            return;
        }
        if (l->n_good < 3 || v < 1.008 * base) {
            c->creep_dead = true;
            return;
        }
        c->creep = fr_mark_take(s, c->creep, at, v, l->good_step, base);
        c->creep_n = 1;
        return;
    }
    if (v < 0.995 * last || v < 1.008 * base) {
        c->creep_dead = true;
        return;
    }
    c->creep_n++;
}

static struct fr_pace *begin(struct fr_series *s, struct fr_lane *l, const struct fr_at *at,
                             double v)
{
    l->pace = fr_calloc(1, sizeof *l->pace);
    if (l->pace == NULL) {
        s->no_memory = true;
        return NULL;
    }
    l->pace->keep_every = 1;
    l->pace->creep_dead = l->n_good != 1;
    l->pace->begin = fr_mark_take(s, NULL, at, v, -1, NAN);
    return l->pace;
}

void fr_pace_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    struct fr_pace *c = l->pace != NULL ? l->pace : begin(s, l, at, v);
    if (!(v > 0) || c == NULL) {
        return;
    }
    if (!c->creep_dead && l->n_good <= CREEP_MAX) {
        creep(s, l, at, v);
    }
    keep(c, l->n_good, v);
    if (c->n_slow == 0 && c->keep_n >= WARM && l->n_good >= c->next_learn) {
        learn(c, l->n_good);
    }
    if (c->middle == 0) {
        return;
    }
    if (v > c->limit) {
        if (c->n_slow++ == 0) {
            c->slow = fr_mark_take(s, c->slow, at, v, l->good_step, c->middle);
            c->sum = c->clipped = 0;
            c->n_far = 0;
        }
        c->sum += v;
        if (v > 3 * c->middle && c->n_far++ == 0) {
            c->far = fr_mark_take(s, c->far, at, v, l->good_step, c->middle);
        }
        c->clipped += fmin(v, 1.5 * c->middle);
        c->normal_run = 0;
        c->last_line = at->line;
        if (c->n_slow % 64 == 0 &&
            c->clipped <
                1.04 * c->middle * c->n_slow) { /* the limit was too low: it came from few points */
            c->n_slow = c->normal_run = c->n_inside = 0;
            learn(c, l->n_good);
        }
    } else if (c->n_slow != 0) {
        c->n_inside++;
        if (++c->normal_run >= 3 || (c->n_inside >= 2 && 4 * c->n_inside > c->n_slow)) {
            fr_pace_close(s, l, false);
        }
    }
}

static void drop(struct fr_series *s, struct fr_lane *l, struct fr_mark *m, uint32_t n, double from,
                 double to, bool at_end)
{
    bool inverse = l->metric == FR_METRIC_THROUGHPUT;
    struct fr_pending *f = fr_pend(
        s, l, FR_FINDING_DROP, m, n, at_end, "%s from %.4g to %.4g (%.1f %% slower) for %u points",
        inverse ? "throughput fell" : "step time rose", inverse ? 1 / from : from,
        inverse ? 1 / to : to, 100 * (to / from - 1), n);
    if (f != NULL) {
        f->last_line = l->pace->last_line;
        f->mark.value = inverse ? 1 / f->mark.value : f->mark.value;
        f->mark.baseline = inverse ? 1 / from : from;
    }
}

void fr_pace_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    struct fr_pace *c = l->pace;
    if (c == NULL) {
        return;
    }
    uint32_t n = c->n_slow;
    double mean = n != 0 ? c->sum / n : 0, robust = n != 0 ? c->clipped / n : 0,
           ratio = c->middle > 0 ? robust / c->middle : 0;
    bool held = at_end && c->normal_run == 0;
    uint32_t enough = !held ? 16 : l->n_good - n >= 64 ? 8 : 12;
    bool clear = held && n >= 5 && ratio >= 1.15 && robust - c->middle >= 8 * c->sigma;
    bool far = n >= enough && 5 * (uint64_t)c->n_far >= 4 * (uint64_t)n; /* whatever the noise was before */
    c->n_slow = c->normal_run = c->n_inside = 0;
    double over = robust - c->middle;
    if (clear || far || (n >= enough && ((ratio >= 1.15 && over >= 3 * c->sigma) ||
                        (held && ratio >= 1.04 && over >= 8 * c->sigma)))) {
        drop(s, l, far ? c->far : c->slow, n, c->middle, mean, held);
    } else if (at_end && !c->creep_dead && l->n_good <= CREEP_MAX && c->creep_n >= 3 &&
               c->creep_last >= 1.04 * c->creep_base && c->creep_last <= 1.6 * c->creep_base) {
        drop(s, l, c->creep, c->creep_n, c->creep_base, c->creep_last, true);
    }
    if (!at_end) {
        c->creep_dead = true;
        if ((n >= 8 || l->n_good < 64) && c->keep_n >= WARM) { /* the limit may be out of date */
            learn(c, l->n_good);
        }
    }
}

enum { STALL_S = 600, STALL_TIMES = 20, STALLS_MAX = 8, TOP_TEXT = 160 };

static void stall(struct fr_series *s, double gap, bool at_end)
{
    struct fr_lane *l = NULL;
    for (unsigned d = 0; d < fr_dialects_count && l == NULL; d++) {
        struct fr_group *g = s->groups[s->top.speaker][d];
        for (unsigned m = 0; g != NULL && m < FR_METRIC_COUNT_ && l == NULL; m++) {
            l = g->lanes[m];
        }
    }
    if (l == NULL || s->n_stalls++ >= STALLS_MAX) {
        return;
    }
    struct fr_pending *f = fr_pend(s, l, FR_FINDING_STALL, &s->top, 1, at_end,
                                   "no step for %.0f s, where one takes %.3g s; %s", gap, s->pace_s,
                                   at_end ? "the log goes on without one" : "then it went on");
    if (f != NULL) {
        f->metric = FR_METRIC_STEP_TIME;
        f->last_line = s->top.line;
        f->good_then = at_end ? l->n_good : 0;
        f->mark.value = gap;
        f->mark.baseline = s->pace_s;
    }
}

static double seconds(const struct fr_when *from, const struct fr_when *to)
{
    return from->basis == to->basis && from->basis != FR_TIME_BASIS_NONE
               ? (double)(to->ns - from->ns) / FR_NS_PER_S
               : NAN;
}

static bool too_long(const struct fr_series *s, double gap, double steps)
{
    return s->n_paces >= 8 && gap >= STALL_S && gap >= STALL_TIMES * s->pace_s * steps;
}

void fr_clock_add(struct fr_series *s, const struct fr_at *at)
{
    int64_t steps = at->step - s->top_step;
    double gap = seconds(&s->top_when, at->when);
    if (steps <= 0 && s->top_step >= 0 && steps > -64) {
        return;
    }
    if (steps > 0 && s->top_step >= 0 && gap >= 0 && gap < 1e9) {
        if (too_long(s, gap, (double)steps)) {
            stall(s, gap, false);
        } else {
            s->pace_s += (gap / (double)steps - s->pace_s) /
                         (s->n_paces < 16 ? s->n_paces + 1 : 16);
            s->n_paces++;
        }
    }
    s->top_step = at->step;
    s->top_when = *at->when;
    struct fr_at brief = *at;
    brief.text = fr_sv_head(at->text, 0);
    fr_mark_take(s, &s->top, &brief, NAN, at->step, NAN);
    s->top.n = (uint16_t)fr_sv_head(at->text, TOP_TEXT).n;
    if (s->top.n == TOP_TEXT) { /* at every step: a length known beforehand needs no call */
        memcpy(s->top.text, at->text.p, TOP_TEXT);
    } else {
        memcpy(s->top.text, at->text.p, s->top.n);
    }
}

void fr_clock_finish(struct fr_series *s)
{
    double gap = seconds(&s->top_when, &s->end_when);
    if (s->top_step >= 0 && too_long(s, gap, 1)) {
        stall(s, gap, true);
    }
}

static void slow_rank(struct fr_series *s, unsigned d, enum fr_metric m)
{
    double middle[FR_SPEAKERS_MAX], all[FR_SPEAKERS_MAX], v[FR_KEEP];
    struct fr_lane *lanes[FR_SPEAKERS_MAX];
    unsigned n = 0, slow = 0;
    for (unsigned i = 0; i < s->n_speakers; i++) {
        struct fr_lane *l = s->groups[i][d] != NULL ? s->groups[i][d]->lanes[m] : NULL;
        if (l != NULL && l->pace != NULL && l->pace->keep_n >= 8) {
            unsigned k = sorted(l->pace, v);
            lanes[n] = l;
            middle[n] = all[n] = v[k / 2];
            n++;
        }
    }
    if (n < 3) {
        return;
    }
    double usual = fr_median(all, n);
    for (unsigned i = 0; i < n; i++) {
        slow += middle[i] > 1.2 * usual;
    }
    for (unsigned i = 0; i < n && slow != 0 && slow <= (n < 4 ? 1 : n / 4); i++) {
        unsigned k = sorted(lanes[i]->pace, v);
        if (middle[i] <= 1.2 * usual || v[k / 4] <= usual) {
            continue;
        }
        struct fr_pending *f = fr_pend(s, lanes[i], FR_FINDING_SLOW, lanes[i]->pace->begin,
                                       (uint32_t)lanes[i]->n, true,
                                       "median %s %.4g against %.4g of all %u (%.2f x)",
                                       m == FR_METRIC_STEP_TIME ? "step time" : "time per item",
                                       middle[i], usual, n, middle[i] / usual);
        if (f != NULL) {
            f->mark.baseline = usual;
            f->mark.value = middle[i];
        }
    }
}

void fr_pace_finish(struct fr_series *s)
{
    if (s->n_speakers < 3) {
        return;
    }
    for (unsigned d = 0; d < fr_dialects_count; d++) {
        slow_rank(s, d, FR_METRIC_STEP_TIME);
        slow_rank(s, d, FR_METRIC_THROUGHPUT);
    }
}
