/* SPDX-License-Identifier: Apache-2.0 */
/* risk: what config.json and the tensors say about running this model in fp16. Activations are not
 * in a checkpoint, so every number here is reckoned for inputs that are independent of the weights
 * (typical) or is the largest possible (bound), and says which.
 *
 * Typical: a matrix with n inputs of rms a and weights of rms w gives outputs of rms a * w *
 * sqrt(n). A norm gives the rms of its weight. The residual stream adds the squares of what the
 * blocks write. Real models have a few channels far above this ("massive activations"), so the
 * reckoning is a lower estimate. */
#include "tensor/checking.h"
#include "tensor/place.h"

#include <inttypes.h>
#include <math.h>

#define FP16_MAX 65504.0
#define PEAK 6.0 /* a value of six standard deviations occurs once in 5e8: in every long run */

struct block { /* of one layer; NAN where the tensors do not say */
    double norm1, norm2, query, key, value, out, up, gate, down;
};

static bool is_half(const struct fr_checking *k)
{
    bool half = k->config.model.dtype == FR_F16;
    for (uint32_t i = 0; i < k->config.settings_n; i++) {
        half |= k->config.settings[i].fp16 == 1;
    }
    return half;
}

static const struct fr_check_tensor *find(const struct fr_checking *k,
                                          bool (*is)(const struct fr_check_tensor *))
{
    for (uint32_t i = 0; i < k->r->tensors.n; i++) {
        const struct fr_check_tensor *t = &k->r->tensors.v[i];
        if (t->scanned && t->is_float && is(t)) {
            return t;
        }
    }
    return NULL;
}

/* ---- shapes ---- */

static void vocabulary(struct fr_checking *k, const struct fr_check_tensor *table)
{
    const struct fr_model_config *m = &k->config.model;
    const bool part = table != NULL && k->c->tensors[table->source].shard;
    if (table == NULL || part) {
        return;
    }
    struct fr_check_tensor *t = &k->r->tensors.v[table - k->r->tensors.v];
    if (m->vocab > 0 && (uint64_t)m->vocab > t->shape[0]) {
        fr_found(k, FR_RULE_VOCABULARY, t, FR_SV_NONE,
                 "vocab_size is %" PRId64 ", but the table has %" PRIu64 " rows: ids from %" PRIu64
                 " on are out of range.",
                 m->vocab, t->shape[0], t->shape[0]);
    }
    if (m->hidden > 0 && (uint64_t)m->hidden != t->shape[1] && t->shape[1] != 0) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_CONFIG_SHAPE, t, FR_SV_NONE,
                     "hidden_size is %" PRId64 ", but the embedding has %" PRIu64 " columns.",
                     m->hidden, t->shape[1]);
        if (f != NULL && k->c->files[t->file_index].rank >= 0) {
            f->weight = FR_CHECK_NOTE; /* a part of a model split over ranks */
        }
    }
}

static void layer_count(struct fr_checking *k)
{
    const struct fr_model_config *m = &k->config.model;
    int32_t top = -1;
    bool part = false;
    for (uint32_t i = 0; i < k->r->tensors.n; i++) {
        const struct fr_check_tensor *t = &k->r->tensors.v[i];
        top = fr_sv_eq(t->role, FR_SV("weight")) && t->layer > top ? t->layer : top;
        part |= t->rank >= 0;
    }
    if (m->layers > 0 && top >= 0 && !part && top + 1 < m->layers) {
        fr_found(k, FR_RULE_CONFIG_LAYERS, NULL, m->path,
                 "num_hidden_layers is %" PRId64 ", but the tensors end at layer %d.", m->layers,
                 top);
    }
}

