/* SPDX-License-Identifier: Apache-2.0 */
/* tee: torchrun's line prefix, "[" role local_rank "]:" with the text right behind it. The number
 * is the LOCAL rank. With --role rank (torchtitan) it reads "[rank0]:" like the global tag; then
 * only the byte behind the colon tells. */
#include "format/dialect.h"

/* "[trainer0|0]:" of older launchers: what follows the bar is the local rank. */
static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = fr_sv_skip(rec->text, 1);
    size_t i = 0;
    while (i < at.n && i < 32 && (fr_is_alpha(at.p[i]) || at.p[i] == '_')) {
        i++;
    }
    fr_sv role = fr_sv_head(at, i);
    int32_t local = -1;
    at = fr_sv_skip(at, i);
    if (i == 0 || fr_sv_eq(role, FR_SV("rank")) || !fr_is_lower(role.p[0]) ||
        !fr_lex_index(&at, &local)) {
        return false;
    }
    if (fr_lex_char(&at, '|') && !fr_lex_index(&at, &local)) {
        return false;
    }
    if (!fr_lex_lit(&at, "]:")) {
        return false;
    }
    rec->who.local_rank = local;
    if (rec->who.rank >= 0 && rec->who.rank == rec->who.task) {
        rec->who.rank = -1; /* mpirun started launchers, not ranks */
    }
    if (!fr_sv_eq(role, FR_SV("default"))) {
        rec->who.role = role;
    }
    rec->text = at; /* no space belongs to the prefix */
    return true;
}

static const struct fr_format_sample samples[] = {
    {"[default3]:[rank11]: Traceback (most recent call last):",
     "local_rank=3 rank=11 text=\"Traceback (most recent call last):\""},
    {"[default0]:  File \"fit.py\", line 3, in <module>",
     "local_rank=0 text=\"  File \\\"fit.py\\\", line 3, in <module>\""},
    {"[trainer2|5]:loading shards", "local_rank=5 role=trainer text=\"loading shards\""},
    {"[actor12]:W1130 08:01:02.003000 991 torch/x.py:4] hm",
     "local_rank=12 role=actor level=warn pid=991 text=hm"},
    {"[1,2]<stdout>:[default3]:x", "task=2 local_rank=3 rank=- text=x"},
    {"[default]: text", "rank=- local_rank=-"},
    {NULL, NULL}};

const struct fr_format fr_format_tee = {.name = "tee",
                                        .summary =
                                            "torchrun's [default3]: line prefix (local rank)",
                                        .peel = peel,
                                        .samples = samples};
