/* SPDX-License-Identifier: Apache-2.0 */
/* c10d: the C++ log prefix of torch ("[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] ") and
 * what the NCCL watchdog says in all its generations: time-outs, counters, dump signals, remote
 * errors. Everything is written for the waiting side. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, 1), file;
    struct fr_when when = FR_WHEN_NONE;
    uint64_t line = 0;
    uint8_t level = fr_level_letter(fr_lex_peek(at, 0));
    if (level == FR_LEVEL_NONE) {
        return false;
    }
    at = fr_sv_skip(at, 1);
    if (fr_is_digit(fr_lex_peek(at, 0)) && !fr_stamp_glog(&at, ctx->year, &when)) {
        return false;
    }
    if (!fr_lex_char(&at, ' ') || !fr_lex_name(&at, &file) || fr_sv_chr(file, '.') == FR_NPOS ||
        !fr_lex_char(&at, ':') || !fr_lex_digits(&at, 1, 6, &line) || !fr_lex_char(&at, ']')) {
        return false;
    }
    if (when.basis != FR_TIME_BASIS_NONE) {
        rec->when = when;
    }
    rec->level = level;
    fr_rec_move(rec, at);
    return true;
}

/* "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001
 * milliseconds" */
static void work_facts(struct fr_draft *d, fr_sv text)
{
    fr_sv at, op;
    (void)fr_draft_num_after(d, FR_KEY_SEQ, text, FR_SV("SeqNum="));
    if (fr_lex_find(text, "OpType=", &at) && fr_lex_name(&at, &op)) {
        fr_draft_text(d, FR_KEY_OP, op);
    }
    if (fr_lex_find(text, "NumelIn=", &at)) {
        fr_sv digits = at;
        uint64_t numel = 0;
        if (fr_lex_digits(&digits, 1, 18, &numel)) {
            fr_draft_num(d, FR_KEY_NUMEL, (int64_t)numel, fr_sv_range(at.p, digits.p));
        } else if (fr_sv_starts(at, FR_SV("18446744073709551615"))) { /* size_t -1: coalesced */
            fr_draft_num(d, FR_KEY_NUMEL, -1, fr_sv_head(at, 20));
        }
    }
    (void)fr_draft_num_after(d, FR_KEY_TIMEOUT_MS, text, FR_SV("Timeout(ms)="));
    (void)fr_draft_num_after(d, FR_KEY_RAN_MS, text, FR_SV("ran for "));
}

static bool timeout_fact(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at = rec->text;
    if (fr_sv_has(at, FR_SV("ran for ")) && fr_sv_has(at, FR_SV("before timing out"))) {
        d->fact = FR_FACT_TIMEOUT;
        work_facts(d, at);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("nccl"));
    } else if (fr_lex_find(at, "watchdog got stuck for ", &at)) {
        int64_t seconds = 0;
        fr_sv number = at;
        d->fact = FR_FACT_TIMEOUT;
        if (fr_lex_int(&number, &seconds) && seconds < 1000000) {
            fr_draft_num(d, FR_KEY_RAN_MS, seconds * 1000, fr_sv_range(at.p, number.p));
        }
        fr_draft_text(d, FR_KEY_REASON, FR_SV("watchdog-stuck"));
    } else if (fr_sv_has(rec->text, FR_SV("Heartbeat monitor timed out!"))) {
        d->fact = FR_FACT_TIMEOUT;
        fr_draft_text(d, FR_KEY_REASON, FR_SV("watchdog-stuck"));
    } else {
        return false;
    }
    fr_draft_pg(d, rec);
    return true;
}

/* "last enqueued NCCL work: 15735, last completed NCCL work: 15733" and the 2.6 wording "last
 * enqueued work: E". */
