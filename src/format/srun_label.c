/* SPDX-License-Identifier: Apache-2.0 */
/* srun_label: srun --label, "%*d: " right-aligned: the Slurm task, which is the rank only with one
 * process per task. The same shape begins list items and dictionaries ("3: foo", "12: {"), so it is
 * only taken where it is the outermost prefix, without leading zeros, and with exactly one space;
 * whether a file is labelled at all is for the reader of many lines. */
#include "format/dialect.h"

static bool said_anything(const struct fr_record *rec)
{
    return rec->who.rank >= 0 || rec->who.local_rank >= 0 || rec->who.task >= 0 ||
           rec->who.pid >= 0 || rec->who.pg_rank >= 0 || rec->level != FR_LEVEL_NONE ||
           rec->when.basis != FR_TIME_BASIS_NONE || rec->is_kernel;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text;
    if (said_anything(rec)) {
        return false;
    }
    if (at.p[0] == 'P') { /* heterogeneous jobs: "P0   3: text" */
        uint64_t component = 0;
        at = fr_sv_skip(at, 1);
        if (!fr_lex_digits(&at, 1, 3, &component) || fr_lex_spaces(&at) == 0) {
            return false;
        }
    } else if (fr_lex_spaces(&at) > 5) {
        return false;
    }
    const char *begin = at.p;
    uint64_t task = 0;
    if (!fr_lex_digits(&at, 1, 5, &task) || (task != 0 && begin[0] == '0') ||
        !fr_lex_char(&at, ':')) {
        return false;
    }
    if (at.n > 0 && at.p[0] != ' ') {
        return false;
    }
    rec->who.task = (int32_t)task;
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"  3: [rank3]: KeyError: 'x'", "task=3 rank=3 text=\"KeyError: 'x'\""},
    {"12:   File \"a.py\", line 1, in f", "task=12 text=\"  File \\\"a.py\\\", line 1, in f\""},
    {"0: {'loss': 1.5}", "task=0"},
    {"P1   7: hello", "task=7 text=hello"},
    {"03: text", "task=-"},
    {"12:30:01 text", "task=-"},
    {"[rank1]: 3: three", "rank=1 task=- text=\"3: three\""},
    {"4::1 address", "task=-"},
    {NULL, NULL}};

const struct fr_format fr_format_srun_label = {.name = "srun_label",
                                               .summary = "srun --label: '  3: text' (task)",
                                               .peel = peel,
                                               .samples = samples};
