/* SPDX-License-Identifier: Apache-2.0 */
/* The walk through a pickle's nodes from its root: keys make the names, calls of the closed list
 * make the tensors. Every container is entered once, so that what is shared a million times costs
 * one visit; a tensor that is met under two names has two (tied weights). No recursion: a stack of
 * frames, FR_DEPTH deep. */
#include "base/alloc.h"
#include "tensor/globals.h"
#include "tensor/torchzip.h"

#include <stdio.h>


enum { DEPTH = 512, NAME_MAX_BYTES = 4096 };

struct storage {
    uint8_t dtype;   /* FR_DTYPE_UNKNOWN of an untyped one */
    bool ok;         /* its bytes are there */
    uint64_t bytes, offset;
    int32_t member;  /* of the checkpoint, -1 = stored */
    uint32_t number;
};

struct frame {
    uint32_t node, next;
    size_t path_n;
    bool plain; /* elements get no index in the path */
};

struct walk {
    struct fr_ckpt *c;
    uint32_t file;
    const struct fr_torch *t;
    const struct fr_pickle *k;
    struct fr_buf path;
    unsigned char *seen; /* one bit per node */
    struct frame stack[DEPTH];
    uint32_t depth;
    bool too_deep;
    struct fr_arena arena;
    struct fr_map keys; /* storage key -> index in storages */
    FR_VEC(struct storage) storages;
    uint32_t metas;
};

static uint64_t at_file(const struct walk *w, uint32_t node)
{
    return w->t->pickle_at + fr_pk_at(w->k, node)->at;
}

static fr_sv name_now(const struct walk *w)
{
    return w->path.n > 0 ? fr_buf_sv(&w->path) : FR_SV("(root)");
}

/* ---- storages ---- */

static const struct fr_zip_member *find_data(struct walk *w, fr_sv key)
{
    FR_AUTO(fr_buf) name = FR_BUF_INIT(0);
    fr_buf_add(&name, w->t->root);
    fr_buf_addz(&name, "data/");
    fr_buf_add(&name, key);
    w->c->nomem = w->c->nomem || !fr_buf_ok(&name);
    return fr_zip_find(&w->t->zip, fr_buf_sv(&name));
}

static void locate(struct walk *w, struct storage *s, const struct fr_zip_member *m, fr_sv key)
{
    struct fr_err err = {0};
    int rc = fr_zip_data(&w->t->zip, m, &s->offset, &err);
    if (rc != 0 || m->encrypted || (m->method != 0 && m->method != 8) ||
        (m->method == 0 && m->packed != m->unpacked)) {
        fr_ckpt_say(w->c, FR_PROBLEM_HEADER, true, w->file, w->t->zip.base + m->local, FR_SV_NONE,
                    "storage '%.*s' cannot be read: %s", FR_SHOWN(key),
                    rc != 0 ? err.msg
                            : "encrypted, or in a compression that PyTorch does not write");
        return;
    }
    s->bytes = m->unpacked;
    s->ok = true;
    if (m->method == 8) {
        struct fr_ckpt_member *k = FR_PUSH(&w->c->members);
        if (k == NULL) {
            w->c->nomem = true;
            return;
        }
        *k = (struct fr_ckpt_member){w->file, s->offset, m->packed, m->unpacked};
        s->member = (int32_t)w->c->members.n - 1;
        s->offset = 0;
    }
    fr_ckpt_sum(w->c, &(struct fr_ckpt_sum){.name = m->name,
                                            .file = w->file,
                                            .crc = m->crc,
                                            .offset = s->offset,
                                            .bytes = m->unpacked,
                                            .member = s->member});
}

