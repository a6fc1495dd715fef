/* SPDX-License-Identifier: Apache-2.0 */
/* sacct: rows of Slurm's accounting, fixed width or parsable: a state word and an exit code
 * "code:signal". */
#include "format/dialect.h"

static const struct {
    const char *word, *reason;
} states[] = {{"OUT_OF_MEMORY", "oom"},  {"OUT_OF_ME+", "oom"},       {"NODE_FAIL", "node-failure"},
              {"TIMEOUT", "time-limit"}, {"PREEMPTED", "preemption"}, {"BOOT_FAIL", "node-failure"},
              {"REQUEUED", "requeue"},   {"DEADLINE", "time-limit"},  {"CANCELLED", "cancelled"},
              {"FAILED", "failed"},      {"COMPLETED", "completed"}};

/* "1:0", "0:9" in its own field. */
static bool take_exit(fr_sv text, int64_t *ret_code, int64_t *ret_signal)
{
    for (size_t i = 1; i + 1 < text.n; i++) {
        if (text.p[i] != ':' || !fr_is_digit(text.p[i - 1])) {
            continue;
        }
        size_t begin = i;
        while (begin > 0 && fr_is_digit(text.p[begin - 1])) {
            begin--;
        }
        fr_sv code = fr_sv_skip(text, begin), signal = fr_sv_skip(text, i + 1);
        bool starts = begin == 0 || fr_is_space(text.p[begin - 1]) || text.p[begin - 1] == '|';
        if (!starts || !fr_lex_int(&code, ret_code) || !fr_lex_int(&signal, ret_signal)) {
            continue;
        }
        if ((signal.n == 0 || fr_is_space(signal.p[0]) || signal.p[0] == '|') && *ret_code < 256 &&
            *ret_signal >= 0 && *ret_signal < 128) {
            return true;
        }
    }
    return false;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_SCHEDULER);
    fr_sv job = rec->text, text = rec->text;
    int64_t code = 0, signal = 0;
    uint64_t number = 0;
    fr_lex_spaces(&job);
    const char *begin = job.p;
    if (d == NULL || !fr_lex_digits(&job, 1, 12, &number) || !take_exit(text, &code, &signal)) {
        return 0;
    }
    while (job.n > 0 && (fr_is_word(job.p[0]) || job.p[0] == '.' || job.p[0] == '+')) {
        job = fr_sv_skip(job, 1);
    }
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        size_t at = fr_sv_find(text, fr_sv_z(states[i].word));
        if (at == FR_NPOS || at == 0 || (!fr_is_space(text.p[at - 1]) && text.p[at - 1] != '|')) {
            continue;
        }
        fr_draft_text(d, FR_KEY_JOB, fr_sv_range(begin, job.p));
        fr_draft_num(d, FR_KEY_EXITCODE, signal != 0 && signal < 65 ? -signal : code, FR_SV_NONE);
        fr_draft_text(d, FR_KEY_REASON, fr_sv_z(states[i].reason));
        return 1;
    }
    return 0;
}

static const char *const literals[] = {"OUT_OF_ME", "NODE_FAIL", " TIMEOUT ", "|TIMEOUT|",
                                       "PREEMPTED", "BOOT_FAIL", "REQUEUED",  "CANCELLED by",
                                       " FAILED ",  "|FAILED|",  NULL};

static const struct fr_format_sample samples[] = {
    {"12345.0          fit            gpu   OUT_OF_ME+    0:125",
     "fact=scheduler job=12345.0 reason=oom exitcode=0"},
    {"12345|fit|NODE_FAIL|1:0|", "fact=scheduler job=12345 reason=node-failure exitcode=1"},
    {"12345.batch        batch              FAILED      0:9",
     "fact=scheduler job=12345.batch reason=failed exitcode=-9"},
    {"12345|fit|CANCELLED by 1000|0:15|", "fact=scheduler reason=cancelled exitcode=-15"},
    {"train.py FAILED ", ""},
    {NULL, NULL}};

const struct fr_format fr_format_sacct = {.name = "sacct",
                                          .summary = "Slurm accounting rows",
                                          .literals = literals,
                                          .facts = facts,
                                          .samples = samples};
