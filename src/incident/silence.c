/* SPDX-License-Identifier: Apache-2.0 */
/* silence: law 4. When everybody who speaks is a victim, the rank that does not complain is the first suspect; when all
 * complain, the one that waited somewhere else is. Both need most of the world to be seen, or nobody is accused. */
#include "incident/silence.h"

#include <signal.h>
#include <string.h>

/* It failed on its own account: it complained, or ended by itself the way a Python exception does. */
static bool complained(const struct fr_rank *r)
{
    bool raised = r->has_exit && !r->stopped && r->exitcode == 1 && !fr_case_told_first(r->exit);
    return r->symptom != NULL || r->cause != NULL || raised;
}

/* The abort that a watchdog ends its process with. */
static bool aborted(const struct fr_rank *r)
{
    return r->has_exit && r->exitcode == -SIGABRT;
}

/* Waits of the start-up have classes of their own, which say more than "a rank stalled". */
static int32_t startup_class(const struct fr_case *c, int32_t failure)
{
    static const char *const prefixes[] = {"nccl-uid-store", "c10d-store", "c10d-clients", "store-based-barrier", "monitored-barrier", NULL};
    for (const char *const *p = prefixes; failure >= 0 && *p != NULL; p++) {
        if (strncmp(c->lib->failures[failure].id, *p, strlen(*p)) == 0) {
            return failure;
        }
    }
    return -1;
}

/* A class of its own that says who waits, and for what; -1: none. */
static int32_t wait_class(const struct fr_case *c, int32_t failure)
{
    bool hccl = failure >= 0 && failure == fr_case_class(c, "ascend-hccl-timeout");
    return hccl ? failure : startup_class(c, failure);
}

static void earliest(int64_t *at, int64_t ns)
{
    if (at != NULL && ns != FR_TIME_NONE && (*at == FR_TIME_NONE || ns < *at)) {
        *at = ns;
    }
}

/* It is late, not gone: peers wait in vain. Those of one that is gone may wait, too, but some see it go before that. */
static bool is_late(const struct fr_complaints *t)
{
    bool went_first = t->gone != FR_TIME_NONE && t->late != FR_TIME_NONE && t->gone < t->late - FR_NS_PER_S;
    return t->timeouts != 0 && !went_first;
}

static void count_complaints(const struct fr_case *c, struct fr_complaints *t)
{
    t->first = -1;
    t->late = t->gone = FR_TIME_NONE;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool quiet = o->e->level != FR_LEVEL_NONE && o->e->level < FR_LEVEL_WARN;
        if (o->attempt != c->attempt || o->recovered || quiet) {
            continue;
        }
        bool waited = o->meaning == FR_MEANS_SYMPTOM && wait_class(c, o->failure) >= 0;
        bool timeout = o->e->fact == FR_FACT_TIMEOUT || waited, closed = o->e->fact == FR_FACT_PEER_LOST;
        t->timeouts += timeout ? o->e->count : 0;
        t->closed += closed ? o->e->count : 0;
        earliest(timeout ? &t->late : closed ? &t->gone : NULL, o->e->outer.ns != FR_TIME_NONE ? o->e->outer.ns : o->e->when.ns);
        if (t->first < 0 && (timeout || closed || o->meaning == FR_MEANS_SYMPTOM)) {
            t->first = (int32_t)i;
        }
    }
}

static void count_ranks(const struct fr_case *c, struct fr_complaints *t)
{
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        t->confessed += r->cause != NULL && (r->cause->fatal || (r->has_exit && !r->stopped && r->exitcode < 0));
        if (complained(r)) {
            t->victims++;
        } else {
            if (t->suspects < 8) {
                t->suspect[t->suspects] = r;
            }
            t->suspects++;
        }
    }
}

/* The one that does not complain said why it died: then it is not silent, and the others' complaints speak for it. */
static bool has_spoken(struct fr_case *c, const struct fr_complaints *t)
{
    for (uint32_t i = 0; t->suspects == 1 && i < c->cands.n; i++) {
        struct fr_cand *k = &c->cands.v[i];
        if ((k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE) && k->ranks.n == 1 && k->ranks.v[0] == t->suspect[0]->rank) {
            k->score += 10;
            fr_cand_for(c, k, "%u of %u ranks complained of a peer, and this one did not", t->victims, c->ranks.n);
            return true;
        }
    }
    return false;
}