static void make_storage(struct walk *w, struct storage *s, uint32_t persid, fr_sv key,
                         uint32_t count_node)
{
    uint64_t count = 0, want = 0;
    *s = (struct storage){.member = -1, .number = w->c->storages++};
    const struct fr_pk_node *class = fr_pk_at(w->k,
                                              fr_pk_item(w->k, fr_pk_at(w->k, persid)->u.id, 1));
    bool untyped = false;
    s->dtype = class->kind == FR_PK_GLOBAL ? fr_storage_dtype(fr_pk_name(class), &untyped)
                                           : FR_DTYPE_UNKNOWN;
    const struct fr_zip_member *m = find_data(w, key);
    if (m == NULL) {
        fr_ckpt_say(w->c, FR_PROBLEM_STORAGE, true, w->file, at_file(w, persid), FR_SV_NONE,
                    "storage '%.*s' of '%.*s' is not in the zip (named at byte %llu)",
                    FR_SHOWN(key), FR_SHOWN(name_now(w)), (unsigned long long)at_file(w, persid));
        return;
    }
    locate(w, s, m, key);
    bool counted = fr_pk_u64(w->k, count_node, &count) &&
                   (untyped
                        ? (want = count, true)
                        : s->dtype == FR_DTYPE_UNKNOWN || fr_ckpt_bytes(s->dtype, count, &want));
    if (s->ok && (!counted || want > s->bytes)) {
        fr_ckpt_say(w->c, FR_PROBLEM_SIZE, true, w->file, w->t->zip.base + m->local, FR_SV_NONE,
                    "storage '%.*s' of '%.*s' holds %llu bytes, its pickle promises %llu",
                    FR_SHOWN(key), FR_SHOWN(name_now(w)), (unsigned long long)s->bytes,
                    (unsigned long long)want);
    }
}

/* The storage of a persistent id, or NULL with a problem. */
static struct storage *storage_of(struct walk *w, uint32_t persid)
{
    fr_sv word, key;
    uint32_t id = fr_pk_at(w->k, persid)->u.id;
    bool is_new = false;
    if (!fr_pk_str(w->k, fr_pk_item(w->k, id, 0), &word) || !fr_sv_eq(word, FR_SV("storage")) ||
        !fr_pk_str(w->k, fr_pk_item(w->k, id, 2), &key)) {
        fr_ckpt_say(w->c, FR_PROBLEM_HEADER, true, w->file, at_file(w, persid), FR_SV_NONE,
                    "a persistent id at byte %llu that is no storage",
                    (unsigned long long)at_file(w, persid));
        return NULL;
    }
    uint32_t *slot = fr_map_slot(&w->keys, key, &is_new);
    struct storage *s = slot != NULL && is_new ? FR_PUSH(&w->storages) : NULL;
    if (slot == NULL || (is_new && s == NULL)) {
        w->c->nomem = true;
        return NULL;
    }
    if (is_new) {
        *slot = w->storages.n - 1;
        make_storage(w, s, persid, key, fr_pk_item(w->k, id, 4));
    }
    return &w->storages.v[*slot];
}

/* ---- tensors ---- */

static uint32_t read_sizes(const struct walk *w, uint32_t node, uint64_t *ret, bool *ok)
{
    uint32_t n = fr_pk_count(w->k, node);
    const struct fr_pk_node *d = fr_pk_at(w->k, node);
    *ok = d->kind == FR_PK_TUPLE || d->kind == FR_PK_LIST || d->kind == FR_PK_CALL;
    for (uint32_t i = 0; *ok && i < n && i < FR_DIMS_MAX; i++) {
        *ok = fr_pk_u64(w->k, fr_pk_item(w->k, node, i), &ret[i]);
    }
    return n;
}

/* Elements from the first to the last that a view touches; false when that overflows. Also whether
 * it is row-major without gaps. */
static bool extent(const struct fr_tensor *t, const uint64_t *stride, uint64_t *ret, bool *packed)
{
    uint64_t last = 0, dense = 1, step;
    *packed = true;
    for (uint32_t i = t->dims; i-- > 0;) {
        if (t->shape[i] > 1) {
            if (__builtin_mul_overflow(t->shape[i] - 1, stride[i], &step) ||
                __builtin_add_overflow(last, step, &last)) {
                return false;
            }
            *packed = *packed && stride[i] == dense;
        }
        dense *= t->shape[i];
    }
    return !__builtin_add_overflow(last, (uint64_t)1, ret);
}

