/* SPDX-License-Identifier: Apache-2.0 */
/* launcher: DeepSpeed's launch.py, accelerate, torch.multiprocessing.spawn and DataLoader: parents
 * that report a dead child. They react; what they name is the first child they looked at, or the
 * only one. */
#include "format/dialect.h"

/* "Killing subprocess 4242"; "['/opt/venv/bin/python', ..., '--local_rank=3', ...] exits with
 * return code = -9". The command is that of the process started last, whichever died:
 * deepspeed/launcher/launch.py prints the variable of its loop. */
static bool deepspeed_fact(struct fr_draft *d, fr_sv text)
{
    if (fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("Killing subprocess "))) {
        d->fact = FR_FACT_STOP_SENT;
        fr_draft_num(d, FR_KEY_SIGNAL, 15, FR_SV_NONE);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("deepspeed"));
        return true;
    }
    if (fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("] Process ")) &&
        fr_sv_has(text, FR_SV("exits successfully"))) {
        d->fact = FR_FACT_EXIT;
        fr_draft_num(d, FR_KEY_EXITCODE, 0, FR_SV_NONE);
        return true;
    }
    d->n_caps = 0;
    if (!fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("exits with return code = "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    if (fr_sv_has(text, FR_SV("--local_rank=0'")) || fr_sv_has(text, FR_SV("--local-rank=0'"))) {
        fr_draft_num(d, FR_KEY_LOCAL_RANK, 0, FR_SV_NONE); /* the last one, so the only one */
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("deepspeed"));
    return true;
}

/* "[launch.py:348:main] Process 4242 exits successfully." */
static bool success_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV(" exits successfully")) ||
        !fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("Process "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_num(d, FR_KEY_EXITCODE, 0, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("deepspeed"));
    return true;
}

/* "subprocess.CalledProcessError: Command '[...]' returned non-zero exit status 1."; "... died with
 * <Signals.SIGKILL: 9>." */
static bool subprocess_fact(struct fr_draft *d, fr_sv text)
{
    int64_t signal = 0;
    fr_sv at, name;
    bool program = fr_sv_has(text, FR_SV("python")) || fr_sv_has(text, FR_SV(".py")) || fr_sv_has(text, FR_SV("torchrun"));
    if (!fr_sv_has(text, FR_SV("CalledProcessError")) || !program) {
        return false; /* a converter or a shell is no rank */
    }
    d->fact = FR_FACT_EXIT;
    if (fr_lex_find(text, "died with <Signals.", &at) && fr_lex_name(&at, &name)) {
        signal = fr_signal_number(name);
        fr_draft_num(d, FR_KEY_EXITCODE, -signal, name);
    } else if (!fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("non-zero exit status "))) {
        return false;
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("subprocess"));
    return true;
}

/* "-- Process 1 terminated with the following error:", "process 1 terminated with signal SIGSEGV",
 * "... with exit code 3" */
static bool spawn_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    int32_t index = -1;
    if ((!fr_lex_find(text, "Process ", &at) && !fr_lex_find(text, "process ", &at)) ||
        !fr_lex_index(&at, &index) || !fr_lex_lit(&at, " terminated with ")) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_num(d, FR_KEY_LOCAL_RANK, index, FR_SV_NONE);
    if (fr_lex_lit(&at, "signal ") && fr_lex_token(&at, &name)) {
        int number =
            fr_signal_number(fr_sv_ends(name, FR_SV(".")) ? fr_sv_head(name, name.n - 1) : name);
        fr_draft_num(d, FR_KEY_EXITCODE, -number, name);
    } else if (!fr_draft_num_after(d, FR_KEY_EXITCODE, at, FR_SV("exit code "))) {
        fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("spawn"));
    return true;
}

/* "DataLoader worker (pid 493) is killed by signal: Bus error. ...", "DataLoader worker (pid(s)
 * 493, 494) exited unexpectedly" */
static bool loader_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, how;
    if (!fr_sv_has(text, FR_SV("DataLoader worker (pid"))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    if (!fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("(pid ")) &&
        !fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("(pid(s) "))) {
        return false;
    }
    if (fr_lex_find(text, "killed by signal: ", &at) && fr_lex_until(&at, '.', &how)) {
        fr_draft_num(d, FR_KEY_EXITCODE, -fr_signal_number(how), how);
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("dataloader-worker"));
    return true;
}

