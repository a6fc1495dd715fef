/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of physical lines, prefixes several deep, terminals' leftovers, hostile bytes. */
#include "format/format.h"
#include "support/t.h"

static struct fr_arena scratch = FR_ARENA_INIT(0);
static const struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};

static struct fr_record peel(const char *line)
{
    struct fr_record rec;
    fr_peel(&ctx, fr_sv_z(line), &rec);
    return rec;
}

/* The segments of line, joined by "|". */
static const char *segments(const char *line)
{
    static char joined[1024];
    size_t n = 0;
    fr_sv rest = fr_sv_z(line), seg;
    while (fr_segment_next(&rest, &seg)) {
        n += (size_t)snprintf(joined + n, sizeof joined - n, "%s%.*s", n > 0 ? "~" : "",
                              FR_SV_ARG(seg));
    }
    joined[n] = '\0';
    return joined;
}

T_TEST(one_writer_is_one_segment)
{
    T_EQ_STR(segments("plain text"), "plain text");
    T_EQ_STR(segments("[default3]:[rank11]: Traceback"), "[default3]:[rank11]: Traceback");
    T_EQ_STR(segments("  3: [rank3]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 3] x"),
             "  3: [rank3]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 3] x");
    T_EQ_STR(segments("2025-11-25T12:34:56.1Z stderr F [rank1]: x"),
             "2025-11-25T12:34:56.1Z stderr F [rank1]: x");
    T_EQ_STR(segments("(Trainer pid=7) [W socket.cpp:697] [c10d] x"),
             "(Trainer pid=7) [W socket.cpp:697] [c10d] x");
    T_EQ_STR(segments("> WARNING:torch.distributed.x:Sending"),
             "> WARNING:torch.distributed.x:Sending");
    T_EQ_STR(segments("\033[31m[rank1]: red\033[0m"), "\033[31m[rank1]: red\033[0m");
    T_EQ_STR(segments("{\"log\":\"a [rank1]: b\"}"), "{\"log\":\"a [rank1]: b\"}");
    T_EQ_STR(segments("call f(x, pid=3) here"), "call f(x, pid=3) here");
    T_EQ_STR(segments("sizes [dim0]: 5"), "sizes [dim0]: 5");
    T_EQ_STR(segments("May 15 23:09:30 gpu07 kernel: [  518.050606] NVRM: x"),
             "May 15 23:09:30 gpu07 kernel: [  518.050606] NVRM: x");
}

T_TEST(several_writers_on_one_line)
{
    T_EQ_STR(segments(" 10%|#  | 1/9\r 20%|## | 2/9\rdone"), " 10%|#  | 1/9~ 20%|## | 2/9~done");
    T_EQ_STR(segments("\r\r   \rx\r"), "x");
    T_EQ_STR(segments("[default1]:partial-1 [default0]:partial-0"),
             "[default1]:partial-1 ~[default0]:partial-0");
    T_EQ_STR(segments("[actor1]:a[actor0]:b"), "[actor1]:a~[actor0]:b");
    T_EQ_STR(segments("[Rank 0] step 2/20 loss=0.68[Rank 1] step 2/20 loss=0.66"),
             "[Rank 0] step 2/20 loss=0.68~[Rank 1] step 2/20 loss=0.66");
    T_EQ_STR(segments("lost [Rank 1] of the group"), "lost [Rank 1] of the group");
    T_EQ_STR(segments("12%|#  | 3/9, loss=2][E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog"),
             "12%|#  | 3/9, loss=2]~[E ProcessGroupNCCL.cpp:458] [Rank 0] Watchdog");
    T_EQ_STR(segments("0/9 [00:00<?, ?it/s][rank2]:[E808 04:21:41.160918398 x.cpp:5] y"),
             "0/9 [00:00<?, ?it/s]~[rank2]:[E808 04:21:41.160918398 x.cpp:5] y");
    T_EQ_STR(segments("Map: 96%|###WARNING:torch.distributed.elastic:Sending"),
             "Map: 96%|###~WARNING:torch.distributed.elastic:Sending");
    T_EQ_STR(segments("step 4E1130 14:52:02.024000 27144 torch/x.py:1002] failed"),
             "step 4~E1130 14:52:02.024000 27144 torch/x.py:1002] failed");
    T_EQ_STR(segments("loss 1.5 [ 4502.694381] python3 invoked oom-killer"),
             "loss 1.5 ~[ 4502.694381] python3 invoked oom-killer");
    T_EQ_STR(segments("  0%| | 0/13(Worker pid=12) INFO x"), "  0%| | 0/13~(Worker pid=12) INFO x");
    T_EQ_STR(segments("0%| | 0/5 [?it/s][WARNING|logging.py:290] 2023-11-04 02:38:30,787 >> You"),
             "0%| | 0/5 [?it/s]~[WARNING|logging.py:290] 2023-11-04 02:38:30,787 >> You");
}

