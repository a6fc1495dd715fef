/* SPDX-License-Identifier: Apache-2.0 */
/* dcp: torch.distributed.checkpoint. `.metadata` is a pickle that says for each chunk of each
 * tensor which blob of which file it is; every blob is a zip of torch.save() of its own.
 * `.metadata` is written last: without it the save was interrupted, and the blobs are walked by
 * their own ends, nameless (dcp_blobs.c). */
#include "tensor/dcp.h"

#include "base/alloc.h"

#include <stdlib.h>

struct chunk {  /* one row of storage_data */
    fr_sv name; /* of the tensor, in the pickle's bytes */
    uint32_t file;
    uint64_t offset, length, at; /* in the file; byte of the row in .metadata */
    uint64_t index[FR_DIMS_MAX];
    uint32_t dims;
};

struct whole { /* one row of state_dict_metadata */
    bool is_tensor;
    uint64_t shape[FR_DIMS_MAX], elements, met;
    uint32_t dims;
};

struct dcp {
    struct fr_ckpt *c;
    uint32_t file, step;
    struct fr_pickle k;
    struct fr_arena scratch;
    struct fr_map names, missing; /* name -> index in wholes; file name -> 1 */
    FR_VEC(struct whole) wholes;
    FR_VEC(struct chunk) chunks;
    uint32_t transformed;
};

static uint32_t read_sizes(const struct fr_pickle *k, uint32_t node, uint64_t *ret)
{
    uint32_t n = fr_pk_count(k, node);
    for (uint32_t i = 0; i < n && i < FR_DIMS_MAX; i++) {
        if (!fr_pk_u64(k, fr_pk_item(k, node, i), &ret[i])) {
            return UINT32_MAX;
        }
    }
    return n;
}

static void read_whole(struct dcp *d, uint32_t key, uint32_t value)
{
    bool is_new = false;
    fr_sv name;
    if (!fr_pk_str(&d->k, key, &name)) {
        return;
    }
    uint32_t *slot = fr_map_slot(&d->names, name, &is_new);
    struct whole *w = slot == NULL ? NULL : FR_PUSH(&d->wholes);
    if (w == NULL) {
        d->c->nomem = true;
        return;
    }
    *slot = d->wholes.n - 1;
    if (!is_new) {
        fr_ckpt_say(d->c, FR_PROBLEM_DUPLICATE, true, d->file, fr_pk_at(&d->k, key)->at, name,
                    "the key '%.*s' comes twice", FR_SHOWN(name));
    }
    uint32_t size = fr_pk_get(&d->k, value, FR_SV("size"));
    w->is_tensor = size != FR_PK_NONE;
    w->dims = w->is_tensor ? read_sizes(&d->k, size, w->shape) : 0;
    w->elements = 1;
    bool over = w->dims > FR_DIMS_MAX;
    for (uint32_t i = 0; !over && i < w->dims; i++) {
        over = __builtin_mul_overflow(w->elements, w->shape[i], &w->elements);
    }
    if (over) {
        w->is_tensor = false;
        fr_ckpt_say(d->c, FR_PROBLEM_SIZE, true, d->file, fr_pk_at(&d->k, key)->at, name,
                    "the size of '%.*s' is no size of a tensor", FR_SHOWN(name));
    }
}

/* A file that .metadata names: told once when it is not there. */
static uint32_t find_file(struct dcp *d, fr_sv name, uint64_t at)
{
    bool is_new = false;
    bool inside = fr_sv_chr(name, '\0') == FR_NPOS && !fr_sv_starts(name, FR_SV("/")) &&
                  !fr_sv_has(name, FR_SV(".."));
    uint32_t file = inside ? fr_ckpt_sibling(d->c, d->c->files.v[d->file].path, name) : FR_NO_FILE;
    if (file != FR_NO_FILE) {
        return file;
    }
    if (fr_map_slot(&d->missing, name, &is_new) == NULL) {
        d->c->nomem = true;
        return FR_NO_FILE;
    }
    int32_t rank = fr_rank_of(name);
    if (is_new && !inside) {
        fr_ckpt_say(d->c, FR_PROBLEM_HEADER, true, d->file, at, FR_SV_NONE,
                    "names '%.*s' at byte %llu, which is outside its folder", FR_SHOWN(name),
                    (unsigned long long)at);
    } else if (is_new && rank >= 0) {
        fr_ckpt_say(d->c, FR_PROBLEM_MISSING, true, d->file, at, FR_SV_NONE,
                    "names '%.*s' at byte %llu, which is not there: what rank %d wrote is lost",
                    FR_SHOWN(name), (unsigned long long)at, (int)rank);
    } else if (is_new) {
        fr_ckpt_say(d->c, FR_PROBLEM_MISSING, true, d->file, at, FR_SV_NONE,
                    "names '%.*s' at byte %llu, which is not there", FR_SHOWN(name),
                    (unsigned long long)at);
    }
    return FR_NO_FILE;
}

