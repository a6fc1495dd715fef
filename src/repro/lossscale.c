/* SPDX-License-Identifier: Apache-2.0 */
/* lossscale: a dynamic loss scaler in three runs of one toy: a healthy search, thrash, collapse. */
#include "repro/toy.h"

#include <math.h>

#define STEPS 120
#define RATE  0.2
#define START 16777216.0 /* 2^24: above what the gradients bear, so that the search is seen */
#define LEAST 1.0        /* DeepSpeed's min_loss_scale */

static const struct fr_repro_param params[] = {
    {"hidden", 32, 4, 512, true, NULL, "units of the hidden layer"},
    {"scale", 100000, 1, 1e6, false, NULL,
     "how far activations between the two layers are blown up in the third run"},
    {"loss-scale", START, 1, 1e9, false, NULL, "where the scaler begins"},
    {"interval", 20, 1, 1000, true, NULL, "good steps before the scale doubles"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct run {
    struct fr_scaler scaler;
    double first, last; /* loss */
    double least_scale;
    double moved; /* largest change of a weight */
};

/* One training run from the same weights; its curves are added when title is not NULL. */
static void train(struct fr_lab *lab, struct fr_toy *t, const double *start, uint32_t dtype,
                  uint32_t interval, const char *title, struct run *ret)
{
    struct fr_curve *scale = NULL, *loss = NULL;
    memcpy(t->w, start, t->weights * sizeof *start);
    *ret = (struct run){.scaler = {.scale = fr_lab_get(lab, "loss-scale"),
                                   .least = LEAST,
                                   .most = 1e30,
                                   .interval = interval}};
    ret->least_scale = ret->scaler.scale;
    if (title != NULL) {
        fr_result_say(lab->result, "%s", title);
        scale = fr_result_curve(lab->result, "loss scale", "step", true);
        loss = fr_result_curve(lab->result, "loss", "step", false);
    }
    for (int i = 0; i < STEPS; i++) {
        ret->last = fr_toy_step(t, dtype, ret->scaler.scale, t->samples * t->out, NULL);
        ret->first = i == 0 ? ret->last : ret->first;
        if (title != NULL) {
            fr_curve_add(scale, ret->scaler.scale);
            fr_curve_add(loss, ret->last);
        }
        fr_scaler_next(&ret->scaler, fr_toy_update(t, RATE, ret->scaler.scale));
        ret->least_scale =
            ret->scaler.scale < ret->least_scale ? ret->scaler.scale : ret->least_scale;
    }
    for (uint32_t i = 0; i < t->weights; i++) {
        const double d = fabs(t->w[i] - start[i]);
        ret->moved = d > ret->moved ? d : ret->moved;
    }
}

/* The largest power of two from 1 down to 2^-24 at which no gradient is Inf or NaN; 0 none. */
static double scale_that_works(struct fr_toy *t, const double *start)
{
    memcpy(t->w, start, t->weights * sizeof *start);
    for (double s = 1; s >= 0x1p-24; s /= 2) {
        fr_toy_step(t, FR_F16, s, t->samples * t->out, NULL);
        const struct fr_lab_stats g = fr_lab_look(t->g, t->weights);
        if (g.nans + g.infs == 0) {
            return s;
        }
    }
    return 0;
}

static void fails(struct fr_lab *lab, struct fr_toy *t, const double *start)
{
    struct fr_result *r = lab->result;
    const uint32_t interval = fr_lab_count(lab, "interval");
    struct run ok, thrash, down;
    fr_result_act(r, FR_ACT_FAILS, "the scale falls to its floor and not one step is taken");
    t->gain = 1;
    train(lab, t, start, FR_F16, interval,
          "Healthy: the search goes down to what the gradients bear, then hovers below it.", &ok);
    fr_result_claim(r, "healthy-search",
                    ok.scaler.skipped > 0 && ok.scaler.skipped * 5 <= STEPS &&
                        ok.last < 0.2 * ok.first,
                    "a healthy run skips now and then, keeps a scale in the thousands and learns",
                    "%u of %d steps skipped, least scale %g, loss %.3g to %.3g", ok.scaler.skipped,
                    STEPS, ok.least_scale, ok.first, ok.last);
    train(lab, t, start, FR_F16, 1,
          "Thrash: the same with the scale doubled after every good step.", &thrash);
    fr_result_claim(
        r, "thrash", thrash.scaler.skipped * 5 >= STEPS * 2 && thrash.last < thrash.first,
        "a scaler that grows after each good step wastes about every second one, yet learns",
        "%u of %d steps skipped, loss %.3g to %.3g", thrash.scaler.skipped, STEPS, thrash.first,
        thrash.last);
    t->gain = fr_lab_get(lab, "scale");
    train(lab, t, start, FR_F16, interval,
          "Collapse: the same weights, with activations blown up between the layers.", &down);
    fr_result_claim(r, "collapse", down.scaler.scale == LEAST && down.scaler.taken == 0,
                    "the scale halves on every step down to its floor",
                    "%u of %d steps skipped, scale %g", down.scaler.skipped, STEPS,
                    down.scaler.scale);
    fr_result_claim(r, "nothing-moves", down.moved == 0,
                    "no weight has moved: skipped steps change nothing", "largest change %.3g",
                    down.moved);
}

static void why(struct fr_lab *lab, struct fr_toy *t, const double *start)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_WHY, "the overflow is in forward, and the scale only acts after it");
    memcpy(t->w, start, t->weights * sizeof *start);
    struct fr_chain *c = fr_result_chain(r, "one sample at the floor, loss scale 1");
    fr_toy_step(t, FR_F16, LEAST, t->samples * t->out, c);
    const bool forward = fr_chain_first_is(c, "z = gain * h") || fr_chain_first_is(c, "w2 z");
    fr_result_claim(r, "forward-first", forward,
                    "the first Inf is an activation, before there is a loss to scale", "first: %s",
                    fr_chain_first(c));
    const double works = scale_that_works(t, start);
    fr_result_claim(r, "no-scale-helps", works == 0, "no scale helps, down to 2^-24",
                    works == 0 ? "Inf or NaN at all of them" : "%g works", works);
}

