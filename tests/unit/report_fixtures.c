/* SPDX-License-Identifier: Apache-2.0 */
#include "report_fixtures.h"

#include "failure/library.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define T0 1763000000LL * FR_NS_PER_S /* 2025-11-13T02:13:20 */

const char fixture_hostile[] = "\033[31m\033]0;owned\007<script>alert(1)</script> \"'&amp; ]]> ::error::x %0A\r\n"
                               "**bold** `tick` | pipe [x](javascript:y) <!-- \xff\xfe \xc2\x9b 31m \xe2\x80\xae rtl \x01\x7f ^[[2J";

static const char *const none[] = {NULL};
static const char *const expect[] = {"step 4100", "max memory allocated", NULL};
static const char *const absent[] = {"CUDA out of memory", NULL};
static const char *const confirm[] = {"nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
                                      "Compare the reserved and the allocated figure of the error.", NULL};
static const char *const prevent[] = {"Alarm at 95 percent of device memory.", "Test the longest sequence first.", NULL};
static const char *const refs[] = {"https://pytorch.org/docs/stable/notes/cuda.html", NULL};
static const struct fr_failure page = {
    .id = "cuda-oom", .title = "CUDA out of memory", .category = "memory", .severity = "high", .layer = "framework",
    .owner = "ml-engineer", .action = FR_ACTION_FIX_FIRST, .scope = FR_SCOPE_RANK, .weight = 50, .explains = none,
    .requires = none, .excludes = none, .related = none, .stacks = none, .tags = none, .confirm = confirm,
    .prevent = prevent, .refs = refs,
    .fix_primary = "Lower the micro-batch or the sequence length, or enable activation checkpointing.",
    .fix_fallback = "Shard optimizer state over more ranks (FSDP, ZeRO-2).",
    .fix_emergency = "Restart from the last checkpoint with half the micro-batch and twice the accumulation steps.",
    .verify_command = "faultrank diagnose runs/next/", .verify_expect = expect, .verify_absent = absent,
    .body = "## Quick answer\n\nThe GPU had no room for a tensor. It is software: the machine is fine. Make the step "
            "smaller before starting again.\n\n## What this failure is\n\nAllocation in the caching allocator failed.\n",
    .path = "failures/memory/cuda-oom.md",
};
static const struct fr_failure bare = {
    .id = "unknown", .title = "Unknown failure", .category = "framework", .severity = "medium", .layer = "framework",
    .owner = "ml-engineer", .explains = none, .requires = none, .excludes = none, .related = none, .stacks = none,
    .tags = none, .confirm = none, .prevent = none, .refs = none, .verify_expect = none, .verify_absent = none,
    .body = "", .path = "",
};

#define text(r, ...) fr_arena_printf(&(r)->arena, __VA_ARGS__)

static struct fr_when at(int64_t seconds)
{
    return (struct fr_when){T0 + seconds * FR_NS_PER_S, 1000000, FR_TIME_BASIS_UTC};
}

static struct fr_quote quote(struct fr_report *r, int rank, int line, int64_t when, uint8_t role, const char *s)
{
    return (struct fr_quote){.source = text(r, "runs/42/rank%d.log", rank), .line = (uint64_t)line, .offset = 1000,
                             .rank = rank, .when = at(when), .role = role, .signal = FR_SV("cuda-oom/tried-to-allocate"),
                             .text = fr_sv_z(s)};
}

static void push_rank(struct fr_incident *in, int rank)
{
    *FR_PUSH(&in->initiator.ranks) = rank;
}

static struct fr_incident *incident(struct fr_report *r, const struct fr_failure *f, uint8_t scope)
{
    struct fr_incident *in = FR_PUSH(&r->incidents);
    *in = (struct fr_incident){
        .attempt = -1, .cls = fr_sv_z(f->id), .title = fr_sv_z(f->title), .category = fr_sv_z(f->category),
        .severity = fr_sv_z(f->severity), .layer = fr_sv_z(f->layer), .owner = fr_sv_z(f->owner), .action = f->action,
        .fingerprint = FR_SV("0123456789abcdef"), .band = FR_BAND_LIKELY, .confidence = NAN,
        .initiator = {.scope = scope, .gpu = -1, .local_rank = -1, .when = FR_WHEN_NONE},
        .failure = f, .resume_safe = -1, .first_bad_step = -1, .last_good_step = -1, .recurrences = 1};
    return in;
}

static void base(struct fr_report *r, int ranks, int nodes)
{
    *r = (struct fr_report){.verdict = FR_VERDICT_FAILURE, .arena = FR_ARENA_INIT(0)};
    r->input.sources = (uint64_t)ranks;
    r->input.bytes = (uint64_t)ranks * 1234567;
    r->input.lines = (uint64_t)ranks * 9876;
    r->input.ranks_seen = ranks;
    r->input.world_size = ranks;
    r->input.nodes = nodes;
}

