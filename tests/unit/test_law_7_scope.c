/* SPDX-License-Identifier: Apache-2.0 */
/* Law 7: the same on every rank has no first rank. */
#include "law_lines.h"

#define ARGUMENT(p) TRACE(p, "fit.py", "12", "parse_plan", "TypeError: parse_plan() missing 1 required positional argument: 'horizon'")

#define SHARED_CARD(gpu) \
    "ValueError: Free memory on device cuda:" gpu " (54.34/79.18 GiB) on startup is less than desired GPU memory utilization (0.9, 71.26 GiB)."

T_TEST(the_same_error_everywhere)
{
    static const struct logs_case rows[] = {
        {.name = "four ranks of four",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") ARGUMENT("[rank0]: ")}, {"rank1.log", I_AM("1", "4", "901", "gn11") ARGUMENT("[rank1]: ")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") ARGUMENT("[rank2]: ")}, {"rank3.log", I_AM("3", "4", "903", "gn12") ARGUMENT("[rank3]: ")}},
         .want = {"* all-ranks"}},
        {.name = "before any rank is known, four times in one console",
         .files = {{"console.log", "using world size: 4, data-parallel size: 4\n" ARGUMENT("") ARGUMENT("") ARGUMENT("") ARGUMENT("")}},
         .want = {"* all-ranks"}},
        {.name = "three of four, and the launcher stopped the fourth before it got there",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    ARGUMENT("[rank0]: ") ARGUMENT("[rank1]: ") ARGUMENT("[rank3]: ") STOP("902") FAILED("1", "0", "900")
                    TABLE_HEAD ROW("1", "10:05:01", "gn11", "1", "1", "1", "901", "") ROW("2", "10:05:01", "gn11", "3", "3", "1", "903", "")
                    ROW("3", "10:05:02", "gn11", "2", "2", "-15", "902", " (SIGTERM)") TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "1", "900", "") TABLE_END}},
         .want = {"* all-ranks"}},
        {.name = "the same crash of all processes of a known world",
         .files = {{"console.log", "using world size: 2, data-parallel size: 2\n" TABLE_HEAD ROW("1", "10:05:01", "gn11", "1", "1", "-11", "901", " (SIGSEGV)")
                    TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "-11", "900", " (SIGSEGV)") TABLE_END}},
         .want = {"torchrun-sigsegv all-ranks"}},
        {.name = "what is a host's trouble by its class, on every rank there is",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11")
                    TRACE("[rank0]: ", "utils.py", "415", "request_memory", SHARED_CARD("0")) TRACE("[rank1]: ", "utils.py", "415", "request_memory", SHARED_CARD("1"))}},
         .want = {"vllm-free-memory-at-start all-ranks"}},
        {.name = "DeepSpeed's launcher prints the command that it started last, whichever ended",
         .files = {{"console.log", "[2026-03-09 10:00:00,009] [INFO] [launch.py:164:main] dist_world_size=2\n"
                    "[2026-03-09 10:04:05,143] [ERROR] [launch.py:325:sigkill_handler] ['/opt/env/bin/python', '-u', 'fit.py', '--local_rank=1'] exits with return code = -9\n"}},
         .want = {"!* rank *", "* unknown"}},
        {.name = "the end of a loss scale, of which mp.spawn names one process",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") TRACE("", "main.py", "24", "<module>", "torch.multiprocessing.spawn.ProcessRaisedException: ")
                    "\n-- Process 1 terminated with the following error:\n"
                    TRACE("", "scaler.py", "61", "update", "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding.")}},
         .want = {"loss-scale-collapse all-ranks"}},
        {.name = "all but one, told by the tee prefixes of one host",
         .files = {{"console.log", "[default0]:" I_AM("0", "2", "900", "gn11") "[default1]:" I_AM("1", "2", "901", "gn11") ARGUMENT("[default0]:") ARGUMENT("[default1]:")}},
         .want = {"* all-ranks"}},
        {.name = "a broken installation on one rank; all that is left of another is the beginning of its traceback",
         .files = {{"console.log",
                    "[rank5]: ImportError: /opt/env/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: "
                    "undefined symbol: _ZN3c104cuda9SetDeviceEi\n"
                    "[rank2]: Traceback (most recent call last):\n"
                    "[rank2]:   File \"/home/ivo/fit/towers.py\", line 77, in build_tower\n"}},
         .want = {"torch-lib-mismatch-undefined-symbol all-ranks"}},
    };
    LOGS_CASES(rows);
}

