/* SPDX-License-Identifier: Apache-2.0 */
/* deepspeed: ZeRO keeps the fp32 weights and the optimizer's state as flat partitions without
 * names. The names are in param_shapes of the model_states file of the same rank. Each partition
 * is cut into pieces named after its parameters: optimizer.fp32.<parameter>,
 * optimizer.exp_avg.<parameter>; chunk[0] is where the piece begins in the flattened parameter.
 *
 * Stage 1 and 2: the partitions of all ranks, in order, are the parameters of a group one after
 * the other. Stage 3: every parameter is split over all ranks in pieces of ceil(elements / ranks);
 * the flat groups of a rank are one sequence of such pieces. */
#include "base/alloc.h"
#include "tensor/folder.h"
#include "tensor/torchzip.h"
#include "tensor/zero_grid.h"

struct param {
    fr_sv name;
    uint64_t elements;
    uint32_t group;
};

struct ds {
    struct fr_ckpt *c;
    uint32_t step, file;
    fr_sv suffix;                 /* "mp_rank_00": model-parallel rank, as in names */
    uint64_t stage, ranks, rank;
    struct fr_arena scratch;      /* names of params */
    FR_VEC(struct param) params;
    uint32_t groups;
    uint32_t work;                /* steps of the loops over flat tensors times parameters */
};

enum { WORK_MAX = 20000000 };

static bool work(struct ds *d)
{
    if (d->work == WORK_MAX) {
        fr_ckpt_say(d->c, FR_PROBLEM_LIMIT, false, d->file, FR_NO_POS, FR_SV_NONE,
                    "too many partitions and parameters: not all were given names");
    }
    return d->work++ < WORK_MAX || (d->work = WORK_MAX + 1, false);
}

static bool add_param(struct ds *d, const struct fr_pickle *k, uint32_t key, uint32_t size,
                      uint32_t group)
{
    fr_sv name;
    uint64_t n = 1, dim;
    if (!fr_pk_str(k, key, &name)) {
        return false;
    }
    uint32_t dims = fr_pk_count(k, size);
    for (uint32_t i = 0; i < dims; i++) {
        if (dims > 64 || !fr_pk_u64(k, fr_pk_item(k, size, i), &dim) ||
            __builtin_mul_overflow(n, dim, &n)) {
            return false;
        }
    }
    struct param *p = FR_PUSH(&d->params);
    fr_sv copy = p == NULL ? FR_SV_NONE : fr_arena_dup(&d->scratch, name);
    if (copy.p == NULL) {
        d->c->nomem = true;
        return false;
    }
    *p = (struct param){copy, n, group};
    return true;
}

/* param_shapes: a list of dicts, one per group. */
static void read_shapes(struct ds *d, const struct fr_pickle *k)
{
    uint32_t shapes = fr_pk_get(k, k->root, FR_SV("param_shapes"));
    d->groups = fr_pk_count(k, shapes);
    for (uint32_t g = 0; g < d->groups; g++) {
        const struct fr_pk_node *dict = fr_pk_at(k, fr_pk_item(k, shapes, g));
        dict = dict->kind == FR_PK_CALL ? fr_pk_at(k, dict->u.call.items) : dict;
        for (uint32_t i = 0; dict->kind == FR_PK_DICT && i + 1 < dict->u.list.n; i += 2) {
            if (!add_param(d, k, dict->u.list.v[i], dict->u.list.v[i + 1], g)) {
                return;
            }
        }
    }
}

/* Opens a file of the checkpoint as a PyTorch file. What is malformed was told when it was read;
 * that it cannot be read now was not. */
