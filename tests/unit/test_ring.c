/* SPDX-License-Identifier: Apache-2.0 */
/* The collective layer of real processes: sums, sequence numbers, time-outs, dead peers, ranks that
 * never come, and that nobody is left behind. */
#include "support/t.h"

#include "repro/alphabet.h"
#include "repro/crew.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a rank leaves. */
struct seat {
    double v[8];
    int rc;
    struct fr_ring_fault fault;
    int64_t collectives, batches, enqueued, completed;
};

static struct seat seats[FR_RING_RANKS];
static struct fr_crew_end ends[FR_RING_RANKS];

static int play(uint32_t world, uint32_t timeout_ms, int (*body)(struct fr_ring *, void *, void *),
                struct fr_err *err)
{
    const struct fr_crew crew = {world, timeout_ms, 20000, sizeof(struct seat), body, NULL};
    const int rc = fr_crew_run(&crew, ends, seats, err);
    T_OK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* all reaped */
    return rc;
}

static int leave(struct seat *s, const struct fr_ring *r, const struct fr_ring_group *g, int rc)
{
    s->rc = rc;
    s->fault = r->fault;
    s->collectives = g->collectives;
    s->batches = g->batches;
    s->enqueued = g->enqueued;
    s->completed = g->completed;
    return 0;
}

/* ---- what works ---- */

static int body_collectives(struct fr_ring *r, void *seat, void *ctx)
{
    struct seat *s = seat;
    struct fr_ring_group *g = fr_ring_new_world(r);
    const uint8_t odd[] = {1, 3};
    struct fr_ring_group *two = fr_ring_new_group(r, "ODD", odd, 2);
    const double mine = r->rank + 1;
    double sum = mine, all[4] = {0}, word = r->rank == 2 ? 7 : 0;
    (void)ctx;
    int rc = fr_ring_all_reduce(r, g, &sum, 1);
    rc = rc != 0 ? rc : fr_ring_all_gather(r, g, &mine, 1, all);
    rc = rc != 0 ? rc : fr_ring_broadcast(r, g, 2, &word, 1);
    rc = rc != 0 ? rc : fr_ring_barrier(r, g);
    rc = rc != 0 ? rc : fr_ring_monitored_barrier(r, g);
    s->v[0] = sum;
    memcpy(s->v + 1, all, sizeof all);
    s->v[5] = word;
    if (rc == 0 && two != NULL) {
        s->v[6] = mine;
        rc = fr_ring_all_reduce(r, two, &s->v[6], 1);
        s->v[7] = (double)two->collectives;
    }
    return leave(s, r, g, rc);
}

T_TEST(collectives_compute_and_count)
{
    struct fr_err err = {0};
    T_EQ_INT(play(4, 5000, body_collectives, &err), 0);
    for (int i = 0; i < 4; i++) {
        const struct seat *s = &seats[i];
        T_EQ_INT(s->rc, 0);
        T_OK(s->v[0] == 10 && s->v[1] == 1 && s->v[2] == 2 && s->v[3] == 3 && s->v[4] == 4 &&
             s->v[5] == 7);
        T_EQ_INT(s->collectives, 4); /* the monitored barrier is not counted */
        T_EQ_INT(s->completed, 4);
        T_EQ_INT(s->batches, 0);
        T_OK(s->v[6] == (i % 2 ? 6 : 0) &&
             s->v[7] == (i % 2)); /* a group has its own numbers, and its members only */
        T_EQ_INT(ends[i].exitcode, 0);
    }
}

/* Rank 0 posts its all-reduce first, then sends; rank 1 receives first. */
static int body_overtake(struct fr_ring *r, void *seat, void *ctx)
{
    struct seat *s = seat;
    struct fr_ring_group *g = fr_ring_new_world(r);
    double one = 1, word[3] = {5, 6, 7};
    int rc = 0;
    (void)ctx;
    for (int i = 0; i < 3 && rc == 0; i++) {
        const struct fr_ring_p2p op = {r->rank == 0, (uint8_t)(1 - r->rank),
                                       r->rank == 0 ? &s->v[i] : &word[i], 1};
        if (r->rank == 1) {
            rc = fr_ring_exchange(r, g, &op, 1);
        } else {
            rc = i == 0 ? fr_ring_all_reduce(r, g, &one, 1)
                        : 0; /* its messages come behind the sends */
            rc = rc != 0 ? rc : fr_ring_exchange(r, g, &op, 1);
        }
    }
    rc = rc == 0 && r->rank == 1 ? fr_ring_all_reduce(r, g, &one, 1) : rc;
    rc = rc != 0 ? rc : fr_ring_exchange(r, g, NULL, 0);
    s->v[3] = one;
    return leave(s, r, g, rc);
}

