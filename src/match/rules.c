/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the database that is unpacked on first use. The built-in rules are rules.gen.c. */
#include "match/rules.h"

#include <hs/hs_runtime.h>

void fr_rules_free(struct fr_rules **r)
{
    if (*r == NULL) {
        return;
    }
    struct fr_arena *arena = (*r)->arena;
    hs_free_database((*r)->state->database);
    pthread_mutex_destroy(&(*r)->state->lock);
    *r = NULL;
    struct fr_arena last = *arena; /* the arena's head lives in itself */
    fr_arena_release(&last);
}

/* Unpacking checks a sum and copies (0.1 ms); most small logs never need a regex, so it waits for the first one. */
int fr_rules_database(const struct fr_rules *r, void **ret, struct fr_err *err)
{
    int rc = 0;
    pthread_mutex_lock(&r->state->lock);
    if (r->state->database == NULL) {
        hs_database_t *db = NULL;
        const hs_error_t e = hs_deserialize_database((const char *)r->database, r->database_size, &db);
        if (e != HS_SUCCESS) {
            rc = fr_err_set(err, e == HS_NOMEM ? FR_NOMEM : FR_STATE,
                            "the pattern database does not fit this machine (Vectorscan error %d)", e);
        }
        r->state->database = db;
    }
    *ret = r->state->database;
    pthread_mutex_unlock(&r->state->lock);
    return rc;
}
