/* SPDX-License-Identifier: Apache-2.0 */
/* Vision trainers that name the place as epoch and batch: timm, the PyTorch examples, DeiT, MAE,
 * DINO, Swin, ultralytics.
 *   Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.9)  Time: 0.5s, ..
 *   Train: [0/300][10/1251]  .. loss 6.9 (6.9)  grad_norm 2.1 (inf)
 *   Train Epoch: 1 [640/60000 (1%)]  Loss: 2.3
 *   Epoch: [0]  [  20/1251]  eta: ..  loss: 6.9 (6.9)
 *   Epoch: [0][ 10/5005]  Time  0.5 ( 0.6)  Loss 6.9e+00 (7.0e+00)
 *   "  3/100   2.5G   1.25   2.5   1.5   12   640: 100%|..."
 * The last is ultralytics: epoch, memory, then the loss columns. */
#include <ctype.h>
#include <math.h>

#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

/* Behind the opening word: "0 [  50/1251", "[0/300][10/1251]", "[0][ 10/5005]", "[0]  [
 * 20/1251]". */
static bool place(const char *p, const char *e, struct fr_point *ret)
{
    int64_t epoch, of;
    p = fr_skip_space(p, e);
    p += p < e && *p == '[';
    p = fr_skip_space(p, e);
    if (!fr_num_ratio(&p, e, &epoch, &of) && !fr_num_int(&p, e, &epoch)) {
        return false;
    }
    p += p < e && *p == ']';
    p = fr_skip_space(p, e);
    if (p >= e || *p++ != '[' || !fr_num_ratio(&p, e, &ret->step, &ret->max_step)) {
        return false;
    }
    ret->epoch = (double)epoch;
    return true;
}

/* "time 0.5000 (0.6000)", "Time  0.500 ( 0.750)": a batch's seconds, here only. */
static void put_time(const char *p, const char *e, struct fr_point *ret)
{
    const char *q = FR_SEEK(p, e, "ime ");
    double v;
    if (q == NULL || q == p || (q[-1] | 0x20) != 't') {
        return;
    }
    q = fr_skip_space(q + 4, e);
    if (fr_num(&q, e, &v)) {
        fr_point_set(ret, FR_METRIC_STEP_TIME, v);
    }
}

static bool parse_vision(fr_sv text, struct fr_point *ret)
{
    static const char *const words[] = {"Train Epoch: ", "Train: ", "Epoch: "};
    const char *e = text.p + text.n, *p = NULL;
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        p = fr_seek(text.p, e, words[i], strlen(words[i]));
        if (p != NULL && place(p + strlen(words[i]), e, ret)) {
            break;
        }
        p = NULL;
    }
    if (p == NULL) {
        return false;
    }
    double epoch = ret->epoch;
    int64_t step = ret->step, max_step = ret->max_step;
    fr_pairs(p, e, ret);
    ret->epoch = epoch; /* "Epoch: [0]" read as a pair says the same, "Train: [0/300]" does not */
    ret->step = step;
    ret->max_step = max_step;
    fr_spaced_pairs(p, e, ret);
    put_time(p, e, ret);
    fr_point_across_epochs(ret, 0);
    return fr_point_has(ret, FR_METRIC_LOSS);
}
static const char *const vision_literals[] = {"Train: ", "Train Epoch: ", "Epoch: [", NULL};
static const struct fr_dialect_sample vision_samples[] = {
    {"Train: 1 [  50/1000 (  5%)]  Loss:  6.250000 (6.5000)  Time: 0.500s,  128.0/s  LR: 1.000e-05 "
     " Data: 0.01",
     "step=1050 epoch=1 loss=6.25 lr=1e-05"},
    {"Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.250000", "step=60640 epoch=1 loss=2.25"},
    {"Epoch: [0][ 10/5000]\tTime  0.500 ( 0.750)\tData  0.1 ( 0.2)\tLoss 6.5000e+00 "
     "(6.75e+00)\tAcc@1   0.00 (  0.10)",
     "step=10 epoch=0 loss=6.5 step_time=0.5"},
    {"Epoch: [2]  [  20/1000]  eta: 0:10:00  lr: 0.000010  loss: nan (nan)  time: 0.5  data: 0.1  "
     "max mem: 5000",
     "step=2020 epoch=2 loss=nan lr=1e-05"},
    {"[2022-02-03 04:05:06 swin] (main.py 229): INFO Train: [1/300][10/1000]\teta 0:10:00 lr "
     "0.000010\ttime 0.5000 (0.6000)\tloss 6.5000 (6.75)\t"
     "grad_norm 1.5000 (inf)\tloss_scale 65536.0000 (65536.0000)\tmem 9000MB",
     "step=1010 epoch=1 loss=6.5 grad_norm=1.5 loss_scale=65536 lr=1e-05 step_time=0.5"},
    {"Train: all epochs", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_vision = {
    .name = "vision",
    .summary = "timm, PyTorch examples, DeiT, MAE and Swin batch lines",
    .literals = vision_literals,
    .parse = parse_vision,
    .samples = vision_samples,
};

/* The row at the end of an epoch's bar. Its loss is the sum of the loss columns: all numbers
 * with a '.' (or nan) behind the memory. */
static bool parse_ultralytics(fr_sv text, struct fr_point *ret)
{
    text = fr_last_redraw(text);
    const char *p = fr_skip_space(text.p, text.p + text.n),
               *e = FR_SEEK(p, text.p + text.n, ": 100%|");
    int64_t epoch, of;
    double memory, v, sum = 0;
    if (e == NULL || !fr_num_ratio(&p, e, &epoch, &of)) {
        return false;
    }
    p = fr_skip_space(p, e);
    if (!fr_num(&p, e, &memory) || p >= e || *p++ != 'G') {
        return false;
    }
    unsigned n = 0;
    for (;;) {
        p = fr_skip_space(p, e);
        const char *q = p;
        if (!fr_num(&q, e, &v) || (isfinite(v) && memchr(p, '.', (size_t)(q - p)) == NULL)) {
            break;
        }
        sum += v;
        n++;
        p = q;
    }
    if (n < 2 || p >= e || !fr_is_digit(*p)) {
        return false;
    }
    ret->step = epoch;
    ret->max_step = of;
    fr_point_set(ret, FR_METRIC_LOSS, sum);
    return true;
}
static const char *const ultralytics_literals[] = {": 100%|", NULL};
static const struct fr_dialect_sample ultralytics_samples[] = {
    {"      3/100      2.51G      1.25      2.5      1.5         12        640: 100%|##########| "
     "218/218 [00:51<00:00,  4.22it/s]",
     "step=3 max=100 loss=5.25"},
    {"      4/100      2.51G      nan      nan      nan         12        640: 100%|##########| "
     "218/218 [00:51<00:00,  4.22it/s]",
     "step=4 max=100 loss=nan"},
    {"Downloading: 100%|##########| 10/10 [00:01<00:00,  9.9it/s]", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_ultralytics = {
    .name = "ultralytics",
    .summary = "YOLO epoch rows",
    .literals = ultralytics_literals,
    .parse = parse_ultralytics,
    .samples = ultralytics_samples,
};
