/* SPDX-License-Identifier: Apache-2.0 */
/* apex amp's scaler: every rank prints it for every skipped step. */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "reducing loss scale to ");
    double v;
    if (p == NULL) {
        return false;
    }
    p += sizeof "reducing loss scale to " - 1;
    if (!fr_num(&p, e, &v)) {
        return false;
    }
    ret->flags |= FR_POINT_OVERFLOW;
    fr_point_set(ret, FR_METRIC_LOSS_SCALE, v);
    fr_point_set(ret, FR_METRIC_SKIPPED, 1);
    return true;
}

static const char *const literals[] = {"reducing loss scale to ", NULL};
static const struct fr_dialect_sample samples[] = {
    {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 16384.0",
     "loss_scale=16384 skipped=1 overflow"},
    {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 2.5e-309",
     "loss_scale=2.5e-309 skipped=1 overflow"},
    {"reducing loss scale to zero is not possible", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_apex = {
    .name = "apex",
    .summary = "apex amp gradient overflow lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
