/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/zipdir.h"

#include "base/alloc.h"
#include "tensor/inflate.h"

#include <stdlib.h>
#include <zlib.h>

enum { EOCD = 22, LOCATOR = 20, EOCD64 = 56, CENTRAL = 46, LOCAL = 30 };

static int bad(const struct fr_zip *z, uint64_t at, struct fr_err *err, const char *what)
{
    int rc = fr_err_set(err, FR_SYNTAX, "%s (byte %llu)", what, (unsigned long long)(z->base + at));
    if (err != NULL) {
        err->pos = z->base + at;
    }
    return rc;
}

static int get(const struct fr_zip *z, uint64_t at, void *p, size_t n, struct fr_err *err)
{
    if (at > z->size || n > z->size - at) {
        return bad(z, z->size, err, "torn zip: ends before what its directory promises");
    }
    return fr_blob_read(z->b, z->base + at, p, n, err);
}

/* The end record: the last one whose comment fits. Its offset in the zip. Of a file the last one
 * whatever follows: torch.load (1.13, 2.14) takes no notice of bytes behind it. */
static int find_end(struct fr_zip *z, uint64_t *ret, unsigned char end[EOCD], struct fr_err *err)
{
    size_t n = z->size < EOCD + 65535 ? (size_t)z->size : EOCD + 65535;
    char *tail = NULL;
    size_t tries[2] = {n < 1024 ? n : 1024, n};
    uint64_t over = 0; /* end of an end record that something follows; 0 = none was met */
    for (int k = 0; k < 2; k++) {
        n = tries[k];
        int rc = fr_blob_load(z->b, z->base + z->size - n, n, &tail, err);
        if (rc != 0) {
            return rc;
        }
        for (size_t i = n; n >= EOCD && i-- > 0;) {
            if (i + EOCD <= n && memcmp(tail + i, "PK\5\6", 4) == 0 &&
                i + EOCD + fr_le16(tail + i + 20) == n) {
                *ret = z->size - n + i;
                memcpy(end, tail + i, EOCD);
                fr_free(tail);
                return 0;
            }
            if (over == 0 && i + EOCD <= n && memcmp(tail + i, "PK\5\6", 4) == 0) {
                over = z->size - n + i + EOCD;
                memcpy(end, tail + i, EOCD);
            }
        }
        fr_free(tail);
    }
    if (over > 0 && z->base == 0 && z->size == z->b->size) {
        *ret = over - EOCD;
        z->behind = over;
        return 0;
    }
    return bad(z, z->size, err, "torn zip: the directory at its end is missing");
}

struct directory {
    uint64_t n, size, at, end; /* entries, bytes, first byte, where what follows it begins */
};

static int find_directory(struct fr_zip *z, struct directory *d, struct fr_err *err)
{
    unsigned char end[EOCD] = {0}, locator[LOCATOR], end64[EOCD64];
    uint64_t at = 0;
    int rc = find_end(z, &at, end, err);
    if (rc != 0) {
        return rc;
    }
    *d = (struct directory){fr_le16(end + 10), fr_le32(end + 12), fr_le32(end + 16), at};
    if (at >= LOCATOR) {
        rc = get(z, at - LOCATOR, locator, sizeof locator, err);
        if (rc != 0) {
            return rc;
        }
        if (memcmp(locator, "PK\6\7", 4) == 0) {
            uint64_t where = fr_le64(locator + 8);
            if (where > at - LOCATOR || at - LOCATOR - where < EOCD64) {
                return bad(z, at - LOCATOR, err, "malformed zip: its zip64 record lies outside");
            }
            rc = get(z, where, end64, sizeof end64, err);
            if (rc != 0) {
                return rc;
            }
            if (memcmp(end64, "PK\6\6", 4) != 0) {
                return bad(z, where, err, "malformed zip: no zip64 record where one is promised");
            }
            *d = (struct directory){fr_le64(end64 + 32), fr_le64(end64 + 40), fr_le64(end64 + 48),
                                    where};
        }
    }
    if (d->at > d->end || d->size > d->end - d->at) {
        return bad(z, d->end, err, "malformed zip: its directory lies outside");
    }
    return 0;
}

