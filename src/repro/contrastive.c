/* SPDX-License-Identifier: Apache-2.0 */
/* contrastive: CLIP in miniature: two linear encoders, normalised features, a learnt logit scale
 * exp(t), Adam. Without a clamp the scale runs away once the pairs are told apart. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define PAIRS   32
#define IN      8
#define OUT     2
#define STEPS   400
#define W       (OUT * IN)
#define WEIGHTS (2 * W + 1) /* both encoders, and t */

static const char *const policies[] = {"none", "clamp", NULL};

static const struct fr_repro_param params[] = {
    {"scale", 100, 1, 60000, false, NULL, "where the clamp holds the logit scale, as CLIP does"},
    {"policy", 0, 0, 0, true, policies, "whether the run that fails is clamped"},
    {"rate", 0.05, 0, 1, false, NULL, "learning rate of Adam"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct clip {
    double *x[2];                  /* PAIRS x IN: the two views of the training pairs */
    double *held[2];               /* pairs that are not trained on */
    double *w, *g, *m, *v;         /* WEIGHTS */
    double *raw[2], *f[2], *df[2]; /* PAIRS x OUT */
    double norm[2][PAIRS];
    double *logits, *dlogits; /* PAIRS x PAIRS */
    double *p;                /* PAIRS */
    double power1, power2;
};

static void build(struct fr_lab *lab, struct clip *c)
{
    double **weights[] = {&c->w, &c->g, &c->m, &c->v};
    for (int i = 0; i < 2; i++) {
        c->x[i] = fr_lab_vector(lab, PAIRS * IN);
        c->held[i] = fr_lab_vector(lab, PAIRS * IN);
        c->raw[i] = fr_lab_vector(lab, PAIRS * OUT);
        c->f[i] = fr_lab_vector(lab, PAIRS * OUT);
        c->df[i] = fr_lab_vector(lab, PAIRS * OUT);
    }
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        *weights[i] = fr_lab_vector(lab, WEIGHTS);
    }
    c->logits = fr_lab_vector(lab, PAIRS * PAIRS);
    c->dlogits = fr_lab_vector(lab, PAIRS * PAIRS);
    c->p = fr_lab_vector(lab, PAIRS);
}

/* Two views of each pair that differ by noise. near: how far pair 1 is from pair 0; near-duplicates
 * are in every large data set, and only a large scale tells them apart. */
static void pairs(struct fr_lab *lab, double *const x[2], double noise, double near)
{
    double both[PAIRS * IN];
    for (int i = 0; i < PAIRS * IN; i++) {
        both[i] = fr_rng_normal(&lab->rng);
        both[i] = near > 0 && i / IN == 1 ? both[i - IN] + near * both[i] : both[i];
        x[0][i] = both[i] + noise * fr_rng_normal(&lab->rng);
        x[1][i] = both[i] + noise * fr_rng_normal(&lab->rng);
    }
}

static void fill(struct fr_lab *lab, struct clip *c)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    pairs(lab, c->x, 0.01, 0.1);
    pairs(lab, c->held, 0.3, 0);
    fr_rng_fill(&lab->rng, c->w, 2 * W, 1 / sqrt(IN), FR_F32);
    c->w[2 * W] = fr_lab_log(1 / 0.07); /* CLIP's start */
    memset(c->m, 0, WEIGHTS * sizeof *c->m);
    memset(c->v, 0, WEIGHTS * sizeof *c->v);
    c->power1 = c->power2 = 1;
}

static void encode(struct clip *c, double *const x[2])
{
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < PAIRS; i++) {
            double *raw = c->raw[side] + i * OUT;
            fr_lab_matvec(FR_F32, c->w + side * W, x[side] + i * IN, OUT, IN, raw);
            c->norm[side][i] = sqrtf(fr_lab_sum_products(raw, raw, OUT));
            for (int k = 0; k < OUT; k++) {
                c->f[side][i * OUT + k] = (float)(raw[k] / c->norm[side][i]);
            }
        }
    }
}

