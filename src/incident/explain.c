/* SPDX-License-Identifier: Apache-2.0 */
#include "incident/explain.h"

#include "base/buf.h"

#include "base/err.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVIDENCE_MAX = 8, HYPOTHESES_MAX = 6, INNOCENT_MAX = 5 };

static fr_sv dup(struct fr_report *r, fr_sv s)
{
    return fr_arena_dup(&r->arena, s);
}

static const char *signal_name(const struct fr_case *c, const struct fr_obs *o)
{
    return o->signal >= 0 ? c->lib->signals[o->signal].id : o->e->trace != NULL ? "traceback" : "fact";
}

static struct fr_quote quote(const struct fr_case *c, struct fr_report *r, const struct fr_obs *o)
{
    static const uint8_t roles[] = {FR_ROLE_CONTEXT, FR_ROLE_CAUSE, FR_ROLE_SYMPTOM, FR_ROLE_TEARDOWN};
    struct fr_quote q = {.source = dup(r, c->set->sources.v[o->src]->name), .line = o->e->line, .offset = o->e->offset,
                         .rank = o->rank, .when = o->e->when.basis != FR_TIME_BASIS_NONE ? o->e->when : o->e->outer,
                         .role = roles[o->meaning], .text = dup(r, o->e->text)};
    q.signal = o->failure >= 0 ? fr_arena_printf(&r->arena, "%s/%s", c->lib->failures[o->failure].id, signal_name(c, o))
                               : fr_arena_printf(&r->arena, "%s", signal_name(c, o));
    return q;
}

static struct fr_quote quote_finding(const struct fr_case *c, struct fr_report *r, const struct fr_cand *k)
{
    const struct fr_finding *f = k->finding;
    return (struct fr_quote){.source = dup(r, c->set->sources.v[k->finding_src]->name), .line = f->line, .offset = f->offset,
                             .rank = f->who.rank, .when = f->when, .role = FR_ROLE_CAUSE, .text = dup(r, f->text),
                             .signal = fr_arena_printf(&r->arena, "series:%s-%s", fr_metric_name((enum fr_metric)f->metric),
                                                       fr_finding_name((enum fr_finding_kind)f->kind))};
}

static void push_quote(struct fr_incident *in, struct fr_quote q)
{
    for (uint32_t i = 0; i < in->evidence.n; i++) {
        if (in->evidence.v[i].line == q.line && fr_sv_eq(in->evidence.v[i].source, q.source)) {
            return;
        }
    }
    struct fr_quote *slot = in->evidence.n < EVIDENCE_MAX ? FR_PUSH(&in->evidence) : NULL;
    if (slot != NULL) {
        *slot = q;
    }
}

/* Where it began to show: the first complaint, when the initiator itself was silent. */
static const struct fr_obs *first_complaint(const struct fr_case *c)
{
    const struct fr_obs *first = NULL;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool quiet = o->e->level != FR_LEVEL_NONE && o->e->level < FR_LEVEL_WARN;
        if (o->attempt != c->attempt || o->meaning != FR_MEANS_SYMPTOM || o->recovered || quiet) {
            continue;
        }
        bool timed = first != NULL && o->began != FR_TIME_NONE && first->began != FR_TIME_NONE && o->src == first->src;
        if (first == NULL || (timed && o->began + o->slack < first->began - first->slack)) {
            first = o;
        }
    }
    return first;
}

/* The first exception line of the traceback that a frame's hit belongs to: it says more than the frame. */
static const struct fr_obs *exception_of(const struct fr_case *c, const struct fr_cand *k, const struct fr_obs *frame)
{
    const struct fr_trace *t = frame->e->trace;
    bool is_frame = fr_sv_has(frame->e->text, FR_SV("File \""));
    bool is_inner = t != NULL && t->origin_line == frame->e->line && t->last_line < frame->e->line;
    for (uint32_t i = 0; is_inner && i < c->obs.n; i++) { /* a re-raised exception stands before the worker's own traceback */
        if (c->obs.v[i].e->trace == t && c->obs.v[i].e->line == t->last_line && c->obs.v[i].meaning == FR_MEANS_CAUSE) {
            return &c->obs.v[i];
        }
    }
    for (uint32_t i = 0; is_frame && i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (o->e->trace != NULL && o->e->trace == frame->e->trace && !fr_sv_has(o->e->text, FR_SV("File \""))) {
            return o;
        }
    }
    for (uint32_t i = 0; is_frame && t != NULL && i < c->obs.n; i++) { /* which may be of a more general class */
        if (c->obs.v[i].e->trace == t && c->obs.v[i].e->line == (t->origin_line != 0 ? t->origin_line : t->last_line)) {
            return &c->obs.v[i];
        }
    }
    return NULL;
}

