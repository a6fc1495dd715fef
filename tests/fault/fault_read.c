/* SPDX-License-Identifier: Apache-2.0 */
/* The operating system's reads fail, are short, are interrupted or end early: wrapped at link time. Short ones change nothing; failed ones leave a report of what could be read and a reason. */
#include "support/logs.h"
#include "support/pipeline.h"
#include "support/t.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __real_read(int fd, void *p, size_t n);
int __real_open(const char *path, int flags, ...);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_read(int fd, void *p, size_t n);
int __wrap_open(const char *path, int flags, ...);

enum mode { NORMAL, SHORT, INTERRUPTED, FAILS, ENDS, NO_OPEN };
static enum mode mode;
static long calls, fail_at; /* the call that fails; later ones of the same file do, too */
static int failed_fd;

static ssize_t meddle(int fd, size_t *n)
{
    calls += mode != NO_OPEN;
    if (mode == SHORT) {
        *n = *n > 7 ? 1 + (size_t)(calls * 7 % 61) : *n;
    }
    if (mode == INTERRUPTED && calls % 2 == 1) {
        errno = EINTR;
        return -1;
    }
    if ((mode == FAILS || mode == ENDS) && (calls - 1 == fail_at || fd == failed_fd)) {
        failed_fd = fd;
        errno = EIO;
        return mode == FAILS ? -1 : 0;
    }
    return 1;
}

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
    ssize_t r = meddle(fd, &n);
    return r <= 0 ? r : __real_pread(fd, p, n, at);
}

ssize_t __wrap_read(int fd, void *p, size_t n)
{
    ssize_t r = meddle(fd, &n);
    return r <= 0 ? r : __real_read(fd, p, n);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    int permissions = (flags & O_CREAT) != 0 ? va_arg(ap, int) : 0;
    va_end(ap);
    size_t n = strlen(path);
    if (mode == NO_OPEN && n > 4 && strcmp(path + n - 4, ".log") == 0 && calls++ == fail_at) {
        errno = calls % 2 == 0 ? ENOENT : EMFILE; /* vanished since it was listed; too many files */
        return -1;
    }
    int fd = __real_open(path, flags, permissions);
    failed_fd = fd == failed_fd ? -1 : failed_fd; /* the number of a closed one, again */
    return fd;
}

static void small_run(struct logs *l)
{
    logs_begin(l);
    logs_add(l, "rank0.log", "2026-03-09 10:00:00,410 INFO [fit] rank 0/2 pid 900 ready on gn11\n"
                             "[rank0]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14727\n");
    logs_add(l, "rank1.log", "2026-03-09 10:00:00,410 INFO [fit] rank 1/2 pid 901 ready on gn12\n"
                             "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ivo/fit/loop.py\", line 9, in run\n"
                             "[rank1]:     step()\n[rank1]: KeyError: 'token_mask'\n");
    logs_add(l, "rank2.log", "2026-03-09 10:00:00,410 INFO [fit] rank 2/3 pid 902 ready on gn12\n");
}

/* Diagnoses under the mode; fills out with JSON, or with "error: ...". */
static const struct fr_report *diagnose(struct logs *l, enum mode m, long at, struct fr_engine **e)
{
    struct fr_engine_options o = {.size = sizeof o, .threads = 1};
    mode = m;
    calls = 0;
    fail_at = at;
    failed_fd = -1;
    int rc = fr_engine_new(&o, e, &l->err);
    rc = rc == 0 ? fr_engine_add(*e, l->dir, &l->err) : rc;
    rc = rc == 0 ? fr_engine_run(*e, &l->err) : rc;
    mode = NORMAL;
    return rc == 0 ? fr_engine_report(*e) : NULL;
}

static void whole(struct logs *l, enum mode m, struct fr_buf *out)
{
    const char *dir = l->dir;
    mode = m;
    calls = 0;
    pipeline_whole(&dir, 1, NULL, FR_ENGINE_AUTO, out);
    mode = NORMAL;
}

T_TEST(short_and_interrupted_reads_change_nothing)
{
    struct logs l;
    small_run(&l);
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) cut = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) interrupted = FR_BUF_INIT(0);
    whole(&l, NORMAL, &want);
    whole(&l, SHORT, &cut);
    long short_calls = calls;
    whole(&l, INTERRUPTED, &interrupted);
    T_OK(short_calls > 12);
    T_EQ_SV(fr_buf_sv(&cut), fr_buf_sv(&want));
    T_EQ_SV(fr_buf_sv(&interrupted), fr_buf_sv(&want));
    logs_end(&l);
}

/* Each read in turn. What fails is named; the rest is diagnosed. */
static void each_read(enum mode m, bool must_be_told)
{
    struct logs l;
    small_run(&l);
    for (long at = 0; at < 200; at++) {
        struct fr_engine *e = NULL;
        const struct fr_report *r = diagnose(&l, m, at, &e);
        bool reached = calls > at;
        if (r == NULL) {
            T_FAIL("mode %d, call %ld: %s", m, at, l.err.msg);
        } else if (reached && must_be_told) {
            T_OK(r->input.skipped.n != 0);
            T_OK(r->input.skipped.n == 0 || r->input.skipped.v[0].why.n != 0);
        }
        fr_engine_free(&e);
        if (!reached) {
            T_OK(at > 2);
            break;
        }
    }
    logs_end(&l);
}

T_TEST(a_read_that_fails)
{
    each_read(FAILS, true);
}

T_TEST(a_file_that_ends_early)
{
    each_read(ENDS, false);
}

T_TEST(a_file_that_cannot_be_opened_any_more)
{
    each_read(NO_OPEN, true);
}

T_TEST(nothing_can_be_read)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank0.log", "2026-03-09 10:00:00,410 INFO [fit] rank 0/2 pid 900 ready on gn11\n");
    struct fr_engine *e = NULL;
    T_OK(diagnose(&l, FAILS, 0, &e) == NULL);
    T_EQ_INT(l.err.code, FR_ABSENT);
    T_OK(strstr(l.err.msg, "rank0.log") != NULL);
    fr_engine_free(&e);
    logs_end(&l);
}

int main(void)
{
    return t_run();
}