static void read_chunk(struct dcp *d, uint32_t key, uint32_t value)
{
    const struct fr_pickle *k = &d->k;
    struct chunk row = {.at = fr_pk_at(k, key)->at, .dims = 0};
    fr_sv path;
    uint32_t offset = fr_pk_get(k, key, FR_SV("offset"));
    if (!fr_pk_str(k, fr_pk_get(k, key, FR_SV("fqn")), &row.name) ||
        !fr_pk_str(k, fr_pk_get(k, value, FR_SV("relative_path")), &path) ||
        !fr_pk_u64(k, fr_pk_get(k, value, FR_SV("offset")), &row.offset) ||
        !fr_pk_u64(k, fr_pk_get(k, value, FR_SV("length")), &row.length)) {
        fr_ckpt_say(d->c, FR_PROBLEM_HEADER, true, d->file, row.at, FR_SV_NONE,
                    "a row of storage_data at byte %llu names no chunk",
                    (unsigned long long)row.at);
        return;
    }
    if (fr_pk_count(k, fr_pk_get(k, value, FR_SV("transform_descriptors"))) > 0) {
        d->transformed++;
        return;
    }
    row.dims = fr_pk_at(k, offset)->kind == FR_PK_NIL ? 0 : read_sizes(k, offset, row.index);
    row.file = find_file(d, path, row.at);
    struct chunk *c = row.dims > FR_DIMS_MAX ? NULL : FR_PUSH(&d->chunks);
    if (c != NULL) {
        *c = row;
    } else {
        d->c->nomem = d->c->nomem || row.dims <= FR_DIMS_MAX;
    }
}

