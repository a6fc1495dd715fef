/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_body: the kernels, over what a variant's file defines before it includes this:
 *
 *   LANES, V                          floats in a vector (4, 8 or 16), its type
 *   v_set(f)                          f in every lane
 *   v_load_f32/f16/bf16(p)            LANES elements from bytes, as floats
 *   v_store_f32/f16/bf16(p, v)        rounded to nearest even; NaN stays NaN
 *   v_add, v_sub, v_mul(a, b)         each rounded by itself: a fused product would give other bits
 *   v_max(a, b)                       a > b ? a : b, so b when either is NaN
 *   v_keep(v, p)                      v where the byte at p is not 0, else -Inf
 *   v_pow2(z)                         2^n for z = n + ROUNDER, n an integer from -126 to 127
 *   v_fold(a, f)                      f[l] = sum of lanes l, l + 8, l + 16, l + 24 of 32: those 16
 *                                     apart first
 *   KERNELS                           the name of the table this makes
 *
 * A pass goes through a row group by group; its step is a function that is inlined into it, with
 * the type of x a constant. Types of the other operands are tested at every load: the branch is
 * always guessed right, and 27 combinations stay one. */
#include "numerics/kernel.h"

#include <math.h>

#define INLINE  static inline __attribute__((always_inline))
#define VECS    (FR_GROUP / LANES)
#define ROUNDER 12582912.0f /* 1.5 * 2^23: a float of that size has no fraction */

/* Up to two running sums. */
struct sums {
    V a[VECS], b[VECS];
    double a_sum, b_sum;
};

/* What earlier passes found; mean is hi + lo, which keeps what one float cannot. */
struct found {
    float hi, lo, r, c1, c2, top;
    bool plain; /* w is there, and w and y have the type of x: the pass is made for just that */
};

typedef void step_fn(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                     const struct found *m);

INLINE V load(uint32_t type, const uint8_t *p, size_t i)
{
    if (type == FR_F16) {
        return v_load_f16(p + 2 * i);
    }
    return type == FR_BF16 ? v_load_bf16(p + 2 * i) : v_load_f32(p + 4 * i);
}

INLINE void store(uint32_t type, uint8_t *p, size_t i, V v)
{
    if (type == FR_F16) {
        v_store_f16(p + 2 * i, v);
    } else if (type == FR_BF16) {
        v_store_bf16(p + 2 * i, v);
    } else {
        v_store_f32(p + 4 * i, v);
    }
}

/* *p += v for floats of the caller's. */
INLINE void add_to(float *p, size_t i, V v)
{
    uint8_t *const at = (uint8_t *)(p + i);
    v_store_f32(at, v_add(v_load_f32(at), v));
}

INLINE void clear(struct sums *u)
{
    for (unsigned k = 0; k < VECS; k++) {
        u->a[k] = u->b[k] = v_set(0);
    }
}

INLINE double folded(const V a[VECS])
{
    float f[8];
    v_fold(a, f);
    return (((double)f[0] + (double)f[1]) + ((double)f[2] + (double)f[3])) +
           (((double)f[4] + (double)f[5]) + ((double)f[6] + (double)f[7]));
}

/* How many of the two sums a pass uses. */
enum { NO_SUM = 0, ONE_SUM = 1, TWO_SUMS = 2 };

INLINE void flush(struct sums *u, unsigned n)
{
    if (n >= ONE_SUM) {
        u->a_sum += folded(u->a);
    }
    if (n == TWO_SUMS) {
        u->b_sum += folded(u->b);
    }
    if (n != NO_SUM) {
        clear(u);
    }
}

/* One pass: the whole groups, then the last one over memory of its own. Both run the same loop,
 * which halves the code; s is a copy whose address goes nowhere, so that its pointers stay in
 * registers. */