#define OWN_END(i, r, pid) ROW(i, "10:05:01", "gn11", r, r, "1", pid, "")
#define STOPPED(i, r, pid) ROW(i, "10:05:02", "gn11", r, r, "-15", pid, " (SIGTERM)")
#define TWO_LINES(func) "Traceback (most recent call last):\n  File \"/home/ivo/fit/fit.py\", line 24, in " func "\n"

T_TEST(told_by_the_launcher)
{
    static const struct logs_case rows[] = {
        {.name = "the same crash of all in the table, where nobody says how many there are",
         .files = {{"console.log", TABLE_HEAD ROW("1", "10:05:01", "gn11", "1", "1", "-11", "901", " (SIGSEGV)")
                    TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "-11", "900", " (SIGSEGV)") TABLE_END}},
         .want = {"torchrun-sigsegv all-ranks"}},
        {.name = "the same crash of two, and a third one is not in the table",
         .files = {{"console.log", TABLE_HEAD ROW("1", "10:05:01", "gn11", "2", "2", "-11", "902", " (SIGSEGV)")
                    TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "-11", "900", " (SIGSEGV)") TABLE_END}},
         .want = {"torchrun-sigsegv ranks 0,2"}},
        {.name = "Python does not compile the source, which is every rank's",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/home/ivo/fit/fit.py\", line 3, in <module>\n"
                    "[rank2]:     import towers\n[rank2]:   File \"/home/ivo/fit/towers.py\", line 19\n[rank2]:     width = （4)\n[rank2]:             ^\n"
                    "[rank2]: SyntaxError: invalid character '（' (U+FF08)\n"
                    "Traceback (most recent call last):\n  File \"/home/ivo/fit/fit.py\", line 3, in <module>\n    import towers\n"
                    "  File \"/home/ivo/fit/towers.py\", line 19\n    width = （4)\n            ^\nSyntaxError: invalid character '（' (U+FF08)\n"}},
         .want = {"* all-ranks"}},
        {.name = "two ranks ended by themselves, and it was printed twice; the rest was stopped",
         .files = {{"console.log", ARGUMENT("") ARGUMENT("") STOP("900") STOP("901") FAILED("1", "2", "902") TABLE_HEAD OWN_END("1", "3", "903") STOPPED("2", "0", "900")
                    STOPPED("3", "1", "901") TABLE_ROOT OWN_END("0", "2", "902") TABLE_END}},
         .want = {"* ranks 2,3", "* all-ranks"}},
        {.name = "tracebacks of three processes, printed line by line",
         .files = {{"console.log", TWO_LINES("go") TWO_LINES("go") TWO_LINES("go") "    go(device)\nTypeError: bad device\n    go(device)\nTypeError: bad device\n"
                    "    go(device)\nTypeError: bad device\n" FAILED("1", "0", "900") TABLE_HEAD OWN_END("1", "1", "901") OWN_END("2", "2", "902")
                    TABLE_ROOT OWN_END("0", "0", "900") TABLE_END}},
         .want = {"python-exception all-ranks"}},
        {.name = "all ended by themselves, and the log has lost all but one's words, which was not the first one seen",
         .files = {{"console.log", OOM("[rank1]: ") FAILED("1", "2", "902") TABLE_HEAD OWN_END("1", "0", "900") OWN_END("2", "1", "901") TABLE_ROOT OWN_END("0", "2", "902") TABLE_END}},
         .want = {"cuda-oom all-ranks"}},
        {.name = "the one whose words are left was the first one seen",
         .files = {{"console.log", OOM("[rank1]: ") FAILED("1", "1", "901") TABLE_HEAD OWN_END("1", "0", "900") OWN_END("2", "2", "902") TABLE_ROOT OWN_END("0", "1", "901") TABLE_END}},
         .want = {"cuda-oom rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(who_may_be_the_one_is_no_victim)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "console.log", KEY_ERROR("") STOP("902") FAILED("1", "0", "900") TABLE_HEAD OWN_END("1", "1", "901") STOPPED("2", "2", "902") TABLE_ROOT OWN_END("0", "0", "900") TABLE_END);
    T_EQ_STR(logs_answer(&l), "python-exception unknown");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->collateral.n == 1 && in->collateral.v[0].rank == 2); /* the launcher ended that one */
    logs_end(&l);
}