/* vLLM: "Worker proc VllmWorker-2 died unexpectedly (exit code: None), shutting down executor.": its workers are named after their
 * ranks, and it watches them all. */
static bool vllm_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name, number;
    if (!fr_lex_find(text, "Worker proc ", &at) || !fr_lex_name(&at, &name) ||
        !fr_sv_has(at, FR_SV("died unexpectedly"))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    if (fr_lex_find(name, "-", &number)) {
        int32_t index = -1;
        if (fr_lex_index(&number, &index) && number.n == 0) {
            fr_draft_num(d, FR_KEY_RANK, index, FR_SV_NONE);
        }
    }
    if (!fr_draft_num_after(d, FR_KEY_EXITCODE, at, FR_SV("exit code: "))) {
        fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_WORKER, name);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("vllm"));
    return true;
}

/* Composer: "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -7.", "ERROR:composer.cli.launcher:Global rank 2 (PID 7)
 * exited with code -11", which it prints of each rank, those that it ended among them. */
static bool composer_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int32_t rank = -1;
    bool crashed = fr_lex_find(text, "Rank ", &at) && fr_lex_index(&at, &rank) &&
                   fr_sv_starts(at, FR_SV(" crashed with exit code "));
    if (!crashed && !(fr_lex_find(text, "Global rank ", &at) && fr_lex_index(&at, &rank) &&
                      fr_sv_starts(at, FR_SV(" (PID ")) &&
                      fr_draft_num_after(d, FR_KEY_PID, at, FR_SV("(PID ")))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
    if (!fr_draft_num_after(d, FR_KEY_EXITCODE, at, crashed ? FR_SV("exit code ") : FR_SV(") exited with code "))) {
        return false;
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("composer"));
    return true;
}

/* Paddle's launch: "Container rank 0 status failed cmd ['python', 'fit.py'] code 1 log log/workerlog.0": counted on each host. */
static bool container_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, end;
    int32_t local = -1;
    if (!fr_lex_find(text, "Container rank ", &at) || !fr_lex_index(&at, &local) ||
        !fr_lex_lit(&at, " status failed cmd ") || !fr_lex_find(at, "] code ", &end)) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_num(d, FR_KEY_LOCAL_RANK, local, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("paddle"));
    return fr_draft_num_after(d, FR_KEY_EXITCODE, at, FR_SV("] code "));
}

/* Paddle: "ABORT!!! Out of all 4 trainers, the trainer process with rank=[1, 3] was aborted.": one fact for each; of a longer list than
 * there is room for, one without a rank, as some of them would be taken for all. Returns how many. */
static int paddle_facts(fr_sv text, struct fr_draft *ret, int max)
{
    fr_sv at;
    int n = 0;
    if (!fr_lex_find(text, "the trainer process with rank=[", &at)) {
        return 0;
    }
    size_t listed = 1;
    for (size_t i = 0; i < at.n && at.p[i] != ']'; i++) {
        listed += at.p[i] == ',';
    }
    bool few = listed <= (size_t)max;
    for (int32_t rank = -1; n < (few ? max : 1) && fr_lex_index(&at, &rank); n++) {
        struct fr_draft *d = fr_draft_begin(ret, n, max, FR_FACT_EXIT);
        if (few) {
            fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
        }
        fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE);
        (void)fr_draft_num_after(d, FR_KEY_WORLD, text, FR_SV("Out of all "));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("paddle"));
        (void)fr_lex_lit(&at, ", ");
    }
    return n;
}

/* torchelastic's events: {"name": "torchelastic.worker.status.FAILED", ..., "global_rank": 3, ...} */
static bool event_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV("torchelastic.worker.status.FAILED")) ||
        !fr_draft_num_after(d, FR_KEY_RANK, text, FR_SV("\"global_rank\": "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_sv at, pid;
    int32_t number = -1;
    if (fr_lex_find(text, "\"worker_id\": \"", &at) && fr_lex_until(&at, '"', &pid) &&
        fr_lex_index(&pid, &number)) {
        fr_draft_num(d, FR_KEY_PID, number, FR_SV_NONE);
    }
    fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("elastic-event"));
    return true;
}

