/* SPDX-License-Identifier: Apache-2.0 */
/* pg_prefix: "[PG ID 2 PG GUID 5(desc) Rank 1] ", "[PG 1 Rank 10] ", "[Rank 3] ": a rank INSIDE a
 * process group, not the global one; in WorkNCCL lines it may even belong to another group. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = fr_sv_skip(rec->text, 1), inside, number;
    int32_t rank = -1;
    if (!fr_lex_until(&at, ']', &inside) || inside.n > 240) {
        return false;
    }
    if (fr_sv_starts(inside, FR_SV("PG "))) {
        if (!fr_lex_find(inside, " Rank ", &number)) {
            return false;
        }
    } else if (number = inside, !fr_lex_lit(&number, "Rank ")) {
        return false;
    }
    if (!fr_lex_index(&number, &rank) || number.n != 0 || (at.n > 0 && at.p[0] != ' ')) {
        return false;
    }
    rec->who.pg_rank = rank;
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"[rank12]:[E218 04:54:23.314069184 ProcessGroupNCCL.cpp:1844] [PG ID 13 PG GUID 143 Rank 0] "
     "text",
     "rank=12 pg_rank=0 text=text"},
    {"[PG 1 (desc) Rank 10] text", "pg_rank=10 rank=- text=text"},
    {"[Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms", "pg_rank=-"},
    {"[PG] text", "pg_rank=-"},
    {NULL, NULL}};

const struct fr_format fr_format_pg_prefix = {.name = "pg_prefix",
                                              .summary =
                                                  "[PG ... Rank 1]: rank inside a process group",
                                              .peel = peel,
                                              .samples = samples};
