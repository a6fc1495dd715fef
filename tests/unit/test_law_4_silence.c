/* SPDX-License-Identifier: Apache-2.0 */
/* Law 4: silence is evidence. The rank that does not complain when all others do is the first suspect - where most of the
 * world can be seen. */
#include "law_lines.h"

#define TIMED_OUT_AT "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 8000ms for recv operation to complete"
#define WAITED_IN_VAIN(p) TRACE(p, "loop.py", "140", "reduce_grads", "RuntimeError: " TIMED_OUT_AT)
#define NO_STORE TRACE("", "fit.py", "20", "setup", "RuntimeError: Socket Timeout")
#define IN_TRAINING(p)                                                                                                \
    p "Traceback (most recent call last):\n" p "  File \"/home/ivo/fit/fit.py\", line 90, in main\n" p "    loss = net(ids)\n"    \
    p "  File \"/opt/env/lib/python3.11/site-packages/torch/nn/parallel/distributed.py\", line 1887, in forward\n"       \
    p "    inputs, kwargs = self._pre_forward(*inputs, **kwargs)\n" p "RuntimeError: " TIMED_OUT_AT "\n"
#define IN_EVALUATION(p)                                                                                              \
    p "Traceback (most recent call last):\n" p "  File \"/home/ivo/fit/fit.py\", line 70, in evaluate\n" p "    dist.all_reduce(t)\n" \
    p "  File \"/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py\", line 2800, in all_reduce\n" \
    p "    work.wait()\n" p "RuntimeError: " TIMED_OUT_AT "\n"

#define NOTIFY_WAIT                                                                                                   \
    "RuntimeError: DIST call hccl api failed. EI0002: The wait execution of the Notify register times out. Reason: The Notify register "      \
    "has not received the Notify record from remote rank"

T_TEST(who_does_not_complain)
{
    static const struct logs_case rows[] = {
        {.name = "its log ends where the others wait",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS TIMED_OUT("3", "10:14:30", "412")}},
         .want = {"rank-stalled rank 2"}},
        {.name = "it has no log at all",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS TIMED_OUT("2", "10:14:30", "412")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS TIMED_OUT("3", "10:14:30", "412")}},
         .want = {"rank-stalled rank 1"}},
        {.name = "one console for all",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    STEPS TIMED_OUT("1", "10:14:30", "412") TIMED_OUT("2", "10:14:30", "412") TIMED_OUT("3", "10:14:30", "412")}},
         .want = {"rank-stalled rank 0"}},
        {.name = "nobody complains yet, and one log ends ten minutes before all others",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS STEP("5", "2.5") STEP("6", "2.4") STEP("7", "2.4") STEP("8", "2.3") STEP("9", "2.3")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS STEP("5", "2.5") STEP("6", "2.4") STEP("7", "2.4") STEP("8", "2.3") STEP("9", "2.3")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEP("1", "2.9") STEP("2", "2.8")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS STEP("5", "2.5") STEP("6", "2.4") STEP("7", "2.4") STEP("8", "2.3") STEP("9", "2.3")}},
         .want = {"rank-stalled rank 2"}},
        {.name = "it only says that another one asked for a dump",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS TIMED_OUT("2", "10:14:30", "412")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS
                    "[rank3]:[E309 10:14:31.120501112 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank 3] Observed flight recorder dump signal "
                    "from another rank via TCPStore.\n"}},
         .want = {"rank-stalled rank 3"}},
        {.name = "it finished, and the others wait for one more step of it",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS TIMED_OUT("2", "10:14:30", "412")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS "2026-03-09 10:04:32,000 INFO [fit] training finished after 40 steps\n"}},
         .want = {"uneven-inputs-hang rank 3"}},
        {.name = "somebody's crash was dumped without a rank, and all but one complain",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11")
                    "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007fab76dea200 (most recent call first):\n"
                    "  File \"/home/ivo/fit/fit.py\", line 142 in step\n\n"
                    CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14728")}},
         .want = {"segfault rank 2"}},
        {.name = "Ascend: a wait in training has a class of its own, too",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TRACE("", "fit.py", "91", "train_step", NOTIFY_WAIT)},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS TRACE("", "fit.py", "91", "train_step", NOTIFY_WAIT)},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS TRACE("", "fit.py", "91", "train_step", NOTIFY_WAIT)}},
         .want = {"ascend-hccl-timeout rank 2"}},
    };
    LOGS_CASES(rows);
}

