/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdarg.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

enum { CHUNK_FIRST = 4096, CHUNK_MAX = 256 * 1024, ALIGN = 16 };

struct fr_arena_chunk {
    struct fr_arena_chunk *older;
    size_t size, used;
    _Alignas(ALIGN) char bytes[];
};

static struct fr_arena_chunk *chunk_new(struct fr_arena *a, size_t n)
{
    size_t size = a->chunk == NULL ? CHUNK_FIRST : a->chunk->size * 2;
    if (size > CHUNK_MAX) {
        size = CHUNK_MAX;
    }
    if (size < n) {
        size = n;
    }
    struct fr_arena_chunk *c = fr_malloc(sizeof *c + size);
    if (c == NULL) {
        return NULL;
    }
    c->older = a->chunk;
    c->size = size;
    c->used = 0;
    ASAN_POISON_MEMORY_REGION(c->bytes, size);
    a->chunk = c;
    return c;
}

void *fr_arena_alloc(struct fr_arena *a, size_t n)
{
    if (n > SIZE_MAX - ALIGN) {
        return NULL;
    }
    size_t take = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (take == 0) {
        take = ALIGN;
    }
    if (a->limit != 0 && (a->used > a->limit || take > a->limit - a->used)) {
        return NULL;
    }
    struct fr_arena_chunk *c = a->chunk;
    if (c == NULL || c->size - c->used < take) {
        c = chunk_new(a, take);
        if (c == NULL) {
            return NULL;
        }
    }
    void *p = c->bytes + c->used;
    c->used += take;
    a->used += take;
    ASAN_UNPOISON_MEMORY_REGION(p, n ? n : 1);
    memset(p, 0, n);
    return p;
}

fr_sv fr_arena_dup(struct fr_arena *a, fr_sv s)
{
    char *p = fr_arena_strdup(a, s);
    return p == NULL ? FR_SV_NONE : (fr_sv){p, s.n};
}

char *fr_arena_strdup(struct fr_arena *a, fr_sv s)
{
    char *p = s.n < SIZE_MAX ? fr_arena_alloc(a, s.n + 1) : NULL;
    if (p != NULL && s.n != 0) {
        memcpy(p, s.p, s.n);
    }
    return p;
}

fr_sv fr_arena_printf(struct fr_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *p = n < 0 ? NULL : fr_arena_alloc(a, (size_t)n + 1);
    if (p == NULL) {
        return FR_SV_NONE;
    }
    va_start(ap, fmt);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return (fr_sv){p, (size_t)n};
}

void fr_arena_reset(struct fr_arena *a)
{
    while (a->chunk != NULL && a->chunk->older != NULL) {
        struct fr_arena_chunk *older = a->chunk->older;
        fr_free(a->chunk);
        a->chunk = older;
    }
    if (a->chunk != NULL) {
        a->chunk->used = 0;
        ASAN_POISON_MEMORY_REGION(a->chunk->bytes, a->chunk->size);
    }
    a->used = 0;
}

void fr_arena_release(struct fr_arena *a)
{
    fr_arena_reset(a);
    fr_free(a->chunk);
    a->chunk = NULL;
}
