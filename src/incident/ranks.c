/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: what is known about every rank of this attempt, gathered from all sources into one row each. */
#include "incident/case.h"

#include <stdlib.h>

struct fr_rank *fr_case_rank(struct fr_case *c, int32_t rank)
{
    uint32_t lo = 0, hi = c->ranks.n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (c->ranks.v[mid].rank < rank) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < c->ranks.n && c->ranks.v[lo].rank == rank ? &c->ranks.v[lo] : NULL;
}

bool fr_case_is_whole(const struct fr_case *c)
{
    return c->ranks.n != 0 && c->ranks.v[c->ranks.n - 1].rank + 1 == (int32_t)c->ranks.n;
}

static int cmp_i32(const void *pa, const void *pb)
{
    int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    return (a > b) - (a < b);
}

typedef FR_VEC(int32_t) ints;

static void note(struct fr_case *c, ints *v, int32_t rank)
{
    if (rank < 0 || rank > 1000000) {
        return;
    }
    int32_t *slot = FR_PUSH(v);
    if (slot == NULL) {
        c->nomem = true;
        return;
    }
    *slot = rank;
}

static void note_task(struct fr_case *c, const struct fr_obs *o, int32_t task, int32_t rank, void *v)
{
    (void)o;
    (void)task;
    note(c, v, rank);
}

/* All rank numbers anybody proved, plus 0..world-1 when the world is known: a rank that never spoke counts too. */
static void list_ranks(struct fr_case *c)
{
    ints v = {0};
    for (uint32_t i = 0; i < c->obs.n; i++) {
        note(c, &v, c->obs.v[i].rank);
        note(c, &v, c->obs.v[i].subject);
        const struct fr_event *e = c->obs.v[i].e;
        if (e->fact == FR_FACT_EXIT) {
            note(c, &v, fr_case_exit_rank(c, &c->obs.v[i]));
            fr_case_each_task(c, &c->obs.v[i], fr_event_text(e, FR_KEY_RANKS), note_task, &v);
        } else if (e->fact == FR_FACT_STOP_SENT) {
            note(c, &v, fr_case_pid_rank(c, c->obs.v[i].node, fr_event_num(e, FR_KEY_PID, -1)));
        } else if (e->fact == FR_FACT_MISMATCH) {
            note(c, &v, (int32_t)fr_event_num(e, FR_KEY_RANK, -1));
            note(c, &v, (int32_t)fr_event_num(e, FR_KEY_PEER_RANK, -1));
        }
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        note(c, &v, c->src_rank[i]);
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            note(c, &v, fr_case_rank_of(c, &s->speakers.v[k].who, i));
        }
    }
    for (int32_t r = 0; r < c->world && c->world <= 100000; r++) {
        note(c, &v, r);
    }
    if (v.n != 0) {
        qsort(v.v, v.n, sizeof *v.v, cmp_i32);
    }
    for (uint32_t i = 0; i < v.n; i++) {
        if (i != 0 && v.v[i] == v.v[i - 1]) {
            continue;
        }
        struct fr_rank *r = FR_PUSH(&c->ranks);
        if (r == NULL) {
            c->nomem = true;
            break;
        }
        *r = (struct fr_rank){.rank = v.v[i], .node = -1, .src = -1, .pid = -1, .enqueued = -1, .completed = -1, .seq = -1, .numel = -1,
                               .last_step = -1, .seen = FR_TIME_NONE};
    }
    fr_vec_free(v.v);
}

