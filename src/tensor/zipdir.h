/* SPDX-License-Identifier: Apache-2.0 */
/* zipdir: the central directory of a zip, or of a zip that is a range of a file (a DCP blob). Not
 * libarchive: its reader goes through local headers, and PyTorch's have no sizes (flag bit 3), a
 * padded extra field of their own and sometimes a wrong CRC; we need where the bytes of a member
 * lie, not its bytes. Only sizes and offsets of the directory are believed; its CRCs are handed
 * on; zip64 is read.
 *
 * Members and names are the arena's. Bounded: `most` members, a directory of FR_ZIP_DIR_MAX
 * bytes. */
#ifndef FR_TENSOR_ZIPDIR_H
#define FR_TENSOR_ZIPDIR_H

#include "base/map.h"
#include "tensor/blob.h"

#define FR_ZIP_DIR_MAX ((uint64_t)128 << 20)

struct fr_zip_member {
    fr_sv name;
    uint64_t local;            /* its local header, from the start of the zip */
    uint64_t packed, unpacked;
    uint32_t crc;              /* of the unpacked bytes; torch.serialization.set_crc32_options(False)
                                  makes torch write 0: not reckoned */
    uint16_t method;           /* 0 stored, 8 deflated */
    bool encrypted;
};

struct fr_zip {
    const struct fr_blob *b;
    uint64_t base, size;       /* the range of the file that is the zip */
    uint64_t behind;           /* where bytes begin that follow its end; 0 when none do */
    uint64_t directory;        /* where the directory begins, from the start of the zip */
    struct fr_zip_member *members;
    uint32_t n;
    struct fr_map by_name;     /* -> index in members; the last of equal names */
    fr_sv twice;               /* a name that comes twice, empty when none does */
};

/* -FR_SYNTAX: no zip, torn or malformed, err->pos in the file; -FR_LIMIT; -FR_IO; -FR_NOMEM. */
int fr_zip_open(const struct fr_blob *b, uint64_t base, uint64_t size, uint32_t most,
                struct fr_arena *arena, struct fr_zip *ret, struct fr_err *err);
const struct fr_zip_member *fr_zip_find(const struct fr_zip *z, fr_sv name);
/* Where the bytes of a member begin in the FILE, by its local header, checked to lie before the
 * directory. */
int fr_zip_data(const struct fr_zip *z, const struct fr_zip_member *m, uint64_t *ret,
                struct fr_err *err);
/* A whole member, unpacked, at most `most` bytes, in a new buffer of the caller (fr_free). */
int fr_zip_load(const struct fr_zip *z, const struct fr_zip_member *m, size_t most, char **ret,
                struct fr_err *err);
/* Whether the bytes of a member are those whose checksum the directory has; the checksum of the
 * bytes in *ret. A member without a checksum is sound. */
bool fr_zip_sound(const struct fr_zip_member *m, const char *bytes, uint32_t *ret);

static inline uint16_t fr_le16(const void *p)
{
    const unsigned char *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}
static inline uint32_t fr_le32(const void *p)
{
    return fr_le16(p) | (uint32_t)fr_le16((const char *)p + 2) << 16;
}
static inline uint64_t fr_le64(const void *p)
{
    return fr_le32(p) | (uint64_t)fr_le32((const char *)p + 4) << 32;
}

#endif
