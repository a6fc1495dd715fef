/* SPDX-License-Identifier: Apache-2.0 */
/* arena: memory that dies together. Chunks grow from 4 KiB to 256 KiB; `limit` bytes in all (0 = none), beyond it NULL.
 * Reset keeps the first chunk and poisons it under ASan, so a stale view traps. Not thread-safe. */
#ifndef FR_BASE_ARENA_H
#define FR_BASE_ARENA_H

#include "base/view.h"

struct fr_arena_chunk;
struct fr_arena {
    struct fr_arena_chunk *chunk; /* newest first */
    size_t used;                  /* bytes handed out, all chunks */
    size_t limit;
};
#define FR_ARENA_INIT(limit_) ((struct fr_arena){NULL, 0, (limit_)})

void *fr_arena_alloc(struct fr_arena *a, size_t n);              /* 16-aligned, zeroed; NULL: no memory or limit */
fr_sv fr_arena_dup(struct fr_arena *a, fr_sv s);                 /* NUL-terminated copy; {NULL,0} on failure */
char *fr_arena_strdup(struct fr_arena *a, fr_sv s);              /* the same as char * */
__attribute__((format(printf, 2, 3))) fr_sv fr_arena_printf(struct fr_arena *a, const char *fmt, ...);
void fr_arena_reset(struct fr_arena *a);
void fr_arena_release(struct fr_arena *a);
#define FR_NEW(arena, T) ((T *)fr_arena_alloc((arena), sizeof(T)))
#define FR_NEW_N(arena, T, n) ((T *)fr_arena_alloc((arena), sizeof(T) * (size_t)(n)))

#endif