/* Inference servers, one node each: "Shard 1 failed to start" (TGI), "Rank 0 scheduler is dead." (SGLang). */
static bool server_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int32_t index = -1;
    bool tgi = fr_lex_find(text, "Shard ", &at) && fr_lex_index(&at, &index) && fr_sv_starts(at, FR_SV(" failed to start"));
    if (!tgi && !(fr_lex_find(text, "Rank ", &at) && fr_lex_index(&at, &index) && fr_sv_starts(at, FR_SV(" scheduler is dead")))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_num(d, FR_KEY_RANK, index, FR_SV_NONE);
    fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, tgi ? FR_SV("tgi") : FR_SV("sglang"));
    return true;
}

/* docker compose: "fit-worker-2 exited with code 137", the whole line; 137 is a shell's word for
 * SIGKILL. */
static bool compose_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at = text, name;
    if (!fr_lex_name(&at, &name) || name.n < 3 || !fr_is_digit(name.p[name.n - 1]) ||
        !fr_draft_num_after(d, FR_KEY_EXITCODE, at, FR_SV(" exited with code "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_text(d, FR_KEY_NODE, name);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("compose"));
    return true;
}

/* Lightning: "[rank: 1] Child process with PID 3104 terminated with code 4. Forcefully terminating all other processes to avoid
 * zombies": who it speaks of is in the tag. */
static int lightning_facts(const struct fr_record *rec, struct fr_draft *ret, int max)
{
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_EXIT);
    fr_sv at;
    if (d == NULL || !fr_lex_find(rec->text, "Child process with PID ", &at) ||
        !fr_draft_num_after(d, FR_KEY_EXITCODE, at, FR_SV(" terminated with code "))) {
        return 0;
    }
    (void)fr_draft_num_after(d, FR_KEY_PID, rec->text, FR_SV("Child process with PID "));
    if (rec->who.rank >= 0) {
        fr_draft_num(d, FR_KEY_RANK, rec->who.rank, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("lightning"));
    struct fr_draft *stop = fr_draft_begin(ret, 1, max, FR_FACT_STOP_SENT);
    if (stop == NULL || !fr_sv_has(at, FR_SV("terminating all other processes"))) {
        return 1;
    }
    fr_draft_num(stop, FR_KEY_SIGNAL, 9, FR_SV_NONE);
    fr_draft_text(stop, FR_KEY_REASON, FR_SV("lightning"));
    return 2;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    static bool (*const readers[])(struct fr_draft *, fr_sv) = {
        deepspeed_fact, success_fact, subprocess_fact, spawn_fact, loader_fact,
        vllm_fact,      composer_fact, event_fact,     server_fact, compose_fact,
        container_fact};
    (void)ctx;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
        struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_EXIT);
        if (d != NULL && readers[i](d, rec->text)) {
            return 1;
        }
    }
    const int n = lightning_facts(rec, ret, max);
    return n > 0 ? n : paddle_facts(rec->text, ret, max);
}

static const char *const literals[] = {
    "Killing subprocess ",        "exits with return code = ",
    " exits successfully",        "CalledProcessError",
    " terminated with signal ",   " terminated with the following error",
    " terminated with exit code", "DataLoader worker (pid",
    "died unexpectedly",          " crashed with exit code ",
    "the trainer process with rank=[", "torchelastic.worker.status.FAILED",
    ") exited with code ",        " status failed cmd ",
    " failed to start",           " scheduler is dead",  " exited with code ",
    " terminated with code ",     NULL};

