/* SPDX-License-Identifier: Apache-2.0 */
/* A tag that a script made up is learned from many lines, and what only looks like one is not. */
#include "format/own_tag.h"
#include "support/t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fr_arena scratch = FR_ARENA_INIT(0);
static const struct fr_peel_ctx plain = {.scratch = &scratch, .year = 2026};
static char head[64 << 10];

/* Lines of `ranks` processes that print ten steps each, in another order every time; form: the tag, with '%' for the rank and '~' for
 * the rank in a column of two. */
static fr_sv steps_of(const char *form, int ranks)
{
    size_t n = 0;
    for (int step = 0; step < 10; step++) {
        for (int i = 0; i < ranks; i++) {
            int rank = (i * 3 + step * 2) % ranks;
            for (const char *p = form; *p != '\0'; p++) {
                if (*p == '%' || *p == '~') {
                    n += (size_t)snprintf(head + n, sizeof head - n, "%*d", *p == '~' ? 2 : 1, rank);
                } else {
                    head[n++] = *p;
                }
            }
            n += (size_t)snprintf(head + n, sizeof head - n, "step %d loss 2.5\n", step);
        }
    }
    return (fr_sv){head, n};
}

/* "rank 2", "local 2", "task 2", or "" where nothing is peeled off: how the line is read after its source was learned. */
static const char *read_line(fr_sv source, const char *line)
{
    static char said[32];
    struct fr_own_tag own;
    struct fr_record rec;
    struct fr_peel_ctx ctx = plain;
    ctx.own = fr_own_tag_learn(&plain, source, &own) ? &own : NULL;
    fr_peel(&ctx, fr_sv_z(line), &rec);
    said[0] = '\0';
    if (rec.who.rank >= 0) {
        snprintf(said, sizeof said, "rank %d", rec.who.rank);
    } else if (rec.who.local_rank >= 0) {
        snprintf(said, sizeof said, "local %d", rec.who.local_rank);
    } else if (rec.who.task >= 0) {
        snprintf(said, sizeof said, "task %d", rec.who.task);
    }
    fr_arena_reset(&scratch);
    return said;
}

/* Few lines, and of numbers: what they are is said behind them. */
T_TEST(tags_that_agree_with_the_text)
{
    static const struct { const char *source, *line, *want; } rows[] = {
        {"[4]:I rank 4 of 5 starts\n[0]:I rank 0 of 5 starts\n[3]:I rank 3 of 5 starts\n[2]:I rank 2 of 5 starts\n[1]:I rank 1 of 5 starts\n[0]:I step=4\n",
         "[4]:KeyError: 'x'", "rank 4"},
        {"worker1> Rank 1 is connected\nworker0> Rank 0 is connected\nworker2> Rank 2 is connected\nworker0> a\nworker0> b\nworker1> c\n", "worker2> KeyError: 'x'", "rank 2"},
        {"[4]:I rank 1 of 5 starts\n[0]:I rank 2 of 5 starts\n[3]:I rank 0 of 5 starts\n[2]:I rank 2 of 5 starts\n[1]:I rank 3 of 5 starts\n[0]:I step=4\n",
         "[4]:KeyError: 'x'", ""}, /* another numbering */
        {"[4]:I rank 4 of 5 starts\n[0]:a\n[3]:b\n[2]:c\n[1]:d\n[0]:e\n", "[4]:KeyError: 'x'", ""}, /* one may agree by chance */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        T_EQ_STR(read_line(fr_sv_z(rows[i].source), rows[i].line), rows[i].want);
    }
}