/* The 64-bit values of an entry, in the order in which their short fields are full. */
static bool read_zip64(fr_sv extra, struct fr_zip_member *m)
{
    while (extra.n >= 4) {
        uint16_t id = fr_le16(extra.p), n = fr_le16(extra.p + 2);
        if ((size_t)n + 4 > extra.n) {
            break;
        }
        fr_sv body = {extra.p + 4, n};
        extra = fr_sv_skip(extra, (size_t)n + 4);
        if (id != 1) {
            continue;
        }
        uint64_t *want[3] = {&m->unpacked, &m->packed, &m->local};
        for (int i = 0; i < 3; i++) {
            if (*want[i] == UINT32_MAX && body.n >= 8) {
                *want[i] = fr_le64(body.p);
                body = fr_sv_skip(body, 8);
            }
        }
        return true;
    }
    return m->unpacked != UINT32_MAX && m->packed != UINT32_MAX && m->local != UINT32_MAX;
}

static int read_entry(struct fr_zip *z, struct fr_arena *arena, const char *dir, uint64_t size,
                      uint64_t *at, struct fr_err *err)
{
    const char *p = dir + *at;
    if (size - *at < CENTRAL || memcmp(p, "PK\1\2", 4) != 0) {
        return bad(z, z->directory + *at, err,
                   "malformed zip: a directory entry is cut or has no signature");
    }
    size_t name = fr_le16(p + 28), extra = fr_le16(p + 30), comment = fr_le16(p + 32);
    if (size - *at - CENTRAL < name + extra + comment) {
        return bad(z, z->directory + *at, err,
                   "malformed zip: a directory entry is longer than the directory");
    }
    struct fr_zip_member *m = &z->members[z->n];
    *m = (struct fr_zip_member){.name = fr_arena_dup(arena, (fr_sv){p + CENTRAL, name}),
                                .local = fr_le32(p + 42),
                                .packed = fr_le32(p + 20),
                                .unpacked = fr_le32(p + 24),
                                .crc = fr_le32(p + 16),
                                .method = fr_le16(p + 10),
                                .encrypted = (fr_le16(p + 8) & 1) != 0};
    bool is_new = false;
    uint32_t *slot = m->name.p == NULL ? NULL : fr_map_slot(&z->by_name, m->name, &is_new);
    if (slot == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    if (!read_zip64((fr_sv){p + CENTRAL + name, extra}, m)) {
        return bad(z, z->directory + *at, err, "malformed zip: an entry without its 64-bit sizes");
    }
    if (m->local > z->directory || m->packed > z->directory - m->local) {
        return bad(z, z->directory + *at, err,
                   "malformed zip: a member reaches into the directory or beyond");
    }
    if (!is_new && z->twice.n == 0) {
        z->twice = m->name;
    }
    *slot = z->n++;
    *at += CENTRAL + name + extra + comment;
    return 0;
}

static int by_local(const void *a, const void *b)
{
    const struct fr_zip_member *const *x = a, *const *y = b;
    return ((*x)->local > (*y)->local) - ((*x)->local < (*y)->local);
}

/* No zip has members that share bytes; one that does makes a reader work a million times on the
 * same ones. */
static int check_overlap(const struct fr_zip *z, struct fr_err *err)
{
    int rc = 0;
    const struct fr_zip_member **order = fr_calloc(z->n, sizeof *order);
    if (order == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < z->n; i++) {
        order[i] = &z->members[i];
    }
    qsort(order, z->n, sizeof *order, by_local);
    for (uint32_t i = 1; i < z->n && rc == 0; i++) {
        if (order[i]->local - order[i - 1]->local < LOCAL + order[i - 1]->packed) {
            rc = bad(z, order[i]->local, err, "malformed zip: two members claim the same bytes");
        }
    }
    fr_free(order);
    return rc;
}

int fr_zip_open(const struct fr_blob *b, uint64_t base, uint64_t size, uint32_t most,
                struct fr_arena *arena, struct fr_zip *ret, struct fr_err *err)
{
    struct fr_zip z = {.b = b, .base = base, .size = size};
    struct directory d = {0};
    char *dir = NULL;
    int rc = find_directory(&z, &d, err);
    if (rc != 0) {
        return rc;
    }
    z.directory = d.at;
    if (d.n > most || d.size > FR_ZIP_DIR_MAX || d.size / 4096 > most) {
        return fr_err_set(
            err, FR_LIMIT,
            "a zip of %llu members, a directory of %llu bytes; at most %u and %llu are read",
            (unsigned long long)d.n, (unsigned long long)d.size, most,
            (unsigned long long)FR_ZIP_DIR_MAX);
    }
    if (d.n > d.size / CENTRAL) {
        return bad(&z, d.end, err, "malformed zip: more members than its directory has room for");
    }
    fr_map_init(&z.by_name, arena);
    z.members = FR_NEW_N(arena, struct fr_zip_member, d.n);
    if (z.members == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    rc = fr_blob_load(b, base + d.at, (size_t)d.size, &dir, err);
    for (uint64_t i = 0, at = 0; rc == 0 && i < d.n; i++) {
        rc = read_entry(&z, arena, dir, d.size, &at, err);
    }
    fr_free(dir);
    rc = rc == 0 ? check_overlap(&z, err) : rc;
    if (rc == 0) {
        *ret = z;
    }
    return rc;
}

const struct fr_zip_member *fr_zip_find(const struct fr_zip *z, fr_sv name)
{
    uint32_t i;
    return fr_map_get(&z->by_name, name, &i) ? &z->members[i] : NULL;
}

int fr_zip_data(const struct fr_zip *z, const struct fr_zip_member *m, uint64_t *ret,
                struct fr_err *err)
{
    unsigned char local[LOCAL];
    int rc = get(z, m->local, local, sizeof local, err);
    if (rc != 0) {
        return rc;
    }
    uint64_t at = m->local + LOCAL + fr_le16(local + 26) + fr_le16(local + 28);
    if (memcmp(local, "PK\3\4", 4) != 0) {
        return bad(z, m->local, err, "malformed zip: a member has no local header");
    }
    if (at > z->directory || m->packed > z->directory - at) {
        return bad(z, m->local, err,
                   "malformed zip: a member reaches into the directory or beyond");
    }
    *ret = z->base + at;
    return 0;
}

int fr_zip_load(const struct fr_zip *z, const struct fr_zip_member *m, size_t most, char **ret,
                struct fr_err *err)
{
    uint64_t at = 0;
    struct fr_inflate *f = NULL;
    int rc = fr_zip_data(z, m, &at, err);
    if (rc != 0) {
        return rc;
    }
    if (m->encrypted || (m->method != 0 && m->method != 8) ||
        (m->method == 0 && m->packed != m->unpacked)) {
        return bad(z, m->local, err,
                   m->encrypted ? "an encrypted member"
                                : "a member in a compression that PyTorch and numpy do not write");
    }
    if (m->unpacked > most) {
        rc = fr_err_set(err, FR_LIMIT, "a member of %llu bytes; at most %zu are read",
                        (unsigned long long)m->unpacked, most);
        return rc;
    }
    if (m->method == 0) {
        return fr_blob_load(z->b, at, (size_t)m->unpacked, ret, err);
    }
    if (m->unpacked / 1100 > m->packed) { /* deflate cannot do more: do not make room for it */
        return bad(z, m->local, err,
                   "malformed zip: a member claims to unpack to more than it can");
    }
    char *p = fr_malloc((size_t)m->unpacked + 1);
    if (p == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    rc = fr_inflate_open(z->b, at, m->packed, &f, err);
    rc = rc == 0 ? fr_inflate_read(f, p, m->unpacked, err) : rc;
    fr_inflate_close(&f);
    if (rc != 0) {
        fr_free(p);
        return rc;
    }
    p[m->unpacked] = '\0';
    *ret = p;
    return 0;
}

bool fr_zip_sound(const struct fr_zip_member *m, const char *bytes, uint32_t *ret)
{
    *ret = (uint32_t)crc32_z(0, (const Bytef *)bytes, (size_t)m->unpacked);
    return m->crc == 0 || *ret == m->crc;
}
