/* SPDX-License-Identifier: Apache-2.0 */
/* ascend: the speaker that torch_npu puts behind level and time of its errors, "(PID:3182, Device:3, RankID:3) "; before the
 * group is there the rank is -1. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text;
    uint64_t pid = 0, device = 0;
    int32_t rank = -1;
    if (!fr_lex_lit(&at, "(PID:") || !fr_lex_digits(&at, 1, 10, &pid) || !fr_lex_lit(&at, ", Device:") ||
        !fr_lex_digits(&at, 1, 4, &device) || !fr_lex_lit(&at, ", RankID:")) {
        return false;
    }
    if (!fr_lex_lit(&at, "-1") && !fr_lex_index(&at, &rank)) {
        return false;
    }
    if (!fr_lex_char(&at, ')')) {
        return false;
    }
    rec->who.pid = (int64_t)pid;
    rec->who.rank = rank >= 0 ? rank : rec->who.rank;
    fr_rec_move(rec, at);
    return true;
}

bool fr_is_cann(fr_sv text)
{
    uint64_t code;
    const char second = fr_lex_peek(text, 1);
    if (fr_lex_peek(text, 0) != 'E' || !(fr_is_digit(second) || (second >= 'A' && second <= 'Z'))) {
        return false;
    }
    text = fr_sv_skip(text, 2);
    return fr_lex_digits(&text, 4, 4, &code) && fr_lex_lit(&text, ": ");
}

static const struct fr_format_sample samples[] = {
    {"[ERROR] 2025-03-01-10:11:12 (PID:4010, Device:3, RankID:11) ERR00100 PTA call acl api failed.",
     "level=error time=2025-03-01T10:11:12 pid=4010 rank=11 text=\"ERR00100 PTA call acl api failed.\""},
    {"[ERROR] 2025-03-01-10:11:12 (PID:4010, Device:0, RankID:-1) ERR02200 DIST call hccl api failed.", "pid=4010 rank=-"},
    {"(PID:4010, Device:3) up", "pid=- text=\"(PID:4010, Device:3) up\""},
    {NULL, NULL}};

const struct fr_format fr_format_ascend = {.name = "ascend",
                                           .summary = "torch_npu: (PID:3182, Device:3, RankID:3)",
                                           .peel = peel,
                                           .samples = samples};
