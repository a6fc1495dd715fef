/* SPDX-License-Identifier: Apache-2.0 */
/* compare: two checkpoints, tensor by tensor, in the order of the model. diff.c measures; this file
 * pairs, and says what it comes to. */
#include "tensor/checking.h"
#include "tensor/diff.h"
#include "tensor/place.h"

#include "base/buf.h"
#include "base/map.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define FLIPS_MOST 64    /* elements that corruption changes; training changes all */
#define UNRELATED 0.2    /* |cosine| below: the weights have nothing to do with each other */
#define LARGE_UPDATE 0.5 /* of the weights' own norm */
#define NAMED_MAX 8

struct other { /* the second checkpoint */
    struct fr_checkpoint c;
    int64_t step;
    fr_sv path;
    struct fr_map by_key;
    bool by_rank;
};

/* ---- pairing ---- */

static bool has_ranks(const struct fr_checkpoint *c)
{
    for (uint32_t i = 1; i < c->tensors_n; i++) {
        if (c->tensors[i].rank != c->tensors[0].rank) {
            return true;
        }
    }
    return false;
}

static fr_sv key_of(const struct fr_tensor *t, bool by_rank, struct fr_arena *arena)
{
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    fr_buf_add(&b, t->name);
    for (uint8_t i = 0; t->shard && i < t->dims; i++) {
        fr_buf_printf(&b, "\n%" PRIu64, t->chunk[i]);
    }
    if (by_rank) {
        fr_buf_printf(&b, "\nrank %d", t->rank);
    }
    return fr_arena_dup(arena, fr_buf_sv(&b));
}

static uint32_t newest(const struct fr_checkpoint *c)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < c->steps_n; i++) {
        best = c->steps[i].step >= c->steps[best].step ? i : best;
    }
    return best;
}

static int open_other(struct fr_checking *k, const char *path, struct other *o,
                      struct fr_arena *arena, struct fr_err *err)
{
    const int rc = fr_checkpoint_open(&path, 1, NULL, arena, &o->c, err);
    if (rc != 0) {
        return rc;
    }
    const uint32_t step = newest(&o->c);
    o->step = o->c.steps_n > 0 ? o->c.steps[step].step : -1;
    o->path = fr_arena_dup(k->arena, fr_sv_z(path));
    o->by_rank = has_ranks(&o->c) && has_ranks(k->c);
    fr_map_init(&o->by_key, arena);
    for (uint32_t i = 0; i < o->c.tensors_n; i++) {
        if (o->c.files[o->c.tensors[i].file].step_index == step) {
            const fr_sv key = key_of(&o->c.tensors[i], o->by_rank, arena);
            k->nomem |= key.p == NULL || !fr_map_put(&o->by_key, key, i);
        }
    }
    return 0;
}

/* ---- what it comes to ---- */

struct sum {
    uint32_t matrices, unrelated,
        moved; /* matrices that differ; of them without relation; all that differ */
    struct fr_check_tensor *first;
};

struct pairs {                                /* what was compared */
    struct fr_check_comparison *cmp;
    struct fr_check_tensor **of, **same;      /* of cmp->diffs; of cmp->equal */
};

static bool is_corrupted(const struct fr_check_diff *d)
{
    return d->differing > 0 && d->differing <= FLIPS_MOST && d->differing * 1000 <= d->elements &&
           d->exponent_flips > 0;
}

static void say_corrupted(struct fr_checking *k, struct fr_check_tensor *t, struct fr_check_diff *d)
{
    d->odd = true;
    struct fr_check_finding *f =
        fr_found(k, FR_RULE_CORRUPTED, t, FR_SV_NONE,
                 "%" PRIu64 " of %" PRIu64 " elements differ, %" PRIu64
                 " of them in a single bit of the exponent, the first is element %" PRIu64
                 "; the largest difference is %.4g.",
                 d->differing, d->elements, d->exponent_flips, d->first, d->max_abs);
    fr_found_unknown(f, "Which of the two is right: a third copy or a checksum tells.");
}

