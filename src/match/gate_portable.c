/* SPDX-License-Identifier: Apache-2.0 */
/* gate_portable: for any CPU. Eight look-ups per 32 bytes; newlines are counted with the compiler's own vectors. */
#include "match/gate.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline uint32_t look(const struct fr_gate *g, const uint8_t *p)
{
    return g->next[fr_gate_hash(fr_key(fr_load32(p)))];
}

static uint32_t add_up(bytes16 counts)
{
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) {
        sum += counts[i];
    }
    return sum;
}

/* A block that passed the first sieve; lines: newlines before it. */
static void sift(const struct fr_gate *g, struct fr_gate_run *run, uint32_t at, uint32_t lines)
{
    const uint8_t *const p = run->p + at;
    uint32_t newlines = 0;
    const uint32_t hits = fr_gate_sift(g, p);
    if (hits == 0) {
        return;
    }
    for (unsigned k = 0; k < 32; k++) {
        newlines |= (uint32_t)(p[k] == '\n') << k;
    }
    fr_gate_emit(run, at, hits, lines, newlines);
}

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run)
{
    struct {
        uint32_t at, lines;
    } some[FR_GATE_BLOCKS + 1];
    uint32_t n_some = 0, at = (uint32_t)run->at, lines = run->lines;
    bytes16 counts = {0}; /* a byte of it takes two newlines from each of up to 16 blocks */
    for (uint32_t k = 0; k < FR_GATE_BLOCKS && run->n - at >= 32 + FR_GATE_BEHIND; k++, at += 32) {
        const uint8_t *const p = run->p + at;
        const uint32_t found = look(g, p) | look(g, p + 4) | look(g, p + 8) | look(g, p + 12) | look(g, p + 16) |
                               look(g, p + 20) | look(g, p + 24) | look(g, p + 28);
        some[n_some].at = at;
        some[n_some].lines = lines;
        n_some += found != 0;
        bytes16 a, b;
        memcpy(&a, p, 16);
        memcpy(&b, p + 16, 16);
        counts = -(bytes16)(a == '\n') - (bytes16)(b == '\n');
        lines += add_up(counts);
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
