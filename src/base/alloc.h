/* SPDX-License-Identifier: Apache-2.0 */
/* alloc: the only place that calls malloc, so that memory can be counted and failure injected.
 * fr_alloc_fail_after(n) makes the (n+1)th following allocation of this process fail (tests only); -1 switches it off. */
#ifndef FR_BASE_ALLOC_H
#define FR_BASE_ALLOC_H

#include <stddef.h>

void *fr_malloc(size_t n);
void *fr_calloc(size_t n, size_t size);
void *fr_realloc(void *p, size_t n); /* on failure p stays valid */
void fr_free(void *p);
void fr_alloc_fail_after(long n);
size_t fr_alloc_calls(void);

#endif
