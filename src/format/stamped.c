/* SPDX-License-Identifier: Apache-2.0 */
/* stamped: lines that begin with a date or time and go on with level, logger and place in one of
 * many orders: Python logging in all its configurations, DeepSpeed, torchelastic 2.1, loguru,
 * fairseq, OLMo, Hydra, mmengine, Ray, Slurm daemons, TensorFlow, Megatron. The stamp is the
 * program's own clock. What follows is read token by token as long as it is header. */
#include "format/dialect.h"
#include "format/own_tag.h"

enum { SEP_NONE, SEP_DASH, SEP_BAR };

/* " - ", " | ", " -- ", ": " between header fields. */
static int take_separator(fr_sv *s)
{
    fr_sv at = *s;
    size_t spaces = fr_lex_spaces(&at);
    char c = fr_lex_peek(at, 0);
    if ((c != '-' && c != '|') || (spaces == 0 && c == '-')) {
        return SEP_NONE;
    }
    at = fr_sv_skip(at, 1);
    if (c == '-') {
        (void)fr_lex_char(&at, '-');
    }
    if (at.n > 0 && !fr_is_space(at.p[0])) {
        return SEP_NONE;
    }
    *s = fr_lex_peek(at, 0) == ' ' ? fr_sv_skip(at, 1) : at;
    return c == '-' ? SEP_DASH : SEP_BAR;
}

static bool is_place(fr_sv s) /* file.py:96, file.py:96:func, mod:func:256, module.sub */
{
    size_t colon = fr_sv_chr(s, ':');
    if (colon == FR_NPOS) {
        return false;
    }
    fr_sv behind = fr_sv_skip(s, colon + 1);
    return behind.n > 0 && (fr_is_digit(behind.p[0]) || fr_sv_chr(behind, ':') != FR_NPOS);
}

static bool is_logger(fr_sv s)
{
    if (s.n == 0 || s.n > 80 || !(fr_is_alpha(s.p[0]) || s.p[0] == '_')) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (!fr_is_word(s.p[i]) && strchr(".:-<>/", s.p[i]) == NULL) {
            return false;
        }
    }
    return true;
}

struct header {
    struct fr_record *rec;
    bool has_level, has_name, is_deepspeed, is_padded;
    int separator; /* the kind seen last */
};

/* "[INFO]", "[train]", "[file.py:96:fn]", "[2024-..]"; DeepSpeed's "[Rank 0]" behind a place is the
 * global rank. */
static bool take_bracket(struct header *h, fr_sv *s)
{
    fr_sv at = *s, inside;
    if (!fr_lex_char(&at, '[') || !fr_lex_until(&at, ']', &inside) || inside.n == 0 ||
        inside.n > 100) {
        return false;
    }
    uint8_t level = fr_level_of(fr_sv_trim(inside));
    int32_t rank = -1;
    fr_sv rank_text = inside;
    if (level != FR_LEVEL_NONE) {
        h->is_padded = fr_is_space(inside.p[inside.n - 1]);
        h->rec->level = level;
        h->has_level = true;
    } else if (h->is_deepspeed && fr_lex_lit(&rank_text, "Rank ") &&
               fr_lex_index(&rank_text, &rank) && rank_text.n == 0) {
        h->rec->who.rank = rank;
    } else if (!h->has_name && (is_place(inside) || is_logger(inside)) && !fr_own_tag_like(inside) &&
               !fr_sv_eq(inside, FR_SV("c10d"))) {
        h->is_deepspeed = h->has_level && is_place(inside);
        h->has_name = true;
    } else {
        return false;
    }
    (void)fr_lex_char(&at, ':');
    *s = at;
    return true;
}

/* "INFO", "INFO:", "W" before a place (TensorFlow), "<INFO>". */
static bool take_level(struct header *h, fr_sv *s)
{
    fr_sv at = *s, place;
    if (h->has_level) {
        return false;
    }
    uint8_t level = fr_level_take(&at);
    if (level == FR_LEVEL_NONE && fr_lex_peek(at, 1) == ' ') {
        fr_sv behind = fr_sv_skip(at, 2);
        level = fr_level_letter(at.p[0]);
        if (level == FR_LEVEL_NONE || !fr_lex_token(&behind, &place) ||
            !fr_sv_ends(place, FR_SV("]")) || fr_sv_chr(place, ':') == FR_NPOS) {
            return false;
        }
        at = behind;
        h->has_name = true;
    } else if (level == FR_LEVEL_NONE) {
        return false;
    }
    if (at.n > 0 && !fr_is_space(at.p[0]) && at.p[0] != ':' && at.p[0] != ']') {
        return false;
    }
    (void)fr_lex_char(&at, ':');
    h->rec->level = level;
    h->has_level = true;
    *s = at;
    return true;
}

/* A logger or place that a separator, a colon before a level, or the grammar of one framework ends.
 */
