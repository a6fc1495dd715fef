/* SPDX-License-Identifier: Apache-2.0 */
/* host_label: "node07: text" of pdsh, clush and DeepSpeed's pdsh runner. Any word may stand before
 * a colon, so only names that look like a machine are taken: a known stem and a number, and nothing
 * else peeled before. Also "rank0[77][Main]: ". */
#include "format/dialect.h"

/* "10.31.220.18": four numbers. */
static bool is_address(fr_sv name)
{
    uint64_t part;
    for (int i = 0; i < 4; i++) {
        if ((i > 0 && !fr_lex_char(&name, '.')) || !fr_lex_digits(&name, 1, 3, &part) || part > 255) {
            return false;
        }
    }
    return name.n == 0;
}

static bool looks_like_host(fr_sv name)
{
    static const char *const stems[] = {"node",    "host",    "worker-", "gpu-",    "nid",
                                        "compute", "dgx",     "h100-",   "a100-",   "ip-10-",
                                        "ip-172-", "ip-192-", "slurm",   "gpunode", "cn-",
                                        "algo-",   "hgx",     "gb200-",  "b200-"};
    if (name.n < 3 || name.n > 64 || !fr_is_digit(name.p[name.n - 1])) {
        return false;
    }
    if (is_address(name)) {
        return true;
    }
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
        if (fr_sv_starts(name, fr_sv_z(stems[i]))) {
            return true;
        }
    }
    size_t digits = 0; /* gpu07, cn042: two digits at least, so that "gpu0: " stays text */
    while (digits < name.n && fr_is_digit(name.p[name.n - 1 - digits])) {
        digits++;
    }
    return digits >= 2 && (fr_sv_starts(name, FR_SV("gpu")) || fr_sv_starts(name, FR_SV("cn")));
}

/* composer: "rank0[4242][MainThread]: INFO: composer.trainer: text" */
static bool peel_composer(struct fr_record *rec)
{
    fr_sv at = rec->text, thread;
    int32_t rank = -1;
    uint64_t pid = 0;
    if (!fr_lex_lit(&at, "rank") || !fr_lex_index(&at, &rank) || !fr_lex_char(&at, '[') ||
        !fr_lex_digits(&at, 1, 10, &pid) || !fr_lex_lit(&at, "][") ||
        !fr_lex_until(&at, ']', &thread) || !fr_lex_char(&at, ':')) {
        return false;
    }
    rec->who.rank = rank;
    rec->who.pid = (int64_t)pid;
    fr_rec_move(rec, at);
    return true;
}

/* docker compose: "fit-worker-2  | text": the service's container; tables with such cells do not
 * end their name in a number. */
static bool peel_compose(struct fr_record *rec)
{
    fr_sv at = rec->text, name;
    if (rec->text.p != rec->line.p || !fr_lex_name(&at, &name) || name.n < 3 ||
        fr_lex_spaces(&at) == 0 || !fr_lex_lit(&at, "| ")) {
        return false;
    }
    size_t digits = 0;
    while (digits < name.n && fr_is_digit(name.p[name.n - 1 - digits])) {
        digits++;
    }
    if (digits == 0 || digits == name.n ||
        (name.p[name.n - 1 - digits] != '-' && name.p[name.n - 1 - digits] != '_')) {
        return false;
    }
    rec->who.node = name;
    rec->text = at;
    return true;
}

/* "node07:3: text": its process number 3, from 0. The same shape ends "file.c:12: ", so the name must be a host's. */
static bool peel_process(struct fr_record *rec)
{
    fr_sv at = rec->text, name;
    int32_t local = -1;
    if (rec->text.p != rec->line.p || !fr_lex_name(&at, &name) || !looks_like_host(name) || !fr_lex_char(&at, ':') ||
        !fr_lex_index(&at, &local) || local > 255 || !fr_lex_lit(&at, ": ")) {
        return false;
    }
    rec->who.node = name;
    rec->who.local_rank = local;
    rec->text = at;
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text, name;
    if (at.p[0] == 'r' && peel_composer(rec)) {
        return true;
    }
    if (peel_compose(rec) || peel_process(rec)) {
        return true;
    }
    if (rec->who.node.n > 0 || rec->who.rank >= 0 || rec->level != FR_LEVEL_NONE ||
        !fr_lex_name(&at, &name) || !fr_lex_lit(&at, ": ") || !looks_like_host(name)) {
        return false;
    }
    rec->who.node = fr_sv_starts(name, FR_SV("slurmstepd-")) ? fr_sv_skip(name, sizeof "slurmstepd-" - 1) : name;
    rec->text = at;
    return true;
}

static const struct fr_format_sample samples[] = {
    {"node07: Traceback (most recent call last):",
     "node=node07 text=\"Traceback (most recent call last):\""},
    {"worker-1:   File \"a.py\", line 2, in f",
     "node=worker-1 text=\"  File \\\"a.py\\\", line 2, in f\""},
    {"fit-worker-2  | [rank3]: KeyError: 'x'", "node=fit-worker-2 rank=3"},
    {"cn042:3: Traceback (most recent call last):", "node=cn042 local_rank=3"},
    {"gpu-n01:0:   File \"a.py\", line 2, in f", "node=gpu-n01 local_rank=0 text=\"  File \\\"a.py\\\", line 2, in f\""},
    {"slurmstepd-gpu04-11: error: Detected 1 oom-kill event(s) in StepId=81.0.", "node=gpu04-11"},
    {"socket.cpp:12: text", "node=- local_rank=-"},
    {"10.31.220.18: bash: line 0: cd: /data/fit: No such file or directory", "node=10.31.220.18"},
    {"10.31.220.256: text", "node=-"},
    {"iteration   | 5", "node=-"},
    {"gpu0: NVIDIA H100", "node=-"},
    {"layer3: weight", "node=-"},
    {"2024-01-02 03:04:05,678: rank0[4242][MainThread]: INFO: composer.trainer: text",
     "rank=0 pid=4242 level=info"},
    {NULL, NULL}};

const struct fr_format fr_format_host_label = {.name = "host_label",
                                               .summary = "pdsh and clush host labels, composer",
                                               .peel = peel,
                                               .samples = samples};
