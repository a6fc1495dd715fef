/* SPDX-License-Identifier: Apache-2.0 */
/* kernel: the table of variants, the checks of arguments and the loops over rows. */
#include "numerics/kernel.h"

#include <math.h>
#ifdef FR_KERNEL_X86
#include "numerics/cpu.h"
#endif

static bool always(void)
{
    return true;
}

#ifdef FR_KERNEL_X86
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && fr_cpu_has_f16c();
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}
#endif

const struct fr_kernel_variant fr_kernel_variants[] = {
    {"portable", &fr_kernels_portable, always},
#ifdef FR_KERNEL_X86
    {"avx2", &fr_kernels_avx2, has_avx2},
    {"avx512", &fr_kernels_avx512, has_avx512},
#endif
};
const unsigned fr_kernel_variants_count = sizeof fr_kernel_variants / sizeof fr_kernel_variants[0];

/* Set once; threads that come here together set the same. */
static const struct fr_kernels *chosen;

static const struct fr_kernels *kernels(void)
{
    const struct fr_kernels *k = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (k == NULL) {
        for (unsigned i = 0; i < fr_kernel_variants_count; i++) {
            if (fr_kernel_variants[i].works()) {
                k = fr_kernel_variants[i].kernels;
            }
        }
        __atomic_store_n(&chosen, k, __ATOMIC_RELAXED);
    }
    return k;
}

void fr_kernel_force(const struct fr_kernels *k)
{
    __atomic_store_n(&chosen, k, __ATOMIC_RELAXED);
}

const char *fr_kernel_variant(void)
{
    const struct fr_kernels *k = kernels();
    for (unsigned i = 0; i < fr_kernel_variants_count; i++) {
        if (fr_kernel_variants[i].kernels == k) {
            return fr_kernel_variants[i].name;
        }
    }
    return "forced";
}

/* ---- the end of a row ------------------------------------------------------------------------ */

static const uint8_t *copied(uint8_t *to, const uint8_t *from, uint32_t type, size_t at, size_t n)
{
    if (from == NULL) {
        return NULL;
    }
    const size_t size = fr_element_size(type);
    memcpy(to, from + at * size, n * size);
    return to;
}

struct fr_kernel_row fr_kernel_pad_in(struct fr_kernel_pad *pad, const struct fr_kernel_row *r,
                                      size_t from, bool lowest)
{
    const size_t n = r->n - from;
    struct fr_kernel_row last = *r;
    memset(pad, 0, sizeof *pad);
    for (size_t i = 0; lowest && i < FR_GROUP; i++) {
        fr_element_put(r->x_type, pad->x, i, -INFINITY);
    }
    for (size_t i = 0; i < n; i++) {
        pad->live[i] = 1;
    }
    last.n = FR_GROUP;
    last.x = copied(pad->x, r->x, r->x_type, from, n);
    last.w = copied(pad->w, r->w, r->w_type, from, n);
    last.b = copied(pad->b, r->b, r->b_type, from, n);
    last.dy = copied(pad->dy, r->dy, r->dy_type, from, n);
    last.y = r->y != NULL ? pad->y : NULL;
    if (r->y != NULL) { /* passes that write nothing give back what was there */
        memcpy(pad->y, r->y + from * fr_element_size(r->y_type), n * fr_element_size(r->y_type));
    }
    if (r->dw != NULL) {
        memcpy(pad->dw, r->dw + from, n * sizeof *pad->dw);
        last.dw = pad->dw;
    }
    if (r->db != NULL) {
        memcpy(pad->db, r->db + from, n * sizeof *pad->db);
        last.db = pad->db;
    }
    last.live = pad->live;
    last.ahead = NULL;
    return last;
}

