/* SPDX-License-Identifier: Apache-2.0 */
/* guard: a mapped file that shrinks costs a flag, not the process. While a thread is inside a
 * guard, a SIGBUS in its window is answered by zero pages there and `lost` is set; the reader goes
 * on over zeros and asks afterwards. A SIGBUS anywhere else goes to whoever handled it before us.
 * Not a jump: the reader is never left half way.
 *
 * One window per thread. The handler is installed once per process, on first use, and stays.
 * Thread-safe. */
#ifndef FR_TENSOR_GUARD_H
#define FR_TENSOR_GUARD_H

#include <stdbool.h>
#include <stddef.h>

bool fr_guard_enter(
    void *window,
    size_t n); /* page-aligned; false when the handler cannot be installed: do not map then */
bool fr_guard_leave(void);                   /* whether pages were lost since enter */

#endif
