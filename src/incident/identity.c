/* SPDX-License-Identifier: Apache-2.0 */
/* identity: law 1. A number in brackets is a rank only where something proves it. What counts as proof:
 *   - the line says so ("[rank3]:", an error table's "rank : 3", "rank 3/8 pid 4242");
 *   - a pid, local rank, task, PCI address or file that said so elsewhere, on the same host;
 *   - a local rank is the global one when one host holds the whole world; a task is, when tasks named their rank and it agreed.
 * A contradiction (one pid, two ranks) removes the join instead of choosing. */
#include "incident/case.h"

#include <stdio.h>

enum { CONFLICT = FR_RANK_CONFLICT };

void fr_case_join(struct fr_map *m, fr_sv key, int32_t rank)
{
    bool fresh = false;
    uint32_t *slot = fr_map_slot(m, key, &fresh);
    if (slot == NULL) {
        return;
    }
    if (fresh) {
        *slot = (uint32_t)rank;
    } else if (*slot != (uint32_t)rank) {
        *slot = CONFLICT;
    }
}

static void join(struct fr_map *m, const char *key, int32_t rank)
{
    fr_case_join(m, fr_sv_z(key), rank);
}

static int32_t joined(const struct fr_map *m, const char *key)
{
    uint32_t v;
    return fr_map_get(m, fr_sv_z(key), &v) && v != CONFLICT ? (int32_t)v : -1;
}

/* "gpu-07.cluster.local", "slurmstepd-gpu-07" and "gpu-07" are one host. An address stays whole. */
fr_sv fr_case_short_host(fr_sv name)
{
    (void)fr_sv_take(&name, FR_SV("slurmstepd-"));
    size_t dot = fr_sv_chr(name, '.');
    bool address = name.n != 0 && name.p[0] >= '0' && name.p[0] <= '9';
    return dot == FR_NPOS || address ? name : fr_sv_head(name, dot);
}

int32_t fr_case_node_of(struct fr_case *c, fr_sv name)
{
    fr_sv host = fr_case_short_host(fr_sv_trim(name));
    if (host.n == 0) {
        return -1;
    }
    bool fresh = false;
    uint32_t *slot = fr_map_slot(&c->node_index, host, &fresh);
    if (slot == NULL) {
        c->nomem = true;
        return -1;
    }
    if (fresh) {
        struct fr_node *n = FR_PUSH(&c->nodes);
        if (n == NULL) {
            c->nomem = true;
            return -1;
        }
        n->name = fr_arena_dup(&c->arena, name);
        *slot = c->nodes.n - 1;
    }
    return (int32_t)*slot;
}

int32_t fr_case_pid_rank(const struct fr_case *c, int32_t node, int64_t pid)
{
    char key[64];
    if (pid <= 0) {
        return -1;
    }
    if (node >= 0) {
        snprintf(key, sizeof key, "%d/%lld", node, (long long)pid);
        int32_t r = joined(&c->pid_rank, key);
        if (r >= 0) {
            return r;
        }
    }
    snprintf(key, sizeof key, "*/%lld", (long long)pid);
    return joined(&c->pid_rank, key);
}

static void join_pid(struct fr_case *c, int32_t node, int64_t pid, int32_t rank)
{
    char key[64];
    if (pid <= 0 || rank < 0) {
        return;
    }
    if (node >= 0) {
        snprintf(key, sizeof key, "%d/%lld", node, (long long)pid);
        join(&c->pid_rank, key, rank);
    }
    snprintf(key, sizeof key, "*/%lld", (long long)pid);
    join(&c->pid_rank, key, rank);
}

/* Two launchers may give one host's name: then the file that both stand in tells them apart. */
static void join_local(struct fr_case *c, const struct fr_obs *o, int32_t local, int32_t rank)
{
    char key[64];
    if (local < 0 || rank < 0) {
        return;
    }
    snprintf(key, sizeof key, "%d/%d", o->node, local);
    join(&c->local_rank, key, rank);
    snprintf(key, sizeof key, "s%u/%d", o->src, local);
    join(&c->local_rank, key, rank);
    snprintf(key, sizeof key, "*/%d", local);
    join(&c->local_rank, key, rank);
}

