/* SPDX-License-Identifier: Apache-2.0 */
/* NeMo and Lightning.
 *   NeMo 2: Training epoch 0, iteration 120/149 | lr: 3e-05 | global_batch_size: 1 | global_step:
 *   120 | reduced_train_loss: 1.25 |
 *           train_step_timing in s: 0.03125 | val_loss: 4.125
 *   bar:    Epoch 0:   1%|          | 795/77225 [9:07:58<878:01:48, 41.36s/it, loss=3.25, v_num=0,
 *           reduced_train_loss=3.125, global_step=794.0]
 * In a bar `loss` is a running mean; the loss of the step is preferred where it is there. */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static bool value(const char *p, const char *e, const char *key, double *ret)
{
    const char *q = fr_seek(p, e, key, strlen(key));
    if (q == NULL) {
        return false;
    }
    q = fr_skip_space(q + strlen(key), e);
    return fr_num(&q, e, ret);
}

static bool parse_bar(const char *p, const char *e, struct fr_point *ret)
{
    const char *open = FR_SEEK(p, e, "%|"), *q;
    int64_t at, of;
    double v;
    if (open == NULL || !fr_bar_ratio(p, e, &at, &of)) {
        return false;
    }
    const char *bracket = memchr(open, '[', (size_t)(e - open));
    if (bracket == NULL) {
        return false;
    }
    fr_pairs(bracket, e, ret);
    if (value(bracket, e, "reduced_train_loss=", &v) || value(bracket, e, "train_loss_step=", &v) ||
        value(bracket, e, "train_loss=", &v)) {
        fr_point_set(ret, FR_METRIC_LOSS, v);
    }
    if ((ret->present & (1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS)) == 0) {
        return false;
    }
    ret->flags |= FR_POINT_BAR;
    q = FR_SEEK(p, open, "Epoch ");
    int64_t epoch;
    if (q != NULL && (q += sizeof "Epoch " - 1, fr_num_int(&q, open, &epoch))) {
        ret->epoch = (double)epoch;
    }
    if (ret->step < 0) {
        ret->step = at;
        ret->max_step = of;
        fr_point_across_epochs(ret, 0);
    }
    return true;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    text = fr_last_redraw(text);
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "Training epoch ");
    double v;
    if (p == NULL) {
        return parse_bar(text.p, e, ret);
    }
    fr_pairs(p, e, ret);
    if (value(p, e, "train_step_timing in s: ", &v)) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, v);
    }
    return ret->step >= 0 && fr_point_has(ret, FR_METRIC_LOSS);
}

static const char *const literals[] = {"reduced_train_loss", "v_num=", NULL};
static const struct fr_dialect_sample samples[] = {
    {"Training epoch 0, iteration 30/400 | lr: 2.5e-05 | consumed_samples: 31 | global_batch_size: "
     "4 | global_step: 30 | "
     "reduced_train_loss: 1.25 | train_step_timing in s: 0.25 | val_loss: 3.5",
     "step=30 batch=4 loss=1.25 lr=2.5e-05 step_time=0.25 eval_loss=3.5"},
    {"Epoch 0:   1%|1         | 30/4000 [1:02:03<99:01:02,  2.50s/it, loss=3.25, v_num=ab12, "
     "reduced_train_loss=3.500, global_step=29.0, "
     "consumed_samples=960.0]",
     "step=29 epoch=0 loss=3.5 bar"},
    {"Epoch 2:  50%|#####     | 20/40 [00:12<00:12,  1.60it/s, v_num=3, train_loss=nan, "
     "val_loss=0.75]",
     "step=100 epoch=2 loss=nan eval_loss=0.75 bar"},
    {"v_num=3 is the version", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_lightning = {
    .name = "lightning",
    .summary = "NeMo step lines and Lightning progress bars",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
