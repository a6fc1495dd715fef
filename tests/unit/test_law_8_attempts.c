/* SPDX-License-Identifier: Apache-2.0 */
/* Law 8: later progress demotes earlier faults; restarts split attempts; each attempt is an incident; what recurs is counted. */
#include "law_lines.h"

/* More lines than a warning has to be survived by. */
#define FRAME(n) "  File \"/home/ivo/fit/fit.py\", line " n ", in step" n "\n    step" n "()\n"
#define LONG_TRACE(exception)                                                                                                             \
    "Traceback (most recent call last):\n" FRAME("1") FRAME("2") FRAME("3") FRAME("4") FRAME("5") FRAME("6") FRAME("7") FRAME("8") FRAME("9")  \
    FRAME("10") FRAME("11") FRAME("12") exception "\n"

#define MORE STEP("5", "2.55") STEP("6", "2.51") STEP("7", "2.47") STEP("8", "2.44")
#define RESTART "I0309 10:05:04.442000 771 torch/distributed/elastic/agent/server/api.py:909] [default] Worker group FAILED. 2/3 attempts left; will restart worker group\n"

T_TEST(training_that_goes_on)
{
    static const struct logs_case rows[] = {
        {.name = "an allocation that failed and was tried again",
         .files = {{"fit.log", STEPS OOM("") "2026-03-09 10:04:31,002 WARNING [fit] halving the micro batch to 4\n" MORE}},
         .want = {"healthy"}},
        {.name = "a key error that a loader survived, then the real end",
         .files = {{"fit.log", STEPS KEY_ERROR("") MORE INDEX_ERROR("")}},
         .want = {"python-exception *"}},
        {.name = "the kernel's word stands although steps were still printed",
         .files = {{"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "2", "1b000") STEPS MORE}, {"rank1.log", NCCL_INIT("gn11", "901", "1", "1", "2", "43000") STEPS},
                   {"kern-gn11.log", KERNEL("gn11", "10:03:20", "NVRM: Xid (PCI:0000:43:00): 79, pid=901, name=python3, GPU has fallen off the bus.")}},
         .want = {"* rank 1"}},
        {.name = "the same fault at the very end is the failure",
         .files = {{"fit.log", STEPS MORE OOM("")}},
         .want = {"cuda-oom *"}},
    };
    LOGS_CASES(rows);
}

T_TEST(the_survived_fault_is_not_where_it_began)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "fit.log", STEPS KEY_ERROR("") MORE INDEX_ERROR(""));
    logs_answer(&l);
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->evidence.n != 0);
    if (in != NULL && in->evidence.n != 0) {
        T_OK(fr_sv_has(in->evidence.v[0].text, FR_SV("IndexError")));
    }
    logs_end(&l);
}

T_TEST(each_attempt_is_an_incident)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "none_q8f3hd2k/attempt_0/0/stderr.log", STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727"));
    logs_add(&l, "none_q8f3hd2k/attempt_0/1/stderr.log", STEPS KEY_ERROR("[rank1]: "));
    logs_add(&l, "none_q8f3hd2k/attempt_1/0/stderr.log", STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727"));
    logs_add(&l, "none_q8f3hd2k/attempt_1/1/stderr.log", STEPS OOM("[rank1]: "));
    T_EQ_STR(logs_answer(&l), "python-exception rank 1");
    const struct fr_incident *first = logs_incident(&l, 0), *second = logs_incident(&l, 1);
    T_OK(first != NULL && first->attempt == 0 && first->recurrences == 1);
    T_OK(second != NULL && second->attempt == 1 && second->recurrences == 1);
    T_OK(second != NULL && fr_sv_eq(second->cls, FR_SV("cuda-oom")));
    logs_end(&l);
}

T_TEST(what_comes_back_is_counted)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS KEY_ERROR("[rank1]: ") STOP("900") FAILED("1", "1", "901") RESTART
             I_AM("0", "2", "930", "gn11") I_AM("1", "2", "931", "gn11") STEPS KEY_ERROR("[rank1]: ") STOP("930") FAILED("1", "1", "931"));
    T_EQ_STR(logs_answer(&l), "python-exception rank 1");
    T_OK(l.report != NULL && l.report->incidents.n == 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct fr_incident *in = logs_incident(&l, i);
        T_OK(in != NULL && in->recurrences == 2);
    }
    logs_end(&l);
}

