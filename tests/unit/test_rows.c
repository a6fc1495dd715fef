/* SPDX-License-Identifier: Apache-2.0 */
/* rows against a look at every element, with the bytes in any pieces. */
#include "tensor/rows.h"
#include "support/t.h"

#include <string.h>

static uint64_t seed = 3;

static uint32_t roll(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 33) % below;
}

static void naive(const unsigned char *p, size_t rows, size_t bytes, uint32_t width,
                  struct fr_rows *r)
{
    *r = (struct fr_rows){.first_zero = UINT64_MAX, .first_equal = UINT64_MAX, .rows = rows};
    for (size_t k = 0; k < rows; k++, p += bytes) {
        bool equal = true, zero = true;
        for (size_t i = 0; i < bytes; i++) {
            equal = equal && p[i] == p[i % width];
            zero = zero && p[i] == 0;
        }
        r->first_zero = zero && r->zero == 0 ? k : r->first_zero;
        r->first_equal = equal && !zero && r->equal_not_zero == 0 ? k : r->first_equal;
        r->zero += zero;
        r->equal_not_zero += equal && !zero;
        r->zero_at_end = zero ? r->zero_at_end + 1 : 0;
    }
}

T_TEST(any_pieces)
{
    static unsigned char p[64 * 96 * 8];
    static const uint32_t widths[] = {1, 2, 4, 8};
    for (int round = 0; round < 3000; round++) {
        const uint32_t width = widths[roll(4)], columns = 32 + roll(64);
        const size_t rows = 1 + roll(40), bytes = (size_t)columns * width, all = rows * bytes;
        struct fr_rows want, got;
        for (size_t k = 0; k < rows; k++) {
            const uint32_t kind = roll(4);
            const unsigned char c[8] = {(unsigned char)roll(3), 1, 2, 0, 0, 0, 0, 0x3c};
            for (size_t i = 0; i < bytes; i++) {
                p[k * bytes + i] = kind == 0   ? 0
                                   : kind == 1 ? c[i % width]
                                   : kind == 2 ? (unsigned char)roll(256)
                                               : c[i % width];
            }
            if (kind == 3) {
                p[k * bytes + roll((uint32_t)bytes)] ^= 1; /* one bit from equal */
            }
        }
        naive(p, rows, bytes, width, &want);
        fr_rows_begin(&got, bytes, width, 0);
        for (size_t at = 0; at < all;) {
            size_t n = (1 + roll(300)) * (size_t)width;
            n = n < all - at ? n : all - at;
            fr_rows_add(&got, p + at, n);
            at += n;
        }
        T_OK(got.rows == want.rows && got.zero == want.zero &&
             got.equal_not_zero == want.equal_not_zero && got.first_zero == want.first_zero &&
             got.first_equal == want.first_equal && got.zero_at_end == want.zero_at_end);
    }
}

int main(void)
{
    return t_run();
}
