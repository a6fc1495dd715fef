/* SPDX-License-Identifier: Apache-2.0 */
/* NaN, inf, left out, exactly zero. The first three need no statistic: one such value is a
 * finding, and whether it is fatal is said by `terminal` and by the good points that follow. A
 * NaN after an inf is the same trouble: an inf run stays open.
 * Zero: a loss that falls to 0 from
 * at least 0.05 within three points and stays there (three exact zeros, or one when the loss was
 * >= 1 or the gradient is not finite), or that is 0 from the first line on (five). A loss that
 * fades to 0.0000 in print, as classifiers late in training do, comes from below 0.05 and is
 * none. A gradient norm of exactly 0 on the last five lines (or all five and more) is one too,
 * where no optimizer step was skipped. */
#include <math.h>

#include "series/lane.h"

static const uint8_t kinds[] = {FR_FINDING_NAN, FR_FINDING_INF, FR_FINDING_MISSING};

void fr_bad_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v, int which)
{
    struct fr_bad_run *b = &l->bad[which];
    double base = l->ring_n != 0 ? l->typical : NAN;
    if (!b->open) {
        b->open = l->bad_open = true;
        b->n_run = 0;
        if (b->n_runs++ == 0) {
            b->first = fr_mark_take(s, b->first, at, v, l->good_step, base);
        } else {
            b->run = fr_mark_take(s, b->run, at, v, l->good_step, base);
        }
    }
    b->n_run++;
    b->last_run = at->line;
    b->good_run = l->n_good;
    if (b->n_runs == 1) {
        b->n_first++;
        b->last_first = at->line;
        b->good_first = l->n_good;
    }
}

void fr_bad_good(struct fr_lane *l)
{
    l->bad_open = l->bad[0].open = l->bad[1].open = l->bad[2].open = false;
}

static const char *what(int which)
{
    return which == 0   ? "not a number"
           : which == 1 ? "infinite"
                        : "left out of the line, which this program does when it is not a number";
}

static void report(struct fr_series *s, struct fr_lane *l, int which, bool first, bool open)
{
    const struct fr_bad_run *b = &l->bad[which];
    uint32_t n = first ? b->n_first : b->n_run;
    struct fr_pending *f = fr_pend(
        s, l, (enum fr_finding_kind)kinds[which], first ? b->first : b->run, n, open,
        "%s is %s on %u line%s%s", fr_metric_name((enum fr_metric)l->metric), what(which), n,
        n == 1 ? "" : "s", open ? " and stays so to the end" : ", then finite again");
    if (f != NULL) {
        f->last_line = first ? b->last_first : b->last_run;
        f->good_then = first ? b->good_first : b->good_run;
    }
}

void fr_bad_finish(struct fr_series *s, struct fr_lane *l)
{
    for (int i = 0; i < 3; i++) {
        const struct fr_bad_run *b = &l->bad[i];
        if (b->n_runs == 0) {
            continue;
        }
        report(s, l, i, true, b->n_runs == 1 && b->open);
        if (b->n_runs != 1 && b->open) { /* the last run never ended: that is where the end began */
            report(s, l, i, false, true);
        }
    }
}

/* The smallest of the last values that were not zero; NAN when there are none. */
static double least_before(const struct fr_lane *l)
{
    double low = NAN;
    for (unsigned i = 0; i < l->before_n; i++) {
        low = !(low <= l->before[i]) ? l->before[i] : low;
    }
    return low;
}

static void remember(struct fr_lane *l, double v)
{
    l->before[2] = l->before[1];
    l->before[1] = l->before[0];
    l->before[0] = v;
    l->before_n += l->before_n < 3;
}

void fr_zero_add(struct fr_series *s, struct fr_group *g, struct fr_lane *l, const struct fr_at *at,
                 double v)
{
    /* the fall may pass a tiny value first: from 12.2 to 1.8e-06 to 0.0 the trouble begins at
     * 1.8e-06. Back from a spike, 2.6 to 900 to 2.8, is no fall. */
    bool zero = v == 0,
         fell = v > 0 && l->before_n != 0 && l->before[0] >= 0.5 && v < 1e-2 * least_before(l);
    bool stays = l->zero_n != 0 && v >= 0 && v < 1e-2 * l->zero_base;
    if (!zero && !fell && !stays) {
        if (l->zero_n != 0) {
            fr_zero_close(s, g, l, false);
        }
        remember(l, v);
        return;
    }
    if (l->zero_n++ == 0) {
        l->zero_base = l->before_n != 0 ? least_before(l) : NAN;
        l->zero = fr_mark_take(s, l->zero, at, v, l->good_step, l->zero_base);
        l->zero_exact = 0;
    }
    l->zero_exact += zero;
    l->zero_line = at->line;
}

void fr_zero_close(struct fr_series *s, struct fr_group *g, struct fr_lane *l, bool at_end)
{
    const struct fr_lane *grad = g->lanes[FR_METRIC_GRAD_NORM];
    bool grad_bad = grad != NULL && (grad->bad[0].open || grad->bad[1].open);
    uint32_t n = l->zero_n, exact = l->zero_exact;
    l->zero_n = 0;
    if (l->rl || exact == 0) {
        return;
    }
    bool found = isnan(l->zero_base)
                     ? exact >= 5 || (exact >= 2 && grad_bad)
                     : (exact >= 3 && l->zero_base >= 0.05) ||
                           (at_end && (l->zero_base >= 1 || (grad_bad && l->zero_base > 0)));
    if (!found || (isnan(l->zero_base) && !at_end)) {
        return;
    }
    struct fr_pending *f;
    if (isnan(l->zero_base)) {
        f = fr_pend(s, l, FR_FINDING_ZERO, l->zero, n, at_end, "loss is exactly 0 on all %u lines",
                    exact);
    } else {
        f = fr_pend(s, l, FR_FINDING_ZERO, l->zero, n, at_end,
                    "loss fell from %.4g to exactly 0 within three points: %u lines%s",
                    l->zero_base, n, grad_bad ? ", with a gradient norm that is not finite" : "");
    }
    if (f != NULL) {
        f->last_line = l->zero_line;
    }
}

void fr_norm_zero_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    if (v != 0 || (at->point->flags & FR_POINT_OVERFLOW) != 0 ||
        (fr_point_has(at->point, FR_METRIC_SKIPPED) && at->point->value[FR_METRIC_SKIPPED] > 0)) {
        l->zero_n = 0;
        return;
    }
    if (l->zero_n++ == 0) {
        l->zero = fr_mark_take(s, l->zero, at, v, l->good_step, l->typical);
    }
}

/* A norm that was never anything but 0 beside a loss that falls was not measured: DeepSpeed's
 * pipeline engine in Megatron's line prints 0.000 for it. */
static bool unmeasured(const struct fr_group *g, const struct fr_lane *l)
{
    const struct fr_lane *loss = g->lanes[FR_METRIC_LOSS];
    return l->zero_n == l->n && loss != NULL && loss->n_good >= 8 &&
           loss->best < 0.9 * loss->begin_sum / 5;
}

void fr_norm_zero_close(struct fr_series *s, const struct fr_group *g, struct fr_lane *l,
                        bool at_end)
{
    if (at_end && l->zero_n >= 5 && !l->rl && !unmeasured(g, l)) {
        fr_pend(s, l, FR_FINDING_ZERO, l->zero, l->zero_n, true,
                "gradient norm is exactly 0 on %u lines: nothing is learnt", l->zero_n);
    }
    l->zero_n = 0;
}
