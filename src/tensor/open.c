/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to files to steps; each file by its format; each step by its layouts; then everything in
 * order, so that the same input gives the same checkpoint. */
#include "base/alloc.h"
#include "tensor/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define FR_X(name) extern const struct fr_ckpt_format fr_ckpt_format_##name;
#define X FR_X
#include "tensor/formats.def"
#undef FR_X
#define FR_X(name) extern const struct fr_ckpt_layout fr_ckpt_layout_##name;
#include "tensor/layouts.def"
#undef FR_X
#undef X

static const struct fr_ckpt_format *const formats[] = {
#define X(name) &fr_ckpt_format_##name,
#include "tensor/formats.def"
#undef X
};
static const struct fr_ckpt_layout *const layouts[] = {
#define X(name) &fr_ckpt_layout_##name,
#include "tensor/layouts.def"
#undef X
};

static const struct fr_ckpt_limits default_limits = {
    .files = 100000, .tensors = 1000000, .depth = 16, .problems = 10000, .header_bytes = 100000000,
};

static bool by_kind(fr_sv name, fr_sv *format)
{
    static const struct { fr_sv name, format;
    } plain[] = {
        {FR_SV("config.json"), FR_SV("config")}, {FR_SV(".index.json"), FR_SV("index")},
        {FR_SV(".json"), FR_SV("other")},        {FR_SV("latest"), FR_SV("other")},
        {FR_SV(".txt"), FR_SV("other")},         {FR_SV("UNFINISHED"), FR_SV("other")},
        {FR_SV("INCOMPLETE"), FR_SV("other")},   {FR_SV(".zarray"), FR_SV("other")},
        {FR_SV(".metadata"), FR_SV("other")},
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (fr_sv_ends(name, plain[i].name)) {
            *format = plain[i].format;
            return true;
        }
    }
    return false;
}

static void unknown(struct fr_ckpt *c, uint32_t file, fr_sv name, bool given)
{
    static const fr_sv foreign[] = {FR_SV(".gguf"), FR_SV(".h5"), FR_SV(".msgpack"),
                                    FR_SV(".onnx")};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        if (fr_sv_ends(name, foreign[i])) {
            fr_ckpt_say(c, FR_PROBLEM_FORMAT, given, file, FR_NO_POS, FR_SV_NONE,
                        "%.*s files are not read", FR_SV_ARG(foreign[i]));
            return;
        }
    }
    if (given) {
        fr_ckpt_say(
            c, FR_PROBLEM_FORMAT, true, file, 0, FR_SV_NONE,
            "is in no checkpoint format that is read, neither by its first bytes nor by its name");
    }
}

/* What lies where weights should: a pointer nobody followed, the page of a failed download. */
static bool stands_in(struct fr_ckpt *c, uint32_t file, fr_sv head)
{
    static const struct { fr_sv begins; const char *what;
    } rows[] = {
        {FR_SV("version https://git-lfs"),
         "a Git LFS pointer, not the file it stands for: fetch it with 'git lfs pull'"},
        {FR_SV("<!doctype html"), "an HTML page, as a failed download leaves: download it again"},
        {FR_SV("<html"), "an HTML page, as a failed download leaves: download it again"},
    };
    if (fr_sv_starts(head, FR_SV("PK\3\4")) &&
        fr_sv_eq(c->files.v[file].format, FR_SV("safetensors"))) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, 0, FR_SV_NONE,
                    "is a PyTorch file (a zip) by its first bytes, under a name of safetensors: "
                    "rename it, or save it with safetensors");
        return true;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (fr_sv_find_ci(head, rows[i].begins) == 0) {
            fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, 0, FR_SV_NONE, "is %s", rows[i].what);
            return true;
        }
    }
    return false;
}

static void leftover(struct fr_ckpt *c, uint32_t file, fr_sv name)
{
    static const fr_sv ends[] = {FR_SV(".tmp"), FR_SV(".temp"), FR_SV(".incomplete"),
                                 FR_SV(".part"), FR_SV(".partial")};
    bool replaced = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (fr_sv_ends(name, ends[i])) {
            replaced = fr_ckpt_sibling(c, c->files.v[file].path,
                                       fr_sv_head(name, name.n - ends[i].n)) != FR_NO_FILE;
        }
    }
    fr_ckpt_say(c, FR_PROBLEM_LEFTOVER, !replaced, file, FR_NO_POS, FR_SV_NONE,
                replaced ? "a temporary file that an interrupted save left behind; the file it was "
                           "to replace is there"
                         : "a temporary file that an interrupted save left behind; the file it was "
                           "to become is not there");
}

