/* SPDX-License-Identifier: Apache-2.0 */
/* build: chooses the keys and lays the tables out. Runs in the build for the built-in library and
 * at run time for a user's; the same input gives the same tables. */
#include "match/rules.h"

#include "base/map.h"
#include "base/vec.h"
#include "match/choose.h"

#include <stdlib.h>

#define LITERAL_LONGEST 255
#define PER_KEY_MAX     4095 /* what struct fr_place can hold */
#define ENTRIES_MAX     1000000
#define PLACES_MAX      (1u << 22)

struct keyed {          /* an entry to be */
    uint32_t key, slot; /* slot: literal * 4 + remainder */
    int16_t at;
};

struct building {
    struct fr_arena *arena;
    struct fr_err *err;
    struct fr_map by_text; /* literal -> index */
    FR_VEC(struct fr_literal) literals;
    FR_VEC(uint32_t) pairs; /* literal << 16 | signal */
    FR_VEC(struct fr_entry) entries;
    FR_VEC(struct keyed) keyed;
    FR_VEC(struct fr_place) keys;
};

static int nomem(struct building *b)
{
    return fr_err_set(b->err, FR_NOMEM, "out of memory while building the matcher");
}

/* The literal's index, new or known; -FR_* on failure. */
static int64_t add_literal(struct building *b, const char *text)
{
    const fr_sv t = fr_sv_z(text);
    if (t.n < FR_LITERAL_SHORTEST || t.n > LITERAL_LONGEST || memchr(t.p, '\n', t.n) != NULL) {
        return fr_err_set(b->err, FR_ARG,
                          "a literal of the matcher needs %d to %d bytes and no line end: '%.80s'",
                          FR_LITERAL_SHORTEST, LITERAL_LONGEST, text);
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

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return x->slot < y->slot ? -1 : x->slot > y->slot;
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

/* What is beside the key in the literal. */
static void set_beside(struct fr_entry *e, const struct fr_literal *l)
{
    uint8_t bytes[8] = {0}, mask[8] = {0};
    for (int i = 0; i < 8; i++) {
        const int k = i < 4 ? e->at - 4 + i : e->at + i;
        if (k >= 0 && k < (int)l->n) {
            bytes[i] = (uint8_t)l->text[k];
            mask[i] = 0xff;
        }
    }
    e->beside = fr_two_words(fr_load32(bytes), fr_load32(bytes + 4));
    e->mask = fr_two_words(fr_load32(mask), fr_load32(mask + 4));
}

static int add_keyed(struct building *b, uint32_t key, uint32_t slot, int16_t at)
{
    struct keyed *k = FR_PUSH(&b->keyed);
    if (k == NULL) {
        return nomem(b);
    }
    *k = (struct keyed){key, slot, at};
    return 0;
}

/* The keys of one slot: one, or 32 when a free byte beside a short literal is part of it. */
static int add_slot(struct building *b, struct fr_gate *gate, uint32_t slot, int16_t at)
{
    const struct fr_literal *l = &b->literals.v[slot / FR_GATE_STRIDE];
    uint8_t bytes[4] = {0};
    int free_at = -1;
    for (int i = 0; i < 4; i++) {
        if (at + i >= 0 && at + i < (int)l->n) {
            bytes[i] = (uint8_t)l->text[at + i];
        } else {
            free_at = i;
        }
    }
    const uint8_t follows = at + 4 < (int)l->n ? (uint8_t)(1u << (l->text[at + 4] & 7)) : 0xff;
    int rc = 0;
    for (uint8_t v = 0; v < (free_at < 0 ? 1 : 32) && rc == 0; v++) {
        if (free_at >= 0) {
            bytes[free_at] = v;
        }
        const uint32_t key = fr_key(fr_load32(bytes));
        gate->next[fr_gate_hash(key)] |= follows;
        rc = add_keyed(b, key, slot, at);
    }
    return rc;
}

static int choose(struct building *b, struct fr_rules *r)
{
    const uint32_t n = b->literals.n;
    fr_sv *texts = FR_NEW_N(b->arena, fr_sv, n + 1);
    struct fr_choice *choice = FR_NEW_N(b->arena, struct fr_choice, n * FR_GATE_STRIDE + 1);
    struct fr_gate *gate = FR_NEW(b->arena, struct fr_gate);
    if (texts == NULL || choice == NULL || gate == NULL) {
        return nomem(b);
    }
    for (uint32_t i = 0; i < n; i++) {
        texts[i] = (fr_sv){b->literals.v[i].text, b->literals.v[i].n};
    }
    int rc = fr_choose_keys(texts, n, b->arena, choice, b->err);
    for (uint32_t slot = 0; slot < n * FR_GATE_STRIDE && rc == 0; slot++) {
        rc = add_slot(b, gate, slot, choice[slot].at);
    }
    if (b->keyed.n > 1) {
        qsort(b->keyed.v, b->keyed.n, sizeof b->keyed.v[0], by_key);
    }
    r->gate = gate;
    return rc;
}

/* The bytes next to the key in one of its entries; any byte where the literal has ended. */
static void add_beside(struct fr_place *p, const struct fr_literal *l, int at)
{
    p->next |= at + 4 < (int)l->n ? 1u << (l->text[at + 4] & 31) : UINT32_MAX;
    p->last |= at > 0 ? 1u << (l->text[at - 1] & 31) : UINT32_MAX;
}

/* Entries grouped by key; within one key by literal, so that the order of tests does not depend on
 * the hash. */
static int lay_entries(struct building *b)
{
    for (uint32_t i = 0; i < b->keyed.n; i++) {
        const struct keyed *k = &b->keyed.v[i];
        struct fr_entry *e = FR_PUSH(&b->entries);
        if (e == NULL) {
            return nomem(b);
        }
        e->literal = (uint16_t)(k->slot / FR_GATE_STRIDE);
        e->at = k->at;
        e->n = (uint16_t)b->literals.v[e->literal].n;
        set_beside(e, &b->literals.v[e->literal]);
        if (i == 0 || b->keyed.v[i - 1].key != k->key) {
            struct fr_place *fresh = FR_PUSH(&b->keys);
            if (fresh == NULL) {
                return nomem(b);
            }
            *fresh = (struct fr_place){.key = k->key, .first = i};
        }
        struct fr_place *p = &b->keys.v[b->keys.n - 1];
        add_beside(p, &b->literals.v[e->literal], k->at);
        if (p->n == PER_KEY_MAX || b->entries.n > ENTRIES_MAX) {
            return fr_err_set(b->err, FR_LIMIT, "too many literals in the matcher");
        }
        p->n++;
    }
    return 0;
}

struct bucket {
    uint32_t shift_of, first, n; /* keys in by_bucket */
};

static int by_size(const void *a, const void *b)
{
    const struct bucket *x = a, *y = b;
    if (x->n != y->n) {
        return x->n > y->n ? -1 : 1;
    }
    return x->shift_of < y->shift_of ? -1 : x->shift_of > y->shift_of;
}

/* Puts the keys of one bucket where they fall with this shift; false, with nothing put, when one
 * falls on another. */
static bool put_bucket(const struct fr_place *keys, const uint32_t *members, uint32_t n,
                       uint32_t shift, struct fr_place *table, uint32_t mask)
{
    for (uint32_t i = 0; i < n; i++) {
        struct fr_place *at = &table[fr_place_of(keys[members[i]].key, shift, mask)];
        if (at->n != 0) {
            while (i-- > 0) {
                table[fr_place_of(keys[members[i]].key, shift, mask)] = (struct fr_place){0};
            }
            return false;
        }
        *at = keys[members[i]];
    }
    return true;
}

/* Largest buckets first, while there is room. False: this table is too small. */
static bool displace(const struct fr_place *keys, const struct bucket *buckets,
                     const uint32_t *members, uint16_t *shifts, struct fr_place *table,
                     uint32_t mask)
{
    for (uint32_t b = 0; b < 1u << FR_SHIFT_BITS && buckets[b].n > 0; b++) {
        uint32_t shift = 0;
        while (!put_bucket(keys, members + buckets[b].first, buckets[b].n, shift, table, mask)) {
            if (++shift > UINT16_MAX) {
                return false;
            }
        }
        shifts[buckets[b].shift_of] = (uint16_t)shift;
    }
    return true;
}

static int lay_places(struct building *b, struct fr_rules *r)
{
    const uint32_t n = b->keys.n, n_buckets = 1u << FR_SHIFT_BITS;
    struct bucket *buckets = FR_NEW_N(b->arena, struct bucket, n_buckets);
    uint32_t *members = FR_NEW_N(b->arena, uint32_t, n + 1);
    uint16_t *shifts = FR_NEW_N(b->arena, uint16_t, n_buckets);
    if (buckets == NULL || members == NULL || shifts == NULL) {
        return nomem(b);
    }
    for (uint32_t i = 0; i < n; i++) {
        buckets[fr_shift_of(b->keys.v[i].key)].n++;
    }
    for (uint32_t i = 0, at = 0; i < n_buckets; i++) {
        buckets[i].shift_of = i;
        buckets[i].first = at;
        at += buckets[i].n;
        buckets[i].n = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct bucket *bucket = &buckets[fr_shift_of(b->keys.v[i].key)];
        members[bucket->first + bucket->n++] = i;
    }
    qsort(buckets, n_buckets, sizeof buckets[0], by_size);
    for (uint32_t size = 16; size <= PLACES_MAX; size *= 2) {
        struct fr_place *table =
            size < n + n / 4 ? NULL : FR_NEW_N(b->arena, struct fr_place, size);
        if (size >= n + n / 4 && table == NULL) {
            return nomem(b);
        }
        if (table != NULL && displace(b->keys.v, buckets, members, shifts, table, size - 1)) {
            r->places = table;
            r->place_mask = size - 1;
            r->shifts = shifts;
            r->n_keys = n;
            return 0;
        }
    }
    return fr_err_set(b->err, FR_LIMIT, "too many literals in the matcher");
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
    fr_map_init(&b.by_text, arena);
    int rc = collect(&b, lib, hooks);
    rc = rc < 0 ? rc : lay_owners(&b, &r);
    rc = rc < 0 ? rc : choose(&b, &r);
    rc = rc < 0 ? rc : lay_entries(&b);
    rc = rc < 0 ? rc : lay_places(&b, &r);
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
    fr_vec_free(b.keyed.v);
    fr_vec_free(b.keys.v);
    if (rc == 0) {
        *ret = r;
    }
    return rc;
}
