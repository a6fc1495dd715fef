/* SPDX-License-Identifier: Apache-2.0 */
/* The loss scale. Lowering it is what it is for: a search at the start and a halving every so
 * often are healthy. It is a collapse when one unbroken run of reductions ends at the bottom: at
 * or below 1 after at least three of them, or where the program says it cannot go lower; or,
 * when the series ends inside the run, at or below 16 after four, at or below 128 after twelve,
 * or after five while the loss has left its level.
 * A run is broken by growth (the next overflow
 * starts from another value than the last one ended at), by more than 64 steps or 20 finite loss
 * points without an overflow. Ranks that repeat the same reduction count once.
 * Skipped steps
 * without a scale (bf16, or only a counter): a collapse when the series ends with no step made
 * for 20 overflow lines, or with a counter that grew with every one of the last 10 steps. */
#include <math.h>

#include "series/lane.h"

enum { GOOD_BREAKS = 20, STEPS_BREAK = 64 };

static void start(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double from,
                  double to)
{
    struct fr_scale *c = &l->scale;
    c->mark = fr_mark_take(s, c->mark, at, to, l->good_step, from);
    c->from = from;
    c->lowest = to;
    c->n = 0;
    c->n_at_minimum = 0;
    c->open = true;
}

static bool broken(const struct fr_series *s, const struct fr_scale *c, int64_t step)
{
    if (!(c->now > 1)) {
        return false; /* at the bottom there is nothing left to search */
    }
    bool far = step >= 0 && c->last_step >= 0 && step - c->last_step > STEPS_BREAK;
    return far || s->good_losses - c->good_seen > GOOD_BREAKS;
}

static void lowered(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double from,
                    double to)
{
    struct fr_scale *c = &l->scale;
    int64_t step = at->step >= 0 ? at->step : s->last_step;
    bool bottom = c->known && c->now <= 1 &&
                  to <= 1; /* down there, columns are rounded and prove nothing */
    bool continues = bottom ||
                     (c->known && (isnan(from) ? to <= c->now : from == c->now || to == c->now));
    if (c->open && (!continues || broken(s, c, step))) {
        fr_scale_close(s, l, false);
    }
    if (!c->open) {
        start(s, l, at, isnan(from) && c->known ? c->now : from, to);
    }
    if (!c->known || to != c->now || c->n == 0) {
        c->n++;
    } else if (to <= 1 && (isnan(from) || from == to)) {
        c->n_at_minimum++;
    }
    c->lowest = to < c->lowest ? to : c->lowest;
    c->now = to;
    c->known = true;
    c->last_step = step;
    c->last_line = at->line;
    c->good_seen = s->good_losses;
}

void fr_scale_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v,
                  bool has_value)
{
    struct fr_scale *c = &l->scale;
    unsigned flags = at->point->flags;
    if ((flags & FR_POINT_AT_MINIMUM) != 0) {
        if (!c->open) {
            start(s, l, at, c->known ? c->now : NAN, c->known ? c->now : NAN);
        }
        c->n_at_minimum += 3;
        c->last_line = at->line;
        return;
    }
    if (!has_value || !isfinite(v)) {
        return;
    }
    if ((flags & FR_POINT_OVERFLOW) != 0) {
        lowered(s, l, at, at->point->attempted, v);
        return;
    }
    if (c->known && v < c->now) { /* a column of it: somebody lowered it in between */
        lowered(s, l, at, c->now, v);
        return;
    }
    if (c->known && v > c->now && c->open) {
        fr_scale_close(s, l, false);
    }
    if (!c->known && v < 0.1) { /* first seen when it is already gone */
        start(s, l, at, NAN, v);
        c->last_line = at->line;
    }
    c->known = true;
    c->now = v;
}

/* The loss of any speaker is not where it was. */
static bool loss_in_trouble(const struct fr_series *s)
{
    for (unsigned i = 0; i < s->n_speakers; i++) {
        for (unsigned d = 0; d < fr_dialects_count; d++) {
            const struct fr_lane *l = s->groups[i][d] != NULL
                                          ? s->groups[i][d]->lanes[FR_METRIC_LOSS]
                                          : NULL;
            if (l != NULL && (l->bad[0].open || l->bad[1].open || l->bad[2].open ||
                              (l->level.open && l->level.n_high >= 3))) {
                return true;
            }
        }
    }
    return false;
}

