/* SPDX-License-Identifier: Apache-2.0 */
/* gloo: the CPU backend, its store and barriers: connections closed by a peer address, waits that
 * ended, barrier complaints that name ranks, and the wrapper that compares collectives
 * (TORCH_DISTRIBUTED_DEBUG=DETAIL). */
#include "format/dialect.h"

static bool peer_fact(struct fr_draft *d, fr_sv text)
{
    static const struct {
        const char *text, *reason;
    } kinds[] = {{"Connection closed by peer ", "closed"},
                 {"Read error ", "reset"},
                 {"Write error ", "reset"},
                 {"Connection reset by peer [", "reset"},
                 {"writev ", "reset"},
                 {"readv ", "reset"}};
    fr_sv at, peer;
    bool is_gloo = fr_sv_has(text, FR_SV("gloo/"));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((i > 0 && !is_gloo) || !fr_lex_after(text, fr_sv_z(kinds[i].text), &at)) {
            continue;
        }
        if (!fr_lex_token(&at, &peer) ||
            (peer.n > 0 && peer.p[0] != '[' && !fr_is_digit(peer.p[0]))) {
            continue;
        }
        d->fact = FR_FACT_PEER_LOST;
        fr_draft_text(d, FR_KEY_PEER, fr_address_only(peer));
        fr_draft_text(d, FR_KEY_ADDR,
                      fr_sv_ends(peer, FR_SV(":")) ? fr_sv_head(peer, peer.n - 1) : peer);
        fr_draft_text(d, FR_KEY_REASON, fr_sv_z(kinds[i].reason));
        return true;
    }
    return false;
}

/* "Timed out waiting 4000ms for recv operation to complete", "wait timeout after 3000ms, keys:
 * /default_pg/0//cpu//0/1" */
static bool timeout_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, word, keys;
    int64_t ms = 0;
    fr_sv printed;
    d->fact = FR_FACT_TIMEOUT;
    if (fr_lex_num_after(text, FR_SV("Timed out waiting "), &ms, &printed) &&
        fr_lex_find(text, "ms for ", &at) && fr_lex_token(&at, &word)) {
        fr_draft_num(d, FR_KEY_TIMEOUT_MS, ms, printed);
        fr_draft_num(d, FR_KEY_RAN_MS, ms, printed);
        fr_draft_text(d, FR_KEY_OP, word);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("gloo"));
        return true;
    }
    if (fr_lex_num_after(text, FR_SV("wait timeout after "), &ms, &printed)) {
        fr_draft_num(d, FR_KEY_TIMEOUT_MS, ms, printed);
        fr_draft_num(d, FR_KEY_RAN_MS, ms, printed);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("store"));
        if (fr_lex_find(text, "keys: ", &keys)) {
            fr_draft_text(d, FR_KEY_PATH, keys);
        }
        return true;
    }
    if (fr_lex_find(text, "Timed out initializing process group in store based barrier on rank",
                    &at) ||
        fr_lex_find(text,
                    "Timed out initializing process group in store based barrier on rank: ", &at)) {
        int64_t world = 0, arrived = 0;
        fr_sv number;
        if (fr_lex_num_after(text, FR_SV("world_size="), &world, &number)) {
            fr_draft_num(d, FR_KEY_WORLD, world, number);
        }
        if (fr_lex_num_after(text, FR_SV("worker_count="), &arrived, &number)) {
            fr_draft_num(d, FR_KEY_COUNT, arrived, number);
        }
        fr_draft_text(d, FR_KEY_REASON, FR_SV("store-barrier"));
        return true;
    }
    return false;
}

