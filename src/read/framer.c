/* SPDX-License-Identifier: Apache-2.0 */
/* Framing must cost next to nothing beside read() itself. So: reads always go to the same aligned place, the cut-off last line
 * is moved in front of it (a few hundred bytes), and lines are not looked for one by one: one memrchr per chunk.
 * A stream without a size is read one edge ahead, so that its tail is as exact as a file's. */
#include "read/framer.h"

#include "base/alloc.h"

#define ROOM_MIN ((size_t)64 << 10)
#define BUFFER_MIN 16
#define BUFFER_MAX ((size_t)64 << 20)
#define NICE_CUT 4096 /* how far back a piece of a long line may be cut to end at a CR, a blank or a character */
#define PAGE 4096
#define NUL_STEP 256

int fr_framer_init(struct fr_framer *f, const struct fr_input_limits *limits, struct fr_err *err)
{
    size_t buffer = limits->buffer, edge = limits->edge;
    *f = (struct fr_framer){0};
    buffer = buffer < BUFFER_MIN ? BUFFER_MIN : buffer > BUFFER_MAX ? BUFFER_MAX : buffer;
    edge = edge > BUFFER_MAX ? BUFFER_MAX : edge;
    f->buffer = buffer;
    f->edge = edge;
    f->room = buffer < ROOM_MIN ? ROOM_MIN : buffer;
    f->slack = (2 * buffer + edge + 1 + PAGE - 1) / PAGE * PAGE;
    f->alloc = fr_malloc(f->slack + f->room + PAGE);
    if (f->alloc == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory for a read buffer of %zu bytes", f->slack + f->room);
    }
    f->base = f->alloc + (PAGE - (uintptr_t)f->alloc % PAGE) % PAGE;
    return 0;
}

void fr_framer_release(struct fr_framer *f)
{
    fr_free(f->alloc);
    f->alloc = f->base = NULL;
}

void fr_framer_start(struct fr_framer *f, struct fr_stream *src, uint64_t size, uint32_t flags)
{
    f->src = src;
    f->start = f->end = f->slack;
    f->offset = 0;
    f->eof = f->in_long = f->begun = false;
    f->flags = flags;
    f->nuls = 0;
    f->failed = 0;
    f->size = size;
    if (size == UINT64_MAX) {
        f->tail_from = UINT64_MAX;
        f->ahead = f->edge > 0 ? f->edge : 1;
    } else {
        f->tail_from = size > f->edge ? size - f->edge : 0;
        f->ahead = 0;
    }
}

/* NUL bytes (blocks that a crashed node never wrote) become blanks, which the layers above trim. Looking at every byte costs a
 * tenth of read(); such blocks are long, so in a full buffer one byte in NUL_STEP tells whether a closer look is due. */
static void blank_nuls(struct fr_framer *f, char *p, size_t n)
{
    char *end = p + n;
    bool look = n <= ROOM_MIN;
    for (size_t i = 0; i < n && !look; i += NUL_STEP) {
        look = p[i] == '\0';
    }
    if (!look) {
        return;
    }
    while ((p = memchr(p, '\0', (size_t)(end - p))) != NULL) {
        while (p < end && *p == '\0') {
            *p++ = ' ';
            f->nuls++;
        }
    }
}

static void reached_end(struct fr_framer *f)
{
    uint64_t size = f->offset + (f->end - f->start);
    uint64_t from = size > f->edge ? size - f->edge : 0;
    f->eof = true;
    f->ahead = 0;
    if (from < f->tail_from) { /* the size was unknown, or the file shrank */
        f->tail_from = from;
    }
    if (f->size != UINT64_MAX && size < f->size) {
        f->flags |= FR_SRC_TRUNCATED;
    }
}

static void refill(struct fr_framer *f)
{
    size_t len = f->end - f->start, got_all = 0;
    memmove(f->base + f->slack - len, f->base + f->start, len);
    f->start = f->slack - len;
    while (got_all < f->room && !f->src->ended) {
        int64_t got = f->src->read(f->src, f->base + f->slack + got_all, f->room - got_all, &f->err);
        if (got <= 0) {
            f->failed = (int)got;
            f->src->ended = true;
            break;
        }
        got_all += (size_t)got;
    }
    f->end = f->slack + got_all;
    blank_nuls(f, f->base + f->slack, got_all);
    if (!f->begun && f->end - f->start >= 3 && memcmp(f->base + f->start, "\xEF\xBB\xBF", 3) == 0) {
        f->start += 3; /* a byte order mark is no text */
        f->offset += 3;
    }
    f->begun = true;
    if (f->src->ended) {
        reached_end(f);
    }
}