T_TEST(tags_that_people_make_up)
{
    static const struct { const char *form, *line, *want; } rows[] = {
        {"[R%] ", "[R2] KeyError: 'x'", "rank 2"},
        {"rank %: ", "rank 3: KeyError: 'x'", "rank 3"},
        {"Rank[%] ", "Rank[1] KeyError: 'x'", "rank 1"},
        {"[rank % of 4] ", "[rank 2 of 4] KeyError: 'x'", "rank 2"},
        {"worker % - ", "worker 3 - KeyError: 'x'", "task 3"},
        {"(%/4) ", "(2/4) KeyError: 'x'", "task 2"},
        {"[%] ", "[3] KeyError: 'x'", "task 3"},
        {"%| ", "1| KeyError: 'x'", "task 1"},
        {"gpu%: ", "gpu2: KeyError: 'x'", "local 2"},
        {"[cuda:%] ", "[cuda:2] KeyError: 'x'", "local 2"},
        {"2026-03-09 10:00:00,410 INFO [x%] ", "2026-03-09 10:00:09,410 INFO [x2] bad", ""}, /* "x" may be anything */
        {"2026-03-09 10:00:00,410 [R%] ", "2026-03-09 10:00:09,410 [R2] bad", "rank 2"},
        {"2026-03-09 10:00:00,410 worker%: INFO ", "2026-03-09 10:00:09,410 worker2: INFO bad", "task 2"},
        {"2026-03-09 10:00:00 | INFO | trainer-% | ", "2026-03-09 10:00:09 | INFO | trainer-3 | bad", "task 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        T_EQ_STR(read_line(steps_of(rows[i].form, 4), rows[i].line), rows[i].want);
    }
}

T_TEST(what_only_looks_like_a_tag)
{
    char counter[4096] = "", devices[4096] = "", rare[8192] = "";
    size_t n = 0;
    for (int epoch = 0; epoch < 6; epoch++) { /* batches of epochs: rising, and again from the start */
        for (int batch = 0; batch < 4; batch++) {
            n += (size_t)snprintf(counter + n, sizeof counter - n, "[%d/4] epoch %d loss 2.5\n", batch, epoch);
        }
    }
    T_EQ_STR(read_line(fr_sv_z(counter), "[2/4] epoch 9 loss nan"), "");
    n = 0;
    for (int i = 0; i < 40; i++) { /* a monitor of devices, no ranks */
        n += (size_t)snprintf(devices + n, sizeof devices - n, "GPU %d: 61 C, 512 W\n", i * 3 % 8);
    }
    T_EQ_STR(read_line(fr_sv_z(devices), "GPU 3: 61 C, 512 W"), "");
    n = 0;
    for (int i = 0; i < 60; i++) { /* talk about workers among other lines */
        if (i % 6 == 0) {
            n += (size_t)snprintf(rare + n, sizeof rare - n, "worker %d: epoch begins\n", i * 5 % 4);
        } else {
            n += (size_t)snprintf(rare + n, sizeof rare - n, "step %d loss 2.5\n", i);
        }
    }
    T_EQ_STR(read_line(fr_sv_z(rare), "worker 3: epoch begins"), "");
    T_EQ_STR(read_line(steps_of("layer %: ", 4), "layer 3: step"), "");
    T_EQ_STR(read_line(steps_of("[epoch %] ", 4), "[epoch 3] step"), "");
    T_EQ_STR(read_line(fr_sv_z(""), "[R2] text"), "");
    T_EQ_STR(read_line(fr_sv_z("[R2] text"), "[R2] text"), "");
}

T_TEST(a_shape_is_kept_to)
{
    fr_sv source = steps_of("[R%] ", 4);
    T_EQ_STR(read_line(source, "[R2]: other"), "");
    T_EQ_STR(read_line(source, "(R2) other"), "");
    T_EQ_STR(read_line(source, "[R12345] too high"), "");
    source = steps_of("(%/4) ", 4);
    T_EQ_STR(read_line(source, "(2/100) batches"), "");
    source = steps_of("[~] ", 16); /* "[ 3]" and "[12]" are one */
    T_EQ_STR(read_line(source, "[ 3] text"), "task 3");
    T_EQ_STR(read_line(source, "[12] text"), "task 12");
}

/* Lines that begin with `before` and a number that counts from `first`, put behind the n bytes of `head`; returns the bytes then. */
static size_t put_lines(size_t n, const char *before, const char *after, int lines, int first)
{
    for (int i = 0; i < lines; i++) {
        n += (size_t)snprintf(head + n, sizeof head - n, "%s%d%s step 1 loss 2.5\n", before, first + i, after);
    }
    return n;
}

T_TEST(how_much_is_looked_at)
{
    fr_sv learned = steps_of("[R%] ", 4);
    T_EQ_STR(read_line(learned, "[R2] text"), "rank 2");
    size_t n = put_lines(learned.n, "[R", "]", 1, 1023);
    T_EQ_STR(read_line((fr_sv){head, n}, "[R2] text"), "rank 2");
    n = put_lines(n, "[R", "]", 1, 1024); /* one more than are told apart */
    T_EQ_STR(read_line((fr_sv){head, n}, "[R2] text"), "");

    for (int before = 95; before <= 96; before++) { /* lines without any tag, and then many with one */
        n = put_lines(0, "loading part ", "", before, 0);
        for (int i = 0; i < 60; i++) {
            n = put_lines(n, "[R", "]", 4, 0);
        }
        T_EQ_STR(read_line((fr_sv){head, n}, "[R2] text"), before == 95 ? "rank 2" : "");
    }
    n = put_lines(put_lines(put_lines(0, "[R", "]", 2, 0), "[R", "]", 2, 0), "[R", "]", 1, 0);
    T_EQ_STR(read_line((fr_sv){head, n}, "[R2] text"), ""); /* five lines */
    n = put_lines(n, "[R", "]", 1, 1);
    T_EQ_STR(read_line((fr_sv){head, n}, "[R2] text"), "rank 2");
}

T_TEST(so_many_shapes_are_weighed)
{
    static const struct { const char *before, *after; } others[] = {{"(R", ")"}, {"@", ":"}, {"{", "}"}, {"gpu", ":"}, {"w", ":"}, {"p", ":"}, {"task ", ":"}, {"proc ", ":"}};
    for (size_t before = 7; before <= 8; before++) {
        size_t n = 0;
        for (size_t i = 0; i < before; i++) {
            n = put_lines(n, others[i].before, others[i].after, 1, 0);
        }
        for (int i = 0; i < 20; i++) {
            n = put_lines(n, "[R", "]", 4, 0);
        }
        T_EQ_STR(read_line((fr_sv){head, n}, "[R2] text"), before == 7 ? "rank 2" : "");
    }
}

T_TEST(any_head_of_any_length)
{
    static const char text[] = "[R0] step 0 loss 2.5\n\n[\n[[[[\n[R\n[R999999999\n(1/99999999999) x\n1\n#\n\x1b[31m[R1] x\x1b[0m\n\r\n[rank 1 of ] x";
    for (size_t n = 0; n < sizeof text; n++) {
        struct fr_own_tag own;
        char *copy = malloc(n + 1);
        T_OK(copy != NULL);
        memcpy(copy, text, n);
        (void)fr_own_tag_learn(&plain, (fr_sv){copy, n}, &own);
        free(copy);
        fr_arena_reset(&scratch);
    }
}

int main(void)
{
    int rc = t_run();
    fr_arena_release(&scratch);
    return rc;
}
