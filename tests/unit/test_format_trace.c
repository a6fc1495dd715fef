/* SPDX-License-Identifier: Apache-2.0 */
/* The joiner: each case is a small log; what comes out is one line per result, in the order in
 * which results come. */
#include "base/alloc.h"
#include "base/buf.h"
#include "format/format.h"
#include "format/trace_tag.h"
#include "support/t.h"

static void render(struct fr_buf *out, const struct fr_trace_done *d)
{
    const struct fr_trace *t = &d->trace;
    if (d->is_row) {
        fr_buf_printf(out, "row@%d-%d", (int)d->line, (int)d->exc_line);
        for (unsigned i = 0; i < d->row.n_caps; i++) {
            const struct fr_cap *c = &d->row.caps[i];
            if (c->is_num && c->key != FR_KEY_TIME) {
                fr_buf_printf(out, " %s=%lld", fr_key_name(c->key), (long long)c->num);
            } else {
                fr_buf_printf(out, " %s=%.*s", fr_key_name(c->key), FR_SV_ARG(c->text));
            }
        }
        fr_buf_addc(out, '\n');
        return;
    }
    fr_buf_printf(out, "%d-%d", (int)d->line, (int)d->exc_line);
    if (d->who.rank >= 0) {
        fr_buf_printf(out, " rank%d", (int)d->who.rank);
    }
    if (d->who.local_rank >= 0) {
        fr_buf_printf(out, " local%d", (int)d->who.local_rank);
    }
    fr_buf_printf(out, " %.*s|%.*s", FR_SV_ARG(t->exception), FR_SV_ARG(t->message));
    if (t->origin_exception.n > 0) {
        fr_buf_printf(out, " <- %.*s|%.*s", FR_SV_ARG(t->origin_exception),
                      FR_SV_ARG(t->origin_message));
    }
    fr_buf_printf(out, " at %.*s:%d %.*s", FR_SV_ARG(t->file), (int)t->line, FR_SV_ARG(t->func));
    if (t->library.n > 0) {
        fr_buf_printf(out, " in %.*s", FR_SV_ARG(t->library));
    }
    fr_buf_printf(out, "%s%s%s\n", t->truncated ? " truncated" : "", t->chained ? " chained" : "",
                  d->ignored ? " ignored" : "");
}

/* Feeds the lines of text and renders everything that comes out. */
static void join(const char *text, struct fr_buf *out)
{
    struct fr_tracer *t = NULL;
    struct fr_arena strings = FR_ARENA_INIT(0), scratch = FR_ARENA_INIT(0);
    const struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};
    struct fr_trace_done done;
    T_EQ_INT(fr_tracer_new(&t), 0);
    fr_sv rest = fr_sv_z(text), line;
    for (uint64_t no = 1; rest.n > 0; no++) {
        struct fr_record rec;
        fr_sv_cut(rest, '\n', &line, &rest);
        fr_peel(&ctx, line, &rec);
        rec.lineno = no;
        if ((fr_tracer_open(t) || fr_trace_opens(rec.text)) &&
            fr_tracer_feed(t, &rec, &strings, &done) == 1) {
            render(out, &done);
        }
        fr_arena_reset(&scratch);
    }
    while (fr_tracer_feed(t, NULL, &strings, &done) == 1) {
        render(out, &done);
    }
    T_OK(!fr_tracer_open(t));
    fr_tracer_free(&t);
    fr_arena_release(&strings);
    fr_arena_release(&scratch);
}

static void expect_at(int where, const char *text, const char *want)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    join(text, &out);
    t_checks_++;
    if (!fr_sv_eq(fr_buf_sv(&out), fr_sv_z(want))) {
        T_FAIL("case at line %d\n--- got\n%.*s--- want\n%s", where, FR_SV_ARG(fr_buf_sv(&out)),
               want);
    }
}
#define EXPECT(text, want) expect_at(__LINE__, text, want)

#define TB "Traceback (most recent call last):\n"

