/* SPDX-License-Identifier: Apache-2.0 */
/* stack: see stack.h. */
#include "format/stack.h"

#include "format/lex.h"

enum { IDLE_MAX = 64, FRAMES_MAX = 400, DETAIL = 7 };

/* 'Thread 5101 (active): "MainThread"' of py-spy, also with "+gil" and
 * hexadecimal ids. */
static bool pyspy_head(fr_sv text, int64_t *ret_pid, bool *ret_idle)
{
    fr_sv at = fr_sv_trim(text), status;
    uint64_t id = 0;
    *ret_pid = -1;
    if (!fr_lex_lit(&at, "Thread ")) {
        return false;
    }
    if (fr_lex_lit(&at, "0x")) {
        if (!fr_lex_hex(&at, &id)) {
            return false;
        }
    } else if (fr_lex_digits(&at, 1, 10, &id)) {
        *ret_pid = (int64_t)id;
    } else {
        return false;
    }
    if (!fr_lex_lit(&at, " (") || !fr_lex_until(&at, ')', &status) || status.n > 16 ||
        !fr_lex_lit(&at, ": \"MainThread\"")) {
        return false;
    }
    *ret_idle = fr_sv_starts(status, FR_SV("idle"));
    return true;
}

/* 'Thread 1 (Thread 0x7f1 (LWP 4242) "python"):', 'Thread 1 (LWP 4242):' of
 * gdb: number 1 is the main thread. */
static bool gdb_head(fr_sv text, int64_t *ret_pid)
{
    fr_sv at = fr_sv_trim(text);
    uint64_t id = 0;
    if (!fr_lex_lit(&at, "Thread 1 (") || !fr_lex_find(at, "LWP ", &at) ||
        !fr_lex_digits(&at, 1, 10, &id)) {
        return false;
    }
    *ret_pid = (int64_t)id;
    return true;
}

bool fr_stack_opens(fr_sv text)
{
    int64_t pid;
    bool is_idle;
    return fr_sv_has(text, FR_SV("Thread ")) &&
           (pyspy_head(text, &pid, &is_idle) || gdb_head(text, &pid));
}

bool fr_stacks_open(const struct fr_stacks *s)
{
    return s->n > 0 || s->current != NULL;
}

/* "    broadcast (torch/distributed/distributed_c10d.py:1570)" */
static bool pyspy_frame(fr_sv text, fr_sv *ret_func, fr_sv *ret_place)
{
    fr_sv at = text;
    size_t indent = fr_lex_spaces(&at), open;
    while (at.n > 0 && fr_is_space(at.p[at.n - 1])) {
        at.n--;
    }
    if (indent < 2 || at.n < 5 || at.p[at.n - 1] != ')') {
        return false;
    }
    for (open = at.n; open > 0 && at.p[open - 1] != '('; open--) {
    }
    if (open < 3 || at.p[open - 2] != ' ') {
        return false;
    }
    *ret_func = fr_sv_head(at, open - 2);
    *ret_place = fr_sv_range(at.p + open, at.p + at.n - 1);
    return ret_place->n > 0 && fr_sv_chr(*ret_place, ' ') == FR_NPOS;
}

/* "#1  0x00007f in ncclBcast () from /lib/libnccl.so.2", "#2 main (argc=3) at
 * main.c:12" */
static bool gdb_frame(fr_sv text, fr_sv *ret_func, fr_sv *ret_place)
{
    fr_sv at = fr_sv_trim(text), rest;
    uint64_t n = 0;
    if (!fr_lex_char(&at, '#') || !fr_lex_digits(&at, 1, 4, &n) || fr_lex_spaces(&at) == 0) {
        return false;
    }
    if (fr_lex_lit(&at, "0x") && (!fr_lex_hex(&at, &n) || !fr_lex_lit(&at, " in "))) {
        return false;
    }
    size_t end = fr_sv_find(at, FR_SV(" ("));
    *ret_func = fr_sv_head(at, end);
    *ret_place = FR_SV_NONE;
    if (fr_lex_find(at, ") at ", &rest) || fr_lex_find(at, ") from ", &rest)) {
        *ret_place = rest;
    }
    return ret_func->n > 0;
}

static size_t keep(char *to, size_t room, fr_sv s)
{
    size_t n = s.n < room ? s.n : room;
    memcpy(to, s.p, n);
    return n;
}

static void take_frame(struct fr_stack *s, fr_sv func, fr_sv place)
{
    if (s->frames++ == 0) {
        s->func_n = keep(s->func, sizeof s->func, func);
        s->place_n = keep(s->place, sizeof s->place, place.n > 0 ? place : FR_SV("?"));
    } else if (s->names_n + 3 < sizeof s->names) {
        s->names_n += keep(s->names + s->names_n, sizeof s->names - s->names_n, FR_SV(" < "));
    }
    s->names_n += keep(s->names + s->names_n, sizeof s->names - s->names_n, func);
}

