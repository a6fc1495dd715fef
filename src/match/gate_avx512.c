/* SPDX-License-Identifier: Apache-2.0 */
/* gate_avx512: as gate_avx2, sixteen keys at once; comparisons and bit tests yield their masks
 * directly. */
#include "match/gate.h"

#include <immintrin.h>

/* The table's bytes at the four hashes in h, side by side. */
static inline uint32_t look_up(const uint8_t *t, const uint64_t h[2])
{
    __m128i x = _mm_cvtsi32_si128(t[(uint32_t)h[0]]);
    x = _mm_insert_epi8(x, t[h[0] >> 32], 1);
    x = _mm_insert_epi8(x, t[(uint32_t)h[1]], 2);
    x = _mm_insert_epi8(x, t[h[1] >> 32], 3);
    return (uint32_t)_mm_cvtsi128_si32(x);
}

void fr_gate_avx512(const struct fr_gate *g, struct fr_gate_run *run)
{
    const __m512i newline = _mm512_set1_epi8('\n');
    const __m512i mask = _mm512_set1_epi32(FR_KEY_MASK);
    const __m512i factor = _mm512_set1_epi32((int)FR_KEY_FACTOR);
    const __m512i seven = _mm512_set1_epi32(7), one = _mm512_set1_epi32(1);
    static const uint32_t offsets[16] = {0,  4,  8,  12, 16, 20, 24, 28,
                                         32, 36, 40, 44, 48, 52, 56, 60};
    const __m512i order = _mm512_loadu_si512(offsets);
    const uint8_t *const p = run->p;
    uint32_t at = (uint32_t)run->at, lines = run->lines, *to = run->cands;
    const size_t n = run->n;
    run->from = at;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && at < run->upto && n - at >= FR_GATE_BLOCK + FR_GATE_BEHIND;
         k++, at += FR_GATE_BLOCK) {
        const __m512i v = _mm512_loadu_si512(p + at);
        const __m512i next = _mm512_loadu_si512(p + at + FR_GATE_STRIDE);
        uint64_t h[8] __attribute__((aligned(64)));
        _mm512_store_si512(h,
                           _mm512_srli_epi32(_mm512_mullo_epi32(_mm512_and_si512(v, mask), factor),
                                             32 - FR_GATE_BITS));
        const __m128i bytes =
            _mm_setr_epi32((int)look_up(g->next, h), (int)look_up(g->next, h + 2),
                           (int)look_up(g->next, h + 4), (int)look_up(g->next, h + 6));
        const __m512i wanted = _mm512_sllv_epi32(one, _mm512_and_si512(next, seven));
        const uint16_t hits = _mm512_test_epi32_mask(_mm512_cvtepu8_epi32(bytes), wanted);
        const __m512i found = _mm512_maskz_compress_epi32(hits, order);
        _mm512_storeu_si512(to, _mm512_add_epi32(found, _mm512_set1_epi32((int)at)));
        to += __builtin_popcount(hits);
        const uint64_t newlines = _mm512_cmpeq_epi8_mask(v, newline);
        run->lines_at[k] = lines;
        run->newlines[k] = newlines;
        lines += (uint32_t)__builtin_popcountll(newlines);
    }
    run->n_cands = (uint32_t)(to - run->cands);
    run->at = at;
    run->lines = lines;
    if (at < run->upto && n - at < FR_GATE_BLOCK + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
