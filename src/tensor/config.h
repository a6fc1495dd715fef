/* SPDX-License-Identifier: Apache-2.0 */
/* config: what config.json says about a model, and what DeepSpeed JSON, Hugging Face
 * TrainingArguments or a Megatron argument line say about its training. Only the keys that a risk
 * is reckoned from, or that a smoke test needs. */
#ifndef FR_TENSOR_CONFIG_H
#define FR_TENSOR_CONFIG_H

#include "base/arena.h"
#include "base/err.h"

#define FR_CONFIG_BYTES ((size_t)4 << 20) /* of one file */
#define FR_CONFIG_FILES 8

/* Numbers of config.json, by the first of its keys (separated by blanks) that holds one, in
 * text_config or at the root. X(field, "keys") */
#define FR_MODEL_NUMBERS(X)                                                                        \
    X(positions, "max_position_embeddings n_positions n_ctx max_seq_len")                          \
    X(experts, "num_local_experts num_experts n_routed_experts")                                   \
    X(top_k, "num_experts_per_tok moe_topk")                                                       \
    X(aux, "router_aux_loss_coef")                                                                 \
    X(own_aux, "aux_loss_alpha")                                                                   \
    X(init_std, "initializer_range init_std")                                                      \
    X(log_logit_scale, "logit_scale_init_value")                                                   \
    X(ignore_index, "ignore_index")

/* Numbers of settings. X(field, "path in DeepSpeed's JSON", "training argument",
 * "Megatron option"); "" where that kind has none; several by blanks. */
#define FR_SETTINGS_NUMBERS(X)                                                                     \
    X(loss_scale, "fp16.loss_scale", "", "--loss-scale")                                           \
    X(bf16_scale, "bf16.loss_scale bfloat16.loss_scale", "", "")                                   \
    X(initial_scale, "", "", "--initial-loss-scale")                                               \
    X(min_scale, "fp16.min_loss_scale", "", "--min-loss-scale")                                    \
    X(scale_window, "fp16.loss_scale_window", "", "--loss-scale-window")                           \
    X(hysteresis, "fp16.hysteresis", "", "--hysteresis")                                           \
    X(adam_eps, "optimizer.params.eps", "adam_epsilon", "--adam-eps")                              \
    X(clip, "gradient_clipping", "max_grad_norm", "--clip-grad")                                   \
    X(lr, "optimizer.params.lr", "learning_rate", "--lr")                                          \
    X(min_lr, "scheduler.params.cos_min_lr", "lr_scheduler_kwargs.min_lr", "--min-lr")             \
    X(beta1, "optimizer.params.betas.0", "adam_beta1", "--adam-beta1")                             \
    X(beta2, "optimizer.params.betas.1", "adam_beta2", "--adam-beta2")                             \
    X(micro_batch, "train_micro_batch_size_per_gpu",                                               \
      "per_device_train_batch_size per_gpu_train_batch_size", "--micro-batch-size")                \
    X(accumulation, "gradient_accumulation_steps", "gradient_accumulation_steps", "")              \
    X(seq, "", "max_length max_seq_length", "--seq-length")                                        \
    X(steps, "", "max_steps", "--train-iters")                                                     \
    X(vocab, "", "", "--vocab-size")                                                               \
    X(hidden, "", "", "--hidden-size")                                                             \
    X(heads, "", "", "--num-attention-heads")                                                      \
    X(layers, "", "", "--num-layers")                                                              \
    X(init_std, "", "", "--init-method-std")                                                       \
    X(experts, "", "", "--num-experts")                                                            \
    X(top_k, "", "", "--moe-router-topk")                                                          \
    X(aux, "", "", "--moe-aux-loss-coeff")                                                         \
    X(fp8_margin, "", "", "--fp8-margin")                                                          \
    X(fp8_history, "", "", "--fp8-amax-history-len")

/* Words of Megatron arguments. */
#define FR_SETTINGS_WORDS(X)                                                                       \
    X(fp8_format, "--fp8-format")                                                                  \
    X(fp8_recipe, "--fp8-recipe")                                                                  \
    X(fp8_algo, "--fp8-amax-compute-algo")                                                         \
    X(balancing, "--moe-router-load-balancing-type")                                               \
    X(master_dtype, "--main-params-dtype")                                                         \
    X(moment_dtype, "--exp-avg-sq-dtype")

/* -1 (or NAN for reals) where nothing is said. */
struct fr_model_config {
    fr_sv path; /* empty: there was none */
    fr_sv model_type, attention;
    fr_sv dtype_word; /* as it is written; empty: not said */
    uint8_t dtype;    /* FR_F16 ...; FR_DTYPE_UNKNOWN */
    int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab;
    double eps, softcap, final_softcap;
#define FR_X(field, ...) double field;
    FR_MODEL_NUMBERS(FR_X)
#undef FR_X
    int router_logits;     /* the router's loss is added to the model's */
    int tied;              /* -1, 0, 1 */
    bool quantised, gated; /* gated: the activation multiplies two projections */
};

enum { FR_SETTINGS_DEEPSPEED, FR_SETTINGS_HF, FR_SETTINGS_MEGATRON, FR_SETTINGS_KINDS };
struct fr_settings {
    fr_sv path;
    uint8_t kind;
    int fp16, bf16; /* -1 nothing said */
#define FR_X(field, ...) double field; /* NAN nothing said; loss_scale 0 = dynamic */
    FR_SETTINGS_NUMBERS(FR_X)
#undef FR_X
#define FR_X(field, ...) fr_sv field; /* empty: nothing said */
    FR_SETTINGS_WORDS(FR_X)
#undef FR_X
    int softmax_fp32, reduce_fp32, expert_bias; /* Megatron; -1 nothing said */
    int narrow_master, narrow_adam; /* DeepSpeed: masters and gradients, moments below fp32 */
};

struct fr_config {
    struct fr_model_config model;
    struct fr_settings settings[FR_CONFIG_FILES];
    uint32_t settings_n;
};

void fr_config_init(struct fr_config *c);
/* Reads one file, of whichever kind it is. 0, -FR_ABSENT, -FR_IO, or -FR_SYNTAX when it is none of
 * the four. */
int fr_config_read(struct fr_config *c, const char *path, struct fr_arena *arena,
                   struct fr_err *err);
const char *fr_settings_name(uint8_t kind); /* "DeepSpeed", ... */

#endif
