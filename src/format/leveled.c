/* SPDX-License-Identifier: Apache-2.0 */
/* leveled: lines whose first word is the level: "INFO:name:text", "WARNING: text", "ERROR 08-14
 * 09:51:09 [core.py:284] text" (vLLM), "[INFO|date] place >> text" (transformers), "[NeMo W date
 * place] text", "submitit WARNING (date) - text",
 * "[titan] date - root - INFO - text". */
#include "format/dialect.h"

/* "[INFO|2025-01-02 03:04:05] name:12 >> text", "[WARNING|logging.py:290] 2023-11-04 02:38:30,787
 * >> text" */
static bool peel_transformers(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, 1), inside, arrow;
    struct fr_when when;
    uint8_t level = fr_level_take(&at);
    if (level == FR_LEVEL_NONE || !fr_lex_char(&at, '|') || !fr_lex_until(&at, ']', &inside) ||
        inside.n > 80) {
        return false;
    }
    if (fr_stamp_any(&inside, ctx->year, &when)) {
        rec->when = when;
    } else {
        fr_sv behind = at;
        fr_lex_spaces(&behind);
        if (fr_stamp_any(&behind, ctx->year, &when)) {
            rec->when = when;
            at = behind;
        }
    }
    if (fr_lex_find(fr_sv_head(at, 120), " >>", &arrow)) {
        at = fr_sv_skip(at, (size_t)(arrow.p - at.p));
    }
    rec->level = level;
    fr_rec_move(rec, at);
    return true;
}

/* "[NeMo W 2024-05-01 10:00:00 nemo_logging:349] text" */
static bool peel_nemo(struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, 6), inside;
    uint8_t level = fr_level_letter(fr_lex_peek(at, 0));
    if (level == FR_LEVEL_NONE || fr_lex_peek(at, 1) != ' ' || !fr_lex_until(&at, ']', &inside) ||
        inside.n > 120) {
        return false;
    }
    inside = fr_sv_skip(inside, 2);
    struct fr_when when;
    if (fr_stamp_iso(&inside, &when)) {
        rec->when = when;
    }
    rec->level = level;
    fr_rec_move(rec, at);
    return true;
}

static bool peel_bracket(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, 1);
    if (fr_lex_lit(&at, "NeMo ")) {
        return peel_nemo(rec);
    }
    if (fr_lex_lit(&at, "titan]") || fr_lex_lit(&at, "stderr]") || fr_lex_lit(&at, "stdout]")) {
        (void)fr_lex_char(&at, ':');
        fr_rec_move(rec, at);
        return true;
    }
    uint8_t level = fr_level_take(&at);
    if (level == FR_LEVEL_NONE) {
        return false;
    }
    if (fr_lex_peek(at, 0) == '|') {
        return peel_transformers(ctx, rec);
    }
    const size_t padding = fr_lex_spaces(&at);
    if (!fr_lex_char(&at, ']')) {
        return false;
    }
    (void)fr_lex_char(&at, ':');
    rec->level = level;
    fr_rec_move(rec, at);
    if (padding != 0) {
        fr_rec_bound(rec);
    }
    return true;
}

/* "INFO 01-02 03:04:05 [file.py:1] text", newer "INFO 01-02 03:04:05 [dir/file.py:1] text", "INFO
 * 2024-.. text" */
static bool take_vllm(const struct fr_peel_ctx *ctx, struct fr_record *rec, fr_sv *s)
{
    fr_sv at = *s, inside;
    struct fr_when when;
    if (fr_lex_spaces(&at) == 0 ||
        (!fr_stamp_month_day(&at, ctx->year, &when) && !fr_stamp_iso(&at, &when))) {
        return false;
    }
    rec->when = when;
    *s = at;
    if (fr_lex_char(&at, ' ') && fr_lex_peek(at, 0) == '[' && fr_lex_until(&at, ']', &inside) &&
        inside.n < 80) {
        *s = at;
    } else {
        at = fr_sv_skip(*s, 1);
        fr_sv place;
        if (fr_lex_token(&at, &place) && fr_sv_ends(place, FR_SV("]")) &&
            fr_sv_has(place, FR_SV(".py:"))) {
            *s = at; /* "INFO 01-02 03:04:05 file.py:12] text" */
        }
    }
    return true;
}

/* "  lightning.fabric:setup.py:164 text" behind a level in a column of eight: pytest's live log. */
static bool take_pytest(fr_sv *s)
{
    fr_sv at = *s, place;
    uint64_t line;
    if (fr_lex_spaces(&at) == 0 || !fr_lex_token(&at, &place)) {
        return false;
    }
    size_t dot = fr_sv_find(place, FR_SV(".py:"));
    fr_sv number = dot == FR_NPOS ? FR_SV_NONE : fr_sv_skip(place, dot + 4);
    bool named = dot != FR_NPOS && fr_sv_chr(fr_sv_head(place, dot), ':') != FR_NPOS;
    return named && fr_lex_digits(&number, 1, 6, &line) && number.n == 0 && (*s = at, true);
}

