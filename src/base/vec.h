/* SPDX-License-Identifier: Apache-2.0 */
/* vec: a typed growing array. FR_VEC(struct x) v = {0}; FR_PUSH(&v) yields a pointer to a new zeroed element or NULL
 * (no memory). Owner calls fr_vec_free(v.v). Elements move when it grows: keep indexes, not pointers. */
#ifndef FR_BASE_VEC_H
#define FR_BASE_VEC_H

#include <stddef.h>
#include <stdint.h>

#define FR_VEC(T)      \
    struct {           \
        T *v;          \
        uint32_t n;    \
        uint32_t cap;  \
    }
#define FR_PUSH(vec) ((__typeof__((vec)->v))fr_vec_push((void **)&(vec)->v, &(vec)->n, &(vec)->cap, sizeof *(vec)->v))

void *fr_vec_push(void **v, uint32_t *n, uint32_t *cap, size_t size);
void fr_vec_free(void *v);

#endif
