/* SPDX-License-Identifier: Apache-2.0 */
/* What a path says about its writer. A wrong rank is worse than none, so a number counts only next to the word that gives it a
 * meaning: "rank3" is a rank, "local_rank3" and attempt_0/3/ are local ranks, "gpu3" is a device, "tp_rank_3" is none of these,
 * and a bare number (a date, a job id, a rotation) says nothing. */
#include "read/input.h"

#define MAX_TOKENS 48

struct token {
    fr_sv text; /* letters or digits */
    bool is_num;
    char before; /* the separator in front, 0 when it touches the token before */
};
struct tokens {
    struct token v[MAX_TOKENS];
    unsigned n;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool same(fr_sv a, const char *b)
{
    return a.n == strlen(b) && fr_sv_find_ci(a, fr_sv_z(b)) == 0;
}

static bool starts_ci(fr_sv a, const char *b)
{
    return fr_sv_find_ci(fr_sv_head(a, strlen(b)), fr_sv_z(b)) == 0;
}

static bool ends_ci(fr_sv a, const char *b)
{
    size_t n = strlen(b);
    return a.n >= n && same(fr_sv_skip(a, a.n - n), b);
}

static bool one_of(fr_sv a, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (same(a, *list)) {
            return true;
        }
    }
    return false;
}

static void tokenise(fr_sv s, struct tokens *t)
{
    char sep = 0;
    t->n = 0;
    for (size_t i = 0; i < s.n && t->n < MAX_TOKENS;) {
        size_t b = i;
        bool num = is_digit(s.p[i]);
        if (!num && !is_alpha(s.p[i])) {
            sep = s.p[i++];
            continue;
        }
        while (i < s.n && (num ? is_digit(s.p[i]) : is_alpha(s.p[i]))) {
            i++;
        }
        t->v[t->n++] = (struct token){{s.p + b, i - b}, num, sep};
        sep = 0;
    }
}

/* The number right behind token i ("rank3", "rank_3", "rank=3"), or -1. */
static int32_t number_after(const struct tokens *t, unsigned i, int32_t max)
{
    uint64_t v;
    if (i + 1 >= t->n || !t->v[i + 1].is_num || t->v[i + 1].text.n > 9) {
        return -1;
    }
    char sep = t->v[i + 1].before;
    fr_sv s = t->v[i + 1].text;
    if ((sep != 0 && strchr("-_.=", sep) == NULL) || !fr_sv_take_u64(&s, &v) || v > (uint64_t)max) {
        return -1;
    }
    return (int32_t)v;
}

/* "rank0-7" names many ranks: a second short number behind a dash. */
static bool is_range(const struct tokens *t, unsigned i)
{
    return i + 2 < t->n && t->v[i + 2].is_num && t->v[i + 2].before == '-' && t->v[i + 2].text.n <= 4;
}

static void note(int32_t *field, int32_t value, bool *clash)
{
    if (value >= 0) {
        *clash |= *field >= 0 && *field != value;
        *field = value;
    }
}

/* Ranks inside a group, and ranks of something else. */
static const char *const other_ranks[] = {"node", "machine", "host", "group", "role", "tp", "pp", "dp", "mp", "ep", "cp", "sp", "pg",
                                          "model", "tensor", "pipeline", "data", "expert", "shard", "stage", "zero", "worker", "lora", "low", "full", NULL};

