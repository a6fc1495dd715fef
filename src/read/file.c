/* SPDX-License-Identifier: Apache-2.0 */
/* pread into the caller's buffer, not mmap: training logs are truncated and rotated under us, and a truncated mapping is a
 * SIGBUS. Opened without blocking, so that a path that became a FIFO since it was listed cannot hang us. */
#include "base/time.h"
#include "read/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_WRITER_MS 2000 /* how long a FIFO may have no writer at all */

/* The size was reached: take what was appended meanwhile, once. */
static void recheck(struct fr_file *f)
{
    struct stat st;
    f->rechecked = true;
    if (fstat(f->fd, &st) == 0 && (uint64_t)st.st_size > f->limit) {
        f->limit = (uint64_t)st.st_size;
    }
}

static int64_t read_sized(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct fr_file *f = (struct fr_file *)s;
    ssize_t got;
    if (f->pos >= f->limit) {
        s->ended = true;
        return 0;
    }
    if (n > f->limit - f->pos) {
        n = (size_t)(f->limit - f->pos);
    }
    do {
        got = pread(f->fd, p, n, (off_t)f->pos);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        int e = errno;
        return fr_err_set(err, FR_IO, "cannot be read past byte %llu: %s", (unsigned long long)f->pos, strerror(e));
    }
    if (got == 0) {
        f->shrank = true;
        s->ended = true;
        return 0;
    }
    f->pos += (uint64_t)got;
    if (f->pos >= f->limit && !f->rechecked) {
        recheck(f);
    }
    s->ended = f->pos >= f->limit;
    return got;
}

static int64_t read_stream(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct fr_file *f = (struct fr_file *)s;
    for (;;) {
        ssize_t got = read(f->fd, p, n);
        if (got >= 0) {
            f->pos += (uint64_t)got;
            s->ended = got == 0;
            return got;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK) { /* a non-blocking descriptor was handed to us */
            struct pollfd pfd = {.fd = f->fd, .events = POLLIN};
            (void)poll(&pfd, 1, -1);
        } else if (errno != EINTR) {
            int e = errno;
            return fr_err_set(err, FR_IO, "cannot be read: %s", strerror(e));
        }
    }
}

/* A FIFO without any writer would be waited for in vain: give one a moment to appear. */
static int wait_for_writer(int fd, struct fr_err *err)
{
    struct pollfd pfd = {.fd = fd, .events = POLLIN};
    char c;
    if (poll(&pfd, 1, FIRST_WRITER_MS) == 0) { /* nothing came: is there a writer ("try again") or none ("end")? */
        ssize_t got = read(fd, &c, 1);
        if (got == 0) {
            return fr_err_set(err, FR_ABSENT, "a pipe that nobody writes to");
        }
        if (got > 0) { /* a byte arrived in this very moment; losing it would damage the input */
            return fr_err_set(err, FR_IO, "a pipe whose writer came too late");
        }
    }
    return 0;
}

static int look(struct fr_file *f, bool may_wait, struct fr_err *err)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0) {
        int e = errno;
        return fr_err_set(err, FR_IO, "cannot be read: %s", strerror(e));
    }
    f->mtime_ns = FR_TIME_NONE;
    if (S_ISREG(st.st_mode)) {
        f->mtime_ns = (int64_t)st.st_mtim.tv_sec * FR_NS_PER_S + st.st_mtim.tv_nsec;
        off_t at = f->fd == STDIN_FILENO ? lseek(f->fd, 0, SEEK_CUR) : 0; /* a shell may have read a part of stdin */
        f->start = f->pos = at > 0 ? (uint64_t)at : 0;
        f->sized = st.st_size > 0; /* files of /proc say 0 and have text */
        f->size = f->limit = (uint64_t)st.st_size;
    } else if (S_ISDIR(st.st_mode)) {
        return fr_err_set(err, FR_IO, "a folder, not a file");
    } else if (!may_wait) {
        return fr_err_set(err, FR_IO, "not a regular file");
    } else if (S_ISFIFO(st.st_mode) && f->fd != STDIN_FILENO) {
        return wait_for_writer(f->fd, err);
    }
    return 0;
}

int fr_file_open(struct fr_file *f, const char *path, bool may_wait, struct fr_err *err)
{
    int rc;
    *f = (struct fr_file){.fd = -1};
    if (strcmp(path, "-") == 0) {
        f->fd = STDIN_FILENO;
    } else {
        f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (f->fd < 0) {
            int e = errno;
            return fr_err_set(err, e == ENOENT ? FR_ABSENT : FR_IO, "cannot be opened: %s", strerror(e));
        }
    }
    rc = look(f, may_wait, err);
    if (rc != 0) {
        fr_file_close(f);
        return rc;
    }
    f->s.read = f->sized ? read_sized : read_stream;
    return 0;
}

void fr_file_close(struct fr_file *f)
{
    if (f->fd > STDIN_FILENO) {
        (void)close(f->fd);
    }
    f->fd = -1;
}
