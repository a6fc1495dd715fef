/* SPDX-License-Identifier: Apache-2.0 */
/* fp8amax: delayed scaling of FP8 takes a tensor's scale from the maxima of earlier steps. A linear
 * layer is trained with inputs cast to e4m3; at one step the inputs grow. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define N       64 /* inputs */
#define M       4  /* outputs */
#define BATCH   8
#define STEPS   160
#define JUMP    100
#define HISTORY 16
#define RATE    4.0
#define TOP     448.0
#define E4M3    FR_F8_E4M3FN

static const char *const policies[] = {"saturate", "nan", NULL};

static const struct fr_repro_param params[] = {
    {"scale", 1000, 1e-6, 1e6, false, NULL, "how many times larger the inputs are for one step"},
    {"policy", 0, 0, 0, true, policies,
     "what a cast beyond 448 gives: 448 as in Transformer Engine, or NaN"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

enum { DELAYED, CURRENT, WIDE };

struct layer {
    int how;
    uint32_t overflow; /* FR_OVERFLOW_... of the cast */
    double *w, *teacher, *x, *q;
    double history[HISTORY];
    int n;
};

struct outcome {
    double before, at, after,
        last; /* relative loss at the step before the jump, at it, after it, at the end */
    double zeros_before, zeros_after; /* share of inputs that are 0 once cast */
    double clipped;                   /* share of inputs clipped or NaN at the jump */
    int broke;                        /* first step with a loss that is not finite, -1 none */
};

static double most(const double *v, int n)
{
    double m = 0;
    for (int i = 0; i < n; i++) {
        m = v[i] > m ? v[i] : m;
    }
    return m;
}

/* The factor that inputs are multiplied with before the cast. */
static double factor(struct layer *l, double amax)
{
    const double seen = l->how == CURRENT ? amax : most(l->history, HISTORY);
    l->history[l->n++ % HISTORY] = amax;
    return seen > 0 ? TOP / seen : 1;
}

static void cast(struct layer *l, double f)
{
    for (int i = 0; i < BATCH * N; i++) {
        l->q[i] = l->how == WIDE ? l->x[i] : fr_round(E4M3, l->x[i] * f, l->overflow) / f;
    }
}

/* Mean squared error relative to the target's size, and the gradient step on the casted inputs. */
static double step(struct layer *l)
{
    double error = 0, size = 0, squares = 0, g[M * N] = {0};
    for (int b = 0; b < BATCH; b++) {
        for (int o = 0; o < M; o++) {
            const double y = fr_lab_sum_products(l->w + o * N, l->q + b * N, N),
                         t = fr_lab_sum_products(l->teacher + o * N, l->x + b * N, N);
            error += (y - t) * (y - t);
            size += t * t;
            for (int i = 0; i < N; i++) {
                g[o * N + i] += (y - t) * l->q[b * N + i];
            }
        }
    }
    for (int i = 0; i < BATCH * N; i++) {
        squares += l->q[i] * l->q[i];
    }
    for (int i = 0; i < M * N; i++) { /* normalised by the inputs' size, as a norm layer does */
        l->w[i] = (float)(l->w[i] - RATE * g[i] / squares);
    }
    return error / size;
}

static void fill(struct fr_lab *lab, struct layer *l, int how, uint32_t overflow)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    l->how = how;
    l->overflow = overflow;
    l->n = 0;
    memset(l->history, 0, sizeof l->history);
    fr_rng_fill(&lab->rng, l->teacher, M * N, 1 / sqrt(N), FR_F32);
    memset(l->w, 0, M * N * sizeof *l->w);
}

/* Magnitudes spread over three decades, as activations are. */
static void draw(struct fr_lab *lab, struct layer *l, int i)
{
    const double grown = i == JUMP ? fr_lab_get(lab, "scale") : 1;
    for (int k = 0; k < BATCH * N; k++) {
        l->x[k] = fr_lab_to(FR_BF16, grown * fr_rng_normal(&lab->rng) * (k % 4 == 0 ? 0.01 : 1));
    }
}

static void train(struct fr_lab *lab, struct layer *l, const char *name, struct outcome *o)
{
    struct fr_curve *loss = fr_result_curve(lab->result, name, "step", true);
    *o = (struct outcome){.broke = -1};
    for (int i = 0; i < STEPS; i++) {
        draw(lab, l, i);
        double amax = fr_lab_look(l->x, BATCH * N).most;
        cast(l, factor(l, amax));
        const double zeros = (double)fr_lab_look(l->q, BATCH * N).zeros / (BATCH * N);
        double top = 0, lost = 0;
        for (int k = 0; k < BATCH * N; k++) {
            top = fabs(l->x[k]);
            lost += !(fabs(l->q[k]) > 0.9 * top) && top > amax / 100 ? 1.0 / (BATCH * N) : 0;
        }
        o->last = step(l);
        fr_curve_add(loss, o->last);
        o->before = i == JUMP - 1 ? o->last : o->before;
        o->zeros_before = i == JUMP - 1 ? zeros : o->zeros_before;
        o->at = i == JUMP ? o->last : o->at;
        o->clipped = i == JUMP ? lost : o->clipped;
        o->broke = !isfinite(o->last) && o->broke < 0 ? i : o->broke;
        o->after = i == JUMP + 1 ? o->last : o->after;
        o->zeros_after = i == JUMP + 2 ? zeros : o->zeros_after;
    }
}

static void fails(struct fr_lab *lab, struct layer *l, uint32_t overflow)
{
    struct fr_result *r = lab->result;
    struct outcome wide, bad, nan;
    fr_result_act(r, FR_ACT_FAILS, "the scale is yesterday's, and the jump does not fit");
    fr_result_say(r,
                  "A linear layer with inputs in FP8 e4m3, scaled by 448 over the largest "
                  "magnitude of the last %d steps. At step %d inputs "
                  "are %g times larger, for that step alone.",
                  HISTORY, JUMP, fr_lab_get(lab, "scale"));
    fill(lab, l, WIDE, overflow);
    train(lab, l, "relative loss, bf16", &wide);
    fill(lab, l, DELAYED, overflow);
    train(lab, l, "relative loss, delayed FP8", &bad);
    fr_result_claim(r, "spike", !(bad.at < 20 * bad.before) && wide.at < 3 * wide.before,
                    "the loss spikes in FP8 and not in bf16, on the same batch",
                    "%.2g to %.2g; bf16 %.2g to %.2g", bad.before, bad.at, wide.before, wide.at);
    fr_result_claim(r, "clipped", bad.clipped > 0.3,
                    "much of that step's tensor is clipped at 448 (or NaN)", "%.0f%%",
                    100 * bad.clipped);
    fill(lab, l, DELAYED, FR_OVERFLOW_IEEE);
    train(lab, l, "the same, casts to NaN", &nan);
    fr_result_claim(r, "nan-for-ever", isnan(nan.last) && nan.broke >= 0 && nan.broke <= JUMP,
                    "a cast that gives NaN instead of 448 does not even wait for the jump: 3.6% "
                    "above the history is enough, and the weights stay NaN",
                    "first NaN at step %d, %g at the end", nan.broke, nan.last);
    fr_result_claim(r, "flushed", bad.zeros_after > bad.zeros_before + 0.1,
                    "afterwards the old maximum stays in the history and small values flush to 0",
                    "%.0f%% zeros before, %.0f%% after", 100 * bad.zeros_before,
                    100 * bad.zeros_after);
}

static void casts(struct fr_lab *lab)
{
    static const char *const heads[] = {"value", "cast that saturates", "cast as in IEEE", NULL};
    static const double values[] = {448, 464, 465, 1e4, INFINITY, NAN};
    struct fr_table *t = fr_result_table(lab->result, "casts to e4m3", heads);
    for (int i = 0; i < 6; i++) {
        fr_table_cell(t, "%g", values[i]);
        fr_table_cell(t, "%g", fr_round(E4M3, values[i], FR_OVERFLOW_SATURATE));
        fr_table_cell(t, "%g", fr_round(E4M3, values[i], FR_OVERFLOW_IEEE));
    }
    const double tie = fr_round(E4M3, 464, FR_OVERFLOW_IEEE),
                 above = fr_round(E4M3, 465, FR_OVERFLOW_IEEE);
    fr_result_claim(lab->result, "limits",
                    tie == 448 && isnan(above) &&
                        fr_round(E4M3, INFINITY, FR_OVERFLOW_SATURATE) == 448,
                    "e4m3 has no Inf: beyond 464 a cast gives NaN or 448, and one that saturates "
                    "turns Inf into an innocent 448",
                    "464: %g, 465: %g", tie, above);
}

static void why(struct fr_lab *lab, struct layer *l, uint32_t overflow)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_WHY, "the largest number of e4m3 is 448, and the scale aims at it");
    fill(lab, l, DELAYED, overflow);
    for (int i = 0; i < JUMP; i++) {
        draw(lab, l, i);
        factor(l, fr_lab_look(l->x, BATCH * N).most);
    }
    draw(lab, l, JUMP);
    const double f = TOP / most(l->history, HISTORY);
    struct fr_chain *c = fr_result_chain(r, "the step of the jump");
    fr_chain_input(c, "x", FR_BF16, l->x, BATCH, N);
    fr_chain_input(c, "largest of the last 16 steps", FR_F32, l->history, 1, HISTORY);
    for (int i = 0; i < BATCH * N; i++) {
        l->q[i] = l->x[i] * f;
    }
    fr_chain_add(c, "x * 448 / largest", FR_F32, l->q, BATCH, N);
    const double scaled = c->n > 2 ? c->row[2].most : 0;
    for (int i = 0; i < BATCH * N; i++) {
        l->q[i] = fr_round(E4M3, l->q[i], FR_OVERFLOW_IEEE);
    }
    fr_chain_add(c, "cast that gives NaN", E4M3, l->q, BATCH, N);
    fr_result_claim(r, "scaled-too-large", scaled > 464,
                    "the scaled values are beyond what e4m3 holds", "largest %.4g, limit 464",
                    scaled);
    casts(lab);
    const double by_inf = TOP / INFINITY, by_zero = TOP / 0.0;
    fr_result_claim(r, "unguarded",
                    by_inf == 0 && isinf(by_zero) && isnan(0 * by_zero) && isnan(INFINITY * by_inf),
                    "a maximum of Inf makes the scale 0 and one of 0 makes it Inf, unless the "
                    "recipe guards both",
                    "448 / Inf = %g, 448 / 0 = %g", by_inf, by_zero);
}