static void dtypes(struct fr_checking *k)
{
    const struct fr_model_config *m = &k->config.model;
    const struct fr_dtype_info *want = fr_dtype_info(m->dtype);
    uint32_t other = 0, all = 0;
    fr_sv example = FR_SV_NONE;
    for (uint32_t i = 0; want != NULL && !m->quantised && i < k->r->tensors.n; i++) {
        const struct fr_check_tensor *t = &k->r->tensors.v[i];
        if (t->is_float && t->dims >= 2 && fr_sv_eq(t->role, FR_SV("weight"))) {
            all++;
            if (!fr_sv_eq(t->dtype, fr_sv_z(want->name))) {
                other++;
                example = t->dtype;
            }
        }
    }
    if (other * 2 > all) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_DTYPE_DIFFERS, NULL, m->path,
                     "config.json names %s, but %u of %u matrices are %.*s: loading casts them.",
                     want->name, other, all, FR_SV_ARG(example));
        fr_found_unknown(f, "Which type the loader is asked for.");
        fr_found_page(f, m->dtype == FR_F16 ? "fp16-activation-overflow" : "");
    }
}

/* ---- the norm ---- */

/* Families whose norm in Transformers computes in fp32 whatever the type of its input (read in
 * their modeling files). */
static bool norm_upcasts(fr_sv type)
{
    static const char *const types[] = {
        "llama",     "mistral", "mixtral",     "qwen2",       "qwen2_moe",   "qwen3",
        "qwen3_moe", "gemma",   "gemma2",      "gemma3",      "gemma3_text", "phi3",
        "t5",        "mt5",     "deepseek_v2", "deepseek_v3", "olmo2",       "cohere",
        "cohere2",   "granite", "smollm3",     "glm4",        "internlm2",   NULL};
    for (int i = 0; types[i] != NULL; i++) {
        if (fr_sv_eq(type, fr_sv_z(types[i]))) {
            return true;
        }
    }
    return false;
}

static void norm_eps(struct fr_checking *k)
{
    const struct fr_model_config *m = &k->config.model;
    if (m->eps > 0 && fr_round(FR_F16, m->eps, FR_OVERFLOW_IEEE) == 0) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_RISK_EPS, NULL, m->path,
                     "The norm's eps is %.3g, which fp16 rounds to zero (all up to 2.98e-8 is): a "
                     "row of zeros, such as padding, then gives 0 * Inf = NaN.",
                     m->eps);
        fr_found_unknown(
            f, norm_upcasts(m->model_type)
                   ? "Nothing in Transformers, whose norm of this family adds eps in fp32; other "
                     "programs may differ."
                   : "Whether the norm adds eps in fp32, as torch.nn.functional.rms_norm does.");
    }
}

/* What a token brings along reaches the first norm as it is, whatever the rms of the table. */
static void embedded(struct fr_checking *k, const struct fr_check_tensor *table)
{
    struct fr_check_finding *f =
        fr_found(k, FR_RULE_RISK_NORM, NULL, k->config.model.path,
                 "'%.*s' holds an element of magnitude %.4g, which reaches the first norm as it is: "
                 "its square overflows in fp16 from 256 on.",
                 (int)fr_sv_head(table->name, 200).n, table->name.p, table->abs_max);
    fr_found_unknown(f, "Whether that token is ever used, and how the norm is written: one that "
                        "computes in fp32 cannot overflow.");
}

static void norm_squares(struct fr_checking *k, const struct fr_check_tensor *table,
                         double residual, int32_t layer)
{
    const struct fr_model_config *m = &k->config.model;
    const double limit = m->hidden > 0 ? sqrt(FP16_MAX / (double)m->hidden) : NAN,
                 peak = PEAK * residual;
    if (norm_upcasts(m->model_type)) {
        fr_found(k, FR_RULE_UPCAST, NULL, m->path,
                 "The norm of '%.*s' models computes in fp32 in Transformers: its squares cannot "
                 "overflow there.",
                 (int)fr_sv_head(m->model_type, 40).n, m->model_type.p);
        return;
    }
    if (residual >= limit || peak >= 256) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_RISK_NORM, NULL, m->path,
                     "Reckoned from the weights, the residual stream grows to rms %.3g (6 sigma: "
                     "%.3g), and layer %d is the first beyond a limit: with hidden size %" PRId64
                     " a sum of squares in fp16 overflows from rms %.3g, the square of one element "
                     "from 256.",
                     residual, peak, layer, m->hidden, limit);
        fr_found_unknown(f, "How the norm is written: one that computes in fp32 cannot overflow. "
                            "Real activations have channels far above this estimate.");
    } else if (table->abs_max >= 256) {
        embedded(k, table);
    }
}

