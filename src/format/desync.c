/* SPDX-License-Identifier: Apache-2.0 */
/* desync: reports that name the ranks which are behind: torch's desync report
 * (PG ranks), NCCL RAS (communicator ranks), JAX and TensorFlow coordination
 * (task numbers). */
#include "format/dialect.h"

/* "- To our best knowledge, ranks [2, 5] are the lagging ranks that caused this
 * timeout. They never joined any collectives"
 * "- [3] joined but didn't finish collective #11", "  [1, 2] finished
 * collective #11, but didn't join collective #12" */
static bool torch_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    size_t behind = fr_sv_find(text, FR_SV(" are the lagging ranks"));
    if (behind != FR_NPOS && fr_lex_find(text, "ranks [", &at)) {
        d->fact = FR_FACT_MISSING;
        fr_draft_list(d, FR_KEY_MISSING, fr_sv_head(at, fr_sv_chr(at, ']')));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("never-joined"));
        return true;
    }
    size_t open = fr_sv_chr(text, '[');
    bool stuck = fr_sv_has(text, FR_SV("joined but didn't finish collective #"));
    bool late = fr_sv_has(text, FR_SV("but didn't join collective #"));
    if ((!stuck && !late) || open == FR_NPOS) {
        return false;
    }
    at = fr_sv_skip(text, open + 1);
    d->fact = FR_FACT_MISSING;
    fr_draft_list(d, FR_KEY_MISSING, fr_sv_head(at, fr_sv_chr(at, ']')));
    (void)fr_draft_num_after(d, FR_KEY_SEQ, text,
                             late ? FR_SV("didn't join collective #")
                                  : FR_SV("didn't finish collective #"));
    fr_draft_text(d, FR_KEY_REASON, late ? FR_SV("didn't-join") : FR_SV("didn't-finish"));
    return true;
}

/* NCCL RAS: "The missing rank: 21", "Rank 12 -- GPU 4 managed by process 3237
 * on node 10.6.9.1", "30 ranks have launched up to operation 796", "Process
 * 3487984 on node 172.16.64.213 managing GPU 5" */
static bool ras_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, node;
    int64_t n = 0;
    if (fr_lex_find(text, "The missing rank: ", &at) ||
        fr_lex_find(text, "The missing ranks: ", &at)) {
        d->fact = FR_FACT_MISSING;
        fr_draft_list(d, FR_KEY_MISSING, at);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("ras"));
        return true;
    }
    if (fr_sv_has(text, FR_SV(" managed by process ")) &&
        fr_draft_num_after(d, FR_KEY_RANK, text, FR_SV("Rank "))) {
        d->fact = FR_FACT_IDENTITY;
        (void)fr_draft_num_after(d, FR_KEY_GPU, text, FR_SV("GPU "));
        (void)fr_draft_num_after(d, FR_KEY_PID, text, FR_SV(" managed by process "));
        if (fr_lex_find(text, " on node ", &at) && fr_lex_token(&at, &node)) {
            fr_draft_text(d, FR_KEY_NODE, node);
        }
        fr_draft_text(d, FR_KEY_COMM, FR_SV("ras"));
        return true;
    }
    at = fr_sv_trim(text);
    if (fr_sv_has(text, FR_SV("launched up to operation ")) && fr_lex_int(&at, &n)) {
        d->fact = FR_FACT_COUNTERS;
        fr_draft_num(d, FR_KEY_COUNT, n, FR_SV_NONE);
        (void)fr_draft_num_after(d, FR_KEY_ENQUEUED, text, FR_SV("launched up to operation "));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("ras"));
        return true;
    }
    if (fr_sv_has(text, FR_SV(" managing GPU ")) &&
        fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("Process "))) {
        d->fact = FR_FACT_MISSING;
        (void)fr_draft_num_after(d, FR_KEY_GPU, text, FR_SV(" managing GPU "));
        if (fr_lex_find(text, " on node ", &at) && fr_lex_token(&at, &node)) {
            fr_draft_text(d, FR_KEY_NODE, node);
        }
        fr_draft_text(d, FR_KEY_REASON, FR_SV("ras-process"));
        return true;
    }
    return false;
}

/* A line that is a task's name and nothing else: an item below "Some timed out
 * task names:" or "The following tasks are unhealthy (stopped sending
 * heartbeats):". */
static bool listed_task(struct fr_draft *d, fr_sv text)
{
    fr_sv at = fr_sv_trim(text), name;
    int32_t replica = -1, task = -1;
    if (!fr_lex_lit(&at, "/job:") || !fr_lex_name(&at, &name) || !fr_lex_lit(&at, "/replica:") ||
        !fr_lex_index(&at, &replica) || !fr_lex_lit(&at, "/task:")) {
        return false;
    }
    fr_sv number = at;
    if (!fr_lex_index(&at, &task) || at.n != 0) {
        return false;
    }
    d->fact = FR_FACT_MISSING;
    fr_draft_num(d, FR_KEY_MISSING, task, number);
    fr_draft_num(d, FR_KEY_TASK, task, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("listed"));
    return true;
}