/* Peers were gone, but those that do not complain lived when the launcher saw the first end: they were not it. */
static bool all_outlived(const struct fr_complaints *t)
{
    bool all = t->timeouts == 0;
    for (uint32_t i = 0; i < t->suspects && i < 8; i++) {
        all &= t->suspect[i]->outlived;
    }
    return all;
}

/* Each rank has a file of its own, but not this one: its log is missing, which is not silence. */
static bool is_missing(const struct fr_case *c, const struct fr_rank *r)
{
    uint32_t own = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        own += c->ranks.v[i].src >= 0;
    }
    return r->src < 0 && r->life == NULL && own >= 2 && own + 1 >= c->ranks.n;
}

/* Where it stood. A traceback that lost its head or its exception does not tell. */
static const struct fr_trace *place_of(const struct fr_rank *r)
{
    return r->trace != NULL && !r->trace->truncated && r->trace->frames_hash != 0 ? r->trace : NULL;
}

/* Those that complained did not all wait at one place: any of them may be the one that the rest waited for. */
static bool places_differ(const struct fr_case *c)
{
    const struct fr_trace *one = NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_trace *t = place_of(&c->ranks.v[i]);
        if (t != NULL && one != NULL && t->frames_hash != one->frames_hash) {
            return true;
        }
        one = t != NULL ? t : one;
    }
    return false;
}

/* One of its threads had died of an exception while the rest went on; then it stood still. Say why, too. */
static void blame_thread(struct fr_case *c, const struct fr_rank *r)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool died = o->e->trace != NULL && o->e->trace->in_thread && o->e->line == o->e->trace->last_line;
        if (!died || o->attempt != c->attempt || o->rank != r->rank || o->failure < 0 || o->meaning != FR_MEANS_CAUSE) {
            continue;
        }
        struct fr_cand *k = fr_case_cand(c, o->failure, FR_GROUND_TRACE);
        if (k != NULL && k->obs.n == 0) {
            fr_cand_obs(c, k, i);
            fr_cand_rank(c, k, r->rank);
            k->score = 32;
            fr_cand_for(c, k, "a thread of rank %d ended by it, and later all others waited for that rank", r->rank);
        }
        return;
    }
}

static void accuse_silent(struct fr_case *c, const struct fr_complaints *t)
{
    int32_t f = wait_class(c, c->obs.v[t->first].failure);
    bool unheard = f < 0 && t->suspects == 1 && is_missing(c, t->suspect[0]);
    if (has_spoken(c, t) || all_outlived(t) || (unheard && places_differ(c))) {
        return;
    }
    bool stalled = is_late(t);
    bool finished = t->suspects == 1 && t->suspect[0]->done; /* it had fewer batches than the others, or left the loop early */
    f = f >= 0 ? f : fr_case_class(c, finished ? "uneven-inputs-hang" : stalled ? "rank-stalled" : "silent-exit");
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_SILENCE);
    if (k == NULL) {
        return;
    }
    fr_cand_obs(c, k, (uint32_t)t->first);
    bool ended = k->ground == FR_GROUND_EXIT && k->ranks.n == 1; /* one of them is seen to have ended by itself */
    for (uint32_t i = 0; i < t->suspects && !ended; i++) {
        fr_cand_rank(c, k, t->suspect[i]->rank);
    }
    k->ground = k->ground == FR_GROUND_EXIT || k->ground == FR_GROUND_ACCUSED ? k->ground : FR_GROUND_SILENCE;
    k->silent = true;
    double score = t->confessed != 0 ? 12 : 25; /* somebody confessed: silence is then only a possibility */
    k->score = k->score > score ? k->score : score;
    fr_cand_for(c, k, "%u of %u ranks complained that a peer was %s; only %s did not", t->victims, c->ranks.n,
                stalled ? "late" : "gone", t->suspects == 1 ? "this one" : "these");
    if (t->suspects == 1) {
        blame_thread(c, t->suspect[0]);
    }
}

