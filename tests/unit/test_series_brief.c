/* SPDX-License-Identifier: Apache-2.0 */
/* Series of at most 16 points: what somebody cut out of a log. */
#include "series_run.h"

T_TEST(short_and_only_rising)
{
    static const double v[] = {1.453, 1.406, 1.415, 1.426, 1.459, 1.436, 1.468, 1.503, 1.513, 1.565, 1.562, 1.614};
    struct run r;
    begin(&r, 79);
    for (int i = 0; i < 12; i++) {
        add1(&r, i, FR_METRIC_LOSS, v[i]);
    }
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 3); /* the one behind the lowest */
    end(&r);

    begin(&r, 79); /* too short to tell */
    for (int i = 0; i < 9; i++) {
        add1(&r, i, FR_METRIC_LOSS, v[i]);
    }
    expect_healthy(&r, "nine points", 0);

    begin(&r, 79); /* it has been higher: longer logs know what is usual */
    for (int i = 0; i < 24; i++) {
        add1(&r, i, FR_METRIC_LOSS, i < 12 ? 2.0 - 0.05 * i : v[i - 12]);
    }
    expect_healthy(&r, "a rise after a fall", 0);

    begin(&r, 79);
    for (int i = 0; i < 12; i++) { /* up and down */
        add1(&r, i, FR_METRIC_LOSS, v[i * 5 % 12]);
    }
    expect_healthy(&r, "the same in another order", 0);
}

/* A loss that somebody cut out of a log. */
struct cut {
    const char *what;
    int64_t step; /* of the first one */
    int n, line;  /* line 0: nothing is found */
    double v[12];
    enum fr_finding_kind kind;
};

T_TEST(cut_out_of_a_log)
{
    static const struct cut rows[] = {
        {"each a leap, one of them back", 652, 5, 2, {1.44, 2.97, 212.2, 41.2, 4421.5}, FR_FINDING_DIVERGE},
        {"the last one came back", 652, 5, 0, {1.44, 2.97, 212.2, 4421.5, 41.2}, FR_FINDING_DIVERGE},
        {"one leap alone may be a bad batch", 652, 5, 0, {1.44, 1.42, 1.47, 1.40, 4421.5}, FR_FINDING_DIVERGE},
        {"from near nothing", 652, 5, 0, {0.01, 0.02, 0.5, 0.4, 7.5}, FR_FINDING_DIVERGE},
        {"twice as high in the whole second half", 25, 8, 3, {1.59, 1.41, 3.32, 6.44, 5.48, 4.86, 4.87, 4.60}, FR_FINDING_JUMP},
        {"on its way back", 25, 8, 0, {1.59, 1.41, 3.32, 6.44, 5.48, 3.86, 2.87, 1.60}, FR_FINDING_JUMP},
        {"all but the first four times as high", 1, 10, 2, {10.57, 99.71, 98.46, 128.05, 133.45, 103.46, 136.2, 125.27, 109.28, 125.71}, FR_FINDING_JUMP},
        {"a bad first batch", 1, 10, 0, {99.71, 10.57, 11.46, 12.05, 13.45, 10.46, 13.2, 12.27, 10.28, 12.71}, FR_FINDING_JUMP},
        {"flat where an untrained model is", 1040, 8, 1, {11.174, 11.174, 11.176, 11.171, 11.166, 11.170, 11.174, 11.177}, FR_FINDING_PLATEAU},
        {"the same at the start", 10, 8, 0, {11.174, 11.174, 11.176, 11.171, 11.166, 11.170, 11.174, 11.177}, FR_FINDING_PLATEAU},
        {"flat, but it falls", 1040, 8, 0, {11.180, 11.179, 11.178, 11.177, 11.175, 11.174, 11.172, 11.170}, FR_FINDING_PLATEAU},
        {"flat where a trained model may be", 1040, 8, 0, {2.174, 2.174, 2.176, 2.173, 2.174, 2.175, 2.174, 2.176}, FR_FINDING_PLATEAU},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct cut *c = &rows[i];
        struct run r;
        begin(&r, 95);
        for (int k = 0; k < c->n; k++) {
            add1(&r, c->step + 10 * k, FR_METRIC_LOSS, c->v[k]);
        }
        if (c->line == 0) {
            expect_healthy(&r, c->what, (unsigned)i);
            continue;
        }
        expect(&r, FR_METRIC_LOSS, c->kind, (uint64_t)c->line);
        end(&r);
    }
}