T_TEST(who_left_or_was_elsewhere)
{
    static const struct logs_case rows[] = {
        {.name = "it stops early while the others go on, and all time out in the end",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEP("1", "2.91") STEP("2", "2.74") STEP("3", "2.69")
                    "2026-03-09 10:04:01,000 INFO [fit] early stop: target reached at step 30\n" WAITED_IN_VAIN("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn12") STEPS WAITED_IN_VAIN("")}},
         .want = {"uneven-inputs-hang rank 1"}},
        {.name = "it stops early, and another one is behind it",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEP("1", "2.91") WAITED_IN_VAIN("")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEP("1", "2.91") STEP("2", "2.74") STEP("3", "2.69") STEP("4", "2.60")
                    "2026-03-09 10:04:01,000 INFO [fit] early stop: target reached at step 40\n" WAITED_IN_VAIN("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn12") STEPS WAITED_IN_VAIN("")}},
         .want = {"!uneven-inputs-hang rank 1"}},
        {.name = "a thread of it died, it trained on for some steps, and then all others waited for it",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS WAITED_IN_VAIN("")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEP("1", "2.91") "Exception in thread prefetch-1:\n" INDEX_ERROR("") STEP("2", "2.74")
                    STEP("3", "2.69") STEP("4", "2.60")},
                   {"rank2.log", I_AM("2", "3", "902", "gn12") STEPS WAITED_IN_VAIN("")}},
         .want = {"python-exception rank 1"}},
        {.name = "two of four share a log that breaks off, the other node lost its peers",
         .files = {{"gn11.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") STEPS CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14727")
                    STOP("900") FAILED("1", "1", "901")},
                   {"gn12.log", I_AM("2", "4", "902", "gn12") I_AM("3", "4", "903", "gn12") "[rank2]: step 40 loss 2.60\n[rank3]: step 40 loss 2.61\n"}},
         .want = {"silent-exit ranks 2,3"}},
        {.name = "a number is missing where all others wait at the start",
         .files = {{"n0.rank0.log", NO_STORE}, {"n0.rank1.log", NO_STORE}, {"n0.rank3.log", NO_STORE}},
         .want = {"c10d-store-wait-timeout rank 2"}},
        {.name = "two numbers are missing",
         .files = {{"n0.rank0.log", NO_STORE}, {"n0.rank1.log", NO_STORE}, {"n0.rank4.log", NO_STORE}},
         .want = {"!* rank *"}},
        {.name = "it alone calls a collective in its evaluation",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11")
                    IN_TRAINING("[rank2]: ") IN_EVALUATION("[rank0]: ") IN_TRAINING("[rank1]: ")}},
         .want = {"rank-conditional-collective rank 0"}},
    };
    LOGS_CASES(rows);
}

T_TEST(partial_logs_accuse_nobody)
{
    static const struct logs_case rows[] = {
        {.name = "a number that is missing is not one that never came, where the wait is one of training",
         .files = {{"rank0.log", TRACE("", "fit.py", "91", "train_step", NOTIFY_WAIT)}, {"rank1.log", TRACE("", "fit.py", "91", "train_step", NOTIFY_WAIT)},
                   {"rank3.log", TRACE("", "fit.py", "91", "train_step", NOTIFY_WAIT)}},
         .want = {"ascend-hccl-timeout unknown"}},
        {.name = "two logs of eight ranks",
         .files = {{"rank0.log", I_AM("0", "8", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "8", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")}},
         .want = {"* unknown"}},
        {.name = "one log of four, and it waits",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")}},
         .want = {"* unknown"}},
        {.name = "everybody waits: nobody is silent",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "3", "902", "gn12") STEPS TIMED_OUT("2", "10:14:30", "412")}},
         .want = {"* unknown"}},
        {.name = "somebody confessed: the silent one is not asked",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS KEY_ERROR("[rank1]: ")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS TIMED_OUT("3", "10:14:30", "412")}},
         .want = {"python-exception rank 1"}},
        {.name = "logs that end within seconds of each other say nothing",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS}, {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEP("1", "2.91") STEP("2", "2.74") STEP("3", "2.69")}},
         .want = {"healthy", "inconclusive"}},
    };
    LOGS_CASES(rows);
}

