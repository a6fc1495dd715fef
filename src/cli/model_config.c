/* SPDX-License-Identifier: Apache-2.0 */
/* model_config: see model_config.h. */
#include "cli/model_config.h"

#include "base/alloc.h"
#include "faultrank/numerics.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#define FILE_MAX ((size_t)16 << 20)

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

static bool is_one_of(const char *word, const char *const *list)
{
    for (; word != NULL && *list != NULL; list++) {
        if (strcmp(word, *list) == 0) {
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
    return true;
}

static int slurp(const char *path, char **ret, size_t *ret_n, struct fr_err *err)
{
    FILE *f = fopen(path, "rbe");
    if (f == NULL) {
        return fr_err_set(err, errno == ENOENT ? FR_ABSENT : FR_IO, "cannot open '%s': %s", path,
                          strerror(errno));
    }
    char *text = fr_malloc(FILE_MAX);
    const size_t n = text != NULL ? fread(text, 1, FILE_MAX, f) : 0;
    const bool failed = ferror(f) != 0, whole = n < FILE_MAX;
    const int sys = errno;
    fclose(f);
    if (text == NULL || failed || !whole) {
        fr_free(text);
        return text == NULL ? fr_err_set(err, FR_NOMEM, "out of memory")
               : failed     ? fr_err_set(err, FR_IO, "cannot read '%s': %s", path, strerror(sys))
                            : fr_err_set(err, FR_SYNTAX,
                                         "'%s' is larger than 16 MiB: no config.json is", path);
    }
    *ret = text;
    *ret_n = n;
    return 0;
}

/* The first of the names (separated by blanks) that is a number in o or in o.text_config. */
static json_t *number(const json_t *o, const char *names)
{
    const json_t *places[] = {o, json_object_get(o, "text_config")};
    for (size_t p = 0; p < 2; p++) {
        for (fr_sv rest = fr_sv_z(names), one; rest.n > 0;) {
            char key[64];
            fr_sv_cut(rest, ' ', &one, &rest);
            snprintf(key, sizeof key, "%.*s", (int)one.n, one.p);
            json_t *v = json_object_get(places[p], key);
            if (json_is_number(v)) {
                return v;
            }
        }
    }
    return NULL;
}

static int take(const char *path, const json_t *o, struct fr_smoke *s, struct fr_err *err)
{
    const struct {
        const char *option, *names;
    } sizes[] = {
#define FR_X(field, option, value, min, max, whole, names, help) {option, names},
        FR_SMOKE_SIZES(FR_X)
#undef FR_X
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const json_t *v = number(o, sizes[i].names);
        struct fr_err why = {0};
        if (v != NULL &&
            fr_smoke_set(s, fr_sv_z(sizes[i].option), json_number_value(v), &why) != 0) {
            return fr_err_set(err, FR_SYNTAX, "'%s': %s", path, why.msg);
        }
    }
    const json_t *text = json_object_get(o, "text_config");
    const char *type =
        json_string_value(json_object_get(json_is_object(text) ? text : o, "model_type"));
    const char *dtype = json_string_value(json_object_get(o, "torch_dtype"));
    dtype = dtype != NULL ? dtype : json_string_value(json_object_get(o, "dtype"));
    const char *attention = json_string_value(json_object_get(o, "_attn_implementation"));
    attention = attention != NULL ? attention
                                  : json_string_value(json_object_get(o, "attn_implementation"));
    if (dtype != NULL && !fr_model_dtype(dtype, s)) {
        return fr_err_set(err, FR_SYNTAX,
                          "'%s': dtype '%.40s' is none of float16, bfloat16, float32", path, dtype);
    }
    s->upcasts = is_one_of(type, upcasting) || is_one_of(type, layer_norms);
    s->fused = attention != NULL && strcmp(attention, "eager") != 0;
    return 0;
}

int fr_model_config(const char *path, struct fr_smoke *s, struct fr_err *err)
{
    char *text = NULL;
    size_t n = 0;
    int rc = slurp(path, &text, &n, err);
    if (rc != 0) {
        return rc;
    }
    json_error_t e;
    json_t *o = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    fr_free(text);
    if (o == NULL) {
        return fr_err_set(err, FR_SYNTAX, "'%s', line %d: %.150s", path, e.line, e.text);
    }
    rc = json_is_object(o) ? take(path, o, s, err)
                           : fr_err_set(err, FR_SYNTAX, "'%s' is no JSON object", path);
    json_decref(o);
    return rc;
}