static void set_life(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        struct fr_rank *own = c->src_rank[i] >= 0 ? fr_case_rank(c, c->src_rank[i]) : NULL;
        if (own != NULL) {
            own->src = (int32_t)i;
            own->node = own->node < 0 ? c->src_node[i] : own->node;
        }
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            const struct fr_activity *a = &s->speakers.v[k];
            struct fr_rank *r = fr_case_rank(c, fr_case_rank_of(c, &a->who, i));
            if (r == NULL) {
                continue;
            }
            if (r->life == NULL || r->life_src != i || a->last_line > r->life->last_line) {
                r->life = a;
                r->life_src = i;
            }
            r->pid = r->pid < 0 ? a->who.pid : r->pid;
            bool timed = a->last.basis != FR_TIME_BASIS_NONE && a->last.basis != FR_TIME_BASIS_BOOT;
            r->seen = timed && (r->seen == FR_TIME_NONE || a->last.ns > r->seen) ? a->last.ns : r->seen;
        }
        for (uint32_t k = 0; k < s->metrics.n; k++) {
            const struct fr_metric_summary *m = &s->metrics.v[k];
            struct fr_rank *r = fr_case_rank(c, m->rank >= 0 ? m->rank : c->src_rank[i]);
            if (r != NULL && m->last_step > r->last_step) {
                r->last_step = m->last_step;
            }
        }
    }
}

static void set_counters(struct fr_rank *r, const struct fr_event *e)
{
    if (e->fact == FR_FACT_COUNTERS) {
        const fr_sv desc = fr_event_text(e, FR_KEY_PG_DESC), group = desc.n != 0 ? desc : fr_event_text(e, FR_KEY_PG);
        if (r->pg.n != 0 && group.n != 0 && !fr_sv_eq(r->pg, group)) {
            return; /* "Received a dump signal" repeats those of the default group, whichever group timed out */
        }
        r->enqueued = fr_event_num(e, FR_KEY_ENQUEUED, r->enqueued);
        r->completed = fr_event_num(e, FR_KEY_COMPLETED, r->completed);
        r->pg = r->pg.n != 0 ? r->pg : group;
    } else if (e->fact == FR_FACT_TIMEOUT && r->seq < 0) {
        r->seq = fr_event_num(e, FR_KEY_SEQ, -1);
        r->op = fr_event_text(e, FR_KEY_OP);
        r->numel = fr_event_num(e, FR_KEY_NUMEL, -1);
    }
}

/* The request of another rank for a dump reaches the rank that everybody waits for, too: it is no complaint of its own. */
static bool is_hearsay(const struct fr_case *c, const struct fr_obs *o)
{
    return o->failure >= 0 && strcmp(c->lib->failures[o->failure].id, "nccl-flight-recorder-signal") == 0 &&
           !fr_sv_has(o->e->text, FR_SV("from this local rank"));
}

static void set_facts(struct fr_case *c, const struct fr_obs *o)
{
    const struct fr_event *e = o->e;
    struct fr_rank *about = o->subject >= 0 ? fr_case_rank(c, o->subject) : NULL;
    struct fr_rank *by = o->rank >= 0 ? fr_case_rank(c, o->rank) : NULL;
    if (about != NULL && o->meaning == FR_MEANS_CAUSE && about->cause == NULL && !o->recovered) {
        about->cause = o;
    }
    if (by == NULL) {
        return;
    }
    by->node = by->node < 0 ? o->node : by->node;
    bool victim = o->meaning == FR_MEANS_SYMPTOM || e->fact == FR_FACT_TIMEOUT || e->fact == FR_FACT_PEER_LOST;
    if (victim && by->symptom == NULL && !o->recovered && !is_hearsay(c, o)) {
        by->symptom = o;
    }
    if (e->fact == FR_FACT_TIMEOUT && by->timeout == NULL) {
        by->timeout = o;
    }
    if (e->trace != NULL && by->trace == NULL && o->meaning != FR_MEANS_TEARDOWN) {
        by->trace = e->trace;
    }
    if (e->fact == FR_FACT_DONE) {
        by->done = true;
    }
    set_counters(by, e);
}

void fr_case_ranks(struct fr_case *c)
{
    list_ranks(c);
    set_life(c);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        if (c->obs.v[i].attempt == c->attempt) {
            set_facts(c, &c->obs.v[i]);
        }
    }
}
