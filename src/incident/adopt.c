/* SPDX-License-Identifier: Apache-2.0 */
/* adopt: a fault was printed without saying by whom (an assertion of the GPU, faulthandler, a tokeniser's bar). Where exactly
 * one rank can have printed it, it is that rank's: the only process there is, the only one that ended by that signal, the
 * only one with a traceback that is no victim's. Two that fit are none. */
#include "incident/case.h"

#include <signal.h>
#include <string.h>

static int32_t only_exit(const struct fr_case *c, int code)
{
    int32_t found = -1;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->has_exit && !r->stopped && r->exitcode == code) {
            if (found >= 0) {
                return -1;
            }
            found = r->rank;
        }
    }
    return found;
}

/* Unsigned complaints say that a peer is gone, and none that one is late. One process had ended by itself; all others still ran when their
 * launcher stopped them: it is that one which is gone. */
static int32_t only_one_lost(const struct fr_case *c)
{
    const int32_t gone = only_exit(c, 1);
    bool lost = false;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        if (c->ranks.v[i].rank != gone && !c->ranks.v[i].outlived) {
            return -1;
        }
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt == c->attempt && (o->e->fact == FR_FACT_TIMEOUT || o->meaning == FR_MEANS_SYMPTOM)) {
            lost |= o->e->fact == FR_FACT_PEER_LOST;
            if (o->e->fact != FR_FACT_PEER_LOST || o->rank >= 0) {
                return -1;
            }
        }
    }
    return lost && c->ranks.n > 1 ? gone : -1;
}

static bool is_by_srun(const struct fr_obs *o, enum fr_fact fact)
{
    return o->e->fact == fact && fr_sv_eq(fr_event_text(o->e, FR_KEY_REASON), FR_SV("srun"));
}

/* The one task whose end by itself srun tells before it stops the step: those that end behind that were told to. */
static int32_t first_task(struct fr_case *c)
{
    const struct fr_obs *stop = NULL, *first = NULL;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt == c->attempt && is_by_srun(o, FR_FACT_STOP_SENT) && (stop == NULL || o->e->line < stop->e->line)) {
            stop = o;
        }
    }
    for (uint32_t i = 0; stop != NULL && i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool before = is_by_srun(o, FR_FACT_EXIT) && o->src == stop->src && o->e->line < stop->e->line;
        if (o->attempt != c->attempt || !before) {
            continue;
        }
        if (first != NULL || fr_event_num(o->e, FR_KEY_EXITCODE, 0) != 1) {
            return -1;
        }
        first = o;
    }
    fr_sv list = first == NULL ? FR_SV_NONE : fr_event_text(first->e, FR_KEY_RANKS);
    uint64_t task;
    return fr_sv_take_u64(&list, &task) && list.n == 0 ? fr_case_exit_rank(c, first) : -1; /* "1-3" are several */
}

/* The one child whose end mp.spawn reports: what follows in that file is its. */
static int32_t only_spawned(const struct fr_case *c, const struct fr_cand *k)
{
    int32_t found = -1;
    const struct fr_obs *first = k->obs.n != 0 ? &c->obs.v[k->obs.v[0]] : NULL;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool spawn = o->e->fact == FR_FACT_EXIT && fr_sv_eq(fr_event_text(o->e, FR_KEY_REASON), FR_SV("spawn"));
        int32_t local = spawn ? (int32_t)fr_event_num(o->e, FR_KEY_LOCAL_RANK, -1) : -1;
        bool follows = first != NULL && first->src == o->src && (first->e->line > o->e->line || first->fatal);
        if (local < 0 || local == found || !follows) {
            continue;
        }
        if (found >= 0 || c->nodes.n > 1) {
            return -1;
        }
        found = local;
    }
    return found;
}

static int exit_code_of(const char *id)
{
    static const struct { const char *id; int code; } codes[] = {
        {"segfault", -11}, {"torchrun-sigsegv", -11}, {"sigbus-exit-minus-7", -7}, {"native-abort", -6},
        {"process-killed-sigkill", -9}, {"torchrun-sigkill-exit-minus-9", -9}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(codes[i].id, id) == 0) {
            return codes[i].code;
        }
    }
    return 0;
}

