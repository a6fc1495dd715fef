/* SPDX-License-Identifier: Apache-2.0 */
/* model_config: see model_config.h. */
#include "cli/model_config.h"

#include "repro/lab.h"
#include "tensor/config.h"

#include <math.h>
#include <stdio.h>

/* Models whose norm casts to fp32 before it squares: each class read in huggingface/transformers,
 * src/transformers/models/TYPE/modeling_TYPE.py or modular_TYPE.py (gemma3_text lies in gemma3). */
static const char *const upcasting[] = {
    "llama",       "mistral",     "mixtral", "qwen2",       "qwen2_moe", "qwen3", "qwen3_moe",
    "gemma",       "gemma2",      "gemma3",  "gemma3_text", "t5",        "mt5",   "phi3",
    "deepseek_v2", "deepseek_v3", "olmo2",   "granite",     "cohere",    "glm",   NULL};
/* Models whose norms are torch.nn.LayerNorm, read in the same places; it computes in fp32 inside. */
static const char *const layer_norms[] = {"gpt2",   "gpt_neox", "gptj",     "opt",
                                          "bloom",  "bert",     "roberta",  "phi",
                                          "falcon", "mpt",      "stablelm", NULL};

static bool is_one_of(fr_sv word, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (fr_sv_eq(word, fr_sv_z(*list))) {
            return true;
        }
    }
    return false;
}

bool fr_model_dtype(const char *name, struct fr_smoke *s)
{
    const uint32_t dtype = fr_dtype_find(name);
    if (dtype != FR_F16 && dtype != FR_BF16 && dtype != FR_F32) {
        return false;
    }
    s->dtype = dtype;
    s->from.dtype = "option";
    return true;
}

/* What is being said, and by which file; the first mistake sticks. */
struct taker {
    struct fr_smoke *s;
    struct fr_err *err;
    fr_sv path;
    const char *from;
    int rc;
};

static void say(struct taker *t, const char *name, double value)
{
    struct fr_err why = {0};
    if (t->rc == 0 && !isnan(value) &&
        fr_smoke_say(t->s, fr_sv_z(name), value, t->from, &why) != 0) {
        t->rc = fr_err_set(t->err, FR_SYNTAX, "'%.120s': %s", t->path.p, why.msg);
    }
}

static double known(int64_t v)
{
    return v >= 0 ? (double)v : NAN;
}

static double from_least(double v, double least)
{
    return v >= least ? v : NAN; /* max_steps -1 and one expert say: none */
}

static void take_model(struct taker *t, const struct fr_model_config *m)
{
    struct fr_smoke *s = t->s;
    t->path = m->path;
    t->from = "config.json";
    say(t, "hidden", known(m->hidden));
    say(t, "eps", m->eps);
    say(t, "heads", known(m->heads));
    say(t, "vocab", known(m->vocab));
    say(t, "layers", known(m->layers));
    say(t, "weight", from_least(m->init_std, 1e-30));
    say(t, "experts", from_least(m->experts, 2));
    say(t, "top-k", from_least(m->top_k, 1));
    say(t, "aux", isnan(m->own_aux) ? m->aux : m->own_aux);
    say(t, "ignore-index", m->ignore_index);
    say(t, "logit-scale", isnan(m->log_logit_scale) ? NAN : fr_lab_exp(m->log_logit_scale));
    t->from = "most positions of config.json";
    say(t, "seq", m->positions);
    if (!isnan(s->aux)) { /* transformers adds the loss only where router logits are returned */
        s->balancing = s->aux > 0 && (!isnan(m->own_aux) || m->router_logits == 1);
        s->from.balancing = s->aux > 0 && !s->balancing
                                ? "output_router_logits is not true in config.json, so that "
                                  "transformers leaves the balancing loss out"
                                : "coefficient in config.json";
    }
    if (m->dtype_word.n > 0 && m->dtype != FR_F16 && m->dtype != FR_BF16 && m->dtype != FR_F32 &&
        t->rc == 0) {
        t->rc = fr_err_set(t->err, FR_SYNTAX,
                           "'%.120s': dtype '%.*s' is none of float16, bfloat16, float32",
                           m->path.p, (int)(m->dtype_word.n < 40 ? m->dtype_word.n : 40),
                           m->dtype_word.p);
    } else if (m->dtype_word.n > 0 && t->rc == 0) {
        s->dtype = s->stored = m->dtype;
        s->from.dtype = "config.json";
    }
    s->upcasts = is_one_of(m->model_type, upcasting) || is_one_of(m->model_type, layer_norms);
    s->fused = m->attention.n > 0 && !fr_sv_eq(m->attention, FR_SV("eager"));
}

