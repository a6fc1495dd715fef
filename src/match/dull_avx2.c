/* SPDX-License-Identifier: Apache-2.0 */
/* dull_avx2: a line's tag is made of its length and of where its first, second and last 32 bytes
 * have digits and letters from a to f, free or not: lines of one shape agree on that. */
#include "match/dull.h"

#include <immintrin.h>

enum { STEP = 64, COUNT_MAX = 2 * FR_DULL_BYTES, ROOM = COUNT_MAX + STEP };

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Of each byte: 1 a digit, 2 a letter from a to f, else 0. */
static inline __m256i kinds(__m256i v)
{
    const __m256i by_low = _mm256_setr_epi8(1, 3, 3, 3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 3, 3,
                                            3, 3, 3, 3, 1, 1, 1, 0, 0, 0, 0, 0, 0);
    const __m256i by_high = _mm256_setr_epi8(0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                             1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    return _mm256_and_si256(_mm256_shuffle_epi8(by_low, v), _mm256_shuffle_epi8(by_high, high));
}

/* Bytes of the line at p without its newline; SIZE_MAX: more than are counted. */
static inline size_t length(const uint8_t *p)
{
    const __m256i newline = _mm256_set1_epi8('\n');
    for (size_t i = 0; i < COUNT_MAX; i += STEP) {
        const uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(load(p + i), newline));
        const uint32_t b =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(load(p + i + 32), newline));
        const uint64_t both = a | (uint64_t)b << 32;
        if (both != 0) {
            return i + (unsigned)__builtin_ctzll(both);
        }
    }
    return SIZE_MAX;
}

static inline uint32_t numbers_in(const uint8_t *p)
{
    const __m256i none = _mm256_cmpeq_epi8(kinds(load(p)), _mm256_setzero_si256());
    return (uint32_t)_mm256_movemask_epi8(none);
}

static inline uint32_t tag_of(const uint8_t *p, size_t n)
{
    const uint64_t a = numbers_in(p), b = numbers_in(p + (n >= 64 ? 32 : n - 32));
    uint64_t h = (a | b << 32) * 0x9e3779b97f4a7c15u;
    h ^= (numbers_in(p + n - 32) | (uint64_t)n << 32) * 0xc2b2ae3d27d4eb4fu;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32) | 1;
}

/* No shape has other bytes: bars that are redrawn, whose tags would push others out. */
static inline bool is_ascii(const uint8_t *p, size_t n)
{
    const __m256i all = _mm256_or_si256(load(p), load(p + n - 32));
    return _mm256_movemask_epi8(all) == 0;
}

/* Which of the 32 bytes at p may stand there in a shape. */
static inline __m256i right(const uint8_t *p, const uint8_t *like)
{
    const __m256i v = load(p), l = load(like), any = _mm256_set1_epi8(FR_DULL_ANY & 0x7f);
    const __m256i is_free = _mm256_cmpgt_epi8(_mm256_and_si256(_mm256_or_si256(kinds(v), any), l),
                                              _mm256_setzero_si256());
    return _mm256_blendv_epi8(_mm256_cmpeq_epi8(v, l), is_free, l);
}

/* In as many steps as its length was counted in, so that a guess about both is one. */
static inline bool fits(const uint8_t *p, size_t n, const uint8_t *like)
{
    __m256i all = _mm256_and_si256(right(p, like), right(p + 32, like + 32));
    for (size_t i = STEP; i < n; i += STEP) {
        all = _mm256_and_si256(all, right(p + i, like + i));
        all = _mm256_and_si256(all, right(p + i + 32, like + i + 32));
    }
    return _mm256_movemask_epi8(all) == -1;
}

size_t fr_dull_avx2(struct fr_dull *d, const uint8_t *p, size_t n, uint64_t *ret_lines,
                    struct fr_dull_stop *ret_stop)
{
    size_t at = 0;
    uint64_t lines = 0;
    *ret_stop = (struct fr_dull_stop){SIZE_MAX, 0};
    while (n - at >= ROOM) {
        const size_t size = length(p + at);
        if (size < FR_DULL_LEAST || size > FR_DULL_BYTES) {
            ret_stop->n = size;
            break;
        }
        const uint32_t tag = tag_of(p + at, size);
        struct fr_dull_slot *slot = fr_dull_slot_of(d, tag);
        if (slot->tag != tag || slot->n != size ||
            !fits(p + at, size, d->like[slot - d->slots])) {
            *ret_stop = (struct fr_dull_stop){size, is_ascii(p + at, size) ? tag : 0};
            break;
        }
        slot->in_use = true;
        at += size + 1;
        lines++;
    }
    *ret_lines = lines;
    return at;
}