static void join_task(struct fr_case *c, int32_t task, int32_t rank)
{
    char key[32];
    if (task >= 0 && rank >= 0) {
        snprintf(key, sizeof key, "%d", task);
        join(&c->task_rank, key, rank);
    }
}

/* Is this rank number a global one? A communicator's rank is, only when the communicator spans the world. */
static bool is_global(const struct fr_case *c, const struct fr_event *e)
{
    int64_t world = fr_event_num(e, FR_KEY_WORLD, -1);
    return fr_event_cap(e, FR_KEY_COMM) == NULL || (world > 0 && world == c->world);
}

static void learn_world(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        bool says = e->fact == FR_FACT_IDENTITY || e->fact == FR_FACT_TIMEOUT || e->fact == FR_FACT_EXIT;
        int64_t w = says ? fr_event_num(e, FR_KEY_WORLD, -1) : -1;
        int64_t best = w > e->who.world ? w : e->who.world;
        if (best > c->world && best <= 1000000) {
            c->world = (int32_t)best;
        }
    }
}

static int32_t event_node(struct fr_case *c, const struct fr_obs *o)
{
    const struct fr_event *e = o->e;
    fr_sv name = fr_event_text(e, FR_KEY_NODE);
    bool own = e->fact == FR_FACT_IDENTITY || e->fact == FR_FACT_EXIT || e->fact == FR_FACT_SCHEDULER;
    if (own && name.n != 0) {
        return fr_case_node_of(c, name);
    }
    if (e->who.node.n != 0) {
        return fr_case_node_of(c, e->who.node);
    }
    return c->src_node[o->src];
}

static void learn_from(struct fr_case *c, struct fr_obs *o)
{
    const struct fr_event *e = o->e;
    int32_t rank = (int32_t)fr_event_num(e, FR_KEY_RANK, -1);
    bool says = (e->fact == FR_FACT_IDENTITY && is_global(c, e)) || e->fact == FR_FACT_EXIT;
    o->node = event_node(c, o);
    if (e->who.rank >= 0) {
        join_pid(c, o->node, e->who.pid, e->who.rank);
        join_local(c, o, e->who.local_rank, e->who.rank);
        join_task(c, e->who.task, e->who.rank);
    }
    if (!says || rank < 0) {
        return;
    }
    join_pid(c, o->node, fr_event_num(e, FR_KEY_PID, -1), rank);
    join_local(c, o, (int32_t)fr_event_num(e, FR_KEY_LOCAL_RANK, -1), rank);
    if (e->fact == FR_FACT_IDENTITY) {
        join_pid(c, o->node, e->who.pid, rank);
        join_local(c, o, e->who.local_rank, rank);
        join_task(c, e->who.task >= 0 ? e->who.task : c->set->sources.v[o->src]->hint.task, rank);
        fr_sv pci = fr_event_text(e, FR_KEY_PCI);
        if (pci.n != 0 && pci.n < 40) {
            char key[80];
            snprintf(key, sizeof key, "%d/%.*s", o->node, FR_SV_ARG(pci));
            join(&c->pci_rank, key, rank);
        }
    }
}

/* Where a path differs from that of the same process's other stream: "job.3.std", "run-3."; false: it says neither. */
static bool stream_key(fr_sv path, char *key, size_t size)
{
    static const char *const streams[] = {"stdout", "stderr", ".out", ".err", NULL};
    for (const char *const *s = streams; *s != NULL; s++) {
        size_t at = FR_NPOS;
        for (size_t i = 0; i + strlen(*s) <= path.n; i++) {
            at = memcmp(path.p + i, *s, strlen(*s)) == 0 ? i : at;
        }
        if (at != FR_NPOS && path.n < size) {
            fr_sv rest = fr_sv_skip(path, at + strlen(*s));
            snprintf(key, size, "%.*s\n%.*s", (int)at, path.p, FR_SV_ARG(rest));
            return true;
        }
    }
    return false;
}