/* "/job:jax_worker/replica:0/task:37 has been set to ERROR in coordination
 * service: UNAVAILABLE: Task ... heartbeat timeout", "Some timed out task
 * names: /job:jax_worker/replica:0/task:2", "# of tasks that reached the
 * barrier: 3/4" */
static bool coordination_fact(const struct fr_peel_ctx *ctx, struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    bool dead = fr_sv_has(text, FR_SV("has been set to ERROR in coordination service")) ||
                fr_sv_has(text, FR_SV("heartbeat timeout"));
    bool late = fr_sv_has(text, FR_SV("timed out task names"));
    at = text;
    if ((!dead && !late) || (late && !fr_lex_find(at, "timed out task names", &at)) ||
        !fr_lex_find(at, "/task:", &at)) {
        return false;
    }
    int32_t task = -1, next = -1;
    fr_sv list = at;
    if (!fr_lex_index(&at, &task)) {
        return false;
    }
    list = fr_sv_range(list.p, at.p);
    while (late && ctx->scratch != NULL && list.n < 512 && fr_lex_find(at, "/task:", &at) &&
           fr_lex_index(&at, &next)) {
        list = fr_arena_printf(ctx->scratch, "%.*s,%d", FR_SV_ARG(list), (int)next);
    }
    d->fact = FR_FACT_MISSING;
    fr_draft_num(d, FR_KEY_MISSING, task, list);
    fr_draft_num(d, FR_KEY_TASK, task, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, late ? FR_SV("coordination-barrier") : FR_SV("heartbeat"));
    return true;
}

/* "Stalled op: grad/a [missing ranks: 1, 2]" (Horovod), "missing_ranks=[1, 3]"
 * (torchelastic's store barrier), "missing ranks: [2]"; a number must follow */
static bool named_fact(struct fr_draft *d, fr_sv text)
{
    static const char *const words[] = {
        "issing ranks: ", "issing_ranks=", "issing ranks=", "issing rank(s): ", NULL};
    for (const char *const *w = words; *w != NULL; w++) {
        fr_sv at;
        if (!fr_lex_after(text, fr_sv_z(*w), &at)) {
            continue;
        }
        (void)(fr_lex_char(&at, '[') || fr_lex_char(&at, '{'));
        size_t n = 0;
        while (n < at.n && (fr_is_digit(at.p[n]) || strchr(", -", at.p[n]) != NULL)) {
            n++;
        }
        fr_sv list = fr_sv_head(at, n);
        while (list.n > 0 && !fr_is_digit(list.p[list.n - 1])) {
            list.n--;
        }
        if (list.n == 0 || !fr_is_digit(list.p[0])) {
            continue;
        }
        d->fact = FR_FACT_MISSING;
        fr_draft_list(d, FR_KEY_MISSING, list);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("named"));
        return true;
    }
    return false;
}

enum { READY_MAX = 256, READY_GAPS_MAX = 8 };

/* One "[ready ranks: 5, 3, 0, 1]"; *at moves behind it. False: there is none, or a number is too high. */
static bool take_ready(fr_sv *at, bool *came, unsigned *ret_n, int32_t *ret_top)
{
    int32_t rank = -1;
    *ret_n = 0;
    if (!fr_lex_find(*at, "[ready ranks: ", at)) {
        return false;
    }
    memset(came, 0, READY_MAX * sizeof *came);
    while (fr_lex_index(at, &rank)) {
        if (rank >= READY_MAX) {
            return false;
        }
        *ret_n += !came[rank];
        came[rank] = true;
        *ret_top = rank > *ret_top ? rank : *ret_top;
        (void)(fr_lex_lit(at, ", ") || fr_lex_char(at, ','));
    }
    return true;
}

/* "Stalled ops: grad/a [ready ranks: 5, 3, 0, 1]" of older Horovods lists who came; who did not is a
 * gap below the highest number. Ranks above it may be missing too: the size of the world is not said.
 * Where tensors wait for different ranks, most are where most ranks are: the others are missing there. */
