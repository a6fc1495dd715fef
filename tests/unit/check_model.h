/* SPDX-License-Identifier: Apache-2.0 */
/* check_model: a small sound model with changes by name, checked, and questions to what was found. */
#ifndef FR_TESTS_CHECK_MODEL_H
#define FR_TESTS_CHECK_MODEL_H

#include "tensor/check.h"
#include "tensor_make.h"

#include <math.h>

static struct fr_check r;
static struct fr_check_options o = {.step = -1};
static struct fr_err err;

static inline int check_all(const char *const *paths, uint32_t n)
{
    fr_check_release(&r);
    err = (struct fr_err){0};
    return fr_check_paths(paths, n, &o, &r, &err);
}

static inline int check(const char *path)
{
    return check_all(&path, 1);
}

static inline const struct fr_check_finding *found(const char *rule)
{
    for (uint32_t i = 0; i < r.findings.n; i++) {
        if (fr_sv_eq(r.findings.v[i].rule, fr_sv_z(rule))) {
            return &r.findings.v[i];
        }
    }
    return NULL;
}

static inline void show(const char *what)
{
    fprintf(stderr, "%s: %s: %.*s\n", what, fr_check_verdict_name(r.verdict),
            FR_SV_ARG(r.headline));
    for (uint32_t i = 0; i < r.findings.n; i++) {
        fprintf(stderr, "    %.*s %.*s: %.*s\n", FR_SV_ARG(r.findings.v[i].rule),
                FR_SV_ARG(r.findings.v[i].tensor), FR_SV_ARG(r.findings.v[i].text));
    }
}

/* The checkpoint has this finding about this tensor with these words, and this verdict. */
#define T_FOUND(path, verdict_, rule_, tensor_, words)                                          \
    do {                                                                                        \
        T_EQ_INT(check(path), 0);                                                               \
        const struct fr_check_finding *f_ = found(rule_);                                       \
        t_checks_++;                                                                            \
        if (r.verdict != (verdict_) || f_ == NULL || !fr_sv_eq(f_->tensor, fr_sv_z(tensor_)) || \
            !fr_sv_has(f_->text, fr_sv_z(words))) {                                             \
            T_FAIL("not so: %s, %s, %s", rule_, tensor_, words);                                \
            show(path);                                                                         \
        }                                                                                       \
    } while (0)

/* A small sound model; what differs is given by name. */
struct change {
    const char *name;
    double (*value)(size_t i, void *ctx);
    void *ctx;
};

static inline void add(const char *name, uint32_t dtype, unsigned rows, unsigned columns,
                const struct change *changes, uint64_t seed)
{
    struct noise n = {.seed = seed * 1000 + fr_sv_hash(fr_sv_z(name)), .sigma = 0.02};
    double one = 1;
    for (; changes != NULL && changes->name != NULL; changes++) {
        if (strcmp(changes->name, name) == 0) {
            made_add(name, dtype, rows, columns, changes->value, changes->ctx);
            return;
        }
    }
    made_add(name, dtype, rows, columns, rows == 0 ? made_same : made_noise,
             rows == 0 ? (void *)&one : (void *)&n);
}

static inline const char *model(const char *file, uint32_t dtype, const struct change *changes,
                         uint64_t seed)
{
    char name[80];
    made_begin();
    add("model.embed_tokens.weight", dtype, 100, 64, changes, seed);
    for (int l = 0; l < 7; l++) {
        snprintf(name, sizeof name, "model.layers.%d.input_layernorm.weight", l);
        add(name, dtype, 0, 64, changes, seed);
        snprintf(name, sizeof name, "model.layers.%d.self_attn.q_proj.weight", l);
        add(name, dtype, 64, 64, changes, seed);
        snprintf(name, sizeof name, "model.layers.%d.mlp.up_proj.weight", l);
        add(name, dtype, 96, 64, changes, seed);
    }
    add("model.norm.weight", dtype, 0, 64, changes, seed);
    add("lm_head.weight", dtype, 100, 64, changes, seed);
    return made_write(file);
}

static inline const char *with_config(const char *json, uint32_t dtype, const struct change *changes)
{
    const char *path = model("conf/model.safetensors", dtype, changes, 1);
    made_text("conf/config.json", json, strlen(json));
    static char folder[300];
    snprintf(folder, sizeof folder, "%.*s", (int)(strlen(path) - strlen("/model.safetensors")),
             path);
    return folder;
}

#endif
