/* SPDX-License-Identifier: Apache-2.0 */
/* judge: orders the candidates. A candidate's score is its class's weight, plus what ties it to a death, minus what
 * makes it a consequence: another class that explains it, a more exact class about the same lines, a cause before it
 * in the same process. Law 7 and law 10 are applied to the winner: same on all ranks has no first rank; unknown stays unknown. */
#include "incident/case.h"

#include <string.h>

bool fr_case_lists(const char *const *ids, const char *id)
{
    for (; *ids != NULL; ids++) {
        if (strcmp(*ids, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_class(const struct fr_case *c, const char *id)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        if (strcmp(fr_cand_class(c, &c->cands.v[i])->id, id) == 0) {
            return true;
        }
    }
    return false;
}

static uint8_t loudest(const struct fr_case *c, const struct fr_cand *k)
{
    uint8_t level = FR_LEVEL_NONE;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        uint8_t l = c->obs.v[k->obs.v[i]].e->level;
        level = l > level ? l : level;
    }
    return level;
}

static void base_score(struct fr_case *c, struct fr_cand *k)
{
    const struct fr_failure *f = fr_cand_class(c, k);
    if (k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE || k->ground == FR_GROUND_SERIES) {
        k->score += f->weight;
    }
    if (k->fatal && (k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE)) {
        k->score += 15;
        fr_cand_for(c, k, "it ended the process that printed it");
    }
    bool cut = k->obs.n != 0;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        cut &= c->obs.v[k->obs.v[i]].cut;
    }
    if (cut) {
        k->score -= 48;
        fr_cand_against(c, k, "its traceback was cut off before the exception");
    }
    uint8_t level = loudest(c, k);
    if (!k->fatal && k->ground == FR_GROUND_SIGNAL && level != FR_LEVEL_NONE && level <= FR_LEVEL_WARN) {
        k->score -= 25;
        fr_cand_against(c, k, "it was only a warning where it was printed");
    }
    for (const char *const *r = f->requires; *r != NULL; r++) {
        if (!has_class(c, *r)) {
            k->score -= 100;
            fr_cand_against(c, k, "it needs %s beside it, which is not in the logs", *r);
        }
    }
    for (const char *const *x = f->excludes; *x != NULL; x++) {
        if (has_class(c, *x)) {
            k->score -= 100;
            fr_cand_against(c, k, "%s in the same run rules it out", *x);
        }
    }
}

/* First sighting as (source, line): candidates printed by one process in one file are ordered by it. */
static bool first_place(const struct fr_case *c, const struct fr_cand *k, uint32_t *src, uint64_t *line)
{
    if (k->obs.n != 0) {
        *src = c->obs.v[k->obs.v[0]].src;
        *line = c->obs.v[k->obs.v[0]].e->line;
        if (k->finding != NULL && k->finding_src == *src && k->finding->line < *line) {
            *line = k->finding->line;
        }
        return true;
    }
    if (k->finding != NULL) {
        *src = k->finding_src;
        *line = k->finding->line;
        return true;
    }
    return false;
}

static bool is_before(const struct fr_case *c, const struct fr_cand *a, const struct fr_cand *b)
{
    uint32_t sa, sb;
    uint64_t la, lb;
    bool above = first_place(c, a, &sa, &la) && first_place(c, b, &sb, &lb) && sa == sb && la < lb;
    if (a->began != FR_TIME_NONE && b->began != FR_TIME_NONE) { /* where clocks alone cannot tell, the order of lines may agree with them */
        return a->began + a->slack < b->began - b->slack || (above && a->began < b->began);
    }
    return above;
}

