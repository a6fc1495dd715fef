/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMMLab (mmcv, mmengine; xtuner on top): "Epoch(train) [2][240/735]  lr: ..", "Iter(train) [
 * 240/3000]  lr: ..", older "Epoch [2][50/100]<tab>lr: .., eta: .., time: .., loss: ..". Epochs
 * count from 1, iterations restart in each. */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

/* Behind "Epoch(train) " or "Epoch ": "[2][240/735]". */
static bool place(const char **p, const char *e, struct fr_point *ret, bool epochs)
{
    const char *q = fr_skip_space(*p, e);
    int64_t epoch;
    if (q >= e || *q++ != '[') {
        return false;
    }
    if (epochs) {
        q = fr_skip_space(q, e);
        if (!fr_num_int(&q, e, &epoch) || !FR_AT(q, e, "][")) {
            return false;
        }
        ret->epoch = (double)epoch;
        q += 2;
    }
    if (!fr_num_ratio(&q, e, &ret->step, &ret->max_step) || q >= e || *q != ']') {
        return false;
    }
    *p = q + 1;
    return true;
}

static const char *find_place(const char *p, const char *e, struct fr_point *ret)
{
    static const struct {
        const char *word;
        bool epochs;
    } words[] = {
        {"Epoch(train)", true}, {"Iter(train)", false}, {"Epoch ", true}, {"Iter ", false}};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        const char *q = fr_seek(p, e, words[i].word, n);
        if (q != NULL && (q += n, place(&q, e, ret, words[i].epochs))) {
            return q;
        }
    }
    return NULL;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = find_place(text.p, e, ret), *q;
    if (p == NULL) {
        return false;
    }
    fr_pairs(p, e, ret);
    if (!fr_point_has(ret, FR_METRIC_LOSS)) {
        return false;
    }
    double v;
    q = FR_SEEK(p, e, " time: ");
    if (q != NULL && (q += sizeof " time: " - 1, fr_num(&q, e, &v))) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, v);
    }
    fr_point_across_epochs(ret, 1);
    return true;
}

static const char *const literals[] = {"(train) [", "data_time: ", NULL};
static const struct fr_dialect_sample samples[] = {
    {"02/03 04:05:06 - mmengine - INFO - Epoch(train) [2][ 30/500]  lr: 1.5000e-04  eta: 1:02:03  "
     "time: 1.2500  data_time: 0.0050  "
     "memory: 9000  loss: 1.7500  grad_norm: inf",
     "step=530 epoch=2 loss=1.75 grad_norm=inf lr=0.00015 step_time=1.25"},
    {"02/03 04:05:06 - mmengine - INFO - Iter(train) [ 40/9000]  lr: 2.0000e-05  eta: 3:02:03  "
     "time: 0.5000  data_time: 0.0050  "
     "memory: 9000  loss: 1.7500  grad_norm: nan",
     "step=40 max=9000 loss=1.75 grad_norm=nan lr=2e-05 step_time=0.5"},
    {"2022-02-03 04:05:06,789 - mmdet - INFO - Epoch [1][50/700]\tlr: 2.000e-03, eta: 4:00:01, "
     "time: 0.750, data_time: 0.040, memory: 5000, "
     "loss_rpn_cls: 0.25, loss: 2.5000",
     "step=50 epoch=1 loss=2.5 lr=0.002 step_time=0.75"},
    {"02/03 04:05:06 - mmengine - INFO - Epoch(val) [2][50/50]    accuracy/top1: 61.2  data_time: "
     "0.01  time: 0.1",
     ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_mmengine = {
    .name = "mmengine",
    .summary = "mmengine, mmcv and xtuner training lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
