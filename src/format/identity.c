/* SPDX-License-Identifier: Apache-2.0 */
/* identity: the sentences in which frameworks say which rank a process is, beyond prefixes and
 * NCCL's own lines. A rank inside a communicator comes with comm and world, so that the reader of
 * many lines can tell whether it is global. */
#include "format/dialect.h"

#define NUM(key, lit) fr_draft_num_after(d, (key), text, FR_SV(lit))

static bool store_barrier(struct fr_draft *d, fr_sv text)
{
    if (NUM(FR_KEY_RANK, "to store for rank: ")) {
        return fr_sv_has(text, FR_SV("store_based_barrier_key:"));
    }
    if (!fr_sv_has(text, FR_SV("Completed store-based barrier for ")) ||
        !NUM(FR_KEY_RANK, "Rank ")) {
        return false;
    }
    if (fr_sv_has(text,
                  FR_SV("key:store_based_barrier_key:1 "))) { /* key 1 is the default group's */
        (void)NUM(FR_KEY_WORLD, " with ");
    }
    return true;
}

/* "Rank 1 is connected to 3. Expected number of connected peers is: 3", "[Gloo] Rank 0 is connected
 * to 7 peer ranks. Expected ... is : 7" */
static bool gloo_mesh(struct fr_draft *d, fr_sv text)
{
    int64_t expected = 0;
    fr_sv printed;
    if (!fr_sv_has(text, FR_SV(" is connected to ")) || !NUM(FR_KEY_RANK, "Rank ") ||
        (!fr_lex_num_after(text, FR_SV("peers is: "), &expected, &printed) &&
         !fr_lex_num_after(text, FR_SV("peer ranks is : "), &expected, &printed))) {
        return false;
    }
    fr_draft_num(d, FR_KEY_WORLD, expected + 1, FR_SV_NONE);
    (void)NUM(FR_KEY_COUNT, " is connected to ");
    fr_draft_text(d, FR_KEY_COMM, FR_SV("gloo"));
    return true;
}

/* "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8" */
static bool lightning(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int32_t member = -1, world = -1;
    if (!NUM(FR_KEY_RANK, "GLOBAL_RANK: ")) {
        return false;
    }
    if (fr_lex_find(text, "MEMBER: ", &at) && fr_lex_index(&at, &member) && fr_lex_char(&at, '/') &&
        fr_lex_index(&at, &world)) {
        fr_draft_num(d, FR_KEY_WORLD, world, FR_SV_NONE);
    }
    return true;
}

/* "| distributed init (rank 3): env://", "(rank 3, world 8)", "distributed init (rank 3, word_size
 * 8)" */
static bool init_line(struct fr_draft *d, fr_sv text)
{
    return fr_sv_has(text, FR_SV("distributed init (rank ")) && NUM(FR_KEY_RANK, "(rank ") &&
           (NUM(FR_KEY_WORLD, "world ") || NUM(FR_KEY_WORLD, "word_size ") ||
            NUM(FR_KEY_WORLD, "world_size ") || true);
}

/* vLLM: "world_size=4 rank=2 local_rank=2 distributed_init_method=..", "rank 1 in world size 2 is
 * assigned as DP rank 0" */
static bool vllm(struct fr_draft *d, fr_sv text)
{
    if (fr_sv_has(text, FR_SV("distributed_init_method=")) && NUM(FR_KEY_RANK, " rank=")) {
        (void)NUM(FR_KEY_WORLD, "world_size=");
        (void)NUM(FR_KEY_LOCAL_RANK, "local_rank=");
        return true;
    }
    return fr_sv_has(text, FR_SV(" in world size ")) && NUM(FR_KEY_RANK, "rank ") &&
           NUM(FR_KEY_WORLD, " in world size ");
}

/* accelerate's table, transformers' "Process rank: 3, device: cuda:3" (its local rank), DeepSpeed's
 * MPI discovery, Megatron */
static bool tables(struct fr_draft *d, fr_sv text)
{
    if (fr_sv_has(text, FR_SV("Discovered MPI settings of world_rank="))) {
        return NUM(FR_KEY_RANK, "world_rank=") && NUM(FR_KEY_LOCAL_RANK, "local_rank=") &&
               NUM(FR_KEY_WORLD, "world_size=");
    }
    if (fr_sv_starts(text, FR_SV("Process rank: "))) {
        return NUM(FR_KEY_LOCAL_RANK, "Process rank: ") &&
               (NUM(FR_KEY_GPU, "device: cuda:") || true);
    }
    if (fr_sv_starts(text, FR_SV("Process index: "))) {
        return NUM(FR_KEY_RANK, "Process index: ");
    }
    if (fr_sv_starts(text, FR_SV("Local process index: "))) {
        return NUM(FR_KEY_LOCAL_RANK, "Local process index: ");
    }
    return fr_sv_starts(text, FR_SV("Num processes: ")) && NUM(FR_KEY_WORLD, "Num processes: ");
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    static bool (*const readers[])(struct fr_draft *, fr_sv) = {
        store_barrier, gloo_mesh, lightning, init_line, vllm, tables};
    (void)ctx;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_IDENTITY);
        if (d != NULL && readers[i](d, rec->text)) {
            return 1;
        }
    }
    return 0;
}

static const char *const literals[] = {"store_based_barrier_key:",
                                       " is connected to ",
                                       "GLOBAL_RANK: ",
                                       "distributed init (rank ",
                                       "distributed_init_method=",
                                       " in world size ",
                                       "Discovered MPI settings",
                                       "Process rank: ",
                                       "Process index: ",
                                       "process index: ",
                                       "Num processes: ",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:1 to store for "
     "rank: 3",
     "fact=identity rank=3"},
    {"INFO:torch.distributed.distributed_c10d:Rank 5: Completed store-based barrier for "
     "key:store_based_barrier_key:1 with 8 nodes.",
     "fact=identity rank=5 world=8"},
    {"INFO:torch.distributed.distributed_c10d:Rank 5: Completed store-based barrier for "
     "key:store_based_barrier_key:4 with 2 nodes.",
     "fact=identity rank=5 world=-"},
    {"[Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7",
     "fact=identity rank=0 world=8 comm=gloo count=7"},
    {"[./gloo/transport/tcp/context.cc:243] INFO Rank 2 is connected to 3. Expected number of "
     "connected peers is: 3",
     "fact=identity rank=2 world=4 comm=gloo"},
    {"Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8", "fact=identity rank=3 world=8"},
    {"| distributed init (rank 3): env://", "fact=identity rank=3"},
    {"05/16/2023 11:54:12 - WARNING - __main__ - Process rank: 3, device: cuda:3, n_gpu: 1",
     "fact=identity local_rank=3 gpu=3"},
    {"Process index: 3", "fact=identity rank=3"},
    {"Local process index: 1", "fact=identity local_rank=1"},
    {"INFO 01-02 03:04:05 [parallel_state.py:1165] world_size=4 rank=2 local_rank=1 "
     "distributed_init_method=tcp://x backend=nccl",
     "fact=identity rank=2 world=4 local_rank=1"},
    {"a process with pid 44 started", ""},
    {NULL, NULL}};

const struct fr_format fr_format_identity = {.name = "identity",
                                             .summary =
                                                 "sentences in which a process says its rank",
                                             .literals = literals,
                                             .facts = facts,
                                             .samples = samples};
