/* SPDX-License-Identifier: Apache-2.0 */
/* table: the rows of torchrun's ChildFailedError report, from the boxed one of 1.9 to today's,
 * joined over their lines. [1]: time      : 2026-11-30_14:54:51 host      : node3          rank : 1
 * (local_rank: 1)       exitcode  : -9 (pid: 31292)  (SIGKILL) One struct per speaker that prints
 * one; owned by the tracer. */
#ifndef FR_FORMAT_TABLE_H
#define FR_FORMAT_TABLE_H

#include "format/format.h"

enum fr_table_kind {
    FR_TABLE_NO,
    FR_TABLE_FIELD,
    FR_TABLE_ROW,
    FR_TABLE_BORDER,
    FR_TABLE_BLOCK,
    FR_TABLE_TEXT
};

struct fr_table {
    struct fr_arena arena; /* of the row being read: at most 16 KiB */
    bool in_row, is_root, in_traceback;
    uint32_t lines, strange;
    int64_t rank, local_rank, exitcode, pid, time;
    bool has_exit;
    fr_sv time_text, node, error_file, message, exit_text;
    uint64_t offset, line, exc_offset, exc_line, last_line;
    struct fr_who who;
    struct fr_when when, outer;
};

/* What a line can be in such a table, looked at alone. */
enum fr_table_kind fr_table_kind_of(fr_sv text);
/* A table, or what is left of one, may begin here. */
bool fr_table_begins(fr_sv text);
void fr_table_begin(struct fr_table *t);
void fr_table_release(struct fr_table *t);
/* 1: the line ends a row and comes again (fr_table_take it first); 0: taken; 2: not the table's,
 * which stays open; -1: not the table's, which is over. */
int fr_table_line(struct fr_table *t, const struct fr_record *rec, fr_sv text);
bool fr_table_take(struct fr_table *t, struct fr_arena *out, struct fr_trace_done *ret);

#endif
