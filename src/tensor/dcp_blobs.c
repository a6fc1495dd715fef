/* SPDX-License-Identifier: Apache-2.0 */
/* Blobs without their index: each is a zip, and a zip is known by its end. Every end record is
 * tried against the start of the blob: its offsets are relative to that, so a chance match in the
 * data does not open. */
#include "base/alloc.h"
#include "tensor/dcp.h"

#include <stdio.h>

enum { PIECE = 1 << 20, OVERLAP = 32, BLOB_MEMBERS = 4096 };

struct blobs {
    struct fr_ckpt *c;
    uint32_t file;
    struct fr_blob b;
    uint64_t begin; /* of the blob at hand */
    uint32_t found, tries;
};

static bool try_end(struct blobs *x, uint64_t at, uint16_t comment)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct fr_zip zip;
    char name[320];
    uint64_t end = at + 22 + comment;
    int rc = end > x->b.size
                 ? -FR_SYNTAX
                 : fr_zip_open(&x->b, x->begin, end - x->begin, BLOB_MEMBERS, &scratch, &zip, NULL);
    bool opens = rc == 0 && zip.n > 0;
    fr_arena_release(&scratch);
    x->c->nomem = x->c->nomem || rc == -FR_NOMEM;
    if (!opens) {
        x->tries++;
        return false;
    }
    fr_sv file = fr_path_name(x->c->files.v[x->file].path);
    int n = snprintf(name, sizeof name, "%.*s#%u", (int)fr_sv_head(file, 280).n, file.p,
                     ++x->found);
    fr_torch_read(x->c, x->file, &x->b, x->begin, end - x->begin, (fr_sv){name, (size_t)n});
    x->begin = end;
    return true;
}

/* All ends in a piece of the file; `more` bytes after it belong to the next piece. */
static void search(struct blobs *x, const char *p, size_t n, uint64_t at)
{
    for (size_t i = 0;
         i + 22 <= n && x->tries < FR_DCP_TRIES && !x->c->nomem && !x->c->full_tensors;) {
        const char *hit = memmem(p + i, n - i, "PK\5\6", 4);
        if (hit == NULL) {
            return;
        }
        i = (size_t)(hit - p);
        if (i + 22 > n) {
            return;
        }
        if (at + i >= x->begin) {
            (void)try_end(x, at + i, fr_le16(hit + 20));
        }
        i += 4;
    }
}

static void walk_file(struct blobs *x, char *piece)
{
    struct fr_err err = {0};
    uint64_t at = 0;
    while (at < x->b.size && x->tries < FR_DCP_TRIES && !x->c->nomem && !x->c->full_tensors) {
        size_t n = x->b.size - at < PIECE ? (size_t)(x->b.size - at) : PIECE;
        int rc = fr_blob_read(&x->b, at, piece, n, &err);
        if (rc != 0) {
            fr_ckpt_say_err(x->c, FR_PROBLEM_UNREADABLE, true, x->file, rc, &err);
            return;
        }
        search(x, piece, n, at);
        at += n == PIECE ? PIECE - OVERLAP
                         : n; /* an end across the border is seen whole in the next piece */
    }
    if (x->tries >= FR_DCP_TRIES) {
        fr_ckpt_say(x->c, FR_PROBLEM_LIMIT, true, x->file, x->begin, FR_SV_NONE,
                    "more than %d places look like the end of a blob and are none", FR_DCP_TRIES);
    } else if (x->begin < x->b.size) {
        fr_ckpt_say(
            x->c, FR_PROBLEM_TRUNCATED, true, x->file, x->begin, FR_SV_NONE,
            "the blob that begins at byte %llu has no end: the file was cut or is being written",
            (unsigned long long)x->begin);
    }
}

void fr_dcp_walk_folder(struct fr_ckpt *c, uint32_t step, fr_sv folder)
{
    char *piece = fr_malloc(PIECE);
    if (piece == NULL) {
        c->nomem = true;
        return;
    }
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        if (!fr_sv_eq(c->files.v[i].format, FR_SV("distcp")) ||
            !fr_sv_eq(fr_path_folder(c->files.v[i].path), folder)) {
            continue;
        }
        struct blobs x = {.c = c, .file = i, .b = FR_BLOB_INIT};
        struct fr_err err = {0};
        int rc = fr_blob_open(&x.b, c->files.v[i].path.p, &err);
        if (rc != 0) {
            fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, i, rc, &err);
            continue;
        }
        walk_file(&x, piece);
        fr_blob_release(&x.b);
    }
    fr_free(piece);
}
