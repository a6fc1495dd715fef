/* SPDX-License-Identifier: Apache-2.0 */
/* pg_prefix: "[PG ID 2 PG GUID 5(desc) Rank 1] ", "[PG 1 Rank 10] ", "[Rank 3] ": a rank INSIDE a
 * process group, not the global one; in WorkNCCL lines it may even belong to another group. c10d
 * logs it behind a header of its own; without any header "[Rank 3] " is what a program prints of
 * itself, and that is the rank it knows. */
#include "format/dialect.h"

/* What c10d says of a collective: where a long line was wrapped, its header is lost. */
static bool is_c10d(fr_sv text)
{
    static const char *const words[] = {"NCCL", "atchdog", "ollective", NULL};
    for (const char *const *w = words; *w != NULL; w++) {
        if (fr_sv_has(text, fr_sv_z(*w))) {
            return true;
        }
    }
    return false;
}

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
    const bool bare = rec->level == FR_LEVEL_NONE && rec->when.basis == FR_TIME_BASIS_NONE &&
                      rec->who.rank < 0 && fr_sv_starts(rec->text, FR_SV("[R"));
    if (bare && at.n > 0 && !is_c10d(at)) {
        rec->who.rank = rank;
    } else {
        rec->who.pg_rank = rank;
    }
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"[rank12]:[E218 04:54:23.314069184 ProcessGroupNCCL.cpp:1844] [PG ID 13 PG GUID 143 Rank 0] "
     "text",
     "rank=12 pg_rank=0 text=text"},
    {"[PG 1 (desc) Rank 10] text", "pg_rank=10 rank=- text=text"},
    {"[Rank 0]: Rank 1 failed to pass monitoredBarrier in 2000 ms", "pg_rank=-"},
    {"[Rank 3] epoch 0 step 2/20 loss=0.7716", "rank=3 pg_rank=-"},
    {"[Rank 3] Working on shard 7 of the process group", "rank=3 pg_rank=-"},
    {"[Rank 3] Some NCCL operations have failed or timed out.", "rank=- pg_rank=3"},
    {"[Rank 3] Caught collective operation timeout: WorkNCCL(SeqNum=5)", "rank=- pg_rank=3"},
    {"[PG] text", "pg_rank=-"},
    {NULL, NULL}};

const struct fr_format fr_format_pg_prefix = {.name = "pg_prefix",
                                              .summary =
                                                  "[PG ... Rank 1]: rank inside a process group",
                                              .peel = peel,
                                              .samples = samples};