T_TEST(prefixes_stack)
{
    struct fr_record r =
        peel("{\"log\":\"\\u001b[31m[default3]:[rank11]:[E808 04:21:41.160918398 "
             "ProcessGroupNCCL.cpp:655] [PG ID 2 PG GUID 9(tp) Rank 1] lost\\u001b[0m\\n\","
             "\"stream\":\"stderr\",\"time\":\"2026-08-08T02:21:42.5Z\"}");
    T_EQ_INT(r.who.local_rank, 3);
    T_EQ_INT(r.who.rank, 11);
    T_EQ_INT(r.who.pg_rank, 1);
    T_EQ_INT(r.level, FR_LEVEL_ERROR);
    T_EQ_INT(r.when.resolution_ns, FR_NS_PER_S);
    T_EQ_INT(r.outer.basis, FR_TIME_BASIS_UTC);
    T_EQ_SV(r.text, FR_SV("lost"));

    r = peel("[pod/fit-worker-2/main] 2025-11-25T12:34:56.123Z  5: node07: 2025-11-25 13:34:56,120 "
             "ERROR [fit] gone");
    T_EQ_SV(r.who.node, FR_SV("fit-worker-2"));
    T_EQ_INT(r.who.task, 5);
    r = peel("2025-11-25T12:34:56.123Z 12: (Worker[rank=8] pid=77, ip=10.0.0.2) 2025-11-25 "
             "13:34:56,120\tWARNING w.py:7 -- slow [repeated 3x across cluster]");
    T_EQ_INT(r.who.task, 12);
    T_EQ_INT(r.who.rank, 8);
    T_EQ_INT(r.who.pid, 77);
    T_OK(r.repeated);
    T_EQ_INT(r.level, FR_LEVEL_WARN);
    T_EQ_SV(r.text, FR_SV("slow"));

    r = peel("0: [1,3]<stderr>:gpu-1:811:902 [5] NCCL INFO Bootstrap : Using eth0:10.2.0.5<0>");
    T_EQ_INT(r.who.task, 3);
    T_EQ_INT(r.who.gpu, 5);
    T_EQ_INT(r.who.rank, 3);
    T_EQ_SV(r.text, FR_SV("Bootstrap : Using eth0:10.2.0.5<0>"));
}

T_TEST(terminals)
{
    T_EQ_SV(peel("#033[2m#033[33m(raylet)#033[0m lost").text, FR_SV("lost"));
    T_EQ_SV(peel("\033[1;36m(EngineCore pid=5)\033[0;0m \033[31mlost\033[0m").text, FR_SV("lost"));
    T_EQ_SV(peel("^[[1;36m(EngineCore pid=5)^[[0;0m lost").text, FR_SV("lost"));
    T_EQ_SV(peel("[36m(EngineCore pid=5)[0m lost").text, FR_SV("lost"));
    T_EQ_SV(peel("\033]0;title\a\033(Bhello").text, FR_SV("hello"));
    T_EQ_SV(peel("ab\bc\r").text, FR_SV("abc"));
    T_EQ_SV(peel("tail \033[").text, FR_SV("tail"));
    T_EQ_SV(peel("[31m is not stripped without its reset").text,
            FR_SV("[31m is not stripped without its reset"));
}

T_TEST(look_alikes_stay_text)
{
    T_EQ_INT(peel("[3] NCCL-like text").who.gpu, -1);
    T_EQ_INT(peel("[1]: first item").who.task, -1);
    T_EQ_INT(peel("[Rank 3] NCCL watchdog thread, a PG rank").who.rank, -1);
    T_EQ_INT(peel("[PG 1 Rank 10] x").who.rank, -1);
    T_EQ_INT(peel("gpu-1:1:2 [7] NCCL WARN x").who.rank, -1);
    T_EQ_INT(peel("12:34:56 text").who.task, -1);
    T_EQ_INT(peel("0x1234: address").who.task, -1);
    T_EQ_INT(peel("123456: too long for a task").who.task, -1);
    T_EQ_INT(peel("").level, FR_LEVEL_NONE);
}

T_TEST(hostile_lines)
{
    static const char *const seeds[] = {"[default3]:[rank1]: ",
                                        "[rank",
                                        "[PG ID 1 PG GUID 2 Rank ",
                                        "(a pid=",
                                        "{\"log\":\"",
                                        "2026-11-30 15:06:06,689 INFO [x] ",
                                        "[E808 04:21:41.160918398 a.cpp:1] ",
                                        "<134>1 2025-11-25T12:34:56.003Z h a 1 m [",
                                        "\033[",
                                        "\033]",
                                        "^[[",
                                        "[ 12.345678] ",
                                        "6,1,2,-;",
                                        "99999999999999999999: ",
                                        "[99999999999,1]<stderr>:"};
    unsigned x = 12345;
    for (int i = 0; i < 20000; i++) {
        char line[256];
        size_t n = 0;
        while (n < sizeof line - 64) {
            x = x * 1103515245u + 12345u;
            unsigned pick = x >> 16;
            const char *s = seeds[pick % (sizeof seeds / sizeof *seeds)];
            size_t len = strlen(s), cut = (pick >> 4) % 4 == 0 ? len : (pick >> 6) % (len + 1);
            memcpy(line + n, s, cut);
            n += cut;
            line[n++] = (char)(pick % 256);
            if (pick % 9 == 0) {
                break;
            }
        }
        char *exact = malloc(n);
        memcpy(exact, line, n);
        fr_sv rest = {exact, n}, seg;
        size_t total = 0;
        while (fr_segment_next(&rest, &seg)) {
            struct fr_record rec;
            fr_peel(&ctx, seg, &rec);
            total += seg.n;
        }
        if (total > n) {
            T_FAIL("segments are longer than their line");
        }
        free(exact);
        fr_arena_reset(&scratch);
    }
}

T_TEST(long_lines_are_linear)
{
    size_t n = 4 << 20;
    char *line = malloc(n);
    for (size_t i = 0; i < n; i++) {
        line[i] = "[E(W"[i % 4];
    }
    fr_sv rest = {line, n}, seg;
    struct fr_record rec;
    T_OK(fr_segment_next(&rest, &seg));
    fr_peel(&ctx, seg, &rec);
    T_EQ_INT(rec.text.n, n);
    free(line);
    fr_arena_release(&scratch);
}

int main(void)
{
    return t_run();
}
