/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron-LM's " iteration N/ M | name: value | ... |" line, all ages, with the columns of Megatron-DeepSpeed and GPT-NeoX.
 * A NaN (or negative) average loss is not printed: its whole column is left out. That is the `missing` bit, set only when
 * columns that follow the loss are there, so a hard-wrapped line does not look like one. */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

/* Columns we have no use for; told apart by first letters so that no table is asked. */
static bool is_noise(const char *p, const char *e)
{
    return e - p < 6 || p[0] == 'c' || FR_AT(p, e, "num ze") || FR_AT(p, e, "params") || FR_AT(p, e, "actual") ||
           FR_AT(p, e, "throug") || FR_AT(p, e, "TFLOPs") || FR_AT(p, e, "approx");
}

/* One column at p (behind its '|'), which ends before e. */
static void column(const char *p, const char *e, struct fr_point *ret, unsigned *after_loss)
{
    p = fr_skip_space(p, e);
    if (is_noise(p, e)) {
        return;
    }
    const char *colon = memchr(p, ':', (size_t)(e - p));
    if (colon == NULL) {
        return;
    }
    struct fr_mkey k = fr_mkey_find(fr_sv_range(p, colon));
    if (k.role == FR_MKEY_NONE) {
        return;
    }
    const char *q = fr_skip_space(colon + 1, e);
    double v;
    if (!fr_num(&q, e, &v)) {
        return;
    }
    fr_mkey_put(ret, k, v);
    if (k.role == 1 + FR_METRIC_GRAD_NORM || k.role == 1 + FR_METRIC_LOSS_SCALE || k.role == 1 + FR_METRIC_SKIPPED) {
        ++*after_loss;
    }
}

/* " validation loss at iteration 1000 | lm loss value: 2.5E+00 | lm loss PPL: ... |" */
static bool parse_validation(const char *p, const char *e, struct fr_point *ret)
{
    unsigned n = 0;
    const char *at = FR_SEEK(p, e, "iteration ");
    if (at != NULL) {
        at += 10;
        fr_num_int(&at, e, &ret->step);
    }
    while ((p = memchr(p, '|', (size_t)(e - p))) != NULL) {
        p++;
        const char *next = memchr(p, '|', (size_t)(e - p));
        column(p, next != NULL ? next : e, ret, &n);
    }
    return fr_point_has(ret, FR_METRIC_EVAL_LOSS);
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n, *p = FR_SEEK(text.p, e, "iteration ");
    if (p == NULL) {
        p = FR_SEEK(text.p, e, "validation loss at ");
        return p != NULL && parse_validation(p, e, ret);
    }
    const char *q = p + 10;
    if (!fr_num_ratio(&q, e, &ret->step, &ret->max_step)) {
        return FR_SEEK(text.p, p, "validation loss at ") != NULL && parse_validation(p, e, ret);
    }
    q = fr_skip_space(q, e);
    if (q >= e || *q != '|') {
        return false;
    }
    unsigned after_loss = 0;
    bool scheduled = false;
    do {
        q++;
        const char *next = memchr(q, '|', (size_t)(e - q));
        scheduled |= FR_AT(q, e, " learning rate:");
        column(q, next != NULL ? next : e, ret, &after_loss);
        q = next;
    } while (q != NULL);
    if (!fr_point_has(ret, FR_METRIC_LOSS) && scheduled && after_loss >= 2) {
        ret->missing |= 1u << FR_METRIC_LOSS;
    }
    return (ret->present | ret->missing) != 0;
}

static const char *const literals[] = {"elapsed time per iteration", "lm loss value: ", NULL};
static const struct fr_dialect_sample samples[] = {
    {" [2025-03-04 05:06:07.123456] iteration       70/    9000 | consumed samples:         1120 | elapsed time per iteration (ms): "
     "812.5 | throughput per GPU (TFLOP/s/GPU): 388.2 | learning rate: 1.250000E-04 | global batch size:    16 | lm loss: "
     "7.125000E+00 | loss scale: 1.0 | grad norm: 2.750 | num zeros: 3 | params norm: 88.125 | number of skipped iterations:   0 "
     "| number of nan iterations:   0 |",
     "step=70 max=9000 batch=16 loss=7.125 grad_norm=2.75 loss_scale=1 lr=0.000125 step_time=0.8125 skipped=0 nan_count=0"},
    {" iteration      812/   20000 | consumed samples:  6496 | elapsed time per iteration (ms): 4300.0 | learning rate: 2.5E-04 | "
     "global batch size:     8 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:   0 | number of nan iterations:   0 |",
     "step=812 max=20000 batch=8 grad_norm=nan loss_scale=1 lr=0.00025 step_time=4.3 skipped=0 nan_count=0 missing=loss"},
    {"[default7]: iteration   1200/  5000 | consumed samples: 9600 | elapsed time per iteration (s): 21.50 | learning",
     "step=1200 max=5000 step_time=21.5"},
    {" samples/sec: 2.5 | iteration        3/    4000 | elapsed time per iteration (ms): 1250.0 | learning rate: 1.5E-07 | approx "
     "flops per GPU: 21.0TFLOPS | lm_loss: 2.250000E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |",
     "step=3 max=4000 loss=2.25 lr=1.5e-07 step_time=1.25 skipped=0 nan_count=0"},
    {" validation loss at iteration 500 | lm loss value: 3.125000E+00 | lm loss PPL: 2.276E+01 |", "step=500 eval_loss=3.125"},
    {" iteration 5/ 10 | elapsed time per iteration (ms): 100.0 | learning rate: 1.0E-03 | lm loss: NAN | loss scale: 2.0 | grad norm: inf |",
     "step=5 max=10 loss=nan grad_norm=inf loss_scale=2 lr=0.001 step_time=0.1"},
    {"the elapsed time per iteration (ms) is printed by rank 0", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_megatron = {
    .name = "megatron", .summary = "Megatron-LM iteration lines (also Megatron-DeepSpeed, GPT-NeoX)",
    .literals = literals, .parse = parse, .samples = samples,
};
