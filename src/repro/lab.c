/* SPDX-License-Identifier: Apache-2.0 */
/* lab: see lab.h. exp and log reduce their argument with constants split in two and sum a series:
 * only operations that IEEE 754 fixes, in a fixed order, so every machine gives the same bits
 * (the library is compiled without contraction to fused operations). */
#include "repro/lab.h"

#include <math.h>
#include <stdlib.h>

double fr_lab_get(const struct fr_lab *lab, const char *name)
{
    for (unsigned i = 0; lab->repro->params[i].name != NULL; i++) {
        if (strcmp(lab->repro->params[i].name, name) == 0) {
            return lab->value[i];
        }
    }
    abort(); /* a slip in the reproduction's own table */
}

uint32_t fr_lab_count(const struct fr_lab *lab, const char *name)
{
    return (uint32_t)fr_lab_get(lab, name);
}

double *fr_lab_vector(struct fr_lab *lab, size_t n)
{
    double *v = FR_NEW_N(&lab->scratch, double, n > 0 ? n : 1);
    lab->failed |= v == NULL;
    return v;
}

int fr_lab_nomem(struct fr_err *err)
{
    return fr_err_set(err, FR_NOMEM, "out of memory");
}

/* ---- random numbers: splitmix64 ---- */

uint64_t fr_rng_next(struct fr_rng *g)
{
    uint64_t z = g->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double fr_rng_uniform(struct fr_rng *g)
{
    return (double)(fr_rng_next(g) >> 11) * 0x1p-53;
}

/* Irwin-Hall: the sum of twelve uniform numbers; four 16-bit ones come from each draw. */
double fr_rng_normal(struct fr_rng *g)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++) {
        uint64_t x = fr_rng_next(g);
        sum += (x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48);
    }
    return (double)sum / 65535.0 - 6.0;
}

uint32_t fr_rng_below(struct fr_rng *g, uint32_t n)
{
    return (uint32_t)((fr_rng_next(g) >> 32) * n >> 32);
}

void fr_rng_fill(struct fr_rng *g, double *v, size_t n, double deviation, uint32_t dtype)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = fr_lab_to(dtype, deviation * fr_rng_normal(g));
    }
}

/* ---- functions ---- */

#define LN2_HIGH 0x1.62e42fefa38p-1 /* 40 bits: its products with small integers are exact */
#define LN2_LOW  0x1.ef35793c7673p-45

double fr_lab_exp(double x)
{
    if (isnan(x)) {
        return x;
    }
    if (x > 709.782712893384) {
        return INFINITY;
    }
    if (x < -745.2) {
        return 0;
    }
    double k = floor(x * 1.4426950408889634 + 0.5);
    double r = (x - k * LN2_HIGH) - k * LN2_LOW; /* |r| <= 0.35 */
    double sum = 1;
    for (int i = 14; i > 0; i--) {
        sum = 1 + r * sum / i;
    }
    return ldexp(sum, (int)k);
}

double fr_lab_log(double x)
{
    if (isnan(x) || x < 0) {
        return NAN;
    }
    if (x == 0) {
        return -INFINITY;
    }
    if (isinf(x)) {
        return x;
    }
    int e;
    double m = frexp(x, &e); /* [0.5, 1) */
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double f = (m - 1) / (m + 1), f2 = f * f, sum = 0; /* log m = 2 atanh f, |f| <= 0.172 */
    for (int i = 21; i > 0; i -= 2) {
        sum = sum * f2 + 2.0 / i;
    }
    return e * LN2_HIGH + (e * LN2_LOW + f * sum);
}

double fr_lab_tanh(double x)
{
    double e = fr_lab_exp(2 * fabs(x));
    double t = isinf(e) ? 1 : (e - 1) / (e + 1);
    return x < 0 ? -t : isnan(x) ? x : t;
}

/* ---- rounding ---- */

double fr_lab_to_slowly(uint32_t dtype, double x)
{
    if (dtype == FR_F16 && fabs(x) < 0x1p-14) {
        return copysign((x + 0x1.8p28) - 0x1.8p28, x); /* subnormal: multiples of 2^-24 */
    }
    return fr_round(dtype, x, FR_OVERFLOW_IEEE);
}

