/* SPDX-License-Identifier: Apache-2.0 */
/* layout: how a float type spends its codes; the one table that decoding and encoding read. */
#ifndef FR_NUMERICS_LAYOUT_H
#define FR_NUMERICS_LAYOUT_H

#include "faultrank/numerics.h"

#include <float.h>

/* Emulated rounding holds only where C computes each operation in its own type. */
#if !defined(FLT_EVAL_METHOD) || FLT_EVAL_METHOD != 0
#error "numerics needs FLT_EVAL_METHOD 0: on 32-bit x86 build with -msse2 -mfpmath=sse"
#endif
#ifdef __FAST_MATH__
#error "numerics cannot be built with -ffast-math"
#endif

/* Which codes are no finite numbers. */
enum {
    FR_RULE_NONE, /* all are finite */
    FR_RULE_IEEE, /* the top exponent: Inf with mantissa 0, else NaN */
    FR_RULE_FN,   /* only all ones is NaN */
    FR_RULE_FNUZ, /* only the code of -0 is NaN */
    FR_RULE_E8M0, /* a bare exponent: no sign, no zero; all ones is NaN */
};

struct fr_layout {
    uint8_t bits, exponent_bits, mantissa_bits, rule;
    int16_t bias;
    uint32_t max, inf, nan; /* positive codes; inf and nan 0 where there are none */
};

/* NULL for types that are no float or have more than 32 bits. */
const struct fr_layout *fr_layout_of(uint32_t dtype);

#endif
