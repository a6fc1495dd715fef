/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which PyTorch's CPU sum adds a contiguous row, restated in words from
 * aten/src/ATen/native/cpu/SumKernel.cpp (1.13; 2.14 gives the same bits but for how fp16 folds).
 * A vector has L lanes of fp32; 16-bit rows are loaded 2 L values at a time and folded to L. Four
 * such vectors make a group, and each of the four has its own sums:
 *
 *   level 0 takes `step` groups and is emptied into level 1, that after `step` times into 2 ...
 *   with step = 2^max(4, ceil(log2(groups)) / 4), so that only sums of similar size meet.
 *
 * What is left: groups that fill no step go to level 0; levels are added upwards; vectors that fill
 * no group are added to the first of the four, then the four are added; values that fill no vector
 * are summed first and the lanes added to them, one after another. Rows shorter than a vector of
 * the storage type go the same way with one lane. */
#include "numerics/emulate.h"

#include <math.h>

enum { LEVELS = 4, GROUP = 4 };

struct loader {
    const struct fr_policy *p;
    const struct fr_terms *t;
    size_t lanes, fold; /* values of a lane in one load: 2 for 16 bits, else 1 */
    int neighbours;     /* folds 2 i and 2 i + 1 (1.13, fp16), else i and i + lanes */
    uint32_t type;
};

static double plus(const struct loader *l, double a, double b)
{
    return fr_keep(l->p, l->type, a + b);
}

static double load(const struct loader *l, size_t vector, size_t lane)
{
    size_t first = vector * l->lanes * l->fold;
    if (l->fold == 1) {
        return fr_term(l->p, l->t, first + lane);
    }
    size_t a = l->neighbours ? 2 * lane : lane, b = l->neighbours ? a + 1 : lane + l->lanes;
    return plus(l, fr_term(l->p, l->t, first + a), fr_term(l->p, l->t, first + b));
}

/* ceil(log2(n)), at least 1. */
static unsigned ceil_log2(size_t n)
{
    unsigned log = 1;
    while (log < 63 && ((size_t)1 << log) < n) {
        log++;
    }
    return log;
}

/* One lane of one of the four vectors of all groups. */
static double column(const struct loader *l, size_t groups, size_t k, size_t lane)
{
    unsigned power = ceil_log2(groups) / LEVELS;
    power = power > 4 ? power : 4;
    size_t step = (size_t)1 << power, i = 0;
    double level[LEVELS] = {0};
    while (i + step <= groups) {
        for (size_t end = i + step; i < end; i++) {
            level[0] = plus(l, level[0], load(l, i * GROUP + k, lane));
        }
        for (unsigned j = 1; j < LEVELS; j++) {
            level[j] = plus(l, level[j], level[j - 1]);
            level[j - 1] = 0;
            if ((i & ((step - 1) << (j * power))) != 0) {
                break;
            }
        }
    }
    for (; i < groups; i++) {
        level[0] = plus(l, level[0], load(l, i * GROUP + k, lane));
    }
    for (unsigned j = 1; j < LEVELS; j++) {
        level[0] = plus(l, level[0], level[j]);
    }
    return level[0];
}

static double lane_sum(const struct loader *l, size_t vectors, size_t lane)
{
    size_t groups = vectors / GROUP;
    double four[GROUP];
    for (size_t k = 0; k < GROUP; k++) {
        four[k] = column(l, groups, k, lane);
    }
    for (size_t i = groups * GROUP; i < vectors; i++) {
        four[0] = plus(l, four[0], load(l, i, lane));
    }
    for (size_t k = 1; k < GROUP; k++) {
        four[0] = plus(l, four[0], four[k]);
    }
    return four[0];
}

/* Norms do not cascade (aten/src/ATen/native/cpu/ReduceOpsKernel.cpp): an fp32 row is one vector
 * of running sums, whose lanes are added one after another, then what filled no vector; a 16-bit
 * row is one running sum, in fp32, but in 1.13 of fp16 in fp16. Where products fuse with
 * additions is the compiler's doing and as found in Debian's builds: 1.13's vectors do, 2.14's
 * do not, and of what is left the last one to three do in both. */
double fr_squares_torch(const struct fr_policy *p, const struct fr_array *a, uint32_t *type)
{
    int old = p->order >= FR_ORDER_TORCH1_AVX2;
    int wide = p->order == FR_ORDER_TORCH_AVX512 || p->order == FR_ORDER_TORCH1_AVX512;
    struct fr_policy narrow = *p;
    struct fr_terms t = {.a = a->v, .b = a->v, .n = a->n, .dtype = a->dtype, .product = FR_F32};
    if (a->dtype != FR_F32) {
        if (a->dtype == FR_F16 && old) {
            *type = t.product = narrow.accumulator = FR_F16;
        }
        return fr_sum(&narrow, FR_ORDER_SEQUENTIAL, &t);
    }
    size_t lanes = wide ? 16 : 8, whole = a->n / lanes * lanes, fused = a->n - (a->n - whole) % 4;
    double sum = 0;
    for (size_t lane = 0; lane < lanes; lane++) {
        double running = 0;
        for (size_t i = lane; i < whole; i += lanes) {
            running = old ? (double)(float)fr_add_to_odd(running, a->v[i] * a->v[i])
                          : (double)(float)(running + fr_term(p, &t, i));
        }
        sum = (double)(float)(sum + running);
    }
    for (size_t i = whole; i < a->n; i++) {
        sum = i >= fused ? (double)(float)fr_add_to_odd(sum, a->v[i] * a->v[i])
                         : (double)(float)(sum + fr_term(p, &t, i));
    }
    return sum;
}

double fr_sum_cascade(const struct fr_policy *p, uint32_t order, const struct fr_terms *t)
{
    int wide = order == FR_ORDER_TORCH_AVX512 || order == FR_ORDER_TORCH1_AVX512;
    size_t bytes = wide ? 64 : 32;
    struct loader l = {.p = p, .t = t, .lanes = bytes / 4, .fold = 1, .type = FR_F32};
    if (t->dtype == FR_F64) {
        l.lanes = bytes / 8;
        l.type = FR_F64;
    } else if (t->dtype != FR_F32) {
        l.fold = 2;
        l.neighbours = t->dtype == FR_F16 && order >= FR_ORDER_TORCH1_AVX2;
    }
    size_t load_size = l.lanes * l.fold;
    if (t->n < load_size) {
        l.lanes = l.fold = 1;
        return lane_sum(&l, t->n, 0);
    }
    size_t vectors = t->n / load_size;
    double sum = 0;
    for (size_t i = vectors * load_size; i < t->n; i++) {
        sum = plus(&l, sum, fr_term(p, t, i));
    }
    for (size_t lane = 0; lane < l.lanes; lane++) {
        sum = plus(&l, sum, lane_sum(&l, vectors, lane));
    }
    return sum;
}
