/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line: what one line can be inside a traceback. Looks at the line alone; trace.c knows what
 * came before. */
#ifndef FR_FORMAT_TRACE_LINE_H
#define FR_FORMAT_TRACE_LINE_H

#include "base/view.h"

enum fr_trace_line {
    FR_LINE_BLANK,
    FR_LINE_HEADER,    /* Traceback (most recent call last): */
    FR_LINE_ORIGINAL,  /* Original Traceback (most recent call last): */
    FR_LINE_GROUP,     /* + Exception Group Traceback (most recent call last): */
    FR_LINE_PART,      /* +-+---------------- 1 ---------------- */
    FR_LINE_GROUP_END, /* +------------------------------------ */
    FR_LINE_CHAIN,     /* The above exception was ... / During handling of ... */
    FR_LINE_CHILD,     /* -- Process 1 terminated with the following error: */
    FR_LINE_FRAME,     /* File "a.py", line 3, in f   (also without ", in f": SyntaxError) */
    FR_LINE_FH_FRAME,  /* File "a.py", line 3 in f    (faulthandler) */
    FR_LINE_FH_HEADER, /* Fatal Python error: ..., Timeout (0:00:30)! */
    FR_LINE_FH_THREAD, /* Thread 0x.. / Current thread 0x.. (most recent call first): */
    FR_LINE_CPP,       /* terminate called after throwing an instance of 'x' */
    FR_LINE_WHAT,      /* what():  text */
    FR_LINE_CPP_FRAME, /* frame #0: f + 0x42 (0x.. in lib.so) */
    FR_LINE_CPP_FROM,  /* Exception raised from f at file:12 (most recent call first): */
    FR_LINE_MARK,      /* carets, "...<9 lines>...", "[Previous line repeated ..." */
    FR_LINE_EXCEPTION, /* Type: message, or a Type alone */
    FR_LINE_IGNORED,   /* Exception ignored in: ... */
    FR_LINE_OTHER
};

struct fr_line_parts {
    fr_sv text; /* without the margin of an exception group */
    size_t indent;
    fr_sv type;       /* EXCEPTION, FH_HEADER, CPP */
    fr_sv message;    /* EXCEPTION, FH_HEADER, WHAT */
    fr_sv file, func; /* frames */
    int32_t line;
    bool current;  /* FH_THREAD of the thread that failed */
    bool in_group; /* the line had a group's margin */
    bool sure;     /* EXCEPTION: the name itself says so (…Error, dotted, …) */
};

enum fr_trace_line fr_trace_line_of(fr_sv text, struct fr_line_parts *ret);

#endif
