/* SPDX-License-Identifier: Apache-2.0 */
/* shape_avx2: a line is compared 32 bytes at a time, and numbers are read four at a time: each is
 * moved to the end of sixteen bytes without its point, which are then added up in pairs. */
#include "series/shape_wide.h"

#include <immintrin.h>

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

/* As in shape.c: the top bit of what is wrong. */
static inline __m256i wrong(const struct fr_shape *s, const char *p, size_t i)
{
    const __m256i x = _mm256_xor_si256(load(p + i), load(s->like + i));
    return _mm256_or_si256(x, _mm256_add_epi8(x, load(s->room + i)));
}

bool fr_shape_fits_avx2(const struct fr_shape *s, fr_sv line)
{
    if (line.n != s->n || line.n < 64) {
        return line.n == s->n && fr_shape_fits_portable(s, line);
    }
    const size_t last = line.n - 32;
    __m256i x = _mm256_or_si256(wrong(s, line.p, 0), wrong(s, line.p, last));
    if (_mm256_movemask_epi8(x) != 0) { /* prefixes differ early */
        return false;
    }
    for (size_t i = 32; i < last; i += 32) {
        x = _mm256_or_si256(x, wrong(s, line.p, i));
    }
    return _mm256_movemask_epi8(x) == 0;
}

static inline __m256i two(const char *p, const char *q)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)),
                                   _mm_loadu_si128((const void *)q), 1);
}

/* The digits of two numbers, as four numbers of four digits each. */
static inline __m256i by_four(__m256i bytes, __m256i pick)
{
    const __m256i ten = _mm256_set1_epi16(0x010a), hundred = _mm256_set1_epi32(0x00010064);
    const __m256i digits =
        _mm256_and_si256(_mm256_shuffle_epi8(bytes, pick), _mm256_set1_epi8(0x0f));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(digits, ten), hundred);
}

static inline void read_four(const struct fr_shape_four *four, const char *p, double *ret)
{
    const __m256i first = by_four(two(p + four->at[0], p + four->at[1]), load(four->pick[0]));
    const __m256i second = by_four(two(p + four->at[2], p + four->at[3]), load(four->pick[2]));
    const __m256i by_eight = _mm256_madd_epi16(_mm256_packus_epi32(first, second),
                                               _mm256_set1_epi32(0x00012710));
    /* the upper eight digits of all four, then the lower ones */
    const __m256i sorted = _mm256_permutevar8x32_epi32(by_eight,
                                                       _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7));
    const __m256d high = _mm256_cvtepi32_pd(_mm256_castsi256_si128(sorted));
    const __m256d low = _mm256_cvtepi32_pd(_mm256_extracti128_si256(sorted, 1));
    __m256d v = _mm256_add_pd(_mm256_mul_pd(high, _mm256_set1_pd(1e8)), low); /* exact */
    v = _mm256_div_pd(v, _mm256_loadu_pd(four->by));
    v = _mm256_mul_pd(v, _mm256_loadu_pd(four->times));
    _mm256_storeu_pd(ret, _mm256_mul_pd(v, _mm256_loadu_pd(four->last)));
}

static inline void look_at_exponents(struct fr_shape *s, const char *p)
{
    for (unsigned bits = s->with_exponent; bits != 0; bits &= bits - 1) {
        const unsigned i = (unsigned)__builtin_ctz(bits);
        uint16_t digits;
        memcpy(&digits, p + s->slots[i].exponent, sizeof digits);
        if (s->slots[i].seen != digits) {
            s->slots[i].seen = digits;
            fr_shape_exponent(s, i, p + s->slots[i].exponent);
        }
    }
}

const struct fr_point *fr_shape_point_avx2(struct fr_shape *s, fr_sv line)
{
    double numbers[FR_SHAPE_SLOTS];
    const unsigned n = s->n_slots;
    unsigned i = 0;
    if (!s->is_point) {
        return NULL;
    }
    look_at_exponents(s, line.p);
    for (unsigned k = 0; k < n; k += 4) {
        read_four(&s->fours[k / 4], line.p, numbers + k);
    }
    if (s->by_itself != 0) {
        fr_shape_alone(s, line, numbers);
    }
    for (; i < s->n_whole; i++) {
        const int64_t whole = (int64_t)numbers[i];
        memcpy((char *)&s->point + 8u * s->to[i], &whole, sizeof whole);
    }
    for (; i < n; i++) {
        memcpy((char *)&s->point + 8u * s->to[i], &numbers[i], sizeof numbers[i]);
    }
    return &s->point;
}
