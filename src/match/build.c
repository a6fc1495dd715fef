/* SPDX-License-Identifier: Apache-2.0 */
/* build: chooses the grams and lays the tables out. Runs in the build for the built-in library and at run time for a
 * user's; the same input gives the same tables. */
#include "match/rules.h"

#include "base/map.h"
#include "base/vec.h"
#include "match/choose.h"
#include "match/weights.h"

#include <stdlib.h>

struct building {
    struct fr_arena *arena;
    struct fr_err *err;
    struct fr_map by_text; /* literal -> index */
    FR_VEC(struct fr_literal) literals;
    FR_VEC(uint32_t) pairs; /* literal << 16 | signal */
    FR_VEC(struct fr_entry) entries;
    FR_VEC(struct fr_gram) grams;
};

static int nomem(struct building *b)
{
    return fr_err_set(b->err, FR_NOMEM, "out of memory while building the matcher");
}

/* The literal's index, new or known; -FR_* on failure. */
static int64_t add_literal(struct building *b, const char *text)
{
    const fr_sv t = fr_sv_z(text);
    if (t.n < 4 || t.n > UINT16_MAX) {
        return fr_err_set(b->err, FR_ARG, "a literal of the matcher needs 4 bytes or more: '%s'", text);
    }
    if (b->literals.n >= UINT16_MAX) {
        return fr_err_set(b->err, FR_LIMIT, "more than %d literals in the matcher", UINT16_MAX);
    }
    bool is_new = false;
    uint32_t *slot = fr_map_slot(&b->by_text, t, &is_new);
    if (slot == NULL) {
        return nomem(b);
    }
    if (is_new) {
        *slot = b->literals.n;
        struct fr_literal *l = FR_PUSH(&b->literals);
        if (l == NULL) {
            return nomem(b);
        }
        l->text = fr_arena_strdup(b->arena, t);
        l->n = (uint32_t)t.n;
        if (l->text == NULL) {
            return nomem(b);
        }
    }
    return *slot;
}

