/* SPDX-License-Identifier: Apache-2.0 */
/* tally_avx2: 32 bytes a turn; float16 by F16C. Squares of 16-bit and smaller types are summed in
 * float, 8 lanes times 4 sums, so that at most 513 terms meet in one; wider types in double.
 * Magnitudes have a clear sign bit, so signed comparisons are right. */
#include "numerics/tally.h"

#include <immintrin.h>

/* Bytes that are asked for ahead: the work between two loads is enough for the CPU to lose sight of
 * the next ones. Without it, float16 ran at 0.72 of reading, with it at 0.86 (Zen 3). Asking past
 * the end of a mapping is allowed and does nothing. */
#define AHEAD 2048

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline double sum_ps(__m256 a, __m256 b, __m256 c, __m256 d)
{
    float v[8];
    double sum = 0;
    _mm256_storeu_ps(v, _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
    for (int i = 0; i < 8; i++) {
        sum += (double)v[i];
    }
    return sum;
}

static inline double sum_pd(__m256d a, __m256d b, __m256d c, __m256d d)
{
    double v[4];
    _mm256_storeu_pd(v, _mm256_add_pd(_mm256_add_pd(a, b), _mm256_add_pd(c, d)));
    return (v[0] + v[1]) + (v[2] + v[3]);
}

/* Counters hold minus the count. */
static inline uint32_t count16(__m256i c)
{
    int32_t v[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)v, _mm256_madd_epi16(c, _mm256_set1_epi16(-1)));
    for (int i = 0; i < 8; i++) {
        sum += v[i];
    }
    return (uint32_t)sum;
}

static inline uint32_t count32(__m256i c)
{
    int32_t v[8], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)v, c);
    for (int i = 0; i < 8; i++) {
        sum -= v[i];
    }
    return (uint32_t)sum;
}

static inline uint64_t top16(__m256i t)
{
    uint16_t v[16], top = 0;
    _mm256_storeu_si256((__m256i *)(void *)v, t);
    for (int i = 0; i < 16; i++) {
        top = v[i] > top ? v[i] : top;
    }
    return top;
}

void fr_tally_f16_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m256i mask = _mm256_set1_epi16(0x7fff), normal = _mm256_set1_epi16(0x400),
                  none = _mm256_setzero_si256();
    __m256i top = none, zero = none, tiny = none;
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    const char *at = p;
    size_t left = n;
    for (; left >= 32; left -= 32, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m256i v = _mm256_and_si256(load(at), mask),
                      w = _mm256_and_si256(load(at + 32), mask);
        const __m256 v0 = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)at));
        const __m256 v1 =
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at + 16)));
        const __m256 w0 =
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at + 32)));
        const __m256 w1 =
            _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(at + 48)));
        top = _mm256_max_epi16(top, _mm256_max_epi16(v, w));
        zero = _mm256_add_epi16(
            zero, _mm256_add_epi16(_mm256_cmpeq_epi16(v, none), _mm256_cmpeq_epi16(w, none)));
        tiny = _mm256_add_epi16(
            tiny, _mm256_add_epi16(_mm256_cmpgt_epi16(normal, v), _mm256_cmpgt_epi16(normal, w)));
        a = _mm256_fmadd_ps(v0, v0, a);
        b = _mm256_fmadd_ps(v1, v1, b);
        c = _mm256_fmadd_ps(w0, w0, c);
        d = _mm256_fmadd_ps(w1, w1, d);
    }
    *ret = (struct fr_tally_block){top16(top), count16(zero), count16(tiny), sum_ps(a, b, c, d)};
    fr_tally_rest_f16(at, left, ret);
}

