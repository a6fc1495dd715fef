/* SPDX-License-Identifier: Apache-2.0 */
/* stack: dumps that py-spy and gdb took of running processes: what each main
 * thread was doing. Where one process is somewhere else than all others, it is
 * the one they wait for. Owned by the tracer. Heads that follow each other
 * without frames between them share the stack below them, as people paste them.
 * Bounded: 64 heads and 16 stacks that wait to be fetched, the rest is left
 * out; 1 KiB of names each. */
#ifndef FR_FORMAT_STACK_H
#define FR_FORMAT_STACK_H

#include "format/format.h"

enum {
    FR_STACK_HEADS = 64,
    FR_STACK_MAX = 16,
    FR_STACK_TEXT = 160,
    FR_STACK_NAMES = 1024,
    FR_STACK_PLACE = 256
};

struct fr_stack_head {
    int64_t pid; /* the main thread's id is the process's; -1 unknown */
    uint64_t offset, line;
    struct fr_who who;
    struct fr_when when, outer;
    bool is_idle;
    uint8_t stack; /* the one below it */
    char text[FR_STACK_TEXT];
    size_t text_n;
};
struct fr_stack {
    uint32_t refs, frames; /* refs: heads that wait; 0 = free */
    bool is_done, is_gdb;
    uint64_t speaker;
    char names[FR_STACK_NAMES]; /* functions, innermost first, joined by " < " */
    char func[FR_STACK_PLACE], place[FR_STACK_PLACE]; /* of the innermost frame */
    size_t names_n, func_n, place_n;
};
struct fr_stacks {
    struct fr_stack_head heads[FR_STACK_HEADS];
    struct fr_stack v[FR_STACK_MAX];
    struct fr_stack *current; /* frames go there */
    uint32_t n, idle;
};

bool fr_stack_opens(fr_sv text); /* text is the head of a main thread's stack */
bool fr_stacks_open(const struct fr_stacks *s);
/* True: the line was a head or a frame, and is nobody else's. */
bool fr_stacks_feed(struct fr_stacks *s, const struct fr_record *rec, fr_sv text, uint64_t speaker);
void fr_stacks_age(struct fr_stacks *s, bool at_end);
/* 1 = *ret is a row with FR_FACT_STACK of one head, 0 = nothing is complete. */
int fr_stacks_take(struct fr_stacks *s, struct fr_arena *out, struct fr_trace_done *ret);

#endif
