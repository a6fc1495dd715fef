/* SPDX-License-Identifier: Apache-2.0 */
/* libarchive, fed from our own streams: gzip and zstd around a tar are undone by our decoders before it sees them. Only what we
 * name is switched on (never support_all: some filters start programs), nothing is ever written to disk, links are not followed. */
#include "base/alloc.h"
#include "base/time.h"
#include "read/stream.h"
#include "read/symbols.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_BYTES ((size_t)64 << 10)
#define NAME_MAX_BYTES 1024

struct fr_box {
    struct fr_stream s; /* the data of the entry at hand */
    const struct fr_archive_lib *lib;
    struct archive *a;
    struct fr_stream *under;
    struct fr_file *seekable;
    struct fr_cost cost;
    bool entries, started;
    int under_failed; /* our own stream's error is more telling than libarchive's */
    struct fr_err under_err;
    char name[NAME_MAX_BYTES];
    char buf[IN_BYTES];
};

static la_ssize_t feed(struct archive *a, void *ctx, const void **ret)
{
    struct fr_box *b = ctx;
    (void)a;
    *ret = b->buf;
    if (b->under->ended) {
        return 0;
    }
    int64_t got = b->under->read(b->under, b->buf, sizeof b->buf, &b->under_err);
    if (got < 0) {
        b->under_failed = (int)got;
        return ARCHIVE_FATAL;
    }
    b->cost.in += (uint64_t)got;
    return (la_ssize_t)got;
}

static la_int64_t seek(struct archive *a, void *ctx, la_int64_t offset, int whence)
{
    struct fr_box *b = ctx;
    struct fr_file *f = b->seekable;
    int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? (int64_t)f->pos : (int64_t)f->limit;
    (void)a;
    if (offset < -base || base + offset > (int64_t)f->limit) {
        return ARCHIVE_FATAL;
    }
    f->pos = (uint64_t)(base + offset);
    f->s.ended = f->pos >= f->limit;
    return (la_int64_t)f->pos;
}

static int fail(struct fr_box *b, struct fr_err *err)
{
    if (b->under_failed != 0) {
        if (err != NULL) {
            *err = b->under_err;
        }
        return b->under_failed;
    }
    const char *why = b->lib->archive_error_string(b->a);
    return fr_err_set(err, FR_SYNTAX, "%s: %s", b->entries ? "damaged archive" : "damaged data",
                      why != NULL ? why : "no reason given");
}

/* ARCHIVE_WARN means "through an external program": as good as absent. */
static bool set_up(struct fr_box *b)
{
    const struct fr_archive_lib *l = b->lib;
    if (b->entries) {
        return l->archive_read_support_format_tar(b->a) == ARCHIVE_OK && l->archive_read_support_format_zip(b->a) == ARCHIVE_OK;
    }
    return l->archive_read_support_format_raw(b->a) == ARCHIVE_OK && l->archive_read_support_filter_gzip(b->a) == ARCHIVE_OK &&
           l->archive_read_support_filter_bzip2(b->a) == ARCHIVE_OK && l->archive_read_support_filter_xz(b->a) == ARCHIVE_OK &&
           l->archive_read_support_filter_lz4(b->a) == ARCHIVE_OK;
}

static int64_t entry_read(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct fr_box *b = (struct fr_box *)s;
    la_ssize_t got;
    do {
        got = b->lib->archive_read_data(b->a, p, n);
    } while (got == ARCHIVE_RETRY);
    if (got < 0) {
        return fail(b, err);
    }
    s->ended = got == 0;
    b->cost.out += (uint64_t)got;
    int over = fr_cost_check(&b->cost, err);
    return over != 0 ? over : (int64_t)got;
}

int fr_box_open(struct fr_box **ret_b, struct fr_stream *under, struct fr_file *seekable, bool entries,
                const struct fr_cost *cost, struct fr_err *err)
{
    const struct fr_archive_lib *lib = fr_archive_lib(err);
    struct fr_box *b = *ret_b;
    if (lib == NULL) {
        return -FR_ABSENT;
    }
    if (b == NULL) {
        b = fr_malloc(sizeof *b);
        if (b == NULL) {
            return fr_err_set(err, FR_NOMEM, "out of memory");
        }
        b->a = NULL;
        *ret_b = b;
    }
    fr_box_close(b);
    b->s = (struct fr_stream){.read = entry_read};
    b->lib = lib;
    b->under = under;
    b->seekable = seekable;
    b->cost = *cost;
    b->entries = entries;
    b->started = false;
    b->under_failed = 0;
    b->a = lib->archive_read_new();
    if (b->a == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    if (!set_up(b)) {
        return fr_err_set(err, FR_ABSENT, "this libarchive cannot read it");
    }
    if (seekable != NULL) {
        seekable->pos = 0;
        seekable->s.ended = false;
        b->under = &seekable->s;
        lib->archive_read_set_seek_callback(b->a, seek);
    }
    lib->archive_read_set_read_callback(b->a, feed);
    lib->archive_read_set_callback_data(b->a, b);
    return lib->archive_read_open1(b->a) == ARCHIVE_OK ? 0 : fail(b, err);
}

static void entry_name(struct fr_box *b, struct archive_entry *e, fr_sv *ret)
{
    const char *name = b->lib->archive_entry_pathname(e);
    size_t n;
    if (name == NULL) {
        name = b->lib->archive_entry_pathname_utf8(e); /* a UTF-8 name in the C locale */
    }
    name = name != NULL && *name != '\0' ? name : "(a name that cannot be read)";
    while (name[0] == '.' && name[1] == '/') {
        name += 2;
    }
    n = strlen(name);
    n = n < sizeof b->name ? n : sizeof b->name - 1;
    memcpy(b->name, name, n);
    b->name[n] = '\0';
    *ret = (fr_sv){b->name, n};
}

int fr_box_next(struct fr_box *b, struct fr_box_entry *ret, struct fr_err *err)
{
    for (;;) {
        struct archive_entry *e;
        int rc = b->lib->archive_read_next_header(b->a, &e);
        if (rc == ARCHIVE_EOF) {
            return 0;
        }
        if (rc == ARCHIVE_RETRY) {
            continue;
        }
        if (rc < ARCHIVE_WARN) {
            return fail(b, err);
        }
        unsigned type = b->lib->archive_entry_filetype(e);
        if (type == AE_IFDIR) {
            continue;
        }
        entry_name(b, e, &ret->name);
        ret->is_file = (type == AE_IFREG || type == 0) && b->lib->archive_entry_hardlink(e) == NULL;
        ret->mtime_ns = FR_TIME_NONE;
        if (b->lib->archive_entry_mtime_is_set(e)) {
            int64_t t = (int64_t)b->lib->archive_entry_mtime(e);
            if (t > -4000000000 && t < 9000000000) {
                ret->mtime_ns = t * FR_NS_PER_S + b->lib->archive_entry_mtime_nsec(e);
            }
        }
        b->s.ended = false;
        ret->data = &b->s;
        return 1;
    }
}

void fr_box_close(struct fr_box *b)
{
    if (b->a != NULL) {
        (void)b->lib->archive_read_free(b->a);
        b->a = NULL;
    }
}

void fr_box_free(struct fr_box **b)
{
    if (*b != NULL) {
        fr_box_close(*b);
        fr_free(*b);
        *b = NULL;
    }
}
