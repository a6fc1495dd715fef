/* SPDX-License-Identifier: Apache-2.0 */
/* Law 5: collective counters decide hangs: the lowest last-enqueued number of one group, then another operation for the same
 * number, then the edges from waiters to those they wait for. */
#include "law_lines.h"

#define AT "10:14:30"
#define DEFAULT(r, seq, enqueued, completed) COUNTED(r, AT, "0", "default_pg", r, seq, enqueued, completed)
#define TP(r, pg, pg_rank, seq, op) \
    WAITED(r, AT, pg_rank, seq, op, "600029") COUNTED(r, AT, pg, "TENSOR_MODEL_PARALLEL_GROUP", pg_rank, seq, seq, "86")
#define DP(r, pg, pg_rank, seq, op) \
    WAITED(r, AT, pg_rank, seq, op, "600029") COUNTED(r, AT, pg, "DATA_PARALLEL_GROUP", pg_rank, seq, seq, "40")

T_TEST(the_lowest_counter_of_a_group)
{
    static const struct logs_case rows[] = {
        {.name = "one rank never got to the collective that the others wait in",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") WAITED("0", AT, "0", "412", "ALLREDUCE", "600029") DEFAULT("0", "412", "412", "411")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") WAITED("1", AT, "1", "412", "ALLREDUCE", "600029") DEFAULT("1", "412", "412", "411")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") WAITED("2", AT, "2", "409", "ALLREDUCE", "600029") DEFAULT("2", "409", "409", "408")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") WAITED("3", AT, "3", "412", "ALLREDUCE", "600029") DEFAULT("3", "412", "412", "411")}},
         .want = {"* rank 2"}},
        {.name = "two are equally far behind: nobody is named alone",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") WAITED("0", AT, "0", "412", "ALLREDUCE", "600029") DEFAULT("0", "412", "412", "411")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") WAITED("1", AT, "1", "409", "ALLREDUCE", "600029") DEFAULT("1", "409", "409", "408")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") WAITED("2", AT, "2", "409", "ALLREDUCE", "600029") DEFAULT("2", "409", "409", "408")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") WAITED("3", AT, "3", "412", "ALLREDUCE", "600029") DEFAULT("3", "412", "412", "411")}},
         .want = {"!* rank *"}},
        {.name = "two of six stopped at the same one",
         .files = {{"rank0.log", I_AM("0", "6", "900", "gn11") WAITED("0", AT, "0", "412", "ALLREDUCE", "600029") DEFAULT("0", "412", "413", "411")},
                   {"rank1.log", I_AM("1", "6", "901", "gn11") DEFAULT("1", "411", "411", "411")},
                   {"rank2.log", I_AM("2", "6", "902", "gn11") WAITED("2", AT, "2", "412", "ALLREDUCE", "600029") DEFAULT("2", "412", "413", "411")},
                   {"rank3.log", I_AM("3", "6", "903", "gn11") WAITED("3", AT, "3", "412", "ALLREDUCE", "600029") DEFAULT("3", "412", "413", "411")},
                   {"rank4.log", I_AM("4", "6", "904", "gn11") DEFAULT("4", "411", "411", "411")},
                   {"rank5.log", I_AM("5", "6", "905", "gn11") WAITED("5", AT, "5", "412", "ALLREDUCE", "600029") DEFAULT("5", "412", "413", "411")}},
         .want = {"rank-stalled ranks 1?4"}},
        {.name = "all entered the same one: the counters are silent about who",
         .files = {{"rank0.log", I_AM("0", "3", "900", "gn11") WAITED("0", AT, "0", "412", "ALLREDUCE", "600029") DEFAULT("0", "412", "412", "411")},
                   {"rank1.log", I_AM("1", "3", "901", "gn11") WAITED("1", AT, "1", "412", "ALLREDUCE", "600029") DEFAULT("1", "412", "413", "411")},
                   {"rank2.log", I_AM("2", "3", "902", "gn12") WAITED("2", AT, "2", "412", "ALLREDUCE", "600029") DEFAULT("2", "412", "412", "411")}},
         .want = {"* unknown"}},
        {.name = "a lower number of another group is no lag",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") TP("0", "5", "0", "870", "ALLREDUCE")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") TP("1", "5", "1", "870", "ALLREDUCE")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") DP("2", "9", "0", "41", "ALLREDUCE")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") DP("3", "9", "1", "41", "ALLREDUCE")}},
         .want = {"* unknown"}},
    };
    LOGS_CASES(rows);
}

