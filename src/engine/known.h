/* SPDX-License-Identifier: Apache-2.0 */
/* known: metric lines told by example, as a whole: the form of their prefix says who and when, the
 * shape of all of it says what. Both are asked about one line and then hold for all that differ
 * from it in digits only.
 * Bounded: FR_KNOWN lines of a source; one out of use gives way. Nodes and roles are borrowed, as
 * by forms. */
#ifndef FR_ENGINE_KNOWN_H
#define FR_ENGINE_KNOWN_H

#include "format/form.h"
#include "series/shape.h"

enum { FR_KNOWN = 64, FR_KNOWN_HEADS = 256 };

struct fr_known_line {
    struct fr_shape shape;
    struct fr_form form;   /* of a progress bar: nobody's, without bytes */
    struct fr_group *seat; /* for the caller: of its points, NULL when it is new */
};

/* What is looked at before the line. */
struct fr_known_key {
    uint64_t kind;
    uint16_t n;
    uint8_t next, head; /* 1 + the next key of the same head, 0: none; its head */
    bool in_use;        /* since it was last asked to give way */
};

struct fr_known {
    uint8_t heads[FR_KNOWN_HEADS]; /* 1 + the first key, 0: none */
    struct fr_known_key keys[FR_KNOWN];
    struct fr_known_line lines[FR_KNOWN];
    uint32_t n, hand;
    uint32_t n_unknown, n_learned; /* lines since one was learned; how often one was tried */
};

void fr_known_clear(struct fr_known *k);
/* kind: the dialects that the line may be of. NULL: not known. */
struct fr_known_line *fr_known_find(struct fr_known *k, uint64_t kind, fr_sv segment,
                                    struct fr_when *ret_when);
/* A line that was not known, for the sake of those that come. form: what fr_forms_find said, or for
 * a bar one without bytes. */
void fr_known_learn(struct fr_known *k, uint64_t kind, fr_sv segment, const struct fr_form *form);

#endif
