/* SPDX-License-Identifier: Apache-2.0 */
/* Slow movements and standstill of a loss.
 *   DIVERGE  the exponential mean (1/16) ends at >= 1.5 x and 0.75 above its best (for 8 points),
 *            or at 10 x its best and twice its beginning (for 16, or 64 below 0.5; not below 0.1),
 *            and four mean absolute deviations above the best; it begins where the mean last left
 *            the best by 15 %.
 *            Or the series ends in a rise without a pause: three doublings and 20
 *            x in all, or six points, 2 x in all and 1.5 x the largest of the 16 before; to at
 *            least 1 and no less than it began at.
 *            An evaluation loss diverges when it is 1.5 x and
 *            2.0 above the best so far (as printed, or seen).
 *   PLATEAU  (loss) >= 12 points to the end within 0.1 % of ln(n), or >= 30 points to the end
 *            within 1 % of ln(n) for a known number of classes or tokens n, their mean within
 *            0.4 % and without a trend (first and last third differ by less than 0.15 %); or >=
 *            13 points to the end that are the same to the last digit and at least 0.05 (smaller
 *            ones are cut off in print), or epochs, three of them, whose accuracy is the same, too.
 *            (accuracy) all points within 5 % of 1/n: 12 for n = 10, 20, 100; 100 within 1 %
 *            for n = 2.
 *            One point an epoch (no step, a whole epoch): six points are enough for both, also
 *            at ln(2), which otherwise takes 30. */
#include <math.h>

#include "series/lane.h"

/* ln of common vocabulary and class counts, ascending. For two classes only the narrow
 * rule counts: 0.69 is a usual value of many losses. */
static const struct {
    double ln;
    int n;
} uniform[] = {
    {2.302585, 10}, {2.995732, 20}, {3.912023, 50}, {4.605170, 100}, {4.615121, 101},
    {5.298317, 200}, {5.545177, 256}, {6.907755, 1000}, {6.931472, 1024}, {7.624619, 2048},
    {8.317766, 4096}, {9.010913, 8192}, {9.704061, 16384}, {9.958354, 21128}, {9.991544, 21841},
    {10.274913, 28996}, {10.308953, 30000}, {10.326203, 30522}, {10.373491, 32000},
    {10.373554, 32002}, {10.377483, 32128}, {10.397208, 32768}, {10.463103, 35000},
    {10.596635, 40000}, {10.749249, 46595}, {10.802673, 49152}, {10.807868, 49408},
    {10.824905, 50257}, {10.825840, 50304}, {10.828381, 50432}, {10.843495, 51200},
    {10.856399, 51865}, {10.858999, 52000}, {11.066638, 64000}, {11.082512, 65024},
    {11.090355, 65536}, {11.435439, 92544}, {11.515692, 100277}, {11.516439, 100352},
    {11.536642, 102400}, {11.691465, 119547}, {11.741622, 125696}, {11.759786, 128000},
    {11.761784, 128256}, {11.769736, 129280}, {11.928684, 151552}, {11.929284, 151643},
    {11.931215, 151936}, {11.932057, 152064}, {12.006646, 163840}, {12.206168, 200019},
    {12.211498, 201088}, {12.429224, 250002}, {12.429664, 250112}, {12.432730, 250880},
    {12.452933, 256000}, {12.476649, 262144},
};

/* The nearest ln(n) within 1 %, or NULL. */
static const double *near_uniform(double v)
{
    static const double two = 0.693147;
    if (!(v > 2.27 && v < 12.6)) {
        return fabs(v - two) <= 0.001 * two ? &two : NULL;
    }
    unsigned low = 0, high = sizeof uniform / sizeof *uniform;
    while (low < high) { /* the first that is not below v */
        unsigned middle = (low + high) / 2;
        if (uniform[middle].ln < v) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const double *above = low < sizeof uniform / sizeof *uniform ? &uniform[low].ln : NULL;
    const double *below = low > 0 ? &uniform[low - 1].ln : NULL;
    bool up = below == NULL || (above != NULL && *above - v < v - *below);
    const double *best = up ? above : below;
    return best != NULL && fabs(v - *best) <= 0.01 * *best ? best : NULL;
}

/* One point an epoch: such a series is short, and each of its values is a mean of many. */
static bool is_epoch(const struct fr_point *p)
{
    return (p->flags & FR_POINT_EPOCH) != 0 || (p->step < 0 && p->epoch == floor(p->epoch));
}

static void flat_start(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    const double *u = near_uniform(v);
    l->flat_n = l->narrow_n = 0;
    if (u == NULL) {
        return;
    }
    l->flat_at = *u;
    l->flat = fr_mark_take(s, l->flat, at, v, l->good_step, *u);
    l->flat_n = 1;
    l->flat_head = l->flat_tail = v;
    l->narrow_n = fabs(v - *u) <= 0.001 * *u;
    if (l->narrow_n != 0) {
        l->narrow = fr_mark_take(s, l->narrow, at, v, l->good_step, *u);
    }
}

/* The same to the last digit. */
static void count_same(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    if (v == l->same_at && v != 0) {
        if (++l->same_n == 1) {
            l->same = fr_mark_take(s, l->same, at, v, l->good_step, v);
        }
    } else {
        l->same_n = 0;
        l->same_at = v;
    }
}

void fr_flat_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    count_same(s, l, at, v);
    l->epoch_n += is_epoch(at->point) && l->epoch_n < UINT8_MAX;
    if (l->flat_n == 0) {
        if ((v > 2.27 && v < 12.6) || (v > 0.69 && v < 0.696)) {
            flat_start(s, l, at, v);
        }
        return;
    }
    if (fabs(v - l->flat_at) > 0.01 * l->flat_at) {
        flat_start(s, l, at, v);
        return;
    }
    l->flat_n++;
    l->by_epoch = is_epoch(at->point);
    if (fabs(v - l->flat_at) > 0.001 * l->flat_at) {
        l->narrow_n = 0;
    } else if (l->narrow_n++ == 0) {
        l->narrow = fr_mark_take(s, l->narrow, at, v, l->good_step, l->flat_at);
    }
    l->flat_head += l->flat_n <= 16 ? v : 0;
    l->flat_tail += (v - l->flat_tail) / 16;
}

