/* SPDX-License-Identifier: Apache-2.0 */
/* stacks: dumps of a hanging run (py-spy, gdb). Nobody printed an error; of all main threads one stands somewhere else. */
#include "incident/case.h"

enum { STACKS_LEAST = 3 };

static bool is_stack(const struct fr_case *c, const struct fr_obs *o)
{
    return o->e->fact == FR_FACT_STACK && o->attempt == c->attempt;
}

void fr_case_stacks(struct fr_case *c)
{
    const struct fr_obs *odd = NULL;
    uint32_t all = 0, alone = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (!is_stack(c, o)) {
            continue;
        }
        uint32_t same = 0;
        for (uint32_t k = 0; k < c->obs.n; k++) {
            same += k != i && is_stack(c, &c->obs.v[k]) &&
                    fr_sv_eq(fr_event_text(c->obs.v[k].e, FR_KEY_MODULE), fr_event_text(o->e, FR_KEY_MODULE));
        }
        all++;
        if (same == 0) {
            odd = o;
            alone++;
        }
    }
    int32_t f = all >= STACKS_LEAST && alone == 1 ? fr_case_class(c, "rank-stalled") : -1;
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_SILENCE);
    if (k == NULL) {
        return;
    }
    k->ground = FR_GROUND_SILENCE;
    k->score = k->score > 24 ? k->score : 24;
    fr_cand_obs(c, k, (uint32_t)(odd - c->obs.v));
    fr_cand_rank(c, k, fr_case_pid_rank(c, odd->node, fr_event_num(odd->e, FR_KEY_PID, -1)));
    fr_sv where = fr_event_text(odd->e, FR_KEY_OP);
    fr_cand_for(c, k, "of %u main threads only process %lld stands in %.*s", all, (long long)fr_event_num(odd->e, FR_KEY_PID, -1),
                (int)(where.n < 80 ? where.n : 80), where.p != NULL ? where.p : "");
}
