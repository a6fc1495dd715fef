/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_same: one table of kernels against the plain one, bit by bit: any shape, stride, type and
 * address, values of any code (so Inf and NaN too), in place or not; and nothing is written outside
 * the rows. The seed is fixed; a failure names its turn. */
#ifndef FR_TESTS_KERNELS_SAME_H
#define FR_TESTS_KERNELS_SAME_H

#include "numerics/kernel.h"
#include "support/kernel_oracle.h"
#include "support/t.h"

#include <math.h>

enum { SAME_BYTES = 1 << 15, SAME_FLOATS = 512, SAME_OPS = 7 };

/* All memory of one call. */
struct same_memory {
    uint8_t x[SAME_BYTES], w[SAME_BYTES], b[SAME_BYTES], dy[SAME_BYTES], y[SAME_BYTES];
    float dw[SAME_FLOATS], db[SAME_FLOATS], work[SAME_FLOATS];
};

struct same_job {
    int op;
    size_t rows, n, keys;
    struct fr_in x, w, b, dy;
    struct fr_out y;
    float eps;
    int status;
};

/* Operands lie at any offset of their memory; a row is at most 300 elements, a stride 20 more. */
static struct fr_in same_operand(struct oracle_rng *g, uint8_t *p, size_t n, int may_miss)
{
    static const uint32_t types[] = {FR_F16, FR_BF16, FR_F32};
    const uint32_t pick = oracle_random(g);
    if (may_miss && pick % 3 == 0) {
        return (struct fr_in){NULL, FR_F16, 0};
    }
    return (struct fr_in){p + pick % 5, types[(pick >> 8) % 3], pick >> 16 & 1 ? n + (pick >> 20) % 20 : n};
}

/* Codes: mostly of middling size, some of any kind. */
static void same_values(struct oracle_rng *g, uint8_t *p, uint32_t type)
{
    const uint32_t wild = oracle_below(g, 4);
    const size_t size = fr_packed_size(type, 1);
    for (size_t at = 0; at + size <= SAME_BYTES; at += size) {
        uint32_t code = oracle_random(g);
        if (wild != 0 || at / size % 16 != 0) {
            code = fr_encode(type, (oracle_random(g) * 0x1p-32 - 0.5) * (wild == 2 ? 1e4 : 4), FR_OVERFLOW_IEEE);
        }
        memcpy(p + at, &code, size);
    }
}

static struct same_job same_make(struct oracle_rng *g, struct same_memory *m)
{
    struct same_job j = {.op = (int)oracle_below(g, SAME_OPS), .rows = 1 + oracle_below(g, 4)};
    j.n = oracle_random(g) % 5 == 0 && j.op < 5 ? 200 + oracle_below(g, 100) : 1 + oracle_below(g, 70);
    j.keys = 1 + oracle_below(g, 70);
    j.eps = oracle_random(g) & 1 ? 1e-6f : 0;
    memset(m->y, 0xa5, sizeof m->y);
    j.x = same_operand(g, m->x, j.n, 0);
    j.w = same_operand(g, m->w, j.n, 1);
    j.b = same_operand(g, m->b, j.n, 1);
    j.dy = same_operand(g, m->dy, j.op >= 5 ? j.keys : j.n, j.op >= 4);
    const struct fr_in y = same_operand(g, m->y, j.op >= 5 ? j.keys : j.n, 0);
    j.y = (struct fr_out){m->y + (y.p != NULL ? oracle_below(g, 5) : 0), y.dtype, y.stride};
    same_values(g, m->x, j.x.dtype);
    same_values(g, m->w, j.w.dtype);
    same_values(g, m->b, j.b.dtype);
    same_values(g, m->dy, j.dy.dtype);
    if (j.op >= 4 && j.dy.p != NULL && oracle_random(g) & 1) { /* a byte mask */
        j.dy.dtype = FR_BOOL;
        for (size_t i = 0; i < SAME_BYTES; i++) {
            m->dy[i] = oracle_random(g) % 4 < 2;
        }
    }
    if (j.op < 5 && oracle_random(g) % 4 == 0) { /* in place */
        j.y = (struct fr_out){m->x + ((const uint8_t *)j.x.p - m->x), j.x.dtype, j.x.stride};
    }
    if (j.w.p == NULL && j.op >= 5) { /* the keys */
        j.w = (struct fr_in){m->w, FR_F32, j.n};
        same_values(g, m->w, FR_F32);
    }
    for (size_t i = 0; i < SAME_FLOATS; i++) {
        m->dw[i] = m->db[i] = m->work[i] = (float)i;
    }
    return j;
}