/* Where the view lies in its storage, against what the storage has. */
static void place(struct walk *w, struct fr_tensor *t, const struct storage *s, uint64_t first,
                  const uint64_t *stride, uint64_t at)
{
    uint64_t length = 0, begin = 0, bytes = 0;
    bool fits = true;
    t->storage = s->number;
    t->member = s->member;
    t->swapped = w->t->big_endian;
    t->cut = !s->ok;
    t->offset = s->offset;
    if (t->elements > 0) {
        fits = extent(t, stride, &length, &t->packed_rows);
    }
    fits = fits && fr_ckpt_bytes(t->dtype, first, &begin) &&
           fr_ckpt_bytes(t->dtype, length, &bytes);
    fits = fits && begin <= s->bytes && bytes <= s->bytes - begin;
    if (t->dtype == FR_DTYPE_UNKNOWN || (!fits && !s->ok)) {
        t->cut = t->cut || t->dtype != FR_DTYPE_UNKNOWN;
        return;
    }
    if (!fits) {
        t->cut = true;
        fr_ckpt_say(w->c, FR_PROBLEM_OUTSIDE, true, w->file, at, t->name,
                    "'%.*s' (byte %llu) reaches beyond its storage of %llu bytes",
                    FR_SHOWN(t->name), (unsigned long long)at, (unsigned long long)s->bytes);
        return;
    }
    t->offset = s->offset + begin;
    t->bytes = bytes;
}

/* Two elements per stored one: the shape that torch shows counts bytes. */
static void widen_f4(struct fr_tensor *t)
{
    if (t->dtype == FR_F4_E2M1 && t->dims > 0 && t->elements < UINT64_MAX / 2 &&
        t->shape[t->dims - 1] < UINT64_MAX / 2) {
        t->shape[t->dims - 1] *= 2;
        t->elements *= 2;
    }
}

static void set_dtype(struct walk *w, struct fr_tensor *t, const struct storage *s, uint32_t word,
                      uint64_t at)
{
    const struct fr_pk_node *d = fr_pk_at(w->k, word);
    bool untyped;
    t->dtype = s->dtype;
    if (d->kind == FR_PK_GLOBAL) {
        uint8_t dtype = fr_storage_dtype(fr_pk_name(d), &untyped);
        t->dtype_word = fr_ckpt_dup(w->c, fr_sv_head(fr_pk_name(d), 40));
        t->dtype = dtype;
    } else if (t->dtype != FR_DTYPE_UNKNOWN) {
#define FR_X(id, value, bits, text, st, torch) [FR_##id] = torch,
        static const char *const words[FR_DTYPE_END] = {FR_DTYPES(FR_X)};
#undef FR_X
        t->dtype_word = fr_sv_z(words[t->dtype]);
    }
    if (t->dtype == FR_DTYPE_UNKNOWN) {
        fr_ckpt_say(
            w->c, FR_PROBLEM_DTYPE, false, w->file, at, t->name,
            "'%.*s' (byte %llu) has the type '%.*s', which is not known; its bytes are skipped",
            FR_SHOWN(t->name), (unsigned long long)at, FR_SV_ARG(t->dtype_word));
    }
}

/* args: storage, offset, size, stride, ... ; word: the node of a dtype, or FR_PK_NONE. */
static void emit(struct walk *w, uint32_t call, uint32_t args, uint32_t word)
{
    uint64_t shape[FR_DIMS_MAX] = {0}, stride[FR_DIMS_MAX] = {0}, first = 0, at = at_file(w, call);
    bool has_shape, has_stride;
    uint32_t persid = fr_pk_item(w->k, args, 0);
    uint32_t dims = read_sizes(w, fr_pk_item(w->k, args, 2), shape, &has_shape);
    uint32_t strides = read_sizes(w, fr_pk_item(w->k, args, 3), stride, &has_stride);
    if (fr_pk_at(w->k, persid)->kind != FR_PK_PERSID ||
        !fr_pk_u64(w->k, fr_pk_item(w->k, args, 1), &first) || !has_shape || !has_stride ||
        dims != strides) {
        fr_ckpt_say(w->c, FR_PROBLEM_HEADER, true, w->file, at, name_now(w),
                    "'%.*s' (byte %llu) is rebuilt from arguments that are no tensor's",
                    FR_SHOWN(name_now(w)), (unsigned long long)at);
        return;
    }
    const struct storage *s = storage_of(w, persid);
    struct fr_tensor *t = s == NULL ? NULL : fr_ckpt_tensor(w->c, w->file, name_now(w));
    if (t == NULL) {
        return;
    }
    set_dtype(w, t, s, word, at);
    t->role = fr_role_of(t->name, t->dtype);
    if (!fr_ckpt_shape(w->c, t, shape, dims, at)) {
        t->cut = true;
        t->elements = 0;
        return;
    }
    if (t->dtype == FR_F4_E2M1) {
        t->dtype = FR_U8; /* placed in bytes */
        place(w, t, s, first, stride, at);
        t->dtype = FR_F4_E2M1;
        widen_f4(t);
        return;
    }
    place(w, t, s, first, stride, at);
}