INLINE void walk(const struct fr_kernel_row *r, uint32_t t, step_fn *step, unsigned n_sums,
                 bool lowest, struct sums *u, const struct found *m)
{
    struct fr_kernel_pad pad;
    struct fr_kernel_row s = *r;
    const size_t rest = r->n % FR_GROUP, whole = r->n - rest;
    u->a_sum = u->b_sum = 0;
    if (n_sums != NO_SUM) {
        clear(u);
    }
    for (size_t i = 0, end = whole;;) {
        while (i < end) {
            const size_t stop = end - i > FR_BLOCK ? i + FR_BLOCK : end;
            for (; i < stop; i += FR_GROUP) {
                step(&s, t, i, u, m);
            }
            flush(u, n_sums);
        }
        if (s.live != NULL || rest == 0) {
            break;
        }
        s = fr_kernel_pad_in(&pad, r, whole, lowest);
        i = 0;
        end = FR_GROUP;
    }
    if (rest != 0 && n_sums == NO_SUM) { /* passes that sum write nothing */
        fr_kernel_pad_out(&pad, r, whole);
    }
}

/* ---- RMS norm -------------------------------------------------------------------------------- */

INLINE void step_squares(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                         const struct found *m)
{
    (void)m;
    for (unsigned k = 0; k < VECS; k++) {
        const V x = load(t, s->x, i + k * LANES);
        u->a[k] = v_add(u->a[k], v_mul(x, x));
    }
}

INLINE bool fast(double v)
{
    return v >= FR_FAST_LEAST && v <= FR_FAST_MOST; /* not for NaN */
}

/* False when the row is one for double. */
INLINE bool rms_of(const struct fr_kernel_row *r, uint32_t t, struct found *m)
{
    struct sums u;
    walk(r, t, step_squares, ONE_SUM, false, &u, m);
    const double v = u.a_sum / (double)r->n + (double)r->eps;
    m->r = (float)(1 / sqrt(v));
    return fast(v);
}

/* The common case gets a copy without tests of types, which were a fifth of its time. */
INLINE bool is_plain(const struct fr_kernel_row *r, uint32_t t)
{
    return r->w != NULL && r->w_type == t && r->y_type == t;
}

INLINE V weighted(const struct fr_kernel_row *s, size_t i, V v)
{
    return s->w != NULL ? v_mul(v, load(s->w_type, s->w, i)) : v;
}

INLINE void fetch(const struct fr_kernel_row *s, uint32_t t, size_t i)
{
    if (s->ahead != NULL) {
        __builtin_prefetch(s->ahead + i * fr_element_size(t));
        if (t == FR_F32) {
            __builtin_prefetch(s->ahead + (i + FR_GROUP / 2) * 4);
        }
    }
}

INLINE void step_rms(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                     const struct found *m)
{
    (void)u;
    fetch(s, t, i);
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        const V x_hat = v_mul(load(t, s->x, at), v_set(m->r));
        if (m->plain) {
            store(t, s->y, at, v_mul(x_hat, load(t, s->w, at)));
        } else {
            store(s->y_type, s->y, at, weighted(s, at, x_hat));
        }
    }
}

INLINE int rms_norm_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct found m;
    struct sums u;
    if (!rms_of(r, t, &m)) {
        return 1;
    }
    if (is_plain(r, t)) {
        m.plain = true;
        walk(r, t, step_rms, NO_SUM, false, &u, &m);
    } else {
        m.plain = false;
        walk(r, t, step_rms, NO_SUM, false, &u, &m);
    }
    return 0;
}

/* x_hat = x * r, g = dy * w; the gradient is r * (g - x_hat * mean(g * x_hat)): no power of r and
 * no product of three, which is where the usual form overflows. */
INLINE void step_rms_dot(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                         const struct found *m)
{
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        const V x_hat = v_mul(load(t, s->x, at), v_set(m->r));
        const V g = weighted(s, at, load(s->dy_type, s->dy, at));
        u->a[k] = v_add(u->a[k], v_mul(g, x_hat));
    }
}