static bool counters_fact(struct fr_draft *d, const struct fr_record *rec)
{
    static const char *const enqueued[] = {"ast enqueued NCCL work: ", "ast enqueued work: "};
    static const char *const completed[] = {"ast completed NCCL work: ", "ast completed work: "};
    static const char *const sequence[] = {
        "at work sequence id: ", "Timeout at NCCL work: ", "watchdog at work: "};
    bool found = false;
    for (size_t i = 0; i < 2 && !found; i++) {
        found = fr_draft_num_after(d, FR_KEY_ENQUEUED, rec->text, fr_sv_z(enqueued[i]));
    }
    if (!found) {
        return false;
    }
    d->fact = FR_FACT_COUNTERS;
    for (size_t i = 0; i < 2; i++) {
        if (fr_draft_num_after(d, FR_KEY_COMPLETED, rec->text, fr_sv_z(completed[i]))) {
            break;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        if (fr_draft_num_after(d, FR_KEY_SEQ, rec->text, fr_sv_z(sequence[i]))) {
            break;
        }
    }
    fr_draft_pg(d, rec);
    return true;
}

static bool dump_fact(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at;
    int32_t rank = -1;
    d->fact = FR_FACT_DUMP_SIGNAL;
    if (fr_lex_find(rec->text, "Received a dump signal", &at)) {
        fr_sv from = fr_sv_skip(at, at.n);
        bool named = fr_lex_find(at, " from ", &from);
        fr_lex_spaces(&from);
        if (named && fr_lex_lit(&from, "rank ") && fr_lex_index(&from, &rank)) {
            fr_draft_num(d, FR_KEY_PEER_RANK, rank, FR_SV_NONE);
            fr_draft_text(d, FR_KEY_REASON, FR_SV("received"));
        } else {
            fr_draft_text(d, FR_KEY_REASON,
                          fr_sv_has(at, FR_SV("this local rank")) ? FR_SV("own")
                                                                  : FR_SV("received"));
        }
    } else if (fr_sv_has(rec->text,
                         FR_SV("Observed flight recorder dump signal from another rank"))) {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("observed"));
    } else if (fr_sv_has(rec->text, FR_SV("First PG on this rank to signal dumping"))) {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("first"));
    } else {
        return false;
    }
    fr_draft_pg(d, rec);
    return true;
}

static bool peer_fact(struct fr_draft *d, const struct fr_record *rec)
{
    d->fact = FR_FACT_PEER_LOST;
    if (fr_draft_num_after(d, FR_KEY_PEER_RANK, rec->text,
                           FR_SV("remote error detected from rank: "))) {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("remote-error"));
    } else if (fr_sv_has(rec->text, FR_SV("raised the following async exception")) ||
               fr_sv_has(rec->text, FR_SV("found async exception when checking for NCCL errors"))) {
        if (!fr_sv_has(rec->text, FR_SV("remote process exit")) &&
            !fr_sv_has(rec->text, FR_SV("ncclRemoteError")) &&
            !fr_sv_has(rec->text, FR_SV("network error"))) {
            return false;
        }
        work_facts(d, rec->text);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("nccl-remote-error"));
    } else {
        return false;
    }
    fr_draft_pg(d, rec);
    return true;
}

/* "[K] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value
 * store ..." */
static bool store_fact(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at;
    int32_t rank = -1;
    size_t mark = fr_sv_find(rec->text, FR_SV("] is setting up NCCL communicator"));
    if (mark == FR_NPOS) {
        return false;
    }
    size_t open = mark;
    while (open > 0 && rec->text.p[open] != '[') {
        open--;
    }
    d->fact = FR_FACT_TIMEOUT;
    at = fr_sv_skip(rec->text, open + 1);
    if (fr_lex_index(&at, &rank)) {
        fr_draft_num(d, FR_KEY_PG_RANK, rank, FR_SV_NONE);
    }
    (void)fr_draft_num_after(d, FR_KEY_PEER_RANK, rec->text, FR_SV("ncclUniqueId from ["));
    fr_draft_text(d, FR_KEY_REASON, FR_SV("store"));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    static bool (*const readers[])(struct fr_draft *, const struct fr_record *) = {
        timeout_fact, dump_fact, counters_fact, peer_fact, store_fact};
    (void)ctx;
    int n = 0;
    for (size_t i = 0; i < sizeof readers / sizeof *readers && n < max; i++) {
        struct fr_draft *d = fr_draft_begin(ret, n, max, FR_FACT_NONE);
        n += readers[i](d, rec);
    }
    return n;
}