/* What the same program said of the same class as a mere warning, with no training in between: there it began. */
static const struct fr_obs *precursor(const struct fr_case *c, const struct fr_cand *k, const struct fr_obs *own)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool trained = c->set->sources.v[own->src]->metric_tail[0] > o->e->line;
        bool quiet = o->e->level != FR_LEVEL_NONE && o->e->level < FR_LEVEL_WARN;
        bool aside = o->meaning == FR_MEANS_NOTHING || o->meaning == FR_MEANS_TEARDOWN || o->recovered;
        bool context = o->signal >= 0 && c->lib->signals[o->signal].role == FR_ROLE_CONTEXT; /* a sign of this class, however calmly it is told */
        bool said = o->failure == k->failure && aside && (!quiet || context) && o->attempt == c->attempt && o->src == own->src;
        if (said && !trained && o->e->line < own->e->line && (o->rank < 0 || own->rank < 0 || o->rank == own->rank)) {
            return o;
        }
    }
    return NULL;
}

/* What the launcher copied when the process was dead: its table's rows, the file that the process recorded its error in. */
static bool is_copy(const struct fr_case *c, const struct fr_obs *o)
{
    return o->e->in_row || fr_sv_ends(c->set->sources.v[o->src]->name, FR_SV("error.json"));
}

/* Its first line, rather of the process's own log than of a copy, and of tracebacks one that has an exception: where several processes
 * write between each other's lines, some are cut. */
static const struct fr_obs *first_whole(const struct fr_case *c, const struct fr_cand *k)
{
    const struct fr_obs *copy = NULL;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (!o->cut && !is_copy(c, o)) {
            return o;
        }
        copy = copy == NULL && !o->cut ? o : copy;
    }
    return copy != NULL ? copy : k->obs.n != 0 ? &c->obs.v[k->obs.v[0]] : NULL;
}

static void set_evidence(struct fr_case *c, const struct fr_cand *k, struct fr_report *r, struct fr_incident *in)
{
    const struct fr_obs *complaint = first_complaint(c);
    const struct fr_obs *own = first_whole(c, k);
    const struct fr_failure *f = fr_cand_class(c, k);
    bool earlier = complaint != NULL && own != NULL && complaint->src == own->src && complaint->e->line < own->e->line;
    bool waits = strcmp(f->category, "collective") == 0 || strcmp(f->category, "network") == 0 || strcmp(f->category, "scheduler") == 0;
    bool vague = waits && earlier && (f->weight <= 30 || k->ground == FR_GROUND_SYMPTOM); /* the first sign says as much as it does */
    const struct fr_obs *warned = own == NULL ? NULL : precursor(c, k, own);
    bool noticed = complaint != NULL && own != NULL && complaint->src == own->src && own->e->line < complaint->e->line; /* before any victim */
    if (warned != NULL && complaint != NULL && warned->src == complaint->src && warned->e->line < complaint->e->line) {
        push_quote(in, quote(c, r, warned));
    }
    if (complaint != NULL && ((k->silent && !noticed && (k->ground == FR_GROUND_EXIT || k->ground == FR_GROUND_ACCUSED)) || vague)) {
        push_quote(in, quote(c, r, complaint));
    }
    bool finding_first = k->finding != NULL && (k->obs.n == 0 || (c->obs.v[k->obs.v[0]].src == k->finding_src &&
                                                                  k->finding->line <= c->obs.v[k->obs.v[0]].e->line));
    if (finding_first) {
        push_quote(in, quote_finding(c, r, k));
    }
    if (warned != NULL) {
        push_quote(in, quote(c, r, warned));
    }
    const struct fr_obs *verdict = own == NULL ? NULL : exception_of(c, k, own);
    if (verdict != NULL) {
        push_quote(in, quote(c, r, verdict));
    }
    if (own != NULL) {
        push_quote(in, quote(c, r, own));
    }
    for (uint32_t i = 0; i < k->obs.n && in->evidence.n < EVIDENCE_MAX - 2; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (!o->cut || own->cut) {
            push_quote(in, quote(c, r, o));
        }
    }
    if (k->finding != NULL) {
        push_quote(in, quote_finding(c, r, k));
    }
    if (k->life != NULL) {
        push_quote(in, (struct fr_quote){.source = dup(r, c->set->sources.v[k->life_src]->name), .line = k->life->last_line,
                                         .rank = k->ranks.n == 1 ? k->ranks.v[0] : -1, .when = k->life->last, .role = FR_ROLE_PROGRESS,
                                         .signal = FR_SV("silence"), .text = dup(r, k->life->last_text)});
    }
    for (uint32_t i = 0; i < k->ranks.n && i < 4; i++) { /* how the launcher saw them end, and the kernel's word on them */
        struct fr_rank *rank = fr_case_rank(c, k->ranks.v[i]);
        if (rank != NULL && rank->exit != NULL) {
            push_quote(in, quote(c, r, rank->exit));
        }
    }
}

