/* SPDX-License-Identifier: Apache-2.0 */
/* What detectors must find, where it must begin, and the nearest thing that they must not find. */
#include "unit/series_run.h"

static void good_losses(struct run *r, unsigned n, int64_t step)
{
    for (unsigned i = 0; i < n; i++) {
        add1(r, step + i, FR_METRIC_LOSS, 2.5 + 0.02 * normal(r));
    }
}

T_TEST(nan_to_the_end)
{
    struct run r;
    begin(&r, 1);
    good_losses(&r, 20, 100);
    for (int i = 0; i < 5; i++) {
        add1(&r, 120 + i, FR_METRIC_LOSS, NAN);
    }
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_NAN, 21);
    T_EQ_INT(f.step, 120);
    T_EQ_INT(f.last_good_step, 119);
    T_EQ_INT(f.last_line, 25);
    T_EQ_INT(f.n_bad, 5);
    T_OK(f.terminal && f.n_after_good == 0);
    end(&r);
}

T_TEST(nan_comes_and_goes_then_stays)
{
    struct run r;
    begin(&r, 2);
    good_losses(&r, 5, 0);
    add1(&r, 5, FR_METRIC_LOSS, NAN);
    good_losses(&r, 4, 6);
    add1(&r, 10, FR_METRIC_LOSS, NAN);
    add1(&r, 11, FR_METRIC_LOSS, NAN);
    finish(&r);
    T_EQ_INT(r.found.n, 2);
    T_OK(r.found.v[0].line == 6 && !r.found.v[0].terminal && r.found.v[0].n_bad == 1);
    T_OK(r.found.v[1].line == 11 && r.found.v[1].terminal && r.found.v[1].n_bad == 2);
    end(&r);
}

T_TEST(gradient_nan_while_loss_is_fine)
{
    struct run r;
    begin(&r, 3);
    for (int i = 0; i < 30; i++) {
        struct fr_point p = point(i);
        set(&p, FR_METRIC_LOSS, 1.5 + 0.01 * normal(&r));
        set(&p, FR_METRIC_GRAD_NORM, i == 12 ? NAN : 0.5);
        add(&r, &p);
    }
    struct fr_finding f = expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_NAN, 13);
    T_OK(!f.terminal);
    T_EQ_INT(f.n_after_good, 17);
    T_EQ_INT(r.found.n, 1);
    end(&r);
}

T_TEST(inf_then_nan)
{
    struct run r;
    begin(&r, 4);
    good_losses(&r, 6, 0);
    add1(&r, 6, FR_METRIC_LOSS, INFINITY);
    add1(&r, 7, FR_METRIC_LOSS, NAN);
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_INF, 7);
    T_OK(f.terminal);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_NAN, 8);
    end(&r);
}

T_TEST(missing_column)
{
    struct run r;
    begin(&r, 5);
    add_text(&r, " iteration 10/ 900 | elapsed time per iteration (ms): 400.0 | learning rate: "
                 "1.0E-04 | lm loss: 4.5E+00 | loss scale: 1.0 | grad norm: 1.5 | "
                 "number of skipped iterations:   0 | number of nan iterations:   0 |");
    for (int i = 0; i < 2; i++) {
        add_text(&r, " iteration 20/ 900 | elapsed time per iteration (ms): 400.0 | learning rate: "
                     "1.0E-04 | loss scale: 1.0 | grad norm: nan | "
                     "number of skipped iterations:   0 | number of nan iterations:   0 |");
    }
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_MISSING, 2);
    T_EQ_INT(f.last_good_step, 10);
    T_OK(f.terminal);
    expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_NAN, 2);
    end(&r);
}

T_TEST(zero_loss_with_nan_gradient)
{
    struct run r;
    begin(&r, 6);
    add_text(&r, "{'loss': 1.75, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.01}");
    add_text(&r, "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 2e-05, 'epoch': 0.02}");
    expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_NAN, 1);
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_ZERO, 2);
    T_OK(f.terminal);
    end(&r);
}

