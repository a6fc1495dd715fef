/* SPDX-License-Identifier: Apache-2.0 */
/* names: what the names of files say when they are taken together. A number in one name proves nothing; a whole series of them, of
 * files that one launch wrote, is the ranks by convention. */
#include "incident/case.h"

#include "base/buf.h"

#include <string.h>

/* Where the index ends in "3-of-4", "3of4", of which `end` is the end: the total is not it. */
static size_t before_total(fr_sv name, size_t slash, size_t end)
{
    size_t at = end;
    while (at > slash && name.p[at - 1] >= '0' && name.p[at - 1] <= '9') {
        at--;
    }
    at -= at > slash && strchr("-_.", name.p[at - 1]) != NULL;
    if (at < slash + 3 || memcmp(name.p + at - 2, "of", 2) != 0) {
        return end;
    }
    at -= 2;
    at -= strchr("-_.", name.p[at - 1]) != NULL;
    return at > slash && name.p[at - 1] >= '0' && name.p[at - 1] <= '9' ? at : end;
}

/* "logs/worker_07.log.gz" -> "logs/worker_#.log.gz" and 7, "logs/p3/stderr.log" -> "logs/p#/stderr.log" and 3: the last number of the file's
 * own name, or of the folder that it lies in. */
bool fr_case_family(fr_sv name, struct fr_buf *key, int32_t *ret_number)
{
    size_t slash = 0, folder = 0, end = name.n;
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '/' || name.p[i] == '!') {
            folder = slash;
            slash = i + 1;
        }
    }
    while (end > folder && !(name.p[end - 1] >= '0' && name.p[end - 1] <= '9')) {
        end--;
    }
    slash = end > slash ? slash : folder;
    end = before_total(name, slash, end);
    size_t begin = end;
    while (begin > slash && name.p[begin - 1] >= '0' && name.p[begin - 1] <= '9') {
        begin--;
    }
    fr_sv digits = fr_sv_range(name.p + begin, name.p + end);
    uint64_t number = 0;
    if (digits.n == 0 || digits.n > 6 || !fr_sv_take_u64(&digits, &number)) {
        return false;
    }
    fr_buf_clear(key);
    fr_buf_add(key, fr_sv_head(name, begin));
    fr_buf_addc(key, '#');
    fr_buf_add(key, fr_sv_skip(name, end));
    *ret_number = (int32_t)number;
    return fr_buf_ok(key);
}

/* A name that people give to one process each. */
static bool names_processes(fr_sv key)
{
    static const char *const words[] = {"worker", "rank", "proc", "trainer", "/r", ".r", "_r", "-r", NULL};
    size_t hash = fr_sv_chr(key, '#');
    fr_sv head = fr_sv_head(key, hash);
    for (const char *const *w = words; *w != NULL; w++) {
        size_t n = strlen(*w);
        fr_sv t = head;
        while (t.n != 0 && (t.p[t.n - 1] == '_' || t.p[t.n - 1] == '-' || t.p[t.n - 1] == '.')) {
            t.n--;
        }
        if (t.n >= n && memcmp(t.p + t.n - n, *w, n) == 0) {
            return true;
        }
    }
    return false;
}

/* A name whose number may well be a process's: not a host's, not an attempt's, and no suffix of a rotated log. */
bool fr_case_one_each(fr_sv key)
{
    static const char *const others[] = {"node", "host", "attempt", "restart", "run", "part", "chunk", "shard", "epoch", "step", "job",
                                         "gpu-node", "agent_", "seed", "exp", "fold", "trial", "try", "test", "day", NULL};
    static const char *const rotated[] = {".log.", ".txt.", ".out.", ".err.", NULL};
    size_t hash = fr_sv_chr(key, '#'), slash = 0;
    for (size_t i = 0; i < hash; i++) {
        slash = key.p[i] == '/' || key.p[i] == '!' ? i + 1 : slash;
    }
    fr_sv head = fr_sv_range(key.p + slash, key.p + hash);
    for (const char *const *w = others; *w != NULL; w++) {
        if (fr_sv_find_ci(head, fr_sv_z(*w)) != FR_NPOS) {
            return false;
        }
    }
    for (const char *const *r = rotated; *r != NULL; r++) {
        if (fr_sv_ends(head, fr_sv_z(*r))) {
            return false;
        }
    }
    return true;
}

