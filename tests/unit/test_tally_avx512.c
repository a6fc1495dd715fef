/* SPDX-License-Identifier: Apache-2.0 */
/* The AVX-512 engine on any x86-64: its own file is compiled over plain C stand-ins for the intrinsics it uses, because most machines
 * that build this have no AVX-512, and compared block by block with the portable engine. */
#include "numerics/tally.h"
#include "support/t.h"

#include <math.h>

#define _IMMINTRIN_H_INCLUDED /* gcc: keeps the real header out of tally_avx512.c */
#define __IMMINTRIN_H         /* clang */

struct wide { uint8_t b[64]; };
struct half { uint8_t b[32]; };
#define __m512i struct wide
#define __m512  struct wide
#define __m512d struct wide

/* T lanes of the result r from the same lanes of a and b. */
#define LANES(T, R, one, two, expr)                              \
    R r = {{0}};                                                 \
    for (size_t i = 0; i < sizeof r / sizeof(T); i++) {          \
        T x, y, z;                                               \
        memcpy(&x, (one).b + i * sizeof(T), sizeof(T));          \
        memcpy(&y, (two).b + i * sizeof(T), sizeof(T));          \
        z = (T)(expr);                                           \
        memcpy(r.b + i * sizeof(T), &z, sizeof(T));              \
    }                                                            \
    return r
#define MASK(T, M, one, two, expr)                               \
    M r = 0;                                                     \
    for (size_t i = 0; i < 64 / sizeof(T); i++) {                \
        T x, y;                                                  \
        memcpy(&x, (one).b + i * sizeof(T), sizeof(T));          \
        memcpy(&y, (two).b + i * sizeof(T), sizeof(T));          \
        r |= (M)((M)((expr) != 0) << i);                         \
    }                                                            \
    return r
#define SET1(name, T)                                            \
    static struct wide name(T v)                                 \
    {                                                            \
        struct wide a = {{0}};                                   \
        LANES(T, struct wide, a, a, ((void)x, (void)y, v));                 \
    }
#define EACH(name, T, expr) static struct wide name(struct wide a, struct wide b) { LANES(T, struct wide, a, b, expr); }
#define TEST(name, T, M, expr) static M name(struct wide a, struct wide b) { MASK(T, M, a, b, expr); }

SET1(_mm512_set1_epi8, char) SET1(_mm512_set1_epi16, short) SET1(_mm512_set1_epi32, int) SET1(_mm512_set1_epi64, long long)
EACH(_mm512_and_si512, uint64_t, x &y)
EACH(_mm512_max_epu8, uint8_t, x > y ? x : y) EACH(_mm512_max_epu16, uint16_t, x > y ? x : y)
EACH(_mm512_max_epu32, uint32_t, x > y ? x : y) EACH(_mm512_max_epu64, uint64_t, x > y ? x : y)
EACH(_mm512_add_ps, float, x + y) EACH(_mm512_add_pd, double, x + y)
TEST(_mm512_testn_epi8_mask, uint8_t, uint64_t, (x & y) == 0) TEST(_mm512_testn_epi16_mask, uint16_t, uint32_t, (x & y) == 0)
TEST(_mm512_testn_epi32_mask, uint32_t, uint16_t, (x & y) == 0) TEST(_mm512_testn_epi64_mask, uint64_t, uint8_t, (x & y) == 0)
TEST(_mm512_cmplt_epu8_mask, uint8_t, uint64_t, x < y) TEST(_mm512_cmplt_epu16_mask, uint16_t, uint32_t, x < y)
TEST(_mm512_cmplt_epu32_mask, uint32_t, uint16_t, x < y) TEST(_mm512_cmplt_epu64_mask, uint64_t, uint8_t, x < y)

static struct wide _mm512_setzero_si512(void) { return (struct wide){{0}}; }
#define _mm512_setzero_ps _mm512_setzero_si512
#define _mm512_setzero_pd _mm512_setzero_si512
#define _mm512_castsi512_ps(a) (a)
#define _mm512_castsi512_pd(a) (a)
#define _mm256_castsi256_ps(a) (a)
#define _mm_prefetch(p, hint) ((void)(p))

static struct wide _mm512_loadu_si512(const void *p)
{
    struct wide r;
    memcpy(&r, p, 64);
    return r;
}

#define _mm512_storeu_si512(p, v) memcpy((p), (v).b, 64)
#define _mm512_storeu_ps(p, v)    memcpy((p), (v).b, 64)
#define _mm512_storeu_pd(p, v)    memcpy((p), (v).b, 64)

static struct wide _mm512_srli_epi16(struct wide a, unsigned n) { LANES(uint16_t, struct wide, a, a, ((void)y, x >> n)); }
static struct wide _mm512_slli_epi32(struct wide a, unsigned n) { LANES(uint32_t, struct wide, a, a, ((void)y, x << n)); }

static struct half _mm512_extracti64x4_epi64(struct wide a, int which)
{
    struct half r;
    memcpy(&r, a.b + 32 * which, 32);
    return r;
}

static struct half _mm512_castsi512_si256(struct wide a)
{
    return _mm512_extracti64x4_epi64(a, 0);
}

