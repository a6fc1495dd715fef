/* SPDX-License-Identifier: Apache-2.0 */
/* gate_portable: for any CPU. Eight table look-ups per 32 bytes, one branch; newlines are counted sixteen bytes at a
 * time with the compiler's own vectors, and added up only when a candidate wants to know. */
#include "match/gate.h"

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static uint32_t add_up(bytes16 counts)
{
    uint32_t sum = 0;
    for (int i = 0; i < 16; i++) {
        sum += counts[i];
    }
    return sum;
}

static inline uint32_t look(const struct fr_gate *g, const uint8_t *p)
{
    return g->table[(fr_key(fr_load32(p)) * FR_KEY_FACTOR) >> 16];
}

static __attribute__((noinline)) void emit(const struct fr_gate *g, struct fr_gate_run *run, uint32_t lines)
{
    const uint8_t *const p = run->p + run->at;
    for (unsigned k = 0; k < 32; k++) {
        if (k % FR_GATE_STRIDE == 0 && fr_gate_has(g, fr_key(fr_load32(p + k)))) {
            run->cands[run->n_cands++] = (struct fr_cand){(uint32_t)run->at + k, lines};
        }
        lines += p[k] == '\n';
    }
}

/* At most 100 blocks: a byte of `counts` takes two newlines from each. */
static void blocks(const struct fr_gate *g, struct fr_gate_run *run)
{
    bytes16 counts = {0};
    for (unsigned k = 0; k < 100 && run->n - run->at >= 32 && fr_gate_room(run); k++, run->at += 32) {
        const uint8_t *const p = run->p + run->at;
        const uint32_t some = look(g, p) | look(g, p + 4) | look(g, p + 8) | look(g, p + 12) | look(g, p + 16) |
                              look(g, p + 20) | look(g, p + 24) | look(g, p + 28);
        if (__builtin_expect(some != 0, 0)) {
            emit(g, run, run->lines + add_up(counts));
        }
        bytes16 a, b;
        memcpy(&a, p, 16);
        memcpy(&b, p + 16, 16);
        counts -= (bytes16)(a == '\n') + (bytes16)(b == '\n');
    }
    run->lines += add_up(counts);
}

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run)
{
    while (run->n - run->at >= 32 && fr_gate_room(run)) {
        blocks(g, run);
    }
    if (fr_gate_room(run)) {
        fr_gate_tail(g, run);
    }
}
