/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the databases, unpacked when they are first needed: most logs never need most of them. The
 * built-in rules are rules.gen.c. */
#include "match/rules.h"

#include <hs/hs_runtime.h>

void fr_rules_free(struct fr_rules **r)
{
    if (*r == NULL) {
        return;
    }
    struct fr_arena *arena = (*r)->arena;
    for (uint32_t i = 0; i < (*r)->n_groups; i++) {
        hs_free_database((*r)->state->unpacked[i]);
    }
    pthread_mutex_destroy(&(*r)->state->lock);
    *r = NULL;
    struct fr_arena last = *arena; /* the arena's head lives in itself */
    fr_arena_release(&last);
}

int fr_rules_database(const struct fr_rules *r, uint16_t group, void **ret, struct fr_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&r->state->lock);
    if (r->state->unpacked[group] == NULL) {
        const struct fr_group *g = &r->groups[group];
        hs_database_t *db = NULL;
        const hs_error_t e = hs_deserialize_database((const char *)r->databases + g->at, g->n, &db);
        if (e != HS_SUCCESS) {
            rc =
                fr_err_set(err, e == HS_NOMEM ? FR_NOMEM : FR_STATE,
                           "a pattern database does not fit this machine (Vectorscan error %d)", e);
        }
        r->state->unpacked[group] = db;
    }
    *ret = r->state->unpacked[group];
    pthread_mutex_unlock(&r->state->lock);
    return rc;
}
