/* SPDX-License-Identifier: Apache-2.0 */
/* choose: a weighted set cover. What has to be covered are slots (a literal and a remainder), what
 * covers them are keys. Prices are in look-ups of a key's entries per 2^22 bytes of ordinary text:
 * a key costs its stops, each entry under it costs a little at every stop, and every key costs
 * something because its hash also stops innocent text. Greedy first, then each slot may move to a
 * key that is cheaper as things stand. */
#include "match/choose.h"

#include "base/vec.h"
#include "match/gate.h"
#include "match/weights.h"

#include <stdlib.h>

#define STOP_PRICE  8   /* of a stop, */
#define ENTRY_PRICE 16  /* of one entry looked at during a stop, */
#define KEY_PRICE   128 /* of a key's false alarms: 2^20 places looked at, 2^16 hashes */
#define LAST_FACTOR 8   /* a key at a literal's end has no next byte to be sieved by */
#define PASSES      3

struct place { /* a slot may be found by this key at this offset */
    uint32_t key, slot;
    int16_t at;
};

struct group { /* all places of one key: first to first + n */
    uint32_t key, first, n;
    uint32_t weight;
    uint32_t users; /* slots that have chosen it */
    double bound;   /* greedy: slots per price when last computed; never rises */
};

struct cover {
    FR_VEC(struct place) places; /* by key */
    FR_VEC(struct group) groups;
    const fr_sv *literals;
    uint32_t n_slots;
    uint32_t *group_of; /* by place */
    uint32_t *options;  /* places ordered by slot: from first_option[s] to first_option[s + 1] */
    uint32_t *first_option;
    uint32_t *chosen; /* by slot: a place, or UINT32_MAX */
};

static int by_key(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->slot != y->slot) {
        return x->slot < y->slot ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

static int by_bound(const void *a, const void *b)
{
    const struct group *const *x = a, *const *y = b;
    if ((*x)->bound != (*y)->bound) {
        return (*x)->bound > (*y)->bound ? -1 : 1;
    }
    return (*x)->key < (*y)->key ? -1 : (*x)->key > (*y)->key;
}

static int gather(struct cover *c, const fr_sv *literals, uint32_t n)
{
    c->n_slots = n * FR_GATE_STRIDE;
    for (uint32_t i = 0; i < n; i++) {
        for (size_t k = 0; k + 4 <= literals[i].n; k++) {
            struct place *p = FR_PUSH(&c->places);
            if (p == NULL) {
                return -FR_NOMEM;
            }
            *p = (struct place){fr_key(fr_load32(literals[i].p + k)),
                                i * FR_GATE_STRIDE + (uint32_t)(k % 4), (int16_t)k};
        }
    }
    if (c->places.n > 1) {
        qsort(c->places.v, c->places.n, sizeof c->places.v[0], by_key);
    }
    for (uint32_t i = 0; i < c->places.n; i++) {
        const uint32_t key = c->places.v[i].key;
        if (i == 0 || key != c->places.v[i - 1].key) {
            struct group *g = FR_PUSH(&c->groups);
            if (g == NULL) {
                return -FR_NOMEM;
            }
            *g = (struct group){.key = key, .first = i, .weight = fr_key_weight(key)};
        }
        c->groups.v[c->groups.n - 1].n++;
    }
    return 0;
}

/* group_of, options and first_option. */
static int index_places(struct cover *c, struct fr_arena *arena)
{
    c->group_of = FR_NEW_N(arena, uint32_t, c->places.n + 1);
    c->options = FR_NEW_N(arena, uint32_t, c->places.n + 1);
    c->first_option = FR_NEW_N(arena, uint32_t, c->n_slots + 2);
    c->chosen = FR_NEW_N(arena, uint32_t, c->n_slots + 1);
    if (c->group_of == NULL || c->options == NULL || c->first_option == NULL || c->chosen == NULL) {
        return -FR_NOMEM;
    }
    for (uint32_t g = 0; g < c->groups.n; g++) {
        for (uint32_t i = 0; i < c->groups.v[g].n; i++) {
            c->group_of[c->groups.v[g].first + i] = g;
        }
    }
    for (uint32_t i = 0; i < c->places.n; i++) {
        c->first_option[c->places.v[i].slot + 2]++;
    }
    for (uint32_t s = 0; s < c->n_slots; s++) {
        c->first_option[s + 2] += c->first_option[s + 1];
        c->chosen[s] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < c->places.n; i++) {
        c->options[c->first_option[c->places.v[i].slot + 1]++] = i;
    }
    return 0;
}

static double price(const struct group *g)
{
    return (double)g->weight * STOP_PRICE + KEY_PRICE;
}

static double worth(const struct cover *c, const struct group *g)
{
    uint32_t fresh = 0, last = UINT32_MAX;
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const uint32_t slot = c->places.v[i].slot;
        fresh += slot != last && c->chosen[slot] == UINT32_MAX;
        last = slot;
    }
    return (double)fresh / price(g);
}

