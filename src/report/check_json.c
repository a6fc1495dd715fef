/* SPDX-License-Identifier: Apache-2.0 */
/* check_json: everything, for programs; schema/check.schema.json. Numbers that are not finite are
 * null. */
#include "report/check_writer.h"
#include "report/tree.h"

static json_t *shape(const struct fr_check_tensor *t)
{
    json_t *a = json_array();
    for (uint8_t i = 0; i < t->dims; i++) {
        fr_tree_push(a, json_integer((json_int_t)t->shape[i]));
    }
    return a;
}

static json_t *beyond(const struct fr_check_tensor *t)
{
    static const char *const names[] = {[FR_CHECK_F16] = "fp16",
                                        [FR_CHECK_BF16] = "bf16",
                                        [FR_CHECK_E4M3] = "fp8-e4m3fn",
                                        [FR_CHECK_E5M2] = "fp8-e5m2"};
    json_t *o = json_object();
    for (int i = 0; i < FR_CHECK_CASTS; i++) {
        fr_tree_int(o, names[i], (int64_t)t->beyond[i]);
    }
    return o;
}

static json_t *rows(const struct fr_check_tensor *t)
{
    json_t *o = json_object();
    fr_tree_int(o, "looked_at", (int64_t)t->rows);
    fr_tree_int(o, "zero", (int64_t)t->zero_rows);
    fr_tree_int(o, "equal", (int64_t)t->equal_rows);
    fr_tree_int(o, "zero_at_end", (int64_t)t->zero_rows_at_end);
    fr_tree_known(o, "first_zero", t->zero_rows > 0 ? (int64_t)t->first_zero_row : -1);
    fr_tree_known(o, "first_equal",
                  t->equal_rows > t->zero_rows ? (int64_t)t->first_equal_row : -1);
    return o;
}

static json_t *tensor(const struct fr_check_tensor *t)
{
    json_t *o = json_object();
    fr_tree_str(o, "name", t->name);
    fr_tree_str(o, "dtype", t->dtype);
    fr_tree_set(o, "shape", shape(t));
    fr_tree_str(o, "file", t->file);
    fr_tree_str(o, "role", t->role);
    fr_tree_known(o, "layer", t->layer);
    fr_tree_str(o, "module", t->module);
    fr_tree_str(o, "parameter", t->param);
    fr_tree_known(o, "rank", t->rank);
    fr_tree_maybe(o, "worst",
                  t->worst < FR_CHECK_WEIGHTS ? fr_sv_z(fr_check_weight_name(t->worst))
                                              : FR_SV_NONE);
    fr_tree_int(o, "elements", (int64_t)t->elements);
    fr_tree_set(o, "read", json_boolean(t->scanned));
    if (t->scanned) {
        fr_tree_int(o, "nan", (int64_t)t->nan);
        fr_tree_int(o, "inf", (int64_t)t->inf);
        fr_tree_int(o, "zero", (int64_t)t->zero);
        fr_tree_int(o, "subnormal", (int64_t)t->subnormal);
        fr_tree_real(o, "abs_max", t->abs_max);
        fr_tree_real(o, "rms", t->rms);
        fr_tree_set(o, "beyond", beyond(t));
        fr_tree_set(o, "rows", rows(t));
    }
    return o;
}

static json_t *finding(const struct fr_check_finding *f)
{
    json_t *o = json_object();
    fr_tree_str(o, "rule", f->rule);
    fr_tree_str(o, "weight", fr_sv_z(fr_check_weight_name(f->weight)));
    fr_tree_str(o, "title", f->title);
    fr_tree_str(o, "text", f->text);
    fr_tree_maybe(o, "class", f->cls);
    fr_tree_maybe(o, "not_known", f->unknown);
    fr_tree_maybe(o, "file", f->file);
    fr_tree_known(o, "offset", f->offset == FR_CHECK_NOWHERE ? -1 : (int64_t)f->offset);
    fr_tree_maybe(o, "tensor", f->tensor);
    fr_tree_known(o, "layer", f->layer);
    fr_tree_known(o, "rank", f->rank);
    return o;
}

static json_t *layer(const struct fr_check_layer *l)
{
    json_t *o = json_object();
    fr_tree_str(o, "label", l->label);
    fr_tree_known(o, "layer", l->first);
    fr_tree_int(o, "tensors", l->n);
    fr_tree_int(o, "nan", (int64_t)l->nan);
    fr_tree_int(o, "inf", (int64_t)l->inf);
    fr_tree_real(o, "abs_max", l->abs_max);
    fr_tree_real(o, "rms", l->rms);
    fr_tree_maybe(o, "worst",
                  l->worst < FR_CHECK_WEIGHTS ? fr_sv_z(fr_check_weight_name(l->worst))
                                              : FR_SV_NONE);
    return o;
}