T_TEST(plain)
{
    EXPECT(TB "  File \"fit.py\", line 3, in <module>\n    go()\n    ~~^^\n  File "
              "\"/v/lib/python3.11/site-packages/torch/x.py\", line 9, in go\n    boom()\n"
              "RuntimeError: it broke\nnext line of the program\n",
           "1-7 RuntimeError|it broke\nnext line of the program at fit.py:3 <module> in torch\n");
    EXPECT(TB "  File \"fit.py\", line 3, in f\n    x\nKeyError: 'a'\n\n{'loss': 1}\n",
           "1-4 KeyError|'a' at fit.py:3 f\n");
    EXPECT(TB "  File \"fit.py\", line 3, in f\n    x\nKeyboardInterrupt\n",
           "1-4 KeyboardInterrupt| at fit.py:3 f\n");
    EXPECT(TB "KeyboardInterrupt\n", "1-2 KeyboardInterrupt| at :-1 \n");
    EXPECT("100%|####| 5/5 [00:01]" TB "  File \"fit.py\", line 3, in f\n    x\nMyFault: y\n",
           "1-4 MyFault|y at fit.py:3 f\n");
    EXPECT(TB "  File \"fit.py\", line 3, in f\n  [Previous line repeated 96 more times]\n    "
              "...<9 lines>...\nRecursionError: deep\n",
           "1-5 RecursionError|deep at fit.py:3 f\n");
}

T_TEST(margins_that_are_lost)
{
    EXPECT(TB "File \"fit.py\", line 3, in <module>\nmain()\nFile \"fit.py\", line 8, in "
              "main\nstep(x)\nValueError: bad\n",
           "1-6 ValueError|bad at fit.py:8 main\n");
    EXPECT("  File \"fit.py\", line 3, in f\n    x\nKeyError: 'a'\n",
           "1-3 KeyError|'a' at fit.py:3 f truncated\n"); /* no header */
    EXPECT("  File \"a.py\", line 3\n    if x\n       ^\nSyntaxError: expected ':'\n",
           "1-4 SyntaxError|expected ':' at a.py:3  truncated\n");
    EXPECT("SyntaxError: invalid syntax\n", "1-1 SyntaxError|invalid syntax at :-1 \n");
    EXPECT(TB "  File \"fit.py\", line 3, in f\n", "1-1 | at fit.py:3 f truncated\n");
}

T_TEST(chains)
{
    EXPECT(TB "  File \"a.py\", line 1, in f\n    x\nKeyError: 'k'\n\nDuring handling of the above "
              "exception, another exception occurred:\n\n" TB
              "  File \"b.py\", line 2, in g\n    y\nValueError: v\n",
           "1-11 ValueError|v <- KeyError|'k' at a.py:1 f chained\n");
    EXPECT(TB "  File \"a.py\", line 1, in f\n    x\nKeyError: 'k'\n\nThe above exception was the "
              "direct cause of the following exception:\n\n" TB
              "  File \"b.py\", line 2, in g\n    y\nValueError: v\n\nThe above exception was the "
              "direct cause of the following exception:\n\n" TB
              "  File \"c.py\", line 3, in h\n    z\nRuntimeError: r\n",
           "1-18 RuntimeError|r <- KeyError|'k' at a.py:1 f chained\n");
}