/* ---- one block ---- */

static double or_else(double a, double b)
{
    return isnan(a) ? b : a;
}

static bool ends(fr_sv s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_ends(s, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

static void take(struct block *b, const struct fr_check_tensor *t)
{
    static const char *const query[] = {"q_proj", "wq", "query", NULL},
                             *const key[] = {"k_proj", "wk", "key", NULL},
                             *const value[] = {"v_proj", "wv", "value", NULL};
    static const char *const fused[] = {
        "qkv_proj", "query_key_value", "c_attn", "linear_qkv", "Wqkv", NULL};
    static const char *const out[] = {
        "o_proj", "wo", "out_proj", "attn.c_proj", "linear_proj", "attention.dense", NULL};
    static const char *const up[] = {"up_proj",       "w3",         "fc1", "c_fc", "wi_1",
                                     "dense_h_to_4h", "linear_fc1", NULL},
                             *const gate[] = {"gate_proj", "w1", "wi_0", NULL};
    static const char *const down[] = {"down_proj",     "w2",         "fc2", "mlp.c_proj", "mlp.wo",
                                       "dense_4h_to_h", "linear_fc2", NULL};
    static const char *const first[] = {
        "input_layernorm", "ln_1", "attention_norm", "self_attn_layer_norm", "layer_norm1",
        "norm1",           NULL};
    static const char *const second[] = {"post_attention_layernorm", "ln_2",        "ffn_norm",
                                         "final_layer_norm",         "layer_norm2", "norm2",
                                         "pre_mlp_layernorm",        NULL};
    const fr_sv m = t->module;
    if (!fr_sv_eq(t->param, FR_SV("weight")) || !fr_sv_eq(t->role, FR_SV("weight")) ||
        !t->scanned || !t->is_float) {
        return;
    }
    double *at = ends(m, fused)    ? &b->query
                 : ends(m, query)  ? &b->query
                 : ends(m, key)    ? &b->key
                 : ends(m, value)  ? &b->value
                 : ends(m, down)   ? &b->down
                 : ends(m, out)    ? &b->out
                 : ends(m, gate)   ? &b->gate
                 : ends(m, up)     ? &b->up
                 : ends(m, first)  ? &b->norm1
                 : ends(m, second) ? &b->norm2
                                   : NULL;
    if (at == NULL) {
        return;
    }
    *at = t->rms;
    if (ends(m, fused)) {
        b->key = b->value = t->rms;
    }
}

/* Squares of what a layer adds to the residual stream; the largest score of its attention in
 * *scores. */
static double adds(const struct fr_model_config *m, const struct block *b, double *scores)
{
    const double n = (double)m->hidden,
                 width =
                     (double)(m->heads > 0 && m->head_dim > 0 ? m->heads * m->head_dim : m->hidden);
    const double inner = m->intermediate > 0 ? (double)m->intermediate : 4 * n,
                 d = m->head_dim > 0 ? (double)m->head_dim : 64;
    const double in1 = or_else(b->norm1, 1), in2 = or_else(b->norm2, or_else(b->norm1, 1));
    const double query = in1 * b->query * sqrt(n), key = in1 * b->key * sqrt(n);
    const double attention = in1 * b->value * sqrt(n) * b->out * sqrt(width);
    const double up = in2 * b->up * sqrt(n), gate = in2 * b->gate * sqrt(n);
    const double active = isnan(b->gate) ? 0.6 * up : 0.6 * gate * up; /* half of a gate is shut */
    const double mlp = active * b->down * sqrt(inner);
    *scores = PEAK * query * key * sqrt(d);
    return (isnan(attention) ? 0 : attention * attention) + (isnan(mlp) ? 0 : mlp * mlp);
}

static void scores_overflow(struct fr_checking *k, double scores, int32_t layer)
{
    const struct fr_model_config *m = &k->config.model;
    if (scores >= FP16_MAX) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_RISK_SCORES, NULL, m->path,
                     "Reckoned from the weights, unscaled attention scores of layer %d reach %.3g "
                     "(6 sigma); fp16 ends at 65504.",
                     layer, scores);
        fr_found_unknown(f, "Whether queries are scaled before the product, or normalised, and "
                            "whether a fused kernel, which keeps scores in fp32, is used.");
    }
}