/* A storage that is a value of its own: one dimension. */
static void emit_storage(struct walk *w, uint32_t persid)
{
    const struct storage *s = storage_of(w, persid);
    struct fr_tensor *t = s == NULL ? NULL : fr_ckpt_tensor(w->c, w->file, name_now(w));
    uint64_t n = 0, unit = 1, one = 1;
    if (t == NULL) {
        return;
    }
    t->dtype = s->dtype != FR_DTYPE_UNKNOWN ? s->dtype : FR_U8;
    t->dtype_word = FR_SV("storage");
    t->role = fr_role_of(t->name, t->dtype);
    n = fr_ckpt_bytes(t->dtype, 1, &unit) ? s->bytes / unit : 0;
    (void)fr_ckpt_shape(w->c, t, &n, 1, at_file(w, persid));
    place(w, t, s, 0, &one, at_file(w, persid));
}

/* ---- the walk ---- */

static void enter(struct walk *w, uint32_t node, bool plain)
{
    if (w->depth == DEPTH) {
        if (!w->too_deep) {
            fr_ckpt_say(
                w->c, FR_PROBLEM_LIMIT, true, w->file, at_file(w, node), FR_SV_NONE,
                "objects nested more than %d deep at byte %llu: what is inside was not looked at",
                DEPTH, (unsigned long long)at_file(w, node));
        }
        w->too_deep = true;
        return;
    }
    w->stack[w->depth++] = (struct frame){node, 0, w->path.n, plain};
}

static bool is_rebuild(const struct walk *w, uint32_t callable, const char *name)
{
    const struct fr_pk_node *g = fr_pk_at(w->k, callable);
    return g->kind == FR_PK_GLOBAL && fr_sv_eq(fr_pk_name(g), fr_sv_z(name));
}

/* Whether an argument is a storage: such a call makes a tensor. */
static bool takes_storage(const struct walk *w, uint32_t args)
{
    uint32_t n = fr_pk_count(w->k, args);
    for (uint32_t i = 0; i < n && i < 16; i++) {
        if (fr_pk_at(w->k, fr_pk_item(w->k, args, i))->kind == FR_PK_PERSID) {
            return true;
        }
    }
    return false;
}

/* A call of the closed list that takes a storage; true when nothing is left to be entered. */
static bool rebuild(struct walk *w, uint32_t call, uint32_t callable, uint32_t args)
{
    uint32_t dtype = is_rebuild(w, callable, "_rebuild_tensor_v3") ? fr_pk_item(w->k, args, 6)
                                                                   : FR_PK_NONE;
    if (is_rebuild(w, callable, "_rebuild_from_type_v2") ||
        is_rebuild(w, callable, "_rebuild_from_type")) {
        uint32_t inner = fr_pk_item(w->k, args, 0), inner_args = fr_pk_item(w->k, args, 2);
        const struct fr_pk_node *g = fr_pk_at(w->k, inner);
        if (g->kind == FR_PK_GLOBAL && g->mark == FR_GLOBAL_TENSOR + 1 &&
            takes_storage(w, inner_args)) {
            emit(w, call, inner_args,
                 is_rebuild(w, inner, "_rebuild_tensor_v3") ? fr_pk_item(w->k, inner_args, 6)
                                                            : FR_PK_NONE);
        }
        return false; /* its state may hold more */
    }
    if (is_rebuild(w, callable, "_rebuild_meta_tensor_no_storage")) {
        w->metas++;
        return true;
    }
    if (!takes_storage(w, args)) {
        return false; /* of a tensor, or of several */
    }
    emit(w, call, args, dtype);
    if (is_rebuild(w, callable, "_rebuild_qtensor") &&
        fr_pk_at(w->k, fr_pk_item(w->k, args, 4))->kind == FR_PK_TUPLE) {
        enter(w, fr_pk_item(w->k, args, 4), false); /* scales and zero points of channels */
    }
    return true;
}