static void last_line(struct run *r, double loss, double norm, double scale)
{
    static const double before[] = {8.17, 8.25};
    begin(r, 96);
    for (int i = 0; i < 3; i++) {
        struct fr_point p = point(100 * i);
        set(&p, FR_METRIC_LOSS, i < 2 ? before[i] : loss);
        set(&p, FR_METRIC_GRAD_NORM, i < 2 ? 1.9 - 0.4 * i : norm);
        set(&p, FR_METRIC_LOSS_SCALE, i < 2 ? 64 : scale);
        add(r, &p);
    }
}

T_TEST(three_measures_of_the_last_line)
{
    struct run r;
    last_line(&r, 10.54, 6.13, 32);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 3);
    end(&r);
    last_line(&r, 10.54, 6.13, 64);
    expect_healthy(&r, "the scale stands", 1);
    last_line(&r, 10.54, 2.13, 32);
    expect_healthy(&r, "the norm is as before", 2);
    last_line(&r, 8.54, 6.13, 32);
    expect_healthy(&r, "the loss is as before", 3);
}

static void epochs(struct run *r, double acc)
{
    begin(r, 97);
    for (int i = 0; i < 4; i++) {
        struct fr_point p = point(-1);
        set(&p, FR_METRIC_LOSS, i == 0 ? 5.7178 : 5.7257);
        set(&p, FR_METRIC_ACCURACY, i == 0 ? 0.6446 : 0.6448 + acc * i);
        p.flags = FR_POINT_EPOCH;
        add(r, &p);
    }
}

T_TEST(the_same_answer_epoch_by_epoch)
{
    struct run r;
    epochs(&r, 0);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_PLATEAU, 3);
    end(&r);
    epochs(&r, 0.001);
    expect_healthy(&r, "the accuracy moves", 1);
}

static void epochs_of(struct run *r, const double *v, int n)
{
    begin(r, 99);
    for (int i = 0; i < n; i++) {
        struct fr_point p = point(-1);
        set(&p, FR_METRIC_LOSS, v[i]);
        p.flags = FR_POINT_EPOCH;
        add(r, &p);
    }
}

T_TEST(epochs_that_rise)
{
    static const double up[] = {1.5869, 1.2171, 1.1202, 1.0933, 1.1043, 1.1402, 1.1855, 1.2136, 1.2371};
    static const double pause[] = {1.5869, 1.2171, 1.1202, 1.0933, 1.1043, 1.1402, 1.1355, 1.2136, 1.2371};
    struct run r;
    epochs_of(&r, up, 9);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 5);
    end(&r);
    epochs_of(&r, pause, 9);
    expect_healthy(&r, "one of them fell", 1);
    epochs_of(&r, up, 7);
    expect_healthy(&r, "three are few", 2);
}

static void huge(struct run *r, int n, double loss, double norm, double last)
{
    begin(r, 100);
    for (int i = 0; i < n; i++) {
        struct fr_point p = point(5900 + 100 * i);
        set(&p, FR_METRIC_LOSS, (i < n - 1 ? loss : last) * (1 + 0.1 * (i % 3)));
        set(&p, FR_METRIC_GRAD_NORM, norm * (1 + 0.1 * (i % 3)));
        add(r, &p);
    }
}

T_TEST(gone_before_the_first_line)
{
    struct run r;
    huge(&r, 20, 3.4e8, 7e5, 3.4e8);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 1);
    end(&r);
    huge(&r, 20, 3.4e8, 700, 3.4e8);
    expect_healthy(&r, "the squares of large numbers", 1);
    huge(&r, 20, 3.4e8, 7e5, 3.4e5);
    expect_healthy(&r, "it comes down", 2);
    huge(&r, 5, 3.4e8, 7e5, 3.4e8);
    expect(&r, FR_METRIC_LOSS, FR_FINDING_DIVERGE, 1);
    end(&r);
    huge(&r, 4, 3.4e8, 7e5, 3.4e8);
    expect_healthy(&r, "four are few", 3);
}

T_TEST(the_scale_is_lowered_to_where_it_is)
{
    struct run r;
    begin(&r, 98);
    add_text(&r, "[2021-01-26 21:34:09,190] [INFO] [fused_optimizer.py:316:_update_scale] Reducing dynamic loss scale from 2.0 to 1.0");
    for (int i = 0; i < 4; i++) {
        add_text(&r, "[2021-01-26 21:35:16,472] [INFO] [fused_optimizer.py:316:_update_scale] Reducing dynamic loss scale from 1 to 1");
    }
    expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 1);
    end(&r);
}

int main(void)
{
    return t_run();
}
