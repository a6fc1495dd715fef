/* SPDX-License-Identifier: Apache-2.0 */
/* Megatron-LM's " iteration N/ M | name: value | ... |" line, all ages, with the columns of
 * Megatron-DeepSpeed and GPT-NeoX. A NaN (or negative) average loss is not printed: its whole
 * column is left out. That is the `missing` bit, set only when columns that follow the loss are
 * there, so a hard-wrapped line does not look like one. */
#include <math.h>

#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

enum { COLUMNS_MAX = 40 };

#define W(a, b, c, d)                                                                              \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* What a column's name is told by: its first four letters, and where its colon is. */
struct known {
    uint8_t colon;  /* 0: not one of the usual ones, and metric says whether to look it up */
    uint8_t metric; /* FR_METRIC_COUNT_: the batch */
};

static struct known known_column(const char *p, size_t n)
{
    uint32_t w = (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8 |
                 (uint32_t)(unsigned char)p[2] << 16 | (uint32_t)(unsigned char)p[3] << 24;
    switch (w) {
    case W('e', 'l', 'a', 'p'): /* "elapsed time per iteration (ms)" */
        return (struct known){n > 31 && p[30] == ')' ? 31 : 30, FR_METRIC_STEP_TIME};
    case W('l', 'e', 'a', 'r'):
        return (struct known){13, FR_METRIC_LR};
    case W('l', 'm', ' ', 'l'):
    case W('l', 'm', '_', 'l'):
        return (struct known){7, FR_METRIC_LOSS};
    case W('l', 'o', 's', 's'): /* "loss scale" */
        return (struct known){10, FR_METRIC_LOSS_SCALE};
    case W('g', 'r', 'a', 'd'):
        return (struct known){9, FR_METRIC_GRAD_NORM};
    case W('g', 'l', 'o', 'b'):
        return (struct known){17, FR_METRIC_COUNT_};
    case W('n', 'u', 'm', 'b'): /* "number of skipped iterations", "number of nan iterations" */
        return n > 10 && p[10] == 's' ? (struct known){28, FR_METRIC_SKIPPED}
                                      : (struct known){24, FR_METRIC_NAN_COUNT};
    case W('s', 'a', 'm', 'p'):
        return (struct known){18, FR_METRIC_THROUGHPUT};
    case W('c', 'o', 'n', 's'):
    case W('t', 'h', 'r', 'o'):
    case W('n', 'u', 'm', ' '):
    case W('p', 'a', 'r', 'a'):
    case W('a', 'c', 't', 'u'):
    case W('a', 'p', 'p', 'r'):
    case W('T', 'F', 'L', 'O'):
        return (struct known){0, 0}; /* we have no use for it */
    default:
        return (struct known){0, 1};
    }
}

/* A column whose name is not one of the usual ones. */
static void other_column(const char *p, const char *e, struct fr_point *ret)
{
    const char *colon = memchr(p, ':', (size_t)(e - p));
    if (colon == NULL) {
        return;
    }
    struct fr_mkey k = fr_mkey_find(fr_sv_range(p, colon));
    const char *q = fr_skip_space(colon + 1, e);
    double v;
    if (k.role != FR_MKEY_NONE && fr_num(&q, e, &v)) {
        fr_mkey_put(ret, k, v);
    }
}

/* The column [p, e) between two bars, or behind the last one, where e is the line's end. */
static void column(const char *p, const char *e, const char *end, struct fr_point *ret)
{
    p += p < e && *p == ' ';
    if (e - p < 8) {
        return;
    }
    struct known k = known_column(p, (size_t)(e - p));
    if (k.colon == 0 && k.metric == 0) {
        return;
    }
    if (k.colon == 0 || e - p <= k.colon || p[k.colon] != ':') {
        other_column(p, e, ret);
        return;
    }
    const char *q = fr_skip_pad(p + k.colon + 1, end);
    double v;
    if (e - q >= 2 && *q == '0' && q[1] == ' ') { /* the usual count */
        v = 0;
    } else if (q >= e || !((e < end && fr_num_short(&q, e, false, &v)) || fr_num(&q, end, &v))) {
        return;
    }
    if (k.metric == FR_METRIC_COUNT_) {
        ret->global_batch = v >= 0 && v < 1e15 ? (int64_t)v : -1;
    } else {
        fr_point_set(ret, (enum fr_metric)k.metric, k.colon == 31 ? v * 1e-3 : v); /* "... (ms)" */
    }
}

/* All columns between p (the first bar) and e. Their places come first, so that no column waits
 * for the one before. */
static void columns(const char *p, const char *e, struct fr_point *ret)
{
    const char *bars[COLUMNS_MAX + 1];
    unsigned n = fr_seek_all(p, e, '|', bars, COLUMNS_MAX);
    bars[n] = e;
    for (unsigned i = 0; i < n; i++) {
        column(bars[i] + 1, bars[i + 1], e, ret);
    }
}

/* " validation loss at iteration 1000 | lm loss value: 2.5E+00 | lm loss PPL: ... |" */
static bool parse_validation(const char *p, const char *e, struct fr_point *ret)
{
    const char *at = FR_SEEK(p, e, "iteration ");
    if (at != NULL) {
        at += 10;
        fr_num_int(&at, e, &ret->step);
    }
    const char *q = FR_SEEK(p, e, "lm loss value:");
    double v;
    if (q == NULL) {
        return false;
    }
    q = fr_skip_space(q + sizeof "lm loss value:" - 1, e);
    if (!fr_num(&q, e, &v)) {
        return false;
    }
    fr_point_set(ret, FR_METRIC_EVAL_LOSS, v);
    return true;
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
    columns(q, e, ret);
    const uint32_t around = 1u << FR_METRIC_LR | 1u << FR_METRIC_LOSS_SCALE |
                            1u << FR_METRIC_SKIPPED;
    bool skipped = fr_point_has(ret, FR_METRIC_SKIPPED) && ret->value[FR_METRIC_SKIPPED] > 0 &&
                   !fr_point_has(ret, FR_METRIC_GRAD_NORM); /* then there was nothing to average */
    bool sound = fr_point_has(ret, FR_METRIC_GRAD_NORM) && isfinite(ret->value[FR_METRIC_GRAD_NORM]); /* its loss stands elsewhere */
    if (!fr_point_has(ret, FR_METRIC_LOSS) && (ret->present & around) == around && !skipped && !sound) {
        ret->missing |= 1u << FR_METRIC_LOSS;
    }
    return (ret->present | ret->missing) != 0;
}

static const char *const literals[] = {"elapsed time per iteration", "lm loss value: ", NULL};
static const struct fr_dialect_sample samples[] = {
    {" [2025-03-04 05:06:07.123456] iteration       70/    9000 | consumed samples:         1120 | "
     "elapsed time per iteration (ms): "
     "812.5 | throughput per GPU (TFLOP/s/GPU): 388.2 | learning rate: 1.250000E-04 | global batch "
     "size:    16 | lm loss: "
     "7.125000E+00 | loss scale: 1.0 | grad norm: 2.750 | num zeros: 3 | params norm: 88.125 | "
     "number of skipped iterations:   0 "
     "| number of nan iterations:   0 |",
     "step=70 max=9000 batch=16 loss=7.125 grad_norm=2.75 loss_scale=1 lr=0.000125 "
     "step_time=0.8125 skipped=0 nan_count=0"},
    {" iteration      812/   20000 | consumed samples:  6496 | elapsed time per iteration (ms): "
     "4300.0 | learning rate: 2.5E-04 | "
     "global batch size:     8 | loss scale: 1.0 | grad norm: nan | number of skipped iterations:  "
     " 0 | number of nan iterations:   0 |",
     "step=812 max=20000 batch=8 grad_norm=nan loss_scale=1 lr=0.00025 step_time=4.3 skipped=0 "
     "nan_count=0 missing=loss"},
    {" iteration      812/   20000 | consumed samples:  6496 | elapsed time per iteration (ms): "
     "4300.0 | learning rate: 2.5E-04 | "
     "global batch size:     8 | loss scale: 1.0 | grad norm: 0.75 | number of skipped iterations:  "
     " 0 | number of nan iterations:   0 |", /* its loss stands elsewhere */
     "step=812 max=20000 batch=8 grad_norm=0.75 loss_scale=1 lr=0.00025 step_time=4.3 skipped=0 "
     "nan_count=0"},
    {"[default7]: iteration   1200/  5000 | consumed samples: 9600 | elapsed time per iteration "
     "(s): 21.50 | learning",
     "step=1200 max=5000 step_time=21.5"},
    {" samples/sec: 2.5 | iteration        3/    4000 | elapsed time per iteration (ms): 1250.0 | "
     "learning rate: 1.5E-07 | approx "
     "flops per GPU: 21.0TFLOPS | lm_loss: 2.250000E+00 | number of skipped iterations:   0 | "
     "number of nan iterations:   0 |",
     "step=3 max=4000 loss=2.25 lr=1.5e-07 step_time=1.25 skipped=0 nan_count=0"},
    {" validation loss at iteration 500 | lm loss value: 3.125000E+00 | lm loss PPL: 2.276E+01 |",
     "step=500 eval_loss=3.125"},
    {" iteration 5/ 10 | elapsed time per iteration (ms): 100.0 | learning rate: 1.0E-03 | lm "
     "loss: NAN | loss scale: 2.0 | grad norm: inf |",
     "step=5 max=10 loss=nan grad_norm=inf loss_scale=2 lr=0.001 step_time=0.1"},
    {"the elapsed time per iteration (ms) is printed by rank 0", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_megatron = {
    .name = "megatron",
    .summary = "Megatron-LM iteration lines (also Megatron-DeepSpeed, GPT-NeoX)",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
