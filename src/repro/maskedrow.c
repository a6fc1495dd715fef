/* SPDX-License-Identifier: Apache-2.0 */
/* maskedrow: left padding under a causal mask leaves the first queries without a key. One head of
 * attention with trained keys and values; the loss leaves padding out, and is poisoned by it. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define D     8
#define STEPS 40
#define RATE  0.1

static const char *const policies[] = {"minus-inf", "dtype-min", "unmask-self", "zeros", NULL};
enum { WITH_INF, WITH_MIN, UNMASK_SELF, ZEROS };

static const struct fr_repro_param params[] = {
    {"policy", WITH_INF, 0, 0, true, policies, "what masked scores become in the run that fails"},
    {"tokens", 8, 2, 64, true, NULL, "length of the sequence"},
    {"padding", 3, 0, 63, true, NULL, "padding tokens at its left"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct head {
    uint32_t n, pad;
    int policy;
    double *x, *target;        /* n x D */
    double *wk, *wv, *gk, *gv; /* D x D */
    double *k, *v, *p, *out;   /* n x D, n x D, n x n, n x D */
    double *dout, *dp, *dk, *dv;
};

static void build(struct fr_lab *lab, struct head *h)
{
    const uint32_t n = h->n = fr_lab_count(lab, "tokens");
    double **rows[] = {&h->x, &h->target, &h->k, &h->v, &h->out, &h->dout, &h->dk, &h->dv};
    double **squares[] = {&h->wk, &h->wv, &h->gk, &h->gv};
    h->pad = fr_lab_count(lab, "padding") < n ? fr_lab_count(lab, "padding") : n - 1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i] = fr_lab_vector(lab, n * D);
    }
    for (size_t i = 0; i < sizeof squares / sizeof *squares; i++) {
        *squares[i] = fr_lab_vector(lab, D * D);
    }
    h->p = fr_lab_vector(lab, n * n);
    h->dp = fr_lab_vector(lab, n * n);
}

static void fill(struct fr_lab *lab, struct head *h, int policy)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    h->policy = policy;
    fr_rng_fill(&lab->rng, h->x, h->n * D, 1, FR_F32);
    fr_rng_fill(&lab->rng, h->target, h->n * D, 0.3, FR_F32);
    fr_rng_fill(&lab->rng, h->wk, D * D, 0.3, FR_F32);
    fr_rng_fill(&lab->rng, h->wv, D * D, 0.3, FR_F32);
}

static bool masked(const struct head *h, uint32_t i, uint32_t j)
{
    if (h->policy == UNMASK_SELF && i == j) {
        return false;
    }
    return j > i || j < h->pad;
}

/* One row of scores, masked, and its softmax; steps to c when there is one. */
static void row(struct head *h, uint32_t i, struct fr_chain *c)
{
    double *p = h->p + i * h->n;
    const double fill = h->policy == WITH_MIN ? -65504 : -INFINITY;
    bool none = true;
    for (uint32_t j = 0; j < h->n; j++) {
        p[j] = fr_lab_to(FR_F16, fr_lab_sum_products(h->x + i * D, h->k + j * D, D) / sqrtf(D));
    }
    if (c != NULL) {
        fr_chain_add(c, "q @ k.T / sqrt(d)", FR_F16, p, 1, h->n);
    }
    for (uint32_t j = 0; j < h->n; j++) {
        p[j] = masked(h, i, j) ? fill : p[j];
        none &= masked(h, i, j);
    }
    if (c != NULL) {
        fr_chain_input(c, "scores + mask (Inf is wanted here)", FR_F16, p, 1, h->n);
    }
    fr_lab_softmax(FR_F32, p, h->n, p);
    if (h->policy == ZEROS && none) {
        memset(p, 0, h->n * sizeof *p);
    }
    if (c != NULL) {
        fr_chain_add(c, "softmax", FR_F32, p, 1, h->n);
    }
}

/* Mean squared error of the tokens that are no padding. */
static double forward(struct head *h)
{
    float loss = 0;
    for (uint32_t j = 0; j < h->n; j++) {
        fr_lab_matvec(FR_F32, h->wk, h->x + j * D, D, D, h->k + j * D);
        fr_lab_matvec(FR_F32, h->wv, h->x + j * D, D, D, h->v + j * D);
    }
    for (uint32_t i = 0; i < h->n; i++) {
        row(h, i, NULL);
        fr_lab_matvec_t(FR_F32, h->v, h->p + i * h->n, h->n, D, h->out + i * D);
        for (uint32_t d = 0; d < D; d++) {
            const float e = (float)(h->out[i * D + d] - h->target[i * D + d]);
            const bool counts =
                i >= h->pad; /* torch.where: the loss of padding is not even looked at */
            loss += counts ? e * e / (float)((h->n - h->pad) * D) : 0;
            h->dout[i * D + d] = counts ? 2 * e / (float)((h->n - h->pad) * D) : 0;
        }
    }
    return loss;
}