/* The symmetric loss; logits are stored in half, as under autocast. grad: dlogits too. */
static double loss_of(struct clip *c, double *const x[2], bool grad)
{
    const double scale = (float)fr_lab_exp(c->w[2 * W]);
    double loss = 0, column[PAIRS];
    encode(c, x);
    for (int i = 0; i < PAIRS * PAIRS; i++) {
        const double cosine =
            fr_lab_sum_products(c->f[0] + i / PAIRS * OUT, c->f[1] + i % PAIRS * OUT, OUT);
        c->logits[i] = fr_lab_to(FR_F16, scale * fr_lab_to(FR_F16, cosine));
        c->dlogits[i] = 0;
    }
    for (int i = 0; i < PAIRS; i++) {
        double *row = c->logits + i * PAIRS;
        for (int k = 0; k < PAIRS; k++) {
            column[k] = c->logits[k * PAIRS + i];
        }
        loss += (fr_lab_cross_entropy(row, PAIRS, (size_t)i) +
                 fr_lab_cross_entropy(column, PAIRS, (size_t)i)) /
                (2 * PAIRS);
        fr_lab_softmax(FR_F32, row, PAIRS, c->p);
        for (int k = 0; grad && k < PAIRS; k++) {
            c->dlogits[i * PAIRS + k] += (c->p[k] - (k == i)) / (2 * PAIRS);
        }
        fr_lab_softmax(FR_F32, column, PAIRS, c->p);
        for (int k = 0; grad && k < PAIRS; k++) {
            c->dlogits[k * PAIRS + i] += (c->p[k] - (k == i)) / (2 * PAIRS);
        }
    }
    return loss;
}

static void backward(struct clip *c)
{
    const double scale = (float)fr_lab_exp(c->w[2 * W]);
    memset(c->g, 0, WEIGHTS * sizeof *c->g);
    for (int side = 0; side < 2; side++) {
        memset(c->df[side], 0, PAIRS * OUT * sizeof *c->df[side]);
    }
    for (int i = 0; i < PAIRS * PAIRS; i++) {
        const double *a = c->f[0] + i / PAIRS * OUT, *b = c->f[1] + i % PAIRS * OUT;
        for (int k = 0; k < OUT; k++) {
            c->df[0][i / PAIRS * OUT + k] += c->dlogits[i] * scale * b[k];
            c->df[1][i % PAIRS * OUT + k] += c->dlogits[i] * scale * a[k];
        }
        c->g[2 * W] += c->dlogits[i] * c->logits[i]; /* d/dt of exp(t) cos */
    }
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < PAIRS; i++) {
            double *df = c->df[side] + i * OUT;
            const double *f = c->f[side] + i * OUT, along = fr_lab_sum_products(df, f, OUT);
            for (int k = 0; k < W; k++) {
                c->g[side * W + k] += (df[k / IN] - along * f[k / IN]) / c->norm[side][i] *
                                      c->x[side][i * IN + k % IN];
            }
        }
    }
}

static void adam(struct clip *c, double rate, double top)
{
    c->power1 *= 0.9;
    c->power2 *= 0.98;
    for (int i = 0; i < WEIGHTS; i++) {
        c->m[i] = 0.9 * c->m[i] + 0.1 * c->g[i];
        c->v[i] = 0.98 * c->v[i] + 0.02 * c->g[i] * c->g[i];
        const double step = c->m[i] / (1 - c->power1) / (sqrt(c->v[i] / (1 - c->power2)) + 1e-8);
        c->w[i] = (float)(c->w[i] - rate * step);
    }
    if (top > 0 && c->w[2 * W] > fr_lab_log(top)) { /* clamp_(0, ln 100), as CLIP and open_clip */
        c->w[2 * W] = fr_lab_log(top);
    }
}

struct outcome {
    double first, last, held_last; /* losses */
    double scale;                  /* the last finite one */
    double swapped;                /* loss of the last batch with two captions exchanged */
    int past_clamp, broke;         /* steps; -1 never */
};

