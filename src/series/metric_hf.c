/* SPDX-License-Identifier: Apache-2.0 */
/* HF Trainer dicts: Python's repr of a flat dict, keys in any order, numbers (4.x) or strings
 * (5.x). Also TRL, axolotl, ms-swift and Unsloth, which add keys. A tqdm bar may stand in front
 * on the same line; it holds the step. */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

/* "'5/100'" (ms-swift prints the step so). */
static void put_ratio(const char *p, const char *e, struct fr_point *ret)
{
    if (p < e && *p == '\'') {
        p++;
        fr_num_ratio(&p, e, &ret->step, &ret->max_step);
    }
}

/* One "'key': value" pair at *p (behind the opening quote); moves to the next key's first byte,
 * or to e. */
static bool pair(const char **p, const char *e, struct fr_point *ret)
{
    const char *q = memchr(*p, '\'', (size_t)(e - *p));
    if (q == NULL || !FR_AT(q, e, "': ")) {
        return false;
    }
    struct fr_mkey k = fr_mkey_find(fr_sv_range(*p, q));
    q += 3;
    if (k.role == FR_MKEY_RATIO) {
        put_ratio(q, e, ret);
    } else if (k.role != FR_MKEY_NONE) {
        q = fr_skip_space(q, e); /* columns that somebody lined up */
        q += q < e && *q == '\'';
        double v;
        if (fr_num(&q, e, &v)) {
            fr_mkey_put(ret, k, v);
        }
    }
    if (e - q > 3 && q[0] == ',' && q[1] == ' ' && q[2] == '\'') {
        *p = q + 3;
        return true;
    }
    do { /* a string value may hold commas, so look for the comma that a key follows */
        q = memchr(q, ',', (size_t)(e - q));
        if (q == NULL) {
            *p = e;
            return true;
        }
        q = fr_skip_space(q + 1, e);
    } while (q >= e || *q != '\'' || q[-1] != ' ');
    *p = q + 1;
    return true;
}

static bool parse(fr_sv text, struct fr_point *ret)
{
    const char *e = text.p + text.n,
               *p = FR_AT(text.p, e, "{'") ? text.p : FR_SEEK(text.p, e, "{'");
    if (p == NULL) {
        return false;
    }
    const char *front = p;
    p += 2;
    while (p < e && pair(&p, e, ret)) {
    }
    if ((ret->flags & FR_POINT_SUMMARY) != 0) {
        ret->present &= ~(1u << FR_METRIC_LOSS | 1u << FR_METRIC_THROUGHPUT);
        return true;
    }
    uint32_t needs = 1u << FR_METRIC_LOSS | 1u << FR_METRIC_EVAL_LOSS | 1u << FR_METRIC_GRAD_NORM |
                     1u << FR_METRIC_REWARD;
    if ((ret->present & needs) == 0) {
        return false;
    }
    if (ret->step < 0 && front != text.p) {
        fr_bar_ratio(text.p, front, &ret->step, &ret->max_step);
    }
    return true;
}

static const char *const literals[] = {
    "'loss': ", "'eval_loss': ", "'grad_norm': ", "'train_loss': ", NULL};
static const struct fr_dialect_sample samples[] = {
    {"{'loss': 1.8342, 'grad_norm': 0.731, 'learning_rate': 4.5e-05, 'epoch': 0.31}",
     "epoch=0.31 loss=1.8342 grad_norm=0.731 lr=4.5e-05"},
    {"{'loss': '1.834', 'grad_norm': 'nan', 'learning_rate': '4.5e-05', 'epoch': '0.31'}",
     "epoch=0.31 loss=1.834 grad_norm=nan lr=4.5e-05"},
    {"  3%|3         | 12/400 [00:31<16:44,  2.59s/it]{'loss': 0.0, 'grad_norm': nan, "
     "'learning_rate': 1e-06, 'epoch': 0.09}",
     "step=12 max=400 epoch=0.09 loss=0 grad_norm=nan lr=1e-06"},
    {"{'eval_loss': nan, 'eval_runtime': 3.1, 'eval_samples_per_second': 11.2, 'epoch': 2.0}",
     "epoch=2 eval_loss=nan"},
    {"{'loss': 0.0, 'reward': 0.41, 'kl': 0.0003, 'completion_length': 211.5, 'epoch': 0.02}",
     "epoch=0.02 loss=0 reward=0.41 aux_loss=0.0003 rl"},
    {"{'loss': 0.92, 'token_acc': 0.71, 'memory(GiB)': 31.4, 'global_step/max_steps': '15/300', "
     "'elapsed_time': '1m 3s'}",
     "step=15 max=300 loss=0.92 accuracy=0.71"},
    {"{'train_runtime': 71.3, 'train_samples_per_second': 9.1, 'train_loss': 0.31, 'epoch': 2.0}",
     "epoch=2"},
    {"{'loss': 1.25,  'grad_norm':    14.50,  'epoch': 0.5}", "epoch=0.5 loss=1.25 grad_norm=14.5"},
    {"{'epoch': 1.0, 'loss': inf, 'lr': 0.001}", "epoch=1 loss=inf lr=0.001"},
    {"config: {'loss': 'cross_entropy', 'optimizer': 'adamw'}", ""},
    {"KeyError: \"{'loss': tensor\"", ""},
    {NULL, NULL},
};
const struct fr_dialect fr_dialect_hf = {
    .name = "hf",
    .summary = "Hugging Face Trainer dictionaries (also TRL, axolotl, ms-swift)",
    .literals = literals,
    .parse = parse,
    .samples = samples,
};