void fr_tally_bf16_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m256i mask = _mm256_set1_epi16(0x7fff), normal = _mm256_set1_epi16(0x80),
                  none = _mm256_setzero_si256();
    const __m256i high = _mm256_set1_epi32((int)0xffff0000u);
    __m256i top = none, zero = none, tiny = none;
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    const char *at = p;
    size_t left = n;
    for (; left >= 32; left -= 32, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m256i x = load(at), y = load(at + 32);
        const __m256i v = _mm256_and_si256(x, mask), w = _mm256_and_si256(y, mask);
        const __m256 v0 = _mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                     v1 = _mm256_castsi256_ps(_mm256_and_si256(x, high));
        const __m256 w0 = _mm256_castsi256_ps(_mm256_slli_epi32(y, 16)),
                     w1 = _mm256_castsi256_ps(_mm256_and_si256(y, high));
        top = _mm256_max_epi16(top, _mm256_max_epi16(v, w));
        zero = _mm256_add_epi16(
            zero, _mm256_add_epi16(_mm256_cmpeq_epi16(v, none), _mm256_cmpeq_epi16(w, none)));
        tiny = _mm256_add_epi16(
            tiny, _mm256_add_epi16(_mm256_cmpgt_epi16(normal, v), _mm256_cmpgt_epi16(normal, w)));
        a = _mm256_fmadd_ps(v0, v0, a);
        b = _mm256_fmadd_ps(v1, v1, b);
        c = _mm256_fmadd_ps(w0, w0, c);
        d = _mm256_fmadd_ps(w1, w1, d);
    }
    *ret = (struct fr_tally_block){top16(top), count16(zero), count16(tiny), sum_ps(a, b, c, d)};
    fr_tally_rest_bf16(at, left, ret);
}

static inline uint64_t top32(__m256i t)
{
    uint32_t v[8], top = 0;
    _mm256_storeu_si256((__m256i *)(void *)v, t);
    for (int i = 0; i < 8; i++) {
        top = v[i] > top ? v[i] : top;
    }
    return top;
}

void fr_tally_f32_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff), normal = _mm256_set1_epi32(0x800000),
                  none = _mm256_setzero_si256();
    __m256i top = none, zero = none, tiny = none;
    __m256 a = _mm256_setzero_ps(), b = a;
    const char *at = p;
    size_t left = n;
    for (; left >= 16; left -= 16, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m256i v = _mm256_and_si256(load(at), mask),
                      w = _mm256_and_si256(load(at + 32), mask);
        const __m256 x = _mm256_castsi256_ps(v), y = _mm256_castsi256_ps(w);
        top = _mm256_max_epi32(top, _mm256_max_epi32(v, w));
        zero = _mm256_add_epi32(
            zero, _mm256_add_epi32(_mm256_cmpeq_epi32(v, none), _mm256_cmpeq_epi32(w, none)));
        tiny = _mm256_add_epi32(
            tiny, _mm256_add_epi32(_mm256_cmpgt_epi32(normal, v), _mm256_cmpgt_epi32(normal, w)));
        a = _mm256_fmadd_ps(x, x, a);
        b = _mm256_fmadd_ps(y, y, b);
    }
    *ret = (struct fr_tally_block){top32(top), count32(zero), count32(tiny),
                                   sum_ps(a, b, _mm256_setzero_ps(), _mm256_setzero_ps())};
    fr_tally_rest_f32(at, left, ret);
}

void fr_tally_f32_wide_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff), normal = _mm256_set1_epi32(0x800000),
                  none = _mm256_setzero_si256();
    __m256i top = none, zero = none, tiny = none;
    __m256d a = _mm256_setzero_pd(), b = a, c = a, d = a;
    const char *at = p;
    size_t left = n;
    for (; left >= 16; left -= 16, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m256i v = _mm256_and_si256(load(at), mask),
                      w = _mm256_and_si256(load(at + 32), mask);
        const __m256d v0 = _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)at));
        const __m256d v1 = _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at + 16)));
        const __m256d w0 = _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at + 32)));
        const __m256d w1 = _mm256_cvtps_pd(_mm_loadu_ps((const float *)(const void *)(at + 48)));
        top = _mm256_max_epi32(top, _mm256_max_epi32(v, w));
        zero = _mm256_add_epi32(
            zero, _mm256_add_epi32(_mm256_cmpeq_epi32(v, none), _mm256_cmpeq_epi32(w, none)));
        tiny = _mm256_add_epi32(
            tiny, _mm256_add_epi32(_mm256_cmpgt_epi32(normal, v), _mm256_cmpgt_epi32(normal, w)));
        a = _mm256_fmadd_pd(v0, v0, a);
        b = _mm256_fmadd_pd(v1, v1, b);
        c = _mm256_fmadd_pd(w0, w0, c);
        d = _mm256_fmadd_pd(w1, w1, d);
    }
    *ret = (struct fr_tally_block){top32(top), count32(zero), count32(tiny), sum_pd(a, b, c, d)};
    fr_tally_rest_f32(at, left, ret);
}