void fr_kernel_pad_out(const struct fr_kernel_pad *pad, const struct fr_kernel_row *r, size_t from)
{
    const size_t n = r->n - from, size = fr_element_size(r->y_type);
    if (r->y != NULL) {
        memcpy(r->y + from * size, pad->y, n * size);
    }
    if (r->dw != NULL) {
        memcpy(r->dw + from, pad->dw, n * sizeof *pad->dw);
    }
    if (r->db != NULL) {
        memcpy(r->db + from, pad->db, n * sizeof *pad->db);
    }
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Rows in the caller's memory: where row i begins. */
struct rows {
    uint8_t *p;
    size_t step; /* bytes */
    uint32_t type;
};

static bool is_kernel_type(uint32_t type)
{
    return type == FR_F16 || type == FR_BF16 || type == FR_F32;
}

/* The checks of one operand: the first failure stays. */
struct check {
    size_t rows, n;
    int failed;
};

static struct rows take(struct check *c, const void *p, uint32_t type, size_t stride, bool needed,
                        bool bytes_too)
{
    const struct rows none = {NULL, 0, FR_F32};
    if (p == NULL && !needed) {
        return none;
    }
    int failed = 0;
    if (p == NULL) {
        failed = FR_NUM_NULL;
    } else if (!is_kernel_type(type) && !(bytes_too && (type == FR_BOOL || type == FR_U8))) {
        failed = FR_NUM_DTYPE;
    } else {
        const size_t most = PTRDIFF_MAX / fr_element_size(type); /* no offset may wrap */
        if (c->n > most || (c->rows > 1 && stride > (most - c->n) / (c->rows - 1))) {
            failed = FR_NUM_SHAPE;
        }
    }
    if (failed != 0) {
        c->failed = c->failed != 0 ? c->failed : failed;
        return none;
    }
    return (struct rows){(uint8_t *)(uintptr_t)p, stride * fr_element_size(type), type};
}

static struct rows take_in(struct check *c, struct fr_in in, bool needed)
{
    return take(c, in.p, in.dtype, in.stride, needed, false);
}

/* Rows that are written must not run into each other. */
static struct rows take_out(struct check *c, struct fr_out out, bool needed)
{
    if (out.p != NULL && c->rows > 1 && out.stride < c->n && c->failed == 0) {
        c->failed = FR_NUM_SHAPE;
    }
    return take(c, out.p, out.dtype, out.stride, needed, false);
}

static uint8_t *row_at(struct rows r, size_t i)
{
    return r.p != NULL ? r.p + i * r.step : NULL;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* A norm over all rows: its operands, its kernel, and what does a row in double. */
struct norm {
    struct check c;
    struct rows x, w, b, dy, y;
    struct fr_kernel_row row; /* what is the same for all rows */
    int (*fast)(const struct fr_kernel_row *r);
    void (*wide)(const struct fr_kernel_row *r);
};

static int run_norm(struct norm *a)
{
    if (!(a->row.eps >= 0 && a->row.eps <= FLT_MAX) && a->c.failed == 0) {
        a->c.failed = FR_NUM_VALUE;
    }
    if (a->c.failed != 0) {
        return a->c.failed;
    }
    if (a->c.n == 0) {
        return 0;
    }
    struct fr_kernel_row *r = &a->row;
    r->n = a->c.n;
    r->x_type = a->x.type;
    r->w_type = a->w.type;
    r->b_type = a->b.type;
    r->dy_type = a->dy.type;
    r->y_type = a->y.type;
    for (size_t i = 0; i < a->c.rows; i++) {
        r->x = row_at(a->x, i);
        r->w = row_at(a->w, i);
        r->b = row_at(a->b, i);
        r->dy = row_at(a->dy, i);
        r->y = row_at(a->y, i);
        r->ahead = i + 1 < a->c.rows ? row_at(a->x, i + 1) : NULL;
        if (a->fast(r) != 0) {
            a->wide(r);
        }
    }
    return 0;
}

int fr_kernel_rms_norm(size_t rows, size_t n, struct fr_in x, struct fr_in w, float eps,
                       struct fr_out y)
{
    struct norm a = {.c = {rows, n, 0}, .row.eps = eps, .fast = kernels()->rms_norm,
                     .wide = fr_wide_rms_norm};
    a.x = take_in(&a.c, x, true);
    a.w = take_in(&a.c, w, false);
    a.y = take_out(&a.c, y, true);
    return run_norm(&a);
}

int fr_kernel_rms_norm_backward(size_t rows, size_t n, struct fr_in x, struct fr_in w,
                                struct fr_in dy, float eps, struct fr_out dx, float *dw)
{
    struct norm a = {.c = {rows, n, 0}, .row = {.eps = eps, .dw = dw},
                     .fast = kernels()->rms_norm_backward, .wide = fr_wide_rms_norm_backward};
    a.x = take_in(&a.c, x, true);
    a.w = take_in(&a.c, w, false);
    a.dy = take_in(&a.c, dy, true);
    a.y = take_out(&a.c, dx, false);
    return run_norm(&a);
}

int fr_kernel_layer_norm(size_t rows, size_t n, struct fr_in x, struct fr_in w, struct fr_in b,
                         float eps, struct fr_out y)
{
    struct norm a = {.c = {rows, n, 0}, .row.eps = eps, .fast = kernels()->layer_norm,
                     .wide = fr_wide_layer_norm};
    a.x = take_in(&a.c, x, true);
    a.w = take_in(&a.c, w, false);
    a.b = take_in(&a.c, b, false);
    a.y = take_out(&a.c, y, true);
    return run_norm(&a);
}

int fr_kernel_layer_norm_backward(size_t rows, size_t n, struct fr_in x, struct fr_in w,
                                  struct fr_in dy, float eps, struct fr_out dx, float *dw,
                                  float *db)
{
    struct norm a = {.c = {rows, n, 0}, .row = {.eps = eps, .dw = dw, .db = db},
                     .fast = kernels()->layer_norm_backward, .wide = fr_wide_layer_norm_backward};
    a.x = take_in(&a.c, x, true);
    a.w = take_in(&a.c, w, false);
    a.dy = take_in(&a.c, dy, true);
    a.y = take_out(&a.c, dx, false);
    return run_norm(&a);
}

/* ---- softmax and scores ---------------------------------------------------------------------- */

int fr_kernel_softmax(size_t rows, size_t n, struct fr_in x, struct fr_in mask, struct fr_out y)
{
    struct check c = {rows, n, 0};
    const struct rows in = take_in(&c, x, true);
    const struct rows m = take(&c, mask.p, mask.dtype, mask.stride, false, true);
    const struct rows out = take_out(&c, y, true);
    if (c.failed != 0 || n == 0) {
        return c.failed;
    }
    int masked = 0;
    struct fr_kernel_row r = {.n = n, .x_type = in.type, .dy_type = m.type, .y_type = out.type};
    for (size_t i = 0; i < rows; i++) {
        r.x = row_at(in, i);
        r.dy = row_at(m, i);
        r.y = row_at(out, i);
        masked |= kernels()->softmax(&r);
    }
    return masked ? FR_NUM_MASKED : 0;
}

/* The score of a query and a key, as a float. */
static float score(const struct fr_kernel_row *r, float scale)
{
    const double fast = kernels()->dot(r) * (double)scale;
    if (isfinite(fast)) {
        return (float)fast;
    }
    return (float)(fr_wide_dot(r) * (double)scale);
}

/* Scores of keys from..from+n of one query, to `to`. */
static void scores_of(struct fr_kernel_row *r, struct rows k, size_t from, size_t n, float scale,
                      float *to)
{
    for (size_t j = 0; j < n; j++) {
        r->dy = row_at(k, from + j);
        to[j] = score(r, scale);
    }
}

/* One query without softmax: a group of keys at a time needs no memory of the caller's. */
static void plain_scores(struct fr_kernel_row *r, struct rows k, size_t keys, float scale,
                         const struct fr_kernel_row *out)
{
    float some[FR_GROUP];
    struct fr_kernel_row part = *out;
    for (size_t j = 0; j < keys; j += FR_GROUP) {
        part.n = keys - j < FR_GROUP ? keys - j : FR_GROUP;
        scores_of(r, k, j, part.n, scale, some);
        part.x = (const uint8_t *)some;
        part.y = out->y + j * fr_element_size(out->y_type);
        part.dy = out->dy != NULL ? out->dy + j * fr_element_size(out->dy_type) : NULL;
        kernels()->add_mask(&part);
    }
}

int fr_kernel_attention_scores(size_t queries, size_t keys, size_t d, struct fr_in q,
                               struct fr_in k, float scale, struct fr_in mask, int softmax,
                               float *work, struct fr_out out)
{
    struct check of_q = {queries, d, 0}, of_k = {keys, d, 0}, c = {queries, keys, 0};
    const struct rows query = take_in(&of_q, q, true), key = take_in(&of_k, k, true);
    const struct rows m = take(&c, mask.p, mask.dtype, mask.stride, false, true);
    const struct rows to = take_out(&c, out, true);
    const int failed = of_q.failed != 0 ? of_q.failed : of_k.failed != 0 ? of_k.failed : c.failed;
    if (failed != 0) {
        return failed;
    }
    if (softmax && work == NULL) {
        return FR_NUM_NULL;
    }
    if (!isfinite(scale)) {
        return FR_NUM_VALUE;
    }
    int masked = 0;
    struct fr_kernel_row r = {.n = d, .x_type = query.type, .dy_type = key.type, .y_type = FR_F32};
    struct fr_kernel_row w = {.n = keys, .x_type = FR_F32, .dy_type = m.type, .y_type = to.type};
    for (size_t i = 0; i < queries && keys > 0; i++) {
        r.x = row_at(query, i);
        w.dy = row_at(m, i);
        w.y = row_at(to, i);
        if (softmax) {
            scores_of(&r, key, 0, keys, scale, work);
            w.x = (const uint8_t *)work;
            masked |= kernels()->softmax(&w);
        } else {
            plain_scores(&r, key, keys, scale, &w);
        }
    }
    return masked ? FR_NUM_MASKED : 0;
}
