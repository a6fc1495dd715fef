/* SPDX-License-Identifier: Apache-2.0 */
/* map: string -> uint32 in an arena. Keys are copied. Iteration order = order of first insertion: fr_map_key(m, i). */
#ifndef FR_BASE_MAP_H
#define FR_BASE_MAP_H

#include "base/arena.h"

struct fr_map_slot;
struct fr_map {
    struct fr_arena *arena;
    struct fr_map_slot *slots;
    uint32_t n, cap;
    uint32_t *order; /* slot index by insertion */
};

void fr_map_init(struct fr_map *m, struct fr_arena *arena);
bool fr_map_get(const struct fr_map *m, fr_sv key, uint32_t *ret);
bool fr_map_put(struct fr_map *m, fr_sv key, uint32_t value);          /* replaces; false = no memory */
uint32_t *fr_map_slot(struct fr_map *m, fr_sv key, bool *ret_new);     /* find or insert (0); NULL = no memory; valid until next insert */
fr_sv fr_map_key(const struct fr_map *m, uint32_t i);
uint32_t fr_map_value(const struct fr_map *m, uint32_t i);

#endif
