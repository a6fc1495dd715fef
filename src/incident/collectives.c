/* SPDX-License-Identifier: Apache-2.0 */
/* collectives: law 5. Reports that name the missing rank, statements that two ranks run different collectives, and counters:
 * who never reached the collective that everybody else waits in. */
#include "incident/case.h"

#include <signal.h>

/* The class of a report whose accusing line carries no signal of its own: that of its other lines. */
static int32_t reported_by(const struct fr_case *c)
{
    static const char *const reports[] = {"desync-debug-report", "horovod-stalled-ops"};
    for (size_t k = 0; k < sizeof reports / sizeof reports[0]; k++) {
        int32_t report = fr_case_class(c, reports[k]);
        for (uint32_t i = 0; report >= 0 && i < c->obs.n; i++) {
            if (c->obs.v[i].failure == report && c->obs.v[i].attempt == c->attempt) {
                return report;
            }
        }
    }
    return fr_case_class(c, "rank-stalled");
}

static void accuse(struct fr_case *c, uint32_t i, fr_sv list, double score)
{
    const struct fr_obs *o = &c->obs.v[i];
    int32_t f = o->failure >= 0 ? o->failure : reported_by(c);
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_ACCUSED);
    if (k == NULL) {
        return;
    }
    fr_cand_obs(c, k, i);
    while (list.n != 0) {
        uint64_t r;
        if (fr_sv_take_u64(&list, &r)) {
            fr_cand_rank(c, k, r < 1000000 ? (int32_t)r : -1);
        } else {
            list = fr_sv_skip(list, 1);
        }
    }
    if (k->score < score) {
        k->score = score;
        fr_cand_for(c, k, "a report names the rank that did not arrive");
    }
    k->ground = FR_GROUND_ACCUSED;
    k->silent = true;
    k->fatal = true;
}

static bool has_report(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->e->fact == FR_FACT_MISSING && o->attempt == c->attempt && !o->recovered && fr_event_text(o->e, FR_KEY_MISSING).n != 0) {
            return true;
        }
    }
    return false;
}

/* Something of it is in the logs, if only its end: else nobody knows what it said. */
static bool was_seen(const struct fr_case *c, int32_t rank, const struct fr_rank *r)
{
    bool seen = r != NULL && (r->life != NULL || r->src >= 0 || r->has_exit);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        seen |= o->e->fact == FR_FACT_EXIT && o->attempt == c->attempt && fr_event_num(o->e, FR_KEY_LOCAL_RANK, -1) == rank;
    }
    return seen;
}

/* "errors while waiting for rank 0": weak; counts only when nobody accuses another one and the accused did not complain itself. */
static void accuse_peer(struct fr_case *c)
{
    int32_t accused = -1;
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        int64_t peer = o->e->fact == FR_FACT_PEER_LOST ? fr_event_num(o->e, FR_KEY_PEER_RANK, -1) : -1;
        if (peer < 0 || o->attempt != c->attempt || o->recovered) {
            continue;
        }
        if (accused >= 0 && accused != (int32_t)peer) {
            return;
        }
        at = accused < 0 ? i : at;
        accused = (int32_t)peer;
    }
    struct fr_rank *r = accused >= 0 ? fr_case_rank(c, accused) : NULL;
    bool complained = r != NULL && (r->symptom != NULL || r->cause != NULL);
    if (accused < 0 || complained || !was_seen(c, accused, r) || c->obs.v[at].failure < 0) {
        return;
    }
    struct fr_cand *k = fr_case_cand(c, c->obs.v[at].failure, FR_GROUND_ACCUSED);
    if (k == NULL) {
        return;
    }
    fr_cand_obs(c, k, at);
    fr_cand_rank(c, k, accused);
    k->ground = FR_GROUND_ACCUSED;
    k->score = 15;
    k->silent = true;
    fr_cand_for(c, k, "every complaint that names a rank names rank %d, and rank %d printed no error of its own", accused, accused);
}

/* "op.preamble.length <= op.nbytes. 124 vs 4": what came, and what it had room for. */
static bool short_of_room(fr_sv text, uint64_t *ret_came, uint64_t *ret_room)
{
    static const fr_sv said = FR_SV("op.preamble.length <= op.nbytes. ");
    size_t at = fr_sv_find(text, said);
    fr_sv rest = at == FR_NPOS ? FR_SV_NONE : fr_sv_skip(text, at + said.n);
    return fr_sv_take_u64(&rest, ret_came) && fr_sv_take(&rest, FR_SV(" vs ")) && fr_sv_take_u64(&rest, ret_room);
}

/* The one rank that its launcher saw abort; -1: none, or several. */
static int32_t aborted_rank(const struct fr_case *c)
{
    int32_t rank = -1;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->has_exit && r->exitcode == -SIGABRT) {
            if (rank >= 0) {
                return -1;
            }
            rank = r->rank;
        }
    }
    return rank;
}