/* The kernel tells of crashes of processes that are no ranks, and how all ranks ended is known: none of them so. */
static bool is_crash_of_others(const struct fr_case *c, const struct fr_cand *k)
{
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (o->e->fact != FR_FACT_KERNEL_CRASH || o->subject >= 0) {
            return false;
        }
        for (uint32_t n = 0; n < c->ranks.n; n++) {
            const struct fr_rank *r = &c->ranks.v[n];
            if (!r->has_exit || r->exitcode == -(int)fr_event_num(o->e, FR_KEY_SIGNAL, 11)) {
                return false;
            }
        }
    }
    return k->obs.n != 0 && c->ranks.n != 0;
}

/* A kill or crash of somebody else's process is the answer only where nothing of the run itself failed. */
static void strangers(struct fr_case *c)
{
    bool own = false;
    for (uint32_t i = 0; i < c->cands.n; i++) {
        c->cands.v[i].stranger |= is_crash_of_others(c, &c->cands.v[i]);
        own |= !c->cands.v[i].stranger && (c->cands.v[i].fatal || c->cands.v[i].ground == FR_GROUND_SYMPTOM);
    }
    for (uint32_t i = 0; i < c->cands.n; i++) {
        if (own && c->cands.v[i].stranger) {
            c->cands.v[i].score -= 90;
            fr_cand_against(c, &c->cands.v[i], "the process is none of this run's");
        }
    }
}

/* An error of the program's own logic: nobody else's end leads to it. */
static bool is_logic_error(const struct fr_case *c, const struct fr_cand *k)
{
    static const char *const names[] = {"KeyError", "IndexError", "TypeError", "AttributeError", "NameError", "UnboundLocalError", "ZeroDivisionError",
                                        "ModuleNotFoundError", NULL};
    const struct fr_trace *t = k->fatal && k->obs.n != 0 ? c->obs.v[k->obs.v[0]].e->trace : NULL;
    for (const char *const *n = names; t != NULL && !t->truncated && t->origin_line == 0 && *n != NULL; n++) {
        if (fr_sv_eq(t->exception, fr_sv_z(*n))) {
            return true;
        }
    }
    return false;
}

static bool on_another_rank(const struct fr_cand *a, const struct fr_cand *b)
{
    return a->ranks.n == 1 && b->ranks.n == 1 && a->ranks.v[0] != b->ranks.v[0];
}

/* A process does not end so because another one did. */
static bool is_crash(const struct fr_failure *f)
{
    static const char *const ids[] = {"segfault", "torchrun-sigsegv", "sigbus-exit-minus-7", "illegal-instruction-cpu", NULL};
    return fr_case_lists(ids, f->id);
}

static bool has_rank(const struct fr_cand *k, int32_t rank)
{
    for (uint32_t i = 0; i < k->ranks.n; i++) {
        if (k->ranks.v[i] == rank) {
            return true;
        }
    }
    return false;
}

/* Somebody was awaited in vain, and the launcher saw it crash, with others maybe: that is what was first. */
static bool crash_explains(const struct fr_case *c, const struct fr_cand *crash, const struct fr_cand *k)
{
    bool all = crash->ground == FR_GROUND_EXIT && is_crash(fr_cand_class(c, crash)) && k->silent && k->ranks.n != 0 &&
               (k->ground == FR_GROUND_COUNTERS || k->ground == FR_GROUND_ACCUSED || k->ground == FR_GROUND_SILENCE);
    for (uint32_t i = 0; all && i < k->ranks.n; i++) {
        all = has_rank(crash, k->ranks.v[i]);
    }
    return all;
}

