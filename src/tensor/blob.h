/* SPDX-License-Identifier: Apache-2.0 */
/* blob: one regular file, read at byte offsets with pread (a file may shrink under us: a mapping
 * would be a SIGBUS; only `spans` maps, behind a guard). Opened without blocking, so that a FIFO
 * cannot hang us. Release what was opened; releasing an empty one is fine:
 * FR_AUTO(fr_blob) b = FR_BLOB_INIT; */
#ifndef FR_TENSOR_BLOB_H
#define FR_TENSOR_BLOB_H

#include "base/buf.h"
#include "base/err.h"

struct fr_blob {
    int fd;
    uint64_t size, mtime_ns;
    const char *path; /* borrowed from the caller of open */
};
#define FR_BLOB_INIT ((struct fr_blob){-1, 0, 0, NULL})

/* -FR_ABSENT when there is no such file, -FR_IO when it is a folder, pipe or device or cannot be
 * opened. */
int fr_blob_open(struct fr_blob *b, const char *path, struct fr_err *err);
/* Exactly n bytes at `at`; -FR_IO with err->pos when the file ends before or cannot be read. */
int fr_blob_read(const struct fr_blob *b, uint64_t at, void *p, size_t n, struct fr_err *err);
/* A range in a new buffer of the caller (fr_free), NUL-terminated; -FR_NOMEM, -FR_IO. The caller
 * bounds n. */
int fr_blob_load(const struct fr_blob *b, uint64_t at, size_t n, char **ret, struct fr_err *err);
void fr_blob_release(struct fr_blob *b);

#endif