/* Comparisons yield 64-bit masks; their low halves are counted by 32-bit lanes, of which every
 * other one is looked at. */
static inline uint32_t count64(__m256i c)
{
    int64_t v[4];
    _mm256_storeu_si256((__m256i *)(void *)v, c);
    return (uint32_t) - (v[0] + v[1] + v[2] + v[3]);
}

void fr_tally_f64_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m256i mask = _mm256_set1_epi64x(0x7fffffffffffffffll),
                  normal = _mm256_set1_epi64x(0x10000000000000ll);
    const __m256i none = _mm256_setzero_si256();
    __m256i top = none, zero = none, tiny = none;
    __m256d a = _mm256_setzero_pd(), b = a;
    const char *at = p;
    size_t left = n;
    for (; left >= 8; left -= 8, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m256i v = _mm256_and_si256(load(at), mask),
                      w = _mm256_and_si256(load(at + 32), mask);
        const __m256d x = _mm256_castsi256_pd(v), y = _mm256_castsi256_pd(w);
        top = _mm256_blendv_epi8(top, v, _mm256_cmpgt_epi64(v, top));
        top = _mm256_blendv_epi8(top, w, _mm256_cmpgt_epi64(w, top));
        zero = _mm256_add_epi64(
            zero, _mm256_add_epi64(_mm256_cmpeq_epi64(v, none), _mm256_cmpeq_epi64(w, none)));
        tiny = _mm256_add_epi64(
            tiny, _mm256_add_epi64(_mm256_cmpgt_epi64(normal, v), _mm256_cmpgt_epi64(normal, w)));
        a = _mm256_fmadd_pd(x, x, a);
        b = _mm256_fmadd_pd(y, y, b);
    }
    uint64_t tops[4], highest = 0;
    _mm256_storeu_si256((__m256i *)(void *)tops, top);
    for (int i = 0; i < 4; i++) {
        highest = tops[i] > highest ? tops[i] : highest;
    }
    *ret = (struct fr_tally_block){highest, count64(zero), count64(tiny),
                                   sum_pd(a, b, _mm256_setzero_pd(), _mm256_setzero_pd())};
    fr_tally_rest_f64(at, left, ret);
}

/* ---- 8 bits ---- */

/* The bytes of an 8-bit counter of minus counts, added up. */
static inline __m256i widen(__m256i c)
{
    const __m256i none = _mm256_setzero_si256();
    return _mm256_sad_epu8(_mm256_sub_epi8(none, c), none);
}

#define F8_TURNS 255 /* until a counter of 8 bits has to be emptied */

/* The square of an fp8 number fits a bfloat16: (8 + f)^2 takes 8 bits at most. With E = its
 * exponent made even, the code's high byte is the number's exponent plus a constant, and its low
 * byte comes from a table of the fraction; subnormals have a table of their own, which also
 * corrects the high byte. That is half the work of a conversion by F16C. Squares come out times
 * 2^17 (4 exponent bits: against the float16 that the code would be) or 2. */
struct f8_tables {
    uint8_t low[16], high[16];
};
static const struct f8_tables shift7 = {
    /* (8 + f)^2 / 64 = 1, 1.265625, ...; subnormals f^2 */
    {0x00, 0x22, 0x48, 0x72, 0x90, 0xa9, 0xc4, 0xe1, 0x00, 0x00, 0x00, 0x90, 0x00, 0x48, 0x90,
     0xc4},
    {57, 57, 57, 57, 57, 57, 57, 57, 0, 55, 56, 56, 57, 57, 57, 57},
};
static const struct f8_tables shift8 = {
    /* (4 + f)^2 / 16 */
    {0x00, 0x48, 0x90, 0xc4, 0x00, 0x00, 0x00, 0x90, 0, 0, 0, 0, 0, 0, 0, 0},
    {49, 49, 49, 49, 0, 48, 49, 49, 0, 0, 0, 0, 0, 0, 0, 0},
};

