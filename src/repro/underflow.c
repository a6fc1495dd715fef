/* SPDX-License-Identifier: Apache-2.0 */
/* underflow: the mean over many tokens makes gradients smaller than the smallest half. */
#include "repro/smoke.h"
#include "repro/toy.h"

#include <math.h>

#define STEPS 200
#define H     FR_F16

static const struct fr_repro_param params[] = {
    {"hidden", 32, 4, 512, true, NULL, "units of the hidden layer"},
    {"loss-scale", 65536, 1, 16777216, false, NULL,
     "factor on the loss in the run that is healthy"},
    {"tokens", 16777216, 32, 1e9, true, NULL,
     "tokens that the loss is a mean of: the global batch"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct run {
    double first, last; /* loss */
    double zeros;       /* share of gradient elements that are 0, last step */
};

static void train(struct fr_lab *lab, struct fr_toy *t, const double *start, uint32_t dtype,
                  double scale, struct fr_curve *loss, struct fr_curve *zeros, struct run *ret)
{
    const double tokens = fr_lab_get(lab, "tokens"), rate = 0.1 * tokens / (t->samples * t->out);
    memcpy(t->w, start, t->weights * sizeof *start);
    *ret = (struct run){.zeros = 0};
    for (int i = 0; i < STEPS; i++) {
        ret->last = fr_toy_step(t, dtype, scale, tokens, NULL);
        ret->first = i == 0 ? ret->last : ret->first;
        ret->zeros = (double)fr_lab_look(t->g, t->weights).zeros / t->weights;
        fr_curve_add(loss, ret->last);
        if (zeros != NULL) {
            fr_curve_add(zeros, ret->zeros);
        }
        fr_toy_update(t, rate, scale);
    }
}

/* The smallest magnitude that half does not flush to zero, by halving an interval. */
static double smallest_kept(void)
{
    double zero = 0, kept = 1;
    for (int i = 0; i < 200 && kept - zero > 1e-12 * kept; i++) {
        const double middle = (zero + kept) / 2;
        if (fr_lab_to(H, middle) == 0) {
            zero = middle;
        } else {
            kept = middle;
        }
    }
    return kept;
}

static void acts(struct fr_lab *lab, struct fr_toy *t, const double *start)
{
    struct fr_result *r = lab->result;
    const double tokens = fr_lab_get(lab, "tokens"), scale = fr_lab_get(lab, "loss-scale");
    struct run wide, plain, scaled;
    fr_result_act(r, FR_ACT_FAILS, "fp16 without a loss scale: nothing is NaN, nothing learns");
    fr_result_say(r,
                  "The loss is a mean over %.0f tokens, as in a large global batch. The same "
                  "weights, data and learning rate:",
                  tokens);
    struct fr_curve *loss = fr_result_curve(r, "loss in fp32", "step", true);
    train(lab, t, start, FR_F32, 1, loss, NULL, &wide);
    loss = fr_result_curve(r, "loss in fp16", "step", true);
    struct fr_curve *zeros = fr_result_curve(r, "share of zeros, fp16", "step", false);
    train(lab, t, start, H, 1, loss, zeros, &plain);
    fr_result_claim(
        r, "zeros", plain.zeros > 0.5 && wide.zeros < 0.05,
        "as the errors shrink, most of the fp16 gradient is exactly 0 where fp32's is not",
        "%.0f%% zeros in fp16, %.0f%% in fp32", 100 * plain.zeros, 100 * wide.zeros);
    fr_result_claim(r, "stalls", plain.last > 2 * wide.last && isfinite(plain.last),
                    "the fp16 run stays behind, with a finite loss",
                    "loss %.3g to %.3g; in fp32 to %.3g", plain.first, plain.last, wide.last);

    fr_result_act(r, FR_ACT_WHY, "half has nothing between 0 and 6e-8");
    memcpy(t->w, start, t->weights * sizeof *start);
    struct fr_chain *c = fr_result_chain(r, "one step, loss scale 1");
    fr_toy_step(t, H, 1, tokens, c);
    uint32_t infs = 0, bad_from = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        infs += c->row[i].infs + c->row[i].nans;
        bad_from = bad_from == 0 && c->row[i].most > 0 && c->row[i].most < 6.104e-5 ? i : bad_from;
    }
    fr_result_claim(r, "no-alarm", infs == 0 && bad_from > 0,
                    "no step shows Inf or NaN; from here on every magnitude is below the smallest "
                    "normal half, 6.1e-5",
                    "%s", bad_from > 0 ? c->row[bad_from].op.p : "no step is that small");
    const double least = smallest_kept();
    fr_result_claim(r, "smallest-half", fabs(least - 0x1p-25) < 1e-12,
                    "what is not above 2^-25 = 2.98e-8 becomes 0", "zero up to %.4g", least);

    fr_result_act(r, FR_ACT_FIX, "multiply the loss by %g, divide the gradient in fp32", scale);
    loss = fr_result_curve(r, "loss in fp16, scaled", "step", true);
    train(lab, t, start, H, scale, loss, NULL, &scaled);
    fr_result_claim(r, "scaled-zeros", scaled.zeros < 0.05, "the zeros are gone", "%.1f%% zeros",
                    100 * scaled.zeros);
    fr_result_claim(r, "scaled-learns", fabs(scaled.last - wide.last) < 0.1 * wide.last,
                    "and the run ends where fp32 does", "loss %.4g, fp32 %.4g", scaled.last,
                    wide.last);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct fr_toy t = {.in = 16, .hidden = fr_lab_count(lab, "hidden"), .out = 4, .samples = 32};
    fr_toy_new(lab, &t);
    double *start = fr_lab_vector(lab, t.weights);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    memcpy(start, t.w, t.weights * sizeof *start);
    acts(lab, &t, start);
    return 0;
}

/* ---- smoke test: the user's loss scale and sizes ---- */

/* One gradient through a half that holds it times the scale. */
static void stored(struct fr_lab *lab, const char *id, const char *says, double g, double scale)
{
    const double back = fr_lab_to(H, g * scale) / scale, off = fabs(back - g) / g;
    fr_result_claim(lab->result, id, back != 0 && isfinite(back) && off <= 0.125, says,
                    "%.4g * %g becomes %.4g in fp16: %s%.0f%% off", g, scale,
                    fr_lab_to(H, g * scale), back == 0 ? "lost, " : "", 100 * off);
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "the smallest gradient that has to count survives fp16";
    static const char logits_says[] =
        "an untrained model's logit gradient, 1 / (vocabulary * tokens of a step), survives fp16";
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    (void)err;
    fr_smoke_inputs(lab, "dtype loss-scale initial-scale grad vocab seq micro-batch accumulation");
    if (!fr_smoke_needs(lab, "survives", says, "dtype")) {
        return 0;
    }
    if (s->dtype != H) {
        fr_result_claim(r, "wide-exponent", true, "gradients are not stored in fp16",
                        "%s reaches down to %.3g", fr_smoke_dtype(s->dtype),
                        fr_dtype_info(s->dtype)->min_subnormal);
        return 0;
    }
    const bool fixed = fr_smoke_said(s, "loss-scale") && s->loss_scale > 0;
    if (!fixed && s->scaler != 0 &&
        !fr_smoke_needs(lab, "survives", says,
                        fr_smoke_said(s, "loss-scale") ? "initial-scale" : "loss-scale")) {
        return 0;
    }
    const double scale = fixed ? s->loss_scale : s->scaler == 0 ? 1 : s->initial_scale;
    const double least = smallest_kept();
    fr_result_say(r,
                  "At loss scale %g%s a gradient up to %.4g becomes 0, and one below %.4g loses "
                  "bits.",
                  scale,
                  fixed            ? ""
                  : s->scaler == 0 ? ", for nothing scales the loss,"
                                   : ", where the dynamic scaler begins,",
                  least / scale, 0x1p-14 / scale);
    const bool given = fr_smoke_said(s, "grad");
    if (given) {
        stored(lab, "survives", says, s->grad, scale);
    }
    const bool sized = fr_smoke_said(s, "vocab") && fr_smoke_said(s, "seq") &&
                       fr_smoke_said(s, "micro-batch") && fr_smoke_said(s, "accumulation");
    if (sized) {
        const double tokens = s->seq * s->micro_batch * s->accumulation;
        stored(lab, "logits", logits_says, 1 / (s->vocab * tokens), scale);
    } else if (!given) {
        fr_smoke_needs(lab, "survives", says, "grad");
        fr_smoke_needs(lab, "logits", logits_says, "vocab seq micro-batch accumulation");
    }
    return 0;
}

const struct fr_repro fr_repro_underflow = {
    .id = "fp16-grad-underflow",
    .summary = "gradients of a mean over many tokens flush to zero, until the loss is scaled",
    .params = params,
    .run = run,
    .smoke = smoke,
};
