/* SPDX-License-Identifier: Apache-2.0 */
/* maskmin: additive masks of the dtype's minimum, summed in half with a position bias. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define D     16
#define H     FR_F16
#define LEAST (-65504.0) /* torch.finfo(torch.float16).min */

static const char *const policies[] = {"fp16", "fp32", NULL};

static const struct fr_repro_param params[] = {
    {"scale", 20, 0, 60000, false, NULL, "the head's position bias is minus this for every key"},
    {"policy", 0, 0, 0, true, policies, "type that masks, bias and scores are summed in"},
    {"tokens", 8, 2, 64, true, NULL, "length of the sequence"},
    {"padding", 3, 0, 63, true, NULL, "padding tokens at its left"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct head {
    uint32_t n, pad;
    double bias;
    double *x;                      /* n x D */
    double *causal, *padding, *sum; /* n x n */
    double *scores, *p, *out, *row; /* n x n, n x n, n x D, n */
};

static const char *const combinations[] = {"summed", "clamped", "boolean", NULL};
enum { SEPARATE, CLAMPED, BOOLEAN };

static void build(struct fr_lab *lab, struct head *h)
{
    const uint32_t n = h->n = fr_lab_count(lab, "tokens");
    double **squares[] = {&h->causal, &h->padding, &h->sum, &h->scores, &h->p};
    h->pad = fr_lab_count(lab, "padding") < n ? fr_lab_count(lab, "padding") : n - 1;
    h->bias = fr_lab_to(H, -fr_lab_get(lab, "scale"));
    h->x = fr_lab_vector(lab, n * D);
    h->out = fr_lab_vector(lab, n * D);
    h->row = fr_lab_vector(lab, n);
    for (size_t i = 0; i < sizeof squares / sizeof *squares; i++) {
        *squares[i] = fr_lab_vector(lab, n * n);
    }
}

/* Masks, their sum with the bias, the masked scores and the attention, all in `type`. */
static void attend(struct head *h, uint32_t type, int how, struct fr_chain *c)
{
    const uint32_t n = h->n;
    for (uint32_t k = 0; k < n * n; k++) {
        const uint32_t i = k / n, j = k % n;
        h->causal[k] = j > i ? LEAST : 0;
        h->padding[k] = j < h->pad ? LEAST : 0;
        const double both = fr_lab_to(type, h->causal[k] + h->padding[k]);
        double mask = fr_lab_to(type, both + h->bias);
        if (how == CLAMPED) {
            mask = mask < LEAST ? LEAST : mask;
        }
        h->sum[k] = mask;
        const double raw = fr_lab_to(type, fr_lab_sum_products(h->x + i * D, h->x + j * D, D) / D);
        h->scores[k] = fr_lab_to(type, raw + mask);
        if (how == CLAMPED) {
            h->scores[k] = h->scores[k] < LEAST ? LEAST : h->scores[k];
        } else if (how == BOOLEAN) {
            h->scores[k] =
                h->causal[k] + h->padding[k] < 0 ? LEAST : fr_lab_to(type, raw + h->bias);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        fr_lab_softmax(type, h->scores + i * n, n, h->p + i * n);
        fr_lab_matvec_t(type, h->x, h->p + i * n, n, D, h->out + i * D);
    }
    if (c != NULL) {
        fr_chain_input(c, "causal mask", type, h->causal, n, n);
        fr_chain_input(c, "padding mask", type, h->padding, n, n);
        fr_chain_add(c, "causal + padding + bias", type, h->sum, n, n);
        fr_chain_add(c, "q @ k.T / d + mask", type, h->scores, n, n);
        fr_chain_add(c, "softmax", type, h->p, n, n);
        fr_chain_add(c, "@ v", type, h->out, n, D);
    }
}

static uint32_t nan_rows(const struct head *h)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        rows += fr_lab_look(h->out + i * D, D).nans > 0;
    }
    return rows;
}

/* The smallest whole number that, subtracted from the minimum of half, gives -Inf. */
static int first_that_overflows(void)
{
    int k = 0;
    while (isfinite(fr_lab_to(H, LEAST - k))) {
        k++;
    }
    return k;
}

static void acts(struct fr_lab *lab, struct head *h, double *wide)
{
    struct fr_result *r = lab->result;
    const uint32_t type = fr_lab_get(lab, "policy") == 0 ? H : FR_F32, n = h->n;
    fr_result_act(r, FR_ACT_FAILS, "rows of padding are NaN in fp16 and finite in fp32");
    fr_result_say(r,
                  "%u tokens, %u of them padding at the left. A causal and a padding mask, each "
                  "holding %.0f where it forbids, and a "
                  "position bias of %g are added to the scores in %s.",
                  n, h->pad, LEAST, h->bias, policies[type == H ? 0 : 1]);
    attend(h, FR_F32, SEPARATE, NULL);
    memcpy(wide, h->out, n * D * sizeof *wide);
    const uint32_t wide_nans = nan_rows(h);
    attend(h, type, SEPARATE, NULL);
    const uint32_t nans = nan_rows(h);
    fr_result_claim(r, "padding-rows-nan", nans == h->pad && nans > 0, "every padding row is NaN",
                    "%u rows NaN, %u padding", nans, h->pad);
    fr_result_claim(r, "fp32-is-finite", wide_nans == 0, "the same sum in fp32 is finite",
                    "%u rows NaN", wide_nans);

    fr_result_act(r, FR_ACT_WHY, "there is little room below the minimum");
    struct fr_chain *c = fr_result_chain(r, "all rows, step by step");
    attend(h, type, SEPARATE, c);
    fr_result_claim(r, "mask-first", fr_chain_first_is(c, "causal + padding + bias"),
                    "the sum of masks and bias is the first Inf", "first: %s", fr_chain_first(c));
    const int k = first_that_overflows();
    fr_result_claim(r, "room-is-16", k == 16,
                    "-65504 bears the subtraction of anything below 16; 16 rounds to -Inf",
                    "first at %d", k);
    fr_result_claim(r, "two-minima",
                    isinf(fr_lab_to(H, LEAST + LEAST)) &&
                        fr_lab_to(FR_F32, LEAST + LEAST) == 2 * LEAST,
                    "two minima are -Inf in half, -131008 in fp32", "%g, %g",
                    fr_lab_to(H, LEAST + LEAST), fr_lab_to(FR_F32, LEAST + LEAST));
    uint32_t doubly = 0, whole = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t infs = fr_lab_look(h->scores + i * n, n).infs;
        doubly += infs > 0 && infs < n && fr_lab_look(h->p + i * n, n).nans == 0;
        whole += infs == n;
    }
    fr_result_claim(r, "some-inf-is-harmless", doubly > 0 && whole == h->pad,
                    "a row with some -Inf is fine, a row of nothing else is NaN",
                    "%u rows with some, %u with only -Inf", doubly, whole);
}

