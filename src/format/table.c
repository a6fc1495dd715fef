/* SPDX-License-Identifier: Apache-2.0 */
/* table: see table.h. The row under "Root Cause" is marked, but only marked: it is what one agent
 * polled first. */
#include "format/table.h"

#include "format/lex.h"
#include "format/stamp.h"

enum { LINES_MAX = 4000, STRANGE_MAX = 4, ROW_BYTES = 16 << 10 };

/* "  rank      : 1 (local_rank: 1)": field name, blanks, colon. */
static bool take_field(fr_sv text, fr_sv *ret_name, fr_sv *ret_value)
{
    static const char *const names[] = {"time",       "host",      "rank", "exitcode",
                                        "error_file", "traceback", "msg",  NULL};
    fr_sv at = fr_sv_trim(text), name;
    if (!fr_lex_name(&at, &name)) {
        return false;
    }
    bool known = false;
    for (int i = 0; names[i] != NULL; i++) {
        known = known || fr_sv_eq(name, fr_sv_z(names[i]));
    }
    fr_lex_spaces(&at);
    if (!known || !fr_lex_char(&at, ':')) {
        return false;
    }
    *ret_name = name;
    *ret_value = fr_sv_trim(at);
    return true;
}

static bool is_border(fr_sv s)
{
    if (s.n < 6) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != s.p[0] || strchr("=-*", s.p[i]) == NULL) {
            return false;
        }
    }
    return true;
}

enum fr_table_kind fr_table_kind_of(fr_sv text)
{
    fr_sv at = fr_sv_trim(text), name, value;
    uint64_t n = 0;
    if (is_border(at)) {
        return FR_TABLE_BORDER;
    }
    if (fr_sv_starts(at, FR_SV("Root Cause")) || fr_sv_eq(at, FR_SV("Failures:")) ||
        fr_sv_eq(at, FR_SV("Other Failures:")) || fr_sv_eq(at, FR_SV("<NO_OTHER_FAILURES>")) ||
        fr_sv_ends(at, FR_SV(" FAILED"))) {
        return FR_TABLE_BLOCK;
    }
    if (fr_lex_char(&at, '[') && fr_lex_digits(&at, 1, 6, &n) && fr_lex_lit(&at, "]:") &&
        at.n == 0) {
        return FR_TABLE_ROW;
    }
    if (text.n > 2 && text.p[0] == ' ' && take_field(text, &name, &value)) {
        return FR_TABLE_FIELD;
    }
    return text.n > 0 && text.p[0] == ' ' ? FR_TABLE_TEXT : FR_TABLE_NO;
}

/* A log may be cut anywhere above a row: the padded names of its fields are torchrun's alone. */
bool fr_table_begins(fr_sv text)
{
    static const char *const padded[] = {"time      : ", "host      : ", "rank      : ", "exitcode  : ",
                                         NULL};
    fr_sv at = fr_sv_trim(text);
    if (fr_sv_starts(at, FR_SV("Root Cause"))) {
        return true;
    }
    for (const char *const *p = padded; *p != NULL; p++) {
        if (fr_sv_starts(at, fr_sv_z(*p))) {
            return fr_table_kind_of(text) == FR_TABLE_FIELD;
        }
    }
    return fr_sv_starts(at, FR_SV("exitcode")) && fr_table_kind_of(text) == FR_TABLE_FIELD;
}

void fr_table_begin(struct fr_table *t)
{
    *t = (struct fr_table){.arena = FR_ARENA_INIT(ROW_BYTES)};
}

void fr_table_release(struct fr_table *t)
{
    fr_arena_release(&t->arena);
}

static void row_begin(struct fr_table *t, const struct fr_record *rec)
{
    fr_arena_reset(&t->arena);
    t->in_row = true;
    t->in_traceback = t->has_exit = false;
    t->rank = t->local_rank = t->exitcode = t->pid = t->time = -1;
    t->time_text = t->node = t->error_file = t->message = t->exit_text = FR_SV_NONE;
    t->offset = t->exc_offset = rec->offset;
    t->line = t->exc_line = t->last_line = rec->lineno;
    t->who = rec->who;
    t->who.node = fr_arena_dup(&t->arena, rec->who.node);
    t->who.role = fr_arena_dup(&t->arena, rec->who.role);
    t->when = rec->when;
    t->outer = rec->outer;
}

