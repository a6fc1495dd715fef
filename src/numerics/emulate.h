/* SPDX-License-Identifier: Apache-2.0 */
/* emulate: what operations, reductions and expressions share.
 *
 * Values travel as doubles that are exactly values of their type. An fp32 operation is computed
 * in double and rounded to float: for + - * / and sqrt that equals the operation rounded once,
 * because 53 bits are at least 2 * 24 + 2 (Figueroa 1995); tests/unit/test_numerics_ops.c tries
 * to break it. The same holds from fp32 (24 bits) to fp16 (11) and bf16 (8). */
#ifndef FR_NUMERICS_EMULATE_H
#define FR_NUMERICS_EMULATE_H

#include "numerics/layout.h"

/* v as a value of dtype. */
static inline double fr_keep(const struct fr_policy *p, uint32_t dtype, double v)
{
    if (dtype == FR_F64) {
        return v;
    }
    if (dtype == FR_F32) {
        return (double)(float)v;
    }
    return fr_round(dtype, v, dtype == p->element ? p->overflow : FR_OVERFLOW_IEEE);
}

/* The type an operation on dtype computes in: fp64 for fp64, else fp32. */
static inline uint32_t fr_wide(uint32_t dtype)
{
    return dtype == FR_F64 ? FR_F64 : FR_F32;
}

/* A field marked (0) in the header. */
static inline uint32_t fr_field(const struct fr_policy *p, uint32_t type)
{
    return type != 0 ? type : p->element;
}

int fr_is_value(uint32_t dtype);                 /* a type that arrays may have */
int fr_policy_ok(const struct fr_policy *p);     /* every type field is one */
uint32_t fr_promote(uint32_t a, uint32_t b);     /* torch's promotion of two float types */
/* The type of an operation's result from its promoted operands. */
uint32_t fr_result(const struct fr_policy *p, uint32_t raised, uint32_t operands);
/* The same policy for code that works in fp32 (fp64 for fp64 input) throughout, as a fused
 * kernel. */
struct fr_policy fr_fused_policy(const struct fr_policy *p, uint32_t input);

/* What a sum adds: values of a row, or products of two, rounded as the policy says. */
struct fr_terms {
    const double *a, *b; /* b NULL: a alone */
    size_t n;
    uint32_t dtype;      /* of the operands: decides how PyTorch loads them */
    uint32_t product;    /* type of a product */
    uint32_t cast;       /* operands are rounded to it first (autocast); 0: taken as they are */
    uint8_t fused;       /* products are not rounded before they are added */
};

/* The running sum's type for operands of a type. */
uint32_t fr_accumulator(const struct fr_policy *p, uint32_t operands);
/* The sum, a value of the accumulator. */
double fr_sum(const struct fr_policy *p, uint32_t order, const struct fr_terms *t);
/* PyTorch's CPU order in fp32 (fp64); t->n at least 1. */
double fr_sum_cascade(const struct fr_policy *p, uint32_t order, const struct fr_terms *t);
/* The sum of squares under PyTorch's CPU norm, a value of *type. */
double fr_squares_torch(const struct fr_policy *p, const struct fr_array *a, uint32_t *type);
/* x + y, rounded to double so that one more rounding to fewer bits is as good as one in all. */
double fr_add_to_odd(double x, double y);
double fr_term(const struct fr_policy *p, const struct fr_terms *t, size_t i);
/* The sum of products behind fr_dot and fr_linear, not yet rounded to the result. */
double fr_dot_sum(const struct fr_policy *p, const double *a, const double *b, size_t n,
                  uint32_t operands);

/* Runs the operations of an expression: the first failure stays, each output is traced. */
struct fr_run {
    const struct fr_policy *p;
    struct fr_op_trace *trace;
    int failed;
};
void fr_run_op(struct fr_run *r, const char *name, uint32_t op, const struct fr_array *a,
               const struct fr_array *b, struct fr_array *out);
void fr_run_scalar(struct fr_run *r, const char *name, uint32_t op, const struct fr_array *a,
                   double b, struct fr_array *out);
void fr_run_reduce(struct fr_run *r, const char *name, uint32_t reduction, const struct fr_array *a,
                   struct fr_array *out);
/* A cast is a step only when it changes the type. */
void fr_run_cast(struct fr_run *r, const char *name, const struct fr_array *a, uint32_t dtype,
                 struct fr_array *out);

/* The mean of squares of a run; root for the norm form. squares holds x->n doubles. */
void fr_run_mean_square(struct fr_run *r, uint32_t form, const struct fr_array *x, double *squares,
                        struct fr_array *ret);

#endif
