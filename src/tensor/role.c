/* SPDX-License-Identifier: Apache-2.0 */
/* What a tensor is for, from its name: trainers agree on these words. And dtypes by word, from the
 * one table of numerics.h. */
#include "faultrank/numerics.h"
#include "tensor/build.h"

#include <strings.h>

static const struct {
    const char *safetensors, *torch;
    uint16_t bits;
    bool is_float;
} dtypes[FR_DTYPE_END] = {
#define FR_X(name, value, bits_, text, st, torch_) \
    [value] = {st, torch_, bits_, value >= FR_F64 && value <= FR_F4_E2M1},
    FR_DTYPES(FR_X)
#undef FR_X
};

static bool same(fr_sv word, const char *name)
{
    return strlen(name) == word.n && strncasecmp(name, word.p, word.n) == 0;
}

uint8_t fr_dtype_of(fr_sv word)
{
    static const struct { const char *word; uint8_t dtype;
    } more[] = {
        {"half", FR_F16},
        {"float", FR_F32},
        {"double", FR_F64},
        {"F8_E4M3FN", FR_F8_E4M3FN},
        {"float8_e8m0", FR_F8_E8M0},
    };
    (void)fr_sv_take(&word, FR_SV("torch."));
    for (uint8_t i = 1; i < FR_DTYPE_END; i++) {
        if (same(word, dtypes[i].safetensors) || same(word, dtypes[i].torch)) {
            return i;
        }
    }
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        if (same(word, more[i].word)) {
            return more[i].dtype;
        }
    }
    return FR_DTYPE_UNKNOWN;
}

bool fr_ckpt_bytes(uint8_t dtype, uint64_t elements, uint64_t *ret)
{
    uint64_t bits;
    if (dtype == FR_DTYPE_UNKNOWN || dtype >= FR_DTYPE_END ||
        __builtin_mul_overflow(elements, (uint64_t)dtypes[dtype].bits, &bits)) {
        return false;
    }
    *ret = bits / 8 + (bits % 8 != 0);
    return true;
}

/* Whether `name` has `word` as a whole key: between dots, at an end. */
static bool has_key(fr_sv name, const char *word)
{
    size_t n = strlen(word);
    fr_sv rest = name, at = {word, n};
    for (size_t i; (i = fr_sv_find(rest, at)) != FR_NPOS; rest = fr_sv_skip(rest, i + 1)) {
        const char *from = rest.p + i, *end = name.p + name.n;
        if ((from == name.p || from[-1] == '.') && (from + n == end || from[n] == '.')) {
            return true;
        }
    }
    return false;
}

static bool any_key(fr_sv name, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (has_key(name, *words)) {
            return true;
        }
    }
    return false;
}

static bool any_end(fr_sv name, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_ends(name, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

uint8_t fr_role_of(fr_sv name, uint8_t dtype)
{
    static const char *const optimizer[] = {"exp_avg",
                                            "exp_avg_sq",
                                            "max_exp_avg_sq",
                                            "momentum_buffer",
                                            "square_avg",
                                            "exp_inf",
                                            "optimizer",
                                            "optim",
                                            "optimizer_state",
                                            "optimizer_states",
                                            "optimizer_state_dict",
                                            "base_optimizer_state",
                                            "single_partition_of_fp32_groups",
                                            "fp32_flat_groups",
                                            "fp32_from_fp16_params",
                                            NULL};
    static const char *const scale[] = {"_scale",  "_scale_inv", "_scale_2",    "_scales",
                                        ".scales", ".scale",     NULL};
    static const char *const packed[] = {"_blocks",        ".qweight", ".qzeros", ".g_idx",
                                         ".weight_packed", ".SCB",     "_zero_point", NULL};
    static const char *const buffer[] = {"running_mean", "running_var",  "num_batches_tracked",
                                         "inv_freq",     "position_ids", NULL};
    static const char *const other[] = {
        "rng_state",        "cuda_rng_state", "torch_rng_state", "rng_states",
        "random_rng_state", "lr_scheduler",   "lr_schedulers",   NULL};
    if (any_key(name, other)) {
        return FR_ROLE_OTHER;
    }
    if (any_key(name, optimizer)) {
        return FR_ROLE_OPTIMIZER;
    }
    if (any_key(name, buffer)) {
        return FR_ROLE_BUFFER;
    }
    if (any_end(name, packed)) {
        return FR_ROLE_PACKED;
    }
    if (any_end(name, scale)) {
        return FR_ROLE_SCALE;
    }
    if (dtype == FR_DTYPE_UNKNOWN) {
        return FR_ROLE_OTHER;
    }
    if (!dtypes[dtype].is_float) {
        return dtype == FR_BOOL || dtype == FR_C64 || dtype == FR_C128 || dtype == FR_I64
                   ? FR_ROLE_OTHER
                   : FR_ROLE_PACKED;
    }
    return FR_ROLE_WEIGHT;
}
