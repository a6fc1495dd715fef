/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: containers and pods that hold one rank each. The label before a line is then as good as a rank: where each host speaks as one
 * rank only, or where all hosts are one numbered series of processes that lose each other. */
#include "incident/case.h"

#include "base/buf.h"

static void join(struct fr_case *c, fr_sv node, int32_t rank)
{
    fr_sv host = fr_case_short_host(fr_sv_trim(node));
    if (host.n != 0 && rank >= 0) {
        fr_case_join(&c->host_rank, host, rank);
    }
}

static void join_all(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            join(c, s->speakers.v[k].who.node, s->speakers.v[k].who.rank);
        }
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        if (e->fact == FR_FACT_IDENTITY && fr_event_text(e, FR_KEY_COMM).n == 0) {
            join(c, e->who.node, (int32_t)fr_event_num(e, FR_KEY_RANK, -1));
        }
    }
}

/* As many hosts as ranks, 0 to n - 1, and each host speaks as one of them only. (Where a host holds several, the first ones of two hosts
 * are not 0 and 1.) */
static bool each_is_one(const struct fr_case *c, struct fr_arena *arena)
{
    uint32_t n = c->host_rank.n;
    uint8_t *seen = n >= 2 && (c->world < 0 || (uint32_t)c->world == n) ? FR_NEW_N(arena, uint8_t, n) : NULL;
    for (uint32_t i = 0; seen != NULL && i < n; i++) {
        uint32_t rank = fr_map_value(&c->host_rank, i);
        if (rank >= n || seen[rank]++ != 0) {
            return false;
        }
    }
    return seen != NULL;
}

/* What the lines of one host, or of one task, tell. */
struct host {
    uint32_t deaths; /* tracebacks */
    bool waits;      /* it lost a peer or waited for one in vain */
    bool many;       /* a second process speaks there */
};

static void hear(struct host *one, const struct fr_event *e)
{
    one->deaths += e->trace != NULL && e->line == e->trace->last_line ? e->count : 0;
    one->waits |= e->fact == FR_FACT_PEER_LOST || e->fact == FR_FACT_TIMEOUT;
}

struct hosts {
    struct fr_map index;
    FR_VEC(struct host) v;
};

static struct host *host_of(struct hosts *h, fr_sv node)
{
    fr_sv name = fr_case_short_host(fr_sv_trim(node));
    bool fresh = false;
    uint32_t *slot = name.n != 0 ? fr_map_slot(&h->index, name, &fresh) : NULL;
    if (slot == NULL) {
        return NULL;
    }
    struct host *one = fresh ? FR_PUSH(&h->v) : NULL;
    if (one != NULL) {
        *one = (struct host){0};
        *slot = h->v.n - 1;
    }
    return *slot < h->v.n ? &h->v.v[*slot] : NULL;
}

static void listen(const struct fr_case *c, struct hosts *h)
{
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            struct host *one = host_of(h, s->speakers.v[k].who.node);
            if (one != NULL) {
                one->many |= s->speakers.v[k].who.local_rank > 0;
            }
        }
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        bool container = e->fact == FR_FACT_EXIT && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("compose"));
        struct host *one = host_of(h, container ? fr_event_text(e, FR_KEY_NODE) : e->who.node);
        if (one != NULL) {
            hear(one, e);
        }
    }
}

/* The number in the name of host i; -1: it is of another family, or its number is not its rank. */
static int32_t number_of(const struct fr_case *c, const struct hosts *h, uint32_t i, struct fr_buf *key, fr_sv family)
{
    int32_t number = -1;
    uint32_t proven = 0;
    fr_sv name = fr_map_key(&h->index, i);
    if (!fr_case_family(name, key, &number) || !fr_sv_eq(fr_buf_sv(key), family) || h->v.v[i].deaths > 1 || h->v.v[i].many) {
        return -1;
    }
    return fr_map_get(&c->host_rank, name, &proven) && proven != (uint32_t)number ? -1 : number;
}

