/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/config.h"

#include "base/alloc.h"
#include "faultrank/numerics.h"
#include "tensor/blob.h"
#include "tensor/build.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void fr_config_init(struct fr_config *c)
{
    *c = (struct fr_config){.settings_n = 0};
    c->model = (struct fr_model_config){.hidden = -1,
                                        .intermediate = -1,
                                        .layers = -1,
                                        .heads = -1,
                                        .kv_heads = -1,
                                        .head_dim = -1,
                                        .vocab = -1,
                                        .eps = NAN,
                                        .softcap = NAN,
                                        .final_softcap = NAN,
#define FR_X(field_, ...) .field_ = NAN,
                                        FR_MODEL_NUMBERS(FR_X)
#undef FR_X
                                        .router_logits = -1,
                                        .tied = -1};
}

const char *fr_settings_name(uint8_t kind)
{
    static const char *const names[] = {[FR_SETTINGS_DEEPSPEED] = "DeepSpeed configuration",
                                        [FR_SETTINGS_HF] = "training arguments",
                                        [FR_SETTINGS_MEGATRON] = "Megatron arguments"};
    return kind < FR_SETTINGS_KINDS ? names[kind] : "settings";
}

/* ---- values by the first of several keys ---- */

static const json_t *first(const json_t *o, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        const json_t *v = json_object_get(o, *keys);
        if (v != NULL && !json_is_null(v)) {
            return v;
        }
    }
    return NULL;
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int64_t whole(const json_t *v)
{
    const double d = json_is_real(v) ? json_real_value(v) : -1; /* 4e3 is a number like 4000 */
    return json_is_integer(v) && json_integer_value(v) >= 0 ? (int64_t)json_integer_value(v)
           : d >= 0 && d < 0x1p53 && d == floor(d)          ? (int64_t)d
                                                            : -1;
}

static double real(const json_t *v)
{
    char *end;
    if (json_is_number(v)) {
        return json_number_value(v);
    }
    const char *z = json_string_value(v); /* Hugging Face writes 1e-08 as a number, users "1e-8" */
    const double d = z != NULL ? strtod(z, &end) : NAN;
    return z != NULL && end != z && *end == '\0' ? d : NAN;
}

/* A value by a path of keys and array indices, "optimizer.params.betas.0". */
static const json_t *follow(const json_t *o, fr_sv path)
{
    for (fr_sv one; path.n > 0 && o != NULL;) {
        char key[64];
        uint64_t i;
        fr_sv_cut(path, '.', &one, &path);
        memcpy(key, one.p, one.n < sizeof key ? one.n : sizeof key - 1);
        key[one.n < sizeof key ? one.n : sizeof key - 1] = '\0';
        o = json_is_array(o) && fr_sv_take_u64(&one, &i) ? json_array_get(o, (size_t)i)
                                                         : json_object_get(o, key);
    }
    return o;
}

/* The first of the paths (separated by blanks) that leads to a number. */
static double number(const json_t *o, const char *paths)
{
    double d = NAN;
    for (fr_sv rest = fr_sv_z(paths), one; isnan(d) && rest.n > 0;) {
        fr_sv_cut(rest, ' ', &one, &rest);
        d = real(follow(o, one));
    }
    return d;
}

static int truth(const json_t *v)
{
    return json_is_boolean(v) ? json_is_true(v)
           : json_is_integer(v) ? (json_integer_value(v) == 1   ? 1
                                   : json_integer_value(v) == 0 ? 0
                                                                : -1)
           : json_is_string(v) && strcmp(json_string_value(v), "auto") != 0
               ? strcmp(json_string_value(v), "true") == 0
               : -1;
}

static fr_sv text(const json_t *v, struct fr_arena *arena)
{
    return json_is_string(v)
               ? fr_arena_dup(arena, (fr_sv){json_string_value(v), json_string_length(v)})
               : FR_SV_NONE;
}

/* ---- the four kinds ---- */

static void read_model(const json_t *root, struct fr_model_config *m, fr_sv path,
                       struct fr_arena *arena)
{
    const json_t *nested = json_object_get(root, "text_config"),
                 *o = json_is_object(nested) ? nested : root;
    const json_t *dtype = first(o, KEYS("dtype", "torch_dtype"));
    dtype = dtype != NULL ? dtype : first(root, KEYS("dtype", "torch_dtype"));
    m->path = path;
#define FR_X(field, keys)                                                                          \
    m->field = number(o, keys);                                                                    \
    m->field = isnan(m->field) ? number(root, keys) : m->field;
    FR_MODEL_NUMBERS(FR_X)
#undef FR_X
    m->dtype_word = text(dtype, arena);
    m->attention = text(first(root, KEYS("_attn_implementation", "attn_implementation")), arena);
    m->router_logits = truth(first(o, KEYS("output_router_logits")));
    m->model_type = text(first(o, KEYS("model_type")), arena);
    m->dtype =
        json_is_string(dtype)
            ? (uint8_t)fr_dtype_of((fr_sv){json_string_value(dtype), json_string_length(dtype)})
            : FR_DTYPE_UNKNOWN;
    m->hidden = whole(first(o, KEYS("hidden_size", "n_embd", "d_model", "dim")));
    m->intermediate = whole(first(o, KEYS("intermediate_size", "n_inner", "ffn_dim", "d_ff")));
    m->layers = whole(first(o, KEYS("num_hidden_layers", "n_layer", "num_layers")));
    m->heads = whole(first(o, KEYS("num_attention_heads", "n_head", "num_heads", "n_heads")));
    m->kv_heads = whole(first(o, KEYS("num_key_value_heads")));
    m->head_dim = whole(first(o, KEYS("head_dim", "d_kv")));
    m->vocab = whole(first(o, KEYS("vocab_size")));
    m->eps =
        real(first(o, KEYS("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps")));
    m->softcap = real(first(o, KEYS("attn_logit_softcapping")));
    m->final_softcap = real(first(o, KEYS("final_logit_softcapping")));
    m->tied = truth(first(o, KEYS("tie_word_embeddings")));
    m->quantised = json_is_object(json_object_get(root, "quantization_config"));
    if (m->head_dim <= 0 && m->hidden > 0 && m->heads > 0) {
        m->head_dim = m->hidden / m->heads;
    }
}

