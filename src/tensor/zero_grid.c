/* SPDX-License-Identifier: Apache-2.0 */
/* zero_grid: model-parallel rank M writes mp_rank_MM_model_states.pt (ZeRO 0 to 2), each of its
 * data-parallel ranks D zero_pp_rank_D_mp_rank_MM_optim_states.pt, and under ZeRO 3
 * zero_pp_rank_D_mp_rank_MM_model_states.pt. How many M there are is the highest one, or
 * mp_world_size of a model's file, whichever is more. Pipelines without mp_rank files are left
 * alone: their model lies in layer files. */
#include "tensor/zero_grid.h"

#include "tensor/torchzip.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { OPTIMIZER, ZERO_MODEL, MODEL, KINDS };
enum { RANKS_MAX = 100000, SHOWN = 8 };

struct shard {
    uint32_t kind, m, d;
};

struct grid {
    struct fr_ckpt *c;
    FR_VEC(struct shard) shards; /* sorted */
    uint32_t n[KINDS], columns;
};

static bool parse(fr_sv name, struct shard *s)
{
    uint64_t d = 0, m = 0;
    (void)(fr_sv_take(&name, FR_SV("bf16_")) || fr_sv_take(&name, FR_SV("fp16_")));
    const bool zero = fr_sv_take(&name, FR_SV("zero_pp_rank_"));
    if (zero && !(fr_sv_take_u64(&name, &d) && fr_sv_take(&name, FR_SV("_")))) {
        return false;
    }
    if (!fr_sv_take(&name, FR_SV("mp_rank_")) || !fr_sv_take_u64(&name, &m) || d >= RANKS_MAX ||
        m >= RANKS_MAX) {
        return false;
    }
    (void)fr_sv_take(&name, FR_SV("_"));
    const bool optimizer = zero && fr_sv_eq(name, FR_SV("optim_states.pt"));
    *s = (struct shard){.kind = optimizer ? OPTIMIZER : zero ? ZERO_MODEL : MODEL,
                        .m = (uint32_t)m,
                        .d = (uint32_t)d};
    return optimizer || fr_sv_eq(name, FR_SV("model_states.pt"));
}

static int order(const void *a, const void *b)
{
    const struct shard *x = a, *y = b;
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1)
           : x->m != y->m     ? (x->m < y->m ? -1 : 1)
                              : (x->d > y->d) - (x->d < y->d);
}

