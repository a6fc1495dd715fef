/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor: sentences in which a parent of one's own tells how its child ended: "worker 1 pid 28011 ended, code -6", "rank 2 exited with
 * code 1", "process 3 (pid 88) died: exit code -9". The word says what its number counts. */
#include "format/dialect.h"

enum { NEAR = 60 }; /* bytes between the number and what became of it */

static const char *const verbs[] = {"exited", "ended", "died", "crashed", "terminated", "failed", "finished", "exit", NULL};
static const char *const codes[] = {"exit code", "exitcode", "exit status", "returncode", "return code", "code", "status", NULL};

/* The first of the words in s; *ret is what follows it. */
static bool first_of(fr_sv s, const char *const *words, fr_sv *ret)
{
    size_t best = FR_NPOS;
    for (; *words != NULL; words++) {
        fr_sv word = fr_sv_z(*words);
        size_t at = fr_sv_find_ci(s, word);
        bool whole = at != FR_NPOS && (at == 0 || !fr_is_word(s.p[at - 1])) && !fr_is_word(fr_lex_peek(s, at + word.n));
        if (whole && at < best) {
            best = at;
            *ret = fr_sv_skip(s, at + word.n);
        }
    }
    return best != FR_NPOS && best < NEAR;
}

/* "worker 1", "rank=2", "Process #3": moves *s behind the number. */
static bool take_child(fr_sv *s, enum fr_key *ret_key, int32_t *ret_number)
{
    static const struct { const char *word; enum fr_key key; } children[] = {
        {"rank", FR_KEY_RANK},   {"worker", FR_KEY_TASK}, {"process", FR_KEY_TASK}, {"proc", FR_KEY_TASK},
        {"child", FR_KEY_TASK},  {"trainer", FR_KEY_TASK}, {"replica", FR_KEY_TASK}, {"task", FR_KEY_TASK}};
    for (size_t i = 0; i < sizeof children / sizeof *children; i++) {
        const char *one[] = {children[i].word, NULL};
        fr_sv at;
        if (!first_of(*s, one, &at)) {
            continue;
        }
        while (at.n > 0 && memchr(" =:#[", at.p[0], 5) != NULL) {
            at = fr_sv_skip(at, 1);
        }
        if (fr_lex_index(&at, ret_number) && !fr_is_word(fr_lex_peek(at, 0)) && fr_lex_peek(at, 0) != '.') {
            *ret_key = children[i].key;
            *s = at;
            return true;
        }
    }
    return false;
}

static bool take_code(fr_sv s, int64_t *ret)
{
    fr_sv at;
    if (!first_of(s, codes, &at)) {
        return false;
    }
    while (at.n > 0 && memchr(" =:(", at.p[0], 4) != NULL) {
        at = fr_sv_skip(at, 1);
    }
    return fr_lex_int(&at, ret) && *ret >= -64 && *ret <= 255 && !fr_is_word(fr_lex_peek(at, 0));
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret, int max)
{
    fr_sv at = rec->text, rest;
    enum fr_key key = FR_KEY_OTHER;
    int32_t number = -1;
    int64_t code = 0;
    (void)ctx;
    if (!take_child(&at, &key, &number) || !first_of(at, verbs, &rest) || !take_code(rest, &code)) {
        return 0;
    }
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_EXIT);
    if (d == NULL) {
        return 0;
    }
    fr_draft_num(d, key, number, FR_SV_NONE);
    (void)fr_draft_num_after(d, FR_KEY_PID, at, FR_SV("pid "));
    fr_draft_num(d, FR_KEY_EXITCODE, code, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_REASON, FR_SV("supervisor"));
    return 1;
}

static const char *const literals[] = {"ended, code", "ended with code", "exited with code", "exited, code", "exited: code", "died with code", "exit code",
                                       "exitcode", "exit status", "returncode", NULL};

static const struct fr_format_sample samples[] = {
    {"supervisor worker 1 pid 28011 ended, code -6", "fact=exit task=1 pid=28011 exitcode=-6 reason=supervisor"},
    {"2026-03-09 10:00:00 [launcher] rank 2 exited with code 1", "fact=exit rank=2 exitcode=1"},
    {"process 3 (pid 88) died: exit code -9", "fact=exit task=3 pid=88 exitcode=-9"},
    {"worker=0 finished, returncode=0", "fact=exit task=0 exitcode=0"},
    {"rank 2 of the group writes its exit code to a file", ""},
    {"the launcher exited with code 1", ""},
    {"worker 3.5 exited with code 1", ""},
    {NULL, NULL}};

const struct fr_format fr_format_supervisor = {.name = "supervisor",
                                               .summary = "sentences about a child's end: worker 1 exited with code -6",
                                               .literals = literals,
                                               .facts = facts,
                                               .samples = samples};
