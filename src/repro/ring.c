/* SPDX-License-Identifier: Apache-2.0 */
/* ring: see ring.h. Every failure goes through fail_wait(), so that the counters in `fault` are
 * those of the moment; messages that overtake each other (a collective's while a batch is waited
 * for) are kept per peer until their channel is asked for. */
#include "repro/ring.h"

#include "base/alloc.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* One channel per group and kind of work: batches and collectives do not wait for each other. */
struct head {
    uint8_t group, is_p2p, op, of; /* of: the rank that sent it, for the reader of a dump */
    uint32_t n;
};

struct fr_ring_mail {
    struct fr_ring_mail *next;
    struct head head;
    double v[];
};

/* One operation that is under way. */
struct work {
    struct fr_ring_group *group;
    int64_t seq, began, until; /* ms */
    uint32_t numel;
    uint8_t op;
    bool is_p2p, is_counted;
};

const char *fr_ring_op_name(uint8_t op)
{
    static const char *const names[] = {"ALLREDUCE", "ALLGATHER", "BROADCAST", "BARRIER",
                                        "COALESCED"};
    return op < sizeof names / sizeof *names ? names[op] : "UNKNOWN";
}

void fr_ring_release(struct fr_ring *r)
{
    for (int i = 0; i < FR_RING_RANKS; i++) {
        while (r->mail[i] != NULL) {
            struct fr_ring_mail *m = r->mail[i];
            r->mail[i] = m->next;
            fr_free(m);
        }
        if (r->peer[i] >= 0) {
            close(r->peer[i]);
            r->peer[i] = -1;
        }
    }
    if (r->desk >= 0) {
        close(r->desk);
        r->desk = -1;
    }
}

struct fr_ring_group *fr_ring_new_group(struct fr_ring *r, const char *desc, const uint8_t *member,
                                        uint8_t n)
{
    if (r->n_groups == FR_RING_GROUPS) {
        return NULL;
    }
    struct fr_ring_group *g = &r->group[r->n_groups];
    *g = (struct fr_ring_group){.desc = desc,
                                .id = r->n_groups++,
                                .n = n,
                                .rank = UINT8_MAX,
                                .enqueued = -1,
                                .completed = -1};
    for (uint8_t i = 0; i < n; i++) {
        g->member[i] = member[i];
        g->rank = member[i] == r->rank ? i : g->rank;
    }
    return g->rank != UINT8_MAX ? g : NULL;
}

struct fr_ring_group *fr_ring_new_world(struct fr_ring *r)
{
    uint8_t all[FR_RING_RANKS];
    for (uint8_t i = 0; i < FR_RING_RANKS; i++) {
        all[i] = i;
    }
    return fr_ring_new_group(r, "default_pg", all, (uint8_t)r->world);
}

/* ---- waiting ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int fail_wait(struct fr_ring *r, const struct work *w, uint8_t why, int32_t peer)
{
    if (r->fault.why == FR_RING_FINE) {
        r->fault = (struct fr_ring_fault){
            .why = why,
            .op = w->op,
            .peer_op = w->op,
            .peer = peer,
            .late = (uint8_t)(1u << peer),
            .group = w->group,
            .seq = w->seq,
            .enqueued = w->group->enqueued,
            .completed = w->group->completed,
            .numel = w->numel,
            .ran_ms = (uint32_t)(now_ms() - w->began),
        };
    }
    return -FR_IO;
}

/* 0 ready, or the failure: late, or gone. */
static int wait_for(struct fr_ring *r, const struct work *w, int32_t peer, short what)
{
    while (r->peer[peer] >= 0) {
        struct pollfd p = {.fd = r->peer[peer], .events = what};
        const int64_t left = w->until - now_ms();
        const int n = poll(&p, 1, left > 0 ? (int)left : 0);
        if (n > 0) {
            return 0; /* POLLHUP included: read() says so, after what is still there */
        }
        if (n == 0) {
            return fail_wait(r, w, FR_RING_LATE, peer);
        }
        if (errno != EINTR) {
            break;
        }
    }
    return fail_wait(r, w, FR_RING_GONE, peer);
}