T_TEST(zero_loss_by_step_three)
{
    struct run r;
    begin(&r, 7);
    add1(&r, 1, FR_METRIC_LOSS, 11.9);
    add1(&r, 2, FR_METRIC_LOSS, 4e-6);
    add1(&r, 3, FR_METRIC_LOSS, 0.0);
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_ZERO, 2);
    T_EQ_INT(f.last_good_step, 1);
    end(&r);

    begin(&r, 8); /* and from the first line on */
    for (int i = 0; i < 6; i++) {
        add1(&r, i, FR_METRIC_LOSS, 0.0);
    }
    expect(&r, FR_METRIC_LOSS, FR_FINDING_ZERO, 1);
    end(&r);
}

T_TEST(plateau_at_uniform_output)
{
    static const double sizes[] = {10, 1000, 32000, 50257, 128256, 151936, 100277};
    for (unsigned k = 0; k < 7; k++) {
        struct run r;
        begin(&r, 9 + k);
        for (int i = 0; i < 60; i++) {
            add1(&r, i, FR_METRIC_LOSS, log(sizes[k]) * (1 + 0.001 * normal(&r)));
        }
        struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_PLATEAU, 1);
        T_OK(f.terminal && fabs(f.baseline - log(sizes[k])) < 0.01);
        end(&r);
    }
}

T_TEST(plateau_to_the_last_digit)
{
    struct run r;
    begin(&r, 20);
    good_losses(&r, 10, 0);
    for (int i = 0; i < 20; i++) {
        add1(&r, 10 + i, FR_METRIC_LOSS, 7.8125);
    }
    finish(&r);
    T_OK(find(&r, FR_METRIC_LOSS, FR_FINDING_PLATEAU) != NULL);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_JUMP, 11);
    end(&r);
}

T_TEST(jump_after_first_update)
{
    struct run r;
    begin(&r, 21);
    add1(&r, 1, FR_METRIC_LOSS, 2.125);
    add1(&r, 2, FR_METRIC_LOSS, 10.75);
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_JUMP, 2);
    T_OK(f.terminal && f.last_good_step == 1 && f.baseline == 2.125 && f.value == 10.75);
    end(&r);
}

T_TEST(jump_that_stays)
{
    for (unsigned seed = 0; seed < 20; seed++) {
        struct run r;
        begin(&r, 22 + seed);
        unsigned n = 2 + seed * 7;
        for (unsigned i = 0; i < n; i++) {
            add1(&r, i, FR_METRIC_LOSS, 2.7 + (n < 4 ? 0.002 : 0.03) * normal(&r));
        }
        for (unsigned i = 0; i < 6; i++) {
            add1(&r, n + i, FR_METRIC_LOSS, 4.4 + 0.05 * normal(&r));
        }
        struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_JUMP, n + 1);
        T_EQ_INT(f.last_good_step, n - 1);
        end(&r);
    }
}

T_TEST(spike_that_recovers)
{
    struct run r;
    begin(&r, 50);
    good_losses(&r, 40, 0);
    for (int i = 0; i < 5; i++) {
        add1(&r, 40 + i, FR_METRIC_LOSS, 6.5 - i);
    }
    good_losses(&r, 40, 45);
    finish(&r);
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_SPIKE, 41);
    T_OK(!f.terminal && f.n_after_good >= 37);
    T_OK(find(&r, FR_METRIC_LOSS, FR_FINDING_RECOVERED) != NULL);
    T_EQ_INT(r.found.n, 2);
    end(&r);
}

T_TEST(a_spike_needs_a_level_to_rise_from)
{
    static const double first[] = {3.852, 7.511, 7.579, 5.211, 3.523, 3.476, 4.159, 3.4, 3.3, 3.2};
    struct run r;
    begin(&r, 52);
    for (int i = 0; i < (int)(sizeof first / sizeof first[0]); i++) {
        add1(&r, 2 * (i + 1), FR_METRIC_LOSS, first[i]);
    }
    finish(&r);
    T_EQ_INT(r.found.n, 0);
    end(&r);
}

T_TEST(slow_divergence)
{
    struct run r;
    begin(&r, 51);
    for (int i = 0; i < 300; i++) {
        double v = i < 150 ? 2 + 6 * exp(-i / 30.0) : 2 * exp((i - 150) / 150.0);
        add1(&r, i, FR_METRIC_LOSS, v + 0.05 * normal(&r));
    }
    finish(&r);
    const struct fr_finding *f = find(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE);
    T_OK(f != NULL || find(&r, FR_METRIC_LOSS, FR_FINDING_JUMP) != NULL);
    T_OK(f == NULL || (f->line > 150 && f->line < 215 && f->terminal));
    end(&r);
}

