/* SPDX-License-Identifier: Apache-2.0 */
/* buf: growing text with a cap set at birth and a sticky failure: append freely, check fr_buf_ok() at the end.
 * Always NUL-terminated when p is not NULL. */
#ifndef FR_BASE_BUF_H
#define FR_BASE_BUF_H

#include "base/view.h"
#include <stdarg.h>

struct fr_buf {
    char *p;
    size_t n, cap, limit; /* limit 0 = none */
    bool failed;
};
#define FR_BUF_INIT(limit_) ((struct fr_buf){NULL, 0, 0, (limit_), false})

void fr_buf_add(struct fr_buf *b, fr_sv s);
void fr_buf_addz(struct fr_buf *b, const char *z);
void fr_buf_addc(struct fr_buf *b, char c);
__attribute__((format(printf, 2, 3))) void fr_buf_printf(struct fr_buf *b, const char *fmt, ...);
void fr_buf_clear(struct fr_buf *b); /* empty, keeps memory, forgets the failure */
void fr_buf_release(struct fr_buf *b);
static inline bool fr_buf_ok(const struct fr_buf *b) { return !b->failed; }
static inline fr_sv fr_buf_sv(const struct fr_buf *b) { return (fr_sv){b->p ? b->p : "", b->n}; }

/* Released on every path out of the scope: FR_AUTO(fr_buf) out = FR_BUF_INIT(0); */
#define FR_AUTO(T) __attribute__((cleanup(T##_release))) struct T

#endif
