/* SPDX-License-Identifier: Apache-2.0 */
/* lab: what a reproduction works with: parameters, random numbers, scratch memory, and arithmetic
 * that is rounded where a framework stores its result. Vectors are doubles that hold exactly what
 * was stored; every function that takes a dtype rounds its output to it, once per element, as a
 * framework's kernel does.
 *
 * libm is used for nothing but what IEEE 754 fixes (sqrt, fabs): its exp, log and tanh differ in
 * the last bit between machines, and a toy training run would show it. */
#ifndef FR_REPRO_LAB_H
#define FR_REPRO_LAB_H

#include "faultrank/numerics.h"
#include "repro/repro.h"

struct fr_rng {
    uint64_t state;
};

struct fr_smoke; /* smoke.h */

struct fr_lab {
    const struct fr_repro *repro;
    const double *value;            /* of the parameters, by row */
    const struct fr_repro_env *env; /* never NULL */
    const struct fr_smoke *smoke;   /* NULL but in a smoke test */
    struct fr_result *result;       /* the acts go here */
    struct fr_arena scratch;        /* dies with the run; released by fr_repro_run */
    struct fr_rng rng;              /* seeded with --seed */
    bool failed;                    /* no scratch memory */
};

/* A parameter's value; the name must be in the table. */
double fr_lab_get(const struct fr_lab *lab, const char *name);
uint32_t fr_lab_count(const struct fr_lab *lab, const char *name); /* of a whole parameter */

/* n zeros from scratch, NULL when there is no memory: ask fr_lab_ok() once, after all vectors were
 * made and before one is used. */
double *fr_lab_vector(struct fr_lab *lab, size_t n);
static inline bool fr_lab_ok(const struct fr_lab *lab)
{
    return !lab->failed;
}
int fr_lab_nomem(struct fr_err *err); /* -FR_NOMEM */
/* Runs act with scratch memory of its own. */
int fr_lab_play(struct fr_lab *lab, int (*act)(struct fr_lab *lab, struct fr_err *err),
                struct fr_err *err);

/* ---- random numbers ---- */

uint64_t fr_rng_next(struct fr_rng *g);
double fr_rng_uniform(struct fr_rng *g); /* [0, 1) */
double fr_rng_normal(struct fr_rng *g);  /* mean 0, variance 1, |value| <= 6 */
uint32_t fr_rng_below(struct fr_rng *g, uint32_t n);
void fr_rng_fill(struct fr_rng *g, double *v, size_t n, double deviation, uint32_t dtype);

/* ---- functions that are the same on every machine ---- */

double fr_lab_exp(double x);
double fr_lab_log(double x); /* natural; -Inf at 0, NaN below */
double fr_lab_tanh(double x);

/* ---- rounding ---- */

double fr_lab_to_slowly(uint32_t dtype, double x); /* any type */

/* x as dtype stores it, Inf or NaN beyond its range: fr_round of numerics.h, which the tests compare
 * it with, but inline for the two types that toy training runs round to millions of times. */
static inline double fr_lab_to(uint32_t dtype, double x)
{
    if (dtype == FR_F32) {
        return (float)x;
    }
    const double magnitude = x < 0 ? -x : x;
    const unsigned drop = dtype == FR_F16 ? 42 : 45; /* mantissa bits that a double has more */
    if ((dtype != FR_F16 || !(magnitude >= 0x1p-14 && magnitude < 65504)) &&
        (dtype != FR_BF16 || !(magnitude >= 0x1p-126 && magnitude < 0x1p127))) {
        return fr_lab_to_slowly(dtype, x);
    }
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    u += ((uint64_t)1 << (drop - 1)) - 1 + (u >> drop & 1); /* to nearest, ties to even */
    u &= ~(((uint64_t)1 << drop) - 1);
    memcpy(&x, &u, sizeof x);
    return x;
}
void fr_lab_cast(uint32_t dtype, double *v, size_t n);

/* ---- kernels: accumulate in fp32 (in eight lanes), store once, as a framework's kernels do ---- */

float fr_lab_sum(const double *v, size_t n); /* in fp32 */
float fr_lab_sum_products(const double *a, const double *b, size_t n);

/* The sum of n products, accumulated in fp32, stored as dtype. */
double fr_lab_dot(uint32_t dtype, const double *a, const double *b, size_t n);
/* out[m] = matrix[m][n] x[n] */
void fr_lab_matvec(uint32_t dtype, const double *matrix, const double *x, size_t m, size_t n,
                   double *out);
/* out[n] = matrix[m][n]^T x[m] */
void fr_lab_matvec_t(uint32_t dtype, const double *matrix, const double *x, size_t m, size_t n,
                     double *out);
/* out = softmax(x) with the maximum subtracted, in fp32, stored as dtype. Inf or NaN in x give NaN as in PyTorch. */
void fr_lab_softmax(uint32_t dtype, const double *x, size_t n, double *out);
/* -log softmax(x)[target], in fp32. */
double fr_lab_cross_entropy(const double *x, size_t n, size_t target);

/* ---- looking at vectors ---- */

/* The steps that an expression of numerics.h recorded, as links of a chain. */
void fr_lab_chain(struct fr_chain *c, const struct fr_op_trace *t);

struct fr_lab_stats {
    uint32_t zeros, infs, nans;
    double most; /* largest magnitude; Inf when there is one; NaN does not count */
    double norm; /* in double; Inf or NaN where an element is */
};
struct fr_lab_stats fr_lab_look(const double *v, size_t n);
double fr_lab_rms(const double *v, size_t n);

#endif
