/* SPDX-License-Identifier: Apache-2.0 */
/* peers: tensors among each other: the same parameter in every layer, equal contents under
 * different names, weights beside the optimizer's state. */
#include "tensor/checking.h"
#include "tensor/place.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define LAYERS_LEAST 6 /* a median of fewer says little */
#define OUT_OF_LINE                                                                                \
    30.0 /* times the median of the other layers; trained models reach about 10 in their first and \
            last layers */
#define DUPLICATE_LEAST 4096 /* bytes */

static bool is_weight(const struct fr_check_tensor *t)
{
    return t->scanned && t->is_float && fr_sv_eq(t->role, FR_SV("weight"));
}

/* ---- one parameter in all layers ---- */

static int by_parameter(const void *a, const void *b)
{
    const struct fr_check_tensor *x = *(struct fr_check_tensor *const *)a,
                                 *y = *(struct fr_check_tensor *const *)b;
    int order = fr_sv_cmp(x->module, y->module);
    order = order != 0 ? order : fr_sv_cmp(x->param, y->param);
    order = order != 0 ? order : fr_sv_cmp(x->dtype, y->dtype);
    return order != 0 ? order : x < y ? -1 : x > y;
}

static bool same_parameter(const struct fr_check_tensor *x, const struct fr_check_tensor *y)
{
    return fr_sv_eq(x->module, y->module) && fr_sv_eq(x->param, y->param) &&
           fr_sv_eq(x->dtype, y->dtype);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void out_of_line(struct fr_checking *k, struct fr_check_tensor **v, uint32_t n,
                        double *sorted)
{
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = v[i]->rms;
    }
    qsort(sorted, n, sizeof *sorted, by_value);
    const double median = sorted[n / 2];
    for (uint32_t i = 0; i < n && n >= LAYERS_LEAST && median > 0; i++) {
        const double times = v[i]->rms / median;
        if (times <= OUT_OF_LINE &&
            (times >= 1 / OUT_OF_LINE || v[i]->zero == v[i]->elements || fr_place_is_bias(v[i]))) {
            continue;
        }
        struct fr_check_finding *f =
            times > 1 ? fr_found(k, FR_RULE_LOUD_LAYER, v[i], FR_SV_NONE,
                                 "Its rms is %.3g, %.0f times the median of this parameter in %u "
                                 "layers (%.3g); largest magnitude %.3g.",
                                 v[i]->rms, times, n, median, v[i]->abs_max)
                      : fr_found(k, FR_RULE_LOUD_LAYER, v[i], FR_SV_NONE,
                                 "Its rms is %.3g, one %.0fth of the median of this parameter in "
                                 "%u layers (%.3g).",
                                 v[i]->rms, 1 / times, n, median);
        fr_found_unknown(f, "Whether it was so from the start: compare with an earlier step.");
    }
}

static void layers(struct fr_checking *k, struct fr_arena *scratch)
{
    const uint32_t most = k->r->tensors.n;
    struct fr_check_tensor **v = FR_NEW_N(scratch, struct fr_check_tensor *, most + 1);
    double *sorted = FR_NEW_N(scratch, double, most + 1);
    uint32_t n = 0;
    if (v == NULL || sorted == NULL) {
        k->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < most; i++) {
        struct fr_check_tensor *t = &k->r->tensors.v[i];
        if (is_weight(t) && t->layer >= 0 && t->nan + t->inf == 0 && t->elements > 0) {
            v[n++] = t;
        }
    }
    if (n > 1) {
        qsort(v, n, sizeof *v, by_parameter);
    }
    for (uint32_t i = 0, from = 0; i < n; i++) {
        if (i + 1 == n || !same_parameter(v[i], v[i + 1])) {
            out_of_line(k, v + from, i + 1 - from, sorted);
            from = i + 1;
        }
    }
}

/* ---- equal contents ---- */

struct content {
    struct fr_check_tensor *t;
    uint64_t bytes, hash;
    uint32_t storage, file;
};

static int by_facts(const void *a, const void *b)
{
    const struct content *x = a, *y = b;
    const struct fr_check_tensor *s = x->t, *t = y->t;
    const double nx[] = {(double)x->bytes, (double)s->zero, s->abs_max},
                 ny[] = {(double)y->bytes, (double)t->zero, t->abs_max};
    for (int i = 0; i < 3; i++) {
        if (nx[i] != ny[i]) {
            return nx[i] < ny[i] ? -1 : 1;
        }
    }
    return s < t ? -1 : s > t;
}

static bool same_facts(const struct content *x, const struct content *y)
{
    return x->bytes == y->bytes && x->t->zero == y->t->zero && x->t->abs_max == y->t->abs_max &&
           x->t->rms == y->t->rms && fr_sv_eq(x->t->dtype, y->t->dtype);
}