T_TEST(doublings)
{
    static const double v[] = {0.9, 1.0, 6.5, 80, 1500};
    struct run r;
    begin(&r, 52);
    for (int i = 0; i < 5; i++) {
        add1(&r, i, FR_METRIC_LOSS, v[i]);
    }
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 3);
    end(&r);
}

T_TEST(evaluation_diverges)
{
    struct run r;
    begin(&r, 53);
    add_text(
        &r,
        "| epoch 009 | valid on 'valid' subset | valid_loss 9.25 | num_updates 5000 | best 4.125");
    expect(&r, FR_METRIC_EVAL_LOSS, FR_FINDING_DIVERGE, 1);
    end(&r);
}

static void overflow(struct run *r, double from, double to)
{
    char line[200];
    snprintf(
        line, sizeof line,
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: %.0f, reducing to %.0f",
        from, to);
    add_text(r, line);
}

T_TEST(scale_collapse)
{
    struct run r;
    begin(&r, 60);
    overflow(&r, 65536, 32768); /* long before: growth lies in between */
    for (double s = 512; s > 1; s /= 2) {
        overflow(&r, s, s / 2);
    }
    struct fr_finding f = expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 2);
    T_OK(f.terminal && f.baseline == 512);
    T_OK(find(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_SCALE_SEARCH) != NULL);
    end(&r);

    begin(&r, 61); /* ends inside the run */
    for (double s = 256; s > 8; s /= 2) {
        overflow(&r, s, s / 2);
    }
    expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 1);
    end(&r);

    begin(&r, 62); /* eight ranks say the same */
    for (double s = 4096; s >= 0.25; s /= 2) {
        for (int k = 0; k < 8; k++) {
            char line[120];
            snprintf(line, sizeof line,
                     "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to %g",
                     s);
            add_text(&r, line);
        }
    }
    f = expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 1);
    T_EQ_INT(f.n_bad, 15);
    end(&r);

    begin(&r, 63);
    add_text(&r, "Exception: Current loss scale already at minimum - cannot decrease scale "
                 "anymore. Exiting run.");
    expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 1);
    end(&r);

    begin(&r, 64); /* printed as 0, since it is below a half */
    add_text(&r, "| epoch 002 | loss 9.5 | num_updates 650 | gnorm 61.5 | loss_scale 0");
    add_text(&r, "NOTE: overflow detected, setting loss scale to: 0.00048828125");
    expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 1);
    end(&r);
}

T_TEST(scale_search_is_healthy)
{
    struct run r;
    begin(&r, 65); /* at the start, from far up */
    for (double s = 4294967296.0; s > 1e7; s /= 2) {
        overflow(&r, s, s / 2);
    }
    expect_healthy(&r, "search at the start", 0);

    begin(&r, 66); /* every 2000 steps, for ever */
    for (int i = 0; i < 40; i++) {
        overflow(&r, 65536, 32768);
        good_losses(&r, 30, 2000 * i);
    }
    expect_healthy(&r, "one overflow an hour", 0);

    begin(&r, 67); /* slow decay with long good stretches */
    for (double s = 65536; s > 64; s /= 2) {
        overflow(&r, s, s / 2);
        good_losses(&r, 50, (int64_t)(100000 - s));
    }
    expect_healthy(&r, "slow decay", 0);
}

