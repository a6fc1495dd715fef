/* SPDX-License-Identifier: Apache-2.0 */
/* smoke: see smoke.h. */
#include "repro/smoke.h"

#include "repro/lab.h"

#include <math.h>
#include <stdio.h>

struct row {
    const char *name, *help;
    double *at, min, max;
    const char **from;
    bool is_whole, is_size;
};

enum {
    ROWS = 0
#define FR_X(...) +1
    FR_SMOKE_SIZES(FR_X) FR_SMOKE_FACTS(FR_X)
#undef FR_X
};

static bool find(struct fr_smoke *s, fr_sv name, struct row *ret)
{
    const struct row rows[ROWS] = {
#define FR_X(field, option, value, min, max, whole, help)                                          \
    {option, help, &s->field, min, max, &s->from.field, whole, true},
        FR_SMOKE_SIZES(FR_X)
#undef FR_X
#define FR_X(field, option, min, max, whole, help)                                                 \
    {option, help, &s->field, min, max, &s->from.field, whole, false},
            FR_SMOKE_FACTS(FR_X)
#undef FR_X
    };
    for (size_t i = 0; i < ROWS; i++) {
        if (fr_sv_eq(name, fr_sv_z(rows[i].name))) {
            *ret = rows[i];
            return true;
        }
    }
    return false;
}

void fr_smoke_defaults(struct fr_smoke *ret)
{
    *ret = (struct fr_smoke){
        .dtype = FR_F16,
        .policy = -1,
        .masters = -1,
        .scaler = -1,
        .fp8 = -1,
        .fp8_hybrid = -1,
        .fp8_recent = -1,
        .balancing = -1,
#define FR_X(field_, option, value, ...) .field_ = (value),
        FR_SMOKE_SIZES(FR_X)
#undef FR_X
#define FR_X(field_, ...) .field_ = NAN,
            FR_SMOKE_FACTS(FR_X)
#undef FR_X
    };
}

int fr_smoke_say(struct fr_smoke *s, fr_sv name, double value, const char *from, struct fr_err *err)
{
    struct row r;
    if (!find(s, name, &r)) {
        return fr_err_set(err, FR_ARG, "there is no size or fact '%.*s'",
                          (int)(name.n < 40 ? name.n : 40), name.n > 0 ? name.p : "");
    }
    if (!(value >= r.min && value <= r.max) || (r.is_whole && value != floor(value))) {
        return fr_err_set(err, FR_ARG, "%s must be a %snumber from %g to %g", r.name,
                          r.is_whole ? "whole " : "", r.min, r.max);
    }
    *r.at = value;
    *r.from = from;
    return 0;
}

int fr_smoke_set(struct fr_smoke *s, fr_sv name, double value, struct fr_err *err)
{
    return fr_smoke_say(s, name, value, "option", err);
}

int fr_smoke_run(const struct fr_repro *p, const struct fr_smoke *s, struct fr_result *ret,
                 struct fr_err *err)
{
    static const struct fr_repro_env nothing;
    struct fr_repro_values values;
    fr_repro_defaults(p, &values);
    if (p->smoke == NULL) {
        return fr_err_set(err, FR_ABSENT, "%s has no smoke test", p->id);
    }
    struct fr_lab lab = {
        .repro = p, .value = values.v, .env = &nothing, .smoke = s, .result = ret, .rng = {1}};
    return fr_lab_play(&lab, p->smoke, err);
}

int fr_smoke_exit(const struct fr_result *r)
{
    return fr_result_as_claimed(r) ? 0 : fr_result_refuted(r) ? 1 : 2;
}

/* ---- for the tests ---- */

const char *fr_smoke_dtype(uint32_t dtype)
{
    const struct fr_dtype_info *d = fr_dtype_info(dtype);
    return d != NULL ? d->name : "unknown";
}

bool fr_smoke_said(const struct fr_smoke *s, const char *name)
{
    struct fr_smoke copy = *s;
    struct row r;
    if (strcmp(name, "dtype") == 0) {
        return s->from.dtype != NULL;
    }
    return find(&copy, fr_sv_z(name), &r) && *r.from != NULL;
}

/* The next of names as a string; false at the end. */
static bool next(fr_sv *names, char ret[32])
{
    fr_sv one;
    if (names->n == 0) {
        return false;
    }
    fr_sv_cut(*names, ' ', &one, names);
    snprintf(ret, 32, "%.*s", (int)one.n, one.p);
    return true;
}

bool fr_smoke_needs(struct fr_lab *lab, const char *id, const char *says, const char *names)
{
    struct fr_smoke s = *lab->smoke;
    struct row r;
    char name[32], what[400] = "", how[400] = "";
    unsigned n = 0;
    for (fr_sv rest = fr_sv_z(names); next(&rest, name);) {
        if (fr_smoke_said(&s, name)) {
            continue;
        }
        const bool is_dtype = strcmp(name, "dtype") == 0, is_known = find(&s, fr_sv_z(name), &r);
        const size_t w = strlen(what), h = strlen(how);
        snprintf(what + w, sizeof what - w, "%s%s (%s)", n > 0 ? ", " : "", name,
                 is_dtype ? "fp16, bf16 or fp32" : is_known ? r.help : "?");
        snprintf(how + h, sizeof how - h, "%s%s%s", n > 0 ? " " : "",
                 is_dtype || (is_known && r.is_size) ? "--" : "--set ", name);
        const size_t e = strlen(how);
        snprintf(how + e, sizeof how - e, "%s",
                 is_dtype                  ? " TYPE"
                 : is_known && r.is_size ? " N"
                                           : "=N");
        n++;
    }
    if (n > 0) {
        fr_result_unknown(lab->result, id, says, "not said: %s; give %s, or a file that says it",
                          what, how);
    }
    return n == 0;
}

void fr_smoke_inputs(struct fr_lab *lab, const char *names)
{
    struct fr_smoke s = *lab->smoke;
    struct row r;
    char name[32], line[900] = "";
    for (fr_sv rest = fr_sv_z(names); next(&rest, name);) {
        const size_t n = strlen(line);
        const char *const sep = n > 0 ? ", " : "";
        if (!fr_smoke_said(&s, name)) {
            continue;
        }
        if (strcmp(name, "dtype") == 0) {
            snprintf(line + n, sizeof line - n, "%sdtype %s (%s)", sep, fr_smoke_dtype(s.dtype),
                     s.from.dtype);
        } else if (find(&s, fr_sv_z(name), &r)) {
            snprintf(line + n, sizeof line - n, "%s%s %.10g (%s)", sep, name, *r.at, *r.from);
        }
    }
    fr_result_say(lab->result, "Said: %s.", line[0] != '\0' ? line : "nothing");
}