static void read_file(struct fr_ckpt *c, uint32_t file, bool given)
{
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err err = {0};
    char head[64];
    fr_sv name = fr_path_name(c->files.v[file].path), format;
    int rc = fr_blob_open(&b, c->files.v[file].path.p, &err);
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return;
    }
    c->files.v[file].size = b.size;
    c->files.v[file].mtime_ns = b.mtime_ns;
    if (fr_is_leftover(name) && !given) {
        leftover(c, file, name);
        return;
    }
    size_t n = b.size < sizeof head ? (size_t)b.size : sizeof head;
    rc = fr_blob_read(&b, 0, head, n, &err);
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return;
    }
    if (by_kind(name, &format)) {
        c->files.v[file].format = format;
        return;
    }
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (formats[i]->sniff(name, (fr_sv){head, n})) {
            c->files.v[file].format = fr_sv_z(formats[i]->name);
            if (!stands_in(c, file, (fr_sv){head, n})) {
                formats[i]->read(c, file, &b);
            }
            return;
        }
    }
    unknown(c, file, name, given);
}

/* A file that stands for the folder it is in. */
static bool is_index(const char *path)
{
    fr_sv name = fr_path_name(fr_sv_z(path));
    return fr_sv_ends(name, FR_SV(".index.json")) || fr_sv_eq(name, FR_SV(".metadata")) ||
           fr_sv_eq(name, FR_SV("latest"));
}

static int list_paths(struct fr_ckpt *c, const char *const *paths, uint32_t n,
                      struct fr_found_list *found, struct fr_err *err)
{
    uint32_t readable = 0;
    for (uint32_t i = 0; i < n && !c->nomem; i++) {
        struct stat st;
        if (stat(paths[i], &st) != 0) {
            int e = errno;
            fr_ckpt_say_step(c, FR_PROBLEM_UNREADABLE, true, UINT32_MAX, fr_sv_z(paths[i]),
                             "cannot be opened: %s", strerror(e));
            (void)fr_err_set(err, FR_ABSENT, "cannot open '%s': %s", paths[i], strerror(e));
            continue;
        }
        readable++;
        if (S_ISDIR(st.st_mode) || is_index(paths[i])) {
            fr_sv folder = S_ISDIR(st.st_mode) ? fr_sv_z(paths[i])
                                               : fr_path_folder(fr_sv_z(paths[i]));
            fr_sv path = fr_ckpt_dup(c, folder.n > 0 ? folder : FR_SV("."));
            if (path.p != NULL) {
                fr_folder_list(c, path.p, found);
            }
            continue;
        }
        struct fr_found *f = FR_PUSH(&found->list);
        if (f == NULL) {
            c->nomem = true;
            break;
        }
        f->path = fr_ckpt_dup(c, fr_sv_z(paths[i]));
        f->root = (uint32_t)f->path.n;
    }
    if (readable == 0 && n == 0) {
        return fr_err_set(err, FR_ABSENT, "no path to check was given");
    }
    return readable == 0 && !c->nomem ? -FR_ABSENT : 0;
}

static void finish_steps(struct fr_ckpt *c)
{
    for (uint32_t i = 0; i < c->steps.n; i++) {
        struct fr_ckpt_step *s = &c->steps.v[i];
        if (fr_is_leftover(fr_path_name(s->path)) && fr_ckpt_find(c, s->path) == FR_NO_FILE) {
            fr_ckpt_say_step(c, FR_PROBLEM_LEFTOVER, true, i, s->path,
                             "a temporary folder that an interrupted save left behind");
        }
    }
    for (uint32_t i = 0; i < c->files.n; i++) {
        struct fr_ckpt_file *f = &c->files.v[i];
        struct fr_ckpt_step *s = &c->steps.v[f->step_index];
        s->complete = s->complete && f->complete;
        if (fr_sv_eq(f->format, FR_SV("config")) && fr_sv_starts(f->path, s->path) &&
            (s->config.n == 0 || f->path.n < s->config.n)) {
            s->config = f->path;
        }
        if (fr_sv_eq(s->layout, FR_SV("unknown")) && !fr_sv_eq(f->format, FR_SV("config")) &&
            !fr_sv_eq(f->format, FR_SV("other"))) {
            s->layout = fr_sv_starts(f->format, FR_SV("np")) ? FR_SV("numpy") : f->format;
        }
    }
    for (uint32_t i = 0; i < c->steps.n;
         i++) { /* a config.json around the step, or beside the file that is one */
        struct fr_ckpt_step *s = &c->steps.v[i];
        uint32_t config = s->config.n > 0 ? FR_NO_FILE
                                          : fr_ckpt_sibling(c, s->path, FR_SV("config.json"));
        s->config = config != FR_NO_FILE ? c->files.v[config].path : s->config;
    }
}

