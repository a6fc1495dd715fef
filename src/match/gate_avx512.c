/* SPDX-License-Identifier: Apache-2.0 */
/* gate_avx512: as gate_avx2, sixteen keys at once; the newline mask comes out of the comparison itself. */
#include "match/gate.h"

#include <immintrin.h>

static __attribute__((noinline)) void emit(const struct fr_gate *g, struct fr_gate_run *run, size_t at,
                                           uint32_t lines, uint64_t newlines)
{
    for (unsigned k = 0; k < 64; k += FR_GATE_STRIDE) {
        if (fr_gate_has(g, fr_key(fr_load32(run->p + at + k)))) {
            const uint64_t before = newlines & ((1ull << k) - 1);
            run->cands[run->n_cands++] =
                (struct fr_cand){(uint32_t)(at + k), lines + (uint32_t)__builtin_popcountll(before)};
        }
    }
}

void fr_gate_avx512(const struct fr_gate *g, struct fr_gate_run *run)
{
    const __m512i newline = _mm512_set1_epi8('\n');
    const __m512i mask = _mm512_set1_epi32(FR_KEY_MASK);
    const __m512i factor = _mm512_set1_epi32((int)FR_KEY_FACTOR);
    size_t at = run->at;
    uint32_t lines = run->lines;
    while (run->n - at >= 64 && fr_gate_room(run)) {
        const __m512i v = _mm512_loadu_si512(run->p + at);
        uint64_t h[8] __attribute__((aligned(64)));
        _mm512_store_si512(h, _mm512_srli_epi32(_mm512_mullo_epi32(_mm512_and_si512(v, mask), factor), 16));
        uint32_t some = 0;
        for (int k = 0; k < 8; k++) {
            some |= g->table[(uint32_t)h[k]] | g->table[h[k] >> 32];
        }
        const uint64_t newlines = _mm512_cmpeq_epi8_mask(v, newline);
        if (__builtin_expect(some != 0, 0)) {
            emit(g, run, at, lines, newlines);
        }
        lines += (uint32_t)__builtin_popcountll(newlines);
        at += 64;
    }
    run->at = at;
    run->lines = lines;
    if (fr_gate_room(run)) {
        fr_gate_tail(g, run);
    }
}
