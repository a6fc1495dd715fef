/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_oracle: rows to try the kernels on, their results in double, and the bounds that
 * numerics.h states. */
#ifndef FR_TESTS_KERNEL_ORACLE_H
#define FR_TESTS_KERNEL_ORACLE_H

#include "faultrank/numerics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORACLE_MOST = 4200 };

/* X(constant, "name"): how a row is filled; every value is one of the type. */
#define ORACLE_FILLS(X) \
    X(NORMAL, "normal") X(WIDE, "all magnitudes") X(ONE_300, "one 300 among small ones") \
    X(ONE_MOST, "one largest") X(EDGE, "all 255.875") X(MOST_LEAST, "largest and smallest in turns") \
    X(CANCEL, "a large mean, one unit apart") X(SUBNORMAL, "subnormal") X(ZERO, "zero") \
    X(EQUAL, "all equal") X(OPPOSITE, "largest with both signs") X(LAST, "all zero but the last") \
    X(PLUS_ONE, "ones, one of them a unit more")

enum {
#define X(constant, name) FILL_##constant,
    ORACLE_FILLS(X)
#undef X
    FILLS
};
const char *oracle_fill_name(int fill);

/* xorshift: the same numbers everywhere. */
struct oracle_rng {
    uint64_t s;
};
uint32_t oracle_random(struct oracle_rng *g);
uint32_t oracle_below(struct oracle_rng *g, uint32_t n);

/* A row of values and their codes, the codes at an odd address if odd. */
struct oracle_row {
    uint32_t type;
    size_t n;
    double v[ORACLE_MOST];
    uint8_t room[4 * ORACLE_MOST + 8], *codes;
};
void oracle_fill(struct oracle_row *r, int fill, uint32_t type, size_t n, bool odd,
                 struct oracle_rng *g);
void oracle_encode(struct oracle_row *r); /* v to codes */
/* An empty row for a kernel to write to. */
void oracle_blank(struct oracle_row *r, uint32_t type, size_t n, bool odd);
struct fr_in oracle_in(const struct oracle_row *r);
struct fr_out oracle_out(struct oracle_row *r);

/* Results in double, and in bound what is allowed besides the storage's half unit. */
struct oracle_want {
    double v[ORACLE_MOST], bound[ORACLE_MOST];
};
void oracle_rms(const struct oracle_row *x, const struct oracle_row *w, double eps,
                struct oracle_want *y);
void oracle_rms_backward(const struct oracle_row *x, const struct oracle_row *w,
                         const struct oracle_row *dy, double eps, struct oracle_want *dx,
                         struct oracle_want *dw);
void oracle_layer(const struct oracle_row *x, const struct oracle_row *w,
                  const struct oracle_row *b, double eps, struct oracle_want *y);
void oracle_layer_backward(const struct oracle_row *x, const struct oracle_row *w,
                           const struct oracle_row *dy, double eps, struct oracle_want *dx,
                           struct oracle_want *dw);
/* mask as for fr_kernel_softmax, or NULL. */
void oracle_softmax(const struct oracle_row *x, const struct oracle_row *mask,
                    struct oracle_want *y);

/* How far got is from want, in units of what is allowed in a type: at most 1 when right; 0 when both
 * are NaN, infinite where one is. */
double oracle_off(uint32_t type, double got, double want, double bound);
/* The worst of a row of codes. *ret_at, where it is. */
double oracle_worst(const struct oracle_row *got, const struct oracle_want *want, size_t *ret_at);

#endif
