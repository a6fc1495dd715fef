/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/blob.h"

#include "base/alloc.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fr_blob_open(struct fr_blob *b, const char *path, struct fr_err *err)
{
    struct stat st;
    *b = FR_BLOB_INIT;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        int e = errno;
        return fr_err_set(err, e == ENOENT ? FR_ABSENT : FR_IO, "cannot be opened: %s",
                          strerror(e));
    }
    if (fstat(fd, &st) != 0) {
        int e = errno;
        (void)close(fd);
        return fr_err_set(err, FR_IO, "cannot be read: %s", strerror(e));
    }
    if (!S_ISREG(st.st_mode)) {
        (void)close(fd);
        return fr_err_set(err, FR_IO, S_ISDIR(st.st_mode)    ? "a folder, not a file"
                                      : S_ISFIFO(st.st_mode) ? "a pipe, not a file"
                                                             : "a socket or device, not a file");
    }
    b->fd = fd;
    b->size = (uint64_t)st.st_size;
    b->mtime_ns = (uint64_t)st.st_mtim.tv_sec * (uint64_t)FR_NS_PER_S +
                  (uint64_t)st.st_mtim.tv_nsec;
    b->path = path;
    return 0;
}

int fr_blob_read(const struct fr_blob *b, uint64_t at, void *p, size_t n, struct fr_err *err)
{
    size_t have = 0;
    while (have < n) {
        ssize_t got = at + have <= INT64_MAX
                          ? pread(b->fd, (char *)p + have, n - have, (off_t)(at + have))
                          : 0;
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            int e = errno, rc;
            rc = got < 0 ? fr_err_set(err, FR_IO, "cannot be read at byte %llu: %s",
                                      (unsigned long long)(at + have), strerror(e))
                         : fr_err_set(err, FR_IO, "ends at byte %llu, before what was looked for",
                                      (unsigned long long)(at + have));
            if (err != NULL) {
                err->pos = at + have;
            }
            return rc;
        }
        have += (size_t)got;
    }
    return 0;
}

int fr_blob_load(const struct fr_blob *b, uint64_t at, size_t n, char **ret, struct fr_err *err)
{
    char *p = n < SIZE_MAX ? fr_malloc(n + 1) : NULL;
    if (p == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    int rc = fr_blob_read(b, at, p, n, err);
    if (rc != 0) {
        fr_free(p);
        return rc;
    }
    p[n] = '\0';
    *ret = p;
    return 0;
}

void fr_blob_release(struct fr_blob *b)
{
    if (b->fd >= 0) {
        (void)close(b->fd);
    }
    b->fd = -1;
}