/* As autograd writes it: softmax by its result, matrix products over all rows. */
static void backward(struct head *h, struct fr_chain *c)
{
    const uint32_t n = h->n;
    memset(h->dk, 0, n * D * sizeof *h->dk);
    memset(h->dv, 0, n * D * sizeof *h->dv);
    for (uint32_t i = 0; i < n; i++) {
        double *dp = h->dp + i * n, *p = h->p + i * n;
        fr_lab_matvec(FR_F32, h->v, h->dout + i * D, n, D, dp);
        const double inner = fr_lab_sum_products(dp, p, n);
        if (c != NULL && i == 0) {
            fr_chain_input(c, "d out of the padding row: 0, the loss leaves it out", FR_F32,
                           h->dout, 1, D);
            fr_chain_input(c, "softmax of the row, from forward", FR_F32, p, 1, n);
        }
        for (uint32_t j = 0; j < n; j++) {
            dp[j] = (float)(p[j] * (float)(dp[j] - inner));
            for (uint32_t d = 0; d < D; d++) {
                h->dk[j * D + d] += dp[j] * h->x[i * D + d] / sqrt(D);
                h->dv[j * D + d] += p[j] * h->dout[i * D + d];
            }
        }
        if (c != NULL && i == 0) {
            fr_chain_add(c, "d scores = p * (dp - sum(dp * p))", FR_F32, dp, 1, n);
        }
    }
    memset(h->gk, 0, D * D * sizeof *h->gk);
    memset(h->gv, 0, D * D * sizeof *h->gv);
    for (uint32_t j = 0; j < n; j++) {
        for (uint32_t d = 0; d < D * D; d++) {
            h->gk[d] += h->dk[j * D + d / D] * h->x[j * D + d % D];
            h->gv[d] += h->dv[j * D + d / D] * h->x[j * D + d % D];
        }
    }
    if (c != NULL) {
        fr_chain_add(c, "dw of the values", FR_F32, h->gv, D, D);
        fr_chain_add(c, "dw of the keys", FR_F32, h->gk, D, D);
    }
}

struct outcome {
    double first, second, last; /* loss */
    uint32_t nan_rows, nan_grads;
};

static void train(struct head *h, struct fr_curve *loss, struct outcome *o)
{
    *o = (struct outcome){.nan_rows = 0};
    for (int step = 0; step < STEPS; step++) {
        o->last = forward(h);
        backward(h, NULL);
        fr_curve_add(loss, o->last);
        if (step == 0) {
            o->first = o->last;
            o->nan_grads = fr_lab_look(h->gk, D * D).nans + fr_lab_look(h->gv, D * D).nans;
            for (uint32_t i = 0; i < h->n; i++) {
                o->nan_rows += fr_lab_look(h->out + i * D, D).nans > 0;
            }
        }
        o->second = step == 1 ? o->last : o->second;
        for (uint32_t i = 0; i < D * D; i++) {
            h->wk[i] = (float)(h->wk[i] - RATE * h->gk[i]);
            h->wv[i] = (float)(h->wv[i] - RATE * h->gv[i]);
        }
    }
}

static void fails(struct fr_lab *lab, struct head *h, int policy)
{
    struct fr_result *r = lab->result;
    struct outcome o;
    fr_result_act(r, FR_ACT_FAILS, "the first loss is fine, its gradient is NaN");
    fr_result_say(r,
                  "%u tokens, the first %u of them padding, causal attention; masked scores become "
                  "'%s'. The loss is a mean over "
                  "the real tokens only.",
                  h->n, h->pad, policies[policy]);
    fill(lab, h, policy);
    train(h, fr_result_curve(r, "loss", "step", false), &o);
    fr_result_claim(r, "padding-rows-nan", o.nan_rows == h->pad && h->pad > 0,
                    "each query without a key gives NaN, the others do not",
                    "%u rows NaN, %u padding", o.nan_rows, h->pad);
    fr_result_claim(r, "loss-still-finite", isfinite(o.first), "the loss of that step is finite",
                    "%.4g", o.first);
    fr_result_claim(
        r, "gradient-is-nan", o.nan_grads == 2 * D * D,
        "every element of the weight gradients is NaN although the loss masks these rows",
        "%u of %d", o.nan_grads, 2 * D * D);
    fr_result_claim(r, "next-loss-nan", isnan(o.second) && isnan(o.last),
                    "after one step the loss is NaN for ever", "%g, at the end %g", o.second,
                    o.last);
}

