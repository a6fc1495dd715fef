/* SPDX-License-Identifier: Apache-2.0 */
/* adameps: Adam whose states, weights and eps live in half. A table of embeddings and a read-out;
 * each step sees some rows only. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define ROWS  24
#define D     8
#define BATCH 8
#define STEPS 120
#define BETA1 0.9
#define BETA2 0.999
#define N     (ROWS * D)

static const char *const policies[] = {"fp16", "fp32", NULL};

static const struct fr_repro_param params[] = {
    {"policy", 0, 0, 0, true, policies, "type of weights and states in the run that fails"},
    {"eps", 1e-8, 0, 1, false, NULL, "Adam's eps"},
    {"rate", 0.01, 0, 1, false, NULL, "learning rate"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct adam {
    uint32_t dtype;
    double eps, rate;
    double *w, *m, *v, *g, *denominator, *update;
    double *target;
    double power1, power2; /* beta ** step */
    uint32_t step;
};

static void build(struct fr_lab *lab, struct adam *a)
{
    double **all[] = {&a->w, &a->m, &a->v, &a->g, &a->denominator, &a->update, &a->target};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i] = fr_lab_vector(lab, N);
    }
}

static void fill(struct fr_lab *lab, struct adam *a, uint32_t dtype, double eps)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    a->dtype = dtype;
    a->eps = eps;
    a->rate = fr_lab_get(lab, "rate");
    a->step = 0;
    a->power1 = a->power2 = 1;
    memset(a->m, 0, N * sizeof *a->m);
    memset(a->v, 0, N * sizeof *a->v);
    fr_rng_fill(&lab->rng, a->w, N, 0.3, FR_F16);
    fr_rng_fill(&lab->rng, a->target, N, 0.3, FR_F16);
}

/* Mean squared error over the whole table; gradients only of the rows in this step's batch: the
 * mean is over a batch of thousands of tokens, so they are small. */
static double gradients(struct adam *a)
{
    float loss = 0;
    for (uint32_t i = 0; i < N; i++) {
        const float e = (float)(a->w[i] - a->target[i]);
        loss += e * e / N;
        const uint32_t row = i / D, first = a->step * BATCH % ROWS;
        const bool seen = (row + ROWS - first) % ROWS < BATCH;
        a->g[i] = seen ? fr_lab_to(a->dtype, e / 1024) : 0;
    }
    return loss;
}

/* torch.optim.Adam, operation by operation: each stores its result in the states' type. */
static void update(struct adam *a, struct fr_chain *c)
{
    a->step++;
    a->power1 *= BETA1;
    a->power2 *= BETA2;
    const double correct1 = 1 - a->power1, correct2 = sqrt(1 - a->power2);
    for (uint32_t i = 0; i < N; i++) {
        a->m[i] = fr_lab_to(a->dtype, (float)(a->m[i] + (1 - BETA1) * (a->g[i] - a->m[i])));
        const double kept = fr_lab_to(a->dtype, (float)(BETA2 * a->v[i]));
        a->v[i] = fr_lab_to(a->dtype, (float)(kept + (1 - BETA2) * a->g[i] * a->g[i]));
        const double root =
            fr_lab_to(a->dtype, fr_lab_to(a->dtype, sqrtf((float)a->v[i])) / correct2);
        a->denominator[i] = fr_lab_to(a->dtype, root + (float)a->eps);
        a->update[i] = (float)(a->m[i] / a->denominator[i]);
        a->w[i] = fr_lab_to(a->dtype, (float)(a->w[i] - a->rate / correct1 * a->update[i]));
    }
    if (c != NULL) {
        fr_chain_input(c, "g", a->dtype, a->g, 1, N);
        fr_chain_add(c, "exp_avg", a->dtype, a->m, 1, N);
        fr_chain_input(c, "exp_avg_sq (zeros are expected where g is 0)", a->dtype, a->v, 1, N);
        fr_chain_input(c, "sqrt(exp_avg_sq) + eps", a->dtype, a->denominator, 1, N);
        fr_chain_add(c, "exp_avg / denominator", FR_F32, a->update, 1, N);
        fr_chain_add(c, "weight", a->dtype, a->w, 1, N);
    }
}

static double train(struct adam *a, struct fr_curve *loss, double *first)
{
    double last = 0;
    for (int i = 0; i < STEPS; i++) {
        last = gradients(a);
        *first = i == 0 ? last : *first;
        if (loss != NULL) {
            fr_curve_add(loss, last);
        }
        update(a, NULL);
    }
    return gradients(a);
}

