/* SPDX-License-Identifier: Apache-2.0 */
/* ring: a small collective layer between forked processes, with what PyTorch's has that a hang is
 * read from: process groups that count their collectives, one counter for point-to-point batches,
 * last enqueued and last completed work, and a time-out on every wait.
 *
 * Every rank has a socket to every other one. Messages are matched as NCCL matches them, by their
 * order between two ranks of one group, and sending does not wait for the receiver. A collective
 * gathers at the group's first member, which reduces in the order of ranks, so that sums are the
 * same bits every time, and answers.
 *
 * A rank that waits in vain gets -FR_IO, and `fault` says for whom it waited. Nothing is retried:
 * after a failure the ring is only good for its counters.
 *
 * The ring is made by crew.h and belongs to one process. No threads; no call sleeps.
 * Bounded: the constants below; a wait lasts at most timeout_ms. */
#ifndef FR_REPRO_RING_H
#define FR_REPRO_RING_H

#include "base/err.h"
#include "base/view.h"

#define FR_RING_RANKS 8    /* at most, in a crew */
#define FR_RING_GROUPS 8   /* at most, per rank */
#define FR_RING_WORDS 4096 /* doubles in a message, at most */
#define FR_RING_KEPT 64    /* messages of a peer that came before they were asked for */

/* As PyTorch's OpType prints them. */
enum fr_ring_op {
    FR_RING_ALLREDUCE,
    FR_RING_ALLGATHER,
    FR_RING_BROADCAST,
    FR_RING_BARRIER,
    FR_RING_COALESCED
};
const char *fr_ring_op_name(uint8_t op);

struct fr_ring_group {
    const char *desc;              /* "default_pg", "PIPELINE_MODEL_PARALLEL_GROUP" */
    uint8_t id;                    /* the same on all members: their messages carry it */
    uint8_t n, rank;               /* members; this process among them */
    uint8_t member[FR_RING_RANKS]; /* global ranks, ascending */
    int64_t collectives, batches;  /* sequence numbers given out, from 1 */
    int64_t enqueued, completed;   /* of the last work of either kind; -1 none */
};

enum fr_ring_why {
    FR_RING_FINE,
    FR_RING_LATE,    /* the peer did not come within timeout_ms */
    FR_RING_GONE,    /* the peer's process has ended */
    FR_RING_MISMATCH /* the peer runs another operation or size: only a checked ring sees it */
};

/* What went wrong first, and in which work. */
struct fr_ring_fault {
    uint8_t why;         /* enum fr_ring_why */
    uint8_t op, peer_op; /* peer_op: of a mismatch */
    int32_t peer;        /* global rank that was waited for, the lowest of several */
    uint8_t late;        /* bits of all global ranks that did not come (monitored barrier) */
    const struct fr_ring_group *group;
    int64_t seq, enqueued, completed;
    uint32_t numel, ran_ms;
};

struct fr_ring_mail; /* a message that came early; ring.c */

struct fr_ring {
    int32_t rank, world; /* global */
    uint32_t timeout_ms;
    bool is_checked;         /* compares operation and size with the peer's, as
                                TORCH_DISTRIBUTED_DEBUG=DETAIL */
    int peer[FR_RING_RANKS]; /* sockets; -1: this process, or closed */
    int desk;                /* to the crew's leader; -1 none */
    struct fr_ring_group group[FR_RING_GROUPS];
    uint8_t n_groups;
    struct fr_ring_fault fault;
    struct fr_ring_mail *mail[FR_RING_RANKS];
};

void fr_ring_release(struct fr_ring *r); /* closes sockets, frees early messages */

/* Groups are numbered in the order in which they are made: all members must make them in one
 * order, with the same lists. NULL: this process is no member (the number is taken all the same),
 * or there are too many groups. */
struct fr_ring_group *fr_ring_new_group(struct fr_ring *r, const char *desc, const uint8_t *member,
                                        uint8_t n);
struct fr_ring_group *fr_ring_new_world(struct fr_ring *r); /* "default_pg" */

/* ---- collectives; all members must call them in one order. 0 or -FR_IO ---- */

int fr_ring_all_reduce(struct fr_ring *r, struct fr_ring_group *g, double *v,
                       uint32_t n); /* the sum */
/* all: members x n, in the order of members. */
int fr_ring_all_gather(struct fr_ring *r, struct fr_ring_group *g, const double *v, uint32_t n,
                       double *all);
int fr_ring_broadcast(struct fr_ring *r, struct fr_ring_group *g, uint8_t from, double *v,
                      uint32_t n); /* from: in the group */
int fr_ring_barrier(struct fr_ring *r, struct fr_ring_group *g);
/* A barrier that waits for every member and reports all that did not come: fault.late on the first
 * member; on others a failure only says that the first one was not heard of. Not counted as work.
 */
int fr_ring_monitored_barrier(struct fr_ring *r, struct fr_ring_group *g);

/* ---- point to point: a batch is one work, COALESCED, and ends when all its receives have ---- */

struct fr_ring_p2p {
    bool is_recv;
    uint8_t peer; /* in the group */
    double *v;
    uint32_t n;
};
/* An empty batch is no work. */
int fr_ring_exchange(struct fr_ring *r, struct fr_ring_group *g, const struct fr_ring_p2p *op,
                     uint32_t n);

#endif
