/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's reader. What a unit is made of is found by looking: a layer is a stream, perhaps compressed, perhaps an archive;
 * the entries of an archive (or what a compressed stream hides) are the next layer. Layers keep their decoders and buffers, so a
 * thread that reads 100,000 files allocates for the first one only. */
#include "base/alloc.h"
#include "base/buf.h"
#include "read/framer.h"
#include "read/ignore.h"
#include "read/sniff.h"
#include "read/units.h"

#include <stdio.h>

#define LAYERS (FR_NESTING_MAX + 3) /* the unit, its nestings, and a compressed entry (twice) in the innermost */
enum { NO_BOX = -1 };
enum found { FOUND_NOTHING, FOUND_TEXT, FOUND_BOX };

struct layer {
    struct fr_peek raw, text; /* as it comes; after decompression */
    struct fr_unzstd *unzstd;
    struct fr_ungzip *ungzip;
    struct fr_box *filter, *box; /* xz, bzip2, lz4; tar, zip */
    struct fr_buf name;
    int around;                  /* index of the layer whose archive holds that of this one */
    uint32_t entries;
};

struct fr_reader {
    const struct fr_input *in;
    fr_skip_fn skip;
    void *ctx;
    struct fr_file file;
    struct fr_framer framer;
    struct fr_utf16 *utf16;
    struct layer layers[LAYERS];
    int box;            /* the innermost open archive, or NO_BOX */
    int at;             /* layer of the member at hand */
    bool fresh;         /* the unit was opened and not looked at yet */
    bool reading;       /* a member is being read */
    bool packed;        /* the unit is compressed or an archive */
    bool failed;        /* the member before this one ended with an error that was reported */
    int64_t mtime_ns;   /* of the member at hand */
    uint64_t unpacked;  /* text bytes given out for this unit */
    uint32_t n_skips;
};

/* ---- what cannot be read */

static void report(struct fr_reader *r, fr_sv source, fr_sv why)
{
    if (r->n_skips++ < FR_SKIPS_EACH && r->skip != NULL) {
        r->skip(r->ctx, source, why);
    }
}

static void flush_reports(struct fr_reader *r)
{
    if (r->n_skips > FR_SKIPS_EACH && r->skip != NULL) {
        char why[64];
        int n = snprintf(why, sizeof why, "%u more parts that are no logs or cannot be read", r->n_skips - FR_SKIPS_EACH);
        r->skip(r->ctx, fr_buf_sv(&r->layers[0].name), (fr_sv){why, (size_t)n});
    }
    r->n_skips = 0;
}

/* Reports a stream's error and swallows it: only lack of memory stops the program. */
static int absorb(struct fr_reader *r, int rc, fr_sv source, const struct fr_err *why, struct fr_err *err)
{
    if (rc == -FR_NOMEM) {
        return fr_err_set(err, FR_NOMEM, "out of memory while reading '%.*s'", (int)(source.n < 150 ? source.n : 150), source.p);
    }
    report(r, source, fr_sv_z(why->msg));
    return 0;
}

/* ---- life */

