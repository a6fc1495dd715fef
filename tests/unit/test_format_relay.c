/* SPDX-License-Identifier: Apache-2.0 */
/* What a program puts in front of another one's lines is learned, and what only looks like it is not. */
#include "format/relay.h"
#include "support/t.h"

#include <stdio.h>
#include <string.h>

static struct fr_arena scratch = FR_ARENA_INIT(0);
static const struct fr_peel_ctx plain = {.scratch = &scratch, .year = 2026};

#define TRAINING                                                                       \
    "%starting fit.py\n%step 1 loss 2.5\n%step 2 loss 2.4\n%\n%step 3 loss 2.3\n"      \
    "%Traceback (most recent call last):\n%  File \"a.py\", line 3, in <module>\n"     \
    "%    fit()\n%KeyError: 'x'\n"
#define NCCL "%gn11:901:902 [1] NCCL INFO Bootstrap\n%gn11:901:902 [1] NCCL INFO NET/IB\n%gn11:901:902 [1] NCCL INFO Setting\n%gn11:901:902 [1] NCCL INFO Connected\n"
#define DUMP "%config\n%  lr 0.1\n%  steps 10\n%step 1\n%step 2\n%step 3\n%step 4\n%step 5\n%step 6\n%step 7\n%step 8\n%step 9\n%step 10\n%step 11\n%step 12\n%done\n"

/* The text of `line`, read after a source of `form`, where '%' is what stands in front. */
static struct fr_record read_line(const char *form, const char *front, const char *line)
{
    static char head[8 << 10];
    static struct fr_relay relay;
    struct fr_peel_ctx ctx = plain;
    struct fr_record rec;
    size_t n = 0;
    for (const char *p = form; *p != '\0'; p++) {
        n += *p == '%' ? (size_t)snprintf(head + n, sizeof head - n, "%s", front) : (size_t)snprintf(head + n, sizeof head - n, "%c", *p);
    }
    ctx.relay = fr_relay_learn(&plain, (fr_sv){head, n}, &relay) ? &relay : NULL;
    fr_peel(&ctx, fr_sv_z(line), &rec);
    return rec;
}

T_TEST(what_stands_in_front)
{
    static const struct { const char *form, *front, *line, *text; uint8_t level; } rows[] = {
        {TRAINING, "2026-05-04 03:02:01,123 INFO stdout: ", "2026-05-04 03:02:09,123 INFO stdout: KeyError: 'x'", "KeyError: 'x'", FR_LEVEL_NONE},
        {TRAINING, "[2026-05-04, 03:02:01 UTC] {subprocess.py:93} INFO - ", "[2026-05-04, 03:02:01 UTC] {subprocess.py:93} INFO - KeyError: 'x'", "KeyError: 'x'",
         FR_LEVEL_NONE},
        {TRAINING, "INFO:root:", "INFO:root:KeyError: 'x'", "KeyError: 'x'", FR_LEVEL_NONE},
        {TRAINING, "INFO:root:", "ERROR:root:KeyError: 'x'", "KeyError: 'x'", FR_LEVEL_ERROR},  /* its own word */
        {TRAINING, "INFO:root:", "INFO:root:WARNING:fit:slow", "slow", FR_LEVEL_WARN},          /* the other one's */
        {NCCL, "[base] ", "[base] gn11:901:902 [1] NCCL WARN x", "x", FR_LEVEL_WARN},
        {NCCL, "    ", "    gn11:901:902 [1] NCCL WARN x", "x", FR_LEVEL_WARN},
        {DUMP, "INFO:root:", "INFO:root:step 13", "step 13", FR_LEVEL_INFO},                    /* a list is indented, too */
        {"iter 4000: loss 2.5\niter 4010: loss 2.4\niter 4020: loss 2.3\niter 4030: loss 2.2\n", "", "iter 4040: loss 2.1", "iter 4040: loss 2.1", FR_LEVEL_NONE},
        {"%File \"a.py\", line 3, in f\n%  g()\n%File \"b.py\", line 4, in g\n%  h()\n%File \"c.py\", line 5, in h\n%  i()\n", "  ", "  File \"a.py\", line 3, in f",
         "  File \"a.py\", line 3, in f", FR_LEVEL_NONE},                                        /* frames, and no quotation */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fr_record rec = read_line(rows[i].form, rows[i].front, rows[i].line);
        T_EQ_SV(rec.text, fr_sv_z(rows[i].text));
        T_EQ_INT(rec.level, rows[i].level);
        fr_arena_reset(&scratch);
    }
    fr_arena_release(&scratch);
}

/* Learned after `plain_lines` lines that prove nothing, is the front of `bytes` bytes taken off? */
static bool is_learned(unsigned plain_lines, size_t bytes)
{
    char front[2 * FR_RELAY_BYTES], line[3 * FR_RELAY_BYTES], form[2 << 10];
    memset(front, 'x', sizeof front);
    snprintf(front + bytes - 2, 3, ": ");
    size_t n = 0;
    for (unsigned i = 0; i < plain_lines; i++) {
        n += (size_t)snprintf(form + n, sizeof form - n, "%%step 1\n");
    }
    for (unsigned i = 0; i < 12; i++) { /* three of each line count */
        n += (size_t)snprintf(form + n, sizeof form - n, "%%Traceback (most recent call last):\n");
    }
    snprintf(line, sizeof line, "%sKeyError: 'x'", front);
    struct fr_record rec = read_line(form, front, line);
    bool learned = fr_sv_eq(rec.text, FR_SV("KeyError: 'x'"));
    fr_arena_reset(&scratch);
    return learned;
}

T_TEST(limits)
{
    T_EQ_INT(is_learned(0, FR_RELAY_BYTES), true);
    T_EQ_INT(is_learned(0, FR_RELAY_BYTES + 1), false);
    T_EQ_INT(is_learned(93, 8), true); /* 7 headers among the first 100 lines: 21 signs */
    T_EQ_INT(is_learned(94, 8), false);
    fr_arena_release(&scratch);
}

int main(void)
{
    return t_run();
}
