/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSpeed: step= and timer lines, and what the loss scaler says. An OVERFLOW line is a point
 * of the loss scale whose value is what the scale was lowered to; from == to is hysteresis above
 * the minimum and a dead end at it. */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

static bool parse_overflow(const char *p, const char *e, struct fr_point *ret)
{
    ret->flags |= FR_POINT_OVERFLOW;
    fr_point_set(ret, FR_METRIC_SKIPPED, 1);
    const char *q = FR_SEEK(p, e, "Attempted loss scale: ");
    double from, to;
    if (q == NULL) { /* bf16: there is no scale */
        return true;
    }
    q += sizeof "Attempted loss scale: " - 1;
    if (!fr_num(&q, e, &from)) {
        return true;
    }
    ret->attempted = from;
    to = from; /* "..., but hysteresis is 2. Reducing hysteresis to 1" */
    if (FR_AT(q, e, ", reducing to ")) {
        q += sizeof ", reducing to " - 1;
        fr_num(&q, e, &to);
    }
    fr_point_set(ret, FR_METRIC_LOSS_SCALE, to);
    return true;
}

/* "step=10, skipped=2, lr=[1e-05], mom=[(0.9, 0.95)]" */
static bool parse_step(const char *p, const char *e, struct fr_point *ret)
{
    p += sizeof "step=" - 1;
    double v;
    if (!fr_num_int(&p, e, &ret->step) || !FR_AT(p, e, ", skipped=")) {
        return false;
    }
    p += sizeof ", skipped=" - 1;
    if (!fr_num(&p, e, &v)) {
        return false;
    }
    fr_point_set(ret, FR_METRIC_SKIPPED, v);
    ret->flags |= FR_POINT_SKIPPED_SUM;
    if (FR_AT(p, e, ", lr=[")) {
        p += sizeof ", lr=[" - 1;
        if (fr_num(&p, e, &v)) {
            fr_point_set(ret, FR_METRIC_LR, v);
        }
    }
    return true;
}

/* "epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=.., " */
static bool parse_timer(const char *p, const char *e, struct fr_point *ret)
{
    double v;
    p += sizeof "/global_step=" - 1;
    const char *q = fr_num_int(&p, e, &ret->step) ? FR_SEEK(p, e, "CurrSamplesPerSec=") : NULL;
    if (q == NULL) {
        return false;
    }
    q += sizeof "CurrSamplesPerSec=" - 1;
    if (!fr_num(&q, e, &v)) {
        return false;
    }
    fr_point_set(ret, FR_METRIC_THROUGHPUT, v);
    return true;
}

/* "8.0 to 4.0": the fused optimizer's line, once per process. */
static bool parse_reduced(const char *p, const char *e, struct fr_point *ret)
{
    double from, to;
    if (!fr_num(&p, e, &from) || !FR_AT(p, e, " to ")) {
        return false;
    }
    p += sizeof " to " - 1;
    if (!fr_num(&p, e, &to)) {
        return false;
    }
    ret->flags |= FR_POINT_OVERFLOW;
    ret->attempted = from;
    fr_point_set(ret, FR_METRIC_LOSS_SCALE, to);
    return true;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p;
    if ((p = FR_SEEK(text.p, e, "step=")) != NULL) {
        if (parse_step(p, e, ret)) {
            return true;
        }
        if ((p = FR_SEEK(text.p, e, "/global_step=")) != NULL) {
            return parse_timer(p, e, ret);
        }
    }
    if ((p = FR_SEEK(text.p, e, "OVERFLOW! Rank ")) != NULL &&
        FR_SEEK(p, e, "Skipping step.") != NULL) {
        fr_bar_ratio(text.p, p, &ret->step, &ret->max_step);
        return parse_overflow(p, e, ret);
    }
    if ((p = FR_SEEK(text.p, e, "Reducing dynamic loss scale from ")) != NULL) {
        return parse_reduced(p + sizeof "Reducing dynamic loss scale from " - 1, e, ret);
    }
    if (FR_SEEK(text.p, e, "loss scale already at minimum") != NULL) {
        ret->flags |= FR_POINT_OVERFLOW | FR_POINT_AT_MINIMUM;
        fr_point_set(ret, FR_METRIC_SKIPPED, 1);
        return true;
    }
    return false;
}

static const char *const literals[] = {", skipped=", "CurrSamplesPerSec=", "OVERFLOW! Rank ",
                                       "Reducing dynamic loss scale from ", "loss scale already at minimum", NULL};
static const struct fr_dialect_sample samples[] = {
    {"[2024-02-03 04:05:06,789] [INFO] [logging.py:96:log_dist] [Rank 0] step=30, skipped=4, "
     "lr=[2.5e-05, 2.5e-05], mom=[(0.9, 0.95)]",
     "step=30 lr=2.5e-05 skipped=4"},
    {"[2024-02-03 04:05:06,790] [INFO] [timer.py:260:stop] epoch=0/micro_step=60/global_step=30, "
     "RunningAvgSamplesPerSec=40.25, "
     "CurrSamplesPerSec=41.5, MemAllocated=10.21GB, MaxMemAllocated=30.5GB",
     "step=30 throughput=41.5"},
    {"[2024-02-03 04:05:06,791] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! "
     "Rank 0 Skipping step. Attempted loss "
     "scale: 8192, reducing to 4096",
     "loss_scale=4096 skipped=1 overflow from=8192"},
    {"  2%|2   | 31/900 [01:10<30:01,  2.2s/it][2021-02-03 04:05:06,791] [INFO] "
     "[stage2.py:1357:step] [deepscale] OVERFLOW! Rank 0 "
     "Skipping step. Attempted loss scale: 512.0, reducing to 256.0",
     "step=31 max=900 loss_scale=256 skipped=1 overflow from=512"},
    {"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4096, but hysteresis is 2. "
     "Reducing hysteresis to 1",
     "loss_scale=4096 skipped=1 overflow from=4096"},
    {"[deepspeed] OVERFLOW! Rank 0 Skipping step.", "skipped=1 overflow"},
    {"Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting "
     "run.",
     "skipped=1 overflow minimum"},
    {"[2021-02-03 04:05:06,789] [INFO] [fused_optimizer.py:316:_update_scale] Reducing dynamic loss scale from 8.0 to 4.0",
     "loss_scale=4 overflow from=8"},
    {"Reducing dynamic loss scale from now on", ""},
    {"usage: train.py step=N, skipped=K", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_deepspeed = {
    .name = "deepspeed",
    .summary = "DeepSpeed step, timer and loss-scaler lines",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