T_TEST(another_operation_for_the_same_number)
{
    static const struct logs_case rows[] = {
        {.name = "one gathers while the others reduce",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") WAITED("0", AT, "0", "412", "ALLREDUCE", "600029") DEFAULT("0", "412", "412", "411")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") WAITED("1", AT, "1", "412", "ALLGATHER", "600029") DEFAULT("1", "412", "412", "411")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") WAITED("2", AT, "2", "412", "ALLREDUCE", "600029") DEFAULT("2", "412", "412", "411")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") WAITED("3", AT, "3", "412", "ALLREDUCE", "600029") DEFAULT("3", "412", "412", "411")}},
         .want = {"collective-desync rank 1"}},
        {.name = "two against two is no majority",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") WAITED("0", AT, "0", "412", "ALLREDUCE", "600029") DEFAULT("0", "412", "412", "411")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") WAITED("1", AT, "1", "412", "ALLGATHER", "600029") DEFAULT("1", "412", "412", "411")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") WAITED("2", AT, "2", "412", "ALLGATHER", "600029") DEFAULT("2", "412", "412", "411")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") WAITED("3", AT, "3", "412", "ALLREDUCE", "600029") DEFAULT("3", "412", "412", "411")}},
         .want = {"!* rank *"}},
        {.name = "the other operation belongs to another group",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") DP("0", "9", "0", "41", "ALLREDUCE")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") TP("1", "5", "1", "41", "ALLGATHER")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") DP("2", "9", "1", "41", "ALLREDUCE")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") DP("3", "9", "2", "41", "ALLREDUCE")}},
         .want = {"!collective-desync rank 1"}},
        {.name = "two ranks that say of each other that they differ: symmetric",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11")
                    TRACE("[rank0]: ", "loop.py", "140", "reduce_grads", "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
                    "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[32], TensorDtypes=Float), but Rank 1 is running collective: "
                    "CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[32], TensorDtypes=Float).Collectives differ in the following aspects: \t Op type: ALLREDUCEvs BROADCAST")
                    TRACE("[rank1]: ", "loop.py", "146", "publish", "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
                    "CollectiveFingerPrint(SequenceNumber=7, OpType=BROADCAST, TensorShape=[32], TensorDtypes=Float), but Rank 0 is running collective: "
                    "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[32], TensorDtypes=Float).Collectives differ in the following aspects: \t Op type: BROADCASTvs ALLREDUCE")}},
         .want = {"!* rank *"}},
    };
    LOGS_CASES(rows);
}

T_TEST(edges_lead_to_the_rank_that_waits_for_nobody)
{
    static const struct logs_case rows[] = {
        /* Groups 5 = {0,1} and 6 = {2,3} of tensors, 8 = {0,2} and 9 = {1,3} of data. Rank 3 is away: 2 waits for it in 6, 1 in 9, and 0 for 1. */
        {.name = "waiters in two groups, one rank in neither complaint",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") TP("0", "5", "0", "87", "ALLREDUCE")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") DP("1", "9", "0", "41", "ALLREDUCE")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") TP("2", "6", "0", "87", "ALLREDUCE")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS}},
         .want = {"rank-stalled rank 3"}},
        {.name = "a desync report: those furthest behind hold up the rest",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") WAITED("0", AT, "0", "12", "ALLREDUCE", "600029")
                    "[rank0]:[E309 10:14:31.000000001 ProcessGroupNCCL.cpp:1790] [PG ID 0 PG GUID 0(default_pg) Rank 0] Rank 0\n"
                    "\t - [0] Timeout at collective: ALLREDUCE, #12\n"
                    "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
                    "\t   - [3] joined but didn't finish collective #11 (count from 1)\n"
                    "\t     [1, 2] finished collective #11, but didn't join collective #12 (count from 1)\n"
                    "\t - Snapshot of ranks' latest states:\n"
                    "\t   #11 finished ranks:\n"
                    "\t     [1, 2] finished ALLREDUCE\n"
                    "\t   #12 started ranks:\n"
                    "\t     [0] started ALLREDUCE\n"}},
         .want = {"desync-debug-report rank 3", "* rank 3"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_report_that_lists_everybody_accuses_nobody)
{
    static const struct logs_case rows[] = {
        {.name = "all of four joined and did not finish",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    "[rank2]:[E309 10:14:30.784743622 ProcessGroupNCCL.cpp:1936] Rank 2\n\t - [2] Timeout at collective: ALLREDUCE, #730\n"
                    "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
                    "\t   - [0, 1, 2, 3] joined but didn't finish collective #730 (count from 1)\n"}},
         .want = {"!* rank *", "!* ranks *", "*"}},
        {.name = "one of four",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    "[rank2]:[E309 10:14:30.784743622 ProcessGroupNCCL.cpp:1936] Rank 2\n\t - [2] Timeout at collective: ALLREDUCE, #730\n"
                    "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
                    "\t   - [1] finished collective #729, but didn't join collective #730 (count from 1)\n"}},
         .want = {"* rank 1"}},
        {.name = "Horovod's list of who came",
         .files = {{"console.log", "Stalled ops: HorovodBroadcast_w_0 [ready ranks: 3, 0, 2, 4, 5]\n"}},
         .want = {"horovod-stalled-ops rank 1"}},
    };
    LOGS_CASES(rows);
}