INLINE void step_rms_gradient(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                              const struct found *m)
{
    (void)u;
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        const V x_hat = v_mul(load(t, s->x, at), v_set(m->r));
        const V dy = load(s->dy_type, s->dy, at);
        if (s->dw != NULL) {
            add_to(s->dw, at, v_mul(dy, x_hat));
        }
        if (s->y != NULL) {
            const V rest = v_sub(weighted(s, at, dy), v_mul(x_hat, v_set(m->c2)));
            store(s->y_type, s->y, at, v_mul(rest, v_set(m->r)));
        }
    }
}

INLINE int rms_norm_backward_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct found m;
    struct sums u;
    if (!rms_of(r, t, &m)) {
        return 1;
    }
    walk(r, t, step_rms_dot, ONE_SUM, false, &u, &m);
    m.c2 = (float)(u.a_sum / (double)r->n);
    if (!isfinite(m.c2)) {
        return 1;
    }
    walk(r, t, step_rms_gradient, NO_SUM, false, &u, &m);
    return 0;
}

/* ---- layer norm ------------------------------------------------------------------------------ */

INLINE void step_total(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                       const struct found *m)
{
    (void)m;
    for (unsigned k = 0; k < VECS; k++) {
        u->a[k] = v_add(u->a[k], load(t, s->x, i + k * LANES));
    }
}

/* x - mean. The first difference is exact for values near the mean, the second is small. */
INLINE V centred(const struct fr_kernel_row *s, uint32_t t, size_t i, const struct found *m)
{
    return v_sub(v_sub(load(t, s->x, i), v_set(m->hi)), v_set(m->lo));
}

INLINE void step_spread(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                        const struct found *m)
{
    for (unsigned k = 0; k < VECS; k++) {
        V d = centred(s, t, i + k * LANES, m);
        if (s->live != NULL) { /* what fills up the last group has a distance too */
            d = v_mul(d, v_load_f32((const uint8_t *)(s->live + k * LANES)));
        }
        u->a[k] = v_add(u->a[k], d);
        u->b[k] = v_add(u->b[k], v_mul(d, d));
    }
}

/* The first mean is off by roundings; what the differences from it add up to mends it, and their
 * mean square less its square is the variance. Where that would cancel, the row is one for
 * double. */
INLINE bool moments_of(const struct fr_kernel_row *r, uint32_t t, struct found *m)
{
    struct sums u;
    const double n = (double)r->n, eps = (double)r->eps;
    walk(r, t, step_total, ONE_SUM, false, &u, m);
    const double first = u.a_sum / n;
    m->hi = (float)first;
    m->lo = (float)(first - (double)m->hi);
    walk(r, t, step_spread, TWO_SUMS, false, &u, m);
    const double shift = u.a_sum / n, square = u.b_sum / n;
    const double v = square - shift * shift + eps;
    m->lo = (float)((double)m->lo + shift);
    m->r = (float)(1 / sqrt(v));
    return fast(v) && square <= FR_FAST_MOST && 2 * shift * shift <= square + 2 * eps;
}

INLINE void step_layer(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                       const struct found *m)
{
    (void)u;
    fetch(s, t, i);
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        V y = weighted(s, at, v_mul(centred(s, t, at, m), v_set(m->r)));
        if (s->b != NULL) {
            y = v_add(y, load(s->b_type, s->b, at));
        }
        store(s->y_type, s->y, at, y);
    }
}

INLINE int layer_norm_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct found m;
    struct sums u;
    if (!moments_of(r, t, &m)) {
        return 1;
    }
    walk(r, t, step_layer, NO_SUM, false, &u, &m);
    return 0;
}

/* As for RMS norm, less the mean of g. */
INLINE void step_layer_dots(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                            const struct found *m)
{
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        const V x_hat = v_mul(centred(s, t, at, m), v_set(m->r));
        const V g = weighted(s, at, load(s->dy_type, s->dy, at));
        u->a[k] = v_add(u->a[k], g);
        u->b[k] = v_add(u->b[k], v_mul(g, x_hat));
    }
}

