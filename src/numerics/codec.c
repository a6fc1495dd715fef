/* SPDX-License-Identifier: Apache-2.0 */
/* One codec for all types: a double's 53 significant bits are cut to the type's by integer
 * arithmetic, so nothing here can round twice, whatever the C library does. */
#include "numerics/layout.h"

#include <math.h>
#include <string.h>

enum { DOUBLE_MANTISSA = 52, DOUBLE_BIAS = 1023 };

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^e for every e that a normal double has. */
static double power_of_two(int e)
{
    return double_of((uint64_t)(e + DOUBLE_BIAS) << DOUBLE_MANTISSA);
}

static int is_nan_code(const struct fr_layout *l, uint32_t code)
{
    uint32_t magnitude = code & (((uint32_t)1 << (l->bits - 1)) - 1);
    switch (l->rule) {
    case FR_RULE_IEEE: return magnitude > l->inf;
    case FR_RULE_FN: return magnitude == l->nan;
    case FR_RULE_FNUZ:
    case FR_RULE_E8M0: return code == l->nan;
    default: return 0;
    }
}

double fr_decode(uint32_t dtype, uint32_t code)
{
    const struct fr_layout *l = fr_layout_of(dtype);
    if (l == NULL) {
        return 0;
    }
    code &= (uint32_t)(((uint64_t)1 << l->bits) - 1);
    if (is_nan_code(l, code)) {
        return NAN;
    }
    if (l->rule == FR_RULE_E8M0) {
        return power_of_two((int)code - l->bias);
    }
    uint32_t sign = code >> (l->bits - 1);
    uint32_t magnitude = code & (((uint32_t)1 << (l->bits - 1)) - 1);
    uint32_t mantissa = magnitude & (((uint32_t)1 << l->mantissa_bits) - 1);
    int exponent = (int)(magnitude >> l->mantissa_bits);
    double value;
    if (l->rule == FR_RULE_IEEE && magnitude == l->inf) {
        value = INFINITY;
    } else if (exponent == 0) { /* a small integer times a power of two is exact */
        value = (double)mantissa * power_of_two(1 - l->bias - l->mantissa_bits);
    } else {
        value = double_of(((uint64_t)(exponent - l->bias + DOUBLE_BIAS) << DOUBLE_MANTISSA) |
                          ((uint64_t)mantissa << (DOUBLE_MANTISSA - l->mantissa_bits)));
    }
    return sign ? -value : value;
}

/* The code of a finite magnitude as if the exponent had no upper end. */
static uint64_t nearest_code(const struct fr_layout *l, uint64_t magnitude_bits)
{
    int has_subnormals = l->rule != FR_RULE_E8M0;
    int lowest = has_subnormals ? 1 - l->bias : -l->bias; /* exponent of the last binade */
    int exponent = (int)(magnitude_bits >> DOUBLE_MANTISSA) - DOUBLE_BIAS;
    uint64_t significand = magnitude_bits & (((uint64_t)1 << DOUBLE_MANTISSA) - 1);
    if (exponent > -DOUBLE_BIAS) { /* doubles that are subnormal lie far below every type here */
        significand |= (uint64_t)1 << DOUBLE_MANTISSA;
    }
    int binade = exponent > lowest ? exponent : lowest;
    int shift = DOUBLE_MANTISSA - l->mantissa_bits + (binade - exponent);
    uint64_t kept = 0;
    if (shift <= DOUBLE_MANTISSA + 1) { /* beyond that less than half a unit is left */
        uint64_t half = (uint64_t)1 << (shift - 1), rest = significand & ((half << 1) - 1);
        kept = significand >> shift;
        kept += rest > half || (rest == half && (kept & 1)); /* even: the hidden bit counts */
    }
    /* A carry out of the mantissa is the next binade's code, as codes are consecutive. */
    uint64_t code = ((uint64_t)(binade - lowest) << l->mantissa_bits) + kept;
    if (!has_subnormals) {
        code = code > 0 ? code - 1 : 0;
    }
    return code;
}

uint32_t fr_encode(uint32_t dtype, double value, uint32_t overflow)
{
    const struct fr_layout *l = fr_layout_of(dtype);
    if (l == NULL) {
        return 0;
    }
    uint64_t bits = bits_of(value), magnitude = bits & ~((uint64_t)1 << 63);
    uint64_t infinite = (uint64_t)0x7ff << DOUBLE_MANTISSA;
    if (magnitude > infinite) {
        return l->nan;
    }
    uint32_t sign = l->rule == FR_RULE_E8M0 ? 0 : (uint32_t)(bits >> 63) << (l->bits - 1);
    uint64_t code = magnitude == infinite ? UINT64_MAX : nearest_code(l, magnitude);
    if (code > l->max) {
        if (overflow == FR_OVERFLOW_SATURATE || l->rule == FR_RULE_NONE) {
            code = l->max;
        } else if (l->rule == FR_RULE_IEEE) {
            code = l->inf;
        } else if (l->rule == FR_RULE_FN) {
            code = l->nan;
        } else {
            return l->nan;
        }
    }
    if (code == 0 && l->rule == FR_RULE_FNUZ) {
        return 0; /* the code of -0 means NaN */
    }
    return (uint32_t)code | sign;
}

double fr_round(uint32_t dtype, double value, uint32_t overflow)
{
    if (fr_layout_of(dtype) == NULL) {
        return value;
    }
    return fr_decode(dtype, fr_encode(dtype, value, overflow));
}
