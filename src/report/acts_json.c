/* SPDX-License-Identifier: Apache-2.0 */
/* acts_json: a reproduction for programs, as schema/repro.schema.json says. JSON has no Inf and no
 * NaN, and here they are the news: numbers that are not finite are the strings "Inf", "-Inf", "NaN". */
#include "report/acts.h"

#include "faultrank/numerics.h"
#include "report/tree.h"

#include <math.h>

static json_t *number(double v)
{
    if (isfinite(v)) {
        return json_real(v);
    }
    return fr_tree_text(isnan(v) ? FR_SV("NaN") : v > 0 ? FR_SV("Inf") : FR_SV("-Inf"));
}

static json_t *trace(const struct fr_chain *t)
{
    static const char *const marks[] = {
        [FR_MARK_INF] = "inf", [FR_MARK_NAN] = "nan", [FR_MARK_ZERO_ROW] = "zero-row"};
    json_t *o = json_object(), *rows = json_array();
    fr_tree_str(o, "kind", FR_SV("trace"));
    fr_tree_str(o, "title", t->title);
    fr_tree_set(o, "first", t->first >= 0 ? fr_tree_text(t->row[t->first].op) : json_null());
    for (uint32_t i = 0; i < t->n; i++) {
        const struct fr_link *w = &t->row[i];
        const struct fr_dtype_info *type = fr_dtype_info(w->dtype);
        json_t *row = json_object();
        fr_tree_str(row, "operation", w->op);
        fr_tree_str(row, "dtype", fr_sv_z(type != NULL ? type->name : ""));
        fr_tree_set(row, "input", json_boolean(w->is_input));
        fr_tree_int(row, "elements", w->n);
        fr_tree_int(row, "zeros", w->zeros);
        fr_tree_int(row, "infs", w->infs);
        fr_tree_int(row, "nans", w->nans);
        fr_tree_int(row, "rows", w->rows);
        fr_tree_int(row, "zero_rows", w->zero_rows);
        fr_tree_set(row, "abs_max", number(w->most));
        fr_tree_set(row, "abs_min", number(w->least));
        fr_tree_set(row, "mark",
                    w->mark == FR_MARK_NONE ? json_null() : fr_tree_text(fr_sv_z(marks[w->mark])));
        fr_tree_push(rows, row);
    }
    fr_tree_set(o, "rows", rows);
    return o;
}

static json_t *curve(const struct fr_curve *s)
{
    json_t *o = json_object(), *values = json_array();
    fr_tree_str(o, "kind", FR_SV("series"));
    fr_tree_str(o, "name", s->name);
    fr_tree_str(o, "per", s->per);
    for (uint32_t i = 0; i < s->n; i++) {
        fr_tree_push(values, number(s->v[i]));
    }
    fr_tree_set(o, "values", values);
    return o;
}

static json_t *table(const struct fr_table *t)
{
    json_t *o = json_object(), *rows = json_array(), *row = NULL;
    fr_tree_str(o, "kind", FR_SV("table"));
    fr_tree_str(o, "title", t->title);
    fr_tree_set(o, "heads", fr_tree_strings(t->heads));
    for (uint32_t i = 0; i < t->n; i++) {
        if (i % t->columns == 0) {
            row = json_array();
            fr_tree_push(rows, row);
        }
        fr_tree_push(row, fr_tree_text(t->cell[i]));
    }
    fr_tree_set(o, "rows", rows);
    return o;
}

static json_t *claim(const struct fr_claim *c)
{
    json_t *o = json_object();
    fr_tree_str(o, "kind", FR_SV("claim"));
    fr_tree_str(o, "id", fr_sv_z(c->id));
    fr_tree_str(o, "says", fr_sv_z(c->says));
    fr_tree_str(o, "measured", c->measured);
    fr_tree_set(o, "held", json_boolean(c->held));
    if (c->unknown) {
        fr_tree_set(o, "unknown", json_true());
    }
    return o;
}

static json_t *item(const struct fr_item *it)
{
    json_t *o = NULL;
    switch (it->kind) {
    case FR_ITEM_CHAIN:
        return trace(it->chain);
    case FR_ITEM_CURVE:
        return curve(it->curve);
    case FR_ITEM_TABLE:
        return table(it->table);
    case FR_ITEM_CLAIM:
        return claim(it->claim);
    default:
        o = json_object();
        fr_tree_str(o, "kind", FR_SV("text"));
        fr_tree_str(o, "text", it->text);
        return o;
    }
}

static json_t *params(const struct fr_acts *a)
{
    json_t *o = json_object();
    for (unsigned i = 0; a->values != NULL && a->repro->params[i].name != NULL; i++) {
        const struct fr_repro_param *p = &a->repro->params[i];
        fr_tree_set(o, p->name,
                    p->choices != NULL ? fr_tree_text(fr_sv_z(p->choices[(int)a->values->v[i]]))
                    : p->is_whole      ? json_integer((json_int_t)a->values->v[i])
                                       : json_real(a->values->v[i]));
    }
    return o;
}

int fr_acts_json(const struct fr_acts *a, struct fr_buf *out, struct fr_err *err)
{
    static const char *const names[] = {"fails", "why", "fix"};
    const struct fr_result *r = a->result;
    json_t *root = fr_tree_root(), *acts = json_array(), *items = NULL;
    fr_tree_str(root, "schema", FR_SV("faultrank.repro/1"));
    fr_tree_str(root, "id", fr_sv_z(a->repro->id));
    fr_tree_str(root, "title", fr_sv_z(a->title));
    fr_tree_set(root, "parameters", params(a));
    fr_tree_set(root, "as_claimed", json_boolean(fr_result_as_claimed(r)));
    fr_tree_int(root, "claims", r->claims);
    fr_tree_int(root, "held", r->held);
    if (r->unknown > 0) {
        fr_tree_int(root, "unknown", r->unknown);
    }
    for (uint32_t i = 0, act = FR_ACT_COUNT_; i < r->n; i++) {
        if (items == NULL || r->item[i].act != act) {
            json_t *o = json_object();
            act = r->item[i].act;
            items = json_array();
            fr_tree_str(o, "act", fr_sv_z(names[act]));
            fr_tree_str(o, "title", r->title[act]);
            fr_tree_set(o, "items", items);
            fr_tree_push(acts, o);
        }
        fr_tree_push(items, item(&r->item[i]));
    }
    fr_tree_set(root, "acts", acts);
    return fr_tree_dump(root, out, err);
}
