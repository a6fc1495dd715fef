/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/emulate.h"

#include <math.h>
#include <string.h>

uint32_t fr_accumulator(const struct fr_policy *p, uint32_t operands)
{
    return operands == FR_F64 ? FR_F64 : fr_field(p, p->accumulator);
}

double fr_term(const struct fr_policy *p, const struct fr_terms *t, size_t i)
{
    if (t->b == NULL) {
        return t->a[i];
    }
    double a = t->cast != 0 ? fr_keep(p, t->cast, t->a[i]) : t->a[i];
    double product = a * (t->cast != 0 ? fr_keep(p, t->cast, t->b[i]) : t->b[i]);
    return t->fused ? product : fr_keep(p, t->product, fr_keep(p, fr_wide(t->product), product));
}

/* x + y so that a later rounding to fewer bits cannot see the rounding to double: when something
 * was lost, the last bit is made odd (round to odd; Boldo and Melquiond 2008). */
double fr_add_to_odd(double x, double y)
{
    double sum = x + y, part = sum - x, lost = (x - (sum - part)) + (y - part);
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (lost != 0 && isfinite(lost) && (bits & 1) == 0) { /* towards the exact sum */
        bits = (lost > 0) == (sum > 0) ? bits + 1 : bits - 1;
        memcpy(&sum, &bits, sizeof sum);
    }
    return sum;
}

static double add(const struct fr_policy *p, const struct fr_terms *t, uint32_t type, double sum,
                  double term)
{
    if (t->fused && type != FR_F64) {
        return fr_keep(p, type, fr_add_to_odd(sum, term));
    }
    return fr_keep(p, type, fr_keep(p, fr_wide(type), sum + term));
}

static double sequential(const struct fr_policy *p, const struct fr_terms *t, uint32_t type)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        sum = add(p, t, type, sum, fr_term(p, t, i));
    }
    return sum;
}

static double pairwise(const struct fr_policy *p, const struct fr_terms *t, uint32_t type,
                       size_t first, size_t n)
{
    if (n == 1) {
        return fr_keep(p, type, fr_term(p, t, first));
    }
    double left = pairwise(p, t, type, first, n - n / 2);
    double right = pairwise(p, t, type, first + n - n / 2, n / 2);
    return add(p, t, type, left, right);
}

double fr_sum(const struct fr_policy *p, uint32_t order, const struct fr_terms *t)
{
    uint32_t type = fr_accumulator(p, t->dtype);
    if (t->n == 0) {
        return 0;
    }
    if (order == FR_ORDER_PAIRWISE) {
        return pairwise(p, t, type, 0, t->n);
    }
    /* PyTorch's order is one of fp32 sums; a narrower accumulator is no PyTorch */
    if (order >= FR_ORDER_TORCH_AVX2 && type == fr_wide(type)) {
        return fr_sum_cascade(p, order, t);
    }
    return sequential(p, t, type);
}

double fr_dot_sum(const struct fr_policy *p, const double *a, const double *b, size_t n,
                  uint32_t operands)
{
    uint32_t product = operands == FR_F64 ? FR_F64 : fr_field(p, p->product);
    struct fr_terms t = {.a = a, .b = b, .n = n, .dtype = operands, .product = product,
                         .fused = p->fused_add != 0, .cast = p->raised != 0 ? p->element : 0};
    /* a matrix product has an order of its own; which, depends on the library */
    return fr_sum(p, p->order == FR_ORDER_PAIRWISE ? p->order : FR_ORDER_SEQUENTIAL, &t);
}

int fr_dot(const struct fr_policy *p, const struct fr_array *a, const struct fr_array *b,
           struct fr_array *out)
{
    if (!fr_policy_ok(p) || !fr_is_value(a->dtype) || !fr_is_value(b->dtype) || a->n != b->n) {
        return -1;
    }
    uint32_t operands = p->raised != 0 ? p->element : fr_promote(a->dtype, b->dtype);
    uint32_t type = fr_result(p, 0, operands);
    out->v[0] = fr_keep(p, type, fr_dot_sum(p, a->v, b->v, a->n, operands));
    out->dtype = type;
    return 0;
}

/* sum / n in the accumulator, or after the sum was rounded to the result's type. */
static double mean_of(const struct fr_policy *p, double sum, size_t n, uint32_t accumulator,
                      uint32_t type)
{
    struct fr_policy at = *p;
    at.intermediate = at.raised = 0;
    struct fr_array value = {&sum, 1, p->mean == FR_ROUND_THEN_MEAN ? type : accumulator};
    sum = fr_keep(p, value.dtype, sum);
    fr_op_scalar(&at, FR_OP_DIV, &value, (double)n, &value);
    return fr_keep(p, type, sum);
}

static double norm_of(const struct fr_policy *p, const struct fr_array *a, uint32_t accumulator)
{
    double squares;
    if (p->order >= FR_ORDER_TORCH_AVX2 && accumulator == fr_wide(a->dtype)) {
        squares = fr_squares_torch(p, a, &accumulator);
    } else {
        struct fr_terms t = {.a = a->v, .b = a->v, .n = a->n, .dtype = a->dtype,
                             .product = accumulator, .fused = p->fused_add != 0};
        squares = fr_sum(p, p->order, &t);
    }
    return fr_keep(p, accumulator, fr_keep(p, fr_wide(accumulator), sqrt(squares)));
}

static double amax_of(const struct fr_array *a)
{
    double amax = -INFINITY;
    for (size_t i = 0; i < a->n; i++) {
        amax = isnan(amax) || amax > a->v[i] ? amax : a->v[i];
    }
    return amax;
}

static int is_raised(uint32_t reduction)
{
#define RAISED(name, value, raised, text) || (raised && reduction == (value))
    return 0 FR_REDUCTIONS(RAISED);
#undef RAISED
}

int fr_reduce(const struct fr_policy *p, uint32_t reduction, const struct fr_array *a,
              struct fr_array *out)
{
    if (!fr_policy_ok(p) || !fr_is_value(a->dtype)) {
        return -1;
    }
    uint32_t type = fr_result(p, (uint32_t)is_raised(reduction), a->dtype);
    uint32_t accumulator = fr_accumulator(p, a->dtype);
    struct fr_terms t = {.a = a->v, .n = a->n, .dtype = a->dtype};
    int torch2 = p->order == FR_ORDER_TORCH_AVX2 || p->order == FR_ORDER_TORCH_AVX512;
    switch (reduction) {
    case FR_REDUCE_SUM: out->v[0] = fr_keep(p, type, fr_sum(p, p->order, &t)); break;
    case FR_REDUCE_MEAN:
        t.dtype = torch2 ? fr_wide(t.dtype) : t.dtype; /* 2.x casts to fp32 before it sums */
        out->v[0] = mean_of(p, fr_sum(p, p->order, &t), a->n, accumulator, type);
        break;
    case FR_REDUCE_NORM2: out->v[0] = fr_keep(p, type, norm_of(p, a, accumulator)); break;
    case FR_REDUCE_AMAX: out->v[0] = fr_keep(p, type, amax_of(a)); break;
    default: return -1;
    }
    out->dtype = type;
    return 0;
}
