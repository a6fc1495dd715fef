/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_avx2: eight floats at once, halves converted by F16C. FMA would save one instruction in
 * three of a sum and cost the equality with the reference; memory is the limit anyway. */
#include "numerics/kernel.h"

#include <immintrin.h>
#include <math.h>

#define LANES 8
#define V     __m256

#define v_set(f)    _mm256_set1_ps(f)
#define v_add(a, b) _mm256_add_ps(a, b)
#define v_sub(a, b) _mm256_sub_ps(a, b)
#define v_mul(a, b) _mm256_mul_ps(a, b)
#define v_max(a, b) _mm256_max_ps(a, b)

static inline __m128i load_codes(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline V v_load_f32(const uint8_t *p)
{
    return _mm256_loadu_ps((const float *)(const void *)p);
}

static inline V v_load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(load_codes(p));
}

static inline V v_load_bf16(const uint8_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_codes(p)), 16));
}

static inline void v_store_f32(uint8_t *p, V v)
{
    _mm256_storeu_ps((float *)(void *)p, v);
}

static inline void v_store_f16(uint8_t *p, V v)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline void v_store_bf16(uint8_t *p, V v)
{
    const __m256i bits = _mm256_castps_si256(v), one = _mm256_set1_epi32(1);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), one);
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i code = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, is_nan), 16);
    const __m256i packed = _mm256_packus_epi32(code, code); /* halves: 0-3 0-3, 4-7 4-7 */
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
}

static inline V v_pow2(V z)
{
    const __m256i n = _mm256_add_epi32(_mm256_castps_si256(z), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(n, 23));
}

static inline V v_keep(V v, const uint8_t *p)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    const __m256i gone = _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(bytes), _mm256_setzero_si256());
    return _mm256_blendv_ps(v, v_set(-INFINITY), _mm256_castsi256_ps(gone));
}

static inline void v_fold(const V a[FR_GROUP / LANES], float f[8])
{
    _mm256_storeu_ps(f, v_add(v_add(a[0], a[2]), v_add(a[1], a[3])));
}

#define KERNELS fr_kernels_avx2
#include "numerics/kernel_body.h"