/* Law 3: what is known by silence began when the others began to wait, not when they had waited long enough to say so. */
static struct fr_when silent_since(const struct fr_case *c, struct fr_when said)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool waits = o->attempt == c->attempt && o->e->fact == FR_FACT_TIMEOUT && o->began != FR_TIME_NONE;
        bool dated = said.basis != FR_TIME_BASIS_NONE && said.basis != FR_TIME_BASIS_BOOT;
        if (waits && (!dated || o->began < said.ns)) {
            said = (struct fr_when){o->began, o->slack, FR_TIME_BASIS_WALL};
        }
    }
    return said;
}

static void set_initiator(struct fr_case *c, const struct fr_cand *k, struct fr_report *r, struct fr_incident *in)
{
    struct fr_initiator *it = &in->initiator;
    it->scope = k->scope;
    it->gpu = k->gpu;
    it->local_rank = k->local_rank;
    it->silent = k->silent;
    for (uint32_t i = 0; i < k->ranks.n; i++) {
        int32_t *slot = FR_PUSH(&it->ranks);
        if (slot != NULL) {
            *slot = k->ranks.v[i];
        }
    }
    fr_sv node = k->node;
    struct fr_rank *rank = k->ranks.n == 1 ? fr_case_rank(c, k->ranks.v[0]) : NULL;
    if (node.n == 0 && rank != NULL && rank->node >= 0) {
        node = c->nodes.v[rank->node].name;
    } else if (node.n == 0 && rank != NULL && rank->exit != NULL && rank->exit->node >= 0) {
        node = c->nodes.v[rank->exit->node].name; /* where its launcher saw it end */
    }
    it->node = dup(r, node);
    it->when = in->evidence.n != 0 ? in->evidence.v[0].when : FR_WHEN_NONE;
    if (k->silent) {
        it->when = silent_since(c, it->when);
    } else if (k->began != FR_TIME_NONE) {
        it->when = (struct fr_when){k->began, k->slack, FR_TIME_BASIS_WALL};
    }
}

static void set_collateral(struct fr_case *c, const struct fr_cand *k, struct fr_report *r, struct fr_incident *in)
{
    for (uint32_t i = 0; i < c->ranks.n && k->scope != FR_SCOPE_ALL_RANKS; i++) {
        const struct fr_rank *x = &c->ranks.v[i];
        bool guilty = false;
        for (uint32_t g = 0; g < k->ranks.n; g++) {
            guilty |= k->ranks.v[g] == x->rank;
        }
        const struct fr_obs *o = x->symptom != NULL ? x->symptom : x->exit;
        bool by_itself = x->symptom == NULL && x->has_exit && !x->stopped && x->exitcode != 0;
        bool open = k->scope == FR_SCOPE_UNKNOWN || k->n_unknown != 0; /* then it may be the one */
        if (guilty || o == NULL || (by_itself && open)) {
            continue;
        }
        struct fr_collateral *slot = FR_PUSH(&in->collateral);
        if (slot != NULL) {
            *slot = (struct fr_collateral){.rank = x->rank, .has_evidence = true, .evidence = quote(c, r, o)};
            slot->cls = dup(r, fr_sv_z(o->failure >= 0 ? c->lib->failures[o->failure].id : by_itself ? "ended-by-itself" : "stopped-by-launcher"));
        }
    }
}

static int cmp_score(const void *pa, const void *pb)
{
    const struct fr_cand *a = *(const struct fr_cand *const *)pa, *b = *(const struct fr_cand *const *)pb;
    return a->score != b->score ? (a->score < b->score ? 1 : -1) : (a > b) - (a < b);
}

/* slot: just pushed, NULL when that failed. */
static void put(struct fr_report *r, fr_sv *slot, fr_sv text)
{
    if (slot != NULL) {
        *slot = dup(r, text);
    }
}

