/* SPDX-License-Identifier: Apache-2.0 */
/* sarif: SARIF 2.1.0, one result per incident, for code scanning pages and editors. The files are the logs. */
#include "report/tree.h"
#include "report/words.h"

#include "failure/render.h"
#include "faultrank/faultrank.h"

#include <inttypes.h>

#define RELATED_MAX 64 /* viewers show a list; thousands of victims say no more than some */

static json_t *text_object(fr_sv s)
{
    json_t *o = json_object();
    fr_tree_str(o, "text", s);
    return o;
}

static json_t *text_buffer(const struct fr_buf *b)
{
    json_t *o = json_object();
    fr_tree_buf(o, "text", b);
    return o;
}

static json_t *location(const struct fr_quote *q)
{
    json_t *o = json_object(), *physical = json_object(), *artifact = json_object(), *region = json_object();
    fr_tree_uri(artifact, "uri", q->source);
    fr_tree_set(physical, "artifactLocation", artifact);
    fr_tree_int(region, "startLine", q->line > 0 ? (int64_t)q->line : 1);
    fr_tree_set(region, "snippet", text_object(q->text));
    fr_tree_set(physical, "region", region);
    fr_tree_set(o, "physicalLocation", physical);
    return o;
}

/* A location that a viewer lists beside the result; ids keep equal ones apart, as the schema asks. */
static void push_related(json_t *related, const struct fr_quote *q, const char *what)
{
    json_t *o = location(q);
    FR_AUTO(fr_buf) message = FR_BUF_INIT(0);
    fr_buf_addz(&message, what);
    if (q->rank >= 0) {
        fr_buf_printf(&message, ", rank %" PRId32, q->rank);
    }
    fr_tree_int(o, "id", (int64_t)json_array_size(related) + 1);
    fr_tree_set(o, "message", text_buffer(&message));
    fr_tree_push(related, o);
}

static json_t *rule(const struct fr_incident *in)
{
    json_t *o = json_object(), *properties = json_object(), *tags = json_array();
    const struct fr_failure *f = in->failure;
    fr_sv quick = fr_body_section(f->body, "Quick answer");
    FR_AUTO(fr_buf) help = FR_BUF_INIT(0);
    fr_tree_str(o, "id", in->cls);
    fr_tree_set(o, "shortDescription", text_object(in->title.n > 0 ? in->title : in->cls));
    if (quick.n > 0) {
        fr_tree_set(o, "fullDescription", text_object(quick));
    }
    fr_words_addz(&help, f->fix_primary != NULL ? f->fix_primary : "faultrank explain shows the page of this failure.");
    fr_tree_set(o, "help", text_buffer(&help));
    fr_tree_push(tags, fr_tree_text(in->category));
    if (!fr_sv_eq(in->category, in->layer)) {
        fr_tree_push(tags, fr_tree_text(in->layer));
    }
    fr_tree_set(properties, "tags", tags);
    fr_tree_set(o, "properties", properties);
    return o;
}

static const char *level_of(const struct fr_report *r, const struct fr_incident *in)
{
    if (r->verdict != FR_VERDICT_FAILURE) {
        return "none"; /* SARIF asks for this where kind is not "fail" */
    }
    return fr_sv_eq(in->severity, FR_SV("info"))  ? "note"
           : fr_sv_eq(in->severity, FR_SV("low")) ? "warning"
                                                  : "error";
}

