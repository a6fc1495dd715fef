/* SPDX-License-Identifier: Apache-2.0 */
/* tally_portable: for any CPU. gcc -O3 turns these loops into vectors of whatever the CPU has,
 * which takes three things: counters as wide as the elements (so that a comparison is a counter's
 * step), one simple loop for each quantity, and sums in separate lanes (adding floats in another
 * order is not the compiler's to decide). A block is small enough that later loops find it in the
 * cache. */
#include "numerics/tally.h"

#define LANES 16
#define PART 2048 /* elements of one turn; below what a signed 16-bit counter holds */

/* Loads that need no alignment. */
typedef uint16_t u16 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias));
typedef uint64_t u64 __attribute__((aligned(1), may_alias));
typedef float f32 __attribute__((aligned(1), may_alias));
typedef double f64 __attribute__((aligned(1), may_alias));

static void count16(const u16 *v, size_t n, int16_t normal, struct fr_tally_block *b)
{
    int16_t top = 0, zero = 0, tiny = 0;
    for (size_t i = 0; i < n; i++) {
        const int16_t m = (int16_t)(v[i] & 0x7fff);
        top = m > top ? m : top;
    }
    for (size_t i = 0; i < n; i++) {
        const int16_t m = (int16_t)(v[i] & 0x7fff);
        zero = (int16_t)(zero + (m == 0));
        tiny = (int16_t)(tiny + (m < normal));
    }
    b->top = (uint64_t)top > b->top ? (uint64_t)top : b->top;
    b->zero += (uint32_t)zero;
    b->tiny += (uint32_t)tiny;
}

static double add_up(const float lanes[LANES])
{
    double sum = 0;
    for (int k = 0; k < LANES; k++) {
        sum += (double)lanes[k];
    }
    return sum;
}

void fr_tally_f16_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    const u16 *v = p;
    *ret = (struct fr_tally_block){0, 0, 0, 0};
    for (; n >= LANES;) {
        const size_t part = n > PART ? PART : n - n % LANES;
        float lanes[LANES] = {0};
        count16(v, part, 0x400, ret);
        for (size_t i = 0; i < part; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                const uint32_t m = v[i + (size_t)k] & 0x7fffu;
                /* fr_tally_half without a choice of floats, which gcc would make a branch of */
                const uint32_t small = m < 0x400 ? 0xffffffffu : 0;
                const float x = fr_tally_float((m << 13) + (112u << 23) + (small & (1u << 23))) -
                                fr_tally_float(small & (113u << 23));
                lanes[k] += x * x;
            }
        }
        ret->squares += add_up(lanes);
        v += part;
        n -= part;
    }
    fr_tally_rest_f16(v, n, ret);
}

void fr_tally_bf16_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    const u16 *v = p;
    *ret = (struct fr_tally_block){0, 0, 0, 0};
    for (; n >= LANES;) {
        const size_t part = n > PART ? PART : n - n % LANES;
        float lanes[LANES] = {0};
        count16(v, part, 0x80, ret);
        for (size_t i = 0; i < part; i += LANES) {
            for (int k = 0; k < LANES; k++) {
                const float x = fr_tally_float((uint32_t)v[i + (size_t)k] << 16);
                lanes[k] += x * x;
            }
        }
        ret->squares += add_up(lanes);
        v += part;
        n -= part;
    }
    fr_tally_rest_bf16(v, n, ret);
}

/* Both kinds of 32-bit sums. */
static void count32(const u32 *v, size_t n, struct fr_tally_block *b)
{
    int32_t top = 0, zero = 0, tiny = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t m = (int32_t)(v[i] & 0x7fffffffu);
        top = m > top ? m : top;
        zero += m == 0;
        tiny += m < 0x800000;
    }
    *b = (struct fr_tally_block){(uint64_t)top, (uint32_t)zero, (uint32_t)tiny, 0};
}

void fr_tally_f32_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    const f32 *x = p;
    const size_t whole = n - n % LANES;
    float lanes[LANES] = {0};
    count32(p, whole, ret);
    for (size_t i = 0; i < whole; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] += x[i + (size_t)k] * x[i + (size_t)k];
        }
    }
    ret->squares = add_up(lanes);
    fr_tally_rest_f32(x + whole, n - whole, ret);
}

void fr_tally_f32_wide_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    const f32 *x = p;
    const size_t whole = n - n % LANES;
    double lanes[LANES] = {0};
    count32(p, whole, ret);
    for (size_t i = 0; i < whole; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] += (double)x[i + (size_t)k] * (double)x[i + (size_t)k];
        }
    }
    for (int k = 0; k < LANES; k++) {
        ret->squares += lanes[k];
    }
    fr_tally_rest_f32(x + whole, n - whole, ret);
}

void fr_tally_f64_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    const u64 *v = p;
    const f64 *x = p;
    const size_t whole = n - n % LANES;
    int64_t top = 0, zero = 0, tiny = 0;
    double lanes[LANES] = {0};
    for (size_t i = 0; i < whole; i++) {
        const int64_t m = (int64_t)(v[i] & 0x7fffffffffffffffull);
        top = m > top ? m : top;
        zero += m == 0;
        tiny += m < 0x10000000000000ll;
    }
    for (size_t i = 0; i < whole; i += LANES) {
        for (int k = 0; k < LANES; k++) {
            lanes[k] += x[i + (size_t)k] * x[i + (size_t)k];
        }
    }
    *ret = (struct fr_tally_block){(uint64_t)top, (uint32_t)zero, (uint32_t)tiny, 0};
    for (int k = 0; k < LANES; k++) {
        ret->squares += lanes[k];
    }
    fr_tally_rest_f64(x + whole, n - whole, ret);
}

/* Bytes have 256 values: how often each occurs says everything. Four tables, because one would wait
 * for itself on runs of one byte. */
static void f8(const void *p, size_t n, unsigned shift, struct fr_tally_block *ret)
{
    const uint8_t *v = p;
    uint32_t seen[4][256] = {{0}};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint64_t w = *(const u64 *)(const void *)(v + i);
        seen[0][w & 255]++;
        seen[1][w >> 8 & 255]++;
        seen[2][w >> 16 & 255]++;
        seen[3][w >> 24 & 255]++;
        seen[0][w >> 32 & 255]++;
        seen[1][w >> 40 & 255]++;
        seen[2][w >> 48 & 255]++;
        seen[3][w >> 56]++;
    }
    for (; i < n; i++) {
        seen[0][v[i]]++;
    }
    *ret = (struct fr_tally_block){0, 0, 0, 0};
    for (uint32_t m = 0; m < 128; m++) {
        uint32_t times = 0;
        for (int t = 0; t < 4; t++) {
            times += seen[t][m] + seen[t][m + 128];
        }
        if (times > 0) {
            const double x = (double)fr_tally_half(m << shift);
            ret->top = m;
            ret->zero += m == 0 ? times : 0;
            ret->tiny += m < (shift == 7 ? 8u : 4u) ? times : 0;
            ret->squares += x * x * times;
        }
    }
}

void fr_tally_f8_shift7_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    f8(p, n, 7, ret);
}

void fr_tally_f8_shift8_portable(const void *p, size_t n, struct fr_tally_block *ret)
{
    f8(p, n, 8, ret);
}
