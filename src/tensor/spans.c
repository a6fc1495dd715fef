/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of 32 MiB are mapped one at a time and kept for the next tensor: large enough that
 * mmap() costs nothing, small enough that what is resident stays far below the size of a
 * checkpoint. Pages come by faults, 16 at a time: MADV_POPULATE_READ looks like the better way and
 * took three times as long (768 MiB in the cache: 75 ms against 25), and a copy by pread was
 * slower than both. Where mapping fails, pread into a buffer. */
#include "base/alloc.h"
#include "faultrank/numerics.h"
#include "tensor/blob.h"
#include "tensor/checkpoint.h"
#include "tensor/guard.h"
#include "tensor/inflate.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PAGE ((uint64_t)4096)
#define WINDOW ((uint64_t)32 << 20)
#define BUFFER ((size_t)1 << 20)

struct fr_spans {
    const struct fr_checkpoint *c;
    struct fr_blob b;
    char *window; /* NULL = none mapped */
    uint64_t window_at, window_n;
    bool no_map;
    char *buffer;
    struct fr_inflate *inflate; /* of the member walked last, where it stands */
    int32_t member;
};

int fr_spans_open(const struct fr_checkpoint *c, uint32_t file, struct fr_spans **ret,
                  struct fr_err *err)
{
    struct fr_err why = {0};
    if (file >= c->files_n) {
        return fr_err_set(err, FR_ARG, "there is no file number %u", file);
    }
    struct fr_spans *s = fr_calloc(1, sizeof *s);
    if (s == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    s->c = c;
    s->member = -1;
    int rc = fr_blob_open(&s->b, c->files[file].path.p, &why);
    if (rc != 0) {
        fr_free(s);
        return fr_err_set(err, -rc, "'%.*s' %s", (int)fr_sv_head(c->files[file].path, 160).n,
                          c->files[file].path.p, why.msg);
    }
    *ret = s;
    return 0;
}

static int ends(const struct fr_spans *s, uint64_t at, struct fr_err *err)
{
    int rc = fr_err_set(err, FR_IO,
                        "'%.160s' became shorter while it was read: nothing at byte %llu",
                        s->b.path, (unsigned long long)at);
    if (err != NULL) {
        err->pos = at;
    }
    return rc;
}

static int failed(const struct fr_spans *s, int rc, const struct fr_err *why, struct fr_err *err)
{
    rc = fr_err_set(err, -rc, "'%.100s' %s", s->b.path, why->msg);
    if (err != NULL) {
        err->pos = why->pos;
    }
    return rc;
}

/* Whether the file still has the bytes before `end`: a page that is cut in its middle reads as
 * zeros and raises nothing. */
static bool still_there(const struct fr_spans *s, uint64_t end)
{
    struct stat st;
    return fstat(s->b.fd, &st) == 0 && (uint64_t)st.st_size >= end;
}

static void unmap(struct fr_spans *s)
{
    if (s->window != NULL) {
        (void)munmap(s->window, (size_t)s->window_n);
    }
    s->window = NULL;
}

/* A window that begins in the page of `at`; false when mapping is of no use here. */
static bool map_at(struct fr_spans *s, uint64_t at)
{
    uint64_t from = at & ~(PAGE - 1), n = s->b.size - from < WINDOW ? s->b.size - from : WINDOW;
    if (s->window != NULL && at >= s->window_at && at - s->window_at < s->window_n) {
        return true;
    }
    unmap(s);
    void *p = s->no_map ? MAP_FAILED
                        : mmap(NULL, (size_t)n, PROT_READ, MAP_SHARED, s->b.fd, (off_t)from);
    if (p == MAP_FAILED) {
        s->no_map = true;
        return false;
    }
    (void)madvise(p, (size_t)n, MADV_SEQUENTIAL); /* read ahead from the disk */
    s->window = p;
    s->window_at = from;
    s->window_n = n;
    return true;
}

static int walk_mapped(struct fr_spans *s, const struct fr_tensor *t, uint64_t *done, fr_span_fn fn,
                       void *ctx, struct fr_err *err)
{
    while (*done < t->bytes) {
        uint64_t at = t->offset + *done, left = t->bytes - *done;
        if (!map_at(s, at)) {
            return 0;
        }
        uint64_t n = s->window_at + s->window_n - at;
        if (n < left) {
            if (n < 64) { /* the window's last bytes: a new one from here on */
                unmap(s);
                continue;
            }
            n &= ~(uint64_t)63;
        }
        n = n < left ? n : left;
        if (!fr_guard_enter(s->window, (size_t)s->window_n)) {
            s->no_map = true;
            return 0;
        }
        int rc = fn(ctx, s->window + (at - s->window_at), (size_t)n);
        bool lost = fr_guard_leave();
        if (lost || !still_there(s, at + n)) {
            unmap(s); /* its zero pages with it */
            return ends(s, at, err);
        }
        if (rc != 0) {
            return rc;
        }
        *done += n;
    }
    return 0;
}

static bool have_buffer(struct fr_spans *s)
{
    s->buffer = s->buffer != NULL ? s->buffer : fr_malloc(BUFFER);
    return s->buffer != NULL;
}

static int walk_read(struct fr_spans *s, const struct fr_tensor *t, uint64_t done, fr_span_fn fn,
                     void *ctx, struct fr_err *err)
{
    struct fr_err why = {0};
    if (done < t->bytes && !have_buffer(s)) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    while (done < t->bytes) {
        size_t n = t->bytes - done < BUFFER ? (size_t)(t->bytes - done) : BUFFER;
        int rc = fr_blob_read(&s->b, t->offset + done, s->buffer, n, &why);
        if (rc != 0) {
            return failed(s, rc, &why, err);
        }
        rc = fn(ctx, s->buffer, n);
        if (rc != 0) {
            return rc;
        }
        done += n;
    }
    return 0;
}

/* Tensors of one member come in order of their offsets: then the stream goes on where it stood. */
static int seek_member(struct fr_spans *s, const struct fr_tensor *t, struct fr_err *why)
{
    const struct fr_ckpt_member *m = &s->c->members[t->member];
    int rc = 0;
    if (s->inflate == NULL || s->member != t->member || fr_inflate_at(s->inflate) > t->offset) {
        fr_inflate_close(&s->inflate);
        s->member = t->member;
        rc = fr_inflate_open(&s->b, m->offset, m->packed, &s->inflate, why);
    }
    return rc != 0 ? rc
                   : fr_inflate_read(s->inflate, NULL, t->offset - fr_inflate_at(s->inflate), why);
}

static int walk_packed(struct fr_spans *s, const struct fr_tensor *t, fr_span_fn fn, void *ctx,
                       struct fr_err *err)
{
    struct fr_err why = {0};
    if (!have_buffer(s)) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    int rc = seek_member(s, t, &why);
    for (uint64_t done = 0; rc == 0 && done < t->bytes;) {
        size_t n = t->bytes - done < BUFFER ? (size_t)(t->bytes - done) : BUFFER;
        rc = fr_inflate_read(s->inflate, s->buffer, n, &why);
        if (rc == 0) {
            int stop = fn(ctx, s->buffer, n);
            if (stop != 0) {
                return stop;
            }
            done += n;
        }
    }
    if (rc != 0) {
        fr_inflate_close(&s->inflate);
        return failed(s, rc, &why, err);
    }
    return 0;
}

int fr_spans_walk(struct fr_spans *s, const struct fr_tensor *t, fr_span_fn fn, void *ctx,
                  struct fr_err *err)
{
    uint64_t done = 0;
    if (t->bytes == 0) {
        return 0;
    }
    if (t->cut || (t->member >= 0 && (uint32_t)t->member >= s->c->members_n)) {
        return fr_err_set(err, FR_IO, "'%.160s' does not hold all of this tensor", s->b.path);
    }
    if (t->member >= 0) {
        return walk_packed(s, t, fn, ctx, err);
    }
    if (t->offset > s->b.size || t->bytes > s->b.size - t->offset) {
        return ends(s, s->b.size, err);
    }
    int rc = walk_mapped(s, t, &done, fn, ctx, err);
    return rc != 0 || done == t->bytes ? rc : walk_read(s, t, done, fn, ctx, err);
}

void fr_spans_close(struct fr_spans **s)
{
    if (*s != NULL) {
        unmap(*s);
        fr_inflate_close(&(*s)->inflate);
        fr_blob_release(&(*s)->b);
        fr_free((*s)->buffer);
        fr_free(*s);
    }
    *s = NULL;
}