/* "Timed out after 601 seconds waiting for clients. 15/16 clients joined." */
static bool clients_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int64_t seconds = 0, joined = 0, all = 0;
    fr_sv printed;
    if (!fr_sv_has(text, FR_SV("clients joined")) ||
        !fr_lex_find(text, "waiting for clients. ", &at) || !fr_lex_int(&at, &joined) ||
        !fr_lex_char(&at, '/') || !fr_lex_int(&at, &all)) {
        return false;
    }
    d->fact = FR_FACT_TIMEOUT;
    if (fr_lex_num_after(text, FR_SV("Timed out after "), &seconds, &printed) &&
        seconds < 10000000) {
        fr_draft_num(d, FR_KEY_RAN_MS, seconds * 1000, printed);
    }
    fr_draft_num(d, FR_KEY_COUNT, joined, FR_SV_NONE);
    fr_draft_num(d, FR_KEY_WORLD, all, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("store-clients"));
    return true;
}

/* "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms", "Ranks 1, 3 failed to pass", "...
 * received errors while waiting" */
static bool barrier_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    size_t mark = fr_sv_find(text, FR_SV(" failed to pass monitoredBarrier"));
    if (mark != FR_NPOS) {
        fr_sv head = fr_sv_head(text, mark);
        (void)fr_lex_find(head, "]: ", &head);
        if (!fr_lex_find(head, "Ranks ", &at) && !fr_lex_find(head, "Rank ", &at)) {
            return false;
        }
        d->fact = FR_FACT_MISSING;
        fr_draft_list(d, FR_KEY_MISSING, at);
        (void)fr_draft_num_after(d, FR_KEY_TIMEOUT_MS, text, FR_SV("monitoredBarrier in "));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("monitored-barrier"));
        return true;
    }
    if (fr_sv_has(text, FR_SV("successfully reached monitoredBarrier, but received errors"))) {
        d->fact = FR_FACT_PEER_LOST;
        (void)fr_draft_num_after(d, FR_KEY_PEER_RANK, text, FR_SV("from rank "));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("monitored-barrier"));
        return true;
    }
    return false;
}

/* "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE,
 * TensorShape=[2], ...)" at `at`. */
static bool one_side(struct fr_draft *d, fr_sv at, enum fr_key rank_key, fr_sv *ret_rest)
{
    fr_sv rest, op, shape;
    int32_t rank = -1;
    if (!fr_lex_find(at, "Rank ", &at) || !fr_lex_index(&at, &rank) ||
        !fr_lex_find(at, "CollectiveFingerPrint(", &rest)) {
        return false;
    }
    fr_draft_num(d, rank_key, rank, FR_SV_NONE);
    (void)fr_draft_num_after(d, FR_KEY_SEQ, fr_sv_head(rest, 40), FR_SV("SequenceNumber="));
    if (fr_lex_find(fr_sv_head(rest, 120), "OpType=", &at) && fr_lex_name(&at, &op)) {
        fr_draft_text(d, FR_KEY_OP, op);
    }
    if (fr_lex_find(fr_sv_head(rest, 400), "TensorShape=", &at) && fr_lex_until(&at, ']', &shape)) {
        fr_draft_text(d, FR_KEY_SIZE, fr_sv_range(shape.p, shape.p + shape.n + 1));
    }
    *ret_rest = rest;
    return true;
}

static bool mismatch_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, rest;
    if (!fr_lex_find(text, "Detected mismatch between collectives on ranks. ", &at)) {
        return false;
    }
    d->fact = FR_FACT_MISMATCH;
    if (!one_side(d, at, FR_KEY_RANK, &rest)) {
        return false;
    }
    size_t but = fr_sv_find(rest, FR_SV("but Rank "));
    if (but != FR_NPOS) {
        (void)one_side(d, fr_sv_skip(rest, but), FR_KEY_PEER_RANK, &rest);
    }
    if (fr_lex_find(text, "differ in the following aspects:", &at)) {
        fr_draft_text(d, FR_KEY_REASON, fr_sv_trim(at));
    }
    return true;
}

