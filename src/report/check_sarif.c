/* SPDX-License-Identifier: Apache-2.0 */
/* check_sarif: SARIF 2.1.0, one result per finding; the tensor is its logical location. */
#include "report/check_words.h"
#include "report/tree.h"

#include "faultrank/faultrank.h"

static json_t *text(fr_sv s)
{
    json_t *o = json_object();
    fr_tree_str(o, "text", s);
    return o;
}

static const char *level(uint8_t weight)
{
    return weight == FR_CHECK_BLOCKS ? "error" : weight == FR_CHECK_NOTE ? "note" : "warning";
}

static json_t *rule(const struct fr_check_finding *f)
{
    json_t *o = json_object(), *help = json_object();
    fr_tree_str(o, "id", f->rule);
    fr_tree_set(o, "shortDescription", text(f->title));
    FR_AUTO(fr_buf) words = FR_BUF_INIT(0);
    if (f->cls.n > 0) {
        fr_buf_printf(&words, "faultrank explain %.*s", FR_SV_ARG(f->cls));
    } else {
        fr_buf_addz(&words, "man faultrank");
    }
    fr_tree_buf(help, "text", &words);
    fr_tree_set(o, "help", help);
    return o;
}

static json_t *location(const struct fr_check_finding *f)
{
    json_t *o = json_object(), *physical = json_object(), *artifact = json_object(),
           *region = json_object();
    if (f->file.n > 0) {
        fr_tree_uri(artifact, "uri", f->file);
        fr_tree_set(physical, "artifactLocation", artifact);
        if (f->offset != FR_CHECK_NOWHERE) {
            fr_tree_int(region, "byteOffset", (int64_t)f->offset);
            fr_tree_set(physical, "region", region);
        } else {
            json_decref(region);
        }
        fr_tree_set(o, "physicalLocation", physical);
    } else {
        json_decref(artifact);
        json_decref(region);
        json_decref(physical);
    }
    if (f->tensor.n > 0) {
        json_t *logical = json_object(), *list = json_array();
        fr_tree_str(logical, "fullyQualifiedName", f->tensor);
        fr_tree_push(list, logical);
        fr_tree_set(o, "logicalLocations", list);
    }
    return o;
}

static json_t *result(const struct fr_check_finding *f, unsigned rule_index)
{
    json_t *o = json_object(), *locations = json_array();
    FR_AUTO(fr_buf) message = FR_BUF_INIT(0);
    fr_buf_addz(&message, "");
    fr_buf_add(&message, f->title);
    fr_buf_addz(&message, ". ");
    fr_buf_add(&message, f->text);
    if (f->unknown.n > 0) {
        fr_buf_addz(&message, " Not known: ");
        fr_buf_add(&message, f->unknown);
    }
    json_t *words = json_object();
    fr_tree_buf(words, "text", &message);
    fr_tree_str(o, "ruleId", f->rule);
    fr_tree_int(o, "ruleIndex", rule_index);
    fr_tree_str(o, "level", fr_sv_z(level(f->weight)));
    fr_tree_set(o, "message", words);
    if (f->file.n > 0 || f->tensor.n > 0) {
        fr_tree_push(locations, location(f));
    }
    fr_tree_set(o, "locations", locations);
    return o;
}

static int write_sarif(const struct fr_check *c, const struct fr_check_write_options *o,
                       struct fr_buf *out, struct fr_err *err)
{
    json_t *root = fr_tree_root(), *runs = json_array(), *run = json_object(),
           *tool = json_object(), *driver = json_object();
    json_t *rules = json_array(), *results = json_array();
    (void)o;
    for (uint32_t i = 0; i < c->findings.n;
         i++) { /* findings of one rule stand together within a weight */
        const struct fr_check_finding *f = &c->findings.v[i];
        unsigned index = 0;
        while (index < json_array_size(rules) &&
               !fr_sv_eq(f->rule, fr_sv_z(json_string_value(
                                      json_object_get(json_array_get(rules, index), "id"))))) {
            index++;
        }
        if (index == json_array_size(rules)) {
            fr_tree_push(rules, rule(f));
        }
        fr_tree_push(results, result(f, index));
    }
    fr_tree_str(root, "$schema", FR_SV("https://json.schemastore.org/sarif-2.1.0.json"));
    fr_tree_str(root, "version", FR_SV("2.1.0"));
    fr_tree_str(driver, "name", FR_SV("faultrank"));
    fr_tree_str(driver, "version", FR_SV(FR_VERSION));
    fr_tree_set(driver, "rules", rules);
    fr_tree_set(tool, "driver", driver);
    fr_tree_set(run, "tool", tool);
    fr_tree_set(run, "results", results);
    fr_tree_push(runs, run);
    fr_tree_set(root, "runs", runs);
    return fr_tree_dump(root, out, err);
}

const struct fr_check_writer fr_check_writer_sarif = {
    .name = "sarif",
    .summary = "SARIF 2.1.0 for code scanning pages and editors",
    .write = write_sarif};