int fr_reader_new(const struct fr_input *in, fr_skip_fn skip, void *ctx, struct fr_reader **ret, struct fr_err *err)
{
    struct fr_reader *r = fr_calloc(1, sizeof *r);
    if (r == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    r->in = in;
    r->skip = skip;
    r->ctx = ctx;
    r->file.fd = -1;
    r->box = NO_BOX;
    int rc = fr_framer_init(&r->framer, &in->limits, err);
    if (rc != 0) {
        fr_reader_free(&r);
        return rc;
    }
    *ret = r;
    return 0;
}

static void close_unit(struct fr_reader *r)
{
    for (int i = 0; i < LAYERS; i++) {
        if (r->layers[i].box != NULL) {
            fr_box_close(r->layers[i].box);
        }
        if (r->layers[i].filter != NULL) {
            fr_box_close(r->layers[i].filter);
        }
    }
    fr_file_close(&r->file);
    flush_reports(r);
    r->box = NO_BOX;
    r->fresh = r->reading = r->packed = r->failed = false;
    r->unpacked = 0;
}

void fr_reader_free(struct fr_reader **ret)
{
    struct fr_reader *r = *ret;
    if (r == NULL) {
        return;
    }
    close_unit(r);
    for (int i = 0; i < LAYERS; i++) {
        struct layer *l = &r->layers[i];
        fr_peek_release(&l->raw);
        fr_peek_release(&l->text);
        fr_unzstd_free(&l->unzstd);
        fr_ungzip_free(&l->ungzip);
        fr_box_free(&l->filter);
        fr_box_free(&l->box);
        fr_buf_release(&l->name);
    }
    fr_framer_release(&r->framer);
    fr_free(r->utf16);
    fr_free(r);
    *ret = NULL;
}

int fr_reader_open(struct fr_reader *r, uint32_t unit, struct fr_err *err)
{
    struct fr_err why = {0};
    const struct fr_item *it;
    if (unit >= r->in->items.n) {
        return fr_err_set(err, FR_ARG, "there is no input number %u", unit);
    }
    close_unit(r);
    it = &r->in->items.v[unit];
    fr_buf_clear(&r->layers[0].name);
    fr_buf_add(&r->layers[0].name, it->unit.path);
    if (!fr_buf_ok(&r->layers[0].name)) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    int rc = fr_file_open(&r->file, r->layers[0].name.p, it->is_stream, &why);
    if (rc != 0) {
        return absorb(r, rc, it->unit.path, &why, err);
    }
    r->fresh = true;
    return 0;
}

/* ---- looking into a stream */

static struct fr_cost cost_of(const struct fr_reader *r)
{
    return (struct fr_cost){0, 0, r->in->limits.max_ratio, r->in->limits.max_unpacked};
}

/* Puts a decompressor over the layer's raw stream. */
static int unpack(struct fr_reader *r, struct layer *l, enum fr_content c, struct fr_stream **ret, struct fr_err *why)
{
    struct fr_cost cost = cost_of(r);
    struct fr_box_entry e;
    int rc;
    if (c == FR_CONTENT_ZSTD) {
        return fr_unzstd_start(&l->unzstd, &l->raw.s, &cost, ret, why);
    }
    if (c == FR_CONTENT_GZIP) {
        rc = fr_ungzip_start(&l->ungzip, &l->raw.s, &cost, ret, why);
        if (rc != -FR_ABSENT) {
            return rc;
        }
    }
    rc = fr_box_open(&l->filter, &l->raw.s, NULL, false, &cost, why);
    if (rc != 0) {
        return rc;
    }
    rc = fr_box_next(l->filter, &e, why);
    if (rc <= 0) {
        return rc < 0 ? rc : fr_err_set(why, FR_SYNTAX, "cut short: nothing can be unpacked");
    }
    *ret = e.data;
    return 0;
}

static int begin_text(struct fr_reader *r, struct fr_stream *s, enum fr_content c, bool plain, struct fr_err *err)
{
    uint64_t size = UINT64_MAX;
    if (c == FR_CONTENT_TEXT) {
        if (plain) {
            size = r->file.size - (r->file.start < r->file.size ? r->file.start : r->file.size);
        }
        fr_framer_start(&r->framer, s, size, 0);
    } else {
        if (r->utf16 == NULL && (r->utf16 = fr_malloc(sizeof *r->utf16)) == NULL) {
            return fr_err_set(err, FR_NOMEM, "out of memory");
        }
        fr_utf16_start(r->utf16, s, c == FR_CONTENT_UTF16_BE);
        fr_framer_start(&r->framer, &r->utf16->s, UINT64_MAX, FR_SRC_DECODED);
    }
    r->reading = true;
    return FOUND_TEXT;
}

/* Archives nest max_nesting times; a compressed entry of the innermost one (a rotated log) is fine, an archive in it is not. */
static bool is_too_deep(const struct fr_reader *r, enum fr_content c, int depth)
{
    int most = (int)r->in->limits.max_nesting;
    return (fr_content_is_box(c) && depth > most) || (fr_content_is_packed(c) && depth > most + 1);
}

/* A stream that fails before its first byte is no member. 1 = go on. */
static int has_begun(struct fr_reader *r, const struct fr_peek *p, fr_sv name, struct fr_err *err)
{
    return p->failed != 0 && p->n == 0 ? absorb(r, p->failed, name, &p->err, err) : 1;
}

/* Unpacks the layer into l->text; compressed twice is as good as nested. 1 = l->text can be looked at, 0 = told why not, <0. */
static int look_packed(struct fr_reader *r, struct layer *l, enum fr_content c, struct fr_err *err)
{
    struct fr_stream *inner = NULL;
    struct fr_err why = {0};
    int rc = unpack(r, l, c, &inner, &why);
    if (rc != 0) {
        return absorb(r, rc, fr_buf_sv(&l->name), &why, err);
    }
    rc = fr_peek_start(&l->text, inner, err);
    return rc != 0 ? rc : has_begun(r, &l->text, fr_buf_sv(&l->name), err);
}

static int open_entries(struct fr_reader *r, int depth, struct fr_stream *s, bool may_seek, struct fr_err *err)
{
    struct layer *l = &r->layers[depth];
    struct fr_cost cost = cost_of(r);
    struct fr_err why = {0};
    int rc = fr_box_open(&l->box, s, may_seek ? &r->file : NULL, true, &cost, &why);
    if (rc != 0) {
        return absorb(r, rc, fr_buf_sv(&l->name), &why, err);
    }
    l->entries = 0;
    l->around = r->box;
    r->box = depth;
    return FOUND_BOX;
}

/* What the layer's stream is; its name is set. enum found, or -FR_NOMEM. */
static int look_into(struct fr_reader *r, int depth, struct fr_stream *src, struct fr_err *err)
{
    struct layer *l = &r->layers[depth];
    struct fr_stream *s = &l->raw.s;
    const char *why = NULL;
    int rc = fr_peek_start(&l->raw, src, err);
    rc = rc != 0 ? rc : has_begun(r, &l->raw, fr_buf_sv(&l->name), err);
    if (rc <= 0) {
        return rc;
    }
    r->at = depth;
    enum fr_content c = fr_sniff(fr_peek_head(&l->raw), &why);
    bool plain = depth == 0 && r->file.sized;
    if (fr_content_is_packed(c) && !is_too_deep(r, c, depth)) {
        rc = look_packed(r, l, c, err);
        if (rc <= 0) {
            return rc;
        }
        r->packed = true;
        plain = false;
        s = &l->text.s;
        c = fr_sniff(fr_peek_head(&l->text), &why);
        if (fr_content_is_packed(c)) {
            struct fr_buf *name = &r->layers[depth + 1].name;
            fr_buf_clear(name);
            fr_buf_add(name, fr_buf_sv(&l->name));
            return look_into(r, depth + 1, s, err);
        }
    }
    if (c == FR_CONTENT_BINARY || is_too_deep(r, c, depth)) {
        report(r, fr_buf_sv(&l->name), c == FR_CONTENT_BINARY ? fr_sv_z(why) : FR_SV("packed inside too many archives"));
        return FOUND_NOTHING;
    }
    if (!fr_content_is_box(c)) {
        return begin_text(r, s, c, plain, err);
    }
    r->packed = true;
    return open_entries(r, depth, s, plain && r->file.start == 0, err);
}

/* ---- members */

static fr_sv last_part(fr_sv path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/') {
        n--;
    }
    return fr_sv_skip(path, n);
}