T_TEST(a_package_that_one_host_lacks)
{
#define LACKS(p) TRACE(p, "fit.py", "3", "<module>", "ModuleNotFoundError: No module named 'flashfft_kernels'")
    static const struct logs_case rows[] = {
        {.name = "the ranks of the other host wait for them in vain",
         .files = {{"gn11.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") TRACE("[rank0]: ", "fit.py", "66", "setup", "RuntimeError: Socket Timeout")
                    TRACE("[rank1]: ", "fit.py", "66", "setup", "RuntimeError: Socket Timeout")},
                   {"gn12.log", LACKS("[rank2]: ") LACKS("[rank3]: ")}},
         .want = {"wrong-python-env ranks 2,3"}},
        {.name = "nobody waits: they all lack it",
         .files = {{"console.log", LACKS("[rank2]: ") LACKS("[rank3]: ")}},
         .want = {"wrong-python-env all-ranks"}},
    };
    LOGS_CASES(rows);
}

T_TEST(not_everywhere)
{
    static const struct logs_case rows[] = {
        {.name = "one of four",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14728")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") KEY_ERROR("[rank2]: ")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") CLOSED_BY_PEER("[rank3]: ", "[10.2.0.5]:14729")}},
         .want = {"* rank 2"}},
        {.name = "two of four while two wait for them",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") OOM("[rank1]: ")}, {"rank2.log", I_AM("2", "4", "902", "gn12") OOM("[rank2]: ")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") CLOSED_BY_PEER("[rank3]: ", "[10.2.0.5]:14729")}},
         .want = {"cuda-oom ranks 1,2"}},
        {.name = "a time-out on every rank is no cause that all share",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "3", "902", "gn12") STEPS TIMED_OUT("2", "10:14:30", "412")}},
         .want = {"!* all-ranks"}},
        {.name = "a broken installation on one rank while another one lost its peer",
         .files = {{"console.log",
                    "[rank5]: ImportError: /opt/env/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: "
                    "undefined symbol: _ZN3c104cuda9SetDeviceEi\n" CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14727")}},
         .want = {"torch-lib-mismatch-undefined-symbol rank 5"}},
        {.name = "one process alone has no other ranks",
         .files = {{"fit.log", STEPS KEY_ERROR("")}},
         .want = {"python-exception unknown", "python-exception rank 0"}},
        {.name = "a package that one node lacks, and the other node waits for it",
         .files = {{"gn11.out", TRACE("", "fit.py", "20", "setup", "torch.distributed.DistStoreError: wait timeout after 12000ms, keys: /default_pg/0//cpu//0/2")},
                   {"gn12.out", TRACE("", "fit.py", "9", "load", "ModuleNotFoundError: No module named 'fused_tok'")
                    TRACE("", "fit.py", "9", "load", "ModuleNotFoundError: No module named 'fused_tok'")}},
         .want = {"!* all-ranks", "*"}},
        {.name = "a package that one node lacks, and a socket that timed out on the other",
         .files = {{"gn11.out", TRACE("", "fit.py", "20", "setup", "RuntimeError: Socket Timeout")},
                   {"gn12.out", TRACE("", "fit.py", "9", "load", "ModuleNotFoundError: No module named 'fused_tok'")}},
         .want = {"!* all-ranks", "*"}},
        {.name = "mp.spawn names the first of several that all might have failed alike",
         .files = {{"console.log", TRACE("", "main.py", "24", "<module>", "torch.multiprocessing.spawn.ProcessRaisedException: ")
                    "\n-- Process 2 terminated with the following error:\n"
                    TRACE("", "engine.py", "68", "fit", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x60 and 64x32)")}},
         .want = {"shape-mismatch-matmul rank 2"}},
    };
    LOGS_CASES(rows);
}

#define NORMS(n0, n1, n2)                                                                                                                    \
    "-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n  File \"/opt/fairseq/trainer.py\", line 1120, in _check_grad_norms\n" \
    "FloatingPointError: Fatal error: gradients are inconsistent between workers. Try --ddp-backend=legacy_ddp. \n"                           \
    "----\ngrad_norm across the workers:\nrank   0 = " n0 "\nrank   1 = " n1 "\nrank   2 = " n2 "\n\n----\n"

T_TEST(a_table_of_all_ranks)
{
    static const struct logs_case rows[] = {
        {.name = "all rows are bad: who was noticed first says nothing", .files = {{"console.log", NORMS("nan", "nan", "nan")}},
         .want = {"grad-norm-nonfinite-error all-ranks"}},
        {.name = "one row is bad, and the one that was noticed first is another",
         .files = {{"console.log", NORMS("1.33719873", "1.33719873", "nan")}},
         .want = {"!* all-ranks", "!* rank 1"}},
    };
    LOGS_CASES(rows);
}

#define OF_RANK(r, step, loss) "[2026-03-09 10:00:0" step ",410][rank " r "][INFO] step=" step " loss=" loss " lr=3.00e-03\n"

T_TEST(numbers_that_go_bad_on_one_rank_first)
{
    static const struct logs_case rows[] = {
        {.name = "the loss of rank 1 is NaN one step before the others'",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEP("1", "2.91") STEP("2", "2.74") STEP("3", "2.69") STEP("4", "nan") STEP("5", "nan") STEP("6", "nan")},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") STEP("1", "2.93") STEP("2", "2.75") STEP("3", "nan") STEP("4", "nan") STEP("5", "nan") STEP("6", "nan")}},
         .want = {"loss-nan-generic rank 1"}},
        {.name = "it is NaN from the start, and the losses of the others stay sound",
         .files = {{"console.log", OF_RANK("0", "1", "5.02") OF_RANK("1", "1", "nan") OF_RANK("2", "1", "5.01") OF_RANK("0", "2", "5.01") OF_RANK("1", "2", "nan")
                    OF_RANK("2", "2", "5.00") OF_RANK("0", "3", "4.98") OF_RANK("1", "3", "nan") OF_RANK("2", "3", "4.97") OF_RANK("0", "4", "4.95")
                    OF_RANK("1", "4", "nan") OF_RANK("2", "4", "4.96") I_AM("0", "3", "900", "gn11")}},
         .want = {"loss-nan-generic rank 1"}},
        {.name = "in the same step it is everybody's",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEP("1", "2.91") STEP("2", "2.74") STEP("3", "nan") STEP("4", "nan") STEP("5", "nan") STEP("6", "nan")},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") STEP("1", "2.93") STEP("2", "2.75") STEP("3", "nan") STEP("4", "nan") STEP("5", "nan") STEP("6", "nan")}},
         .want = {"loss-nan-generic all-ranks"}},
    };
    LOGS_CASES(rows);
}

