/* SPDX-License-Identifier: Apache-2.0 */
/* progress: where a run stands, in its own words: it begins, resumes, saves, evaluates, compiles.
 * These lines decide whether a time-out hit a rank that was busy elsewhere, and which checkpoint is
 * good. */
#include "format/dialect.h"

enum { STEP_NONE, STEP_ITERATION, STEP_CHECKPOINT };

static const struct {
    const char *literal;
    uint8_t fact;
    const char *reason;
} words[] = {
    /* checkpoints */
    {"successfully saved checkpoint", FR_FACT_CHECKPOINT, "saved"},
    {"saving checkpoint at iteration", FR_FACT_CHECKPOINT, "saving"},
    {"Saving model checkpoint to", FR_FACT_CHECKPOINT, "saving"},
    {"Saved checkpoint", FR_FACT_CHECKPOINT, "saved"},
    {"saved checkpoint", FR_FACT_CHECKPOINT, "saved"},
    {"Checkpoint saved", FR_FACT_CHECKPOINT, "saved"},
    {"checkpoint saved", FR_FACT_CHECKPOINT, "saved"},
    {"[Torch] Saved ", FR_FACT_CHECKPOINT, "saved"},
    {"[Torch] Saving ", FR_FACT_CHECKPOINT, "saving"},
    {"Finished saving the checkpoint", FR_FACT_CHECKPOINT, "saved"},
    {"Saving the checkpoint", FR_FACT_CHECKPOINT, "saving"},
    {"Saving checkpoint", FR_FACT_CHECKPOINT, "saving"},
    {"saving checkpoint", FR_FACT_CHECKPOINT, "saving"},
    {"Start saving model checkpoint", FR_FACT_CHECKPOINT, "saving"},
    {"Saving model and optimizer state", FR_FACT_CHECKPOINT, "saving"},
    {"loaded checkpoint from", FR_FACT_CHECKPOINT, "loaded"},
    {"Resuming from checkpoint", FR_FACT_CHECKPOINT, "loaded"},
    {"Resuming training from", FR_FACT_CHECKPOINT, "loaded"},
    {"Continuing training from global step", FR_FACT_CHECKPOINT, "loaded"},
    {"Resumed from", FR_FACT_CHECKPOINT, "loaded"},
    /* begins */
    {"Setting OMP_NUM_THREADS environment variable", FR_FACT_START, "torchrun"},
    {"***** Running training *****", FR_FACT_START, "trainer"},
    {"[before the start of training step]", FR_FACT_START, "megatron"},
    {"Starting training", FR_FACT_START, "program"},
    {"[runner.py:", FR_FACT_START, "deepspeed"},
    /* busy with something that is no step */
    {"***** Running Evaluation *****", FR_FACT_PHASE, "evaluating"},
    {"***** Running Prediction *****", FR_FACT_PHASE, "evaluating"},
    {"Running tokenizer on", FR_FACT_PHASE, "tokenising"},
    {"Map (num_proc=", FR_FACT_PHASE, "tokenising"},
    {"Generating train split", FR_FACT_PHASE, "preparing-data"},
    {"building train, validation, and test datasets", FR_FACT_PHASE, "preparing-data"},
    {"compiling dataset index builder", FR_FACT_PHASE, "compiling"},
    {"compiling and loading fused kernels", FR_FACT_PHASE, "compiling"},
    {"Capturing CUDA graphs", FR_FACT_PHASE, "compiling"},
    {"Compiling model", FR_FACT_PHASE, "compiling"},
    {"Loading checkpoint shards", FR_FACT_PHASE, "loading"},
    {" > loading checkpoint from", FR_FACT_PHASE, "loading"},
    {"writing cache", FR_FACT_PHASE, "writing-cache"},
    {"Sanity Checking", FR_FACT_PHASE, "evaluating"},
    {"building indices", FR_FACT_PHASE, "preparing-data"},
    {"Starting evaluation", FR_FACT_PHASE, "evaluating"},
    {"Running validation", FR_FACT_PHASE, "evaluating"},
    {"begin to consolidate", FR_FACT_PHASE, "saving"},
    {"Uploading checkpoint", FR_FACT_PHASE, "uploading"}};

static void take_step(struct fr_draft *d, fr_sv text)
{
    static const char *const before[] = {
        "at iteration ", "iteration ",  "global step ", "global_step", "at step ", "step=",
        "step ",         "checkpoint-", "iter_",        "@ ",          NULL};
    for (const char *const *b = before; *b != NULL; b++) {
        fr_sv at;
        int64_t step = 0;
        if (!fr_lex_after(text, fr_sv_z(*b), &at)) {
            continue;
        }
        fr_lex_spaces(&at);
        if (fr_lex_int(&at, &step) && step >= 0) {
            fr_draft_num(d, FR_KEY_STEP, step, FR_SV_NONE);
            return;
        }
    }
}

