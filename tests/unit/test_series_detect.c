/* SPDX-License-Identifier: Apache-2.0 */
/* Detectors on series made here: each kind where it must be found, and healthy ones where nothing may be. Noise comes from a
 * fixed generator, so a failure repeats. */
#include <math.h>

#include "base/arena.h"
#include "series/series.h"
#include "support/t.h"

/* ---- a run under test */

struct run {
    struct fr_series *s;
    struct fr_arena arena;
    fr_findings found;
    uint64_t line;
    struct fr_who who;
    uint64_t rnd;
};

static double uniform(struct run *r)
{
    r->rnd ^= r->rnd << 13;
    r->rnd ^= r->rnd >> 7;
    r->rnd ^= r->rnd << 17;
    return (double)(r->rnd >> 11) / 9007199254740992.0;
}

static double normal(struct run *r)
{
    double u = uniform(r), v = uniform(r);
    return sqrt(-2 * log(u + 1e-300)) * cos(6.283185307179586 * v);
}

static void begin(struct run *r, unsigned seed)
{
    *r = (struct run){.arena = FR_ARENA_INIT(0), .who = FR_WHO_NONE, .rnd = 0x9e3779b97f4a7c15u * (seed + 1)};
    for (int i = 0; i < 8; i++) {
        uniform(r);
    }
    if (fr_series_new(&r->s) != 0) {
        abort();
    }
}

static struct fr_point point(int64_t step)
{
    struct fr_point p = {.step = step, .max_step = -1, .epoch = NAN, .attempted = NAN, .best = NAN, .global_batch = -1};
    return p;
}

static void set(struct fr_point *p, enum fr_metric m, double v)
{
    p->present |= 1u << m;
    p->value[m] = v;
}

static void add(struct run *r, const struct fr_point *p)
{
    struct fr_when when = FR_WHEN_NONE;
    r->line++;
    fr_series_add(r->s, p, &r->who, &when, r->line, r->line * 100, FR_SV("the line"));
}

static void add1(struct run *r, int64_t step, enum fr_metric m, double v)
{
    struct fr_point p = point(step);
    set(&p, m, v);
    add(r, &p);
}

static void add_text(struct run *r, const char *text)
{
    struct fr_point p;
    struct fr_when when = FR_WHEN_NONE;
    r->line++;
    if (fr_point_parse(fr_sv_z(text), ~0ull, &p)) {
        fr_series_add(r->s, &p, &r->who, &when, r->line, r->line * 100, fr_sv_z(text));
    }
}

static void finish(struct run *r)
{
    T_EQ_INT(fr_series_finish(r->s, &r->arena, &r->found), 0);
}

static void end(struct run *r)
{
    fr_vec_free(r->found.v);
    fr_arena_release(&r->arena);
    fr_series_free(&r->s);
}

static const struct fr_finding *find(const struct run *r, enum fr_metric m, enum fr_finding_kind k)
{
    for (uint32_t i = 0; i < r->found.n; i++) {
        if (r->found.v[i].metric == m && r->found.v[i].kind == k) {
            return &r->found.v[i];
        }
    }
    return NULL;
}

static bool harmless(const struct fr_finding *f)
{
    return f->kind == FR_FINDING_SPIKE || f->kind == FR_FINDING_RECOVERED || f->kind == FR_FINDING_SCALE_SEARCH;
}

static void expect_healthy(struct run *r, const char *what, unsigned seed)
{
    finish(r);
    t_checks_++;
    for (uint32_t i = 0; i < r->found.n; i++) {
        const struct fr_finding *f = &r->found.v[i];
        if (!harmless(f)) {
            T_FAIL("%s (seed %u): %s %s at line %llu of %llu: %.*s", what, seed, fr_metric_name((enum fr_metric)f->metric),
                   fr_finding_name((enum fr_finding_kind)f->kind), (unsigned long long)f->line, (unsigned long long)r->line, FR_SV_ARG(f->note));
        }
    }
    end(r);
}

/* Finishes, expects the finding to begin at `line`, and returns it (or a zeroed one). */
static struct fr_finding expect(struct run *r, enum fr_metric m, enum fr_finding_kind k, uint64_t line)
{
    static const struct fr_finding none;
    if (r->found.n == 0) {
        finish(r);
    }
    const struct fr_finding *f = find(r, m, k);
    t_checks_++;
    if (f == NULL) {
        T_FAIL("no %s %s", fr_metric_name(m), fr_finding_name(k));
        return none;
    }
    if (f->line != line) {
        T_FAIL("%s %s begins at line %llu, want %llu", fr_metric_name(m), fr_finding_name(k), (unsigned long long)f->line, (unsigned long long)line);
    }
    T_OK(f->note.n > 10 && f->text.n > 0);
    return *f;
}

