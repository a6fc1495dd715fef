/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include "base/alloc.h"

#include <string.h>

void *fr_vec_push(void **v, uint32_t *n, uint32_t *cap, size_t size)
{
    if (*n == *cap) {
        uint32_t want = *cap == 0 ? 4 : *cap * 2;
        void *grown = want > *cap ? fr_realloc(*v, (size_t)want * size) : NULL;
        if (grown == NULL) {
            return NULL;
        }
        *v = grown;
        *cap = want;
    }
    void *slot = (char *)*v + (size_t)*n * size;
    memset(slot, 0, size);
    (*n)++;
    return slot;
}

void fr_vec_free(void *v)
{
    fr_free(v);
}
