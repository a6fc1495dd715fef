/* SPDX-License-Identifier: Apache-2.0 */
/* crewlog: what a crew's ranks and their launcher write, in the words of PyTorch 2.8 and torchrun,
 * in the folders that torchrun makes:
 *
 *     FOLDER/torchrun.log                            the launcher
 *     FOLDER/none_reprolog/attempt_0/RANK/stdout.log and stderr.log
 *
 * The words are PyTorch's; numbers, ranks, process ids, times and counters are those of the crew.
 * A log that could not be written is a failure of open or of fr_crewlog_launcher; lines that fail
 * later (a full disk) are lost, as the real ones would be. */
#ifndef FR_REPRO_CREWLOG_H
#define FR_REPRO_CREWLOG_H

#include "repro/crew.h"

struct fr_ranklog {
    int32_t rank;
    int out, err; /* -1 closed */
};

/* Makes the folders of `world` ranks below folder (made when it is not there). Called by the
 * leader, before the crew runs: ranks have nowhere to complain. */
int fr_crewlog_folders(const char *folder, uint32_t world, struct fr_err *err);
/* In the rank; on failure nothing is written. */
void fr_ranklog_open(struct fr_ranklog *l, const char *folder, int32_t rank);
void fr_ranklog_close(struct fr_ranklog *l);

__attribute__((format(printf, 2, 3))) void fr_ranklog_out(struct fr_ranklog *l, const char *fmt,
                                                          ...);
/* " [2026-11-30 15:04:05.123456] ", as Megatron begins its lines; ret holds at least 40 bytes. */
const char *fr_ranklog_stamp(char *ret);

/* The NCCL watchdog about the ring's fault: time-out, counters, dump. Call it before the desk... */
void fr_ranklog_timeout(struct fr_ranklog *l, const struct fr_ring *r);
/* ...and this after it: "taking the entire process down". The caller aborts. */
void fr_ranklog_teardown(struct fr_ranklog *l, const struct fr_ring *r);

/* An uncaught Python exception: the frames (file, line, function, source; file NULL ends) and the
 * last line, every line behind "[rankN]: ". */
struct fr_ranklog_frame {
    const char *file;
    int line;
    const char *func, *source;
};
void fr_ranklog_raise(struct fr_ranklog *l, const struct fr_ranklog_frame *frames,
                      const char *exception);

/* The launcher's last words: nothing when all ranks ended with 0, else the table of failures. */
int fr_crewlog_launcher(const char *folder, const char *script, const struct fr_crew_end *ends,
                        uint32_t world, struct fr_err *err);

#endif
