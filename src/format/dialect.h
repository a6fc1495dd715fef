/* SPDX-License-Identifier: Apache-2.0 */
/* dialect: what the files of this folder share: levels, moving a record's text, filling drafts. Not
 * for other layers. */
#ifndef FR_FORMAT_DIALECT_H
#define FR_FORMAT_DIALECT_H

#include "format/format.h"
#include "format/lex.h"
#include "format/stamp.h"

/* First byte of what a dialect peels (behind "[" the second one too): the peeler asks only those
 * that can begin so. */
enum fr_begin {
    FR_BEGIN_OTHER = 1 << 0,
    FR_BEGIN_SPACE = 1 << 1,
    FR_BEGIN_DIGIT = 1 << 2,
    FR_BEGIN_UPPER = 1 << 3,
    FR_BEGIN_LOWER = 1 << 4,
    FR_BEGIN_BRACKET_DIGIT = 1 << 5, /* "[1", "[ " */
    FR_BEGIN_BRACKET_UPPER = 1 << 6,
    FR_BEGIN_BRACKET_LOWER = 1 << 7,
    FR_BEGIN_PAREN = 1 << 8,  /* ( */
    FR_BEGIN_BRACE = 1 << 9,  /* { */
    FR_BEGIN_ANGLE = 1 << 10, /* < > | */
    FR_BEGIN_ANY = (1 << 11) - 1,
    FR_BEGIN_ALPHA = FR_BEGIN_UPPER | FR_BEGIN_LOWER,
    FR_BEGIN_BRACKET_ALPHA = FR_BEGIN_BRACKET_UPPER | FR_BEGIN_BRACKET_LOWER
};
enum fr_begin fr_begin_of(fr_sv text);

/* A level word at the cursor (INFO, WARNING, Error, crit, ...), not followed by a letter.
 * FR_LEVEL_NONE: none, nothing moved. */
uint8_t fr_level_take(fr_sv *s);
/* The whole of s is a level word. */
uint8_t fr_level_of(fr_sv s);
/* V D I W E F C; FR_LEVEL_NONE for other letters. */
uint8_t fr_level_letter(char c);

/* Ends a peel: text becomes rest, without the one space that separates it. */
void fr_rec_move(struct fr_record *rec, fr_sv rest);
/* structlog: "event text              key=value rank=3" behind a padded level: the rank that is bound to the logger. */
void fr_rec_bound(struct fr_record *rec);
/* The collector's clock: the outermost one stays. */
void fr_rec_outer(struct fr_record *rec, const struct fr_when *when);

/* "9b000", "0000:9b:00", "00000000:9B:00.0", "PCI:0000:9b:00" to "0000:9b:00"; empty when it is
 * none of them. */
fr_sv fr_pci_normal(struct fr_arena *scratch, fr_sv s);
/* Number of a signal named "SIGKILL", "KILL", "Killed", "Segmentation fault", "Segmentation fault
 * (core dumped)"; 0 unknown. */
int fr_signal_number(fr_sv name);
/* "10.2.0.5<33092>", "[127.0.0.1]:2951", "[::ffff:10.1.1.1]:29500", "10.0.0.1:29500": without the
 * port and brackets. */
fr_sv fr_address_only(fr_sv s);

/* Draft i of ret, emptied and of that fact; NULL when max is reached. */
static inline struct fr_draft *fr_draft_begin(struct fr_draft *ret, int i, int max,
                                              enum fr_fact fact)
{
    if (i >= max) {
        return NULL;
    }
    ret[i].fact = (uint8_t)fact;
    ret[i].n_caps = 0;
    return &ret[i];
}
/* Number behind a literal, stored when it is there. */
bool fr_draft_num_after(struct fr_draft *d, enum fr_key key, fr_sv text, fr_sv lit);
/* The PG prefix of the line ("[PG ID 2 PG GUID 5(desc) Rank 1]" and older): pg, pg_desc, pg_rank.
 */
void fr_draft_pg(struct fr_draft *d, const struct fr_record *rec);
/* A rank list as printed ("1, 3", "[2, 5]", "0-3,7") under key; num is its first number. */
void fr_draft_list(struct fr_draft *d, enum fr_key key, fr_sv list);

#endif
