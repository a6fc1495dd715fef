/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue: see catalogue.h. */
#include "report/catalogue.h"

#include "report/tree.h"

static void add_page(json_t *o, const struct fr_failure *f)
{
    json_t *fix = json_object(), *verify = json_object();
    fr_tree_set(o, "explains", fr_tree_strings(f->explains));
    fr_tree_set(o, "related", fr_tree_strings(f->related));
    fr_tree_set(o, "confirm", fr_tree_strings(f->confirm));
    fr_tree_maybe(fix, "primary", fr_sv_z(f->fix_primary));
    fr_tree_maybe(fix, "fallback", fr_sv_z(f->fix_fallback));
    fr_tree_maybe(fix, "emergency", fr_sv_z(f->fix_emergency));
    fr_tree_set(o, "fix", fix);
    fr_tree_maybe(verify, "command", fr_sv_z(f->verify_command));
    fr_tree_set(verify, "expect", fr_tree_strings(f->verify_expect));
    fr_tree_set(verify, "absent", fr_tree_strings(f->verify_absent));
    fr_tree_set(o, "verify", verify);
    fr_tree_set(o, "prevent", fr_tree_strings(f->prevent));
    fr_tree_set(o, "refs", fr_tree_strings(f->refs));
    fr_tree_maybe(o, "repro", fr_sv_z(f->repro));
    fr_tree_str(o, "body", fr_sv_z(f->body));
}

int fr_catalogue_json(const struct fr_library *lib, const uint16_t *which, unsigned n, bool full, struct fr_buf *out,
                      struct fr_err *err)
{
    json_t *root = fr_tree_root(), *all = json_array();
    fr_tree_str(root, "schema", FR_SV("faultrank.failures/1"));
    for (unsigned i = 0; i < n; i++) {
        const struct fr_failure *f = &lib->failures[which[i]];
        json_t *o = json_object();
        fr_tree_str(o, "id", fr_sv_z(f->id));
        fr_tree_str(o, "title", fr_sv_z(f->title));
        fr_tree_str(o, "category", fr_sv_z(f->category));
        fr_tree_str(o, "severity", fr_sv_z(f->severity));
        fr_tree_str(o, "layer", fr_sv_z(f->layer));
        fr_tree_str(o, "owner", fr_sv_z(f->owner));
        fr_tree_str(o, "action", fr_sv_z(fr_action_name((enum fr_action)f->action)));
        fr_tree_set(o, "stacks", fr_tree_strings(f->stacks));
        fr_tree_set(o, "tags", fr_tree_strings(f->tags));
        if (full) {
            add_page(o, f);
        }
        fr_tree_push(all, o);
    }
    fr_tree_set(root, "failures", all);
    return fr_tree_dump(root, out, err);
}