static const char *ignored(fr_sv entry)
{
    fr_sv rest = entry, part;
    while (fr_sv_cut(rest, '/', &part, &rest)) {
        const char *why = fr_ignore_folder(part);
        if (why != NULL) {
            return why;
        }
    }
    return fr_ignore_file(part);
}

/* The next entry of the innermost archive, looked into. enum found or -FR_NOMEM. */
static int next_entry(struct fr_reader *r, struct fr_err *err)
{
    struct layer *l = &r->layers[r->box], *next = &r->layers[r->box + 1];
    struct fr_box_entry e = {0};
    struct fr_err why = {0};
    fr_sv name = fr_buf_sv(&l->name);
    bool had_failed = r->failed;
    int rc = fr_box_next(l->box, &e, &why);
    r->failed = false;
    if (rc > 0 && l->entries == 0 && fr_sv_eq(last_part(e.name), FR_SV("data.pkl"))) {
        report(r, name, FR_SV("a PyTorch checkpoint, not a log"));
        rc = 0;
    } else if (rc > 0 && l->entries >= r->in->limits.max_members) {
        report(r, name, FR_SV("an archive with too many files: the rest is left unread"));
        rc = 0;
    } else if (rc == 0 && l->entries == 0) {
        report(r, name, FR_SV("an archive without files"));
    } else if (rc < 0 && !(had_failed && rc != -FR_NOMEM)) {
        rc = absorb(r, rc, name, &why, err);
    }
    if (rc <= 0) {
        fr_box_close(l->box);
        r->box = l->around;
        return rc == -FR_NOMEM ? rc : FOUND_NOTHING;
    }
    l->entries++;
    fr_buf_clear(&next->name);
    fr_buf_printf(&next->name, "%.*s!%.*s", FR_SV_ARG(name), FR_SV_ARG(e.name));
    if (!fr_buf_ok(&next->name)) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    const char *no = e.is_file ? ignored(e.name) : "a link or device inside an archive";
    if (no != NULL) {
        report(r, fr_buf_sv(&next->name), fr_sv_z(no));
        return FOUND_NOTHING;
    }
    r->mtime_ns = e.mtime_ns;
    return look_into(r, r->box + 1, e.data, err);
}