/* Everybody complained. Who waited at another place of the program than all others? */
static const struct fr_rank *odd_place(const struct fr_case *c, const struct fr_rank **ret_usual)
{
    const struct fr_rank *odd = NULL;
    uint32_t differ = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        uint32_t same = 0, all = 0;
        for (uint32_t k = 0; k < c->ranks.n && all < 64; k++) {
            const struct fr_rank *s = &c->ranks.v[k];
            if (s != r && place_of(s) != NULL && place_of(r) != NULL) {
                all++;
                same += s->trace->frames_hash == r->trace->frames_hash;
            }
        }
        if (place_of(r) == NULL) {
            return NULL; /* who knows where that one was */
        }
        if (all >= 2 && same == 0) {
            odd = r;
            differ++;
        } else if (same != 0) {
            *ret_usual = r;
        }
    }
    return differ == 1 && *ret_usual != NULL ? odd : NULL;
}

/* It stands in a collective that its program called by name, not in a barrier: those that have no more work wait in barriers. */
static bool calls_collective(const struct fr_trace *t)
{
    static const char *const calls[] = {" all_reduce (", " all_gather", " broadcast", " reduce (", " reduce_scatter", " gather", " scatter",
                                        " all_to_all", NULL};
    for (const char *const *n = calls; *n != NULL; n++) {
        if (fr_sv_has(t->frames, fr_sv_z(*n)) && !fr_sv_has(t->frames, FR_SV(" barrier ("))) {
            return true;
        }
    }
    return false;
}

static void accuse_odd(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *usual = NULL, *odd = odd_place(c, &usual);
    bool called = odd != NULL && calls_collective(odd->trace) && !calls_collective(usual->trace);
    int32_t f = fr_case_class(c, called ? "rank-conditional-collective" : "uneven-inputs-hang");
    if (odd == NULL || f < 0) {
        return;
    }
    struct fr_cand *k = fr_case_cand(c, f, FR_GROUND_SILENCE);
    if (k == NULL) {
        return;
    }
    fr_cand_obs(c, k, (uint32_t)t->first);
    fr_cand_rank(c, k, odd->rank);
    k->ground = FR_GROUND_SILENCE;
    k->score = 28;
    fr_cand_for(c, k, "rank %d waited in %.*s (line %d) while the others were in %.*s (line %d)", odd->rank,
                FR_SV_ARG(odd->trace->func), odd->trace->line, FR_SV_ARG(usual->trace->func), usual->trace->line);
}

struct fr_cand *fr_silence_cand(struct fr_case *c, const struct fr_complaints *t, int32_t failure, double score)
{
    struct fr_cand *k = failure < 0 ? NULL : fr_case_cand(c, failure, FR_GROUND_SILENCE);
    if (k == NULL || k->ranks.n != 0) {
        return NULL;
    }
    k->ground = FR_GROUND_SILENCE;
    k->score = score;
    fr_cand_obs(c, k, (uint32_t)t->first);
    return k;
}

/* Everybody waited in vain, and one rank had said that it is done with its training while each other one trained on: it left the loop
 * that the others are in. */
static void accuse_finished(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *done = NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->done && done != NULL) {
            return;
        }
        done = r->done ? r : done;
    }
    int64_t last = done == NULL || t->timeouts == 0 ? -1 : done->last_step;
    for (uint32_t i = 0; last >= 0 && i < c->ranks.n; i++) {
        if (c->ranks.v[i].last_step < last - 1) {
            return; /* those who print nothing, or are behind, may be the ones that it waits for */
        }
    }
    struct fr_cand *k = fr_silence_cand(c, t, last < 0 ? -1 : fr_case_class(c, "uneven-inputs-hang"), 27);
    if (k == NULL) {
        return;
    }
    fr_cand_rank(c, k, done->rank);
    fr_cand_for(c, k, "rank %d said in step %lld that it is done with its training, and no other rank did", done->rank, (long long)last);
}

/* Every other rank waited in vain until its watchdog ended it, as its end shows where its words are lost; one was still running when the
 * launcher stopped it, long after the first had given up: it was not in that collective, or came to it last. */
static void accuse_spared(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *spared = NULL;
    int64_t stop = FR_TIME_NONE;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (aborted(r) || r->timeout != NULL) {
            continue;
        }
        if (spared != NULL || !r->has_exit || r->exitcode != -SIGTERM || complained(r)) {
            return;
        }
        spared = r;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        earliest(o->e->fact == FR_FACT_STOP_SENT && o->attempt == c->attempt ? &stop : NULL, o->e->when.ns);
    }
    bool late = spared != NULL && stop != FR_TIME_NONE && t->late != FR_TIME_NONE && stop - t->late >= 10 * FR_NS_PER_S;
    struct fr_cand *k = fr_silence_cand(c, t, late && c->ranks.n >= 3 ? fr_case_class(c, "rank-stalled") : -1, 20);
    if (k == NULL) {
        return;
    }
    k->silent = true;
    fr_cand_rank(c, k, spared->rank);
    fr_cand_for(c, k, "all others waited until their watchdogs ended them; only rank %d still ran %lld s later, when the launcher stopped it",
                spared->rank, (long long)((stop - t->late) / FR_NS_PER_S));
}