static void each_pair(struct dcp *d, const char *what, void (*fn)(struct dcp *, uint32_t, uint32_t))
{
    const struct fr_pk_node *n = fr_pk_at(&d->k, fr_pk_get(&d->k, d->k.root, fr_sv_z(what)));
    if (n->kind != FR_PK_DICT) {
        fr_ckpt_say(d->c, FR_PROBLEM_HEADER, true, d->file, n->at, FR_SV_NONE,
                    "has no %s: it is no .metadata of torch.distributed.checkpoint", what);
        return;
    }
    for (uint32_t i = 0; i + 1 < n->u.list.n && !d->c->nomem; i += 2) {
        fn(d, n->u.list.v[i], n->u.list.v[i + 1]);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct chunk *x = a, *y = b;
    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
                                  : (x->at > y->at) - (x->at < y->at);
}

/* The tensors that a blob just gave: one, of the shape that its row says. */
static void fit(struct dcp *d, const struct chunk *k, struct whole *w, uint32_t first)
{
    if (!w->is_tensor) {
        return;
    }
    for (uint32_t i = first; i < d->c->tensors.n; i++) {
        struct fr_tensor *t = &d->c->tensors.v[i];
        bool fits = t->dims == w->dims && k->dims <= w->dims;
        t->shard = t->dims != w->dims;
        for (uint32_t j = 0; fits && j < w->dims; j++) {
            t->chunk[j] = k->index[j];
            t->shard = t->shard || t->shape[j] != w->shape[j];
            fits = k->index[j] <= w->shape[j] && t->shape[j] <= w->shape[j] - k->index[j];
        }
        if (!fits) {
            fr_ckpt_say(
                d->c, FR_PROBLEM_SIZE, true, k->file, k->offset, t->name,
                "the chunk of '%.*s' at byte %llu does not fit the size that .metadata gives it",
                FR_SHOWN(t->name), (unsigned long long)k->offset);
        }
        w->met += t->elements;
    }
}

static void read_blob(struct dcp *d, const struct chunk *k, const struct fr_blob *b,
                      uint64_t *reached)
{
    uint32_t at, first = d->c->tensors.n;
    struct whole none = {0};
    struct whole *w = fr_map_get(&d->names, k->name, &at) ? &d->wholes.v[at] : &none;
    if (k->offset > b->size || k->length > b->size - k->offset) {
        fr_ckpt_say(d->c, FR_PROBLEM_TRUNCATED, true, k->file, b->size, k->name,
                    "ends at byte %llu, but '%.*s' lies at bytes %llu to %llu",
                    (unsigned long long)b->size, FR_SHOWN(k->name), (unsigned long long)k->offset,
                    (unsigned long long)(k->offset + k->length));
        return;
    }
    if (k->offset < *reached) {
        fr_ckpt_say(d->c, FR_PROBLEM_OVERLAP, true, k->file, k->offset, k->name,
                    "'%.*s' and the chunk before it claim the same bytes, from byte %llu on",
                    FR_SHOWN(k->name), (unsigned long long)k->offset);
        return; /* nothing is read twice: a million rows may name one blob */
    }
    if (k->offset > *reached) {
        fr_ckpt_say(d->c, FR_PROBLEM_HOLE, false, k->file, *reached, FR_SV_NONE,
                    "the bytes %llu to %llu belong to no chunk", (unsigned long long)*reached,
                    (unsigned long long)k->offset);
    }
    *reached = k->offset + k->length > *reached ? k->offset + k->length : *reached;
    if (w == &none) {
        fr_ckpt_say(d->c, FR_PROBLEM_EXTRA, false, d->file, k->at, k->name,
                    "says where '%.*s' lies, but not what it is", FR_SHOWN(k->name));
    }
    char magic[4] = "";
    if (!w->is_tensor && w != &none &&
        (k->length < 4 || fr_blob_read(b, k->offset, magic, 4, NULL) != 0 ||
         memcmp(magic, "PK\3\4", 4) != 0)) {
        return; /* bytes of the user's own, not of torch.save() */
    }
    fr_torch_read(d->c, k->file, b, k->offset, k->length, k->name);
    fit(d, k, w, first);
}

/* What follows the last chunk of a file; chunks that were passed over may lie there. */
static void check_rest(struct dcp *d, uint32_t file, const struct fr_blob *b, uint64_t reached)
{
    if (b->fd >= 0 && reached < b->size && d->transformed == 0) {
        fr_ckpt_say(d->c, FR_PROBLEM_HOLE, false, file, reached, FR_SV_NONE,
                    "the bytes %llu to %llu belong to no chunk", (unsigned long long)reached,
                    (unsigned long long)b->size);
    }
}

static void read_blobs(struct dcp *d)
{
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err err = {0};
    uint32_t open = FR_NO_FILE;
    uint64_t reached = 0;
    if (d->chunks.n > 0) {
        qsort(d->chunks.v, d->chunks.n, sizeof d->chunks.v[0], by_place);
    }
    for (uint32_t i = 0; i < d->chunks.n && !d->c->nomem && !d->c->full_tensors; i++) {
        const struct chunk *k = &d->chunks.v[i];
        if (k->file == FR_NO_FILE) {
            break; /* sorted: the rest is missing as well */
        }
        if (k->file != open) {
            check_rest(d, open, &b, reached);
            fr_blob_release(&b);
            open = k->file;
            reached = 0;
            int rc = fr_blob_open(&b, d->c->files.v[k->file].path.p, &err);
            if (rc != 0) {
                fr_ckpt_say_err(d->c, FR_PROBLEM_UNREADABLE, true, k->file, rc, &err);
            }
        }
        if (b.fd >= 0) {
            read_blob(d, k, &b, &reached);
        }
    }
    check_rest(d, open, &b, reached);
}

static void check_whole(struct dcp *d)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < d->wholes.n && d->transformed == 0 && d->missing.n == 0; i++) {
        const struct whole *w = &d->wholes.v[i];
        if (w->is_tensor && w->met != w->elements && told++ < 20) {
            fr_sv name = fr_map_key(&d->names, i);
            fr_ckpt_say(d->c, w->met < w->elements ? FR_PROBLEM_MISSING : FR_PROBLEM_OVERLAP, true,
                        d->file, FR_NO_POS, name, "'%.*s' has %llu elements, its chunks hold %llu",
                        FR_SHOWN(name), (unsigned long long)w->elements,
                        (unsigned long long)w->met);
        }
    }
    if (d->transformed > 0) {
        fr_ckpt_say(d->c, FR_PROBLEM_DTYPE, false, d->file, FR_NO_POS, FR_SV_NONE,
                    "chunks that are transformed (compressed or encrypted), whose elements are not "
                    "looked at: %u",
                    d->transformed);
    }
}

