/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object a line (LLaMA-Factory's trainer_log.jsonl, structured loggers), or the lines
 * of a pretty-printed one (trainer_state.json). Bare NaN and Infinity are common, quoted numbers
 * too. */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = memchr(text.p, '"', text.n);
    if (p == NULL) {
        return false;
    }
    fr_pairs(p, e, ret);
    if ((ret->flags & FR_POINT_SUMMARY) != 0) {
        ret->present &= ~(1u << FR_METRIC_LOSS | 1u << FR_METRIC_THROUGHPUT);
        return true;
    }
    return (ret->present &
            (1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS | 1u << FR_METRIC_GRAD_NORM)) != 0;
}

static const char *const literals[] = {"loss\": ", "loss\":", "grad_norm\":", NULL};
static const struct fr_dialect_sample samples[] = {
    {"{\"current_steps\": 20, \"total_steps\": 300, \"loss\": 1.25, \"lr\": 4.5e-05, \"epoch\": "
     "0.25, \"percentage\": 6.67, \"elapsed_time\": \"0:01:02\"}",
     "step=20 max=300 epoch=0.25 loss=1.25 lr=4.5e-05"},
    {"{\"step\":40,\"train/loss\":NaN,\"train/grad_norm\":Infinity}",
     "step=40 loss=nan grad_norm=inf"},
    {"      \"eval_loss\": 0.75,", "eval_loss=0.75"},
    {"{\"loss\": \"cross_entropy\"}", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_json = {
    .name = "json",
    .summary = "JSON metric lines (LLaMA-Factory and others)",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
