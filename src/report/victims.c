/* SPDX-License-Identifier: Apache-2.0 */
/* victims: thousands of collateral ranks to a handful of groups. */
#include "report/words.h"

#include <stdlib.h>

#define GROUPS_MAX 32

static struct fr_victims *group_of(struct fr_victims_list *l, fr_sv cls)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (fr_sv_eq(l->v[i].cls, cls)) {
            return &l->v[i];
        }
    }
    if (l->n == GROUPS_MAX) {
        l->v[GROUPS_MAX - 1].cls = FR_SV("other");
        return &l->v[GROUPS_MAX - 1];
    }
    struct fr_victims *g = FR_PUSH(l);
    if (g != NULL) {
        g->cls = cls;
    }
    return g;
}

static int by_size(const void *a, const void *b)
{
    const struct fr_victims *x = a, *y = b;
    if (x->n != y->n) {
        return x->n > y->n ? -1 : 1;
    }
    return fr_sv_cmp(x->cls, y->cls);
}

static int by_rank(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

void fr_victims_group(const struct fr_incident *in, struct fr_victims_list *ret)
{
    *ret = (struct fr_victims_list){0};
    for (uint32_t i = 0; i < in->collateral.n; i++) {
        const struct fr_collateral *c = &in->collateral.v[i];
        struct fr_victims *g = group_of(ret, c->cls);
        if (g == NULL) {
            ret->failed = true;
            return;
        }
        g->n++;
        if (c->has_evidence && (g->example == NULL || c->rank < g->example->rank)) {
            g->example = c;
        }
        if (c->rank >= 0) {
            int32_t *rank = FR_PUSH(&g->ranks);
            if (rank == NULL) {
                ret->failed = true;
                return;
            }
            *rank = c->rank;
        }
    }
    for (uint32_t i = 0; i < ret->n; i++) {
        if (ret->v[i].ranks.n > 1) {
            qsort(ret->v[i].ranks.v, ret->v[i].ranks.n, sizeof(int32_t), by_rank);
        }
    }
    if (ret->n > 1) {
        qsort(ret->v, ret->n, sizeof *ret->v, by_size);
    }
}

void fr_victims_list_release(struct fr_victims_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        fr_vec_free(l->v[i].ranks.v);
    }
    fr_vec_free(l->v);
    *l = (struct fr_victims_list){0};
}