/* How many of n bytes (no newline among them) make a piece: not through a character, better at the CR of a progress bar or a blank. */
static size_t piece_end(const char *p, size_t n)
{
    size_t back = n > 2 * NICE_CUT ? NICE_CUT : n / 2;
    const char *cut = memrchr(p + n - back, '\r', back);
    if (cut == NULL) {
        cut = memrchr(p + n - back, ' ', back);
    }
    if (cut != NULL) {
        return (size_t)(cut - p) + 1;
    }
    for (size_t i = 0; i < 4 && i < n - 1; i++) {
        unsigned char c = (unsigned char)p[n - 1 - i];
        if (c >= 0xC0) { /* a lead byte: does its character end within the piece? */
            size_t need = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
            return i + 1 < need ? n - 1 - i : n;
        }
        if (c < 0x80) {
            break;
        }
    }
    return n;
}

/* Shortens n so that a chunk from f->offset lies wholly inside or outside the head and the tail. Lines that begin in the first
 * edge bytes are head; the line that holds byte tail_from and all after it are tail. */
static size_t respect_edges(const struct fr_framer *f, const char *p, size_t n, bool *ret_tail)
{
    if (f->offset < f->edge && n > f->edge - f->offset) {
        size_t h = (size_t)(f->edge - f->offset);
        const char *nl = memchr(p + h - 1, '\n', n - (h - 1));
        if (nl != NULL) {
            n = (size_t)(nl - p) + 1;
        }
    }
    *ret_tail = f->tail_from != UINT64_MAX && f->offset + n > f->tail_from;
    if (*ret_tail && f->offset < f->tail_from) {
        const char *nl = memrchr(p, '\n', (size_t)(f->tail_from - f->offset));
        if (nl != NULL) {
            n = (size_t)(nl - p) + 1;
            *ret_tail = false;
        }
    }
    return n;
}

static void give(struct fr_framer *f, size_t n, bool tail, bool partial, struct fr_chunk *ret)
{
    bool last;
    f->flags |= partial ? FR_SRC_LONG_LINES : 0;
    ret->bytes = (fr_sv){f->base + f->start, n};
    ret->window = (fr_sv){f->base + f->start, f->end - f->start};
    ret->offset = f->offset;
    ret->cont = f->in_long;
    ret->partial = partial;
    ret->head = f->offset < f->edge;
    ret->tail = tail;
    f->start += n;
    f->offset += n;
    f->in_long = partial;
    f->flags |= f->failed == -FR_LIMIT ? FR_SRC_LIMIT : 0;
    last = f->eof && f->start == f->end;
    if (last && f->failed != 0) { /* a last line without '\n' is ordinary */
        f->flags |= FR_SRC_TRUNCATED;
    }
    ret->last = last;
    ret->flags = f->flags;
    ret->nuls = f->nuls;
}

int fr_framer_next(struct fr_framer *f, struct fr_chunk *ret)
{
    size_t max = 2 * f->buffer;
    for (;;) {
        const char *p = f->base + f->start, *nl;
        size_t n = f->end - f->start;
        bool tail = false;
        n = n > f->ahead ? n - f->ahead : 0;
        n = n > max ? max : n;
        nl = n > 0 ? memrchr(p, '\n', n) : NULL;
        if (nl != NULL) {
            n = respect_edges(f, p, (size_t)(nl - p) + 1, &tail);
            give(f, n, tail, false, ret);
            return 1;
        }
        if (n == max && !(f->eof && n == f->end - f->start)) { /* exactly so long and the end: no piece */
            n = piece_end(p, n);
            give(f, n, f->tail_from != UINT64_MAX && f->offset + n > f->tail_from, true, ret);
            return 1;
        }
        if (f->eof) {
            if (n == 0) {
                return 0;
            }
            (void)respect_edges(f, p, n, &tail);
            give(f, n, tail, false, ret);
            return 1;
        }
        refill(f);
    }
}
