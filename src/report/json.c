/* SPDX-License-Identifier: Apache-2.0 */
/* json: the contract, schema/diagnosis.schema.json. Keys come in the order they are set; nothing is sorted.
 * Output is ASCII: characters beyond it are escaped, so quoted bytes stay what they were and still can't drive a terminal. */
#include "report/tree.h"
#include "report/words.h"

#include "failure/library.h"

static json_t *quote(const struct fr_quote *q)
{
    json_t *o = json_object();
    fr_tree_str(o, "source", q->source);
    fr_tree_set(o, "line", q->line > 0 ? json_integer((json_int_t)q->line) : json_null());
    fr_tree_int(o, "offset", (int64_t)q->offset);
    fr_tree_known(o, "rank", q->rank);
    fr_tree_when(o, &q->when);
    fr_tree_str(o, "role", fr_sv_z(fr_role_name((enum fr_role)q->role)));
    fr_tree_str(o, "signal", q->signal);
    fr_tree_str(o, "text", q->text);
    return o;
}

static json_t *list(const fr_sv *v, uint32_t n)
{
    json_t *a = json_array();
    for (uint32_t i = 0; i < n; i++) {
        fr_tree_push(a, fr_tree_text(v[i]));
    }
    return a;
}

static json_t *input(const struct fr_report *r)
{
    json_t *o = json_object(), *skipped = json_array();
    fr_tree_int(o, "sources", (int64_t)r->input.sources);
    fr_tree_int(o, "bytes", (int64_t)r->input.bytes);
    fr_tree_int(o, "lines", (int64_t)r->input.lines);
    fr_tree_int(o, "ranks_seen", r->input.ranks_seen);
    fr_tree_set(o, "world_size", r->input.world_size > 0 ? json_integer(r->input.world_size) : json_null());
    fr_tree_int(o, "nodes", r->input.nodes);
    for (uint32_t i = 0; i < r->input.skipped.n; i++) {
        json_t *s = json_object();
        fr_tree_str(s, "source", r->input.skipped.v[i].source);
        fr_tree_str(s, "why", r->input.skipped.v[i].why);
        fr_tree_push(skipped, s);
    }
    fr_tree_set(o, "skipped", skipped);
    return o;
}

static json_t *initiator(const struct fr_initiator *i)
{
    json_t *o = json_object(), *ranks = json_array();
    fr_tree_str(o, "scope", fr_sv_z(fr_scope_name((enum fr_scope)i->scope)));
    for (uint32_t k = 0; k < i->ranks.n; k++) {
        fr_tree_push(ranks, json_integer(i->ranks.v[k]));
    }
    fr_tree_set(o, "ranks", ranks);
    fr_tree_maybe(o, "node", i->node);
    fr_tree_known(o, "gpu", i->gpu);
    fr_tree_known(o, "local_rank", i->local_rank);
    fr_tree_when(o, &i->when);
    fr_tree_set(o, "silent", json_boolean(i->silent));
    return o;
}

static void add_lists(json_t *o, const struct fr_incident *in)
{
    json_t *evidence = json_array(), *collateral = json_array(), *hypotheses = json_array(), *innocent = json_array();
    for (uint32_t i = 0; i < in->evidence.n; i++) {
        fr_tree_push(evidence, quote(&in->evidence.v[i]));
    }
    for (uint32_t i = 0; i < in->collateral.n; i++) {
        const struct fr_collateral *c = &in->collateral.v[i];
        json_t *e = json_object();
        fr_tree_known(e, "rank", c->rank);
        fr_tree_maybe(e, "class", c->cls);
        fr_tree_set(e, "evidence", c->has_evidence ? quote(&c->evidence) : json_null());
        fr_tree_push(collateral, e);
    }
    for (uint32_t i = 0; i < in->hypotheses.n; i++) {
        const struct fr_hypothesis *h = &in->hypotheses.v[i];
        json_t *e = json_object();
        fr_tree_str(e, "class", h->cls);
        fr_tree_real(e, "score", h->score);
        fr_tree_set(e, "for", list(h->for_.v, h->for_.n));
        fr_tree_set(e, "against", list(h->against.v, h->against.n));
        fr_tree_push(hypotheses, e);
    }
    for (uint32_t i = 0; i < in->not_the_cause.n; i++) {
        const struct fr_innocent *n = &in->not_the_cause.v[i];
        json_t *e = json_object();
        fr_tree_str(e, "text", n->text);
        fr_tree_str(e, "why", n->why);
        fr_tree_set(e, "at", n->at.source.n > 0 ? quote(&n->at) : json_null());
        fr_tree_push(innocent, e);
    }
    fr_tree_set(o, "evidence", evidence);
    fr_tree_set(o, "collateral", collateral);
    fr_tree_set(o, "hypotheses", hypotheses);
    fr_tree_set(o, "not_the_cause", innocent);
}