static bool mark_seen(struct walk *w, uint32_t node)
{
    bool was = (w->seen[node / 8] >> (node % 8) & 1) != 0;
    w->seen[node / 8] |= (unsigned char)(1u << (node % 8));
    return was;
}

/* What is inside torch._utils._rebuild_parameter(data, ...) and its kin: the tensor itself.
 * Bounded: a hostile one may hold itself. */
static uint32_t unwrap(const struct walk *w, uint32_t node)
{
    for (int i = 0; i < 8; i++) {
        const struct fr_pk_node *d = fr_pk_at(w->k, node);
        const struct fr_pk_node *g = d->kind == FR_PK_CALL ? fr_pk_at(w->k, d->u.call.callable) : d;
        bool wraps = d->kind == FR_PK_CALL && g->kind == FR_PK_GLOBAL &&
                     fr_sv_eq(fr_pk_module(g), FR_SV("torch._utils")) &&
                     (fr_sv_starts(fr_pk_name(g), FR_SV("_rebuild_parameter")) ||
                      fr_sv_eq(fr_pk_name(g), FR_SV("_rebuild_device_tensor_from_cpu_tensor")));
        uint32_t inner = wraps ? fr_pk_item(w->k, d->u.call.args, 0) : FR_PK_NONE;
        if (fr_pk_at(w->k, inner)->kind != FR_PK_CALL) {
            break;
        }
        node = inner;
    }
    return node;
}

static void visit_call(struct walk *w, uint32_t node)
{
    node = unwrap(w, node);
    const struct fr_pk_node *d = fr_pk_at(w->k, node), *g = fr_pk_at(w->k, d->u.call.callable);
    bool known = g->kind == FR_PK_GLOBAL && g->mark == FR_GLOBAL_TENSOR + 1;
    if (known && rebuild(w, node, d->u.call.callable, d->u.call.args)) {
        return;
    }
    if (mark_seen(w, node)) {
        return;
    }
    if (!known && takes_storage(w, d->u.call.args)) {
        fr_ckpt_say(w->c, FR_PROBLEM_REFUSED, true, w->file, at_file(w, node), name_now(w),
                    "'%.*s' (byte %llu) is built by '%.*s%s%.*s', which is not known to make "
                    "tensors: refused",
                    FR_SHOWN(name_now(w)), (unsigned long long)at_file(w, node),
                    FR_SHOWN(g->kind == FR_PK_GLOBAL ? fr_pk_module(g) : FR_SV("a value")),
                    g->kind == FR_PK_GLOBAL ? "." : "",
                    FR_SHOWN(g->kind == FR_PK_GLOBAL ? fr_pk_name(g) : FR_SV("")));
        return;
    }
    enter(w, node, false);
}

static void visit(struct walk *w, uint32_t node, bool plain)
{
    switch (fr_pk_at(w->k, node)->kind) {
    case FR_PK_PERSID:
        emit_storage(w, node);
        break;
    case FR_PK_CALL:
        visit_call(w, node);
        break;
    case FR_PK_TUPLE:
    case FR_PK_LIST:
    case FR_PK_SET:
    case FR_PK_DICT:
        if (!mark_seen(w, node)) {
            enter(w, node, plain);
        }
        break;
    default:
        break;
    }
}

/* Keys that only modules and sharded tensors have between a parameter and its name. */
static bool is_silent(fr_sv key)
{
    return fr_sv_eq(key, FR_SV("_modules")) || fr_sv_eq(key, FR_SV("_parameters")) ||
           fr_sv_eq(key, FR_SV("_buffers")) || fr_sv_eq(key, FR_SV("_local_tensor"));
}

static void path_add(struct walk *w, fr_sv key)
{
    if (is_silent(key) || w->path.n > NAME_MAX_BYTES) {
        return;
    }
    fr_buf_addz(&w->path, w->path.n > 0 ? "." : "");
    fr_buf_add(&w->path, fr_sv_head(key, NAME_MAX_BYTES));
}

static void path_key(struct walk *w, uint32_t key)
{
    const struct fr_pk_node *d = fr_pk_at(w->k, key);
    char digits[32];
    fr_sv s;
    if (fr_pk_str(w->k, key, &s)) {
        path_add(w, s);
    } else if (d->kind == FR_PK_INT || d->kind == FR_PK_BOOL) {
        path_add(
            w, (fr_sv){digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)d->u.i)});
    } else {
        path_add(w, FR_SV("?"));
    }
}