/* DDP's constructor: "but Rank 2 has 51 params, while rank 0 has inconsistent 53 params". (0 is what a gather leaves that failed.) */
static bool params_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int64_t count = 0;
    fr_sv printed;
    if (!fr_lex_find(text, "DDP expects same model across all ranks, ", &at) ||
        !fr_lex_num_after(at, FR_SV(" has inconsistent "), &count, &printed) || count == 0) {
        return false;
    }
    d->fact = FR_FACT_MISMATCH;
    fr_draft_text(d, FR_KEY_REASON, FR_SV("params"));
    return fr_draft_num_after(d, FR_KEY_RANK, at, FR_SV("but Rank ")) &&
           fr_draft_num_after(d, FR_KEY_PEER_RANK, at, FR_SV("while rank "));
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    static bool (*const readers[])(struct fr_draft *, fr_sv) = {
        mismatch_fact, params_fact, barrier_fact, peer_fact, timeout_fact, clients_fact};
    (void)ctx;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
        if (d != NULL && readers[i](d, rec->text)) {
            return 1;
        }
    }
    return 0;
}

static const char *const literals[] = {"Connection closed by peer",
                                       "Read error [",
                                       "Write error [",
                                       "Connection reset by peer [",
                                       "writev [",
                                       "readv [",
                                       "Timed out waiting ",
                                       "wait timeout after ",
                                       "in store based barrier on rank",
                                       "clients joined",
                                       "monitoredBarrier",
                                       "Detected mismatch between collectives",
                                       " has inconsistent ",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"RuntimeError: DDP expects same model across all ranks, but Rank 2 has 148 params, while rank 0 has inconsistent 150 params.",
     "fact=mismatch rank=2 peer_rank=0 reason=params"},
    {"RuntimeError: DDP expects same model across all ranks, but Rank 2 has 148 params, while rank 0 has inconsistent 0 params.",
     ""},
    {"[rank0]: RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer "
     "[127.0.0.1]:17559",
     "rank=0 fact=peer_lost peer=127.0.0.1 addr=[127.0.0.1]:17559 reason=closed"},
    {"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:538] Read error "
     "[10.0.0.7]:2951: Connection reset by peer",
     "fact=peer_lost peer=10.0.0.7 reason=reset"},
    {"RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 8000ms for recv "
     "operation to complete",
     "fact=timeout ran_ms=8000 timeout_ms=8000 op=recv reason=gloo"},
    {"torch.distributed.DistStoreError: wait timeout after 3000ms, keys: /default_pg/0//cpu//0/1",
     "fact=timeout ran_ms=3000 reason=store path=/default_pg/0//cpu//0/1"},
    {"RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for "
     "key: store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)",
     "fact=timeout world=8 count=7 reason=store-barrier"},
    {"Timed out after 601 seconds waiting for clients. 15/16 clients joined.",
     "fact=timeout ran_ms=601000 count=15 world=16 reason=store-clients"},
    {"[rank0]:[E1130 15:01:03.381240412 ProcessGroupGloo.cpp:68] [Rank 0]: Rank 1 failed to pass "
     "monitoredBarrier in 2000 ms",
     "rank=0 fact=missing missing=1 timeout_ms=2000"},
    {"RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms",
     "fact=missing missing=\"1, 3\""},
    {"[rank1]: RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors "
     "while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
     "rank=1 fact=peer_lost peer_rank=0 reason=monitored-barrier"},
    {"RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE, TensorShape=[2], "
     "TensorDtypes=Float), "
     "but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=4, OpType=BROADCAST, "
     "TensorShape=[3]).Collectives differ in the following aspects: \t Op type: ALLREDUCEvs "
     "BROADCAST",
     "fact=mismatch rank=0 peer_rank=1 op=ALLREDUCE size=[2] seq=4"},
    {"we call monitoredBarrier here", ""},
    {NULL, NULL}};

const struct fr_format fr_format_gloo = {
    .name = "gloo",
    .summary = "Gloo, TCPStore waits, monitored barrier, collective mismatch",
    .literals = literals,
    .facts = facts,
    .samples = samples};