INLINE void step_layer_gradient(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                                const struct found *m)
{
    (void)u;
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        const V x_hat = v_mul(centred(s, t, at, m), v_set(m->r));
        const V dy = load(s->dy_type, s->dy, at);
        if (s->dw != NULL) {
            add_to(s->dw, at, v_mul(dy, x_hat));
        }
        if (s->db != NULL) {
            add_to(s->db, at, dy);
        }
        if (s->y != NULL) {
            const V g = v_sub(weighted(s, at, dy), v_set(m->c1));
            const V rest = v_sub(g, v_mul(x_hat, v_set(m->c2)));
            store(s->y_type, s->y, at, v_mul(rest, v_set(m->r)));
        }
    }
}

INLINE int layer_norm_backward_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct found m;
    struct sums u;
    if (!moments_of(r, t, &m)) {
        return 1;
    }
    walk(r, t, step_layer_dots, TWO_SUMS, false, &u, &m);
    m.c1 = (float)(u.a_sum / (double)r->n);
    m.c2 = (float)(u.b_sum / (double)r->n);
    if (!isfinite(m.c1) || !isfinite(m.c2)) {
        return 1;
    }
    walk(r, t, step_layer_gradient, NO_SUM, false, &u, &m);
    return 0;
}

/* ---- softmax and scores ---------------------------------------------------------------------- */

/* e^d for d <= 0 (and NaN for NaN): 2^n * e^q, n an integer, |q| <= ln(2) / 2. ln(2) is taken off
 * in two parts, the first short enough that n times it is exact; the polynomial is Cephes' expf.
 * 2^n goes on in two halves, so that results below the normal range are rounded once, not lost. */
INLINE V exp_of(V d)
{
    d = v_max(v_set(-104.0f), d); /* e^-104 is 0 in fp32; NaN, as second operand, stays */
    const V rounder = v_set(ROUNDER);
    const V n = v_sub(v_add(v_mul(d, v_set(1.44269504f)), rounder), rounder);
    V q = v_sub(d, v_mul(n, v_set(0.693359375f)));
    q = v_sub(q, v_mul(n, v_set(-2.12194440e-4f)));
    V p = v_set(1.9875691500e-4f);
    p = v_add(v_mul(p, q), v_set(1.3981999507e-3f));
    p = v_add(v_mul(p, q), v_set(8.3334519073e-3f));
    p = v_add(v_mul(p, q), v_set(4.1665795894e-2f));
    p = v_add(v_mul(p, q), v_set(1.6666665459e-1f));
    p = v_add(v_mul(p, q), v_set(5.0000001201e-1f));
    p = v_add(v_add(v_mul(p, v_mul(q, q)), q), v_set(1.0f));
    const V half = v_add(v_mul(n, v_set(0.5f)), rounder);
    const V rest = v_add(v_sub(n, v_sub(half, rounder)), rounder);
    return v_mul(v_mul(p, v_pow2(half)), v_pow2(rest));
}

INLINE V masked(const struct fr_kernel_row *s, uint32_t t, size_t i)
{
    const V x = load(t, s->x, i);
    if (s->dy == NULL) {
        return x;
    }
    if (fr_element_size(s->dy_type) == 1) {
        return v_keep(x, s->dy + i);
    }
    return v_add(x, load(s->dy_type, s->dy, i));
}

/* NaN is left out here; the sum of the exponentials finds it. */
INLINE void step_max(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                     const struct found *m)
{
    (void)m;
    for (unsigned k = 0; k < VECS; k++) {
        u->a[k] = v_max(masked(s, t, i + k * LANES), u->a[k]);
    }
}

INLINE void step_exp_sum(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                         const struct found *m)
{
    for (unsigned k = 0; k < VECS; k++) {
        const V d = v_sub(masked(s, t, i + k * LANES), v_set(m->top));
        u->a[k] = v_add(u->a[k], exp_of(d));
    }
}

