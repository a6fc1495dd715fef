/* SPDX-License-Identifier: Apache-2.0 */
/* npz: a zip of npy files, stored or deflated. */
#include "base/alloc.h"
#include "tensor/inflate.h"
#include "tensor/npy.h"
#include "tensor/zipdir.h"


/* The header of an array at the start of a member, in a new buffer; *ret_n 0 when it is none. */
static int load_header(const struct fr_zip *z, const struct fr_zip_member *m, uint64_t at,
                       char **ret, size_t *ret_n, struct fr_err *err)
{
    struct fr_inflate *f = NULL;
    char first[12];
    int rc = 0;
    *ret_n = 0;
    if (m->unpacked < sizeof first) {
        return 0;
    }
    if (m->method == 0) {
        rc = fr_blob_read(z->b, at, first, sizeof first, err);
    } else {
        rc = fr_inflate_open(z->b, at, m->packed, &f, err);
        rc = rc == 0 ? fr_inflate_read(f, first, sizeof first, err) : rc;
    }
    size_t n = rc == 0 ? fr_npy_header_length((fr_sv){first, sizeof first}) : 0;
    if (n != 0 && n <= m->unpacked && n <= FR_NPY_HEADER_MAX) {
        char *p = fr_malloc(n + 1);
        rc = p == NULL ? fr_err_set(err, FR_NOMEM, "out of memory") : 0;
        if (rc == 0 && m->method == 0) {
            rc = fr_blob_read(z->b, at, p, n, err);
        } else if (rc == 0) {
            memcpy(p, first, sizeof first);
            rc = n > sizeof first ? fr_inflate_read(f, p + sizeof first, n - sizeof first, err) : 0;
        }
        if (rc == 0) {
            *ret = p;
            *ret_n = n;
        } else {
            fr_free(p);
        }
    }
    fr_inflate_close(&f);
    return rc;
}

static void read_member(struct fr_ckpt *c, uint32_t file, const struct fr_zip *z,
                        const struct fr_zip_member *m)
{
    struct fr_err err = {0};
    char *header = NULL;
    size_t n = 0;
    uint64_t at = 0;
    fr_sv name = m->name;
    int rc = fr_zip_data(z, m, &at, &err);
    if (rc == 0 && (m->encrypted || (m->method != 0 && m->method != 8) ||
                    (m->method == 0 && m->packed != m->unpacked))) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, m->local, FR_SV_NONE,
                    "the member '%.*s' is encrypted or in a compression that numpy does not write",
                    FR_SHOWN(name));
        return;
    }
    rc = rc == 0 ? load_header(z, m, at, &header, &n, &err) : rc;
    if (rc != 0 || n == 0) {
        if (rc == -FR_NOMEM) {
            c->nomem = true;
        } else {
            fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file,
                        rc != 0 && err.pos != 0 ? err.pos : m->local, FR_SV_NONE,
                        "the member '%.*s': %s", FR_SHOWN(name),
                        rc != 0 ? err.msg : "no numpy header");
        }
        return;
    }
    if (fr_sv_ends(name, FR_SV(".npy")) && name.n > 4) {
        name.n -= 4;
    }
    int32_t member = -1;
    if (m->method == 8) {
        struct fr_ckpt_member *k = FR_PUSH(&c->members);
        if (k != NULL) {
            *k = (struct fr_ckpt_member){file, at, m->packed, m->unpacked};
            member = (int32_t)c->members.n - 1;
        } else {
            c->nomem = true;
        }
    }
    if (!c->nomem) {
        fr_ckpt_sum(c, &(struct fr_ckpt_sum){.name = m->name,
                                             .file = file,
                                             .crc = m->crc,
                                             .offset = member < 0 ? at : 0,
                                             .bytes = m->unpacked,
                                             .member = member});
        fr_npy_add(c, file, name, (fr_sv){header, n}, member < 0 ? at : 0, m->unpacked, member);
    }
    fr_free(header);
}

static void read_file(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct fr_zip z;
    struct fr_err err = {0};
    int rc = fr_zip_open(b, 0, b->size, c->limits.tensors, &scratch, &z, &err);
    if (rc != 0) {
        uint8_t kind = rc == -FR_LIMIT      ? FR_PROBLEM_LIMIT
                       : rc == -FR_IO       ? FR_PROBLEM_UNREADABLE
                       : err.pos >= b->size ? FR_PROBLEM_TRUNCATED
                                            : FR_PROBLEM_HEADER;
        fr_ckpt_say_err(c, kind, true, file, rc, &err);
    } else {
        if (z.behind > 0) {
            fr_ckpt_say(c, FR_PROBLEM_HOLE, false, file, z.behind, FR_SV_NONE,
                        "%llu bytes follow the end of the zip at byte %llu, where no reader looks",
                        (unsigned long long)(b->size - z.behind), (unsigned long long)z.behind);
        }
        if (z.twice.n > 0) {
            fr_ckpt_say(c, FR_PROBLEM_DUPLICATE, true, file, z.directory, z.twice,
                        "the member '%.*s' comes twice", FR_SHOWN(z.twice));
        }
        for (uint32_t i = 0; i < z.n && !c->nomem && !c->full_tensors; i++) {
            read_member(c, file, &z, &z.members[i]);
        }
    }
    fr_arena_release(&scratch);
}

static bool sniff(fr_sv name, fr_sv head)
{
    (void)head;
    return fr_sv_ends(name, FR_SV(".npz"));
}

const struct fr_ckpt_format fr_ckpt_format_npz = {
    .name = "npz", .summary = "numpy archives", .sniff = sniff, .read = read_file,
};