static bool open_pickle(struct ds *d, uint32_t file, struct fr_blob *b, struct fr_torch *t)
{
    uint8_t kind;
    struct fr_err err = {0};
    *b = FR_BLOB_INIT;
    if (file == FR_NO_FILE || d->c->nomem) {
        return false;
    }
    int rc = fr_blob_open(b, d->c->files.v[file].path.p, &err);
    rc = rc == 0 ? fr_torch_open(b, 0, b->size, &d->c->limits, t, &kind, &err) : rc;
    if (rc != 0) {
        fr_blob_release(b);
    }
    if (rc == -FR_NOMEM || rc == -FR_IO) {
        fr_ckpt_say_err(d->c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
    }
    return rc == 0;
}

static void find_shapes(struct ds *d)
{
    struct fr_torch t;
    struct fr_blob b;
    fr_sv path = d->c->files.v[d->file].path;
    fr_sv own = fr_arena_printf(&d->scratch, "zero_pp_rank_%llu_%.*s_model_states.pt",
                                (unsigned long long)d->rank, FR_SV_ARG(d->suffix));
    fr_sv all = fr_arena_printf(&d->scratch, "%.*s_model_states.pt", FR_SV_ARG(d->suffix));
    d->c->nomem = d->c->nomem || own.p == NULL || all.p == NULL;
    uint32_t file = fr_ckpt_sibling(d->c, path, d->stage == 3 ? own : all);
    file = file == FR_NO_FILE ? fr_ckpt_sibling(d->c, path, d->stage == 3 ? all : own) : file;
    if (!open_pickle(d, file, &b, &t)) {
        return;
    }
    read_shapes(d, &t.pickle);
    fr_torch_release(&t);
    fr_blob_release(&b);
}

/* A piece of a flat tensor: `n` elements from `at`, which are those of p from `index`. */
static void add_piece(struct ds *d, const struct fr_tensor *flat, uint64_t at, uint64_t n,
                      const struct param *p, uint64_t index, fr_sv key)
{
    uint64_t skip = 0, bytes = 0;
    fr_sv name = fr_arena_printf(d->c->arena, "optimizer.%.*s.%.*s", FR_SHOWN(key),
                                 (int)fr_sv_head(p->name, 4096).n, p->name.p);
    struct fr_tensor copy = *flat,
                     *t = name.p == NULL ? NULL : fr_ckpt_tensor(d->c, flat->file, name);
    d->c->nomem = d->c->nomem || name.p == NULL;
    if (t == NULL || !fr_ckpt_bytes(copy.dtype, at, &skip) ||
        !fr_ckpt_bytes(copy.dtype, n, &bytes)) {
        return;
    }
    name = t->name;
    *t = copy;
    t->name = name;
    t->role = FR_ROLE_OPTIMIZER;
    t->shape[0] = t->elements = n;
    t->offset += skip;
    t->bytes = bytes;
    t->chunk[0] = index;
    t->shard = n != p->elements;
    t->rank = (int32_t)d->rank;
}

/* Where a parameter of `elements` lies: [begin, begin + n) of the rank's sequence holds its
 * elements from `index`. */
struct share {
    uint64_t begin, n, index;
};

/* at: elements of the sequence before this parameter (stage 3: of this rank's, else of the group's
 * over all ranks). */
static struct share share_of(const struct ds *d, const struct param *p, uint64_t at,
                             uint64_t partition)
{
    if (d->stage == 3) {
        uint64_t each = p->elements / d->ranks + (p->elements % d->ranks != 0),
                 from = each * d->rank;
        from = from < p->elements ? from : p->elements;
        return (struct share){at, p->elements - from < each ? p->elements - from : each, from};
    }
    uint64_t low = partition * d->rank, high = low + partition, begin = at > low ? at : low,
             end = at + p->elements < high ? at + p->elements : high;
    return begin < end ? (struct share){begin - low, end - begin, begin - at}
                       : (struct share){0, 0, 0};
}

/* Cuts flat tensor `flat`, which begins at `base` of the rank's sequence, into the parameters of
 * its group (all of them in stage 3). */
static void cut(struct ds *d, const struct fr_tensor *flat, uint32_t group, uint64_t base,
                fr_sv key)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < d->params.n && !d->c->nomem && !d->c->full_tensors; i++) {
        const struct param *p = &d->params.v[i];
        if (!work(d)) {
            return;
        }
        if (d->stage != 3 && p->group != group) {
            continue;
        }
        struct share s = share_of(d, p, at, flat->elements);
        uint64_t begin = s.begin > base ? s.begin : base,
                 end = s.begin + s.n < base + flat->elements ? s.begin + s.n
                                                             : base + flat->elements;
        if (begin < end) {
            add_piece(d, flat, begin - base, end - begin, p, s.index + (begin - s.begin), key);
        }
        at += d->stage == 3 ? p->elements / d->ranks + (p->elements % d->ranks != 0) : p->elements;
        if (at > (uint64_t)1 << 60) {
            return; /* sizes of a hostile file */
        }
    }
}

/* The group and key in the name of a flat tensor: "...fp32_flat_groups.1" is fp32 of group 1,
 * "...state.0.exp_avg" exp_avg of group 0. */