/* It may be gone: nothing is known of its end, and it complained of nobody. */
static bool is_lost(const struct fr_rank *r)
{
    return !complained(r) && !r->has_exit && !r->outlived && r->life != NULL;
}

/* Peers were gone. Several ranks say nothing, their launcher neither, and they are all that speak in one file: their node went. */
static void accuse_node(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *one = NULL;
    uint32_t lost = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (!is_lost(r)) {
            if (!complained(r) && !r->stopped && !r->outlived) {
                return;
            }
            continue;
        }
        if (one != NULL && r->life_src != one->life_src) {
            return;
        }
        one = r;
        lost++;
    }
    for (uint32_t i = 0; one != NULL && i < c->ranks.n; i++) { /* nobody else in that file */
        const struct fr_rank *r = &c->ranks.v[i];
        if (!is_lost(r) && r->life != NULL && r->life_src == one->life_src) {
            return;
        }
    }
    int32_t f = lost < 2 || t->timeouts != 0 || c->src_exits[one->life_src] != 0 ? -1 : fr_case_class(c, "silent-exit");
    struct fr_cand *k = fr_silence_cand(c, t, f, 20);
    if (k == NULL) {
        return;
    }
    k->silent = true;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        if (is_lost(&c->ranks.v[i])) {
            fr_cand_rank(c, k, c->ranks.v[i].rank);
        }
    }
    fr_cand_for(c, k, "%u ranks that share a log say nothing of an end, and their launcher neither; all others lost a peer or were stopped", lost);
}

/* Peers were gone. All ranks but one say so, or lived on; of that one no more is known than that it ended by itself. */
static void accuse_unheard(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *unheard = NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        bool ended = r->has_exit && !r->stopped && r->exitcode != 0 && r->symptom == NULL && !r->outlived;
        if ((!ended && r->symptom == NULL && !r->outlived) || (ended && unheard != NULL)) {
            return;
        }
        unheard = ended ? r : unheard;
    }
    int32_t f = unheard == NULL || t->timeouts != 0 || places_differ(c) ? -1 : fr_case_class(c, "silent-exit");
    struct fr_cand *k = fr_silence_cand(c, t, f, 20);
    if (k == NULL) {
        return;
    }
    k->silent = true;
    fr_cand_rank(c, k, unheard->rank);
    fr_cand_for(c, k, "all others lost a peer, and of rank %d no more is known than that it ended by itself", unheard->rank);
}

/* All waited at one place, all but one until their time was up; that one only lost a peer: it came when they had given up. Of a rank that is
 * gone nobody waits in vain, and one that waits with the others gives up when they do; of two, it may have waited for the other one. */
static void accuse_late(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *late = NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        bool found_gone = r->timeout == NULL && late == NULL && r->symptom != NULL && r->symptom->e->fact == FR_FACT_PEER_LOST;
        if (place_of(r) == NULL || (r->timeout == NULL && !found_gone)) {
            return;
        }
        late = r->timeout == NULL ? r : late;
    }
    struct fr_cand *k = late == NULL || c->ranks.n < 3 || places_differ(c) ? NULL : fr_silence_cand(c, t, fr_case_class(c, "rank-stalled"), 24);
    if (k == NULL) {
        return;
    }
    k->silent = true;
    fr_cand_rank(c, k, late->rank);
    fr_cand_for(c, k, "all others waited until their time was up; rank %d came to the same place later, and found them gone", late->rank);
}

/* The program's last word before the wait ran out: of all of it in one log, or of the rank in its own. */
static bool is_last_word(const struct fr_case *c, const struct fr_obs *o, const struct fr_obs *wait, const struct fr_rank *rank)
{
    bool training = c->set->sources.v[o->src]->metric_tail[0] >= o->e->line;
    bool here = o->src == wait->src && o->e->last_line <= wait->e->line + 3;
    return !training && (here || (rank != NULL && rank->src == (int32_t)o->src));
}

