/* SPDX-License-Identifier: Apache-2.0 */
/* children: the processes that one launcher says it started: those that it told to stop, and those whose end it reports. How many
 * there are, and which number the one has that nobody names. */
#include "incident/case.h"

#include <string.h>

static int64_t child_of(const struct fr_event *e)
{
    return e->fact == FR_FACT_STOP_SENT || e->fact == FR_FACT_EXIT ? fr_event_num(e, FR_KEY_PID, -1) : -1;
}

uint32_t fr_case_children(struct fr_case *c)
{
    struct fr_map seen;
    uint32_t n = 0, known;
    fr_map_init(&seen, &c->arena);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        int64_t pid = child_of(c->obs.v[i].e);
        const fr_sv key = {(const char *)&pid, sizeof pid};
        if (pid >= 0 && c->obs.v[i].attempt == c->attempt && !fr_map_get(&seen, key, &known)) {
            c->nomem |= !fr_map_put(&seen, key, n++);
        }
    }
    return n;
}

struct census {
    struct fr_map pids; /* of one launcher: to the local rank, UINT32_MAX while it is not known */
    uint32_t named;
    int32_t top;
    int64_t sum; /* of the numbers that are named */
};

/* False: this is not the word of one launcher about one set of processes whose local ranks are their ranks. */
static bool count(struct census *t, const struct fr_obs *o, int64_t pid)
{
    int64_t rank = o->e->fact == FR_FACT_EXIT ? fr_event_num(o->e, FR_KEY_RANK, -1) : -1;
    bool fresh = false;
    uint32_t *slot = fr_map_slot(&t->pids, (fr_sv){(const char *)&pid, sizeof pid}, &fresh);
    if (slot == NULL || (rank >= 0 && rank != fr_event_num(o->e, FR_KEY_LOCAL_RANK, -1))) {
        return false;
    }
    *slot = fresh ? UINT32_MAX : *slot;
    if (rank < 0 || *slot == (uint32_t)rank) {
        return true;
    }
    if (*slot != UINT32_MAX) {
        return false;
    }
    *slot = (uint32_t)rank;
    t->named++;
    t->sum += rank;
    t->top = rank > t->top ? (int32_t)rank : t->top;
    return true;
}

/* torchrun's table leaves out who was stopped in time. As many processes as the numbers 0 to the highest, all but one named: the one that is
 * left has the number that is left. */
int32_t fr_case_last_child(struct fr_case *c, int64_t *ret_pid)
{
    struct census t = {.top = -1};
    uint32_t src = UINT32_MAX;
    fr_map_init(&t.pids, &c->arena);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        int64_t pid = child_of(o->e);
        if (o->e->fact == FR_FACT_ATTEMPT || (pid >= 0 && src != UINT32_MAX && src != o->src)) {
            return -1;
        }
        src = pid >= 0 ? o->src : src;
        if (pid >= 0 && !count(&t, o, pid)) {
            return -1;
        }
    }
    if (t.named == 0 || t.pids.n != t.named + 1 || t.top + 1 != (int32_t)t.pids.n) {
        return -1;
    }
    for (uint32_t i = 0; i < t.pids.n; i++) {
        if (fr_map_value(&t.pids, i) == UINT32_MAX) {
            memcpy(ret_pid, fr_map_key(&t.pids, i).p, sizeof *ret_pid);
        }
    }
    return (int32_t)((int64_t)t.top * (t.top + 1) / 2 - t.sum); /* of 0 + 1 + .. + top, what is missing */
}