/* trainer-0 to trainer-5, and nobody else: each dies once at most, and several lose a peer. So numbers count processes, from 0. */
static bool are_numbered(struct fr_case *c, struct hosts *h)
{
    FR_AUTO(fr_buf) first = FR_BUF_INIT(512);
    FR_AUTO(fr_buf) key = FR_BUF_INIT(512);
    uint32_t n = h->index.n, waiting = 0;
    int32_t number = 0;
    bool fits = n >= 3 && n == h->v.n && (c->world < 0 || (uint32_t)c->world == n) && fr_case_family(fr_map_key(&h->index, 0), &first, &number) &&
                fr_case_one_each(fr_buf_sv(&first));
    uint8_t *seen = fits ? FR_NEW_N(&c->arena, uint8_t, n) : NULL;
    for (uint32_t i = 0; seen != NULL && i < n; i++) {
        number = number_of(c, h, i, &key, fr_buf_sv(&first));
        if (number < 0 || (uint32_t)number >= n || seen[number]++ != 0) {
            return false;
        }
        waiting += h->v.v[i].waits;
    }
    return seen != NULL && waiting >= 2;
}

/* The highest task and one more; 0: there are numbers above that of speakers, which is no whole series, or a task has several processes. */
static uint32_t count_tasks(const struct fr_case *c)
{
    uint32_t n = 0, speakers = 0;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        speakers += s->speakers.n;
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            const struct fr_who *who = &s->speakers.v[k].who;
            if (who->local_rank >= 0) {
                return 0;
            }
            n = who->task >= 0 && (uint32_t)who->task + 1 > n ? (uint32_t)who->task + 1 : n;
        }
    }
    return n <= speakers ? n : 0;
}

static bool all_speak(struct fr_case *c, uint32_t n)
{
    uint8_t *seen = FR_NEW_N(&c->arena, uint8_t, n);
    uint32_t tasks = 0;
    for (uint32_t i = 0; seen != NULL && i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            int32_t task = s->speakers.v[k].who.task;
            tasks += task >= 0 && seen[task]++ == 0;
        }
    }
    return seen != NULL && tasks == n;
}

static bool is_agents(const struct fr_event *e)
{
    fr_sv reason = fr_event_text(e, FR_KEY_REASON);
    return e->fact == FR_FACT_EXIT &&
           (fr_sv_eq(reason, FR_SV("agent")) || fr_sv_eq(reason, FR_SV("table")) || fr_sv_eq(reason, FR_SV("table-root")));
}

/* srun --label, or a script's own tags: tasks 0 to n - 1, none of which starts further processes, each dies once at most, and several lose a
 * peer. Interpreters print tracebacks past a script's tags: of those there are no more than tasks. */
static bool tasks_are_ranks(struct fr_case *c)
{
    uint32_t n = c->task_rank.n == 0 ? count_tasks(c) : 0, waiting = 0, lost = 0;
    bool fits = n >= 3 && (c->world < 0 || (uint32_t)c->world == n) && all_speak(c, n);
    struct host *v = fits ? FR_NEW_N(&c->arena, struct host, n) : NULL, bare = {0};
    for (uint32_t i = 0; v != NULL && i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        if (is_agents(e)) {
            return false;
        }
        if (e->who.task >= 0 && (uint32_t)e->who.task < n) {
            hear(&v[e->who.task], e);
        } else if (e->who.rank < 0) {
            hear(&bare, e);
            lost += e->fact == FR_FACT_PEER_LOST || e->fact == FR_FACT_TIMEOUT;
        }
    }
    for (uint32_t i = 0; v != NULL && i < n; i++) {
        if (v[i].deaths > 1) {
            return false;
        }
        waiting += v[i].waits;
    }
    return waiting + (bare.deaths <= n ? lost : 0) >= 2;
}

void fr_case_hosts(struct fr_case *c)
{
    FR_AUTO(fr_buf) key = FR_BUF_INIT(512);
    c->task_is_rank = c->task_is_rank || tasks_are_ranks(c);
    join_all(c);
    c->host_is_rank = each_is_one(c, &c->arena);
    if (c->host_is_rank) {
        return;
    }
    struct hosts h = {0};
    fr_map_init(&h.index, &c->arena);
    listen(c, &h);
    if (are_numbered(c, &h)) {
        for (uint32_t i = 0; i < h.index.n; i++) {
            int32_t number = -1;
            if (fr_case_family(fr_map_key(&h.index, i), &key, &number)) {
                join(c, fr_map_key(&h.index, i), number);
            }
        }
        c->host_is_rank = true;
    }
    fr_vec_free(h.v.v);
}