static void say_duplicate(struct fr_checking *k, const struct content *first,
                          const struct content *second)
{
    struct fr_check_tensor *a = first->t, *b = second->t;
    const bool tied = (fr_place_is_embedding(a) && fr_place_is_head(b)) ||
                      (fr_place_is_head(a) && fr_place_is_embedding(b));
    const bool ranks = a->rank != b->rank && fr_sv_eq(a->name, b->name);
    if (ranks && !k->c->tensors[b->source].shard) {
        return; /* replicas are equal, and each rank of a parallel group saves the norms */
    }
    const fr_sv name = fr_sv_head(a->name, 200);
    struct fr_check_finding *f = NULL;
    if (ranks) {
        f = fr_found(k, FR_RULE_DUPLICATE, b, FR_SV_NONE,
                     "Ranks %d and %d wrote the same bytes for different shards of it.", a->rank,
                     b->rank);
    } else {
        f = fr_found(k, tied ? FR_RULE_TIED_TWICE : FR_RULE_DUPLICATE, b, FR_SV_NONE,
                     "It holds the same %" PRIu64 " bytes as '%.*s'.", second->bytes, (int)name.n,
                     name.p);
    }
    if (!tied) {
        fr_found_unknown(
            f, "Whether it is meant: layers can be copied on purpose when a model is grown.");
    }
}

static void duplicates(struct fr_checking *k, struct fr_arena *scratch)
{
    struct content *v = FR_NEW_N(scratch, struct content, k->r->tensors.n + 1);
    uint32_t n = 0;
    if (v == NULL) {
        k->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < k->r->tensors.n; i++) {
        struct fr_check_tensor *t = &k->r->tensors.v[i];
        const struct fr_tensor *source = &k->c->tensors[t->source];
        /* of constant ones many are equal, and that is said elsewhere */
        if (t->scanned && t->is_float && source->bytes >= DUPLICATE_LEAST && t->abs_max > 0 &&
            fabs(t->abs_max - t->rms) > 1e-6 * t->abs_max) {
            v[n++] = (struct content){t, source->bytes, 0, source->storage, source->file};
        }
    }
    if (n > 1) {
        qsort(v, n, sizeof *v, by_facts);
    }
    for (uint32_t i = 1; i < n; i++) {
        struct content *a = &v[i - 1], *b = &v[i];
        if (!same_facts(a, b) || (a->storage == b->storage && a->file == b->file)) {
            continue;
        }
        if ((a->hash != 0 || fr_survey_hash(k->c, a->t->source, &a->hash)) &&
            fr_survey_hash(k->c, b->t->source, &b->hash) && a->hash == b->hash) {
            say_duplicate(k, a, b);
        }
    }
}

/* ---- weights and the optimizer ---- */

static void whole(struct fr_checking *k)
{
    uint32_t weights = 0, empty = 0, zero = 0, optimizer = 0, brain = 0, masters = 0;
    for (uint32_t i = 0; i < k->r->tensors.n; i++) {
        const struct fr_check_tensor *t = &k->r->tensors.v[i];
        empty += is_weight(t) && t->elements == 0;
        if (is_weight(t) && t->elements > 0) {
            weights++;
            zero += t->zero == t->elements;
            brain += fr_sv_eq(t->dtype, FR_SV("bf16"));
            masters += fr_sv_eq(t->dtype, FR_SV("fp32")) && t->dims >= 2;
        } else if (fr_sv_eq(t->role, FR_SV("optimizer"))) {
            optimizer++;
            masters += fr_sv_eq(t->dtype, FR_SV("fp32")) &&
                       (fr_sv_has(t->name, FR_SV("fp32")) || fr_sv_has(t->name, FR_SV("master")) ||
                        fr_sv_has(t->name, FR_SV("main_param")));
        }
    }
    if (empty > weights) {
        fr_found(k, FR_RULE_EMPTY_WEIGHTS, NULL, FR_SV_NONE,
                 "%u of %u weights have no elements, as ZeRO-3 saves partitioned parameters when "
                 "it is not told to gather them.",
                 empty, empty + weights);
    }
    if (weights > 0 && zero == weights) {
        fr_found(k, FR_RULE_ALL_WEIGHTS_ZERO, NULL, FR_SV_NONE,
                 "All %u weights are zero everywhere.", weights);
    }
    if (optimizer > 0 && brain > 0 && brain * 2 > weights && masters == 0) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_RISK_MASTER, NULL, FR_SV_NONE,
                     "%u of %u weights are bf16, and no fp32 copy is beside the optimizer's state: "
                     "an update below 1/512 of a weight leaves it as it is.",
                     brain, weights);
        fr_found_unknown(f, "Whether fp32 weights are kept in a file that was not named, or "
                            "rounding is stochastic.");
    }
}

void fr_check_peers(struct fr_checking *k)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    layers(k, &scratch);
    duplicates(k, &scratch);
    whole(k);
    fr_arena_release(&scratch);
}
