/* SPDX-License-Identifier: Apache-2.0 */
/* journal_export: journalctl -o export, one field per line. Only the message is a log line; the
 * other fields of an entry are separate lines that cannot be joined here. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    return rec->text.p == rec->line.p && fr_lex_lit(&rec->text, "MESSAGE=");
}

static const struct fr_format_sample samples[] = {
    {"MESSAGE=[rank3]: KeyError: 'x'", "rank=3 text=\"KeyError: 'x'\""},
    {"_HOSTNAME=gpu07", "text=_HOSTNAME=gpu07"},
    {NULL, NULL}};

const struct fr_format fr_format_journal_export = {
    .name = "journal_export", .summary = "journalctl -o export", .peel = peel, .samples = samples};
