/* SPDX-License-Identifier: Apache-2.0 */
/* shape: parsing by example. The metric lines of a source repeat: the same bytes, other digits. A
 * shape is one of them and what fr_point_parse made of it: which bytes must stay, and which digits
 * are which number of the point. A line that fits needs no parser.
 * Nothing is known here about dialects: a new shape is found by asking fr_point_parse about lines
 * of that shape with other digits. Where its answers are not explained by the digits of one number
 * each, there is no shape.
 * Bounded: FR_SHAPE_BYTES of a line, FR_SHAPE_SLOTS numbers that count. Nothing is borrowed. */
#ifndef FR_SERIES_SHAPE_H
#define FR_SERIES_SHAPE_H

#include "base/view.h"
#include "model/series.h"

enum { FR_SHAPE_LEAST = 16, FR_SHAPE_BYTES = 512, FR_SHAPE_SLOTS = 16 };

/* A number of the line, and where in the point it goes: what is asked of every line, in half a
 * cache line. `before` and `others` are 0x0f where the eight bytes at `at` hold a digit before the
 * point, or any other one. */
struct fr_shape_slot {
    uint64_t before, others;
    uint64_t seen; /* the digits that are in the point already */
    uint16_t at, exponent; /* exponent: its two digits; 0: it has none */
    uint8_t shift; /* in bits, for a number that ends before the eighth byte of its line */
    int8_t point;  /* how many digits are behind it, negative */
    uint8_t field;
    bool is_short : 1; /* those eight bytes and nothing else */
    bool is_long : 1;  /* over what is exact here: fr_num_long reads it */
    bool minus : 1, down : 1; /* a sign before it; before its exponent */
    bool milli : 1;
};

/* The rest of a number that does not go into eight bytes. */
struct fr_shape_more {
    uint64_t before, others, times; /* times what stands there; 0: nothing does */
    uint16_t at, number;            /* number: where it begins */
    uint8_t shift;
};

/* Four numbers to be read at once: the sixteen bytes at `at` hold each. A number is its digits
 * divided by `by`, times `times` (one of the two is 1), times `last`: its sign and unit. */
struct fr_shape_four {
    _Alignas(16) uint8_t pick[4][16]; /* where its sixteen digits are, 0x80: there is none */
    double by[4], times[4], last[4];
    uint16_t at[4];
};

struct fr_shape {
    uint8_t n_slots;
    bool is_point; /* false: the parsers take no line of this shape */
    struct fr_point point;
    struct fr_shape_slot slots[FR_SHAPE_SLOTS];
    struct fr_shape_more more[FR_SHAPE_SLOTS];
    struct fr_shape_four fours[FR_SHAPE_SLOTS / 4];
    uint16_t with_exponent, by_itself; /* slots; those over what is exact for four at once */
    uint8_t to[FR_SHAPE_SLOTS];        /* of a slot: the place of its field in the point, by 8 */
    uint8_t n_whole;                   /* the first slots, of fields that are no fractions */
    uint16_t n;
    _Alignas(16) uint8_t like[FR_SHAPE_BYTES];
    _Alignas(16) uint8_t room[FR_SHAPE_BYTES];
};

/* The shape of this line, in which the digits before `fixed` must stay, but for those in
 * [from, to). False: it has none, and *ret is of no use. dialects as fr_point_parse wants them. */
bool fr_shape_learn(struct fr_shape *ret, fr_sv line, uint64_t dialects, size_t fixed, size_t from,
                    size_t to);
/* The line has this shape. */
bool fr_shape_fits(const struct fr_shape *s, fr_sv line);
/* Of a line that fits, what fr_point_parse makes of it: NULL, or a point that is valid until the
 * next call. */
const struct fr_point *fr_shape_point(struct fr_shape *s, fr_sv line);

#endif