static void oom(struct fr_report *r, int ranks, int first)
{
    base(r, ranks, (ranks + 7) / 8);
    struct fr_incident *in = incident(r, &page, FR_SCOPE_RANK);
    push_rank(in, first);
    in->initiator.node = FR_SV("gpu-07");
    in->initiator.gpu = in->initiator.local_rank = first % 8;
    in->initiator.when = at(100);
    in->band = FR_BAND_CERTAIN;
    in->confidence = 0.97;
    in->summary = text(r, "Rank %d ran out of GPU memory; the others waited for it and timed out.", first);
    in->why_first = text(r, "Rank %d failed 600 s before any other rank complained, and every other complaint is a time-out "
                            "of a collective that it never joined.", first);
    *FR_PUSH(&in->evidence) = quote(r, first, 4812, 100, FR_ROLE_CAUSE,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.10 GiB "
        "of which 1.20 GiB is free. Including non-PyTorch memory, this process has 77.89 GiB memory in use.");
    *FR_PUSH(&in->evidence) = quote(r, first, 4770, 99, FR_ROLE_CAUSE, "  File \"train.py\", line 212, in forward");
    for (int i = 0; i < ranks; i++) {
        struct fr_lane *l = FR_PUSH(&r->lanes);
        *l = (struct fr_lane){.rank = i, .label = text(r, "rank %d", i), .role = i == first ? FR_LANE_INITIATOR : FR_LANE_COLLATERAL,
                              .from_ns = at(0).ns, .to_ns = at(i == first ? 100 : 700).ns, .mark_ns = at(i == first ? 100 : 700).ns};
        if (i == first) {
            continue;
        }
        struct fr_collateral *c = FR_PUSH(&in->collateral);
        c->rank = i;
        c->has_evidence = i % 16 != 5;
        if (c->has_evidence) {
            c->cls = FR_SV("nccl-watchdog-timeout");
            c->evidence = quote(r, i, 9120, 700, FR_ROLE_SYMPTOM,
                "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8812, OpType=ALLREDUCE, NumelIn=1) ran for 600029 milliseconds");
        }
    }
    *FR_PUSH(&in->not_the_cause) = (struct fr_innocent){.text = FR_SV("Watchdog caught collective operation timeout"),
        .why = FR_SV("it began 600 s before it was printed, when it waited for the first rank"), .at = quote(r, 0, 9120, 700, FR_ROLE_SYMPTOM, "x")};
    struct fr_hypothesis *h = FR_PUSH(&in->hypotheses);
    h->cls = FR_SV("cuda-oom");
    h->score = 8.5;
    *FR_PUSH(&h->for_) = FR_SV("earliest cause on any rank");
    *FR_PUSH(&h->for_) = FR_SV("every other rank reports a time-out of a collective that this rank never joined");
    h = FR_PUSH(&in->hypotheses);
    h->cls = FR_SV("nccl-watchdog-timeout");
    h->score = 1.25;
    *FR_PUSH(&h->against) = FR_SV("a time-out is a consequence");
    in->resume_safe = 1;
    in->resume_checkpoint = FR_SV("ckpt/step-4000");
    in->resume_why = FR_SV("it was saved by all ranks before the failure");
    in->first_bad_step = 4101;
    in->last_good_step = 4100;
    *FR_PUSH(&r->checked) = FR_SV("exceptions and exit codes of every rank");
    *FR_PUSH(&r->metrics) = (struct fr_metric_summary){FR_SV("loss"), 0, 4100, 1, 4100, 2.3456};
}

static void one_rank(struct fr_report *r) { oom(r, 64, 11); }
static void huge(struct fr_report *r) { oom(r, 4096, 1234); }

static void single(struct fr_report *r)
{
    oom(r, 1, 0);
    r->input.world_size = -1;
    r->input.nodes = 0;
    r->incidents.v[0].initiator.node = FR_SV_NONE;
}

static void silent(struct fr_report *r)
{
    oom(r, 16, 3);
    struct fr_incident *in = &r->incidents.v[0];
    in->initiator.silent = true;
    in->cls = FR_SV("rank-stalled");
    in->title = FR_SV("A rank stopped without a word");
    in->band = FR_BAND_LIKELY;
    in->confidence = NAN;
    in->evidence.v[0].signal = FR_SV("silence");
    in->evidence.v[0].text = FR_SV("iteration 4100/100000 | loss 2.31");
    *FR_PUSH(&in->collect_next) = FR_SV("py-spy dump --pid of rank 3 while the job hangs");
}

static void all_ranks(struct fr_report *r)
{
    oom(r, 8, 0);
    r->incidents.v[0].initiator.scope = FR_SCOPE_ALL_RANKS;
    r->incidents.v[0].initiator.ranks.n = 0;
    r->incidents.v[0].collateral.n = 0;
}

