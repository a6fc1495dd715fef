/* SPDX-License-Identifier: Apache-2.0 */
/* nccl: NCCL and RCCL debug lines, "[TS] HOST:PID:TID [DEV] NCCL INFO text" and "... file.cc:12
 * [(FUNC)] NCCL WARN text". DEV is the device of the calling thread, never a rank. Init lines join
 * a pid to a rank of one communicator, a bus id and a device; whether that communicator is the
 * world is for the reader of many lines to judge. */
#include "format/dialect.h"

/* "HOST:PID:TID" at the cursor. */
static bool take_origin(fr_sv *s, fr_sv *ret_host, uint64_t *ret_pid)
{
    fr_sv at = *s;
    uint64_t tid = 0;
    if (!fr_lex_name(&at, ret_host) || !fr_lex_char(&at, ':') ||
        !fr_lex_digits(&at, 1, 10, ret_pid) || !fr_lex_char(&at, ':') ||
        !fr_lex_digits(&at, 1, 10, &tid) || !fr_lex_char(&at, ' ')) {
        return false;
    }
    *s = at;
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, host, before;
    struct fr_when when = FR_WHEN_NONE;
    uint64_t pid = 0;
    int32_t device = -1;
    if (fr_lex_char(&at, '[')) {
        if (!fr_stamp_any(&at, ctx->year, &when) || !fr_lex_lit(&at, "] ")) {
            return false;
        }
    }
    if (!take_origin(&at, &host, &pid)) {
        return false;
    }
    if (fr_lex_char(&at, '[')) {
        fr_sv inside;
        if (!fr_lex_until(&at, ']', &inside) || !fr_lex_index(&inside, &device) ||
            !fr_lex_char(&at, ' ')) {
            return false;
        }
    }
    size_t mark = fr_sv_find(fr_sv_head(at, 200), FR_SV("CCL "));
    if (mark == FR_NPOS || mark == 0) {
        return false;
    }
    before = fr_sv_head(at, mark - 1);
    at = fr_sv_skip(at, mark + 4);
    uint8_t level = fr_level_take(&at);
    if (level == FR_LEVEL_NONE && !fr_lex_lit(&at, "CALL")) {
        return false;
    }
    (void)before;
    rec->who.node = host;
    rec->who.pid = (int64_t)pid;
    rec->who.gpu = device < 1024 ? device : -1; /* notebooks print garbage here */
    rec->level = level;
    if (when.basis != FR_TIME_BASIS_NONE) {
        rec->when = when;
    }
    fr_rec_move(rec, at);
    return true;
}