static void complete(struct fr_stacks *s)
{
    if (s->current != NULL) {
        s->current->is_done = true;
        s->current = NULL;
    }
}

static struct fr_stack *stack_new(struct fr_stacks *s, uint64_t speaker, bool is_gdb)
{
    for (uint32_t i = 0; i < FR_STACK_MAX; i++) {
        if (s->v[i].refs == 0) {
            s->v[i] = (struct fr_stack){.speaker = speaker, .is_gdb = is_gdb};
            return &s->v[i];
        }
    }
    return NULL;
}

static void take_head(struct fr_stacks *s, const struct fr_record *rec, fr_sv text, int64_t pid,
                      bool is_idle)
{
    struct fr_stack_head *h = &s->heads[s->n++];
    *h = (struct fr_stack_head){.pid = pid,
                                .offset = rec->offset,
                                .line = rec->lineno,
                                .who = rec->who,
                                .when = rec->when,
                                .outer = rec->outer,
                                .is_idle = is_idle,
                                .stack = (uint8_t)(s->current - s->v)};
    h->who.node = h->who.role = FR_SV_NONE; /* they would not outlive the line */
    h->text_n = keep(h->text, sizeof h->text, fr_sv_trim(text));
    s->current->refs++;
}

static bool feed_head(struct fr_stacks *s, const struct fr_record *rec, fr_sv text,
                      uint64_t speaker)
{
    int64_t pid = -1;
    bool is_idle = false;
    bool is_gdb = !pyspy_head(text, &pid, &is_idle) && gdb_head(text, &pid);
    if (s->current != NULL && (s->current->frames > 0 || s->current->speaker != speaker)) {
        complete(s);
    }
    if (s->current == NULL && s->n < FR_STACK_HEADS) {
        s->current = stack_new(s, speaker, is_gdb);
    }
    if (s->current != NULL && s->n < FR_STACK_HEADS) {
        take_head(s, rec, text, pid, is_idle);
    }
    return true;
}

bool fr_stacks_feed(struct fr_stacks *s, const struct fr_record *rec, fr_sv text, uint64_t speaker)
{
    fr_sv func, place, at = text;
    if (fr_stack_opens(text)) {
        s->idle = 0;
        return feed_head(s, rec, text, speaker);
    }
    struct fr_stack *now = s->current;
    if (now == NULL || now->speaker != speaker) {
        return false;
    }
    s->idle = 0;
    bool is_detail = now->frames > 0 && fr_lex_spaces(&at) > DETAIL; /* "Locals:" and values */
    bool is_frame = !is_detail && (now->is_gdb ? gdb_frame(text, &func, &place)
                                               : pyspy_frame(text, &func, &place));
    if (is_frame && now->frames < FRAMES_MAX) {
        take_frame(now, func, place);
    } else if (!is_detail) {
        complete(s);
    }
    return is_frame || is_detail;
}

void fr_stacks_age(struct fr_stacks *s, bool at_end)
{
    if (s->current != NULL && (at_end || ++s->idle > IDLE_MAX)) {
        complete(s);
    }
}

static void fill(const struct fr_stack_head *h, const struct fr_stack *stack, struct fr_arena *out,
                 struct fr_trace_done *ret)
{
    *ret = (struct fr_trace_done){.is_row = true,
                                  .who = h->who,
                                  .when = h->when,
                                  .outer = h->outer,
                                  .offset = h->offset,
                                  .line = h->line,
                                  .exc_offset = h->offset,
                                  .exc_line = h->line};
    struct fr_draft *d = &ret->row;
    ret->exc_text = fr_arena_dup(out, (fr_sv){h->text, h->text_n});
    d->fact = FR_FACT_STACK;
    if (h->pid > 0) {
        ret->who.pid = h->pid;
        fr_draft_num(d, FR_KEY_PID, h->pid, FR_SV_NONE);
    }
    fr_draft_text(d, FR_KEY_REASON, h->is_idle ? FR_SV("idle") : FR_SV("active"));
    fr_draft_text(d, FR_KEY_OP, fr_arena_dup(out, (fr_sv){stack->func, stack->func_n}));
    fr_draft_text(d, FR_KEY_PATH, fr_arena_dup(out, (fr_sv){stack->place, stack->place_n}));
    fr_draft_text(d, FR_KEY_MODULE, fr_arena_dup(out, (fr_sv){stack->names, stack->names_n}));
}

int fr_stacks_take(struct fr_stacks *s, struct fr_arena *out, struct fr_trace_done *ret)
{
    while (s->n > 0 && s->v[s->heads[0].stack].is_done) {
        struct fr_stack *stack = &s->v[s->heads[0].stack];
        bool has_frames = stack->frames > 0;
        if (has_frames) {
            fill(&s->heads[0], stack, out, ret);
        }
        stack->refs--;
        memmove(s->heads, s->heads + 1, --s->n * sizeof *s->heads);
        if (has_frames) {
            return 1;
        }
    }
    return 0;
}
