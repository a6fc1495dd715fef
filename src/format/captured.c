/* SPDX-License-Identifier: Apache-2.0 */
/* captured: "stderr: text" and "stdout: text", as accelerate prints what a command of its tests
 * wrote. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text;
    if (rec->text.p != rec->line.p || (!fr_lex_lit(&at, "stderr: ") && !fr_lex_lit(&at, "stdout: "))) {
        return false;
    }
    rec->text = at;
    return true;
}

static const struct fr_format_sample samples[] = {
    {"stderr:   rank      : 1 (local_rank: 1)", "text=\"  rank      : 1 (local_rank: 1)\""},
    {"stdout: [rank2]: KeyError: 'y'", "rank=2 text=\"KeyError: 'y'\""},
    {"stderr was empty", "text=\"stderr was empty\""},
    {NULL, NULL}};

const struct fr_format fr_format_captured = {
    .name = "captured", .summary = "stderr: and stdout: of a captured command", .peel = peel, .samples = samples};
