/* SPDX-License-Identifier: Apache-2.0 */
/* gate_avx2: sixteen keys at once. Their look-ups are scalar loads that are put together again in a
 * vector: that ran at 5.8 GB/s on Zen 3 where a gather ran at 4.4 (and microcode fixes slow gathers
 * further on other CPUs). Nothing branches on the text, and a wrong guess costs as much as a block:
 * blocks with candidates are noted down, and unpacked after the batch by a table. */
#include "match/gate.h"

#include <immintrin.h>

/* The hashes of eight keys. */
static inline __m256i hashes(__m256i keys)
{
    const __m256i mask = _mm256_set1_epi32(FR_KEY_MASK);
    const __m256i factor = _mm256_set1_epi32((int)FR_KEY_FACTOR);
    return _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_and_si256(keys, mask), factor),
                             32 - FR_GATE_BITS);
}

/* The table's bytes at the eight hashes in h, side by side. */
static inline __m128i look_up(const uint8_t *t, __m256i h)
{
    const __m128i low = _mm256_castsi256_si128(h), high = _mm256_extracti128_si256(h, 1);
    const uint64_t a = (uint64_t)_mm_cvtsi128_si64(low), b = (uint64_t)_mm_extract_epi64(low, 1);
    const uint64_t c = (uint64_t)_mm_cvtsi128_si64(high), d = (uint64_t)_mm_extract_epi64(high, 1);
    __m128i x = _mm_cvtsi32_si128(t[(uint32_t)a]);
    x = _mm_insert_epi8(x, t[a >> 32], 1);
    x = _mm_insert_epi8(x, t[(uint32_t)b], 2);
    x = _mm_insert_epi8(x, t[b >> 32], 3);
    x = _mm_insert_epi8(x, t[(uint32_t)c], 4);
    x = _mm_insert_epi8(x, t[c >> 32], 5);
    x = _mm_insert_epi8(x, t[(uint32_t)d], 6);
    return _mm_insert_epi8(x, t[d >> 32], 7);
}

/* Of the sixteen bytes behind the keys at p, each as the bit that the table has for it. */
static inline __m128i bits_behind(const uint8_t *p)
{
    const __m128i seven = _mm_set1_epi32(7), *at = (const __m128i *)(const void *)(p + 4);
    const __m128i bits = _mm_set1_epi64x((long long)0x8040201008040201u);
    const __m128i a = _mm_and_si128(_mm_loadu_si128(at), seven);
    const __m128i b = _mm_and_si128(_mm_loadu_si128(at + 1), seven);
    const __m128i c = _mm_and_si128(_mm_loadu_si128(at + 2), seven);
    const __m128i d = _mm_and_si128(_mm_loadu_si128(at + 3), seven);
    return _mm_shuffle_epi8(bits,
                            _mm_packus_epi16(_mm_packus_epi32(a, b), _mm_packus_epi32(c, d)));
}

static inline uint64_t newlines_in(__m256i low, __m256i high)
{
    const __m256i newline = _mm256_set1_epi8('\n');
    const uint32_t a = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, newline));
    const uint32_t b = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, newline));
    return a | (uint64_t)b << 32;
}

/* For each set of hits among four keys: where those keys are, one after the other. */
static const uint32_t order[16][4] __attribute__((aligned(16))) = {
    {0},      {0},          {4},      {0, 4},
    {8},      {0, 8},       {4, 8},   {0, 4, 8},
    {12},     {0, 12},      {4, 12},  {0, 4, 12},
    {8, 12},  {0, 8, 12},   {4, 8, 12}, {0, 4, 8, 12},
};

/* Writes the offsets of the hits among four keys, and junk behind them. */
static inline uint32_t *put(uint32_t *to, uint32_t hits, uint32_t at)
{
    const __m128i numbers = _mm_load_si128((const __m128i *)(const void *)order[hits]);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_add_epi32(numbers, _mm_set1_epi32((int)at)));
    return to + __builtin_popcount(hits);
}

void fr_gate_avx2(const struct fr_gate *g, struct fr_gate_run *run)
{
    const uint8_t *const p = run->p;
    struct {
        uint32_t at, hits;
    } some[FR_GATE_BLOCKS + 1];
    uint32_t n_some = 0, at = (uint32_t)run->at, lines = run->lines, *to = run->cands;
    const size_t n = run->n;
    run->from = at;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && at < run->upto && n - at >= FR_GATE_BLOCK + FR_GATE_BEHIND;
         k++, at += FR_GATE_BLOCK) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(p + at));
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + at + 32));
        const __m128i may_follow = _mm_unpacklo_epi64(look_up(g->next, hashes(low)),
                                                      look_up(g->next, hashes(high)));
        const __m128i follows = bits_behind(p + at);
        const __m128i hits = _mm_cmpeq_epi8(_mm_and_si128(may_follow, follows), follows);
        some[n_some].at = at;
        some[n_some].hits = (uint32_t)_mm_movemask_epi8(hits);
        n_some += some[n_some].hits != 0;
        run->lines_at[k] = lines;
        run->newlines[k] = newlines_in(low, high);
        lines += (uint32_t)__builtin_popcountll(run->newlines[k]);
    }
    for (uint32_t i = 0; i < n_some; i++) {
        to = put(to, some[i].hits & 15, some[i].at);
        to = put(to, some[i].hits >> 4 & 15, some[i].at + 16);
        to = put(to, some[i].hits >> 8 & 15, some[i].at + 32);
        to = put(to, some[i].hits >> 12, some[i].at + 48);
    }
    run->n_cands = (uint32_t)(to - run->cands);
    run->at = at;
    run->lines = lines;
    if (at < run->upto && n - at < FR_GATE_BLOCK + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