static void against_each_other(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        struct fr_cand *k = &c->cands.v[i];
        for (uint32_t j = 0; j < c->cands.n; j++) {
            const struct fr_cand *o = &c->cands.v[j];
            if (i == j) {
                continue;
            }
            const struct fr_failure *kf = fr_cand_class(c, k), *of = fr_cand_class(c, o);
            bool voiced = o->ground <= FR_GROUND_SERIES && k->ground <= FR_GROUND_SERIES;
            bool can_explain = o->ground != FR_GROUND_SYMPTOM || kf->weight <= of->weight || is_before(c, o, k);
            if (fr_case_lists(of->explains, kf->id) && can_explain) {
                k->score -= 60;
                fr_cand_against(c, k, "%s explains it", of->id);
            } else if (voiced && is_before(c, o, k) && of->weight + 10 >= kf->weight) {
                k->score -= 12;
                fr_cand_against(c, k, "%s came before it", of->id);
            } else if (is_logic_error(c, o) && k->fatal && on_another_rank(k, o) && is_before(c, o, k)) {
                k->score -= 40;
                fr_cand_against(c, k, "rank %d had failed by itself before it", o->ranks.v[0]);
            } else if (crash_explains(c, o, k)) {
                k->score -= 60;
                fr_cand_against(c, k, "a crash explains it");
            }
        }
    }
}

/* ---- scope ---- */

/* Ranks that the launcher ended before they could show anything. */
static uint32_t stopped(const struct fr_case *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        n += r->stopped && !r->done && r->cause == NULL && r->symptom == NULL;
    }
    return n;
}

static uint32_t unnamed_deaths(const struct fr_case *c, const struct fr_cand *k)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        n += o->fatal && o->subject < 0 ? o->e->count : 0;
    }
    return n;
}

/* All that is known of the ranks beside the candidate's one is that they were in a traceback when the log was cut. */
static bool others_cut_off(const struct fr_case *c, const struct fr_cand *k)
{
    for (uint32_t i = 0; k->ranks.n == 1 && i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->rank != k->ranks.v[0] && (r->cause == NULL || !r->cause->cut || r->symptom != NULL || r->stopped)) {
            return false;
        }
    }
    return k->ranks.n == 1 && c->ranks.n > 1;
}

/* The launcher told this one from the others. */
static bool named_by_launcher(struct fr_case *c, const struct fr_cand *k)
{
    const struct fr_rank *r = k->ranks.n == 1 ? fr_case_rank(c, k->ranks.v[0]) : NULL;
    if (r != NULL && r->has_exit && fr_sv_eq(fr_event_text(r->exit->e, FR_KEY_REASON), FR_SV("spawn"))) {
        return true; /* mp.spawn tells of the first one only, and whose traceback it is */
    }
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (o->e->fact == FR_FACT_EXIT && fr_event_num(o->e, FR_KEY_RANK, -1) >= 0) {
            return true;
        }
    }
    return false;
}

/* Processes that nobody can name died of another's end: then not all failed alike. */
static bool unnamed_victims(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool victim = o->e->fact == FR_FACT_PEER_LOST || o->e->fact == FR_FACT_TIMEOUT || o->meaning == FR_MEANS_SYMPTOM;
        if (victim && o->fatal && o->subject < 0 && o->rank < 0) {
            return true;
        }
    }
    return false;
}

/* Others show only that they lost or awaited somebody: then not all failed alike. */
static bool named_victims(const struct fr_case *c, const struct fr_cand *k)
{
    uint32_t victims = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        bool own = c->ranks.v[i].cause != NULL;
        for (uint32_t n = 0; n < k->ranks.n; n++) {
            own |= k->ranks.v[n] == c->ranks.v[i].rank;
        }
        victims += !own && c->ranks.v[i].symptom != NULL;
    }
    return k->ranks.n != 0 && victims != 0;
}

/* Python does not compile the source, which is every rank's. */
static bool is_syntax_error(const struct fr_case *c, const struct fr_cand *k)
{
    const struct fr_trace *t = k->ground == FR_GROUND_TRACE && k->obs.n != 0 ? c->obs.v[k->obs.v[0]].e->trace : NULL;
    return t != NULL && (fr_sv_ends(t->exception, FR_SV("SyntaxError")) || fr_sv_ends(t->exception, FR_SV("IndentationError")) ||
                         fr_sv_ends(t->exception, FR_SV("TabError")));
}

/* Nobody is missing: a world of another size is not known. */
static bool is_whole(const struct fr_case *c)
{
    return c->ranks.n > 1 && fr_case_is_whole(c) && c->world <= (int32_t)c->ranks.n;
}

