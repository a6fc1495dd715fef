/* SPDX-License-Identifier: Apache-2.0 */
/* stream: where bytes come from, as the reader stacks it: file -> decompressor -> archive entry -> UTF-16 decoder.
 * A stream borrows the one under it; the reader owns all of them and reuses them from unit to unit.
 * Errors of this layer are reasons ("the gzip data end early"): the reader adds the name of the source.
 * Bounded: every stream works in fixed buffers, whatever its input says. */
#ifndef FR_READ_STREAM_H
#define FR_READ_STREAM_H

#include "base/err.h"
#include "base/view.h"

struct fr_stream {
    /* >0: that many bytes were put at p (at most n); 0: end; <0: -FR_*. Not called again after 0 or an error. */
    int64_t (*read)(struct fr_stream *s, char *p, size_t n, struct fr_err *err);
    bool ended; /* known: the next read would yield 0 */
};

/* ---- file.c: a descriptor. Stops at the size seen at open plus what is there when that is reached, so a file that is being
 * written does not keep us for ever. */
struct fr_file {
    struct fr_stream s;
    int fd;          /* -1 closed; 0 is stdin and never closed */
    bool sized;      /* a regular file whose size is known */
    bool rechecked;  /* the size was looked at again at the end */
    bool shrank;     /* it ended before the size it had */
    uint64_t start, pos, size, limit; /* start: where reading begins, not 0 for a stdin that was read in part */
    int64_t mtime_ns;
};
int fr_file_open(struct fr_file *f, const char *path, bool may_wait, struct fr_err *err);
void fr_file_close(struct fr_file *f);

/* ---- peek.c: looks ahead without consuming. Its buffer is kept from one use to the next. */
#define FR_PEEK_MAX ((size_t)64 << 10)
struct fr_peek {
    struct fr_stream s;
    struct fr_stream *under;
    char *buf;
    size_t at, n;
    int failed;        /* -FR_* met while looking ahead; given out after the bytes before it */
    struct fr_err err;
};
/* Fills the buffer (64 KiB or to the end). 0, or -FR_NOMEM; a read error waits in p->failed. */
int fr_peek_start(struct fr_peek *p, struct fr_stream *under, struct fr_err *err);
static inline fr_sv fr_peek_head(const struct fr_peek *p) { return (fr_sv){p->buf + p->at, p->n - p->at}; }
void fr_peek_release(struct fr_peek *p);

/* ---- what unpacking may cost */
struct fr_cost {
    uint64_t in, out, max_ratio, max_out;
};
/* 0 or -FR_LIMIT. The first 64 MiB are free: short logs of equal lines compress without end. */
int fr_cost_check(const struct fr_cost *c, struct fr_err *err);

/* ---- unzstd.c, ungzip.c: the two formats that logs really come in; many frames or members one after another */
struct fr_unzstd;
struct fr_ungzip;
int fr_unzstd_start(struct fr_unzstd **u, struct fr_stream *under, const struct fr_cost *cost, struct fr_stream **ret,
                    struct fr_err *err);
void fr_unzstd_free(struct fr_unzstd **u);
/* -FR_ABSENT when ISA-L is not installed: the caller falls back to libarchive. */
int fr_ungzip_start(struct fr_ungzip **u, struct fr_stream *under, const struct fr_cost *cost, struct fr_stream **ret,
                    struct fr_err *err);
void fr_ungzip_free(struct fr_ungzip **u);

/* ---- box.c: libarchive, for tar and zip (entries) and for xz, bzip2, lz4 (one nameless entry) */
struct fr_box;
struct fr_box_entry {
    fr_sv name;       /* valid until the next entry */
    int64_t mtime_ns; /* FR_TIME_NONE unknown */
    bool is_file;     /* false: a link or a device; folders are not delivered */
    struct fr_stream *data;
};
/* seekable: the file itself when `under` reads it from the start and nothing is in between, else NULL. A zip has
 * its table at the end, and a tar's checkpoints are passed over without being read. */
int fr_box_open(struct fr_box **b, struct fr_stream *under, struct fr_file *seekable, bool entries,
                const struct fr_cost *cost, struct fr_err *err);
/* 1 = entry, 0 = end, <0 = -FR_* */
int fr_box_next(struct fr_box *b, struct fr_box_entry *ret, struct fr_err *err);
void fr_box_close(struct fr_box *b); /* may be opened again */
void fr_box_free(struct fr_box **b);

/* ---- utf16.c */
struct fr_utf16 {
    struct fr_stream s;
    struct fr_stream *under;
    bool big_endian;
    size_t n, at, have; /* bytes waiting: converted n, given out up to at; raw bytes kept in raw[0..have) */
    bool done;
    char raw[4096];
    char text[8192];
};
void fr_utf16_start(struct fr_utf16 *u, struct fr_stream *under, bool big_endian);

#endif
