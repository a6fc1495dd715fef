/* SPDX-License-Identifier: Apache-2.0 */
/* done: a rank or a run says that it has finished. Whoever falls silent after
 * that is no suspect, so "finished epoch 3", "until training is complete" and a
 * sentence inside quotes must not count; and neither does what trackers print
 * however a run ends ("wandb: Synced"). */
#include "format/dialect.h"

/* Fixed texts of programs: nothing around them can change what they say. */
static const struct {
    const char *literal, *reason;
} fixed[] = {{"[after training is done]", "complete"},
             {"'train_runtime': ", "complete"},
             {"***** train metrics *****", "complete"},
             {"`Trainer.fit` stopped: ", "limit"},
             {"exiting program at iteration", "limit"},
             {"[exiting program after ", "limit"},
             {"worker group successfully finished", "complete"},
             {"worker group finished (WorkerState.SUCCEEDED)", "complete"},
             {"Program ended successfully", "complete"},
             {"done training in ", "complete"},
             {"epochs completed in ", "complete"},
             {"otal training time", "complete"},
             {"Process finished with exit code 0", "complete"}};

/* Sentences of people. */
static const char *const sentences[] = {"raining complete",
                                        "raining is complete",
                                        "raining finished",
                                        "raining completed",
                                        "raining is done",
                                        "raining is finished",
                                        "raining has finished",
                                        "raining Complete",
                                        "raining done",
                                        "raining: done",
                                        "raining run complete",
                                        "inished training",
                                        "ompleted training",
                                        "one training",
                                        "un finished",
                                        "un completed",
                                        "rocess finished",
                                        "ll epochs done",
                                        "ll epochs completed",
                                        "ll epochs finished",
                                        "inished all epochs",
                                        "ompleted all epochs",
                                        "all done",
                                        "All done",
                                        "arly stop:",
                                        "arly stop at ",
                                        "arly stopping triggered",
                                        "arly stopping: no improvement",
                                        "topping early",
                                        "ob completed successfully",
                                        "ob finished successfully"};

