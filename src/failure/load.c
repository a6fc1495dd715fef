/* SPDX-License-Identifier: Apache-2.0 */
/* load: everything is sorted by id, so a library does not depend on the order a file system lists
 * names in. */
#include "failure/load.h"

#include "base/buf.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 4

typedef FR_VEC(struct fr_parsed) parsed_list;

struct walk {
    struct fr_arena *arena;
    struct fr_complain *complain;
    struct fr_err *err;
    parsed_list found;
    uint32_t files;
};

/* The whole file, at most FR_FAILURE_FILE_MAX + 1 bytes (one more than is allowed, so that parse
 * complains). */
static int slurp(int fd, struct fr_arena *arena, fr_sv *ret)
{
    const size_t cap = FR_FAILURE_FILE_MAX + 1;
    FR_AUTO(fr_buf) text = FR_BUF_INIT(cap + 1);
    char block[16384];
    for (;;) {
        const ssize_t n = read(fd, block, sizeof block);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return -FR_IO;
        }
        if (n == 0) {
            break;
        }
        const size_t room = cap - text.n;
        fr_buf_add(&text, (fr_sv){block, (size_t)n < room ? (size_t)n : room});
        if (text.n == cap) {
            break;
        }
    }
    *ret = fr_arena_dup(arena, fr_buf_sv(&text));
    return fr_buf_ok(&text) && ret->p != NULL ? 0 : -FR_NOMEM;
}

static int read_file(struct walk *w, int dirfd, const char *name, const char *shown)
{
    const int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    fr_sv text = FR_SV_NONE;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        fr_complain(w->complain, FR_COMPLAINT_ERROR, shown, 0, "cannot be read as a file");
        if (fd >= 0) {
            close(fd);
        }
        return 0;
    }
    int rc = slurp(fd, w->arena, &text);
    close(fd);
    if (rc == -FR_IO) {
        fr_complain(w->complain, FR_COMPLAINT_ERROR, shown, 0, "read error");
        return 0;
    }
    struct fr_parsed one;
    if (rc == 0) {
        rc = fr_failure_parse(text, shown, w->arena, w->complain, &one);
    }
    if (rc == -FR_NOMEM) {
        return fr_err_set(w->err, FR_NOMEM, "out of memory while reading '%s'", shown);
    }
    if (rc == 0) {
        struct fr_parsed *slot = FR_PUSH(&w->found);
        if (slot == NULL) {
            return fr_err_set(w->err, FR_NOMEM, "out of memory while reading '%s'", shown);
        }
        *slot = one;
    }
    return 0;
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static int walk_dir(struct walk *w, int parent, const char *name, const char *shown, int depth)
{
    struct dirent **list = NULL;
    const int fd =
        openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0));
    const int n = fd < 0 ? -1 : scandirat(fd, ".", &list, visible, alphasort);
    int rc = 0;
    if (n < 0) {
        rc = fr_err_set(w->err, FR_IO, "cannot read folder '%s': %s", shown, strerror(errno));
    }
    for (int i = 0; i < n && rc == 0; i++) {
        struct stat st;
        const char *const entry = list[i]->d_name;
        const fr_sv path = fr_arena_printf(w->arena, "%s/%s", shown, entry);
        if (path.p == NULL) {
            rc = fr_err_set(w->err, FR_NOMEM, "out of memory");
        } else if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW) != 0) {
            continue; /* vanished meanwhile */
        } else if (S_ISDIR(st.st_mode)) {
            if (depth < DEPTH_MAX) {
                rc = walk_dir(w, fd, entry, path.p, depth + 1);
            }
        } else if (fr_sv_ends(fr_sv_z(entry), FR_SV(".md")) && strcmp(entry, "README.md") != 0) {
            rc = ++w->files > FR_FAILURE_FILES_MAX
                     ? fr_err_set(w->err, FR_LIMIT, "more than %d failure files in '%s'",
                                  FR_FAILURE_FILES_MAX, shown)
                     : read_file(w, fd, entry, path.p);
        }
    }
    for (int i = 0; i < n; i++) {
        free(list[i]); /* scandir's own memory */
    }
    free(list);
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

