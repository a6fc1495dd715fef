/* SPDX-License-Identifier: Apache-2.0 */
/* trace_opens: which lines bring the tracer to work. */
#include "format/listing.h"
#include "format/stack.h"
#include "format/table.h"
#include "format/trace_line.h"

const char *const fr_trace_openers[] = {"Traceback (most recent call last)",
                                        "Fatal Python error: ",
                                        "terminate called ",
                                        "\", line ",
                                        "SyntaxError: ",
                                        "IndentationError: ",
                                        "Exception ignored ",
                                        "ChildFailedError",
                                        "Root Cause",
                                        "exitcode  : ",
                                        "Starting elastic_operator with",
                                        "Missing ranks:",
                                        "Stalled ranks:",
                                        "): \"MainThread\"",
                                        "Thread 1 (",
                                        NULL};

bool fr_trace_opens(fr_sv text)
{
    struct fr_line_parts p;
    if (fr_listing_opens(text) || fr_stack_opens(text)) {
        return true;
    }
    switch (fr_trace_line_of(text, &p)) {
    case FR_LINE_HEADER:
    case FR_LINE_ORIGINAL:
    case FR_LINE_GROUP:
    case FR_LINE_FH_HEADER:
    case FR_LINE_CPP:
    case FR_LINE_IGNORED:
    case FR_LINE_FRAME:
        return true;
    case FR_LINE_EXCEPTION:
        return fr_sv_ends(p.type, FR_SV("SyntaxError")) ||
               fr_sv_ends(p.type, FR_SV("IndentationError")) ||
               fr_sv_ends(p.type, FR_SV("ChildFailedError"));
    default:
        return fr_table_begins(text);
    }
}
