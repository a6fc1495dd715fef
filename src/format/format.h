/* SPDX-License-Identifier: Apache-2.0 */
/* format: one file per log dialect. A dialect peels prefixes (who, when, how bad) and may parse facts from messages.
 * Everything here works on one physical line that was already found interesting, or on the edges of a file. */
#ifndef FR_FORMAT_FORMAT_H
#define FR_FORMAT_FORMAT_H

#include "base/arena.h"
#include "match/hook.h"
#include "model/event.h"

struct fr_own_tag;
struct fr_relay;
struct fr_peel_ctx {
    struct fr_arena *scratch; /* unescaped JSON text and the like; caller resets it between lines */
    int year;                 /* for dates without a year (from file mtime or the last full date) */
    const struct fr_own_tag *own; /* the tag that was learned from this source, see own_tag.h; NULL: none */
    const struct fr_relay *relay; /* what it bears of a program that passes it on, see relay.h; NULL: nothing */
};

/* Splits a physical line into logical segments: at '\r', and at prefixes found anywhere that begin another writer's text ("[default1]:", "[rank3]:",
 * "[rank3]:[E", "[E " of c10d, "(Actor pid=..)"). Returns false at the end. Pieces of only white space are skipped; ANSI stays. */
bool fr_segment_next(fr_sv *rest, fr_sv *ret_segment);
/* Nothing from byte `from` (1 or more) on begins another segment. May say false where fr_segment_next does not cut. */
bool fr_segment_is_whole(fr_sv line, size_t from);
/* The same, also for all lines that differ from this one in the values of their digits only. */
bool fr_segment_stays_whole(fr_sv line, size_t from);

/* Peels every known prefix, several deep, in any order; strips ANSI (ESC and literal ^[[) into scratch when there is any. */
void fr_peel(const struct fr_peel_ctx *ctx, fr_sv segment, struct fr_record *ret);
/* "EJ0001: text": an error of CANN, the layer under torch_npu, which stands below that one's own. */
bool fr_is_cann(fr_sv text);

/* What a fact parser fills. Views borrow from the record or the scratch. */
#define FR_DRAFT_CAPS 16
struct fr_draft {
    uint8_t fact;
    uint16_t n_caps;
    struct fr_cap caps[FR_DRAFT_CAPS];
};
void fr_draft_num(struct fr_draft *d, enum fr_key key, int64_t num, fr_sv text);
void fr_draft_text(struct fr_draft *d, enum fr_key key, fr_sv text);

struct fr_format_sample { const char *line; const char *expect; /* "fact=exit rank=3 exitcode=-9", "rank=3 level=error time=2026-..", or "" = must not match */ };

struct fr_format {
    const char *name, *summary;
    /* Peels ONE prefix of this dialect at the start of rec->text; returns true and moves rec->text, or false with nothing changed. May be NULL. */
    bool (*peel)(const struct fr_peel_ctx *ctx, struct fr_record *rec);
    /* Literals that bring a line here (become gate hooks), NULL-terminated; NULL when it only peels. */
    const char *const *literals;
    /* Parses rec->text into facts; returns how many (0-4; a "tasks 0-3" line is one fact with a ranks list). May be NULL. */
    int (*facts)(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret, int max);
    const struct fr_format_sample *samples; /* ends with {NULL,NULL} */
};
extern const struct fr_format *const fr_formats[]; /* from formats.def, in peeling order */
extern const unsigned fr_formats_count;            /* at most 64 */

/* ---- traces ---- The trace joiner: feed it every segment's record from an opener on; it groups by speaker, and copes with several
 * tracebacks interleaved line by line. It also reads the rows of torchrun's ChildFailedError table, its launch configuration, and
 * stack dumps of py-spy and gdb, which are facts. */
struct fr_tracer;
int fr_tracer_new(struct fr_tracer **ret);
void fr_tracer_free(struct fr_tracer **t);
/* Literals that bring a line here (gate hooks), NULL-terminated, at most 32; fr_trace_opens() has the last word. */
extern const char *const fr_trace_openers[];
/* True when text opens something: "Traceback (most recent call last):" (also behind other text), exception groups, a frame or a
 * SyntaxError without header, "Fatal Python error:", "terminate called", "Exception ignored in", the rows of torchrun's table. */
bool fr_trace_opens(fr_sv text);
struct fr_trace_done {
    bool is_row;           /* row holds the fact, trace is empty: a row of torchrun's table, its launch configuration (FR_FACT_IDENTITY),
                              or a stack dump (FR_FACT_STACK) */
    bool ignored;          /* printed by "Exception ignored in": a destructor's or hook's, nothing died of it */
    struct fr_draft row;   /* FR_FACT_EXIT: rank local_rank exitcode pid node time path (error_file) exception (its last text line),
                              reason = "table-root" | "table"; strings in arena `out` */
    struct fr_trace trace;
    struct fr_who who;
    struct fr_when when, outer;   /* of the header line */
    uint64_t offset, line;        /* header line; of a row: its first line */
    uint64_t exc_offset, exc_line;/* exception line; of a row: its exitcode line */
    fr_sv exc_text;               /* exception line as peeled; of a row: its exitcode line */
    uint64_t row_end;             /* of a row of the table: the last line of the traceback in it */
};
/* Feeds one record (in order). When something of its speaker is complete, fills *ret (strings in arena `out`) and returns 1; 0 = nothing
 * complete; -FR_*. One result per call: a second one waits for the next call. Call with rec = NULL at the end of input until it
 * returns 0. Bounded: 64 open traces, 400 lines each; what is over is flagged truncated or left out. */
int fr_tracer_feed(struct fr_tracer *t, const struct fr_record *rec, struct fr_arena *out, struct fr_trace_done *ret);
bool fr_tracer_open(const struct fr_tracer *t); /* something is open or waits to be fetched: keep feeding every line */

#endif
