/* SPDX-License-Identifier: Apache-2.0 */
/* OLMo and composer print a header with the step, then one metric a line. A header is a point
 * without metrics.
 *   olmo.train:966  INFO  [step=10/1000,epoch=0]        then     train/CrossEntropyLoss=7.25
 *   [epoch=1][batch=10/1000]:                           then     Train loss/train/total: 7.25 */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static bool header(const char *p, const char *e, const char *key, struct fr_point *ret)
{
    const char *q = fr_seek(p, e, key, strlen(key));
    if (q == NULL) {
        return false;
    }
    q += strlen(key);
    if (!fr_num_ratio(&q, e, &ret->step, &ret->max_step)) {
        return false;
    }
    ret->flags |= FR_POINT_HEADER;
    return true;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *p = text.p, *e = text.p + text.n, *q;
    double epoch;
    if (header(p, e, "[step=", ret) || header(p, e, "][batch=", ret)) {
        q = FR_SEEK(p, e, "epoch=");
        if (q != NULL && (q += sizeof "epoch=" - 1, fr_num(&q, e, &epoch))) {
            ret->epoch = epoch;
        }
        return true;
    }
    fr_pairs(p, e, ret);
    if ((q = FR_SEEK(p, e, "LanguageCrossEntropy: ")) != NULL && FR_SEEK(p, q, "eval") != NULL) {
        q += sizeof "LanguageCrossEntropy: " - 1;
        double v;
        if (fr_num(&q, e, &v)) {
            fr_point_set(ret, FR_METRIC_EVAL_LOSS, v);
        }
    }
    return ret->present != 0;
}

static const char *const literals[] = {"[step=",
                                       "][batch=",
                                       "train/CrossEntropyLoss=",
                                       "optim/total_grad_norm=",
                                       "train/CE loss=",
                                       "loss/train/total: ",
                                       "l2_norm/grad/global: ",
                                       "LanguageCrossEntropy: ",
                                       NULL};
static const struct fr_dialect_sample samples[] = {
    {"2024-02-03 04:05:06.123\tnode07:0\tolmo.train:966\tINFO\t[step=12/9000,epoch=0]",
     "step=12 max=9000 epoch=0 header"},
    {"    train/CrossEntropyLoss=3.25", "loss=3.25"},
    {"    train/CE loss=3.25", "loss=3.25"},
    {"    optim/total_grad_norm=1.5", "grad_norm=1.5"},
    {"[epoch=1][batch=30/400]:", "step=30 max=400 epoch=1 header"},
    {"\t Train loss/train/total: nan", "loss=nan"},
    {"\t Eval metrics/eval/LanguageCrossEntropy: 2.5", "eval_loss=2.5"},
    {"[step=many]", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_olmo = {
    .name = "olmo",
    .summary = "OLMo and composer: a header line and one metric a line",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