#define LATE(p, func) TRACE(p, "loop.py", "140", func, "RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 9000ms for recv operation to complete")

T_TEST(silence_of_a_log_that_is_not_there)
{
    static const struct logs_case rows[] = {
        {.name = "its log is missing, and the others did not all wait at one place",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") LATE("[rank0]: ", "reduce_grads")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") LATE("[rank1]: ", "reduce_grads")},
                   {"rank3.log", I_AM("3", "4", "903", "gn11") LATE("[rank3]: ", "end_of_epoch")}},
         .want = {"!* rank 2", "*"}},
        {.name = "its log is missing, and the others waited at one place",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") LATE("[rank0]: ", "reduce_grads")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") LATE("[rank1]: ", "reduce_grads")},
                   {"rank3.log", I_AM("3", "4", "903", "gn11") LATE("[rank3]: ", "reduce_grads")}},
         .want = {"rank-stalled rank 2"}},
        {.name = "a traceback that lost its head does not tell the place",
         .files = {{"console.log", "[rank2]:     batch = reduce_grads(sample)\n[rank2]:   File \"/home/ivo/fit/loop.py\", line 9, in inner\n[rank2]:     x()\n"
                    "[rank2]: RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 9000ms for recv operation to complete\n"
                    LATE("[rank0]: ", "reduce_grads") LATE("[rank1]: ", "reduce_grads")}},
         .want = {"!* rank 2", "*"}},
        {.name = "of the ranks between those that speak nothing is seen",
         .files = {{"console.log", "[rank2]:[E309 10:14:30.118859045 ProcessGroupNCCL.cpp:1746] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal "
                    "due to a collective timeout from  rank 6 and we will try our best to dump the debug info.\n"
                    TIMED_OUT("7", "10:14:30", "412") TIMED_OUT("3", "10:14:30", "412")}},
         .want = {"!* rank *", "*"}},
        {.name = "its launcher told it to stop: it lived when another one's end had been seen, of which no word is left",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14728") STOP("900") STOP("902") STOP("903")
                    FAILED("1", "1", "901")}},
         .want = {"silent-exit rank 1"}},
        {.name = "one stands elsewhere, and where the one stood that only ended is not known",
         .files = {{"rank0.log", I_AM("0", "5", "900", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "5", "901", "gn11") TRACE("[rank1]: ", "fit.py", "42", "build", "RuntimeError: [./gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14728")},
                   {"rank2.log", I_AM("2", "5", "902", "gn11") CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14729")},
                   {"rank3.log", I_AM("3", "5", "903", "gn11") CLOSED_BY_PEER("[rank3]: ", "[10.2.0.5]:14730")},
                   {"srun.log", "srun: error: gn11: task 4: Exited with exit code 1\nsrun: error: gn11: tasks 0-3: Exited with exit code 1\n"}},
         .want = {"!* rank 1", "*"}},
        {.name = "one stands elsewhere, and of another one nothing is seen at all",
         .files = {{"console.log", LATE("[rank0]: ", "reduce_grads") LATE("[rank1]: ", "reduce_grads") LATE("[rank2]: ", "reduce_grads") LATE("[rank3]: ", "end_of_epoch")
                    LATE("[rank5]: ", "reduce_grads")}},
         .want = {"!* rank *", "*"}},
        {.name = "three wait at the start for one that is still busy",
         .files = {{"rank0.log", TRACE("", "fit.py", "66", "setup", "RuntimeError: Socket Timeout")}, {"rank1.log", TRACE("", "fit.py", "66", "setup", "RuntimeError: Socket Timeout")},
                   {"rank2.log", TRACE("", "fit.py", "66", "setup", "RuntimeError: Socket Timeout")},
                   {"rank3.log", "2026-03-09 10:00:32,626 INFO [fit] building tokenizer cache\n"}},
         .want = {"slow-preprocessing-timeout rank 3"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_silent_initiator_is_said_to_be_silent)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank0.log", I_AM("0", "3", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412"));
    logs_add(&l, "rank1.log", I_AM("1", "3", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412"));
    logs_add(&l, "rank2.log", I_AM("2", "3", "902", "gn12") STEPS);
    T_EQ_STR(logs_answer(&l), "rank-stalled rank 2");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->initiator.silent);
    T_OK(in != NULL && in->band != FR_BAND_CERTAIN); /* nobody said it */
    T_OK(in != NULL && in->collateral.n == 2);
    T_OK(in != NULL && in->collect_next.n != 0);
    logs_end(&l);
}

