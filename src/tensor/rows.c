/* SPDX-License-Identifier: Apache-2.0 */
/* rows: a row of equal elements is one that equals itself shifted by an element, which memcmp finds
 * out as fast as memory is read. */
#include "tensor/rows.h"

#include <string.h>

void fr_rows_begin(struct fr_rows *r, uint64_t bytes, uint32_t width, uint64_t row)
{
    *r = (struct fr_rows){.bytes = bytes,
                          .width = width,
                          .rows = row,
                          .first_zero = UINT64_MAX,
                          .first_equal = UINT64_MAX};
}

static bool is_zero(const unsigned char *p, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++) {
        if (p[i] != 0) {
            return false;
        }
    }
    return true;
}

static void row_ends(struct fr_rows *r)
{
    if (r->equal && is_zero(r->first, r->width)) {
        r->first_zero = r->zero == 0 ? r->rows : r->first_zero;
        r->zero++;
        r->zero_at_end++;
    } else {
        r->zero_at_end = 0;
        if (r->equal) {
            r->first_equal = r->equal_not_zero == 0 ? r->rows : r->first_equal;
            r->equal_not_zero++;
        }
    }
    r->rows++;
    r->at = 0;
}

/* Whether n bytes repeat their first element. */
static bool repeats(const unsigned char *p, size_t n, uint32_t width)
{
    return n <= width || memcmp(p, p + width, n - width) == 0;
}

static void part(struct fr_rows *r, const unsigned char *p, size_t n)
{
    if (r->at == 0) {
        memcpy(r->first, p, r->width);
        r->equal = true;
    }
    r->equal = r->equal && memcmp(p, r->first, r->width) == 0 && repeats(p, n, r->width);
    r->at += n;
    if (r->at == r->bytes) {
        row_ends(r);
    }
}

void fr_rows_add(struct fr_rows *r, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    while (n > 0) {
        const uint64_t left = r->bytes - r->at;
        if (r->at == 0 && left <= n) {
            uint64_t a, b;
            memcpy(&a, p, 8);
            memcpy(&b, p + 8, 8);
            if (a != b) { /* not equal, whatever the width; nor zero */
                r->rows++;
                r->zero_at_end = 0;
                p += left;
                n -= left;
                continue;
            }
        }
        const size_t now = left < n ? (size_t)left : n;
        part(r, p, now);
        p += now;
        n -= now;
    }
}