T_TEST(gradient_explosion)
{
    struct run r;
    begin(&r, 70);
    for (int i = 0; i < 40; i++) {
        add1(&r, i, FR_METRIC_GRAD_NORM, (i < 34 ? 0.8 : 400) * exp(0.2 * normal(&r)));
    }
    struct fr_finding f = expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_EXPLODE, 35);
    T_OK(f.terminal && f.last_good_step == 33);
    end(&r);

    begin(&r, 71); /* two large ones, then the loss is gone */
    for (int i = 0; i < 30; i++) {
        struct fr_point p = point(i);
        set(&p, FR_METRIC_LOSS, i < 28 ? 3.0 : NAN);
        set(&p, FR_METRIC_GRAD_NORM, i < 26 ? 0.8 : i < 28 ? 150 : NAN);
        add(&r, &p);
    }
    expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_EXPLODE, 27);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_NAN, 29);
    end(&r);

    begin(&r, 72); /* one spike */
    for (int i = 0; i < 40; i++) {
        add1(&r, i, FR_METRIC_GRAD_NORM, i == 20 ? 300 : 0.8);
    }
    expect_healthy(&r, "one spike", 0);

    static const double cut[] = {14.98, 9.78, 7.64, 92.1, 29, 5.21, 7.83, 7.79, 11140}; /* the log ends in a thousandfold */
    begin(&r, 74);
    for (int i = 0; i < 9; i++) {
        add1(&r, i, FR_METRIC_GRAD_NORM, cut[i]);
    }
    expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_EXPLODE, 9);
    end(&r);

    begin(&r, 75); /* in a hundredfold */
    for (int i = 0; i < 9; i++) {
        add1(&r, i, FR_METRIC_GRAD_NORM, i < 8 ? cut[i] : 1100);
    }
    expect_healthy(&r, "a high last one", 0);
}

T_TEST(rise_without_a_pause)
{
    static const double v[] = {3.11, 3.05, 3.07, 3.2, 3.5, 4.0, 4.9, 6.6, 9.1, 13.0, 20.0};
    struct run r;
    begin(&r, 73);
    for (int i = 0; i < 11; i++) {
        add1(&r, i, FR_METRIC_LOSS, v[i]);
    }
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 5); /* the third rise in a row */
    T_EQ_INT(r.found.n, 1);
    end(&r);
}

T_TEST(auxiliary_loss_explodes)
{
    static const double v[] = {1.02, 1.01, 1.7, 4.5, 10.0, 28.0};
    struct run r;
    begin(&r, 74);
    for (int i = 0; i < 6; i++) {
        add1(&r, i, FR_METRIC_AUX_LOSS, v[i]);
    }
    expect(&r, FR_METRIC_AUX_LOSS, FR_FINDING_EXPLODE, 4);
    end(&r);
}

T_TEST(gradient_norm_zero)
{
    struct run r;
    begin(&r, 75);
    for (int i = 0; i < 12; i++) {
        add1(&r, i, FR_METRIC_GRAD_NORM, i < 4 ? 0.5 : 0);
    }
    struct fr_finding f = expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_ZERO, 5);
    T_EQ_INT(f.last_good_step, 3);
    end(&r);

    begin(&r, 76); /* a step that was skipped has no norm */
    for (int i = 0; i < 12; i++) {
        struct fr_point p = point(i);
        set(&p, FR_METRIC_SKIPPED, 1);
        set(&p, FR_METRIC_LOSS, 2.0 + 0.1 * normal(&r));
        set(&p, FR_METRIC_GRAD_NORM, 0);
        p.flags = i < 4 ? FR_POINT_OVERFLOW : 0;
        p.value[FR_METRIC_SKIPPED] = i < 4;
        set(&p, FR_METRIC_GRAD_NORM, i < 8 ? 0 : 0.7);
        add(&r, &p);
    }
    expect_healthy(&r, "skipped steps", 0);

    for (int falls = 0; falls < 2; falls++) { /* a program that prints 0.000 for a norm it does not measure */
        begin(&r, 77);
        for (int i = 0; i < 30; i++) {
            struct fr_point p = point(i);
            set(&p, FR_METRIC_LOSS, 12.0 - falls * 0.15 * i + 0.1 * normal(&r));
            set(&p, FR_METRIC_GRAD_NORM, 0);
            add(&r, &p);
        }
        if (falls) {
            expect_healthy(&r, "a norm that is not measured", 0);
        } else {
            (void)expect(&r, FR_METRIC_GRAD_NORM, FR_FINDING_ZERO, 1);
            end(&r);
        }
    }
}

