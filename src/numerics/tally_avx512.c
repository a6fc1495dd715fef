/* SPDX-License-Identifier: Apache-2.0 */
/* tally_avx512: as tally_avx2, 64 bytes a turn; comparisons yield masks, whose bits are counted. */
#include "numerics/tally.h"

#include <immintrin.h>

#define AHEAD 2048 /* as in tally_avx2.c */

#define count64(mask) ((uint32_t)__builtin_popcountll(mask))
#define count32(mask) ((uint32_t)__builtin_popcount(mask))

static inline double sum_ps(__m512 a, __m512 b)
{
    float v[16];
    double sum = 0;
    _mm512_storeu_ps(v, _mm512_add_ps(a, b));
    for (int i = 0; i < 16; i++) {
        sum += (double)v[i];
    }
    return sum;
}

static inline double sum_pd(__m512d a, __m512d b)
{
    double v[8], sum = 0;
    _mm512_storeu_pd(v, _mm512_add_pd(a, b));
    for (int i = 0; i < 8; i++) {
        sum += v[i];
    }
    return sum;
}

static inline uint64_t top16(__m512i t)
{
    uint16_t v[32], top = 0;
    _mm512_storeu_si512(v, t);
    for (int i = 0; i < 32; i++) {
        top = v[i] > top ? v[i] : top;
    }
    return top;
}

void fr_tally_f16_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m512i mask = _mm512_set1_epi16(0x7fff), normal = _mm512_set1_epi16(0x400);
    __m512i top = _mm512_setzero_si512();
    __m512 a = _mm512_setzero_ps(), b = a;
    uint32_t zero = 0, tiny = 0;
    const char *at = p;
    size_t left = n;
    for (; left >= 32; left -= 32, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), mask);
        const __m512 x = _mm512_cvtph_ps(_mm512_castsi512_si256(v)),
                     y = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(v, 1));
        top = _mm512_max_epu16(top, v);
        zero += count32(_mm512_testn_epi16_mask(v, v));
        tiny += count32(_mm512_cmplt_epu16_mask(v, normal));
        a = _mm512_fmadd_ps(x, x, a);
        b = _mm512_fmadd_ps(y, y, b);
    }
    *ret = (struct fr_tally_block){top16(top), zero, tiny, sum_ps(a, b)};
    fr_tally_rest_f16(at, left, ret);
}

void fr_tally_bf16_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m512i mask = _mm512_set1_epi16(0x7fff), normal = _mm512_set1_epi16(0x80);
    const __m512i high = _mm512_set1_epi32((int)0xffff0000u);
    __m512i top = _mm512_setzero_si512();
    __m512 a = _mm512_setzero_ps(), b = a;
    uint32_t zero = 0, tiny = 0;
    const char *at = p;
    size_t left = n;
    for (; left >= 32; left -= 32, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), mask);
        const __m512 x = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)),
                     y = _mm512_castsi512_ps(_mm512_and_si512(v, high));
        top = _mm512_max_epu16(top, v);
        zero += count32(_mm512_testn_epi16_mask(v, v));
        tiny += count32(_mm512_cmplt_epu16_mask(v, normal));
        a = _mm512_fmadd_ps(x, x, a);
        b = _mm512_fmadd_ps(y, y, b);
    }
    *ret = (struct fr_tally_block){top16(top), zero, tiny, sum_ps(a, b)};
    fr_tally_rest_bf16(at, left, ret);
}

static inline uint64_t top32(__m512i t)
{
    uint32_t v[16], top = 0;
    _mm512_storeu_si512(v, t);
    for (int i = 0; i < 16; i++) {
        top = v[i] > top ? v[i] : top;
    }
    return top;
}

void fr_tally_f32_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff), normal = _mm512_set1_epi32(0x800000);
    __m512i top = _mm512_setzero_si512();
    __m512 a = _mm512_setzero_ps();
    uint32_t zero = 0, tiny = 0;
    const char *at = p;
    size_t left = n;
    for (; left >= 16; left -= 16, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), mask);
        const __m512 x = _mm512_castsi512_ps(v);
        top = _mm512_max_epu32(top, v);
        zero += count32(_mm512_testn_epi32_mask(v, v));
        tiny += count32(_mm512_cmplt_epu32_mask(v, normal));
        a = _mm512_fmadd_ps(x, x, a);
    }
    *ret = (struct fr_tally_block){top32(top), zero, tiny, sum_ps(a, _mm512_setzero_ps())};
    fr_tally_rest_f32(at, left, ret);
}

