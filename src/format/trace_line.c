/* SPDX-License-Identifier: Apache-2.0 */
/* trace_line: see trace_line.h. */
#include "format/trace_line.h"

#include "format/lex.h"

static bool in_list(fr_sv s, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (fr_sv_eq(s, fr_sv_z(*words))) {
            return true;
        }
    }
    return false;
}

/* A name that can only be an exception. */
static bool is_sure_name(fr_sv last)
{
    static const char *const endings[] = {"Error",    "Exception",      "Interrupt", "Exit",
                                          "Timeout",  "TimeoutExpired", "Expired",   "Exhausted",
                                          "NotFound", "Failure",        "error",     "timeout",
                                          "Empty",    "Full",           NULL};
    static const char *const names[] = {"StopIteration",    "ExceptionGroup", "BaseExceptionGroup",
                                        "GeneratorExit",    "CancelledError", "RemoteTraceback",
                                        "_RemoteTraceback", "HTTPStatus",     NULL};
    for (const char *const *e = endings; *e != NULL; e++) {
        if (fr_sv_ends(last, fr_sv_z(*e))) {
            return true;
        }
    }
    return in_list(last, names);
}

/* Words that programs print before a colon while another process's traceback is open. */
static bool is_noise_name(fr_sv name)
{
    static const char *const words[] = {
        "Epoch", "Loss",    "Step",  "Iter",     "Iteration", "Training", "Warning",
        "Note",  "Hint",    "Rank",  "Time",     "Test",      "Val",      "Validation",
        "Batch", "Map",     "File",  "Start",    "Loading",   "Saving",   "Running",
        "Total", "INFO",    "ERROR", "WARNING",  "DEBUG",     "GPU",      "Namespace",
        "Args",  "Compile", "Root",  "Failures", "NCCL",      NULL};
    return in_list(name, words);
}

/* "pkg.Type(Inner): message" */
static bool take_exception(fr_sv text, struct fr_line_parts *p)
{
    size_t i = 0, last = 0, dots = 0;
    if (text.n == 0 || !(fr_is_alpha(text.p[0]) || text.p[0] == '_')) {
        return false;
    }
    while (i < text.n && i < 120 && (fr_is_word(text.p[i]) || text.p[i] == '.')) {
        if (text.p[i] == '.') {
            dots++;
            last = i + 1;
        }
        i++;
    }
    fr_sv name = fr_sv_head(text, i), base = fr_sv_skip(name, last);
    if (i < text.n && text.p[i] == '(') { /* RayTaskError(ValueError) */
        size_t end = fr_sv_chr(fr_sv_head(text, i + 80), ')');
        if (end == FR_NPOS || !is_sure_name(base)) {
            return false;
        }
        name = fr_sv_head(text, end + 1);
        i = end + 1;
    }
    bool colon = i < text.n && text.p[i] == ':' &&
                 (i + 1 == text.n || text.p[i + 1] == ' ' || text.p[i + 1] == '\n');
    if (base.n == 0 || (!colon && i != text.n)) {
        return false;
    }
    p->sure = is_sure_name(base);
    bool plausible = p->sure ||
                     (colon && (dots > 0 || fr_is_upper(base.p[0])) && !is_noise_name(base)) ||
                     (!colon && dots > 0 && fr_is_upper(base.p[0]));
    if (!plausible) {
        return false;
    }
    p->type = name;
    p->message = colon ? fr_sv_trim(fr_sv_skip(text, i + 1)) : FR_SV_NONE;
    return true;
}

