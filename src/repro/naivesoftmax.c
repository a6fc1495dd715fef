/* SPDX-License-Identifier: Apache-2.0 */
/* naivesoftmax: a classifier trained with exp(x) / sum(exp(x)): its logits grow as it learns, until
 * exp is Inf. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define CLASSES 4
#define IN      8
#define SAMPLES 64
#define STEPS   160

static const char *const policies[] = {"fp32", "fp16", NULL};

static const struct fr_repro_param params[] = {
    {"scale", 40, 0, 1000, false, NULL,
     "length of one sample's feature vector, in those of the others"},
    {"policy", 0, 0, 0, true, policies, "type that the exponentials are stored in"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct task {
    uint32_t dtype;
    double *x, *w, *logits, *p; /* SAMPLES x IN, CLASSES x IN, CLASSES */
    uint32_t label[SAMPLES];
};

/* exp and division as written in a book. */
static void naive(uint32_t dtype, const double *x, double *p, struct fr_chain *c)
{
    float sum = 0;
    for (int k = 0; k < CLASSES; k++) {
        p[k] = fr_lab_to(dtype, fr_lab_exp(x[k]));
        sum += (float)p[k];
    }
    const double total = fr_lab_to(dtype, sum);
    if (c != NULL) {
        fr_chain_add(c, "exp(x)", dtype, p, 1, CLASSES);
        fr_chain_add(c, "sum", dtype, &total, 1, 1);
    }
    for (int k = 0; k < CLASSES; k++) {
        p[k] = fr_lab_to(dtype, (float)p[k] / (float)total);
    }
    if (c != NULL) {
        fr_chain_add(c, "exp(x) / sum", dtype, p, 1, CLASSES);
    }
}

static void stable(uint32_t dtype, const double *x, double *p, struct fr_chain *c)
{
    fr_lab_softmax(dtype, x, CLASSES, p);
    if (c != NULL) {
        fr_chain_add(c, "exp(x - max) / sum", dtype, p, 1, CLASSES);
    }
}

typedef void softmax_fn(uint32_t dtype, const double *x, double *p, struct fr_chain *c);

struct outcome {
    double loss; /* of the last step */
    double most; /* largest logit before the first NaN, or at the end */
    int broke;   /* step of the first NaN, -1 none */
};

static void fill(struct fr_lab *lab, struct task *t)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    memset(t->w, 0, CLASSES * IN * sizeof *t->w);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        t->label[i] = fr_rng_below(&lab->rng, CLASSES);
        for (int k = 0; k < IN; k++) { /* a cluster per class: separable, so logits grow for ever */
            const double centre = (uint32_t)k % CLASSES == t->label[i] ? 1 : 0;
            const double length = i == 0 ? fr_lab_get(lab, "scale") : 1;
            t->x[i * IN + k] = (float)(length * (centre + 0.2 * fr_rng_normal(&lab->rng)));
        }
    }
}

static void train(struct task *t, softmax_fn *softmax, struct fr_curve *loss_curve,
                  struct fr_curve *logit_curve, struct outcome *ret)
{
    *ret = (struct outcome){.broke = -1};
    double g[CLASSES * IN];
    for (int step = 0; step < STEPS; step++) {
        float loss = 0;
        double most = 0;
        memset(g, 0, sizeof g);
        for (uint32_t i = 0; i < SAMPLES; i++) {
            const double *x = t->x + i * IN;
            fr_lab_matvec(FR_F32, t->w, x, CLASSES, IN, t->logits);
            softmax(t->dtype, t->logits, t->p, NULL);
            for (int k = 0; k < CLASSES; k++) {
                most = t->logits[k] <= most ? most : t->logits[k]; /* NaN goes through */
            }
            loss -= (float)fr_lab_log(t->p[t->label[i]]) / SAMPLES;
            for (int k = 0; k < CLASSES * IN; k++) {
                g[k] += (t->p[k / IN] - ((uint32_t)(k / IN) == t->label[i])) * x[k % IN] / SAMPLES;
            }
        }
        ret->loss = loss;
        fr_curve_add(loss_curve, loss);
        fr_curve_add(logit_curve, most);
        if (!isfinite(loss) && ret->broke < 0) {
            ret->broke = step;
        }
        ret->most = ret->broke < 0 || ret->broke == step ? most : ret->most;
        for (int k = 0; k < CLASSES * IN; k++) {
            t->w[k] = (float)(t->w[k] - 0.5 * g[k]);
        }
    }
}