enum { GRID_LOCALS = 64 };
#define SLOW_START (5 * FR_NS_PER_S) /* processes of one launch begin this far from each other */

/* What the events of one file tell. */
struct tells {
    bool waits; /* somebody in it lost a peer or waited for one in vain */
    bool dies;  /* its last words are a traceback */
};

static struct tells *listen(struct fr_case *c)
{
    const uint64_t near = 3; /* lines: what interpreters and libraries still say at exit */
    struct tells *t = FR_NEW_N(&c->arena, struct tells, c->set->sources.n + 1);
    for (uint32_t i = 0; t != NULL && i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        t[o->src].waits |= o->e->fact == FR_FACT_PEER_LOST || o->e->fact == FR_FACT_TIMEOUT;
        t[o->src].dies |= o->e->trace != NULL && o->e->trace->last_line + near >= c->set->sources.v[o->src]->last_line_no;
    }
    return t;
}

struct family {
    uint32_t members, proven, against, waiting, training, dying;
    int32_t top;
    int64_t last_begin, first_end; /* of those that print times */
};

static void add_member(const struct fr_case *c, const struct tells *t, struct family *g, uint32_t src, int32_t number)
{
    const struct fr_source_evidence *s = c->set->sources.v[src];
    g->members++;
    g->proven += c->src_rank[src] == number;
    g->against += c->src_rank[src] >= 0 && c->src_rank[src] != number;
    g->waiting += t[src].waits;
    g->training += s->metric_points != 0;
    g->dying += t[src].dies;
    g->top = number > g->top ? number : g->top;
    for (uint32_t i = 0; i < s->speakers.n; i++) {
        const struct fr_activity *a = &s->speakers.v[i];
        if (a->first.ns != FR_TIME_NONE && a->last.ns != FR_TIME_NONE) {
            g->last_begin = g->last_begin == FR_TIME_NONE || a->first.ns > g->last_begin ? a->first.ns : g->last_begin;
            g->first_end = g->first_end == FR_TIME_NONE || a->last.ns < g->first_end ? a->last.ns : g->first_end;
        }
    }
}

/* Each of them trains or each ends in a traceback, none after another has ended. */
static bool together(const struct family *g)
{
    bool apart = g->last_begin != FR_TIME_NONE && g->last_begin - SLOW_START > g->first_end;
    return (g->training == g->members || g->dying == g->members) && !apart;
}

/* Files that differ in one number, r0.log r1.log r2.log: where those that prove a rank prove their number, it is the rank of the
 * silent ones too. So it is, by convention, where a whole series from 0 bears a process's name, where several of a whole series
 * wait for peers, or where each of it trains or each ends in a traceback, none after another has ended. */
static bool numbers_are_ranks(const struct fr_case *c, const struct family *g, fr_sv key)
{
    bool whole = (uint32_t)g->top + 1 == g->members;
    bool series = whole && g->members >= 4 && names_processes(key);
    bool folders = memchr(key.p + fr_sv_chr(key, '#'), '/', key.n - fr_sv_chr(key, '#')) != NULL; /* runs at the same time lie in such, too */
    bool one_each = whole && g->members >= 3 && (g->waiting >= 2 || (together(g) && !folders)) && fr_case_one_each(key);
    bool fits = c->world > 2 && g->top + 1 == c->world && g->members + 1 >= (uint32_t)c->world; /* at most one is missing */
    return g->against == 0 && (g->proven >= 2 || series || one_each || fits);
}