/* One rank's own log of what happens between ranks: whose fault it was is in the logs that are not here. */
static bool one_side_of_it(const struct fr_case *c, const struct fr_failure *f)
{
    bool own = strstr(f->id, "oom") != NULL || strcmp(f->id, "nccl-unhandled-cuda-error") == 0; /* memory and device are its own */
    return strncmp(f->id, "nccl-", 5) == 0 && !own && c->ranks.n == 1 && c->world != 1;
}

/* One log prints metrics: of a model that is everybody's, whoever prints its loss. Several may be of several runs. */
static bool one_voice(const struct fr_case *c)
{
    uint32_t printing = 0;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        printing += c->set->sources.v[i]->metric_points != 0;
    }
    return printing <= 1;
}

/* As many unnamed sightings as ranks, or as many unnamed deaths: a GPU assertion prints once per thread. */
static bool is_counted(struct fr_case *c, const struct fr_cand *k, uint32_t world)
{
    bool told = k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE;
    if (!told || k->ranks.n != 0 || k->n_unknown == 0) {
        return false;
    }
    if (c->world <= 0) {
        uint32_t started = fr_case_children(c);
        world = started > world ? started : world;
    }
    return world > 1 && (k->n_unknown == world || unnamed_deaths(c, k) >= world);
}

static void set_scope(struct fr_case *c, struct fr_cand *k)
{
    const struct fr_failure *f = fr_cand_class(c, k);
    uint32_t world = c->world > 0 ? (uint32_t)c->world : c->ranks.n;
    uint32_t able = world - stopped(c);
    bool told = k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE;
    /* the same crash in each; an abort is what watchdogs end their processes with */
    bool crashed = k->ground == FR_GROUND_EXIT && is_whole(c) && strcmp(f->id, "torchrun-sigabrt") != 0 && strcmp(f->id, "native-abort") != 0;
    bool everywhere = (told || crashed) && k->ranks.n > 1 && k->ranks.n >= able;
    bool counted = is_counted(c, k, world);
    bool one_host_all = everywhere && c->nodes.n <= 1;
    bool alike = !named_victims(c, k) && (f->scope == FR_SCOPE_ALL_RANKS || is_syntax_error(c, k)) && !unnamed_victims(c);
    bool one_said = told && k->fatal && k->ranks.n == 1 && k->n_unknown == 0; /* its own traceback, not the launcher's word */
    bool one_host = k->ground == FR_GROUND_SYMPTOM && k->node.n != 0 && strcmp(f->id, "torchrun-sigterm-cascade") == 0;
    bool one_missing = (k->ground == FR_GROUND_SILENCE || k->ground == FR_GROUND_ACCUSED) && k->ranks.n == 1;
    if ((f->scope == FR_SCOPE_LAUNCHER && !one_said && !one_missing) || (f->scope == FR_SCOPE_NODE && k->ranks.n != 1 && !one_host_all)) {
        k->scope = one_host ? FR_SCOPE_NODE : f->scope;
    } else if (k->ground == FR_GROUND_SERIES && k->ranks.n != 1) {
        k->scope = c->world == 1 || (world <= 1 && !one_voice(c)) ? FR_SCOPE_UNKNOWN : FR_SCOPE_ALL_RANKS;
    } else if (everywhere || counted) {
        k->scope = FR_SCOPE_ALL_RANKS;
    } else if (alike && (k->ranks.n != 1 || is_syntax_error(c, k))) {
        k->scope = FR_SCOPE_ALL_RANKS;
    } else if (alike && c->ranks.n <= 1 && c->world != 1 && !named_by_launcher(c, k)) {
        k->scope = FR_SCOPE_ALL_RANKS; /* one rank's log of what hits all alike */
    } else if (f->scope == FR_SCOPE_ALL_RANKS && told && others_cut_off(c, k)) {
        k->scope = FR_SCOPE_ALL_RANKS;
    } else if (((k->ground == FR_GROUND_EXIT && !is_crash(f)) || k->ground == FR_GROUND_SYMPTOM) && k->ranks.n > 1) {
        k->scope = FR_SCOPE_UNKNOWN; /* several died the same way: the numbers do not order them */
    } else if (told && k->ranks.n == 1 && one_side_of_it(c, f)) {
        k->scope = f->scope == FR_SCOPE_NODE ? FR_SCOPE_NODE : FR_SCOPE_UNKNOWN;
    } else if (told && k->ranks.n == 1 && others_cut_off(c, k)) {
        k->scope = FR_SCOPE_UNKNOWN; /* theirs may have been the same, and before it */
    } else if (k->ranks.n == 1) {
        k->scope = FR_SCOPE_RANK;
    } else if (k->ranks.n > 1) {
        k->scope = FR_SCOPE_RANKS;
    } else {
        k->scope = FR_SCOPE_UNKNOWN;
    }
    bool heard = k->scope == FR_SCOPE_NODE && k->ranks.n == 1; /* on that node, by this rank */
    if (k->scope != FR_SCOPE_RANK && k->scope != FR_SCOPE_RANKS && !heard) {
        k->ranks.n = 0;
    }
}

