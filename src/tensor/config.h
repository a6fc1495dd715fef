/* SPDX-License-Identifier: Apache-2.0 */
/* config: what config.json says about a model, and what DeepSpeed JSON, Hugging Face
 * TrainingArguments or a Megatron argument line say about the precision of its training. Only the
 * keys that a risk is reckoned from. */
#ifndef FR_TENSOR_CONFIG_H
#define FR_TENSOR_CONFIG_H

#include "base/arena.h"
#include "base/err.h"

#define FR_CONFIG_BYTES ((size_t)4 << 20) /* of one file */
#define FR_CONFIG_FILES 8

/* -1 (or NAN for reals) where nothing is said. */
struct fr_model_config {
    fr_sv path; /* empty: there was none */
    fr_sv model_type;
    uint8_t dtype; /* FR_F16 ...; FR_DTYPE_UNKNOWN */
    int64_t hidden, intermediate, layers, heads, kv_heads, head_dim, vocab;
    double eps, softcap, final_softcap;
    int tied;              /* -1, 0, 1 */
    bool quantised, gated; /* gated: the activation multiplies two projections */
};

enum { FR_SETTINGS_DEEPSPEED, FR_SETTINGS_HF, FR_SETTINGS_MEGATRON, FR_SETTINGS_KINDS };
struct fr_settings {
    fr_sv path;
    uint8_t kind;
    int fp16, bf16; /* -1 nothing said */
    double loss_scale, initial_scale, min_scale, scale_window,
        hysteresis;                /* NAN nothing said; loss_scale 0 = dynamic */
    double adam_eps, clip;         /* NAN nothing said */
    int softmax_fp32, reduce_fp32; /* Megatron; -1 nothing said */
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