static void who_caps(struct fr_draft *d, const struct fr_record *rec)
{
    if (rec->who.pid >= 0) {
        fr_draft_num(d, FR_KEY_PID, rec->who.pid, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_NODE, rec->who.node);
}

/* "comm 0x557f rank 36 nranks 64 cudaDev 4 nvmlDev 4 busId 9b000 commId 0x5ae7 - Init COMPLETE",
 * "Init timings - ncclCommInitRank: rank 1 nranks 16 total 1.57 (kernels 0.25, ..." */
static bool init_fact(const struct fr_peel_ctx *ctx, const struct fr_record *rec,
                      struct fr_draft *d)
{
    fr_sv text = rec->text, at, word;
    if ((!fr_sv_has(text, FR_SV(" - Init ")) && !fr_sv_starts(text, FR_SV("Init timings - "))) ||
        !fr_sv_has(text, FR_SV(" nranks "))) {
        return false;
    }
    d->fact = FR_FACT_IDENTITY;
    if (!fr_draft_num_after(d, FR_KEY_RANK, text, FR_SV(" rank ")) ||
        !fr_draft_num_after(d, FR_KEY_WORLD, text, FR_SV(" nranks "))) {
        return false;
    }
    if (fr_lex_find(text, " commId ", &at) && fr_lex_token(&at, &word)) {
        fr_draft_text(d, FR_KEY_COMM, word);
    } else if (fr_lex_find(text, "comm ", &at) && fr_lex_token(&at, &word)) {
        fr_draft_text(d, FR_KEY_COMM, word);
    }
    (void)fr_draft_num_after(d, FR_KEY_GPU, text, FR_SV(" cudaDev "));
    if (fr_lex_find(text, " busId ", &at) && fr_lex_token(&at, &word)) {
        fr_draft_text(d, FR_KEY_PCI, fr_pci_normal(ctx->scratch, word));
    }
    who_caps(d, rec);
    return true;
}

/* "Bootstrap : Using eth0:10.2.0.5<0>", "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB
 * eth0:10.9.0.4<0>", "NET/Socket : Using [0]eth0:10.0.0.1<0>" */
static bool address_fact(const struct fr_record *rec, struct fr_draft *d)
{
    fr_sv at = rec->text, address;
    if (!fr_lex_find(at, "OOB ", &at)) {
        if (!fr_lex_find(rec->text, "Bootstrap", &at) &&
            !fr_lex_find(rec->text, "NET/Socket : Using ", &at)) {
            return false;
        }
        (void)fr_lex_find(at, "Using ", &at);
    }
    if (!fr_lex_until(&at, ':', &address) || address.n > 24 || !fr_lex_until(&at, '<', &address) ||
        address.n < 3 || address.n > 64) {
        return false;
    }
    d->fact = FR_FACT_ADDRESS;
    fr_draft_text(d, FR_KEY_ADDR, address);
    who_caps(d, rec);
    return true;
}

static void peer_cap(struct fr_draft *d, fr_sv at)
{
    fr_sv peer;
    fr_lex_spaces(&at);
    if (fr_lex_token(&at, &peer)) {
        fr_draft_text(d, FR_KEY_PEER, fr_address_only(peer));
    }
}

static bool peer_fact(const struct fr_record *rec, struct fr_draft *d)
{
    static const struct {
        const char *text, *reason;
    } kinds[] = {{"Got completion from peer ", "ib-completion"},
                 {"Connection closed by remote peer ", "closed"},
                 {"Call to recv from ", "socket"},
                 {"Call to send to ", "socket"},
                 {"Connect to ", "connect"},
                 {"connection to remote peer ", "socket"}};
    fr_sv at;
    d->fact = FR_FACT_PEER_LOST;
    if (fr_draft_num_after(d, FR_KEY_PEER_RANK, rec->text,
                           FR_SV("Connection closed by localRank ")) ||
        fr_draft_num_after(d, FR_KEY_PEER_RANK, rec->text,
                           FR_SV("Could not receive type from localRank "))) {
        d->caps[0].key = FR_KEY_LOCAL_RANK; /* of the peer: NCCL's local rank on this node */
        fr_draft_text(d, FR_KEY_REASON, FR_SV("local-rank-closed"));
        who_caps(d, rec);
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!fr_lex_after(rec->text, fr_sv_z(kinds[i].text), &at)) {
            continue;
        }
        bool failed = i < 2 || fr_sv_has(at, FR_SV("failed")) || fr_sv_has(at, FR_SV("refused")) ||
                      fr_sv_has(at, FR_SV("timed out"));
        if (!failed) {
            return false;
        }
        peer_cap(d, at);
        fr_draft_text(d, FR_KEY_REASON, fr_sv_z(kinds[i].reason));
        if (i == 0 && !fr_draft_num_after(d, FR_KEY_OTHER, at, FR_SV("status=")) &&
            fr_sv_has(at, FR_SV("status="))) {
            (void)fr_draft_num_after(d, FR_KEY_OTHER, at, FR_SV("("));
        } else if (i == 0) {
            (void)fr_draft_num_after(d, FR_KEY_OTHER, at, FR_SV("with error "));
        }
        who_caps(d, rec);
        return true;
    }
    return false;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    if (d == NULL) {
        return 0;
    }
    if (init_fact(ctx, rec, d)) {
        return 1;
    }
    d->n_caps = 0;
    if (address_fact(rec, d)) {
        return 1;
    }
    d->n_caps = 0;
    return peer_fact(rec, d);
}

