/* SPDX-License-Identifier: Apache-2.0 */
/* kernel: what the variants of the kernels share. One file per kind of CPU, one row each in
 * kernel.c. All are the same text (kernel_body.h) over vectors of 4, 8 or 16 floats and perform the
 * same roundings in the same order, so they give the same bits. A row that leaves the range where
 * fp32 is exact enough is done again in double, by kernel_wide.c for all of them. Private to
 * numerics/. */
#ifndef FR_NUMERICS_KERNEL_H
#define FR_NUMERICS_KERNEL_H

#include "numerics/layout.h"

#include <stdbool.h>
#include <string.h>

/* Elements are taken in groups of 32, one lane each, whatever the width of a vector. */
#define FR_GROUP 32
/* After so many elements the lanes are folded and added to a double: a sum of terms of one sign is
 * off by at most 10 * 2^-24 of itself, however long the row. */
#define FR_BLOCK 256

/* Where mean square + eps may lie for fp32 to be good enough: below, squares lose bits to
 * underflow; above, a block's sum comes near fp32's end. */
#define FR_FAST_LEAST 0x1p-100
#define FR_FAST_MOST  0x1p115

/* One row and what belongs to it. Bytes, because nothing need be aligned. Elements of x, w, b, dy
 * and y have the types beside them. */
struct fr_kernel_row {
    size_t n;
    const uint8_t *x;
    const uint8_t *w, *b;  /* NULL: 1 and 0 */
    const uint8_t *dy;     /* a softmax's mask (NULL: none), a dot product's second vector */
    uint8_t *y;            /* dx of a backward, or NULL there */
    float *dw, *db;        /* added to; NULL: not wanted */
    const float *live;     /* 0 for elements that only fill up the last group; NULL: none does */
    const uint8_t *ahead;  /* the next row of x, to be fetched meanwhile; NULL: none */
    uint32_t x_type, w_type, b_type, dy_type, y_type;
    float eps;
};

/* Norms return 1, and have written nothing, when the row is to be done in double. Softmax returns 1
 * when every element was masked, and has written zeros. */
struct fr_kernels {
    int (*rms_norm)(const struct fr_kernel_row *r);
    int (*rms_norm_backward)(const struct fr_kernel_row *r);
    int (*layer_norm)(const struct fr_kernel_row *r);
    int (*layer_norm_backward)(const struct fr_kernel_row *r);
    int (*softmax)(const struct fr_kernel_row *r);
    void (*add_mask)(const struct fr_kernel_row *r); /* y = x, masked */
    double (*dot)(const struct fr_kernel_row *r);    /* x . dy; not finite: to be done in double */
};

struct fr_kernel_variant {
    const char *name;
    const struct fr_kernels *kernels;
    bool (*works)(void); /* on this CPU */
};
extern const struct fr_kernel_variant fr_kernel_variants[]; /* the reference first, the best last */
extern const unsigned fr_kernel_variants_count;
/* For tests: all calls from now on use k; NULL: choose again. */
void fr_kernel_force(const struct fr_kernels *k);

extern const struct fr_kernels fr_kernels_portable, fr_kernels_avx2, fr_kernels_avx512;

/* kernel_wide.c: the same in double, for any finite row. */
void fr_wide_rms_norm(const struct fr_kernel_row *r);
void fr_wide_rms_norm_backward(const struct fr_kernel_row *r);
void fr_wide_layer_norm(const struct fr_kernel_row *r);
void fr_wide_layer_norm_backward(const struct fr_kernel_row *r);
double fr_wide_dot(const struct fr_kernel_row *r);

/* The last elements of a row, fewer than a group: a row of FR_GROUP elements over memory of its
 * own, x filled up with zeros or -Inf, all else with zeros. */
struct fr_kernel_pad {
    uint8_t x[4 * FR_GROUP], w[4 * FR_GROUP], b[4 * FR_GROUP], dy[4 * FR_GROUP], y[4 * FR_GROUP];
    float dw[FR_GROUP], db[FR_GROUP], live[FR_GROUP];
};
struct fr_kernel_row fr_kernel_pad_in(struct fr_kernel_pad *pad, const struct fr_kernel_row *r,
                                      size_t from, bool lowest);
void fr_kernel_pad_out(const struct fr_kernel_pad *pad, const struct fr_kernel_row *r, size_t from);

static inline size_t fr_element_size(uint32_t type)
{
    return type == FR_F32 ? 4 : type == FR_F16 || type == FR_BF16 ? 2 : 1;
}

static inline float fr_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t fr_bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* As VCVTPH2PS: exact, NaN becomes quiet. The exponent field moves up as it is; a product with
 * 2^(127 - 15) mends the bias, also of subnormals. */
static inline float fr_from_f16(uint16_t code)
{
    const uint32_t moved = (uint32_t)(code & 0x8000) << 16 | (uint32_t)(code & 0x7fff) << 13;
    if ((code & 0x7c00) == 0x7c00) {
        return fr_float_of(moved | 0x7f800000 | ((code & 0x3ff) != 0 ? 0x400000u : 0));
    }
    return fr_float_of(moved) * 0x1p112f;
}

/* As VCVTPS2PH to nearest even: NaN becomes quiet and keeps the top of its payload. */
static inline uint16_t fr_to_f16(float value)
{
    const uint32_t bits = fr_bits_of(value), sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > 0x7f800000) {
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x1ff));
    }
    if (a >= 0x477ff000) { /* 65520 */
        return (uint16_t)(sign | 0x7c00);
    }
    if (a < 0x38800000) { /* below 2^-14: adding 0.5 leaves multiples of 2^-24 in the mantissa */
        return (uint16_t)(sign | (fr_bits_of(fr_float_of(a) + 0.5f) - 0x3f000000));
    }
    return (uint16_t)(sign | (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13);
}

static inline uint16_t fr_to_bf16(float value)
{
    const uint32_t bits = fr_bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return (uint16_t)(bits >> 16 | 0x40);
    }
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float fr_element_get(uint32_t type, const uint8_t *p, size_t i)
{
    uint16_t code;
    float value;
    if (type == FR_F32) {
        memcpy(&value, p + 4 * i, sizeof value);
        return value;
    }
    memcpy(&code, p + 2 * i, sizeof code);
    return type == FR_F16 ? fr_from_f16(code) : fr_float_of((uint32_t)code << 16);
}

static inline void fr_element_put(uint32_t type, uint8_t *p, size_t i, float value)
{
    if (type == FR_F32) {
        memcpy(p + 4 * i, &value, sizeof value);
        return;
    }
    const uint16_t code = type == FR_F16 ? fr_to_f16(value) : fr_to_bf16(value);
    memcpy(p + 2 * i, &code, sizeof code);
}

#endif
