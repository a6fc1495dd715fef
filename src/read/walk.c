/* SPDX-License-Identifier: Apache-2.0 */
/* A folder is one run: everything inside that can be a log, in any layout. Links to files are followed (Kubernetes keeps its
 * logs behind them), links to folders are not, as in grep -r: they lead out of the run or back into it, and never ending is the
 * one thing that a walk must not do. Relative to open folders (openat), so that a rename underneath cannot send us elsewhere. */
#include "base/alloc.h"
#include "base/buf.h"
#include "read/ignore.h"
#include "read/units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct walk {
    struct fr_input *in;
    struct fr_buf path; /* of the entry at hand */
    uint32_t depth, found;
    struct { uint64_t dev, ino; } *above; /* the folders we are in: a bind mount can nest a folder in itself */
};

static int walk_folder(struct walk *w, int fd, struct fr_err *err);

static void skip_errno(struct walk *w, const char *what, int e)
{
    char why[160];
    int n = snprintf(why, sizeof why, "%s: %s", what, strerror(e));
    fr_input_skip(w->in, fr_buf_sv(&w->path), (fr_sv){why, (size_t)n});
}

static bool is_above(const struct walk *w, const struct stat *st)
{
    for (uint32_t i = 0; i < w->depth; i++) {
        if (w->above[i].dev == (uint64_t)st->st_dev && w->above[i].ino == (uint64_t)st->st_ino) {
            return true;
        }
    }
    return false;
}

static int enter(struct walk *w, int parent, const char *name, struct fr_err *err)
{
    const char *no = fr_ignore_folder(fr_sv_z(name));
    if (no == NULL && w->depth >= w->in->limits.max_dir_depth) {
        no = "folders nested too deep";
    }
    if (no != NULL) {
        fr_input_skip(w->in, fr_buf_sv(&w->path), fr_sv_z(no));
        return 0;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        skip_errno(w, "cannot be opened", errno);
        return 0;
    }
    return walk_folder(w, fd, err);
}

static int look_at(struct walk *w, int parent, const char *name, struct fr_err *err)
{
    struct stat st;
    fr_sv path = fr_buf_sv(&w->path);
    if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        skip_errno(w, "cannot be read", errno);
        return 0;
    }
    if (S_ISDIR(st.st_mode)) {
        return enter(w, parent, name, err);
    }
    const char *no = fr_ignore_file(fr_sv_z(name));
    if (no != NULL) {
        fr_input_skip(w->in, path, fr_sv_z(no));
        return 0;
    }
    bool is_link = S_ISLNK(st.st_mode);
    if (is_link) {
        if (fstatat(parent, name, &st, 0) != 0) {
            skip_errno(w, "a link to nowhere", errno);
            return 0;
        }
        if (S_ISDIR(st.st_mode)) {
            fr_input_skip(w->in, path, is_above(w, &st) ? FR_SV("a link back to a folder around it")
                                                        : FR_SV("a link to a folder: name that folder to have it read"));
            return 0;
        }
    }
    if (!S_ISREG(st.st_mode)) {
        fr_input_skip(w->in, path, S_ISFIFO(st.st_mode) ? FR_SV("a pipe, not a file") : FR_SV("a socket or device, not a file"));
        return 0;
    }
    w->found++;
    return fr_input_add_file(w->in, path, &st, is_link ? FR_ITEM_LINK : FR_ITEM_FILE, err);
}

/* Owns fd. */
static int walk_folder(struct walk *w, int fd, struct fr_err *err)
{
    struct stat st;
    size_t length = w->path.n;
    int rc = 0;
    DIR *d;
    if (fstat(fd, &st) != 0 || is_above(w, &st) || (d = fdopendir(fd)) == NULL) {
        fr_input_skip(w->in, fr_buf_sv(&w->path), FR_SV("a folder that holds itself, or cannot be read"));
        (void)close(fd);
        return 0;
    }
    w->above[w->depth].dev = (uint64_t)st.st_dev;
    w->above[w->depth].ino = (uint64_t)st.st_ino;
    w->depth++;
    while (rc == 0 && !w->in->over_limit) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (e == NULL) {
            if (errno != 0) {
                skip_errno(w, "cannot be listed to its end", errno);
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
        rc = fr_buf_ok(&w->path) ? look_at(w, dirfd(d), e->d_name, err) : fr_err_set(err, FR_NOMEM, "out of memory");
        w->path.n = length;
        w->path.p[length] = '\0';
    }
    w->depth--;
    (void)closedir(d);
    return rc;
}

int fr_input_walk(struct fr_input *in, const char *path, struct fr_err *err)
{
    struct walk w = {.in = in, .path = FR_BUF_INIT(0)};
    int rc = 0, fd;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    fr_buf_add(&w.path, (fr_sv){path, n});
    w.above = fr_calloc((size_t)in->limits.max_dir_depth + 1, sizeof w.above[0]);
    if (w.above == NULL || !fr_buf_ok(&w.path)) {
        rc = fr_err_set(err, FR_NOMEM, "out of memory");
    } else if ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        skip_errno(&w, "cannot be opened", errno);
    } else {
        rc = walk_folder(&w, fd, err);
        if (rc == 0 && w.found == 0) {
            fr_input_skip(in, fr_sv_z(path), FR_SV("a folder without any log"));
        }
    }
    fr_free(w.above);
    fr_buf_release(&w.path);
    return rc;
}