static struct fr_settings *new_settings(struct fr_config *c, uint8_t kind, fr_sv path)
{
    struct fr_settings *s = c->settings_n < FR_CONFIG_FILES ? &c->settings[c->settings_n++] : NULL;
    if (s != NULL) {
        *s = (struct fr_settings){.path = path,
                                  .kind = kind,
                                  .fp16 = -1,
                                  .bf16 = -1,
#define FR_X(field_, ...) .field_ = NAN,
                                  FR_SETTINGS_NUMBERS(FR_X)
#undef FR_X
                                  .softmax_fp32 = -1,
                                  .reduce_fp32 = -1,
                                  .expert_bias = -1,
                                  .narrow_master = -1,
                                  .narrow_adam = -1};
    }
    return s;
}

static void read_deepspeed(const json_t *root, struct fr_settings *s)
{
    const json_t *half = json_object_get(root, "fp16"),
                 *brain = first(root, KEYS("bf16", "bfloat16"));
    const double power = real(json_object_get(half, "initial_scale_power"));
    s->fp16 = json_is_object(half) ? truth(json_object_get(half, "enabled")) : -1;
    s->bf16 = json_is_object(brain) ? truth(json_object_get(brain, "enabled")) : -1;
#define FR_X(field, deepspeed, hf, megatron) s->field = number(root, deepspeed);
    FR_SETTINGS_NUMBERS(FR_X)
#undef FR_X
    s->initial_scale = isnan(power) ? NAN : exp2(power);
    const int narrow = truth(json_object_get(half, "fp16_master_weights_and_grads")),
              brain_narrow = truth(json_object_get(brain, "bf16_master_weights_and_grads"));
    s->narrow_master = narrow == 1 || brain_narrow == 1 ? 1 : narrow;
    s->narrow_adam = truth(json_object_get(brain, "bf16_optimizer_states"));
}

static void read_hf(const json_t *root, struct fr_settings *s)
{
    s->fp16 = truth(json_object_get(root, "fp16"));
    s->bf16 = truth(json_object_get(root, "bf16"));
#define FR_X(field, deepspeed, hf, megatron) s->field = number(root, hf);
    FR_SETTINGS_NUMBERS(FR_X)
#undef FR_X
}

/* The number after an option of an argument line; NAN when it is not there. */
static double after(fr_sv line, const char *option)
{
    const fr_sv word = fr_sv_z(option);
    for (size_t at; (at = fr_sv_find(line, word)) != FR_NPOS;
         line = fr_sv_skip(line, at + word.n)) {
        fr_sv rest = fr_sv_skip(line, at + word.n);
        double d;
        if (rest.n > 0 &&
            (rest.p[0] == ' ' || rest.p[0] == '=' || rest.p[0] == '\n' || rest.p[0] == '\t')) {
            rest = fr_sv_trim(fr_sv_skip(rest, 1));
            return fr_sv_take_double(&rest, &d) ? d : NAN;
        }
    }
    return NAN;
}

static bool says(fr_sv line, const char *option)
{
    const fr_sv word = fr_sv_z(option);
    for (size_t at; (at = fr_sv_find(line, word)) != FR_NPOS;
         line = fr_sv_skip(line, at + word.n)) {
        const fr_sv rest = fr_sv_skip(line, at + word.n);
        if (rest.n == 0 || strchr(" \t\r\n\\\"'", rest.p[0]) != NULL) {
            return true;
        }
    }
    return false;
}

/* The word after an option, without quotes. */
static fr_sv word_after(fr_sv line, const char *option, struct fr_arena *arena)
{
    const fr_sv word = fr_sv_z(option);
    for (size_t i; (i = fr_sv_find(line, word)) != FR_NPOS; line = fr_sv_skip(line, i + word.n)) {
        fr_sv rest = fr_sv_skip(line, i + word.n);
        if (rest.n > 0 && strchr(" =\n\t", rest.p[0]) != NULL) {
            size_t n = 0;
            rest = fr_sv_trim(fr_sv_skip(rest, 1));
            while (n < rest.n && rest.p[n] != '\0' && strchr(" \t\r\n\\\"'", rest.p[n]) == NULL) {
                n++;
            }
            return fr_arena_dup(arena, fr_sv_head(rest, n));
        }
    }
    return FR_SV_NONE;
}

