/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/emulate.h"

#include <math.h>

struct kind {
    uint8_t operands, raised;
};

static const struct kind kinds[] = {
#define KIND(name, value, operand_count, is_raised, text) [value] = {operand_count, is_raised},
    FR_OPS(KIND)
};
enum { OPS = sizeof kinds / sizeof kinds[0] };

static double maximum(double a, double b)
{
    return isnan(a) || a > b ? a : b; /* a NaN b falls through to b */
}

/* One operation in the wide type: every inner step of a composed one rounds there. */
static double compute(const struct fr_policy *p, uint32_t op, uint32_t wide, double a, double b)
{
    switch (op) {
    case FR_OP_ADD: return a + b;
    case FR_OP_SUB: return a - b;
    case FR_OP_MUL: return a * b;
    case FR_OP_DIV: return a / b;
    case FR_OP_MAXIMUM: return maximum(a, b);
    case FR_OP_POW2: return a * a;
    case FR_OP_POW3: return fr_keep(p, wide, a * a) * a;
    case FR_OP_SQRT: return sqrt(a);
    case FR_OP_RSQRT:
        return 1 / (p->rsqrt == FR_RSQRT_ONE_STEP ? sqrt(a) : fr_keep(p, wide, sqrt(a)));
    case FR_OP_EXP: return exp(a);
    case FR_OP_LOG: return log(a);
    case FR_OP_NEG: return -a;
    case FR_OP_RECIPROCAL: return 1 / a;
    case FR_OP_SILU: return a / fr_keep(p, wide, 1 + fr_keep(p, wide, exp(-a)));
    case FR_OP_GELU: {
        double e = erf(fr_keep(p, wide, a * fr_keep(p, wide, 0x1.6a09e667f3bcdp-1)));
        double half = fr_keep(p, wide, a * 0.5);
        return half * fr_keep(p, wide, 1 + fr_keep(p, wide, e));
    }
    default: return NAN;
    }
}

static int rounds_square(const struct fr_policy *p, uint32_t dtype)
{
    return p->cube == FR_CUBE_TWICE || (p->cube == FR_CUBE_TORCH_CPU && dtype == FR_BF16);
}

/* The i-th result: in the wide type first, then in the result's. */
static double one(const struct fr_policy *p, uint32_t op, uint32_t wide, uint32_t type, double a,
                  double b)
{
    if (op == FR_OP_POW3 && rounds_square(p, type)) {
        double square = fr_keep(p, type, fr_keep(p, wide, a * a));
        return fr_keep(p, type, fr_keep(p, wide, square * a));
    }
    if (op == FR_OP_RSQRT && p->rsqrt == FR_RSQRT_NARROW) {
        double root = fr_keep(p, type, fr_keep(p, wide, sqrt(a)));
        return fr_keep(p, type, fr_keep(p, wide, 1 / root));
    }
    return fr_keep(p, type, fr_keep(p, wide, compute(p, op, wide, a, b)));
}

int fr_op(const struct fr_policy *p, uint32_t op, const struct fr_array *a,
          const struct fr_array *b, struct fr_array *out)
{
    if (op == 0 || op >= OPS || !fr_policy_ok(p) || !fr_is_value(a->dtype) ||
        (b != NULL) != (kinds[op].operands == 2) || (b != NULL && !fr_is_value(b->dtype))) {
        return -1;
    }
    size_t n = b != NULL && b->n > a->n ? b->n : a->n;
    if (out->n != n || (a->n != n && a->n != 1) || (b != NULL && b->n != n && b->n != 1)) {
        return -1;
    }
    uint32_t operands = b != NULL ? fr_promote(a->dtype, b->dtype) : a->dtype;
    uint32_t type = fr_result(p, kinds[op].raised, operands), wide = fr_wide(type);
    double a0 = n > 0 ? a->v[0] : 0, b0 = b != NULL && n > 0 ? b->v[0] : 0; /* out may be them */
    for (size_t i = 0; i < n; i++) {
        double left = a->n == n ? a->v[i] : a0;
        double right = b != NULL && b->n == n ? b->v[i] : b0;
        out->v[i] = one(p, op, wide, type, left, right);
    }
    out->dtype = type;
    return 0;
}

int fr_op_scalar(const struct fr_policy *p, uint32_t op, const struct fr_array *a, double b,
                 struct fr_array *out)
{
    if (op == 0 || op >= OPS || kinds[op].operands != 2 || !fr_policy_ok(p) ||
        !fr_is_value(a->dtype) || out->n != a->n) {
        return -1;
    }
    uint32_t type = fr_result(p, kinds[op].raised, a->dtype), wide = fr_wide(type);
    uint32_t field = op == FR_OP_ADD || op == FR_OP_SUB ? p->scalar_add : p->scalar;
    b = fr_keep(p, fr_promote(fr_field(p, field), a->dtype), b);
    if (op == FR_OP_DIV && p->divide == FR_DIVIDE_RECIPROCAL) {
        op = FR_OP_MUL;
        b = fr_keep(p, wide, 1 / b);
    }
    for (size_t i = 0; i < a->n; i++) {
        out->v[i] = one(p, op, wide, type, a->v[i], b);
    }
    out->dtype = type;
    return 0;
}

int fr_cast(const struct fr_policy *p, const struct fr_array *a, uint32_t dtype,
            struct fr_array *out)
{
    if (!fr_policy_ok(p) || !fr_is_value(a->dtype) || out->n != a->n ||
        (!fr_is_value(dtype) && dtype != FR_F8_E8M0)) { /* E8M0 can be made, not computed with */
        return -1;
    }
    for (size_t i = 0; i < a->n; i++) {
        out->v[i] = fr_keep(p, dtype, a->v[i]);
    }
    out->dtype = dtype;
    return 0;
}