#define WATCHDOG_ENDED(r) TIMED_OUT(r, "10:14:30", "412")
#define ABORTED(i, r, pid) ROW(i, "10:19:40", "gn11", r, r, "-6", pid, " (SIGABRT)")
#define STOP_AT(at, pid)                                                                                                                  \
    "W0309 " at ".118000 771 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process " pid " closing signal SIGTERM\n"
#define TAIL(at)                                                                                                                          \
    WATCHDOG_ENDED("2") STOP_AT(at, "900") STOP_AT(at, "902") STOP_AT(at, "903") TABLE_HEAD                                                   \
    ROW("1", "10:19:40", "gn11", "0", "0", "-15", "900", " (SIGTERM)") ABORTED("2", "2", "902") ABORTED("3", "3", "903") TABLE_ROOT            \
    ABORTED("0", "1", "901") TABLE_END

T_TEST(the_one_that_was_still_running_when_the_others_had_given_up)
{
    static const struct logs_case rows[] = {
        {.name = "the tail of a console: of most only the abort is left", .files = {{"tail.log", TAIL("10:19:38")}}, .want = {"rank-stalled rank 0"}},
        {.name = "it was stopped in the same second: it may only have been slower", .files = {{"tail.log", TAIL("10:14:31")}}, .want = {"!* rank 0", "*"}},
        {.name = "two were still running",
         .files = {{"tail.log", WATCHDOG_ENDED("2") STOP_AT("10:19:38", "900") STOP_AT("10:19:38", "902") STOP_AT("10:19:38", "903") TABLE_HEAD
                    ROW("1", "10:19:40", "gn11", "0", "0", "-15", "900", " (SIGTERM)") ROW("2", "10:19:40", "gn11", "3", "3", "-15", "903", " (SIGTERM)")
                    ABORTED("3", "2", "902") TABLE_ROOT ABORTED("0", "1", "901") TABLE_END}},
         .want = {"!* rank 0", "!* rank 3", "*"}},
    };
    LOGS_CASES(rows);
}

T_TEST(one_that_stopped_early_while_the_others_lost_it)
{
    static const struct logs_case rows[] = {
        {.name = "it said so",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS "2026-03-09 10:04:01,000 INFO [fit] early stopping: no improvement for 3 epochs, best 0.6484\n"},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14728")}},
         .want = {"uneven-inputs-hang rank 1"}},
        {.name = "it said nothing",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14728")}},
         .want = {"silent-exit rank 1"}},
    };
    LOGS_CASES(rows);
}

#define CLOCKED(at, text) at " stage: " text "\n"

