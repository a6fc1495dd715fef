/* SPDX-License-Identifier: Apache-2.0 */
/* alloc: malloc behind one door. The counters are relaxed atomics: tests read them, threads only add. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_long fail_after = -1;
static atomic_size_t calls;

static int refuse(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    if (atomic_load_explicit(&fail_after, memory_order_relaxed) < 0) {
        return 0;
    }
    return atomic_fetch_sub_explicit(&fail_after, 1, memory_order_relaxed) == 0;
}

void *fr_malloc(size_t n)
{
    return refuse() ? NULL : malloc(n ? n : 1);
}

void *fr_calloc(size_t n, size_t size)
{
    return refuse() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *fr_realloc(void *p, size_t n)
{
    return refuse() ? NULL : realloc(p, n ? n : 1);
}

void fr_free(void *p)
{
    free(p);
}

void fr_alloc_fail_after(long n)
{
    atomic_store(&fail_after, n);
}

size_t fr_alloc_calls(void)
{
    return atomic_load(&calls);
}