static inline __m256 odd(__m256i brains)
{
    return _mm256_castsi256_ps(_mm256_blend_epi16(_mm256_setzero_si256(), brains, 0xaa));
}

static inline __m256 even(__m256i brains)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(brains, 16));
}

static inline __m256i twice(const uint8_t *table)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table));
}

/* fraction: the bits of f; down: how many they are. What is left of a code without its fraction
 * tells a subnormal (nothing is) and shifts without a mask. */
static inline void f8(const void *p, size_t n, int fraction, int down,
                      const struct f8_tables *tables, struct fr_tally_block *ret)
{
    const __m256i mask = _mm256_set1_epi8(0x7f), beyond = _mm256_set1_epi8((char)(fraction + 1)),
                  f = _mm256_set1_epi8((char)fraction), none = _mm256_setzero_si256();
    const __m256i lows = twice(tables->low), highs = twice(tables->high);
    __m256i top = none, zeros = none, tinies = none;
    __m256 a = _mm256_setzero_ps(), b = a; /* two sums, not four: registers are short */
    const char *at = p;
    size_t left = n;
    while (left >= 32) {
        __m256i zero = none, tiny = none;
        const size_t turns = left / 32 < F8_TURNS ? left / 32 : F8_TURNS;
        const char *const end = at + 32 * turns;
        left -= 32 * turns;
        for (; at < end; at += 32) {
            _mm_prefetch(at + AHEAD, _MM_HINT_T0);
            const __m256i v = _mm256_and_si256(load(at), mask), bits = _mm256_and_si256(v, f),
                          rest = _mm256_xor_si256(v, bits), small = _mm256_cmpeq_epi8(rest, none);
            const __m256i which = _mm256_or_si256(bits, _mm256_and_si256(small, beyond));
            const __m256i low = _mm256_shuffle_epi8(lows, which);
            const __m256i high = _mm256_add_epi8(_mm256_shuffle_epi8(highs, which),
                                                 _mm256_srli_epi16(rest, down));
            const __m256i x = _mm256_unpacklo_epi8(low, high), y = _mm256_unpackhi_epi8(low, high);
            top = _mm256_max_epi8(top, v);
            zero = _mm256_add_epi8(zero, _mm256_cmpeq_epi8(v, none));
            tiny = _mm256_add_epi8(tiny, small);
            a = _mm256_add_ps(a, _mm256_add_ps(even(x), even(y)));
            b = _mm256_add_ps(b, _mm256_add_ps(odd(x), odd(y)));
        }
        zeros = _mm256_add_epi64(zeros, widen(zero));
        tinies = _mm256_add_epi64(tinies, widen(tiny));
    }
    uint8_t tops[32], highest = 0;
    _mm256_storeu_si256((__m256i *)(void *)tops, top);
    for (int i = 0; i < 32; i++) {
        highest = tops[i] > highest ? tops[i] : highest;
    }
    /* widen() yields plus counts, count64() expects minus ones */
    *ret = (struct fr_tally_block){highest, 0u - count64(zeros), 0u - count64(tinies), 0};
    ret->squares =
        sum_ps(a, b, _mm256_setzero_ps(), _mm256_setzero_ps()) * (down == 3 ? 0x1p-17 : 0.5);
    fr_tally_rest_f8(at, left, down == 3 ? 7 : 8, ret);
}

void fr_tally_f8_shift7_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    f8(p, n, 7, 3, &shift7, ret);
}

void fr_tally_f8_shift8_avx2(const void *p, size_t n, struct fr_tally_block *ret)
{
    f8(p, n, 3, 2, &shift8, ret);
}