static int uniform_count(double ln)
{
    for (unsigned i = 0; i < sizeof uniform / sizeof *uniform; i++) {
        if (uniform[i].ln == ln) {
            return uniform[i].n;
        }
    }
    return 2;
}

/* So is the accuracy, epoch by epoch: everything gets the same answer. */
static bool same_accuracy(const struct fr_group *g)
{
    const struct fr_lane *a = g->lanes[FR_METRIC_ACCURACY];
    return a != NULL && a->same_n >= 2;
}

void fr_flat_close(struct fr_series *s, const struct fr_group *g, struct fr_lane *l, bool at_end)
{
    uint32_t n = l->flat_n, same = l->same_n, narrow = l->narrow_n;
    l->flat_n = l->same_n = l->narrow_n = 0;
    if (!at_end || l->rl || l->bar) {
        return;
    }
    double head = l->flat_head / 16, tail = l->flat_tail, middle = (head + tail) / 2;
    uint32_t need = l->by_epoch ? 6 : l->flat_at < 1 ? 30 : 12;
    if (n >= 30 && l->flat_at > 1 && fabs(middle - l->flat_at) <= 0.004 * l->flat_at &&
        fabs(head - tail) <= 0.0015 * l->flat_at) {
        fr_pend(s, l, FR_FINDING_PLATEAU, l->flat, n, true,
                "loss stays at %.4g, which is ln(%d) = %.4g, for %u points: the output is uniform",
                middle, uniform_count(l->flat_at), l->flat_at, n);
    } else if (narrow >= need) {
        fr_pend(s, l, FR_FINDING_PLATEAU, l->narrow, narrow, true,
                "loss stays within 0.1 %% of ln(%d) = %.4g for %u points: the output is uniform",
                uniform_count(l->flat_at), l->flat_at, narrow);
    } else if (fabs(l->same_at) >= 0.05 && (same >= 12 || (l->epoch_n > same && same >= 2 && same_accuracy(g)))) {
        fr_pend(s, l, FR_FINDING_PLATEAU, l->same, same, true,
                "loss is %.6g to the last digit on %u lines in a row", l->same_at, same + 1);
    }
}

/* A rise that never pauses. Short series can end before any mean means something: 0.5, 4, 60,
 * 900. */
static void growth(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    double last = l->growth_last;
    l->growth_last = v;
    if (!(last > 0 && v > last)) {
        l->growth_n = l->doubled_n = 0;
        return;
    }
    l->doubled_n = v >= 2 * last ? l->doubled_n + 1 : 0;
    if (l->growth_n++ == 0) {
        l->growth_from = last;
        l->growth_over = last;
        for (unsigned i = 0; i < l->ring_n; i++) {
            l->growth_over = l->ring[i] > l->growth_over ? l->ring[i] : l->growth_over;
        }
    }
    if (l->growth_n <= 3 &&
        (l->doubled_n == 1 ||
         (l->growth_n == 3 && l->doubled_n == 0))) { /* noise rises twice all the time */
        l->growth = fr_mark_take(s, l->growth, at, v, l->good_step, l->growth_from);
    }
}