/* File "PATH", line N, in FUNC  /  File "PATH", line N in FUNC  /  File "PATH", line N */
static enum fr_trace_line take_frame(fr_sv text, struct fr_line_parts *p)
{
    fr_sv at = text;
    uint64_t line = 0;
    if (!fr_lex_lit(&at, "File \"")) {
        return FR_LINE_OTHER;
    }
    size_t end = fr_sv_find(at, FR_SV("\", line "));
    if (end == FR_NPOS) {
        return FR_LINE_OTHER;
    }
    p->file = fr_sv_head(at, end);
    at = fr_sv_skip(at, end + 8);
    if (!fr_lex_digits(&at, 1, 9, &line)) {
        return FR_LINE_OTHER;
    }
    p->line = (int32_t)line;
    if (fr_lex_lit(&at, ", in ")) {
        p->func = fr_sv_trim(at);
        return FR_LINE_FRAME;
    }
    if (fr_lex_lit(&at, " in ")) {
        p->func = fr_sv_trim(at);
        return FR_LINE_FH_FRAME;
    }
    return at.n == 0 ? FR_LINE_FRAME : FR_LINE_OTHER;
}

/* "frame #0: c10::Error::Error(..) + 0x42 (0x7f in /lib/libc10.so)" */
static void take_cpp_frame(fr_sv at, struct fr_line_parts *p)
{
    size_t colon = fr_sv_find(at, FR_SV(": "));
    fr_sv body = colon == FR_NPOS ? at : fr_sv_skip(at, colon + 2);
    size_t end = fr_sv_find(body, FR_SV(" + 0x"));
    fr_sv in;
    p->func = fr_sv_head(body, end == FR_NPOS ? body.n : end);
    size_t paren = fr_sv_chr(p->func, '(');
    p->func = fr_sv_head(p->func, paren == FR_NPOS || paren == 0 ? 120 : paren);
    if (fr_lex_find(body, " in ", &in)) {
        p->file = fr_sv_ends(in, FR_SV(")")) ? fr_sv_head(in, in.n - 1) : in;
    }
}

/* "Exception raised from checkTimeout at ../torch/csrc/x.cpp:632 (most recent call first):" */
static void take_cpp_from(fr_sv at, struct fr_line_parts *p)
{
    fr_sv place, rest, number;
    size_t mark = fr_sv_find(at, FR_SV(" at "));
    p->func = fr_sv_head(at, mark == FR_NPOS ? 0 : mark);
    if (mark == FR_NPOS) {
        return;
    }
    rest = fr_sv_skip(at, mark + 4);
    if (fr_lex_token(&rest, &place) && fr_sv_cut(place, ':', &p->file, &number)) {
        uint64_t line = 0;
        (void)fr_lex_digits(&number, 1, 8, &line);
        p->line = (int32_t)line;
    }
}

static bool is_mark(fr_sv text)
{
    if (fr_sv_starts(text, FR_SV("[Previous line repeated "))) {
        return true;
    }
    if (fr_sv_starts(text, FR_SV("...<")) && fr_sv_ends(text, FR_SV("lines>..."))) {
        return true;
    }
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '^' && text.p[i] != '~' && text.p[i] != ' ') {
            return false;
        }
    }
    return text.n > 0;
}

/* Exception groups draw a margin: "  | text", "  + Exception Group Traceback", "  +-+---- 1 ----",
 * "    +----". */
static enum fr_trace_line take_margin(fr_sv text, struct fr_line_parts *p)
{
    fr_sv at = text;
    if (fr_lex_lit(&at, "+ Exception Group Traceback (most recent call last):")) {
        return FR_LINE_GROUP;
    }
    if (fr_sv_starts(text, FR_SV("+-+---"))) {
        return FR_LINE_PART;
    }
    if (fr_sv_starts(text, FR_SV("+------"))) {
        return fr_sv_ends(text, FR_SV("----")) && fr_sv_chr(text, ' ') == FR_NPOS
                   ? FR_LINE_GROUP_END
                   : FR_LINE_PART;
    }
    if (fr_lex_char(&at, '|') && (at.n == 0 || at.p[0] == ' ')) {
        p->in_group = true;
        p->text = fr_lex_peek(at, 0) == ' ' ? fr_sv_skip(at, 1) : at;
    }
    return FR_LINE_OTHER;
}