static int by_id(const void *a, const void *b)
{
    const struct fr_parsed *x = a, *y = b;
    const int c = strcmp(x->failure.id, y->failure.id);
    return c != 0 ? c : strcmp(x->failure.path, y->failure.path);
}

/* Numbers failures and signals; v is sorted by id and has no duplicates. */
static int assemble(const struct fr_parsed *v, uint32_t n, struct fr_arena *arena,
                    struct fr_library *ret, struct fr_err *err)
{
    size_t n_signals = 0;
    for (uint32_t i = 0; i < n; i++) {
        n_signals += v[i].failure.n_signals;
    }
    if (n_signals >= UINT16_MAX || n >= UINT16_MAX) {
        return fr_err_set(err, FR_LIMIT, "too many signals in the failure library");
    }
    struct fr_failure *failures = FR_NEW_N(arena, struct fr_failure, n + 1);
    struct fr_signal *signals = FR_NEW_N(arena, struct fr_signal, n_signals + 1);
    if (failures == NULL || signals == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    uint16_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        failures[i] = v[i].failure;
        failures[i].first_signal = at;
        for (uint16_t k = 0; k < failures[i].n_signals; k++, at++) {
            signals[at] = v[i].signals[k];
            signals[at].failure = (uint16_t)i;
        }
    }
    *ret = (struct fr_library){failures, n, signals, (uint32_t)n_signals};
    return 0;
}

int fr_library_read(const char *dir, const char *shown, struct fr_arena *arena,
                    struct fr_complain *complain, struct fr_library *ret, struct fr_err *err)
{
    struct fr_complain silent = {0};
    struct walk w = {.arena = arena, .complain = complain != NULL ? complain : &silent, .err = err};
    int rc = walk_dir(&w, AT_FDCWD, dir, shown, 0);
    if (rc == 0) {
        uint32_t n = 0;
        if (w.found.n > 1) {
            qsort(w.found.v, w.found.n, sizeof w.found.v[0], by_id);
        }
        for (uint32_t i = 0; i < w.found.n; i++) {
            const struct fr_failure *f = &w.found.v[i].failure;
            if (n > 0 && strcmp(w.found.v[n - 1].failure.id, f->id) == 0) {
                fr_complain(w.complain, FR_COMPLAINT_ERROR, f->path, 0, "the id '%s' is also in %s",
                            f->id, w.found.v[n - 1].failure.path);
                continue;
            }
            w.found.v[n++] = w.found.v[i];
        }
        rc = assemble(w.found.v, n, arena, ret, err);
    }
    fr_vec_free(w.found.v);
    return rc;
}

int fr_library_merge(const struct fr_library *a, const struct fr_library *b, struct fr_arena *arena,
                     struct fr_library *ret, struct fr_err *err)
{
    parsed_list all = {0};
    uint32_t i = 0, k = 0;
    int rc = 0;
    while (rc == 0 && (i < a->n_failures || k < b->n_failures)) {
        const int c = i >= a->n_failures   ? 1
                      : k >= b->n_failures ? -1
                                           : strcmp(a->failures[i].id, b->failures[k].id);
        const struct fr_library *from = c < 0 ? a : b;
        const struct fr_failure *f = c < 0 ? &a->failures[i] : &b->failures[k];
        struct fr_parsed *slot = FR_PUSH(&all);
        if (slot == NULL) {
            rc = fr_err_set(err, FR_NOMEM, "out of memory");
            break;
        }
        slot->failure = *f;
        slot->signals = from->signals + f->first_signal;
        i += c <= 0;
        k += c >= 0;
    }
    if (rc == 0) {
        rc = assemble(all.v, all.n, arena, ret, err);
    }
    fr_vec_free(all.v);
    return rc;
}