static const struct fr_format_sample samples[] = {
    {"ERROR:composer.cli.launcher:Global rank 2 (PID 4310) exited with code -11", "fact=exit rank=2 pid=4310 exitcode=-11 reason=composer"},
    {"Container rank 1 status failed cmd ['/usr/bin/python3', '-u', 'fit.py'] code 1 log log/workerlog.1 ", "fact=exit local_rank=1 exitcode=1 reason=paddle"},
    {"fit-worker-2 exited with code 137", "fact=exit node=fit-worker-2 exitcode=137 reason=compose"},
    {"the run exited with code 0", ""},
    {"[2024-05-01 10:00:00,123] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4242",
     "level=info fact=stop_sent pid=4242"},
    {"[2024-05-01 10:00:00,123] [ERROR] [launch.py:325:sigkill_handler] ['/opt/venv/bin/python', "
     "'-u', 'fit.py', '--local_rank=3'] exits with return code = -9",
     "level=error fact=exit local_rank=- exitcode=-9 reason=deepspeed"},
    {"[2024-05-01 10:00:00,123] [ERROR] [launch.py:325:sigkill_handler] ['/opt/venv/bin/python', "
     "'-u', 'fit.py', '--local_rank=0', '-x'] exits with return code = 1",
     "level=error fact=exit local_rank=0 exitcode=1 reason=deepspeed"},
    {"[2024-05-01 10:00:00,123] [INFO] [launch.py:348:main] Process 71 exits successfully.",
     "fact=exit pid=71 exitcode=0"},
    {"subprocess.CalledProcessError: Command '['python', 'fit.py']' returned non-zero exit status "
     "1.",
     "fact=exit exitcode=1 reason=subprocess"},
    {"subprocess.CalledProcessError: Command '['convert', 'a.png']' returned non-zero exit status 4.", ""},
    {"subprocess.CalledProcessError: Command '['python', 'fit.py']' died with <Signals.SIGKILL: "
     "9>.",
     "fact=exit exitcode=-9"},
    {"torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV",
     "fact=exit local_rank=1 exitcode=-11 reason=spawn"},
    {"-- Process 3 terminated with the following error:", "fact=exit local_rank=3 exitcode=1"},
    {"RuntimeError: DataLoader worker (pid 493) is killed by signal: Bus error. It is possible",
     "fact=exit pid=493 exitcode=-7 reason=dataloader-worker"},
    {"RuntimeError: DataLoader worker (pid(s) 493) exited unexpectedly",
     "fact=exit pid=493 exitcode=-"},
    {"(EngineCore pid=59085) ERROR 08-14 09:51:09 [multiproc_executor.py:284] Worker proc "
     "VllmWorker-2 died unexpectedly (exit code: None), shutting down executor.",
     "pid=59085 role=EngineCore fact=exit rank=2 exitcode=1 worker=VllmWorker-2"},
    {"ERROR:composer.cli.launcher:Rank 5 crashed with exit code -11.",
     "level=error fact=exit rank=5 exitcode=-11 reason=composer"},
    {"ERROR 2024-05-01 10:00:00,123 launch_utils.py:545] ABORT!!! Out of all 8 trainers, the trainer "
     "process with rank=[6] was aborted. Please check its log.",
     "fact=exit rank=6 world=8 reason=paddle"},
    {"ABORT!!! Out of all 8 trainers, the trainer process with rank=[0, 1, 2, 3, 5, 6] was aborted. Please check its log.",
     "fact=exit rank=- world=8 reason=paddle"},
    {"{\"name\": \"torchelastic.worker.status.FAILED\", \"source\": \"WORKER\", \"timestamp\": 0, "
     "\"metadata\": {\"run_id\": \"none\", \"global_rank\": 5, \"group_rank\": 0, \"worker_id\": "
     "\"771\", \"state\": \"FAILED\"}}",
     "fact=exit rank=5 pid=771 exitcode=1 reason=elastic-event"},
    {"2025-05-02T08:00:12.001Z ERROR text_generation_launcher: Shard 1 failed to start", "fact=exit rank=1 reason=tgi"},
    {"[12-16 14:27:08] Rank 2 scheduler is dead. Please check if there are relevant logs.", "fact=exit rank=2 reason=sglang"},
    {"[rank: 1] Child process with PID 3104 terminated with code -9. Forcefully terminating all other processes to avoid zombies",
     "rank=1 fact=exit exitcode=-9 pid=3104 rank=1 reason=lightning fact=stop_sent signal=9 reason=lightning"},
    {"the service failed to start", ""},
    {"it died unexpectedly", ""},
    {NULL, NULL}};

const struct fr_format fr_format_launcher = {
    .name = "launcher",
    .summary = "DeepSpeed, accelerate, spawn, DataLoader, vLLM: dead children",
    .literals = literals,
    .facts = facts,
    .samples = samples};