static void replicas(struct fr_checking *k, const struct fr_check_comparison *cmp,
                     const struct sum *s)
{
    const struct fr_check_diff *d = cmp->first >= 0 ? &cmp->diffs.v[cmp->first] : NULL;
    if (d == NULL || s->first == NULL || (s->moved == 1 && d->odd)) {
        return;
    }
    if (s->matrices > 0 && s->unrelated * 2 > s->matrices) {
        fr_found(
            k, FR_RULE_DIVERGENT, s->first, FR_SV_NONE,
            "%u of %u matrices that differ have a cosine below %.1f with '%.*s': they were drawn "
            "independently, not trained apart. The first in the model is this one (cosine %.3f).",
            s->unrelated, s->matrices, UNRELATED, (int)fr_sv_head(cmp->b, 200).n, cmp->b.p,
            d->cosine);
        return;
    }
    struct fr_check_finding *f =
        fr_found(k, FR_RULE_DRIFT, s->first, FR_SV_NONE,
                 "%u of %u tensors differ from '%.*s'; the first in the model is this one: %" PRIu64
                 " of %" PRIu64 " elements, largest difference %.4g, %.3g of its norm.",
                 s->moved, cmp->compared, (int)fr_sv_head(cmp->b, 200).n, cmp->b.p, d->differing,
                 d->elements, d->max_abs, d->relative);
    fr_found_unknown(
        f, "Whether the two were meant to be equal: replicas are, shards of a model are not.");
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, *y = b;
    return x < *y ? -1 : x > *y;
}

static double median_update(const struct fr_check_comparison *cmp, struct fr_arena *scratch)
{
    double *v = FR_NEW_N(scratch, double, cmp->diffs.n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; v != NULL && i < cmp->diffs.n; i++) {
        if (isfinite(cmp->diffs.v[i].relative)) {
            v[n++] = cmp->diffs.v[i].relative;
        }
    }
    if (n > 1) {
        qsort(v, n, sizeof *v, by_size);
    }
    return n > 0 ? v[n / 2] : NAN;
}

/* "a, b, c and 5 more": weights, since buffers rarely move; without weights whatever is equal. */
static fr_sv names_of_equal(struct fr_checking *k, const struct pairs *all)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    uint32_t weights = 0, named = 0;
    for (uint32_t i = 0; i < all->cmp->equal; i++) {
        weights += fr_sv_eq(all->same[i]->role, FR_SV("weight"));
    }
    const uint32_t n = weights > 0 ? weights : all->cmp->equal;
    for (uint32_t i = 0; i < all->cmp->equal && named < NAMED_MAX; i++) {
        if (weights == 0 || fr_sv_eq(all->same[i]->role, FR_SV("weight"))) {
            fr_buf_addz(&out, named++ > 0 ? ", " : "");
            fr_buf_add(&out, fr_sv_head(all->same[i]->name, 120));
        }
    }
    if (n > named) {
        fr_buf_printf(&out, " and %u more", n - named);
    }
    k->nomem |= !fr_buf_ok(&out);
    return fr_arena_dup(k->arena, fr_buf_sv(&out));
}

