/* SPDX-License-Identifier: Apache-2.0 */
/* repro: the list of reproductions, their parameters, and the run. */
#include "repro/lab.h"

#include <math.h>
#include <stdio.h>

#define X(short_) extern const struct fr_repro fr_repro_##short_;
#include "repros.def"
#undef X

const struct fr_repro *const fr_repros[] = {
#define X(short_) &fr_repro_##short_,
#include "repros.def"
#undef X
};
const unsigned fr_repros_count = sizeof fr_repros / sizeof *fr_repros;

const struct fr_repro *fr_repro_find(fr_sv id)
{
    for (unsigned i = 0; i < fr_repros_count; i++) {
        if (fr_sv_eq(id, fr_sv_z(fr_repros[i]->id))) {
            return fr_repros[i];
        }
    }
    return NULL;
}

/* ---- parameters ---- */

void fr_repro_defaults(const struct fr_repro *p, struct fr_repro_values *ret)
{
    *ret = (struct fr_repro_values){{0}};
    for (unsigned i = 0; p->params[i].name != NULL && i < FR_REPRO_PARAMS_MAX; i++) {
        ret->v[i] = p->params[i].value;
    }
}

/* 0..n-1, or -1. */
static int choice(const struct fr_repro_param *p, fr_sv text)
{
    for (int i = 0; p->choices[i] != NULL; i++) {
        if (fr_sv_eq(text, fr_sv_z(p->choices[i]))) {
            return i;
        }
    }
    return -1;
}

static int bad_choice(const struct fr_repro_param *p, fr_sv text, struct fr_err *err)
{
    char list[160] = "";
    for (int i = 0; p->choices[i] != NULL; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", p->choices[i]);
    }
    return fr_err_set(err, FR_ARG, "--%s can be %s, not '%.40s'", p->name, list,
                      text.n > 0 ? text.p : "");
}

static int bad_name(const struct fr_repro *p, fr_sv name, struct fr_err *err)
{
    char list[160] = "";
    for (int i = 0; p->params[i].name != NULL; i++) {
        size_t n = strlen(list);
        snprintf(list + n, sizeof list - n, "%s%s", i > 0 ? ", " : "", p->params[i].name);
    }
    return fr_err_set(err, FR_ARG, "%s has no parameter '%.*s'; it has %s", p->id,
                      (int)(name.n < 40 ? name.n : 40), name.p, list);
}

int fr_repro_set(const struct fr_repro *p, struct fr_repro_values *values, fr_sv name, fr_sv text,
                 struct fr_err *err)
{
    for (unsigned i = 0; p->params[i].name != NULL; i++) {
        const struct fr_repro_param *q = &p->params[i];
        if (!fr_sv_eq(name, fr_sv_z(q->name))) {
            continue;
        }
        if (q->choices != NULL) {
            int c = choice(q, text);
            values->v[i] = c;
            return c < 0 ? bad_choice(q, text, err) : 0;
        }
        double v = 0;
        fr_sv rest = text;
        if (!fr_sv_take_double(&rest, &v) || rest.n != 0 || !isfinite(v) || v < q->min ||
            v > q->max || (q->is_whole && v != floor(v))) {
            return fr_err_set(err, FR_ARG, "--%s takes a %snumber from %g to %g, not '%.*s'",
                              q->name, q->is_whole ? "whole " : "", q->min, q->max,
                              (int)(text.n < 40 ? text.n : 40), text.p);
        }
        values->v[i] = v;
        return 0;
    }
    return bad_name(p, name, err);
}

const char *fr_repro_show(const struct fr_repro_param *p, double value, char *ret)
{
    if (p->choices != NULL) {
        snprintf(ret, 32, "%s", p->choices[(int)value]);
    } else if (p->is_whole) {
        snprintf(ret, 32, "%.0f", value);
    } else {
        snprintf(ret, 32, "%g", value);
    }
    return ret;
}

/* ---- the run ---- */

int fr_lab_play(struct fr_lab *lab, int (*act)(struct fr_lab *lab, struct fr_err *err),
                struct fr_err *err)
{
    lab->scratch = FR_ARENA_INIT((size_t)512 << 20);
    int rc = act(lab, err);
    fr_arena_release(&lab->scratch);
    if (rc == 0 && (lab->failed || !fr_result_ok(lab->result))) {
        return fr_lab_nomem(err);
    }
    return rc;
}

int fr_repro_run(const struct fr_repro *p, const struct fr_repro_values *values,
                 const struct fr_repro_env *env, struct fr_result *ret, struct fr_err *err)
{
    static const struct fr_repro_env nothing;
    struct fr_lab lab = {
        .repro = p, .value = values->v, .env = env != NULL ? env : &nothing, .result = ret};
    if (p->needs_folder && lab.env->folder == NULL) {
        return fr_err_set(err, FR_ARG, "%s writes logs and needs a folder for them", p->id);
    }
    lab.rng.state = (uint64_t)fr_lab_get(&lab, "seed");
    return fr_lab_play(&lab, p->run, err);
}
