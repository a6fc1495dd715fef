/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/layout.h"

#include <math.h>
#include <string.h>

size_t fr_packed_size(uint32_t dtype, size_t n)
{
    const struct fr_dtype_info *info = fr_dtype_info(dtype);
    if (info == NULL) {
        return 0;
    }
    if (info->bits % 8 == 0) {
        size_t each = info->bits / 8;
        return n <= SIZE_MAX / each ? n * each : SIZE_MAX;
    }
    /* n = 8 q + r: eight codes fill whole bytes */
    size_t whole = n / 8 * info->bits, rest = (n % 8 * info->bits + 7) / 8;
    return whole + rest;
}

/* The code that begins at a bit; no byte past its last one is touched. */
static uint32_t get_code(const uint8_t *p, size_t index, unsigned bits)
{
    size_t first = index / 8 * bits + index % 8 * bits / 8; /* index * bits / 8 without overflow */
    unsigned at = (unsigned)(index % 8 * bits % 8);
    uint32_t code = 0;
    for (unsigned have = 0, k = 0; have < at + bits; have += 8, k++) {
        code |= (uint32_t)((uint64_t)p[first + k] << have >> at);
    }
    return code & (uint32_t)(((uint64_t)1 << bits) - 1);
}

static void put_code(uint8_t *p, size_t index, unsigned bits, uint32_t code)
{
    size_t first = index / 8 * bits + index % 8 * bits / 8;
    unsigned at = (unsigned)(index % 8 * bits % 8);
    for (unsigned have = 0, k = 0; have < at + bits; have += 8, k++) {
        uint8_t part = (uint8_t)((uint64_t)code << at >> have);
        /* codes come in order: the byte that begins one is new unless another ends in it */
        p[first + k] = have == 0 && at > 0 ? (uint8_t)(p[first + k] | part) : part;
    }
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void decode_bf16(const uint8_t *p, size_t n, float *values)
{
    for (size_t i = 0; i < n; i++) {
        values[i] = float_of((uint32_t)p[2 * i] << 16 | (uint32_t)p[2 * i + 1] << 24);
    }
}

/* The exponent field moves up as it is; a product with 2^(127 - 15) mends the bias, also of
 * subnormals. Inf and NaN get the top exponent of a float. */
static void decode_fp16(const uint8_t *p, size_t n, float *values)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t code = (uint32_t)p[2 * i] | (uint32_t)p[2 * i + 1] << 8;
        uint32_t moved = (code & 0x8000) << 16 | (code & 0x7fff) << 13;
        values[i] = (code & 0x7c00) == 0x7c00 ? float_of(moved | 0x7f800000)
                                              : float_of(moved) * 0x1p112f;
    }
}

/* At most 256 codes: look each up. */
static void decode_narrow(uint32_t dtype, unsigned bits, const uint8_t *p, size_t n, float *values)
{
    float table[256];
    for (uint32_t code = 0; code < 1u << bits; code++) {
        table[code] = (float)fr_decode(dtype, code);
    }
    for (size_t i = 0; i < n; i++) {
        values[i] = table[bits == 8 ? p[i] : get_code(p, i, bits)];
    }
}

int fr_decode_n(uint32_t dtype, const void *codes, size_t n, float *values)
{
    const uint8_t *p = codes;
    if (dtype == FR_F32) {
        memcpy(values, codes, n * sizeof *values);
        return 0;
    }
    if (dtype == FR_F64) {
        for (size_t i = 0; i < n; i++) {
            double wide;
            memcpy(&wide, p + i * sizeof wide, sizeof wide);
            values[i] = (float)wide;
        }
        return 0;
    }
    const struct fr_layout *l = fr_layout_of(dtype);
    if (l == NULL) {
        return -1;
    }
    if (dtype == FR_BF16) {
        decode_bf16(p, n, values);
    } else if (dtype == FR_F16) {
        decode_fp16(p, n, values);
    } else if (n > 256) {
        decode_narrow(dtype, l->bits, p, n, values);
    } else {
        for (size_t i = 0; i < n; i++) {
            values[i] = (float)fr_decode(dtype, get_code(p, i, l->bits));
        }
    }
    return 0;
}

int fr_encode_n(uint32_t dtype, const float *values, size_t n, void *codes, uint32_t overflow)
{
    uint8_t *p = codes;
    if (dtype == FR_F32 && overflow == FR_OVERFLOW_IEEE) {
        memcpy(codes, values, n * sizeof *values);
        return 0;
    }
    if (dtype == FR_F64) {
        for (size_t i = 0; i < n; i++) {
            double wide = (double)values[i];
            memcpy(p + i * sizeof wide, &wide, sizeof wide);
        }
        return 0;
    }
    const struct fr_layout *l = fr_layout_of(dtype);
    if (l == NULL) {
        return -1;
    }
    for (size_t i = 0; i < n; i++) {
        put_code(p, i, l->bits, fr_encode(dtype, (double)values[i], overflow));
    }
    return 0;
}