static void fix(struct fr_lab *lab, struct head *h, const double *wide)
{
    struct fr_result *r = lab->result;
    const uint32_t n = h->n;
    fr_result_act(r, FR_ACT_FIX, "combine booleans, convert once");
    attend(h, H, BOOLEAN, NULL);
    const uint32_t fixed = nan_rows(h);
    double apart = 0;
    for (uint32_t k2 = h->pad * D; k2 < n * D; k2++) {
        apart = fabs(h->out[k2] - wide[k2]) > apart ? fabs(h->out[k2] - wide[k2]) : apart;
    }
    fr_result_claim(
        r, "boolean-is-finite", fixed == 0 && apart < 0.02,
        "with one masked_fill of one boolean mask no row is NaN, and real rows agree with fp32",
        "%u rows NaN, real rows differ by %.2g", fixed, apart);
    attend(h, H, CLAMPED, NULL);
    fr_result_claim(r, "clamp-is-finite", nan_rows(h) == 0,
                    "clamping each sum to the minimum helps as well", "%u rows NaN", nan_rows(h));
    const double sum = fr_lab_to(H, fr_lab_to(H, -1e4 + -1e4) + h->bias);
    fr_result_claim(
        r, "ten-thousand", isfinite(sum) && fr_lab_exp(sum) == 0,
        "-1e4 in place of the minimum stays finite when added twice, and still weighs 0", "%g",
        sum);
}

/* The user's dtype and bias: what two masks and a score become, and whether a row survives. */
static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    const double least = -fr_dtype_info(s->dtype)->max;
    const double two = fr_lab_to(s->dtype, least + least),
                 one = fr_lab_to(s->dtype, least - s->scale);
    const int how = s->policy < 0 ? SEPARATE : s->policy;
    (void)err;
    fr_result_say(r, "%s, scores and biases down to -%g, masks combined '%s'",
                  fr_dtype_info(s->dtype)->name, s->scale, combinations[how]);
    fr_result_claim(r, "two-masks", how != SEPARATE || isfinite(two),
                    "two masks of the dtype's minimum stay finite",
                    how == SEPARATE ? "their sum is %g" : "they are not summed, or clamped (%g)",
                    two);
    fr_result_claim(r, "mask-and-score", how != SEPARATE || isfinite(one),
                    "a mask plus your lowest score stays finite",
                    how == SEPARATE ? "the sum is %g" : "it is filled in last, or clamped (%g)",
                    one);
    return 0;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct head h;
    build(lab, &h);
    double *wide = fr_lab_vector(lab, h.n * D);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    fr_rng_fill(&lab->rng, h.x, h.n * D, 1, H);
    acts(lab, &h, wide);
    fix(lab, &h, wide);
    return 0;
}

const struct fr_repro fr_repro_maskmin = {
    .id = "mask-min-overflow-sum",
    .summary = "two additive masks and a bias sum to -Inf in fp16; rows of padding are NaN",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = combinations,
};
