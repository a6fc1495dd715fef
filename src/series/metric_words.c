/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose lines are plain "name: value" lists behind one telling word: MaxText,
 * detectron2, DeepSpeed's pipeline engine (GPT-NeoX), Paddle, verl. They share this file since
 * only the word, the step and the unit of time differ. */
#include <ctype.h>
#include <math.h>

#include "series/keys.h"
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

#define LOSSES (1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS)

static bool number_after(const char *p, const char *e, const char *key, double *ret)
{
    const char *q = fr_seek(p, e, key, strlen(key));
    if (q == NULL) {
        return false;
    }
    q = fr_skip_space(q + strlen(key), e);
    return fr_num(&q, e, ret);
}

static bool parse_maxtext(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "completed step: ");
    if (p == NULL) {
        return false;
    }
    fr_pairs(p, e, ret);
    return ret->step >= 0 && (ret->present & LOSSES) != 0;
}
static const char *const maxtext_literals[] = {"completed step: ", NULL};
static const struct fr_dialect_sample maxtext_samples[] = {
    {"I0203 04:05:06.789012 140123 metric_logger.py:12] completed step: 4, seconds: 2.500, "
     "TFLOP/s/device: 100.25, Tokens/s/device: 4100.5, "
     "total_weights: 4096, loss: 8.250",
     "step=4 loss=8.25 step_time=2.5 throughput=4100.5"},
    {"completed step: 5, seconds: 2.500, TFLOP/s/device: 100.25, Tokens/s/device: 4100.5, "
     "total_weights: 4096, loss: nan",
     "step=5 loss=nan step_time=2.5 throughput=4100.5"},
    {"completed step: cleanup", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_maxtext = {
    .name = "maxtext",
    .summary = "MaxText step lines",
    .literals = maxtext_literals,
    .parse = parse_maxtext,
    .samples = maxtext_samples,
};

static bool parse_detectron(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "iter: ");
    double v;
    if (p == NULL || FR_SEEK(p, e, "total_loss: ") == NULL) {
        return false;
    }
    fr_pairs(p, e, ret);
    if (number_after(p, e, " time: ", &v)) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, v);
    }
    return ret->step >= 0 && (ret->present & LOSSES) != 0;
}
static const char *const detectron_literals[] = {"total_loss: ", NULL};
static const struct fr_dialect_sample detectron_samples[] = {
    {"[02/03 04:05:06 d2.utils.events]:  eta: 1:02:03  iter: 39  total_loss: 2.25  loss_cls: 1.25  "
     "loss_box_reg: 1.0  time: 0.5000  "
     "data_time: 0.0100  lr: 0.0005  max_mem: 4000M",
     "step=39 loss=2.25 lr=0.0005 step_time=0.5"},
    {"iter: 39 of total_loss: unknown", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_detectron = {
    .name = "detectron",
    .summary = "detectron2 (fvcore) metric lines",
    .literals = detectron_literals,
    .parse = parse_detectron,
    .samples = detectron_samples,
};

static bool parse_neox(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "steps: ");
    double v;
    if (p == NULL || !number_after(p, e, "iter time (s): ", &v)) {
        return false;
    }
    fr_point_set(ret, FR_METRIC_STEP_TIME, v);
    fr_pairs(p, e, ret);
    return ret->step >= 0 && (ret->present & LOSSES) != 0;
}
static const char *const neox_literals[] = {"iter time (s): ", NULL};
static const struct fr_dialect_sample neox_samples[] = {
    {"steps: 30 loss: 2.2500 iter time (s): 1.250 samples/sec: 12.800",
     "step=30 loss=2.25 step_time=1.25 throughput=12.8"},
    {"iter time (s): 1.250", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_neox = {
    .name = "neox",
    .summary = "DeepSpeed pipeline engine lines (GPT-NeoX)",
    .literals = neox_literals,
    .parse = parse_neox,
    .samples = neox_samples,
};

static bool parse_paddle(fr_sv text, struct fr_point *ret)
{
    const char *p = text.p, *e = text.p + text.n;
    fr_pairs(p, e, ret);
    if (ret->step < 0) {
        int64_t of;
        fr_word_number(p, e, "global step", &ret->step, &of);
    }
    return ret->step >= 0 && (ret->present & LOSSES) != 0;
}
static const char *const paddle_literals[] = {"global_step: ", "global step ", NULL};
static const struct fr_dialect_sample paddle_samples[] = {
    {"global step 20, epoch: 1, batch: 19, loss: 4.50000, avg_reader_cost: 0.0001 sec, "
     "avg_batch_cost: 0.25 sec, ips: 64.5 sequences/sec",
     "step=20 epoch=1 loss=4.5 throughput=64.5"},
    {"[2023-02-03 04:05:06,789] [    INFO] - loss: 10.5, learning_rate: 1e-05, global_step: 30, "
     "interval_runtime: 2.5, epoch: 0.05",
     "step=30 epoch=0.05 loss=10.5 lr=1e-05"},
    {"global step counter: lost", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_paddle = {
    .name = "paddle",
    .summary = "Paddle and PaddleNLP step lines",
    .literals = paddle_literals,
    .parse = parse_paddle,
    .samples = paddle_samples,
};

/* All on one line behind "step:10 - ", or one name a line. */
static bool parse_verl(fr_sv text, struct fr_point *ret)
{
    fr_pairs(text.p, text.p + text.n, ret);
    ret->flags |= FR_POINT_RL;
    return ret->present != 0;
}
static const char *const verl_literals[] = {
    "actor/pg_loss:", "actor/grad_norm:", "rollout_probs_diff_mean:", "critic/rewards/mean:", NULL};
static const struct fr_dialect_sample verl_samples[] = {
    {"(TaskRunner pid=123) step:12 - global_seqlen/mean:900.5 - actor/pg_loss:0.0125 - "
     "actor/grad_norm:0.25 - critic/rewards/mean:0.5",
     "step=12 loss=0.0125 grad_norm=0.25 reward=0.5 rl"},
    {"actor/grad_norm:nan", "grad_norm=nan rl"},
    {"training/rollout_probs_diff_mean:nan", "aux_loss=nan rl"},
    {"logging actor/pg_loss: see the docs", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_verl = {
    .name = "verl",
    .summary = "verl step metrics",
    .literals = verl_literals,
    .parse = parse_verl,
    .samples = verl_samples,
};

/* "loss_d is nan at step 22", "Loss is NaN at iteration 7": a warning of the program's own, often the first of it. */
static bool parse_said(fr_sv text, struct fr_point *ret)
{
    const char *p = text.p, *e = text.p + text.n, *at = FR_SEEK(p, e, " is nan at ");
    at = at != NULL ? at : FR_SEEK(p, e, " is NaN at ");
    const char *inf = at != NULL ? NULL : FR_SEEK(p, e, " is inf at ");
    const char *end = at != NULL ? at : inf, *name = end;
    while (name != NULL && name > p && (isalnum((unsigned char)name[-1]) || name[-1] == '_' || name[-1] == '/')) {
        name--;
    }
    if (name == NULL || name == end) {
        return false;
    }
    const struct fr_mkey k = fr_mkey_find(fr_sv_range(name, end));
    int64_t of;
    bool known = fr_word_number(end, e, "step", &ret->step, &of) || fr_word_number(end, e, "iteration", &ret->step, &of) ||
                 fr_word_number(end, e, "iter", &ret->step, &of);
    if (!known || k.role == FR_MKEY_NONE) {
        return false;
    }
    fr_mkey_put(ret, k, inf != NULL ? INFINITY : NAN);
    ret->flags |= FR_POINT_SAID;
    return (ret->present & (LOSSES | 1u << FR_METRIC_GRAD_NORM)) != 0;
}
static const char *const said_literals[] = {" is nan at ", " is NaN at ", " is inf at ", NULL};
static const struct fr_dialect_sample said_samples[] = {
    {"loss_d is nan at step 22", "step=22 loss=nan rl said"},
    {"train: loss is NaN at iteration 7, skipping", "step=7 loss=nan said"},
    {"grad_norm is inf at step 9", "step=9 grad_norm=inf said"},
    {"loss is nan at the end", ""},
    {"the price is nan at step 9", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_said = {
    .name = "said",
    .summary = "sentences: loss is nan at step N",
    .literals = said_literals,
    .parse = parse_said,
    .samples = said_samples,
};
