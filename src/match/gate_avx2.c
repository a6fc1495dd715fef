/* SPDX-License-Identifier: Apache-2.0 */
/* gate_avx2: eight keys at once. Their look-ups are scalar loads that are put together again in a
 * vector: that ran at 5.8 GB/s on Zen 3 where a gather ran at 4.4 (and microcode fixes slow gathers
 * further on other CPUs). Nothing branches on the text, and a wrong guess costs as much as a block:
 * blocks with candidates are noted down, and unpacked after the batch by a table. */
#include "match/gate.h"

#include <immintrin.h>

/* The table's bytes at the eight hashes in h. */
static inline __m256i look_up(const uint8_t *t, __m256i h)
{
    const __m128i low = _mm256_castsi256_si128(h), high = _mm256_extracti128_si256(h, 1);
    const uint64_t a = (uint64_t)_mm_cvtsi128_si64(low), b = (uint64_t)_mm_extract_epi64(low, 1);
    const uint64_t c = (uint64_t)_mm_cvtsi128_si64(high), d = (uint64_t)_mm_extract_epi64(high, 1);
    __m128i x = _mm_cvtsi32_si128(t[(uint32_t)a]), y = _mm_cvtsi32_si128(t[(uint32_t)c]);
    x = _mm_insert_epi8(x, t[a >> 32], 1);
    y = _mm_insert_epi8(y, t[c >> 32], 1);
    x = _mm_insert_epi8(x, t[(uint32_t)b], 2);
    y = _mm_insert_epi8(y, t[(uint32_t)d], 2);
    x = _mm_insert_epi8(x, t[b >> 32], 3);
    y = _mm_insert_epi8(y, t[d >> 32], 3);
    return _mm256_cvtepu8_epi32(_mm_unpacklo_epi32(x, y));
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
    const __m256i newline = _mm256_set1_epi8('\n');
    const __m256i mask = _mm256_set1_epi32(FR_KEY_MASK);
    const __m256i factor = _mm256_set1_epi32((int)FR_KEY_FACTOR);
    const __m256i seven = _mm256_set1_epi32(7), top = _mm256_set1_epi32(31);
    const uint8_t *const p = run->p;
    struct {
        uint32_t at, hits;
    } some[FR_GATE_BLOCKS + 1];
    uint32_t n_some = 0, at = (uint32_t)run->at, lines = run->lines, *to = run->cands;
    const size_t n = run->n;
    run->from = at;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && n - at >= FR_GATE_BLOCK + FR_GATE_BEHIND;
         k++, at += FR_GATE_BLOCK) {
        const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(p + at));
        const __m256i next =
            _mm256_loadu_si256((const __m256i *)(const void *)(p + at + FR_GATE_STRIDE));
        const __m256i h = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_and_si256(v, mask), factor),
                                            32 - FR_GATE_BITS);
        const __m256i may_follow = look_up(g->next, h);
        const __m256i on_top =
            _mm256_sllv_epi32(may_follow, _mm256_sub_epi32(top, _mm256_and_si256(next, seven)));
        some[n_some].at = at;
        some[n_some].hits = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(on_top));
        n_some += some[n_some].hits != 0;
        run->lines_at[k] = lines;
        lines += (uint32_t)__builtin_popcount(
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, newline)));
    }
    for (uint32_t i = 0; i < n_some; i++) {
        to = put(to, some[i].hits & 15, some[i].at);
        to = put(to, some[i].hits >> 4, some[i].at + 16);
    }
    run->n_cands = (uint32_t)(to - run->cands);
    run->at = at;
    run->lines = lines;
    if (n - at < FR_GATE_BLOCK + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