T_TEST(as_often_as_the_launcher_has_processes)
{
    static const struct logs_case rows[] = {
        {.name = "two tracebacks, one row, and one more process that was stopped",
         .files = {{"console.log", KEY_ERROR("") KEY_ERROR("") STOP("900") FAILED("1", "1", "901") TABLE_HEAD "  <NO_OTHER_FAILURES>\n" TABLE_ROOT
                    ROW("0", "10:05:38", "gn11", "1", "1", "1", "901", "") TABLE_END}},
         .want = {"python-exception all-ranks"}},
        {.name = "two tracebacks, and two more processes that were stopped",
         .files = {{"console.log", KEY_ERROR("") KEY_ERROR("") STOP("900") STOP("902") FAILED("1", "1", "901") TABLE_HEAD "  <NO_OTHER_FAILURES>\n" TABLE_ROOT
                    ROW("0", "10:05:38", "gn11", "1", "1", "1", "901", "") TABLE_END}},
         .want = {"!* all-ranks", "*"}},
    };
    LOGS_CASES(rows);
}

#define SAID_NAN(r, step) "2026-03-09 10:00:2" step ",410 | WARNING  | [R" r "] train:57 - loss is nan at step 2" step "\n"
#define SAID_STEP(step, loss)                                                                                                             \
    "2026-03-09 10:00:0" step ",410 | INFO | [R0] train:60 - step " step " loss=" loss "\n2026-03-09 10:00:0" step ",411 | INFO | [R2] train:60 - step " step " loss=" loss "\n"  \
    "2026-03-09 10:00:0" step ",412 | INFO | [R1] train:60 - step " step " loss=" loss "\n"

