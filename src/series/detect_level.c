/* SPDX-License-Identifier: Apache-2.0 */
/* A level opens when a value passes a limit over the baseline (median and robust sigma of the last
 * 16 good values), closes when three values in a row are back below half way, and is judged when it
 * closes or the series ends. Where normal values keep coming in between (more than one in four), it
 * is a mixture and no level: the baseline learns it.
 *   loss       limit: median + max(8 sigma, 25 %), and half a range over the largest, with 8 or
 *              more points before; median + max(6 x range, 40 %) with 4-7; +40 % over two or three,
 *              1 or more, that agree within 1 %; +50 % over a single one of 0.5 to 6 (a
 *              pretrained model that answers like an untrained one after its first update).
 *              JUMP: at least 1.4 x and 6 sigma, held to the end for >= 3 points (4 where only two
 *              or three came before; after a single one all four-fold and >= 8, or 6 that are even
 *              to a quarter of the rise; 2 at double and 10 sigma, 1 at five-fold and 30 sigma), all
 *              over the limit if fewer than 5, for longer than twice any spike before, or for >= 20
 *              points if it ended. From a base below 0.1: by 0.5, or ten-fold for 8 points.
 *              DIVERGE instead, where it did not stay there: the largest is 100 x the least, or
 *              4 x the base and over 16, which no vocabulary's logarithm is.
 *              SPIKE: anything shorter that recovered, of 1.5 x or 10 sigma.
 *   grad_norm  limit: 20 x median and 5 x the largest of the ring, at least 10, with 4 or more
 *              points before.
 *              EXPLODE: >= 3 points with a peak of 100 x, or >= 10 points, or the series ends
 *              in one of 1000 x, or a NaN or inf followed while it was open.
 *   aux_loss   limit: 4 x median and 2 x the largest, at least 0.5, with 2 or more points
 *              before.
 *              EXPLODE: held to the end for >= 3 points with a peak of 10 x. */
#include <math.h>

#include "series/lane.h"

static void range(const struct fr_lane *l, double *low, double *high)
{
    *low = *high = l->ring[0];
    for (unsigned i = 1; i < l->ring_n; i++) {
        *low = l->ring[i] < *low ? l->ring[i] : *low;
        *high = l->ring[i] > *high ? l->ring[i] : *high;
    }
}

static double loss_limit(const struct fr_lane *l, double low, double high)
{
    double m = l->typical, size = fabs(m);
    if (l->ring_n >= 8) {
        return fmax(m + fmax(fmax(8 * l->spread, 0.25 * size), 0.02), high + (high - low) / 2);
    }
    if (l->ring_n >= 4) {
        return m + fmax(fmax(6 * (high - low), 0.4 * size), 0.05);
    }
    if (l->ring_n >= 2) {
        return m >= 1 && high - low <= 0.01 * size ? m + fmax(0.4 * size, 0.3) : INFINITY;
    }
    return m >= 0.5 && m < 6 ? 1.5 * m : INFINITY;
}

void fr_level_limit(struct fr_lane *l)
{
    double low, high;
    l->limit = INFINITY;
    if (l->ring_n == 0) {
        return;
    }
    range(l, &low, &high);
    if (l->metric == FR_METRIC_LOSS) {
        l->limit = loss_limit(l, low, high);
    } else if (l->metric == FR_METRIC_GRAD_NORM && l->ring_n >= 4) {
        l->limit = fmax(fmax(20 * l->typical, 5 * high), 10);
    } else if (l->metric == FR_METRIC_AUX_LOSS && l->ring_n >= 2) {
        l->limit = fmax(fmax(4 * l->typical, 2 * high), 0.5);
    }
}

static void open_level(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    struct fr_shift *h = &l->level;
    fr_lane_baseline(l);
    if (v <= l->limit) {
        return;
    }
    h->mark = fr_mark_take(s, h->mark, at, v, l->good_step, l->typical);
    h->base = l->typical;
    h->limit = l->limit;
    h->close = l->typical + (l->limit - l->typical) / 2;
    h->sum = 0;
    h->peak = h->low = v;
    h->n_high = h->normal_run = h->n_inside = 0;
    h->n_before = l->ring_n;
    h->open = true;
    h->broke = false;
}

bool fr_level_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    struct fr_shift *h = &l->level;
    if (!h->open) {
        if (!(v > l->limit)) {
            return false;
        }
        open_level(s, l, at, v);
        if (!h->open) {
            return false;
        }
    }
    if (v > h->close) {
        h->n_high++;
        h->normal_run = 0;
        h->sum += v;
        h->peak = v > h->peak ? v : h->peak;
        h->low = v < h->low ? v : h->low;
        if (h->n_high >= 3) {
            h->tail_low = h->n_high == 3 || v < h->tail_low ? v : h->tail_low;
            h->tail_high = h->n_high == 3 || v > h->tail_high ? v : h->tail_high;
        }
        h->last_line = at->line;
        return true;
    }
    h->n_inside++;
    if (h->normal_run++ == 0) {
        h->recovery = fr_mark_take(s, h->recovery, at, v, at->step, h->base);
    }
    if (h->normal_run >= 3 || (h->n_inside >= 2 && 3 * h->n_inside > h->n_high)) {
        fr_level_close(s, l, false);
    }
    return false;
}

