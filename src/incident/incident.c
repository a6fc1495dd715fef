/* SPDX-License-Identifier: Apache-2.0 */
#include "incident/incident.h"

#include "base/buf.h"

#include "incident/case.h"
#include "incident/explain.h"

static bool is_agents_word(const struct fr_event *e)
{
    return e->fact == FR_FACT_EXIT && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("agent"));
}

static bool is_root_row(const struct fr_event *e)
{
    return e->fact == FR_FACT_EXIT && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("table-root"));
}

/* An agent whose lines bear no pid (PyTorch 1.x) is known by its report, which each writes once, at its end. */
static bool is_only_agent(const struct fr_source_evidence *s)
{
    uint32_t reports = 0;
    for (uint32_t i = 0; i < s->events.n; i++) {
        reports += is_root_row(&s->events.v[i]);
    }
    return reports == 1;
}

/* torchrun restarts without a word at its usual log level: the next thing it says is that another child failed. Events are in the order
 * of their lines. */
static bool restarts_after(const struct fr_source_evidence *s, uint32_t k)
{
    const struct fr_event *e = &s->events.v[k];
    if (!is_agents_word(e) || (e->who.pid < 0 && !is_only_agent(s))) {
        return false;
    }
    for (uint32_t i = k + 1; i < s->events.n; i++) {
        const struct fr_event *next = &s->events.v[i];
        if (next->fact == FR_FACT_ATTEMPT || is_root_row(next)) {
            return false;
        }
        if (is_agents_word(next) && next->who.pid == e->who.pid && next->line > e->line &&
            fr_event_num(next, FR_KEY_PID, -1) != fr_event_num(e, FR_KEY_PID, -1)) {
            return true;
        }
    }
    return false;
}

static void fill_obs(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        int32_t attempt = s->attempt >= 0 ? s->attempt : 0;
        for (uint32_t k = 0; k < s->events.n; k++) {
            struct fr_obs *o = FR_PUSH(&c->obs);
            if (o == NULL) {
                c->nomem = true;
                return;
            }
            if (s->events.v[k].fact == FR_FACT_ATTEMPT && s->attempt < 0) {
                int64_t said = fr_event_num(&s->events.v[k], FR_KEY_ATTEMPT, -1);
                attempt = said >= 0 && said < 1000 ? (int32_t)said : attempt + 1;
            }
            *o = (struct fr_obs){.e = &s->events.v[k], .src = i, .rank = -1, .subject = -1, .node = -1, .attempt = attempt,
                                 .failure = -1, .signal = -1, .began = FR_TIME_NONE};
            c->attempts = attempt + 1 > c->attempts ? attempt + 1 : c->attempts;
            attempt += s->attempt < 0 && restarts_after(s, k);
        }
    }
}

static void clear_attempt(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        fr_vec_free(c->cands.v[i].obs.v);
        fr_vec_free(c->cands.v[i].ranks.v);
        fr_vec_free(c->cands.v[i].for_.v);
        fr_vec_free(c->cands.v[i].against.v);
    }
    c->cands.n = 0;
    c->ranks.n = 0;
    c->failed = false;
}

/* The launcher itself was told to stop, or the scheduler says that it cancelled the job: the cause is outside these logs, and that much
 * is known. */
static int32_t told_to_stop(const struct fr_case *c)
{
    int32_t told = -1;
    bool died = false, ordered = false;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt != c->attempt) {
            continue;
        }
        if (o->e->fact == FR_FACT_SCHEDULER && o->failure >= 0 && !ordered) {
            told = o->failure; /* who told the launcher, where both speak */
            ordered = true;
        } else if (o->e->fact == FR_FACT_STOP_RECEIVED && !ordered) {
            told = fr_case_class(c, "torchrun-sigterm-cascade");
        }
        int64_t code = o->e->fact == FR_FACT_EXIT ? fr_event_num(o->e, FR_KEY_EXITCODE, 0) : 0;
        died |= code != 0 && code != -15; /* srun's "Terminated": it obeyed */
    }
    return died ? -1 : told;
}

/* Why is not said, but who: each launcher's table has the time of its first one. */
static bool earliest_table(struct fr_case *c, struct fr_cand *k)
{
    int64_t lead = 0;
    const struct fr_rank *r = fr_case_has_complaints(c) ? NULL : fr_case_ended_first(c, &lead);
    if (r != NULL) {
        k->scope = FR_SCOPE_RANK;
        fr_cand_obs(c, k, (uint32_t)(r->exit - c->obs.v));
        fr_cand_rank(c, k, r->rank);
        fr_cand_for(c, k, "rank %d ended %lld s before any other one, and no line says why", r->rank, (long long)(lead / FR_NS_PER_S));
    }
    return r != NULL;
}

/* Something ended that should not have, and nothing says why: the page of the verdict, what was seen, what to collect. */
static int abstain(struct fr_case *c, struct fr_report *r)
{
    int32_t told = told_to_stop(c);
    int32_t f = told >= 0 ? told : fr_case_class(c, "inconclusive");
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_SYMPTOM);
    bool placed = k != NULL && told < 0 && earliest_table(c, k);
    for (uint32_t i = 0; k != NULL && !placed && i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool says = o->meaning == FR_MEANS_TEARDOWN || (o->e->fact == FR_FACT_EXIT && fr_event_num(o->e, FR_KEY_EXITCODE, 0) != 0);
        if (o->attempt == c->attempt && says) {
            fr_cand_obs(c, k, i);
        }
    }
    if (k != NULL && told >= 0) {
        k->scope = fr_cand_class(c, k)->scope;
    }
    return k == NULL ? 0 : fr_explain_incident(c, (int32_t)(k - c->cands.v), r);
}

