/* SPDX-License-Identifier: Apache-2.0 */
/* keys: names by length, so that a look-up compares a handful of strings of the right size. */
#include "series/keys.h"

struct named {
    const char *name;
    struct fr_mkey means;
};
#define L(name, metric) {name, {1 + FR_METRIC_##metric, false, 1.0f}}
#define R(name, metric) {name, {1 + FR_METRIC_##metric, true, 1.0f}} /* RL */
#define MS(name, metric) {name, {1 + FR_METRIC_##metric, false, 1e-3f}}
#define K(name, role) {name, {FR_MKEY_##role, false, 1.0f}}
#define KR(name, role) {name, {FR_MKEY_##role, true, 1.0f}}

/* clang-format off */
static const struct named len2[] = {
    L("gn", GRAD_NORM), L("lr", LR), L("LR", LR), R("kl", AUX_LOSS), K("ep", EPOCH)
};
static const struct named len3[] = {
    L("tps", THROUGHPUT), L("wps", THROUGHPUT),
    L("ips", THROUGHPUT), L("TPS", THROUGHPUT), L("acc", ACCURACY), L("Acc", ACCURACY),
    K("itr", STEP)
};
static const struct named len4[] = {
    R("xent", LOSS),
    L("loss", LOSS), L("Loss", LOSS), L("LOSS", LOSS), L("norm", GRAD_NORM), K("step", STEP),
    K("Step", STEP), K("iter", STEP), K("Iter", STEP), K("best", BEST)
};
static const struct named len5[] = {
    L("gnorm", GRAD_NORM), MS("dt_ms", STEP_TIME), L("tok/s", THROUGHPUT), K("steps", STEP),
    K("Steps", STEP), K("epoch", EPOCH), K("Epoch", EPOCH)
};
static const struct named len6[] = {
    R("loss_D", LOSS), R("loss_G", LOSS), R("D_loss", LOSS), R("G_loss", LOSS), /* of a GAN: no level, */
    R("loss_d", LOSS), R("loss_g", LOSS), R("d_loss", LOSS), R("g_loss", LOSS), /* as in RL */
    R("Loss_D", LOSS), R("Loss_G", LOSS),
    L("losses", LOSS), L("lscale", LOSS_SCALE), R("reward", REWARD), L("z_loss", AUX_LOSS),
    K("n_iter", STEP), K("epochs", EPOCH)
};
static const struct named len7[] = {
    L("lm loss", LOSS), L("lm_loss", LOSS), L("lm-loss", LOSS), L("CE loss", LOSS),
    L("ce_loss", LOSS), R("pg_loss", LOSS), L("base_lr", LR), L("seconds", STEP_TIME),
    R("rewards", REWARD), L("lb_loss", AUX_LOSS), R("mean_kl", AUX_LOSS), KR("entropy", MARKS_RL),
    KR("kl_loss", MARKS_RL), L("skipped", SKIPPED)
};
static const struct named len8[] = {
    L("sft_loss", LOSS), L("gpt_loss", LOSS), L("avg_loss", LOSS), L("avr_loss", LOSS), R("ppo_loss", LOSS),
    L("val_loss", EVAL_LOSS), L("val loss", EVAL_LOSS), L("Val loss", EVAL_LOSS),
    L("Val Loss", EVAL_LOSS), L("val/loss", EVAL_LOSS), L("loss_val", EVAL_LOSS),
    L("actor/lr", LR), L("lr-AdamW", LR), L("sec/step", STEP_TIME), L("tokens/s", THROUGHPUT),
    L("imgs/sec", THROUGHPUT), L("accuracy", ACCURACY), L("Accuracy", ACCURACY),
    L("top1_acc", ACCURACY), L("aux_loss", AUX_LOSS), L("mtp_loss", AUX_LOSS),
    L("moe_loss", AUX_LOSS), L("aux loss", AUX_LOSS), L("nll_loss", AUX_LOSS),
    L("moe loss", AUX_LOSS), K("step_num", STEP), K("max_step", MAX_STEP)
};
static const struct named len9[] = {
    L("amp_scale", LOSS_SCALE),
    L("mean_loss", LOSS), L("loss_mean", LOSS), L("eval_loss", EVAL_LOSS),
    L("test_loss", EVAL_LOSS), L("Test Loss", EVAL_LOSS), L("Test loss", EVAL_LOSS),
    L("test loss", EVAL_LOSS), L("eval loss", EVAL_LOSS), L("eval/loss", EVAL_LOSS),
    L("grad_norm", GRAD_NORM), L("grad norm", GRAD_NORM), L("grad-norm", GRAD_NORM),
    L("Grad Norm", GRAD_NORM), L("iter_time", STEP_TIME), L("step_time", STEP_TIME),
    L("time/step", STEP_TIME), L("step time", STEP_TIME), L("samples/s", THROUGHPUT),
    L("train_acc", ACCURACY), L("train acc", ACCURACY), L("token_acc", ACCURACY), R("approx_kl", AUX_LOSS),
    R("critic/kl", AUX_LOSS), L("nan_count", NAN_COUNT), K("iteration", STEP),
    K("Iteration", STEP), K("max_steps", MAX_STEP), K("best_loss", BEST)
};
static const struct named len10[] = {
    L("train_loss", LOSS), L("train loss", LOSS), L("Train Loss", LOSS), L("Train loss", LOSS),
    L("total_loss", LOSS), L("total loss", LOSS), L("train/loss", LOSS), L("loss_train", LOSS),
    L("loss_total", LOSS), L("Total_Loss", LOSS), L("loss/total", LOSS), L("train.loss", LOSS),
    L("batch_loss", LOSS), R("actor_loss", LOSS), L("valid_loss", EVAL_LOSS),
    L("valid loss", EVAL_LOSS), L("Valid loss", EVAL_LOSS), L("valid/loss", EVAL_LOSS),
    L("loss scale", LOSS_SCALE), L("loss_scale", LOSS_SCALE), L("loss-scale", LOSS_SCALE),
    L("fp16_scale", LOSS_SCALE), L("grad_scale", LOSS_SCALE), L("batch_time", STEP_TIME),
    L("Batch Time", STEP_TIME), L("throughput", THROUGHPUT), L("mtp_1 loss", AUX_LOSS),
    L("mtp_1_loss", AUX_LOSS), R("value_loss", AUX_LOSS), KR("reward_std", MARKS_RL),
    KR("clip_ratio", MARKS_RL), KR("advantages", MARKS_RL), K("train_step", STEP),
    K("update_num", STEP), K("iterations", STEP), K("batch_size", BATCH)
};
static const struct named len11[] = {
    L("loss_scaler", LOSS_SCALE),
    R("policy_loss", LOSS), L("global_norm", GRAD_NORM), L("samples/sec", THROUGHPUT),
    R("mean_reward", REWARD), R("reward_mean", REWARD), L("train/ZLoss", AUX_LOSS),
    L("z_loss_mean", AUX_LOSS), K("global_step", STEP), K("num_updates", STEP),
    K("global step", STEP), K("Global step", STEP), K("total_steps", MAX_STEP),
    K("train/epoch", EPOCH)
};
static const struct named len12[] = {
    L("scaler_scale", LOSS_SCALE),
    L("trainer/loss", LOSS), L("running_loss", LOSS), L("eval_lm_loss", EVAL_LOSS),
    MS("step_time_ms", STEP_TIME), R("rewards/mean", REWARD), L("moe_aux_loss", AUX_LOSS),
    R("actor/ppo_kl", AUX_LOSS), R("objective/kl", AUX_LOSS), KR("logps/chosen", MARKS_RL),
    K("global_steps", STEP)
};
static const struct named len13[] = {
    L("training_loss", LOSS), L("training loss", LOSS), L("Training loss", LOSS),
    L("Training Loss", LOSS), L("train/ce_loss", LOSS), L("train/lm_loss", LOSS),
    R("actor/pg_loss", LOSS), L("lm loss value", EVAL_LOSS), L("gradient_norm", GRAD_NORM),
    L("grad_norm/all", GRAD_NORM), L("raw_grad_norm", GRAD_NORM), L("learning rate", LR),
    L("learning_rate", LR), L("Learning rate", LR), L("learning-rate", LR),
    L("timing_s/step", STEP_TIME), L("iter time (s)", STEP_TIME), R("actor/kl_loss", AUX_LOSS),
    KR("logits/chosen", MARKS_RL), KR("actor/entropy", MARKS_RL), K("current_steps", STEP),
    K("train_runtime", SUMMARY)
};
static const struct named len14[] = {
    R("objective/loss", LOSS), L("val_loss_epoch", EVAL_LOSS), L("perf/step_time", STEP_TIME),
    L("iteration time", STEP_TIME), L("tokens_per_sec", THROUGHPUT), L("train_accuracy", ACCURACY),
    L("train/accuracy", ACCURACY), R("critic/vf_loss", AUX_LOSS), KR("rewards/chosen", MARKS_RL),
    K("training/epoch", EPOCH)
};
static const struct named len15[] = {
    L("train_loss_step", LOSS), L("train/loss_step", LOSS), R("loss/policy_avg", LOSS),
    L("validation_loss", EVAL_LOSS), L("validation loss", EVAL_LOSS),
    L("Validation loss", EVAL_LOSS), L("Validation Loss", EVAL_LOSS),
    L("validation/loss", EVAL_LOSS), L("total_grad_norm", GRAD_NORM),
    L("train/grad_norm", GRAD_NORM), L("optim/grad_norm", GRAD_NORM),
    L("actor/grad_norm", GRAD_NORM), L("grad_norm_total", GRAD_NORM),
    L("Tokens/s/device", THROUGHPUT), L("perf/throughput", THROUGHPUT),
    L("router_aux_loss", AUX_LOSS), R("rollout_corr/kl", AUX_LOSS),
    KR("rewards/margins", MARKS_RL)
};
static const struct named len16[] = {
    L("loss/train/total", LOSS), L("train/total_loss", LOSS), L("Train Epoch Loss", LOSS),
    L("global_grad_norm", GRAD_NORM), R("objective/scores", REWARD),
    K("total_iterations", MAX_STEP)
};
static const struct named len17[] = {
    R("actor/policy_loss", LOSS), R("train/policy_loss", LOSS), L("gradient_norm_all", GRAD_NORM),
    L("scaler/loss_scale", LOSS_SCALE), L("tokens_per_second", THROUGHPUT),
    L("CurrSamplesPerSec", THROUGHPUT), L("tokens per second", THROUGHPUT),
    R("critic/score/mean", REWARD), L("load_balance_loss", AUX_LOSS),
    KR("completion_length", MARKS_RL), KR("actor/pg_clipfrac", MARKS_RL),
    K("train/global_step", STEP), K("global batch size", BATCH), K("global_batch_size", BATCH)
};
static const struct named len18[] = {
    L("reduced_train_loss", LOSS), L("cross_entropy_loss", LOSS),
    L("validation_ce_loss", EVAL_LOSS), L("learning/grad_norm", GRAD_NORM),
    L("time_per_iteration", STEP_TIME), L("perf/time_per_step", STEP_TIME),
    L("samples per second", THROUGHPUT), KR("rewards/accuracies", MARKS_RL)
};
static const struct named len19[] = {
    L("l2_norm/grad/global", GRAD_NORM), L("train/learning_rate", LR),
    L("mean_token_accuracy", ACCURACY), R("critic/rewards/mean", REWARD),
    L("load_balancing_loss", AUX_LOSS), L("load balancing loss", AUX_LOSS),
    R("policy/approxkl_avg", AUX_LOSS), K("trainer/global_step", STEP)
};
static const struct named len20[] = {
    L("categorical_accuracy", ACCURACY), KR("frac_reward_zero_std", MARKS_RL),
    KR("response_length/mean", MARKS_RL), K("training/global_step", STEP)
};
static const struct named len21[] = {
    L("optim/total_grad_norm", GRAD_NORM), L("current_learning_rate", LR),
    R("env/reward/total/mean", REWARD), KR("num_tokens_completion", MARKS_RL),
    K("global_step/max_steps", RATIO)
};
static const struct named len22[] = {
    L("train/CrossEntropyLoss", LOSS), L("learning/raw_grad_norm", GRAD_NORM),
    L("train_step_timing in s", STEP_TIME)
};
static const struct named len23[] = {
    KR("completions/mean_length", MARKS_RL)
};
static const struct named len24[] = {
    L("train_samples_per_second", THROUGHPUT), L("number of nan iterations", NAN_COUNT)
};
static const struct named len25[] = {
    L("throughput/tokens_per_sec", THROUGHPUT)
};
static const struct named len27[] = {
    L("sparse_categorical_accuracy", ACCURACY)
};
static const struct named len28[] = {
    L("number of skipped iterations", SKIPPED)
};
static const struct named len30[] = {
    L("elapsed time per iteration (s)", STEP_TIME)
};
static const struct named len31[] = {
    MS("elapsed time per iteration (ms)", STEP_TIME)
};
static const struct named len35[] = {
    L("throughput/device/tokens_per_second", THROUGHPUT)
};
static const struct named len32[] = {
    R("training/rollout_probs_diff_mean", AUX_LOSS)
};
#define BY(n) {len##n, sizeof len##n / sizeof *len##n}
static const struct {
    const struct named *v;
    unsigned n;
} by_len[] = {
    [2] = BY(2), [3] = BY(3), [4] = BY(4), [5] = BY(5), [6] = BY(6), [7] = BY(7),
    [8] = BY(8), [9] = BY(9), [10] = BY(10), [11] = BY(11), [12] = BY(12), [13] = BY(13),
    [14] = BY(14), [15] = BY(15), [16] = BY(16), [17] = BY(17), [18] = BY(18), [19] = BY(19),
    [20] = BY(20), [21] = BY(21), [22] = BY(22), [23] = BY(23), [24] = BY(24), [25] = BY(25),
    [27] = BY(27), [28] = BY(28), [30] = BY(30), [31] = BY(31), [35] = BY(35), [32] = BY(32)
};
/* clang-format on */

