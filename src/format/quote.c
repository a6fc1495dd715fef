/* SPDX-License-Identifier: Apache-2.0 */
/* quote: "> " of quoted mail and issues; "| " and "  | " of compose and of cloud consoles. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text;
    struct fr_when when;
    fr_lex_spaces(&at);
    if (fr_lex_lit(&at, "| ")) { /* only before a date: exception groups have a margin of bars */
        fr_sv date = at;
        if (!fr_stamp_iso(&date, &when)) {
            return false;
        }
        rec->text = at;
        return true;
    }
    at = rec->text;
    if (fr_lex_lit(&at, "> ") && at.n > 0 && rec->text.p == rec->line.p) {
        /* Megatron prints "> initializing ..." itself: harmless, the text is the same */
        rec->text = at;
        return true;
    }
    return false;
}

static const struct fr_format_sample samples[] = {
    {"> WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4 closing signal "
     "SIGTERM",
     "level=warn text=\"Sending process 4 closing signal SIGTERM\""},
    {">   File \"a.py\", line 3, in f", "text=\"  File \\\"a.py\\\", line 3, in f\""},
    {"  | 2024-09-01T22:28:32.879Z | [2]: time",
     "outer=2024-09-01T22:28:32.879 text=\"[2]: time\""},
    {"  | ValueError: a", "text=\"  | ValueError: a\""},
    {">>> done", "text=\">>> done\""},
    {NULL, NULL}};

const struct fr_format fr_format_quote = {
    .name = "quote", .summary = "quoted lines: '> text'", .peel = peel, .samples = samples};
