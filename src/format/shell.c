/* SPDX-License-Identifier: Apache-2.0 */
/* shell: what a shell says when a command died of a signal, and what processes say when they are
 * told to stop. */
#include "format/dialect.h"

static const char *const deaths[] = {"Segmentation fault",
                                     "Killed",
                                     "Aborted",
                                     "Bus error",
                                     "Floating point exception",
                                     "Illegal instruction",
                                     "Terminated",
                                     "Trace/breakpoint trap",
                                     NULL};

/* "FILE: line 28:  8156 Killed                  python3 main.py", "bash: line 1: 2552038
 * Segmentation fault      (core dumped) cmd" */
static bool script_death(struct fr_draft *d, fr_sv text)
{
    fr_sv at, word;
    uint64_t line = 0, pid = 0;
    if (!fr_lex_find(text, ": line ", &at) || !fr_lex_digits(&at, 1, 9, &line) ||
        !fr_lex_char(&at, ':') || fr_lex_spaces(&at) == 0) {
        return false;
    }
    bool has_pid = fr_lex_digits(&at, 1, 10, &pid) && fr_lex_spaces(&at) > 0;
    for (const char *const *w = deaths; *w != NULL; w++) {
        if (!fr_sv_starts(at, fr_sv_z(*w))) {
            continue;
        }
        word = fr_sv_head(at, strlen(*w));
        at = fr_sv_skip(at, word.n);
        if (at.n > 0 && !fr_sv_starts(at, FR_SV("  ")) && !fr_sv_starts(at, FR_SV(" (core"))) {
            return false; /* the shell pads the word */
        }
        fr_lex_spaces(&at);
        (void)fr_lex_lit(&at, "(core dumped)");
        if (has_pid) {
            fr_draft_num(d, FR_KEY_PID, (int64_t)pid, FR_SV_NONE);
        }
        fr_draft_num(d, FR_KEY_EXITCODE, -fr_signal_number(word), word);
        fr_draft_text(d, FR_KEY_MODULE, fr_sv_trim(at));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("shell"));
        return true;
    }
    return false;
}

/* "Segmentation fault (core dumped)" alone on the line: an interactive shell's or srun's own word.
 */
static bool bare_death(struct fr_draft *d, fr_sv text)
{
    fr_sv at = fr_sv_trim(text);
    if (!fr_sv_ends(at, FR_SV(" (core dumped)")) || fr_signal_number(at) == 0) {
        return false;
    }
    fr_draft_num(d, FR_KEY_EXITCODE, -fr_signal_number(at), at);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("shell"));
    return true;
}

/* "Received SIGTERM: 15" (Lightning), "Received signal 15, ...", "caught SIGTERM", "exiting program
 * after receiving SIGTERM." (Megatron) */
static bool told_to_stop(struct fr_draft *d, fr_sv text)
{
    static const char *const words[] = {"Received SIG",
                                        "received SIG",
                                        "eceived signal SIG",
                                        "aught SIG",
                                        "Got SIG",
                                        "got SIG",
                                        "Bypassing SIG",
                                        "after receiving SIG",
                                        "Handling SIG",
                                        "handling signal: SIG",
                                        NULL};
    fr_sv at, name;
    int64_t number = 0;
    for (const char *const *w = words; *w != NULL; w++) {
        if (fr_lex_after(text, fr_sv_z(*w), &at) && fr_lex_name(&at, &name)) {
            while (name.n > 0 && !fr_is_word(name.p[name.n - 1])) {
                name.n--;
            }
            number = fr_signal_number(name);
            break;
        }
    }
    fr_sv printed;
    if (number == 0 && fr_lex_num_after(text, FR_SV("Received signal: "), &number, &printed)) {
        number = number > 0 && number < 65 ? number : 0;
    }
    if (number == 0 || number == 18) { /* "got SIGCONT" is srun clearing its throat */
        return false;
    }
    d->fact = FR_FACT_STOP_RECEIVED;
    fr_draft_num(d, FR_KEY_SIGNAL, number, FR_SV_NONE);
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_EXIT);
    return d != NULL &&
           (script_death(d, rec->text) || bare_death(d, rec->text) || told_to_stop(d, rec->text));
}

static const char *const literals[] = {" Killed  ",
                                       " Segmentation fault  ",
                                       " Aborted  ",
                                       " Bus error  ",
                                       " Floating point exception  ",
                                       " Illegal instruction  ",
                                       " Terminated  ",
                                       "(core dumped)",
                                       "eceived SIG",
                                       "eceived signal",
                                       "aught SIG",
                                       "Got SIG",
                                       "Bypassing SIG",
                                       "receiving SIG",
                                       "andling SIG",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"/var/spool/slurmd/job00007/slurm_script: line 28:  8156 Killed                  python3 "
     "fit.py --lr 1",
     "fact=exit pid=8156 exitcode=-9 reason=shell module=\"python3 fit.py --lr 1\""},
    {"bash: line 1: 2552038 Segmentation fault      (core dumped) /opt/venv/bin/python seg.py",
     "fact=exit pid=2552038 exitcode=-11"},
    {"run.sh: line 3:    77 Aborted                 (core dumped) ./a",
     "fact=exit pid=77 exitcode=-6 module=./a"},
    {"Segmentation fault (core dumped)", "fact=exit exitcode=-11"},
    {"[rank: 0] Received SIGTERM: 15", "rank=0 fact=stop_received signal=15"},
    {"Bypassing SIGTERM: 15", "fact=stop_received signal=15"},
    {"exiting program after receiving SIGTERM.", "fact=stop_received signal=15"},
    {"srun: got SIGCONT", ""},
    {"a file: line 3: Killed is a word", ""},
    {NULL, NULL}};

const struct fr_format fr_format_shell = {
    .name = "shell",
    .summary = "shells reporting dead commands; processes told to stop",
    .literals = literals,
    .facts = facts,
    .samples = samples};
