/* SPDX-License-Identifier: Apache-2.0 */
/* tally: blocks go to the engine; a block that is not plain is counted again here, exactly and
 * slowly. */
#include "numerics/tally.h"

#include <math.h>
#include <stdatomic.h>
#ifdef FR_TALLY_X86
#include "numerics/cpu.h"
#endif

/* ---- engines ---- */

static bool works_portable(void)
{
    return true;
}

#ifdef FR_TALLY_X86
static bool works_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && fr_cpu_has_f16c();
}

static bool works_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("popcnt");
}
#endif

const struct fr_tally_engine fr_tally_engines[] = {
    FR_TALLY_ROW(portable),
#ifdef FR_TALLY_X86
    FR_TALLY_ROW(avx2),
    FR_TALLY_ROW(avx512),
#endif
};
const unsigned fr_tally_engines_count = sizeof fr_tally_engines / sizeof fr_tally_engines[0];

static _Atomic unsigned chosen; /* index + 1; every thread would choose the same */

bool fr_tally_use(const char *name)
{
    for (unsigned i = fr_tally_engines_count; i-- > 0;) {
        if ((name == NULL || strcmp(fr_tally_engines[i].name, name) == 0) &&
            fr_tally_engines[i].works()) {
            atomic_store_explicit(&chosen, i + 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

static const struct fr_tally_engine *engine(void)
{
    unsigned i = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (i == 0) {
        fr_tally_use(NULL);
        i = atomic_load_explicit(&chosen, memory_order_relaxed);
    }
    return &fr_tally_engines[i - 1];
}

/* ---- types ---- */

#define NEVER UINT64_MAX
enum { INT, HALF, BRAIN, FLOAT, DOUBLE, BYTES, NIBBLES };

struct kind {
    uint8_t how, width; /* width in bytes of what is counted: a part of a complex number, a pair of
                           nibbles */
    uint64_t inf;       /* magnitude of Inf: all above are NaN */
    uint64_t low, high; /* plain: the largest magnitude of a block is 0 or within */
    uint64_t beyond[FR_BEYOND_COUNT]; /* the smallest magnitude that a cast loses */
    double scale;                     /* engine's squares times this */
    uint8_t has_minus_nan;            /* fnuz: the code of minus zero is NaN */
};

/* Beyond: 65520, 3.3961775e38, above 464, 61440: what rounds to nearest even past the largest
 * finite value (tests/unit/test_tally.c asks fr_encode). Low of bf16 and fp32: the largest square
 * is then at least 2^-110, so that squares lost below 2^-149 do not show. */
static const struct kind kinds[FR_DTYPE_END] = {
    [FR_BOOL] = {.how = INT, .width = 1},
    [FR_U8] = {.how = INT, .width = 1},
    [FR_I8] = {.how = INT, .width = 1},
    [FR_U16] = {.how = INT, .width = 2},
    [FR_I16] = {.how = INT, .width = 2},
    [FR_U32] = {.how = INT, .width = 4},
    [FR_I32] = {.how = INT, .width = 4},
    [FR_U64] = {.how = INT, .width = 8},
    [FR_I64] = {.how = INT, .width = 8},
    [FR_F16] = {HALF, 2, 0x7c00, 0, 0x5f40, {NEVER, NEVER, 0x5f41, 0x7b80}, 1, 0},
    [FR_BF16] = {BRAIN, 2, 0x7f80, (127 - 55) << 7, 0x43e8, {0x4780, NEVER, 0x43e9, 0x4770}, 1, 0},
    [FR_F32] = {FLOAT,
                4,
                0x7f800000,
                (127 - 55) << 23,
                0x43e80000,
                {0x477ff000, 0x7f7f8000, 0x43e80001, 0x47700000},
                1,
                0},
    [FR_C64] = {FLOAT,
                4,
                0x7f800000,
                (127 - 55) << 23,
                0x43e80000,
                {0x477ff000, 0x7f7f8000, 0x43e80001, 0x47700000},
                1,
                0},
    [FR_F64] = {DOUBLE,
                8,
                0x7ff0000000000000,
                0,
                0x407d000000000000,
                {0x40effe0000000000, 0x47eff00000000000, 0x407d000000000001, 0x40ee000000000000},
                1,
                0},
    [FR_C128] = {DOUBLE,
                 8,
                 0x7ff0000000000000,
                 0,
                 0x407d000000000000,
                 {0x40effe0000000000, 0x47eff00000000000, 0x407d000000000001, 0x40ee000000000000},
                 1,
                 0},
    [FR_F8_E4M3FN] = {BYTES, 1, 0, 0, 0x7e, {0}, 65536, 0},
    [FR_F8_E5M2] = {BYTES, 1, 0, 0, 0x5f, {0}, 1, 0},
    [FR_F8_E4M3FNUZ] = {BYTES, 1, 0, 0, 0x7f, {0}, 16384, 1},
    [FR_F8_E5M2FNUZ] = {BYTES, 1, 0, 0, 0x63, {0}, 0.25, 1},
    [FR_F8_E8M0] = {BYTES, 1, 0, NEVER, 0, {0}, 0, 0},
    [FR_F4_E2M1] = {NIBBLES, 1, 0, NEVER, 0, {0}, 0, 0},
};

static fr_tally_fn engine_for(uint32_t dtype)
{
    const struct fr_tally_engine *e = engine();
    switch (dtype) {
    case FR_F16:
        return e->f16;
    case FR_BF16:
        return e->bf16;
    case FR_F32:
    case FR_C64:
        return e->f32;
    case FR_F64:
    case FR_C128:
        return e->f64;
    case FR_F8_E4M3FN:
    case FR_F8_E4M3FNUZ:
        return e->f8_shift7;
    case FR_F8_E5M2:
    case FR_F8_E5M2FNUZ:
        return e->f8_shift8;
    default:
        return NULL;
    }
}

/* ---- a block that is not plain ---- */

static uint64_t load(const void *p, uint8_t width, size_t i)
{
    uint64_t w = 0;
    memcpy(&w, (const char *)p + i * width, width);
    return w;
}

static double value_of(uint8_t how, uint64_t magnitude)
{
    double d;
    switch (how) {
    case HALF:
        return magnitude < 0x7c00 ? (double)fr_tally_half((uint32_t)magnitude) : 0;
    case BRAIN:
        return (double)fr_tally_float((uint32_t)magnitude << 16);
    case FLOAT:
        return (double)fr_tally_float((uint32_t)magnitude);
    default:
        memcpy(&d, &magnitude, sizeof d);
        return d;
    }
}

static void careful_float(const struct kind *k, const void *p, size_t n, struct fr_tally *t)
{
    const uint64_t mask = UINT64_MAX >> (65 - 8 * k->width);
    uint64_t top = 0;
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t m = load(p, k->width, i) & mask;
        if (m >= k->inf) {
            t->inf += m == k->inf;
            t->nan += m > k->inf;
            continue;
        }
        for (unsigned b = 0; b < FR_BEYOND_COUNT; b++) {
            t->beyond[b] += m >= k->beyond[b];
        }
        const double x = value_of(k->how, m);
        top = m > top ? m : top;
        squares += x * x;
    }
    t->abs_max = fmax(t->abs_max, value_of(k->how, top));
    t->sum_squares += squares;
}

static void add_code(uint32_t dtype, uint32_t code, uint64_t times, struct fr_tally *t)
{
    const double x = fabs(fr_decode(dtype, code));
    const struct fr_dtype_info *info = fr_dtype_info(dtype);
    if (times == 0) {
        return;
    }
    if (!isfinite(x)) {
        t->nan += isnan(x) ? times : 0;
        t->inf += isnan(x) ? 0 : times;
        return;
    }
    t->zero += x == 0 ? times : 0;
    t->subnormal += x > 0 && x < info->min_normal ? times : 0;
    t->beyond[FR_BEYOND_F16] += x >= 65520 ? times : 0;
    t->beyond[FR_BEYOND_BF16] += x >= 0x1.ffp127 ? times : 0;
    t->beyond[FR_BEYOND_E4M3FN] += x > 464 ? times : 0;
    t->beyond[FR_BEYOND_E5M2] += x >= 61440 ? times : 0;
    t->abs_max = fmax(t->abs_max, x);
    t->sum_squares += x * x * (double)times;
}

/* Zeros and subnormals come from here, too. */
static void careful_bytes(uint32_t dtype, const void *p, size_t n, struct fr_tally *t)
{
    const uint8_t *v = p;
    uint32_t seen[4][256] = {{0}};
    for (size_t i = 0; i < n; i++) {
        seen[i % 4][v[i]]++;
    }
    for (uint32_t code = 0; code < 256; code++) {
        const uint64_t times =
            (uint64_t)seen[0][code] + seen[1][code] + seen[2][code] + seen[3][code];
        if (kinds[dtype].how == NIBBLES) {
            add_code(dtype, code & 15, times, t);
            add_code(dtype, code >> 4, times, t);
        } else {
            add_code(dtype, code, times, t);
        }
    }
}

/* Magnitudes whose squares a float may lose, and nothing else that is odd: the moments of
 * optimizers are often like that. */
static double wide_squares(const struct kind *k, const void *p, size_t n)
{
    const struct fr_tally_engine *e = engine();
    struct fr_tally_block b;
    if (k->how == FLOAT) {
        e->f32_wide(p, n, &b);
        return b.squares;
    }
    double sum = 0;
    float some[512];
    for (size_t i = 0; i < n; i += 512) {
        const size_t now = n - i < 512 ? n - i : 512;
        for (size_t j = 0; j < now; j++) {
            some[j] = fr_tally_float((uint32_t)load(p, 2, i + j) << 16);
        }
        e->f32_wide(some, now, &b);
        sum += b.squares;
    }
    return sum;
}

static void block(uint32_t dtype, fr_tally_fn fn, const void *p, size_t n, struct fr_tally *t)
{
    const struct kind *k = &kinds[dtype];
    struct fr_tally_block b = {.top = 1};
    if (fn != NULL) {
        fn(p, n, &b);
    }
    const bool plain = fn != NULL && (b.top == 0 || (b.top >= k->low && b.top <= k->high)) &&
                       !(k->has_minus_nan && b.zero > 0);
    if (!plain && k->how >= BYTES) {
        careful_bytes(dtype, p, n, t);
        return;
    }
    t->zero += b.zero;
    t->subnormal += b.tiny - b.zero;
    if (!plain && b.top < k->low) {
        b.squares = wide_squares(k, p, n);
    } else if (!plain) {
        careful_float(k, p, n, t);
        return;
    }
    t->sum_squares += b.squares * k->scale;
    t->abs_max = fmax(t->abs_max, k->how == BYTES ? fabs(fr_decode(dtype, (uint32_t)b.top))
                                                  : value_of(k->how, b.top));
}

/* ---- integers ---- */

#define INTEGERS(name, T, magnitude)                              \
    static void name(const void *p, size_t n, struct fr_tally *t) \
    {                                                             \
        typedef T element __attribute__((aligned(1), may_alias)); \
        const element *v = p;                                     \
        uint64_t top = 0, zero = 0;                               \
        for (size_t i = 0; i < n; i++) {                          \
            const T x = v[i];                                     \
            const uint64_t m = magnitude;                         \
            top = m > top ? m : top;                              \
            zero += x == 0;                                       \
        }                                                         \
        t->zero += zero;                                          \
        t->abs_max = fmax(t->abs_max, (double)top);               \
    }
INTEGERS(add_u8, uint8_t, x)
INTEGERS(add_u16, uint16_t, x)
INTEGERS(add_u32, uint32_t, x)
INTEGERS(add_u64, uint64_t, x)
INTEGERS(add_i8, int8_t, (uint64_t)(x < 0 ? -(int)x : x))
INTEGERS(add_i16, int16_t, (uint64_t)(x < 0 ? -(int)x : x))
INTEGERS(add_i32, int32_t, (uint64_t)(x < 0 ? -(int64_t)x : x))
INTEGERS(add_i64, int64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)

static void integers(uint32_t dtype, const void *p, size_t n, struct fr_tally *t)
{
    static void (*const add[FR_DTYPE_END])(const void *, size_t, struct fr_tally *) = {
        [FR_BOOL] = add_u8, [FR_U8] = add_u8,   [FR_U16] = add_u16,
        [FR_U32] = add_u32, [FR_U64] = add_u64, [FR_I8] = add_i8,
        [FR_I16] = add_i16, [FR_I32] = add_i32, [FR_I64] = add_i64,
    };
    add[dtype](p, n, t);
}

/* ---- what the header declares ---- */

uint32_t fr_tally_width(uint32_t dtype)
{
    return dtype < FR_DTYPE_END ? kinds[dtype].width : 0;
}

int fr_tally_add(uint32_t dtype, const void *p, size_t bytes, struct fr_tally *t)
{
    const uint32_t width = fr_tally_width(dtype);
    if (width == 0) {
        return -1;
    }
    size_t n = bytes / width;
    t->elements += kinds[dtype].how == NIBBLES ? 2 * n : n;
    if (kinds[dtype].how == INT) {
        integers(dtype, p, n, t);
        return 0;
    }
    const size_t most = FR_TALLY_BLOCK / width;
    const fr_tally_fn fn = engine_for(dtype);
    for (const char *at = p; n > 0;) {
        const size_t now = n < most ? n : most;
        block(dtype, fn, at, now, t);
        at += now * width;
        n -= now;
    }
    return 0;
}

void fr_tally_merge(struct fr_tally *to, const struct fr_tally *t)
{
    to->elements += t->elements;
    to->nan += t->nan;
    to->inf += t->inf;
    to->zero += t->zero;
    to->subnormal += t->subnormal;
    for (unsigned b = 0; b < FR_BEYOND_COUNT; b++) {
        to->beyond[b] += t->beyond[b];
    }
    to->abs_max = fmax(to->abs_max, t->abs_max);
    to->sum_squares += t->sum_squares;
}
