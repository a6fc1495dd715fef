/* SPDX-License-Identifier: Apache-2.0 */
/* attnscores: eager attention stores query times key in half before it divides by sqrt(d). */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define H FR_F16

static const char *const policies[] = {"eager", "scale-first", "fused", NULL};
enum { EAGER, SCALE_FIRST, FUSED };

static const struct fr_repro_param params[] = {
    {"scale", 40, 0, 60000, false, NULL,
     "magnitude of the elements of the query and the key that meet"},
    {"policy", EAGER, 0, 0, true, policies, "how the scores are computed in the run that fails"},
    {"head-dim", 128, 1, 1024, true, NULL, "elements of a query"},
    {"tokens", 8, 2, 256, true, NULL, "length of the sequence"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct attention {
    uint32_t d, n;
    double *q, *k, *v;    /* n rows of d */
    double *scores, *out; /* n x n, n x d */
    double *row;          /* d */
};

/* Scores of one query and one key as the policy stores them. */
static double score(struct attention *a, int policy, const double *q, const double *k)
{
    const double root = (float)(1 / sqrt((double)a->d));
    if (policy == FUSED) {
        return (float)(fr_lab_sum_products(q, k, a->d) * root); /* stays in a register */
    }
    if (policy == EAGER) {
        return fr_lab_to(H, fr_lab_dot(H, q, k, a->d) * root);
    }
    for (uint32_t i = 0; i < a->d; i++) {
        a->row[i] = fr_lab_to(H, q[i] * root);
    }
    return fr_lab_dot(H, a->row, k, a->d);
}

/* Causal attention of all tokens. */
static void attend(struct attention *a, int policy)
{
    for (uint32_t i = 0; i < a->n; i++) {
        double *s = a->scores + i * a->n;
        for (uint32_t j = 0; j < a->n; j++) {
            s[j] = j <= i ? score(a, policy, a->q + i * a->d, a->k + j * a->d) : -INFINITY;
        }
        fr_lab_softmax(policy == FUSED ? FR_F32 : H, s, a->n, s);
        fr_lab_matvec_t(H, a->v, s, a->n, a->d, a->out + i * a->d);
    }
}

static uint32_t nan_rows(const struct attention *a)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        rows += fr_lab_look(a->out + i * a->d, a->d).nans > 0;
    }
    return rows;
}

/* The smallest half that overflows when all elements of query and key have it; Inf: none. */
static double limit(struct attention *a, int policy)
{
    uint32_t good = 0x3c00, bad = 0x7c00;
    while (bad - good > 1) {
        const uint32_t middle = (good + bad) / 2;
        for (uint32_t i = 0; i < a->d; i++) {
            a->out[i] = fr_decode(H, middle);
        }
        if (isfinite(score(a, policy, a->out, a->out))) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    return fr_decode(H, bad);
}

static void chain(struct attention *a, int policy, struct fr_chain *c, uint32_t i)
{
    const double root = (float)(1 / sqrt((double)a->d)), *q = a->q + i * a->d;
    double *s = a->scores + i * a->n;
    const uint32_t type = policy == FUSED ? FR_F32 : H;
    fr_chain_input(c, "q", H, q, 1, a->d);
    fr_chain_input(c, "k", H, a->k, i + 1, a->d);
    if (policy == SCALE_FIRST) {
        for (uint32_t k = 0; k < a->d; k++) {
            a->row[k] = fr_lab_to(H, q[k] * root);
        }
        fr_chain_add(c, "q / sqrt(d)", H, a->row, 1, a->d);
    }
    for (uint32_t j = 0; j <= i; j++) {
        s[j] = policy == SCALE_FIRST ? fr_lab_dot(H, a->row, a->k + j * a->d, a->d)
                                     : fr_lab_dot(type, q, a->k + j * a->d, a->d);
    }
    fr_chain_add(c, "q @ k.T", type, s, 1, i + 1);
    if (policy != SCALE_FIRST) {
        for (uint32_t j = 0; j <= i; j++) {
            s[j] = fr_lab_to(type, s[j] * root);
        }
        fr_chain_add(c, "/ sqrt(d)", type, s, 1, i + 1);
    }
    fr_lab_softmax(type, s, i + 1, s);
    fr_chain_add(c, "softmax", type, s, 1, i + 1);
    fr_lab_matvec_t(H, a->v, s, i + 1, a->d, a->out);
    fr_chain_add(c, "@ v", H, a->out, 1, a->d);
}

static void fails(struct fr_lab *lab, struct attention *a, int policy, uint32_t hot)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_FAILS, "one hot query and key, and the row of attention is NaN");
    attend(a, policy);
    const uint32_t first = nan_rows(a);
    fr_result_say(r,
                  "%u tokens, head dimension %u, causal attention in fp16, computed '%s'. The "
                  "elements of q and k of token %u "
                  "have magnitude %g, those of the others about 1.",
                  a->n, a->d, policies[policy], hot, fr_lab_get(lab, "scale"));
    fr_result_claim(r, "row-is-nan", fr_lab_look(a->out + hot * a->d, a->d).nans == a->d,
                    "the hot token's whole output is NaN", "%u of %u elements",
                    fr_lab_look(a->out + hot * a->d, a->d).nans, a->d);
    /* The next layer: its keys and values come from this layer's output. */
    memcpy(a->k, a->out, a->n * a->d * sizeof *a->out);
    memcpy(a->v, a->out, a->n * a->d * sizeof *a->out);
    attend(a, policy);
    const uint32_t second = nan_rows(a);
    fr_result_claim(r, "nan-spreads", first == 1 && second == a->n,
                    "a layer later every token is NaN, the earlier ones too: the mask gives a "
                    "weight of 0, and 0 * NaN is NaN",
                    "%u rows NaN after the first layer, %u after the second", first, second);
}