static void why(struct fr_lab *lab, struct head *h, int policy)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_WHY,
                  "the sum of the exponentials is 0, and 0 * NaN is NaN in backward");
    fill(lab, h, policy);
    forward(h);
    struct fr_chain *c = fr_result_chain(r, "the first padding row, forward");
    row(h, 0, c);
    fr_result_claim(r, "softmax-first", fr_chain_first_is(c, "softmax"),
                    "softmax is the first NaN: its maximum is -Inf, and -Inf - -Inf is NaN",
                    "first: %s", fr_chain_first(c));
    c = fr_result_chain(r, "the same row, backward");
    backward(h, c);
    fr_result_claim(r, "zero-times-nan", fr_chain_first_is(c, "d scores = p * (dp - sum(dp * p))"),
                    "softmax's backward multiplies its NaN result with the zero gradient",
                    "first: %s", fr_chain_first(c));
    fill(lab, h, WITH_MIN);
    forward(h);
    const double *p = h->p, even = 1.0 / h->n;
    double worst = 0, future = 0;
    for (uint32_t j = 0; j < h->n; j++) {
        worst = fabs(p[j] - even) > worst ? fabs(p[j] - even) : worst;
        future += j > 0 ? p[j] : 0;
    }
    fr_result_claim(r, "min-is-uniform", h->pad > 0 && worst < 1e-6,
                    "with the dtype's minimum in place of -inf the row is a plain average of "
                    "everything, the future too",
                    "weight on later tokens %.3g", future);
}

static void fix(struct fr_lab *lab, struct head *h)
{
    struct fr_result *r = lab->result;
    struct outcome self, zeros;
    fr_result_act(r, FR_ACT_FIX, "give such rows a key, or zeros");
    fill(lab, h, UNMASK_SELF);
    train(h, fr_result_curve(r, "loss, own key unmasked", "step", false), &self);
    fill(lab, h, ZEROS);
    train(h, fr_result_curve(r, "loss, rows made zeros", "step", false), &zeros);
    fr_result_claim(r, "unmask-self-learns", self.nan_grads == 0 && self.last < 0.9 * self.first,
                    "with its own position unmasked the run learns", "loss %.4g to %.4g",
                    self.first, self.last);
    fr_result_claim(
        r, "zeros-learns", zeros.nan_grads == 0 && fabs(zeros.last - self.last) < 1e-6,
        "with zeros for rows without keys it is the same run: real tokens never see padding",
        "loss %.4g to %.4g", zeros.first, zeros.last);
}

/* A sequence of the user's length, with padding at its left, through causal attention. */
static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    struct head h = {.n = (uint32_t)(s->seq < 1024 ? s->seq : 1024)};
    h.pad = (uint32_t)(s->padding < h.n ? s->padding : h.n);
    h.policy = s->policy < 0 ? (s->fused ? ZEROS : WITH_INF) : s->policy;
    h.x = fr_lab_vector(lab, h.n * D);
    h.k = fr_lab_vector(lab, h.n * D);
    h.p = fr_lab_vector(lab, h.n * h.n);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fr_rng_fill(&lab->rng, h.x, h.n * D, 1, FR_F16);
    memcpy(h.k, h.x, h.n * D * sizeof *h.k);
    uint32_t nans = 0, wrong = 0;
    for (uint32_t i = 0; i < h.n; i++) {
        row(&h, i, NULL);
        const struct fr_lab_stats stats = fr_lab_look(h.p + i * h.n, h.n);
        double future = 0;
        for (uint32_t j = i + 1; j < h.n; j++) {
            future += h.p[i * h.n + j];
        }
        nans += stats.nans > 0;
        wrong += future > 0;
    }
    fr_result_say(r,
                  "%u tokens (at most 1024 are tried), %u of them padding at the left, masked "
                  "scores become '%s'",
                  h.n, h.pad, policies[h.policy]);
    fr_result_claim(r, "no-nan-row", nans == 0, "no query's attention is NaN", "%u rows NaN", nans);
    fr_result_claim(r, "no-future", wrong == 0, "no query looks at later tokens", "%u rows do",
                    wrong);
    return 0;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct head h;
    build(lab, &h);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const int policy = (int)fr_lab_get(lab, "policy");
    fails(lab, &h, policy);
    why(lab, &h, policy);
    fix(lab, &h);
    return 0;
}

const struct fr_repro fr_repro_maskedrow = {
    .id = "attention-fully-masked-row",
    .summary = "left padding under a causal mask: a finite loss, a NaN gradient",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