T_TEST(workers_re_raise)
{
    EXPECT(TB "  File \"fit.py\", line 9, in <module>\n    for b in dl:\nKeyError: Caught KeyError "
              "in DataLoader worker process 1.\nOriginal " TB
              "  File \"/v/site-packages/torch/utils/data/w.py\", line 3, in loop\n    d = "
              "fetch()\n  File \"data.py\", line 7, in __getitem__\n    r['y']\nKeyError: 'y'\n",
           "1-4 KeyError|Caught KeyError in DataLoader worker process 1. <- KeyError|'y' at "
           "data.py:7 __getitem__ chained\n");
    EXPECT(TB "  File \"fit.py\", line 9, in <module>\n    "
              "spawn(f)\ntorch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 "
              "terminated with the following error:\n" TB
              "  File \"fit.py\", line 4, in f\n    g()\nRuntimeError: no\n",
           "1-4 torch.multiprocessing.spawn.ProcessRaisedException| <- RuntimeError|no at fit.py:4 "
           "f chained\n");
    EXPECT(TB "  File \"fit.py\", line 9, in <module>\n    "
              "ray.get(x)\nray.exceptions.RayTaskError(ValueError): ray::f() (pid=3, ip=10.0.0.1)\n"
              "  File \"w.py\", line 5, in f\n    raise ValueError('a')\nValueError: a\n",
           "1-4 ray.exceptions.RayTaskError(ValueError)|ray::f() (pid=3, ip=10.0.0.1) <- "
           "ValueError|a at w.py:5 f chained\n");
    EXPECT("multiprocessing.pool.RemoteTraceback: \n", "");
    EXPECT("  + Exception Group " TB
           "  |   File \"a.py\", line 1, in f\n  |     raise eg\n  | ExceptionGroup: several (2 "
           "sub-exceptions)\n  +-+---------------- 1 ----------------\n"
           "    | " TB "    |   File \"b.py\", line 2, in g\n    |     x\n    | ValueError: a\n    "
                       "+---------------- 2 ----------------\n    | KeyError: 'b'\n"
           "    +------------------------------------\n",
           "1-4 ExceptionGroup|several (2 sub-exceptions) <- ValueError|a at b.py:2 g chained\n");
}

T_TEST(speakers)
{
    EXPECT("[rank1]: " TB "[rank0]: " TB "[rank1]:   File \"a.py\", line 1, in f\n[rank0]:   File "
                                         "\"a.py\", line 2, in g\n[rank1]:     x\n[rank0]:     y\n"
           "[rank0]: ValueError: zero\n[rank1]: KeyError: 'one'\n",
           "1-8 rank1 KeyError|'one' at a.py:1 f\n2-7 rank0 ValueError|zero at a.py:2 g\n");
    EXPECT("[default0]:[rank0]: " TB
           "[default0]:[rank0]:   File \"a.py\", line 2, in g\nW1130 15:21:38.097000 11402 "
           "torch/x.py:1] other\n[default0]:[rank0]:     y\n"
           "[default0]:[rank0]: ValueError: zero\n",
           "1-5 rank0 local0 ValueError|zero at a.py:2 g\n");
    /* two processes, no prefix, line by line */
    EXPECT(TB "  File \"a.py\", line 1, in f\n" TB
              "  File \"a.py\", line 1, in f\n    x\n    x\n  File \"b.py\", line 7, in g\n  File "
              "\"b.py\", line 7, in g\n    y\n    y\nValueError: one\nValueError: two\n",
           "1-11 ValueError|one at b.py:7 g\n3-12 ValueError|two at b.py:7 g\n");
    /* a bar of another process inside */
    EXPECT(TB "  File \"a.py\", line 1, in f\n 50%|##   | 1/2 [00:01<00:01,  1.0s/it]\n    "
              "x\nValueError: one\n",
           "1-5 ValueError|one at a.py:1 f\n");
}

/* Three processes print one short traceback each, line by line. */
T_TEST(identical_and_interleaved)
{
    EXPECT("Traceback (most recent call last):\n"
           "  File \"/n/fit.py\", line 24, in <module>\n"
           "Traceback (most recent call last):\n"
           "  File \"/n/fit.py\", line 24, in <module>\n"
           "Traceback (most recent call last):\n"
           "  File \"/n/fit.py\", line 24, in <module>\n"
           "    print(device)\n"
           "TypeError: one\n"
           "    print(device)\n"
           "TypeError: two\n"
           "    print(device)\n"
           "TypeError: three\n",
           "1-8 TypeError|one at /n/fit.py:24 <module>\n"
           "3-10 TypeError|two at /n/fit.py:24 <module>\n"
           "5-12 TypeError|three at /n/fit.py:24 <module>\n");
}