static bool collapsed(const struct fr_series *s, const struct fr_scale *c, bool at_end)
{
    if (c->n_at_minimum >= 3 || (c->lowest <= 1 && c->n >= 3)) {
        return true;
    }
    if (isnan(c->from) && c->lowest < 0.1 && (c->n != 0 || c->lowest > 0)) {
        return true;
    }
    return at_end && s->good_losses - c->good_seen <= GOOD_BREAKS &&
           ((c->n >= 4 && c->lowest <= 16) || (c->n >= 12 && c->lowest <= 128) ||
            (c->n >= 5 && loss_in_trouble(s)));
}

void fr_scale_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    struct fr_scale *c = &l->scale;
    if (!c->open) {
        return;
    }
    c->open = false;
    bool over = s->good_losses - c->good_seen > GOOD_BREAKS;
    struct fr_pending *f;
    if (collapsed(s, c, at_end) && c->n == 0) {
        f = fr_pend(s, l, FR_FINDING_COLLAPSE, c->mark, 0, at_end && !over, "loss scale is %s",
                    c->n_at_minimum != 0 ? "at its minimum and would have to go lower" : "gone");
    } else if (collapsed(s, c, at_end)) {
        f = fr_pend(s, l, FR_FINDING_COLLAPSE, c->mark, c->n, at_end && !over,
                    "loss scale lowered %u time%s in one unbroken run, to %.4g%s", c->n,
                    c->n == 1 ? "" : "s", c->lowest, c->n_at_minimum != 0 ? ", its minimum" : "");
    } else if (c->n != 0 && l->n_searches < FR_HARMLESS_MAX) {
        l->n_searches++;
        f = fr_pend(s, l, FR_FINDING_SCALE_SEARCH, c->mark, c->n, false,
                    "ordinary loss-scale search: lowered %u time%s, to %.4g", c->n,
                    c->n == 1 ? "" : "s", c->lowest);
    } else {
        return;
    }
    if (f != NULL) {
        f->last_line = c->last_line;
    }
}

static void skip_run(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v,
                     uint64_t more)
{
    struct fr_skips *c = &l->skips;
    if (c->n == 0) {
        c->mark = fr_mark_take(s, c->mark, at, v, l->good_step, NAN);
    }
    c->n += more;
    c->good_seen = s->good_losses;
}

void fr_skips_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    struct fr_skips *c = &l->skips;
    unsigned flags = at->point->flags;
    if ((flags & FR_POINT_OVERFLOW) != 0) { /* with a scale it is the scale's story */
        if (!fr_point_has(at->point, FR_METRIC_LOSS_SCALE) && (flags & FR_POINT_AT_MINIMUM) == 0) {
            if (s->good_losses - c->good_seen > GOOD_BREAKS) {
                c->n = 0;
            }
            skip_run(s, l, at, v, 1);
        }
        return;
    }
    int64_t steps = at->point->step >= 0 && c->known ? at->point->step - c->step : 0;
    double skipped = (flags & FR_POINT_SKIPPED_SUM) != 0 ? v - c->sum : v;
    if (steps > 0 && skipped >= (double)steps) {
        skip_run(s, l, at, v, (uint64_t)steps * 2);
    } else if (steps != 0) {
        c->n = 0;
    }
    c->known = at->point->step >= 0;
    c->step = at->point->step;
    c->sum = v;
}

void fr_skips_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    struct fr_skips *c = &l->skips;
    if (at_end && c->n >= 20 && s->good_losses - c->good_seen <= GOOD_BREAKS) {
        fr_pend(s, l, FR_FINDING_COLLAPSE, c->mark, (uint32_t)c->n, true,
                "every optimizer step is skipped to the end");
    }
    c->n = 0;
    c->known = false;
}
