/* SPDX-License-Identifier: Apache-2.0 */
/* crewplay: what reproductions with processes have in common: a run in a folder of its own, and
 * what `faultrank diagnose` says about that folder. */
#ifndef FR_REPRO_CREWPLAY_H
#define FR_REPRO_CREWPLAY_H

#include "repro/crewlog.h"
#include "repro/lab.h"

/* How a run went. Seats are the caller's. */
struct fr_crewplay {
    struct fr_crew_end end[FR_RING_RANKS];
    char folder[4096]; /* with the logs; known before the ranks begin */
};

/* Runs the crew with its logs in the lab's folder, below `name`; script: what torchrun's table
 * calls the program. 0, or -FR_... with *err. */
int fr_crewplay_run(struct fr_lab *lab, const struct fr_crew *crew, const char *name,
                    const char *script, struct fr_crewplay *ret, void *seats, struct fr_err *err);

/* Claims "diagnosed" with what the folder is diagnosed as: the lab's own failure, and a headline
 * that begins with `who`. No claim where the lab's caller cannot diagnose. */
void fr_crewplay_diagnosed(struct fr_lab *lab, const struct fr_crewplay *p, const char *says,
                           const char *who);
/* Claims "fixed-is-healthy": no failure is found in it. */
void fr_crewplay_healthy(struct fr_lab *lab, const struct fr_crewplay *p);

#endif
