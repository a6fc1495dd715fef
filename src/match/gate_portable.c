/* SPDX-License-Identifier: Apache-2.0 */
/* gate_portable: one hash and one bit test per byte, in plain C. */
#include "match/gate.h"

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run)
{
    const uint8_t *const p = run->p;
    size_t i = run->at;
    uint32_t lines = run->lines;
    while (i < run->n && run->n_cands <= FR_GATE_CANDS - FR_GATE_BLOCK) {
        const size_t end = run->n - i < FR_GATE_BLOCK ? run->n : i + FR_GATE_BLOCK;
        for (; i < end; i++) {
            if (i + 4 <= run->n && fr_gate_has(g, fr_gram_at(p + i))) {
                run->cands[run->n_cands++] = (struct fr_cand){(uint32_t)i, lines};
            }
            lines += p[i] == '\n';
        }
    }
    run->at = i;
    run->lines = lines;
}