static void node(struct fr_report *r)
{
    oom(r, 16, 8);
    r->incidents.v[0].initiator.scope = FR_SCOPE_NODE;
    r->incidents.v[0].initiator.ranks.n = 0;
    r->incidents.v[0].action = FR_ACTION_DRAIN_NODE;
    r->incidents.v[0].initiator.when.basis = FR_TIME_BASIS_NOYEAR;
}

static void unknown(struct fr_report *r)
{
    base(r, 4, 1);
    struct fr_incident *in = incident(r, &bare, FR_SCOPE_UNKNOWN);
    in->band = FR_BAND_POSSIBLE;
    *FR_PUSH(&r->input.skipped) = (struct fr_skipped){FR_SV("core.1234"), FR_SV("binary file")};
}

static void healthy(struct fr_report *r)
{
    base(r, 8, 1);
    r->verdict = FR_VERDICT_HEALTHY;
    *FR_PUSH(&r->checked) = FR_SV("213 failure classes in 8 logs");
    *FR_PUSH(&r->checked) = FR_SV("every rank reached step 1000 and exited with 0");
    *FR_PUSH(&r->metrics) = (struct fr_metric_summary){FR_SV("loss"), -1, 1000, -1, 1000, NAN};
}

static void inconclusive(struct fr_report *r)
{
    base(r, 8, 2);
    r->verdict = FR_VERDICT_INCONCLUSIVE;
    struct fr_incident *in = incident(r, &bare, FR_SCOPE_UNKNOWN);
    in->band = FR_BAND_POSSIBLE;
    *FR_PUSH(&in->evidence) = quote(r, 0, 10, 5, FR_ROLE_SYMPTOM, "ncclRemoteError: A call failed possibly due to a network error");
    *FR_PUSH(&in->collect_next) = FR_SV("the logs of ranks 4-7: only ranks 0-3 were given");
    *FR_PUSH(&in->collect_next) = FR_SV("dmesg of both nodes");
}

static void nothing(struct fr_report *r)
{
    base(r, 0, 0);
    r->verdict = FR_VERDICT_INCONCLUSIVE;
    r->input.world_size = -1;
}

static void two(struct fr_report *r)
{
    oom(r, 8, 3);
    struct fr_incident *in = incident(r, &page, FR_SCOPE_LAUNCHER);
    in->attempt = 1;
    in->recurrences = 2;
    in->action = FR_ACTION_RESTART;
    in->initiator.when = (struct fr_when){3723 * FR_NS_PER_S, FR_NS_PER_S, FR_TIME_BASIS_CLOCK};
    *FR_PUSH(&in->evidence) = quote(r, 2, 77, 900, FR_ROLE_CAUSE, "DUE TO TIME LIMIT");
    r->incidents.v[0].attempt = 0;
}

static void hostile(struct fr_report *r)
{
    fr_sv h = {fixture_hostile, strlen(fixture_hostile)};
    oom(r, 4, 2);
    struct fr_incident *in = &r->incidents.v[0];
    in->title = in->summary = in->why_first = in->initiator.node = in->resume_why = in->resume_checkpoint = h;
    for (uint32_t i = 0; i < in->evidence.n; i++) {
        in->evidence.v[i].source = in->evidence.v[i].text = h;
    }
    for (uint32_t i = 0; i < in->collateral.n; i++) {
        in->collateral.v[i].cls = in->collateral.v[i].evidence.text = in->collateral.v[i].evidence.source = h;
    }
    in->not_the_cause.v[0].text = in->not_the_cause.v[0].why = in->not_the_cause.v[0].at.source = h;
    *FR_PUSH(&in->collect_next) = h;
    *FR_PUSH(&r->input.skipped) = (struct fr_skipped){h, h};
    *FR_PUSH(&r->checked) = h;
    r->lanes.v[0].label = h;
    r->metrics.v[0].name = h;
}

const struct fixture fixtures[] = {
    {"one-rank", one_rank}, {"single", single},       {"silent", silent},             {"all-ranks", all_ranks},
    {"node", node},         {"unknown", unknown},     {"healthy", healthy},           {"inconclusive", inconclusive},
    {"nothing", nothing},   {"two-incidents", two},   {"hostile", hostile},           {"huge", huge},
};
const unsigned fixtures_count = sizeof fixtures / sizeof *fixtures;

void fixture_make(const char *name, struct fr_report *r)
{
    for (unsigned i = 0; i < fixtures_count; i++) {
        if (strcmp(fixtures[i].name, name) == 0) {
            fixtures[i].make(r);
            return;
        }
    }
    fprintf(stderr, "no fixture '%s'\n", name);
    abort();
}
