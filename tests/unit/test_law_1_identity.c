/* SPDX-License-Identifier: Apache-2.0 */
/* Law 1: identity before blame. A number in brackets is a rank only where something proves it. */
#include "law_lines.h"

#define WAITED_IN_STORE TRACE("", "fit.py", "66", "setup", "RuntimeError: Socket Timeout")

#define MAP_OF_TWO_NODES                                                                                              \
    "[default0]:" NCCL_INIT("gn11", "7001", "0", "8", "16", "1b000") "[default1]:" NCCL_INIT("gn11", "7002", "1", "9", "16", "43000") \
    "[default2]:" NCCL_INIT("gn11", "7003", "2", "10", "16", "9b000") "[default3]:" NCCL_INIT("gn11", "7004", "3", "11", "16", "c3000")

/* One process's own losses in the steps that ranks share; the last four as given. */
#define LOSS(step, loss) "step " step " loss " loss " lr 1.0e-03\n"
#define LOSSES(a, b, c, d) LOSS("1", "2.97") LOSS("2", "2.95") LOSS("3", "2.94") LOSS("4", a) LOSS("5", b) LOSS("6", c) LOSS("7", d)

#define ROW_AT(host, r, local, pid)                                                                                    \
    FAILED("1", local, pid) TABLE_HEAD TABLE_ROOT ROW("0", "10:05:02", host, r, local, "1", pid, "") TABLE_END

#define BOUND(r) "2026-03-09T10:00:00.410 [info    ] process_group.ready            rank=" r " world=3 pid=90" r "\n"