static void steps(struct fr_checking *k, const struct pairs *all, const struct sum *s,
                  struct fr_arena *scratch)
{
    struct fr_check_comparison *cmp = all->cmp;
    struct fr_check_tensor *const *of = all->of;
    const double median = median_update(cmp, scratch);
    if (cmp->compared > 0 && cmp->equal == cmp->compared) {
        struct fr_check_finding *f = fr_found(
            k, FR_RULE_STALLED, NULL, FR_SV_NONE, "All %u tensors are the same bytes as in '%.*s'.",
            cmp->compared, (int)fr_sv_head(cmp->b, 200).n, cmp->b.p);
        fr_found_unknown(f, "Whether training was meant to go on between the two.");
        fr_found_page(f, fr_sv_eq(all->same[0]->dtype, FR_SV("bf16")) ? "bf16-update-rounding-stall"
                                                                      : "");
    } else if (cmp->equal > 0) {
        fr_found(k, FR_RULE_PARTLY_STALLED, NULL, FR_SV_NONE,
                 "%u of %u tensors are the same bytes as in '%.*s': %.*s.", cmp->equal,
                 cmp->compared, (int)fr_sv_head(cmp->b, 200).n, cmp->b.p,
                 FR_SV_ARG(names_of_equal(k, all)));
    }
    if (s->matrices > 3 && s->unrelated * 2 > s->matrices) {
        struct fr_check_finding *f = fr_found(k, FR_RULE_UNRELATED, s->first, FR_SV_NONE,
                                              "%u of %u matrices have a cosine below %.1f with the "
                                              "other checkpoint: the two are different models.",
                                              s->unrelated, s->matrices, UNRELATED);
        fr_found_unknown(f, "Whether they were meant to be one run.");
        return;
    }
    for (uint32_t i = 0; i < cmp->diffs.n; i++) {
        struct fr_check_diff *d = &cmp->diffs.v[i];
        if (d->odd ||
            !(d->relative > LARGE_UPDATE || (d->relative > 0.1 && d->relative > 10 * median)) ||
            of[i]->dims < 2 || !fr_sv_eq(of[i]->role, FR_SV("weight"))) {
            continue;
        }
        d->odd = true;
        struct fr_check_finding *f = fr_found(
            k, FR_RULE_TOO_FAR, of[i], FR_SV_NONE,
            "It changed by %.3g of its norm; the median of all tensors that changed is %.3g.",
            d->relative, median);
        fr_found_unknown(f, "How many steps lie between the two.");
    }
}

static void conclude(struct fr_checking *k, const struct pairs *all, struct fr_arena *scratch)
{
    struct fr_check_comparison *cmp = all->cmp;
    struct fr_check_tensor *const *of = all->of;
    struct sum s = {.first = cmp->diffs.n > 0 ? of[0] : NULL};
    for (uint32_t i = 0; i < cmp->diffs.n; i++) {
        struct fr_check_diff *d = &cmp->diffs.v[i];
        s.moved++;
        s.matrices += of[i]->dims >= 2 && of[i]->elements >= 256;
        s.unrelated += of[i]->dims >= 2 && of[i]->elements >= 256 && fabs(d->cosine) < UNRELATED;
        if (is_corrupted(d)) {
            say_corrupted(k, of[i], d);
        }
    }
    if (cmp->replicas) {
        replicas(k, cmp, &s);
    } else {
        steps(k, all, &s, scratch);
    }
    cmp->text =
        cmp->diffs.n == 0
            ? fr_arena_printf(k->arena, "All %u tensors are equal.", cmp->compared)
            : fr_arena_printf(k->arena, "%u of %u tensors differ; the first in the model is %.*s.",
                              cmp->diffs.n, cmp->compared,
                              (int)fr_sv_head(cmp->diffs.v[0].name, 300).n, cmp->diffs.v[0].name.p);
}

/* ---- one comparison ---- */

static bool same_shape(const struct fr_tensor *a, const struct fr_tensor *b)
{
    return a->dtype == b->dtype && a->dims == b->dims && a->elements == b->elements &&
           a->bytes == b->bytes && a->swapped == b->swapped &&
           memcmp(a->shape, b->shape, a->dims * sizeof a->shape[0]) == 0;
}