/* The exponentials again: kept in a 16-bit y they would have been rounded twice. */
INLINE void step_exp(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                     const struct found *m)
{
    (void)u;
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        const V d = v_sub(masked(s, t, at), v_set(m->top));
        store(s->y_type, s->y, at, v_mul(exp_of(d), v_set(m->r)));
    }
}

INLINE void step_add_mask(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                          const struct found *m)
{
    (void)u;
    (void)m;
    for (unsigned k = 0; k < VECS; k++) {
        store(s->y_type, s->y, i + k * LANES, masked(s, t, i + k * LANES));
    }
}

INLINE void step_fill(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                      const struct found *m)
{
    (void)u;
    (void)t;
    for (unsigned k = 0; k < VECS; k++) {
        store(s->y_type, s->y, i + k * LANES, v_set(m->r));
    }
}

INLINE float largest(const V a[VECS])
{
    float top = -INFINITY;
    for (unsigned k = 0; k < VECS; k++) {
        float f[LANES];
        v_store_f32((uint8_t *)f, a[k]);
        for (unsigned l = 0; l < LANES; l++) {
            top = f[l] > top ? f[l] : top;
        }
    }
    return top;
}

/* No element is above -Inf: is one of them NaN? */
INLINE void step_any_nan(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                         const struct found *m)
{
    (void)m;
    for (unsigned k = 0; k < VECS; k++) {
        /* NaN, as second operand, stays */
        u->a[k] = v_add(u->a[k], v_max(v_set(0), masked(s, t, i + k * LANES)));
    }
}

INLINE int softmax_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct found m;
    struct sums u;
    for (unsigned k = 0; k < VECS; k++) {
        u.a[k] = v_set(-INFINITY);
    }
    walk(r, t, step_max, NO_SUM, true, &u, &m);
    m.top = largest(u.a);
    if (m.top == -INFINITY) {
        walk(r, t, step_any_nan, ONE_SUM, true, &u, &m);
        const bool all_masked = u.a_sum == 0;
        m.r = all_masked ? 0 : NAN;
        walk(r, t, step_fill, NO_SUM, true, &u, &m);
        return all_masked;
    }
    walk(r, t, step_exp_sum, ONE_SUM, true, &u, &m);
    m.r = (float)(1 / u.a_sum);
    walk(r, t, step_exp, NO_SUM, true, &u, &m);
    return 0;
}

INLINE void add_mask_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct sums u;
    walk(r, t, step_add_mask, NO_SUM, true, &u, NULL);
}

INLINE void step_product(const struct fr_kernel_row *s, uint32_t t, size_t i, struct sums *u,
                         const struct found *m)
{
    (void)m;
    for (unsigned k = 0; k < VECS; k++) {
        const size_t at = i + k * LANES;
        u->a[k] = v_add(u->a[k], v_mul(load(t, s->x, at), load(s->dy_type, s->dy, at)));
    }
}

INLINE double dot_of(const struct fr_kernel_row *r, uint32_t t)
{
    struct sums u;
    walk(r, t, step_product, ONE_SUM, false, &u, NULL);
    return u.a_sum;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* One copy of a kernel for each type of x. */
#define BY_TYPE(ret, name)                         \
    static ret name(const struct fr_kernel_row *r) \
    {                                              \
        if (r->x_type == FR_F16) {                 \
            return name##_of(r, FR_F16);           \
        }                                          \
        if (r->x_type == FR_BF16) {                \
            return name##_of(r, FR_BF16);          \
        }                                          \
        return name##_of(r, FR_F32);               \
    }
BY_TYPE(int, rms_norm)
BY_TYPE(int, rms_norm_backward)
BY_TYPE(int, layer_norm)
BY_TYPE(int, layer_norm_backward)
BY_TYPE(int, softmax)
BY_TYPE(double, dot)

static void add_mask(const struct fr_kernel_row *r)
{
    add_mask_of(r, FR_F32);
}

const struct fr_kernels KERNELS = {
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .softmax = softmax,
    .add_mask = add_mask,
    .dot = dot,
};
