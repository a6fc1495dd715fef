/* SPDX-License-Identifier: Apache-2.0 */
/* Healthy runs of many kinds, noisy, many seeds each: nothing may be found but spikes that
 * recovered and scale searches. FR_SEEDS=4000 makes it a hunt. */
#include "unit/series_run.h"

typedef void (*kind_fn)(struct run *r, unsigned n);

static void language_model(struct run *r, unsigned n)
{
    double scale = 0.01 + 0.1 * uniform(r), start = 9 + 3 * uniform(r), warm = 5 + 60 * uniform(r);
    for (unsigned i = 0; i < n; i++) {
        struct fr_point p = point(i);
        double ramp = i < warm ? i / warm : 1;
        set(&p, FR_METRIC_LOSS, 2 + (start - 2) * exp(-ramp * (double)i / 60) + scale * normal(r));
        set(&p, FR_METRIC_GRAD_NORM, (0.3 + 10 * exp(-(double)i / 20)) * exp(0.4 * normal(r)));
        set(&p, FR_METRIC_STEP_TIME, 1.5 * exp(0.05 * normal(r)) * (uniform(r) < 0.02 ? 10 : 1));
        set(&p, FR_METRIC_LOSS_SCALE, 1);
        add(r, &p);
    }
}

/* Small batches: single losses vary by a factor of three, and tasks differ. */
static void fine_tuning(struct run *r, unsigned n)
{
    double wide = 0.1 + 0.4 * uniform(r), easy = 0.1 + 0.9 * uniform(r);
    for (unsigned i = 0; i < n; i++) {
        struct fr_point p = point(10 * i + 10);
        set(&p, FR_METRIC_LOSS, (uniform(r) < 0.3 ? easy : 1.4) * exp(wide * normal(r)));
        set(&p, FR_METRIC_GRAD_NORM, 0.8 * exp(0.7 * normal(r)));
        add(r, &p);
    }
}

/* Classification fades to a printed 0.0000. */
static void fading(struct run *r, unsigned n)
{
    double speed = 10 + 100 * uniform(r), wide = 0.2 + uniform(r);
    for (unsigned i = 0; i < n; i++) {
        double v = 0.7 * exp(-(double)i / speed) * exp(wide * normal(r));
        add1(r, 50 * i, FR_METRIC_LOSS, round(v * 1e4) / 1e4);
    }
}

/* Late in training: near zero with rare hard batches. */
static void near_zero(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        double v = 0.002 * exp(normal(r));
        add1(r, i, FR_METRIC_LOSS, uniform(r) < 0.05 ? 0.3 * uniform(r) : v);
    }
}

static void first_step_huge(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct fr_point p = point(i);
        set(&p, FR_METRIC_LOSS,
            (i == 0 ? 400 : 3 * exp(-(double)i / 100) + 1) * exp(0.05 * normal(r)));
        set(&p, FR_METRIC_GRAD_NORM, (i == 0 ? 5000 : 1) * exp(0.3 * normal(r)));
        set(&p, FR_METRIC_STEP_TIME, (i == 0 ? 60 : 0.4) * exp(0.1 * normal(r)));
        add(r, &p);
    }
}

/* Cosine restarts of the learning rate lift the loss again and again. */
static void warm_restarts(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        double base = 0.6 + 1.5 * exp(-(double)i / 80),
               wave = 0.3 * (1 + cos(6.2832 * (i % 50) / 100.0)) / 2;
        add1(r, i, FR_METRIC_LOSS, base * (1 + wave) + 0.03 * normal(r));
    }
}

/* A regression whose loss rises before it falls. */
static void bumpy_start(struct run *r, unsigned n)
{
    double top = 1.2 + 0.5 * uniform(r);
    for (unsigned i = 0; i < n; i++) {
        double v = i < 4 ? 12 * (1 + (top - 1) * i / 3.0) : 12 * top * exp(-(i - 3.0) / 5);
        struct fr_point p = point(-1);
        p.epoch = (i + 1) / 15.0;
        set(&p, FR_METRIC_LOSS, fmax(v, 0.1) * exp(0.06 * normal(r)));
        set(&p, FR_METRIC_GRAD_NORM, fmax(v, 0.1) * exp(0.2 * normal(r)));
        add(r, &p);
    }
}