static void take(struct cover *c, struct group *g)
{
    for (uint32_t i = g->first; i < g->first + g->n; i++) {
        const uint32_t slot = c->places.v[i].slot;
        if (c->chosen[slot] == UINT32_MAX) {
            c->chosen[slot] = i;
            g->users++;
        }
    }
}

/* Takes the groups in the order of their worth. A worth only falls while slots get covered, so a
 * group whose fresh worth still beats the next one's old worth is the best of all. */
static void greedy(struct cover *c, struct group **order)
{
    const uint32_t n = c->groups.n;
    for (uint32_t i = 0; i < n; i++) {
        order[i] = &c->groups.v[i];
        order[i]->bound = worth(c, order[i]);
    }
    qsort(order, n, sizeof order[0], by_bound);
    for (uint32_t head = 0; head < n;) {
        struct group *g = order[head];
        g->bound = worth(c, g);
        if (g->bound == 0) {
            head++;
            continue;
        }
        if (head + 1 == n || by_bound(&g, &order[head + 1]) < 0) {
            take(c, g);
            head++;
            continue;
        }
        uint32_t lo = head + 1, hi = n; /* sinks to its place */
        while (lo < hi) {
            const uint32_t mid = lo + (hi - lo) / 2;
            if (by_bound(&g, &order[mid]) > 0) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        memmove(order + head, order + head + 1, (lo - head - 1) * sizeof order[0]);
        order[lo - 1] = g;
    }
}

/* Moves single slots to cheaper keys. */
static void refine(struct cover *c)
{
    for (uint32_t s = 0; s < c->n_slots; s++) {
        if (c->chosen[s] == UINT32_MAX) {
            continue; /* too short for this remainder: see fr_choose_keys */
        }
        c->groups.v[c->group_of[c->chosen[s]]].users--;
        double best = -1;
        for (uint32_t i = c->first_option[s]; i < c->first_option[s + 1]; i++) {
            const struct group *g = &c->groups.v[c->group_of[c->options[i]]];
            const struct place *p = &c->places.v[c->options[i]];
            const bool is_last = (size_t)p->at + 4 == c->literals[s / FR_GATE_STRIDE].n;
            const double cost = (double)g->weight * ENTRY_PRICE * (is_last ? LAST_FACTOR : 1) +
                                (g->users == 0 ? price(g) : 0);
            if (best < 0 || cost < best) {
                best = cost;
                c->chosen[s] = c->options[i];
            }
        }
        c->groups.v[c->group_of[c->chosen[s]]].users++;
    }
}

int fr_choose_keys(const fr_sv *literals, uint32_t n, struct fr_arena *arena, struct fr_choice *ret,
                   struct fr_err *err)
{
    struct cover c = {.literals = literals};
    int rc = gather(&c, literals, n);
    rc = rc < 0 ? rc : index_places(&c, arena);
    struct group **order = FR_NEW_N(arena, struct group *, c.groups.n + 1);
    rc = rc < 0 || order == NULL ? -FR_NOMEM : 0;
    if (rc == 0) {
        greedy(&c, order);
        for (int i = 0; i < PASSES; i++) {
            refine(&c);
        }
    }
    for (uint32_t s = 0; rc == 0 && s < c.n_slots; s++) {
        const size_t len = literals[s / FR_GATE_STRIDE].n;
        if (c.chosen[s] != UINT32_MAX) {
            ret[s].at = c.places.v[c.chosen[s]].at;
        } else { /* 5 or 6 bytes: the first three or the last three, and a free byte */
            ret[s].at = s % FR_GATE_STRIDE == 3 ? -1 : (int16_t)(len - 3);
        }
    }
    fr_vec_free(c.places.v);
    fr_vec_free(c.groups.v);
    return rc == 0 ? 0 : fr_err_set(err, FR_NOMEM, "out of memory while choosing keys");
}
