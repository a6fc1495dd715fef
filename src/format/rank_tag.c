/* SPDX-License-Identifier: Apache-2.0 */
/* rank_tag: "[rank3]: " of torch's exception hook and c10d (global rank),
 * "[RANK 3] ", "[rank: 3] " of Lightning, "rank:  3 | " of ParlAI.
 * "[rank3]:" with text right behind it that is no c10d prefix is torchrun's tee
 * prefix with --role rank: a local rank. */
#include "format/dialect.h"

static bool is_c10(fr_sv at)
{
    return fr_lex_peek(at, 0) == '[' && fr_level_letter(fr_lex_peek(at, 1)) != FR_LEVEL_NONE &&
           (fr_lex_peek(at, 2) == ' ' || fr_is_digit(fr_lex_peek(at, 2)));
}

/* The hook puts one space before each line, the tee prefix none: "[rank0]:
 * File" is a teed frame,
 * "[rank0]:   File" a hooked one. */
static bool is_hook(fr_sv at)
{
    return fr_lex_peek(at, 0) == ' ' && !fr_sv_starts(at, FR_SV("  File \""));
}

static bool peel_tag(struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, 5);
    int32_t rank = -1;
    if (!fr_lex_index(&at, &rank) || !fr_lex_char(&at, ']')) {
        return false;
    }
    if (!fr_lex_char(&at, ':')) {
        if (at.n > 0 && at.p[0] != ' ') {
            return false;
        }
        rec->who.rank = rank;
        fr_rec_move(rec, at);
        return true;
    }
    if (is_c10(at) || is_hook(at)) {
        rec->who.rank = rank;
        fr_rec_move(rec, at);
    } else {
        rec->who.local_rank = rank;
        rec->text = at;
    }
    return true;
}

/* "[RANK 3] text", "[RANK3] text", "[rank: 3] text", "[rank 3] text", "[Global
 * Rank 3] text", "[] [rank=3] text" of Determined, where the container has no name */
static bool peel_words(struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, fr_sv_starts(rec->text, FR_SV("[] [")) ? 4 : 1);
    int32_t rank = -1;
    if (!fr_lex_lit(&at, "rank: ") && !fr_lex_lit(&at, "rank=") && !fr_lex_lit(&at, "rank ") &&
        !fr_lex_lit(&at, "RANK ") && !fr_lex_lit(&at, "RANK") && !fr_lex_lit(&at, "Global Rank ") &&
        !fr_lex_lit(&at, "rank:") && !fr_lex_lit(&at, "rank-")) {
        return false;
    }
    if (!fr_lex_index(&at, &rank) || !fr_lex_char(&at, ']')) {
        return false;
    }
    (void)fr_lex_char(&at, ':');
    if (at.n > 0 && at.p[0] != ' ' && at.p[0] != '[') {
        return false;
    }
    rec->who.rank = rank;
    fr_rec_move(rec, at);
    return true;
}

/* "Rank 1: text", "rank=1 text", "rank: 1 text" right behind the header of a
 * logging line, "rank=1 text" also right behind a bare stamp: its speaker. What goes on
 * with a size or says nothing more is a sentence about ranks. */
static bool peel_speaker(struct fr_record *rec)
{
    static const char *const sentences[] = {"world", "WORLD", "local",     "of ", "is ",
                                            "has ",  "pid",   "Completed", NULL};
    fr_sv at = rec->text;
    int32_t rank = -1;
    bool stamped =
        rec->when.basis != FR_TIME_BASIS_NONE || rec->outer.basis != FR_TIME_BASIS_NONE;
    if ((rec->level == FR_LEVEL_NONE && !stamped) || rec->who.rank >= 0 || rec->is_kernel) {
        return false;
    }
    bool keyed = fr_lex_lit(&at, "rank=") || fr_lex_lit(&at, "rank: ");
    if (rec->level == FR_LEVEL_NONE && !keyed) {
        return false;
    }
    if ((!keyed && !fr_lex_lit(&at, "rank ") && !fr_lex_lit(&at, "Rank ") &&
         !fr_lex_lit(&at, "RANK ")) ||
        !fr_lex_index(&at, &rank)) {
        return false;
    }
    bool ended = fr_lex_char(&at, ':') || fr_lex_lit(&at, " |") || fr_lex_lit(&at, " -") || keyed;
    if (!ended || fr_lex_peek(at, 0) != ' ' || at.n < 3) {
        return false;
    }
    for (const char *const *w = sentences; *w != NULL; w++) {
        if (fr_sv_starts(fr_sv_skip(at, 1), fr_sv_z(*w))) {
            return false;
        }
    }
    rec->who.rank = rank;
    fr_rec_move(rec, at);
    return true;
}