/* Standard output and error of one process are two files; where there are such pairs of several ranks, what one of a pair says of its
 * rank holds for the other. A console's two streams are one pair, and say nothing of the kind. */
static void learn_streams(struct fr_case *c)
{
    struct fr_map ranks;
    char key[1024];
    int32_t some = -1;
    bool several = false;
    fr_map_init(&ranks, &c->arena);
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        int32_t r = c->src_rank[i];
        if (r >= 0 && stream_key(c->set->sources.v[i]->name, key, sizeof key)) {
            join(&ranks, key, r);
            several |= some >= 0 && some != r;
            some = r;
        }
    }
    for (uint32_t i = 0; several && i < c->set->sources.n; i++) {
        if (c->src_rank[i] < 0 && stream_key(c->set->sources.v[i]->name, key, sizeof key)) {
            c->src_rank[i] = joined(&ranks, key);
        }
    }
}

/* NCCL's lines in one file, of another process on another GPU than before: it is not one rank's file, whoever says a rank in it. */
static bool is_of_several(const struct fr_event *e, struct fr_who *seen)
{
    bool first = seen->pid < 0;
    if (e->who.pid < 0 || e->who.gpu < 0) {
        return false;
    }
    *seen = first ? e->who : *seen;
    return !first && seen->pid != e->who.pid && seen->gpu != e->who.gpu;
}

/* A file is one rank's when its name says so, or when everybody in it who says a rank says the same one. */
static void learn_sources(struct fr_case *c)
{
    int32_t *said = FR_NEW_N(&c->arena, int32_t, c->set->sources.n + 1);
    struct fr_who *nccl = FR_NEW_N(&c->arena, struct fr_who, c->set->sources.n + 1);
    if (said == NULL || nccl == NULL) {
        c->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        said[i] = -1;
        nccl[i] = FR_WHO_NONE;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        int32_t r = o->e->who.rank;
        if (r < 0 && o->e->fact == FR_FACT_IDENTITY && is_global(c, o->e)) {
            r = (int32_t)fr_event_num(o->e, FR_KEY_RANK, -1);
        }
        if (r >= 0) {
            said[o->src] = said[o->src] == -1 || said[o->src] == r ? r : CONFLICT;
        }
        said[o->src] = is_of_several(o->e, &nccl[o->src]) ? CONFLICT : said[o->src];
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t k = 0; k < s->speakers.n; k++) { /* its lines of progress, which are no events */
            int32_t r = s->speakers.v[k].who.rank;
            said[i] = r < 0 ? said[i] : said[i] == -1 || said[i] == r ? r : CONFLICT;
        }
        bool alone = c->set->sources.n > 1 && said[i] >= 0 && said[i] != CONFLICT;
        c->src_rank[i] = s->hint.rank >= 0 ? s->hint.rank : alone ? said[i] : -1;
    }
    learn_streams(c);
}

/* The host whose name some part of the path begins with ("node-b-logs/attempt_0/0/stderr.log"), the longest name and the last part
 * first; -1 for none. */
static int32_t node_in_path(const struct fr_case *c, fr_sv path)
{
    int32_t found = -1;
    while (path.n != 0) {
        size_t cut = fr_sv_chr(path, '/');
        fr_sv part = cut == FR_NPOS ? path : fr_sv_head(path, cut);
        path = fr_sv_skip(path, cut == FR_NPOS ? path.n : cut + 1);
        size_t longest = 2; /* a shorter name is anybody's */
        for (uint32_t k = 0; k < c->nodes.n; k++) {
            fr_sv name = fr_case_short_host(c->nodes.v[k].name);
            bool ends = part.n == name.n || (part.n > name.n && strchr("-_.", part.p[name.n]) != NULL);
            if (name.n > longest && ends && fr_sv_starts(part, name)) {
                longest = name.n;
                found = (int32_t)k;
            }
        }
    }
    return found;
}

