/* SPDX-License-Identifier: Apache-2.0 */
/* actor: a process named in parentheses: Ray "(Name[rank=8] pid=77, ip=10.1.2.3) ", "(raylet) ",
 * vLLM "(VllmWorker rank=2 pid=9) ",
 * "(EngineCore pid=5) ", "(APIServer pid=5) ". */
#include "format/dialect.h"

/* vLLM's "Worker_TP3", "Worker_TP2_EP2", "VllmWorker-2": its number is the rank as long as nothing
 * else is parallel; with a pipeline or data part in the name it is one of a group. */
static void take_worker(struct fr_record *rec, fr_sv name)
{
    int32_t index = -1, expert = -1;
    fr_sv at = name;
    if (fr_lex_lit(&at, "VllmWorker-") && fr_lex_index(&at, &index) && at.n == 0) {
        rec->who.rank = index;
        return;
    }
    at = name;
    if (!fr_lex_lit(&at, "Worker_TP") || !fr_lex_index(&at, &index)) {
        return;
    }
    (void)(fr_lex_lit(&at, "_EP") && fr_lex_index(&at, &expert));
    if (at.n == 0) {
        rec->who.rank = index;
    }
}

/* One "key=value" or a bare word. */
static void take_field(struct fr_record *rec, fr_sv field, bool first)
{
    fr_sv key, value, name;
    int32_t n = 0;
    uint64_t pid = 0;
    if (!fr_sv_cut(field, '=', &key, &value)) {
        if (first) {
            rec->who.role = field;
        }
        return;
    }
    if (fr_sv_eq(key, FR_SV("pid")) && fr_lex_digits(&value, 1, 10, &pid)) {
        rec->who.pid = (int64_t)pid;
    } else if (fr_sv_eq(key, FR_SV("ip"))) {
        rec->who.node = value;
    } else if (fr_sv_eq(key, FR_SV("rank")) && fr_lex_index(&value, &n)) {
        rec->who.rank = n;
    } else if (first && fr_sv_cut(key, '[', &name, &key) && fr_sv_eq(key, FR_SV("rank")) &&
               fr_lex_index(&value, &n)) {
        rec->who.role = name;
        rec->who.rank = n;
    }
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = fr_sv_skip(rec->text, 1), inside, field;
    if (!fr_lex_until(&at, ')', &inside) || inside.n == 0 || inside.n > 160 ||
        (at.n > 0 && at.p[0] != ' ')) {
        return false;
    }
    bool has_pid = fr_sv_starts(inside, FR_SV("pid=")) || fr_sv_has(inside, FR_SV(" pid="));
    bool is_ray = fr_sv_starts(inside, FR_SV("raylet")) ||
                  fr_sv_starts(inside, FR_SV("autoscaler")) ||
                  fr_sv_eq(inside, FR_SV("gcs_server"));
    if (!has_pid && !is_ray) {
        return false;
    }
    if (fr_sv_chr(inside, '(') != FR_NPOS) {
        return false;
    }
    for (bool first = true; inside.n > 0; first = false) {
        fr_lex_spaces(&inside);
        if (!fr_lex_token(&inside, &field)) {
            break;
        }
        if (first) {
            take_worker(rec, field);
        }
        take_field(rec, fr_sv_ends(field, FR_SV(",")) ? fr_sv_head(field, field.n - 1) : field,
                   first);
    }
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"(Trainer[rank=8] pid=3098870, ip=10.65.5.217) [E ProcessGroupNCCL.cpp:458] [Rank 3] hm",
     "rank=8 pid=3098870 node=10.65.5.217 role=Trainer pg_rank=3 level=error text=hm"},
    {"(VllmWorker rank=2 pid=155) ERROR 08-14 09:51:09 [multiproc.py:1] Traceback (most recent "
     "call last):",
     "rank=2 pid=155 role=VllmWorker level=error text=\"Traceback (most recent call last):\""},
    {"(EngineCore pid=548)   File \"core.py\", line 2, in f",
     "pid=548 role=EngineCore rank=- text=\"  File \\\"core.py\\\", line 2, in f\""},
    {"(Worker_TP3 pid=59146) INFO 08-14 09:51:07 [a.py:170] x", "pid=59146 role=Worker_TP3 rank=3"},
    {"(Worker_TP2_EP2 pid=59146) x", "role=Worker_TP2_EP2 rank=2"},
    {"(Worker_PP0_TP1 pid=59146) x", "role=Worker_PP0_TP1 rank=- pg_rank=-"},
    {"(Worker_DP1_TP1 pid=59146) x", "role=Worker_DP1_TP1 rank=-"},
    {"(VllmWorker-2 pid=155) x", "role=VllmWorker-2 pid=155 rank=2"},
    {"(raylet, ip=10.0.0.3) Spilled 12 MiB", "node=10.0.0.3 role=raylet text=\"Spilled 12 MiB\""},
    {"(pid=771) hello", "pid=771 text=hello"},
    {"(func pid=1) again [repeated 7x across cluster]", "pid=1 repeated=1 text=again"},
    {"(see pid=1)x", "pid=-"},
    {"(most recent call last):", "pid=-"},
    {NULL, NULL}};

const struct fr_format fr_format_actor = {.name = "actor",
                                          .summary = "Ray and vLLM: (Name pid=1, ip=..)",
                                          .peel = peel,
                                          .samples = samples};
