/* SPDX-License-Identifier: Apache-2.0 */
/* The AVX-512 kernels' own file, over plain C stand-ins for the intrinsics it uses, because most
 * machines cannot run it: so its logic runs everywhere, and only the meaning of those intrinsics is
 * taken from Intel's guide. Where the CPU has AVX-512, test_kernels_same runs the real ones. */
#ifdef __x86_64__
#define _IMMINTRIN_H_INCLUDED /* gcc: keeps the real header out of kernel_avx512.c */
#define __IMMINTRIN_H         /* clang */
#endif
#include "unit/kernels_same.h"

/* Named apart from the compiler's own types. */
typedef struct { float f[16]; } stand_512;
typedef struct { uint32_t u[16]; } stand_512i;
typedef struct { uint16_t u[16]; } stand_256i;
typedef struct { uint8_t u[16]; } stand_128i;

#define __m512    stand_512
#define __m512i   stand_512i
#define __m256i   stand_256i
#define __m128i   stand_128i
#define __mmask16 uint16_t
#define _MM_FROUND_TO_NEAREST_INT 0
#define _CMP_UNORD_Q              3

#define EACH(type, field, expression)      \
    type r;                                \
    for (unsigned l = 0; l < 16; l++) {    \
        r.field[l] = (expression);         \
    }                                      \
    return r

#define FLOATS(name, expression) \
    static stand_512 name(stand_512 a, stand_512 b) { EACH(stand_512, f, expression); }
#define WORDS(name, expression) \
    static stand_512i name(stand_512i a, stand_512i b) { EACH(stand_512i, u, expression); }
FLOATS(_mm512_add_ps, a.f[l] + b.f[l])
FLOATS(_mm512_sub_ps, a.f[l] - b.f[l])
FLOATS(_mm512_mul_ps, a.f[l] * b.f[l])
FLOATS(_mm512_max_ps, a.f[l] > b.f[l] ? a.f[l] : b.f[l])
WORDS(_mm512_add_epi32, a.u[l] + b.u[l])
WORDS(_mm512_and_si512, a.u[l] & b.u[l])
WORDS(_mm512_or_si512, a.u[l] | b.u[l])

static stand_512 _mm512_set1_ps(float f) { EACH(stand_512, f, f); }
static stand_512i _mm512_set1_epi32(int i) { EACH(stand_512i, u, (uint32_t)i); }
static stand_512i _mm512_slli_epi32(stand_512i a, unsigned n) { EACH(stand_512i, u, a.u[l] << n); }
static stand_512i _mm512_srli_epi32(stand_512i a, unsigned n) { EACH(stand_512i, u, a.u[l] >> n); }
static stand_512 _mm512_castsi512_ps(stand_512i a) { EACH(stand_512, f, fr_float_of(a.u[l])); }
static stand_512i _mm512_castps_si512(stand_512 a) { EACH(stand_512i, u, fr_bits_of(a.f[l])); }
static stand_512 _mm512_cvtph_ps(stand_256i a) { EACH(stand_512, f, fr_from_f16(a.u[l])); }
static stand_256i _mm512_cvtps_ph(stand_512 a, int rounding)
{
    (void)rounding;
    EACH(stand_256i, u, fr_to_f16(a.f[l]));
}
static stand_512i _mm512_cvtepu16_epi32(stand_256i a) { EACH(stand_512i, u, a.u[l]); }
static stand_512i _mm512_cvtepu8_epi32(stand_128i a) { EACH(stand_512i, u, a.u[l]); }
static stand_256i _mm512_cvtepi32_epi16(stand_512i a) { EACH(stand_256i, u, (uint16_t)a.u[l]); }

static uint16_t _mm512_cmp_ps_mask(stand_512 a, stand_512 b, int how)
{
    uint16_t mask = 0;
    T_OK(how == _CMP_UNORD_Q);
    for (unsigned l = 0; l < 16; l++) {
        mask = (uint16_t)(mask | (isnan(a.f[l]) || isnan(b.f[l])) << l);
    }
    return mask;
}

static uint16_t _mm512_test_epi32_mask(stand_512i a, stand_512i b)
{
    uint16_t mask = 0;
    for (unsigned l = 0; l < 16; l++) {
        mask = (uint16_t)(mask | ((a.u[l] & b.u[l]) != 0) << l);
    }
    return mask;
}

/* The second where the mask has a bit. */
static stand_512i _mm512_mask_blend_epi32(uint16_t mask, stand_512i a, stand_512i b)
{
    EACH(stand_512i, u, mask >> l & 1 ? b.u[l] : a.u[l]);
}
static stand_512 _mm512_mask_blend_ps(uint16_t mask, stand_512 a, stand_512 b)
{
    EACH(stand_512, f, mask >> l & 1 ? b.f[l] : a.f[l]);
}

#define LOAD(type, name)                 \
    static type name(const void *p)      \
    {                                    \
        type r;                          \
        memcpy(&r, p, sizeof r);         \
        return r;                        \
    }
LOAD(stand_512, _mm512_loadu_ps)
LOAD(stand_256i, _mm256_loadu_si256)
LOAD(stand_128i, _mm_loadu_si128)

static void _mm512_storeu_ps(void *p, stand_512 a)
{
    memcpy(p, &a, sizeof a);
}

static void _mm256_storeu_si256(stand_256i *p, stand_256i a)
{
    memcpy(p, &a, sizeof a);
}

#undef EACH
#define fr_kernels_avx512 emulated_avx512
extern const struct fr_kernels emulated_avx512;
#include "numerics/kernel_avx512.c"
#undef fr_kernels_avx512

T_TEST(the_avx512_kernels_give_the_same_bits)
{
    same_sweep(&emulated_avx512, "avx512, emulated", 400);
}

T_TEST(so_do_rows_of_every_short_length)
{
    static struct oracle_row x, w, y, z;
    struct oracle_rng g = {7};
    for (int fill = 0; fill < FILLS; fill++) {
        for (size_t n = 1; n <= 300; n += n < 70 ? 1 : 23) {
            oracle_fill(&x, fill, fill % 3 == 0 ? FR_F16 : fill % 3 == 1 ? FR_BF16 : FR_F32, n, n & 1, &g);
            oracle_fill(&w, FILL_NORMAL, FR_F32, n, 0, &g);
            oracle_blank(&y, FR_F16, n, n & 1);
            oracle_blank(&z, FR_F16, n, n & 1);
            fr_kernel_force(&fr_kernels_portable);
            fr_kernel_layer_norm(1, n, oracle_in(&x), oracle_in(&w), oracle_in(&w), 1e-6f, oracle_out(&y));
            fr_kernel_force(&emulated_avx512);
            fr_kernel_layer_norm(1, n, oracle_in(&x), oracle_in(&w), oracle_in(&w), 1e-6f, oracle_out(&z));
            T_OK(memcmp(y.room, z.room, sizeof y.room) == 0);
        }
    }
    fr_kernel_force(NULL);
}

int main(void)
{
    return t_run();
}