/* Of a world of three or more the only one that does not complain about a peer, while all others do. */
static int32_t only_quiet(const struct fr_case *c)
{
    int32_t found = -1;
    uint32_t victims = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        victims += r->symptom != NULL;
        if (r->symptom == NULL) {
            if (found >= 0) {
                return -1;
            }
            found = r->rank;
        }
    }
    return victims >= 2 && (int32_t)c->ranks.n == c->world ? found : -1;
}

/* Somebody's memory ended, and the kernel's or the scheduler's word does not say whose. */
static bool is_oom(const char *id)
{
    return strcmp(id, "cgroup-oom") == 0 || strcmp(id, "slurm-oom") == 0 || strcmp(id, "host-oom-killer") == 0;
}

/* The only rank that left a traceback which is no complaint about a peer. */
static int32_t only_trace(const struct fr_case *c)
{
    int32_t found = -1;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->trace != NULL && r->symptom == NULL) {
            if (found >= 0) {
                return -1;
            }
            found = r->rank;
        }
    }
    return found;
}

static bool has_victims(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        if (c->ranks.v[i].symptom != NULL) {
            return true;
        }
    }
    return false;
}

/* Everybody else waits in a barrier of the start-up while somebody still prepares the data: by the usual pattern that is the
 * main process, and it is when rank 0 alone does not complain. Before any model exists, the group's ranks are the global ones. */
static bool all_but_zero_wait(const struct fr_case *c)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        if (e->fact != FR_FACT_TIMEOUT || c->obs.v[i].attempt != c->attempt) {
            continue;
        }
        int64_t rank = c->obs.v[i].rank >= 0 ? c->obs.v[i].rank : fr_event_num(e, FR_KEY_PG_RANK, e->who.pg_rank);
        if (rank == 0) {
            return false;
        }
        others += rank > 0;
    }
    return others != 0;
}

/* The one that is silent where all others lost a peer: an end by a signal that nobody can name is its. */
static int32_t silent_one(const struct fr_case *c)
{
    int32_t gone = fr_case_class(c, "silent-exit");
    for (uint32_t i = 0; i < c->cands.n; i++) {
        const struct fr_cand *k = &c->cands.v[i];
        if (k->failure == gone && k->ground == FR_GROUND_SILENCE && k->ranks.n == 1) {
            return k->ranks.v[0];
        }
    }
    return -1;
}

/* As many deaths that nobody can name as ranks that ended by themselves, the way an exception does: theirs, whichever was whose. */
static bool each_exit(struct fr_case *c, struct fr_cand *k)
{
    uint32_t own = 0, other = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        bool ended = r->has_exit && !r->stopped;
        own += ended && r->exitcode == 1 && r->cause == NULL;
        other += ended && r->exitcode != 0 && (r->exitcode != 1 || r->cause != NULL);
    }
    if (own < 2 || other != 0 || !k->fatal || k->n_unknown != own || has_victims(c)) {
        return false;
    }
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->has_exit && !r->stopped && r->exitcode == 1) {
            fr_cand_rank(c, k, r->rank);
        }
    }
    fr_cand_for(c, k, "%u ranks ended by themselves, and it was printed as often", own);
    return true;
}