static bool take_name(struct header *h, fr_sv *s)
{
    fr_sv at = *s, name;
    if (!fr_lex_token(&at, &name)) {
        return false;
    }
    fr_sv behind = at;
    if (fr_sv_ends(name, FR_SV(":"))) {
        name = fr_sv_head(name, name.n - 1);
        fr_sv peek = fr_sv_trim(behind);
        (void)fr_lex_char(&peek, '[');
        bool level_follows = fr_level_take(&peek) != FR_LEVEL_NONE;
        if (!is_logger(name) || fr_own_tag_like(name) || (!level_follows && !(h->has_level && !h->has_name &&
                                                     fr_sv_chr(name, '.') != FR_NPOS))) {
            return false;
        }
    } else {
        if ((!is_logger(name) && !is_place(name)) || fr_own_tag_like(name)) {
            return false;
        }
        int sep = take_separator(&behind);
        bool worker_place = is_place(name) && !h->has_level && fr_lex_peek(at, 0) != '\0';
        if (sep == SEP_NONE && !(worker_place && fr_sv_chr(name, '.') != FR_NPOS) &&
            !(is_place(name) && h->has_level && fr_sv_has(name, FR_SV(".py:")))) {
            return false;
        }
        h->separator = sep != SEP_NONE ? sep : h->separator;
    }
    h->has_name = true;
    *s = behind;
    return true;
}

static fr_sv take_header(struct header *h, fr_sv at)
{
    for (int i = 0; i < 6; i++) {
        fr_sv next = at;
        int sep = take_separator(&next);
        if (sep == SEP_NONE) {
            (void)fr_lex_spaces(&next);
        }
        if (sep != SEP_NONE) {
            h->separator = sep;
        }
        bool took = take_bracket(h, &next) || take_level(h, &next) ||
                    (!(h->has_name && h->has_level) && take_name(h, &next));
        if (!took) {
            if (sep != SEP_NONE && (h->has_level || h->has_name || sep == SEP_BAR)) {
                (void)take_separator(&at);
            }
            break;
        }
        at = next;
    }
    return at;
}

/* OLMo: "2024-01-02 03:04:05.123<tab>node07:3<tab>olmo.train:966<tab>INFO<tab>text" */
static bool take_olmo(struct fr_record *rec, fr_sv *s)
{
    fr_sv at = *s, host, place, word;
    int32_t local = -1;
    if (fr_lex_spaces(&at) == 0 || !fr_lex_name(&at, &host) || !fr_lex_char(&at, ':') ||
        !fr_lex_index(&at, &local) || fr_lex_spaces(&at) == 0 || !fr_lex_token(&at, &place) ||
        !is_place(place) || fr_lex_spaces(&at) == 0 || !fr_lex_token(&at, &word) ||
        fr_level_of(word) == FR_LEVEL_NONE) {
        return false;
    }
    rec->level = fr_level_of(word);
    rec->who.node = host;
    rec->who.local_rank = local;
    fr_lex_spaces(&at);
    *s = at;
    return true;
}

/* SGLang: "[2025-05-20 06:06:06 DP0 TP3 EP3] ": the tensor-parallel index is the rank where nothing
 * else splits the processes; under data-parallel attention (an expert index beside it) it is too.
 */
static void take_parallel(struct fr_record *rec, fr_sv names)
{
    fr_sv name;
    int32_t tensor = -1;
    if (rec->who.role.n != 0) {
        return; /* an actor may hold an engine of several, each of which counts from 0 */
    }
    bool data = false, pipeline = false, expert = false;
    while (fr_lex_spaces(&names), fr_lex_token(&names, &name)) {
        int32_t index = -1;
        fr_sv number = fr_sv_skip(name, 2);
        if (!fr_lex_index(&number, &index) || number.n != 0) {
            return;
        }
        if (fr_sv_starts(name, FR_SV("TP"))) {
            tensor = index;
        }
        data = data || fr_sv_starts(name, FR_SV("DP"));
        pipeline = pipeline || fr_sv_starts(name, FR_SV("PP"));
        expert = expert || fr_sv_starts(name, FR_SV("EP"));
    }
    if (tensor >= 0 && !pipeline && (!data || expert)) {
        rec->who.rank = tensor;
    }
}

/* "12:47:20 text", "12:47:20,123 INFO": a clock without a date, of two digits each. */
static bool take_clock(fr_sv *s, struct fr_when *when)
{
    fr_sv at = *s;
    if (fr_lex_peek(at, 2) != ':' || fr_lex_peek(at, 5) != ':' || !fr_stamp_clock(&at, when) || fr_lex_peek(at, 0) != ' ') {
        return false;
    }
    *s = at;
    return true;
}

