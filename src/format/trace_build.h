/* SPDX-License-Identifier: Apache-2.0 */
/* trace_build: one traceback while it is read: the links of its chain, their last frames, and what
 * becomes of them. Bounded: an arena of 64 KiB, the last 48 frames of the first and of the latest
 * link, 1 KiB of each message. */
#ifndef FR_FORMAT_TRACE_BUILD_H
#define FR_FORMAT_TRACE_BUILD_H

#include "format/format.h"
#include "format/trace_line.h"

enum {
    FR_TRACE_FRAMES = 48,
    FR_TRACE_MESSAGE = 1024,
    FR_TRACE_MAX = 400,
    FR_TRACE_BYTES = 64 << 10
};

struct fr_frame {
    fr_sv file, func;
    int32_t line;
};
struct fr_trace_link {
    fr_sv type, message, text; /* text: the exception line as peeled */
    uint64_t line, offset;
    struct fr_frame frames[FR_TRACE_FRAMES]; /* the last ones */
    uint32_t n;
};
struct fr_trace_build {
    struct fr_arena arena;
    uint8_t kind; /* enum fr_trace_kind */
    bool truncated, ignored, chained, has_outer, mild, in_thread;
    uint32_t n_frames, n_links;
    uint64_t hash;
    fr_sv outer_type, outer_message;  /* of an exception that wraps an inner, original one */
    struct fr_trace_link first, last; /* last is used from the second link on */
    struct fr_who who;
    struct fr_when when, outer;
    uint64_t offset, line, exc_offset, exc_line;
    fr_sv exc_text;
};

void fr_trace_build_begin(struct fr_trace_build *b, const struct fr_record *header, uint8_t kind);
void fr_trace_build_release(struct fr_trace_build *b);
struct fr_trace_link *fr_trace_build_link(struct fr_trace_build *b); /* the one being read */
void fr_trace_build_next(struct fr_trace_build *b);                  /* a chain goes on */
void fr_trace_build_inner(
    struct fr_trace_build *b); /* the original traceback of a re-raised exception follows */
void fr_trace_build_frame(struct fr_trace_build *b, const struct fr_line_parts *p);
void fr_trace_build_exception(struct fr_trace_build *b, const struct fr_line_parts *p,
                              const struct fr_record *rec);
void fr_trace_build_more(struct fr_trace_build *b, fr_sv text); /* one more line of the message */
int fr_trace_build_finish(struct fr_trace_build *b, struct fr_arena *out,
                          struct fr_trace_done *ret);

#endif