/* The largest gradient whose first second moment, (1 - beta2) g^2, is 0 in half. */
static double lost_gradient(void)
{
    double zero = 0, kept = 1;
    for (int i = 0; i < 100; i++) {
        const double g = (zero + kept) / 2;
        if (fr_lab_to(FR_F16, (float)((1 - BETA2) * g * g)) == 0) {
            zero = g;
        } else {
            kept = g;
        }
    }
    return zero;
}

static void fails(struct fr_lab *lab, struct adam *a, uint32_t dtype, double eps)
{
    struct fr_result *r = lab->result;
    double first = 0;
    fr_result_act(r, FR_ACT_FAILS, "the loss is fine, the weights after one step are not");
    fr_result_say(r,
                  "A table of %d rows; each step's batch holds %d of them. Weights, both Adam "
                  "states and eps = %g in %s.",
                  ROWS, BATCH, eps, policies[dtype == FR_F16 ? 0 : 1]);
    fill(lab, a, dtype, eps);
    const double before = gradients(a);
    update(a, NULL);
    uint32_t untouched_nan = 0, touched_inf = 0;
    for (uint32_t i = 0; i < N; i++) {
        untouched_nan += a->g[i] == 0 && isnan(a->w[i]);
        touched_inf += a->g[i] != 0 && !isfinite(a->w[i]);
    }
    const uint32_t untouched = fr_lab_look(a->g, N).zeros;
    fr_result_claim(r, "loss-was-fine", isfinite(before), "the loss before the step is finite",
                    "%.4g", before);
    fr_result_claim(r, "untouched-are-nan", untouched_nan == untouched,
                    "every weight without a gradient is NaN: 0 / 0", "%u of %u", untouched_nan,
                    untouched);
    fr_result_claim(r, "touched-are-inf", touched_inf > (N - untouched) / 2,
                    "weights with a small gradient are Inf: m / 0", "%u of %u", touched_inf,
                    N - untouched);
    fill(lab, a, dtype, eps);
    const double last = train(a, fr_result_curve(r, "loss", "step", false), &first);
    fr_result_claim(r, "loss-is-nan", isnan(last), "the loss is NaN from the second step on",
                    "%.4g, then %g", first, last);
}

static void why(struct fr_lab *lab, struct adam *a, uint32_t dtype, double eps)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_WHY, "eps and the second moment are both 0 in half");
    fill(lab, a, dtype, eps);
    gradients(a);
    struct fr_chain *c = fr_result_chain(r, "the first step");
    update(a, c);
    fr_result_claim(r, "quotient-first", fr_chain_first_is(c, "exp_avg / denominator"),
                    "the quotient is the first that is not finite", "first: %s", fr_chain_first(c));
    const double stored = fr_lab_to(FR_F16, eps);
    fr_result_claim(r, "eps-is-zero", stored == 0,
                    "the eps is 0 in half (everything up to 2.98e-8 is)", "%g becomes %g", eps,
                    stored);
    const double lost = lost_gradient();
    fr_result_claim(
        r, "moment-is-zero", fabs(lost - 5.46e-3) < 2e-5,
        "a first gradient up to 5.46e-3 leaves a second moment of 0: 0.001 g^2 is below 2.98e-8",
        "up to %.4g", lost);
}

static void fix(struct fr_lab *lab, struct adam *a, double eps)
{
    static const char *const heads[] = {"eps, states in half", "largest step / learning rate",
                                        "loss after the run", NULL};
    static const double tries[] = {1e-4, 1e-5, 1e-6};
    struct fr_result *r = lab->result;
    double first = 0, largest[3], last[3];
    fr_result_act(r, FR_ACT_FIX, "states and master weights in fp32");
    fill(lab, a, FR_F32, eps);
    const double good = train(a, fr_result_curve(r, "loss", "step", false), &first);
    fr_result_claim(r, "fp32-learns", good < 0.1 * first, "the same run in fp32 learns",
                    "loss %.4g to %.4g", first, good);
    struct fr_table *t = fr_result_table(r, "the fallback: an eps that half can hold", heads);
    for (int i = 0; i < 3; i++) {
        fill(lab, a, FR_F16, tries[i]);
        gradients(a);
        update(a, NULL);
        largest[i] = fr_lab_look(a->update, N).most / (1 - BETA1);
        fill(lab, a, FR_F16, tries[i]);
        last[i] = train(a, NULL, &first);
        fr_table_cell(t, "%g", tries[i]);
        fr_table_cell(t, "%.3g", largest[i]);
        fr_table_cell(t, "%.3g", last[i]);
    }
    fr_result_claim(r, "eps-trade", isfinite(last[0]) && last[0] < first && largest[2] > 100,
                    "a larger eps is finite, but the step is m / eps instead of about 1: with 1e-6 "
                    "hundreds of times too long",
                    "1e-4: %.3g, 1e-6: %.3g", largest[0], largest[2]);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct adam a;
    build(lab, &a);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const uint32_t dtype = fr_lab_get(lab, "policy") == 0 ? FR_F16 : FR_F32;
    const double eps = fr_lab_get(lab, "eps");
    fails(lab, &a, dtype, eps);
    why(lab, &a, dtype, eps);
    fix(lab, &a, eps);
    return 0;
}