/* Of several ranks that show the same cause: the first in time, when the clocks can tell. */
static void first_of_many(const struct fr_case *c, struct fr_cand *k)
{
    if (k->scope != FR_SCOPE_RANKS || k->silent) {
        return;
    }
    const struct fr_obs *first = NULL;
    bool ordered = true;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (o->subject < 0) {
            continue;
        }
        if (o->began == FR_TIME_NONE) {
            return;
        }
        if (first == NULL || o->began < first->began) {
            first = o;
        }
    }
    for (uint32_t i = 0; first != NULL && i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        ordered &= o->subject < 0 || o->subject == first->subject || first->began + first->slack < o->began - o->slack;
    }
    if (first != NULL && ordered) {
        k->ranks.v[0] = first->subject;
        k->ranks.n = 1;
        k->scope = FR_SCOPE_RANK;
    }
}

static int32_t best_of(const struct fr_case *c)
{
    int32_t best = -1;
    for (uint32_t i = 0; i < c->cands.n; i++) {
        const struct fr_cand *k = &c->cands.v[i];
        if (k->ground == FR_GROUND_EXIT && k->score <= 0) {
            continue; /* a number that says nothing by itself */
        }
        if (best < 0 || k->score > c->cands.v[best].score ||
            (k->score == c->cands.v[best].score && is_before(c, k, &c->cands.v[best]))) {
            best = (int32_t)i;
        }
    }
    return best;
}

/* Another real cause, on other ranks, that nothing orders against the winner: naming the winner's rank as the first would be a toss. */
static void unordered_rivals(struct fr_case *c, struct fr_cand *best)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        const struct fr_cand *o = &c->cands.v[i];
        bool real = o != best && o->ground == FR_GROUND_SIGNAL && o->fatal && fr_cand_class(c, o)->weight >= 40 && o->score >= 40;
        bool apart = o->ranks.n == 1 && best->ranks.n == 1 && o->ranks.v[0] != best->ranks.v[0];
        if (!real || !apart || best->ground != FR_GROUND_SIGNAL || is_before(c, best, o) || is_before(c, o, best)) {
            continue;
        }
        fr_cand_against(c, best, "%s on rank %d cannot be ordered against it", fr_cand_class(c, o)->id, o->ranks.v[0]);
        best->scope = FR_SCOPE_UNKNOWN;
        best->ranks.n = 0;
        best->contested = true;
        return;
    }
}

/* Can a process of this local rank be that rank? With n processes per node, rank = node * n + local, and n is more than any local. */
static bool fits_local(int32_t rank, int64_t local)
{
    return rank == local || rank - local > local;
}