static bool ends_with_any(fr_sv s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_ends(s, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

static bool starts_with_any(fr_sv s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_starts(s, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

/* What stands before and behind the sentence lets it mean the whole run, and
 * now. */
static bool is_whole(fr_sv head, fr_sv tail)
{
    static const char *const not_yet[] = {"until ", "when ", "after ", "once ",  "before ", "for ",
                                          "not ",   "if ",   "while ", "never ", "be ",     "'",
                                          "\"",     "pre-",  "(\"T",   "('T",    "\"T",     "'T",
                                          "un",     "re-",   NULL};
    static const char *const parts[] = {
        " epoch",          " for epoch", " step",  " batch",  " on batch", " iter", " stage",
        " with status",    " fold",      " round", " sample", " phase",    " data", " reduction",
        " with exit code", " load",      "\")",    "')",      NULL};
    fr_sv word = head; /* the rest of the word that the literal cut: "t", "T", "pre-t" */
    while (word.n > 0 && fr_is_alpha(word.p[word.n - 1])) {
        word.n--;
    }
    (void)fr_lex_lit(&tail, "d");
    if (ends_with_any(word, not_yet) || starts_with_any(tail, parts) ||
        fr_sv_has(head, FR_SV("poch ")) || fr_sv_has(head, FR_SV("poch: "))) {
        return false;
    }
    (void)fr_lex_lit(&tail, ": ");
    fr_lex_spaces(&tail);
    size_t digits = 0;
    while (digits < tail.n && fr_is_digit(tail.p[digits])) {
        digits++;
    }
    return digits == 0 || fr_lex_peek(tail, digits) != '%';
}

/* "finished 3 epochs", "Completed all 10 epochs" */
static bool so_many_epochs(fr_sv text)
{
    static const char *const verbs[] = {"inished ", "ompleted ", NULL};
    for (const char *const *v = verbs; *v != NULL; v++) {
        fr_sv at;
        uint64_t n = 0;
        if (!fr_lex_after(text, fr_sv_z(*v), &at)) {
            continue;
        }
        (void)fr_lex_lit(&at, "all ");
        if (fr_lex_digits(&at, 1, 6, &n) &&
            (fr_lex_lit(&at, " epochs") || fr_lex_lit(&at, " epoch"))) {
            fr_sv rest = fr_sv_trim(at);
            return rest.n == 0 || !(fr_is_digit(rest.p[0]) || fr_sv_starts(rest, FR_SV("of ")) ||
                                    fr_sv_starts(rest, FR_SV("so far")));
        }
    }
    return false;
}

/* "finished after 2000 steps" and nothing more */
static bool after_so_many(fr_sv text)
{
    static const char *const units[] = {" steps", " iterations", " iters", " epochs", " batches", NULL};
    fr_sv at;
    uint64_t n = 0;
    if (!fr_lex_after(text, FR_SV("inished after "), &at) || !fr_lex_digits(&at, 1, 9, &n)) {
        return false;
    }
    for (const char *const *u = units; *u != NULL; u++) {
        fr_sv rest = at;
        if (fr_sv_take(&rest, fr_sv_z(*u)) && (rest.n == 0 || fr_sv_eq(rest, FR_SV(".")))) {
            return !fr_sv_has(text, FR_SV("poch ")) && !fr_sv_has(text, FR_SV("valuation"));
        }
    }
    return false;
}

/* "rank 3 finished", "Rank 3: done." and nothing more */
static bool rank_ends(fr_sv text)
{
    static const char *const ends[] = {" finished",       " done",      " exiting cleanly",
                                       " exited cleanly", " completed", NULL};
    fr_sv at = text;
    int32_t rank = -1;
    if ((!fr_lex_lit(&at, "rank ") && !fr_lex_lit(&at, "Rank ")) || !fr_lex_index(&at, &rank)) {
        return false;
    }
    (void)fr_lex_char(&at, ':');
    while (at.n > 0 && (at.p[at.n - 1] == '.' || at.p[at.n - 1] == '!')) {
        at.n--;
    }
    for (const char *const *e = ends; *e != NULL; e++) {
        if (fr_sv_eq(at, fr_sv_z(*e))) {
            return true;
        }
    }
    return false;
}

static const char *reason_of(const struct fr_record *rec)
{
    fr_sv text = rec->text, tail;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fr_sv_has(text, fr_sv_z(fixed[i].literal))) {
            return fixed[i].reason;
        }
    }
    if (rec->level >= FR_LEVEL_ERROR || fr_sv_starts(text, FR_SV("    "))) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        size_t at = fr_sv_find(text, fr_sv_z(sentences[i]));
        if (at != FR_NPOS) {
            tail = fr_sv_skip(text, at + strlen(sentences[i]));
            return is_whole(fr_sv_head(text, at), tail) ? "complete" : NULL;
        }
    }
    return so_many_epochs(text) || after_so_many(text) || rank_ends(text) ? "complete" : NULL;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    const char *reason = reason_of(rec);
    struct fr_draft *d = reason == NULL ? NULL : fr_draft_begin(ret, 0, max, FR_FACT_DONE);
    if (d == NULL) {
        return 0;
    }
    fr_sv head = rec->text;
    int32_t rank = -1;
    if ((fr_lex_lit(&head, "rank ") || fr_lex_lit(&head, "Rank ")) && fr_lex_index(&head, &rank)) {
        fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_REASON, fr_sv_z(reason));
    return 1;
}

static const char *const literals[] = {"after training is done",
                                       "arly stop:",
                                       "arly stop at ",
                                       "arly stopping triggered",
                                       "arly stopping: no improvement",
                                        "arly stopping: no improvement",
                                       "topping early",
                                       "'train_runtime': ",
                                       "***** train metrics",
                                       "`Trainer.fit` stopped",
                                       "exiting program a",
                                       "successfully finished",
                                       "WorkerState.SUCCEEDED",
                                       "Program ended succ",
                                       "done training in ",
                                       "epochs completed in ",
                                       "otal training time",
                                       "Process finished",
                                       "process finished",
                                       "raining complete",
                                       "raining Complete",
                                       "raining is ",
                                       "raining finished",
                                       "raining has finished",
                                       "raining done",
                                       "raining: done",
                                       "raining run complete",
                                       "inished training",
                                       "ompleted training",
                                       "one training",
                                       "un finished",
                                       "un completed",
                                       "ll epochs ",
                                       "ed all epochs",
                                       "all done",
                                       "All done",
                                       " epochs",
                                       "ob completed succ",
                                       "ob finished succ",
                                       " finished",
                                       "inished after ",
                                       ": done",
                                       " exiting cleanly",
                                       " exited cleanly",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"2026-11-30 15:06:06,689 INFO [fit] rank 3 done: training complete",
     "fact=done rank=3 reason=complete"},
    {"{'train_runtime': 86.2749, 'train_loss': 0.26}", "fact=done"},
    {"`Trainer.fit` stopped: `max_steps=10` reached.", "fact=done reason=limit"},
    {"Training completed. Do not forget to share your model", "fact=done"},
    {"finished 3 epochs", "fact=done"},
    {"Completed all 10 epochs in 3 h", "fact=done"},
    {"300 epochs completed in 12.3 hours.", "fact=done"},
    {"Finished training", "fact=done"},
    {"early stopping: no improvement for 3 epochs, best 0.6484", "fact=done"},
    {"Early stopping: patience 3", ""},
    {"run finished", "fact=done"},
    {"Process finished", "fact=done"},
    {"all epochs done", "fact=done"},
    {"rank 3 finished", "fact=done rank=3"},
    {"Rank 1: done.", "fact=done rank=1"},
    {"[default] worker group successfully finished. Waiting 300 seconds for "
     "other agents to finish.",
     "fact=done"},
    {"wandb: Program ended successfully.", "fact=done"},
    {"Training is done in 12 min", "fact=done"},
    {"training finished at step 3600", "fact=done"},
    {"wandb: Synced 5 W&B file(s), 0 media file(s)", ""},
    {"finished epoch 3", ""},
    {"finished after 2000 steps", "fact=done"},
    {"evaluation finished after 200 steps", ""},
    {"Epoch 3 finished after 200 steps", ""},
    {"finished after 3 retries", ""},
    {"finished 3 epochs of 10", ""},
    {"finished loading", ""},
    {"Finished training epoch 3", ""},
    {"Epoch 3: training complete", ""},
    {"Training complete: 30%", ""},
    {"do not stop me until training is complete", ""},
    {"    print(\"Training complete\")", ""},
    {"Process finished with exit code 1", ""},
    {"Expected to have finished reduction in the prior iteration before "
     "starting a new one.",
     ""},
    {"rank 3 finished epoch 2", ""},
    {"Trial 3 finished with value: 0.8407", ""},
    {"for all epochs we plot", ""},
    {NULL, NULL}};

const struct fr_format fr_format_done = {.name = "done",
                                         .summary = "a rank or a run says that it has finished",
                                         .literals = literals,
                                         .facts = facts,
                                         .samples = samples};
