/* SPDX-License-Identifier: Apache-2.0 */
/* gate_portable: for any CPU. Every place of a block is written down and only the candidates are
 * kept, because branches would be guessed wrong; newlines are found with the compiler's own
 * vectors. */
#include "match/gate.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

static inline bytes16 is_newline(const uint8_t *p)
{
    bytes16 v;
    memcpy(&v, p, sizeof v);
    return (bytes16)(v == '\n');
}

/* A bit for each newline of a block: eight bytes that hold a bit each are folded to one. */
static inline uint64_t newlines_in(const bytes16 rows[4])
{
    const bytes16 bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint64_t r = 0;
    for (int i = 0; i < 4; i++) {
        words2 w = (words2)(rows[i] & bits);
        w |= w >> 32;
        w |= w >> 16;
        w |= w >> 8;
        r |= ((w[0] & 0xff) | (w[1] & 0xff) << 8) << (16 * i);
    }
    return r;
}

/* How many they are. */
static inline uint32_t count(const bytes16 rows[4])
{
    const words2 w = (words2)-(rows[0] + rows[1] + rows[2] + rows[3]);
    return (uint32_t)(((w[0] + w[1]) * 0x0101010101010101ull) >> 56);
}

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run)
{
    uint32_t at = (uint32_t)run->at, lines = run->lines, n_cands = 0;
    run->from = at;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && at < run->upto &&
                         run->n - at >= FR_GATE_BLOCK + FR_GATE_BEHIND;
         k++) {
        const uint8_t *const p = run->p + at;
        for (uint32_t i = 0; i < FR_GATE_BLOCK; i += FR_GATE_STRIDE) {
            run->cands[n_cands] = at + i;
            n_cands += fr_gate_has(g, fr_key(fr_load32(p + i)), p[i + 4]);
        }
        const bytes16 rows[4] = {is_newline(p), is_newline(p + 16), is_newline(p + 32),
                                 is_newline(p + 48)};
        run->lines_at[k] = lines;
        run->newlines[k] = newlines_in(rows);
        lines += count(rows);
        at += FR_GATE_BLOCK;
    }
    run->n_cands = n_cands;
    run->at = at;
    run->lines = lines;
    if (at < run->upto && run->n - at < FR_GATE_BLOCK + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
