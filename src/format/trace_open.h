/* SPDX-License-Identifier: Apache-2.0 */
/* trace_open: the tracer's open traces and tables, and which of them a line belongs to. Inside of
 * trace.c and trace_pick.c. */
#ifndef FR_FORMAT_TRACE_OPEN_H
#define FR_FORMAT_TRACE_OPEN_H

#include "format/listing.h"
#include "format/stack.h"
#include "format/table.h"
#include "format/trace_build.h"
#include "format/trace_tag.h"

enum {
    OPEN_MAX = 64, /* traces and tables together, finished ones that wait included */
    PENDING_MAX = 8
};

enum state {
    WANT_FRAME,  /* after a header */
    WANT_SOURCE, /* after a frame */
    WANT_ANY,    /* after a source line */
    IN_MESSAGE,  /* after the exception line */
    IN_GAP,      /* ... and a blank line */
    WANT_HEADER, /* after "The above exception was ..." */
    IN_DUMP,     /* faulthandler, C++ */
    DONE
};

struct open {
    struct fr_trace_build b;
    struct fr_table table;
    bool is_table, dressed, has_group, wants_inner, in_section, current_seen;
    uint64_t speaker, order;
    uint8_t state;
    size_t indent;
    uint32_t lines, noise, idle, more, plain;
    struct fr_tag tag; /* what stood before its header, until a frame shows whether it is a prefix */
};

struct fr_tracer {
    struct open *open[OPEN_MAX];
    uint32_t n;
    uint64_t order;
    uint64_t ignored[PENDING_MAX]; /* speakers that said "Exception ignored in" */
    uint32_t n_ignored, ignored_age;
    struct fr_listings listings;
    struct fr_stacks stacks;
    struct fr_tags tags;
};

/* For what a line looks for a trace. */
enum purpose {
    FOR_FRAME,
    FOR_SOURCE,
    FOR_EXCEPTION,
    FOR_MORE,
    FOR_CHAIN,
    FOR_HEADER,
    FOR_DUMP,
    FOR_NOISE,
    FOR_LATER_PART
};

/* The open trace of this speaker that best takes a line with these parts; NULL: none does. */
struct open *fr_trace_pick(struct fr_tracer *t, uint64_t speaker, const struct fr_line_parts *p,
                           enum purpose purpose);
/* A logger writes its prefix before the header only; the bare lines right below are the same message. NULL: rec is not such a line.
 * From now on the trace takes lines of this speaker. */
struct open *fr_trace_below_header(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker);

#endif