/* By how processes ended: the only one by that signal, the only silent one, the only one that ended at all. */
static bool by_end(struct fr_case *c, struct fr_cand *k, int code)
{
    bool told = k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE;
    int32_t rank = k->ground == FR_GROUND_EXIT && code < 0 && k->n_unknown == 1 ? silent_one(c) : -1;
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "all others lost a peer, and rank %d is the one that says nothing", rank);
        return true;
    }
    rank = told && code != 0 ? only_exit(c, code) : -1;
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "rank %d is the only one that ended by signal %d", rank, -code);
        return true;
    }
    rank = told && (code == -11 || code == -7) ? only_quiet(c) : -1; /* a crash, and no abort that waiting leads to */
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "all other ranks complained about a peer, only rank %d did not", rank);
        return true;
    }
    rank = told && is_oom(fr_cand_class(c, k)->id) ? only_exit(c, -9) : -1;
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "rank %d is the only one that was killed", rank);
        return true;
    }
    rank = told && k->n_unknown <= 1 && !has_victims(c) && !fr_case_has_complaints(c) ? only_exit(c, 1) : -1;
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "rank %d is the only one that ended by itself, and this is the only error", rank);
        return true;
    }
    rank = told && k->n_unknown <= 1 ? only_one_lost(c) : -1;
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "a peer was gone, and rank %d is the only one that had ended", rank);
        return true;
    }
    int64_t lead;
    const struct fr_rank *early = told && k->n_unknown <= 1 && !fr_case_has_complaints(c) ? fr_case_ended_first(c, &lead) : NULL;
    if (early != NULL && early->cause == NULL) {
        fr_cand_rank(c, k, early->rank);
        fr_cand_for(c, k, "rank %d ended %lld s before any other one, and this is the only error", early->rank, (long long)(lead / FR_NS_PER_S));
        return true;
    }
    rank = told && k->n_unknown <= 1 && !fr_case_has_complaints(c) ? first_task(c) : -1;
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "task %d had ended by itself when srun stopped the others, and this is the only error", rank);
        return true;
    }
    return told && each_exit(c, k);
}

/* Does this end's row in torchrun's table close with the exception of one of k's tracebacks? */
static bool is_in_row(const struct fr_case *c, const struct fr_cand *k, const struct fr_obs *row)
{
    bool named = row->e->fact == FR_FACT_EXIT && fr_event_num(row->e, FR_KEY_RANK, -1) >= 0;
    fr_sv said = named ? fr_event_text(row->e, FR_KEY_EXCEPTION) : FR_SV_NONE;
    for (uint32_t i = 0; said.n != 0 && i < k->obs.n; i++) {
        const struct fr_event *e = c->obs.v[k->obs.v[i]].e;
        if (e->trace != NULL && e->line == e->trace->last_line && fr_sv_eq(e->text, said)) {
            return true;
        }
    }
    return false;
}

/* torchrun's table has each rank's own traceback where the script records its errors: as many rows with this exception as it was printed. */
static bool by_rows(struct fr_case *c, struct fr_cand *k)
{
    bool told = k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE;
    uint32_t rows = 0;
    for (uint32_t i = 0; told && i < c->obs.n; i++) {
        rows += c->obs.v[i].attempt == c->attempt && is_in_row(c, k, &c->obs.v[i]);
    }
    if (rows == 0 || rows < k->n_unknown) {
        return false;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt == c->attempt && is_in_row(c, k, o)) {
            fr_cand_rank(c, k, (int32_t)fr_event_num(o->e, FR_KEY_RANK, -1));
        }
    }
    if (k->ranks.n != 0) {
        fr_cand_for(c, k, "the launcher's table shows this exception in the row of rank %d", k->ranks.v[0]);
    }
    return k->ranks.n != 0;
}

/* The unsigned traceback of one process in a console that all ranks write to: who prints a line behind it still lives. Where all but one
 * do, and that one had been printing until then, it is that one's. What a dying process had in its buffer comes behind its traceback, too:
 * then it is among those that seem to live, which leaves nobody, or one that had been silent for long. */
static int32_t only_silent_after(const struct fr_case *c, const struct fr_obs *o)
{
    enum { RECENTLY = 10 }; /* seconds */
    const struct fr_rank *silent = NULL;
    int64_t first_end = FR_TIME_NONE;
    bool whole = c->ranks.n >= 3 && fr_case_is_whole(c);
    for (uint32_t i = 0; whole && i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        bool before = r->life != NULL && r->life_src == o->src && r->life->first_line < o->e->trace->first_line && r->seen != FR_TIME_NONE;
        if (!before) {
            return -1;
        }
        if (r->life->last_line > o->e->line) {
            first_end = first_end == FR_TIME_NONE || r->seen < first_end ? r->seen : first_end;
        } else if (silent != NULL) {
            return -1;
        } else {
            silent = r;
        }
    }
    if (silent == NULL || first_end == FR_TIME_NONE || silent->seen > first_end || first_end - silent->seen > RECENTLY * FR_NS_PER_S) {
        return -1;
    }
    return silent->rank;
}

