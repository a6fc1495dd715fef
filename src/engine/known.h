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

/* What the caller has found out about such a line of a source, not only a segment of one: whether
 * the dialects are all that its literals tell, whatever its digits. */
enum fr_known_whole { FR_KNOWN_UNASKED, FR_KNOWN_WHOLE, FR_KNOWN_NOT };

struct fr_known_line {
    struct fr_shape shape;
    struct fr_form form;   /* of a progress bar: nobody's, without bytes */
    struct fr_group *seat; /* for the caller: of its points, NULL when it is new */
    enum fr_known_whole whole;
    uint32_t n_found; /* for the caller, until it has found that out */
};

/* What is looked at before the line. */
struct fr_known_key {
    uint64_t kind;
    uint16_t n;
    uint8_t next, head; /* 1 + the next key of the same head, 0: none; its head */
    uint8_t then;       /* 1 + the key of the line that followed last time, 0: none */
    bool in_use;        /* since it was last asked to give way */
};

struct fr_known {
    uint8_t heads[FR_KNOWN_HEADS]; /* 1 + the first key, 0: none */
    struct fr_known_key keys[FR_KNOWN];
    struct fr_known_line lines[FR_KNOWN];
    uint32_t n, hand;
    uint8_t last; /* 1 + the key of the whole line found last, 0: none */
    uint64_t end; /* where the line behind that one begins in the source */
    uint32_t n_unknown, n_learned; /* lines since one was learned; how often one was tried */
};

void fr_known_clear(struct fr_known *k);
/* kind: the dialects that the line may be of. NULL: not known. */
struct fr_known_line *fr_known_find(struct fr_known *k, uint64_t kind, fr_sv segment,
                                    struct fr_when *ret_when);
/* A whole line, of which not even the dialects are known: one that was found out to be
 * FR_KNOWN_WHOLE. offset: of it in its source. */
struct fr_known_line *fr_known_first(struct fr_known *k, fr_sv text, uint64_t offset,
                                     struct fr_when *ret_when);
/* The same for the line at the start of `rest`, behind the one found last: when such a line has
 * followed before. */
struct fr_known_line *fr_known_then(struct fr_known *k, fr_sv rest, struct fr_when *ret_when);
/* A line that was not known, for the sake of those that come. form: what fr_forms_find said, or for
 * a bar one without bytes. */
void fr_known_learn(struct fr_known *k, uint64_t kind, fr_sv segment, const struct fr_form *form);

#endif
