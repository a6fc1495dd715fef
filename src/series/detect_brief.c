/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of at most 16 points, no more of which is known: what somebody cut out of a log. They are
 * too short for a level or a running mean, so each rule asks for something that chance does not do.
 * Of a longer one only its first 16 points and its last are kept, which is enough for one rule.
 *   DIVERGE  10 or more points that do nothing but rise: Kendall's tau against time >= 0.75, and
 *            the mean of the last third 8 % and 0.05 over that of the first. Chance gives such a
 *            tau once in a thousand at 10 points.
 *            4 or more that end in their largest, 100 x their first and at least 50, where another
 *            is 10 x the first, too: whether one of them came back in between says nothing then.
 *            3 or more whose last one alone is 1.2 x the largest before, in the line where the
 *            gradient norm is 3 x its largest and the loss scale was lowered: three measures of one
 *            step.
 *            5 or more whole epochs, the last four of which rose one after the other, to 1.1 x the
 *            lowest: each is a mean of many steps.
 *            5 or more, of any length, that are all over a million while the gradient norm is all
 *            over 100,000, as far as both are kept: a level that was lost before the first line.
 *   JUMP     6 or more whose second half lies above twice the first two, or above four times the first
 *            as all but that one do, and at one level (the largest is no more than twice the least).
 *   PLATEAU  8 or more from step 500 on, all of them between 9 and 13 (ln(8,000) to ln(440,000):
 *            what a model says that knows nothing of its words) and within 0.2 %, without a trend
 *            (tau below 0.5). */
#include <math.h>

#include "series/lane.h"

static bool is_clueless(double v)
{
    return v >= 9 && v <= 13;
}

void fr_brief_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    if (l->brief_n >= FR_RING) {
        l->brief_n = FR_RING + 1;
        return;
    }
    double low = v, high = -INFINITY;
    unsigned lowest = l->brief_n;
    for (unsigned i = 0; i < l->brief_n; i++) {
        if (l->brief[i] < low) {
            low = l->brief[i];
            lowest = i;
        }
        high = fmax(high, l->brief[i]);
    }
    if (l->brief_n == 0 && (is_clueless(v) || v >= 1e6)) {
        l->first = fr_mark_take(s, l->first, at, v, l->good_step, v);
    }
    if (lowest + 1 == l->brief_n) {
        l->climb = fr_mark_take(s, l->climb, at, v, l->good_step, low);
    }
    if (l->brief_n >= 2 && high > 0 && v >= 1.2 * high) {
        l->surge = fr_mark_take(s, l->surge, at, v, l->good_step, high);
    }
    l->brief[l->brief_n++] = v;
}

static double kendall_tau(const double *v, unsigned n)
{
    int concordant = 0;
    for (unsigned i = 0; i < n; i++) {
        for (unsigned k = i + 1; k < n; k++) {
            concordant += (v[k] > v[i]) - (v[k] < v[i]);
        }
    }
    return concordant / (n * (n - 1) / 2.0);
}

static double mean(const double *v, unsigned n)
{
    double sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += v[i];
    }
    return sum / n;
}

static double largest(const double *v, unsigned n)
{
    double high = v[0];
    for (unsigned i = 1; i < n; i++) {
        high = fmax(high, v[i]);
    }
    return high;
}

static double least(const double *v, unsigned n)
{
    double low = v[0];
    for (unsigned i = 1; i < n; i++) {
        low = fmin(low, v[i]);
    }
    return low;
}

static bool only_rises(const double *v, unsigned n)
{
    unsigned third = n / 3;
    double first = mean(v, third), last = mean(v + n - third, third);
    return n >= 10 && first > 0 && last >= 1.08 * first && last - first >= 0.05 && kendall_tau(v, n) >= 0.75;
}

static bool runs_away(const double *v, unsigned n)
{
    double last = v[n - 1];
    return n >= 4 && v[0] > 0 && last >= 50 && last >= 100 * v[0] && last > largest(v, n - 1) &&
           largest(v, n - 1) >= 10 * v[0];
}

static bool rises_by_epoch(const struct fr_lane *l)
{
    const unsigned n = l->brief_n, rising = 4;
    for (unsigned i = n; i > n - rising && n > rising; i--) {
        if (!(l->brief[i - 1] > l->brief[i - 2])) {
            return false;
        }
    }
    return n > rising && l->epoch_n >= n && l->brief[n - 1] >= 1.1 * least(l->brief, n);
}

