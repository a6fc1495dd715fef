/* SPDX-License-Identifier: Apache-2.0 */
/* choose: the price of a gram is how often it stops the gate in ordinary text, plus a fixed price for every further gram
 * (each one raises the chance that the hash of an innocent run is in the set). */
#include "match/choose.h"

#include "base/vec.h"
#include "match/weights.h"

#include <stdlib.h>

#define PRICE_OF_ONE 24 /* in stops per 2^22 bytes */

struct place {
    uint32_t gram, literal;
    uint16_t at;
};

struct group { /* places of one gram */
    uint32_t gram, first, n, weight;
    double bound; /* literals per price when last computed: never rises */
};

typedef FR_VEC(struct place) place_list;

static int by_gram(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->gram != y->gram) {
        return x->gram < y->gram ? -1 : 1;
    }
    if (x->literal != y->literal) {
        return x->literal < y->literal ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_bound(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->bound != y->bound) {
        return x->bound > y->bound ? -1 : 1;
    }
    return x->gram < y->gram ? -1 : x->gram > y->gram;
}

static uint32_t load(const char *p)
{
    const uint8_t *u = (const uint8_t *)p;
    return (uint32_t)u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

/* Bytes over 0x7f are avoided where a literal has other ones: the vector gates fold them onto 7 bits. */
static int gather(const fr_sv *literals, uint32_t n, place_list *places)
{
    for (uint32_t i = 0; i < n; i++) {
        bool has_ascii = false;
        for (int pass = 0; pass < 2 && !has_ascii; pass++) {
            for (size_t k = 0; k + 4 <= literals[i].n; k++) {
                const uint32_t gram = load(literals[i].p + k);
                if (pass == 0 && (gram & 0x80808080u) != 0) {
                    continue;
                }
                struct place *p = FR_PUSH(places);
                if (p == NULL) {
                    return -FR_NOMEM;
                }
                *p = (struct place){gram, i, (uint16_t)k};
                has_ascii = true;
            }
        }
    }
    qsort(places->v, places->n, sizeof places->v[0], by_gram);
    return 0;
}

static double worth(const struct group *g, const place_list *places, const bool *covered)
{
    uint32_t fresh = 0, last = UINT32_MAX;
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        if (places->v[i].literal != last && !covered[places->v[i].literal]) {
            fresh++;
        }
        last = places->v[i].literal;
    }
    return (double)fresh / (double)(g->weight + PRICE_OF_ONE);
}

/* Takes the groups in the order of their worth. A worth only falls while literals get covered, so a group whose fresh
 * worth still beats the next one's old worth is the best of all. */
static void cover(struct group *groups, uint32_t n, const place_list *places, bool *covered,
                  struct fr_choice *ret)
{
    qsort(groups, n, sizeof groups[0], by_bound);
    for (uint32_t head = 0; head < n;) {
        struct group g = groups[head];
        g.bound = worth(&g, places, covered);
        if (g.bound == 0) {
            head++;
            continue;
        }
        if (head + 1 < n && by_bound(&g, &groups[head + 1]) > 0) {
            uint32_t i = head; /* sinks to its place */
            for (; i + 1 < n && by_bound(&g, &groups[i + 1]) > 0; i++) {
                groups[i] = groups[i + 1];
            }
            groups[i] = g;
            continue;
        }
        for (uint32_t i = g.first; i < g.first + g.n; i++) {
            const struct place *p = &places->v[i];
            if (!covered[p->literal]) {
                covered[p->literal] = true;
                ret[p->literal] = (struct fr_choice){g.gram, p->at};
            }
        }
        head++;
    }
}

int fr_choose_grams(const fr_sv *literals, uint32_t n, struct fr_arena *arena, struct fr_choice *ret,
                    struct fr_err *err)
{
    place_list places = {0};
    FR_VEC(struct group) groups = {0};
    bool *covered = FR_NEW_N(arena, bool, n + 1);
    int rc = covered == NULL ? -FR_NOMEM : gather(literals, n, &places);
    for (uint32_t i = 0; rc == 0 && i < places.n; i++) {
        if (i > 0 && places.v[i].gram == places.v[i - 1].gram) {
            groups.v[groups.n - 1].n++;
            continue;
        }
        struct group *g = FR_PUSH(&groups);
        if (g == NULL) {
            rc = -FR_NOMEM;
            break;
        }
        *g = (struct group){places.v[i].gram, i, 1, fr_gram_weight(places.v[i].gram), 0};
    }
    if (rc == 0) {
        for (uint32_t i = 0; i < groups.n; i++) {
            groups.v[i].bound = worth(&groups.v[i], &places, covered);
        }
        cover(groups.v, groups.n, &places, covered, ret);
    }
    fr_vec_free(groups.v);
    fr_vec_free(places.v);
    return rc == 0 ? 0 : fr_err_set(err, FR_NOMEM, "out of memory while choosing grams");
}
