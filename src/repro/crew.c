/* SPDX-License-Identifier: Apache-2.0 */
/* crew: see crew.h. The end of a rank is seen as the end of its desk socket, so that the leader
 * needs neither SIGCHLD nor a poll that wakes up for nothing. */
#include "repro/crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NEW, AT_DESK, ENDED };

struct run {
    const struct fr_crew *crew;
    struct fr_crew_end *ends;
    char *seats;                            /* shared */
    int wire[FR_RING_RANKS][FR_RING_RANKS]; /* [a][b]: a's end of the socket to b; -1 none */
    int desk[FR_RING_RANKS][2];             /* leader's end, rank's end */
    uint8_t state[FR_RING_RANKS];
    int signals;
    sigset_t before;
    int64_t until;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void shut(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

static void shut_wires(struct run *x)
{
    for (int a = 0; a < FR_RING_RANKS; a++) {
        for (int b = 0; b < FR_RING_RANKS; b++) {
            shut(&x->wire[a][b]);
        }
    }
}

static int lay_wires(struct run *x, struct fr_err *err)
{
    for (uint32_t a = 0; a < x->crew->world; a++) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, x->desk[a]) != 0) {
            return fr_err_set(err, FR_IO, "cannot make a socket pair: %s", strerror(errno));
        }
        for (uint32_t b = 0; b < a; b++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
                return fr_err_set(err, FR_IO, "cannot make a socket pair: %s", strerror(errno));
            }
            x->wire[a][b] = pair[0];
            x->wire[b][a] = pair[1];
        }
    }
    return 0;
}

/* ---- in the rank ---- */

_Noreturn static void be_rank(struct run *x, int32_t rank, pid_t leader)
{
    const struct fr_crew *crew = x->crew;
    struct fr_ring ring = {
        .rank = rank, .world = (int32_t)crew->world, .timeout_ms = crew->timeout_ms};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != leader) {
        _exit(1); /* it died before we asked to be told */
    }
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* some ranks abort on purpose */
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    for (int i = 0; i < FR_RING_RANKS; i++) {
        ring.peer[i] = x->wire[rank][i];
        x->wire[rank][i] = -1;
    }
    shut_wires(x);
    for (uint32_t i = 0; i < crew->world; i++) {
        shut(&x->desk[i][0]);
        if ((int32_t)i != rank) {
            shut(&x->desk[i][1]);
        }
    }
    ring.desk = x->desk[rank][1];
    const int status = crew->body(&ring, x->seats + (size_t)rank * crew->seat_size, crew->ctx);
    fr_ring_release(&ring);
    _exit(status);
}

void fr_crew_desk(struct fr_ring *ring)
{
    char c = '.';
    if (ring->desk < 0 || send(ring->desk, &c, 1, MSG_NOSIGNAL) != 1) {
        return;
    }
    while (recv(ring->desk, &c, 1, 0) < 0 && errno == EINTR) {
    }
}

/* ---- in the leader ---- */

static void reap(struct run *x, uint32_t rank)
{
    int status = 0;
    shut(&x->desk[rank][0]);
    while (x->ends[rank].pid > 0 && waitpid(x->ends[rank].pid, &status, 0) < 0 && errno == EINTR) {
    }
    x->ends[rank].exitcode = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    x->state[rank] = ENDED;
}

static void kill_all(struct run *x)
{
    for (uint32_t i = 0; i < x->crew->world; i++) {
        if (x->ends[i].pid > 0 && x->state[i] != ENDED) {
            (void)kill(x->ends[i].pid, SIGKILL);
            reap(x, i);
        }
    }
}

/* Nobody is on the way any more: those at the desk may go. */
static void dismiss(struct run *x)
{
    for (uint32_t i = 0; i < x->crew->world; i++) {
        if (x->state[i] == NEW) {
            return;
        }
    }
    for (uint32_t i = 0; i < x->crew->world; i++) {
        if (x->state[i] == AT_DESK) {
            (void)shutdown(x->desk[i][0], SHUT_WR);
        }
    }
}

