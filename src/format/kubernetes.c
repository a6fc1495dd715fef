/* SPDX-License-Identifier: Apache-2.0 */
/* kubernetes: pod ends in every shape people paste: kubectl get pods and events, describe, JSON of
 * events and container states; and the words clouds use for taking a machine back. */
#include "format/dialect.h"

static const struct {
    const char *word, *reason;
} reasons[] = {{"OOMKilled", "oom"},
               {"Evicted", "evicted"},
               {"NodeNotReady", "node-failure"},
               {"Preempted", "preemption"},
               {"NodeLost", "node-failure"},
               {"Preempting", "preemption"},
               {"TaintManagerEviction", "evicted"},
               {"NodeShutdown", "node-failure"},
               {"DeadlineExceeded", "time-limit"},
               {"TerminationByKubelet", "evicted"},
               {"SystemOOM", "oom"},
               {"OOMKilling", "oom"}};

static bool is_boundary(fr_sv text, size_t at, size_t n)
{
    return (at == 0 || !fr_is_word(text.p[at - 1])) &&
           (at + n >= text.n || !fr_is_word(text.p[at + n]));
}

static const char *reason_in(fr_sv text)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        fr_sv word = fr_sv_z(reasons[i].word);
        size_t at = fr_sv_find(text, word);
        if (at != FR_NPOS && is_boundary(text, at, word.n)) {
            return reasons[i].reason;
        }
    }
    return NULL;
}

/* The pod: "pod/NAME", "\"name\":\"NAME\"", or the first word of a table row. */
static void pod_of(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    if (fr_lex_find(text, "pod/", &at) && fr_lex_name(&at, &name)) {
        fr_draft_text(d, FR_KEY_WORKER, name);
    } else if ((fr_lex_find(text, "\"name\":\"", &at) || fr_lex_find(text, "\"name\": \"", &at)) &&
               fr_lex_until(&at, '"', &name)) {
        fr_draft_text(d, FR_KEY_WORKER, name);
    } else {
        at = text;
        if (fr_lex_name(&at, &name) && fr_sv_chr(name, '-') != FR_NPOS &&
            fr_lex_peek(at, 0) == ' ') {
            fr_draft_text(d, FR_KEY_WORKER, name);
        }
    }
}

static bool ended_fact(struct fr_draft *d, fr_sv text)
{
    const char *reason = reason_in(text);
    if (reason == NULL) {
        return false;
    }
    d->fact = FR_FACT_SCHEDULER;
    pod_of(d, text);
    if (!fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("\"exitCode\":"))) {
        (void)fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("\"exitCode\": "));
    }
    fr_draft_text(d, FR_KEY_REASON, fr_sv_z(reason));
    return true;
}

/* "    Exit Code:    137" of describe; "\"exitCode\":137" without a known reason */
static bool exit_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int64_t code = 0;
    if (fr_lex_find(text, "Exit Code:", &at)) {
        fr_lex_spaces(&at);
        if (!fr_lex_int(&at, &code)) {
            return false;
        }
        fr_draft_num(d, FR_KEY_EXITCODE, code, FR_SV_NONE);
    } else if (!fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("\"exitCode\":")) &&
               !fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("\"exitCode\": "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    pod_of(d, text);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("kubernetes"));
    return true;
}

static bool cloud_fact(struct fr_draft *d, fr_sv text)
{
    static const char *const words[] = {"compute.instances.preempted", "Instance was preempted",
                                        "instance was preempted",      "was preempted by",
                                        "Spot interruption",           "spot interruption",
                                        "has been preempted",          "preemption notice received",
                                        "TPU was preempted",           NULL};
    for (const char *const *w = words; *w != NULL; w++) {
        if (fr_sv_has(text, fr_sv_z(*w))) {
            d->fact = FR_FACT_SCHEDULER;
            fr_draft_text(d, FR_KEY_REASON, FR_SV("preemption"));
            return true;
        }
    }
    return false;
}

/* "Scheduled  9m  default-scheduler  Successfully assigned default/fit-0 to node07" */
static bool placed_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV("Successfully assigned ")) || !fr_sv_has(text, FR_SV(" to "))) {
        return false;
    }
    d->fact = FR_FACT_START;
    fr_draft_text(d, FR_KEY_REASON, FR_SV("kubernetes"));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    return d != NULL &&
           (ended_fact(d, rec->text) || exit_fact(d, rec->text) || cloud_fact(d, rec->text) || placed_fact(d, rec->text));
}

static const char *const literals[] = {"OOMKilled",
                                       "Evicted",
                                       "NodeNotReady",
                                       "Preempted",
                                       "Preempting",
                                       "NodeLost",
                                       "TaintManagerEviction",
                                       "NodeShutdown",
                                       "DeadlineExceeded",
                                       "TerminationByKubelet",
                                       "SystemOOM",
                                       "OOMKilling",
                                       "Exit Code:",
                                       "\"exitCode\":",
                                       "instances.preempted",
                                       "was preempted",
                                       "been preempted",
                                       "pot interruption",
                                       "preemption notice received",
                                       "Successfully assigned ",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"fit-worker-3   0/1   OOMKilled   0   3m", "fact=scheduler worker=fit-worker-3 reason=oom"},
    {"5m   Warning   Evicted   pod/fit-worker-3   The node was low on resource: memory.",
     "fact=scheduler worker=fit-worker-3 reason=evicted"},
    {"{\"reason\":\"OOMKilled\",\"exitCode\":137,\"name\":\"fit-worker-1\"}",
     "fact=scheduler worker=fit-worker-1 exitcode=137 reason=oom"},
    {"      Exit Code:    139", "fact=exit exitcode=139 reason=kubernetes"},
    {"      Reason:       OOMKilled", "fact=scheduler reason=oom"},
    {"{\"terminated\":{\"exitCode\":1,\"reason\":\"Error\"}}", "fact=exit exitcode=1"},
    {"compute.instances.preempted: Instance was preempted.", "fact=scheduler reason=preemption"},
    {"Normal  Scheduled  9m22s  default-scheduler  Successfully assigned ml/fit-worker-3 to ip-10-0-3-7.ec2.internal",
     "fact=start reason=kubernetes"},
    {"isOOMKilledFlag=false", ""},
    {NULL, NULL}};

const struct fr_format fr_format_kubernetes = {.name = "kubernetes",
                                               .summary = "Kubernetes pod ends, cloud preemption",
                                               .literals = literals,
                                               .facts = facts,
                                               .samples = samples};