#define PIPE(r, seq, op) \
    WAITED(r, AT, r, seq, op, "600029") COUNTED(r, AT, "2", "PIPELINE_MODEL_PARALLEL_GROUP", r, seq, seq, "30")
#define MODEL(r, seq) WAITED(r, AT, r, seq, "ALLREDUCE", "600029") COUNTED(r, AT, "1", "MODEL_PARALLEL_GROUP", r, seq, seq, "3")

T_TEST(who_waits_otherwise_than_everybody_else)
{
    static const struct logs_case rows[] = {
        {.name = "three stages wait in sends and receives, one in a reduction: it is done with them",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") PIPE("0", "48", "COALESCED")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") PIPE("1", "90", "COALESCED")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") MODEL("2", "4")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") PIPE("3", "37", "COALESCED")}},
         .want = {"megatron-pp-stage-asymmetry-hang rank 2"}},
        {.name = "one waits for a microbatch that nobody has",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") MODEL("0", "4")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") PIPE("1", "91", "RECV")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") MODEL("2", "4")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") MODEL("3", "4")}},
         .want = {"megatron-pp-stage-asymmetry-hang rank 1"}},
        {.name = "all wait in sends and receives: each has its own numbers, and the lowest is no laggard",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") PIPE("0", "48", "COALESCED")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") PIPE("1", "90", "COALESCED")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") PIPE("2", "88", "COALESCED")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") PIPE("3", "37", "COALESCED")}},
         .want = {"megatron-pp-stage-asymmetry-hang unknown"}},
        {.name = "a silent rank is suspected before anybody's schedule",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") PIPE("0", "48", "COALESCED")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") PIPE("1", "90", "COALESCED")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") MODEL("2", "4")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS}},
         .want = {"rank-stalled rank 3"}},
        {.name = "coalesced collectives of another group are no sends and receives",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") TP("0", "5", "0", "87", "COALESCED")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") TP("1", "5", "1", "87", "COALESCED")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") MODEL("2", "4")},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") TP("3", "5", "2", "87", "COALESCED")}},
         .want = {"!megatron-pp-stage-asymmetry-hang *"}},
    };
    LOGS_CASES(rows);
}

#define PARAMS(p, r, n, other, m) \
    TRACE(p, "fit.py", "67", "build", "RuntimeError: DDP expects same model across all ranks, but Rank " r " has " n " params, while rank " other " has inconsistent " m " params.")

T_TEST(statements_that_two_models_differ)
{
    static const struct logs_case rows[] = {
        {.name = "one rank is in all of them, though nobody's lines are marked",
         .files = {{"console.log", PARAMS("", "1", "6", "2", "8") PARAMS("", "0", "6", "2", "8") PARAMS("", "2", "8", "0", "6")}},
         .want = {"ddp-param-mismatch rank 2"}},
        {.name = "two ranks say of each other that they differ",
         .files = {{"console.log", PARAMS("[rank1]: ", "1", "6", "0", "8") PARAMS("[rank0]: ", "0", "8", "1", "6")}},
         .want = {"ddp-param-mismatch unknown"}},
        {.name = "no parameters are what is left of a gather that timed out",
         .files = {{"console.log", WAITED("0", "10:14:30", "0", "1", "ALLGATHER", "600029") WAITED("1", "10:14:30", "1", "1", "ALLGATHER", "600029")
                    WAITED("2", "10:14:30", "2", "1", "ALLGATHER", "600029") PARAMS("[rank2]: ", "2", "51", "0", "0") PARAMS("[rank0]: ", "0", "51", "1", "0")}},
         .want = {"!ddp-param-mismatch*", "* unknown"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_barrier_that_names_the_missing_rank)
{
#define REACHED(r) \
    TRACE("", "fit.py", "67", "wait", "RuntimeError: Rank " r " successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.")
    static const struct logs_case rows[] = {
        {.name = "the others were told of the barrier by rank 0, which ended then",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11") REACHED("1")
                    "E20260309 10:05:01.994673  900 ProcessGroupGloo.cpp:2803] [Rank 0]: Rank 3 failed to pass monitoredBarrier in 5000 ms\n"
                    TRACE("", "fit.py", "67", "wait", "RuntimeError: [Rank 0]: Ranks 3 failed to pass monitoredBarrier in 5000 ms") REACHED("2")}},
         .want = {"monitored-barrier-missing-rank rank 3"}},
        {.name = "one rank's log: rank 0 knows whom it missed, and what it said is not here",
         .files = {{"rank2.log", I_AM("2", "4", "902", "gn11") REACHED("2")}},
         .want = {"!* rank 0", "*"}},
    };
    LOGS_CASES(rows);
}

#define GATHERED(r, numel)                                                                                             \
    "[rank" r "]:[E309 10:14:30.120394857 ProcessGroupNCCL.cpp:688] [Rank " r "] Watchdog caught collective operation timeout: " \
    "WorkNCCL(SeqNum=412, OpType=_ALLGATHER_BASE, NumelIn=" numel ", NumelOut=4194304, Timeout(ms)=600000) ran for 600029 "      \
    "milliseconds before timing out.\n"

T_TEST(the_same_collective_of_another_size)
{
    static const struct logs_case rows[] = {
        {.name = "one rank gathers another parameter than all others",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") STEPS GATHERED("2", "1048576") GATHERED("0", "1048576") GATHERED("3", "524288") GATHERED("1", "1048576")}},
         .want = {"collective-desync rank 3"}},
        {.name = "all gather the same",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") STEPS GATHERED("2", "1048576") GATHERED("0", "1048576") GATHERED("3", "1048576") GATHERED("1", "1048576")}},
         .want = {"!* rank *"}},
    };
    LOGS_CASES(rows);
}

#define NO_ROOM(came, room)                                                                                                                \
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] "  \
    "op.preamble.length <= op.nbytes. " came " vs " room "\n"