T_TEST(batches_and_collectives_do_not_mix)
{
    struct fr_err err = {0};
    T_EQ_INT(play(2, 5000, body_overtake, &err), 0);
    T_EQ_INT(seats[0].rc, 0);
    T_EQ_INT(seats[1].rc, 0);
    T_OK(seats[0].v[0] == 5 && seats[0].v[1] == 6 && seats[0].v[2] == 7 && seats[0].v[3] == 2);
    T_EQ_INT(seats[0].batches, 3); /* an empty batch is none */
    T_EQ_INT(seats[0].collectives, 1);
    T_EQ_INT(seats[0].completed, 3); /* of the last work, as PyTorch prints it */
    T_EQ_INT(seats[1].completed, 1);
}

/* ---- what fails ---- */

/* Rank 2 goes to the desk instead of the second all-reduce. */
static int body_absent(struct fr_ring *r, void *seat, void *ctx)
{
    struct fr_ring_group *g = fr_ring_new_world(r);
    double v = 1;
    (void)ctx;
    int rc = fr_ring_all_reduce(r, g, &v, 1);
    if (r->rank != 2 && rc == 0) {
        rc = fr_ring_all_reduce(r, g, &v, 1);
    }
    leave(seat, r, g, rc);
    fr_crew_desk(r);
    return rc != 0;
}

T_TEST(a_rank_that_never_comes)
{
    struct fr_err err = {0};
    T_EQ_INT(play(3, 200, body_absent, &err), 0);
    T_EQ_INT(seats[2].rc, 0);
    T_EQ_INT(seats[2].enqueued, 1);
    for (int i = 0; i < 2; i++) {
        const struct fr_ring_fault *f = &seats[i].fault;
        T_OK(seats[i].rc < 0 && f->why == FR_RING_LATE && f->op == FR_RING_ALLREDUCE);
        T_OK(f->seq == 2 && f->enqueued == 2 && f->completed == 1);
        T_OK(f->ran_ms >= 200 && f->ran_ms < 10000 && f->numel == 1);
        T_EQ_INT(ends[i].exitcode, 1);
    }
    T_EQ_INT(seats[0].fault.peer, 2);
    T_EQ_INT(seats[1].fault.peer, 0); /* it only knows the one that answers for all */
}

/* Ranks 1 and 3 stay away. */
static int body_monitored(struct fr_ring *r, void *seat, void *ctx)
{
    struct fr_ring_group *g = fr_ring_new_world(r);
    (void)ctx;
    leave(seat, r, g, r->rank % 2 == 0 ? fr_ring_monitored_barrier(r, g) : 0);
    fr_crew_desk(r);
    return 0;
}

T_TEST(a_monitored_barrier_names_all_that_are_missing)
{
    struct fr_err err = {0};
    T_EQ_INT(play(4, 200, body_monitored, &err), 0);
    T_OK(seats[0].rc < 0 && seats[0].fault.why == FR_RING_LATE);
    T_EQ_INT(seats[0].fault.late, 1u << 1 | 1u << 3);
    T_OK(seats[2].rc < 0);
    T_EQ_INT(seats[2].fault.peer, 0);
}

/* Rank 1 crashes before the collective. */
static int body_crash(struct fr_ring *r, void *seat, void *ctx)
{
    struct fr_ring_group *g = fr_ring_new_world(r);
    double v = 1;
    (void)ctx;
    if (r->rank == 1) {
        raise(SIGKILL);
    }
    leave(seat, r, g, fr_ring_all_reduce(r, g, &v, 1));
    fr_crew_desk(r); /* so that only rank 1 is gone when the others look */
    return 3;
}