/* ---- order ---- */

/* qsort has no context; sorting is short and the table is of this thread only. */
static _Thread_local const struct fr_ckpt *sorted;

static int step_order(const void *a, const void *b)
{
    const struct fr_ckpt_step *x = &sorted->steps.v[*(const uint32_t *)a],
                              *y = &sorted->steps.v[*(const uint32_t *)b];
    if (x->step != y->step) {
        return x->step < y->step ? -1 : 1;
    }
    int d = fr_sv_cmp_natural(x->path, y->path);
    return d != 0 ? d : fr_sv_cmp(x->path, y->path);
}

static int tensor_order(const void *a, const void *b)
{
    const struct fr_tensor *x = a, *y = b;
    uint32_t s = sorted->files.v[x->file].step_index, t = sorted->files.v[y->file].step_index;
    int d = s != t ? (s < t ? -1 : 1) : fr_sv_cmp_natural(x->name, y->name);
    d = d != 0 ? d : fr_sv_cmp(x->name, y->name);
    d = d != 0 ? d : (x->rank > y->rank) - (x->rank < y->rank);
    for (int i = 0; d == 0 && i < FR_DIMS_MAX; i++) {
        d = (x->chunk[i] > y->chunk[i]) - (x->chunk[i] < y->chunk[i]);
    }
    d = d != 0 ? d : (x->file > y->file) - (x->file < y->file);
    return d != 0 ? d : (x->offset > y->offset) - (x->offset < y->offset);
}

static int problem_order(const void *a, const void *b)
{
    const struct fr_problem *x = a, *y = b;
    if (x->file != y->file) {
        return x->file < y->file ? -1 : 1;
    }
    if (x->offset != y->offset) {
        return x->offset < y->offset ? -1 : 1;
    }
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : fr_sv_cmp(x->text, y->text);
}