static void train(struct fr_lab *lab, struct clip *c, bool clamp, struct outcome *o)
{
    const double top = fr_lab_get(lab, "scale"), rate = fr_lab_get(lab, "rate");
    struct fr_curve *loss = fr_result_curve(lab->result, "loss", "step", false);
    struct fr_curve *scale = fr_result_curve(lab->result, "logit scale", "step", true);
    struct fr_curve *held = fr_result_curve(lab->result, "loss of pairs held out", "step", false);
    fill(lab, c);
    *o = (struct outcome){.past_clamp = -1, .broke = -1};
    for (int i = 0; i < STEPS; i++) {
        o->held_last = loss_of(c, c->held, false);
        o->last = loss_of(c, c->x, true);
        o->first = i == 0 ? o->last : o->first;
        const double s = fr_lab_exp(c->w[2 * W]);
        o->scale = isfinite(s) && o->broke < 0 ? s : o->scale;
        o->past_clamp = s > top * 1.001 && o->past_clamp < 0 ? i : o->past_clamp;
        o->broke = !isfinite(o->last) && o->broke < 0 ? i : o->broke;
        fr_curve_add(loss, o->last);
        fr_curve_add(scale, s);
        fr_curve_add(held, o->held_last);
        backward(c);
        adam(c, rate, clamp ? top : 0);
    }
    for (int k = 0; k < IN; k++) { /* captions 2 and 3 change places */
        const double kept = c->x[1][2 * IN + k];
        c->x[1][2 * IN + k] = c->x[1][3 * IN + k];
        c->x[1][3 * IN + k] = kept;
    }
    o->swapped = loss_of(c, c->x, false);
}

static void why(struct fr_lab *lab, struct clip *c)
{
    struct fr_result *r = lab->result;
    fr_result_act(
        r, FR_ACT_WHY,
        "telling pairs apart, a larger scale is always better, and Adam's steps do not shrink");
    fill(lab, c);
    for (int i = 0; i < 60; i++) { /* until the pairs are told apart, clamped */
        loss_of(c, c->x, true);
        backward(c);
        adam(c, fr_lab_get(lab, "rate"), 100);
    }
    c->w[2 * W] = fr_lab_log(70000);
    loss_of(c, c->x, true);
    const double s = (float)fr_lab_exp(c->w[2 * W]);
    struct fr_chain *t = fr_result_chain(r, "one batch, had the scale gone on to 70000");
    fr_chain_input(t, "features", FR_F32, c->f[0], PAIRS, OUT);
    fr_chain_add(t, "exp(t)", FR_F32, &s, 1, 1);
    fr_chain_add(t, "exp(t) * cosines", FR_F16, c->logits, PAIRS, PAIRS);
    fr_chain_add(t, "softmax - 1", FR_F32, c->dlogits, PAIRS, PAIRS);
    fr_result_claim(r, "logits-first", fr_chain_first_is(t, "exp(t) * cosines"),
                    "the scaled cosine is the first Inf: a cosine is at most 1, the scale is not",
                    "first: %s", fr_chain_first(t));
    /* Features that all point the same way. */
    for (int i = 0; i < W; i++) {
        c->w[i] = c->w[W + i] = i / IN == 0 ? 1 : 0;
    }
    for (int i = 0; i < PAIRS * IN; i++) {
        c->held[0][i] = c->held[1][i] = 1;
    }
    c->w[2 * W] = fr_lab_log(100);
    const double same = loss_of(c, c->held, false), want = fr_lab_log(PAIRS);
    fr_result_claim(r, "equal-is-ln-batch", fabs(same - want) < 1e-3,
                    "the other collapse, equal features, is a loss of ln(batch) at any scale",
                    "%.4f, ln %d = %.4f", same, PAIRS, want);
    const double best = fr_lab_log(1 + (PAIRS - 1) * fr_lab_exp(-2));
    fr_result_claim(r, "scale-one", best > 0.3 * want,
                    "a scale that weight decay pulls to 1 cannot do better than this, even with "
                    "cosines of 1 and -1",
                    "loss %.3f of ln %d = %.3f", best, PAIRS, want);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    struct clip c;
    struct outcome bad, good;
    build(lab, &c);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const double top = fr_lab_get(lab, "scale");
    fr_result_act(r, FR_ACT_FAILS,
                  "the logit scale runs away while the training loss looks perfect");
    fr_result_say(r,
                  "%d pairs, two of them alike, two linear encoders, a logit scale that starts at "
                  "14.3 and is learnt with Adam; logits "
                  "in fp16.",
                  PAIRS);
    train(lab, &c, fr_lab_get(lab, "policy") == 1, &bad);
    fr_result_claim(r, "passes-clamp", bad.past_clamp > 0 && bad.scale > 2 * top,
                    "the scale passes the value that CLIP clamps it at, and goes on",
                    "at step %d, %.4g at the end", bad.past_clamp, bad.scale);
    fr_result_claim(r, "looks-well", bad.last < 0.1 * bad.first, "the training loss looks perfect",
                    "%.3g to %.3g", bad.first, bad.last);
    fr_result_claim(r, "held-out-explodes", bad.held_last > 5 * fr_lab_log(PAIRS),
                    "the loss of pairs that are held out is far above that of guessing, ln(batch)",
                    "%.4g, ln %d = %.3g", bad.held_last, PAIRS, fr_lab_log(PAIRS));
    why(lab, &c);
    fr_result_act(r, FR_ACT_FIX, "clamp the scale at %g after each step", top);
    train(lab, &c, true, &good);
    fr_result_claim(r, "clamped-learns", good.past_clamp < 0 && good.last < 0.2 * good.first,
                    "the same run stays at or below the clamp and tells its pairs apart",
                    "loss %.3g to %.3g, scale %.4g", good.first, good.last, good.scale);
    fr_result_claim(r, "held-out-bounded", bad.held_last > 2 * good.held_last,
                    "the loss of held-out pairs stays bounded", "%.3g at the end", good.held_last);
    fr_result_claim(r, "swap-is-bounded", bad.swapped > 2 * good.swapped,
                    "two captions exchanged cost scale times margin: a spike without the clamp",
                    "%.3g with it, %.4g without", good.swapped, bad.swapped);
    return 0;
}