/* The one rank that all others wait for; NULL: that is not known. */
static const struct fr_rank *stalled_one(struct fr_case *c)
{
    int32_t stalled = fr_case_class(c, "rank-stalled");
    for (uint32_t i = 0; i < c->cands.n; i++) {
        const struct fr_cand *k = &c->cands.v[i];
        if (k->failure == stalled && k->ground == FR_GROUND_SILENCE && k->ranks.n == 1) {
            return fr_case_rank(c, k->ranks.v[0]);
        }
    }
    return NULL;
}

/* A wait that ran out while the log's last word of the program was "preparing data" or "saving": somebody was busy, not dead. */
static void busy_elsewhere(struct fr_case *c, const struct fr_complaints *t, const struct fr_rank *silent)
{
    static const char *const ids[] = {"slow-preprocessing-timeout", "slow-checkpoint-timeout", NULL};
    const struct fr_obs *wait = &c->obs.v[t->first];
    for (const char *const *id = ids; t->timeouts != 0 && *id != NULL; id++) {
        int32_t f = fr_case_class(c, *id);
        for (uint32_t i = 0; f >= 0 && i < c->obs.n; i++) {
            const struct fr_obs *o = &c->obs.v[i];
            if (o->failure != f || !is_last_word(c, o, wait, silent)) {
                continue;
            }
            struct fr_cand *k = fr_case_cand(c, f, FR_GROUND_SILENCE);
            if (k != NULL && k->score < 30) {
                k->ground = FR_GROUND_SILENCE;
                k->score = 30;
                k->silent = true;
                fr_cand_obs(c, k, (uint32_t)t->first);
                fr_cand_rank(c, k, silent != NULL ? silent->rank : o->rank);
                fr_cand_for(c, k, "the last thing the program said before the time-out is \"%.*s\"", (int)(o->e->text.n < 60 ? o->e->text.n : 60), o->e->text.p);
            }
            return;
        }
    }
}

/* Nobody's start-up came through, and of the ranks 0 to n one number is missing: it is what all others, rank 0 with the store among them,
 * wait for. */
static void accuse_gap(struct fr_case *c, const struct fr_complaints *t)
{
    int32_t f = startup_class(c, c->obs.v[t->first].failure), missing = -1, next = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++, next++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->symptom == NULL || startup_class(c, r->symptom->failure) < 0) {
            return;
        }
        if (r->rank != next && (missing >= 0 || r->rank != next + 1 || next == 0)) {
            return;
        }
        missing = r->rank != next ? next++ : missing;
    }
    struct fr_cand *k = fr_silence_cand(c, t, missing < 0 || c->ranks.n < 3 || c->world > next ? -1 : f, 20);
    if (k == NULL) {
        return;
    }
    k->silent = true;
    fr_cand_rank(c, k, missing);
    fr_cand_for(c, k, "ranks 0 to %d wait for each other at the start, all but rank %d, of which there is nothing", next - 1, missing);
}

void fr_case_silence(struct fr_case *c)
{
    struct fr_complaints t = {0};
    count_complaints(c, &t);
    if (t.first < 0) {
        fr_last_signs(c);
        return;
    }
    if (t.timeouts + t.closed == 0) {
        return;
    }
    count_ranks(c, &t);
    accuse_gap(c, &t);
    bool whole = c->ranks.n >= 2 && fr_case_is_whole(c); /* else there are ranks of which nothing is seen */
    bool most = whole && t.victims >= 2 && t.suspects * 4 <= c->ranks.n + 2;
    bool pair = whole && c->ranks.n == 2 && t.victims == 1 && t.timeouts == 1 && t.closed == 0 && t.suspect[0]->outlived; /* one waited, one still ran */
    if (t.suspects != 0 && t.suspects <= 8 && (most || pair)) {
        accuse_silent(c, &t);
    }
    if (t.suspects == 0 && t.victims >= 3 && t.confessed == 0 && whole) {
        accuse_odd(c, &t);
    }
    if (t.confessed == 0 && whole) {
        accuse_spared(c, &t);
        fr_accuse_busy(c, &t);
        accuse_late(c, &t);
        accuse_unheard(c, &t);
        accuse_node(c, &t);
        accuse_finished(c, &t);
    }
    busy_elsewhere(c, &t, most && t.suspects == 1 ? t.suspect[0] : stalled_one(c));
}
