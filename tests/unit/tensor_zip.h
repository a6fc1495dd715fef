/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_zip: zips and pickles by hand, for what no library writes. */
#ifndef FR_TESTS_TENSOR_ZIP_H
#define FR_TESTS_TENSOR_ZIP_H

#include <stddef.h>
#include <string.h>

struct zip {
    unsigned char p[1 << 17], dir[1 << 15];
    size_t n, dir_n;
    unsigned members;
};

static inline void put16(unsigned char *p, unsigned v)
{
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static inline void put32(unsigned char *p, size_t v)
{
    put16(p, (unsigned)(v & 0xffff));
    put16(p + 2, (unsigned)(v >> 16 & 0xffff));
}

/* A stored member, as PyTorch writes it: no sizes in the local header. */
static inline void zip_add(struct zip *z, const char *name, const void *p, size_t n)
{
    size_t name_n = strlen(name);
    unsigned char *local = z->p + z->n, *central = z->dir + z->dir_n;
    memset(local, 0, 30);
    memcpy(local, "PK\3\4", 4);
    put16(local + 6, 0x0808);
    put16(local + 26, (unsigned)name_n);
    memcpy(local + 30, name, name_n);
    memcpy(local + 30 + name_n, p, n);
    memset(central, 0, 46);
    memcpy(central, "PK\1\2", 4);
    put32(central + 16, 0); /* a CRC that was not reckoned */
    put32(central + 20, n);
    put32(central + 24, n);
    put16(central + 28, (unsigned)name_n);
    put32(central + 42, z->n);
    memcpy(central + 46, name, name_n);
    z->n += 30 + name_n + n;
    z->dir_n += 46 + name_n;
    z->members++;
}

/* The directory and end; `claimed` members. */
static inline void zip_end(struct zip *z, unsigned claimed)
{
    size_t at = z->n;
    memcpy(z->p + z->n, z->dir, z->dir_n);
    z->n += z->dir_n;
    unsigned char *end = z->p + z->n;
    memset(end, 0, 22);
    memcpy(end, "PK\5\6", 4);
    put16(end + 8, claimed);
    put16(end + 10, claimed);
    put32(end + 12, z->dir_n);
    put32(end + 16, at);
    z->n += 22;
}

/* What torch.save() would make of this pickle and one storage "0" of 16 bytes: the floats 1 2 3 4. */
static inline const struct zip *torch_zip(const char *pickle, size_t n)
{
    static struct zip z;
    const float four[4] = {1, 2, 3, 4};
    z.n = z.dir_n = z.members = 0;
    zip_add(&z, "archive/data.pkl", pickle, n);
    zip_add(&z, "archive/data/0", four, sizeof four);
    zip_end(&z, z.members);
    return &z;
}

#endif