static int decide_attempt(struct fr_case *c, struct fr_report *r)
{
    clear_attempt(c);
    fr_case_ranks(c);
    fr_case_causes(c);
    fr_case_exits(c);
    fr_case_collectives(c);
    fr_case_silence(c);
    fr_case_stacks(c);
    fr_case_symptoms(c);
    fr_case_adopt(c);
    int32_t best = fr_case_judge(c);
    if (best >= 0) {
        return fr_explain_incident(c, best, r);
    }
    return c->failed ? abstain(c, r) : 0;
}

static void count_recurrences(struct fr_report *r)
{
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < r->incidents.n; k++) {
            n += fr_sv_eq(r->incidents.v[i].fingerprint, r->incidents.v[k].fingerprint);
        }
        r->incidents.v[i].recurrences = n;
    }
}

/* What a source had that is not in the evidence: no limit is hit in silence. */
static void note_limits(const struct fr_source_evidence *s, struct fr_report *r)
{
    FR_AUTO(fr_buf) why = FR_BUF_INIT(400);
    if (s->flags & FR_SRC_TRUNCATED) {
        fr_buf_addz(&why, "only a part: it ends in the middle, cut short or changed while it was read");
    }
    if (s->dropped_events != 0) {
        fr_buf_printf(&why, "%sonly a part: %u further events were counted, not kept", why.n != 0 ? "; " : "", s->dropped_events);
    } else if (s->flags & FR_SRC_LIMIT) {
        fr_buf_printf(&why, "%sonly a part: a limit was reached (too many speakers, or too much from one archive)", why.n != 0 ? "; " : "");
    }
    if (s->flags & FR_SRC_SERIES) {
        fr_buf_printf(&why, "%sonly a part of its metrics: more processes print them, or more stands out, than is followed", why.n != 0 ? "; " : "");
    }
    struct fr_skipped *slot = why.n == 0 ? NULL : FR_PUSH(&r->input.skipped);
    if (slot != NULL) {
        slot->source = fr_arena_dup(&r->arena, s->name);
        slot->why = fr_arena_dup(&r->arena, fr_buf_sv(&why));
    }
}

static void fill_input(struct fr_case *c, struct fr_report *r)
{
    r->input.sources = c->set->sources.n;
    r->input.world_size = c->world;
    r->input.nodes = (int32_t)c->nodes.n;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        r->input.bytes += s->bytes;
        r->input.lines += s->lines;
        for (uint32_t k = 0; k < s->metrics.n && r->metrics.n < 1000; k++) {
            struct fr_metric_summary *m = FR_PUSH(&r->metrics);
            if (m != NULL) {
                *m = s->metrics.v[k];
                m->name = fr_arena_dup(&r->arena, m->name);
                m->rank = m->rank < 0 ? c->src_rank[i] : m->rank;
            }
        }
    }
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        r->input.ranks_seen += c->ranks.v[i].life != NULL || c->ranks.v[i].symptom != NULL;
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        note_limits(c->set->sources.v[i], r);
    }
    for (uint32_t i = 0; i < c->set->skipped.n; i++) {
        struct fr_skipped *s = FR_PUSH(&r->input.skipped);
        if (s != NULL) {
            s->source = fr_arena_dup(&r->arena, c->set->skipped.v[i].source);
            s->why = fr_arena_dup(&r->arena, c->set->skipped.v[i].why);
        }
    }
}

/* One byte of text, at least: a file of NULs is no log of a healthy run. */
static bool has_text(const struct fr_evidence_set *set)
{
    for (uint32_t i = 0; i < set->sources.n; i++) {
        const fr_sv s = set->sources.v[i]->last_text;
        for (size_t k = 0; k < s.n; k++) {
            if ((unsigned char)s.p[k] > ' ') {
                return true;
            }
        }
    }
    return false;
}

/* Teardown alone (or nothing but an exit number) is no diagnosis: the report says so and what to collect. */
static void set_verdict(const struct fr_evidence_set *set, struct fr_report *r)
{
    r->verdict = r->incidents.n != 0 || !has_text(set) ? FR_VERDICT_INCONCLUSIVE : FR_VERDICT_HEALTHY;
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        if (!fr_sv_eq(r->incidents.v[i].cls, FR_SV("inconclusive"))) {
            r->verdict = FR_VERDICT_FAILURE;
        }
    }
}

int fr_incident_decide(const struct fr_evidence_set *set, const struct fr_library *lib, struct fr_report *ret, struct fr_err *err)
{
    struct fr_case c = {.set = set, .lib = lib, .world = -1, .attempts = 1};
    int rc = 0;
    *ret = (struct fr_report){0};
    fill_obs(&c);
    fr_case_identify(&c);
    fr_case_timeline(&c);
    fr_case_classify(&c);
    for (c.attempt = 0; c.attempt < c.attempts && rc == 0 && !c.nomem; c.attempt++) {
        rc = decide_attempt(&c, ret);
    }
    if (rc == 0 && !c.nomem) {
        fill_input(&c, ret);
        count_recurrences(ret);
        set_verdict(set, ret);
        fr_explain_lanes(&c, ret);
        fr_explain_checked(&c, ret);
    }
    clear_attempt(&c);
    fr_vec_free(c.cands.v);
    fr_vec_free(c.obs.v);
    fr_vec_free(c.ranks.v);
    fr_vec_free(c.nodes.v);
    fr_arena_release(&c.arena);
    if (rc != 0 || c.nomem) {
        fr_report_release(ret);
        return fr_err_set(err, FR_NOMEM, "out of memory while deciding");
    }
    return 0;
}