/* Hosts of files: what the name says, else the one host that speaks in it; "node3" of dmesg_node3.log becomes the host that
 * the agent's file of the same token reports. */
static void learn_nodes(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        c->src_node[i] = -1;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        fr_sv name = o->e->who.node;
        if (name.n == 0 && o->e->fact == FR_FACT_EXIT) {
            name = fr_event_text(o->e, FR_KEY_NODE);
        }
        int32_t n = fr_case_node_of(c, name);
        if (n >= 0) {
            int32_t *slot = &c->src_node[o->src];
            *slot = *slot == -1 || *slot == n ? n : CONFLICT;
        }
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        if (c->src_node[i] == CONFLICT) {
            c->src_node[i] = -1;
        } else if (c->src_node[i] >= 0 && s->hint.node.n != 0 && c->nodes.v[c->src_node[i]].token.n == 0) {
            c->nodes.v[c->src_node[i]].token = s->hint.node;
        }
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        fr_sv token = c->set->sources.v[i]->hint.node;
        for (uint32_t k = 0; c->src_node[i] < 0 && token.n != 0 && k < c->nodes.n; k++) {
            if (fr_sv_eq(c->nodes.v[k].token, token)) {
                c->src_node[i] = (int32_t)k;
            }
        }
        if (c->src_node[i] < 0 && token.n != 0) {
            c->src_node[i] = fr_case_node_of(c, token);
        } else if (c->src_node[i] < 0) {
            c->src_node[i] = node_in_path(c, c->set->sources.v[i]->name);
        }
    }
}

/* One host holds the whole world: every local rank joined so far equals its rank, or local ranks seen cover the world. */
static bool local_is_global(const struct fr_case *c)
{
    uint32_t equal = 0, other = 0;
    for (uint32_t i = 0; i < c->local_rank.n; i++) {
        fr_sv key = fr_map_key(&c->local_rank, i);
        int64_t local;
        if (!fr_sv_take(&key, FR_SV("*/")) || !fr_sv_take_i64(&key, &local)) {
            continue;
        }
        if ((int64_t)(int32_t)fr_map_value(&c->local_rank, i) == local) {
            equal++;
        } else {
            other++;
        }
    }
    if (other != 0) {
        return false;
    }
    int32_t top = -1;
    for (uint32_t i = 0; i < c->obs.n; i++) { /* the highest one of a world of n is n-1: no other host has room */
        const struct fr_event *e = c->obs.v[i].e;
        int64_t died = e->fact == FR_FACT_EXIT ? fr_event_num(e, FR_KEY_LOCAL_RANK, -1) : -1;
        top = died > top ? (int32_t)died : top;
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        top = s->hint.local_rank > top ? s->hint.local_rank : top;
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            top = s->speakers.v[k].who.local_rank > top ? s->speakers.v[k].who.local_rank : top;
        }
    }
    return (c->world > 0 && top + 1 == c->world) || (equal >= 2 && c->nodes.n <= 1 && (c->world < 0 || (int32_t)equal >= c->world));
}

/* srun reports the ends of several tasks of one host: it started a process per GPU there, not one launcher per host. */
static bool tasks_share_a_host(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *a = c->obs.v[i].e;
        bool ended = a->fact == FR_FACT_EXIT && fr_sv_eq(fr_event_text(a, FR_KEY_REASON), FR_SV("srun"));
        fr_sv list = ended ? fr_event_text(a, FR_KEY_RANKS) : FR_SV_NONE;
        if (fr_sv_chr(list, ',') != FR_NPOS || fr_sv_chr(list, '-') != FR_NPOS) {
            return true;
        }
        for (uint32_t k = 0; ended && k < i; k++) {
            const struct fr_event *b = c->obs.v[k].e;
            if (b->fact == FR_FACT_EXIT && fr_sv_eq(fr_event_text(a, FR_KEY_NODE), fr_event_text(b, FR_KEY_NODE)) &&
                fr_event_text(b, FR_KEY_RANKS).n != 0 && !fr_sv_eq(list, fr_event_text(b, FR_KEY_RANKS))) {
                return true;
            }
        }
    }
    return false;
}