static void fix(struct fr_lab *lab, struct layer *l, uint32_t overflow)
{
    struct fr_result *r = lab->result;
    struct outcome now;
    fr_result_act(r, FR_ACT_FIX, "current scaling: the scale of the tensor that is cast");
    fill(lab, l, CURRENT, overflow);
    train(lab, l, "relative loss, current FP8", &now);
    fr_result_claim(r, "no-spike", now.at < 20 * now.before && isfinite(now.last),
                    "the same jump passes without a spike", "%.2g to %.2g, at the end %.2g",
                    now.before, now.at, now.last);
    fr_result_claim(r, "not-flushed", now.zeros_after < now.zeros_before + 0.05,
                    "and small values are not flushed after it",
                    "%.0f%% zeros before, %.0f%% after", 100 * now.zeros_before,
                    100 * now.zeros_after);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct layer l = {.n = 0};
    l.w = fr_lab_vector(lab, M * N);
    l.teacher = fr_lab_vector(lab, M * N);
    l.x = fr_lab_vector(lab, BATCH * N);
    l.q = fr_lab_vector(lab, BATCH * N);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const uint32_t overflow =
        fr_lab_get(lab, "policy") == 0 ? FR_OVERFLOW_SATURATE : FR_OVERFLOW_IEEE;
    fails(lab, &l, overflow);
    why(lab, &l, overflow);
    fix(lab, &l, overflow);
    return 0;
}