static void fill(struct fr_lab *lab, struct attention *a, uint32_t hot)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    fr_rng_fill(&lab->rng, a->q, a->n * a->d, 1, H);
    fr_rng_fill(&lab->rng, a->k, a->n * a->d, 1, H);
    fr_rng_fill(&lab->rng, a->v, a->n * a->d, 1, H);
    for (uint32_t i = 0; i < a->d; i++) {
        const double sign = fr_rng_below(&lab->rng, 2) ? 1 : -1;
        a->q[hot * a->d + i] = a->k[hot * a->d + i] = fr_lab_to(H, sign * fr_lab_get(lab, "scale"));
    }
}

static void why(struct fr_lab *lab, struct attention *a, int policy, uint32_t hot)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_WHY, "the product is stored before it is scaled");
    fill(lab, a, hot);
    struct fr_chain *c = fr_result_chain(r, "the hot token's row");
    chain(a, policy, c, hot);
    fr_result_claim(r, "product-first", fr_chain_first_is(c, "q @ k.T"),
                    "the first Inf is the product; softmax makes NaN of it, Inf - Inf", "first: %s",
                    fr_chain_first(c));
    const double eager = limit(a, EAGER), first = limit(a, SCALE_FIRST), fused = limit(a, FUSED);
    const double want = sqrt(65520.0 / a->d), later = sqrt(65520.0 / sqrt(a->d));
    fr_result_claim(r, "eager-limit", fabs(eager - want) < want / 256,
                    "with equal elements the product overflows at sqrt(65520 / d)",
                    "from %.4g, formula %.4g", eager, want);
    fr_result_claim(r, "scaled-limit", fabs(first - later) < later / 128,
                    "scaled first it takes sqrt(65520 / sqrt(d))", "from %.4g, formula %.4g", first,
                    later);
    fr_result_claim(r, "fused-never", isinf(fused),
                    "scores kept in fp32 never overflow for half inputs", "%s",
                    isinf(fused) ? "finite up to 65504" : "overflows");
}

static void fix(struct fr_lab *lab, struct attention *a, uint32_t hot)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_FIX, "a fused attention, or the query scaled first");
    struct fr_chain *c = fr_result_chain(r, "the same row, fused");
    chain(a, FUSED, c, hot);
    attend(a, FUSED);
    struct fr_lab_stats fused = fr_lab_look(a->out, a->n * a->d);
    const double most = fr_lab_look(a->v, a->n * a->d).most;
    fr_result_claim(r, "fused-is-finite", fused.nans + fused.infs == 0 && fused.most <= most,
                    "the fused result is finite, and no larger than the values",
                    "%u NaN, largest %.3g of %.3g", fused.nans, fused.most, most);
    attend(a, SCALE_FIRST);
    struct fr_lab_stats scaled = fr_lab_look(a->out, a->n * a->d);
    fr_result_claim(r, "scaled-is-finite", scaled.nans + scaled.infs == 0,
                    "scaled first, the same input is finite", "%u NaN, hot score %.6g", scaled.nans,
                    score(a, SCALE_FIRST, a->q + hot * a->d, a->k + hot * a->d));
}

/* One query and key of the user's head size with all elements as large as theirs. */
static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    const uint32_t d = (uint32_t)(s->hidden / s->heads < 1 ? 1 : s->hidden / s->heads);
    const int how = s->policy >= 0 ? s->policy : s->fused ? FUSED : EAGER;
    const double root = (float)(1 / sqrt((double)d)),
                 x = fr_round(s->dtype, s->scale, FR_OVERFLOW_IEEE);
    double *q = fr_lab_vector(lab, d), *k = fr_lab_vector(lab, d);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    for (uint32_t i = 0; i < d; i++) {
        k[i] = x;
        q[i] = how == SCALE_FIRST ? fr_lab_to(s->dtype, x * root) : x;
    }
    const uint32_t type = how == FUSED ? FR_F32 : s->dtype;
    const double product = fr_lab_dot(type, q, k, d);
    const double limit = sqrt(fr_dtype_info(type)->max / (how == SCALE_FIRST ? sqrt(d) : d));
    fr_result_say(r, "head dimension %u, %s, query and key elements up to %g, scores computed '%s'",
                  d, fr_dtype_info(s->dtype)->name, s->scale, policies[how]);
    fr_result_claim(r, "scores-fit", isfinite(product),
                    "the largest product of a query and a key fits", "%.6g, limit %.6g", product,
                    fr_dtype_info(type)->max);
    fr_result_claim(r, "room", s->scale * 2 <= limit,
                    "there is a factor of two left before it would not",
                    "elements up to %g, limit %.4g", s->scale, limit);
    return 0;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct attention a = {.d = fr_lab_count(lab, "head-dim"), .n = fr_lab_count(lab, "tokens")};
    const uint32_t hot = a.n / 2;
    a.q = fr_lab_vector(lab, a.n * a.d);
    a.k = fr_lab_vector(lab, a.n * a.d);
    a.v = fr_lab_vector(lab, a.n * a.d);
    a.out = fr_lab_vector(lab, a.n * a.d);
    a.scores = fr_lab_vector(lab, a.n * a.n);
    a.row = fr_lab_vector(lab, a.d);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const int policy = (int)fr_lab_get(lab, "policy");
    fill(lab, &a, hot);
    fails(lab, &a, policy, hot);
    why(lab, &a, policy, hot);
    fix(lab, &a, hot);
    return 0;
}

const struct fr_repro fr_repro_attnscores = {
    .id = "attention-scores-fp16-overflow",
    .summary = "query times key overflows before it is scaled; scaled first or fused it does not",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
