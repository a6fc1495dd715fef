/* SPDX-License-Identifier: Apache-2.0 */
/* gate_portable: for any CPU. Every place of a block is written down and only the candidates are
 * kept, because branches would be guessed wrong; newlines are counted with the compiler's own
 * vectors. */
#include "match/gate.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

/* The sum of sixteen bytes, each at most 2. */
static inline uint32_t add_up(bytes16 counts)
{
    const words2 w = (words2)counts;
    return (uint32_t)(((w[0] + w[1]) * 0x0101010101010101ull) >> 56);
}

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run)
{
    uint32_t at = (uint32_t)run->at, lines = run->lines, n_cands = 0;
    run->from = at;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && run->n - at >= FR_GATE_BLOCK + FR_GATE_BEHIND;
         k++) {
        const uint8_t *const p = run->p + at;
        for (uint32_t i = 0; i < FR_GATE_BLOCK; i += FR_GATE_STRIDE) {
            run->cands[n_cands] = at + i;
            n_cands += fr_gate_has(g, fr_key(fr_load32(p + i)), p[i + 4]);
        }
        bytes16 a, b;
        memcpy(&a, p, 16);
        memcpy(&b, p + 16, 16);
        run->lines_at[k] = lines;
        lines += add_up(-(bytes16)(a == '\n') - (bytes16)(b == '\n'));
        at += FR_GATE_BLOCK;
    }
    run->n_cands = n_cands;
    run->at = at;
    run->lines = lines;
    if (run->n - at < FR_GATE_BLOCK + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