/* "rank:  3 | 2025-01-02 03:04:05,678 ..." of ParlAI: a column before the header of a logging line. */
static bool peel_column(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, stamp;
    int32_t rank = -1;
    struct fr_when when;
    if (rec->who.rank >= 0 || !fr_lex_lit(&at, "rank:") || fr_lex_spaces(&at) > 3 || !fr_lex_index(&at, &rank) ||
        !fr_lex_lit(&at, " | ")) {
        return false;
    }
    stamp = at;
    if (!fr_stamp_any(&stamp, ctx->year, &when)) {
        return false;
    }
    rec->who.rank = rank;
    rec->text = at;
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    if (rec->text.p[0] != '[') {
        return (rec->text.p[0] | 0x20) == 'r' && (peel_speaker(rec) || peel_column(ctx, rec));
    }
    if (fr_sv_starts(rec->text, FR_SV("[rank")) && fr_is_digit(fr_lex_peek(rec->text, 5))) {
        return peel_tag(rec);
    }
    return peel_words(rec);
}

static const struct fr_format_sample samples[] = {
    {"[rank7]: Traceback (most recent call last):",
     "rank=7 local_rank=- text=\"Traceback (most recent call last):\""},
    {"[rank7]:     loss = model(x)", "rank=7 text=\"    loss = model(x)\""},
    {"[rank0]:[rank9]: KeyError: 'y'", "local_rank=0 rank=9"},
    {"[rank0]:  File \"a.py\", line 1, in f",
     "local_rank=0 rank=- text=\"  File \\\"a.py\\\", line 1, in f\""},
    {"[rank0]:[titan] 2026-01-02 03:04:05,123 - root - INFO - step: 10  loss:  "
     "7.1",
     "local_rank=0 rank=- level=info time=2026-01-02T03:04:05.123 text=\"step: "
     "10  loss:  7.1\""},
    {"[rank1]:  Original exception:", "rank=1 local_rank=-"},
    {"[] [rank=2] RuntimeError: text", "rank=2 text=\"RuntimeError: text\""},
    {"2025-01-02 03:04:05 [rank6]: KeyError: 'y'",
     "rank=6 time=2025-01-02T03:04:05 text=\"KeyError: 'y'\""},
    {"[RANK 1] loading", "rank=1 text=loading"},
    {"[rank: 5] Received SIGTERM: 15", "rank=5 text=\"Received SIGTERM: 15\""},
    {"[2025-01-02 03:04:05,678][rank 1][INFO] epoch 3", "rank=1 level=info text=\"epoch 3\""},
    {"[rank-4] Exception in thread prefetch-1:", "rank=4 text=\"Exception in thread prefetch-1:\""},
    {"[Rank 5] Some NCCL operations have failed", "rank=- pg_rank=5"},
    {"2025-01-02 03:04:05,678 - train - INFO - Rank 1: epoch 3", "rank=1 text=\"epoch 3\""},
    {"INFO:train:rank=2 step=10 loss=1.5", "rank=2 text=\"step=10 loss=1.5\""},
    {"2025-01-02 03:04:05 [INFO] [rank 1] epoch 3", "rank=1 text=\"epoch 3\""},
    {"2025-01-02T03:04:05.6Z rank=2 2025-01-02 03:04:05.5 | INFO     | engine:fit:60 - begin",
     "rank=2 level=info text=begin"},
    {"2025-01-02T03:04:05.6Z rank 2 of the group left", "rank=-"},
    {"INFO:train:rank=2 world_size=4", "rank=- text=\"rank=2 world_size=4\""},
    {"INFO:train:Rank 5 is ready", "rank=- text=\"Rank 5 is ready\""},
    {"rank 1: no header", "rank=- text=\"rank 1: no header\""},
    {"rank:  3 | 2025-01-02 03:04:05,678 INFO | epoch 3", "rank=3 level=info time=2025-01-02T03:04:05.678 text=\"epoch 3\""},
    {"rank: 3 | 12 | 41", "rank=-"},
    {"[ranked] list", "rank=-"},
    {NULL, NULL}};

const struct fr_format fr_format_rank_tag = {.name = "rank_tag",
                                             .summary = "[rank3]: (global rank), [RANK 3], Rank 3:",
                                             .peel = peel,
                                             .samples = samples};