/* ":logger:text" behind the level; a logger is dotted or one word and the second colon is near. */
static bool take_logger(fr_sv *s)
{
    fr_sv at = *s, name;
    return fr_lex_char(&at, ':') && fr_lex_name(&at, &name) && name.n <= 100 &&
           fr_lex_char(&at, ':') && (*s = at, true);
}

/* Behind a rank's tag, "ERROR it broke" is how a logger goes on. */
static bool is_tagged(const struct fr_record *rec)
{
    return rec->who.rank >= 0 || rec->who.local_rank >= 0 || rec->who.task >= 0;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text;
    if (at.p[0] == '[') {
        return peel_bracket(ctx, rec);
    }
    bool is_submitit =
        fr_lex_lit(&at, "submitit ") || fr_lex_lit(&at, "LAUNCH "); /* Paddle's launcher */
    uint8_t level = fr_level_take(&at);
    if (level == FR_LEVEL_NONE) {
        return false;
    }
    char next = fr_lex_peek(at, 0);
    if (is_submitit && fr_lex_lit(&at, " (")) {
        struct fr_when when;
        if (fr_stamp_iso(&at, &when)) {
            rec->when = when;
        }
        (void)fr_lex_lit(&at, ") -");
        fr_rec_move(rec, at);
    } else if (fr_is_upper(rec->text.p[0]) && next == ' ' && take_vllm(ctx, rec, &at)) {
        fr_rec_move(rec, at);
    } else if (fr_is_upper(rec->text.p[1]) && next == ':') {
        if (take_logger(&at)) {
            rec->text = at; /* logging.basicConfig puts no space here */
        } else {
            fr_rec_move(rec, fr_sv_skip(at, 1));
        }
    } else if (next == ' ' && take_pytest(&at)) {
        fr_rec_move(rec, at);
    } else if (fr_is_upper(rec->text.p[1]) && next == ' ' && is_tagged(rec)) {
        fr_rec_move(rec, at);
    } else {
        return false;
    }
    rec->level = level;
    return true;
}

static const struct fr_format_sample samples[] = {
    {"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 71 closing signal "
     "SIGTERM",
     "level=warn text=\"Sending process 71 closing signal SIGTERM\""},
    {"WARNING: destroy_process_group() was not called before program exit",
     "level=warn text=\"destroy_process_group() was not called before program exit\""},
    {"ERROR 08-14 09:51:09 [multiproc_executor.py:284] Worker proc died",
     "level=error time=2026-08-14T09:51:09 text=\"Worker proc died\""},
    {"INFO 01-02 03:04:05 llm_engine.py:161] Initializing an LLM engine",
     "level=info text=\"Initializing an LLM engine\""},
    {"[INFO|2025-01-02 03:04:05] llamafactory.cli:157 >> Starting",
     "level=info time=2025-01-02T03:04:05 text=Starting"},
    {"[WARNING|logging.py:290] 2023-11-04 02:38:30,787 >> You're using a fast tokenizer",
     "level=warn time=2023-11-04T02:38:30.787 text=\"You're using a fast tokenizer\""},
    {"[NeMo W 2024-05-01 10:00:00 nemo_logging:349] note",
     "level=warn time=2024-05-01T10:00:00 text=note"},
    {"submitit WARNING (2021-03-22 17:55:38,701) - Bypassing signal 15",
     "level=warn time=2021-03-22T17:55:38.701 text=\"Bypassing signal 15\""},
    {"2025-01-02T03:04:05.678 [info    ] train.step                     rank=3 step=1 loss=4.1754",
     "rank=3 level=info time=2025-01-02T03:04:05.678"},
    {"[error    ] shard lost                     path=/d/3 rank=11", "rank=11 level=error"},
    {"[info] the peer with rank=3 left", "rank=- level=info"},
    {"[ERROR] it broke", "level=error text=\"it broke\""},
    {"[stderr] it broke", "level=- text=\"it broke\""},
    {"[RANK 3] ERROR it broke", "rank=3 level=error text=\"it broke\""},
    {"[RANK 3] Error it broke", "rank=3 level=- text=\"Error it broke\""},
    {"INFO     lightning.fabric:subprocess_script.py:224 [rank: 1] up", "level=info rank=1 text=up"},
    {"INFO     subprocess_script.py:224 up", "level=-"},
    {"ERROR it broke", "level=- text=\"ERROR it broke\""},
    {"Error: this is a message", "level=- text=\"Error: this is a message\""},
    {"ERRORS: 3", "level=-"},
    {"INFORMATIVE text", "level=-"},
    {NULL, NULL}};

const struct fr_format fr_format_leveled = {
    .name = "leveled",
    .summary = "level first: INFO:name:, WARNING:, vLLM, transformers, NeMo, submitit",
    .peel = peel,
    .samples = samples};
