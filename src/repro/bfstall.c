/* SPDX-License-Identifier: Apache-2.0 */
/* bfstall: weights in bf16 whose updates are less than half a unit in the last place. A linear
 * model, signs of its gradient times the learning rate (Adam's steady step), a decaying rate. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define SAMPLES 96
#define STEPS   300

static const char *const policies[] = {"bf16", "fp16", "fp32", NULL};

static const struct fr_repro_param params[] = {
    {"hidden", 32, 2, 512, true, NULL, "weights of the model"},
    {"scale", 1, 1e-3, 100, false, NULL, "size of the weights to be learnt"},
    {"policy", 0, 0, 0, true, policies, "type of the weights in the run that fails"},
    {"rate", 1e-3, 1e-8, 1, false, NULL, "learning rate, which falls to a tenth along a line"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

enum { PURE, MASTER, STOCHASTIC, KAHAN };

struct model {
    uint32_t n, dtype;
    double rate;
    double *x, *target, *y, *w, *master, *lost, *g, *start;
};

static void fill(struct fr_lab *lab, struct model *m)
{
    const double scale = fr_lab_get(lab, "scale");
    fr_rng_fill(&lab->rng, m->x, SAMPLES * m->n, 1 / sqrt(m->n), FR_BF16);
    for (uint32_t i = 0; i < m->n; i++) { /* magnitudes near scale; the start is a tenth off */
        const double sign = fr_rng_below(&lab->rng, 2) ? 1 : -1;
        m->master[i] = sign * scale * (1 + fr_rng_uniform(&lab->rng));
        m->start[i] = fr_lab_to(FR_BF16, m->master[i] + 0.1 * scale * fr_rng_normal(&lab->rng));
    }
    fr_lab_matvec(FR_F32, m->x, m->master, SAMPLES, m->n, m->target);
}

static double gradients(struct model *m)
{
    float loss = 0;
    memset(m->g, 0, m->n * sizeof *m->g);
    for (uint32_t s = 0; s < SAMPLES; s++) {
        const double e = fr_lab_sum_products(m->x + s * m->n, m->w, m->n) - m->target[s];
        loss += (float)(e * e) / SAMPLES;
        for (uint32_t i = 0; i < m->n; i++) {
            m->g[i] += 2 * e * m->x[s * m->n + i] / SAMPLES;
        }
    }
    return loss;
}

/* v rounded to one of its two neighbours, with the probability that makes the mean right. */
static double stochastic(struct fr_rng *g, uint32_t dtype, double v)
{
    const double near = fr_lab_to(dtype, v), rest = v - near;
    if (rest == 0) {
        return near;
    }
    double step = fabs(near) * 0x1p-9, other = near; /* to the neighbour on the other side of v */
    while (other == near) {
        other = fr_lab_to(dtype, near + (rest > 0 ? step : -step));
        step *= 2;
    }
    return fr_rng_uniform(g) < rest / (other - near) ? other : near;
}

/* One update; the number of stored weights that did not change although they should. */
static uint32_t update(struct fr_lab *lab, struct model *m, int how, double rate)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const double before = m->w[i], step = -rate * (m->g[i] > 0 ? 1 : m->g[i] < 0 ? -1 : 0);
        if (how == MASTER) {
            m->master[i] = (float)(m->master[i] + step);
            m->w[i] = fr_lab_to(m->dtype, m->master[i]);
        } else if (how == STOCHASTIC) {
            m->w[i] = stochastic(&lab->rng, m->dtype, before + step);
        } else if (how == KAHAN) { /* the part that was lost is kept in a second bf16 number */
            const double want = fr_lab_to(m->dtype, step + m->lost[i]);
            m->w[i] = fr_lab_to(m->dtype, before + want);
            m->lost[i] = fr_lab_to(m->dtype, want - fr_lab_to(m->dtype, m->w[i] - before));
        } else {
            m->w[i] = fr_lab_to(m->dtype, before + step);
        }
        still += m->w[i] == before && step != 0;
    }
    return still;
}

struct outcome {
    double first, last; /* loss */
    double still;       /* share of weights unchanged in a step, over the last tenth of the run */
};