static void set_hypotheses(struct fr_case *c, const struct fr_cand *k, struct fr_report *r, struct fr_incident *in)
{
    const struct fr_cand **order = FR_NEW_N(&c->arena, const struct fr_cand *, c->cands.n + 1);
    for (uint32_t i = 0; order != NULL && i < c->cands.n; i++) {
        order[i] = &c->cands.v[i];
    }
    if (order != NULL) {
        qsort(order, c->cands.n, sizeof *order, cmp_score);
    }
    for (uint32_t i = 0; order != NULL && i < c->cands.n && in->hypotheses.n < HYPOTHESES_MAX; i++) {
        struct fr_hypothesis *h = FR_PUSH(&in->hypotheses);
        if (h == NULL) {
            return;
        }
        *h = (struct fr_hypothesis){.cls = dup(r, fr_sv_z(fr_cand_class(c, order[i])->id)), .score = order[i]->score};
        for (uint32_t n = 0; n < order[i]->for_.n; n++) {
            put(r, FR_PUSH(&h->for_), order[i]->for_.v[n]);
        }
        for (uint32_t n = 0; n < order[i]->against.n; n++) {
            put(r, FR_PUSH(&h->against), order[i]->against.v[n]);
        }
    }
    (void)k;
}

static void set_innocent(struct fr_case *c, const struct fr_cand *k, struct fr_report *r, struct fr_incident *in)
{
    for (uint32_t i = 0; i < c->obs.n && in->not_the_cause.n < INNOCENT_MAX; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool loud = o->meaning == FR_MEANS_SYMPTOM || o->meaning == FR_MEANS_TEARDOWN || o->recovered;
        if (o->attempt != c->attempt || !loud || o->failure == k->failure || o->failure < 0) {
            continue;
        }
        bool told = false;
        const char *id = c->lib->failures[o->failure].id;
        for (uint32_t n = 0; n < in->not_the_cause.n; n++) {
            told |= fr_sv_starts(in->not_the_cause.v[n].at.signal, fr_sv_z(id));
        }
        struct fr_innocent *slot = told ? NULL : FR_PUSH(&in->not_the_cause);
        if (slot == NULL) {
            continue;
        }
        *slot = (struct fr_innocent){.text = dup(r, o->e->text), .at = quote(c, r, o)};
        slot->why = fr_arena_printf(&r->arena, "%s: %s", id,
                                    o->meaning == FR_MEANS_TEARDOWN ? "the launcher's or scheduler's reaction"
                                    : o->recovered                  ? "the program went on after it"
                                                                    : "what a process prints when another one has failed");
    }
}

static fr_sv who_text(struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_initiator *it = &in->initiator;
    char list[160] = "";
    size_t n = 0;
    for (uint32_t i = 0; i < it->ranks.n && n + 16 < sizeof list; i++) {
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%d", i == 0 ? "" : ", ", it->ranks.v[i]);
    }
    switch (it->scope) {
    case FR_SCOPE_RANK: return it->node.n != 0 ? fr_arena_printf(&r->arena, "Rank %s on %.*s", list, FR_SV_ARG(it->node))
                                               : fr_arena_printf(&r->arena, "Rank %s", list);
    case FR_SCOPE_RANKS: return fr_arena_printf(&r->arena, "Ranks %s%s", list, it->ranks.n * 5 > n ? ", ..." : "");
    case FR_SCOPE_ALL_RANKS: return FR_SV("All ranks alike");
    case FR_SCOPE_NODE: return it->node.n != 0 ? fr_arena_printf(&r->arena, "Node %.*s", FR_SV_ARG(it->node)) : FR_SV("A node the logs do not name");
    case FR_SCOPE_LAUNCHER: return FR_SV("The job as a whole");
    default: return it->local_rank >= 0 ? fr_arena_printf(&r->arena, "Local rank %d of a node the logs do not name", it->local_rank)
                                        : FR_SV("A process the logs do not identify");
    }
}

static fr_sv fingerprint(const struct fr_case *c, const struct fr_cand *k, struct fr_report *r)
{
    uint64_t h = fr_sv_hash(fr_sv_z(fr_cand_class(c, k)->id));
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_trace *t = c->obs.v[k->obs.v[i]].e->trace;
        if (t != NULL) {
            h = (h ^ t->frames_hash) * 0x100000001b3u ^ fr_sv_hash(t->exception);
            break;
        }
    }
    return fr_arena_printf(&r->arena, "%016llx", (unsigned long long)h);
}

static fr_sv why_first(const struct fr_cand *k, bool open, struct fr_report *r, const struct fr_incident *in)
{
    if (open && k->for_.n == 0) {
        return FR_SV("something failed or was stopped, and no line says why");
    }
    FR_AUTO(fr_buf) b = FR_BUF_INIT(2000);
    for (uint32_t i = 0; i < k->for_.n && i < 2; i++) {
        fr_buf_printf(&b, "%s%.*s", i == 0 ? "" : "; ", FR_SV_ARG(k->for_.v[i]));
    }
    if (in->collateral.n != 0) {
        fr_buf_printf(&b, "%sthe other %u rank%s seen to fail show%s only victims' texts", b.n != 0 ? "; " : "", in->collateral.n,
                      in->collateral.n == 1 ? "" : "s", in->collateral.n == 1 ? "s" : "");
    }
    return dup(r, fr_buf_sv(&b));
}