T_TEST(prefixes_have_limits)
{
#define LONG "<a prefix that goes on for more than forty-eight bytes> "
    EXPECT(LONG TB LONG "  File \"fit.py\", line 4, in load\n" LONG "KeyError: 'b'\n", "");
    struct fr_tags tags = {.n = 0};
    uint64_t speaker = 7;
    for (uint32_t i = 0; i < FR_TAGS_MAX + 10; i++) {
        char header[64];
        snprintf(header, sizeof header, "w%u> Traceback (most recent call last):", i);
        const struct fr_tag tag = fr_tag_of_header(fr_sv_z(header));
        fr_tags_learn(&tags, &tag);
        fr_tags_learn(&tags, &tag); /* twice is once */
    }
    T_EQ_INT(tags.n, FR_TAGS_MAX);
    T_OK(fr_sv_eq(fr_tags_strip(&tags, FR_SV("w63> x"), &speaker), FR_SV("x")) && speaker != 7);
    speaker = 7;
    T_OK(fr_sv_eq(fr_tags_strip(&tags, FR_SV("w64> x"), &speaker), FR_SV("w64> x")) && speaker == 7);
}

/* A logger puts its prefix before the header; the rest of its message follows bare. */
T_TEST(prefixes_that_nobody_knows)
{
    EXPECT("<w0> Traceback (most recent call last):\n"
           "<w1> Traceback (most recent call last):\n"
           "<w1>   File \"fit.py\", line 4, in load\n"
           "<w0>   File \"fit.py\", line 9, in step\n"
           "<w0>     x = d[k]\n"
           "<w1>     y = e[k]\n"
           "<w1> KeyError: 'b'\n"
           "<w0> IndexError: list index out of range\n",
           "1-8 IndexError|list index out of range at fit.py:9 step\n"
           "2-7 KeyError|'b' at fit.py:4 load\n");
    EXPECT("t=114.62 | stderr | Traceback (most recent call last):\n" /* a clock goes on, also within one traceback */
           "t=114.62 | stderr |   File \"fit.py\", line 4, in load\n"
           "t=114.63 | stderr |     y = e[k]\n"
           "t=115.00 | stderr | KeyError: 'b'\n"
           "t=115.01 | stderr | Traceback (most recent call last):\n"
           "t=115.01 | stderr |   File \"fit.py\", line 9, in step\n"
           "t=115.02 | stderr | IndexError: list index out of range\n",
           "1-4 KeyError|'b' at fit.py:4 load\n"
           "5-7 IndexError|list index out of range at fit.py:9 step\n");
    EXPECT("it failed: Traceback (most recent call last):\n" /* a message, and no prefix */
           "  File \"fit.py\", line 4, in load\n"
           "    y = e[k]\n"
           "KeyError: 'b'\n",
           "1-4 KeyError|'b' at fit.py:4 load\n");
}

T_TEST(below_a_logged_header)
{
    EXPECT("[2026-03-11 08:05:41 TP2] Loader hit a wall: " TB "  File \"fit.py\", line 3, in f\n    x\nMyFault: y\n",
           "1-4 rank2 MyFault|y at fit.py:3 f\n");
    EXPECT("[2026-03-11 08:05:41 TP2] Loader hit a wall: " TB "of somebody else\n  File \"fit.py\", line 3, in f\n    x\nMyFault: y\n",
           "3-5 MyFault|y at fit.py:3 f truncated\n");
}

T_TEST(native)
{
    EXPECT("Fatal Python error: Segmentation fault\n\nThread 0x00007f1f2d7fe640 (most recent call "
           "first):\n  File \"/usr/lib/python3.11/threading.py\", line 320 in wait\n\n"
           "Current thread 0x00007ff1738b8400 [python3.14] (most recent call first):\n  File "
           "\"/usr/lib/python3.11/ctypes/__init__.py\", line 519 in string_at\n  File \"fit.py\", "
           "line 51 in <module>\n\n"
           "Extension modules: numpy._core (total: 56)\nnext\n",
           "1-1 Fatal Python error|Segmentation fault at fit.py:51 <module> in python\n");
    EXPECT("terminate called after throwing an instance of 'c10::CUDAError'\n  what():  CUDA "
           "error: unknown error\nException raised from query at "
           "../aten/src/ATen/cuda/CUDAEvent.h:95 (most recent call first):\n"
           "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x42 (0x7f in "
           "/v/torch/lib/libc10.so)\nframe #1: c10d::Work::isCompleted() + 0x50 (0x7e in "
           "/v/torch/lib/libtorch_cuda.so)\nnext\n",
           "1-1 c10::CUDAError|CUDA error: unknown error at ../aten/src/ATen/cuda/CUDAEvent.h:95 "
           "query in libtorch_cuda.so\n");
    EXPECT("Exception ignored in: <function A.__del__ at 0x7f>\n" TB
           "  File \"a.py\", line 1, in __del__\n    x\nAttributeError: no 'x'\n",
           "2-5 AttributeError|no 'x' at a.py:1 __del__ ignored\n");
}