static void words(fr_sv component, struct fr_member *ret)
{
    struct tokens t;
    int32_t rank = -1, local = -1, task = -1, gpu = -1, attempt = -1;
    bool clash = false, local_clash = false, ignored = false;
    tokenise(component, &t);
    for (unsigned i = 0; i < t.n; i++) {
        fr_sv w = t.v[i].text, prev = i > 0 && t.v[i].before != '.' ? t.v[i - 1].text : FR_SV_NONE;
        if (t.v[i].is_num) {
            continue;
        }
        if (same(w, "rank") || same(w, "globalrank")) {
            if (same(prev, "local")) {
                note(&local, number_after(&t, i, 4095), &local_clash);
            } else if (!one_of(prev, other_ranks)) {
                clash |= is_range(&t, i);
                note(&rank, number_after(&t, i, 9999999), &clash);
            }
        } else if (same(w, "localrank")) {
            note(&local, number_after(&t, i, 4095), &local_clash);
        } else if (same(w, "task") || same(w, "taskid") || same(w, "procid")) {
            note(&task, number_after(&t, i, 9999999), &ignored);
        } else if ((same(w, "gpu") || same(w, "cuda") || same(w, "device")) && i + 1 < t.n && t.v[i + 1].text.n <= 2) {
            note(&gpu, number_after(&t, i, 63), &ignored);
        } else if (same(w, "attempt")) {
            note(&attempt, number_after(&t, i, 100000), &ignored);
        }
    }
    if (rank >= 0 && !clash && ret->hint.rank < 0) {
        ret->hint.rank = rank;
    }
    if (local >= 0 && !local_clash && ret->hint.local_rank < 0) {
        ret->hint.local_rank = local;
    }
    ret->hint.task = ret->hint.task < 0 ? task : ret->hint.task;
    ret->hint.gpu = ret->hint.gpu < 0 ? gpu : ret->hint.gpu;
    ret->attempt = ret->attempt < 0 ? attempt : ret->attempt;
}

/* slurm-<job>_<task>.out and slurm-<job>-<task>.out: %j_%t. slurm-<job>.out is the batch script's console. */
static void slurm(fr_sv base, struct fr_member *ret)
{
    struct tokens t;
    tokenise(base, &t);
    if (t.n < 3 || !same(t.v[0].text, "slurm") || !t.v[1].is_num) {
        return;
    }
    if (t.n == 3 && !t.v[2].is_num) {
        ret->kind = FR_SOURCE_CONSOLE;
    } else if (t.n == 4 && t.v[2].is_num && !t.v[3].is_num && (t.v[2].before == '_' || t.v[2].before == '-')) {
        ret->hint.task = number_after(&t, 1, 9999999);
    }
}

static const char *const host_words[] = {"node", "host", "nid", "worker", "dgx", "hgx", "compute", "cn", "ip", "master", "launcher",
                                         "gpunode", "gpuhost", "server", NULL};

/* "node07", "gpu-node-011", "ip-10-2-0-5", "train-worker-3": a known word, then digits at the end. */
static bool is_host(fr_sv s)
{
    struct tokens t;
    tokenise(s, &t);
    if (t.n < 2 || t.n >= MAX_TOKENS || s.n > 63 || !is_alpha(s.p[0]) || !t.v[t.n - 1].is_num || !is_digit(s.p[s.n - 1])) {
        return false;
    }
    bool known = t.n == 2 && same(t.v[0].text, "gpu") && t.v[1].text.n >= 3; /* gpu011 is a host, gpu3 a device */
    for (unsigned i = 0; i < t.n; i++) {
        if (same(t.v[i].text, "rank") || same(t.v[i].text, "slurm") || same(t.v[i].text, "attempt")) {
            return false;
        }
        known |= one_of(t.v[i].text, host_words);
    }
    return known;
}

/* A host among the parts of a component, cut at '_' and '.' ("torchrun_node0.log"); the whole of it first. */
static void host(fr_sv component, struct fr_member *ret)
{
    size_t b = 0;
    if (ret->hint.node.n > 0) {
        return;
    }
    for (size_t i = 0; i <= component.n; i++) {
        if (i == component.n || component.p[i] == '_' || component.p[i] == '.') {
            fr_sv part = {component.p + b, i - b};
            if (is_host(part)) {
                ret->hint.node = part;
                return;
            }
            b = i + 1;
        }
    }
}