/* ---- smoke test: the user's eps, betas and types ---- */

static const char *const smoke_policies[] = {"fp16", "bf16", "fp32", NULL};
static const char short_step[] =
    "no gradient from 1 down to 1e-18 makes a step above ten learning rates";

/* The first step of one weight, over the learning rate: about 1 when all is well. */
static double first_step(const struct fr_smoke *s, uint32_t dtype, double g)
{
    const double kept = fr_lab_to(dtype, g);
    const double m = fr_lab_to(dtype, (float)((1 - s->beta1) * kept)),
                 v = fr_lab_to(dtype, (float)((1 - s->beta2) * kept * kept));
    const double root =
        fr_lab_to(dtype, fr_lab_to(dtype, sqrtf((float)v)) / sqrt(1 - s->beta2));
    const double denominator = fr_lab_to(dtype, root + (float)s->adam_eps);
    return (float)(m / denominator) / (1 - s->beta1);
}

static void steps(struct fr_lab *lab, uint32_t dtype)
{
    static const char *const heads[] = {"gradient", "first step / learning rate", NULL};
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    double worst = 0, at = 0;
    struct fr_table *t = fr_result_table(r, "first steps", heads);
    for (int power = -1; power >= -8; power--) {
        double g = 1;
        for (int i = power; i < 0; i++) {
            g /= 10;
        }
        fr_table_cell(t, "%.0e", g);
        fr_table_cell(t, "%.3g", fabs(first_step(s, dtype, g)));
    }
    for (double g = 1; g > 0x1p-60; g *= 0.75) {
        const double u = fabs(first_step(s, dtype, g));
        const bool worse = fr_lab_to(dtype, g) != 0 && !(u <= worst) && !isnan(worst);
        at = worse ? g : at;
        worst = worse ? u : worst;
    }
    fr_result_claim(r, "step-is-short", worst <= 10,
                    short_step, "the longest, for a gradient of %.3g, is %.4g", at, worst);
    if (fr_smoke_said(s, "lr")) {
        fr_result_say(r, "With the learning rate %g that is a change of %.4g.", s->lr,
                      s->lr * worst);
    }
    if (fr_smoke_said(s, "grad")) {
        const double u = fabs(first_step(s, dtype, s->grad));
        fr_result_claim(r, "your-gradient", u <= 10,
                        "nor does the gradient that was named", "%g makes one of %.4g", s->grad,
                        u);
    }
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "Adam's eps is not 0 in the type of the states";
    static const uint32_t types[] = {FR_F16, FR_BF16, FR_F32};
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    (void)err;
    fr_smoke_inputs(lab, "adam-eps beta1 beta2 lr grad");
    const uint32_t dtype = s->policy >= 0 ? types[s->policy] : s->states;
    if (dtype == FR_DTYPE_UNKNOWN) {
        fr_result_unknown(r, "eps-kept", says,
                          "not said: the type of Adam's states; give --policy fp16, bf16 or fp32");
        return 0;
    }
    fr_result_say(r, "Adam's states are in %s (%s).", fr_smoke_dtype(dtype),
                  s->policy >= 0 ? "option" : s->from.states);
    if (!fr_smoke_needs(lab, "eps-kept", says, "adam-eps")) {
        return 0;
    }
    const double eps = fr_lab_to(dtype, s->adam_eps);
    fr_result_claim(r, "eps-kept", eps > 0, says, "%g becomes %.4g", s->adam_eps, eps);
    const double zero = 0 / eps;
    fr_result_claim(r, "untouched-stay", !isnan(zero),
                    "a weight that never had a gradient stays as it is", "0 / eps is %g", zero);
    if (fr_smoke_needs(lab, "step-is-short",
                       short_step, "beta1 beta2")) {
        steps(lab, dtype);
    }
    return 0;
}

const struct fr_repro fr_repro_adameps = {
    .id = "adamw-eps-fp16",
    .summary = "Adam with states in fp16: eps is 0, the second moment is 0, the weights are NaN",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = smoke_policies,
};
