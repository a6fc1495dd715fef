/* SPDX-License-Identifier: Apache-2.0 */
/* rows: which rows of a matrix are all zero or all equal, from its bytes in any pieces. Nearly
 * every row is ruled out by its first 16 bytes; the rest of such a row is not looked at. Private to
 * the survey. */
#ifndef FR_TENSOR_ROWS_H
#define FR_TENSOR_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_rows {
    uint64_t bytes;         /* of a row */
    uint32_t width;         /* of an element, 1 to 8 */
    uint64_t at;            /* bytes of the current row seen */
    bool equal;             /* so far */
    unsigned char first[8]; /* its first element */
    uint64_t rows, zero, equal_not_zero, first_zero, first_equal, zero_at_end;
};

/* From the beginning of row number `row`; bytes is a multiple of width and at least 16. */
void fr_rows_begin(struct fr_rows *r, uint64_t bytes, uint32_t width, uint64_t row);
/* The next n bytes, a multiple of width. */
void fr_rows_add(struct fr_rows *r, const void *p, size_t n);

#endif