static void learn_families(struct fr_case *c, const struct tells *t)
{
    struct fr_map families;
    FR_AUTO(fr_buf) key = FR_BUF_INIT(8192);
    struct family *f = FR_NEW_N(&c->arena, struct family, c->set->sources.n + 1);
    fr_map_init(&families, &c->arena);
    for (int pass = 0; f != NULL && pass < 2; pass++) {
        for (uint32_t i = 0; i < c->set->sources.n; i++) {
            const struct fr_source_evidence *s = c->set->sources.v[i];
            int32_t number = 0;
            bool fresh = false;
            bool is_log = s->kind != FR_SOURCE_KERNEL && s->kind != FR_SOURCE_AGENT && s->kind != FR_SOURCE_CONSOLE;
            uint32_t *slot = is_log && fr_case_family(s->name, &key, &number) ? fr_map_slot(&families, fr_buf_sv(&key), &fresh) : NULL;
            if (slot == NULL) {
                continue;
            }
            *slot = fresh ? families.n - 1 : *slot;
            struct family *g = &f[*slot];
            if (pass == 0) {
                *g = fresh ? (struct family){.last_begin = FR_TIME_NONE, .first_end = FR_TIME_NONE} : *g;
                add_member(c, t, g, i, number);
            } else if (c->src_rank[i] < 0 && numbers_are_ranks(c, g, fr_buf_sv(&key))) {
                c->src_rank[i] = number;
            }
        }
    }
}

/* "node1_gpu0.log" among node0_gpu0, node0_gpu1, node1_gpu0, node1_gpu1: hosts that are numbered from 0, each with the same local
 * ranks. torchrun counts ranks host by host. One host is such a grid, too. */
static bool place_of(const struct fr_source_evidence *s, int32_t *ret_host, int32_t *ret_local)
{
    fr_sv token = s->hint.node;
    uint64_t number = 0;
    size_t begin = token.n;
    while (begin > 0 && token.p[begin - 1] >= '0' && token.p[begin - 1] <= '9') {
        begin--;
    }
    fr_sv digits = fr_sv_skip(token, begin);
    *ret_local = s->hint.local_rank >= 0 ? s->hint.local_rank : s->hint.gpu;
    if (*ret_local < 0 || *ret_local >= GRID_LOCALS || digits.n == 0 || digits.n > 4 || !fr_sv_take_u64(&digits, &number)) {
        return false;
    }
    *ret_host = (int32_t)number;
    return true;
}

static void learn_grid(struct fr_case *c, const struct tells *t)
{
    struct family g = {.last_begin = FR_TIME_NONE, .first_end = FR_TIME_NONE};
    int32_t host = 0, local = 0, hosts = 0, locals = 0;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        if (place_of(c->set->sources.v[i], &host, &local)) {
            hosts = host + 1 > hosts ? host + 1 : hosts;
            locals = local + 1 > locals ? local + 1 : locals;
        }
    }
    uint64_t cells = (uint64_t)hosts * (uint64_t)locals;
    uint8_t *seen = cells >= 3 && cells <= c->set->sources.n ? FR_NEW_N(&c->arena, uint8_t, cells + 1) : NULL;
    for (uint32_t i = 0; seen != NULL && i < c->set->sources.n; i++) {
        if (place_of(c->set->sources.v[i], &host, &local)) {
            int32_t rank = host * locals + local;
            add_member(c, t, &g, i, rank);
            if (seen[rank]++ != 0) {
                return; /* two files of one process: the names mean something else */
            }
        }
    }
    if (seen == NULL || g.members != cells || g.against != 0 || (c->world > 0 && (uint64_t)c->world != cells) ||
        !(g.proven >= 2 || g.waiting >= 2 || together(&g) || (c->world > 2 && (uint64_t)c->world == cells))) {
        return;
    }
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        if (c->src_rank[i] < 0 && place_of(c->set->sources.v[i], &host, &local)) {
            c->src_rank[i] = host * locals + local;
        }
    }
}

void fr_case_names(struct fr_case *c)
{
    const struct tells *t = listen(c);
    c->nomem |= t == NULL;
    if (t != NULL) {
        learn_families(c, t);
        learn_grid(c, t);
    }
}