/* The launcher saw another process fail, of which nothing is left in the log: whether that one was before the winner is not known. */
static void unheard_exits(struct fr_case *c, struct fr_cand *best)
{
    const struct fr_obs *other = NULL;
    if (best->scope != FR_SCOPE_RANK || !best->fatal || (best->ground != FR_GROUND_SIGNAL && best->ground != FR_GROUND_TRACE)) {
        return;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        int64_t local = fr_event_num(o->e, FR_KEY_LOCAL_RANK, -1), code = fr_event_num(o->e, FR_KEY_EXITCODE, 0);
        if (o->e->fact != FR_FACT_EXIT || o->attempt != c->attempt || local < 0 || code == 0 || code == -15) {
            continue;
        }
        int32_t rank = fr_case_exit_rank(c, o);
        if (rank >= 0 ? rank == best->ranks.v[0] : fits_local(best->ranks.v[0], local)) {
            return;
        }
        const struct fr_rank *r = fr_case_rank(c, rank >= 0 ? rank : (int32_t)local);
        other = r == NULL || (r->cause == NULL && r->symptom == NULL) ? o : other;
    }
    if (other != NULL && !fr_sv_eq(fr_event_text(other->e, FR_KEY_REASON), FR_SV("spawn"))) {
        fr_cand_against(c, best, "the launcher saw another process fail, and nothing of that one is in the logs");
        best->scope = FR_SCOPE_UNKNOWN;
        best->ranks.n = 0;
        best->contested = true;
    }
}

/* torchrun's agent names the process that it saw first, in a line and in the last row of its table. */
static bool is_first_seen(const struct fr_obs *exit)
{
    fr_sv reason = fr_event_text(exit->e, FR_KEY_REASON);
    return fr_sv_eq(reason, FR_SV("agent")) || fr_sv_eq(reason, FR_SV("table-root"));
}

/* All ranks ended by themselves the way an exception does, the launcher saw another one than the winners first, and of all others the
 * log has lost every word. Who waits for a peer's GPU is stopped and does not end so: then they failed alike. */
static void lost_words(struct fr_case *c, struct fr_cand *best)
{
    const char *category = fr_cand_class(c, best)->category;
    const char *id = fr_cand_class(c, best)->id; /* of the memory's classes some are the host's */
    bool of_gpu = strncmp(id, "cuda-", 5) == 0 || strncmp(id, "oom-", 4) == 0, rooted = false;
    bool gpu = strcmp(category, "cuda") == 0 || (strcmp(category, "memory") == 0 && of_gpu);
    bool told = best->ground == FR_GROUND_SIGNAL || best->ground == FR_GROUND_TRACE;
    if ((best->scope != FR_SCOPE_RANK && best->scope != FR_SCOPE_RANKS) || !best->fatal || !told || !gpu || !is_whole(c) || fr_case_has_complaints(c)) {
        return;
    }
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        bool other = !has_rank(best, r->rank);
        if (!r->has_exit || (other && r->stopped) || r->exitcode != 1 || (other && r->cause != NULL)) {
            return;
        }
        rooted |= other && is_first_seen(r->exit);
    }
    if (rooted) {
        fr_cand_for(c, best, "all %u ranks ended by themselves, the launcher saw first one of whom the log has no word", c->ranks.n);
        best->scope = FR_SCOPE_ALL_RANKS;
        best->ranks.n = 0;
    }
}

int32_t fr_case_judge(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        base_score(c, &c->cands.v[i]);
    }
    strangers(c);
    against_each_other(c);
    int32_t best = best_of(c);
    for (uint32_t i = 0; i < c->cands.n; i++) {
        set_scope(c, &c->cands.v[i]);
        first_of_many(c, &c->cands.v[i]);
    }
    if (best >= 0) {
        unordered_rivals(c, &c->cands.v[best]);
        unheard_exits(c, &c->cands.v[best]);
        lost_words(c, &c->cands.v[best]);
    }
    return best;
}
