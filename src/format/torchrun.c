/* SPDX-License-Identifier: Apache-2.0 */
/* torchrun: what the elastic agent says (its prefixes are peeled elsewhere, in three generations):
 * processes it stops, the exit it noticed, restarts, and the rows of ChildFailedError when a
 * console has run them together on one line. A pid that is sent SIGTERM was alive when the agent
 * saw the first death: that is worth more than the agent's verdict. */
#include "format/dialect.h"

static bool stop_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    d->fact = FR_FACT_STOP_SENT;
    if (fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("Sending process ")) &&
        fr_lex_find(text, " closing signal ", &at)) {
        if (fr_lex_token(&at, &name)) {
            fr_draft_num(d, FR_KEY_SIGNAL, fr_signal_number(name), name);
        }
        return true;
    }
    d->n_caps = 0;
    if (fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("Unable to shutdown process "))) {
        fr_draft_num(d, FR_KEY_SIGNAL, 9, FR_SV("SIGKILL"));
        return true;
    }
    return false;
}

/* "failed (exitcode: -9) local_rank: 5 (pid: 2630) of binary: PATH" */
static bool exit_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    if (!fr_lex_find(text, "failed (exitcode: ", &at)) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    (void)fr_draft_num_after(d, FR_KEY_EXITCODE, text, FR_SV("(exitcode: "));
    (void)fr_draft_num_after(d, FR_KEY_LOCAL_RANK, text, FR_SV("local_rank: "));
    (void)fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("(pid: "));
    fr_draft_text(d, FR_KEY_REASON, FR_SV("agent"));
    return true;
}

/* "[2]: time : 2024-09-01_22:28:32 host : algo-2 rank : 2 (local_rank: 2) exitcode : -6 (pid: 760)
 * error_file: <N/A> ..." */
static bool row_fact(const struct fr_peel_ctx *ctx, struct fr_draft *d, fr_sv text)
{
    static const struct {
        const char *label;
        enum fr_key key;
    } numbers[] = {{" rank : ", FR_KEY_RANK},
                   {"(local_rank: ", FR_KEY_LOCAL_RANK},
                   {" exitcode : ", FR_KEY_EXITCODE},
                   {"(pid: ", FR_KEY_PID}};
    fr_sv at, word;
    struct fr_when when;
    (void)ctx;
    if (!fr_sv_has(text, FR_SV(" exitcode : ")) || !fr_sv_has(text, FR_SV("(local_rank: "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        (void)fr_draft_num_after(d, numbers[i].key, text, fr_sv_z(numbers[i].label));
    }
    if (fr_lex_find(text, " host : ", &at) && fr_lex_token(&at, &word)) {
        fr_draft_text(d, FR_KEY_NODE, word);
    }
    if (fr_lex_find(text, "time : ", &at)) {
        fr_sv begin = at;
        if (fr_stamp_iso(&at, &when)) {
            fr_draft_num(d, FR_KEY_TIME, when.ns, fr_sv_range(begin.p, at.p));
        }
    }
    fr_draft_text(d, FR_KEY_REASON, FR_SV("table"));
    return true;
}

static bool told_to_stop(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    int64_t number = 0;
    fr_sv printed;
    d->fact = FR_FACT_STOP_RECEIVED;
    if (fr_lex_find(text, "Received ", &at) && fr_sv_has(at, FR_SV("death signal"))) {
        if (!fr_lex_int(&at, &number) && fr_lex_token(&at, &name)) {
            number = fr_signal_number(name);
        }
    } else if (!fr_lex_num_after(text, FR_SV(" got signal: "), &number, &printed)) {
        return false;
    }
    fr_draft_num(d, FR_KEY_SIGNAL, number, FR_SV_NONE);
    (void)fr_draft_num_after(d, FR_KEY_PID, text, FR_SV("SignalException: Process "));
    return true;
}

/* "[default] Worker group FAILED. 3/3 attempts left; will restart worker group", "Detected 1 new
 * nodes from group_rank=0; will restart" */
static bool attempt_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV("will restart worker group"))) {
        return false;
    }
    fr_sv at;
    int64_t left = 0, all = 0;
    size_t mark = fr_sv_find(text, FR_SV("Worker group FAILED. "));
    d->fact = FR_FACT_ATTEMPT;
    if (mark != FR_NPOS) {
        at = fr_sv_skip(text, mark + 21);
        if (fr_lex_int(&at, &left) && fr_lex_char(&at, '/') && fr_lex_int(&at, &all) && left > 0 &&
            left <= all) {
            fr_draft_num(d, FR_KEY_ATTEMPT, all - left + 1, FR_SV_NONE);
        }
        fr_draft_text(d, FR_KEY_REASON, FR_SV("restart"));
    } else {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("membership"));
    }
    return true;
}

static bool start_fact(struct fr_draft *d, fr_sv text)
{
    if (!fr_sv_has(text, FR_SV("Starting elastic_operator with launch configs"))) {
        return false;
    }
    d->fact = FR_FACT_START;
    fr_draft_text(d, FR_KEY_REASON, FR_SV("torchrun"));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    if (d == NULL) {
        return 0;
    }
    return stop_fact(d, rec->text) || exit_fact(d, rec->text) || row_fact(ctx, d, rec->text) ||
           told_to_stop(d, rec->text) || attempt_fact(d, rec->text) || start_fact(d, rec->text);
}

static const char *const literals[] = {" closing signal ",
                                       "Unable to shutdown process",
                                       "failed (exitcode: ",
                                       " exitcode : ",
                                       "death signal",
                                       " got signal: ",
                                       "will restart worker group",
                                       "Starting elastic_operator",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"W1130 14:52:01.827000 27144 torch/distributed/elastic/multiprocessing/api.py:1028] Sending "
     "process 27520 closing signal SIGTERM",
     "level=warn fact=stop_sent pid=27520 signal=15"},
    {"[2024-04-30 16:51:43,970] torch.distributed.elastic.multiprocessing.api: [WARNING] Unable to "
     "shutdown process 776 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
     "level=warn fact=stop_sent pid=776 signal=9"},
    {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 3 "
     "(pid: 812917) of binary: /usr/bin/python3",
     "level=error fact=exit exitcode=-9 local_rank=3 pid=812917 reason=agent"},
    {"[2]: time : 2024-09-01_22:28:32 host : algo-9 rank : 10 (local_rank: 2) exitcode : -6 (pid: "
     "760) error_file: <N/A> traceback : Signal 6 (SIGABRT) received by PID 760",
     "fact=exit rank=10 local_rank=2 exitcode=-6 pid=760 node=algo-9 time=2024-09-01T22:28:32"},
    {"Received Signals.SIGTERM death signal, shutting down workers",
     "fact=stop_received signal=15"},
    {"Received 15 death signal, shutting down workers", "fact=stop_received signal=15"},
    {"torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15",
     "fact=stop_received signal=15 pid=4242"},
    {"[default] Worker group FAILED. 2/3 attempts left; will restart worker group",
     "fact=attempt attempt=2 reason=restart"},
    {"the closing signal of the talk", ""},
    {NULL, NULL}};

const struct fr_format fr_format_torchrun = {.name = "torchrun",
                                             .summary = "torchrun's agent: stops, exits, restarts",
                                             .literals = literals,
                                             .facts = facts,
                                             .samples = samples};
