/* SPDX-License-Identifier: Apache-2.0 */
/* dull: lines that can hold no literal, told by example. Most lines of a log differ from earlier
 * ones in their numbers only, and bring nothing. A shape is such a line with its digits, and the
 * letters of its hexadecimal numbers, set free; it is dull when no literal of the rules has place
 * in it whatever stands there. A line that fits needs no gate. That is true of a line whatever its
 * source, so shapes outlast files.
 * Bounded: FR_DULL_SHAPES shapes of at most FR_DULL_BYTES. Private to match/. */
#ifndef FR_MATCH_DULL_H
#define FR_MATCH_DULL_H

#include "base/view.h"

#include <stdbool.h>
#include <stdint.h>

#define FR_DULL_SHAPES_BITS 9
#define FR_DULL_SHAPES      (1u << FR_DULL_SHAPES_BITS)
#define FR_DULL_LEAST       32 /* bytes of a line */
#define FR_DULL_BYTES       256

/* In a shape, what may stand at a place: itself below 0x80, or any of these. */
#define FR_DULL_DIGIT 0x81 /* 0-9 */
#define FR_DULL_HEX   0x83 /* 0-9, a-f */
#define FR_DULL_ANY   0xc0 /* behind its end */

struct fr_dull_slot {
    uint32_t tag; /* of the lines that belong here; 0: free */
    uint16_t n;   /* bytes of the shape; 0: there is none yet */
    uint8_t seen; /* such lines that did not fit, since the last look at one */
    uint8_t fails : 6; /* looks that led to nothing */
    bool in_use : 1; /* since it was last asked to give way */
};

struct fr_dull_bytes { /* which ones, below 128, and whether any others */
    uint64_t set[2], others;
};

struct fr_dull {
    struct fr_dull_slot slots[FR_DULL_SHAPES];
    struct fr_dull_bytes *literals; /* at first use */
    uint8_t like[FR_DULL_SHAPES][FR_DULL_BYTES];
};

/* A tag has two seats: the slot that has it, else the second one. */
static inline struct fr_dull_slot *fr_dull_slot_of(struct fr_dull *d, uint32_t tag)
{
    struct fr_dull_slot *two = &d->slots[tag >> (33 - FR_DULL_SHAPES_BITS) << 1];
    return two + (two->tag != tag);
}

/* The line that is not dull, as far as it was looked at. */
struct fr_dull_stop {
    size_t n;     /* its bytes, SIZE_MAX: not counted */
    uint32_t tag; /* lines of one shape have one; 0: it is of a kind that has no shapes */
};

/* The bytes of the dull lines at p, newlines among them; *ret_lines of them. One file per kind of
 * CPU, where it is faster than the gate. */
typedef size_t (*fr_dull_fn)(struct fr_dull *d, const uint8_t *p, size_t n, uint64_t *ret_lines,
                             struct fr_dull_stop *ret_stop);
size_t fr_dull_avx2(struct fr_dull *d, const uint8_t *p, size_t n, uint64_t *ret_lines,
                    struct fr_dull_stop *ret_stop);

struct fr_rules;
/* A line that was not known to be dull and was. tag: of its stop. */
void fr_dull_note(struct fr_dull *d, const struct fr_rules *rules, fr_sv line, uint32_t tag);
void fr_dull_free(struct fr_dull **d);

#endif