static struct wide _mm512_cvtph_ps(struct half h)
{
    struct wide r;
    for (int i = 0; i < 16; i++) {
        uint16_t code;
        memcpy(&code, h.b + 2 * i, 2);
        const float f = (float)fr_decode(FR_F16, code);
        memcpy(r.b + 4 * i, &f, 4);
    }
    return r;
}

static struct wide _mm512_cvtps_pd(struct half h)
{
    struct wide r;
    for (int i = 0; i < 8; i++) {
        float f;
        memcpy(&f, h.b + 4 * i, 4);
        const double d = (double)f;
        memcpy(r.b + 8 * i, &d, 8);
    }
    return r;
}

static struct wide _mm512_fmadd_ps(struct wide a, struct wide b, struct wide c)
{
    struct wide r;
    for (int i = 0; i < 16; i++) {
        float v[3];
        memcpy(v, a.b + 4 * i, 4);
        memcpy(v + 1, b.b + 4 * i, 4);
        memcpy(v + 2, c.b + 4 * i, 4);
        v[0] = fmaf(v[0], v[1], v[2]);
        memcpy(r.b + 4 * i, v, 4);
    }
    return r;
}

static struct wide _mm512_fmadd_pd(struct wide a, struct wide b, struct wide c)
{
    struct wide r;
    for (int i = 0; i < 8; i++) {
        double v[3];
        memcpy(v, a.b + 8 * i, 8);
        memcpy(v + 1, b.b + 8 * i, 8);
        memcpy(v + 2, c.b + 8 * i, 8);
        v[0] = fma(v[0], v[1], v[2]);
        memcpy(r.b + 8 * i, v, 8);
    }
    return r;
}

/* Within each 16 bytes. */
static struct wide unpack(struct wide a, struct wide b, int from)
{
    struct wide r;
    for (int i = 0; i < 64; i++) {
        const int at = i / 16 * 16 + from + i % 16 / 2;
        r.b[i] = i % 2 ? b.b[at] : a.b[at];
    }
    return r;
}
#define _mm512_unpacklo_epi8(a, b) unpack(a, b, 0)
#define _mm512_unpackhi_epi8(a, b) unpack(a, b, 8)

#define fr_tally_f16_avx512       emulated_f16
#define fr_tally_bf16_avx512      emulated_bf16
#define fr_tally_f32_avx512       emulated_f32
#define fr_tally_f32_wide_avx512  emulated_f32_wide
#define fr_tally_f64_avx512       emulated_f64
#define fr_tally_f8_shift7_avx512 emulated_f8_shift7
#define fr_tally_f8_shift8_avx512 emulated_f8_shift8
FR_TALLY_FNS(avx512);
#include "numerics/tally_avx512.c"

static uint64_t seed = 5;

static uint64_t roll(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void compare(const char *what, fr_tally_fn ours, fr_tally_fn plain, size_t width, uint64_t keep, uint64_t set)
{
    static uint8_t room[FR_TALLY_BLOCK + 64];
    static const size_t sizes[] = {0, 1, 31, 32, 33, 63, 64, 65, 100, 1000, 2048};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct fr_tally_block a, b;
        uint8_t *p = room + roll() % 60;
        for (size_t i = 0; i < sizes[s]; i++) {
            const uint64_t code = roll() % 9 == 0 ? 0 : (roll() & keep) | set;
            memcpy(p + i * width, &code, width);
        }
        ours(p, sizes[s], &a);
        plain(p, sizes[s], &b);
        t_checks_++;
        const bool close = b.squares < 1e-40 || fabs(a.squares - b.squares) <= b.squares * 0x1p-14; /* floats end before that: not plain */
        if (a.top != b.top || a.zero != b.zero || a.tiny != b.tiny || !close) {
            T_FAIL("%s, %zu: top %lx/%lx zero %u/%u tiny %u/%u squares %g/%g", what, sizes[s], a.top, b.top, a.zero, b.zero, a.tiny, b.tiny,
                   a.squares, b.squares);
        }
    }
}

T_TEST(avx512_equals_portable)
{
    compare("f16", emulated_f16, fr_tally_f16_portable, 2, 0xbfff, 0);
    compare("f16 subnormals", emulated_f16, fr_tally_f16_portable, 2, 0x87ff, 0);
    compare("bf16", emulated_bf16, fr_tally_bf16_portable, 2, 0x87ff, 0x3c00);
    compare("bf16 subnormals", emulated_bf16, fr_tally_bf16_portable, 2, 0x80ff, 0);
    compare("f32", emulated_f32, fr_tally_f32_portable, 4, 0x87ffffff, 0x3c000000);
    compare("f32 wide", emulated_f32_wide, fr_tally_f32_wide_portable, 4, 0x80ffffff, 0);
    compare("f64", emulated_f64, fr_tally_f64_portable, 8, 0x807fffffffffffff, 0x3f80000000000000);
    compare("f8 e4m3", emulated_f8_shift7, fr_tally_f8_shift7_portable, 1, 0xff, 0);
    compare("f8 e5m2", emulated_f8_shift8, fr_tally_f8_shift8_portable, 1, 0xbf, 0);
    compare("f8 e5m2 subnormals", emulated_f8_shift8, fr_tally_f8_shift8_portable, 1, 0x83, 0);
}

int main(void)
{
    return t_run();
}