/* A bomb is cut off as a whole: the rest of the unit is left alone. */
static void give_up_unit(struct fr_reader *r)
{
    while (r->box != NO_BOX) {
        fr_box_close(r->layers[r->box].box);
        r->box = r->layers[r->box].around;
    }
}

static void end_member(struct fr_reader *r)
{
    r->reading = false;
    if (r->framer.failed != 0) {
        report(r, fr_buf_sv(&r->layers[r->at].name), fr_sv_z(r->framer.err.msg));
        r->failed = true;
        if (r->framer.failed == -FR_LIMIT) {
            give_up_unit(r);
        }
        r->framer.failed = 0;
    }
}

int fr_reader_member(struct fr_reader *r, struct fr_member *ret, struct fr_err *err)
{
    int rc = FOUND_NOTHING;
    if (r->reading) {
        end_member(r);
    }
    while (rc != FOUND_TEXT) {
        if (r->fresh) {
            r->fresh = false;
            r->mtime_ns = r->file.mtime_ns;
            rc = look_into(r, 0, &r->file.s, err);
        } else if (r->box != NO_BOX) {
            rc = next_entry(r, err);
        } else {
            close_unit(r);
            return 0;
        }
        if (rc < 0) {
            return rc;
        }
    }
    ret->name = fr_buf_sv(&r->layers[r->at].name);
    ret->mtime_ns = r->mtime_ns;
    fr_path_hint(ret->name, ret);
    return 1;
}

/* Entries of a zip are unpacked by libarchive itself, and two harmless ratios multiply: so the whole is watched too. */
static int check_whole(struct fr_reader *r, size_t n, struct fr_err *err)
{
    struct fr_cost c = cost_of(r);
    r->unpacked += n;
    c.in = r->file.pos;
    c.out = r->unpacked;
    return r->packed ? fr_cost_check(&c, err) : 0;
}

int fr_reader_chunk(struct fr_reader *r, struct fr_chunk *ret, struct fr_err *err)
{
    *ret = (struct fr_chunk){0};
    if (r->reading && fr_framer_next(&r->framer, ret) != 0) {
        int rc = check_whole(r, ret->bytes.n, &r->framer.err);
        if (rc != 0 && r->framer.failed == 0) {
            r->framer.failed = rc;
            r->framer.flags |= FR_SRC_LIMIT;
            ret->flags |= FR_SRC_LIMIT;
            ret->last = true;
            r->framer.eof = true;
            r->framer.start = r->framer.end;
        }
        return 1;
    }
    ret->flags = r->framer.flags;
    ret->nuls = r->framer.nuls;
    ret->last = true;
    if (r->reading) {
        int failed = r->framer.failed;
        end_member(r);
        if (failed == -FR_NOMEM) {
            return fr_err_set(err, FR_NOMEM, "out of memory while reading");
        }
    }
    return 0;
}
