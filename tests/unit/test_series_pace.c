/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a run goes, and whether it goes on: stalls, slow ranks, drops. */
#include "unit/series_run.h"

static void add_timed(struct run *r, int64_t step, double seconds)
{
    struct fr_point p = point(step);
    struct fr_when when = {(int64_t)(seconds * FR_NS_PER_S), FR_NS_PER_S, FR_TIME_BASIS_WALL};
    set(&p, FR_METRIC_LOSS, 2 + 0.01 * normal(r));
    r->line++;
    fr_series_add(r->s, &p, &r->who, &when, r->line, r->line * 100, FR_SV("the line"));
}

T_TEST(stall)
{
    struct run r;
    begin(&r, 81);
    for (int i = 0; i < 20; i++) {
        add_timed(&r, i, 1000 + 5 * i);
    }
    struct fr_when late = {(int64_t)4000 * FR_NS_PER_S, FR_NS_PER_S, FR_TIME_BASIS_WALL};
    fr_series_ends(r.s, &late);
    struct fr_finding f = expect(&r, FR_METRIC_STEP_TIME, FR_FINDING_STALL, 20);
    T_OK(f.terminal && f.step == 19);
    end(&r);

    begin(&r, 82); /* it went on after a quarter of an hour */
    for (int i = 0; i < 40; i++) {
        add_timed(&r, i, 1000 + 5 * i + (i >= 20 ? 900 : 0));
    }
    f = expect(&r, FR_METRIC_STEP_TIME, FR_FINDING_STALL, 20);
    T_OK(!f.terminal && f.n_after_good != 0);
    end(&r);

    begin(&r, 83); /* saving a checkpoint takes a while */
    for (int i = 0; i < 40; i++) {
        add_timed(&r, i, 1000 + 5 * i + (i >= 20 ? 240 : 0));
    }
    expect_healthy(&r, "checkpoint", 0);
}

T_TEST(slow_rank)
{
    struct run r;
    begin(&r, 80);
    for (int i = 0; i < 40; i++) {
        for (int rank = 0; rank < 8; rank++) {
            r.who.rank = rank;
            add1(&r, i, FR_METRIC_STEP_TIME, (rank == 5 ? 2.8 : 2.0) * exp(0.05 * normal(&r)));
        }
    }
    struct fr_finding f = expect(&r, FR_METRIC_STEP_TIME, FR_FINDING_SLOW, 6);
    T_EQ_INT(f.who.rank, 5);
    T_EQ_INT(r.found.n, 1);
    end(&r);
}

T_TEST(throughput_drop)
{
    for (int inverse = 0; inverse < 2; inverse++) {
        struct run r;
        begin(&r, 81);
        for (int i = 0; i < 240; i++) {
            double v = (i < 200 ? 5.0 : 6.5) * exp(0.03 * normal(&r));
            add1(&r, i, inverse ? FR_METRIC_THROUGHPUT : FR_METRIC_STEP_TIME,
                 inverse ? 1000 / v : v);
        }
        finish(&r);
        const struct fr_finding *f = find(&r, inverse ? FR_METRIC_THROUGHPUT : FR_METRIC_STEP_TIME,
                                          FR_FINDING_DROP);
        T_OK(f != NULL && f->line >= 198 && f->line <= 202 &&
             f->terminal); /* a noisy last good point may belong to it */
        end(&r);
    }
    struct run r;
    begin(&r, 82); /* even steps that creep up, hard to see in five lines */
    static const double v[] = {88.31, 88.33, 89.4, 91.9, 93.5};
    for (int i = 0; i < 5; i++) {
        add1(&r, 700 + i, FR_METRIC_STEP_TIME, v[i]);
    }
    expect(&r, FR_METRIC_STEP_TIME, FR_FINDING_DROP, 3);
    end(&r);

    begin(&r, 84); /* noise, then ten times as slow with one step as before */
    for (int i = 0; i < 50; i++) {
        bool slow = i >= 26 && i != 33;
        add1(&r, i, FR_METRIC_STEP_TIME, (slow ? 0.6 : 0.06) * exp(0.2 * normal(&r)));
    }
    expect(&r, FR_METRIC_STEP_TIME, FR_FINDING_DROP, 27);
    end(&r);

    begin(&r, 83); /* the batch doubled: that is why */
    for (int i = 0; i < 200; i++) {
        struct fr_point p = point(i);
        p.global_batch = i < 100 ? 256 : 512;
        set(&p, FR_METRIC_STEP_TIME, (i < 100 ? 1.0 : 1.9) * exp(0.02 * normal(&r)));
        add(&r, &p);
    }
    expect_healthy(&r, "batch doubled", 0);
}

int main(void)
{
    return t_run();
}
