/* SPDX-License-Identifier: Apache-2.0 */
/* lossscale: a dynamic loss scaler in three runs of one toy: a healthy search, thrash, collapse. */
#include "repro/smoke.h"
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

/* ---- smoke test: the user's scaler ---- */

struct search {
    struct fr_scaler scaler;
    uint32_t at_start; /* overflows before the first step that is taken */
    double share;      /* of steps skipped after it */
    bool ended;        /* a step was taken */
};

/* The scaler of DeepSpeed and Megatron (torch's with a hysteresis of 1), on gradients that stay as
 * large as they are. */
static void search(const struct fr_smoke *s, struct search *f)
{
    const double window = s->window < 100000 ? s->window : 100000;
    const uint32_t steps = (uint32_t)(4 * window) + 16;
    uint32_t left = (uint32_t)s->hysteresis, skipped = 0;
    *f = (struct search){.scaler = {.scale = s->initial_scale,
                                    .least = s->min_scale,
                                    .most = 0x1p126,
                                    .interval = (uint32_t)window}};
    for (uint32_t i = 0; i < 100000 && !f->ended; i++) {
        f->ended = isfinite(fr_lab_to(FR_F16, s->grad_max * f->scaler.scale));
        if (!f->ended && f->scaler.scale <= s->min_scale) {
            return;
        }
        f->at_start += !f->ended;
        if (!f->ended && (left <= 1 || --left == 0)) {
            left = 1;
            fr_scaler_next(&f->scaler, false);
        }
    }
    f->scaler.skipped = 0;
    for (uint32_t i = 0; f->ended && i < steps; i++) {
        const bool taken = isfinite(fr_lab_to(FR_F16, s->grad_max * f->scaler.scale));
        const double before = f->scaler.scale;
        skipped += !taken;
        if (!taken && left > 1) {
            left--;
            f->scaler.good = 0;
            continue;
        }
        fr_scaler_next(&f->scaler, taken);
        left = f->scaler.scale > before ? (uint32_t)s->hysteresis : left;
    }
    f->share = (double)skipped / steps;
}

static void dynamic(struct fr_lab *lab)
{
    static const char says[] = "the scaler finds a scale at which no gradient overflows";
    const struct fr_smoke *s = lab->smoke;
    struct search f;
    if (!fr_smoke_needs(lab, "search-ends", says,
                        "initial-scale min-scale window hysteresis grad-max")) {
        return;
    }
    search(s, &f);
    fr_result_claim(lab->result, "search-ends", f.ended, says,
                    "gradients of %g, scale %g after %u skipped steps%s", s->grad_max,
                    f.scaler.scale, f.at_start, f.ended ? "" : ", its floor");
    fr_result_claim(lab->result, "short-search", f.ended && f.at_start <= 32 + s->hysteresis,
                    "the search takes about 32 steps or fewer", "%u", f.at_start);
    fr_result_claim(lab->result, "no-thrash", f.ended && f.share <= 0.2,
                    "afterwards at most every fifth step is skipped", "%.1f%%", 100 * f.share);
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char forward[] = "the largest activation fits fp16: no loss scale mends forward";
    const struct fr_smoke *s = lab->smoke;
    struct fr_result *r = lab->result;
    (void)err;
    fr_smoke_inputs(lab, "dtype scale grad-max loss-scale initial-scale min-scale window "
                         "hysteresis");
    if (!fr_smoke_needs(lab, "forward-fits", forward, "dtype")) {
        return 0;
    }
    if (s->dtype != FR_F16) {
        fr_result_claim(r, "no-scaler", s->scaler != 1 && !(s->loss_scale > 1),
                        "no loss scaler is needed, and none is set", "dtype %s",
                        fr_smoke_dtype(s->dtype));
        return 0;
    }
    if (s->stored == FR_BF16) {
        fr_result_claim(r, "same-range", false, "weights made in bf16 are not trained in fp16",
                        "config.json says bf16, the run is fp16 (%s)", s->from.dtype);
    }
    if (fr_smoke_needs(lab, "forward-fits", forward, "scale")) {
        const double kept = fr_lab_to(FR_F16, s->scale);
        fr_result_claim(r, "forward-fits", isfinite(kept), forward, "%g becomes %g", s->scale,
                        kept);
    }
    if (s->scaler == 0) {
        fr_result_claim(r, "no-scaler", true, "there is no loss scaler that could collapse", "%s",
                        s->from.scaler);
        return 0;
    }
    if (fr_smoke_said(s, "loss-scale") && s->loss_scale > 0) {
        static const char says[] = "no gradient overflows at the fixed loss scale";
        if (fr_smoke_needs(lab, "fixed-fits", says, "grad-max")) {
            const double kept = fr_lab_to(FR_F16, s->grad_max * s->loss_scale);
            fr_result_claim(r, "fixed-fits", isfinite(kept), says, "%g * %g becomes %g",
                            s->grad_max, s->loss_scale, kept);
        }
        return 0;
    }
    dynamic(lab);
    return 0;
}

const struct fr_repro fr_repro_lossscale = {
    .id = "loss-scale-collapse",
    .summary = "a dynamic loss scaler in three runs: healthy search, thrash, collapse",
    .params = params,
    .run = run,
    .smoke = smoke,
};