T_TEST(accuracy_at_chance)
{
    struct run r;
    begin(&r, 77);
    for (int i = 0; i < 15; i++) {
        add1(&r, i, FR_METRIC_ACCURACY, 0.1 + 0.001 * (i % 3 - 1));
    }
    expect(&r, FR_METRIC_ACCURACY, FR_FINDING_PLATEAU, 1);
    end(&r);

    begin(&r, 78);
    for (int i = 0; i < 60; i++) { /* two classes start there */
        add1(&r, i, FR_METRIC_ACCURACY, 0.5 + 0.002 * normal(&r));
    }
    expect_healthy(&r, "accuracy of two classes", 0);

    for (int flagged = 0; flagged < 2; flagged++) { /* eight epochs, of which the lines do not say which */
        begin(&r, 80);
        for (int i = 0; i < 8; i++) {
            struct fr_point p = point(-1);
            p.flags = flagged ? FR_POINT_EPOCH : 0;
            set(&p, FR_METRIC_LOSS, 2.3026 + 0.0003 * (i % 2));
            set(&p, FR_METRIC_ACCURACY, 0.1 + 0.001 * (i % 3 - 1));
            add(&r, &p);
        }
        if (flagged) {
            expect(&r, FR_METRIC_LOSS, FR_FINDING_PLATEAU, 1);
            expect(&r, FR_METRIC_ACCURACY, FR_FINDING_PLATEAU, 1);
            end(&r);
        } else {
            expect_healthy(&r, "eight lines", 0);
        }
    }
}

T_TEST(every_step_skipped)
{
    struct run r;
    begin(&r, 79);
    char line[160];
    for (int i = 1; i <= 30; i++) {
        snprintf(line, sizeof line,
                 "[INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=%d, lr=[1e-05], "
                 "mom=[(0.9, 0.95)]",
                 i, i < 12 ? 1 : i - 11);
        add_text(&r, line);
    }
    expect(&r, FR_METRIC_SKIPPED, FR_FINDING_COLLAPSE, 13);
    end(&r);

    begin(&r, 80); /* bf16: no scale to read */
    for (int i = 0; i < 25; i++) {
        add_text(&r, "[deepspeed] OVERFLOW! Rank 0 Skipping step.");
    }
    expect(&r, FR_METRIC_SKIPPED, FR_FINDING_COLLAPSE, 1);
    end(&r);
}

T_TEST(restart_cures)
{
    struct run r;
    begin(&r, 90);
    good_losses(&r, 30, 0);
    for (int i = 0; i < 4; i++) {
        add1(&r, 30 + i, FR_METRIC_LOSS, NAN);
    }
    good_losses(&r, 30, 10);
    struct fr_finding f = expect(&r, FR_METRIC_LOSS, FR_FINDING_NAN, 31);
    T_OK(!f.terminal && f.n_after_good == 30);
    end(&r);
}

T_TEST(bounded)
{
    struct run r;
    begin(&r, 91);
    for (int i = 0; i < 200; i++) {
        r.who.rank = i;
        add1(&r, 1, FR_METRIC_LOSS, 1.0);
    }
    T_OK(fr_series_full(r.s));
    T_EQ_INT(fr_series_last_step(r.s), 1);
    for (int i = 0; i < 100000;
         i++) { /* every second point is bad: findings do not grow with the run */
        r.who.rank = i % 64;
        add1(&r, i, FR_METRIC_LOSS, i % 2 ? NAN : 1.0);
    }
    finish(&r);
    T_OK(r.found.n <= 256);
    end(&r);
}

struct seen {
    unsigned n;
    uint64_t points;
    double last;
};
static void see(void *ctx, enum fr_metric m, const struct fr_who *who, uint64_t points,
                int64_t first_step, int64_t last_step, double last)
{
    struct seen *s = ctx;
    s->n++;
    if (m == FR_METRIC_LOSS) {
        s->points = points;
        s->last = last;
        T_OK(who->rank == 3 && first_step == 5 && last_step == 14);
    }
}

T_TEST(summaries)
{
    struct run r;
    begin(&r, 92);
    r.who.rank = 3;
    r.who.node = FR_SV("node-a");
    for (int i = 5; i < 15; i++) {
        add1(&r, i, FR_METRIC_LOSS, i);
    }
    struct seen s = {0};
    fr_series_each(r.s, see, &s);
    T_OK(s.n == 1 && s.points == 10 && s.last == 14);
    T_EQ_INT(fr_series_points(r.s), 10);
    finish(&r);
    end(&r);
}

int main(void)
{
    return t_run();
}