static void add_page(json_t *o, const struct fr_failure *f)
{
    json_t *fix = json_object(), *verify = json_object();
    fr_tree_maybe(fix, "primary", fr_sv_z(f != NULL ? f->fix_primary : NULL));
    fr_tree_maybe(fix, "fallback", fr_sv_z(f != NULL ? f->fix_fallback : NULL));
    fr_tree_maybe(fix, "emergency", fr_sv_z(f != NULL ? f->fix_emergency : NULL));
    fr_tree_set(o, "fix", fix);
    fr_tree_maybe(verify, "command", fr_sv_z(f != NULL ? f->verify_command : NULL));
    fr_tree_set(verify, "expect", fr_tree_strings(f != NULL ? f->verify_expect : NULL));
    fr_tree_set(verify, "absent", fr_tree_strings(f != NULL ? f->verify_absent : NULL));
    fr_tree_set(o, "verify", verify);
    fr_tree_set(o, "prevent", fr_tree_strings(f != NULL ? f->prevent : NULL));
}

static json_t *incident(const struct fr_incident *in)
{
    json_t *o = json_object(), *confidence = json_object(), *resume = json_object();
    fr_tree_known(o, "attempt", in->attempt);
    fr_tree_str(o, "class", in->cls);
    fr_tree_str(o, "title", in->title);
    fr_tree_str(o, "category", in->category);
    fr_tree_str(o, "severity", in->severity);
    fr_tree_str(o, "layer", in->layer);
    fr_tree_str(o, "owner", in->owner);
    fr_tree_str(o, "action", fr_sv_z(fr_action_name((enum fr_action)in->action)));
    fr_tree_str(o, "fingerprint", in->fingerprint);
    fr_tree_str(confidence, "band", fr_sv_z(fr_band_name((enum fr_band)in->band)));
    fr_tree_real(confidence, "value", in->confidence);
    fr_tree_set(o, "confidence", confidence);
    fr_tree_str(o, "summary", in->summary);
    fr_tree_str(o, "why_first", in->why_first);
    fr_tree_set(o, "initiator", initiator(&in->initiator));
    add_lists(o, in);
    add_page(o, in->failure);
    fr_tree_set(resume, "safe", in->resume_safe < 0 ? json_null() : json_boolean(in->resume_safe));
    fr_tree_maybe(resume, "why", in->resume_why);
    fr_tree_maybe(resume, "checkpoint", in->resume_checkpoint);
    fr_tree_set(o, "resume", resume);
    fr_tree_known(o, "first_bad_step", in->first_bad_step);
    fr_tree_known(o, "last_good_step", in->last_good_step);
    fr_tree_int(o, "recurrences", in->recurrences > 0 ? in->recurrences : 1);
    fr_tree_set(o, "collect_next", list(in->collect_next.v, in->collect_next.n));
    return o;
}

/* {"loss": [{rank, points, first_step, last_step, last}]}: a list, because more than one rank may report a metric. */
static json_t *metrics(const struct fr_report *r)
{
    json_t *o = json_object();
    for (uint32_t i = 0; i < r->metrics.n; i++) {
        const struct fr_metric_summary *m = &r->metrics.v[i];
        json_t *e = json_object();
        fr_tree_known(e, "rank", m->rank);
        fr_tree_int(e, "points", m->points);
        fr_tree_known(e, "first_step", m->first_step);
        fr_tree_known(e, "last_step", m->last_step);
        fr_tree_real(e, "last", m->last);
        fr_tree_push(fr_tree_array_at(o, m->name), e);
    }
    return o;
}

static int write_json(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                      struct fr_err *err)
{
    json_t *root = fr_tree_root(), *incidents = json_array(), *timings = json_object();
    fr_tree_str(root, "schema", FR_SV("faultrank.report/1"));
    fr_tree_str(root, "verdict", fr_sv_z(fr_verdict_name((enum fr_verdict)r->verdict)));
    fr_tree_set(root, "input", input(r));
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        fr_tree_push(incidents, incident(&r->incidents.v[i]));
    }
    fr_tree_set(root, "incidents", incidents);
    fr_tree_set(root, "metrics", metrics(r));
    fr_tree_set(root, "checked", list(r->checked.v, r->checked.n));
    fr_tree_real(timings, "read_s", o->timings ? r->timings.read_s : 0);
    fr_tree_real(timings, "decide_s", o->timings ? r->timings.decide_s : 0);
    fr_tree_set(root, "timings", timings);
    return fr_tree_dump(root, out, err);
}

const struct fr_writer fr_writer_json = {
    .name = "json",
    .summary = "the whole report for programs, by schema/diagnosis.schema.json",
    .mime = "application/json",
    .extension = "json",
    .write = write_json,
};