void fr_tally_f32_wide_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m512i mask = _mm512_set1_epi32(0x7fffffff), normal = _mm512_set1_epi32(0x800000);
    __m512i top = _mm512_setzero_si512();
    __m512d a = _mm512_setzero_pd(), b = a;
    uint32_t zero = 0, tiny = 0;
    const char *at = p;
    size_t left = n;
    for (; left >= 16; left -= 16, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), mask);
        const __m512d x = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_castsi512_si256(v)));
        const __m512d y = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm512_extracti64x4_epi64(v, 1)));
        top = _mm512_max_epu32(top, v);
        zero += count32(_mm512_testn_epi32_mask(v, v));
        tiny += count32(_mm512_cmplt_epu32_mask(v, normal));
        a = _mm512_fmadd_pd(x, x, a);
        b = _mm512_fmadd_pd(y, y, b);
    }
    *ret = (struct fr_tally_block){top32(top), zero, tiny, sum_pd(a, b)};
    fr_tally_rest_f32(at, left, ret);
}

void fr_tally_f64_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    const __m512i mask = _mm512_set1_epi64(0x7fffffffffffffffll),
                  normal = _mm512_set1_epi64(0x10000000000000ll);
    __m512i top = _mm512_setzero_si512();
    __m512d a = _mm512_setzero_pd();
    uint32_t zero = 0, tiny = 0;
    uint64_t tops[8], highest = 0;
    const char *at = p;
    size_t left = n;
    for (; left >= 8; left -= 8, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), mask);
        const __m512d x = _mm512_castsi512_pd(v);
        top = _mm512_max_epu64(top, v);
        zero += count32(_mm512_testn_epi64_mask(v, v));
        tiny += count32(_mm512_cmplt_epu64_mask(v, normal));
        a = _mm512_fmadd_pd(x, x, a);
    }
    _mm512_storeu_si512(tops, top);
    for (int i = 0; i < 8; i++) {
        highest = tops[i] > highest ? tops[i] : highest;
    }
    *ret = (struct fr_tally_block){highest, zero, tiny, sum_pd(a, _mm512_setzero_pd())};
    fr_tally_rest_f64(at, left, ret);
}

/* ---- 8 bits ---- */

/* 32 halves' magnitudes: their squares, added to two sums. */
static inline void add_squares(__m512i halves, __m512 *a, __m512 *b)
{
    const __m512 x = _mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                 y = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
    *a = _mm512_fmadd_ps(x, x, *a);
    *b = _mm512_fmadd_ps(y, y, *b);
}

static inline void f8(const void *p, size_t n, unsigned down, int least, unsigned shift,
                      struct fr_tally_block *ret)
{
    const __m512i mask = _mm512_set1_epi8(0x7f), normal = _mm512_set1_epi8((char)least),
                  none = _mm512_setzero_si512();
    __m512i top = none;
    __m512 a = _mm512_setzero_ps(), b = a;
    uint32_t zero = 0, tiny = 0;
    uint8_t tops[64], highest = 0;
    const char *at = p;
    size_t left = n;
    for (; left >= 64; left -= 64, at += 64) {
        _mm_prefetch(at + AHEAD, _MM_HINT_T0);
        const __m512i v = _mm512_and_si512(_mm512_loadu_si512(at), mask);
        top = _mm512_max_epu8(top, v);
        zero += count64(_mm512_testn_epi8_mask(v, v));
        tiny += count64(_mm512_cmplt_epu8_mask(v, normal));
        add_squares(_mm512_srli_epi16(_mm512_unpacklo_epi8(none, v), down), &a, &b);
        add_squares(_mm512_srli_epi16(_mm512_unpackhi_epi8(none, v), down), &a, &b);
    }
    _mm512_storeu_si512(tops, top);
    for (int i = 0; i < 64; i++) {
        highest = tops[i] > highest ? tops[i] : highest;
    }
    *ret = (struct fr_tally_block){highest, zero, tiny, sum_ps(a, b)};
    fr_tally_rest_f8(at, left, shift, ret);
}

void fr_tally_f8_shift7_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    f8(p, n, 1, 8, 7, ret);
}

void fr_tally_f8_shift8_avx512(const void *p, size_t n, struct fr_tally_block *ret)
{
    f8(p, n, 0, 4, 8, ret);
}
