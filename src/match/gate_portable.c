/* SPDX-License-Identifier: Apache-2.0 */
/* gate_portable: for any CPU. Eight look-ups per 32 bytes; newlines are counted with the compiler's
 * own vectors. */
#include "match/gate.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

static inline uint32_t look(const struct fr_gate *g, const uint8_t *p)
{
    return g->next[fr_gate_hash(fr_key(fr_load32(p)))];
}

/* The sum of sixteen bytes, each at most 2. */
static inline uint32_t add_up(bytes16 counts)
{
    const words2 w = (words2)counts;
    return (uint32_t)(((w[0] + w[1]) * 0x0101010101010101ull) >> 56);
}

static inline uint32_t newlines_in(uint64_t word)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7full, x = word ^ 0x0a0a0a0a0a0a0a0aull;
    const uint64_t zeros = ~(((x & low) + low) | x | low); /* 0x80 where x has a zero byte */
    return (uint32_t)(((zeros >> 7) * 0x0101010101010101ull) >> 56);
}

/* A block that passed the first look; lines: newlines before it. */
static void sift(const struct fr_gate *g, struct fr_gate_run *run, uint32_t at, uint32_t lines)
{
    const uint8_t *const p = run->p + at;
    uint32_t counted = 0;
    for (uint32_t hits = fr_gate_sift(g, p); hits != 0; hits &= hits - 1) {
        const uint32_t k = (uint32_t)__builtin_ctz(hits);
        for (; counted < k; counted += FR_GATE_STRIDE) {
            lines += newlines_in(fr_load32(p + counted));
        }
        run->cands[run->n_cands++] = (struct fr_cand){at + k, lines};
    }
}

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run)
{
    struct {
        uint32_t at, lines;
    } some[FR_GATE_BLOCKS + 1];
    uint32_t n_some = 0, at = (uint32_t)run->at, lines = run->lines;
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && run->n - at >= 32 + FR_GATE_BEHIND; k++, at += 32) {
        const uint8_t *const p = run->p + at;
        const uint32_t found = look(g, p) | look(g, p + 4) | look(g, p + 8) | look(g, p + 12) |
                               look(g, p + 16) | look(g, p + 20) | look(g, p + 24) |
                               look(g, p + 28);
        some[n_some].at = at;
        some[n_some].lines = lines;
        n_some += found != 0;
        bytes16 a, b;
        memcpy(&a, p, 16);
        memcpy(&b, p + 16, 16);
        lines += add_up(-(bytes16)(a == '\n') - (bytes16)(b == '\n'));
    }
    for (uint32_t i = 0; i < n_some; i++) {
        sift(g, run, some[i].at, some[i].lines);
    }
    run->at = at;
    run->lines = lines;
    if (run->n - at < 32 + FR_GATE_BEHIND) {
        fr_gate_tail(g, run);
    }
}
