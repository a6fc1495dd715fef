/* SPDX-License-Identifier: Apache-2.0 */
/* The fallback: hand-written loops that print "step N ... loss X" in some way. Strict, since
 * "loss" is an everyday word: a name that is or ends in "loss" must be directly followed by a
 * number, nan or inf. Without ':' or '=' between them the number must look like a measurement (a
 * decimal point, nan or inf). */
#include <ctype.h>
#include <math.h>

#include "series/num.h"
#include "series/pairs.h"
#include "series/series.h"

static void find_step(const char *p, const char *e, struct fr_point *ret)
{
    static const char *const steps[] = {"step",      "Step",  "iter",  "Iter",        "iteration",
                                        "Iteration", "Batch", "batch", "global_step", "STEP"};
    for (unsigned i = 0; i < sizeof steps / sizeof *steps && ret->step < 0; i++) {
        int64_t at, of = -1;
        if (fr_word_number(p, e, steps[i], &at, &of)) {
            ret->step = at;
            ret->max_step = of;
        }
    }
}

static void find_epoch(const char *p, const char *e, struct fr_point *ret)
{
    static const char *const epochs[] = {"epoch", "Epoch", "EPOCH"};
    for (unsigned i = 0; i < sizeof epochs / sizeof *epochs && !(ret->epoch >= 0); i++) {
        int64_t at, of = -1;
        if (fr_word_number(p, e, epochs[i], &at, &of)) {
            ret->epoch = (double)at;
        }
    }
}

/* "    running_loss = 0.0": a line of source in a traceback, which stands behind its margin of
 * spaces (and a rank's tag). */
static bool is_source_line(const char *p, const char *e)
{
    const char *equal = memchr(p, '=', (size_t)(e - p));
    if (equal == NULL || equal == p || equal[-1] != ' ') {
        return false;
    }
    const char *name = equal - 1;
    while (name > p && (isalnum((unsigned char)name[-1]) || name[-1] == '_' || name[-1] == '.')) {
        name--;
    }
    const char *margin = name;
    while (margin > p && margin[-1] == ' ') {
        margin--;
    }
    if (name - margin >= 4) {
        return margin == p || margin[-1] == ']' || margin[-1] == ':' || margin[-1] == '|';
    }
    return name == p && name < equal - 1 && memchr(equal, '.', (size_t)(e - equal)) == NULL;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    text = fr_last_redraw(text);
    const char *p = text.p, *e = text.p + text.n;
    uint32_t losses = 1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS | 1u << FR_METRIC_AUX_LOSS;
    if (text.n < 6 || is_source_line(p, e)) {
        return false;
    }
    fr_pairs(p, e, ret);
    if (!fr_point_has(ret, FR_METRIC_LOSS)) {
        fr_spaced_pairs(p, e, ret);
    }
    if ((ret->present & losses) == 0 || (ret->flags & FR_POINT_SUMMARY) != 0) {
        return false;
    }
    if (ret->step < 0 && (fr_bar_ratio(p, e, &ret->step, &ret->max_step) || fr_bar_count(p, e, &ret->step))) {
        ret->flags |= FR_POINT_BAR;
    }
    if (ret->step < 0) {
        find_step(p, e, ret);
    }
    if (!(ret->epoch >= 0)) {
        find_epoch(p, e, ret);
    }
    if (ret->epoch >= 0 && ret->max_step > 0 && ret->step <= ret->max_step) {
        fr_point_across_epochs(ret, 0);
    }
    return true;
}

static const char *const literals[] = {"loss:", "loss=", "loss ",   "loss\":", "loss]", "Loss:",
                                       "Loss=", "Loss ", "Loss\":", "Loss]",   "oss_D:",  "oss_D=",
                                       "oss_D ", "loss_d:", "loss_d=", "loss_d ", "xent=",  "xent:", "'loss': '", NULL};
