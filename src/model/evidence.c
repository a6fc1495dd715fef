/* SPDX-License-Identifier: Apache-2.0 */
/* evidence: union of sets of source summaries. One summary is immutable, so merging is choosing: of two with the same
 * name the fuller one stays (a rescan of a file that has grown), and equal ones are one. */
#include "model/evidence.h"

#include "base/alloc.h"
#include "base/err.h"

#include <stdlib.h>

void fr_source_evidence_free(struct fr_source_evidence *s)
{
    if (s == NULL) {
        return;
    }
    fr_vec_free(s->events.v);
    fr_vec_free(s->speakers.v);
    fr_vec_free(s->findings.v);
    fr_vec_free(s->metrics.v);
    fr_arena_release(&s->arena);
    fr_free(s);
}

/* A total order on the content that merging can choose by; 0 = the same summary. */
static int cmp_fullness(const struct fr_source_evidence *a, const struct fr_source_evidence *b)
{
    if (a->bytes != b->bytes) {
        return a->bytes < b->bytes ? -1 : 1;
    }
    if (a->events.n != b->events.n) {
        return a->events.n < b->events.n ? -1 : 1;
    }
    if (a->mtime_ns != b->mtime_ns) {
        return a->mtime_ns < b->mtime_ns ? -1 : 1;
    }
    return fr_sv_cmp(a->last_text, b->last_text);
}

static int cmp_name(const void *pa, const void *pb)
{
    const struct fr_source_evidence *a = *(struct fr_source_evidence *const *)pa, *b = *(struct fr_source_evidence *const *)pb;
    int c = fr_sv_cmp_natural(a->name, b->name);
    return c != 0 ? c : -cmp_fullness(a, b);
}

static int cmp_skipped(const void *pa, const void *pb)
{
    const struct fr_skipped *a = pa, *b = pb;
    int c = fr_sv_cmp_natural(a->source, b->source);
    return c != 0 ? c : fr_sv_cmp(a->why, b->why);
}

void fr_evidence_seal(struct fr_evidence_set *s)
{
    if (s->sources.n != 0) {
        qsort(s->sources.v, s->sources.n, sizeof *s->sources.v, cmp_name);
    }
    if (s->skipped.n != 0) {
        qsort(s->skipped.v, s->skipped.n, sizeof *s->skipped.v, cmp_skipped);
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->sources.n; i++) {
        if (kept != 0 && fr_sv_eq(s->sources.v[kept - 1]->name, s->sources.v[i]->name)) {
            fr_source_evidence_free(s->sources.v[i]);
            continue;
        }
        s->sources.v[kept++] = s->sources.v[i];
    }
    s->sources.n = kept;
    uint32_t skips = 0;
    for (uint32_t i = 0; i < s->skipped.n; i++) {
        if (skips == 0 || cmp_skipped(&s->skipped.v[skips - 1], &s->skipped.v[i]) != 0) {
            s->skipped.v[skips++] = s->skipped.v[i];
        }
    }
    s->skipped.n = skips;
    for (uint32_t i = 0; i < kept; i++) {
        for (uint32_t k = 0; k < s->sources.v[i]->events.n; k++) {
            s->sources.v[i]->events.v[k].source = i;
        }
    }
}

int fr_evidence_merge(struct fr_evidence_set *a, struct fr_evidence_set *b)
{
    while (b->sources.n != 0) {
        struct fr_source_evidence **slot = FR_PUSH(&a->sources);
        if (slot == NULL) {
            return -FR_NOMEM;
        }
        *slot = b->sources.v[--b->sources.n];
    }
    while (b->skipped.n != 0) {
        struct fr_skipped from = b->skipped.v[b->skipped.n - 1], *to = FR_PUSH(&a->skipped);
        if (to == NULL) {
            return -FR_NOMEM;
        }
        to->source = fr_arena_dup(&a->arena, from.source);
        to->why = fr_arena_dup(&a->arena, from.why);
        b->skipped.n--;
    }
    fr_evidence_seal(a);
    return 0;
}

void fr_evidence_set_release(struct fr_evidence_set *s)
{
    for (uint32_t i = 0; i < s->sources.n; i++) {
        fr_source_evidence_free(s->sources.v[i]);
    }
    fr_vec_free(s->sources.v);
    fr_vec_free(s->skipped.v);
    fr_arena_release(&s->arena);
    *s = (struct fr_evidence_set){0};
}