bool fr_growth_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    double from = l->growth_from, to = l->growth_last;
    uint32_t n = l->growth_n, doubled = l->doubled_n;
    l->growth_n = l->doubled_n = 0;
    l->growth_last = 0;
    if (!at_end || l->rl || l->growth == NULL || to < 1 || to < l->begin_sum / 5) {
        return false;
    }
    if (!(doubled >= 3 && to >= 20 * from) &&
        !(n >= 6 && to >= 2 * from && to >= 1.5 * l->growth_over)) {
        return false;
    }
    fr_pend(s, l, FR_FINDING_DIVERGE, l->growth, n, true,
            "loss rose on each of the last %u points, from %.4g to %.4g (%.1f x)", n, from, to,
            to / from);
    return true;
}

void fr_trend_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    if (l->n_good <= 5) {
        l->begin_sum += v;
    }
    growth(s, l, at, v);
    double a = l->n_trend < 16 ? 1.0 / (double)(l->n_trend + 1) : 1.0 / 16;
    double d = v - l->smooth;
    l->n_trend++;
    l->smooth += a * d;
    l->deviation += a * (fabs(d) - l->deviation);
    if (l->n_trend < 8) {
        l->best = l->smooth;
        return;
    }
    if (l->smooth <= l->best) {
        l->best = l->smooth;
        l->rising = false;
        return;
    }
    double limit = l->best + 0.15 * fabs(l->best) + l->deviation;
    if (!l->rising) {
        if (l->smooth > limit) {
            l->rising = true;
            l->rise_n = l->n_trend;
            l->rise_deviation = l->deviation - a * fabs(d);
            l->rise = fr_mark_take(s, l->rise, at, v, l->good_step, l->best);
        }
    } else if (l->smooth < l->best + 0.08 * fabs(l->best)) {
        l->rising = false;
    }
}

void fr_trend_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    bool rising = l->rising;
    double best = l->best, end = l->smooth, over = end - best, deviation = l->rise_deviation;
    uint64_t n = l->n_trend, since = n - l->rise_n;
    l->rising = false;
    l->n_trend = 0;
    l->smooth = l->deviation = 0;
    if (!rising || n < 16 || l->rl || l->level.found) {
        return;
    }
    bool apart = end >= 1.5 * best && over >= 0.75 && since >= 8;
    bool far = end >= 10 * best && end >= 0.1 && end >= 2 * l->begin_sum / 5 &&
               since >= (end >= 0.5 ? 16u : 64u);
    if (best <= 0 || over < 4 * deviation || (!apart && !far)) {
        return;
    }
    fr_pend(s, l, FR_FINDING_DIVERGE, l->rise, 0, at_end,
            "the loss's running mean rose from its best %.4g to %.4g (%.1f x)", best, end,
            end / best);
}

void fr_eval_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    double best = at->point->best;
    best = isnan(best) || (l->n_good > 1 && l->best < best) ? l->best : best;
    bool known = l->n_good > 1 || !isnan(at->point->best);
    bool bad = known && !l->rl && best > 0 && v >= 1.5 * best && v - best >= 2;
    if (bad && !l->rising) {
        l->rising = true;
        l->rise = fr_mark_take(s, l->rise, at, v, l->good_step, best);
    } else if (!bad) {
        l->rising = false;
    }
    l->best = l->n_good <= 1 || v < l->best ? v : l->best;
}

void fr_eval_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    if (l->rising && l->rise != NULL) {
        fr_pend(s, l, FR_FINDING_DIVERGE, l->rise, 1, at_end,
                "evaluation loss is %.4g against a best of %.4g (%.1f x)", l->rise->value,
                l->rise->baseline, l->rise->value / l->rise->baseline);
    }
    l->rising = false;
}

static double chance_near(double v)
{
    static const double levels[] = {0.5, 0.1, 0.05, 0.01};
    for (unsigned i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (fabs(v - levels[i]) <= (i == 0 ? 0.01 : 0.05) * levels[i]) {
            return levels[i];
        }
    }
    return 0;
}

void fr_chance_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v)
{
    double level = chance_near(v > 1 ? v / 100 : v);
    count_same(s, l, at, v);
    if (l->n_good == 1 && level != 0) {
        l->flat_at = level;
        l->flat = fr_mark_take(s, l->flat, at, v, -1, level);
    }
    l->flat_n += level != 0 && level == l->flat_at;
    l->by_epoch = is_epoch(at->point);
}

void fr_chance_close(struct fr_series *s, struct fr_lane *l, bool at_end)
{
    uint64_t need = l->by_epoch ? 6 : (l->flat_at == 0.5 ? 100 : 12) * (l->bar ? 25 : 1);
    if (at_end && !l->rl && l->flat_at > 0 && l->flat_n == l->n_good && l->flat_n >= need) {
        fr_pend(s, l, FR_FINDING_PLATEAU, l->flat, l->flat_n, true,
                "accuracy stays at %.2g, which is chance, on all %u points", l->flat_at,
                l->flat_n);
    }
}
