/* SPDX-License-Identifier: Apache-2.0 */
/* mpirun: Open MPI's --tag-output "[1,3]<stderr>:text", and what mpirun prints when a process dies.
 */
#include "format/dialect.h"

/* MPICH and Intel MPI, -prepend-rank: "[3] text". Too many things begin so; only a traceback behind
 * it proves it. */
static bool peel_prepended(struct fr_record *rec)
{
    fr_sv at = fr_sv_skip(rec->text, 1);
    int32_t rank = -1;
    if (!fr_lex_index(&at, &rank) || !fr_lex_lit(&at, "] ") || rec->text.p != rec->line.p) {
        return false;
    }
    if (!fr_sv_starts(at, FR_SV("Traceback (most recent")) &&
        !fr_sv_starts(at, FR_SV("  File \"")) && !fr_sv_starts(at, FR_SV("    "))) {
        return false;
    }
    rec->who.task = rank;
    rec->text = at;
    return true;
}

/* Open MPI tags every piece it reads, not every line: a process that writes a line in pieces, as Python 3.11 does its
 * tracebacks, gets its tag in the midst of words. The text without them. */
static fr_sv joined(const struct fr_peel_ctx *ctx, fr_sv text, fr_sv tag)
{
    size_t at = fr_sv_find(text, tag), n = 0;
    char *out = at != FR_NPOS && ctx->scratch != NULL ? fr_arena_alloc(ctx->scratch, text.n) : NULL;
    if (out == NULL) {
        return text;
    }
    for (; at != FR_NPOS; at = fr_sv_find(text, tag)) {
        memcpy(out + n, text.p, at);
        n += at;
        text = fr_sv_skip(text, at + tag.n);
    }
    memcpy(out + n, text.p, text.n);
    return (fr_sv){out, n + text.n};
}

/* "[gn-07:18213] *** Process received signal ***" behind a tag: its host and pid; the text keeps them. */
static void take_process(struct fr_record *rec)
{
    fr_sv at = rec->text, name;
    uint64_t pid;
    bool named = fr_lex_char(&at, '[') && fr_lex_name(&at, &name) && fr_sv_chr(name, '.') == FR_NPOS && fr_lex_char(&at, ':') &&
                 fr_lex_digits(&at, 1, 9, &pid) && fr_lex_lit(&at, "] ");
    if (named && rec->who.node.n == 0) {
        rec->who.node = name;
        rec->who.pid = (int64_t)pid;
    }
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, tag;
    struct fr_when when;
    int32_t job = -1, rank = -1;
    if (fr_is_upper(at.p[0])) { /* --timestamp-output: "Tue Nov 25 12:34:56 2025[1,0]<stdout>:" */
        if (!fr_stamp_ctime(&at, ctx->year, &when) || !fr_lex_char(&at, '[')) {
            return false;
        }
        rec->outer = when;
    } else if (!fr_lex_char(&at, '[')) {
        return false;
    }
    tag.p = at.p - 1;
    if (!fr_lex_index(&at, &job)) {
        return false;
    }
    rank = job; /* Horovod's own launcher: "[3]<stderr>:" */
    if (fr_lex_char(&at, ',') && !fr_lex_index(&at, &rank)) {
        return false;
    }
    if (fr_sv_starts(at, FR_SV("] "))) {
        return peel_prepended(rec);
    }
    if (!fr_lex_lit(&at, "]<std") ||
        (!fr_lex_lit(&at, "out") && !fr_lex_lit(&at, "err") && !fr_lex_lit(&at, "diag")) ||
        !fr_lex_lit(&at, ">:")) {
        return false;
    }
    rec->who.task = rank;
    if (rec->who.rank < 0) {
        rec->who.rank = rank; /* of MPI_COMM_WORLD */
    }
    tag.n = (size_t)(at.p - tag.p);
    rec->text = joined(ctx, at, tag);
    take_process(rec);
    return true;
}

/* "mpirun noticed that process rank 7 with PID 4242 on node gpu-3 exited on signal 9 (Killed)." */
static bool noticed(struct fr_draft *d, fr_sv text)
{
    fr_sv at, node;
    int64_t pid = 0, signal = 0;
    fr_sv printed;
    if (!fr_lex_find(text, "noticed that process rank ", &at)) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    (void)fr_draft_num_after(d, FR_KEY_RANK, text, FR_SV("process rank "));
    if (fr_lex_num_after(text, FR_SV(" with PID "), &pid, &printed) && pid > 0) {
        fr_draft_num(d, FR_KEY_PID, pid, printed);
    }
    if (fr_lex_find(text, " on node ", &at) && fr_lex_name(&at, &node)) {
        fr_draft_text(d, FR_KEY_NODE, node);
    }
    if (fr_lex_num_after(text, FR_SV("exited on signal "), &signal, &printed)) {
        fr_draft_num(d, FR_KEY_EXITCODE, -signal, printed);
    }
    return true;
}