static int lose(struct fr_ring *r, const struct work *w, int32_t peer)
{
    close(r->peer[peer]);
    r->peer[peer] = -1;
    return fail_wait(r, w, FR_RING_GONE, peer);
}

static int put(struct fr_ring *r, const struct work *w, int32_t peer, const void *data, size_t n)
{
    const char *at = data;
    while (n > 0) {
        int rc = wait_for(r, w, peer, POLLOUT);
        if (rc != 0) {
            return rc;
        }
        const ssize_t done = send(r->peer[peer], at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno != EAGAIN && errno != EINTR) {
            return lose(r, w, peer);
        }
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

static int get(struct fr_ring *r, const struct work *w, int32_t peer, void *data, size_t n)
{
    char *at = data;
    while (n > 0) {
        int rc = wait_for(r, w, peer, POLLIN);
        if (rc != 0) {
            return rc;
        }
        const ssize_t done = recv(r->peer[peer], at, n, MSG_DONTWAIT);
        if (done == 0 || (done < 0 && errno != EAGAIN && errno != EINTR)) {
            return lose(r, w, peer);
        }
        at += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

/* ---- messages ---- */

static int send_to(struct fr_ring *r, const struct work *w, uint8_t to, const double *v, uint32_t n)
{
    const struct head h = {w->group->id, w->is_p2p, w->op, (uint8_t)r->rank, n};
    const int32_t peer = w->group->member[to];
    int rc = put(r, w, peer, &h, sizeof h);
    return rc != 0 ? rc : put(r, w, peer, v, n * sizeof *v);
}

/* The next message of the peer on the work's channel, which the caller frees; NULL with r->fault.
 */
static struct fr_ring_mail *next_mail(struct fr_ring *r, const struct work *w, int32_t peer)
{
    struct fr_ring_mail **at = &r->mail[peer];
    uint32_t kept = 0;
    for (; *at != NULL; at = &(*at)->next, kept++) {
        struct fr_ring_mail *m = *at;
        if (m->head.group == w->group->id && m->head.is_p2p == w->is_p2p) {
            *at = m->next;
            return m;
        }
    }
    for (; kept < FR_RING_KEPT; kept++) {
        struct head h;
        if (get(r, w, peer, &h, sizeof h) != 0) {
            return NULL;
        }
        struct fr_ring_mail *m =
            h.n <= FR_RING_WORDS ? fr_malloc(sizeof *m + h.n * sizeof(double)) : NULL;
        if (m == NULL) {
            (void)lose(r, w, peer);
            return NULL;
        }
        *m = (struct fr_ring_mail){.head = h};
        if (get(r, w, peer, m->v, h.n * sizeof(double)) != 0) {
            fr_free(m);
            return NULL;
        }
        if (h.group == w->group->id && h.is_p2p == w->is_p2p) {
            return m;
        }
        *at = m;
        at = &m->next;
    }
    (void)lose(r, w, peer); /* it floods: as good as gone */
    return NULL;
}

/* add: to what is there, else over it. */
static int recv_from(struct fr_ring *r, const struct work *w, uint8_t from, double *v, uint32_t n,
                     bool add)
{
    const int32_t peer = w->group->member[from];
    struct fr_ring_mail *m = next_mail(r, w, peer);
    if (m == NULL) {
        return -FR_IO;
    }
    int rc = 0;
    if (m->head.n != n || (r->is_checked && m->head.op != w->op)) {
        rc = fail_wait(r, w, FR_RING_MISMATCH, peer);
        r->fault.peer_op = m->head.op;
    }
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        v[i] = add ? v[i] + m->v[i] : m->v[i];
    }
    fr_free(m);
    return rc;
}

/* ---- works ---- */

static struct work begin(const struct fr_ring *r, struct fr_ring_group *g, uint8_t op,
                         uint32_t numel)
{
    struct work w = {.group = g,
                     .op = op,
                     .is_p2p = op == FR_RING_COALESCED,
                     .is_counted = true,
                     .numel = numel,
                     .began = now_ms()};
    w.until = w.began + r->timeout_ms;
    w.seq = w.is_p2p ? ++g->batches : ++g->collectives;
    g->enqueued = w.seq;
    return w;
}

static int end(struct work *w, int rc)
{
    if (rc == 0) {
        w->group->completed = w->seq;
    }
    return rc;
}

int fr_ring_all_reduce(struct fr_ring *r, struct fr_ring_group *g, double *v, uint32_t n)
{
    struct work w = begin(r, g, FR_RING_ALLREDUCE, n);
    int rc = 0;
    if (g->rank != 0) {
        rc = send_to(r, &w, 0, v, n);
        return end(&w, rc != 0 ? rc : recv_from(r, &w, 0, v, n, false));
    }
    for (uint8_t i = 1; i < g->n && rc == 0; i++) {
        rc = recv_from(r, &w, i, v, n, true);
    }
    for (uint8_t i = 1; i < g->n && rc == 0; i++) {
        rc = send_to(r, &w, i, v, n);
    }
    return end(&w, rc);
}

int fr_ring_all_gather(struct fr_ring *r, struct fr_ring_group *g, const double *v, uint32_t n,
                       double *all)
{
    struct work w = begin(r, g, FR_RING_ALLGATHER, n);
    int rc = 0;
    if (g->rank != 0) {
        rc = send_to(r, &w, 0, v, n);
        return end(&w, rc != 0 ? rc : recv_from(r, &w, 0, all, n * g->n, false));
    }
    memcpy(all, v, n * sizeof *v);
    for (uint8_t i = 1; i < g->n && rc == 0; i++) {
        rc = recv_from(r, &w, i, all + (size_t)i * n, n, false);
    }
    for (uint8_t i = 1; i < g->n && rc == 0; i++) {
        rc = send_to(r, &w, i, all, n * g->n);
    }
    return end(&w, rc);
}

int fr_ring_broadcast(struct fr_ring *r, struct fr_ring_group *g, uint8_t from, double *v,
                      uint32_t n)
{
    struct work w = begin(r, g, FR_RING_BROADCAST, n);
    int rc = g->rank != from ? recv_from(r, &w, from, v, n, false) : 0;
    for (uint8_t i = 0; g->rank == from && i < g->n && rc == 0; i++) {
        rc = i != from ? send_to(r, &w, i, v, n) : 0;
    }
    return end(&w, rc);
}

int fr_ring_barrier(struct fr_ring *r, struct fr_ring_group *g)
{
    double none = 0;
    int rc = fr_ring_all_reduce(r, g, &none, 1); /* as ProcessGroupNCCL does it */
    return rc;
}

int fr_ring_monitored_barrier(struct fr_ring *r, struct fr_ring_group *g)
{
    struct work w = {.group = g, .op = FR_RING_BARRIER, .seq = g->collectives, .began = now_ms()};
    uint8_t late = 0;
    int rc = 0;
    w.until = w.began + r->timeout_ms;
    if (g->rank != 0) {
        w.until +=
            r->timeout_ms / 2; /* the first member reports before anybody complains about it */
        rc = send_to(r, &w, 0, NULL, 0);
        return rc != 0 ? rc : recv_from(r, &w, 0, NULL, 0, false);
    }
    for (uint8_t i = 1; i < g->n; i++) {
        if (recv_from(r, &w, i, NULL, 0, false) != 0) {
            late |= (uint8_t)(1u << g->member[i]);
            rc = -FR_IO;
        }
    }
    r->fault.late |= late;
    for (uint8_t i = 1; i < g->n && rc == 0; i++) {
        rc = send_to(r, &w, i, NULL, 0);
    }
    return rc;
}

int fr_ring_exchange(struct fr_ring *r, struct fr_ring_group *g, const struct fr_ring_p2p *op,
                     uint32_t n)
{
    if (n == 0) {
        return 0;
    }
    struct work w = begin(r, g, FR_RING_COALESCED, 0);
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = op[i].is_recv ? 0 : send_to(r, &w, op[i].peer, op[i].v, op[i].n);
    }
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = op[i].is_recv ? recv_from(r, &w, op[i].peer, op[i].v, op[i].n, false) : 0;
    }
    return end(&w, rc);
}