static bool is_flat(const struct fr_tensor *t, uint64_t *group, fr_sv *key)
{
    fr_sv left = t->name, last = FR_SV_NONE, before;
    size_t at = left.n;
    while (at > 0 && left.p[at - 1] != '.') {
        at--;
    }
    last = fr_sv_skip(left, at);
    left = fr_sv_head(left, at > 0 ? at - 1 : 0);
    fr_sv number = last;
    if (fr_sv_take_u64(&number, group) && number.n == 0) {
        *key = FR_SV("fp32");
        return fr_sv_ends(left, FR_SV("single_partition_of_fp32_groups")) ||
               fr_sv_ends(left, FR_SV("fp32_flat_groups"));
    }
    at = left.n;
    while (at > 0 && left.p[at - 1] != '.') {
        at--;
    }
    before = fr_sv_skip(left, at);
    *key = last;
    return fr_sv_has(t->name, FR_SV("base_optimizer_state")) && fr_sv_take_u64(&before, group) &&
           before.n == 0;
}

/* The elements of the flat groups before `group` (stage 3: they are one sequence); 0 in other
 * stages. */
static uint64_t base_of(struct ds *d, uint64_t group, fr_sv key, uint32_t n)
{
    uint64_t base = 0, g;
    fr_sv k;
    for (uint32_t i = 0; d->stage == 3 && i < n && work(d); i++) {
        const struct fr_tensor *t = &d->c->tensors.v[i];
        if (t->file == d->file && t->dims == 1 && is_flat(t, &g, &k) && fr_sv_eq(k, key) &&
            g < group && t->elements < (uint64_t)1 << 60) {
            base += t->elements;
        }
    }
    return base;
}

static void name_partitions(struct ds *d)
{
    uint32_t n = d->c->tensors.n, kept = 0;
    uint64_t group;
    fr_sv key;
    bool *done = fr_calloc(n, sizeof *done);
    if (done == NULL) {
        d->c->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < n && !d->c->nomem && !d->c->full_tensors; i++) {
        struct fr_tensor t = d->c->tensors.v[i];
        if (t.file == d->file && t.dims == 1 && !t.cut && t.packed_rows && t.elements > 0 &&
            t.elements < (uint64_t)1 << 60 && is_flat(&t, &group, &key) &&
            (group < d->groups || d->stage == 3)) {
            uint32_t before = d->c->tensors.n;
            cut(d, &t, (uint32_t)group, base_of(d, group, key, n), key);
            done[i] = d->c->tensors.n > before;
        }
    }
    for (uint32_t i = 0; i < d->c->tensors.n;
         i++) { /* the pieces take the place of what they were cut from */
        if (i >= n || !done[i]) {
            d->c->tensors.v[kept++] = d->c->tensors.v[i];
        }
    }
    d->c->tensors.n = kept;
    fr_free(done);
}

static uint64_t count_of(const struct fr_pickle *k, uint32_t node)
{
    uint64_t n = 0;
    if (!fr_pk_u64(k, node, &n)) {
        (void)fr_pk_u64(k, fr_pk_item(k, node, 0), &n); /* one per group */
    }
    return n;
}

static void read_optimizer(struct ds *d)
{
    struct fr_torch t;
    struct fr_blob b;
    if (!open_pickle(d, d->file, &b, &t)) {
        return;
    }
    uint32_t state = fr_pk_get(&t.pickle, t.pickle.root, FR_SV("optimizer_state_dict"));
    d->stage = count_of(&t.pickle, fr_pk_get(&t.pickle, state, FR_SV("zero_stage")));
    d->ranks = count_of(&t.pickle, fr_pk_get(&t.pickle, state, FR_SV("partition_count")));
    fr_torch_release(&t);
    fr_blob_release(&b);
    if (d->ranks == 0 || d->ranks > 1000000 || d->rank >= d->ranks) {
        return;
    }
    fr_sv next = fr_arena_printf(&d->scratch, "zero_pp_rank_%llu_%.*s_optim_states.pt",
                                 (unsigned long long)d->ranks - 1, FR_SV_ARG(d->suffix));
    fr_sv path = d->c->files.v[d->file].path,
          prefix = fr_sv_head(fr_path_name(path),
                              fr_sv_find(fr_path_name(path), FR_SV("zero_pp_rank_")));
    fr_sv last = fr_arena_printf(&d->scratch, "%.*s%.*s", FR_SV_ARG(prefix), FR_SV_ARG(next));
    if (next.p == NULL || last.p == NULL) {
        d->c->nomem = true;
        return;
    }
    if (d->rank == 0 && fr_ckpt_sibling(d->c, path, last) == FR_NO_FILE) {
        fr_ckpt_say(d->c, FR_PROBLEM_MISSING, true, d->file, FR_NO_POS, FR_SV_NONE,
                    "speaks of %llu partitions, but '%.*s' of the last rank is not there",
                    (unsigned long long)d->ranks, FR_SHOWN(last));
    }
    find_shapes(d);
    if (d->params.n > 0) {
        name_partitions(d);
    }
}

