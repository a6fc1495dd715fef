/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_avx512: sixteen floats at once; AVX-512F alone. tests/unit/test_kernels_avx512.c runs this
 * file over plain C stand-ins for the intrinsics it uses. */
#include "numerics/kernel.h"

#include <immintrin.h>
#include <math.h>

#define LANES 16
#define V     __m512

#define v_set(f)    _mm512_set1_ps(f)
#define v_add(a, b) _mm512_add_ps(a, b)
#define v_sub(a, b) _mm512_sub_ps(a, b)
#define v_mul(a, b) _mm512_mul_ps(a, b)
#define v_max(a, b) _mm512_max_ps(a, b)

static inline __m256i load_codes(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline void store_codes(uint8_t *p, __m256i codes)
{
    _mm256_storeu_si256((__m256i *)(void *)p, codes);
}

static inline V v_load_f32(const uint8_t *p)
{
    return _mm512_loadu_ps(p);
}

static inline V v_load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(load_codes(p));
}

static inline V v_load_bf16(const uint8_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_codes(p)), 16));
}

static inline void v_store_f32(uint8_t *p, V v)
{
    _mm512_storeu_ps(p, v);
}

static inline void v_store_f16(uint8_t *p, V v)
{
    store_codes(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

static inline void v_store_bf16(uint8_t *p, V v)
{
    const __m512i bits = _mm512_castps_si512(v), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i code = _mm512_srli_epi32(_mm512_mask_blend_epi32(is_nan, up, quiet), 16);
    store_codes(p, _mm512_cvtepi32_epi16(code));
}

static inline V v_pow2(V z)
{
    const __m512i n = _mm512_add_epi32(_mm512_castps_si512(z), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(n, 23));
}

static inline V v_keep(V v, const uint8_t *p)
{
    const __m512i bytes =
        _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm512_mask_blend_ps(_mm512_test_epi32_mask(bytes, bytes), v_set(-INFINITY), v);
}

/* Lanes 16 apart first, then 8 apart. */
static inline void v_fold(const V a[FR_GROUP / LANES], float f[8])
{
    float all[LANES];
    _mm512_storeu_ps(all, v_add(a[0], a[1]));
    for (unsigned l = 0; l < 8; l++) {
        f[l] = all[l] + all[l + 8];
    }
}

#define KERNELS fr_kernels_avx512
#include "numerics/kernel_body.h"
