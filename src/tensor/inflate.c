/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/inflate.h"

#include "base/alloc.h"

#include <zlib.h>

struct fr_inflate {
    const struct fr_blob *b;
    uint64_t at, left,
        out; /* next packed byte in the file, packed bytes left, unpacked bytes so far */
    z_stream z;
    unsigned char in[64 << 10], waste[16 << 10];
};

static voidpf z_alloc(voidpf ctx, uInt n, uInt size)
{
    (void)ctx;
    return fr_calloc(n, size);
}

static void z_free(voidpf ctx, voidpf p)
{
    (void)ctx;
    fr_free(p);
}

int fr_inflate_open(const struct fr_blob *b, uint64_t at, uint64_t packed, struct fr_inflate **ret,
                    struct fr_err *err)
{
    struct fr_inflate *f = fr_calloc(1, sizeof *f);
    if (f == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    f->b = b;
    f->at = at;
    f->left = packed;
    f->z.zalloc = z_alloc;
    f->z.zfree = z_free;
    if (inflateInit2(&f->z, -MAX_WBITS) != Z_OK) {
        fr_free(f);
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    *ret = f;
    return 0;
}

static int refill(struct fr_inflate *f, struct fr_err *err)
{
    size_t n = f->left < sizeof f->in ? (size_t)f->left : sizeof f->in;
    int rc = n == 0 ? fr_err_set(err, FR_SYNTAX, "compressed data end early, at byte %llu",
                                 (unsigned long long)f->at)
                    : fr_blob_read(f->b, f->at, f->in, n, err);
    if (rc != 0) {
        if (err != NULL) {
            err->pos = f->at;
        }
        return rc;
    }
    f->at += n;
    f->left -= n;
    f->z.next_in = f->in;
    f->z.avail_in = (uInt)n;
    return 0;
}

int fr_inflate_read(struct fr_inflate *f, void *p, uint64_t n, struct fr_err *err)
{
    while (n > 0) {
        size_t room = p == NULL ? sizeof f->waste : (size_t)1 << 30;
        room = n < room ? (size_t)n : room;
        f->z.next_out = p == NULL ? f->waste : p;
        f->z.avail_out = (uInt)room;
        int rc = f->z.avail_in == 0 ? refill(f, err) : 0;
        if (rc != 0) {
            return rc;
        }
        int z = inflate(&f->z, Z_NO_FLUSH);
        size_t made = room - f->z.avail_out;
        f->out += made;
        n -= made;
        p = p == NULL ? NULL : (char *)p + made;
        if (z == Z_MEM_ERROR) {
            return fr_err_set(err, FR_NOMEM, "out of memory");
        }
        if ((z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR) || (z == Z_STREAM_END && n > 0)) {
            uint64_t pos = f->at - f->z.avail_in;
            rc = fr_err_set(err, FR_SYNTAX,
                            z == Z_STREAM_END ? "compressed data end early, at byte %llu"
                                              : "damaged compressed data before byte %llu",
                            (unsigned long long)pos);
            if (err != NULL) {
                err->pos = pos;
            }
            return rc;
        }
    }
    return 0;
}

uint64_t fr_inflate_at(const struct fr_inflate *f)
{
    return f->out;
}

void fr_inflate_close(struct fr_inflate **f)
{
    if (*f != NULL) {
        (void)inflateEnd(&(*f)->z);
        fr_free(*f);
    }
    *f = NULL;
}
