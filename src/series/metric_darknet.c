/* SPDX-License-Identifier: Apache-2.0 */
/* Darknet's iteration lines: " 181: 590.9, 834.7 avg loss, 0.001 rate, 1.93 seconds, 11584 images" (src/detector.c: the loss of the
 * batch, a running mean, the learning rate); older ones have " avg, ". */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = fr_skip_space(text.p, e), *mean = FR_SEEK(text.p, e, " avg");
    double step, loss, rate, seconds;
    if (mean == NULL || !fr_num(&p, e, &step) || !(step >= 0 && step < 1e12) || p >= e || *p != ':') {
        return false;
    }
    p = fr_skip_space(p + 1, e);
    if (!fr_num(&p, e, &loss) || p >= e || *p != ',') {
        return false;
    }
    p = mean + sizeof " avg" - 1;
    p += FR_AT(p, e, " loss") ? sizeof " loss" - 1 : 0;
    if (!FR_AT(p, e, ", ")) {
        return false;
    }
    p += 2;
    if (!fr_num(&p, e, &rate) || !FR_AT(p, e, " rate, ")) {
        return false;
    }
    ret->step = (int64_t)step;
    fr_point_set(ret, FR_METRIC_LOSS, loss);
    fr_point_set(ret, FR_METRIC_LR, rate);
    p += sizeof " rate, " - 1;
    if (fr_num(&p, e, &seconds) && FR_AT(p, e, " seconds")) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, seconds);
    }
    return true;
}

static const char *const literals[] = {" avg loss, ", " avg, 0", NULL};
static const struct fr_dialect_sample samples[] = {
    {" 181: 590.5, 834.75 avg loss, 0.001000 rate, 1.5 seconds, 11584 images, 17.973280 hours left",
     "step=181 loss=590.5 lr=0.001 step_time=1.5"},
    {" 182: -nan, -nan avg loss, 0.000000 rate, 2.25 seconds, 11648 images", "step=182 loss=nan lr=0 step_time=2.25"},
    {"183: 112.5, 11.25 avg, 0.001000 rate, 1.5 seconds, 6072 images", "step=183 loss=112.5 lr=0.001 step_time=1.5"},
    {"the avg loss, as printed", ""},
    {"184: 112.5, the avg, 0 of 3", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_darknet = {
    .name = "darknet",
    .summary = "Darknet (YOLO) iteration lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