T_TEST(busy_while_all_others_waited)
{
    static const struct logs_case rows[] = {
        {.name = "it still printed when their time was up, and found them gone",
         .files = {{"rank0.log", CLOCKED("12:47:20", "iteration 10 sent") CLOCKED("12:47:21", "iteration 20 sent") WAITED_IN_VAIN("")},
                   {"rank1.log", CLOCKED("12:47:21", "iteration 20 loss 0.33") CLOCKED("12:47:21", "writing stage1.pt") CLOCKED("12:47:43", "saved stage1.pt")
                    CLOSED_BY_PEER("", "[127.0.0.1]:11993")}},
         .want = {"rank-stalled rank 1", "slow-checkpoint-timeout rank 1"}},
        {.name = "its last line is as old as theirs",
         .files = {{"rank0.log", CLOCKED("12:47:20", "iteration 10 sent") CLOCKED("12:47:21", "iteration 20 sent") WAITED_IN_VAIN("")},
                   {"rank1.log", CLOCKED("12:47:21", "iteration 20 loss 0.33") CLOCKED("12:47:22", "saved stage1.pt") CLOSED_BY_PEER("", "[127.0.0.1]:11993")}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

#define GONE(p) CLOSED_BY_PEER(p, "[10.2.0.5]:14727")
#define WAITED_ELSEWHERE(p) TRACE(p, "eval.py", "12", "gather_scores", "RuntimeError: " TIMED_OUT_AT)

T_TEST(late_to_the_place_where_all_others_had_waited)
{
    static const struct logs_case rows[] = {
        {.name = "it found them gone",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS WAITED_IN_VAIN("")}, {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS GONE("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS WAITED_IN_VAIN("")}},
         .want = {"rank-stalled rank 1"}},
        {.name = "another one had waited at another place",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS WAITED_IN_VAIN("")}, {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS GONE("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS WAITED_ELSEWHERE("")}},
         .want = {"!* rank 1", "*"}},
        {.name = "two found the third one gone",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS WAITED_IN_VAIN("")}, {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS GONE("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS GONE("")}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

#define SAVES "2026-03-09 10:04:02,000 INFO [fit] syncing out to s3://team-ckpt/fit\n2026-03-09 10:04:27,000 INFO [fit] sync finished\n"
#define BUILDS "2026-03-09 10:00:05,000 INFO [fit] building token cache, 50000 samples\n"

T_TEST(what_it_was_busy_with)
{
    static const struct logs_case rows[] = {
        {.name = "it says so in a log of its own, and found the others gone",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS WAITED_IN_VAIN("")}, {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS SAVES GONE("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS WAITED_IN_VAIN("")}},
         .want = {"slow-checkpoint-timeout rank 1"}},
        {.name = "it trained on after that",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS WAITED_IN_VAIN("")}, {"rank1.log", I_AM("1", "3", "901", "gn11") SAVES STEPS GONE("")},
                   {"rank2.log", I_AM("2", "3", "902", "gn11") STEPS WAITED_IN_VAIN("")}},
         .want = {"rank-stalled rank 1"}},
        {.name = "the last word of a console is a rank's",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11") "[rank0]: " BUILDS WAITED_IN_VAIN("") WAITED_IN_VAIN("")}},
         .want = {"slow-preprocessing-timeout rank 0"}},
    };
    LOGS_CASES(rows);
}

#define PAIR I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS
#define ONLY_1_ENDED FAILED("1", "1", "901") TABLE_HEAD TABLE_ROOT ROW("0", "10:05:01", "gn11", "1", "1", "1", "901", "") TABLE_END

T_TEST(of_two_the_one_that_still_ran)
{
    static const struct logs_case rows[] = {
        {.name = "the other one had waited in vain", .files = {{"console.log", PAIR WAITED_IN_VAIN("") STOP("900") ONLY_1_ENDED}}, .want = {"rank-stalled rank 0"}},
        {.name = "nobody is seen to run", .files = {{"console.log", PAIR WAITED_IN_VAIN("")}}, .want = {"!* rank *", "*"}},
        {.name = "somebody lost a peer, too", .files = {{"console.log", PAIR WAITED_IN_VAIN("") GONE("") STOP("900") ONLY_1_ENDED}}, .want = {"!* rank 0", "*"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