T_TEST(torchrun_table)
{
    const char *log =
        TB "  File \"/usr/bin/torchrun\", line 6, in <module>\n    "
           "sys.exit(main())\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
           "============================================================\nfit.py "
           "FAILED\n------------------------------------------------------------\nFailures:\n[1]:\n"
           "  time      : 2026-11-30_14:54:51\n  host      : node3.cluster\n  rank      : 9 "
           "(local_rank: 1)\n  exitcode  : -9 (pid: 31292)  (SIGKILL)\n  error_file: <N/A>\n"
           "  traceback : Signal 9 (SIGKILL) received by PID "
           "31292\n------------------------------------------------------------\nRoot Cause (first "
           "observed failure):\n[0]:\n"
           "  time      : 2026-11-30_14:54:50\n  host      : node3.cluster\n  rank      : 8 "
           "(local_rank: 0)\n  exitcode  : 1 (pid: 31291)\n  error_file: /tmp/e.json\n"
           "  traceback : Traceback (most recent call last):\n    File \"fit.py\", line 3, in "
           "main\n      x\n  KeyError: 'y'\n  "
           "\n============================================================\nsrun: bye\n";
    EXPECT(
        log,
        "1-4 torch.distributed.elastic.multiprocessing.errors.ChildFailedError| at "
        "/usr/bin/torchrun:6 <module> in torchrun\n"
        "row@9-13 rank=9 local_rank=1 exitcode=-9 pid=31292 node=node3.cluster "
        "time=2026-11-30_14:54:51 exception=Signal 9 (SIGKILL) received by PID 31292 reason=table\n"
        "row@18-22 rank=8 local_rank=0 exitcode=1 pid=31291 node=node3.cluster "
        "time=2026-11-30_14:54:50 path=/tmp/e.json exception=KeyError: 'y' reason=table-root\n");
    /* the boxed table of 1.9, labelled, its beginning lost */
    EXPECT("0: Root Cause:\n0: [0]:\n0:   time: 2021-07-05_09:37:48\n0:   rank: 3 (local_rank: "
           "3)\n0:   exitcode: 1 (pid: 128)\n0:   error_file: <N/A>\n0:   msg: \"Process failed "
           "with exitcode 1\"\n"
           "0: =======================================\n",
           "row@2-5 rank=3 local_rank=3 exitcode=1 pid=128 time=2021-07-05_09:37:48 "
           "exception=\"Process failed with exitcode 1\" reason=table-root\n");
}

T_TEST(launch_configuration)
{
    EXPECT("I1130 14:52:02.024000 27144 torch/distributed/launcher/api.py:195] Starting "
           "elastic_operator with launch configs:\n"
           "I1130 14:52:02.024000 27144 torch/distributed/launcher/api.py:195]   entrypoint       : "
           "fit.py\n"
           "I1130 14:52:02.024000 27144 torch/distributed/launcher/api.py:195]   min_nodes        : 2\n"
           "I1130 14:52:02.024000 27144 torch/distributed/launcher/api.py:195]   max_nodes        : 2\n"
           "I1130 14:52:02.024000 27144 torch/distributed/launcher/api.py:195]   nproc_per_node   : 8\n"
           "I1130 14:52:02.025000 27144 torch/x.py:195] other\n",
           "row@1-1 world=16\n");
    EXPECT("INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:\n"
           "  min_nodes        : 1\n"
           "  max_nodes        : 4\n"
           "  nproc_per_node   : 8\n"
           "\n",
           ""); /* elastic: nobody knows */
}