T_TEST(a_warning_in_each_bad_step)
{
    static const struct logs_case rows[] = {
        {.name = "one rank warns a step before the others",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") SAID_STEP("1", "1.38") SAID_STEP("5", "1.35") SAID_STEP("9", "1.32") SAID_NAN("2", "2") SAID_NAN("0", "3") SAID_NAN("2", "3")
                    SAID_NAN("1", "3") SAID_NAN("0", "4") SAID_NAN("1", "4") SAID_NAN("2", "4") SAID_NAN("0", "5") SAID_NAN("2", "5") SAID_NAN("1", "5")}},
         .want = {"loss-nan-generic rank 2"}},
        {.name = "all warn in the same step",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") SAID_STEP("1", "1.38") SAID_STEP("5", "1.35") SAID_STEP("9", "1.32") SAID_NAN("2", "3") SAID_NAN("0", "3")
                    SAID_NAN("1", "3") SAID_NAN("0", "4") SAID_NAN("1", "4") SAID_NAN("2", "4") SAID_NAN("0", "5") SAID_NAN("2", "5") SAID_NAN("1", "5")}},
         .want = {"loss-nan-generic all-ranks"}},
    };
    LOGS_CASES(rows);
}

#define ALL_FOUR(c2)                                                                                                                      \
    STOP("900") STOP("901") STOP("903") FAILED(c2, "2", "902") TABLE_HEAD OWN_END("1", "0", "900") OWN_END("2", "1", "901") OWN_END("3", "3", "903")          \
    TABLE_ROOT ROW("0", "10:05:01", "gn11", "2", "2", c2, "902", "") TABLE_END

T_TEST(the_words_of_the_first_one_are_lost)
{
    static const struct logs_case rows[] = {
        {.name = "three of four say the same, and the fourth ended first, the same way",
         .files = {{"job.err", OOM("[rank0]: ") OOM("[rank3]: ") OOM("[rank1]: ") ALL_FOUR("1")}}, .want = {"cuda-oom all-ranks"}},
        {.name = "in another way", .files = {{"job.err", OOM("[rank0]: ") OOM("[rank3]: ") OOM("[rank1]: ") ALL_FOUR("-11")}}, .want = {"!* all-ranks", "*"}},
    };
    LOGS_CASES(rows);
}

#define LOSS_NAN(n) "2026-03-09 10:0" n ":30,000 INFO [fit] step " n "5 loss nan grad_norm nan lr 3.0e-04\n"

T_TEST(a_loss_is_the_models)
{
    static const struct logs_case rows[] = {
        {.name = "one log, and nobody says how many ranks there are", .files = {{"train.log", STEPS LOSS_NAN("5") LOSS_NAN("6") LOSS_NAN("7")}}, .want = {"loss-nan-generic all-ranks"}},
        {.name = "of a world of one", .files = {{"train.log", "using world size: 1, data-parallel size: 1\n" STEPS LOSS_NAN("5") LOSS_NAN("6") LOSS_NAN("7")}},
         .want = {"!* all-ranks", "*"}},
    };
    LOGS_CASES(rows);
}

#define ITS_LOSS(r, step, loss) "03/09/2026 10:04:50 - INFO - run_clm - rank=" r " global_step=" step " loss=" loss " step_time=0.066s\n"
#define OF_ALL(step, l0, l1, l2) ITS_LOSS("1", step, l1) ITS_LOSS("2", step, l2) ITS_LOSS("0", step, l0)
#define SUMMARY(loss, norm) "{'loss': " loss ", 'grad_norm': " norm ", 'learning_rate': 0.003, 'epoch': 0.4}\n"

T_TEST(the_first_whose_loss_went_bad_among_summaries_of_nobody)
{
    static const struct logs_case rows[] = {
        {.name = "a summary behind it",
         .files = {{"console.log", OF_ALL("8", "1.16", "1.19", "1.12") SUMMARY("1.16", "0.32") OF_ALL("9", "1.08", "1.17", "1.13") OF_ALL("10", "1.05", "1.03", "nan")
                    SUMMARY("1.05", "nan") OF_ALL("11", "nan", "nan", "nan") OF_ALL("12", "nan", "nan", "nan") SUMMARY("nan", "nan") OF_ALL("13", "nan", "nan", "nan")}},
         .want = {"loss-nan-generic rank 2"}},
        {.name = "a summary before it",
         .files = {{"console.log", OF_ALL("8", "1.16", "1.19", "1.12") SUMMARY("1.16", "0.32") OF_ALL("9", "1.08", "1.17", "1.13") SUMMARY("nan", "nan")
                    OF_ALL("10", "1.05", "1.03", "nan") OF_ALL("11", "nan", "nan", "nan") OF_ALL("12", "nan", "nan", "nan") SUMMARY("nan", "nan") OF_ALL("13", "nan", "nan", "nan")}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