int fr_explain_incident(struct fr_case *c, int32_t best, struct fr_report *r)
{
    const struct fr_cand *k = &c->cands.v[best];
    const struct fr_failure *f = fr_cand_class(c, k);
    struct fr_incident *in = FR_PUSH(&r->incidents);
    if (in == NULL) {
        return -FR_NOMEM;
    }
    *in = (struct fr_incident){.attempt = c->attempts > 1 ? c->attempt : -1, .failure = f, .action = f->action, .confidence = NAN,
                               .resume_safe = -1, .first_bad_step = -1, .last_good_step = -1, .recurrences = 1};
    in->cls = dup(r, fr_sv_z(f->id));
    in->title = dup(r, fr_sv_z(f->title));
    in->category = dup(r, fr_sv_z(f->category));
    in->severity = dup(r, fr_sv_z(f->severity));
    in->layer = dup(r, fr_sv_z(f->layer));
    in->owner = dup(r, fr_sv_z(f->owner));
    in->fingerprint = fingerprint(c, k, r);
    if (k->finding != NULL) {
        in->first_bad_step = k->finding->step;
        in->last_good_step = k->finding->last_good_step;
    }
    set_evidence(c, k, r, in);
    set_initiator(c, k, r, in);
    const bool open = strcmp(f->id, "inconclusive") == 0; /* whose victims they are is then as unknown as the cause */
    if (!open) {
        set_collateral(c, k, r, in);
    }
    set_hypotheses(c, k, r, in);
    set_innocent(c, k, r, in);
    in->summary = fr_arena_printf(&r->arena, "%.*s failed first: %s.", FR_SV_ARG(who_text(r, in)), f->title);
    in->why_first = why_first(k, open, r, in);
    fr_explain_band(c, k, in);
    fr_explain_advice(c, k, in, r);
    return 0;
}

void fr_explain_lanes(struct fr_case *c, struct fr_report *r)
{
    const struct fr_incident *in = r->incidents.n != 0 ? &r->incidents.v[0] : NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *x = &c->ranks.v[i];
        struct fr_lane *l = FR_PUSH(&r->lanes);
        if (l == NULL) {
            return;
        }
        *l = (struct fr_lane){.rank = x->rank, .role = FR_LANE_FINE, .from_ns = FR_TIME_NONE, .to_ns = FR_TIME_NONE, .mark_ns = FR_TIME_NONE};
        l->label = fr_arena_printf(&r->arena, "rank %d", x->rank);
        if (x->life != NULL && x->life->first.basis != FR_TIME_BASIS_BOOT) {
            l->from_ns = x->life->first.ns;
            l->to_ns = x->life->last.ns;
        }
        const struct fr_obs *mark = x->cause != NULL ? x->cause : x->symptom;
        if (mark != NULL) {
            l->role = FR_LANE_COLLATERAL;
            l->mark_ns = mark->e->when.basis != FR_TIME_BASIS_NONE ? mark->e->when.ns : FR_TIME_NONE;
        } else if (x->life == NULL) {
            l->role = FR_LANE_UNKNOWN;
        }
        for (uint32_t g = 0; in != NULL && g < in->initiator.ranks.n; g++) {
            if (in->initiator.ranks.v[g] == x->rank) {
                l->role = FR_LANE_INITIATOR;
            }
        }
    }
}

void fr_explain_checked(const struct fr_case *c, struct fr_report *r)
{
    uint64_t points = 0, lines = 0;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        points += c->set->sources.v[i]->metric_points;
        lines += c->set->sources.v[i]->lines;
    }
    fr_sv texts[] = {
        fr_arena_printf(&r->arena, "%llu lines of %u sources against %u signals of %u failures", (unsigned long long)lines,
                        c->set->sources.n, c->lib->n_signals, c->lib->n_failures),
        fr_arena_printf(&r->arena, "%llu metric points for NaN, divergence, scale collapse, slow ranks and stalls", (unsigned long long)points),
        fr_arena_printf(&r->arena, "exits, time-outs and silence of %u ranks", c->ranks.n),
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        fr_sv *slot = FR_PUSH(&r->checked);
        if (slot != NULL) {
            *slot = texts[i];
        }
    }
}