/* ---- smoke test: the user's recipe ---- */

static const char *const smoke_policies[] = {"off", "delayed", "current", "mxfp8", NULL};

#define SPREAD 1024 /* elements: 32 blocks of MXFP8 */

/* One cast of x, grown from what the history has seen. */
static void smoke_cast(const struct fr_smoke *s, int how, uint32_t type, const double *x,
                       double seen, double *q)
{
    const struct fr_dtype_info *d = fr_dtype_info(type);
    if (how == FR_SMOKE_FP8_MX) {
        float in[SPREAD], out[SPREAD];
        uint8_t codes[SPREAD], scales[SPREAD / FR_MX_BLOCK];
        for (int i = 0; i < SPREAD; i++) {
            in[i] = (float)x[i];
        }
        (void)fr_mx_encode(type, in, SPREAD, codes, scales);
        (void)fr_mx_decode(type, codes, scales, SPREAD, out);
        for (int i = 0; i < SPREAD; i++) {
            q[i] = out[i];
        }
        return;
    }
    double f = d->max / seen; /* Transformer Engine: max / amax / 2^margin */
    for (int i = 0; how == FR_SMOKE_FP8_DELAYED && i < fabs(s->margin); i++) {
        f = s->margin > 0 ? f / 2 : f * 2;
    }
    for (int i = 0; i < SPREAD; i++) {
        q[i] = fr_round(type, x[i] * f, FR_OVERFLOW_SATURATE) / f;
    }
}

