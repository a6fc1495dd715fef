/* SPDX-License-Identifier: Apache-2.0 */
/* nanoGPT, litgpt and llm.c.
 *   iter 10: loss 4.25, time 123.45ms, mfu 12.34%
 *   step 500: train loss 3.25, val loss 3.5
 *   step   10/1000 | loss 7.125 (+0.12z)| norm 1.25 (-0.34z)| lr 1.00e-05 | 123.45 ms | ...
 *   s:12 trl:9.75 lr:0.000010 norm:3.25        (llm.c's main.log) */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

/* The value behind `key` in [p, e). */
static bool value(const char *p, const char *e, const char *key, double *ret)
{
    const char *q = fr_seek(p, e, key, strlen(key));
    if (q == NULL) {
        return false;
    }
    q = fr_skip_space(q + strlen(key), e);
    return fr_num(&q, e, ret);
}

static void put_time(const char *p, const char *e, struct fr_point *ret)
{
    const char *q = FR_SEEK(p, e, "time");
    if (q == NULL) {
        return;
    }
    q += 4;
    q += q < e && *q == ':';
    q = fr_skip_space(q, e);
    double v;
    if (!fr_num(&q, e, &v)) {
        return;
    }
    q = fr_skip_space(q, e);
    if (FR_AT(q, e, "ms")) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, v * 1e-3);
    } else if (FR_AT(q, e, "s")) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, v);
    }
}

/* Behind "iter " or "step ". */
static bool parse_words(const char *p, const char *e, struct fr_point *ret)
{
    p = fr_skip_space(p, e);
    const char *q = p;
    if (!fr_num_ratio(&q, e, &ret->step, &ret->max_step)) {
        q = p;
        if (!fr_num_int(&q, e, &ret->step)) {
            return false;
        }
    }
    q = fr_skip_space(q, e);
    double v;
    if (q < e && *q == ':') {
        q = fr_skip_space(q + 1, e);
        if (FR_AT(q, e, "train loss ")) {
            if (value(q, e, "val loss ",
                      &v)) { /* both are evaluation averages: the train one is no training point */
                fr_point_set(ret, FR_METRIC_EVAL_LOSS, v);
            }
            return fr_point_has(ret, FR_METRIC_EVAL_LOSS);
        }
    } else if (q < e && *q == '|') {
        q = fr_skip_space(q + 1, e);
    } else {
        return false;
    }
    if (!FR_AT(q, e, "loss ")) {
        return false;
    }
    q = fr_skip_space(q + 5, e);
    if (!fr_num(&q, e, &v)) {
        return false;
    }
    fr_point_set(ret, FR_METRIC_LOSS, v);
    put_time(q, e, ret);
    if (value(q, e, "| norm ", &v)) {
        fr_point_set(ret, FR_METRIC_GRAD_NORM, v);
    }
    if (value(q, e, "| lr ", &v)) {
        fr_point_set(ret, FR_METRIC_LR, v);
    }
    return true;
}

/* "s:12 trl:9.75 lr:0.000010 norm:3.25", the whole line. */
static bool parse_terse(const char *p, const char *e, struct fr_point *ret)
{
    double v;
    p += 2;
    if (!fr_num_int(&p, e, &ret->step) || p >= e || *p != ' ') {
        return false;
    }
    if (value(p, e, " tel:", &v)) {
        fr_point_set(ret, FR_METRIC_EVAL_LOSS, v);
    }
    if (value(p, e, " trl:", &v)) {
        fr_point_set(ret, FR_METRIC_LOSS, v);
    }
    if (value(p, e, " norm:", &v)) {
        fr_point_set(ret, FR_METRIC_GRAD_NORM, v);
    }
    if (value(p, e, " lr:", &v)) {
        fr_point_set(ret, FR_METRIC_LR, v);
    }
    return (ret->present & ~(1u << FR_METRIC_LR)) != 0;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p;
    if ((p = FR_SEEK(text.p, e, "iter ")) != NULL && parse_words(p + 5, e, ret)) {
        return true;
    }
    if ((p = FR_SEEK(text.p, e, "step ")) != NULL && parse_words(p + 5, e, ret)) {
        return true;
    }
    p = FR_SEEK(text.p, e, "s:");
    return p != NULL && (p == text.p || p[-1] == ' ') && parse_terse(p, e, ret);
}

static const char *const literals[] = {": loss ", "| loss ", ": train loss ",
                                       " trl:",   " tel:",   NULL};
static const struct fr_dialect_sample samples[] = {
    {"iter 120: loss 5.2500, time 312.50ms, mfu 21.50%", "step=120 loss=5.25 step_time=0.3125"},
    {"2024-01-02 03:04:05 iter 130: loss nan, time 250.00ms, mfu 21.50%",
     "step=130 loss=nan step_time=0.25"},
    {"step 500: train loss 3.2500, val loss 3.5000", "step=500 eval_loss=3.5"},
    {"iter 7: loss 2.5000, time: 1500.00ms, speed: 900 toks/s/device",
     "step=7 loss=2.5 step_time=1.5"},
    {"step   15/2000 | loss 6.500000 (+0.10z)| norm 1.7500 (-0.30z)| lr 2.00e-05 | 211.50 ms | "
     "31.0% bf16 MFU | 90112 tok/s",
     "step=15 max=2000 loss=6.5 grad_norm=1.75 lr=2e-05"},
    {"s:12 trl:9.7500 lr:0.000010 norm:3.25", "step=12 loss=9.75 grad_norm=3.25 lr=1e-05"},
    {"s:250 tel:5.1250", "step=250 eval_loss=5.125"},
    {"Epoch 2 | step 900 | loss nan | lr 1.0e-04", "step=900 loss=nan lr=0.0001"},
    {"one more step : loss of precision", ""},
    {"iter 3: loss of signal", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_nanogpt = {
    .name = "nanogpt",
    .summary = "nanoGPT, litgpt and llm.c step lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
