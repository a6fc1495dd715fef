/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/checking.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const struct rule {
    const char *id, *cls, *title;
    uint8_t weight;
} rules[FR_RULES] = {
#define X(constant, id, weight, cls, title) {id, cls, title, FR_CHECK_##weight},
#include "tensor/findings.def"
#undef X
};

enum fr_check_weight fr_rule_weight(enum fr_rule rule)
{
    return (enum fr_check_weight)rules[rule].weight;
}

struct fr_check_finding *fr_found(struct fr_checking *k, enum fr_rule rule,
                                  struct fr_check_tensor *tensor, fr_sv file, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (k->r->findings.n >= FR_FINDINGS_MAX) {
        k->full = true;
        return NULL;
    }
    struct fr_check_finding *f = FR_PUSH(&k->r->findings);
    const fr_sv kept = fr_arena_dup(k->arena, fr_sv_z(text));
    if (f == NULL || kept.p == NULL) {
        k->nomem = true;
        return NULL;
    }
    *f = (struct fr_check_finding){
        .weight = rules[rule].weight,
        .rule = fr_sv_z(rules[rule].id),
        .title = fr_sv_z(rules[rule].title),
        .cls = fr_sv_z(rules[rule].cls),
        .text = kept,
        .file = tensor != NULL && file.n == 0
                    ? tensor->file
                    : fr_arena_dup(k->arena, file), /* the reader's memory goes before the report */
        .offset = FR_CHECK_NOWHERE,
        .tensor = tensor != NULL ? tensor->name : FR_SV_NONE,
        .layer = tensor != NULL ? tensor->layer : -1,
        .rank = tensor != NULL ? tensor->rank : -1,
    };
    if (tensor != NULL && f->weight < tensor->worst) {
        tensor->worst = f->weight;
    }
    return f;
}

void fr_found_unknown(struct fr_check_finding *f, const char *what)
{
    if (f != NULL) {
        f->unknown = fr_sv_z(what);
    }
}

void fr_found_page(struct fr_check_finding *f, const char *failure)
{
    if (f != NULL) {
        f->cls = fr_sv_z(failure);
    }
}

/* ---- order ---- */

struct keyed {
    struct fr_check_finding f;
    uint32_t rule, at;
};

static uint32_t rule_of(fr_sv id)
{
    uint32_t i = 0;
    while (i < FR_RULES && !fr_sv_eq(id, fr_sv_z(rules[i].id))) {
        i++;
    }
    return i;
}

static int worse(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->f.weight != y->f.weight) {
        return x->f.weight < y->f.weight ? -1 : 1;
    }
    if (x->rule != y->rule) {
        return x->rule < y->rule ? -1 : 1;
    }
    return x->at < y->at
               ? -1
               : x->at > y->at; /* as found: detectors go through the model in its order */
}

void fr_findings_sort(struct fr_check *r)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct keyed *v = FR_NEW_N(&scratch, struct keyed, r->findings.n);
    for (uint32_t i = 0; v != NULL && i < r->findings.n; i++) {
        v[i] = (struct keyed){r->findings.v[i], rule_of(r->findings.v[i].rule), i};
    }
    if (v != NULL && r->findings.n > 1) {
        qsort(v, r->findings.n, sizeof *v, worse);
        for (uint32_t i = 0; i < r->findings.n; i++) {
            r->findings.v[i] = v[i].f;
        }
    }
    fr_arena_release(&scratch);
}