static const char *const literals[] = {" - Init COMPLETE",
                                       " - Init START",
                                       "Init timings - ",
                                       "Bootstrap : Using",
                                       "Bootstrap: Using",
                                       "; OOB ",
                                       "NET/Socket : Using",
                                       "Got completion from peer",
                                       "closed by remote peer",
                                       "Call to recv from ",
                                       "Call to send to ",
                                       " failed : Connection refused",
                                       " failed : No route to host",
                                       " failed : Connection timed out",
                                       "closed by localRank ",
                                       "from localRank ",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"gpu-3:811:902 [5] NCCL INFO comm 0x557f00 rank 36 nranks 64 cudaDev 4 nvmlDev 4 busId 9b000 "
     "commId 0x5ae77eb5ea4ec1ee - Init COMPLETE",
     "node=gpu-3 pid=811 gpu=5 rank=- level=info fact=identity rank=36 world=64 gpu=4 "
     "pci=0000:9b:00 comm=0x5ae77eb5ea4ec1ee pid=811 node=gpu-3"},
    {"gpu-3:811:902 [0] NCCL INFO ncclCommInitRank comm 0xab rank 1 nranks 2 cudaDev 1 busId "
     "1018f000 - Init START",
     "fact=identity rank=1 world=2 comm=0xab pci=0101:8f:00"},
    {"gpu-3:811:811 [1] NCCL INFO Init timings - ncclCommInitRank: rank 9 nranks 16 total 1.57 "
     "(kernels 0.25, alloc 0.98, bootstrap 0.04, rest 0.00)",
     "node=gpu-3 pid=811 fact=identity rank=9 world=16 pid=811"},
    {"[2026-05-05 06:16:47] gpu-3:811:902 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to "
     "extend /dev/shm/nccl-WU to 96 bytes",
     "time=2026-05-05T06:16:47 level=warn text=\"Error: failed to extend /dev/shm/nccl-WU to 96 "
     "bytes\""},
    {"[2026-05-05 06:16:47] gpu-3:811:902 [0] net_ib.cc:8 (ncclIbTest) NCCL WARN NET/IB: Got "
     "completion from peer 10.4.9.8<485> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0",
     "fact=peer_lost peer=10.4.9.8 reason=ib-completion other=12 pid=811"},
    {"gpu-3:811:902 [2] ib_plugin.c:978 NCCL WARN NET/IB : Got completion from peer "
     "10.44.98.98<48598> with error 12, opcode 0, len 0, vendor err 129",
     "fact=peer_lost peer=10.44.98.98 other=12"},
    {"gpu-3:811:902 [0] NCCL INFO Bootstrap : Using eth0:10.2.0.5<0>",
     "fact=address addr=10.2.0.5 node=gpu-3"},
    {"gpu-3:811:902 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.9.0.4<0>",
     "fact=address addr=10.9.0.4 node=gpu-3"},
    {"gpu-3:811:902 [32626] NCCL INFO [Service thread] Connection closed by localRank 2",
     "gpu=- fact=peer_lost local_rank=2 reason=local-rank-closed"},
    {"socketProgress: Connection closed by remote peer gpu-7.cluster<32926>",
     "fact=peer_lost peer=gpu-7.cluster reason=closed"},
    {"gpu-3:811:902 [1] include/socket.h:403 NCCL WARN Connect to 10.1.7.2<56821> failed : "
     "Connection refused",
     "fact=peer_lost peer=10.1.7.2 reason=connect"},
    {"gpu-3:811:902 NCCL CALL ncclGroupStart()", "node=gpu-3 pid=811"},
    {"gpu-3:811:902 text", "pid=-"},
    {NULL, NULL}};

const struct fr_format fr_format_nccl = {.name = "nccl",
                                         .summary = "NCCL and RCCL debug lines",
                                         .peel = peel,
                                         .literals = literals,
                                         .facts = facts,
                                         .samples = samples};
