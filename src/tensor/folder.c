/* SPDX-License-Identifier: Apache-2.0 */
/* Relative to open folders (openat), so that a rename underneath cannot send us elsewhere; folders
 * are known by device and inode, so that a bind mount that nests a folder in itself ends. */
#include "tensor/folder.h"

#include "base/alloc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 32 };

struct walk {
    struct fr_ckpt *c;
    struct fr_found_list *found;
    struct fr_buf path;
    uint32_t root, depth;
    struct { dev_t dev; ino_t ino; } above[DEPTH_MAX];
};

static void walk_folder(struct walk *w, int fd);

static void say(struct walk *w, uint8_t kind, bool fatal, const char *why)
{
    fr_ckpt_say_step(w->c, kind, fatal, UINT32_MAX, fr_buf_sv(&w->path), "%s", why);
}

static void say_errno(struct walk *w, const char *what, int e)
{
    fr_ckpt_say_step(w->c, FR_PROBLEM_UNREADABLE, true, UINT32_MAX, fr_buf_sv(&w->path), "%s: %s",
                     what, strerror(e));
}

static bool is_above(const struct walk *w, const struct stat *st)
{
    for (uint32_t i = 0; i < w->depth; i++) {
        if (w->above[i].dev == st->st_dev && w->above[i].ino == st->st_ino) {
            return true;
        }
    }
    return false;
}

static bool skipped_folder(fr_sv name)
{
    return fr_sv_eq(name, FR_SV(".git")) || fr_sv_eq(name, FR_SV("__pycache__")) ||
           fr_sv_eq(name, FR_SV("node_modules"));
}

static void enter(struct walk *w, int parent, const char *name)
{
    if (skipped_folder(fr_sv_z(name))) {
        return;
    }
    if (w->depth >= w->c->limits.depth || w->depth >= DEPTH_MAX) {
        say(w, FR_PROBLEM_LIMIT, false, "folders nested too deep: not looked into");
        return;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        say_errno(w, "cannot be opened", errno);
        return;
    }
    walk_folder(w, fd);
}

static void look_at(struct walk *w, int parent, const char *name)
{
    struct stat st;
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        say_errno(w, "cannot be read", errno);
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        enter(w, parent, name);
        return;
    }
    if (!fr_is_part(fr_sv_z(name))) {
        return;
    }
    if (S_ISLNK(st.st_mode) && fstatat(parent, name, &st, 0) != 0) {
        say_errno(w, "a link to nowhere", errno);
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        say(w, FR_PROBLEM_UNREADABLE, false,
            is_above(w, &st) ? "a link back to a folder around it"
                             : "a link to a folder: name that folder to have it read");
        return;
    }
    if (!S_ISREG(st.st_mode)) {
        say(w, FR_PROBLEM_UNREADABLE, true,
            S_ISFIFO(st.st_mode) ? "a pipe, not a file" : "a socket or device, not a file");
        return;
    }
    if (w->found->list.n >= w->c->limits.files) {
        w->c->full_files = true;
        return;
    }
    struct fr_found *f = FR_PUSH(&w->found->list);
    fr_sv path = f == NULL ? FR_SV_NONE : fr_arena_dup(w->c->arena, fr_buf_sv(&w->path));
    if (path.p == NULL) {
        w->c->nomem = true;
        return;
    }
    *f = (struct fr_found){path, w->root};
}

/* Owns fd. */
static void walk_folder(struct walk *w, int fd)
{
    struct stat st;
    size_t length = w->path.n;
    DIR *d;
    if (fstat(fd, &st) != 0 || is_above(w, &st) || (d = fdopendir(fd)) == NULL) {
        say(w, FR_PROBLEM_UNREADABLE, false, "a folder that holds itself, or cannot be read");
        (void)close(fd);
        return;
    }
    w->above[w->depth].dev = st.st_dev;
    w->above[w->depth].ino = st.st_ino;
    w->depth++;
    while (!w->c->nomem && !w->c->full_files) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (e == NULL) {
            if (errno != 0) {
                say_errno(w, "cannot be listed to its end", errno);
            }
            break;
        }
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (length > 0 && w->path.p[length - 1] != '/') {
            fr_buf_addc(&w->path, '/');
        }
        fr_buf_addz(&w->path, e->d_name);
        if (fr_buf_ok(&w->path)) {
            look_at(w, dirfd(d), e->d_name);
        } else {
            w->c->nomem = true;
        }
        w->path.n = length;
        w->path.p[length] = '\0';
    }
    w->depth--;
    (void)closedir(d);
}

static int by_path(const void *a, const void *b)
{
    const struct fr_found *x = a, *y = b;
    int d = fr_sv_cmp_natural(x->path, y->path);
    return d != 0 ? d : fr_sv_cmp(x->path, y->path);
}

void fr_folder_list(struct fr_ckpt *c, const char *path, struct fr_found_list *ret)
{
    struct walk w = {.c = c, .found = ret, .path = FR_BUF_INIT(0)};
    uint32_t before = ret->list.n;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    fr_buf_add(&w.path, (fr_sv){path, n});
    w.root = (uint32_t)n;
    int fd = fr_buf_ok(&w.path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (!fr_buf_ok(&w.path)) {
        c->nomem = true;
    } else if (fd < 0) {
        say_errno(&w, "cannot be opened", errno);
    } else {
        walk_folder(&w, fd);
    }
    if (ret->list.n > before) {
        qsort(ret->list.v + before, ret->list.n - before, sizeof ret->list.v[0], by_path);
    }
    fr_buf_release(&w.path);
}
