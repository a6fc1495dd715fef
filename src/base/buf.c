/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/alloc.h"

#include <stdio.h>

static bool reserve(struct fr_buf *b, size_t more)
{
    if (b->failed || more > SIZE_MAX / 4 || (b->limit != 0 && (b->n > b->limit || more > b->limit - b->n))) {
        b->failed = true;
        return false;
    }
    size_t need = b->n + more + 1;
    if (need > b->cap) {
        size_t cap = b->cap < 64 ? 128 : b->cap * 2;
        if (cap < need) {
            cap = need;
        }
        char *p = fr_realloc(b->p, cap);
        if (p == NULL) {
            b->failed = true;
            return false;
        }
        b->p = p;
        b->cap = cap;
    }
    return true;
}

void fr_buf_add(struct fr_buf *b, fr_sv s)
{
    if (s.n == 0 || !reserve(b, s.n)) {
        return;
    }
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
    b->p[b->n] = '\0';
}

void fr_buf_addz(struct fr_buf *b, const char *z)
{
    fr_buf_add(b, fr_sv_z(z));
}

void fr_buf_addc(struct fr_buf *b, char c)
{
    fr_buf_add(b, (fr_sv){&c, 1});
}

void fr_buf_printf(struct fr_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0 || !reserve(b, (size_t)n)) {
        b->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->n += (size_t)n;
}

void fr_buf_clear(struct fr_buf *b)
{
    b->n = 0;
    b->failed = false;
    if (b->p != NULL) {
        b->p[0] = '\0';
    }
}

void fr_buf_release(struct fr_buf *b)
{
    fr_free(b->p);
    *b = FR_BUF_INIT(b->limit);
}
