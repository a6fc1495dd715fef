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
                                        "Exception ignored in",
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
    fr_sv name;
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
        name = fr_sv_trim(text);
        return fr_sv_starts(name, FR_SV("Root Cause")) ||
               (fr_table_kind_of(text) == FR_TABLE_FIELD && fr_sv_starts(name, FR_SV("exitcode")));
    }
}