static const struct fr_dialect_sample samples[] = {
    {"step 0007 | loss = 31.5", "step=7 loss=31.5"},
    {"step 12 loss 0.75 lr 0.001", "step=12 loss=0.75 lr=0.001"},
    {"step 50  loss 2.1250  amp_scale 4096.0  lr 1.00e-03",
     "step=50 loss=2.125 loss_scale=4096 lr=0.001"},
    {"epoch 1 step 2 loss 0.100 kl 0.0200 reward 0.420",
     "step=2 epoch=1 loss=0.1 reward=0.42 aux_loss=0.02 rl"},
    {"Epoch 4: train loss 0.5000 acc 0.7500 | val loss 0.6250 acc 0.5000",
     "epoch=4 loss=0.5 accuracy=0.75 eval_loss=0.625"},
    {"Epoch 2 | batch 900 | loss nan | lr 1.0e-04", "step=900 epoch=2 loss=nan lr=0.0001"},
    {"Epoch 3 loss: 0.5", "epoch=3 loss=0.5"},
    {"Epoch 3 Training Loss: 2.25. Validation Loss: nan.", "epoch=3 loss=2.25 eval_loss=nan"},
    {"[epoch 3] train_loss=0.25 acc=0.5", "epoch=3 loss=0.25 accuracy=0.5"},
    {"rank2 epoch 0: 12it [00:00, 76.46it/s, loss=0.693]", "step=12 epoch=0 loss=0.693 bar"},
    {"loss: 0.125, acc: 0.75", "loss=0.125 accuracy=0.75"},
    {"Epoch [2/10], Step [100/600], Loss: 0.2500", "step=1300 epoch=2 loss=0.25"},
    {"2023-01-02 03:04:05.678 | INFO | trainer:train:10 - [R0] | E2 iter[ 14/ 15] | [Loss] 12.50 | "
     "[step]    89 | [time] 0.4m",
     "step=89 loss=12.5"},
    {"step: 200 total_loss: nan obj_cls: 1.5 frag_loc: 2.5", "step=200 loss=nan"},
    {"step: 200 mel_loss: nan dur_loss: 0.5", "step=200 loss=nan aux_loss=nan"},
    {"step: 200 mel_loss: 0.25 dur_loss: 0.5", "step=200 aux_loss=0.25"},
    {"\x1b[32m10:00:00\x1b[0m | trainer.loop:step:210 - step=44 loss=2.25 gnorm=0.5 "
     "mem_alloc=41.2GiB",
     "step=44 loss=2.25 grad_norm=0.5"},
    {"loss tensor: loss: tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)", "loss=nan"},
    {"iter 5 validation loss: 3.5", "step=5 eval_loss=3.5"},
    {"epoch 0 step 7/20 loss=0.75 data=0.5ms step=250ms", "step=7 epoch=0 loss=0.75 step_time=0.25"},
    {"I0102 03:04:05.678901 140070334212245 basic_session_run_hooks.py:260] loss = 1.25, step = "
     "300 (45.410 sec)",
     "step=300 loss=1.25"},
    {"    loss = 0.5 * (a + b)", ""},
    {"    loss = model(batch)", ""},
    {"    loss = loss / 4", ""},
    {"training stopped with a loss 3 times", ""},
    {"ValueError: loss: expected a tensor", ""},
    {"packet loss: high", ""},
    {"Steps:  10%|#         | 30/300 [01:00<09:00,  2.0s/it, loss=0.125, lr=1e-5]",
     "step=30 max=300 loss=0.125 lr=1e-05 bar"},
    {"    running_loss = 0.0", ""},
    {"[rank3]:     total_loss = 0.0", ""},
    {"loss = 0", ""},
    {"Epoch 4      loss = 0.75", "epoch=4 loss=0.75"},
    {"[0/5][50/1583]\tLoss_D: 1.25\tLoss_G: 4.5\tD(x): 0.5", "loss=1.25 rl"},
    {"iter    6  loss_D       nan  loss_G    0.75", "step=6 loss=nan rl"},
    {"2022-03-14 11:40:50,962-INFO: iter: 20, lr: 0.000085, 'loss': 'nan', eta: 5 days, batch_cost: 1.25 sec", "step=20 loss=nan lr=8.5e-05"},
    {"loss = 2.25", "loss=2.25"},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_generic = {
    .name = "generic",
    .summary = "any line that says loss and a number",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