static void read_metadata(struct fr_ckpt *c, uint32_t step, uint32_t file)
{
    struct dcp d = {.c = c, .file = file, .step = step, .scratch = FR_ARENA_INIT(0)};
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err err = {0};
    char *text = NULL;
    int rc = fr_blob_open(&b, c->files.v[file].path.p, &err);
    if (rc == 0 && b.size > c->limits.header_bytes) {
        rc = fr_err_set(&err, FR_LIMIT, "a pickle of %llu bytes; at most %llu are read",
                        (unsigned long long)b.size, (unsigned long long)c->limits.header_bytes);
    }
    rc = rc == 0 ? fr_blob_load(&b, 0, (size_t)b.size, &text, &err) : rc;
    rc = rc == 0 ? fr_pickle_read(text, (size_t)b.size, &d.k, &err) : rc;
    if (rc != 0) {
        uint8_t kind = rc == -FR_ARG       ? FR_PROBLEM_REFUSED
                       : rc == -FR_LIMIT   ? FR_PROBLEM_LIMIT
                       : rc == -FR_IO      ? FR_PROBLEM_UNREADABLE
                       : err.pos >= b.size ? FR_PROBLEM_TRUNCATED
                                           : FR_PROBLEM_HEADER;
        fr_ckpt_say_err(c, kind, true, file, rc, &err);
        fr_free(text);
        fr_dcp_walk_folder(c, step, fr_path_folder(c->files.v[file].path));
        return;
    }
    fr_map_init(&d.names, &d.scratch);
    fr_map_init(&d.missing, &d.scratch);
    (void)fr_torch_globals(c, file, &d.k, 0, FR_PROBLEM_REFUSED);
    each_pair(&d, "state_dict_metadata", read_whole);
    each_pair(&d, "storage_data", read_chunk);
    read_blobs(&d);
    if (!c->nomem && !c->full_tensors) {
        check_whole(&d);
    }
    fr_vec_free(d.wholes.v);
    fr_vec_free(d.chunks.v);
    fr_arena_release(&d.scratch);
    fr_pickle_release(&d.k);
    fr_free(text);
}

static bool is_named(const struct fr_ckpt *c, uint32_t file, fr_sv name)
{
    return fr_sv_eq(fr_path_name(c->files.v[file].path), name);
}

static void check(struct fr_ckpt *c, uint32_t step)
{
    fr_sv walked = FR_SV("(none)"); /* files are in order: those of a folder follow one another */
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        fr_sv path = c->files.v[i].path, folder = fr_path_folder(path);
        if (is_named(c, i, FR_SV(".metadata"))) {
            c->steps.v[step].layout = FR_SV("dcp");
            c->files.v[i].format = FR_SV("index");
            read_metadata(c, step, i);
        } else if (fr_sv_eq(c->files.v[i].format, FR_SV("distcp")) &&
                   fr_ckpt_sibling(c, path, FR_SV(".metadata")) == FR_NO_FILE) {
            bool first = !fr_sv_eq(walked, folder);
            walked = folder;
            c->steps.v[step].layout = FR_SV("dcp");
            if (first) {
                fr_ckpt_say_step(c, FR_PROBLEM_UNFINISHED, true, step,
                                 folder.n > 0 ? folder : FR_SV("."),
                                 "no .metadata, which is written last: the save was interrupted; "
                                 "the blobs were read without their names");
                fr_dcp_walk_folder(c, step, folder);
            }
        }
    }
}

const struct fr_ckpt_layout fr_ckpt_layout_dcp = {
    .name = "dcp", .summary = "torch.distributed.checkpoint folders", .check = check,
};