/* All tracebacks of those that lost a peer are of one place of the program, and there are two or more. */
static bool victims_agree(const struct fr_case *c, int32_t but)
{
    const struct fr_trace *one = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        const struct fr_trace *t = o->e->trace;
        if (o->attempt != c->attempt || t == NULL || t->kind != FR_TRACE_PYTHON || o->meaning != FR_MEANS_SYMPTOM || o->e->line != t->last_line) {
            continue;
        }
        bool outermost = fr_sv_eq(t->func, FR_SV("<module>")); /* the rest may be mixed up with another's, or the script is one file */
        if (outermost && t->library.n == 0) {
            continue;
        }
        bool same = one == NULL || (t->line == one->line && fr_sv_eq(t->file, one->file) && (!outermost || t->frames_hash == one->frames_hash));
        if ((o->rank >= 0 && o->rank == but) || t->line <= 0 || !same) {
            return false;
        }
        one = t;
        n++;
    }
    return n >= 2;
}

/* gloo aborts who gets more than it has room for. It had room for a number or two and got a tensor, so it stood in another call than
 * its neighbour; and where all others stand in one, the odd one is itself. Tensors that differ by less may be of either side. */
static void by_message(struct fr_case *c)
{
    enum { NUMBERS = 16 };
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        uint64_t came = 0, room = 0;
        if (o->attempt != c->attempt || o->meaning != FR_MEANS_CAUSE || !short_of_room(o->e->text, &came, &room) || room > NUMBERS ||
            came < 8 * room) {
            continue;
        }
        int32_t rank = o->rank >= 0 ? o->rank : aborted_rank(c);
        if (rank < 0 || !victims_agree(c, rank)) {
            return;
        }
        struct fr_cand *k = o->failure < 0 ? NULL : fr_case_cand(c, o->failure, FR_GROUND_COUNTERS);
        if (k != NULL) {
            fr_cand_obs(c, k, i);
            fr_cand_rank(c, k, rank);
            k->ground = FR_GROUND_COUNTERS;
            k->score = 60;
            fr_cand_for(c, k, "rank %d had room for %llu bytes and its neighbour sent %llu: it alone was in another call than all others", rank,
                        (unsigned long long)room, (unsigned long long)came);
        }
        return;
    }
}

/* Each statement says that two ranks differ: the odd one is in more statements than anybody else. */
static void vote_mismatch(struct fr_case *c)
{
    struct fr_cand *k = NULL;
    uint32_t *votes = FR_NEW_N(&c->arena, uint32_t, c->ranks.n + 1);
    for (uint32_t i = 0; votes != NULL && i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->e->fact != FR_FACT_MISMATCH || o->attempt != c->attempt) {
            continue;
        }
        enum fr_key keys[] = {FR_KEY_RANK, FR_KEY_PEER_RANK};
        for (int s = 0; s < 2; s++) {
            struct fr_rank *r = fr_case_rank(c, (int32_t)fr_event_num(o->e, keys[s], -1));
            if (r != NULL) {
                votes[r - c->ranks.v] += 1;
            }
        }
        int32_t f = o->failure >= 0 ? o->failure : fr_case_class(c, "collective-mismatch-detail");
        k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_COUNTERS);
        if (k != NULL) {
            fr_cand_obs(c, k, i);
        }
    }
    uint32_t best = 0, second = 0, at = 0;
    for (uint32_t i = 0; votes != NULL && i < c->ranks.n; i++) {
        if (votes[i] > best) {
            second = best;
            best = votes[i];
            at = i;
        } else if (votes[i] > second) {
            second = votes[i];
        }
    }
    if (k == NULL) {
        return;
    }
    k->ground = FR_GROUND_COUNTERS;
    k->score = 60;
    k->ranks.n = 0; /* everybody prints the statement: reporters are no subjects */
    if (best > second && best >= 2) {
        fr_cand_rank(c, k, c->ranks.v[at].rank);
        fr_cand_for(c, k, "rank %d is in %u of the statements that two ranks differ, no other rank in more than %u",
                    c->ranks.v[at].rank, best, second);
    } else {
        k->n_unknown++;
        fr_cand_against(c, k, "the statements are symmetric: they do not tell which side is wrong");
    }
}

/* Sends and receives are numbered by each rank for itself: stages of a pipeline have other numbers in the best of health. Megatron
 * sends and receives in batches, which NCCL calls coalesced; coalesced collectives of other groups are none. */
static bool is_p2p(const struct fr_rank *r)
{
    return fr_sv_eq(r->op, FR_SV("SEND")) || fr_sv_eq(r->op, FR_SV("RECV")) ||
           (fr_sv_eq(r->op, FR_SV("COALESCED")) && fr_sv_has(r->pg, FR_SV("PIPELINE")));
}