/* The first word with a slash, or behind " to " / " from ". */
static void take_path(struct fr_draft *d, fr_sv text)
{
    fr_sv at = text, word;
    while (fr_lex_spaces(&at), fr_lex_token(&at, &word)) {
        size_t slash = fr_sv_chr(word, '/');
        if (slash != FR_NPOS && word.n > 3 && !fr_is_digit(word.p[0])) {
            while (word.n > 0 && strchr(".,;:)'\"", word.p[word.n - 1]) != NULL) {
                word.n--;
            }
            fr_draft_text(d, FR_KEY_PATH, word);
            return;
        }
    }
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    fr_sv text = rec->text;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct fr_draft *d = fr_draft_begin(ret, 0, max, (enum fr_fact)words[i].fact);
        fr_sv tail;
        if (d == NULL || !fr_lex_after(text, fr_sv_z(words[i].literal), &tail)) {
            continue;
        }
        if (words[i].fact == FR_FACT_CHECKPOINT) {
            bool failed = fr_sv_has(text, FR_SV("ailed"));
            take_step(d, text);
            take_path(d, text);
            fr_draft_text(d, FR_KEY_REASON, failed ? FR_SV("failed") : fr_sv_z(words[i].reason));
            return 1;
        }
        fr_draft_text(d, FR_KEY_REASON, fr_sv_z(words[i].reason));
        return 1;
    }
    return 0;
}

static const char *const literals[] = {"saved checkpoint",
                                       "Saved checkpoint",
                                       "saving checkpoint",
                                       "Saving checkpoint",
                                       "Saving model checkpoint",
                                       "saving model checkpoint",
                                       "heckpoint saved",
                                       "[Torch] Sav",
                                       "aving the checkpoint",
                                       "Saving model and optimizer",
                                       "loaded checkpoint from",
                                       "Resuming from checkpoint",
                                       "Resuming training from",
                                       "Continuing training from",
                                       "Resumed from",
                                       "Setting OMP_NUM_THREADS",
                                       "***** Running ",
                                       "[before the start of",
                                       "Starting training",
                                       "[runner.py:",
                                       "Running tokenizer on",
                                       "Map (num_proc=",
                                       "Generating train split",
                                       "building train, validation",
                                       "compiling dataset index",
                                       "compiling and loading fused",
                                       "Capturing CUDA graphs",
                                       "Compiling model",
                                       "Loading checkpoint shards",
                                       "loading checkpoint from",
                                       "writing cache",
                                       "Sanity Checking",
                                       "building indices",
                                       "Starting evaluation",
                                       "Running validation",
                                       "begin to consolidate",
                                       "Uploading checkpoint",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"  successfully saved checkpoint from iteration    1500 to /data/run7/ckpt [ t 1/1 ]",
     "fact=checkpoint reason=saved step=1500 path=/data/run7/ckpt"},
    {"saving checkpoint at iteration    1500 to /data/run7/ckpt in torch format",
     "fact=checkpoint reason=saving step=1500 path=/data/run7/ckpt"},
    {"Saving model checkpoint to out/run7/checkpoint-500",
     "fact=checkpoint reason=saving step=500 path=out/run7/checkpoint-500"},
    {"2020-03-23 12:03:37 | INFO | fairseq.checkpoint_utils | saved checkpoint ckpt/checkpoint2.pt "
     "(epoch 2 @ 695 updates, score 9.393)",
     "fact=checkpoint reason=saved step=695 path=ckpt/checkpoint2.pt"},
    {"failed to write: saved checkpoint is broken", "fact=checkpoint reason=failed"},
    {"Running tokenizer on dataset:   9%|##        | 280000/2969526 [29:55<4:48:08, 155.57 "
     "examples/s]",
     "fact=phase reason=tokenising"},
    {"***** Running Evaluation *****", "fact=phase reason=evaluating"},
    {"2026-11-30 15:06:06,689 INFO [fit] writing cache", "fact=phase reason=writing-cache"},
    {"***** Running training *****", "fact=start reason=trainer"},
    {"the checkpoint was old", ""},
    {NULL, NULL}};

const struct fr_format fr_format_progress = {.name = "progress",
                                             .summary = "start, checkpoints, phases",
                                             .literals = literals,
                                             .facts = facts,
                                             .samples = samples};