static void resumed(struct run *r, unsigned n)
{
    int64_t step = 0;
    for (unsigned i = 0; i < n; i++, step++) {
        if (i == n / 2) {
            step -= step / 3;
        }
        add1(r, step, FR_METRIC_LOSS, 1.5 + 6 * exp(-(double)step / 40) + 0.05 * normal(r));
        if (i % 20 == 19) {
            add1(r, step, FR_METRIC_EVAL_LOSS,
                 1.6 + 6 * exp(-(double)step / 40) + 0.05 * normal(r));
        }
    }
}

/* fp16: the scale grows every so often and overflows; the gradient norm of that step is not
 * finite, the loss is fine. */
static void scaled(struct run *r, unsigned n)
{
    double scale = 65536;
    for (unsigned i = 0; i < n; i++) {
        bool over = i < 6 || (scale > 2048 && uniform(r) < 0.01);
        struct fr_point p = point(i);
        set(&p, FR_METRIC_LOSS, 2 + 0.1 * normal(r));
        set(&p, FR_METRIC_LOSS_SCALE, scale);
        set(&p, FR_METRIC_SKIPPED, over);
        set(&p, FR_METRIC_GRAD_NORM, 0.5 * exp(0.3 * normal(r)));
        add(r, &p);
        scale = over ? scale / 2 : i % 100 == 99 ? scale * 2 : scale;
    }
}

static void policy(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct fr_point p = point(i);
        p.flags = FR_POINT_RL;
        set(&p, FR_METRIC_LOSS, i < 10 ? 0 : 0.02 * normal(r));
        set(&p, FR_METRIC_REWARD, 0.3 + 0.1 * normal(r));
        add(r, &p);
    }
}

/* Two loaders, two speeds: half of the steps take twice as long. */
static void two_speeds(struct run *r, unsigned n)
{
    double share = 0.25 + 0.5 * uniform(r), slow = 1.3 + 2 * uniform(r);
    for (unsigned i = 0; i < n; i++) {
        struct fr_point p = point(i);
        set(&p, FR_METRIC_STEP_TIME, (uniform(r) < share ? slow : 1) * exp(0.02 * normal(r)));
        set(&p, FR_METRIC_THROUGHPUT,
            1000 * (uniform(r) < share ? 1 : slow) * exp(0.02 * normal(r)));
        set(&p, FR_METRIC_LOSS, (uniform(r) < share ? 3.0 : 0.8) * exp(0.05 * normal(r)));
        add(r, &p);
    }
}

static void overfit(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        add1(r, i, FR_METRIC_LOSS, 1.5 * exp(-(double)i / 30) + 0.01 + 0.002 * fabs(normal(r)));
        if (i % 5 == 4) {
            add1(r, i, FR_METRIC_EVAL_LOSS, 1.2 + 1.4 * i / (double)n + 0.02 * normal(r));
        }
    }
}

static const struct {
    const char *name;
    kind_fn make;
} healthy[] = {
    {"language model", language_model},
    {"fine-tuning", fine_tuning},
    {"fading", fading},
    {"near zero", near_zero},
    {"first step huge", first_step_huge},
    {"warm restarts", warm_restarts},
    {"bumpy start", bumpy_start},
    {"resumed", resumed},
    {"loss scale", scaled},
    {"policy", policy},
    {"two speeds", two_speeds},
    {"overfit", overfit},
};

T_TEST(healthy_series)
{
    const char *many = getenv("FR_SEEDS"); /* for a long hunt */
    unsigned seeds = many != NULL ? (unsigned)atoi(many) : 40;
    static const unsigned lengths[] = {3, 5, 8, 15, 40, 150, 700, 3000};
    for (unsigned k = 0; k < sizeof healthy / sizeof *healthy; k++) {
        for (unsigned seed = 0; seed < seeds; seed++) {
            struct run r;
            begin(&r, seed * 31 + k);
            healthy[k].make(&r, lengths[seed % 8]);
            expect_healthy(&r, healthy[k].name, seed);
        }
    }
}

int main(void)
{
    return t_run();
}
