/* SPDX-License-Identifier: Apache-2.0 */
/* world: how many ranks a run has, in the words of programs: "world_size: 8",
 * "rank 3 of 8", "WORLD_SIZE=8", tables of arguments. A number that is too
 * large makes ranks that never were look silent, so only a program's own
 * statement counts: no arguments of a call, no complaint about somebody else's
 * size, no source line. */
#include "format/dialect.h"

#define NUM(key, lit) fr_draft_num_after(d, (key), text, FR_SV(lit))

enum { WORLD_MAX = 1000000, MARGIN = 4 };

/* A word may begin at i: the byte before belongs to no name, option or quote.
 */
static bool begins_word(fr_sv text, size_t i)
{
    return i == 0 || strchr(" \t,;|[({", text.p[i - 1]) != NULL;
}

/* "f(rank=0, world_size=8": an argument of a call or a printed object. */
static bool inside_call(fr_sv text, size_t i)
{
    int closed = 0;
    while (i-- > 0) {
        if (text.p[i] == ')') {
            closed++;
        } else if (text.p[i] == '(' && closed-- == 0) {
            return i > 0 && fr_is_word(text.p[i - 1]);
        }
    }
    return false;
}

/* "=8", ": 8", "  : 8", " ........ 8"; with `bare` also " 8". */
static bool take_value(fr_sv at, bool bare, int32_t *ret)
{
    size_t spaces = fr_lex_spaces(&at), dots = 0;
    while (fr_lex_char(&at, '.')) {
        dots++;
    }
    bool separated = dots > 2 || (dots == 0 && (fr_lex_char(&at, '=') || fr_lex_char(&at, ':')));
    if (!separated && !(bare && spaces > 0 && dots == 0)) {
        return false;
    }
    fr_lex_spaces(&at);
    if (!fr_lex_index(&at, ret)) {
        return false;
    }
    char next = fr_lex_peek(at, 0), then = fr_lex_peek(at, 1);
    return !fr_is_word(next) && strchr("%/-", next == '\0' ? ' ' : next) == NULL &&
           !(next == '.' && then != '\0' && then != ' ');
}

static bool value_of(fr_sv text, fr_sv key, bool bare, int32_t *ret)
{
    for (size_t from = 0; from < text.n;) {
        size_t i = fr_sv_find(fr_sv_skip(text, from), key);
        if (i == FR_NPOS) {
            return false;
        }
        i += from;
        from = i + key.n;
        if (begins_word(text, i) && take_value(fr_sv_skip(text, from), bare, ret) &&
            !inside_call(text, i)) {
            return true;
        }
    }
    return false;
}

static bool any_value(fr_sv text, const char *const *keys, bool bare, int32_t *ret)
{
    for (; *keys != NULL; keys++) {
        if (value_of(text, fr_sv_z(*keys), bare, ret)) {
            return true;
        }
    }
    return false;
}