void fr_lab_cast(uint32_t dtype, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = fr_lab_to(dtype, v[i]);
    }
}

/* ---- kernels ---- */

#define LANES 8

static float join(const float lane[LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

float fr_lab_sum(const double *v, size_t n)
{
    float lane[LANES] = {0};
    for (size_t i = 0; i < n; i++) {
        lane[i % LANES] += (float)v[i];
    }
    return join(lane);
}

float fr_lab_sum_products(const double *a, const double *b, size_t n)
{
    float lane[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            lane[k] += (float)(a[i + k] * b[i + k]);
        }
    }
    for (size_t k = 0; i + k < n && k < LANES; k++) {
        lane[k] += (float)(a[i + k] * b[i + k]);
    }
    return join(lane);
}

double fr_lab_dot(uint32_t dtype, const double *a, const double *b, size_t n)
{
    return fr_lab_to(dtype, fr_lab_sum_products(a, b, n));
}

void fr_lab_matvec(uint32_t dtype, const double *matrix, const double *x, size_t m, size_t n,
                   double *out)
{
    for (size_t i = 0; i < m; i++) {
        out[i] = fr_lab_dot(dtype, matrix + i * n, x, n);
    }
}

void fr_lab_matvec_t(uint32_t dtype, const double *matrix, const double *x, size_t m, size_t n,
                     double *out)
{
    memset(out, 0, n * sizeof *out);
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < n; k++) {
            out[k] = (float)((float)out[k] + (float)(matrix[i * n + k] * x[i]));
        }
    }
    fr_lab_cast(dtype, out, n);
}

static double largest(const double *x, size_t n)
{
    double top = x[0];
    for (size_t i = 1; i < n; i++) {
        top =
            x[i] > top || isnan(x[i]) ? x[i] : top; /* NaN stays the largest: nothing is above it */
    }
    return top;
}

void fr_lab_softmax(uint32_t dtype, const double *x, size_t n, double *out)
{
    double top = largest(x, n);
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)fr_lab_exp(x[i] - top); /* Inf - Inf is NaN, and so is then the sum */
        sum += (float)out[i];
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = fr_lab_to(dtype, (float)out[i] / sum);
    }
}

double fr_lab_cross_entropy(const double *x, size_t n, size_t target)
{
    double top = largest(x, n);
    float sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (float)fr_lab_exp(x[i] - top);
    }
    return (float)(fr_lab_log(sum) - (x[target] - top));
}

/* ---- looking ---- */

void fr_lab_chain(struct fr_chain *c, const struct fr_op_trace *t)
{
    for (uint64_t i = 0; i < t->n && i < t->cap; i++) {
        const struct fr_op_step *s = &t->steps[i];
        const struct fr_link link = {.op = fr_sv_z(s->op),
                                     .dtype = s->dtype,
                                     .n = (uint32_t)s->n,
                                     .rows = 1,
                                     .zeros = (uint32_t)s->zero,
                                     .infs = (uint32_t)s->inf,
                                     .nans = (uint32_t)s->nan,
                                     .zero_rows = s->n > 1 && s->zero == s->n,
                                     .most = s->inf > 0 ? INFINITY : s->absmax,
                                     .least = s->min_nonzero > 0 ? s->min_nonzero
                                              : s->inf > 0       ? INFINITY
                                                                 : 0};
        fr_chain_link(c, &link);
    }
}

struct fr_lab_stats fr_lab_look(const double *v, size_t n)
{
    struct fr_lab_stats s = {0};
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double m = fabs(v[i]);
        s.zeros += m == 0;
        s.infs += isinf(m) != 0;
        s.nans += isnan(m) != 0;
        s.most = m > s.most ? m : s.most;
        sum += m * m;
    }
    s.norm = sqrt(sum);
    return s;
}

double fr_lab_rms(const double *v, size_t n)
{
    double norm = fr_lab_look(v, n).norm;
    return norm / sqrt((double)n);
}