/* In which types weights, masters and moments are kept. */
static void take_types(struct taker *t, const struct fr_settings *f)
{
    struct fr_smoke *s = t->s;
    const bool half = f->fp16 == 1 || f->bf16 == 1, is_hf = f->kind == FR_SETTINGS_HF;
    const bool wide = s->from.dtype != NULL && s->dtype == FR_F32;
    char word[16];
    snprintf(word, sizeof word, "%.*s", (int)f->moment_dtype.n, f->moment_dtype.p);
    if (f->fp16 == 1 && f->bf16 == 1 && t->rc == 0) {
        t->rc = fr_err_set(t->err, FR_SYNTAX, "'%.120s': fp16 and bf16 are both enabled",
                           f->path.p);
    }
    if (half || f->kind == FR_SETTINGS_MEGATRON) {
        s->dtype = f->fp16 == 1 ? FR_F16 : f->bf16 == 1 ? FR_BF16 : FR_F32;
        s->from.dtype = t->from;
    }
    if (f->fp16 >= 0 || f->bf16 == 1) {
        s->scaler = f->fp16 == 1;
        s->from.scaler = t->from;
    }
    if (is_hf ? f->fp16 == 1 || wide : half) { /* GradScaler refuses gradients in fp16 */
        s->masters = f->narrow_master != 1 && (f->master_dtype.n == 0 ||
                                               fr_sv_eq(f->master_dtype, FR_SV("fp32")));
        s->states = f->narrow_adam == 1        ? FR_BF16
                    : f->narrow_master == 1    ? FR_DTYPE_UNKNOWN
                    : f->moment_dtype.n > 0 ? fr_dtype_find(word)
                                               : FR_F32;
        s->from.masters = s->from.states = t->from;
    } else if (f->kind == FR_SETTINGS_MEGATRON) {
        s->states = FR_F32;
        s->from.states = t->from;
    }
}

static void take_megatron(struct taker *t, const struct fr_settings *f)
{
    struct fr_smoke *s = t->s;
    const fr_sv recipe = f->fp8_recipe;
    s->fp8 = f->fp8_format.n == 0                 ? FR_SMOKE_FP8_OFF
             : fr_sv_eq(recipe, FR_SV("mxfp8"))      ? FR_SMOKE_FP8_MX
             : recipe.n == 0 || fr_sv_eq(recipe, FR_SV("delayed")) ? FR_SMOKE_FP8_DELAYED
                                                                   : FR_SMOKE_FP8_CURRENT;
    s->fp8_hybrid = fr_sv_eq(f->fp8_format, FR_SV("hybrid"));
    s->fp8_recent = f->fp8_algo.n == 0 || fr_sv_eq(f->fp8_algo, FR_SV("most_recent"));
    s->from.fp8 = t->from;
    if (s->from.aux != NULL || !isnan(f->aux) || !isnan(s->experts)) {
        const bool none = fr_sv_eq(f->balancing, FR_SV("none"));
        const double aux = isnan(f->aux) ? 0 : f->aux;
        t->s->aux = NAN; /* config.json's is transformers' affair */
        say(t, "aux", aux);
        s->balancing = (!none && aux > 0) || fr_sv_eq(f->balancing, FR_SV("sinkhorn")) ||
                       f->expert_bias == 1;
        s->from.balancing = s->balancing ? "Megatron arguments"
                            : none       ? "--moe-router-load-balancing-type none"
                                         : "--moe-aux-loss-coeff is 0, as it is by default";
    }
}