T_TEST(files_of_one_process)
{
    static const struct logs_case rows[] = {
        {.name = "standard output says the rank, standard error the exception",
         .files = {{"job.0.stderr", KEY_ERROR("")}, {"job.0.stdout", "{\"rank\": 2, \"event\": \"start\", \"world\": 3}\n"},
                   {"job.1.stderr", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"job.1.stdout", "{\"rank\": 0, \"event\": \"start\", \"world\": 3}\n"},
                   {"job.2.stderr", CLOSED_BY_PEER("", "[10.2.0.5]:14729")}, {"job.2.stdout", "{\"rank\": 1, \"event\": \"start\", \"world\": 3}\n"}},
         .want = {"python-exception rank 2"}},
        {.name = "the two streams of a console, where only rank 0 says who it is",
         .files = {{"fit.err", KEY_ERROR("") CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"fit.out", "{\"rank\": 0, \"event\": \"start\", \"world\": 2}\n"}},
         .want = {"!* rank *", "*"}},
        {.name = "the number before the total is the index",
         .files = {{"lm-0of3.txt", STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"lm-1of3.txt", STEPS KEY_ERROR("")},
                   {"lm-2of3.txt", STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14729")}},
         .want = {"python-exception rank 1"}},
        {.name = "the rank stands in what a logger has bound to it",
         .files = {{"console.log", BOUND("0") BOUND("1") BOUND("2") "{\"ts\": 1796118228.2, \"lvl\": \"error\", \"ctx\": {\"rank\": 1}, \"evt\": \"x\", "
                    "\"message\": \"CUDA error: an illegal memory access was encountered\"}\n"}},
         .want = {"cuda-illegal-memory-access rank 1"}},
        {.name = "the folder begins with the host that the launcher's table names",
         .files = {{"big-a-logs/none_x/attempt_0/0/stderr.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"big-a-logs/none_x/attempt_0/1/stderr.log", CLOSED_BY_PEER("", "[10.2.0.5]:14729")},
                   {"big-b-logs/none_y/attempt_0/0/stderr.log", KEY_ERROR("")},
                   {"big-b-logs/none_y/attempt_0/1/stderr.log", CLOSED_BY_PEER("", "[10.2.0.5]:14731")},
                   {"a.txt", ROW_AT("big-a", "0", "0", "900")}, {"b.txt", ROW_AT("big-b", "2", "0", "900")}},
         .want = {"python-exception rank 2"}},
        {.name = "a pid that its process says beside its rank and host",
         .files = {{"a.log", "[2026-03-09 10:00:00,410][rank 0][INFO] fit: host=gn11 pid=900 rank=0/2 attempt=0 up\n" STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"b.log", "[2026-03-09 10:00:00,410][rank 1][INFO] fit: host=gn11 pid=901 rank=1/2 attempt=0 up\n" STEPS},
                   {"kern.log", OOM_KILL("gn11", "10:04:40", "901", "python3")}},
         .want = {"cgroup-oom rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_bracketed_number_is_no_rank)
{
    static const struct logs_case rows[] = {
        {.name = "a tee prefix of a node among others names a local rank",
         .files = {{"console.log", "[default1]:using world size: 16, data-parallel size: 16\n" OOM("[default3]:")}},
         .want = {"cuda-oom unknown"}},
        {.name = "with a map of pids and devices the same prefix names rank 11",
         .files = {{"console.log", MAP_OF_TWO_NODES OOM("[default3]:")}},
         .want = {"cuda-oom rank 11"}},
        {.name = "on a host that holds the whole world the local rank is the rank",
         .files = {{"console.log", "[default0]:" I_AM("0", "4", "7001", "gn11") "[default1]:" I_AM("1", "4", "7002", "gn11")
                    "[default2]:" I_AM("2", "4", "7003", "gn11") "[default3]:" I_AM("3", "4", "7004", "gn11") OOM("[default3]:")}},
         .want = {"cuda-oom rank 3"}},
        {.name = "an inner [rank11]: is the rank, the outer [default3]: is not",
         .files = {{"console.log", KEY_ERROR("[default3]:[rank11]: ")}},
         .want = {"python-exception rank 11"}},
        {.name = "a task label of one launcher per node is the node's number",
         .files = {{"slurm-88.out", "0: using world size: 32, data-parallel size: 32\n" OOM("3: [default5]:")}},
         .want = {"cuda-oom unknown"}},
        {.name = "NCCL's device in brackets is no rank",
         .files = {{"console.log", "using world size: 16, data-parallel size: 16\n\n"
                    "gn11:7004:7310 [3] misc/strongstream.cc:395 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n"}},
         .want = {"* unknown"}},
        {.name = "the pid of that NCCL line is one, once an init line has said so",
         .files = {{"console.log", MAP_OF_TWO_NODES "\n"
                    "gn11:7004:7310 [3] misc/strongstream.cc:395 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'\n"}},
         .want = {"cuda-illegal-memory-access rank 11"}},
        {.name = "a GPU index in an error text is no rank",
         .files = {{"console.log", "using world size: 16, data-parallel size: 16\n"
                    TRACE("", "blocks.py", "214", "forward", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a "
                          "total capacity of 79.11 GiB of which 1.06 GiB is free.")}},
         .want = {"cuda-oom unknown"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_pid_is_a_rank_on_its_own_host_only)
{
    static const struct logs_case rows[] = {
        {.name = "one pid on two hosts: the kernel log's host decides",
         .files = {{"rank1.log", I_AM("1", "4", "4242", "gn11")}, {"rank3.log", I_AM("3", "4", "4242", "gn12")},
                   {"rank0.log", I_AM("0", "4", "4241", "gn11")}, {"rank2.log", I_AM("2", "4", "4241", "gn12")},
                   {"kern.log", OOM_KILL("gn12", "10:03:11", "4242", "python3")}},
         .want = {"host-oom-killer rank 3", "cgroup-oom rank 3"}},
        {.name = "one pid on two hosts and a kernel log of neither: nobody is named",
         .files = {{"rank1.log", I_AM("1", "4", "4242", "gn11")}, {"rank3.log", I_AM("3", "4", "4242", "gn12")},
                   {"rank0.log", I_AM("0", "4", "4241", "gn11")}, {"rank2.log", I_AM("2", "4", "4241", "gn12")},
                   {"dmesg.txt", "[ 4502.694381] Memory cgroup out of memory: Killed process 4242 (python3) total-vm:3149468kB, "
                                 "anon-rss:164992kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1372kB oom_score_adj:0\n"}},
         .want = {"!* rank 1", "!* rank 3", "!* ranks 1,3"}},
        {.name = "a pid that two ranks claim on one host proves neither",
         .files = {{"console.log", I_AM("1", "4", "4242", "gn11") I_AM("2", "4", "4242", "gn11")
                    "E0309 10:05:03.442000 771 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -11) local_rank: 9 "
                    "(pid: 4242) of binary: /opt/env/bin/python3\n"}},
         .want = {"!* rank 1", "!* rank 2", "!* ranks*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_rank_of_a_group_is_no_global_one)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank12.log", I_AM("12", "16", "4212", "gn12") WAITED("12", "10:14:30", "0", "87", "ALLREDUCE", "600029")
             COUNTED("12", "10:14:30", "13", "EXPERT_PARALLEL_GROUP", "0", "87", "87", "86"));
    logs_add(&l, "rank0.log", I_AM("0", "16", "4200", "gn11") KEY_ERROR("[rank0]: "));
    logs_add(&l, "rank1.log", I_AM("1", "16", "4201", "gn11") WAITED("1", "10:14:30", "1", "87", "ALLREDUCE", "600021"));
    T_EQ_STR(logs_answer(&l), "python-exception rank 0");
    const struct fr_incident *in = logs_incident(&l, 0);
    bool has_12 = false, has_0 = false;
    for (uint32_t i = 0; in != NULL && i < in->collateral.n; i++) {
        has_12 |= in->collateral.v[i].rank == 12;
        has_0 |= in->collateral.v[i].rank == 0;
    }
    T_OK(has_12); /* "[rank12]: ... Rank 0]" waited */
    T_OK(!has_0);
    logs_end(&l);
}

T_TEST(ranks_that_are_proven_by_counting)
{
    static const struct logs_case rows[] = {
        {.name = "local rank 3 in a world of four leaves no room for another host",
         .files = {{"console.log", "using world size: 4, data-parallel size: 4\n" FAILED("-9", "3", "904")}},
         .want = {"torchrun-sigkill-exit-minus-9 rank 3"}},
        {.name = "local rank 3 in a world of eight may be rank 3 or 7",
         .files = {{"console.log", "using world size: 8, data-parallel size: 8\n" FAILED("-9", "3", "904")}},
         .want = {"torchrun-sigkill-exit-minus-9 unknown"}},
        {.name = "two tasks of one host are a process each, so tasks are ranks",
         .files = {{"console.log", "srun: error: gn11: task 2: Exited with exit code 1\nsrun: Terminating StepId=77.0\n"
                    "srun: error: gn11: task 0: Killed\nsrun: error: gn12: task 5: Killed\n"}},
         .want = {"slurm-task-exit rank 2"}},
        {.name = "one task per host may be a launcher",
         .files = {{"console.log", "srun: error: gn11: task 0: Exited with exit code 1\nsrun: Terminating StepId=77.0\nsrun: error: gn12: task 1: Killed\n"}},
         .want = {"!* rank *"}},
        {.name = "the rank that the program prints in each line of its progress",
         .files = {{"a.log", "2026-03-09 10:01:00,000 | INFO | fit - [rank=0] step 10 loss 2.91\n" CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"b.log", "2026-03-09 10:01:00,000 | INFO | fit - [rank=1] step 10 loss 2.92\n" KEY_ERROR("")}},
         .want = {"python-exception rank 1"}},
        {.name = "a shell in a rank's own log reports that rank's end",
         .files = {{"rank0.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"rank1.log", "launch.sh: line 1: 22667 Illegal instruction     \"$@\"\n"}},
         .want = {"illegal-instruction-cpu rank 1"}},
        {.name = "a command that starts one process",
         .files = {{"console.log", "ivo@gn11:~/fit$ CUDA_VISIBLE_DEVICES=6 torchrun fit.py\n" KEY_ERROR("")}},
         .want = {"python-exception rank 0"}},
        {.name = "another rank was cut off in the same traceback: it may have been first",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") KEY_ERROR("[rank0]: ") "[rank3]: Traceback (most recent call last):\n"
                    "[rank3]:   File \"/home/ivo/fit/collator.py\", line 88, in pad_fields\n"}},
         .want = {"!* rank 0", "*"}},
        {.name = "JSON lines with the traceback beside the message",
         .files = {{"console.log",
                    "{\"ts\": 1773050401.10, \"level\": \"info\", \"rank\": 0, \"world\": 2, \"event\": \"begin\"}\n"
                    "{\"ts\": 1773050401.20, \"level\": \"error\", \"rank\": 1, \"world\": 2, \"event\": \"gave up\", \"exception\": \"Traceback (most recent "
                    "call last):\\n  File \\\"/home/ivo/fit/collator.py\\\", line 88, in pad\\n    x = d[k]\\nKeyError: 'token_mask'\\n\"}\n"
                    "{\"ts\": 1773050402.40, \"level\": \"error\", \"rank\": 0, \"world\": 2, \"event\": \"gave up\", \"exception\": \"Traceback (most recent "
                    "call last):\\n  File \\\"/home/ivo/fit/loop.py\\\", line 14, in step\\n    dist.all_reduce(g)\\nRuntimeError: [/pytorch/third_party/gloo/gloo/"
                    "transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:932\\n\"}\n"}},
         .want = {"python-exception rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(numbers_of_files)
{
    static const struct logs_case rows[] = {
        {.name = "of four numbered files one was never written",
         .files = {{"0.out", TRACE("", "fit.py", "20", "setup", "torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 3/4 clients joined.")},
                   {"1.out", TRACE("", "fit.py", "20", "setup", "torch.distributed.DistStoreError: wait timeout after 60000ms, keys: /default_pg/0//cpu//0/0")},
                   {"3.out", TRACE("", "fit.py", "20", "setup", "torch.distributed.DistStoreError: wait timeout after 60000ms, keys: /default_pg/0//cpu//0/0")}},
         .want = {"c10d-clients-joined-timeout rank 2", "c10d-store-wait-timeout rank 2"}},
        {.name = "a whole series of numbered files, of which several lost a peer",
         .files = {{"c0-json.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"c1-json.log", KEY_ERROR("")}, {"c2-json.log", CLOSED_BY_PEER("", "[10.2.0.5]:14728")}},
         .want = {"python-exception rank 1"}},
        {.name = "a whole series of numbered files that train together",
         .files = {{"l-0", LOSSES("2.91", "nan", "nan", "nan")}, {"l-1", LOSSES("2.93", "nan", "nan", "nan")}, {"l-2", LOSSES("nan", "nan", "nan", "nan")}},
         .want = {"loss-nan-generic rank 2"}},
        {.name = "numbers of seeds are no ranks",
         .files = {{"seed0.log", LOSSES("2.91", "nan", "nan", "nan")}, {"seed1.log", LOSSES("2.93", "nan", "nan", "nan")}, {"seed2.log", LOSSES("nan", "nan", "nan", "nan")}},
         .want = {"!* rank *", "*"}},
        {.name = "a whole series of numbered files that end alike",
         .files = {{"a0.txt", KEY_ERROR("")}, {"a1.txt", KEY_ERROR("")}, {"a2.txt", KEY_ERROR("")}},
         .want = {"python-exception all-ranks"}},
        {.name = "numbered files one after the other are attempts",
         .files = {{"a0.txt", "2026-03-09 10:00:01,000 INFO begin\n" KEY_ERROR("")}, {"a1.txt", "2026-03-09 10:04:01,000 INFO begin\n" KEY_ERROR("")},
                   {"a2.txt", "2026-03-09 10:08:01,000 INFO begin\n" KEY_ERROR("")}},
         .want = {"!* all-ranks", "*"}},
        {.name = "hosts numbered from 0 with the same local ranks each",
         .files = {{"node0_gpu0.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"node0_gpu1.log", CLOSED_BY_PEER("", "[10.2.0.5]:14728")},
                   {"node1_gpu0.log", CLOSED_BY_PEER("", "[10.2.0.5]:14729")}, {"node1_gpu1.log", KEY_ERROR("")}},
         .want = {"python-exception rank 3"}},
        {.name = "one of them is not there: how many each host has is not known",
         .files = {{"node0_gpu0.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"node0_gpu1.log", CLOSED_BY_PEER("", "[10.2.0.5]:14728")},
                   {"node1_gpu0.log", KEY_ERROR("")}},
         .want = {"!* rank *", "*"}},
        {.name = "the same of one host",
         .files = {{"node0_gpu0.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"node0_gpu1.log", CLOSED_BY_PEER("", "[10.2.0.5]:14728")}, {"node0_gpu2.log", KEY_ERROR("")}},
         .want = {"python-exception rank 2"}},
        {.name = "a folder each, and several lost a peer",
         .files = {{"p0/stderr.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"p1/stderr.log", KEY_ERROR("")}, {"p2/stderr.log", CLOSED_BY_PEER("", "[10.2.0.5]:14728")}},
         .want = {"python-exception rank 1"}},
        {.name = "a folder each may be a run each",
         .files = {{"p0/fit.log", LOSSES("2.91", "nan", "nan", "nan")}, {"p1/fit.log", LOSSES("2.93", "nan", "nan", "nan")}, {"p2/fit.log", LOSSES("nan", "nan", "nan", "nan")}},
         .want = {"!* rank *", "*"}},
        {.name = "numbers of hosts and of rotated logs are no ranks",
         .files = {{"node-0.log", CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"node-1.log", KEY_ERROR("")}, {"node-2.log", CLOSED_BY_PEER("", "[10.2.0.5]:14728")},
                   {"train.log.0", "quiet\n"}, {"train.log.1", "quiet\n"}, {"train.log.2", "quiet\n"}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(the_first_to_go_bad_is_shown_without_a_rank_too)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "seed0.log", LOSSES("2.91", "nan", "nan", "nan"));
    logs_add(&l, "seed1.log", LOSSES("2.93", "nan", "nan", "nan"));
    logs_add(&l, "seed2.log", LOSSES("nan", "nan", "nan", "nan"));
    T_EQ_STR(logs_answer(&l), "loss-nan-generic unknown");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->evidence.n > 0 && fr_sv_has(in->evidence.v[0].source, FR_SV("seed2.log")));
    T_OK(in != NULL && in->evidence.n > 0 && in->evidence.v[0].line == 4);
    logs_end(&l);
}

#define POD(n, text) "[pod/trainer-" n "/pytorch] " text
#define POD_KEY_ERROR(n) KEY_ERROR("[pod/trainer-" n "/pytorch] ")
#define POD_LOST(n) CLOSED_BY_PEER("[pod/trainer-" n "/pytorch] ", "[10.2.0.5]:14727")

T_TEST(containers_of_one_rank_each)
{
    static const struct logs_case rows[] = {
        {.name = "each says once, in a sentence, which rank it is",
         .files = {{"pods.log", POD("2", "starting up, rank 0 of 3, pid 31\n") POD("0", "starting up, rank 1 of 3, pid 32\n") POD("1", "starting up, rank 2 of 3, pid 33\n")
                    POD_KEY_ERROR("2") POD_LOST("0") POD_LOST("1")}},
         .want = {"python-exception rank 0"}},
        {.name = "one numbered series of pods, each of which dies once, and several lose a peer",
         .files = {{"pods.log", POD("0", "step 12 loss 2.9\n") POD_LOST("2") POD_KEY_ERROR("1") POD_LOST("0")}},
         .want = {"python-exception rank 1"}},
        {.name = "beside a master: the first worker is no rank 0",
         .files = {{"pods.log", "[pod/fit-master-0/pytorch] step 12 loss 2.9\n" POD_LOST("2") POD_KEY_ERROR("1") POD_LOST("0")}},
         .want = {"!* rank *", "*"}},
        {.name = "a pod in which several processes die",
         .files = {{"pods.log", POD_LOST("2") POD_KEY_ERROR("1") POD_LOST("1") POD_LOST("0")}},
         .want = {"!* rank *", "*"}},
        {.name = "one of them is not there",
         .files = {{"pods.log", POD_LOST("3") POD_KEY_ERROR("1") POD_LOST("0")}},
         .want = {"!* rank *", "*"}},
        {.name = "hosts are no processes",
         .files = {{"all.log", CLOSED_BY_PEER("node0: ", "[10.2.0.5]:14727") KEY_ERROR("node1: ") CLOSED_BY_PEER("node2: ", "[10.2.0.5]:14728")}},
         .want = {"!* rank *", "*"}},
        {.name = "the third process of a host, where they were counted through and two of them say so",
         .files = {{"all.log", "cn041:0: rank 0/4 pid 31 ready on cn041\ncn041:1: rank 1/4 pid 32 ready on cn041\n" KEY_ERROR("cn042:2: ")
                    CLOSED_BY_PEER("cn041:0: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("cn041:1: ", "[10.2.0.5]:14728") CLOSED_BY_PEER("cn042:3: ", "[10.2.0.5]:14729")}},
         .want = {"python-exception rank 2"}},
    };
    LOGS_CASES(rows);
}

T_TEST(tasks_of_srun_that_are_one_process_each)
{
    static const struct logs_case rows[] = {
        {.name = "tasks 0 to 2, each dies once, several lose a peer",
         .files = {{"slurm-9.out", "0: step 12 loss 2.9\n" KEY_ERROR("1: ") CLOSED_BY_PEER("0: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("2: ", "[10.2.0.5]:14728")}},
         .want = {"python-exception rank 1"}},
        {.name = "task 1 is not there",
         .files = {{"slurm-9.out", "0: step 12 loss 2.9\n" KEY_ERROR("2: ") CLOSED_BY_PEER("0: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("3: ", "[10.2.0.5]:14728")}},
         .want = {"!* rank *", "*"}},
        {.name = "a launcher in each task",
         .files = {{"slurm-9.out", KEY_ERROR("1: ") CLOSED_BY_PEER("0: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("2: ", "[10.2.0.5]:14728")
                    "1: ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 3 (pid: 901) of binary: /usr/bin/python3\n"}},
         .want = {"!* rank 1", "*"}},
    };
    LOGS_CASES(rows);
}

#define NOT_A_NUMBER(step, rank, loss) "{\"ts\": \"2026-03-09T10:01:0" step ".249\", \"rank\": " rank ", \"msg\": \"step\", \"step\": " step ", \"loss\": " loss ", \"grad_norm\": NaN}\n"
#define A_NUMBER(step, rank) "{\"ts\": \"2026-03-09T10:01:0" step ".249\", \"rank\": " rank ", \"msg\": \"step\", \"step\": " step ", \"loss\": 2.1, \"grad_norm\": 1.5}\n"

T_TEST(whose_loss_was_bad_in_the_step_in_which_the_norm_was)
{
    static const struct logs_case rows[] = {
        {.name = "lines of JSON with Python's NaN",
         .files = {{"all.jsonl", A_NUMBER("1", "0") A_NUMBER("1", "1") A_NUMBER("2", "0") A_NUMBER("2", "1") NOT_A_NUMBER("3", "0", "2.1") NOT_A_NUMBER("3", "1", "NaN")
                    NOT_A_NUMBER("4", "0", "NaN") NOT_A_NUMBER("4", "1", "NaN") NOT_A_NUMBER("5", "0", "NaN") NOT_A_NUMBER("5", "1", "NaN")}},
         .want = {"loss-nan-generic rank 1"}},
    };
    LOGS_CASES(rows);
}

#define OWN(tag, text) tag text "\n"
#define OWN_STEPS(a, b, c, s1, s2)                                                                                                       \
    OWN(a, "step " s1 " loss 2.91") OWN(c, "step " s1 " loss 2.93") OWN(b, "step " s1 " loss 2.90") OWN(b, "step " s2 " loss 2.74")       \
    OWN(a, "step " s2 " loss 2.71") OWN(c, "step " s2 " loss 2.73")
#define OWN_RUN(a, b, c)                                                                                                                  \
    OWN_STEPS(a, b, c, "1", "2") OWN_STEPS(c, a, b, "3", "4") OWN_STEPS(b, c, a, "5", "6") CLOSED_BY_PEER(a, "[10.2.0.5]:14727") KEY_ERROR(b)   \
    CLOSED_BY_PEER(c, "[10.2.0.5]:14728")

T_TEST(a_tag_that_the_script_made_up)
{
    static const struct logs_case rows[] = {
        {.name = "a letter", .files = {{"console.log", OWN_RUN("[R0] ", "[R1] ", "[R2] ")}}, .want = {"python-exception rank 1"}},
        {.name = "of how many", .files = {{"console.log", OWN_RUN("(0/3) ", "(1/3) ", "(2/3) ")}}, .want = {"python-exception rank 1"}},
        {.name = "a word for a process, behind the time",
         .files = {{"console.log", OWN_RUN("2026-03-09 10:00:00,410 worker 0 - ", "2026-03-09 10:00:00,410 worker 1 - ", "2026-03-09 10:00:00,410 worker 2 - ")}},
         .want = {"python-exception rank 1"}},
        {.name = "only on its logger's lines: the traceback below is bare",
         .files = {{"console.log", OWN_STEPS("r0: INFO ", "r1: INFO ", "r2: INFO ", "1", "2") OWN_STEPS("r2: INFO ", "r0: INFO ", "r1: INFO ", "3", "4")
                    OWN_STEPS("r1: INFO ", "r2: INFO ", "r0: INFO ", "5", "6") OWN("r1: ", "ERROR uncaught exception") KEY_ERROR("") OWN("r0: ", "ERROR uncaught exception")
                    CLOSED_BY_PEER("", "[10.2.0.5]:14727") OWN("r2: ", "ERROR uncaught exception") CLOSED_BY_PEER("", "[10.2.0.5]:14728")}},
         .want = {"python-exception rank 1"}},
        {.name = "the file is one rank's: what it counts are no ranks", .files = {{"rank3.log", OWN_RUN("[R0] ", "[R1] ", "[R2] ")}}, .want = {"!* rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(the_child_that_nobody_names)
{
    static const struct logs_case rows[] = {
        {.name = "three of four have a row in the table, and waited; the launcher stopped the fourth",
         .files = {{"console.log", WAITED_IN_STORE WAITED_IN_STORE WAITED_IN_STORE STOP("900") TABLE_HEAD ROW("1", "10:14:40", "gn11", "2", "2", "1", "902", "")
                    ROW("2", "10:14:40", "gn11", "3", "3", "1", "903", "") TABLE_ROOT ROW("0", "10:14:38", "gn11", "1", "1", "1", "901", "") TABLE_END}},
         .want = {"c10d-store-wait-timeout rank 0"}},
        {.name = "two are not named: either may be it",
         .files = {{"console.log", WAITED_IN_STORE WAITED_IN_STORE STOP("900") STOP("903") TABLE_HEAD ROW("1", "10:14:40", "gn11", "2", "2", "1", "902", "") TABLE_ROOT
                    ROW("0", "10:14:38", "gn11", "1", "1", "1", "901", "") TABLE_END}},
         .want = {"!* rank 0", "!* rank 3", "*"}},
        {.name = "local ranks that are no ranks",
         .files = {{"console.log", WAITED_IN_STORE WAITED_IN_STORE WAITED_IN_STORE STOP("900") TABLE_HEAD ROW("1", "10:14:40", "gn11", "6", "2", "1", "902", "")
                    ROW("2", "10:14:40", "gn11", "7", "3", "1", "903", "") TABLE_ROOT ROW("0", "10:14:38", "gn11", "5", "1", "1", "901", "") TABLE_END}},
         .want = {"!* rank 0", "*"}},
    };
    LOGS_CASES(rows);
}

#define NCCL_WARNED(pid, dev) "gn11:" pid ":" pid " [" dev "] NCCL WARN Bootstrap : no socket interface found\n"
#define TP(r, text) "[2026-03-09 10:08:45 TP" r "] " text

T_TEST(a_file_of_several_processes_of_which_one_says_its_rank)
{
    static const struct logs_case rows[] = {
        {.name = "NCCL speaks in it on two GPUs",
         .files = {{"gn11.log", NCCL_WARNED("900", "0") NCCL_WARNED("903", "3") STEPS TP("3", "Load weight begin\n") "Killed\n"}, {"gn12.log", TP("9", "Load weight begin\n")}},
         .want = {"!* rank 3", "*"}},
        {.name = "on one", .files = {{"gn11.log", NCCL_WARNED("903", "3") STEPS TP("3", "Load weight begin\n") "Killed\n"}, {"gn12.log", TP("9", "Load weight begin\n")}},
         .want = {"process-killed-sigkill rank 3"}},
    };
    LOGS_CASES(rows);
}

#define ECC "CUDA error: uncorrectable ECC error encountered"
#define OLD_WATCHDOG(r, text) "[E ProcessGroupNCCL.cpp:916] [Rank " r "] NCCL watchdog thread terminated with exception: " text "\n"

T_TEST(the_number_that_a_watchdog_gives_itself)
{
    static const struct logs_case rows[] = {
        {.name = "of a fault of its own GPU, and no group is named", .files = {{"console.log", TRACE("", "net.py", "57", "forward", "RuntimeError: " ECC) OLD_WATCHDOG("1", ECC)}},
         .want = {"cuda-uncorrectable-ecc rank 1"}},
        {.name = "a group of another size is spoken of",
         .files = {{"console.log", TRACE("", "net.py", "57", "forward", "RuntimeError: " ECC) OLD_WATCHDOG("1", ECC)
                    COUNTED("0", "10:14:30", "5", "TENSOR_MODEL_PARALLEL_GROUP", "0", "7", "7", "6")}},
         .want = {"!* rank 1", "*"}},
        {.name = "the world is smaller", .files = {{"console.log", I_AM("0", "2", "900", "gn11") TRACE("", "net.py", "57", "forward", "RuntimeError: " ECC) OLD_WATCHDOG("5", ECC)}},
         .want = {"!* rank 5", "*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(launchers_that_name_who_died)
{
    static const struct logs_case rows[] = {
        {.name = "a worker of vLLM, while the others stall",
         .files = {{"serve.log", "DEBUG 09-12 21:05:33 [shm_broadcast.py:456] No available shared memory broadcast block found in 60 second.\n"
                    "ERROR 09-12 21:05:39 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n"
                    "DEBUG 09-12 21:06:33 [shm_broadcast.py:456] No available shared memory broadcast block found in 60 second.\n"}},
         .want = {"vllm-engine-core-died rank 1"}},
        {.name = "two of Paddle's trainers: both, and none of them alone",
         .files = {{"console.log", "ERROR 2026-03-09 10:00:56,061 launch.py:269] ABORT!!! Out of all 4 trainers, the trainer process with rank=[0, 2] was aborted. Please check its log.\n"}},
         .want = {"!* rank 0", "!* rank 2", "*"}},
        {.name = "one of them",
         .files = {{"console.log", "ERROR 2026-03-09 10:00:56,061 launch.py:269] ABORT!!! Out of all 4 trainers, the trainer process with rank=[2] was aborted. Please check its log.\n"}},
         .want = {"* rank 2"}},
        {.name = "a supervisor of one's own, by the script's tags",
         .files = {{"super.log", OWN_STEPS("[w0] ", "[w1] ", "[w2] ", "1", "2") OWN_STEPS("[w2] ", "[w0] ", "[w1] ", "3", "4") OWN_STEPS("[w1] ", "[w2] ", "[w0] ", "5", "6")
                    "munmap_chunk(): invalid pointer\n" CLOSED_BY_PEER("", "[10.2.0.5]:14727") CLOSED_BY_PEER("", "[10.2.0.5]:14728")
                    "2026/03/09 10:00:32 supervisor worker 1 pid 28011 ended, code -6\n2026/03/09 10:00:32 supervisor worker 0 pid 28010 ended, code 1\n"
                    "2026/03/09 10:00:32 supervisor worker 2 pid 28012 ended, code 1\n"}},
         .want = {"native-abort rank 1"}},
        {.name = "a shell on another host, by its address",
         .files = {{"pdsh.log", "10.31.220.18: bash: line 0: cd: /data/fit: No such file or directory\n"}}, .want = {"file-not-found*"}},
    };
    LOGS_CASES(rows);
}

#define LOGGED(at, r, text) "[2026-03-09 10:00:" at ",531][rank " r "][INFO] " text "\n"
#define COUNTED_ALL(at) LOGGED(at, "1", "counted") LOGGED(at, "0", "counted") LOGGED(at, "2", "counted") LOGGED(at, "3", "counted")

T_TEST(who_prints_behind_a_traceback_lives)
{
    static const struct logs_case rows[] = {
        {.name = "all but one do",
         .files = {{"console.log", COUNTED_ALL("36") COUNTED_ALL("37") KEY_ERROR("") LOGGED("38", "2", "waits") LOGGED("38", "0", "waits") LOGGED("38", "3", "waits")
                    CLOSED_BY_PEER("", "[10.2.0.5]:14727") CLOSED_BY_PEER("", "[10.2.0.5]:14728") CLOSED_BY_PEER("", "[10.2.0.5]:14729") FAILED("1", "0", "900")}},
         .want = {"python-exception rank 1"}},
        {.name = "two do not",
         .files = {{"console.log", COUNTED_ALL("36") COUNTED_ALL("37") KEY_ERROR("") LOGGED("38", "2", "waits") LOGGED("38", "3", "waits")
                    CLOSED_BY_PEER("", "[10.2.0.5]:14727") CLOSED_BY_PEER("", "[10.2.0.5]:14728") CLOSED_BY_PEER("", "[10.2.0.5]:14729") FAILED("1", "0", "900")}},
         .want = {"!* rank *", "*"}},
        {.name = "one had been silent for a minute: what comes behind the traceback may be from a buffer",
         .files = {{"console.log", LOGGED("01", "1", "counted") LOGGED("56", "0", "counted") LOGGED("56", "2", "counted") LOGGED("56", "3", "counted") KEY_ERROR("")
                    LOGGED("57", "2", "waits") LOGGED("57", "0", "waits") LOGGED("57", "3", "waits") CLOSED_BY_PEER("", "[10.2.0.5]:14727")}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

#define PORT_IN_USE                                                                                                                       \
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29511, useIpv6: false, code: -98, "  \
    "name: EADDRINUSE, message: address already in use\n"
#define LISTENS(by)                                                                                                                       \
    "Traceback (most recent call last):\n  File \"/home/ivo/fit/fit.py\", line 20, in setup\n    dist.init_process_group(\"gloo\")\n"        \
    "  File \"/opt/env/lib/python3.11/site-packages/torch/distributed/" by ", line 1764, in " 

T_TEST(who_listens_for_the_group)
{
    static const struct logs_case rows[] = {
        {.name = "a process that sets up its group",
         .files = {{"out.txt", LISTENS("distributed_c10d.py\"") "init_process_group\n    store, rank, world_size = next(rendezvous_iterator)\n" PORT_IN_USE}},
         .want = {"c10d-address-in-use rank 0"}},
        {.name = "a launcher",
         .files = {{"out.txt", LISTENS("launcher/api.py\"") "launch_agent\n    rdzv_handler=rdzv_registry.get_rendezvous_handler(rdzv_parameters),\n" PORT_IN_USE}},
         .want = {"c10d-address-in-use launcher"}},
    };
    LOGS_CASES(rows);
}

#define SRUN(host, task, how) "srun: error: " host ": task " task ": " how "\n"
#define SRUN_STOPS "srun: launch/slurm: _step_signal: Terminating StepId=81.0\n"
#define TWO_TASKS_MORE SRUN("gn12", "2", "Exited with exit code 1") SRUN("gn11", "1", "Killed") SRUN("gn12", "3", "Killed")

T_TEST(the_unsigned_error_of_the_one_that_ended_first)
{
    static const struct logs_case rows[] = {
        {.name = "srun tells of one task, then stops the others",
         .files = {{"job.out", STEPS OOM("") SRUN("gn11", "0", "Exited with exit code 1") SRUN_STOPS TWO_TASKS_MORE}}, .want = {"cuda-oom rank 0"}},
        {.name = "of two",
         .files = {{"job.out", STEPS OOM("") SRUN("gn11", "0", "Exited with exit code 1") SRUN("gn12", "2", "Exited with exit code 1") SRUN_STOPS}},
         .want = {"cuda-oom unknown"}},
        {.name = "of two in one line",
         .files = {{"job.out", STEPS OOM("") "srun: error: gn11: tasks 0-1: Exited with exit code 1\n" SRUN_STOPS SRUN("gn12", "2", "Killed")}},
         .want = {"cuda-oom unknown"}},
        {.name = "two launchers' tables, a minute apart",
         .files = {{"job.out", OOM("") TABLE_HEAD TABLE_ROOT ROW("0", "10:05:52", "gn11", "0", "0", "1", "900", "") TABLE_END
                    TABLE_HEAD TABLE_ROOT ROW("0", "10:05:01", "gn12", "4", "0", "1", "904", "") TABLE_END}},
         .want = {"cuda-oom rank 4"}},
        {.name = "as far apart as clocks are",
         .files = {{"job.out", OOM("") TABLE_HEAD TABLE_ROOT ROW("0", "10:05:21", "gn11", "0", "0", "1", "900", "") TABLE_END
                    TABLE_HEAD TABLE_ROOT ROW("0", "10:05:01", "gn12", "4", "0", "1", "904", "") TABLE_END}},
         .want = {"cuda-oom unknown"}},
    };
    LOGS_CASES(rows);
}

#define TWO_OF_A_HOST I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS
#define ONE_IN_THE_TABLE STOP("901") FAILED("1", "0", "900") TABLE_HEAD TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "1", "900", "") TABLE_END

T_TEST(the_unsigned_error_of_the_peer_that_is_gone)
{
    static const struct logs_case rows[] = {
        {.name = "the other one lost it, and still ran",
         .files = {{"console.log", TWO_OF_A_HOST KEY_ERROR("") CLOSED_BY_PEER("", "[127.0.0.1]:12202") ONE_IN_THE_TABLE}}, .want = {"python-exception rank 0"}},
        {.name = "the other one had waited in vain: that ends by itself, too",
         .files = {{"console.log", TWO_OF_A_HOST KEY_ERROR("") TRACE("", "loop.py", "140", "reduce_grads",
                    "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete")
                    ONE_IN_THE_TABLE}},
         .want = {"!* rank 0", "*"}},
    };
    LOGS_CASES(rows);
}

#define IB_STATUS(status)                                                                                                                 \
    "[2026-03-09 10:05:01] gn11:901:1744 [1] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer 10.2.0.5<51161> with status=" status  \
    " opcode=0 len=0 vendor err 81 (Send)\n"
#define TIMINGS(pid, dev, r)                                                                                                              \
    "gn11:" pid ":" pid " [" dev "] NCCL INFO Init timings - ncclCommInitRank: rank " r " nranks 16 total 1.57 (kernels 0.25, alloc 0.98, rest 0.00)\n"
#define NO_AV "gn11:901:1744 [1] create_nccl_ofi_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument\n"
#define NO_ARCH "gn11:901:1744 [1] graph/xml.h:101 NCCL WARN Attribute arch of node cpu not found\n"
#define NPU_ERROR "[ERROR] 2026-03-09-10:05:01 (PID:901, Device:1, RankID:9) ERR02200 DIST call hccl api failed.\n"
#define CANN "EJ0001: 2026-03-09-10:05:01.214.507 Failed to initialize the HCCP process. Reason: Maybe the last training process is running.\n"

T_TEST(a_trouble_of_ones_own_host)
{
    static const struct logs_case rows[] = {
        {.name = "a local error of the adapter, by the pid of another line", .files = {{"job.out", TIMINGS("900", "0", "8") TIMINGS("901", "1", "9") IB_STATUS("4")}},
         .want = {"nccl-ib-local-protection rank 9"}},
        {.name = "a remote one", .files = {{"job.out", TIMINGS("900", "0", "8") TIMINGS("901", "1", "9") IB_STATUS("10")}},
         .want = {"nccl-ib-local-protection unknown"}},
        {.name = "a plugin that cannot start", .files = {{"job.out", TIMINGS("900", "0", "8") TIMINGS("901", "1", "9") NO_AV}}, .want = {"efa-plugin-init-failed rank 9"}},
        {.name = "one rank's own log of what is its host's", .files = {{"job.out", "[1,9]<stdout>:" NO_ARCH}}, .want = {"nccl-topology-detection-failed node 9 gn11"}},
        {.name = "an error of CANN below the one that says whose", .files = {{"job.out", NPU_ERROR CANN}}, .want = {"ascend-acl-error rank 9"}},
        {.name = "not below it", .files = {{"job.out", NPU_ERROR "Traceback follows\n" CANN}}, .want = {"ascend-acl-error unknown"}},
    };
    LOGS_CASES(rows);
}

#define NOT_WRITTEN TRACE("", "fit.py", "90", "save", "RuntimeError: [enforce fail at inline_container.cc:445] . PytorchStreamWriter failed writing file data/48: file write failed")
#define THEN_ABORTS "terminate called after throwing an instance of 'c10::Error'\n  what():  [enforce fail at inline_container.cc:325] . unexpected pos 1049408 vs 1049300\n"
#define ENDS_WITH(c1)                                                                                                                     \
    CLOSED_BY_PEER("", "[10.2.0.5]:14727") TABLE_HEAD ROW("1", "10:05:02", "gn11", "1", "1", c1, "901", "")                                    \
    TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "-6", "900", " (SIGABRT)") TABLE_END

T_TEST(the_exception_that_the_process_aborts_with)
{
    static const struct logs_case rows[] = {
        {.name = "one of two aborted", .files = {{"console.log", TWO_OF_A_HOST NOT_WRITTEN THEN_ABORTS ENDS_WITH("1")}}, .want = {"checkpoint-write-failed rank 0"}},
        {.name = "both did", .files = {{"console.log", TWO_OF_A_HOST NOT_WRITTEN THEN_ABORTS ENDS_WITH("-6")}}, .want = {"!* rank *", "*"}},
        {.name = "it is not what it printed", .files = {{"console.log", TWO_OF_A_HOST NOT_WRITTEN ENDS_WITH("1")}}, .want = {"!checkpoint-write-failed rank *", "*"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