/* ---- healthy kinds: n points each, noisy */

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
        set(&p, FR_METRIC_LOSS, (i == 0 ? 400 : 3 * exp(-(double)i / 100) + 1) * exp(0.05 * normal(r)));
        set(&p, FR_METRIC_GRAD_NORM, (i == 0 ? 5000 : 1) * exp(0.3 * normal(r)));
        set(&p, FR_METRIC_STEP_TIME, (i == 0 ? 60 : 0.4) * exp(0.1 * normal(r)));
        add(r, &p);
    }
}

/* Cosine restarts of the learning rate lift the loss again and again. */
static void warm_restarts(struct run *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        double base = 0.6 + 1.5 * exp(-(double)i / 80), wave = 0.3 * (1 + cos(6.2832 * (i % 50) / 100.0)) / 2;
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
            add1(r, step, FR_METRIC_EVAL_LOSS, 1.6 + 6 * exp(-(double)step / 40) + 0.05 * normal(r));
        }
    }
}

/* fp16: the scale grows every so often and overflows; the gradient norm of that step is not finite, the loss is fine. */
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
        set(&p, FR_METRIC_THROUGHPUT, 1000 * (uniform(r) < share ? 1 : slow) * exp(0.02 * normal(r)));
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
    {"language model", language_model}, {"fine-tuning", fine_tuning}, {"fading", fading}, {"near zero", near_zero},
    {"first step huge", first_step_huge}, {"warm restarts", warm_restarts}, {"bumpy start", bumpy_start}, {"resumed", resumed},
    {"loss scale", scaled}, {"policy", policy}, {"two speeds", two_speeds}, {"overfit", overfit},
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

/* ---- what must be found */

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
    add_text(&r, " iteration 10/ 900 | elapsed time per iteration (ms): 400.0 | learning rate: 1.0E-04 | lm loss: 4.5E+00 | loss scale: 1.0 | grad norm: 1.5 | "
                 "number of skipped iterations:   0 | number of nan iterations:   0 |");
    for (int i = 0; i < 2; i++) {
        add_text(&r, " iteration 20/ 900 | elapsed time per iteration (ms): 400.0 | learning rate: 1.0E-04 | loss scale: 1.0 | grad norm: nan | "
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
    add_text(&r, "| epoch 009 | valid on 'valid' subset | valid_loss 9.25 | num_updates 5000 | best 4.125");
    expect(&r, FR_METRIC_EVAL_LOSS, FR_FINDING_DIVERGE, 1);
    end(&r);
}

static void overflow(struct run *r, double from, double to)
{
    char line[200];
    snprintf(line, sizeof line, "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: %.0f, reducing to %.0f", from, to);
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
            snprintf(line, sizeof line, "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to %g", s);
            add_text(&r, line);
        }
    }
    f = expect(&r, FR_METRIC_LOSS_SCALE, FR_FINDING_COLLAPSE, 1);
    T_EQ_INT(f.n_bad, 15);
    end(&r);

    begin(&r, 63);
    add_text(&r, "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.");
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
            add1(&r, i, inverse ? FR_METRIC_THROUGHPUT : FR_METRIC_STEP_TIME, inverse ? 1000 / v : v);
        }
        finish(&r);
        const struct fr_finding *f = find(&r, inverse ? FR_METRIC_THROUGHPUT : FR_METRIC_STEP_TIME, FR_FINDING_DROP);
        T_OK(f != NULL && f->line >= 198 && f->line <= 202 && f->terminal); /* a noisy last good point may belong to it */
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

    begin(&r, 83); /* the batch doubled: that is why */
    for (int i = 0; i < 200; i++) {
        struct fr_point p = point(i);
        p.global_batch = i < 100 ? 256 : 512;
        set(&p, FR_METRIC_STEP_TIME, (i < 100 ? 1.0 : 1.9) * exp(0.02 * normal(&r)));
        add(&r, &p);
    }
    expect_healthy(&r, "batch doubled", 0);
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
    for (int i = 0; i < 100000; i++) { /* every second point is bad: findings do not grow with the run */
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
static void see(void *ctx, enum fr_metric m, const struct fr_who *who, uint64_t points, int64_t first_step, int64_t last_step, double last)
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