T_TEST(a_fingerprint_has_no_rank_host_time_or_address)
{
    struct logs a, b, c;
    logs_begin(&a);
    logs_begin(&b);
    logs_begin(&c);
    logs_add(&a, "rank1.log", I_AM("1", "2", "901", "gn11") STEPS KEY_ERROR("[rank1]: "));
    logs_add(&a, "rank0.log", I_AM("0", "2", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727"));
    logs_add(&b, "rank0.log", I_AM("0", "2", "77", "gn42") STEP("7", "2.2") KEY_ERROR("[rank0]: "));
    logs_add(&b, "rank1.log", I_AM("1", "2", "78", "gn42") STEP("7", "2.2") CLOSED_BY_PEER("[rank1]: ", "[10.9.0.8]:2211"));
    logs_add(&c, "rank1.log", I_AM("1", "2", "901", "gn11") STEPS INDEX_ERROR("[rank1]: "));
    logs_add(&c, "rank0.log", I_AM("0", "2", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727"));
    T_EQ_STR(logs_answer(&a), "python-exception rank 1");
    T_EQ_STR(logs_answer(&b), "python-exception rank 0");
    T_EQ_STR(logs_answer(&c), "python-exception rank 1");
    const struct fr_incident *ia = logs_incident(&a, 0), *ib = logs_incident(&b, 0), *ic = logs_incident(&c, 0);
    if (ia != NULL && ib != NULL && ic != NULL) {
        T_EQ_SV(ia->fingerprint, ib->fingerprint);
        T_OK(!fr_sv_eq(ia->fingerprint, ic->fingerprint));
    }
    logs_end(&a);
    logs_end(&b);
    logs_end(&c);
}

#define SKIPPED(n, loss, norm, scale)                                                                                      \
    "2026-03-09 10:0" n ":00,000 INFO [fit] step " n "0 loss " loss " grad_norm " norm " lr 3.0e-04\n"                     \
    "[2026-03-09 10:0" n ":00,010] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. " \
    "Attempted loss scale: " scale ", reducing to 1024\n"

T_TEST(a_scaler_that_skips_is_no_failure)
{
    static const struct logs_case rows[] = {
        {.name = "two steps that are not finite, skipped, and training goes on",
         .files = {{"fit.log", STEP("1", "2.91") SKIPPED("2", "nan", "nan", "4096") SKIPPED("3", "nan", "nan", "2048") STEP("4", "2.88") STEP("5", "2.80")
                    STEP("6", "2.75") STEP("7", "2.71") STEP("8", "2.70")}},
         .want = {"healthy"}},
        {.name = "a spike of two steps after a single one, skipped",
         .files = {{"fit.log", STEP("1", "2.91") SKIPPED("2", "9.1e35", "inf", "4096") SKIPPED("3", "8.7e35", "inf", "2048") STEP("4", "2.88") STEP("5", "2.80")
                    STEP("6", "2.75") STEP("7", "2.71") STEP("8", "2.70")}},
         .want = {"healthy"}},
    };
    LOGS_CASES(rows);
}

T_TEST(torchrun_restarts_without_a_word)
{
    static const struct logs_case rows[] = {
        {.name = "the first attempt's death is the first incident",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS FAILED("-9", "1", "901")
                    I_AM("0", "2", "910", "gn11") I_AM("1", "2", "911", "gn11") KEY_ERROR("[rank0]: ") FAILED("1", "0", "910")}},
         .want = {"torchrun-sigkill-exit-minus-9 rank 1"}},
    };
    LOGS_CASES(rows);
}

#define OLD_FAILED(local, pid) \
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: " local " (pid: " pid ") of binary: /usr/bin/python3\n"

T_TEST(an_agent_whose_lines_bear_no_pid)
{
    static const struct logs_case rows[] = {
        {.name = "one report at the end: what failed before was the first attempt",
         .files = {{"console.log", STEPS KEY_ERROR("[default2]:") CLOSED_BY_PEER("[default0]:", "[10.2.0.5]:14727") OLD_FAILED("0", "900") STEPS INDEX_ERROR("[default0]:")
                    CLOSED_BY_PEER("[default2]:", "[10.2.0.5]:14728") OLD_FAILED("0", "930")
                    TABLE_HEAD ROW("1", "10:05:01", "gn11", "1", "1", "1", "931", "") ROW("2", "10:05:01", "gn11", "2", "2", "1", "932", "")
                    TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "1", "930", "") TABLE_END}},
         .want = {"python-exception rank 2"}},
    };
    struct logs l;
    LOGS_CASES(rows);
    logs_begin(&l); /* two agents write two reports: two nodes of one attempt */
    logs_add(&l, "console.log", STEPS KEY_ERROR("[default1]:") OLD_FAILED("1", "901") OLD_FAILED("0", "500")
             TABLE_HEAD TABLE_ROOT ROW("0", "10:05:01", "gn11", "1", "1", "1", "901", "") TABLE_END
             TABLE_HEAD TABLE_ROOT ROW("0", "10:05:01", "gn12", "2", "0", "1", "500", "") TABLE_END);
    T_EQ_INT(logs_run(&l), 0);
    T_OK(l.report != NULL && l.report->incidents.n == 1);
    logs_end(&l);
}

#define THREAD_END(p) p "Exception in thread cache-refresh:\n" TRACE(p, "cache.py", "75", "refresh", "TimeoutError: cache index refresh took more than 500 ms")

T_TEST(a_thread_is_not_the_process)
{
    static const struct logs_case rows[] = {
        {.name = "the others train on, which they cannot without this rank",
         .files = {{"console.log", "[default0]:" STEP("1", "2.91") THREAD_END("[default1]:") "[default0]:" STEP("2", "2.74") "[default0]:" STEP("3", "2.69") "[default0]:" STEP("4", "2.60")
                    "[default0]:" STEP("5", "2.55")},
                   {"attempt_0/1/stderr.log", THREAD_END("")}},
         .want = {"healthy"}},
        {.name = "the main thread's exception does end it",
         .files = {{"console.log", "[default0]:" I_AM("0", "2", "900", "gn11") "[default1]:" I_AM("1", "2", "901", "gn11") "[default0]:" STEP("1", "2.91") KEY_ERROR("[default1]:") "[default0]:" STEP("2", "2.74") "[default0]:" STEP("3", "2.69") "[default0]:" STEP("4", "2.60")}},
         .want = {"python-exception*"}},
    };
    LOGS_CASES(rows);
}

#define SAVING(p, lost) \
    p "Traceback (most recent call last):\n" p "  File \"/home/ivo/fit/fit.py\", line 76, in step\n" p "    loss.backward()\n" p lost "\n" p "\n" \
    p "During handling of the above exception, another exception occurred:\n" p "\n" p "Traceback (most recent call last):\n"      \
    p "  File \"/home/ivo/fit/fit.py\", line 80, in main\n" p "    torch.save(state, path)\n" p "RuntimeError: Parent directory /nfs/emergency does not exist.\n"

T_TEST(what_was_survived_or_handled)
{
    static const struct logs_case rows[] = {
        {.name = "victims whose emergency checkpoints fail, too",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") SAVING("", "RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") SAVING("", "KeyError: 'target_ids'")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") SAVING("", "RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14727")}},
         .want = {"* rank 1"}},
        {.name = "a traceback in the error file of a rank that finished, as all did",
         .files = {{"attempt_0/0/stdout.log", I_AM("0", "2", "900", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] training finished\n"},
                   {"attempt_0/1/stdout.log", I_AM("1", "2", "901", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] training finished\n"},
                   {"attempt_0/1/stderr.log", KEY_ERROR("")}},
         .want = {"healthy"}},
        {.name = "the same, and the launcher saw it fail",
         .files = {{"attempt_0/0/stdout.log", I_AM("0", "2", "900", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] training finished\n"},
                   {"attempt_0/1/stdout.log", I_AM("1", "2", "901", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] training finished\n"},
                   {"attempt_0/1/stderr.log", KEY_ERROR("")}, {"agent.log", FAILED("1", "1", "901")}},
         .want = {"python-exception rank 1"}},
        {.name = "a norm that was no number for a step, in a run that ended well",
         .files = {{"fit.log", STEP("1", "2.91") STEP("2", "2.74") "2026-03-09 10:03:00,000 INFO [fit] step 30 loss 2.70 grad_norm nan lr 3.0e-04\n" STEP("4", "2.60") STEP("5", "2.55")
                    STEP("6", "2.50") STEP("7", "2.45") "2026-03-09 10:08:32,000 INFO [fit] training finished\n"}},
         .want = {"healthy"}},
    };
    LOGS_CASES(rows);
}

#define BIND(level, text) "[" level "309 10:00:00.404414967 socket.cpp:525] [c10d] The server socket has failed to " text "\n"

T_TEST(a_port_that_is_taken_and_a_group_that_forms)
{
    static const struct logs_case rows[] = {
        {.name = "the second launcher of a host joins as a client",
         .files = {{"node1.log", BIND("W", "bind to [::]:31189 (errno: 98 - Address already in use).") BIND("E", "listen on any local network address.")
                    "2026-03-09 10:00:01,219 INFO [torch.distributed.distributed_c10d] Rank 5: Completed store-based barrier for key:store_based_barrier_key:1 with 6 nodes.\n"}},
         .want = {"!c10d-address-in-use*", "*"}},
        {.name = "the launcher's log apart from those of its processes, which train",
         .files = {{"agent.log", BIND("W", "bind to [::]:31189 (errno: 98 - Address already in use).") BIND("E", "listen on any local network address.")},
                   {"attempt_0/0/stdout.log", I_AM("0", "2", "900", "gn11") STEPS}, {"attempt_0/1/stdout.log", I_AM("1", "2", "901", "gn11") STEPS KEY_ERROR("")}},
         .want = {"python-exception rank 1"}},
        {.name = "nothing comes after it",
         .files = {{"node1.log", BIND("W", "bind to [::]:31189 (errno: 98 - Address already in use).") BIND("E", "listen on any local network address.")}},
         .want = {"c10d-address-in-use*"}},
    };
    LOGS_CASES(rows);
}

#define BAR(n) "rank2 epoch 0: " n "it [00:00, 76.46it/s, loss=0.5" n "]\n"
#define EVENT(type, reason, from, text) "  " type "  " reason "  9m  " from "  " text "\n"

T_TEST(what_is_no_sign_of_life)
{
    static const struct logs_case rows[] = {
        {.name = "bars of the others behind an abort",
         .files = {{"console.log", "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n" BAR("1") BAR("2") BAR("3") BAR("4") BAR("5")
                    CLOSED_BY_PEER("", "[10.2.0.5]:14727") CLOSED_BY_PEER("", "[10.2.0.5]:14728")}},
         .want = {"!healthy", "!gloo*", "*"}},
        {.name = "the lines of a traceback behind a warning",
         .files = {{"gn11.log", "gn11:900:900 [0] NCCL WARN NCCL version mismatch with remote peer 10.1.0.9<40110> (local: 2.27.3, remote 2.21.5)\n"
                    LONG_TRACE("RuntimeError: NCCL error: remote process exited or there was a network error")}},
         .want = {"nccl-version-mismatch*"}},
        {.name = "a place that was found in the end",
         .files = {{"events.txt", EVENT("Warning", "FailedScheduling", "default-scheduler", "0/5 nodes are available: 1 Insufficient nvidia.com/gpu.")
                    EVENT("Normal", "Scheduled", "default-scheduler", "Successfully assigned ml/fit-0 to gn11")
                    EVENT("Warning", "UnexpectedAdmissionError", "kubelet", "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected")}},
         .want = {"k8s-unexpected-admission*"}},
        {.name = "no place was found",
         .files = {{"events.txt", EVENT("Normal", "Scheduled", "default-scheduler", "Successfully assigned ml/fit-0 to gn11")
                    EVENT("Warning", "FailedScheduling", "default-scheduler", "0/5 nodes are available: 1 Insufficient nvidia.com/gpu.")}},
         .want = {"k8s-insufficient-gpu*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(who_ends_itself_because_a_child_failed)
{
    static const struct logs_case rows[] = {
        {.name = "SGLang's own kill", .files = {{"server.log", "[2026-03-09 10:08:45] Received sigquit from a child process. It usually means the child failed.\nKilled\n"}},
         .want = {"!process-killed-sigkill*", "*"}},
        {.name = "a kill of its own", .files = {{"server.log", "[2026-03-09 10:08:45] Load weight begin\nKilled\n"}}, .want = {"process-killed-sigkill*"}},
    };
    LOGS_CASES(rows);
}

#define READ_ERROR(p, rest) p "E sox: can not open spk00-00050.flac: Input/output error" rest "\n"
#define CALM_LINES "I batch 12/30\nI batch 18/30\nI batch 24/30\nI epoch end\nI saved\nI exit\n"

T_TEST(a_line_that_says_what_was_done_about_it)
{
    static const struct logs_case rows[] = {
        {.name = "read from elsewhere", .files = {{"asr.log", READ_ERROR("", "; read from the mirror copy instead") CALM_LINES}}, .want = {"healthy"}},
        {.name = "a size that was received instead of another", .files = {{"asr.log", READ_ERROR("", ": 256 bytes instead of 512") CALM_LINES}}, .want = {"storage-io-error*"}},
    };
    LOGS_CASES(rows);
}

#define TRACKER                                                                                                                           \
    "W0309 10:04:10 fit.py:19] tracker: could not upload metrics, buffered locally\n"                                                        \
    TRACE("", "fit.py", "17", "push", "ConnectionRefusedError: [Errno 111] Connection refused")
#define FIT(step) "I0309 10:04:11 fit.py:58] step=" step " loss=1.55\n"
#define CANCELLED "slurmstepd-gn11: error: *** JOB 11 ON gn11 CANCELLED AT 2026-03-09T10:05:58 ***\nsrun: error: gn11: tasks 0-1: Terminated\n"

T_TEST(what_was_survived_before_is_survived_again)
{
    static const struct logs_case rows[] = {
        {.name = "the job is cancelled right behind it",
         .files = {{"slurm-11.out", FIT("4") TRACKER FIT("8") FIT("12") FIT("16") TRACKER FIT("20") FIT("24") TRACKER CANCELLED}}, .want = {"slurm-cancelled-signal *"}},
        {.name = "it was not survived before",
         .files = {{"slurm-11.out", FIT("4") FIT("8") FIT("12") FIT("16") FIT("20") FIT("24") TRACKER CANCELLED}}, .want = {"!slurm-cancelled-signal *", "*"}},
    };
    LOGS_CASES(rows);
}

#define WARNED(at) \
    "(Actor-2 pid=901) 2026-03-09 10:04:" at ",546 WARNING env step failed (attempt 1/3), resetting environment\n" TRACE("", "rl.py", "26", "step", "EnvStepError: simulator returned status 503")
#define ROLLOUT(at) "(Actor-2 pid=901) 2026-03-09 10:04:" at ",809 INFO rollout: 10 steps\n"
#define ROLLOUTS ROLLOUT("41") ROLLOUT("42") ROLLOUT("43") ROLLOUT("44") ROLLOUT("45") ROLLOUT("46")

T_TEST(a_warning_and_the_traceback_below_it)
{
    static const struct logs_case rows[] = {
        {.name = "it goes on", .files = {{"actor.log", ROLLOUTS WARNED("40") ROLLOUTS}}, .want = {"healthy"}},
        {.name = "nothing follows", .files = {{"actor.log", ROLLOUTS WARNED("40")}}, .want = {"!healthy", "*"}},
        {.name = "a crash below a line that only happens to be a warning",
         .files = {{"actor.log", ROLLOUT("40") "(Actor-2 pid=901) 2026-03-09 10:04:41,546 WARNING fp16 is off\nFatal Python error: Segmentation fault\n\n"
                    "Thread 0x00007fc89bfff6c0 (most recent call first):\n  <no Python frame>\n\nCurrent thread 0x00007fc8a88906c0 (most recent call first):\n"
                    "  File \"/home/ivo/fit/rl.py\", line 26 in step\n  File \"/home/ivo/fit/rl.py\", line 40 in <module>\n"}},
         .want = {"segfault*"}},
    };
    LOGS_CASES(rows);
}

#define NO_BLOCK                                                                                                                          \
    "(EngineCore pid=127) INFO 03-09 10:42:25 [shm_broadcast.py:681] No available shared memory broadcast block found in 60 seconds. This typically happens "  \
    "when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).\n"
#define WARMED "(Worker pid=185) INFO 03-09 10:43:42 [monitor.py:76] Initial profiling/warmup run took 107.62 s\n"

T_TEST(a_wait_that_ended)
{
    static const struct logs_case rows[] = {
        {.name = "the worker had warmed up", .files = {{"serve.log", NO_BLOCK NO_BLOCK WARMED}}, .want = {"healthy"}},
        {.name = "nothing came", .files = {{"serve.log", WARMED NO_BLOCK NO_BLOCK}}, .want = {"vllm-shm-broadcast-stall *"}},
        {.name = "an error came",
         .files = {{"serve.log", NO_BLOCK NO_BLOCK "(EngineCore pid=127) ERROR 03-09 10:47:25 [core.py:900] TimeoutError: RPC call to execute_model timed out.\n"}},
         .want = {"vllm-shm-broadcast-stall *"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