static bool ready_fact(const struct fr_peel_ctx *ctx, struct fr_draft *d, fr_sv text)
{
    bool came[READY_MAX], most[READY_MAX] = {false};
    int32_t top = -1;
    unsigned gaps = 0, n = 0, n_most = 0;
    fr_sv list = FR_SV_NONE;
    if (ctx->scratch == NULL) {
        return false;
    }
    while (take_ready(&text, came, &n, &top)) {
        if (n > n_most) {
            memcpy(most, came, sizeof most);
            n_most = n;
        }
    }
    for (int32_t r = 0; r <= top; r++) {
        if (!most[r]) {
            gaps++;
            list = fr_arena_printf(ctx->scratch, "%.*s%s%d", FR_SV_ARG(list), list.n > 0 ? "," : "", (int)r);
        }
    }
    if (gaps == 0 || gaps > READY_GAPS_MAX || gaps >= n_most) {
        return false;
    }
    d->fact = FR_FACT_MISSING;
    fr_draft_list(d, FR_KEY_MISSING, list);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("ready-list"));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    static bool (*const readers[])(struct fr_draft *, fr_sv) = {torch_fact, ras_fact, named_fact,
                                                                listed_task};
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
        if (d != NULL && readers[i](d, rec->text)) {
            return 1;
        }
    }
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    return d != NULL && (coordination_fact(ctx, d, rec->text) || ready_fact(ctx, d, rec->text));
}

static const char *const literals[] = {"are the lagging ranks",
                                       "didn't finish collective #",
                                       "didn't join collective #",
                                       "issing rank",
                                       "issing_ranks=",
                                       " managed by process ",
                                       "launched up to operation ",
                                       " managing GPU ",
                                       "set to ERROR in coordination",
                                       "heartbeat timeout",
                                       "timed out task names",
                                       "/replica:0/task:",
                                       "[ready ranks: ",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"\t - To our best knowledge, ranks [2, 5] are the lagging ranks that "
     "caused this timeout. "
     "They never joined any collectives",
     "fact=missing missing=\"2, 5\" reason=never-joined"},
    {"\t   - [3] joined but didn't finish collective #11 (count from 1)",
     "fact=missing missing=3 seq=11 reason=didn't-finish"},
    {"\t     [1, 2] finished collective #11, but didn't join collective #12 "
     "(count from 1)",
     "fact=missing missing=\"1, 2\" seq=12 reason=didn't-join"},
    {"  The missing rank: 21", "fact=missing missing=21 reason=ras"},
    {"  Rank 12 -- GPU 4 managed by process 323782 on node 10.61.9.4",
     "fact=identity rank=12 gpu=4 pid=323782 node=10.61.9.4 comm=ras"},
    {"  30 ranks have launched up to operation 796",
     "fact=counters count=30 enqueued=796 reason=ras"},
    {"  Process 3487984 on node 172.16.64.213 managing GPU 5",
     "fact=missing pid=3487984 gpu=5 node=172.16.64.213"},
    {"2022-11-23 16:25:36.140058: E external/x/coordination_service.cc:954] "
     "/job:jax_worker/replica:0/task:37 has been set to ERROR in coordination "
     "service: "
     "UNAVAILABLE: Task",
     "level=error fact=missing missing=37 task=37 reason=heartbeat"},
    {"Barrier timed out. Id: x. # of tasks that reached the barrier: 3/4. Some "
     "timed out task "
     "names: /job:jax_worker/replica:0/task:2",
     "fact=missing missing=2 reason=coordination-barrier"},
    {"Barrier timed out. Some timed out task names: /job:w/replica:0/task:2, "
     "/job:w/replica:0/task:5",
     "fact=missing missing=\"2,5\" reason=coordination-barrier"},
    {"Stalled op: HorovodAllreduce_grad [missing ranks: 1, 3]", "fact=missing missing=\"1, 3\""},
    {"DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: "
     "k (world_size=4, "
     "missing_ranks=[2, 3], timeout=300.0)",
     "fact=missing missing=\"2, 3\" reason=named"},
    {"/job:jax_worker/replica:0/task:6", "fact=missing missing=6 task=6 reason=listed"},
    {"/job:jax_worker/replica:0/task:6 has connected to coordination service.", ""},
    {"Stalled ops: HorovodBroadcast_w_0 [ready ranks: 3, 0, 2, 5]",
     "fact=missing missing=\"1,4\" reason=ready-list"},
    {"HorovodBroadcast_w_0 [ready ranks: 1, 0, 2], ", ""},
    {"Stalled ops: loss_0 [ready ranks: 3], grad/a [ready ranks: 2, 0, 1], grad/b [ready ranks: 2, 0, 1]",
     "fact=missing missing=3 reason=ready-list"},
    {"Stalled ops: loss_0 [ready ranks: 3]", ""},
    {"Missing ranks:", ""},
    {"the missing ranks of the army", ""},
    {NULL, NULL}};

const struct fr_format fr_format_desync = {
    .name = "desync",
    .summary = "desync report, NCCL RAS, JAX coordination: who is behind",
    .literals = literals,
    .facts = facts,
    .samples = samples};
