/* SPDX-License-Identifier: Apache-2.0 */
/* silence: what its two files share: the complaints of an attempt, counted. Private to incident/. */
#ifndef FR_INCIDENT_SILENCE_H
#define FR_INCIDENT_SILENCE_H

#include "incident/case.h"

struct fr_complaints {
    uint32_t victims, suspects, confessed, timeouts, closed;
    const struct fr_rank *suspect[8];
    int32_t first; /* obs index of the first complaint, -1 none */
    int64_t late, gone; /* when the first of each kind came, FR_TIME_NONE: not known */
};

/* A candidate by silence that nobody has a rank for yet, with the first complaint as its place; NULL: it is there already. */
struct fr_cand *fr_silence_cand(struct fr_case *c, const struct fr_complaints *t, int32_t failure, double score);
/* Nobody complained: whose log ends long before all others? */
void fr_last_signs(struct fr_case *c);
/* Somebody waited, and one rank was busy with something else. */
void fr_accuse_busy(struct fr_case *c, const struct fr_complaints *t);

#endif
