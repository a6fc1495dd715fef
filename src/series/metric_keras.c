/* SPDX-License-Identifier: Apache-2.0 */
/* Keras bars, old and new: " 3/234 [....] - ETA: 33:37 - loss: 44.5 - mse: 1.5" and
 * " 9/938 ━━━━ 3s 1ms/step - accuracy: 0.85 - loss: 0.43". Redrawn in
 * place; the loss is the mean of the epoch so far, so a NaN stays to its end. */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static bool parse(fr_sv text, struct fr_point *ret)
{
    text = fr_last_redraw(text);
    const char *p = text.p, *e = text.p + text.n;
    const char *dash = FR_SEEK(p, e, " - ");
    if (dash == NULL || FR_SEEK(dash, e, "loss: ") == NULL) {
        return false;
    }
    const char *slash = memchr(p, '/', (size_t)(dash - p));
    const char *at = slash;
    while (at != NULL && at > p && fr_is_digit(at[-1])) {
        at--;
    }
    if (at != NULL && at < slash) {
        fr_num_ratio(&at, dash, &ret->step, &ret->max_step);
    }
    int64_t step = ret->step, max_step = ret->max_step;
    fr_pairs(dash, e, ret);
    if (step >= 0 && step == max_step) { /* an epoch's last: a point of no known step */
        ret->step = ret->max_step = -1;
        ret->flags |= FR_POINT_EPOCH;
    } else {
        ret->step = step;
        ret->max_step = max_step;
        ret->flags |= FR_POINT_BAR;
    }
    return (ret->present & (1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS)) != 0;
}

static const char *const literals[] = {" - loss: ", " - val_loss: ", NULL};
static const struct fr_dialect_sample samples[] = {
    {"  7/150 [>.............................] - ETA: 10:24 - loss: 12.5000 - accuracy: 0.2500",
     "step=7 max=150 loss=12.5 accuracy=0.25 bar"},
    {"  8/150 [>.............................] - ETA: 10:24 - loss: nan - mse: nan(683, 1024, 3)",
     "step=8 max=150 loss=nan bar"},
    {"\x1b[1m150/150\x1b[0m \x1b[32m----\x1b[0m\x1b[37m\x1b[0m \x1b[1m3s\x1b[0m 1ms/step - "
     "accuracy: 0.7500 - loss: 0.5000 - val_loss: 0.7500",
     "loss=0.5 accuracy=0.75 eval_loss=0.75 epoch-end"},
    {"notes - loss: none", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_keras = {
    .name = "keras",
    .summary = "Keras progress bars",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