/* The first group that has counters of at least two ranks: numbers of different groups are never compared. */
static const struct fr_rank *lowest_counter(const struct fr_case *c, uint32_t *ret_known, uint32_t *ret_low)
{
    const struct fr_rank *low = NULL;
    uint32_t known = 0;
    fr_sv group = FR_SV_NONE;
    *ret_low = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->enqueued < 0 || is_p2p(r) || (known != 0 && !fr_sv_eq(group, r->pg))) {
            continue;
        }
        group = r->pg;
        known++;
        if (low == NULL || r->enqueued < low->enqueued) {
            low = r;
            *ret_low = 1;
        } else if (r->enqueued == low->enqueued) {
            ++*ret_low;
        }
    }
    *ret_known = known;
    return low;
}

/* The rank whose last enqueued collective is below the one everybody timed out in never got there; so did a few that stopped at the
 * same one: which of them was first is not known, but that it was one of them. */
static void by_counters(struct fr_case *c)
{
    uint32_t known, n_low;
    const struct fr_rank *low = lowest_counter(c, &known, &n_low);
    int64_t waited = -1;
    for (uint32_t i = 0; low != NULL && i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        waited = r->seq > waited && fr_sv_eq(r->pg, low->pg) ? r->seq : waited;
    }
    if (low == NULL || known < 2 || (n_low > 1 && n_low * 3 > known) || low->enqueued >= waited) {
        return;
    }
    int32_t f = fr_case_class(c, low->timeout == NULL ? "rank-stalled" : "collective-desync");
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_COUNTERS);
    if (k == NULL) {
        return;
    }
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r == low || (r->enqueued == low->enqueued && fr_sv_eq(r->pg, low->pg) && !is_p2p(r))) {
            fr_cand_rank(c, k, r->rank);
        }
    }
    k->ground = FR_GROUND_COUNTERS;
    k->score = 55;
    k->silent = low->timeout == NULL;
    for (uint32_t i = 0; i < c->ranks.n && k->obs.n < 3; i++) {
        if (c->ranks.v[i].timeout != NULL) {
            fr_cand_obs(c, k, (uint32_t)(c->ranks.v[i].timeout - c->obs.v));
        }
    }
    if (n_low == 1) {
        fr_cand_for(c, k, "rank %d had enqueued only %lld collectives when the others waited in number %lld", low->rank,
                    (long long)low->enqueued, (long long)waited);
    } else {
        fr_cand_for(c, k, "%u ranks had enqueued only %lld collectives when the others waited in number %lld", n_low,
                    (long long)low->enqueued, (long long)waited);
    }
}

/* Do both wait in the same? Collectives of equal parts have as many elements on every rank. */
static bool same_operation(const struct fr_rank *a, const struct fr_rank *b)
{
    static const char *const equal[] = {"ALLREDUCE", "BROADCAST", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE", "REDUCE", NULL};
    bool sized = false;
    for (const char *const *e = equal; *e != NULL; e++) {
        sized |= fr_sv_eq(a->op, fr_sv_z(*e));
    }
    return fr_sv_eq(a->op, b->op) && (!sized || a->numel < 0 || b->numel < 0 || a->numel == b->numel);
}

/* Same sequence number, another operation: the one rank that differs from everybody else. */
static void by_operation(struct fr_case *c)
{
    const struct fr_rank *odd = NULL, *usual = NULL;
    uint32_t n = 0, differ = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->seq < 0 || r->op.n == 0) {
            continue;
        }
        uint32_t same = 0, all = 0;
        for (uint32_t k = 0; k < c->ranks.n && all < 64; k++) {
            const struct fr_rank *s = &c->ranks.v[k];
            if (s != r && s->seq == r->seq && s->op.n != 0 && fr_sv_eq(s->pg, r->pg)) {
                all++;
                same += same_operation(s, r);
            }
        }
        n++;
        if (all >= 2 && same == 0) {
            odd = r;
            differ++;
        } else if (same != 0) {
            usual = r;
        }
    }
    int32_t f = fr_case_class(c, "collective-desync");
    if (differ != 1 || usual == NULL || n < 3 || f < 0) {
        return;
    }
    struct fr_cand *k = fr_case_cand(c, f, FR_GROUND_COUNTERS);
    if (k == NULL) {
        return;
    }
    k->ground = FR_GROUND_COUNTERS;
    k->score = 60;
    k->ranks.n = 0;
    fr_cand_rank(c, k, odd->rank);
    fr_cand_obs(c, k, (uint32_t)(odd->timeout - c->obs.v));
    if (fr_sv_eq(odd->op, usual->op)) {
        fr_cand_for(c, k, "rank %d waited in %.*s number %lld of %lld elements while the others' had %lld", odd->rank, FR_SV_ARG(odd->op),
                    (long long)odd->seq, (long long)odd->numel, (long long)usual->numel);
    } else {
        fr_cand_for(c, k, "rank %d waited in %.*s number %lld while the others waited in %.*s", odd->rank, FR_SV_ARG(odd->op),
                    (long long)odd->seq, FR_SV_ARG(usual->op));
    }
}