struct fr_mkey fr_mkey_find(fr_sv key)
{
    if (key.n < sizeof by_len / sizeof *by_len) {
        const struct named *v = by_len[key.n].v;
        for (unsigned i = 0; i < by_len[key.n].n; i++) {
            if (v[i].name[0] == key.p[0] && v[i].name[key.n - 1] == key.p[key.n - 1] &&
                memcmp(v[i].name, key.p, key.n) == 0) {
                return v[i].means;
            }
        }
    }
    return (struct fr_mkey){FR_MKEY_NONE, false, 1.0f};
}

bool fr_mkey_put(struct fr_point *pt, struct fr_mkey k, double v)
{
    if (k.role == FR_MKEY_NONE) {
        return false;
    }
    pt->flags |= k.rl ? FR_POINT_RL : 0;
    if (k.role <= FR_METRIC_COUNT_) {
        enum fr_metric m = (enum fr_metric)(k.role - 1);
        if (!fr_point_has(pt, m)) { /* the first of two names of one metric is the total */
            fr_point_set(pt, m, k.factor == 1.0f ? v : v * 1e-3);
        }
        return true;
    }
    bool whole = v >= 0 && v < 9e15;
    switch (k.role) {
    case FR_MKEY_STEP:
        pt->step = whole && pt->step < 0 ? (int64_t)v : pt->step;
        break;
    case FR_MKEY_MAX_STEP:
        pt->max_step = whole ? (int64_t)v : pt->max_step;
        break;
    case FR_MKEY_BATCH:
        pt->global_batch = whole ? (int64_t)v : pt->global_batch;
        break;
    case FR_MKEY_EPOCH:
        pt->epoch = v;
        break;
    case FR_MKEY_BEST:
        pt->best = v;
        break;
    case FR_MKEY_SUMMARY:
        pt->flags |= FR_POINT_SUMMARY;
        break;
    default:
        break;
    }
    return true;
}
