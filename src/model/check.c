/* SPDX-License-Identifier: Apache-2.0 */
#include "model/check.h"

const char *fr_check_verdict_name(uint8_t verdict)
{
    static const char *const names[] = {[FR_CHECK_PROMOTE] = "promote",
                                        [FR_CHECK_DO_NOT] = "do-not-promote",
                                        [FR_CHECK_CANNOT_TELL] = "cannot-tell"};
    return verdict < sizeof names / sizeof names[0] ? names[verdict] : "cannot-tell";
}

const char *fr_check_weight_name(uint8_t weight)
{
    static const char *const names[] = {[FR_CHECK_BLOCKS] = "blocks",
                                        [FR_CHECK_HIDES] = "hides",
                                        [FR_CHECK_RISK] = "risk",
                                        [FR_CHECK_NOTE] = "note"};
    return weight < FR_CHECK_WEIGHTS ? names[weight] : "none";
}

void fr_check_release(struct fr_check *c)
{
    for (uint32_t i = 0; i < c->comparisons.n; i++) {
        fr_vec_free(c->comparisons.v[i].diffs.v);
    }
    fr_vec_free(c->steps.v);
    fr_vec_free(c->findings.v);
    fr_vec_free(c->tensors.v);
    fr_vec_free(c->layers.v);
    fr_vec_free(c->comparisons.v);
    fr_vec_free(c->checked.v);
    fr_arena_release(&c->arena);
    *c = (struct fr_check){.arena = FR_ARENA_INIT(0)};
}