/* Everybody waits, each in one of two kinds: how many in collectives [0] and in sends and receives [1]. False: somebody's wait is not
 * known, or somebody has a cause of its own, or numbers are missing between the ranks: who is not seen may be the one. */
static bool waits_by_kind(const struct fr_case *c, uint32_t n[2])
{
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r->timeout == NULL || r->op.n == 0 || r->cause != NULL) {
            return false;
        }
        n[is_p2p(r)]++;
    }
    return c->ranks.n >= 2 && c->ranks.v[c->ranks.n - 1].rank + 1 == (int32_t)c->ranks.n;
}

/* Most wait in sends and receives, a few in a collective (they think that they are done with the others), or the other way round
 * (they wait for a microbatch that nobody has). A send that its sender has done was received, so it is the few whose schedule
 * differs. When all wait in sends and receives, two wait for each other, and the watchdog does not say which. */
static void by_kind(struct fr_case *c)
{
    uint32_t n[2] = {0};
    const bool known = waits_by_kind(c, n);
    const bool few = n[1] < n[0]; /* the kind of the few */
    const int32_t f = known && n[1] != 0 && n[few] * 3 <= c->ranks.n ? fr_case_class(c, "megatron-pp-stage-asymmetry-hang") : -1;
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_COUNTERS);
    const struct fr_rank *one = NULL;
    for (uint32_t i = 0; k != NULL && i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (is_p2p(r) == few || n[few] == 0) {
            fr_cand_rank(c, k, n[few] == 0 ? -1 : r->rank);
            fr_cand_obs(c, k, (uint32_t)(r->timeout - c->obs.v));
            one = one == NULL ? r : one;
        }
    }
    if (one == NULL) {
        return;
    }
    k->ground = FR_GROUND_COUNTERS;
    k->score = 60;
    if (n[few] == 0) {
        fr_cand_for(c, k, "all %u ranks wait in sends and receives of the pipeline, each for another", c->ranks.n);
        fr_cand_against(c, k, "the watchdog does not say for which neighbour a rank waits");
    } else {
        fr_cand_for(c, k, "rank %d waited in %.*s%s%.*s while all %u others waited in %s", one->rank, FR_SV_ARG(one->op),
                    one->pg.n != 0 ? " of " : "", FR_SV_ARG(one->pg), n[!few], few ? "collectives" : "sends and receives of the pipeline");
    }
}

/* A desync report lists several levels of lag: those furthest behind hold up the rest. */
static int64_t lowest_missed(const struct fr_case *c)
{
    int64_t lowest = INT64_MAX;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        int64_t seq = e->fact == FR_FACT_MISSING && c->obs.v[i].attempt == c->attempt ? fr_event_num(e, FR_KEY_SEQ, -1) : -1;
        lowest = seq >= 0 && seq < lowest ? seq : lowest;
    }
    return lowest;
}

static bool is_listed(fr_sv list, int32_t rank)
{
    uint64_t r;
    while (list.n != 0) {
        if (!fr_sv_take_u64(&list, &r)) {
            list = fr_sv_skip(list, 1);
        } else if (r == (uint64_t)rank) {
            return true;
        }
    }
    return false;
}

/* "[0, 1, 2, 3] joined but didn't finish collective #730" of all ranks there are: they wait for the network, not for each other. */
static bool holds_everybody(const struct fr_case *c, fr_sv list)
{
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        if (!is_listed(list, c->ranks.v[i].rank)) {
            return false;
        }
    }
    return c->ranks.n > 1;
}

void fr_case_collectives(struct fr_case *c)
{
    int64_t lowest = lowest_missed(c);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        fr_sv list = o->e->fact == FR_FACT_MISSING ? fr_event_text(o->e, FR_KEY_MISSING) : FR_SV_NONE;
        bool behind = fr_event_num(o->e, FR_KEY_SEQ, lowest) == lowest;
        if (list.n != 0 && o->attempt == c->attempt && !o->recovered && behind && !holds_everybody(c, list)) {
            accuse(c, i, list, 60);
        }
    }
    if (!has_report(c)) {
        accuse_peer(c);
    }
    vote_mismatch(c);
    by_message(c);
    by_counters(c);
    by_operation(c);
    by_kind(c);
}
