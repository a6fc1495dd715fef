/* SPDX-License-Identifier: Apache-2.0 */
/* crew: ranks as real processes. The leader forks them, joined by socketpairs (ring.h), lends each
 * a seat of shared memory for what it found, and reaps every one of them on every path.
 *
 * A rank that has failed comes to the desk and waits there until nobody else has anything to say:
 * as PyTorch, whose watchdog waits for everybody's dump before it takes its process down. Without
 * that, the first rank to die would change what all others report.
 *
 * SIGINT, SIGTERM and SIGHUP while a crew runs end its ranks; the signal is left pending, and
 * takes effect as soon as whoever blocked it lets it. Ranks die with the leader in any case.
 * Not thread-safe: fork. */
#ifndef FR_REPRO_CREW_H
#define FR_REPRO_CREW_H

#include "repro/ring.h"

#include <sys/types.h>

struct fr_crew {
    uint32_t world;      /* 1..FR_RING_RANKS */
    uint32_t timeout_ms; /* of a wait in the ring */
    uint32_t limit_ms;   /* of the whole run: then all are killed */
    size_t seat_size;    /* bytes of shared memory per rank, zeroed */
    /* One rank's program; its return value is the exit status. Whatever it opened ends with it: no
     * atexit handlers run, and streams are not flushed. seat: seat_size bytes. */
    int (*body)(struct fr_ring *ring, void *seat, void *ctx);
    void *ctx;
};

/* How a rank ended. */
struct fr_crew_end {
    pid_t pid;
    int exitcode; /* as torchrun counts: a signal is negative */
};

/* Runs the crew to its end. ends: world rows; seats: world * seat_size bytes that the ranks wrote.
 * 0, or -FR_... with *err: could not start, was interrupted, or took longer than limit_ms. No
 * process of it is left in any case. */
int fr_crew_run(const struct fr_crew *crew, struct fr_crew_end *ends, void *seats,
                struct fr_err *err);

/* In a rank: come to the desk, and wait until every rank has come or ended. */
void fr_crew_desk(struct fr_ring *ring);

#endif