/* One child of the frame on top; false when it has no more. */
static bool step(struct walk *w)
{
    struct frame *f = &w->stack[w->depth - 1];
    const struct fr_pk_node *d = fr_pk_at(w->k, f->node);
    char digits[32];
    uint32_t i = f->next++;
    w->path.n = f->path_n;
    if (w->path.p != NULL) {
        w->path.p[w->path.n] = '\0';
    }
    if (d->kind == FR_PK_CALL) {
        const uint32_t parts[3] = {d->u.call.items, d->u.call.state, d->u.call.args};
        if (i < 3) {
            visit(w, parts[i], true);
        }
        return i < 3;
    }
    uint32_t n = d->kind == FR_PK_DICT ? d->u.list.n / 2 : d->u.list.n;
    if (i >= n) {
        return false;
    }
    uint32_t child = d->u.list.v[d->kind == FR_PK_DICT ? 2 * i + 1 : i];
    uint8_t kind = fr_pk_at(w->k, child)->kind;
    if (kind < FR_PK_TUPLE || kind == FR_PK_GLOBAL) {
        return true; /* nothing is inside */
    }
    if (d->kind == FR_PK_DICT) {
        path_key(w, d->u.list.v[2 * i]);
    } else if (!f->plain || n > 1) {
        path_add(w, (fr_sv){digits, (size_t)snprintf(digits, sizeof digits, "%u", i)});
    }
    visit(w, child, false);
    return true;
}

/* Bytes of the zip that no tensor uses: an object that stays closed has them, or a tensor was
 * refused. Without such bytes the objects hide no numbers. */
static void check_unused(struct walk *w)
{
    uint64_t bytes = 0, n = 0;
    FR_AUTO(fr_buf) data = FR_BUF_INIT(0);
    uint32_t known;
    fr_buf_add(&data, w->t->root);
    fr_buf_addz(&data, "data/");
    for (uint32_t i = 0; fr_buf_ok(&data) && i < w->t->zip.n; i++) {
        fr_sv name = w->t->zip.members[i].name;
        if (fr_sv_take(&name, fr_buf_sv(&data)) && name.n > 0 &&
            !fr_map_get(&w->keys, name, &known)) {
            bytes += w->t->zip.members[i].unpacked;
            n++;
        }
    }
    if (n > 0) {
        fr_ckpt_say(w->c, w->t->objects ? FR_PROBLEM_REFUSED : FR_PROBLEM_HOLE, false, w->file,
                    FR_NO_POS, FR_SV_NONE,
                    "storages that belong to no tensor that was found: %llu, of %llu bytes",
                    (unsigned long long)n, (unsigned long long)bytes);
    }
}

void fr_torch_tensors(struct fr_ckpt *c, uint32_t file, const struct fr_torch *t, fr_sv prefix)
{
    struct walk *w = fr_calloc(1, sizeof *w);
    unsigned char *seen = fr_calloc(t->pickle.nodes.n / 8 + 1, 1);
    if (w == NULL || seen == NULL) {
        c->nomem = true;
        fr_free(w);
        fr_free(seen);
        return;
    }
    *w = (struct walk){.c = c,
                       .file = file,
                       .t = t,
                       .k = &t->pickle,
                       .path = FR_BUF_INIT(0),
                       .seen = seen,
                       .arena = FR_ARENA_INIT(0)};
    fr_map_init(&w->keys, &w->arena);
    path_add(w, prefix);
    visit(w, t->pickle.root, true);
    while (w->depth > 0 && !c->nomem && !c->full_tensors) {
        w->depth -= !step(w);
        c->nomem = c->nomem || !fr_buf_ok(&w->path);
    }
    if (w->metas > 0) {
        fr_ckpt_say(c, FR_PROBLEM_STORAGE, false, file, FR_NO_POS, FR_SV_NONE,
                    "tensors of the device 'meta', which have a shape and no data: %u", w->metas);
    }
    check_unused(w);
    fr_vec_free(w->storages.v);
    fr_arena_release(&w->arena);
    fr_buf_release(&w->path);
    fr_free(seen);
    fr_free(w);
}