/* "  Process name: [[53017,1],3]" and "  Exit code:    1" of the table: two lines, two halves of
 * one fact. */
static bool table_line(struct fr_draft *d, fr_sv text)
{
    fr_sv at;
    int32_t rank = -1;
    int64_t code = 0;
    fr_sv printed;
    if (fr_lex_find(text, "Process name: [[", &at) && fr_lex_find(at, "],", &at) &&
        fr_lex_index(&at, &rank)) {
        d->fact = FR_FACT_EXIT;
        fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
        fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE); /* not 0; the next line says which */
        fr_draft_text(d, FR_KEY_REASON, FR_SV("mpirun-first"));
        return true;
    }
    if (fr_lex_find(text, "Process name: ", &at) && fr_lex_index(&at, &rank) &&
        fr_sv_trim(at).n == 0) { /* Horovod's own launcher */
        d->fact = FR_FACT_EXIT;
        fr_draft_num(d, FR_KEY_RANK, rank, FR_SV_NONE);
        fr_draft_num(d, FR_KEY_EXITCODE, 1, FR_SV_NONE);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("horovodrun"));
        return true;
    }
    if (fr_lex_num_after(text, FR_SV("Exit code: -"), &code, &printed) && code < 65) { /* of a Python parent: a signal */
        d->fact = FR_FACT_EXIT;
        fr_draft_num(d, FR_KEY_EXITCODE, -code, printed);
        return true;
    }
    if (fr_lex_num_after(text, FR_SV("Exit code:    "), &code, &printed) ||
        fr_lex_num_after(text, FR_SV("  Exit code: "), &code, &printed)) {
        d->fact = FR_FACT_EXIT;
        fr_draft_num(d, FR_KEY_EXITCODE, code, printed);
        fr_draft_text(d, FR_KEY_REASON, FR_SV("mpirun-first"));
        return true;
    }
    return false;
}

/* "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD" and PMIx/Hydra's "BAD
 * TERMINATION". */
static bool aborted(struct fr_draft *d, fr_sv text)
{
    if (!fr_draft_num_after(d, FR_KEY_RANK, text, FR_SV("MPI_ABORT was invoked on rank "))) {
        return false;
    }
    d->fact = FR_FACT_EXIT;
    fr_draft_text(d, FR_KEY_REASON, FR_SV("mpi-abort"));
    return true;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    return d != NULL &&
           (noticed(d, rec->text) || table_line(d, rec->text) || aborted(d, rec->text));
}

static const char *const literals[] = {"noticed that process rank ", "Process name: ",
                                       "Exit code:    ", "Exit code: -", "MPI_ABORT was invoked on rank", NULL};

static const struct fr_format_sample samples[] = {
    {"[1,3]<stderr>:Traceback (most recent call last):",
     "task=3 rank=3 text=\"Traceback (most recent call last):\""},
    {"[1,3]<stderr>:KeyError[1,3]<stderr>:: 'lr'[1,3]<stderr>:", "task=3 rank=3 text=\"KeyError: 'lr'\""},
    {"[1,12]<stderr>:[gn-07:18213] Signal: Segmentation fault (11)", "rank=12 node=gn-07 pid=18213 text=\"[gn-07:18213] Signal: Segmentation fault (11)\""},
    {"[1,12]<stderr>:[loop.py:18] starts", "rank=12 node=- pid=-"},
    {"[5]<stderr>:Killed", "task=5 text=Killed"},
    {"Tue Nov 25 12:34:56 2025[1,0]<stdout>:hello", "task=0 text=hello outer=2025-11-25T12:34:56"},
    {"[12-16 14:27:10] Exit code: -9", "fact=exit exitcode=-9"},
    {"Process name: 6", "fact=exit rank=6 exitcode=1 reason=horovodrun"},
    {"Process name: 6 of the pool", ""},
    {"mpirun noticed that process rank 7 with PID 4242 on node gpu-3 exited on signal 9 (Killed).",
     "fact=exit rank=7 pid=4242 node=gpu-3 exitcode=-9"},
    {"mpirun noticed that process rank 1 with PID 0 on node gpu-3 exited on signal 11 "
     "(Segmentation fault).",
     "fact=exit rank=1 pid=- exitcode=-11"},
    {"  Process name: [[53017,1],3]", "fact=exit rank=3"},
    {"  Exit code:    137", "fact=exit exitcode=137"},
    {"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD",
     "fact=exit rank=2 reason=mpi-abort"},
    {"[3]   File \"a.py\", line 2, in f", "task=3 text=\"  File \\\"a.py\\\", line 2, in f\""},
    {"[3] a list item", "task=-"},
    {"[1,3] list", "task=-"},
    {NULL, NULL}};

const struct fr_format fr_format_mpirun = {.name = "mpirun",
                                           .summary =
                                               "Open MPI: [1,3]<stderr>: tags and exit notices",
                                           .peel = peel,
                                           .literals = literals,
                                           .facts = facts,
                                           .samples = samples};
