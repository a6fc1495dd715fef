/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: laws 3 and 6. A time-out began when the wait began; a clock is a host's own. Skew is estimated from waits
 * that all hosts shared: the same collective (group and sequence number) was enqueued everywhere at about one moment. */
#include "incident/case.h"

#include <stdlib.h>

static int cmp_i64(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    return (a > b) - (a < b);
}

static int64_t median(int64_t *v, uint32_t n)
{
    qsort(v, n, sizeof *v, cmp_i64);
    return n % 2 != 0 ? v[n / 2] : v[n / 2 - 1] + (v[n / 2] - v[n / 2 - 1]) / 2;
}

static bool is_wall(const struct fr_when *w)
{
    return w->basis == FR_TIME_BASIS_WALL || w->basis == FR_TIME_BASIS_UTC || w->basis == FR_TIME_BASIS_NOYEAR;
}

static void set_began(struct fr_obs *o)
{
    const struct fr_when *w = is_wall(&o->e->when) ? &o->e->when : &o->e->outer;
    o->began = FR_TIME_NONE;
    if (!is_wall(w)) {
        return;
    }
    int64_t ran = o->e->fact == FR_FACT_TIMEOUT ? fr_event_num(o->e, FR_KEY_RAN_MS, 0) : 0;
    o->began = w->ns - (ran > 0 && ran < 7LL * 86400 * 1000 ? ran * 1000000 : 0);
    o->slack = w->resolution_ns;
}

/* Collects (node, began) of time-outs of the most common sequence number. */
static uint32_t shared_waits(struct fr_case *c, int64_t seq, int32_t node, int64_t *ret)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->e->fact == FR_FACT_TIMEOUT && o->began != FR_TIME_NONE && fr_event_num(o->e, FR_KEY_SEQ, -1) == seq &&
            (node < 0 || o->node == node)) {
            ret[n++] = o->began;
        }
    }
    return n;
}

static int64_t first_seq(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        if (c->obs.v[i].e->fact == FR_FACT_TIMEOUT && fr_event_num(c->obs.v[i].e, FR_KEY_RAN_MS, 0) > 0) {
            return fr_event_num(c->obs.v[i].e, FR_KEY_SEQ, -1);
        }
    }
    return -1;
}

static void estimate_skew(struct fr_case *c)
{
    int64_t seq = first_seq(c);
    int64_t *v = seq < 0 || c->nodes.n < 2 ? NULL : FR_NEW_N(&c->arena, int64_t, c->obs.n + 1);
    if (v == NULL) {
        return;
    }
    uint32_t n = shared_waits(c, seq, -1, v);
    if (n < 2) {
        return;
    }
    int64_t all = median(v, n);
    for (uint32_t k = 0; k < c->nodes.n; k++) {
        n = shared_waits(c, seq, (int32_t)k, v);
        c->nodes.v[k].skew = n != 0 ? median(v, n) - all : 0;
    }
}

void fr_case_timeline(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        set_began(&c->obs.v[i]);
    }
    estimate_skew(c);
    int64_t unsure = c->nodes.n > 1 ? FR_NS_PER_S : 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        struct fr_obs *o = &c->obs.v[i];
        if (o->began != FR_TIME_NONE) {
            o->began -= o->node >= 0 ? c->nodes.v[o->node].skew : 0;
            o->slack += unsure;
        }
    }
}