static void read_megatron(fr_sv line, struct fr_settings *s, struct fr_arena *arena)
{
    s->fp16 = says(line, "--fp16");
    s->bf16 = says(line, "--bf16");
#define FR_X(field, deepspeed, hf, megatron) s->field = megatron[0] ? after(line, megatron) : NAN;
    FR_SETTINGS_NUMBERS(FR_X)
#undef FR_X
#define FR_X(field, option) s->field = word_after(line, option, arena);
    FR_SETTINGS_WORDS(FR_X)
#undef FR_X
    s->softmax_fp32 = says(line, "--attention-softmax-in-fp32");
    s->expert_bias = says(line, "--moe-router-enable-expert-bias");
    s->reduce_fp32 = says(line, "--accumulate-allreduce-grads-in-fp32");
}

static int read_json(struct fr_config *c, const json_t *root, fr_sv path, struct fr_arena *arena)
{
    struct fr_settings *s;
    if (first(root, KEYS("model_type", "architectures", "hidden_size", "n_embd", "text_config",
                         "torch_dtype", "vocab_size")) != NULL) {
        read_model(root, &c->model, path, arena);
        return 0;
    }
    if (first(root, KEYS("per_device_train_batch_size", "learning_rate", "adam_epsilon",
                         "output_dir", "max_grad_norm")) != NULL) {
        s = new_settings(c, FR_SETTINGS_HF, path);
        if (s != NULL) {
            read_hf(root, s);
        }
        const json_t *inner = json_object_get(root, "deepspeed"); /* else a path */
        s = json_is_object(inner) ? new_settings(c, FR_SETTINGS_DEEPSPEED, path) : NULL;
        if (s != NULL) {
            read_deepspeed(inner, s);
        }
        return 0;
    }
    if (first(root, KEYS("train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization",
                         "fp16", "bf16", "bfloat16", "gradient_clipping")) != NULL) {
        s = new_settings(c, FR_SETTINGS_DEEPSPEED, path);
        if (s != NULL) {
            read_deepspeed(root, s);
        }
        return 0;
    }
    return -1;
}

static int neither(struct fr_err *err, fr_sv path)
{
    return fr_err_set(err, FR_SYNTAX,
                      "'%.160s' is neither a model's config.json nor DeepSpeed, "
                      "TrainingArguments or Megatron settings",
                      path.p);
}

static int read_text(struct fr_config *c, fr_sv data, fr_sv path, struct fr_arena *arena,
                     struct fr_err *err)
{
    json_error_t where;
    json_set_alloc_funcs(fr_malloc, fr_free);
    json_t *root = json_loadb(data.p, data.n, JSON_REJECT_DUPLICATES, &where);
    if (root != NULL) {
        const int rc = json_is_object(root) ? read_json(c, root, path, arena) : -1;
        json_decref(root);
        return rc == 0 ? 0 : neither(err, path);
    }
    if (fr_sv_starts(fr_sv_trim(data), FR_SV("{"))) {
        return fr_err_set(err, FR_SYNTAX, "'%.120s' is no valid JSON, line %d: %.90s", path.p,
                          where.line, where.text);
    }
    if (fr_sv_has(data, FR_SV("--"))) {
        struct fr_settings *s = new_settings(c, FR_SETTINGS_MEGATRON, path);
        if (s != NULL) {
            read_megatron(data, s, arena);
        }
        return 0;
    }
    return neither(err, path);
}

int fr_config_read(struct fr_config *c, const char *path, struct fr_arena *arena,
                   struct fr_err *err)
{
    struct fr_blob b;
    struct fr_err why = {0};
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        return fr_err_set(err, FR_SYNTAX,
                          "'%.160s' is a folder: settings are files; the config.json beside the "
                          "tensors is found by itself",
                          path);
    }
    int rc = fr_blob_open(&b, path, &why);
    if (rc != 0) {
        return fr_err_set(err, -rc, "'%.160s': %s", path, why.msg);
    }
    const fr_sv kept = fr_arena_dup(arena, fr_sv_z(path));
    char *data = b.size > FR_CONFIG_BYTES || kept.p == NULL ? NULL : fr_malloc((size_t)b.size + 1);
    if (data == NULL) {
        rc = b.size > FR_CONFIG_BYTES
                 ? fr_err_set(err, FR_LIMIT, "'%.160s' is too large for a file of settings", path)
                 : fr_err_set(err, FR_NOMEM, "out of memory");
    } else if ((rc = fr_blob_read(&b, 0, data, (size_t)b.size, &why)) != 0) {
        rc = fr_err_set(err, -rc, "'%.160s': %s", path, why.msg);
    } else {
        rc = read_text(c, (fr_sv){data, (size_t)b.size}, kept, arena, err);
    }
    fr_free(data);
    fr_blob_release(&b);
    return rc;
}
