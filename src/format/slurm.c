/* SPDX-License-Identifier: Apache-2.0 */
/* slurm: srun's task exits, slurmstepd's verdicts, sacct rows, submitit. Task ids are ranks only
 * with one process per task. */
#include "format/dialect.h"

/* "gpu07: tasks 0-3,7: Exited with exit code 1" behind "srun: error: " */
static bool task_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, node, list, how;
    int64_t code = 0;
    fr_sv printed;
    if (!fr_lex_find(text, "srun: error: ", &at) || !fr_lex_until(&at, ' ', &node) ||
        !fr_sv_ends(node, FR_SV(":"))) {
        return false;
    }
    if (!fr_lex_lit(&at, "tasks ") && !fr_lex_lit(&at, "task ")) {
        return false;
    }
    if (!fr_lex_until(&at, ':', &list)) {
        return false;
    }
    how = fr_sv_trim(at);
    d->fact = FR_FACT_EXIT;
    fr_draft_text(d, FR_KEY_NODE, fr_sv_head(node, node.n - 1));
    fr_sv first = list;
    int32_t task = -1;
    if (fr_lex_index(&first, &task)) {
        fr_draft_num(d, FR_KEY_TASK, task, list);
    }
    fr_draft_text(d, FR_KEY_RANKS, list);
    if (fr_lex_num_after(how, FR_SV("exit code "), &code, &printed)) {
        fr_draft_num(d, FR_KEY_EXITCODE, code, printed);
    } else if (fr_sv_starts(how, FR_SV("Out Of Memory"))) {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("oom"));
        return true;
    } else if (fr_signal_number(how) != 0) {
        fr_draft_num(d, FR_KEY_EXITCODE, -fr_signal_number(how), how);
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("srun"));
    return true;
}

static fr_sv cancel_reason(fr_sv text)
{
    static const struct {
        const char *text, *reason;
    } reasons[] = {{"DUE TO TIME LIMIT", "time-limit"},     {"DUE TO PREEMPTION", "preemption"},
                   {"DUE TO NODE FAILURE", "node-failure"}, {"DUE TO JOB REQUEUE", "requeue"},
                   {"DUE TO TASK FAILURE", "task-failure"}, {"DUE to SIGNAL", "signal"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (fr_sv_has(text, fr_sv_z(reasons[i].text))) {
            return fr_sv_z(reasons[i].reason);
        }
    }
    return FR_SV("cancelled");
}

/* "slurmstepd: error: *** STEP 440575.0 ON nid001277 CANCELLED AT 2023-12-05T07:16:01 DUE TO TIME
 * LIMIT ***" */
static bool cancel_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, word;
    struct fr_when when;
    if (!fr_sv_has(text, FR_SV(" CANCELLED AT ")) ||
        (!fr_lex_find(text, "*** STEP ", &at) && !fr_lex_find(text, "*** JOB ", &at))) {
        return false;
    }
    d->fact = FR_FACT_SCHEDULER;
    if (fr_lex_token(&at, &word)) {
        fr_draft_text(d, FR_KEY_JOB, word);
    }
    if (fr_lex_lit(&at, " ON ") && fr_lex_token(&at, &word)) {
        fr_draft_text(d, FR_KEY_NODE, word);
    }
    (void)fr_lex_find(at, " CANCELLED AT ", &at);
    const char *begin = at.p;
    if (fr_stamp_iso(&at, &when)) {
        fr_draft_num(d, FR_KEY_TIME, when.ns, fr_sv_range(begin, at.p));
    }
    fr_draft_text(d, FR_KEY_REASON, cancel_reason(text));
    return true;
}

/* "Detected 1 oom_kill event in StepId=11300781.0. Some of ...", old: "Detected 1 oom-kill event(s)
 * in StepId=191.batch cgroup." */
static bool oom_fact(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at, step;
    if (!fr_sv_has(rec->text, FR_SV("oom_kill event")) &&
        !fr_sv_has(rec->text, FR_SV("oom-kill event"))) {
        return false;
    }
    d->fact = FR_FACT_SCHEDULER;
    if (fr_lex_find(rec->text, "StepId=", &at) && fr_lex_name(&at, &step)) {
        fr_draft_text(d, FR_KEY_JOB,
                      fr_sv_ends(step, FR_SV(".")) ? fr_sv_head(step, step.n - 1) : step);
    }
    (void)fr_draft_num_after(d, FR_KEY_COUNT, rec->text, FR_SV("Detected "));
    if (fr_lex_find(rec->text, "slurmstepd-", &at) && fr_lex_until(&at, ':', &step)) {
        fr_draft_text(d, FR_KEY_NODE, step);
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("oom"));
    return true;
}

static bool node_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, node;
    if (!fr_lex_find(text, "Node failure on ", &at) || !fr_lex_token(&at, &node)) {
        return false;
    }
    d->fact = FR_FACT_SCHEDULER;
    fr_draft_text(d, FR_KEY_NODE, node);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("node-failure"));
    return true;
}

