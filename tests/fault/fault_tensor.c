/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation n fails, read n fails, for n = 0, 1, 2 and on, while real checkpoints are opened, walked, and put into manifests. Without memory:
 * either -FR_NOMEM or the same answer as with it. Without a read: a problem or an error that says so. Nothing leaks (the sanitizers see to that). */
#include "base/alloc.h"
#include "tensor/manifest.h"
#include "unit/tensor_open.h"

#include <errno.h>

static const char *const checkpoints[] = {
    FIXTURE("safetensors"), FIXTURE("sharded"), FIXTURE("torch"), FIXTURE("numpy"), FIXTURE("dcp2"), FIXTURE("deepspeed"), FIXTURE("deepspeed3"),
    FIXTURE("megatron"), FIXTURE("hf_torch"),
};
enum { CHECKPOINTS = sizeof checkpoints / sizeof checkpoints[0] };

static long read_fails = -1; /* the read that fails; counts down */
static bool read_failed;

ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    if (read_fails >= 0 && read_fails-- == 0) {
        read_failed = true;
        errno = EIO;
        return -1;
    }
    return __real_pread(fd, p, n, at);
}

static int count(void *ctx, const void *p, size_t n)
{
    (void)p;
    *(uint64_t *)ctx += n;
    return 0;
}

/* All bytes of all tensors; 0 or the first error. */
static int walk_all(const struct fr_checkpoint *c, uint64_t *bytes, struct fr_err *err)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < c->tensors_n; i++) {
        struct fr_spans *s = NULL;
        if (c->tensors[i].cut) {
            continue;
        }
        rc = fr_spans_open(c, c->tensors[i].file, &s, err);
        rc = rc == 0 ? fr_spans_walk(s, &c->tensors[i], count, bytes, err) : rc;
        fr_spans_close(&s);
    }
    return rc;
}

struct answer {
    uint32_t tensors, problems, fatal;
    uint64_t bytes;
    int opened, walked, listed;
};

static struct answer ask(const char *path)
{
    struct opened o;
    struct answer a = {0};
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    opened_begin(&o, path);
    a.opened = o.rc;
    if (o.rc == 0) {
        a.tensors = o.c.tensors_n;
        a.problems = o.c.problems_n;
        for (uint32_t i = 0; i < o.c.problems_n; i++) {
            a.fatal += o.c.problems[i].fatal;
        }
        a.walked = walk_all(&o.c, &a.bytes, &err);
        a.listed = fr_manifest_write(&o.c, FR_SV(""), true, &out, &err);
    }
    T_OK(o.rc == 0 || o.err.msg[0] != '\0');
    opened_end(&o);
    return a;
}

static bool same(const struct answer *a, const struct answer *b)
{
    return a->tensors == b->tensors && a->problems == b->problems && a->bytes == b->bytes && a->walked == b->walked && a->listed == b->listed;
}

T_TEST(every_allocation)
{
    for (int i = 0; i < CHECKPOINTS; i++) {
        const struct answer whole = ask(checkpoints[i]);
        long n = 0;
        for (bool reached = true; reached && n < 20000; n++) {
            size_t before = fr_alloc_calls();
            fr_alloc_fail_after(n);
            struct answer a = ask(checkpoints[i]);
            fr_alloc_fail_after(-1);
            reached = fr_alloc_calls() - before > (size_t)n;
            t_checks_++;
            bool told = a.opened == -FR_NOMEM || a.walked == -FR_NOMEM || a.listed == -FR_NOMEM;
            if (!told && !same(&a, &whole)) {
                T_FAIL("%s: allocation %ld: opened %d, walked %d, listed %d: %u tensors, %u problems", checkpoints[i], n, a.opened, a.walked, a.listed, a.tensors, a.problems);
            }
        }
        T_OK(n > 10 && n < 20000);
    }
}

T_TEST(every_read)
{
    for (int i = 0; i < CHECKPOINTS; i++) {
        const struct answer whole = ask(checkpoints[i]);
        long n = 0;
        for (read_failed = true; read_failed && n < 20000; n++) {
            read_failed = false;
            read_fails = n;
            struct answer a = ask(checkpoints[i]);
            read_fails = -1;
            t_checks_++;
            bool told = a.fatal > whole.fatal || (a.tensors < whole.tensors && a.fatal >= whole.fatal) || a.walked == -FR_IO || a.listed == -FR_IO;
            if (a.opened != 0 || (read_failed && !told && !same(&a, &whole))) {
                T_FAIL("%s: read %ld: opened %d, walked %d, listed %d: %u tensors, %u problems", checkpoints[i], n, a.opened, a.walked, a.listed, a.tensors, a.problems);
            }
        }
        T_OK(n > 1 && n < 20000);
    }
}

int main(void)
{
    return t_run();
}