static void fix(struct fr_lab *lab, struct fr_toy *t, const double *start)
{
    struct fr_result *r = lab->result;
    struct run bf, narrow;
    fr_result_act(r, FR_ACT_FIX,
                  "the same weights in bf16, or with the large activation kept in range");
    t->gain = fr_lab_get(lab, "scale");
    train(lab, t, start, FR_BF16, fr_lab_count(lab, "interval"),
          "bf16, activations as large as before:", &bf);
    fr_result_claim(r, "bf16-trains", bf.last < 0.2 * bf.first && bf.scaler.skipped == 0,
                    "bf16 needs no scaler: nothing is skipped and it learns",
                    "%u skipped, loss %.3g to %.3g", bf.scaler.skipped, bf.first, bf.last);
    t->gain = 1;
    train(lab, t, start, FR_F16, fr_lab_count(lab, "interval"), NULL, &narrow);
    fr_result_claim(r, "fp16-in-range-trains",
                    narrow.last < 0.2 * narrow.first && narrow.scaler.taken > narrow.scaler.skipped,
                    "fp16 with that activation kept small trains too",
                    "%u of %d steps taken, loss %.3g to %.3g", narrow.scaler.taken, STEPS,
                    narrow.first, narrow.last);
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
    fails(lab, &t, start);
    why(lab, &t, start);
    fix(lab, &t, start);
    return 0;
}

const struct fr_repro fr_repro_lossscale = {
    .id = "loss-scale-collapse",
    .summary = "a dynamic loss scaler in three runs: healthy search, thrash, collapse",
    .params = params,
    .run = run,
};