static json_t *step(const struct fr_check_step *s)
{
    json_t *o = json_object();
    fr_tree_str(o, "path", s->path);
    fr_tree_known(o, "step", s->step);
    fr_tree_str(o, "layout", s->layout);
    fr_tree_int(o, "files", s->files);
    fr_tree_int(o, "tensors", s->tensors);
    fr_tree_int(o, "bytes", (int64_t)s->bytes);
    fr_tree_set(o, "checked", json_boolean(s->checked));
    fr_tree_maybe(o, "verdict",
                  s->checked || s->verdict == FR_CHECK_DO_NOT
                      ? fr_sv_z(fr_check_verdict_name(s->verdict))
                      : FR_SV_NONE);
    fr_tree_str(o, "why", s->why);
    return o;
}

static json_t *comparison(const struct fr_check_comparison *m)
{
    json_t *o = json_object(), *diffs = json_array();
    fr_tree_str(o, "a", m->a);
    fr_tree_str(o, "b", m->b);
    fr_tree_set(o, "replicas", json_boolean(m->replicas));
    fr_tree_str(o, "text", m->text);
    fr_tree_int(o, "compared", m->compared);
    fr_tree_int(o, "equal", m->equal);
    fr_tree_int(o, "only_a", m->only_a);
    fr_tree_int(o, "only_b", m->only_b);
    fr_tree_maybe(o, "first", m->first >= 0 ? m->diffs.v[m->first].name : FR_SV_NONE);
    for (uint32_t i = 0; i < m->diffs.n; i++) {
        const struct fr_check_diff *d = &m->diffs.v[i];
        json_t *e = json_object();
        fr_tree_str(e, "name", d->name);
        fr_tree_known(e, "layer", d->layer);
        fr_tree_int(e, "elements", (int64_t)d->elements);
        fr_tree_int(e, "differing", (int64_t)d->differing);
        fr_tree_int(e, "first_element", (int64_t)d->first);
        fr_tree_int(e, "exponent_flips", (int64_t)d->exponent_flips);
        fr_tree_real(e, "max_abs", d->max_abs);
        fr_tree_real(e, "relative", d->relative);
        fr_tree_real(e, "cosine", d->cosine);
        fr_tree_push(diffs, e);
    }
    fr_tree_set(o, "differences", diffs);
    return o;
}

static json_t *input(const struct fr_check *c)
{
    json_t *o = json_object();
    fr_tree_int(o, "files", c->files);
    fr_tree_int(o, "bytes", (int64_t)c->bytes);
    fr_tree_int(o, "tensors", c->tensors.n);
    fr_tree_int(o, "elements", (int64_t)c->elements);
    return o;
}

#define LIST(o, key, list, fn)                       \
    do {                                             \
        json_t *a_ = json_array();                   \
        for (uint32_t i_ = 0; i_ < (list).n; i_++) { \
            fr_tree_push(a_, fn(&(list).v[i_]));     \
        }                                            \
        fr_tree_set((o), (key), a_);                 \
    } while (0)

static json_t *sentence(const fr_sv *s)
{
    return fr_tree_text(*s);
}

static int write_json(const struct fr_check *c, const struct fr_check_write_options *o,
                      struct fr_buf *out, struct fr_err *err)
{
    json_t *root = fr_tree_root();
    (void)o;
    fr_tree_str(root, "schema", FR_SV("faultrank.check/1"));
    fr_tree_str(root, "verdict", fr_sv_z(fr_check_verdict_name(c->verdict)));
    fr_tree_str(root, "headline", c->headline);
    fr_tree_set(root, "input", input(c));
    fr_tree_set(root, "step", c->chosen >= 0 ? step(&c->steps.v[c->chosen]) : json_null());
    fr_tree_set(root, "last_good",
                c->last_good >= 0 ? step(&c->steps.v[c->last_good]) : json_null());
    LIST(root, "findings", c->findings, finding);
    LIST(root, "layers", c->layers, layer);
    LIST(root, "comparisons", c->comparisons, comparison);
    LIST(root, "steps", c->steps, step);
    LIST(root, "tensors", c->tensors, tensor);
    LIST(root, "checked", c->checked, sentence);
    return fr_tree_dump(root, out, err);
}

const struct fr_check_writer fr_check_writer_json = {
    .name = "json",
    .summary = "everything for programs, by schema/check.schema.json",
    .write = write_json};