static void take_settings(struct taker *t, const struct fr_settings *f)
{
    t->path = f->path;
    t->from = fr_settings_name(f->kind);
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"lr", f->lr},
        {"min-lr", f->min_lr},
        {"adam-eps", f->adam_eps},
        {"beta1", f->beta1},
        {"beta2", f->beta2},
        {"clip", from_least(f->clip, 0)},
        {"loss-scale", f->loss_scale},
        {"initial-scale", f->initial_scale},
        {"min-scale", f->min_scale},
        {"window", f->scale_window},
        {"hysteresis", f->hysteresis},
        {"micro-batch", f->micro_batch},
        {"accumulation", f->accumulation},
        {"seq", f->seq},
        {"steps", from_least(f->steps, 1)},
        {"vocab", f->vocab},
        {"hidden", f->hidden},
        {"heads", f->heads},
        {"layers", f->layers},
        {"weight", from_least(f->init_std, 1e-30)},
        {"experts", from_least(f->experts, 2)},
        {"top-k", from_least(f->top_k, 1)},
        {"margin", f->fp8_margin},
        {"history", f->fp8_history},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        say(t, rows[i].name, rows[i].value);
    }
    take_types(t, f);
    if (f->kind == FR_SETTINGS_MEGATRON) {
        take_megatron(t, f);
    }
}

/* What a kind does where its file is silent; NAN: no default, or one that depends on more. Sources:
 * deepspeed/runtime/constants.py, transformers' TrainingArguments with torch's GradScaler,
 * megatron/training/arguments.py. DeepSpeed's optimizer is often made by its caller. */
static const struct {
    const char *name;
    double by_kind[FR_SETTINGS_KINDS];
} defaults[] = {
    {"loss-scale", {0, 0, 0}},
    {"initial-scale", {65536, 65536, 4294967296.0}},
    {"min-scale", {1, 0, 1}},
    {"window", {1000, 2000, 1000}},
    {"hysteresis", {2, 1, 2}},
    {"adam-eps", {NAN, 1e-8, 1e-8}},
    {"beta1", {NAN, 0.9, 0.9}},
    {"beta2", {NAN, 0.999, 0.999}},
    {"lr", {NAN, 5e-5, NAN}},
    {"clip", {0, 1, 1}},
    {"micro-batch", {NAN, 8, NAN}},
    {"accumulation", {NAN, 1, NAN}},
    {"weight", {NAN, NAN, 0.02}},
    {"top-k", {NAN, NAN, 2}},
    {"margin", {NAN, NAN, 0}},
    {"history", {NAN, NAN, 1}},
};

static void take_defaults(struct taker *t, const struct fr_config *c)
{
    static const uint8_t order[] = {FR_SETTINGS_HF, FR_SETTINGS_MEGATRON, FR_SETTINGS_DEEPSPEED};
    static const char *const from[FR_SETTINGS_KINDS] = {
        "DeepSpeed's default", "the training arguments' default", "Megatron's default"};
    for (size_t o = 0; o < sizeof order; o++) {
        bool there = false;
        for (uint32_t i = 0; i < c->settings_n; i++) {
            there |= c->settings[i].kind == order[o];
        }
        for (size_t i = 0; there && i < sizeof defaults / sizeof *defaults; i++) {
            t->from = from[order[o]];
            if (!fr_smoke_said(t->s, defaults[i].name)) {
                say(t, defaults[i].name, defaults[i].by_kind[order[o]]);
            }
        }
    }
}

int fr_model_take(const struct fr_config *c, struct fr_smoke *s, struct fr_err *err)
{
    struct taker t = {.s = s, .err = err};
    if (c->model.path.n > 0) {
        take_model(&t, &c->model);
    }
    for (uint32_t i = 0; i < c->settings_n; i++) {
        take_settings(&t, &c->settings[i]);
    }
    take_defaults(&t, c);
    return t.rc;
}

int fr_model_config(const char *paths, struct fr_smoke *s, struct fr_err *err)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_config c;
    fr_sv rest = fr_sv_z(paths), path;
    int rc = 0;
    fr_config_init(&c);
    while (rc == 0 && rest.n > 0) {
        fr_sv_cut(rest, ',', &path, &rest);
        const char *const z = path.n > 0 ? fr_arena_strdup(&arena, path) : NULL;
        rc = path.n == 0 ? 0
             : z == NULL ? fr_err_set(err, FR_NOMEM, "out of memory")
                         : fr_config_read(&c, z, &arena, err);
    }
    rc = rc == 0 ? fr_model_take(&c, s, err) : rc;
    fr_arena_release(&arena);
    return rc;
}