static bool has_any(fr_sv text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_has(text, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

/* "world_size: 8", "rank: 3, world_size: 8", "using world size: 64,
 * data-parallel size: 8", "  world_size ........ 8". DeepSpeed's own table
 * prints the data-parallel size under that name.
 */
static bool named(struct fr_draft *d, const struct fr_record *rec)
{
    static const char *const joined[] = {"world_size", "WORLD_SIZE",    "worldsize",
                                         "World_size", "process_count", "dist_world_size", NULL};
    static const char *const spaced[] = {"world size", "World size", "World Size", "WORLD SIZE",
                                         NULL};
    static const char *const ranks[] = {"rank", "RANK", "Rank", "global_rank", "GLOBAL_RANK", NULL};
    static const char *const locals[] = {"local_rank", "LOCAL_RANK", "local rank", "Local rank",
                                         NULL};
    static const char *const foreign[] = {
        "mismatch", "xpected", "must ", "divisible",  "saved ",    "heckpoint", "previous",
        "should ",  "upport",  "Error", "rendezvous", "Namespace", NULL};
    fr_sv text = rec->text, at = text;
    int32_t world = -1, rank = -1, local = -1;
    if (fr_lex_spaces(&at) >= MARGIN || rec->level >= FR_LEVEL_ERROR ||
        fr_sv_has(rec->line, FR_SV("[config.py:")) || has_any(text, foreign) ||
        !(any_value(text, joined, false, &world) || any_value(text, spaced, true, &world)) ||
        world < 1 || world > WORLD_MAX) {
        return false;
    }
    if (any_value(text, ranks, true, &rank) && rank >= world) {
        return false;
    }
    if (rank >= 0) {
        fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
    }
    fr_draft_num(d, FR_KEY_WORLD, world, FR_SV_NONE);
    if (any_value(text, locals, true, &local) && local < world) {
        fr_draft_num(d, FR_KEY_LOCAL_RANK, local, FR_SV_NONE);
    }
    return true;
}

/* The word before i speaks of another rank: "waiting for rank 3/8". */
static bool of_another(fr_sv text, size_t i)
{
    static const char *const words[] = {"for ",   "from ", "to ",      "by ",      "with ", "on ",
                                        "and ",   "peer ", "missing ", "waiting ", "than ", "of ",
                                        "local ", "node ", "group ",   NULL};
    fr_sv head = fr_sv_head(text, i);
    for (const char *const *w = words; *w != NULL; w++) {
        if (fr_sv_ends(head, fr_sv_z(*w))) {
            return true;
        }
    }
    return false;
}

/* "pid 4242", "pid=4242", "host=gn11": the process that says its rank in the same line. */
static void take_place(struct fr_draft *d, fr_sv text)
{
    static const char *const hosts[] = {"host=", "hostname=", "node=", NULL};
    int32_t pid = -1;
    fr_sv node, at;
    if (value_of(text, FR_SV("pid"), true, &pid)) {
        fr_draft_num(d, FR_KEY_PID, pid, FR_SV_NONE);
    }
    for (const char *const *h = hosts; *h != NULL; h++) {
        size_t found = fr_sv_find(text, fr_sv_z(*h));
        at = found == FR_NPOS ? FR_SV_NONE : fr_sv_skip(text, found + strlen(*h));
        if (found != FR_NPOS && begins_word(text, found) && fr_lex_name(&at, &node) && !fr_is_digit(node.p[0])) {
            fr_draft_text(d, FR_KEY_NODE, node);
            return;
        }
    }
}

/* "world 3, pid 3684", "world=2 pid=3798" behind a header that has said the rank. */
static bool spoken(struct fr_draft *d, const struct fr_record *rec)
{
    int32_t world = -1, pid = -1;
    if (rec->who.rank < 0 || rec->level >= FR_LEVEL_ERROR || !value_of(rec->text, FR_SV("world"), true, &world) ||
        !value_of(rec->text, FR_SV("pid"), true, &pid) || rec->who.rank >= world) {
        return false;
    }
    fr_draft_num(d, FR_KEY_RANK, rec->who.rank, FR_SV_NONE);
    fr_draft_num(d, FR_KEY_WORLD, world, FR_SV_NONE);
    take_place(d, rec->text);
    return true;
}

/* "starting attempt, rank 0 of 4", "(rank 3/8)", "rank 3/8 pid 4242 ready on
 * node-a". A process that is alone has no rank worth telling. */
static bool of_so_many(struct fr_draft *d, const struct fr_record *rec)
{
    static const char *const keys[] = {"rank ", "Rank ", "RANK ", "rank: ", "rank=", NULL};
    fr_sv text = rec->text, node;
    if (rec->level >= FR_LEVEL_ERROR || fr_sv_starts(text, FR_SV("    "))) {
        return false;
    }
    for (const char *const *k = keys; *k != NULL; k++) {
        size_t i = fr_sv_find(text, fr_sv_z(*k));
        fr_sv at = i == FR_NPOS ? FR_SV_NONE : fr_sv_skip(text, i + strlen(*k));
        int32_t rank = -1, world = -1;
        if (i == FR_NPOS || !begins_word(text, i) || inside_call(text, i) ||
            !fr_lex_index(&at, &rank) || !(fr_lex_lit(&at, " of ") || fr_lex_char(&at, '/')) ||
            !fr_lex_index(&at, &world) || rank >= world || world < 2 || world > WORLD_MAX) {
            continue;
        }
        char next = fr_lex_peek(at, 0);
        bool ends = next == '\0' || strchr("),:;.]|", next) != NULL || (next == ' ' && fr_sv_ends(fr_sv_z(*k), FR_SV("=")));
        if (!ends && !fr_sv_starts(at, FR_SV(" on ")) && !fr_sv_starts(at, FR_SV(" - ")) &&
            !fr_sv_starts(at, FR_SV(" | ")) && !fr_sv_starts(at, FR_SV(" pid")) &&
            !fr_sv_starts(at, FR_SV(" ready")) && !fr_sv_starts(at, FR_SV(" up"))) {
            continue;
        }
        if (of_another(text, i)) {
            continue;
        }
        fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
        fr_draft_num(d, FR_KEY_WORLD, world, FR_SV_NONE);
        take_place(d, text);
        if (fr_lex_find(at, " on ", &at) && fr_lex_name(&at, &node)) {
            fr_draft_text(d, FR_KEY_NODE, node);
        }
        return true;
    }
    return false;
}

/* "rank 3 pid 8803 ready", "rank 0: pid 12010 on g1": a program's first line.
 */
static bool first_line(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at = rec->text, node;
    int32_t rank = -1;
    uint64_t pid = 0;
    if ((!fr_lex_lit(&at, "rank ") && !fr_lex_lit(&at, "Rank ") && !fr_lex_lit(&at, "rank=")) ||
        !fr_lex_index(&at, &rank)) {
        return false;
    }
    (void)(fr_lex_char(&at, ':') || fr_lex_char(&at, ','));
    if ((!fr_lex_lit(&at, " pid ") && !fr_lex_lit(&at, " pid=") && !fr_lex_lit(&at, " pid: ")) ||
        !fr_lex_digits(&at, 1, 10, &pid)) {
        return false;
    }
    fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
    fr_draft_num(d, FR_KEY_PID, (int64_t)pid, FR_SV_NONE);
    if (fr_lex_find(at, " on ", &at) && fr_lex_name(&at, &node)) {
        fr_draft_text(d, FR_KEY_NODE, node);
    }
    return true;
}

/* "JAX process: 0 / 8" */
static bool jax(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at;
    int32_t rank = -1, world = -1;
    if (!fr_lex_find(rec->text, "JAX process: ", &at) || !fr_lex_index(&at, &rank) ||
        !fr_lex_lit(&at, " / ") || !fr_lex_index(&at, &world) || rank >= world) {
        return false;
    }
    fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
    fr_draft_num(d, FR_KEY_WORLD, world, FR_SV_NONE);
    return true;
}

/* vLLM: "[shutdown] Executor: waiting for worker exit count=4"; its engine's
 * configuration, where nothing but tensors is parallel. */
static bool vllm(struct fr_draft *d, const struct fr_record *rec)
{
    static const char *const others[] = {
        "pipeline_parallel_size=", "data_parallel_size=", "'pipeline_parallel_size': ",
        "'data_parallel_size': ", NULL};
    fr_sv text = rec->text;
    if (fr_sv_has(text, FR_SV("waiting for worker exit count="))) {
        return NUM(FR_KEY_WORLD, "waiting for worker exit count=");
    }
    for (const char *const *o = others; *o != NULL; o++) {
        int64_t n = 1;
        fr_sv printed;
        if (fr_lex_num_after(text, fr_sv_z(*o), &n, &printed) && n != 1) {
            return false;
        }
    }
    return !fr_sv_starts(text, FR_SV("    ")) && rec->level < FR_LEVEL_ERROR &&
           (NUM(FR_KEY_WORLD, " tensor_parallel_size=") ||
            NUM(FR_KEY_WORLD, "'tensor_parallel_size': "));
}

/* submitit: "Starting with JobEnvironment(job_id=5, hostname=gn1,
 * local_rank=0(4), node=0(2), global_rank=0(8))"; JAX's "# of tasks that
 * reached the barrier: 7/8."; fairseq's configuration; the agent's
 * "global_world_sizes=[8, 8]" */
static bool launchers(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv text = rec->text, at, host;
    int32_t world = -1;
    if (NUM(FR_KEY_RANK, ", global_rank=")) {
        (void)NUM(FR_KEY_LOCAL_RANK, ", local_rank=");
        if (fr_lex_find(text, ", global_rank=", &at) && fr_lex_until(&at, '(', &host) &&
            fr_lex_index(&at, &world)) {
            fr_draft_num(d, FR_KEY_WORLD, world, FR_SV_NONE);
        }
        if (fr_lex_find(text, ", hostname=", &at) && fr_lex_name(&at, &host)) {
            fr_draft_text(d, FR_KEY_NODE, host);
        }
        return true;
    }
    if (fr_lex_find(text, "tasks that reached the barrier: ", &at)) {
        return fr_lex_until(&at, '/', &host) && NUM(FR_KEY_COUNT, "reached the barrier: ") &&
               fr_lex_index(&at, &world) && (fr_draft_num(d, FR_KEY_WORLD, world, host), true);
    }
    return NUM(FR_KEY_WORLD, "global_world_sizes=[") ||
           NUM(FR_KEY_WORLD, "'distributed_world_size': ") ||
           NUM(FR_KEY_WORLD, " distributed_world_size=");
}

/* The command as typed or as `sh -x` shows it: "$ torchrun --nproc_per_node 4 fit.py", "+ python -m torch.distributed.run
 * --nproc-per-node=4 fit.py". Without --nnodes there is one node. The script stands behind the launcher's options: without it the
 * line may go on with them. */
static bool command(struct fr_draft *d, const struct fr_record *rec)
{
    static const char *const prompts[] = {"$ ", "# ", "+ ", NULL};
    static const char *const launchers_[] = {"torchrun ", "python -m torch.distributed.", "python3 -m torch.distributed.", NULL};
    fr_sv at = rec->text, behind, value;
    for (const char *const *p = prompts; *p != NULL; p++) {
        fr_sv rest;
        size_t i = fr_sv_find(rec->text, fr_sv_z(*p));
        if (i != FR_NPOS && i < 120) {
            rest = fr_sv_skip(rec->text, i + 2);
            at = rest.p > at.p ? rest : at;
        }
    }
    size_t windows = fr_sv_find(rec->text, FR_SV(">python")); /* F:\\fit>python -m ... */
    if (windows != FR_NPOS && windows < 200 && fr_sv_has(fr_sv_head(rec->text, windows), FR_SV(":\\"))) {
        at = fr_sv_skip(rec->text, windows + 1);
    }
    for (fr_sv word, rest = at; fr_lex_until(&rest, ' ', &word) && fr_sv_has(word, FR_SV("=")) && fr_is_upper(word.p[0]);) {
        at = rest; /* CUDA_VISIBLE_DEVICES=6 torchrun ... */
    }
    bool launched = false;
    for (const char *const *l = launchers_; *l != NULL; l++) {
        launched |= fr_sv_starts(at, fr_sv_z(*l));
    }
    int32_t n = -1;
    fr_sv args = at;
    bool alone = fr_lex_lit(&args, "srun ")
                     ? (fr_sv_has(args, FR_SV("-n 1 ")) || fr_sv_has(args, FR_SV("--ntasks=1 "))) && fr_sv_has(args, FR_SV(" python"))
                     : fr_lex_lit(&args, "torchrun ") && fr_lex_token(&args, &value) && fr_sv_ends(value, FR_SV(".py"));
    if (alone) { /* one task; torchrun starts one process unless it is told otherwise */
        fr_draft_num(d, FR_KEY_WORLD, 1, FR_SV_NONE);
        return true;
    }
    bool nodes = fr_sv_has(at, FR_SV("nnode")) && !fr_sv_has(at, FR_SV("--nnodes 1 ")) && !fr_sv_has(at, FR_SV("--nnodes=1 "));
    if (!launched || nodes ||
        (!fr_lex_after(at, FR_SV("--nproc_per_node"), &behind) && !fr_lex_after(at, FR_SV("--nproc-per-node"), &behind))) {
        return false;
    }
    if ((!fr_lex_char(&behind, '=') && !fr_lex_char(&behind, ' ')) || (value = behind, !fr_lex_index(&behind, &n)) ||
        !fr_sv_has(behind, FR_SV(".py"))) {
        return false;
    }
    fr_draft_num(d, FR_KEY_WORLD, n, fr_sv_range(value.p, behind.p));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    static bool (*const readers[])(struct fr_draft *, const struct fr_record *) = {
        launchers, jax, vllm, command, named, spoken, first_line, of_so_many};
    (void)ctx;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_IDENTITY);
        if (d != NULL && readers[i](d, rec)) {
            int64_t world = 1;
            for (unsigned k = 0; k < d->n_caps; k++) {
                world = d->caps[k].key == FR_KEY_WORLD ? d->caps[k].num : world;
            }
            return world >= 1 && world <= WORLD_MAX;
        }
    }
    return 0;
}