/* Something at a desk: a word, or the end of the rank. */
static void attend(struct run *x, uint32_t rank)
{
    char c;
    const ssize_t n = recv(x->desk[rank][0], &c, 1, MSG_DONTWAIT);
    if (n > 0) {
        x->state[rank] = AT_DESK;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        reap(x, rank);
    }
}

/* 1 while some rank lives, 0 when all have ended, or -FR_IO. */
static int attend_all(struct run *x, struct fr_err *err)
{
    struct pollfd p[FR_RING_RANKS + 1] = {{.fd = x->signals, .events = POLLIN}};
    uint32_t alive = 0;
    for (uint32_t i = 0; i < x->crew->world; i++) {
        p[i + 1] =
            (struct pollfd){.fd = x->state[i] == ENDED ? -1 : x->desk[i][0], .events = POLLIN};
        alive += x->state[i] != ENDED;
    }
    if (alive == 0) {
        return 0;
    }
    const int64_t left = x->until - now_ms();
    const int n = left > 0 ? poll(p, x->crew->world + 1, (int)left) : 0;
    if (n == 0) {
        return fr_err_set(err, FR_IO, "%u of %u processes did not end within %u ms", alive,
                          x->crew->world, x->crew->limit_ms);
    }
    if (n > 0 && p[0].revents != 0) {
        return fr_err_set(err, FR_IO, "interrupted"); /* not read: it stays pending */
    }
    for (uint32_t i = 0; n > 0 && i < x->crew->world; i++) {
        if (p[i + 1].revents != 0) {
            attend(x, i);
        }
    }
    dismiss(x);
    return 1;
}

static int start(struct run *x, struct fr_err *err)
{
    const pid_t leader = getpid();
    for (uint32_t i = 0; i < x->crew->world; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            be_rank(x, (int32_t)i, leader);
        }
        if (pid < 0) {
            return fr_err_set(err, FR_IO, "cannot start a process: %s", strerror(errno));
        }
        x->ends[i].pid = pid;
    }
    /* The ranks have theirs: only then does the end of one close its sockets. */
    shut_wires(x);
    for (uint32_t i = 0; i < x->crew->world; i++) {
        shut(&x->desk[i][1]);
    }
    return 0;
}

static int run(struct run *x, struct fr_err *err)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ours, &x->before);
    x->signals = signalfd(-1, &ours, SFD_CLOEXEC);
    int rc = x->signals < 0
                 ? fr_err_set(err, FR_IO, "cannot watch for signals: %s", strerror(errno))
                 : lay_wires(x, err);
    rc = rc != 0 ? rc : start(x, err);
    for (int more = 1; rc == 0 && more != 0;) {
        more = attend_all(x, err);
        rc = more < 0 ? more : 0;
    }
    kill_all(x);
    shut_wires(x);
    for (int i = 0; i < FR_RING_RANKS; i++) {
        shut(&x->desk[i][0]);
        shut(&x->desk[i][1]);
    }
    shut(&x->signals);
    (void)sigprocmask(SIG_SETMASK, &x->before, NULL);
    return rc;
}

int fr_crew_run(const struct fr_crew *crew, struct fr_crew_end *ends, void *seats,
                struct fr_err *err)
{
    struct run x = {.crew = crew, .ends = ends, .until = now_ms() + crew->limit_ms};
    if (crew->world < 1 || crew->world > FR_RING_RANKS) {
        return fr_err_set(err, FR_ARG, "a crew has 1 to %d ranks, not %u", FR_RING_RANKS,
                          crew->world);
    }
    memset(x.wire, 0xff, sizeof x.wire);
    memset(x.desk, 0xff, sizeof x.desk);
    memset(ends, 0, crew->world * sizeof *ends);
    const size_t size = crew->world * crew->seat_size + 1;
    x.seats = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (x.seats == MAP_FAILED) {
        return fr_err_set(err, FR_NOMEM, "no shared memory for %u processes", crew->world);
    }
    const int rc = run(&x, err);
    memcpy(seats, x.seats, size - 1);
    munmap(x.seats, size);
    return rc;
}