/* Runs a job in memory `to`, a copy of the memory it was made in. */
static void same_run(struct same_job *j, const struct same_memory *from, struct same_memory *to)
{
    *to = *from;
    struct same_job k = *j;
    struct fr_in *const in[] = {&k.x, &k.w, &k.b, &k.dy};
    for (int i = 0; i < 4; i++) {
        in[i]->p = in[i]->p != NULL ? (const uint8_t *)to + ((const uint8_t *)in[i]->p - (const uint8_t *)from) : NULL;
    }
    k.y.p = (uint8_t *)to + ((const uint8_t *)k.y.p - (const uint8_t *)from);
    switch (k.op) {
    case 0: j->status = fr_kernel_rms_norm(k.rows, k.n, k.x, k.w, k.eps, k.y); break;
    case 1: j->status = fr_kernel_rms_norm_backward(k.rows, k.n, k.x, k.w, k.dy, k.eps, k.y, to->dw); break;
    case 2: j->status = fr_kernel_layer_norm(k.rows, k.n, k.x, k.w, k.b, k.eps, k.y); break;
    case 3:
        j->status = fr_kernel_layer_norm_backward(k.rows, k.n, k.x, k.w, k.dy, k.eps, k.y, to->dw, to->db);
        break;
    case 4: j->status = fr_kernel_softmax(k.rows, k.n, k.x, k.dy, k.y); break;
    default:
        j->status = fr_kernel_attention_scores(k.rows, k.keys, k.n, k.x, k.w, 0.125f, k.dy, k.op == 5,
                                               k.op == 5 ? to->work : NULL, k.y);
    }
}

static int same_nan(uint32_t type, const uint8_t *a, const uint8_t *b)
{
    uint32_t p = 0, q = 0;
    memcpy(&p, a, fr_packed_size(type, 1));
    memcpy(&q, b, fr_packed_size(type, 1));
    return isnan(fr_decode(type, p)) && isnan(fr_decode(type, q));
}

/* Bytes of y outside its rows must be what they were, elements inside must agree. */
static void same_compare(int turn, const char *name, const struct same_job *j, const struct same_memory *before,
                         const struct same_memory *want, const struct same_memory *got)
{
    const size_t size = fr_packed_size(j->y.dtype, 1), first = (size_t)((const uint8_t *)j->y.p - (const uint8_t *)before);
    const size_t n = j->op >= 5 ? j->keys : j->n;
    for (size_t at = 0; at < offsetof(struct same_memory, dw); at++) {
        const size_t row = at < first ? SIZE_MAX : (at - first) / size / j->y.stride;
        const uint8_t *const a = (const uint8_t *)want + at, *const b = (const uint8_t *)got + at;
        if (row >= j->rows || (at - first) / size % j->y.stride >= n) {
            if (*b != ((const uint8_t *)before)[at] || *a != *b) {
                T_FAIL("%s, turn %d, op %d: byte %zu outside the rows was written", name, turn, j->op, at - first);
                return;
            }
        } else if ((at - first) % size == 0) {
            if (memcmp(a, b, size) != 0 && !same_nan(j->y.dtype, a, b)) {
                T_FAIL("%s, turn %d, op %d: row %zu, element %zu of %zu differs", name, turn, j->op, row,
                       (at - first) / size % j->y.stride, n);
                return;
            }
            at += size - 1;
        }
    }
    for (size_t i = 0; i < SAME_FLOATS; i++) {
        const float *const a = &want->dw[i], *const b = &got->dw[i];
        const float *const c = &want->db[i], *const d = &got->db[i];
        T_OK(memcmp(a, b, 4) == 0 || (isnan(*a) && isnan(*b)));
        T_OK(memcmp(c, d, 4) == 0 || (isnan(*c) && isnan(*d)));
    }
}

static void same_sweep(const struct fr_kernels *kernels, const char *name, int turns)
{
    static struct same_memory before, want, got;
    struct oracle_rng g = {314159265};
    for (int turn = 0; turn < turns; turn++) {
        struct same_job j = same_make(&g, &before);
        fr_kernel_force(&fr_kernels_portable);
        same_run(&j, &before, &want);
        const int status = j.status;
        fr_kernel_force(kernels);
        same_run(&j, &before, &got);
        T_OK(status >= 0);
        T_EQ_INT(j.status, status);
        same_compare(turn, name, &j, &before, &want, &got);
    }
    fr_kernel_force(NULL);
}

#endif