static uint8_t kind_of(fr_sv base)
{
    static const struct { const char *begins; uint8_t kind; } names[] = {
        {"dmesg", FR_SOURCE_KERNEL},   {"kern.log", FR_SOURCE_KERNEL}, {"kernel", FR_SOURCE_KERNEL},
        {"messages", FR_SOURCE_KERNEL}, {"syslog", FR_SOURCE_KERNEL},  {"journal", FR_SOURCE_KERNEL},
        {"torchrun", FR_SOURCE_AGENT}, {"agent", FR_SOURCE_AGENT},     {"launcher", FR_SOURCE_AGENT},
        {"elastic", FR_SOURCE_AGENT},  {"srun", FR_SOURCE_CONSOLE},    {"console", FR_SOURCE_CONSOLE},
        {"sbatch", FR_SOURCE_CONSOLE}, {"mpirun", FR_SOURCE_CONSOLE},  {"nohup", FR_SOURCE_CONSOLE},
    };
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (starts_ci(base, names[i].begins)) {
            return names[i].kind;
        }
    }
    fr_sv stem = base;
    size_t dot = fr_sv_chr(base, '.');
    stem.n = dot != FR_NPOS ? dot : stem.n;
    if (ends_ci(stem, "dmesg") || ends_ci(stem, "journal")) {
        return FR_SOURCE_KERNEL;
    }
    return ends_ci(stem, "agent") || ends_ci(stem, "launcher") || ends_ci(stem, "torchrun") ? FR_SOURCE_AGENT : FR_SOURCE_UNKNOWN;
}

/* .../attempt_<restart>/<local rank>/{stdout.log,stderr.log,error.json}: torchrun --log-dir */
static void elastic(fr_sv parent, fr_sv grand, struct fr_member *ret)
{
    uint64_t v;
    fr_sv digits = parent;
    if (starts_ci(grand, "attempt") && parent.n > 0 && parent.n <= 4 && fr_sv_take_u64(&digits, &v) && digits.n == 0) {
        ret->hint.local_rank = (int32_t)v;
    }
}

static fr_sv without_packing(fr_sv base)
{
    static const char *const endings[] = {".gz", ".zst", ".zstd", ".xz", ".bz2", ".lz4", NULL};
    for (unsigned i = 0; endings[i] != NULL; i++) {
        if (ends_ci(base, endings[i])) {
            base.n -= strlen(endings[i]);
        }
    }
    return base;
}

/* Takes the last component off a path. */
static fr_sv pop(fr_sv *path)
{
    size_t n = path->n, e;
    while (n > 0 && (path->p[n - 1] == '/' || path->p[n - 1] == '!')) {
        n--;
    }
    e = n;
    while (n > 0 && path->p[n - 1] != '/' && path->p[n - 1] != '!') {
        n--;
    }
    path->n = n;
    return (fr_sv){path->p + n, e - n};
}

/* A folder names its writer only when it does nothing else: "rank-3", "global_rank_3", "attempt_1", but not "rank3_experiment". */
static bool is_plain_folder(fr_sv folder)
{
    static const char *const firsts[] = {"rank", "global", "globalrank", "local", "localrank", "task", "attempt", "gpu", NULL};
    struct tokens t;
    tokenise(folder, &t);
    return t.n >= 2 && t.n <= 4 && one_of(t.v[0].text, firsts) && t.v[t.n - 1].is_num;
}

void fr_path_hint(fr_sv path, struct fr_member *ret)
{
    fr_sv rest = path, base, parent, grand;
    ret->hint = FR_WHO_NONE;
    ret->attempt = -1;
    base = without_packing(pop(&rest));
    ret->kind = kind_of(base);
    slurm(base, ret);
    words(base, ret);
    host(base, ret);
    parent = pop(&rest);
    grand = pop(&rest);
    elastic(parent, grand, ret);
    fr_sv up = path;
    (void)pop(&up);
    for (unsigned depth = 0; up.n > 0 && depth < 6; depth++) { /* rank-3/, attempt_1/, node07/ */
        fr_sv folder = pop(&up);
        if (is_plain_folder(folder)) {
            words(folder, ret);
        }
        if (depth < 2) {
            host(folder, ret);
        }
    }
    if (ret->kind == FR_SOURCE_UNKNOWN && (ret->hint.rank >= 0 || ret->hint.local_rank >= 0 || ret->hint.task >= 0)) {
        ret->kind = FR_SOURCE_RANK;
    }
}
