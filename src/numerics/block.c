/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that share a scale. All arithmetic is in double and exact until the one rounding at the
 * end: an element has at most 4 significant bits, an E4M3 scale 4 and a float 24. */
#include "numerics/layout.h"

#include <math.h>
#include <string.h>

/* The exponent of the element type's largest value (emax of OCP MX), or -1 for other types. */
static int element_emax(uint32_t element)
{
    switch (element) {
    case FR_F4_E2M1:
    case FR_F6_E2M3: return 2;
    case FR_F6_E3M2: return 4;
    case FR_F8_E4M3FN: return 8;
    case FR_F8_E5M2: return 15;
    default: return -1;
    }
}

static size_t block_length(size_t first, size_t n, size_t block)
{
    return n - first < block ? n - first : block;
}

/* Largest magnitude of a block; Inf when something in it is not finite. */
static float block_amax(const float *values, size_t n)
{
    float amax = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) {
            return INFINITY;
        }
        amax = fabsf(values[i]) > amax ? fabsf(values[i]) : amax;
    }
    return amax;
}

int fr_mx_decode(uint32_t element, const void *codes, const uint8_t *scales, size_t n,
                 float *values)
{
    if (element_emax(element) < 0) {
        return -1;
    }
    fr_decode_n(element, codes, n, values);
    for (size_t i = 0; i < n; i++) {
        double scale = fr_decode(FR_F8_E8M0, scales[i / FR_MX_BLOCK]);
        values[i] = (float)((double)values[i] * scale);
    }
    return 0;
}

int fr_mx_encode(uint32_t element, const float *values, size_t n, void *codes, uint8_t *scales)
{
    int emax = element_emax(element);
    uint8_t *out = codes;
    if (emax < 0) {
        return -1;
    }
    for (size_t first = 0; first < n; first += FR_MX_BLOCK) {
        size_t len = block_length(first, n, FR_MX_BLOCK);
        float amax = block_amax(values + first, len), scaled[FR_MX_BLOCK] = {0};
        uint8_t code = 0;
        if (isinf(amax)) {
            code = 0xff;
        } else if (amax > 0) {
            int e = ilogb((double)amax) - emax + 127;
            code = (uint8_t)(e < 0 ? 0 : e > 254 ? 254 : e);
            for (size_t i = 0; i < len; i++) { /* exact but for values that round to 0 anyway */
                scaled[i] = (float)ldexp((double)values[first + i], 127 - code);
            }
        }
        scales[first / FR_MX_BLOCK] = code;
        fr_encode_n(element, scaled, len, out, FR_OVERFLOW_SATURATE);
        out += fr_packed_size(element, len);
    }
    return 0;
}

void fr_nvfp4_decode(const void *codes, const uint8_t *scales, float tensor_scale, size_t n,
                     float *values)
{
    fr_decode_n(FR_F4_E2M1, codes, n, values);
    for (size_t i = 0; i < n; i++) {
        double scale = fr_decode(FR_F8_E4M3FN, scales[i / FR_NVFP4_BLOCK]);
        values[i] = (float)((double)values[i] * scale * (double)tensor_scale);
    }
}

float fr_nvfp4_tensor_scale(float amax)
{
    return isfinite(amax) && amax > 0 ? amax / (6.0f * 448.0f) : 1.0f;
}

void fr_nvfp4_encode(const float *values, size_t n, float tensor_scale, void *codes,
                      uint8_t *scales)
{
    uint8_t *out = codes;
    for (size_t first = 0; first < n; first += FR_NVFP4_BLOCK) {
        size_t len = block_length(first, n, FR_NVFP4_BLOCK);
        float amax = block_amax(values + first, len);
        uint8_t packed[FR_NVFP4_BLOCK] = {0};
        uint32_t code = 0x7f;
        if (!isinf(amax)) {
            code = fr_encode(FR_F8_E4M3FN, (double)amax / 6 / (double)tensor_scale,
                             FR_OVERFLOW_SATURATE);
            double scale = fr_decode(FR_F8_E4M3FN, code) * (double)tensor_scale;
            for (size_t i = 0; i < len && scale > 0; i++) {
                /* A quotient of 24 by 28 bits is no nearer to a tie than 2^-32 of it, unless it is
                 * one: the division's own rounding cannot make a tie. */
                packed[i] = (uint8_t)fr_encode(FR_F4_E2M1, (double)values[first + i] / scale,
                                               FR_OVERFLOW_SATURATE);
            }
        }
        scales[first / FR_NVFP4_BLOCK] = (uint8_t)code;
        for (size_t i = 0; i < len; i += 2) {
            *out++ = (uint8_t)(packed[i] | (i + 1 < len ? packed[i + 1] << 4 : 0));
        }
    }
}