static int collect(struct building *b, const struct fr_library *lib, struct fr_hooks hooks)
{
    for (uint32_t s = 0; s < lib->n_signals; s++) {
        const char *const *list = lib->signals[s].literals;
        for (uint32_t i = 0; list != NULL && list[i] != NULL; i++) {
            const int64_t at = add_literal(b, list[i]);
            if (at < 0) {
                return (int)at;
            }
            uint32_t *pair = FR_PUSH(&b->pairs);
            if (pair == NULL) {
                return nomem(b);
            }
            *pair = (uint32_t)at << 16 | s;
        }
    }
    for (unsigned i = 0; i < hooks.n; i++) {
        const struct fr_hook *h = &hooks.v[i];
        const int64_t at = add_literal(b, h->literal);
        if (at < 0) {
            return (int)at;
        }
        struct fr_literal *l = &b->literals.v[at];
        if (h->kind == FR_HOOK_TRACE) {
            l->traces |= 1u << (h->module & 31);
        } else if (h->kind == FR_HOOK_METRIC) {
            l->metrics |= 1ull << (h->module & 63);
        } else {
            l->facts |= 1ull << (h->module & 63);
        }
    }
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static int by_wide_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Owners in order of literal, then signal. */
static int lay_owners(struct building *b, struct fr_rules *r)
{
    uint16_t *owners = FR_NEW_N(b->arena, uint16_t, b->pairs.n + 1);
    if (owners == NULL) {
        return nomem(b);
    }
    if (b->pairs.n > 1) {
        qsort(b->pairs.v, b->pairs.n, sizeof b->pairs.v[0], by_value);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->pairs.n; i++) {
        if (i > 0 && b->pairs.v[i] == b->pairs.v[i - 1]) {
            continue; /* a literal listed twice */
        }
        struct fr_literal *l = &b->literals.v[b->pairs.v[i] >> 16];
        if (l->n_owners++ == 0) {
            l->first_owner = n;
        }
        owners[n++] = (uint16_t)(b->pairs.v[i] & 0xffff);
    }
    r->owners = owners;
    r->n_owners = n;
    return 0;
}

/* The rarest 8 bytes of a literal: what tells it best from others that share its gram. */
static void set_word(struct fr_entry *e, const struct fr_literal *l)
{
    if (l->n < 8) {
        memcpy(&e->word, l->text, l->n);
        memset(&e->mask, 0xff, l->n);
        return;
    }
    uint64_t best = UINT64_MAX;
    for (uint32_t k = 0; k + 8 <= l->n; k++) {
        uint64_t weight = 0;
        for (uint32_t i = k; i < k + 5; i++) {
            weight += fr_gram_weight(fr_gram_at((const uint8_t *)l->text + i));
        }
        if (weight < best) {
            best = weight;
            e->word_at = (uint16_t)k;
        }
    }
    memcpy(&e->word, l->text + e->word_at, 8);
    e->mask = UINT64_MAX;
}

static int choose(struct building *b, struct fr_choice **ret)
{
    fr_sv *texts = FR_NEW_N(b->arena, fr_sv, b->literals.n + 1);
    *ret = FR_NEW_N(b->arena, struct fr_choice, b->literals.n + 1);
    if (texts == NULL || *ret == NULL) {
        return nomem(b);
    }
    for (uint32_t i = 0; i < b->literals.n; i++) {
        texts[i] = (fr_sv){b->literals.v[i].text, b->literals.v[i].n};
    }
    return fr_choose_grams(texts, b->literals.n, b->arena, *ret, b->err);
}

/* Entries grouped by gram; within one gram by literal, so that the order of tests does not depend on the hash. */
static int lay_entries(struct building *b, const struct fr_choice *choice)
{
    const uint32_t n = b->literals.n;
    uint64_t *order = FR_NEW_N(b->arena, uint64_t, n + 1); /* gram << 32 | literal */
    if (order == NULL) {
        return nomem(b);
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = (uint64_t)choice[i].gram << 32 | i;
    }
    if (n > 1) {
        qsort(order, n, sizeof order[0], by_wide_value);
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t literal = (uint32_t)order[i], gram = (uint32_t)(order[i] >> 32);
        struct fr_entry *e = FR_PUSH(&b->entries);
        if (e == NULL) {
            return nomem(b);
        }
        e->literal = literal;
        e->at = choice[literal].at;
        set_word(e, &b->literals.v[literal]);
        struct fr_gram *g = b->grams.n > 0 ? &b->grams.v[b->grams.n - 1] : NULL;
        if (g == NULL || g->gram != gram) {
            g = FR_PUSH(&b->grams);
            if (g == NULL) {
                return nomem(b);
            }
            *g = (struct fr_gram){gram, i, 0};
        }
        g->n++;
    }
    return 0;
}

static int lay_grams(struct building *b, struct fr_rules *r)
{
    uint32_t size = 16;
    while (size < b->grams.n * 4) {
        size *= 2;
    }
    struct fr_gram *table = FR_NEW_N(b->arena, struct fr_gram, size);
    struct fr_gate *gate = FR_NEW(b->arena, struct fr_gate);
    if (table == NULL || gate == NULL) {
        return nomem(b);
    }
    for (uint32_t i = 0; i < b->grams.n; i++) {
        uint32_t at = fr_gram_place(b->grams.v[i].gram, size - 1);
        while (table[at].n != 0) {
            at = (at + 1) & (size - 1);
        }
        table[at] = b->grams.v[i];
        const uint32_t h = fr_gate_hash(b->grams.v[i].gram);
        gate->bits[h >> 6] |= 1ull << (h & 63);
    }
    r->grams = table;
    r->gram_mask = size - 1;
    r->n_grams = b->grams.n;
    r->gate = gate;
    return 0;
}

static const void *keep(struct building *b, const void *v, size_t size)
{
    void *p = fr_arena_alloc(b->arena, size + 1);
    if (p != NULL && size > 0) {
        memcpy(p, v, size);
    }
    return p;
}

int fr_rules_build(const struct fr_library *lib, struct fr_hooks hooks, struct fr_arena *arena,
                   struct fr_rules *ret, struct fr_err *err)
{
    struct building b = {.arena = arena, .err = err};
    struct fr_rules r = {.library = lib};
    struct fr_choice *choice = NULL;
    fr_map_init(&b.by_text, arena);
    int rc = collect(&b, lib, hooks);
    rc = rc < 0 ? rc : lay_owners(&b, &r);
    rc = rc < 0 ? rc : choose(&b, &choice);
    rc = rc < 0 ? rc : lay_entries(&b, choice);
    rc = rc < 0 ? rc : lay_grams(&b, &r);
    if (rc == 0) {
        r.n_literals = b.literals.n;
        r.n_entries = b.entries.n;
        r.literals = keep(&b, b.literals.v, b.literals.n * sizeof b.literals.v[0]);
        r.entries = keep(&b, b.entries.v, b.entries.n * sizeof b.entries.v[0]);
        rc = r.literals == NULL || r.entries == NULL ? nomem(&b) : 0;
    }
    fr_vec_free(b.literals.v);
    fr_vec_free(b.pairs.v);
    fr_vec_free(b.entries.v);
    fr_vec_free(b.grams.v);
    if (rc == 0) {
        *ret = r;
    }
    return rc;
}