#define IN_BACKWARD TRACE("", "seg.py", "27", "backward", "RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:59281: Connection reset by peer")
#define IN_MAIN                                                                                                                           \
    "Traceback (most recent call last):\n  File \"/home/ivo/fit/seg.py\", line 107, in <module>\n    loss.backward()\n"                     \
    "  File \"/opt/env/lib/python3.11/site-packages/torch/_tensor.py\", line 488, in backward\n    torch.autograd.backward(\n"             \
    "RuntimeError: [./gloo/transport/tcp/pair.cc:589] Read error [127.0.0.1]:59281: Connection reset by peer\n"
#define IN_METRIC TRACE("", "seg.py", "41", "all_reduce", "RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:27541")
#define ENDS                                                                                                                              \
    STOP("901") STOP("902") TABLE_HEAD ROW("1", "10:05:40", "gn11", "3", "3", "-6", "903", " (SIGABRT)") TABLE_ROOT                          \
    ROW("0", "10:05:38", "gn11", "0", "0", "1", "900", "") TABLE_END

T_TEST(a_message_that_is_too_long)
{
    static const struct logs_case rows[] = {
        {.name = "room for a number, a tensor came, and all others stand in one call",
         .files = {{"console.log", NO_ROOM("124", "4") IN_BACKWARD IN_BACKWARD IN_BACKWARD ENDS}},
         .want = {"collective-mismatch-detail rank 3"}},
        {.name = "in a script that is one file", .files = {{"console.log", NO_ROOM("124", "4") IN_MAIN IN_MAIN ENDS}}, .want = {"collective-mismatch-detail rank 3"}},
        {.name = "one of the others stands elsewhere: the tensor may be the odd one",
         .files = {{"console.log", NO_ROOM("124", "4") IN_METRIC IN_BACKWARD IN_METRIC ENDS}},
         .want = {"!* rank *", "*"}},
        {.name = "two tensors of about the same size: either may be wrong",
         .files = {{"console.log", NO_ROOM("108", "64") IN_BACKWARD IN_BACKWARD IN_BACKWARD ENDS}},
         .want = {"collective-mismatch-detail unknown"}},
    };
    LOGS_CASES(rows);
}

#define READY(ranks) "[ready ranks: " ranks "]"

T_TEST(tensors_that_wait_for_different_ranks)
{
    static const struct logs_case rows[] = {
        {.name = "most are where most tensors wait",
         .files = {{"console.log", "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more "
                    "than 60 seconds. Stalled ops: loss_0 " READY("3") ", grad/a_0 " READY("2, 0, 1") ", grad/b_0 " READY("2, 0, 1") "\n"}},
         .want = {"horovod-stalled-ops rank 3"}},
        {.name = "one tensor, and one rank that came: who is odd is not said",
         .files = {{"console.log", "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more "
                    "than 60 seconds. Stalled ops: loss_0 " READY("3") "\n"}},
         .want = {"!* rank *", "*"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
