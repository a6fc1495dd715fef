/* SPDX-License-Identifier: Apache-2.0 */
/* format: one file per log dialect. A dialect peels prefixes (who, when, how bad) and may parse facts from messages.
 * Everything here works on one physical line that was already found interesting, or on the edges of a file. */
#ifndef FR_FORMAT_FORMAT_H
#define FR_FORMAT_FORMAT_H

#include "base/arena.h"
#include "match/hook.h"
#include "model/event.h"

struct fr_peel_ctx {
    struct fr_arena *scratch; /* unescaped JSON text and the like; caller resets it between lines */
    int year;                 /* for dates without a year (from file mtime or the last full date) */
};

/* Splits a physical line into logical segments: at '\r', and at prefixes found anywhere that begin another writer's text ("[default1]:", "[rank3]:",
 * "[rank3]:[E", "[E " of c10d, "(Actor pid=..)"). Returns false at the end. Pieces of only white space are skipped; ANSI stays. */
bool fr_segment_next(fr_sv *rest, fr_sv *ret_segment);

/* Peels every known prefix, several deep, in any order; strips ANSI (ESC and literal ^[[) into scratch when there is any. */
void fr_peel(const struct fr_peel_ctx *ctx, fr_sv segment, struct fr_record *ret);

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

/* ---- traces ---- The trace joiner: feed it every segment's record after an opener was seen; it groups by speaker. */
struct fr_tracer;
int fr_tracer_new(struct fr_tracer **ret);
void fr_tracer_free(struct fr_tracer **t);
/* True when text opens a trace ("Traceback (most recent call last):", "Fatal Python error:", "terminate called after", ExceptionGroup). */
bool fr_trace_opens(fr_sv text);
/* Feeds one record (in order). When a trace of its speaker is complete, fills *ret_trace (strings in arena `out`) plus the record where it began, and
 * returns 1; 0 = nothing complete; -FR_*. Call again with rec = NULL at end of input (or to flush after FR_TRACE_MAX lines) until it returns 0. */
struct fr_trace_done {
    struct fr_trace trace;
    struct fr_who who;
    struct fr_when when, outer;   /* of the header line */
    uint64_t offset, line;        /* header line */
    uint64_t exc_offset, exc_line;/* exception line */
    fr_sv exc_text;               /* exception line as peeled */
};
int fr_tracer_feed(struct fr_tracer *t, const struct fr_record *rec, struct fr_arena *out, struct fr_trace_done *ret);
bool fr_tracer_open(const struct fr_tracer *t); /* some trace is still open: keep feeding every line */

#endif
