/* SPDX-License-Identifier: Apache-2.0 */
/* fairseq and metaseq, in three generations of one logger:
 *   | train_inner | {"epoch": 1, "loss": "9.5", "num_updates": "100", "gnorm": "1.2", "loss_scale":
 *   "64", ...} epoch 001:    100 / 1000 loss=9.5, ppl=.., num_updates=100, gnorm=1.2, loss_scale=64
 *   | epoch 002 | loss 9.5 | num_updates 700 | gnorm 1.2 | loss_scale 64 |       and the same with
 *   "valid on 'valid' subset"
 * A loss scale below 0.5 is printed as 0. Overflow lines name the scale it was lowered to. */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static bool parse_overflow(const char *p, const char *e, struct fr_point *ret)
{
    const char *q = FR_SEEK(p, e, "scale to");
    double v;
    if (q == NULL || FR_SEEK(p, q, "verflow detected") == NULL) {
        return false;
    }
    q += sizeof "scale to" - 1;
    while (q < e && (*q == ':' || *q == ' ' || *q == 't' ||
                     *q == 'o')) { /* "setting scale to to 1024", as the program prints it */
        q++;
    }
    if (!fr_num(&q, e, &v)) {
        return false;
    }
    ret->flags |= FR_POINT_OVERFLOW;
    fr_point_set(ret, FR_METRIC_LOSS_SCALE, v);
    fr_point_set(ret, FR_METRIC_SKIPPED, 1);
    return true;
}

/* "name value" between bars; the name may not be known. */
static void segment(const char *p, const char *e, bool valid, struct fr_point *ret)
{
    p = fr_skip_space(p, e);
    const char *space = memchr(p, ' ', (size_t)(e - p));
    if (space == NULL) {
        return;
    }
    struct fr_mkey k = fr_mkey_find(fr_sv_range(p, space));
    const char *q = fr_skip_space(space, e);
    double v;
    if (k.role == FR_MKEY_NONE || !fr_num(&q, e, &v)) {
        return;
    }
    if (k.role == 1 + FR_METRIC_LOSS && valid) {
        k.role = 1 + FR_METRIC_EVAL_LOSS;
    }
    fr_mkey_put(ret, k, v);
}

static bool parse_bars(const char *p, const char *e, struct fr_point *ret)
{
    bool valid = FR_SEEK(p, e, "valid on ") != NULL;
    while (p < e) {
        const char *bar = memchr(p, '|', (size_t)(e - p));
        segment(p, bar != NULL ? bar : e, valid, ret);
        if (bar == NULL) {
            break;
        }
        p = bar + 1;
    }
    return ret->step >= 0 &&
           (ret->present & (1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS)) != 0;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *p = text.p, *e = text.p + text.n;
    if (parse_overflow(p, e, ret)) {
        return true;
    }
    if (FR_SEEK(p, e, "Minimum loss scale reached") != NULL) {
        ret->flags |= FR_POINT_OVERFLOW | FR_POINT_AT_MINIMUM;
        fr_point_set(ret, FR_METRIC_SKIPPED, 1);
        return true;
    }
    if (FR_SEEK(p, e, "| num_updates ") != NULL) {
        return parse_bars(p, e, ret);
    }
    if (FR_SEEK(p, e, "num_updates") == NULL) {
        return false;
    }
    fr_pairs(p, e, ret);
    return ret->step >= 0 &&
           (ret->present & (1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS)) != 0;
}

static const char *const literals[] = {
    "scale to: ",   "setting scale to",  "Minimum loss scale reached", "| num_updates ",
    "num_updates=", "\"num_updates\": ", "valid_num_updates\"",        NULL};
static const struct fr_dialect_sample samples[] = {
    {"2021-02-03 04:05:06 | INFO | train_inner | {\"epoch\": 3, \"update\": 2.51, \"loss\": "
     "\"4.25\", \"ppl\": \"19.0\", \"wps\": \"81000\", "
     "\"num_updates\": \"900\", \"lr\": \"0.0005\", \"gnorm\": \"0.75\", \"loss_scale\": \"8\", "
     "\"wall\": \"771\"}",
     "step=900 epoch=3 loss=4.25 grad_norm=0.75 loss_scale=8 lr=0.0005 throughput=81000"},
    {"epoch 002:     40 / 500 loss=5.5, nll_loss=4.25, ppl=19.0, wps=81000, num_updates=540, "
     "lr=0.0003, gnorm=1.5, loss_scale=16",
     "step=540 loss=5.5 grad_norm=1.5 loss_scale=16 lr=0.0003 throughput=81000 aux_loss=4.25"},
    {"| epoch 004 | loss 5.250 | nll_loss 3.5 | ppl 11.3 | wps 90000 | num_updates 2100 | lr "
     "0.0004 | gnorm 0.5 | loss_scale 0.250",
     "step=2100 epoch=4 loss=5.25 grad_norm=0.5 loss_scale=0.25 lr=0.0004 throughput=90000 "
     "aux_loss=3.5"},
    {"| epoch 004 | valid on 'valid' subset | valid_loss 7.5 | valid_nll_loss 6.5 | num_updates "
     "2100 | best 3.75",
     "step=2100 epoch=4 eval_loss=7.5 best=3.75"},
    {"2021-02-03 04:05:06 | INFO | valid | epoch 002 | valid on 'valid' subset | loss 6.25 | ppl "
     "76.1 | num_updates 540 | best_loss 6.25",
     "step=540 epoch=2 eval_loss=6.25 best=6.25"},
    {"| WARNING: overflow detected, setting loss scale to: 0.5",
     "loss_scale=0.5 skipped=1 overflow"},
    {"2021-02-03 04:05:06 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring "
     "gradient, setting loss scale to: 32.0",
     "loss_scale=32 skipped=1 overflow"},
    {"AMP: overflow detected, setting scale to to 1024", "loss_scale=1024 skipped=1 overflow"},
    {"FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.",
     "skipped=1 overflow minimum"},
    {"setting scale to fit the page", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_fairseq = {
    .name = "fairseq",
    .summary = "fairseq and metaseq training, validation and overflow lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