static const char *const literals[] = {"before timing out",
                                       "ast enqueued NCCL work",
                                       "ast enqueued work: ",
                                       "flight recorder dump signal",
                                       "First PG on this rank",
                                       "Received a dump signal",
                                       "remote error detected from rank",
                                       "following async exception",
                                       "found async exception",
                                       "watchdog got stuck for",
                                       "Heartbeat monitor timed out",
                                       "is setting up NCCL communicator",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"[rank12]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 4] Watchdog caught "
     "collective operation timeout: "
     "WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
     "600001 milliseconds before timing out.",
     "rank=12 level=error time=2026-08-08T04:21:41 res=1000000000 fact=timeout seq=5 op=ALLREDUCE "
     "numel=1 timeout_ms=600000 ran_ms=600001 pg_rank=4"},
    {"[E ProcessGroupNCCL.cpp:737] [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(OpType=BROADCAST, "
     "TensorShape=[3], Timeout(ms)=1800000) ran for 1802212 milliseconds before timing out.",
     "level=error time=- rank=- fact=timeout op=BROADCAST ran_ms=1802212 timeout_ms=1800000 "
     "pg_rank=1"},
    {"[rank3]:[E1206 01:02:03.000000001 ProcessGroupNCCL.cpp:1664] [PG ID 2 PG GUID "
     "51(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Exception "
     "(either an error or timeout) detected by watchdog at work: 87, last enqueued NCCL work: 88, "
     "last completed NCCL work: 86.",
     "rank=3 pg_rank=1 fact=counters seq=87 enqueued=88 completed=86 pg=51 "
     "pg_desc=TENSOR_MODEL_PARALLEL_GROUP"},
    {"[rank3]:[E1206 01:02:03.000000001 ProcessGroupNCCL.cpp:664] [PG ID 0 PG GUID 0(default_pg) "
     "Rank 3]  failure detected by watchdog "
     "at work sequence id: 9 PG status: last enqueued work: 11, last completed work: -1",
     "fact=counters seq=9 enqueued=11 completed=-1 pg=0 pg_desc=default_pg"},
    {"[rank3]:[E1206 01:02:03.000000001 ProcessGroupNCCL.cpp:64] [PG 1 Rank 3] Timeout at NCCL "
     "work: 4, last enqueued NCCL work: 5, last completed NCCL work: 3.",
     "fact=counters seq=4 enqueued=5 completed=3 pg=1 pg_rank=3"},
    {"[rank0]:[E1206 01:02:03.000000001 ProcessGroupNCCL.cpp:64] [PG ID 0 PG GUID 0 Rank 0] "
     "Received a dump signal due to a collective timeout from  rank 8 "
     "and we will try our best to dump the debug info. Last enqueued NCCL work: 7, last completed "
     "NCCL work: 6.This is",
     "fact=dump_signal peer_rank=8 reason=received; fact=counters enqueued=7 completed=6"},
    {"[rank0]:[E1206 01:02:03.000000001 ProcessGroupNCCL.cpp:64] [PG ID 0 PG GUID 0 Rank 0] "
     "Observed flight recorder dump signal from another rank via TCPStore.",
     "fact=dump_signal reason=observed"},
    {"[rank1]:[E428 22:01:41.996319560 ProcessGroupNCCL.cpp:552] [Rank 1] Collective "
     "WorkNCCL(SeqNum=503, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
     "Timeout(ms)=600000) raised the following async exception: NCCL error: remote process exited "
     "or there was a network error, NCCL version 2.21.5",
     "fact=peer_lost seq=503 reason=nccl-remote-error"},
    {"[rank1]: torch.distributed.DistBackendError: [1] is setting up NCCL communicator and "
     "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') "
     "got error: Socket Timeout",
     "fact=timeout pg_rank=1 peer_rank=0 reason=store"},
    {"[Error] this is no prefix", "time=-"},
    {"retry before timing out soon", ""},
    {NULL, NULL}};

const struct fr_format fr_format_c10d = {.name = "c10d",
                                         .summary = "torch's C++ log lines and the NCCL watchdog",
                                         .peel = peel,
                                         .literals = literals,
                                         .facts = facts,
                                         .samples = samples};
