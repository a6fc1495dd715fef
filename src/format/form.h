/* SPDX-License-Identifier: Apache-2.0 */
/* form: peeling by example. The metric lines of a source look alike: the same prefix but for the
 * time in it. A form is what was peeled off one of them; a segment that has the same bytes around
 * the time was written by the same speaker, and only its time must be read.
 * Bounded: FR_FORMS forms, one out of use gives way. Everything is copied, node and role excepted:
 * the caller's must outlive the forms. */
#ifndef FR_FORMAT_FORM_H
#define FR_FORMAT_FORM_H

#include "format/format.h"

enum { FR_FORMS = 32, FR_FORM_BYTES = 160 };

struct fr_form {
    uint64_t kind;
    uint16_t n;                /* bytes, the time among them */
    uint16_t stamp, stamp_end; /* of the time; equal: none is printed */
    bool digit_follows, has_day;
    struct fr_when day; /* midnight of the time's date */
    uint32_t tag;
    struct fr_who who;
    char bytes[FR_FORM_BYTES];
};

struct fr_forms {
    struct fr_form v[FR_FORMS];
    uint32_t n, next;
};

/* The form of the segment, with *when as fr_peel would give it; NULL: peel it. kind: whatever else
 * has to be the same. Forms that are found move to the front; valid until the next call. */
const struct fr_form *fr_forms_find(struct fr_forms *f, uint64_t kind, fr_sv segment,
                                    struct fr_when *ret_when);
/* The time of a segment whose first form->n bytes are the form's but for its digits. */
bool fr_form_time(const struct fr_form *form, fr_sv segment, struct fr_when *ret);
/* Learns from what fr_peel made of the segment, when that can be told by its first bytes alone.
 * who: rec->who with names that last. */
void fr_forms_learn(struct fr_forms *f, uint64_t kind, fr_sv segment, const struct fr_record *rec,
                    const struct fr_who *who, uint32_t tag);

/* A progress bar as tqdm draws it, " 12%|#  | 3/25": nothing is peeled off it, and its text is the
 * segment without the white space behind it. */
bool fr_form_is_bar(fr_sv segment);

#endif
