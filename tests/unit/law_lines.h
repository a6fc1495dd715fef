/* SPDX-License-Identifier: Apache-2.0 */
/* law_lines: the lines that the tests of the laws are made of, as the programs print them. All arguments are literals. */
#ifndef FR_TESTS_LAW_LINES_H
#define FR_TESTS_LAW_LINES_H

#include "support/logs.h"
#include "support/t.h"

/* A traceback of user code; p stands in front of every line ("[rank3]: ", "[default3]:", ""). */
#define TRACE(p, file, line, func, exception)                                  \
    p "Traceback (most recent call last):\n"                                   \
    p "  File \"/home/ivo/fit/" file "\", line " line ", in " func "\n"         \
    p "    batch = " func "(sample)\n"                                          \
    p exception "\n"
#define KEY_ERROR(p) TRACE(p, "collator.py", "88", "pad_fields", "KeyError: 'token_mask'")
#define INDEX_ERROR(p) TRACE(p, "shards.py", "31", "pick_shard", "IndexError: list index out of range")
#define OOM_TEXT                                                                                                          \
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.25 GiB. GPU 0 has a total capacity of 79.11 GiB of " \
    "which 1.06 GiB is free. Including non-PyTorch memory, this process has 78.04 GiB memory in use."
#define OOM(p) TRACE(p, "blocks.py", "214", "forward", OOM_TEXT)
#define ILLEGAL_TEXT                                                                                                 \
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"                                \
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be " \
    "incorrect."
#define ILLEGAL(p) TRACE(p, "gather.py", "57", "scatter_rows", ILLEGAL_TEXT)
#define CLOSED_BY_PEER(p, peer)                                                                                 \
    TRACE(p, "loop.py", "140", "reduce_grads", "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/"   \
                                                "pair.cc:547] Connection closed by peer " peer)

/* rank r of n says who it is. */
#define I_AM(r, n, pid, host) "2026-03-09 10:00:00,410 INFO [fit] rank " r "/" n " pid " pid " ready on " host "\n"
#define NCCL_INIT(host, pid, dev, r, n, bus)                                                                        \
    host ":" pid ":" pid " [" dev "] NCCL INFO ncclCommInitRankConfig comm 0x55d0c1a3e400 rank " r " nranks " n     \
         " cudaDev " dev " nvmlDev " dev " busId " bus " commId 0x7d1f0a3392be45c1 - Init COMPLETE\n"
#define STEP(n, loss) "2026-03-09 10:0" n ":00,000 INFO [fit] step " n "0 loss " loss " grad_norm 1.21 lr 3.0e-04\n"
#define STEPS STEP("1", "2.91") STEP("2", "2.74") STEP("3", "2.69") STEP("4", "2.60")

#define WAITED(r, at, pg_rank, seq, op, ms)                                                                          \
    "[rank" r "]:[E309 " at ".120394857 ProcessGroupNCCL.cpp:688] [Rank " pg_rank "] Watchdog caught collective "     \
    "operation timeout: WorkNCCL(SeqNum=" seq ", OpType=" op ", NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) " \
    "ran for " ms " milliseconds before timing out.\n"
#define COUNTED(r, at, pg, desc, pg_rank, seq, enqueued, completed)                                                  \
    "[rank" r "]:[E309 " at ".120501112 ProcessGroupNCCL.cpp:2271] [PG ID " pg " PG GUID " pg "(" desc ") Rank " pg_rank  \
    "]  failure detected by watchdog at work sequence id: " seq " PG status: last enqueued work: " enqueued            \
    ", last completed work: " completed "\n"
#define TAKEN_DOWN(r, at)                                                                                            \
    "[rank" r "]:[E309 " at ".120601334 ProcessGroupNCCL.cpp:746] To avoid data inconsistency, we are taking the "     \
    "entire process down.\n"
#define TIMED_OUT(r, at, seq) \
    WAITED(r, at, r, seq, "ALLREDUCE", "600029") COUNTED(r, at, "0", "default_pg", r, seq, seq, "411") TAKEN_DOWN(r, at)

#define AGENT "W0309 10:05:0"
#define STOP(pid) "W0309 10:05:02.118000 771 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process " pid \
                  " closing signal SIGTERM\n"
#define FAILED(code, local, pid)                                                                                     \
    "E0309 10:05:03.442000 771 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: " code          \
    ") local_rank: " local " (pid: " pid ") of binary: /opt/env/bin/python3\n"
#define TABLE_HEAD                                                                                                   \
    "Traceback (most recent call last):\n"                                                                           \
    "  File \"/opt/env/bin/torchrun\", line 8, in <module>\n"                                                        \
    "    sys.exit(main())\n"                                                                                         \
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"                                          \
    "============================================================\n"                                                 \
    "fit.py FAILED\n"                                                                                                \
    "------------------------------------------------------------\n"                                                 \
    "Failures:\n"
#define ROW(i, at, host, r, local, code, pid, signal)                                                                \
    "[" i "]:\n"                                                                                                     \
    "  time      : 2026-03-09_" at "\n"                                                                              \
    "  host      : " host "\n"                                                                                       \
    "  rank      : " r " (local_rank: " local ")\n"                                                                  \
    "  exitcode  : " code " (pid: " pid ")" signal "\n"                                                              \
    "  error_file: <N/A>\n"                                                                                          \
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
#define TABLE_ROOT "------------------------------------------------------------\nRoot Cause (first observed failure):\n"
#define TABLE_END "============================================================\n"

#define KERNEL(host, at, text) "Mar  9 " at " " host " kernel: " text "\n"
#define OOM_KILL(host, at, pid, name)                                                                                \
    KERNEL(host, at, "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0-1,oom_memcg=/slurm/job_88,"  \
                     "task_memcg=/slurm/job_88/step_0,task=" name ",pid=" pid ",uid=1007")                              \
    KERNEL(host, at, "Memory cgroup out of memory: Killed process " pid " (" name ") total-vm:91149468kB, anon-rss:64164992kB, " \
                     "file-rss:52176kB, shmem-rss:92kB, UID:1007 pgtables:131372kB oom_score_adj:0")

#endif