static bool is_above(const struct fr_lane *l, double bound)
{
    const unsigned kept = l->brief_n < FR_RING ? l->brief_n : FR_RING;
    return kept >= 5 && l->last >= bound && least(l->brief, kept) >= bound;
}

/* It had gone before the first line. */
static bool is_gone(const struct fr_group *g, const struct fr_lane *l)
{
    const struct fr_lane *norm = g->lanes[FR_METRIC_GRAD_NORM];
    return norm != NULL && is_above(l, 1e6) && is_above(norm, 1e5);
}

static bool settles_high(const double *v, unsigned n)
{
    const unsigned half = n / 2;
    const double low = least(v + n - half, half), high = largest(v + n - half, half);
    const bool both = n >= 6 && v[1] >= 0.5 && low >= 2 * fmax(v[0], v[1]), one = n >= 6 && least(v + 1, n - 1) >= 4 * v[0];
    return v[0] >= 0.5 && (both || one) && high <= 2 * low;
}

/* The last line of the group: its loss, its gradient norm and its loss scale. */
static bool last_step_fails(const struct fr_group *g, const struct fr_lane *l)
{
    const struct fr_lane *norm = g->lanes[FR_METRIC_GRAD_NORM], *scale = g->lanes[FR_METRIC_LOSS_SCALE];
    if (l->surge == NULL || l->surge->line != l->last_line || norm == NULL || scale == NULL ||
        norm->last_line != l->last_line || norm->brief_n < 3 || norm->brief_n > FR_RING) {
        return false;
    }
    const unsigned before = norm->brief_n - 1u;
    return norm->brief[before] >= 3 * largest(norm->brief, before) && scale->scale.now < scale->scale.from;
}

static bool stands_still(const struct fr_lane *l)
{
    const double low = least(l->brief, l->brief_n), high = largest(l->brief, l->brief_n);
    return l->brief_n >= 8 && l->first_step >= 500 && is_clueless(low) && is_clueless(high) && high - low <= 0.002 * low &&
           fabs(kendall_tau(l->brief, l->brief_n)) < 0.5;
}

void fr_brief_close(struct fr_series *s, const struct fr_group *g, struct fr_lane *l, bool at_end)
{
    const unsigned n = l->brief_n;
    if (!at_end || n < 3 || l->rl || l->bar || l->level.found) {
        return;
    }
    if (is_gone(g, l)) {
        l->level.found = true;
        fr_pend(s, l, FR_FINDING_DIVERGE, l->first, n, true, "loss is %.3g from the first line on, and the gradient norm %.3g", l->brief[0],
                g->lanes[FR_METRIC_GRAD_NORM]->brief[0]);
        return;
    }
    if (n > FR_RING) {
        return;
    }
    const double low = least(l->brief, n), last = l->brief[n - 1];
    if (only_rises(l->brief, n)) {
        fr_pend(s, l, FR_FINDING_DIVERGE, l->climb, 0, true, "loss does nothing but rise over its %u points, from %.4g to %.4g", n, low,
                last);
    } else if (rises_by_epoch(l)) {
        fr_pend(s, l, FR_FINDING_DIVERGE, l->climb, 0, true, "loss rose in each of the last epochs, from %.4g to %.4g", low, last);
    } else if (runs_away(l->brief, n)) {
        fr_pend(s, l, FR_FINDING_DIVERGE, l->climb, 0, true, "loss grew from %.4g to %.4g within its %u points (%.0f x)", l->brief[0],
                last, n, last / l->brief[0]);
    } else if (settles_high(l->brief, n)) {
        fr_pend(s, l, FR_FINDING_JUMP, l->climb, n / 2, true, "loss began at %.4g and stays above twice that in the second half of its %u points",
                l->brief[0], n);
    } else if (last_step_fails(g, l)) {
        fr_pend(s, l, FR_FINDING_DIVERGE, l->surge, 1, true,
                "in the last line the loss is %.2f x its largest, the gradient norm leaps and the loss scale was lowered",
                last / l->surge->baseline);
    } else if (stands_still(l)) {
        fr_pend(s, l, FR_FINDING_PLATEAU, l->first, n, true,
                "loss does not move from %.4g in %u points after step %lld: it knows nothing of its words", last, n,
                (long long)l->first_step);
        return;
    } else {
        return;
    }
    l->level.found = true;
}