static bool task_is_global(const struct fr_case *c)
{
    uint32_t equal = 0;
    for (uint32_t i = 0; i < c->task_rank.n; i++) {
        fr_sv key = fr_map_key(&c->task_rank, i);
        int64_t task;
        if (!fr_sv_take_i64(&key, &task) || (int64_t)(int32_t)fr_map_value(&c->task_rank, i) != task) {
            return false;
        }
        equal++;
    }
    return equal >= 2 || (equal == 1 && c->world > 1) || (c->task_rank.n == 0 && tasks_share_a_host(c));
}

int32_t fr_case_rank_of(const struct fr_case *c, const struct fr_who *who, uint32_t src)
{
    const struct fr_source_evidence *s = c->set->sources.v[src];
    if (who->rank >= 0) {
        return who->rank;
    }
    uint32_t said = 0;
    fr_sv host = fr_case_short_host(fr_sv_trim(who->node));
    int32_t node = host.n != 0 && fr_map_get(&c->node_index, host, &said) ? (int32_t)said : c->src_node[src];
    int32_t r = fr_case_pid_rank(c, node, who->pid);
    if (r >= 0) {
        return r;
    }
    int32_t local = who->local_rank >= 0 ? who->local_rank : s->hint.local_rank;
    if (local >= 0) {
        char key[64];
        snprintf(key, sizeof key, "%d/%d", node, local);
        r = node >= 0 ? joined(&c->local_rank, key) : -1;
        if (r < 0) {
            snprintf(key, sizeof key, "s%u/%d", src, local);
            r = joined(&c->local_rank, key);
        }
        if (r < 0) {
            snprintf(key, sizeof key, "*/%d", local);
            r = joined(&c->local_rank, key);
        }
        if (r < 0 && c->local_is_rank) {
            r = local;
        }
        if (r >= 0) {
            return r;
        }
    }
    int32_t task = who->task >= 0 ? who->task : s->hint.task;
    if (task >= 0) {
        char key[32];
        snprintf(key, sizeof key, "%d", task);
        r = joined(&c->task_rank, key);
        if (r >= 0 || c->task_is_rank) {
            return r >= 0 ? r : task;
        }
    }
    uint32_t own = 0;
    if (c->host_is_rank && host.n != 0 && fr_map_get(&c->host_rank, host, &own)) {
        return (int32_t)own;
    }
    return c->src_rank[src];
}

void fr_case_identify(struct fr_case *c)
{
    struct fr_map *maps[] = {&c->pid_rank, &c->local_rank, &c->task_rank, &c->pci_rank, &c->addr_node, &c->node_index, &c->host_rank};
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        fr_map_init(maps[i], &c->arena);
    }
    c->src_rank = FR_NEW_N(&c->arena, int32_t, c->set->sources.n + 1);
    c->src_node = FR_NEW_N(&c->arena, int32_t, c->set->sources.n + 1);
    if (c->src_rank == NULL || c->src_node == NULL) {
        c->nomem = true;
        return;
    }
    learn_world(c);
    learn_nodes(c);
    learn_sources(c);
    fr_case_names(c);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        learn_from(c, &c->obs.v[i]);
    }
    int64_t pid = -1;
    int32_t last = fr_case_last_child(c, &pid);
    join_pid(c, -1, pid, last);
    c->local_is_rank = local_is_global(c);
    c->task_is_rank = task_is_global(c);
    fr_case_hosts(c);
    for (uint32_t i = 0; i < c->obs.n; i++) {
        c->obs.v[i].rank = fr_case_rank_of(c, &c->obs.v[i].e->who, c->obs.v[i].src);
    }
}