T_TEST(stack_dumps)
{
    EXPECT("Thread 11 (active): \"MainThread\"\n"
           "Thread 12 (active+gil): \"MainThread\"\n"
           "    broadcast (torch/distributed/distributed_c10d.py:1570)\n"
           "        Arguments:\n"
           "            tensor: <Tensor at 0x7f>\n"
           "    <module> (fit.py:9)\n"
           "Thread 13 (idle): \"MainThread\"\n"
           "    wait (threading.py:306)\n"
           "    <module> (fit.py:7)\n"
           "Thread 14 (idle): \"pt_autograd_0\"\n"
           "    run (x.py:1)\n",
           "row@1-1 pid=11 reason=active op=broadcast "
           "path=torch/distributed/distributed_c10d.py:1570 module=broadcast < <module>\n"
           "row@2-2 pid=12 reason=active op=broadcast "
           "path=torch/distributed/distributed_c10d.py:1570 module=broadcast < <module>\n"
           "row@7-7 pid=13 reason=idle op=wait path=threading.py:306 module=wait < <module>\n");
    EXPECT("Thread 2 (Thread 0x7f2 (LWP 43) \"python\"):\n"
           "#0  0x0000 in poll () from /lib/libc.so.6\n"
           "Thread 1 (Thread 0x7f1 (LWP 42) \"python\"):\n"
           "#0  0x00007f in ncclBcast () from /lib/libnccl.so.2\n"
           "#1  main (argc=3) at main.c:12\n"
           "\n",
           "row@3-3 pid=42 reason=active op=ncclBcast path=/lib/libnccl.so.2 "
           "module=ncclBcast < main\n");
}

T_TEST(one_line_holds_all)
{
    EXPECT("{\"message\": \""
           "Traceback (most recent call last):\\n  File \\\"a.py\\\", line 1, in f\\n    "
           "x\\nKeyError: 'k'\"}\n",
           "1-1 KeyError|'k' at a.py:1 f\n");
    EXPECT("err: Traceback (most recent call last):\\n  File \"a.py\", line 1, in f\\n    "
           "x\\nKeyError: 'k'\n",
           "1-1 KeyError|'k' at a.py:1 f\n");
}

T_TEST(bounded)
{
    struct fr_tracer *t = NULL;
    struct fr_arena strings = FR_ARENA_INIT(0);
    struct fr_trace_done done;
    int results = 0;
    T_EQ_INT(fr_tracer_new(&t), 0);
    for (int i = 0; i < 40000; i++) { /* headers of a thousand speakers, frames without end */
        struct fr_record rec = {.who = FR_WHO_NONE, .lineno = (uint64_t)i};
        rec.who.rank = i % 1000;
        rec.text = i % 7 == 0 ? FR_SV("Traceback (most recent call last):")
                              : FR_SV("  File \"deep.py\", line 1, in f");
        results += fr_tracer_feed(t, &rec, &strings, &done) == 1;
    }
    while (fr_tracer_feed(t, NULL, &strings, &done) == 1) {
        results++;
    }
    T_OK(results > 60);
    fr_tracer_free(&t);
    T_OK(t == NULL);
    fr_tracer_free(&t);
    fr_arena_release(&strings);
}

T_TEST(memory_runs_out)
{
    for (long n = 0; n < 40; n++) {
        struct fr_tracer *t = NULL;
        struct fr_arena strings = FR_ARENA_INIT(0);
        struct fr_trace_done done;
        static const char *const lines[] = {
            "Traceback (most recent call last):", "  File \"a.py\", line 1, in f", "    x",
            "KeyError: 'k'"};
        fr_alloc_fail_after(n);
        if (fr_tracer_new(&t) == 0) {
            for (int i = 0; i < 4; i++) {
                struct fr_record rec = {.who = FR_WHO_NONE, .text = fr_sv_z(lines[i])};
                (void)fr_tracer_feed(t, &rec, &strings, &done);
            }
            for (int i = 0; i < 4; i++) {
                (void)fr_tracer_feed(t, NULL, &strings, &done);
            }
        }
        fr_alloc_fail_after(-1);
        fr_tracer_free(&t);
        fr_arena_release(&strings);
    }
    T_OK(true);
}

int main(void)
{
    return t_run();
}
