/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_open: a checkpoint opened for a test, with questions to it. opened_begin() .. opened_end() own everything. */
#ifndef FR_TESTS_TENSOR_OPEN_H
#define FR_TESTS_TENSOR_OPEN_H

#include "support/t.h"
#include "tensor/checkpoint.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE(name) FR_SOURCE_DIR "/tests/fixtures/tensor/" name
#define ANY UINT64_MAX

struct opened {
    struct fr_arena arena;
    struct fr_checkpoint c;
    struct fr_err err;
    int rc;
};

static inline void opened_begin_all(struct opened *o, const char *const *paths, uint32_t n)
{
    *o = (struct opened){.arena = FR_ARENA_INIT(0)};
    o->rc = fr_checkpoint_open(paths, n, NULL, &o->arena, &o->c, &o->err);
}

static inline void opened_begin(struct opened *o, const char *path)
{
    opened_begin_all(o, &path, 1);
}

static inline void opened_end(struct opened *o)
{
    fr_arena_release(&o->arena);
}

static inline const struct fr_tensor *opened_tensor(const struct opened *o, const char *name)
{
    for (uint32_t i = 0; o->rc == 0 && i < o->c.tensors_n; i++) {
        if (fr_sv_eq(o->c.tensors[i].name, fr_sv_z(name))) {
            return &o->c.tensors[i];
        }
    }
    return NULL;
}

/* The first problem of a kind whose sentence has `words` (NULL: any). */
static inline const struct fr_problem *opened_problem(const struct opened *o, uint8_t kind, const char *words)
{
    for (uint32_t i = 0; o->rc == 0 && i < o->c.problems_n; i++) {
        const struct fr_problem *p = &o->c.problems[i];
        if (p->kind == kind && (words == NULL || fr_sv_has(p->text, fr_sv_z(words)))) {
            return p;
        }
    }
    return NULL;
}

static inline void opened_show(const struct opened *o)
{
    for (uint32_t i = 0; o->rc == 0 && i < o->c.problems_n; i++) {
        fprintf(stderr, "    %s%.*s\n", o->c.problems[i].fatal ? "fatal: " : "", FR_SV_ARG(o->c.problems[i].text));
    }
}

struct bytes {
    unsigned char p[4096];
    size_t n;
};

static int opened_add(void *ctx, const void *p, size_t n)
{
    struct bytes *b = ctx;
    if (n > sizeof b->p - b->n) {
        return 1;
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return 0;
}

/* All bytes of a tensor (at most 4 KiB); 0 or what the walk returned. */
static inline int opened_bytes(const struct opened *o, const struct fr_tensor *t, struct bytes *ret)
{
    struct fr_spans *s = NULL;
    struct fr_err err = {0};
    ret->n = 0;
    int rc = fr_spans_open(&o->c, t->file, &s, &err);
    rc = rc == 0 ? fr_spans_walk(s, t, opened_add, ret, &err) : rc;
    fr_spans_close(&s);
    return rc;
}

/* The float at `i` of an F32 tensor; NAN-free fixtures, -1e30 when it cannot be read. */
static inline double opened_float(const struct opened *o, const char *name, size_t i)
{
    const struct fr_tensor *t = opened_tensor(o, name);
    struct bytes b;
    float f;
    if (t == NULL || opened_bytes(o, t, &b) != 0 || b.n < 4 * i + 4) {
        return -1e30;
    }
    memcpy(&f, b.p + 4 * i, 4);
    return (double)f;
}

static char written_paths[8][300];

static void written_remove(void)
{
    for (int i = 0; i < 8; i++) {
        (void)unlink(written_paths[i]);
    }
}

/* A file of these bytes, removed at exit; the path is static, one per name (of at most 8). */
static inline const char *written(const char *name, const void *p, size_t n)
{
    int i = 0;
    while (i < 7 && written_paths[i][0] != '\0' && strcmp(written_paths[i] + strlen(written_paths[i]) - strlen(name), name) != 0) {
        i++;
    }
    char *path = written_paths[i];
    if (path[0] == '\0' && i == 0) {
        atexit(written_remove);
    }
    snprintf(path, sizeof written_paths[i], "%s/fr-tensor-%d-%s", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600); /* no O_TRUNC: ext4 then waits for the disk, thousands of times */
    if (fd < 0 || write(fd, p, n) != (ssize_t)n || ftruncate(fd, (off_t)n) != 0 || close(fd) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}

static inline size_t slurp(const char *path, unsigned char *p, size_t most)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, p, most);
    if (n < 0) {
        perror(path);
        exit(1);
    }
    close(fd);
    return (size_t)n;
}

#endif
