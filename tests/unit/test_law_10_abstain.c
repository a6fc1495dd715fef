/* SPDX-License-Identifier: Apache-2.0 */
/* Law 10: abstain well. "Cannot tell" is an answer with what to collect; a healthy run is healthy, whatever words are in it. */
#include "law_lines.h"

T_TEST(healthy_runs)
{
    static const struct logs_case rows[] = {
        {.name = "alarming words in names, arguments and messages",
         .files = {{"fit.log", "2026-03-09 10:00:01,000 INFO [fit] dataset=error-reports-v3 task=crash_prediction on_error=raise nan_filter=True\n"
                    "2026-03-09 10:00:02,000 INFO [fit] resuming run fatal-attraction-7 with timeout=600, kill_grace=30\n" STEPS
                    "2026-03-09 10:04:30,000 WARNING [fit] 0 errors, 0 failures, 0 NaN batches in the last epoch\n"
                    "2026-03-09 10:04:31,000 INFO [fit] out-of-memory handler installed\n"
                    "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"}},
         .want = {"healthy"}},
        {.name = "samples that talk of tracebacks",
         .files = {{"fit.log", STEPS "2026-03-09 10:04:30,000 INFO [fit] sample: 'Q: what does \"Segmentation fault (core dumped)\" mean? A: ...'\n"
                    "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"}},
         .want = {"healthy"}},
        {.name = "a warning at the exit",
         .files = {{"rank0.log", I_AM("0", "1", "900", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"
                    "[rank0]:[W309 10:04:33.120501112 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was not called before program exit, "
                    "which can leak resources.\n"}},
         .want = {"healthy"}},
        {.name = "a destructor's complaint in the words of Python 3.14",
         .files = {{"fit.log", STEPS "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"
                    "Exception ignored while calling deallocator <function Sink.__del__ at 0x7ff780683110>:\nTraceback (most recent call last):\n"
                    "  File \"/home/ivo/fit/sink.py\", line 51, in __del__\nRuntimeError: sink is closed\n"}},
         .want = {"healthy"}},
        {.name = "an exception that was caught and logged as a warning, at the end of what that rank prints",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") "2026-03-09 10:01:30,000 WARNING [fit] optional field missing, falling back to defaults\n" KEY_ERROR("")}},
         .want = {"healthy"}},
        {.name = "two ranks that finish",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") STEPS "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n"}},
         .want = {"healthy"}},
    };
    LOGS_CASES(rows);
}

T_TEST(what_cannot_be_told)
{
    static const struct logs_case rows[] = {
        {.name = "a launcher's footer alone",
         .files = {{"console.log", FAILED("1", "0", "900") TABLE_HEAD "  <NO_OTHER_FAILURES>\n" TABLE_ROOT ROW("0", "10:05:03", "gn11", "0", "0", "1", "900", "") TABLE_END}},
         .want = {"inconclusive", "torchrun-child-failed *", "!* rank *"}},
        {.name = "everybody was told to stop, and nobody says why",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS
                    "W0309 10:05:02.118000 771 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM death signal, shutting down workers\n"
                    STOP("900") STOP("901")}},
         .want = {"inconclusive", "torchrun-sigterm-cascade *", "!* rank *"}},
        {.name = "the scheduler cancelled the job",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") STEPS "slurmstepd: error: *** JOB 7712 ON gn11 CANCELLED AT 2026-03-09T10:05:02 ***\n"}},
         .want = {"slurm-cancelled-signal launcher", "!healthy"}},
        {.name = "somebody pressed Ctrl-C while an extension was loading",
         .files = {{"console.log", "WARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers\n"
                    TRACE("", "fit.py", "3", "<module>", "RuntimeError: KeyboardInterrupt: <EMPTY MESSAGE>")}},
         .want = {"torchrun-sigterm-cascade *", "!python-exception *"}},
        {.name = "nothing was printed",
         .files = {{"fit.log", ""}},
         .want = {"inconclusive", "error: nothing could be read*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_warning_that_every_host_without_a_name_server_prints)
{
    static const struct logs_case rows[] = {
        {.name = "and a traceback that was cut",
         .files = {{"console.log", "[W309 10:00:00.076094946 ProcessGroupGloo.cpp:527] Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback. "
                    "Manually set the network interface to bind to with GLOO_SOCKET_IFNAME. (function operator())\n"
                    "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/home/ivo/fit/fit.py\", line 75, in build\n"}},
         .want = {"!gloo-connect-failed*", "*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(python_s_warnings_are_warnings)
{
    static const struct logs_case rows[] = {
        {.name = "an extension that is not used because it does not load",
         .files = {{"console.log", "/opt/env/lib/python3.11/site-packages/torch_geometric/typing.py:63: UserWarning: An issue occurred while importing 'torch-scatter'. Disabling its "
                    "usage. Stacktrace: /opt/env/lib/python3.11/site-packages/torch_scatter/_version_cpu.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs\n"
                    STEPS STEP("5", "2.5") STEP("6", "2.4") STEP("7", "2.3")}},
         .want = {"healthy"}},
    };
    LOGS_CASES(rows);
}

T_TEST(what_abstaining_says)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank0.log", I_AM("0", "8", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412"));
    logs_answer(&l);
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->initiator.ranks.n == 0);
    T_OK(in != NULL && in->collect_next.n >= 1 && in->collect_next.n <= 3);
    T_OK(in != NULL && in->band == FR_BAND_POSSIBLE);
    logs_end(&l);
}

/* Thirty ranks of eighty steps; from step 60 on `n_slow` of them take a third longer. */
static void thirty_ranks(struct logs *l, unsigned n_slow)
{
    for (unsigned r = 0; r < 30; r++) {
        char text[80 * 64], name[32];
        size_t n = 0;
        for (unsigned i = 1; i <= 80; i++) {
            double s = (i > 60 && r < n_slow ? 4.0 : 3.0) + (double)((i * 7 + r) % 5) * 0.01;
            n += (size_t)snprintf(text + n, sizeof text - n, "step %u loss %.3f step_time %.3f\n", i, 3.0 - i * 0.01, s);
        }
        snprintf(name, sizeof name, "rank%u.log", r);
        logs_add(l, name, text);
    }
}

T_TEST(series_that_are_not_followed_are_said_to_be)
{
    struct logs l;
    char line[120];
    logs_begin(&l);
    for (int rank = 0; rank < 80; rank++) {
        snprintf(line, sizeof line, "2026-03-09 10:01:00,000 INFO [fit] [rank%d] step 10 loss 2.91 grad_norm 1.21\n", rank);
        logs_add(&l, "console.log", line);
    }
    T_EQ_INT(logs_run(&l), 0);
    bool said = false;
    for (uint32_t i = 0; l.report != NULL && i < l.report->input.skipped.n; i++) {
        said |= fr_sv_has(l.report->input.skipped.v[i].why, FR_SV("only a part of its metrics"));
    }
    T_OK(said);
    logs_end(&l);
}

T_TEST(one_of_many_series_stands_out_by_chance)
{
    struct logs l;
    logs_begin(&l);
    thirty_ranks(&l, 1);
    T_EQ_STR(logs_answer(&l), "healthy");
    logs_end(&l);
    logs_begin(&l);
    thirty_ranks(&l, 30);
    T_OK(strncmp(logs_answer(&l), "gpu-straggler-slow-clock", 24) == 0);
    logs_end(&l);
}

T_TEST(a_healthy_run_says_what_was_checked)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "fit.log", STEPS "2026-03-09 10:04:32,000 INFO [fit] finished after 40 steps\n");
    T_EQ_STR(logs_answer(&l), "healthy");
    T_OK(l.report != NULL && l.report->checked.n != 0 && l.report->incidents.n == 0);
    logs_end(&l);
}

#define INTERNAL(r)                                                                                                    \
    "[rank" r "]:[E ProcessGroupNCCL.cpp:1335] [PG 0 Rank " r "] NCCL watchdog thread terminated with exception: NCCL error: internal error - " \
    "please report this issue to the NCCL developers, NCCL version 2.21.5\nncclInternalError: Internal check failed.\n"
#define STUCK(r)                                                                                                       \
    "[rank" r "]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank " r "] Heartbeat monitor timed out! Process will be terminated after dumping debug info. " \
    "workMetaList_.size()=2\n"

T_TEST(one_side_of_what_happens_between_ranks)
{
    static const struct logs_case rows[] = {
        {.name = "NCCL's error in one rank's own log", .files = {{"rank0.log", STEPS INTERNAL("0")}}, .want = {"nccl-internal-error unknown"}},
        {.name = "a stuck watchdog, and nobody else of 32 is heard",
         .files = {{"console.log", "world_size: 32\n" STEPS STUCK("25")}}, .want = {"!* rank *"}},
        {.name = "an error of the process itself is its own",
         .files = {{"rank0.log", STEPS OOM("[rank0]: ")}}, .want = {"cuda-oom rank 0"}},
    };
    LOGS_CASES(rows);
}

#define TABLE_OF(at, host, r, pid) TABLE_HEAD TABLE_ROOT ROW("0", at, host, r, "0", "1", pid, "") TABLE_END

static int32_t first_of_two_tables(const char *text)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "job.out", text);
    T_EQ_STR(logs_answer(&l), "inconclusive");
    const struct fr_incident *in = logs_incident(&l, 0);
    int32_t rank = in != NULL && in->initiator.scope == FR_SCOPE_RANK && in->initiator.ranks.n == 1 ? in->initiator.ranks.v[0] : -1;
    logs_end(&l);
    return rank;
}

T_TEST(who_is_known_though_why_is_not)
{
    T_EQ_INT(first_of_two_tables(TABLE_OF("10:05:52", "gn11", "0", "900") TABLE_OF("10:05:01", "gn12", "4", "904")), 4);
    T_EQ_INT(first_of_two_tables(TABLE_OF("10:05:21", "gn11", "0", "900") TABLE_OF("10:05:01", "gn12", "4", "904")), -1);
    static const struct logs_case rows[] = {
        {.name = "somebody had lost a peer",
         .files = {{"job.out", CLOSED_BY_PEER("", "[10.2.0.5]:14727") TABLE_OF("10:05:52", "gn11", "0", "900") TABLE_OF("10:05:01", "gn12", "4", "904")}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
