/* SPDX-License-Identifier: Apache-2.0 */
/* Pace: what one line alone can't say.
 *   DROP (short series)  a handful of lines is too few for a sigma. Two to seven even steps (range <= 0.3 %), then at least three, each not
 *                        shorter than the one before (0.5 % slack), up to the end, the last >= 1.04 x: a slow-down caught as it happens.
 *   SLOW                 speakers of one dialect with >= 8 step times each, three or more of them: the median of one is over 1.2 x the median of
 *                        the others' medians, and its fastest quarter is above their median too; at most a quarter of the speakers.
 *   STALL                a gap between two points over 10 x the typical gap and 5 minutes; terminal when the end of the source, not the next
 *                        point, ends it. */
#include <math.h>

#include "series/lane.h"

enum { CREEP_MAX = 64 };

void fr_creep_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    if (l->creep_dead || l->n_good > CREEP_MAX) {
        return;
    }
    double last = l->creep_last;
    l->creep_last = v;
    if (l->n_good == 1) {
        l->creep_base = v;
        return;
    }
    double base = l->creep_base;
    if (l->creep_n == 0) {
        if (fabs(v - base) <= 0.003 * base) {
            l->creep_dead = l->n_good > 7;
            return;
        }
        if (l->n_good < 3 || v < 1.008 * base) {
            l->creep_dead = true;
            return;
        }
        l->creep = fr_mark_take(s, l->creep, at, v, l->good_step, base);
        l->creep_n = 1;
        return;
    }
    if (v < 0.995 * last || v < 1.008 * base) {
        l->creep_dead = true;
        return;
    }
    l->creep_n++;
}

void fr_creep_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    bool found = at_end && !l->creep_dead && l->n_good <= CREEP_MAX && l->creep_n >= 3 && l->creep_last >= 1.04 * l->creep_base;
    l->creep_dead = true;
    if (!found || l->level.n_high >= 5) {
        return;
    }
    bool inverse = l->metric == FR_METRIC_THROUGHPUT;
    double from = inverse ? 1 / l->creep_base : l->creep_base, to = inverse ? 1 / l->creep_last : l->creep_last;
    struct fr_pending *f = fr_pend(s, l, FR_FINDING_DROP, l->creep, l->creep_n, true, "%s from %.4g to %.4g (%.1f %% slower) over the last %u points",
                                   inverse ? "throughput fell" : "step time rose", from, to, 100 * (l->creep_last / l->creep_base - 1), l->creep_n);
    if (f != NULL && inverse) {
        f->mark.value = 1 / f->mark.value;
        f->mark.baseline = 1 / f->mark.baseline;
    }
}

static double kept_quantile(const struct fr_lane *l, double q)
{
    double v[FR_KEEP];
    memcpy(v, l->keep, l->keep_n * sizeof *v);
    fr_median(v, l->keep_n); /* leaves v sorted */
    return v[(unsigned)(q * (l->keep_n - 1))];
}

static void slow_rank(struct fr_series *s, unsigned d, enum fr_metric m)
{
    double typical[FR_SPEAKERS_MAX], sorted[FR_SPEAKERS_MAX];
    struct fr_lane *lanes[FR_SPEAKERS_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_speakers; i++) {
        struct fr_lane *l = s->groups[i][d] != NULL ? s->groups[i][d]->lanes[m] : NULL;
        if (l != NULL && l->keep_n >= 8) {
            lanes[n] = l;
            typical[n] = sorted[n] = kept_quantile(l, 0.5);
            n++;
        }
    }
    if (n < 3) {
        return;
    }
    double usual = fr_median(sorted, n);
    unsigned slow = 0;
    for (unsigned i = 0; i < n; i++) {
        slow += typical[i] > 1.2 * usual;
    }
    if (slow == 0 || slow > (n < 4 ? 1 : n / 4)) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        if (typical[i] > 1.2 * usual && kept_quantile(lanes[i], 0.25) > usual) {
            struct fr_pending *f = fr_pend(s, lanes[i], FR_FINDING_SLOW, lanes[i]->begin, (uint32_t)lanes[i]->n, true,
                                           "median %s %.4g against %.4g of the other %u (%.2f x)", m == FR_METRIC_STEP_TIME ? "step time" : "time per item",
                                           typical[i], usual, n - 1, typical[i] / usual);
            if (f != NULL) {
                f->mark.baseline = usual;
                f->mark.value = typical[i];
            }
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