/* srun's own reaction: "Job step aborted: Waiting up to 32 seconds", "srun: Terminating
 * StepId=1.0", "forcing job termination" */
static bool stop_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV("Job step aborted: Waiting")) &&
        !fr_sv_has(text, FR_SV("srun: forcing job termination")) &&
        !fr_sv_has(text, FR_SV("srun: Terminating ")) &&
        !fr_sv_has(text, FR_SV("_step_signal: Terminating ")) &&
        !fr_sv_has(text, FR_SV("srun: Force Terminated"))) {
        return false;
    }
    d->fact = FR_FACT_STOP_SENT;
    fr_draft_num(d, FR_KEY_SIGNAL, fr_sv_has(text, FR_SV("Force Terminated")) ? 9 : 15, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("srun"));
    return true;
}

/* submitit and Lightning on Slurm */
static bool requeue_fact(struct fr_draft *d, fr_sv text)
{
    bool bypass = fr_sv_has(text, FR_SV("Bypassing signal "));
    bool caught = fr_sv_has(text, FR_SV("Caught signal "));
    bool fault = caught && fr_sv_has(text, FR_SV(" (")); /* UCX: "Caught signal 11 (Segmentation fault: ...)" */
    if (bypass || (caught && !fault)) {
        d->fact = FR_FACT_STOP_RECEIVED;
        (void)fr_draft_num_after(d, FR_KEY_SIGNAL, text,
                                 bypass ? FR_SV("Bypassing signal ") : FR_SV("Caught signal "));
        return true;
    }
    if (fr_sv_has(text, FR_SV("Requeuing job")) || fr_sv_has(text, FR_SV("requeing job")) ||
        fr_sv_has(text, FR_SV("Requeued job"))) {
        d->fact = FR_FACT_SCHEDULER;
        fr_draft_text(d, FR_KEY_REASON, FR_SV("requeue"));
        return true;
    }
    return false;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    if (d == NULL) {
        return 0;
    }
    /* the level word of "srun: error: " stays in text: no dialect peels it */
    return task_fact(d, rec->text) || cancel_fact(d, rec->text) || oom_fact(d, rec) ||
           node_fact(d, rec->text) || stop_fact(d, rec->text) || requeue_fact(d, rec->text);
}

static const char *const literals[] = {"srun: error: ",
                                       " CANCELLED AT ",
                                       "oom_kill event",
                                       "oom-kill event",
                                       "Node failure on ",
                                       "Job step aborted: Waiting",
                                       "srun: forcing job termination",
                                       "srun: Terminating ",
                                       "_step_signal: Terminating ",
                                       "srun: Force Terminated",
                                       "Bypassing signal ",
                                       "Caught signal ",
                                       "Requeuing job",
                                       "requeing job",
                                       "Requeued job",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"[gn11:4101:0:4101] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)", ""},
    {"srun: error: gpu07: task 3: Exited with exit code 1",
     "fact=exit node=gpu07 task=3 ranks=3 exitcode=1"},
    {"srun: error: nid[01-04]: tasks 0-7,9: Killed",
     "fact=exit node=nid[01-04] task=0 ranks=0-7,9 exitcode=-9"},
    {"srun: error: gpu07: task 5: Segmentation fault (core dumped)",
     "fact=exit task=5 exitcode=-11"},
    {"srun: error: nid001277: tasks 1-3: Out Of Memory", "fact=exit task=1 ranks=1-3 reason=oom"},
    {"slurmstepd: error: *** JOB 191 ON c002 CANCELLED AT 2024-05-01T10:00:00 DUE TO TIME LIMIT "
     "***",
     "fact=scheduler job=191 node=c002 reason=time-limit time=2024-05-01T10:00:00"},
    {"slurmstepd-gpu07: error: *** STEP 8.0 ON gpu07 CANCELLED AT 2026-11-30T15:54:02 ***",
     "fact=scheduler job=8.0 node=gpu07 reason=cancelled"},
    {"slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks "
     "have been OOM Killed.",
     "fact=scheduler reason=oom job=11300781.0 count=1"},
    {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of your "
     "processes",
     "fact=scheduler reason=oom job=191.batch"},
    {"srun: error: Node failure on node07", "fact=scheduler reason=node-failure node=node07"},
    {"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
     "fact=stop_sent signal=15"},
    {"submitit WARNING (2021-03-22 17:55:38,701) - Bypassing signal 15",
     "fact=stop_received signal=15"},
    {"srun: error: Timed out waiting for job step to complete", ""},
    {NULL, NULL}};

const struct fr_format fr_format_slurm = {.name = "slurm",
                                          .summary = "srun, slurmstepd, submitit",
                                          .literals = literals,
                                          .facts = facts,
                                          .samples = samples};
