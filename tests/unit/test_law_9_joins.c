/* SPDX-License-Identifier: Apache-2.0 */
/* Law 9: node evidence joins rank evidence: Xid by PCI address, the OOM killer by pid, Slurm and Kubernetes by task and pod. */
#include "law_lines.h"

#define XID(host, bus, text) KERNEL(host, "10:03:20", "NVRM: Xid (PCI:0000:" bus "): " text)
#define TWO_HOSTS                                                                                                        \
    {"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "4", "1b000") STEPS}, {"rank1.log", NCCL_INIT("gn11", "901", "1", "1", "4", "9b000") STEPS},  \
    {"rank2.log", NCCL_INIT("gn12", "902", "0", "2", "4", "1b000") STEPS}, {"rank3.log", NCCL_INIT("gn12", "903", "1", "3", "4", "9b000") STEPS}

T_TEST(xid_by_pci_address)
{
    static const struct logs_case rows[] = {
        {.name = "the address on the host of rank 3, which is also one of rank 1's host",
         .files = {TWO_HOSTS, {"kern-gn12.log", XID("gn12", "9b:00", "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")}},
         .want = {"* rank 3"}},
        {.name = "a card that no rank uses",
         .files = {TWO_HOSTS, {"kern-gn12.log", XID("gn12", "c3:00", "79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.")}},
         .want = {"!* rank *"}},
        {.name = "a double-bit error explains the CUDA error of the process and the victims' texts",
         .files = {{"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "2", "1b000") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", NCCL_INIT("gn11", "901", "1", "1", "2", "9b000") STEPS TRACE("[rank1]: ", "blocks.py", "214", "forward",
                    "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered")},
                   {"kern-gn11.log", XID("gn11", "9b:00", "48, pid=901, name=python3, DBE (double bit error) detected in SRAM")}},
         .want = {"* rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(oom_killer_by_pid_and_host)
{
    static const struct logs_case rows[] = {
        {.name = "the pid of rank 2",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14729")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS}, {"kern.log", OOM_KILL("gn11", "10:04:40", "902", "pt_main_thread")}},
         .want = {"*oom* rank 2"}},
        {.name = "a stranger on the same host was killed",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") STEPS KEY_ERROR("[rank1]: ")}, {"kern.log", OOM_KILL("gn11", "09:12:40", "41", "logrotate")}},
         .want = {"python-exception rank 1"}},
        {.name = "a SIGKILL in the table is explained by the kernel",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS STOP("900") FAILED("-9", "1", "901") TABLE_HEAD
                    ROW("1", "10:05:03", "gn11", "0", "0", "-15", "900", " (SIGTERM)") TABLE_ROOT ROW("0", "10:05:02", "gn11", "1", "1", "-9", "901", " (SIGKILL)") TABLE_END},
                   {"kern.log", OOM_KILL("gn11", "10:05:01", "901", "python3")}},
         .want = {"*oom* rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(crashes_of_other_programs)
{
    static const struct logs_case rows[] = {
        {.name = "all ranks are seen to end otherwise",
         .files = {{"kern.log", KERNEL("gn11", "09:12:40", "python3[41]: segfault at 0 ip 00007f84 sp 00007fff error 4 in libc.so.6[17a7,7f84]")},
                   {"rank0.log", I_AM("0", "2", "900", "gn11") STEPS KEY_ERROR("")}, {"rank1.log", I_AM("1", "2", "901", "gn11") STEPS},
                   {"console.log", STOP("901") FAILED("1", "0", "900") TABLE_HEAD ROW("1", "10:05:03", "gn11", "1", "1", "-15", "901", " (SIGTERM)") TABLE_ROOT
                    ROW("0", "10:05:02", "gn11", "0", "0", "1", "900", "") TABLE_END}},
         .want = {"python-exception rank 0"}},
        {.name = "nothing is known of the ranks' ends",
         .files = {{"kern.log", KERNEL("gn11", "10:04:40", "python3[41]: segfault at 0 ip 00007f84 sp 00007fff error 4 in libc.so.6[17a7,7f84]")},
                   {"rank0.log", I_AM("0", "2", "900", "gn11") STEPS}, {"rank1.log", I_AM("1", "2", "901", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")}},
         .want = {"segfault *"}},
    };
    LOGS_CASES(rows);
}

T_TEST(slurm_by_task_and_kubernetes_by_pod)
{
    static const struct logs_case rows[] = {
        {.name = "a range of tasks is all of them",
         .files = {{"slurm-88.out", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    STEPS "srun: error: gn11: tasks 1-3: Out Of Memory\n"}},
         .want = {"slurm-oom ranks 1?2?3"}},
        {.name = "the step was out of memory, and one task was killed",
         .files = {{"slurm-88.out", "0: " I_AM("0", "3", "900", "gn11") "1: " I_AM("1", "3", "901", "gn11") "2: " I_AM("2", "3", "902", "gn12")
                    "slurmstepd: error: Detected 1 oom_kill event in StepId=88.0. Some of the step tasks have been OOM Killed.\n"
                    "srun: error: gn11: task 1: Killed\nsrun: error: gn12: task 2: Exited with exit code 1\n"}},
         .want = {"*oom* rank 1"}},
        {.name = "srun's first word where every task is one rank",
         .files = {{"slurm-88.out", "0: " I_AM("0", "4", "900", "gn11") "1: " I_AM("1", "4", "901", "gn11") "2: " I_AM("2", "4", "902", "gn12") "3: " I_AM("3", "4", "903", "gn12")
                    "srun: error: gn12: task 2: Segmentation fault (core dumped)\nsrun: Terminating StepId=88.0\n"
                    "srun: error: gn12: task 3: Terminated\nsrun: error: gn11: tasks 0-1: Terminated\n"}},
         .want = {"segfault rank 2"}},
        {.name = "two tasks in one line aborted, and no line of theirs is there",
         .files = {{"slurm-88.out", "srun: error: gn12: tasks 1,3: Aborted\nsrun: Terminating StepId=88.0\n"
                    "0: slurmstepd: error: *** STEP 88.0 ON gn12 CANCELLED AT 2026-03-09T10:05:00 ***\nsrun: error: gn12: task 2: Terminated\n"}},
         .want = {"!* rank *"}},
        {.name = "one task per node: the task is no rank",
         .files = {{"slurm-88.out", "0: " I_AM("0", "4", "900", "gn11") "0: " I_AM("1", "4", "901", "gn11") "1: " I_AM("2", "4", "902", "gn12") "1: " I_AM("3", "4", "903", "gn12")
                    "srun: error: gn12: task 1: Killed\nsrun: Terminating StepId=88.0\nsrun: error: gn11: task 0: Terminated\n"}},
         .want = {"!* rank *"}},
        {.name = "a time limit is the job's, not a rank's",
         .files = {{"slurm-88.out", STEPS "slurmstepd: error: *** JOB 88 ON gn11 CANCELLED AT 2026-03-09T10:05:00 DUE TO TIME LIMIT ***\n"}},
         .want = {"* launcher"}},
        {.name = "who is told to stop says why, and tasks end after it",
         .files = {{"slurm-88.out", "submitit WARNING (2026-03-09 10:04:58,120) - Caught signal SIGUSR2 on gn11: this job is preempted.\n"
                    "submitit WARNING (2026-03-09 10:04:58,299) - Bypassing signal SIGTERM\nsrun: error: gn11: tasks 2-3: Exited with exit code 1\n"}},
         .want = {"slurm-preempted launcher"}},
        {.name = "the order to stop came before the ends that follow it",
         .files = {{"slurm-88.out", "slurmstepd: error: *** JOB 88 ON gn11 CANCELLED AT 2026-03-09T10:05:00 DUE TO JOB REQUEUE ***\n"
                    "submitit WARNING (2026-03-09 10:05:00,299) - Bypassing signal SIGTERM\nsrun: error: gn11: tasks 2-3: Exited with exit code 1\n"}},
         .want = {"slurm-requeued launcher"}},
        {.name = "somebody cancelled a job that trained",
         .files = {{"slurm-88.out", STEPS "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
                    "slurmstepd-gn11: error: *** STEP 88.0 ON gn11 CANCELLED AT 2026-03-09T10:05:00 ***\n"
                    "slurmstepd-gn11: error: *** JOB 88 ON gn11 CANCELLED AT 2026-03-09T10:05:00 ***\nsrun: error: gn11: tasks 0-3: Terminated\n"}},
         .want = {"slurm-cancelled-signal launcher"}},
        {.name = "a step alone is cancelled when one of its tasks failed, too",
         .files = {{"slurm-88.out", STEPS "srun: error: gn11: task 2: Exited with exit code 1\nsrun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
                    "slurmstepd-gn11: error: *** STEP 88.0 ON gn11 CANCELLED AT 2026-03-09T10:05:00 ***\nsrun: error: gn11: tasks 0-1,3: Terminated\n"}},
         .want = {"!slurm-cancelled-signal *", "*"}},
        {.name = "none of its tasks failed",
         .files = {{"slurm-88.out", STEPS "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
                    "slurmstepd-gn11: error: *** STEP 88.0 ON gn11 CANCELLED AT 2026-03-09T10:05:00 ***\nsrun: error: gn11: tasks 0-3: Terminated\n"}},
         .want = {"slurm-cancelled-signal launcher"}},
        {.name = "a pod that was over its memory limit",
         .files = {{"fit-worker-0.log", I_AM("0", "2", "900", "fit-worker-0") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"fit-worker-1.log", I_AM("1", "2", "901", "fit-worker-1") STEPS},
                   {"pods.txt", "NAME           READY   STATUS      RESTARTS   AGE\nfit-worker-0   0/1     Error       0          41m\n"
                                "fit-worker-1   0/1     OOMKilled   0          41m\n"}},
         .want = {"k8s-oomkilled *"}},
    };
    LOGS_CASES(rows);
}

T_TEST(launchers_by_their_own_file)
{
#define TABLE(rank, local, pid) \
    FAILED("1", local, pid) TABLE_HEAD TABLE_ROOT ROW("0", "10:05:03", "localhost", rank, local, "1", pid, "") TABLE_END
    static const struct logs_case rows[] = {
        {.name = "two launchers that give the same host's name",
         .files = {{"node-0.log", CLOSED_BY_PEER("[default0]:", "[10.2.0.5]:14727") TABLE("0", "0", "810")},
                   {"node-1.log", KEY_ERROR("[default1]:") CLOSED_BY_PEER("[default0]:", "[10.2.0.5]:14728") TABLE("3", "1", "911")}},
         .want = {"python-exception rank 3"}},
        {.name = "a worker that its executor saw go, and not how",
         .files = {{"serve.log", "INFO 03-09 10:01:00 [core.py:70] Initializing a V1 LLM engine with config: tensor_parallel_size=4\n"
                    "ERROR 03-09 10:04:30 [multiproc_executor.py:140] Worker proc VllmWorker-2 died unexpectedly, shutting down executor.\n"}},
         .want = {"vllm-engine-core-died rank 2"}},
        {.name = "a container whose end docker compose tells",
         .files = {{"up.log", "fit-worker-1  | [Rank 0] epoch 0 step 1/20 loss=0.68\nfit-worker-2  | [Rank 1] epoch 0 step 1/20 loss=0.69\n"
                    "fit-worker-3  | [Rank 2] epoch 0 step 1/20 loss=0.67\n"
                    "fit-worker-1  | " CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") "fit-worker-3  | " CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14728")
                    "fit-worker-2 exited with code 137\nfit-worker-1 exited with code 1\nfit-worker-3 exited with code 1\n"}},
         .want = {"process-killed-sigkill rank 1"}},
        {.name = "a worker of Ray Train by its place in the group",
         .files = {{"driver.log", "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
                    "(TorchTrainer pid=5512) Worker 3 has failed.\n"}},
         .want = {"ray-worker-died rank 3"}},
        {.name = "the scheduler's word on who told the launcher to stop",
         .files = {{"slurm-88.out", STEPS "srun: Job step aborted: Waiting up to 62 seconds for job step to finish.\nKilling subprocess 901\n"
                    "Main process received SIGTERM, exiting\nslurmstepd: error: *** JOB 88 ON gn11 CANCELLED AT 2026-03-09T10:05:00 ***\n"}},
         .want = {"slurm-cancelled-signal launcher"}},
    };
    LOGS_CASES(rows);
}

#define TOLD_ROW(i, r, code, exception)                                                                  \
    "[" i "]:\n  time      : 2026-03-09_10:05:01\n  host      : gn11\n  rank      : " r " (local_rank: " r ")\n" \
    "  exitcode  : " code " (pid: 90" r ")\n  error_file: /tmp/torchelastic_u1/attempt_0/" r "/error.json\n"     \
    "  traceback : Traceback (most recent call last):\n    File \"/home/ivo/fit/fit.py\", line 9, in main\n      go()\n  " exception "\n  \n"
#define LOST "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:28591"
#define TRUNCATED "OSError: image file is truncated (12 bytes not processed)"
#define WORKER(n, text) "fit_worker_" n "  | " text

T_TEST(whose_lines_these_are)
{
    static const struct logs_case rows[] = {
        {.name = "the traceback in a row of the table is that of the row's rank, and so is the same one above it",
         .files = {{"console.log", TRACE("", "fit.py", "9", "main", TRUNCATED) CLOSED_BY_PEER("", "[127.0.0.1]:28591") CLOSED_BY_PEER("", "[127.0.0.1]:28592") TABLE_HEAD
                    TOLD_ROW("0", "0", "1", LOST) TOLD_ROW("1", "1", "1", LOST) TABLE_ROOT TOLD_ROW("2", "2", "1", TRUNCATED) TABLE_END}},
         .want = {"image-truncated rank 2"}},
        {.name = "a container that trains as one rank, each of the ranks in one",
         .files = {{"up.log", WORKER("1", "2026-03-09 10:01:00 | INFO | rank=0 | step 10 loss 2.91\n") WORKER("2", "2026-03-09 10:01:00 | INFO | rank=1 | step 10 loss 2.92\n")
                    WORKER("3", "2026-03-09 10:01:00 | INFO | rank=2 | step 10 loss 2.93\n")
                    KEY_ERROR("fit_worker_2  | ") CLOSED_BY_PEER("fit_worker_1  | ", "[10.2.0.5]:14727") CLOSED_BY_PEER("fit_worker_3  | ", "[10.2.0.5]:14728")}},
         .want = {"python-exception rank 1"}},
        {.name = "hosts of which only the first rank speaks hold more than that one",
         .files = {{"all.log", "node1: 2026-03-09 10:01:00 | INFO | rank=0 | step 10 loss 2.91\nnode2: 2026-03-09 10:01:00 | INFO | rank=8 | step 10 loss 2.92\n" KEY_ERROR("node2: ")}},
         .want = {"!* rank *", "*"}},
        {.name = "the first process of mpirun to end had lost a peer itself; another one says nothing",
         .files = {{"console.log", "[1,0]<stdout>:" I_AM("0", "4", "900", "gn11") "[1,1]<stdout>:" I_AM("1", "4", "901", "gn11") "[1,2]<stdout>:" I_AM("2", "4", "902", "gn11")
                    "[1,3]<stdout>:" I_AM("3", "4", "903", "gn11") CLOSED_BY_PEER("[1,1]<stderr>:", "[10.2.0.5]:14727") CLOSED_BY_PEER("[1,3]<stderr>:", "[10.2.0.5]:14728")
                    CLOSED_BY_PEER("[1,0]<stderr>:", "[10.2.0.5]:14729")
                    "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n"
                    "  Process name: [[23946,1],3]\n  Exit code:    1\n"}},
         .want = {"silent-exit rank 2"}},
        {.name = "all ended by SIGTERM, which the launcher sent to all but one",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11") STEPS CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14727")
                    STOP("900") STOP("901") FAILED("-15", "2", "902") TABLE_HEAD ROW("1", "10:05:01", "gn11", "0", "0", "-15", "900", " (SIGTERM)")
                    ROW("2", "10:05:01", "gn11", "1", "1", "-15", "901", " (SIGTERM)") TABLE_ROOT ROW("0", "10:05:01", "gn11", "2", "2", "-15", "902", " (SIGTERM)") TABLE_END}},
         .want = {"silent-exit rank 2"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_step_that_is_cancelled_while_all_is_well)
{
#define ABORTED "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
#define TOLD "W0309 10:05:10.341000 771 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers\n" STOP("900") STOP("901")
#define CANCELLED "slurmstepd-gn11: error: *** STEP 88.0 ON gn11 CANCELLED AT 2026-03-09T10:05:10 ***\n"
    static const struct logs_case rows[] = {
        {.name = "srun tells of it first, the launcher and the scheduler after it",
         .files = {{"slurm-88.out", STEPS ABORTED TOLD CANCELLED}},
         .want = {"slurm-cancelled-signal launcher"}},
        {.name = "a task had failed before",
         .files = {{"slurm-88.out", STEPS "srun: error: gn12: task 3: Exited with exit code 1\n" ABORTED TOLD CANCELLED}},
         .want = {"!slurm-cancelled-signal*", "*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(what_one_table_proves)
{
    static const struct logs_case rows[] = {
        {.name = "when the agent looked no other process had ended: it was the first one in 11 of 18 real runs, which is no proof",
         .files = {{"console.log", TABLE_HEAD "  <NO_OTHER_FAILURES>\n" TABLE_ROOT ROW("0", "10:05:01", "gn11", "3", "3", "1", "903", "") TABLE_END}},
         .want = {"!* rank *", "*"}},
        {.name = "of two that say nothing, the one whose exit code no exception gives",
         .files = {{"console.log", I_AM("0", "6", "900", "gn11") I_AM("1", "6", "901", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14728")
                    CLOSED_BY_PEER("[rank3]: ", "[10.2.0.5]:14729") CLOSED_BY_PEER("[rank4]: ", "[10.2.0.5]:14730") FAILED("17", "2", "902")
                    TABLE_HEAD "  <NO_OTHER_FAILURES>\n" TABLE_ROOT ROW("0", "10:05:01", "gn11", "2", "2", "17", "902", "") TABLE_END}},
         .want = {"silent-exit rank 2"}},
    };
    LOGS_CASES(rows);
}

#define UNIT(n, text) "Mar  9 10:04:31 gn11 fit@" n "[90" n "]: " text
#define UNIT_LOST(n) CLOSED_BY_PEER("Mar  9 10:04:31 gn11 fit@" n "[90" n "]: [rank" n "]: ", "[10.2.0.5]:14727")
#define UNIT_ENDED(n, how) "Mar  9 10:04:31 gn11 systemd[1]: fit@" n ".service: Main process exited, code=" how "\n"

T_TEST(units_of_systemd)
{
    static const struct logs_case rows[] = {
        {.name = "an instance that was killed, by the pid that said its rank",
         .files = {{"journal.log", UNIT("0", "rank 0/3 pid 900 ready on gn11\n") UNIT("1", "rank 1/3 pid 901 ready on gn11\n") UNIT("2", "rank 2/3 pid 902 ready on gn11\n")
                    UNIT_ENDED("1", "killed, status=9/KILL") UNIT_LOST("0") UNIT_LOST("2") UNIT_ENDED("0", "exited, status=1/FAILURE")
                    UNIT_ENDED("2", "exited, status=1/FAILURE")}},
         .want = {"process-killed-sigkill rank 1"}},
        {.name = "nobody proves whose instance dumped its core, but only one rank says nothing",
         .files = {{"journal.log", UNIT_LOST("0") UNIT_LOST("2") UNIT_LOST("3") UNIT_ENDED("1", "dumped, status=7/BUS")}, {"rank1.log", "quiet\n"}},
         .want = {"sigbus-exit-minus-7 rank 1"}},
    };
    LOGS_CASES(rows);
}

#define SLOW(n) TRACE("fit_worker_" n "  | [rank" n "]: ", "loop.py", "140", "reduce_grads", "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation to complete")

T_TEST(killed_or_gone_or_late)
{
    static const struct logs_case rows[] = {
        {.name = "killed last, by the clean-up: the others had awaited it",
         .files = {{"up.log", "fit_worker_0  | rank 0/3 pid 900 ready on gn11\nfit_worker_1  | rank 1/3 pid 901 ready on gn11\nfit_worker_2  | rank 2/3 pid 902 ready on gn11\n"
                    SLOW("1") SLOW("2") "fit_worker_1 exited with code 1\nfit_worker_2 exited with code 1\nfit_worker_0 exited with code 137\n"}},
         .want = {"rank-stalled rank 0"}},
        {.name = "killed first: that is why they awaited it",
         .files = {{"up.log", "fit_worker_0  | rank 0/3 pid 900 ready on gn11\nfit_worker_1  | rank 1/3 pid 901 ready on gn11\nfit_worker_2  | rank 2/3 pid 902 ready on gn11\n"
                    "fit_worker_0 exited with code 137\n" SLOW("1") SLOW("2") "fit_worker_1 exited with code 1\nfit_worker_2 exited with code 1\n"}},
         .want = {"process-killed-sigkill rank 0"}},
        {.name = "some saw it go at once, and one waited until its time was over",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") "2026-03-09 10:04:10,000 ERROR [fit] RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14727\n"},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") "2026-03-09 10:04:16,000 ERROR [fit] RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv operation to complete\n"},
                   {"rank2.log", I_AM("2", "4", "902", "gn11") "2026-03-09 10:04:10,000 ERROR [fit] RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14727\n"},
                   {"rank3.log", I_AM("3", "4", "903", "gn11")}},
         .want = {"silent-exit rank 3"}},
        {.name = "a capture of a terminal cuts the text of a time-out",
         .files = {{"pane.txt", TRACE("[rank0]: ", "loop.py", "140", "reduce_grads", "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv\noperation to complete")
                    TRACE("[rank1]: ", "loop.py", "140", "reduce_grads", "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 6000ms for recv\noperation to complete")}},
         .want = {"!python-exception*", "*"}},
        {.name = "and that of a lost peer",
         .files = {{"pane.txt", TRACE("[rank1]: ", "loop.py", "140", "reduce_grads", "RuntimeError: [./gloo/transport/tcp/pair.cc:538] Read error [127.0.0.1]:57543: Connection reset by pe\ner")}},
         .want = {"!python-exception*", "*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(an_end_that_was_seen_before_any_victim_comes_first)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "up.log", WORKER("1", "[Rank 0] epoch 0 step 1/20 loss=0.68\n") WORKER("2", "[Rank 1] epoch 0 step 1/20 loss=0.69\n") WORKER("3", "[Rank 2] epoch 0 step 1/20 loss=0.67\n")
             "fit_worker_2 exited with code 137\n" CLOSED_BY_PEER("fit_worker_1  | [rank0]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("fit_worker_3  | [rank2]: ", "[10.2.0.5]:14728"));
    T_EQ_STR(logs_answer(&l), "process-killed-sigkill rank 1");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->evidence.n > 0 && in->evidence.v[0].line == 4);
    logs_end(&l);
}

#define ZOMBIES(code) "[rank: 1] Child process with PID 3104 terminated with code " code ". Forcefully terminating all other processes to avoid zombies\n"
#define LIGHTNING "[rank: 1] Seed set to 1\nInitializing distributed: GLOBAL_RANK: 1, MEMBER: 2/2\nInitializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2\n"

T_TEST(the_child_that_lightning_names)
{
    static const struct logs_case rows[] = {
        {.name = "killed; the other one is killed by Lightning", .files = {{"out.log", LIGHTNING ZOMBIES("-9") "Killed\n"}}, .want = {"process-killed-sigkill rank 1"}},
        {.name = "it left with a code of its own", .files = {{"out.log", LIGHTNING ZOMBIES("4") "run.sh: line 1:  2611 Killed                  python fit.py\n"}},
         .want = {"silent-exit rank 1"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