static enum fr_trace_line take_words(fr_sv at, struct fr_line_parts *p)
{
    fr_sv rest = at;
    if (fr_lex_lit(&rest, "Fatal Python error: ")) {
        p->type = fr_sv_head(at, 18);
        p->message = rest;
        return FR_LINE_FH_HEADER;
    }
    if (fr_sv_starts(at, FR_SV("Timeout (")) && fr_sv_ends(at, FR_SV(")!"))) {
        p->type = fr_sv_head(at, 7);
        p->message = fr_sv_skip(at, 8);
        return FR_LINE_FH_HEADER;
    }
    p->current = fr_sv_starts(at, FR_SV("Current thread 0x"));
    if (p->current || fr_sv_starts(at, FR_SV("Thread 0x"))) {
        return fr_sv_has(at, FR_SV("(most recent call first)")) ? FR_LINE_FH_THREAD : FR_LINE_OTHER;
    }
    if (fr_lex_lit(&rest, "terminate called ")) {
        if (fr_lex_find(rest, "instance of '", &rest)) {
            (void)fr_lex_until(&rest, '\'', &p->type);
        } else {
            p->message = rest;
        }
        return FR_LINE_CPP;
    }
    if (fr_lex_lit(&rest, "what():")) {
        p->message = fr_sv_trim(rest);
        return FR_LINE_WHAT;
    }
    if (fr_lex_lit(&rest, "frame #")) {
        take_cpp_frame(rest, p);
        return FR_LINE_CPP_FRAME;
    }
    if (fr_lex_lit(&rest, "Exception raised from ")) {
        take_cpp_from(rest, p);
        return FR_LINE_CPP_FROM;
    }
    if (fr_sv_starts(at, FR_SV("The above exception was the direct cause")) ||
        fr_sv_starts(at, FR_SV("During handling of the above exception"))) {
        return FR_LINE_CHAIN;
    }
    if (fr_sv_starts(at, FR_SV("-- Process ")) &&
        fr_sv_has(at, FR_SV("terminated with the following error"))) {
        return FR_LINE_CHILD;
    }
    return fr_sv_starts(at, FR_SV("Exception ignored ")) ? FR_LINE_IGNORED : FR_LINE_OTHER;
}

enum fr_trace_line fr_trace_line_of(fr_sv text, struct fr_line_parts *ret)
{
    *ret = (struct fr_line_parts){.text = text, .line = -1};
    fr_sv at = text;
    size_t margin = fr_lex_spaces(&at);
    if (at.n == 0) {
        return FR_LINE_BLANK;
    }
    enum fr_trace_line kind = FR_LINE_OTHER;
    if (at.p[0] == '|' || at.p[0] == '+') {
        kind = take_margin(at, ret);
        if (kind != FR_LINE_OTHER) {
            return kind;
        }
        if (ret->in_group) {
            at = ret->text;
            margin = fr_lex_spaces(&at);
            if (at.n == 0) {
                return FR_LINE_BLANK;
            }
        }
    }
    ret->text = fr_sv_range(at.p - margin, at.p + at.n);
    ret->indent = margin;
    if (at.p[0] == 'F' && (kind = take_frame(at, ret)) != FR_LINE_OTHER) {
        return kind;
    }
    size_t header = fr_sv_find(at, FR_SV("Traceback (most recent call last):"));
    if (header != FR_NPOS) {
        fr_sv before = fr_sv_head(at, header);
        return fr_sv_ends(before, FR_SV("Original "))          ? FR_LINE_ORIGINAL
               : fr_sv_ends(before, FR_SV("Exception Group ")) ? FR_LINE_GROUP
                                                               : FR_LINE_HEADER;
    }
    kind = take_words(at, ret);
    if (kind != FR_LINE_OTHER) {
        return kind;
    }
    if (is_mark(at)) {
        return FR_LINE_MARK;
    }
    return take_exception(at, ret) ? FR_LINE_EXCEPTION : FR_LINE_OTHER;
}