static void row_field(struct fr_table *t, const struct fr_record *rec, fr_sv name, fr_sv value)
{
    struct fr_when when;
    fr_sv printed;
    t->in_traceback = false;
    if (fr_sv_eq(name, FR_SV("time"))) {
        fr_sv at = value;
        t->time_text = fr_arena_dup(&t->arena, value);
        t->time = fr_stamp_iso(&at, &when) ? when.ns : -1;
    } else if (fr_sv_eq(name, FR_SV("host"))) {
        t->node = fr_arena_dup(&t->arena, value);
    } else if (fr_sv_eq(name, FR_SV("rank"))) {
        fr_sv at = value;
        (void)fr_lex_int(&at, &t->rank);
        (void)fr_lex_num_after(value, FR_SV("(local_rank: "), &t->local_rank, &printed);
    } else if (fr_sv_eq(name, FR_SV("exitcode"))) {
        fr_sv at = value;
        t->has_exit = fr_lex_int(&at, &t->exitcode);
        (void)fr_lex_num_after(value, FR_SV("(pid: "), &t->pid, &printed);
        t->exit_text = fr_arena_dup(&t->arena, fr_sv_trim(rec->text));
        t->exc_offset = rec->offset;
        t->exc_line = rec->lineno;
    } else if (fr_sv_eq(name, FR_SV("error_file"))) {
        t->error_file = fr_arena_dup(&t->arena, value);
    } else {
        t->in_traceback = true;
        t->message = fr_arena_dup(&t->arena, fr_sv_head(value, 1024));
    }
}

int fr_table_line(struct fr_table *t, const struct fr_record *rec, fr_sv text)
{
    fr_sv name, value;
    enum fr_table_kind kind = fr_table_kind_of(text);
    bool row_ends = t->in_row && t->has_exit &&
                    (kind == FR_TABLE_ROW || kind == FR_TABLE_BORDER || kind == FR_TABLE_BLOCK);
    if (row_ends) {
        return 1; /* the same line comes again */
    }
    if (++t->lines > LINES_MAX) {
        return -1;
    }
    switch (kind) {
    case FR_TABLE_ROW:
        row_begin(t, rec);
        break;
    case FR_TABLE_BLOCK:
        t->in_row = false;
        if (fr_sv_has(text, FR_SV("Root Cause"))) {
            t->is_root = true;
        } else if (fr_sv_has(text, FR_SV("Failures"))) {
            t->is_root = false;
        }
        break;
    case FR_TABLE_FIELD:
        if (!t->in_row) {
            row_begin(t, rec);
        }
        (void)take_field(text, &name, &value);
        row_field(t, rec, name, value);
        break;
    case FR_TABLE_TEXT: /* the last line of a traceback is its exception */
        if (!t->in_traceback) {
            return 2;
        } else {
            fr_sv last = fr_arena_dup(&t->arena, fr_sv_head(fr_sv_trim(text), 1024));
            t->message = last.n != 0 ? last : t->message; /* an empty one may follow */
            t->last_line = rec->lineno;
        }
        break;
    case FR_TABLE_BORDER:
        t->in_row = false;
        break;
    default:
        if (fr_sv_trim(text).n == 0) {
            return 0;
        }
        return ++t->strange > STRANGE_MAX || (t->is_root && !t->in_row) ? -1 : 2;
    }
    t->strange = 0;
    return 0;
}

bool fr_table_take(struct fr_table *t, struct fr_arena *out, struct fr_trace_done *ret)
{
    if (!t->in_row || !t->has_exit) {
        return false;
    }
    *ret = (struct fr_trace_done){.is_row = true,
                                  .who = t->who,
                                  .when = t->when,
                                  .outer = t->outer,
                                  .offset = t->offset,
                                  .line = t->line,
                                  .exc_offset = t->exc_offset,
                                  .exc_line = t->exc_line,
                                  .row_end = t->last_line};
    ret->who.node = fr_arena_dup(out, t->who.node);
    ret->who.role = fr_arena_dup(out, t->who.role);
    ret->exc_text = fr_arena_dup(out, t->exit_text);
    struct fr_draft *d = &ret->row;
    d->fact = FR_FACT_EXIT;
    if (t->rank >= 0) {
        fr_draft_num(d, FR_KEY_RANK, t->rank, FR_SV_NONE);
    }
    if (t->local_rank >= 0) {
        fr_draft_num(d, FR_KEY_LOCAL_RANK, t->local_rank, FR_SV_NONE);
    }
    fr_draft_num(d, FR_KEY_EXITCODE, t->exitcode, FR_SV_NONE);
    if (t->pid >= 0) {
        fr_draft_num(d, FR_KEY_PID, t->pid, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_NODE, fr_arena_dup(out, t->node));
    if (t->time > 0) {
        fr_draft_num(d, FR_KEY_TIME, t->time, fr_arena_dup(out, t->time_text));
    }
    if (!fr_sv_eq(t->error_file, FR_SV("<N/A>"))) {
        fr_draft_text(d, FR_KEY_PATH, fr_arena_dup(out, t->error_file));
    }
    if (!fr_sv_starts(t->message, FR_SV("To enable traceback see"))) {
        fr_draft_text(d, FR_KEY_EXCEPTION, fr_arena_dup(out, t->message));
    }
    fr_draft_text(d, FR_KEY_REASON, t->is_root ? FR_SV("table-root") : FR_SV("table"));
    t->in_row = t->has_exit = false;
    return true;
}