/* ---- the whole way ---- */

static const struct block nothing = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};

static double through_layers(struct fr_checking *k, double squares, int32_t *over,
                             double *worst_scores, int32_t *worst_layer)
{
    const double limit = sqrt(FP16_MAX / (double)k->config.model.hidden);
    struct block b = nothing;
    *over = -1;
    *worst_scores = 0;
    for (uint32_t i = 0; i < k->r->tensors.n; i++) {
        const struct fr_check_tensor *t = &k->r->tensors.v[i];
        if (t->layer < 0 || !fr_sv_eq(t->role, FR_SV("weight"))) {
            continue;
        }
        take(&b, t);
        if (i + 1 < k->r->tensors.n && k->r->tensors.v[i + 1].layer == t->layer) {
            continue;
        }
        double scores;
        const double more = adds(&k->config.model, &b, &scores);
        squares += isfinite(more) ? more : 0;
        if (scores > *worst_scores) {
            *worst_scores = scores;
            *worst_layer = t->layer;
        }
        if (*over < 0 && (sqrt(squares) >= limit || PEAK * sqrt(squares) >= 256)) {
            *over = t->layer;
        }
        b = nothing;
    }
    return sqrt(squares);
}

static void forward(struct fr_checking *k, const struct fr_check_tensor *table,
                    const struct fr_check_tensor *head)
{
    const struct fr_model_config *m = &k->config.model;
    int32_t over = -1, layer = -1;
    double scores = 0;
    if (table == NULL || m->hidden <= 0) {
        return;
    }
    const double residual = through_layers(k, table->rms * table->rms, &over, &scores, &layer);
    norm_squares(k, table, residual, over >= 0 ? over : 0);
    if (PEAK * residual >= FP16_MAX) {
        struct fr_check_finding *f = fr_found(k, FR_RULE_RISK_RESIDUAL, NULL, m->path,
                                              "Reckoned from the weights, the residual stream ends "
                                              "at rms %.3g; 6 sigma of it are beyond 65504.",
                                              residual);
        fr_found_unknown(f, "How large real activations are; this is an estimate for inputs "
                            "independent of the weights.");
    }
    if (!(m->softcap > 0)) {
        scores_overflow(k, scores, layer);
    }
    head = head != NULL ? head : table;
    const double bound =
        head->abs_max * (double)m->hidden * 8; /* a normed value rarely exceeds 8 */
    if (head->rms * sqrt((double)m->hidden) * PEAK >= FP16_MAX && !(m->final_softcap > 0)) {
        struct fr_check_finding *f = fr_found(k, FR_RULE_RISK_LOGITS, NULL, m->path,
                                              "Reckoned from the weights, logits reach %.3g (6 "
                                              "sigma; at most %.3g); fp16 ends at 65504.",
                                              head->rms * sqrt((double)m->hidden) * PEAK, bound);
        fr_found_unknown(f, "Whether logits are computed in fp32.");
    }
}

void fr_check_risk(struct fr_checking *k)
{
    if (k->config.model.path.n == 0) {
        return;
    }
    const struct fr_check_tensor *table = find(k, fr_place_is_embedding),
                                 *head = find(k, fr_place_is_head);
    vocabulary(k, table);
    if (head != NULL && head != table) {
        vocabulary(k, head);
    }
    layer_count(k);
    dtypes(k);
    if (is_half(k)) {
        norm_eps(k);
        forward(k, table, head);
    }
}