static bool take_stamp(const struct fr_peel_ctx *ctx, struct fr_record *rec, fr_sv *s,
                       struct fr_when *when)
{
    fr_sv at = *s;
    if (!fr_lex_char(&at, '[')) {
        return fr_stamp_iso(s, when) || fr_stamp_month_day(s, ctx->year, when) || take_clock(s, when);
    }
    fr_sv rest = FR_SV_NONE, level_first = at;
    if (fr_level_take(&level_first) != FR_LEVEL_NONE && fr_lex_char(&level_first, '|')) {
        return false; /* "[INFO|date] " is leveled's */
    }
    if (!fr_stamp_any(&at, ctx->year, when) && !fr_stamp_clock(&at, when)) {
        return false;
    }
    if (at.n == 0 || at.p[0] == ']' ? !fr_lex_char(&at, ']')
                                    : !(fr_lex_until(&at, ']', &rest) && rest.n < 40)) {
        return false;
    }
    take_parallel(rec, rest);
    *s = at;
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text;
    struct fr_when when;
    if (at.p[0] == ' ') { /* Megatron: " [2025-09-23 01:02:03.123456] iteration" */
        fr_lex_spaces(&at);
        if (fr_lex_peek(at, 0) != '[' || !fr_is_digit(fr_lex_peek(at, 1))) {
            return false;
        }
    }
    if (!take_stamp(ctx, rec, &at, &when)) {
        return false;
    }
    rec->when = when;
    struct header h = {.rec = rec};
    if (!take_olmo(rec, &at)) {
        (void)fr_lex_char(&at, ':');
        at = take_header(&h, at);
    }
    fr_rec_move(rec, at);
    if (h.is_padded) {
        fr_rec_bound(rec);
    }
    return true;
}

static const struct fr_format_sample samples[] = {
    {"2026-11-30 15:06:06,689 INFO [fit] rank 0/4 pid 812 ready",
     "time=2026-11-30T15:06:06.689 level=info text=\"rank 0/4 pid 812 ready\""},
    {"[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=2",
     "time=2024-05-01T10:00:00.123 level=info rank=0 text=\"step=10, skipped=2\""},
    {"[2024-03-25 20:57:27,620] torch.distributed.elastic.multiprocessing.api: [ERROR] failed "
     "(exitcode: 1)",
     "time=2024-03-25T20:57:27.620 level=error text=\"failed (exitcode: 1)\""},
    {"2023-01-25 00:50:09.074 | INFO     | pkg.trainer:run:256 - [R0] | E5",
     "level=info text=\"[R0] | E5\""},
    {"2020-03-23 12:03:13 | INFO | train_inner | epoch 003:      5 / 356 loss=9.44",
     "text=\"epoch 003:      5 / 356 loss=9.44\""},
    {"10/30 22:48:02 - mmengine - INFO - Epoch(train) [1][200/735]  lr: 1e-4",
     "level=info text=\"Epoch(train) [1][200/735]  lr: 1e-4\""},
    {"05/16/2023 11:54:12 - WARNING - __main__ - Process rank: 3, device: cuda:3",
     "level=warn text=\"Process rank: 3, device: cuda:3\""},
    {"2025-02-14 08:19:21,469\tINFO worker.py:1821 -- Started a local Ray instance.",
     "level=info text=\"Started a local Ray instance.\""},
    {"2022-07-10 15:20:09.276131: W pkg/default/dso_loader.cc:64] Could not load",
     "level=warn text=\"Could not load\""},
    {"2024-01-02 03:04:05.123\tnode07:3\tolmo.train:966\tINFO\t[step=10/1000,epoch=0]",
     "node=node07 local_rank=3 level=info text=\"[step=10/1000,epoch=0]\""},
    {" [2025-09-23 01:02:03.123456] iteration       50/    1000 | lm loss: 1.2",
     "time=2025-09-23T01:02:03.123456 text=\"iteration       50/    1000 | lm loss: 1.2\""},
    {"[2024-05-01T10:00:00.123] error: slurm_receive_msg", "level=error text=slurm_receive_msg"},
    {"[2026-01-01 00:00:00,000][__main__][INFO] - hydra says", "level=info text=\"hydra says\""},
    {"2023-03-22 09:52:39 iter 2920: loss 3.9883", "text=\"iter 2920: loss 3.9883\""},
    {"[2025-05-20 06:06:06 TP3] Load weight begin", "rank=3 text=\"Load weight begin\""},
    {"[2025-05-20 06:06:06 DP0 TP3 EP3] x", "rank=3 text=x"},
    {"[2025-05-20 06:06:06 PP1 TP0] x", "rank=- text=x"},
    {"[1][200/735] text", "time=-"},
    {"12:47:20 stage1: saved", "text=\"stage1: saved\""},
    {"1:47:20 text", "time=- text=\"1:47:20 text\""},
    {"00:31<16:44 text", "time=-"},
    {"1234-56-78 text", "time=-"},
    {NULL, NULL}};

const struct fr_format fr_format_stamped = {
    .name = "stamped",
    .summary = "date first, then level and logger (Python logging and many frameworks)",
    .peel = peel,
    .samples = samples};