static json_t *result(const struct fr_report *r, const struct fr_incident *in, unsigned rule_index)
{
    json_t *o = json_object(), *locations = json_array(), *related = json_array(), *prints = json_object();
    json_t *properties = json_object();
    FR_AUTO(fr_buf) message = FR_BUF_INIT(0);
    fr_tree_str(o, "ruleId", in->cls);
    fr_tree_int(o, "ruleIndex", rule_index);
    fr_tree_str(o, "kind", r->verdict == FR_VERDICT_FAILURE ? FR_SV("fail") : FR_SV("open"));
    fr_tree_str(o, "level", fr_sv_z(level_of(r, in)));
    fr_words_headline(&message, r, in);
    fr_buf_addz(&message, ". ");
    fr_words_action(&message, r, in);
    fr_tree_set(o, "message", text_buffer(&message));
    if (in->evidence.n > 0) {
        fr_tree_push(locations, location(&in->evidence.v[0]));
    }
    for (uint32_t i = 1; i < in->evidence.n; i++) {
        push_related(related, &in->evidence.v[i], "evidence");
    }
    for (uint32_t i = 0; i < in->collateral.n && json_array_size(related) < RELATED_MAX; i++) {
        if (in->collateral.v[i].has_evidence) {
            push_related(related, &in->collateral.v[i].evidence, "victim");
        }
    }
    fr_tree_set(o, "locations", locations);
    fr_tree_set(o, "relatedLocations", related);
    if (in->fingerprint.n > 0) {
        fr_tree_str(prints, "faultrank/v1", in->fingerprint);
    }
    fr_tree_set(o, "partialFingerprints", prints);
    fr_tree_str(properties, "confidence", fr_sv_z(fr_band_name((enum fr_band)in->band)));
    fr_tree_str(properties, "action", fr_sv_z(fr_action_name((enum fr_action)in->action)));
    fr_tree_str(properties, "owner", in->owner);
    fr_tree_set(o, "properties", properties);
    return o;
}

static json_t *invocation(const struct fr_report *r)
{
    json_t *o = json_object(), *notes = json_array();
    fr_tree_set(o, "executionSuccessful", json_true());
    for (uint32_t i = 0; i < r->input.skipped.n; i++) {
        json_t *n = json_object();
        FR_AUTO(fr_buf) message = FR_BUF_INIT(0);
        fr_buf_addz(&message, "not read: ");
        fr_words_add(&message, r->input.skipped.v[i].source);
        fr_buf_addz(&message, ": ");
        fr_words_add(&message, r->input.skipped.v[i].why);
        fr_tree_str(n, "level", FR_SV("warning"));
        fr_tree_set(n, "message", text_buffer(&message));
        fr_tree_push(notes, n);
    }
    fr_tree_set(o, "toolExecutionNotifications", notes);
    return o;
}

/* Rules are listed once each; the index of in's rule. */
static unsigned rule_index(const struct fr_report *r, uint32_t incident, json_t *rules)
{
    unsigned index = 0;
    for (uint32_t i = 0; i < incident; i++) {
        if (fr_sv_eq(r->incidents.v[i].cls, r->incidents.v[incident].cls)) {
            return index;
        }
        bool seen = false;
        for (uint32_t k = 0; k < i; k++) {
            seen |= fr_sv_eq(r->incidents.v[k].cls, r->incidents.v[i].cls);
        }
        index += !seen;
    }
    fr_tree_push(rules, rule(&r->incidents.v[incident]));
    return index;
}

static int write_sarif(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                       struct fr_err *err)
{
    json_t *root = fr_tree_root(), *runs = json_array(), *run = json_object(), *tool = json_object();
    json_t *driver = json_object(), *rules = json_array(), *results = json_array(), *invocations = json_array();
    (void)o;
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        unsigned index = rule_index(r, i, rules);
        fr_tree_push(results, result(r, &r->incidents.v[i], index));
    }
    fr_tree_str(root, "$schema", FR_SV("https://json.schemastore.org/sarif-2.1.0.json"));
    fr_tree_str(root, "version", FR_SV("2.1.0"));
    fr_tree_str(driver, "name", FR_SV("faultrank"));
    fr_tree_str(driver, "version", FR_SV(FR_VERSION));
    fr_tree_set(driver, "rules", rules);
    fr_tree_set(tool, "driver", driver);
    fr_tree_set(run, "tool", tool);
    fr_tree_push(invocations, invocation(r));
    fr_tree_set(run, "invocations", invocations);
    fr_tree_set(run, "results", results);
    fr_tree_push(runs, run);
    fr_tree_set(root, "runs", runs);
    return fr_tree_dump(root, out, err);
}

const struct fr_writer fr_writer_sarif = {
    .name = "sarif",
    .summary = "SARIF 2.1.0 for code scanning pages and editors",
    .mime = "application/sarif+json",
    .extension = "sarif",
    .write = write_sarif,
};
