/* SPDX-License-Identifier: Apache-2.0 */
/* framer: a stream to chunks that begin and end at line boundaries.
 * Borrowed: a chunk's bytes are valid until the next call. The window is reused from member to member.
 * Bounded: one window of at most 3 buffers + 1 edge; a line over 2 buffers is given out in pieces. */
#ifndef FR_READ_FRAMER_H
#define FR_READ_FRAMER_H

#include "read/input.h"
#include "read/stream.h"

struct fr_framer {
    size_t buffer, edge;     /* from the limits */
    size_t room, slack;      /* window: slack bytes for what is carried over, then room bytes to read into */
    char *alloc, *base;
    struct fr_stream *src;
    size_t start, end;       /* unread part of the window, as offsets from base */
    uint64_t offset;         /* of base[start] in the member */
    uint64_t size;           /* expected, or UINT64_MAX */
    uint64_t tail_from;      /* the line holding this byte begins the tail; UINT64_MAX while the size is not known */
    size_t ahead;            /* bytes that must be known to follow a chunk: an edge for streams without a size */
    bool eof, in_long, begun;
    uint32_t flags;
    uint64_t nuls;
    int failed;              /* -FR_* that ended the stream, else 0 */
    struct fr_err err;
};

int fr_framer_init(struct fr_framer *f, const struct fr_input_limits *limits, struct fr_err *err);
void fr_framer_release(struct fr_framer *f);
/* size: bytes of the member when known exactly, else UINT64_MAX. */
void fr_framer_start(struct fr_framer *f, struct fr_stream *src, uint64_t size, uint32_t flags);
/* 1 = chunk, 0 = end. A stream that fails is one that ends: f->failed and f->err then say why. */
int fr_framer_next(struct fr_framer *f, struct fr_chunk *ret);

#endif
