/* SPDX-License-Identifier: Apache-2.0 */
/* Paths to units. Files are told apart by device and inode: a run's folder is often full of links ("latest.log"), and the same
 * log read twice would count every event twice. */
#include "base/alloc.h"
#include "read/units.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

const struct fr_input_limits fr_input_default_limits = {
    .max_units = 200000,
    .max_members = 100000,
    .max_dir_depth = 32,
    .max_nesting = 1,
    .max_ratio = 2000,
    .max_unpacked = (uint64_t)1 << 40,
    .buffer = 256 << 10,
    .edge = 64 << 10,
};

int fr_input_new(const struct fr_input_limits *limits, struct fr_input **ret, struct fr_err *err)
{
    struct fr_input *in = fr_calloc(1, sizeof *in);
    if (in == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    in->limits = limits != NULL ? *limits : fr_input_default_limits;
    in->limits.max_ratio = in->limits.max_ratio > 0 ? in->limits.max_ratio : 1;
    in->limits.max_nesting = in->limits.max_nesting < FR_NESTING_MAX ? in->limits.max_nesting : FR_NESTING_MAX;
    in->sorted = true;
    *ret = in;
    return 0;
}

void fr_input_free(struct fr_input **in)
{
    if (*in != NULL) {
        fr_vec_free((*in)->items.v);
        fr_free((*in)->seen);
        fr_arena_release(&(*in)->arena);
        fr_free(*in);
        *in = NULL;
    }
}

void fr_input_skip(struct fr_input *in, fr_sv source, fr_sv why)
{
    if (in->n_skips++ < FR_SKIPS_EACH && in->skip != NULL) {
        in->skip(in->ctx, source, why);
    }
}

/* ---- the same file under another name */

static uint32_t slot_of(const struct fr_input *in, uint64_t dev, uint64_t ino)
{
    uint64_t h = (ino ^ dev << 32 ^ dev >> 32) * 0x9E3779B97F4A7C15u;
    uint32_t i = (uint32_t)(h >> 32) & (in->seen_cap - 1);
    while (in->seen[i] != 0) {
        const struct fr_item *it = &in->items.v[in->seen[i] - 1];
        if (it->dev == dev && it->ino == ino) {
            break;
        }
        i = (i + 1) & (in->seen_cap - 1);
    }
    return i;
}

static bool grow_seen(struct fr_input *in)
{
    uint32_t cap = in->seen_cap == 0 ? 64 : in->seen_cap * 2;
    uint32_t *old = in->seen;
    uint32_t *fresh = fr_calloc(cap, sizeof *fresh);
    if (fresh == NULL) {
        return false;
    }
    in->seen = fresh;
    in->seen_cap = cap;
    for (uint32_t i = 0; i < in->items.n; i++) {
        if (!in->items.v[i].is_stream) {
            in->seen[slot_of(in, in->items.v[i].dev, in->items.v[i].ino)] = i + 1;
        }
    }
    fr_free(old);
    return true;
}

bool fr_input_full(const struct fr_input *in)
{
    return in->items.n >= in->limits.max_units;
}

/* One of two names stays, whatever order a folder lists them in: a real name before a link, then the lesser one. */
static int add_again(struct fr_input *in, struct fr_item *old, fr_sv path, enum fr_item_kind kind, struct fr_err *err)
{
    const fr_sv why = FR_SV("the same file as another one that is read");
    bool is_link = kind == FR_ITEM_LINK;
    if (fr_sv_eq(old->unit.path, path)) {
        return 0;
    }
    if (old->is_link == is_link ? fr_sv_cmp_natural(path, old->unit.path) > 0 : is_link) {
        fr_input_skip(in, path, why);
        return 0;
    }
    fr_sv copy = fr_arena_dup(&in->arena, path);
    if (copy.p == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    fr_input_skip(in, old->unit.path, why);
    old->unit.path = copy;
    old->is_link = is_link;
    in->sorted = false;
    return 0;
}

int fr_input_add_file(struct fr_input *in, fr_sv path, const struct stat *st, enum fr_item_kind kind, struct fr_err *err)
{
    bool is_stream = kind == FR_ITEM_STREAM;
    uint32_t slot = 0;
    if (fr_input_full(in)) {
        if (!in->over_limit) {
            char why[96];
            int n = snprintf(why, sizeof why, "more than %u files: this one and all after it are left unread", in->limits.max_units);
            fr_input_skip(in, path, (fr_sv){why, (size_t)n});
        }
        in->over_limit = true;
        return 0;
    }
    if (!is_stream) {
        if ((in->items.n + 1) * 2 > in->seen_cap && !grow_seen(in)) {
            return fr_err_set(err, FR_NOMEM, "out of memory");
        }
        slot = slot_of(in, (uint64_t)st->st_dev, (uint64_t)st->st_ino);
        if (in->seen[slot] != 0) {
            return add_again(in, &in->items.v[in->seen[slot] - 1], path, kind, err);
        }
    }
    fr_sv copy = fr_arena_dup(&in->arena, path);
    struct fr_item *it = copy.p != NULL ? FR_PUSH(&in->items) : NULL;
    if (it == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    *it = (struct fr_item){.unit = {.path = copy, .mtime_ns = FR_TIME_NONE}, .is_stream = is_stream, .is_link = kind == FR_ITEM_LINK};
    if (!is_stream) {
        it->unit.size = (uint64_t)st->st_size;
        it->unit.mtime_ns = (int64_t)st->st_mtim.tv_sec * FR_NS_PER_S + st->st_mtim.tv_nsec;
        it->dev = (uint64_t)st->st_dev;
        it->ino = (uint64_t)st->st_ino;
        in->seen[slot] = in->items.n;
    }
    in->sorted = false;
    return 0;
}

/* ---- one argument */

static int add_existing(struct fr_input *in, const char *path, const struct stat *st, struct fr_err *err)
{
    if (S_ISDIR(st->st_mode)) {
        return fr_input_walk(in, path, err);
    }
    if (S_ISREG(st->st_mode) || S_ISFIFO(st->st_mode)) {
        return fr_input_add_file(in, fr_sv_z(path), st, S_ISFIFO(st->st_mode) ? FR_ITEM_STREAM : FR_ITEM_FILE, err);
    }
    fr_input_skip(in, fr_sv_z(path), S_ISSOCK(st->st_mode) ? FR_SV("a socket, not a file") : FR_SV("a device, not a file"));
    return 0;
}

static int add_glob(struct fr_input *in, const char *pattern, struct fr_err *err)
{
    glob_t g = {0};
    int rc = 0;
    if (glob(pattern, GLOB_NOSORT | GLOB_BRACE, NULL, &g) != 0 || g.gl_pathc == 0) {
        fr_input_skip(in, fr_sv_z(pattern), FR_SV("no file matches"));
    }
    for (size_t i = 0; i < g.gl_pathc && rc == 0; i++) {
        struct stat st;
        if (stat(g.gl_pathv[i], &st) == 0 && !S_ISFIFO(st.st_mode)) { /* a matched FIFO was not asked for */
            rc = add_existing(in, g.gl_pathv[i], &st, err);
        } else {
            fr_input_skip(in, fr_sv_z(g.gl_pathv[i]), FR_SV("not a readable file"));
        }
    }
    globfree(&g);
    return rc;
}

static int add_path(struct fr_input *in, const char *path, struct fr_err *err)
{
    struct stat st;
    char why[160];
    if (strcmp(path, "-") == 0) {
        for (uint32_t i = 0; i < in->items.n; i++) {
            if (in->items.v[i].is_stream && fr_sv_eq(in->items.v[i].unit.path, FR_SV("-"))) {
                return 0; /* there is one stdin */
            }
        }
        return fr_input_add_file(in, FR_SV("-"), NULL, FR_ITEM_STREAM, err);
    }
    if (stat(path, &st) == 0) {
        return add_existing(in, path, &st, err);
    }
    int e = errno;
    if (e == ENOENT && strpbrk(path, "*?[{") != NULL) {
        return add_glob(in, path, err);
    }
    int n = snprintf(why, sizeof why, "cannot be read: %s", strerror(e));
    fr_input_skip(in, fr_sv_z(path), (fr_sv){why, (size_t)n});
    return 0;
}

int fr_input_add(struct fr_input *in, const char *path, fr_skip_fn skip, void *ctx, struct fr_err *err)
{
    in->skip = skip;
    in->ctx = ctx;
    in->n_skips = 0;
    int rc = add_path(in, path, err);
    if (in->n_skips > FR_SKIPS_EACH && skip != NULL) {
        char why[64];
        int n = snprintf(why, sizeof why, "%u more files that are no logs or cannot be read", in->n_skips - FR_SKIPS_EACH);
        skip(ctx, fr_sv_z(path), (fr_sv){why, (size_t)n});
    }
    in->skip = NULL;
    return rc;
}

/* ---- what was added */

static int by_name(const void *a, const void *b)
{
    return fr_sv_cmp_natural(((const struct fr_item *)a)->unit.path, ((const struct fr_item *)b)->unit.path);
}

uint32_t fr_input_count(struct fr_input *in)
{
    if (!in->sorted) {
        qsort(in->items.v, in->items.n, sizeof in->items.v[0], by_name);
        in->sorted = true;
        if (in->seen != NULL) { /* it holds indexes: fill it anew */
            memset(in->seen, 0, in->seen_cap * sizeof in->seen[0]);
        }
        for (uint32_t i = 0; i < in->items.n; i++) {
            if (!in->items.v[i].is_stream) {
                in->seen[slot_of(in, in->items.v[i].dev, in->items.v[i].ino)] = i + 1;
            }
        }
    }
    return in->items.n;
}

const struct fr_unit *fr_input_unit(const struct fr_input *in, uint32_t i)
{
    return &in->items.v[i].unit;
}