/* ---- smoke test: the user's clamp, rate and batch ---- */

/* What keeps the logit scale down: a clamp, or a run too short for Adam to raise it. */
static double bound(struct fr_lab *lab)
{
    static const char says[] = "the logit scale cannot pass 100, or its clamp";
    const struct fr_smoke *s = lab->smoke;
    const bool clamped = s->policy == 1 || (s->policy < 0 && fr_smoke_said(s, "clamp"));
    if (s->policy < 0 && !clamped) {
        fr_result_unknown(lab->result, "bounded", says,
                          "not said: whether the scale is clamped after each step (no file says "
                          "it); give --policy none, or --set clamp=N");
        return NAN;
    }
    if (!fr_smoke_needs(lab, "bounded", says, clamped ? "clamp" : "logit-scale lr steps")) {
        return NAN;
    }
    if (clamped) {
        fr_result_claim(lab->result, "bounded", true, says, "clamped at %g", s->clamp);
        return s->clamp;
    }
    /* A step of Adam is about the learning rate, in the logarithm of the scale. */
    const double t = fr_lab_log(s->logit_scale) + s->lr * s->steps,
                 top = t < 700 ? fr_lab_exp(t) : INFINITY;
    fr_result_claim(lab->result, "bounded", top <= 100, says,
                    "from %g, %g steps of %g can take it to %.4g", s->logit_scale, s->steps, s->lr,
                    top);
    return top;
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char fits[] = "a cosine of 1 times that scale is a number";
    static const char apart[] =
        "it is large enough to tell the pairs apart: a loss below a tenth of ln(pairs)";
    const struct fr_smoke *s = lab->smoke;
    (void)err;
    fr_smoke_inputs(lab, "dtype clamp logit-scale lr steps pairs");
    const double top = bound(lab);
    if (isnan(top)) {
        return 0;
    }
    if (fr_smoke_needs(lab, "logits-fit", fits, "dtype")) {
        const double logit = fr_lab_to(s->dtype, (float)top);
        fr_result_claim(lab->result, "logits-fit", isfinite(logit), fits, "%.4g in %s", logit,
                        fr_smoke_dtype(s->dtype));
    }
    if (fr_smoke_needs(lab, "tells-apart", apart, "pairs")) {
        const double loss = fr_lab_log(1 + (s->pairs - 1) * fr_lab_exp(top < 700 ? -top : -700));
        const double all = fr_lab_log(s->pairs);
        fr_result_claim(lab->result, "tells-apart", loss < 0.1 * all, apart,
                        "pairs at a cosine of 1, the others at 0: %.4g of %.4g", loss, all);
    }
    return 0;
}

const struct fr_repro fr_repro_contrastive = {
    .id = "contrastive-temperature-collapse",
    .summary = "a contrastive run whose logit scale runs away, with and without the clamp",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
