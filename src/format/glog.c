/* SPDX-License-Identifier: Apache-2.0 */
/* glog: "E1130 14:52:02.024000 27144 place:1002] text": glog and absl builds (the number is a
 * thread), and torch's Python logging, torchrun's agent among it (the number is the process). Only
 * the latter prints a path of Python modules. Scripts that imitate it leave the number out. */
#include "format/dialect.h"

static bool is_python_place(fr_sv place)
{
    return fr_sv_has(place, FR_SV(".py:")) && (fr_sv_has(place, FR_SV("torch/")));
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, place, ignored;
    struct fr_when when;
    uint64_t id = 0;
    uint8_t level = fr_level_letter(at.p[0]);
    if (level == FR_LEVEL_NONE || !fr_is_digit(fr_lex_peek(at, 1))) {
        return false;
    }
    at = fr_sv_skip(at, 1);
    if (!fr_stamp_glog(&at, ctx->year, &when) || fr_lex_spaces(&at) == 0) {
        return false;
    }
    fr_sv behind_id = at;
    const bool has_id = fr_lex_digits(&behind_id, 1, 18, &id) && fr_lex_spaces(&behind_id) != 0;
    at = has_id ? behind_id : at;
    if (!fr_lex_until(&at, ']', &place) || place.n > 200 || fr_sv_chr(place, ':') == FR_NPOS || (!has_id && fr_sv_chr(place, ' ') != FR_NPOS)) {
        return false;
    }
    if (has_id && is_python_place(place)) {
        if (id < 1u << 23) { /* Linux pids; 2.3 printed a thread ident of 15 digits */
            rec->who.pid = (int64_t)id;
        }
        fr_sv behind = at;
        while (fr_lex_lit(&behind, " [") && fr_lex_until(&behind, ']', &ignored) &&
               ignored.n < 24 &&
               (fr_sv_starts(ignored, FR_SV("__")) || fr_sv_chr(ignored, '/') != FR_NPOS)) {
            at = behind; /* compile id "[0/1]", "[__graph_breaks]" */
        }
    }
    rec->when = when;
    rec->level = level;
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"E1130 14:52:02.024000 27144 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
     "(exitcode: 1)",
     "level=error pid=27144 time=2026-11-30T14:52:02.024 text=\"failed (exitcode: 1)\""},
    {"W0615 11:47:04.394000 139939038153278 torch/distributed/elastic/multiprocessing/api.py:826] "
     "hm",
     "level=warn pid=- text=hm"},
    {"V0102 03:04:05.678000 77 torch/_inductor/graph.py:12] [0/1] [__output_code] code",
     "level=debug pid=77 text=code"},
    {"W20261130 15:04:38.416581  4956 socket.cpp:426] [c10d] bind failed",
     "level=warn pid=- time=2026-11-30T15:04:38.416581 text=\"[c10d] bind failed\""},
    {"I0102 03:04:05.678901 140123 trainer.py:501] Training: step 198",
     "level=info pid=- text=\"Training: step 198\""},
    {"E0000 00:00:1746036466.123456    1234 cuda_dnn.cc:8579] Unable to register",
     "level=error time=2025-04-30T18:07:46.123456"},
    {"W1201 15:11:10 fit.py:19] tracker: could not upload", "level=warn pid=- time=2026-12-01T15:11:10 text=\"tracker: could not upload\""},
    {"W1201 15:11:10 of 3 parts: 19] text", "level=-"},
    {"E808 words", "level=-"},
    {NULL, NULL}};

const struct fr_format fr_format_glog = {
    .name = "glog",
    .summary = "glog, absl and torch logging: E1130 14:52:02.024000 27144 place:1002]",
    .peel = peel,
    .samples = samples};