static bool is_zero(fr_sv name) /* old versions wrote "mp_rank_00optim_states.pt" */
{
    return fr_sv_has(name, FR_SV("zero_pp_rank_")) && fr_sv_ends(name, FR_SV("optim_states.pt"));
}

/* mp_rank_00_model_states.pt, zero_pp_rank_0_mp_rank_00_model_states.pt (stage 3),
 * layer_00-model_00-model_states.pt (pipelines). Experts' files come beside those, never alone. */
static bool is_model(fr_sv name)
{
    return fr_sv_ends(name, FR_SV("model_states.pt")) && !fr_sv_has(name, FR_SV("expert_"));
}

/* Shards of the optimizer want the model beside them: every save writes it. `file` is a shard; told
 * by the first of its folder. */
static void check_model(struct fr_ckpt *c, uint32_t step, uint32_t file)
{
    fr_sv folder = fr_path_folder(c->files.v[file].path);
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE; i = c->notes.v[i].next) {
        fr_sv path = c->files.v[i].path, name = fr_path_name(path);
        if (!fr_ckpt_work(c, 1)) {
            return;
        }
        if (fr_sv_eq(fr_path_folder(path), folder) &&
            (is_model(name) || (is_zero(name) && i < file))) {
            return;
        }
    }
    fr_ckpt_say_step(c, FR_PROBLEM_MISSING, true, step, folder.n > 0 ? folder : FR_SV("."),
                     "holds the optimizer's shards, but the model's states are not there: neither "
                     "mp_rank_*_model_states.pt (ZeRO 1 and 2) nor "
                     "zero_pp_rank_*_model_states.pt (ZeRO 3) nor layer_*-model_states.pt "
                     "(pipelines)");
}

static void check_models(struct fr_ckpt *c, uint32_t step)
{
    fr_sv before = FR_SV_NONE;
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        fr_sv path = c->files.v[i].path, folder = fr_path_folder(path);
        if (c->notes.v[i].given || !is_zero(fr_path_name(path)) ||
            (before.p != NULL && fr_sv_eq(folder, before))) {
            continue; /* who names one shard means that one */
        }
        c->steps.v[step].layout = FR_SV("deepspeed");
        before = folder;
        check_model(c, step, i);
        fr_zero_grid(c, step, folder);
    }
}

static void check(struct fr_ckpt *c, uint32_t step)
{
    check_models(c, step);
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        fr_sv name = fr_path_name(c->files.v[i].path);
        size_t at = fr_sv_find(name, FR_SV("zero_pp_rank_"));
        bool is_part = fr_sv_ends(name, FR_SV("_model_states.pt")) ||
                       fr_sv_ends(name, FR_SV("_optim_states.pt"));
        if (!is_part) {
            continue;
        }
        c->steps.v[step].layout = FR_SV("deepspeed");
        struct ds d = {.c = c, .step = step, .file = i, .scratch = FR_ARENA_INIT(0)};
        fr_sv rest = at == FR_NPOS ? FR_SV_NONE : fr_sv_skip(name, at + strlen("zero_pp_rank_"));
        if (fr_sv_ends(name, FR_SV("_optim_states.pt")) && fr_sv_take_u64(&rest, &d.rank) &&
            fr_sv_take(&rest, FR_SV("_"))) {
            d.suffix = fr_sv_head(rest, rest.n - strlen("_optim_states.pt"));
            read_optimizer(&d);
        }
        fr_vec_free(d.params.v);
        fr_arena_release(&d.scratch);
    }
}

const struct fr_ckpt_layout fr_ckpt_layout_deepspeed = {
    .name = "deepspeed", .summary = "DeepSpeed tags", .check = check,
};
