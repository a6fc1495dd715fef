/* SPDX-License-Identifier: Apache-2.0 */
/* cri: containerd and CRI-O: "2025-11-25T12:34:56.123456789+00:00 stderr F text". P = the line goes
 * on in the next record. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text;
    struct fr_when when;
    if (at.n < 24 || at.p[10] != 'T' || !fr_stamp_iso(&at, &when) ||
        (!fr_lex_lit(&at, " stdout ") && !fr_lex_lit(&at, " stderr ")) ||
        (fr_lex_peek(at, 0) != 'F' && fr_lex_peek(at, 0) != 'P')) {
        return false;
    }
    at = fr_sv_skip(at, 1);
    if (fr_lex_peek(at, 0) == ':') { /* more tags */
        while (at.n > 0 && at.p[0] != ' ') {
            at = fr_sv_skip(at, 1);
        }
    }
    if (at.n > 0 && at.p[0] != ' ') {
        return false;
    }
    fr_rec_outer(rec, &when);
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"2025-11-25T12:34:56.123456789+00:00 stderr F [rank3]: KeyError: 'x'",
     "outer=2025-11-25T12:34:56.123456789 rank=3 text=\"KeyError: 'x'\""},
    {"2025-11-25T14:34:56.5+02:00 stdout P   partial",
     "outer=2025-11-25T12:34:56.5 text=\"  partial\""},
    {"2025-11-25T12:34:56Z stdout goes nowhere", "text=\"stdout goes nowhere\""},
    {NULL, NULL}};

const struct fr_format fr_format_cri = {
    .name = "cri", .summary = "Kubernetes container logs (CRI)", .peel = peel, .samples = samples};