/* The same for a candidate, by the last of its tracebacks. */
static bool by_lines_behind(struct fr_case *c, struct fr_cand *k)
{
    const struct fr_obs *o = NULL;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *it = &c->obs.v[k->obs.v[i]];
        if (it->rank >= 0 || it->e->count != 1) {
            return false;
        }
        o = it->e->trace != NULL && it->e->line == it->e->trace->last_line ? it : o;
    }
    int32_t rank = o != NULL && o->fatal ? only_silent_after(c, o) : -1;
    if (rank < 0) {
        return false;
    }
    fr_cand_rank(c, k, rank);
    fr_cand_for(c, k, "all other ranks print lines behind the traceback, and rank %d printed until then", rank);
    return true;
}

/* A process that is to hold the store of the group listens on its port: that is rank 0, where the traceback goes through the set-up of the
 * group and not through a launcher. */
static bool holds_the_store(const struct fr_case *c, const struct fr_cand *k)
{
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_trace *t = c->obs.v[k->obs.v[i]].e->trace;
        if (t != NULL && fr_sv_has(t->frames, FR_SV("init_process_group")) && !fr_sv_has(t->frames, FR_SV("launch_agent"))) {
            return true;
        }
    }
    return false;
}

/* std::terminate prints it, maybe behind the Python exception that it was. */
static bool is_aborting(const struct fr_case *c, const struct fr_cand *k)
{
    for (uint32_t i = 0; i < k->obs.n; i++) {
        if (fr_case_is_abort(c->obs.v[k->obs.v[i]].e)) {
            return true;
        }
    }
    return false;
}

static void adopt(struct fr_case *c, struct fr_cand *k)
{
    const char *id = fr_cand_class(c, k)->id;
    int code = exit_code_of(id);
    const struct fr_obs *first = k->obs.n != 0 ? &c->obs.v[k->obs.v[0]] : NULL;
    bool aborts = code == 0 && is_aborting(c, k);
    if (c->world == 1) {
        fr_cand_rank(c, k, 0);
        fr_cand_for(c, k, "the world has one rank");
        return;
    }
    if (strcmp(id, "slow-preprocessing-timeout") == 0 && all_but_zero_wait(c)) {
        fr_cand_rank(c, k, 0);
        k->silent = true;
        fr_cand_for(c, k, "every rank but 0 waits at a barrier while the data is still being prepared");
        return;
    }
    if (aborts && first->signal >= 0 && c->lib->signals[first->signal].about == FR_ABOUT_NOBODY) {
        return; /* whoever aborted: it may be the fault of another one */
    }
    code = aborts ? -SIGABRT : code;
    if (strcmp(id, "c10d-address-in-use") == 0 && holds_the_store(c, k)) {
        fr_cand_rank(c, k, 0);
        k->n_unknown = 0;
        fr_cand_for(c, k, "who sets up the group and listens for it is rank 0");
        return;
    }
    if (by_rows(c, k) || by_end(c, k, code) || by_lines_behind(c, k) || (k->ground != FR_GROUND_SIGNAL && k->ground != FR_GROUND_TRACE)) {
        return;
    }
    bool shared = strcmp(id, "loss-scale-collapse") == 0; /* a scale is every rank's, and so is its end */
    int32_t rank = shared ? -1 : only_spawned(c, k);
    if (rank >= 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "mp.spawn reports the end of its process %d only", rank);
        return;
    }
    bool alike = fr_cand_class(c, k)->scope == FR_SCOPE_ALL_RANKS && !has_victims(c); /* what hits every rank alike is nobody's */
    rank = alike ? -1 : only_trace(c);
    if (rank >= 0 && code == 0) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "only rank %d left a traceback that is no complaint about a peer", rank);
    }
}

void fr_case_adopt(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        if (c->cands.v[i].ranks.n == 0) {
            adopt(c, &c->cands.v[i]);
        }
    }
}