static void train(struct fr_lab *lab, struct model *m, uint32_t dtype, int how, const char *name,
                  struct outcome *o)
{
    struct fr_curve *loss = fr_result_curve(lab->result, name, "step", true);
    uint64_t still = 0;
    m->dtype = dtype;
    memcpy(m->w, m->start, m->n * sizeof *m->w);
    memcpy(m->master, m->start, m->n * sizeof *m->w);
    memset(m->lost, 0, m->n * sizeof *m->lost);
    fr_lab_cast(dtype, m->w, m->n);
    for (int i = 0; i < STEPS; i++) {
        o->last = gradients(m);
        o->first = i == 0 ? o->last : o->first;
        fr_curve_add(loss, o->last);
        const uint32_t s = update(lab, m, how, m->rate * (1 - 0.9 * i / STEPS));
        still += i >= STEPS - STEPS / 10 ? s : 0;
    }
    o->last = gradients(m);
    o->still = (double)still / (m->n * (STEPS / 10.0));
}

/* The largest power of two that can be added to 1 in dtype without effect. */
static double lost_addend(uint32_t dtype)
{
    double a = 1;
    while (fr_lab_to(dtype, 1 + a) != 1) {
        a /= 2;
    }
    return a;
}

static void acts(struct fr_lab *lab, struct model *m)
{
    struct fr_result *r = lab->result;
    static const uint32_t types[] = {FR_BF16, FR_F16, FR_F32};
    const int policy = (int)fr_lab_get(lab, "policy");
    struct outcome pure, master, wide, random, kahan;
    fr_result_act(r, FR_ACT_FAILS, "the loss stops falling while everything is finite");
    fr_result_say(r,
                  "%u weights of magnitude 1 to 2 times %g, steps of %g falling to a tenth. The "
                  "same run, weights in fp32 and in %s:",
                  m->n, fr_lab_get(lab, "scale"), m->rate, policies[policy]);
    train(lab, m, FR_F32, PURE, "loss, weights in fp32", &wide);
    train(lab, m, types[policy], PURE, "loss, low precision", &pure);
    fr_result_claim(r, "stalls", pure.last > 0.5 * pure.first && wide.last < 0.2 * wide.first,
                    "the loss stays where fp32's falls", "%.3g to %.3g; fp32 to %.3g", pure.first,
                    pure.last, wide.last);
    fr_result_claim(r, "bit-identical", pure.still > 0.9,
                    "nearly all weights are bit-identical after a step", "%.1f%%",
                    100 * pure.still);

    fr_result_act(r, FR_ACT_WHY, "an update below half a unit in the last place is rounded away");
    memcpy(m->w, m->start, m->n * sizeof *m->w);
    gradients(m);
    struct fr_chain *c = fr_result_chain(r, "one step at the first learning rate");
    fr_chain_input(c, "weight", types[policy], m->w, 1, m->n);
    fr_chain_add(c, "gradient", FR_F32, m->g, 1, m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        m->lost[i] = -m->rate * (m->g[i] > 0 ? 1 : -1);
        m->y[i] = fr_lab_to(types[policy], m->w[i] + m->lost[i]) - m->w[i];
    }
    fr_chain_add(c, "update", FR_F32, m->lost, 1, m->n);
    fr_chain_add(c, "what arrives: (weight + update) - weight", types[policy], m->y, 1, m->n);
    fr_result_claim(r, "nothing-arrives", c->n > 0 && c->row[c->n - 1].zeros > 0.9 * m->n,
                    "of the update nothing arrives in the stored weight", "%u of %u are 0",
                    c->n > 0 ? c->row[c->n - 1].zeros : 0, m->n);
    const double bf = lost_addend(FR_BF16), half = lost_addend(FR_F16);
    fr_result_claim(r, "lost-addend", bf == 0x1p-8 && half == 0x1p-11,
                    "1 + 1/256 is 1 in bf16 (in fp16 it takes 1/2048)", "1/%g and 1/%g", 1 / bf,
                    1 / half);

    fr_result_act(r, FR_ACT_FIX, "fp32 master weights; or rounding that keeps the sum");
    train(lab, m, FR_BF16, MASTER, "bf16, fp32 masters", &master);
    train(lab, m, FR_BF16, STOCHASTIC, "bf16, stochastic rounding", &random);
    train(lab, m, FR_BF16, KAHAN, "bf16, Kahan summation", &kahan);
    fr_result_claim(
        r, "masters-learn", master.last < 0.2 * master.first && master.last < 0.4 * pure.last,
        "with fp32 masters the bf16 model learns", "%.3g to %.3g", master.first, master.last);
    fr_result_claim(r, "others-learn",
                    random.last < 0.4 * random.first && kahan.last < 0.2 * kahan.first,
                    "stochastic rounding and Kahan summation learn without masters",
                    "to %.3g and %.3g", random.last, kahan.last);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct model m = {.n = fr_lab_count(lab, "hidden"), .rate = fr_lab_get(lab, "rate")};
    double **all[] = {&m.w, &m.master, &m.lost, &m.g, &m.start, &m.y};
    m.x = fr_lab_vector(lab, SAMPLES * m.n);
    m.target = fr_lab_vector(lab, SAMPLES);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        *all[i] = fr_lab_vector(lab, m.n);
    }
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fill(lab, &m);
    acts(lab, &m);
    return 0;
}

