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
    const uint8_t *const p = run->p;
    struct {
        uint64_t newlines;
        uint32_t at, lines, hits;
    } some[FR_GATE_BLOCKS / 2 + 1];
    uint32_t n_some = 0, at = (uint32_t)run->at, lines = run->lines;
    const size_t n = run->n;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS / 2 && n - at >= 64 + FR_GATE_BEHIND; k++, at += 64) {
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
        some[n_some].at = at;
        some[n_some].lines = lines;
        some[n_some].newlines = _mm512_cmpeq_epi8_mask(v, newline);
        some[n_some].hits = _mm512_test_epi32_mask(_mm512_cvtepu8_epi32(bytes), wanted);
        lines += (uint32_t)__builtin_popcountll(some[n_some].newlines);
        n_some += some[n_some].hits != 0;
    }
    for (uint32_t i = 0; i < n_some; i++) {
        for (uint32_t hits = some[i].hits; hits != 0; hits &= hits - 1) {
            const uint32_t k = (uint32_t)__builtin_ctz(hits) * FR_GATE_STRIDE;
            const uint64_t before = some[i].newlines & ((1ull << k) - 1);
            run->cands[run->n_cands++] = (struct fr_cand){
                some[i].at + k, some[i].lines + (uint32_t)__builtin_popcountll(before)};
        }
    }
    run->at = at;
    run->lines = lines;
    if (n - at < 64 + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
