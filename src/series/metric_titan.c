/* SPDX-License-Identifier: Apache-2.0 */
/* torchtitan: "step: 10  loss:  7.25  grad_norm:  1.5  memory: 40.12GiB(50.65%)  tps: 1,234
 * tflops: 123.45  mfu: 12.34%", often with ANSI colours between the fields. */
#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "step:");
    if (p == NULL || FR_SEEK(p, e, "tps:") == NULL) {
        return false;
    }
    fr_pairs(p, e, ret);
    return ret->step >= 0 && fr_point_has(ret, FR_METRIC_LOSS);
}

static const char *const literals[] = {" tps: ", "tflops: ", NULL};
static const struct fr_dialect_sample samples[] = {
    {"[rank0]:[titan] 2025-02-03 04:05:06,789 - root - INFO - step: 30  loss:  4.25000  grad_norm: "
     " 0.7500  memory: 20.10GiB(25.10%)  "
     "tps: 8,125  tflops: 88.10  mfu: 28.20%",
     "step=30 loss=4.25 grad_norm=0.75 throughput=8125"},
    {"[titan] - INFO - \x1b[31mstep: 30  \x1b[32mloss:  4.25000  \x1b[33mmemory: 20.10GiB(25.10%)  "
     "\x1b[34mtps: 812  \x1b[36mtflops: 88.10\x1b[39m",
     "step=30 loss=4.25 throughput=812"},
    {"step: 31  loss:      nan  grad_norm:     nan  memory: 20.10GiB(25.10%)  tps: 8,125  tflops: "
     "88.10  mfu: 28.20%",
     "step=31 loss=nan grad_norm=nan throughput=8125"},
    {"see the tps: table for step: names", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_titan = {
    .name = "titan",
    .summary = "torchtitan step lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
