/* SPDX-License-Identifier: Apache-2.0 */
/* map: open addressing, at most half full; old tables stay in the arena (they are half the size of the next). */
#include "base/map.h"

struct fr_map_slot {
    fr_sv key;
    uint64_t hash;
    uint32_t value;
    bool used;
};

void fr_map_init(struct fr_map *m, struct fr_arena *arena)
{
    *m = (struct fr_map){.arena = arena};
}

static struct fr_map_slot *probe(struct fr_map_slot *slots, uint32_t cap, fr_sv key, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (cap - 1);
    while (slots[i].used && (slots[i].hash != hash || !fr_sv_eq(slots[i].key, key))) {
        i = (i + 1) & (cap - 1);
    }
    return &slots[i];
}

static bool grow(struct fr_map *m)
{
    uint32_t cap = m->cap == 0 ? 16 : m->cap * 2;
    struct fr_map_slot *slots = cap > m->cap ? FR_NEW_N(m->arena, struct fr_map_slot, cap) : NULL;
    uint32_t *order = slots == NULL ? NULL : FR_NEW_N(m->arena, uint32_t, cap);
    if (order == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        struct fr_map_slot *old = &m->slots[m->order[i]];
        struct fr_map_slot *s = probe(slots, cap, old->key, old->hash);
        *s = *old;
        order[i] = (uint32_t)(s - slots);
    }
    m->slots = slots;
    m->order = order;
    m->cap = cap;
    return true;
}

bool fr_map_get(const struct fr_map *m, fr_sv key, uint32_t *ret)
{
    if (m->n == 0) {
        return false;
    }
    const struct fr_map_slot *s = probe(m->slots, m->cap, key, fr_sv_hash(key));
    if (!s->used) {
        return false;
    }
    *ret = s->value;
    return true;
}

uint32_t *fr_map_slot(struct fr_map *m, fr_sv key, bool *ret_new)
{
    if (m->n * 2 >= m->cap && !grow(m)) {
        return NULL;
    }
    uint64_t hash = fr_sv_hash(key);
    struct fr_map_slot *s = probe(m->slots, m->cap, key, hash);
    if (ret_new != NULL) {
        *ret_new = !s->used;
    }
    if (!s->used) {
        fr_sv copy = fr_arena_dup(m->arena, key);
        if (copy.p == NULL) {
            return NULL;
        }
        *s = (struct fr_map_slot){copy, hash, 0, true};
        m->order[m->n++] = (uint32_t)(s - m->slots);
    }
    return &s->value;
}

bool fr_map_put(struct fr_map *m, fr_sv key, uint32_t value)
{
    uint32_t *slot = fr_map_slot(m, key, NULL);
    if (slot == NULL) {
        return false;
    }
    *slot = value;
    return true;
}

fr_sv fr_map_key(const struct fr_map *m, uint32_t i)
{
    return m->slots[m->order[i]].key;
}

uint32_t fr_map_value(const struct fr_map *m, uint32_t i)
{
    return m->slots[m->order[i]].value;
}