static bool is_jump(const struct fr_lane *l, bool held)
{
    const struct fr_shift *h = &l->level;
    double over = h->sum / h->n_high - h->base, size = fmax(fabs(h->base), 1e-9),
           sigma = fmax(l->spread, 0.005 * size);
    unsigned before = h->n_before;
    if (over < 0.4 * size || over < 6 * sigma) {
        return false;
    }
    if (h->base < 0.1 && over < 0.5 && (h->n_high < 8 || over < 9 * size)) {
        return false; /* near zero, a ratio says little */
    }
    if (!held) {
        return before >= 4 && h->n_high >= 20;
    }
    if (h->n_high <= 2 * l->longest_spike) {
        return false; /* it has come back from such before */
    }
    if (before == 1) { /* told by its height, or by how even the new level is */
        return (h->low >= 4 * h->base && h->low >= 8) ||
               (h->n_high >= 6 && over >= 4 * (h->tail_high - h->tail_low));
    }
    if (before < 4) {
        return h->n_high >= 4;
    }
    if (h->n_high < 5 && h->low <= h->limit) {
        return false; /* few, and not all of them over the limit */
    }
    return h->n_high >= 3 || (h->n_high == 2 && over >= size && over >= 10 * sigma) ||
           (over >= 4 * size && over >= 30 * sigma && before >= 8);
}

static void close_loss(struct fr_series *s, struct fr_lane *l, bool held)
{
    struct fr_shift *h = &l->level;
    double mean = h->sum / h->n_high, sigma = fmax(l->spread, 0.005 * fabs(h->base));
    struct fr_pending *f = NULL;
    bool runs_away = h->peak >= 100 * h->low || (h->peak > 16 && h->peak >= 4 * h->base);
    if (is_jump(l, held) && held && runs_away) {
        f = fr_pend(s, l, FR_FINDING_DIVERGE, h->mark, h->n_high, held,
                    "loss left its level of %.4g and grew to %.4g within %u points", h->base,
                    h->peak, h->n_high);
        l->level.found = true;
    } else if (is_jump(l, held)) {
        f = fr_pend(
            s, l, FR_FINDING_JUMP, h->mark, h->n_high, held,
            "loss went from %.4g to %.4g in one point (%.1f x, %.0f sigma of the last %u) and %s",
            h->base, h->mark != NULL ? h->mark->value : mean, mean / h->base,
            (mean - h->base) / sigma, h->n_before, held ? "stayed there" : "stayed for long");
        l->level.found = held;
    } else if (!held && h->n_before >= 4 && l->n_spikes < FR_HARMLESS_MAX &&
               h->peak - h->base >= fmax(0.5 * fabs(h->base), 10 * sigma)) {
        l->n_spikes++;
        f = fr_pend(s, l, FR_FINDING_SPIKE, h->mark, h->n_high, false,
                    "loss rose from %.4g to %.4g for %u point%s and came back", h->base, h->peak,
                    h->n_high, h->n_high == 1 ? "" : "s");
        fr_pend(s, l, FR_FINDING_RECOVERED, h->recovery, 0, false,
                "loss is back at its level after a spike to %.4g", h->peak);
    }
    if (f != NULL) {
        f->last_line = h->last_line;
    }
}

static void close_grad(struct fr_series *s, struct fr_lane *l, bool held)
{
    struct fr_shift *h = &l->level;
    bool aux = l->metric == FR_METRIC_AUX_LOSS;
    const char *name = aux ? "auxiliary loss" : "gradient norm";
    bool exploded = aux ? held && !l->rl && h->n_high >= 3 && h->peak >= 10 * h->base
                        : h->broke || (h->n_high >= 3 && h->peak >= 100 * h->base) ||
                              h->n_high >= 10 || (held && h->peak >= 1000 * h->base);
    struct fr_pending *f = NULL;
    if (exploded) {
        f = fr_pend(s, l, FR_FINDING_EXPLODE, h->mark, h->n_high, held,
                    "%s rose from a median of %.4g to %.4g (%.0f x) for %u point%s%s", name,
                    h->base, h->peak, h->peak / h->base, h->n_high, h->n_high == 1 ? "" : "s",
                    h->broke ? ", then was not finite" : "");
    } else if (!held && !aux && l->n_spikes < FR_HARMLESS_MAX) {
        l->n_spikes++;
        f = fr_pend(s, l, FR_FINDING_SPIKE, h->mark, h->n_high, false,
                    "%s rose from %.4g to %.4g for %u point%s and came back", name, h->base,
                    h->peak, h->n_high, h->n_high == 1 ? "" : "s");
    }
    if (f != NULL) {
        f->last_line = h->last_line;
    }
}

void fr_level_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    struct fr_shift *h = &l->level;
    if (!h->open) {
        return;
    }
    h->open = false;
    if (h->n_high == 0) {
        return;
    }
    bool held = at_end && h->normal_run == 0;
    if (at_end && !held && h->normal_run < 3 && h->n_high < 20) {
        return; /* it was coming back when the series ended */
    }
    if (l->metric == FR_METRIC_LOSS) {
        close_loss(s, l, held);
    } else {
        close_grad(s, l, held || (at_end && h->broke));
    }
    if (!at_end) {
        l->longest_spike = h->n_high > l->longest_spike ? h->n_high : l->longest_spike;
        fr_lane_learn(l, h->sum / h->n_high, h->n_high);
    }
}
