/* SPDX-License-Identifier: Apache-2.0 */
/* scanner: one thread's state, private to match/. Sized by the rules; the epoch marks what belongs
 * to the current line, so nothing is cleared between lines. */
#ifndef FR_MATCH_SCANNER_H
#define FR_MATCH_SCANNER_H

#include "match/dull.h"
#include "match/rules.h"

struct hs_scratch;
struct fr_captures;
struct fr_digits;

/* More than a place has entries. */
#define FR_FOUND_MAX 8192

struct fr_group_state {
    void *database; /* hs_database_t, once it was needed */
    uint64_t epoch; /* of the last line it was asked about */
};

struct fr_scanner {
    const struct fr_rules *rules;
    const struct fr_gate_engine *engine;
    uint64_t epoch;
    uint64_t *asked;   /* by signal: epoch of the last line with one of its literals */
    uint16_t *pending; /* signals with a literal on this line */
    uint32_t n_pending;
    uint64_t *matched;             /* by signal: epoch of the last line its regex matched */
    struct fr_group_state *groups; /* by group */
    struct hs_scratch *scratch;
    struct fr_captures **captures; /* by signal; compiled at first use */
    struct fr_digits *digits;      /* at first use */
    struct fr_dull *dull;          /* NULL: lines are not looked at before they are gated */
    fr_known_fn known;
    void *known_ctx;
    struct fr_gate_run run;
    const struct fr_place *places[FR_GATE_CANDS]; /* of run.cands */
    struct fr_found {
        uint32_t key; /* where it stands in the chunk */
        uint32_t entry;
    } found[FR_FOUND_MAX];
};

/* From the signals whose literal was seen on hit->line to those that fire, ascending. confirm.c */
int fr_scan_confirm(struct fr_scanner *s, struct fr_hit *hit);
void fr_captures_free(struct fr_scanner *s);

#endif