static const char *const literals[] = {"world_size",
                                       "WORLD_SIZE",
                                       "worldsize",
                                       "World_size",
                                       "world size",
                                       "World size",
                                       "World Size",
                                       "WORLD SIZE",
                                       "process_count",
                                       "JAX process: ",
                                       "that reached the barrier: ",
                                       "waiting for worker exit count=",
                                       "tensor_parallel_size",
                                       ", global_rank=",
                                       ", rank ",
                                       "(rank ",
                                       "ank 0 of ",
                                       "ank 1 of ",
                                       "ank 2 of ",
                                       "ank 3 of ",
                                       "ank 4 of ",
                                       "ank 5 of ",
                                       "ank 6 of ",
                                       "ank 7 of ",
                                       "ank 0/",
                                       "ank 1/",
                                       "ank 2/",
                                       "ank 3/",
                                       "ank 4/",
                                       "ank 5/",
                                       "ank 6/",
                                       "ank 7/",
                                       "ank=0/",
                                       "ank=1/",
                                       "ank=2/",
                                       "ank=3/",
                                       "ank=4/",
                                       "ank=5/",
                                       "ank=6/",
                                       "ank=7/",
                                       " world=",
                                       " pid ",
                                       "--nproc_per_node",
                                       "--nproc-per-node",
                                       "torchrun ",
                                       "srun -",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"world_size: 4", "fact=identity world=4 rank=-"},
    {"world_size=8 backend=nccl", "fact=identity world=8"},
    {"0: [rank0] world_size=6", "task=0 rank=0 fact=identity world=6"},
    {"world_size=16, store on q1:29500", "fact=identity world=16"},
    {"resumed at step 10 with world size 6", "fact=identity world=6"},
    {"using world size: 64, data-parallel size: 8", "fact=identity world=64"},
    {"  world_size ...................................... 32", "fact=identity world=32"},
    {"rank: 3, local_rank: 1, world_size: 8", "fact=identity rank=3 local_rank=1 world=8"},
    {"RANK=9 LOCAL_RANK=1 WORLD_SIZE=16", "fact=identity rank=9 local_rank=1 world=16"},
    {"RANK: 3, WORLD_SIZE: 8", "fact=identity rank=3 world=8"},
    {"starting attempt, rank 0 of 4", "fact=identity rank=0 world=4"},
    {"INFO:train:rank 0 of 2", "fact=identity rank=0 world=2"},
    {"INFO:train:rank 0 of 1", ""},
    {"process up (rank 3/8)", "fact=identity rank=3 world=8"},
    {"2026-11-30 15:06:06,689 INFO [fit] rank 3/8 pid 4242 ready on node-a",
     "fact=identity rank=3 world=8 pid=4242 node=node-a"},
    {"[2026-12-01 08:58:25,438][rank 1][INFO] fit: host=gn11 pid=2277 rank=1/4 attempt=0 up",
     "rank=1 fact=identity world=4 pid=2277 node=gn11"},
    {"time=2026-12-01T08:33:46.974 level=info rank=0 msg=\"process group ready\" world=2 pid=3798",
     "rank=0 fact=identity world=2 pid=3798"},
    {"2026-12-01 08:33:31,573 | INFO     | rank=2 | run:main:21 - world 3, pid 3684, python 3.11.2",
     "rank=2 fact=identity world=3 pid=3684"},
    {"=> rank 2 of 3 up, pid 3588, generator 816 params", "fact=identity rank=2 world=3 pid=3588"},
    {"2026-12-01 08:33:31,573 | INFO     | rank=2 | lost pid 3684 of another world", ""},
    {"rank 3 pid 8803 ready", "fact=identity rank=3 pid=8803 world=-"},
    {"rank 2: pid 12012", "fact=identity rank=2 pid=12012"},
    {"JAX process: 0 / 8", "fact=identity rank=0 world=8"},
    {"# of tasks that reached the barrier: 7/8.", "fact=identity world=8"},
    {"(EngineCore pid=5) INFO 08-14 09:51:09 [multiproc_executor.py:429] "
     "[shutdown] Executor: "
     "waiting for worker exit count=4",
     "fact=identity world=4"},
    {"Initializing an engine with config: model='m', tensor_parallel_size=4, "
     "pipeline_parallel_size=1, x=2",
     "fact=identity world=4"},
    {"Initializing an engine with config: model='m', tensor_parallel_size=4, "
     "pipeline_parallel_size=2, x=2",
     ""},
    {"submitit INFO (2022-09-04 05:09:12,640) - Starting with "
     "JobEnvironment(job_id=7, "
     "hostname=gn121, local_rank=1(4), node=1(2), global_rank=5(8))",
     "fact=identity rank=5 local_rank=1 world=8 node=gn121"},
    {"  global_world_sizes=[8, 8, 8, 8]", "fact=identity world=8"},
    {"[2024-05-01 10:00:00,123] [INFO] [config.py:988:print]   world_size "
     "................... 8",
     ""},
    {"  group_world_size=2", ""},
    {"    init(rank=0, world_size=8)", ""},
    {"Config(rank=0, world_size=8)", ""},
    {"dp_world_size=2", ""},
    {"The checkpoint being loaded used a DP world size of 8 but the current "
     "world size is 2.",
     ""},
    {"(env) ivo@gn11:~/fit$ torchrun --nproc_per_node 4 fit.py --lr 3e-4", "fact=identity world=4"},
    {"+ python3 -m torch.distributed.run --nproc-per-node=2 --master-port 29501 fit.py", "fact=identity world=2"},
    {"ivo@gn11:~$ CUDA_VISIBLE_DEVICES=0,1 torchrun --nnodes 1 --nproc_per_node 2 fit.py", "fact=identity world=2"},
    {"(env) ivo@gn11:~$ CUDA_VISIBLE_DEVICES=6 torchrun fit.py --lr 1", "fact=identity world=1"},
    {"$ torchrun fit.py", "fact=identity world=1"},
    {"$ srun -p gpu -n 1 -w gn11 python fit.py", "fact=identity world=1"},
    {"(f:\\env) F:\\fit>python -m torch.distributed.run --nnodes 1 --nproc_per_node 1 fit.py", "fact=identity world=1"},
    {"see torchrun fit.py for help", ""},
    {"$ torchrun --nproc_per_node 4 --nnodes 2 fit.py", ""},
    {"$ torchrun --nproc_per_node 4 \\", ""},
    {"start it with torchrun --nproc_per_node 4 fit.py", ""},
    {"expected world_size=8 for this recipe", ""},
    {"world_size: 0.5", ""},
    {"reading shard, rank 3 of 8 shards", ""},
    {"waiting for rank 3 of 8", ""},
    {"a date, rank 1/2/2024", ""},
    {NULL, NULL}};

const struct fr_format fr_format_world = {.name = "world",
                                          .summary = "how many ranks there are, and which is this",
                                          .literals = literals,
                                          .facts = facts,
                                          .samples = samples};
