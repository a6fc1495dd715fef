/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/layout.h"

#include <string.h>
#include <strings.h>

/* Arguments: exponent and mantissa bits, bias, rule, codes of the largest value, Inf and NaN. */
#define LAYOUT(width, e, m, b, r, big, infinite, not)                                          \
    {.bits = (width), .exponent_bits = (e), .mantissa_bits = (m), .rule = (r), .bias = (b),    \
     .max = (big), .inf = (infinite), .nan = (not)}

static const struct fr_layout layouts[FR_DTYPE_END] = {
    [FR_F32] = LAYOUT(32, 8, 23, 127, FR_RULE_IEEE, 0x7f7fffff, 0x7f800000, 0x7fc00000),
    [FR_F16] = LAYOUT(16, 5, 10, 15, FR_RULE_IEEE, 0x7bff, 0x7c00, 0x7e00),
    [FR_BF16] = LAYOUT(16, 8, 7, 127, FR_RULE_IEEE, 0x7f7f, 0x7f80, 0x7fc0),
    [FR_F8_E4M3FN] = LAYOUT(8, 4, 3, 7, FR_RULE_FN, 0x7e, 0, 0x7f),
    [FR_F8_E5M2] = LAYOUT(8, 5, 2, 15, FR_RULE_IEEE, 0x7b, 0x7c, 0x7f),
    [FR_F8_E4M3FNUZ] = LAYOUT(8, 4, 3, 8, FR_RULE_FNUZ, 0x7f, 0, 0x80),
    [FR_F8_E5M2FNUZ] = LAYOUT(8, 5, 2, 16, FR_RULE_FNUZ, 0x7f, 0, 0x80),
    [FR_F8_E8M0] = LAYOUT(8, 8, 0, 127, FR_RULE_E8M0, 0xfe, 0, 0xff),
    [FR_F6_E2M3] = LAYOUT(6, 2, 3, 1, FR_RULE_NONE, 0x1f, 0, 0),
    [FR_F6_E3M2] = LAYOUT(6, 3, 2, 3, FR_RULE_NONE, 0x1f, 0, 0),
    [FR_F4_E2M1] = LAYOUT(4, 2, 1, 1, FR_RULE_NONE, 0x7, 0, 0),
};

const struct fr_layout *fr_layout_of(uint32_t dtype)
{
    return dtype < FR_DTYPE_END && layouts[dtype].bits > 0 ? &layouts[dtype] : NULL;
}

/* Arguments: has a sign, exponent and mantissa bits, bias, has Inf, has NaN, largest, smallest
 * normal and subnormal, eps. */
#define FLOAT(sign, e, m, b, infinite, not, big, normal, sub, epsilon) \
    .is_float = 1, .is_signed = (sign), .exponent_bits = (e), .mantissa_bits = (m), \
    .bias = (b), .has_inf = (infinite), .has_nan = (not), .max = (big), \
    .min_normal = (normal), .min_subnormal = (sub), .eps = (epsilon)

#define TRAITS_BOOL .is_signed = 0
#define TRAITS_U8 .is_signed = 0
#define TRAITS_I8 .is_signed = 1
#define TRAITS_U16 .is_signed = 0
#define TRAITS_I16 .is_signed = 1
#define TRAITS_U32 .is_signed = 0
#define TRAITS_I32 .is_signed = 1
#define TRAITS_U64 .is_signed = 0
#define TRAITS_I64 .is_signed = 1
#define TRAITS_C64 .is_signed = 1
#define TRAITS_C128 .is_signed = 1
#define TRAITS_F64 \
    FLOAT(1, 11, 52, 1023, 1, 1, DBL_MAX, DBL_MIN, 0x1p-1074, 0x1p-52)
#define TRAITS_F32 FLOAT(1, 8, 23, 127, 1, 1, 0x1.fffffep127, 0x1p-126, 0x1p-149, 0x1p-23)
#define TRAITS_F16 FLOAT(1, 5, 10, 15, 1, 1, 65504, 0x1p-14, 0x1p-24, 0x1p-10)
#define TRAITS_BF16 FLOAT(1, 8, 7, 127, 1, 1, 0x1.fep127, 0x1p-126, 0x1p-133, 0x1p-7)
#define TRAITS_F8_E4M3FN FLOAT(1, 4, 3, 7, 0, 1, 448, 0x1p-6, 0x1p-9, 0.125)
#define TRAITS_F8_E5M2 FLOAT(1, 5, 2, 15, 1, 1, 57344, 0x1p-14, 0x1p-16, 0.25)
#define TRAITS_F8_E4M3FNUZ FLOAT(1, 4, 3, 8, 0, 1, 240, 0x1p-7, 0x1p-10, 0.125)
#define TRAITS_F8_E5M2FNUZ FLOAT(1, 5, 2, 16, 0, 1, 57344, 0x1p-15, 0x1p-17, 0.25)
#define TRAITS_F8_E8M0 \
    FLOAT(0, 8, 0, 127, 0, 1, 0x1p127, 0x1p-127, 0x1p-127, 1)
#define TRAITS_F6_E2M3 FLOAT(1, 2, 3, 1, 0, 0, 7.5, 1, 0.125, 0.125)
#define TRAITS_F6_E3M2 FLOAT(1, 3, 2, 3, 0, 0, 28, 0.25, 0.0625, 0.25)
#define TRAITS_F4_E2M1 FLOAT(1, 2, 1, 1, 0, 0, 6, 1, 0.5, 0.5)

#define ROW(constant, value, width, text, in_safetensors, in_torch) \
    [value] = {.name = (text), .safetensors = (in_safetensors), .torch = (in_torch), \
               .bits = (width), TRAITS_##constant},
static const struct fr_dtype_info infos[FR_DTYPE_END] = {FR_DTYPES(ROW)};

const struct fr_dtype_info *fr_dtype_info(uint32_t dtype)
{
    return dtype < FR_DTYPE_END && infos[dtype].name != NULL ? &infos[dtype] : NULL;
}

uint32_t fr_dtype_find(const char *name)
{
    static const struct { const char *name; uint32_t dtype; } aliases[] = {
        {"half", FR_F16}, {"float", FR_F32}, {"double", FR_F64},
    };
    if (name == NULL) {
        return FR_DTYPE_UNKNOWN;
    }
    if (strncasecmp(name, "torch.", 6) == 0) {
        name += 6;
    }
    for (uint32_t i = 1; i < FR_DTYPE_END; i++) {
        if (strcasecmp(name, infos[i].name) == 0 || strcasecmp(name, infos[i].safetensors) == 0 ||
            strcasecmp(name, infos[i].torch) == 0) {
            return i;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (strcasecmp(name, aliases[i].name) == 0) {
            return aliases[i].dtype;
        }
    }
    return FR_DTYPE_UNKNOWN;
}