T_TEST(a_dead_peer_is_seen_at_once)
{
    struct fr_err err = {0};
    T_EQ_INT(play(3, 1500, body_crash, &err), 0);
    T_EQ_INT(ends[1].exitcode, -SIGKILL);
    T_OK(seats[0].fault.why == FR_RING_GONE && seats[0].fault.peer == 1);
    T_OK(seats[0].fault.ran_ms < 1500);
    T_EQ_INT(ends[0].exitcode, 3);
    T_OK(seats[2].rc < 0); /* the first member cannot answer */
}

static int body_mismatch(struct fr_ring *r, void *seat, void *ctx)
{
    struct fr_ring_group *g = fr_ring_new_world(r);
    double v[4] = {0};
    (void)ctx;
    r->is_checked = true;
    leave(seat, r, g,
          r->rank == 1 ? fr_ring_all_gather(r, g, v, 1, v + 1) : fr_ring_all_reduce(r, g, v, 1));
    return 0;
}

T_TEST(a_checked_ring_sees_another_operation)
{
    struct fr_err err = {0};
    T_EQ_INT(play(2, 500, body_mismatch, &err), 0);
    T_OK(seats[0].fault.why == FR_RING_MISMATCH && seats[0].fault.peer == 1);
    T_EQ_INT(seats[0].fault.op, FR_RING_ALLREDUCE);
    T_EQ_INT(seats[0].fault.peer_op, FR_RING_ALLGATHER);
}

/* ---- the crew ---- */

static int body_forever(struct fr_ring *r, void *seat, void *ctx)
{
    (void)r;
    (void)seat;
    (void)ctx;
    while (pause() != 0) {
    }
    return 0;
}

T_TEST(ranks_that_do_not_end_are_ended)
{
    const struct fr_crew crew = {3, 100, 300, sizeof(struct seat), body_forever, NULL};
    struct fr_err err = {0};
    T_EQ_INT(fr_crew_run(&crew, ends, seats, &err), -FR_IO);
    T_OK(strstr(err.msg, "3 of 3 processes") != NULL);
    T_EQ_INT(ends[0].exitcode, -SIGKILL);
    T_OK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

T_TEST(an_interrupt_ends_the_ranks_and_stays_pending)
{
    const struct fr_crew crew = {2, 100, 20000, sizeof(struct seat), body_forever, NULL};
    struct fr_err err = {0};
    const struct timespec at_once = {0, 0};
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    raise(SIGINT);
    T_EQ_INT(fr_crew_run(&crew, ends, seats, &err), -FR_IO);
    T_EQ_STR(err.msg, "interrupted");
    T_OK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    T_EQ_INT(sigtimedwait(&interrupt, NULL, &at_once), SIGINT);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

T_TEST(sizes_are_checked)
{
    struct fr_err err = {0};
    const struct fr_crew none = {0, 1, 1, 0, body_forever, NULL},
                         many = {FR_RING_RANKS + 1, 1, 1, 0, body_forever, NULL};
    T_EQ_INT(fr_crew_run(&none, ends, seats, &err), -FR_ARG);
    T_EQ_INT(fr_crew_run(&many, ends, seats, &err), -FR_ARG);
    struct fr_ring r = {.rank = 0, .world = 1, .desk = -1};
    memset(r.peer, 0xff, sizeof r.peer);
    for (int i = 0; i < FR_RING_GROUPS; i++) {
        T_OK(fr_ring_new_world(&r) != NULL);
    }
    T_OK(fr_ring_new_world(&r) == NULL);
    fr_ring_release(&r);
}

/* ---- the toy model ---- */

T_TEST(checksums_are_those_of_zlib)
{
    static struct fr_alphabet m;
    fr_alphabet_new(&m, 16, 1);
    T_EQ_INT(fr_alphabet_checksum(&m, FR_ALPHABET_NORM),
             0xf700a42a); /* zlib.crc32(numpy.ones(16, "f4")) */
}

T_TEST(the_alphabet_is_learned)
{
    static struct fr_alphabet m;
    struct fr_rng tokens = {1};
    double first = 0, last = 0;
    fr_alphabet_new(&m, 16, 1);
    for (int i = 0; i < 120; i++) {
        last = fr_alphabet_batch(&m, &tokens, 1);
        first = i == 0 ? last : first;
        fr_alphabet_update(&m);
    }
    T_OK(first > 2.4 && first < 3.2 && last < 0.2);
}

int main(void)
{
    return t_run();
}
