/* SPDX-License-Identifier: Apache-2.0 */
/* Law 2: the subject is not the reporter. Who complains about a peer is evidence about the peer. */
#include "law_lines.h"

T_TEST(a_complaint_is_about_the_peer)
{
    static const struct logs_case rows[] = {
        {.name = "rank 0 alone says that its peer closed: it is not rank 0",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")}},
         .want = {"!* rank 0"}},
        {.name = "three complain, the fourth ends in silence",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14729")},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS},
                   {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS CLOSED_BY_PEER("[rank3]: ", "[10.2.0.5]:14731")}},
         .want = {"* rank 2"}},
        {.name = "a monitored barrier names the one that did not come",
         .files = {{"console.log",
                    "[rank0]:[E309 10:01:03.381240412 ProcessGroupGloo.cpp:68] [Rank 0]: Rank 1 failed to pass monitoredBarrier in 20000 ms\n"
                    TRACE("[rank0]: ", "loop.py", "77", "sync_all", "RuntimeError: [Rank 0]: Rank 1 failed to pass monitoredBarrier in 20000 ms\n"
                          "[rank0]:  Original exception:\n[rank0]: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
                          "waiting 20000ms for recv operation to complete")}},
         .want = {"monitored-barrier-missing-rank rank 1"}},
        {.name = "a lost connection of NCCL on rank 0 does not blame rank 0",
         .files = {{"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "4", "1b000") STEPS "\n"
                    "[2026-03-09 10:04:47] gn11:900:977 [0] misc/socket.cc:915 NCCL WARN socketProgress: Connection closed by remote peer "
                    "gn12.lab<46212>\n"}},
         .want = {"!* rank 0"}},
        {.name = "ranks that ask rank 0 for the id of a communicator and get none",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") TRACE("[rank1]: ", "fit.py", "20", "setup", "torch.distributed.DistBackendError: [1] is setting up NCCL "
                    "communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: "
                    "wait timeout after 600000ms, keys: /default_pg/0//cuda//0. This may indicate a possible application crash on rank 0 or a network set up issue.")},
                   {"rank2.log", I_AM("2", "4", "902", "gn11") TRACE("[rank2]: ", "fit.py", "20", "setup", "torch.distributed.DistBackendError: [2] is setting up NCCL "
                    "communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: "
                    "wait timeout after 600000ms, keys: /default_pg/0//cuda//0. This may indicate a possible application crash on rank 0 or a network set up issue.")},
                   {"rank3.log", I_AM("3", "4", "903", "gn11") TRACE("[rank3]: ", "fit.py", "20", "setup", "torch.distributed.DistBackendError: [3] is setting up NCCL "
                    "communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: "
                    "wait timeout after 600000ms, keys: /default_pg/0//cuda//0. This may indicate a possible application crash on rank 0 or a network set up issue.")}},
         .want = {"* rank 0"}},
        {.name = "a scheduler that waited for the others is not the one they waited for",
         .files = {{"serve.log",
                    NCCL_INIT("gn11", "902", "2", "2", "8", "3b000")
                    "[2026-03-11 08:05:41 TP2] Scheduler hit an exception: Traceback (most recent call last):\n"
                    "  File \"/opt/env/lib/python3.11/site-packages/sglang/srt/model_executor/model_runner.py\", line 512, in load_model\n"
                    "    raise ValueError(\n"
                    "ValueError: TP rank 2 could finish the model loading, but there are other ranks that didn't finish loading. It is "
                    "likely due to unexpected failures (e.g., OOM) or a slow node.\n"}},
         .want = {"sglang-scheduler-exception unknown"}},
        {.name = "an error of its own is about the reporter",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "2", "901", "gn12") STEPS KEY_ERROR("[rank1]: ")}},
         .want = {"python-exception rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(who_is_no_rank_and_no_cause)
{
    static const struct logs_case rows[] = {
        {.name = "an engine in each of several actors: their indexes are no ranks",
         .files = {{"driver.log", "(WorkerDict pid=711) [2026-03-09 13:15:04 TP0] Load weight begin\n(WorkerDict pid=716) [2026-03-09 13:15:04 TP1] Load weight begin\n"
                    "(WorkerDict pid=716) [2026-03-09 13:15:04 TP0] Load weight begin\n" KEY_ERROR("(WorkerDict pid=711) [2026-03-09 13:15:06 TP1] ")}},
         .want = {"!* rank 1", "*"}},
        {.name = "one engine", .files = {{"serve.log", "[2026-03-09 13:15:04 TP0] Load weight begin\n" KEY_ERROR("[2026-03-09 13:15:06 TP1] ")}}, .want = {"* rank 1"}},
        {.name = "the helper that cleans up after others",
         .files = {{"worker.log", "Traceback (most recent call last):\n  File \"/usr/lib/python3.10/multiprocessing/resource_tracker.py\", line 209, in main\n    cache[rtype].remove(name)\n"
                    "KeyError: '/loky-30105-_31z_nje'\n" TRACE("", "fit.py", "20", "poll", "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:275, remote process exited or there was a network error\n"
                    "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.")}},
         .want = {"nccl-remote-error*"}},
    };
    LOGS_CASES(rows);
}

#define BARRIER(r) "[rank" r "]:[E309 10:05:05.426633564 ProcessGroupGloo.cpp:143] Rank " r " successfully reached monitoredBarrier, but received errors while waiting " \
                   "for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n"
#define HEAD(r) "[2026-03-09 10:05:05 TP" r "] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/home/ivo/serve/scheduler.py\", line 2056, in run\n"

T_TEST(whose_traceback_is_cut_off_below_a_complaint)
{
    static const struct logs_case rows[] = {
        {.name = "two that lost a peer", .files = {{"serve.log", BARRIER("3") HEAD("3") BARRIER("6") HEAD("6")}}, .want = {"!sglang-scheduler-exception *", "*"}},
        {.name = "without the complaint", .files = {{"serve.log", HEAD("3") HEAD("6")}}, .want = {"sglang-scheduler-exception *"}},
    };
    LOGS_CASES(rows);
}

T_TEST(an_error_of_the_device_is_ones_own)
{
    static const struct logs_case rows[] = {
        {.name = "a CUDA call of NCCL's",
         .files = {{"rank7.log", "[rank7]: torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error, NCCL version 2.17.1\n"
                    "[rank7]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank7]: Last error:\n[rank7]: Cuda failure 'invalid device pointer'\n"}},
         .want = {"nccl-unhandled-cuda-error rank 7"}},
        {.name = "an operator that waits for another rank",
         .files = {{"rank1.log", TRACE("[rank1]: ", "base.py", "35", "all_reduce", "RuntimeError: InnerRunOpApi:torch_npu/csrc/framework/OpParamMaker.cpp:281 OPS function error: HcclAllreduce, error code is 6")
                    "[rank1]: EI0006: [PID: 901] 2026-03-09-10:05:06.444.436 Getting socket times out. Reason: Remote Rank did not send the data in time.\n"}},
         .want = {"ascend-hccl-timeout unknown"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
