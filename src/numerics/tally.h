/* SPDX-License-Identifier: Apache-2.0 */
/* tally: what every engine has to find out about one block of elements. An engine only looks for
 * what a sound tensor makes it look for: the largest magnitude, zeros, subnormals, squares. A block
 * whose largest magnitude shows that it holds more than that (a NaN, an infinity, a value too large
 * for a smaller type, or one whose square a float cannot hold) is counted again by tally.c while it
 * is still in the cache. One file per kind of CPU, one row each in tally.c. Private to numerics/.
 */
#ifndef FR_NUMERICS_TALLY_H
#define FR_NUMERICS_TALLY_H

#include "faultrank/numerics.h"

#include <stdbool.h>
#include <string.h>

/* 16-bit counters, one per lane of the narrowest vector, hold the elements of a block of any type
 * (8,192 at most per lane). */
#define FR_TALLY_BLOCK FR_TALLY_PIECE

struct fr_tally_block {
    uint64_t top;   /* the largest magnitude: code without its sign bit; NaN and Inf count as the
                       numbers they look like */
    uint32_t zero;  /* elements whose magnitude is 0 */
    uint32_t tiny;  /* elements below the smallest normal number, zeros too */
    double squares; /* sum of squares; any value when the block is not plain, see tally.c */
};

/* n elements at p (no alignment), at most a block of them. Fills all of *ret. */
typedef void (*fr_tally_fn)(const void *p, size_t n, struct fr_tally_block *ret);

/* fp8: squares are those of the float16 whose magnitude is the code's shifted left by 7 (4 exponent
 * bits) or 8 (5 exponent bits). */
struct fr_tally_engine {
    const char *name;
    fr_tally_fn f16, bf16, f32, f32_wide, f64, f8_shift7,
        f8_shift8;       /* wide: for squares that a float cannot hold */
    bool (*works)(void); /* on this CPU */
};
extern const struct fr_tally_engine fr_tally_engines[]; /* best one last */
extern const unsigned fr_tally_engines_count;
/* For tests and benches: the engine of that name from now on, NULL the best one; false when it does
 * not work here. */
bool fr_tally_use(const char *name);

#define FR_TALLY_FNS(engine)                                                               \
    void fr_tally_f16_##engine(const void *p, size_t n, struct fr_tally_block *ret);       \
    void fr_tally_bf16_##engine(const void *p, size_t n, struct fr_tally_block *ret);      \
    void fr_tally_f32_##engine(const void *p, size_t n, struct fr_tally_block *ret);       \
    void fr_tally_f32_wide_##engine(const void *p, size_t n, struct fr_tally_block *ret);  \
    void fr_tally_f64_##engine(const void *p, size_t n, struct fr_tally_block *ret);       \
    void fr_tally_f8_shift7_##engine(const void *p, size_t n, struct fr_tally_block *ret); \
    void fr_tally_f8_shift8_##engine(const void *p, size_t n, struct fr_tally_block *ret)
FR_TALLY_FNS(portable);
FR_TALLY_FNS(avx2);
FR_TALLY_FNS(avx512);
#define FR_TALLY_ROW(engine)                                                                \
    {                                                                                       \
#engine, fr_tally_f16_##engine, fr_tally_bf16_##engine, fr_tally_f32_##engine,      \
            fr_tally_f32_wide_##engine, fr_tally_f64_##engine, fr_tally_f8_shift7_##engine, \
            fr_tally_f8_shift8_##engine, works_##engine                                     \
    }

/* ---- the last elements of a block, one by one: all engines end with these ---- */

static inline uint32_t fr_tally_u32(float f)
{
    uint32_t w;
    memcpy(&w, &f, sizeof w);
    return w;
}

static inline float fr_tally_float(uint32_t w)
{
    float f;
    memcpy(&f, &w, sizeof f);
    return f;
}

/* The float of a float16's magnitude. Infinities and NaN give numbers; whoever meets them asks
 * tally.c. */
static inline float fr_tally_half(uint32_t magnitude)
{
    const uint32_t shifted = magnitude << 13;
    /* A subnormal has no hidden bit: give it one, and take it off again. Exact, and no subnormal
     * float is met. */
    return magnitude < 0x400 ? fr_tally_float(shifted + (113u << 23)) - fr_tally_float(113u << 23)
                             : fr_tally_float(shifted + (112u << 23));
}

static inline void fr_tally_note(struct fr_tally_block *b, uint64_t magnitude, uint64_t normal)
{
    b->top = magnitude > b->top ? magnitude : b->top;
    b->zero += magnitude == 0;
    b->tiny += magnitude < normal;
}

static inline void fr_tally_rest_f16(const void *p, size_t n, struct fr_tally_block *b)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const char *)p + 2 * i, 2);
        const double x = (double)fr_tally_half(h & 0x7fffu);
        fr_tally_note(b, h & 0x7fffu, 0x400);
        b->squares += x * x;
    }
}

static inline void fr_tally_rest_bf16(const void *p, size_t n, struct fr_tally_block *b)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const char *)p + 2 * i, 2);
        const double x = (double)fr_tally_float((uint32_t)h << 16);
        fr_tally_note(b, h & 0x7fffu, 0x80);
        b->squares += x * x;
    }
}

static inline void fr_tally_rest_f32(const void *p, size_t n, struct fr_tally_block *b)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t w;
        memcpy(&w, (const char *)p + 4 * i, 4);
        const double x = (double)fr_tally_float(w);
        fr_tally_note(b, w & 0x7fffffffu, 0x800000);
        b->squares += x * x;
    }
}

static inline void fr_tally_rest_f64(const void *p, size_t n, struct fr_tally_block *b)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t w;
        double x;
        memcpy(&w, (const char *)p + 8 * i, 8);
        memcpy(&x, (const char *)p + 8 * i, 8);
        fr_tally_note(b, w & 0x7fffffffffffffffull, 0x10000000000000ull);
        b->squares += x * x;
    }
}

static inline void fr_tally_rest_f8(const void *p, size_t n, unsigned shift,
                                    struct fr_tally_block *b)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = ((const uint8_t *)p)[i] & 0x7fu;
        const double x = (double)fr_tally_half(magnitude << shift);
        fr_tally_note(b, magnitude, shift == 7 ? 8 : 4);
        b->squares += x * x;
    }
}

#endif
