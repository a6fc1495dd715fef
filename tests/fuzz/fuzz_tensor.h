/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tensor: what targets of checkpoint readers share: the input as a file of a folder of its own, opened as a checkpoint, every
 * listed thing looked at and the bytes of its tensors read. The folder is gone at exit. */
#ifndef FR_TESTS_FUZZ_TENSOR_H
#define FR_TESTS_FUZZ_TENSOR_H

#include "fuzz/fuzz.h"
#include "tensor/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WALKED = 24 }; /* tensors whose bytes are read: they may all claim the same megabytes */

static char fuzz_dir[64];

static void fuzz_remove(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", fuzz_dir);
    CHECK(system(line) == 0);
}

static inline const char *fuzz_folder(void)
{
    if (fuzz_dir[0] == '\0') {
        snprintf(fuzz_dir, sizeof fuzz_dir, "%s/fr-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        CHECK(mkdtemp(fuzz_dir) != NULL);
        atexit(fuzz_remove);
    }
    return fuzz_dir;
}

static inline const char *fuzz_write(const char *name, const uint8_t *data, size_t size)
{
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0);
    close(fd);
    return path;
}

static inline int fuzz_sum(void *ctx, const void *p, size_t n)
{
    unsigned *sum = ctx;
    for (size_t i = 0; i < n; i++) {
        *sum += ((const unsigned char *)p)[i];
    }
    return *sum == UINT32_MAX ? 1 : 0;
}

static inline void fuzz_walk(const struct fr_checkpoint *c, const struct fr_tensor *t)
{
    struct fr_spans *s = NULL;
    unsigned sum = 0;
    if (fr_spans_open(c, t->file, &s, NULL) == 0 && t->bytes < 16u << 20) {
        (void)fr_spans_walk(s, t, fuzz_sum, &sum, NULL);
    }
    fr_spans_close(&s);
}

static inline void fuzz_open(const char *path)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_checkpoint c = {0};
    struct fr_ckpt_limits limits = {.tensors = 2000, .problems = 500};
    struct fr_err err = {0};
    CHECK(fr_checkpoint_open(&path, 1, &limits, &arena, &c, &err) == 0);
    for (uint32_t i = 0; i < c.tensors_n; i++) {
        const struct fr_tensor *t = &c.tensors[i];
        CHECK(t->name.n > 0 && t->file < c.files_n && t->dims <= FR_DIMS_MAX && t->member < (int32_t)c.members_n);
        (void)touch(t->name);
        (void)touch(t->dtype_word);
        if (i < WALKED) {
            fuzz_walk(&c, t);
        }
    }
    for (uint32_t i = 0; i < c.problems_n; i++) {
        const struct fr_problem *p = &c.problems[i];
        CHECK(p->kind < FR_PROBLEM_KINDS && p->text.n > 0 && (p->file == UINT32_MAX || p->file < c.files_n));
        (void)touch(p->text);
        (void)touch(p->tensor);
    }
    for (uint32_t i = 0; i < c.files_n; i++) {
        CHECK(c.files[i].step_index < c.steps_n);
    }
    CHECK(fr_checkpoint_last_good(&c) == UINT32_MAX || fr_checkpoint_last_good(&c) < c.steps_n);
    fr_arena_release(&arena);
}

/* A file of the fixtures, copied once into the folder. */
static inline void fuzz_fixture(const char *from, const char *name)
{
    static uint8_t bytes[1 << 16];
    char path[400];
    snprintf(path, sizeof path, "%s/tests/fixtures/tensor/%s", FR_SOURCE_DIR, from);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    CHECK(n > 0);
    close(fd);
    (void)fuzz_write(name, bytes, (size_t)n);
}

#endif