/* ---- smoke test: the user's learning rate and weights ---- */

static const char *const smoke_policies[] = {"pure", "masters", NULL};

#define SAMPLE 4096

/* Where the weights end that a step moves in both directions: units in the last place grow with
 * powers of two. 0: it moves none. */
static double end_of_moved(uint32_t dtype, double step)
{
    const double eps = fr_dtype_info(dtype)->eps;
    double end = 0;
    for (double w = 0x1p-100; w < 0x1p15; w *= 2) { /* the last two weights below 2 w */
        bool moves = true;
        for (int k = 1; k <= 2; k++) {
            const double v = fr_lab_to(dtype, w * (2 - k * eps));
            moves &= fr_lab_to(dtype, v + step) != v && fr_lab_to(dtype, v - step) != v;
        }
        end = moves ? 2 * w : end;
    }
    return end;
}

/* The share of weights, normal with the user's deviation, that a step leaves bit-identical. */
static double still_share(struct fr_lab *lab, double *w, uint32_t dtype, double step)
{
    uint32_t still = 0;
    lab->rng.state = 1;
    fr_rng_fill(&lab->rng, w, SAMPLE, lab->smoke->weight, dtype);
    for (int i = 0; i < SAMPLE; i++) {
        still += fr_lab_to(dtype, w[i] + (i % 2 == 0 ? step : -step)) == w[i];
    }
    return (double)still / SAMPLE;
}

static void rate(struct fr_lab *lab, double *w, uint32_t dtype, double lr, const char *id,
                 const char *says)
{
    const double still = still_share(lab, w, dtype, lr);
    fr_result_claim(lab->result, id, still <= 0.1, says,
                    "a step of %g leaves %.1f%% of them bit-identical; those below %.4g move",
                    lr, 100 * still, end_of_moved(dtype, lr));
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "a step of the learning rate moves at least 90% of the weights";
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    const int masters = s->policy >= 0 ? s->policy == 1 : s->masters;
    double *w = fr_lab_vector(lab, SAMPLE);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fr_smoke_inputs(lab, "dtype lr min-lr weight");
    if (!fr_smoke_needs(lab, "moves", says, "dtype")) {
        return 0;
    }
    if (masters < 0 && s->dtype != FR_F32) {
        fr_result_unknown(r, "moves", says,
                          "not said: whether fp32 master weights are kept; give --policy masters "
                          "or --policy pure");
        return 0;
    }
    const uint32_t dtype = masters == 1 ? FR_F32 : s->dtype;
    fr_result_say(r, "Updates are added to weights in %s%s.", fr_smoke_dtype(dtype),
                  masters == 1 ? ", the masters" : "");
    if (!fr_smoke_needs(lab, "moves", says, "lr weight")) {
        return 0;
    }
    rate(lab, w, dtype, s->lr, "moves", says);
    if (fr_smoke_said(s, "min-lr") && s->min_lr > 0) {
        rate(lab, w, dtype, s->min_lr, "moves-at-the-end",
             "so does a step of the schedule's lowest rate");
    }
    return 0;
}

const struct fr_repro fr_repro_bfstall = {
    .id = "bf16-update-rounding-stall",
    .summary =
        "updates below half a unit of bf16 are rounded away; masters, stochastic rounding, Kahan",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = smoke_policies,
};