/* The largest x whose exponential is finite in dtype. */
static double exp_limit(uint32_t dtype)
{
    double good = 0, bad = 1000;
    while (bad - good > 1e-9) {
        const double middle = (good + bad) / 2;
        if (isfinite(fr_lab_to(dtype, fr_lab_exp(middle)))) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    return good;
}

static void why(struct fr_lab *lab, struct task *t)
{
    struct fr_result *r = lab->result;
    const double limit = exp_limit(t->dtype);
    fr_result_act(r, FR_ACT_WHY, "exp is Inf, and Inf / Inf is NaN");
    const double x[CLASSES] = {ceil(limit), 2, 1, 0};
    struct fr_chain *c = fr_result_chain(r, "four logits, the first just above the limit");
    fr_chain_input(c, "x", FR_F32, x, 1, CLASSES);
    naive(t->dtype, x, t->p, c);
    fr_result_claim(r, "exp-first", fr_chain_first_is(c, "exp(x)") && isnan(t->p[0]),
                    "the first Inf is the exponential, the quotient is NaN", "first: %s",
                    fr_chain_first(c));
    const double half = exp_limit(FR_F16), single = exp_limit(FR_F32), twice = exp_limit(FR_F64);
    fr_result_claim(r, "limits",
                    fabs(half - 11.09) < 0.005 && fabs(single - 88.72) < 0.005 &&
                        fabs(twice - 709.78) < 0.005,
                    "exp overflows above 11.09 in fp16, 88.72 in fp32, 709.78 in fp64 (there "
                    "Python's math.exp raises)",
                    "%.4f, %.4f, %.4f", half, single, twice);
    const double e = fr_lab_to(t->dtype, fr_lab_exp(x[0]));
    const double sigmoid = e / (1 + e);
    fr_result_claim(r, "sigmoid", isnan(sigmoid),
                    "a sigmoid written exp(x) / (1 + exp(x)) is NaN at the same place",
                    "%g at x = %g", sigmoid, x[0]);
}

/* A row of the user's vocabulary with one logit as large as theirs. */
static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const uint32_t types[] = {FR_F32, FR_F16};
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    const uint32_t n = (uint32_t)s->vocab, dtype = s->policy < 0 ? s->dtype : types[s->policy];
    double *x = fr_lab_vector(lab, n);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    x[0] = s->scale;
    const double e = fr_lab_to(dtype, fr_lab_exp(x[0])), loss = fr_lab_cross_entropy(x, n, 0);
    fr_result_say(r, "%u outputs, exponentials in %s, largest logit %g", n,
                  fr_dtype_info(dtype)->name, s->scale);
    fr_result_claim(r, "exp-fits", isfinite(e), "a bare exp of your largest logit is finite",
                    "%g, the limit is %.4g", e, exp_limit(dtype));
    fr_result_claim(r, "library-loss", isfinite(loss),
                    "cross entropy with the maximum subtracted is finite", "%.4g", loss);
    return 0;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    struct task t = {.dtype = fr_lab_get(lab, "policy") == 0 ? FR_F32 : FR_F16};
    struct outcome bad, good;
    t.x = fr_lab_vector(lab, SAMPLES * IN);
    t.w = fr_lab_vector(lab, CLASSES * IN);
    t.logits = fr_lab_vector(lab, CLASSES);
    t.p = fr_lab_vector(lab, CLASSES);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fill(lab, &t);
    fr_result_act(r, FR_ACT_FAILS, "the better it learns, the nearer the end");
    fr_result_say(r,
                  "A linear classifier of %d classes, its loss -log(exp(x_y) / sum(exp(x))) "
                  "written out, exponentials in %s.",
                  CLASSES, policies[(int)fr_lab_get(lab, "policy")]);
    struct fr_curve *loss = fr_result_curve(r, "loss", "step", true);
    train(&t, naive, loss, fr_result_curve(r, "largest logit", "step", false), &bad);
    fr_result_claim(r, "loss-is-nan", bad.broke > 0 && isnan(bad.loss),
                    "the loss falls, then is NaN for ever", "first bad at step %d, loss then %g",
                    bad.broke, bad.loss);
    fr_result_claim(r, "logit-at-limit", bad.broke >= 0 && bad.most > exp_limit(t.dtype),
                    "at that step the largest logit is beyond the limit of exp", "%.4g, limit %.4g",
                    bad.most, exp_limit(t.dtype));
    why(lab, &t);
    fr_result_act(r, FR_ACT_FIX, "subtract the row's maximum first, as every library does");
    fill(lab, &t);
    loss = fr_result_curve(r, "loss", "step", true);
    train(&t, stable, loss, fr_result_curve(r, "largest logit", "step", false), &good);
    fr_result_claim(r, "stable-learns", good.broke < 0 && good.loss < 0.1,
                    "the same run ends with a small loss", "%.3g after %d steps", good.loss, STEPS);
    fr_result_claim(r, "beyond-the-limit", good.most > exp_limit(t.dtype),
                    "although its logits pass the limit as well", "%.4g, limit %.4g", good.most,
                    exp_limit(t.dtype));
    return 0;
}

const struct fr_repro fr_repro_naivesoftmax = {
    .id = "naive-softmax-exp-overflow",
    .summary = "a softmax written as in a book, in training: logits grow until exp is Inf",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