static int pair(struct fr_checking *k, struct fr_check_tensor *t, const struct other *o, uint32_t b,
                struct fr_differ *differ, const struct pairs *all)
{
    struct fr_check_comparison *cmp = all->cmp;
    const struct fr_tensor *x = &k->c->tensors[t->source], *y = &o->c.tensors[b];
    struct fr_check_diff d = {.name = t->name, .layer = t->layer, .elements = x->elements};
    struct fr_err why = {0};
    if (!same_shape(x, y)) {
        fr_found(k, FR_RULE_SHAPES_DIFFER, t, FR_SV_NONE, "It has another shape or type in '%.*s'.",
                 (int)fr_sv_head(cmp->b, 200).n, cmp->b.p);
        return 0;
    }
    int rc = fr_differ_run(differ, x, y, &d, &why);
    if (rc == -FR_NOMEM) {
        return rc;
    }
    if (rc != 0) {
        fr_found(k, FR_RULE_NOT_COMPARED, t, FR_SV_NONE, "%s.", why.msg);
        return 0;
    }
    cmp->compared++;
    if (d.differing == 0) {
        all->same[cmp->equal++] = t;
        return 0;
    }
    struct fr_check_diff *kept = FR_PUSH(&cmp->diffs);
    if (kept == NULL) {
        return -FR_NOMEM;
    }
    *kept = d;
    all->of[cmp->diffs.n - 1] = t;
    return 0;
}

static int compare(struct fr_checking *k, const char *path, bool replica, struct fr_err *err)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct other o = {.step = -1};
    int rc = open_other(k, path, &o, &scratch, err);
    struct fr_check_comparison *cmp = rc == 0 ? FR_PUSH(&k->r->comparisons) : NULL;
    const struct pairs all = {
        cmp, FR_NEW_N(&scratch, struct fr_check_tensor *, k->r->tensors.n + 1),
        FR_NEW_N(&scratch, struct fr_check_tensor *, k->r->tensors.n + 1)};
    if (cmp != NULL && all.of != NULL && all.same != NULL) {
        const struct fr_check_step *mine = &k->r->steps.v[k->r->chosen];
        struct fr_differ *differ = fr_differ_new(k->c, &o.c);
        uint32_t b;
        *cmp = (struct fr_check_comparison){.a = mine->path, .b = o.path, .first = -1};
        cmp->replicas = replica || (mine->step >= 0 && mine->step == o.step);
        rc = differ == NULL ? -FR_NOMEM : 0;
        for (uint32_t i = 0; rc == 0 && i < k->r->tensors.n; i++) {
            struct fr_check_tensor *t = &k->r->tensors.v[i];
            if (!fr_map_get(&o.by_key, key_of(&k->c->tensors[t->source], o.by_rank, &scratch),
                            &b)) {
                cmp->only_a++;
            } else {
                rc = pair(k, t, &o, b, differ, &all);
            }
        }
        cmp->only_b = o.by_key.n > k->r->tensors.n - cmp->only_a
                          ? o.by_key.n - (k->r->tensors.n - cmp->only_a)
                          : 0;
        cmp->first = cmp->diffs.n > 0 ? 0 : -1;
        fr_differ_free(&differ);
        if (rc == 0 && cmp->compared == 0) {
            fr_found(k, FR_RULE_NOT_COMPARED, NULL, FR_SV_NONE,
                     "'%.*s' has no tensor in common with this checkpoint.",
                     (int)fr_sv_head(cmp->b, 200).n, cmp->b.p);
        }
        if (rc == 0) {
            conclude(k, &all, &scratch);
        }
    } else if (rc == 0) {
        rc = -FR_NOMEM;
    }
    fr_arena_release(&scratch);
    return rc == -FR_NOMEM ? fr_err_set(err, FR_NOMEM, "out of memory") : rc;
}

int fr_check_compare(struct fr_checking *k, const char *const *others, uint32_t n,
                     struct fr_err *err)
{
    int rc = k->o->compare != NULL && k->r->chosen >= 0 ? compare(k, k->o->compare, false, err) : 0;
    for (uint32_t i = 0; rc == 0 && i < n && k->r->chosen >= 0; i++) {
        rc = compare(k, others[i], true, err);
    }
    return rc;
}
