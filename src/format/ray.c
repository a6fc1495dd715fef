/* SPDX-License-Identifier: Apache-2.0 */
/* ray: workers and nodes that Ray lost. Its list of possible causes ("killed by SIGKILL by OOM
 * killer ...") is boiler-plate and is not read; its own memory monitor does say what it did. */
#include "format/dialect.h"

static void where(struct fr_draft *d, fr_sv text)
{
    fr_sv at, word;
    (void)(fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("Worker PID: ")) ||
           fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("pid=")));
    if ((fr_lex_find(text, "Worker IP address: ", &at) || fr_lex_find(text, "ip=", &at)) &&
        fr_lex_name(&at, &word)) {
        fr_draft_text(d, FR_KEY_NODE, word);
    }
}

/* "A worker died or was killed while executing a task ... Worker IP address: 10.0.7.75 Worker port:
 * 10230 Worker PID: 208711 Worker exit type: SYSTEM_ERROR" */
static bool worker_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, type;
    if (!fr_lex_find(text, "Worker exit type: ", &at) || !fr_lex_name(&at, &type)) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    where(d, text);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("ray"));
    fr_draft_text(d, FR_KEY_EXCEPTION, type);
    return true;
}

/* "Worker 3 has failed.", of Ray Train (ray/train/_internal/utils.py, check_for_failure): the place
 * in the worker group, which is the rank. How it ended is not said. */
static bool trainer_fact(struct fr_draft *d, fr_sv text)
{
    int32_t rank = -1;
    if (!fr_sv_take(&text, FR_SV("Worker ")) || !fr_lex_index(&text, &rank) ||
        !fr_sv_eq(fr_sv_trim(text), FR_SV("has failed."))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("ray"));
    return true;
}

/* "Task was killed due to the node running low on memory.", "(raylet) ... Workers (tasks / actors)
 * killed due to memory pressure (OOM)" */
static bool memory_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV("killed due to the node running low on memory")) &&
        !fr_sv_has(text, FR_SV("killed due to memory pressure (OOM)"))) {
        return false;
    }
    d->fact = FR_FACT_OOM_KILL;
    where(d, text);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("ray-memory-monitor"));
    return true;
}

/* "The node with node id: 3f.. and address: 10.0.0.3 and node name: 10.0.0.3 has been marked dead
 * because the detector has missed too many heartbeats" */
static bool node_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, word;
    if (!fr_sv_has(text, FR_SV("has been marked dead because"))) {
        return false;
    }
    d->fact = FR_FACT_PEER_LOST;
    if (fr_lex_find(text, "address: ", &at) && fr_lex_name(&at, &word)) {
        fr_draft_text(d, FR_KEY_PEER, word);
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("ray-node-dead"));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    return d != NULL &&
           (memory_fact(d, rec->text) || worker_fact(d, rec->text) || node_fact(d, rec->text) ||
            trainer_fact(d, rec->text));
}

static const char *const literals[] = {"Worker exit type: ", "node running low on memory",
                                       "memory pressure (OOM)", "has been marked dead because",
                                       " has failed.", NULL};

static const struct fr_format_sample samples[] = {
    {"(raylet) A worker died or was killed while executing a task by an unexpected system error. "
     "RayTask ID: ff Worker ID: 6f Node ID: 86 Worker IP address: 10.0.7.75 Worker port: 1 Worker "
     "PID: 208711 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits",
     "role=raylet fact=exit pid=208711 node=10.0.7.75 exception=SYSTEM_ERROR"},
    {"(TorchTrainer pid=5512) Worker 3 has failed.", "role=TorchTrainer pid=5512 fact=exit rank=3 reason=ray"},
    {"(TorchTrainer pid=5512) Worker 3 has failed its check.", "role=TorchTrainer pid=5512"},
    {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
     "fact=oom_kill reason=ray-memory-monitor"},
    {"The node with node id: 3f and address: 10.0.0.3 and node name: 10.0.0.3 has been marked dead "
     "because the detector has missed too many heartbeats from it.",
     "fact=peer_lost peer=10.0.0.3 reason=ray-node-dead"},
    {"(1) The process is killed by SIGKILL by OOM killer due to high memory usage", ""},
    {NULL, NULL}};

const struct fr_format fr_format_ray = {.name = "ray",
                                        .summary = "Ray: dead workers, memory monitor, dead nodes",
                                        .literals = literals,
                                        .facts = facts,
                                        .samples = samples};