struct casted {
    double clipped, zeros; /* shares */
};

/* Clipped: further off than rounding takes an element, 1/16 of it in e4m3 and 1/8 in e5m2, or than
 * OCP MX lets the largest of a block be, 1/8. */
static struct casted look_cast(const double *x, const double *q, double most, double rounding)
{
    struct casted c = {0};
    for (int i = 0; i < SPREAD; i++) {
        const double v = fabs(x[i]);
        c.clipped += v > 0.1 * most && fabs(q[i]) < (1 - rounding) * v ? 1.0 / SPREAD : 0;
        c.zeros += q[i] == 0 && x[i] != 0 ? 1.0 / SPREAD : 0;
    }
    return c;
}

/* A tensor that grows for one step, and the step after it. */
static void jump(struct fr_lab *lab, int how, uint32_t type, double *x, double *q, bool gradients)
{
    const struct fr_smoke *s = lab->smoke;
    lab->rng.state = 1;
    for (int i = 0; i < SPREAD; i++) { /* as activations are, over three decades */
        x[i] = fr_rng_normal(&lab->rng) * (i % 4 == 0 ? 0.01 : 1);
    }
    const double usual = fr_lab_look(x, SPREAD).most;
    const bool delayed = how == FR_SMOKE_FP8_DELAYED;
    const double rounding = type == E4M3 && how != FR_SMOKE_FP8_MX ? 0x1.02p-4 : 0x1.02p-3;
    smoke_cast(s, how, type, x, usual, q);
    const double zeros = look_cast(x, q, usual, rounding).zeros;
    smoke_cast(s, how, type, x, delayed ? usual * s->growth : usual, q);
    const struct casted after = look_cast(x, q, usual, rounding);
    for (int i = 0; i < SPREAD; i++) {
        x[i] *= s->growth;
    }
    smoke_cast(s, how, type, x, delayed ? usual : usual * s->growth, q);
    const struct casted at = look_cast(x, q, usual * s->growth, rounding);
    fr_result_claim(lab->result, gradients ? "gradients-fit" : "fits", at.clipped == 0,
                    gradients ? "gradients that grow as said are not clipped"
                              : "a tensor that grows as said is not clipped",
                    "%s, %g times the usual amax: %.0f%% of the elements clipped",
                    fr_smoke_dtype(type), s->growth, 100 * at.clipped);
    fr_result_claim(lab->result, gradients ? "gradients-not-flushed" : "not-flushed",
                    after.zeros <= zeros + 0.1,
                    gradients ? "nor are gradients flushed after it"
                              : "and small values are not flushed to 0 while it is remembered",
                    "%.0f%% zeros before, %.0f%% for the next %g steps", 100 * zeros,
                    100 * after.zeros, delayed && s->fp8_recent != 1 ? s->history : 1);
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "a tensor that grows as said is not clipped";
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    const int how = s->policy >= 0 ? s->policy : s->fp8;
    double *x = fr_lab_vector(lab, SPREAD), *q = fr_lab_vector(lab, SPREAD);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fr_smoke_inputs(lab, "margin history growth");
    if (how < 0) {
        fr_result_unknown(r, "fits", says,
                          "not said: the FP8 recipe; give --policy off, delayed, current or "
                          "mxfp8, or Megatron arguments");
        return 0;
    }
    fr_result_say(r, "The recipe is '%s' (%s).", smoke_policies[how],
                  s->policy >= 0 ? "option" : s->from.fp8);
    if (how == FR_SMOKE_FP8_OFF) {
        fr_result_claim(r, "no-fp8", true, "nothing is cast to FP8", "FP8 is off");
        return 0;
    }
    if (!fr_smoke_needs(lab, "fits", says,
                        how != FR_SMOKE_FP8_DELAYED ? "growth"
                        : s->fp8_recent == 1        ? "margin growth"
                                                    : "margin history growth")) {
        return 0;
    }
    jump(lab, how, E4M3, x, q, false);
    if (s->fp8_hybrid == 1 && how != FR_SMOKE_FP8_MX) {
        jump(lab, how, FR_F8_E5M2, x, q, true);
    }
    return 0;
}

const struct fr_repro fr_repro_fp8amax = {
    .id = "fp8-amax-overflow",
    .summary =
        "delayed FP8 scaling meets a jump: clipped or NaN, then flushed; current scaling is not",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = smoke_policies,
};