/* The first shard of a kind at or after (m, d); NULL when none of that column is. */
static const struct shard *at(const struct grid *g, enum kind kind, uint32_t m, uint32_t d)
{
    const struct shard want = {.kind = kind, .m = m, .d = d};
    uint32_t low = 0, high = g->shards.n;
    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;
        if (order(&g->shards.v[mid], &want) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    const struct shard *s = low < g->shards.n ? &g->shards.v[low] : NULL;
    return s != NULL && s->kind == (uint32_t)kind && s->m == m ? s : NULL;
}

static bool has(const struct grid *g, enum kind kind, uint32_t m, uint32_t d)
{
    const struct shard *s = at(g, kind, m, d);
    return s != NULL && s->d == d;
}

/* ---- lists of what is missing ---- */

struct list {
    struct fr_buf text;
    uint32_t n;
};

__attribute__((format(printf, 2, 3))) static void list_add(struct list *l, const char *fmt, ...)
{
    char name[80];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    if (l->n++ < SHOWN) {
        fr_buf_printf(&l->text, "%s%s", l->n > 1 ? ", " : "", name);
    }
}

/* Says it when something is in the list, and empties it. */
static void list_say(struct grid *g, struct list *l, uint32_t step, fr_sv folder, const char *what)
{
    if (l->n > SHOWN) {
        fr_buf_printf(&l->text, " and %u more", l->n - SHOWN);
    }
    g->c->nomem = g->c->nomem || !fr_buf_ok(&l->text);
    if (l->n > 0 && !g->c->nomem) {
        fr_ckpt_say_step(g->c, FR_PROBLEM_MISSING, true, step, folder, "%s: %s", what,
                         fr_buf_sv(&l->text).p);
    }
    fr_buf_release(&l->text);
    *l = (struct list){.text = FR_BUF_INIT(0)};
}

static void check_columns(struct grid *g, uint32_t step, fr_sv folder)
{
    struct list l = {.text = FR_BUF_INIT(0)};
    for (uint32_t m = 0; g->n[MODEL] > 0 && g->n[ZERO_MODEL] == 0 && m < g->columns; m++) {
        if (!has(g, MODEL, m, 0)) {
            list_add(&l, "mp_rank_%02u_model_states.pt", m);
        }
    }
    list_say(g, &l, step, folder, "files of model-parallel ranks are not there");
    for (uint32_t m = 0; g->n[OPTIMIZER] > 0 && m < g->columns; m++) {
        if (at(g, OPTIMIZER, m, 0) == NULL) {
            list_add(&l, "zero_pp_rank_*_mp_rank_%02u_optim_states.pt", m);
        }
    }
    list_say(g, &l, step, folder,
             "no optimizer's shard of some model-parallel ranks is there, while others have them");
    for (uint32_t m = 0; g->n[ZERO_MODEL] > 0 && m < g->columns; m++) {
        if (at(g, ZERO_MODEL, m, 0) == NULL) {
            list_add(&l, "zero_pp_rank_*_mp_rank_%02u_model_states.pt", m);
        }
    }
    list_say(g, &l, step, folder,
             "no model's shard of some model-parallel ranks is there, while others have them");
}

/* Within the columns that are there. */
static void check_cells(struct grid *g, uint32_t step, fr_sv folder)
{
    struct list l = {.text = FR_BUF_INIT(0)};
    uint32_t rows = 0;
    for (uint32_t i = 0; i < g->shards.n; i++) {
        const struct shard *s = &g->shards.v[i];
        const enum kind other = s->kind == OPTIMIZER ? ZERO_MODEL : OPTIMIZER;
        rows = s->kind != MODEL && s->d + 1 > rows ? s->d + 1 : rows;
        if (s->kind != MODEL && g->n[other] > 0 && at(g, other, s->m, 0) != NULL &&
            !has(g, other, s->m, s->d)) {
            list_add(&l, "zero_pp_rank_%u_mp_rank_%02u_%s_states.pt", s->d, s->m,
                     other == OPTIMIZER ? "optim" : "model");
        }
    }
    const bool told = l.n > 0;
    list_say(g, &l, step, folder,
             "model and optimizer of a rank are written together, but of some ranks one is not "
             "there");
    for (uint32_t m = 0; !told && rows > 0 && m < g->columns; m++) {
        if (at(g, OPTIMIZER, m, 0) != NULL && at(g, OPTIMIZER, m, rows - 1) == NULL) {
            list_add(&l, "zero_pp_rank_%u_mp_rank_%02u_optim_states.pt", rows - 1, m);
        }
    }
    list_say(g, &l, step, folder,
             "every model-parallel rank has as many data-parallel ranks, but some files are not "
             "there");
}

/* mp_world_size of a model's file; 0 when it does not say. */
static uint64_t world_of(struct fr_ckpt *c, uint32_t file)
{
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_torch t;
    uint8_t kind;
    uint64_t n = 0;
    if (fr_blob_open(&b, c->files.v[file].path.p, NULL) != 0) {
        return 0;
    }
    struct fr_err err = {0};
    const int rc = fr_torch_open(&b, 0, b.size, &c->limits, &t, &kind, &err);
    c->nomem = c->nomem || rc == -FR_NOMEM;
    if (rc == 0) { /* what is wrong with it was told when it was read */
        (void)fr_pk_u64(&t.pickle, fr_pk_get(&t.pickle, t.pickle.root, FR_SV("mp_world_size")), &n);
        fr_torch_release(&t);
    }
    return n < RANKS_MAX ? n : 0;
}

void fr_zero_grid(struct fr_ckpt *c, uint32_t step, fr_sv folder)
{
    struct grid g = {.c = c};
    uint32_t model = FR_NO_FILE;
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        const fr_sv path = c->files.v[i].path;
        struct shard s;
        if (!fr_ckpt_work(c, 1)) {
            break;
        }
        if (!fr_sv_eq(fr_path_folder(path), folder) || !parse(fr_path_name(path), &s)) {
            continue;
        }
        struct shard *kept = FR_PUSH(&g.shards);
        c->nomem = c->nomem || kept == NULL;
        if (kept != NULL) {
            *kept = s;
            g.n[s.kind]++;
            g.columns = s.m + 1 > g.columns ? s.m + 1 : g.columns;
            model = s.kind != OPTIMIZER && model == FR_NO_FILE ? i : model;
        }
    }
    const uint64_t world = model != FR_NO_FILE && !c->nomem ? world_of(c, model) : 0;
    g.columns = world > g.columns ? (uint32_t)world : g.columns;
    if (g.shards.n > 0 && !c->nomem && !c->full_work) {
        qsort(g.shards.v, g.shards.n, sizeof *g.shards.v, order);
        check_columns(&g, step, folder);
        check_cells(&g, step, folder);
    }
    fr_vec_free(g.shards.v);
}