static void sort_steps(struct fr_ckpt *c)
{
    uint32_t n = c->steps.n, *order = FR_NEW_N(c->arena, uint32_t, 2 * (size_t)n),
             *place = order + n;
    struct fr_ckpt_step *steps = FR_NEW_N(c->arena, struct fr_ckpt_step, n);
    if (order == NULL || steps == NULL) {
        c->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    if (n > 0) {
        qsort(order, n, sizeof order[0], step_order);
    }
    for (uint32_t i = 0; i < n; i++) {
        place[order[i]] = i;
        steps[i] = c->steps.v[order[i]];
    }
    if (n > 0) {
        memcpy(c->steps.v, steps, n * sizeof steps[0]);
    }
    for (uint32_t i = 0; i < c->files.n; i++) {
        c->files.v[i].step_index = place[c->files.v[i].step_index];
    }
}

static void *move(struct fr_ckpt *c, const void *v, uint32_t n, size_t size)
{
    void *to = n == 0 ? NULL : fr_arena_alloc(c->arena, n * size);
    if (to != NULL) {
        memcpy(to, v, n * size);
    }
    c->nomem = c->nomem || (n > 0 && to == NULL);
    return to;
}

static void seal(struct fr_ckpt *c, struct fr_checkpoint *ret)
{
    sorted = c;
    sort_steps(c);
    if (c->tensors.n > 0 && !c->nomem) {
        qsort(c->tensors.v, c->tensors.n, sizeof c->tensors.v[0], tensor_order);
    }
    if (c->problems.n > 0) {
        qsort(c->problems.v, c->problems.n, sizeof c->problems.v[0], problem_order);
    }
    sorted = NULL;
    *ret = (struct fr_checkpoint){.files_n = c->files.n,
                                  .steps_n = c->steps.n,
                                  .tensors_n = c->tensors.n,
                                  .members_n = c->members.n,
                                  .sums_n = c->sums.n,
                                  .problems_n = c->problems.n};
    ret->files = move(c, c->files.v, c->files.n, sizeof c->files.v[0]);
    ret->steps = move(c, c->steps.v, c->steps.n, sizeof c->steps.v[0]);
    ret->tensors = move(c, c->tensors.v, c->tensors.n, sizeof c->tensors.v[0]);
    ret->members = move(c, c->members.v, c->members.n, sizeof c->members.v[0]);
    ret->sums = move(c, c->sums.v, c->sums.n, sizeof c->sums.v[0]);
    ret->problems = move(c, c->problems.v, c->problems.n, sizeof c->problems.v[0]);
}

static void tell_limits(struct fr_ckpt *c)
{
    const struct { bool full; const char *what; uint32_t most;
    } limits[] = {
        {c->full_files, "files", c->limits.files},
        {c->full_tensors, "tensors", c->limits.tensors},
        {c->full_problems, "problems", c->limits.problems},
    };
    c->limits.problems += 4; /* there is always room to say so */
    if (c->full_work) {
        fr_ckpt_say(c, FR_PROBLEM_LIMIT, true, FR_NO_FILE, FR_NO_POS, FR_SV_NONE,
                    "comparing names took too long: some files and tensors were not compared");
    }
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limits[i].full) {
            fr_ckpt_say(c, FR_PROBLEM_LIMIT, true, FR_NO_FILE, FR_NO_POS, FR_SV_NONE,
                        "more than %u %s: the rest was not looked at", limits[i].most,
                        limits[i].what);
        }
    }
}

static void defaults(struct fr_ckpt_limits *l)
{
    l->files = l->files != 0 ? l->files : default_limits.files;
    l->tensors = l->tensors != 0 ? l->tensors : default_limits.tensors;
    l->depth = l->depth != 0 ? l->depth : default_limits.depth;
    l->problems = l->problems != 0 ? l->problems : default_limits.problems;
    l->header_bytes = l->header_bytes != 0 ? l->header_bytes : default_limits.header_bytes;
}

static void read_all(struct fr_ckpt *c, const struct fr_found_list *found)
{
    fr_steps_make(c, found);
    for (uint32_t i = 0; i < c->files.n && !c->nomem; i++) {
        read_file(c, i, c->notes.v[i].given);
    }
    for (uint32_t s = 0; s < c->steps.n && !c->nomem; s++) {
        for (size_t i = 0; i < sizeof layouts / sizeof layouts[0] && !c->nomem; i++) {
            layouts[i]->check(c, s);
        }
    }
    if (!c->nomem) {
        finish_steps(c);
        tell_limits(c);
    }
}

int fr_checkpoint_open(const char *const *paths, uint32_t n, const struct fr_ckpt_limits *limits,
                       struct fr_arena *arena, struct fr_checkpoint *ret, struct fr_err *err)
{
    struct fr_ckpt c = {.arena = arena};
    struct fr_found_list found = {0};
    struct fr_checkpoint made = {0};
    c.limits = limits != NULL ? *limits : default_limits;
    defaults(&c.limits);
    fr_map_init(&c.by_path, arena);
    fr_map_init(&c.by_step, arena);
    fr_map_init(&c.by_folder, arena);
    int rc = list_paths(&c, paths, n, &found, err);
    if (rc == 0 && !c.nomem) {
        read_all(&c, &found);
        if (!c.nomem) {
            seal(&c, &made);
        }
    }
    if (c.nomem) {
        rc = fr_err_set(err, FR_NOMEM, "out of memory");
    }
    fr_vec_free(c.files.v);
    fr_vec_free(c.notes.v);
    fr_vec_free(c.steps.v);
    fr_vec_free(c.tensors.v);
    fr_vec_free(c.members.v);
    fr_vec_free(c.sums.v);
    fr_vec_free(c.problems.v);
    fr_vec_free(found.list.v);
    if (rc == 0) {
        *ret = made;
    }
    return rc;
}
