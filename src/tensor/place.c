/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/place.h"

#include <stdlib.h>

static bool all_digits(fr_sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') {
            return false;
        }
    }
    return s.n > 0 && s.n < 6;
}

static bool is(fr_sv s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_eq(s, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

static bool has(fr_sv s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_find_ci(s, fr_sv_z(*words)) != FR_NPOS) {
            return true;
        }
    }
    return false;
}

/* The next part of a name between dots; false at the end. */
static bool next_part(fr_sv *rest, fr_sv *part)
{
    if (rest->n == 0) {
        return false;
    }
    (void)fr_sv_cut(*rest, '.', part, rest);
    return true;
}

void fr_place(struct fr_check_tensor *t)
{
    static const char *const lists[] = {
        "layers",         "layer",     "h",      "block",          "blocks",
        "encoder_layers", "resblocks", "stages", "decoder_layers", "transformer_layers",
        "down_blocks",    "up_blocks", NULL};
    fr_sv rest = t->name, part = FR_SV_NONE, before = FR_SV_NONE;
    const char *end = t->name.p + t->name.n, *module = t->name.p;
    t->layer = -1;
    while (next_part(&rest, &part)) {
        uint64_t n;
        fr_sv digits = part;
        if (t->layer < 0 && is(before, lists) && all_digits(part) && fr_sv_take_u64(&digits, &n)) {
            t->layer = (int32_t)n;
            module = rest.n > 0 ? rest.p : end;
        }
        before = part;
    }
    t->param = part;
    t->module = part.p > module ? fr_sv_range(module, part.p - 1) : FR_SV_NONE;
}

static const char *const embeddings[] = {"embed", "wte", "wpe", "tok_emb", NULL};

bool fr_place_is_embedding(const struct fr_check_tensor *t)
{
    static const char *const tokens[] = {"embed_tokens",    "wte",
                                         "word_embeddings", "tok_embeddings",
                                         "shared.weight",   "token_embedding",
                                         "embed_in",        NULL};
    return t->layer < 0 && t->dims == 2 && fr_sv_eq(t->param, FR_SV("weight")) &&
           has(t->name, tokens) && !fr_sv_eq(t->role, FR_SV("optimizer"));
}

bool fr_place_is_head(const struct fr_check_tensor *t)
{
    static const char *const heads[] = {"lm_head", "output_layer", "embed_out", NULL};
    return t->layer < 0 && t->dims == 2 && fr_sv_eq(t->param, FR_SV("weight")) &&
           !fr_sv_eq(t->role, FR_SV("optimizer")) &&
           (has(t->name, heads) || fr_sv_eq(t->name, FR_SV("output.weight")));
}

bool fr_place_is_norm(const struct fr_check_tensor *t)
{
    static const char *const norms[] = {"norm", "ln_", "ln1", "ln2", NULL};
    return t->dims <= 1 && has(t->module, norms);
}

bool fr_place_is_bias(const struct fr_check_tensor *t)
{
    static const char *const zeros[] = {"bias",         "lora_b", "zero_conv", "beta",
                                        "running_mean", "step",   NULL};
    return has(t->param, zeros) || has(t->module, zeros);
}

bool fr_place_is_second_moment(const struct fr_check_tensor *t)
{
    static const char *const words[] = {"exp_avg_sq", "square_avg", NULL};
    return has(t->name, words);
}

/* 0 before the layers, 1 in them, 2 after them, 3 the optimizer's and the rest. */
static int stage(const struct fr_check_tensor *t)
{
    if (fr_sv_eq(t->role, FR_SV("optimizer")) || fr_sv_eq(t->role, FR_SV("other"))) {
        return 3;
    }
    return t->layer >= 0 ? 1 : has(t->name, embeddings) ? 0 : 2;
}

/* "model.encoder" of "model.encoder.layers.3.mlp...": encoders come before decoders. */
static fr_sv stack(const struct fr_check_tensor *t)
{
    static const char *const first[] = {"encoder", NULL};
    return t->layer >= 0 && has(t->name, first) ? FR_SV("encoder") : FR_SV("~");
}

int fr_place_cmp(const void *a, const void *b)
{
    const struct fr_check_tensor *x = a, *y = b;
    const int s = stage(x), t = stage(y);
    if (s != t) {
        return s < t ? -1 : 1;
    }
    int order = s == 1 ? fr_sv_cmp(stack(x), stack(y)) : 0;
    order = order != 0 ? order : x->layer < y->layer ? -1 : x->layer > y->layer;
    order = order != 0 ? order : fr_sv_cmp_natural(x->name, y->name);
    order = order != 0 ? order : x->rank < y->rank ? -1 : x->rank > y->rank;
    return order != 0 ? order : x->source < y->source ? -1 : x->source > y->source;
}

fr_sv fr_place_label(const struct fr_check_tensor *t, struct fr_arena *arena)
{
    if (stage(t) == 3) {
        return fr_sv_eq(t->role, FR_SV("optimizer")) ? FR_SV("optimizer") : FR_SV("other");
    }
    if (t->layer >= 0) {
        return fr_arena_printf(arena, "layer %d", t->layer);
    }
    fr_sv rest = t->module.n > 0 ? t->module : t->name, part = rest;
    while (next_part(&rest, &part)) {
    }
    return part;
}
