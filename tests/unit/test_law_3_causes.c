/* SPDX-License-Identifier: Apache-2.0 */
/* Law 3: causes beat symptoms, and symptoms are backdated. Time-outs, closed connections, SIGTERM after the first death,
 * destructors and launcher footers never initiate; torchrun's table is evidence of exit codes, not of order. */
#include "law_lines.h"

#define PORT_TAKEN                                                                                                     \
    "[W309 10:00:00.837608688 socket.cpp:525] [c10d] The server socket has failed to bind to [::]:29511 (errno: 98 - Address already in use).\n" \
    "[E309 10:00:00.838299576 socket.cpp:561] [c10d] The server socket has failed to listen on any local network address.\n"

T_TEST(causes_beat_symptoms)
{
    static const struct logs_case rows[] = {
        {.name = "three watchdogs printed before the traceback of the fourth",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412")},
                   {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412")},
                   {"rank2.log", I_AM("2", "4", "902", "gn11") STEPS "2026-03-09 10:15:10,002 ERROR [fit] giving up\n" KEY_ERROR("[rank2]: ")},
                   {"rank3.log", I_AM("3", "4", "903", "gn11") STEPS TIMED_OUT("3", "10:14:30", "412")}},
         .want = {"python-exception rank 2"}},
        {.name = "the cause stands at the end of one console",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[rank1]: ", "[10.2.0.5]:14728")
                    CLOSED_BY_PEER("[rank3]: ", "[10.2.0.5]:14729") OOM("[rank2]: ")}},
         .want = {"cuda-oom rank 2"}},
        {.name = "complaints about the store beside a real exception",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS INDEX_ERROR("[rank0]: ")},
                   {"rank1.log", I_AM("1", "2", "901", "gn12") STEPS
                    "[rank1]:[W309 10:04:51.402113007 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=81, addr=[gn12]:51874, "
                    "remote=[gn11]:29500): failed to recv, got 0 bytes\n"
                    "[rank1]:[W309 10:04:52.402113008 ProcessGroupNCCL.cpp:1662] [PG ID 0 PG GUID 0 Rank 1] Failed to check the \"should dump\" flag on "
                    "TCPStore, (maybe TCPStore server has shut down too early), with error: failed to recv, got 0 bytes\n"}},
         .want = {"python-exception rank 0"}},
        {.name = "a destructor's complaint in an earlier file is no cause",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS
                    "Exception ignored in: <function ShardReader.__del__ at 0x7f0c3a1be7a0>\n"
                    "Traceback (most recent call last):\n"
                    "  File \"/home/ivo/fit/shards.py\", line 60, in __del__\n"
                    "    self.pool.close()\n"
                    "AttributeError: 'NoneType' object has no attribute 'close'\n" CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "2", "901", "gn12") STEPS KEY_ERROR("[rank1]: ")}},
         .want = {"python-exception rank 1"}},
    };
    LOGS_CASES(rows);
}

T_TEST(who_was_told_to_stop_did_not_begin)
{
    static const struct logs_case rows[] = {
        {.name = "three ranks stopped with SIGTERM, one failed by itself",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    STEPS STOP("900") STOP("901") STOP("902") FAILED("-11", "3", "903")
                    TABLE_HEAD ROW("1", "10:05:03", "gn11", "0", "0", "-15", "900", " (SIGTERM)") ROW("2", "10:05:03", "gn11", "1", "1", "-15", "901", " (SIGTERM)")
                    ROW("3", "10:05:03", "gn11", "2", "2", "-15", "902", " (SIGTERM)") TABLE_ROOT ROW("0", "10:05:03", "gn11", "3", "3", "-11", "903", " (SIGSEGV)") TABLE_END}},
         .want = {"torchrun-sigsegv rank 3", "segfault rank 3"}},
        {.name = "torchrun's table names the victim as root cause",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") STOP("900") STOP("902") STOP("903") FAILED("-15", "0", "900")
                    TABLE_HEAD ROW("1", "10:05:03", "gn11", "1", "1", "-9", "901", " (SIGKILL)") TABLE_ROOT
                    ROW("0", "10:05:01", "gn11", "0", "0", "-15", "900", " (SIGTERM)") TABLE_END}},
         .want = {"torchrun-sigkill-exit-minus-9 rank 1", "process-killed-sigkill rank 1"}},
        {.name = "a SIGKILL that the agent sent is no death of its own",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS KEY_ERROR("[rank0]: ") STOP("901")
                    "W0309 10:05:32.118000 771 torch/distributed/elastic/multiprocessing/api.py:1047] Unable to shutdown process 901 via Signals.SIGTERM, "
                    "forcefully exiting via Signals.SIGKILL\n" FAILED("1", "0", "900") TABLE_HEAD ROW("1", "10:05:33", "gn11", "1", "1", "-9", "901", " (SIGKILL)")
                    TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "1", "900", "") TABLE_END}},
         .want = {"python-exception rank 0"}},
        {.name = "a table cut above its last row, padded with blanks",
         .files = {{"console.log", "  host      : gn11          \n  rank      : 5 (local_rank: 1)          \n  exitcode  : -11 (pid: 901)          \n"
                    "  error_file: <N/A>          \n  traceback : Signal 11 (SIGSEGV) received by PID 901          \n" TABLE_END}},
         .want = {"torchrun-sigsegv rank 5"}},
        {.name = "a SIGKILL half a minute after the first death is the agent's, and the first one says nothing",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS TABLE_HEAD
                    ROW("1", "10:05:32", "gn11", "1", "1", "-9", "901", " (SIGKILL)") TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "1", "900", "") TABLE_END}},
         .want = {"inconclusive*"}},
        {.name = "aborts of three watchdogs beside the one that was killed",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") I_AM("2", "4", "902", "gn11") I_AM("3", "4", "903", "gn11")
                    STEPS TIMED_OUT("0", "10:14:30", "412") TIMED_OUT("1", "10:14:30", "412") TIMED_OUT("3", "10:14:30", "412") TABLE_HEAD
                    ROW("1", "10:14:31", "gn11", "1", "1", "-6", "901", " (SIGABRT)") ROW("2", "10:14:31", "gn11", "3", "3", "-6", "903", " (SIGABRT)")
                    ROW("3", "10:14:32", "gn11", "2", "2", "-9", "902", " (SIGKILL)") TABLE_ROOT
                    ROW("0", "10:14:31", "gn11", "0", "0", "-6", "900", " (SIGABRT)") TABLE_END}},
         .want = {"torchrun-sigkill-exit-minus-9 rank 2", "process-killed-sigkill rank 2"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_time_out_began_when_the_wait_began)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank0.log", I_AM("0", "4", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412"));
    logs_add(&l, "rank1.log", I_AM("1", "4", "901", "gn11") STEPS TIMED_OUT("1", "10:14:30", "412"));
    logs_add(&l, "rank2.log", I_AM("2", "4", "902", "gn11") STEPS);
    logs_add(&l, "rank3.log", I_AM("3", "4", "903", "gn11") STEPS TIMED_OUT("3", "10:14:30", "412"));
    T_EQ_STR(logs_answer(&l), "rank-stalled rank 2");
    const struct fr_incident *in = logs_incident(&l, 0);
    char at[48] = "";
    if (in != NULL && in->initiator.when.basis != FR_TIME_BASIS_NONE) {
        fr_time_iso(in->initiator.when.ns, 0, at);
    }
    const char *clock = strchr(at, 'T') != NULL ? strchr(at, 'T') : at;
    /* 600029 ms before 10:14:30, and the fraction is another clock's */
    T_OK(strcmp(clock, "T10:04:30") == 0 || strcmp(clock, "T10:04:29") == 0);
    logs_end(&l);
}

T_TEST(the_loud_lines_are_told_to_be_no_cause)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank0.log", I_AM("0", "2", "900", "gn11") STEPS TIMED_OUT("0", "10:14:30", "412"));
    logs_add(&l, "rank1.log", I_AM("1", "2", "901", "gn11") STEPS KEY_ERROR("[rank1]: "));
    T_EQ_STR(logs_answer(&l), "python-exception rank 1");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->not_the_cause.n != 0);
    T_OK(in != NULL && in->collateral.n == 1 && in->collateral.v[0].rank == 0);
    logs_end(&l);
}

T_TEST(the_launcher_names_the_one_that_ended)
{
    static const struct logs_case rows[] = {
        {.name = "Composer",
         .files = {{"console.log", "rank0[900][MainThread]: DEBUG: composer.utils.dist: Initializing torch.dist: global_rank=0, local_rank=0, world_size=8, "
                    "local_world_size=8, node_rank=0\nERROR:composer.cli.launcher:Rank 6 crashed with exit code -7.\n"}},
         .want = {"sigbus-exit-minus-7 rank 6"}},
        {.name = "Paddle",
         .files = {{"console.log", "INFO 2026-03-09 10:05:02,118 launch_utils.py:307] terminate all the procs\n"
                    "ERROR 2026-03-09 10:05:02,119 launch_utils.py:545] ABORT!!! Out of all 8 trainers, the trainer process with rank=[5] was aborted. "
                    "Please check its log.\n"}},
         .want = {"silent-exit rank 5"}},
        {.name = "Paddle, three at once",
         .files = {{"console.log", "ERROR 2026-03-09 10:05:02,119 launch_utils.py:545] ABORT!!! Out of all 8 trainers, the trainer process with "
                    "rank=[1, 5, 6] was aborted. Please check its log.\n"}},
         .want = {"inconclusive", "!healthy", "!* rank *"}},
        {.name = "mpirun's table says which was the first",
         .files = {{"console.log", "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process "
                    "to do so was:\n\n  Process name: [[41007,1],2]\n  Exit code:    1\n"}},
         .want = {"silent-exit rank 2", "mpi-abort rank 2"}},
        {.name = "the first to end among those that lost a peer",
         .files = {{"r0.log", I_AM("0", "3", "900", "gn11") CLOSED_BY_PEER("", "[10.2.0.5]:14727")}, {"r1.log", I_AM("1", "3", "901", "gn11") CLOSED_BY_PEER("", "[10.2.0.5]:14728")},
                   {"r2.log", I_AM("2", "3", "902", "gn11")}, {"console.log", "  Process name: [[41007,1],2]\n  Exit code:    1\n"}},
         .want = {"silent-exit rank 2"}},
        {.name = "a server's launcher names the shard, whose error stands above",
         .files = {{"console.log", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB (GPU 1; 15.77 GiB total capacity; 15.37 GiB already allocated; "
                    "13.62 MiB free)\n rank=1\nError: ShardCannotStart\n2025-08-19T10:23:27.032737Z ERROR text_generation_launcher: Shard 1 failed to start\n"}},
         .want = {"* rank 1"}},
        {.name = "a fault that UCX caught is no request to stop",
         .files = {{"console.log", "[gn11:4101:0:4101] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)\n==== backtrace (tid:   4101) ====\n"}},
         .want = {"ucx-caught-signal *"}},
        {.name = "one exit among complaints may be a victim's",
         .files = {{"console.log", I_AM("0", "4", "900", "gn11") I_AM("1", "4", "901", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")
                    "ERROR:composer.cli.launcher:Rank 1 crashed with exit code 1.\n"}},
         .want = {"!* rank 1"}},
        {.name = "all that ended did so by one signal, and nothing else is known",
         .files = {{"console.log", TABLE_HEAD ROW("1", "10:05:01", "gn11", "1", "1", "-6", "901", "") TABLE_ROOT ROW("0", "10:05:01", "gn11", "0", "0", "-6", "900", "") TABLE_END}},
         .want = {"torchrun-sigabrt unknown"}},
        {.name = "Hydra's box",
         .files = {{"console.log", "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 9071 RUNNING AT gn11\n=   EXIT CODE: 9\n"
                    "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n"}},
         .want = {"process-killed-sigkill unknown"}},
        {.name = "the only one that aborted, and the others lost a connection: nobody waited in vain",
         .files = {{"a.log", I_AM("0", "3", "900", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")}, {"c.log", I_AM("2", "3", "902", "gn11") CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14728")},
                   {"console.log", "mpirun noticed that process rank 1 with PID 0 on node gn11 exited on signal 6 (Aborted).\n"}},
         .want = {"native-abort rank 1", "torchrun-sigabrt rank 1"}},
    };
    LOGS_CASES(rows);
}

#define HOST_RANK(rank, level, text) "2026-03-09 10:05:00,302\tgn11:" rank "\tlm.train:143\t" level "\t" text "\n"
#define CAME(rank) HOST_RANK(rank, "INFO", "Rank " rank ": Completed store-based barrier for key:store_based_barrier_key:1 with 3 nodes.")
#define TB "Traceback (most recent call last):\n  File \"/srv/fit.py\", line 9, in fit\n    loss.backward()\n"
#define GONE "RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.2.0.5]:14727\n"
#define JOINING "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 0, key: store_based_barrier_key:1 (world_size=8, worker_count=1, timeout=0:30:00)\n"

T_TEST(who_said_why_and_who_waited)
{
    static const struct logs_case rows[] = {
        {.name = "an exception that was logged as an error counts",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") STEPS CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") "2026-03-09 10:01:30,000 ERROR [fit] giving up\n" KEY_ERROR("")}},
         .want = {"python-exception rank 1"}},
        {.name = "the rank that aborted said why, and all others lost it",
         .files = {{"a.log", I_AM("0", "2", "900", "gn11") CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727")},
                   {"b.log", I_AM("1", "2", "901", "gn12") "free(): invalid size\n" FAILED("-6", "0", "901")}},
         .want = {"native-abort rank 1"}},
        {.name = "the launcher saw another one fail, of which nothing is left",
         .files = {{"console.log", OOM("[rank3]: ") STOP("904") "E0309 10:05:03.442000 771 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
                    "(exitcode: 1) local_rank: 2 (pid: 903) of binary: /opt/env/bin/python3\n"}},
         .want = {"cuda-oom unknown"}},
        {.name = "an agent was told to stop; elsewhere there are only victims",
         .files = {{"gn11.log", I_AM("0", "2", "900", "gn11") STEPS CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") FAILED("1", "0", "900")},
                   {"gn12.log", I_AM("1", "2", "901", "gn12") STEPS "W0309 10:05:00.118000 771 torch/distributed/elastic/agent/server/api.py:719] Received Signals.SIGTERM "
                    "death signal, shutting down workers\n" STOP("901")}},
         .want = {"torchrun-sigterm-cascade *"}},
        {.name = "a traceback below the line of a logger that tells of it, among others' of the same console",
         .files = {{"console.log", CAME("0") CAME("1") CAME("2") HOST_RANK("1", "CRITICAL", "Uncaught IndexError") TB "IndexError: index out of range in self\n"
                    HOST_RANK("0", "CRITICAL", "Uncaught RuntimeError") TB GONE HOST_RANK("2", "CRITICAL", "Uncaught RuntimeError") TB GONE}},
         .want = {"tokenizer-vocab-embedding-mismatch rank 1"}},
        {.name = "what hits all ranks alike, while unnamed others print that a peer is gone",
         .files = {{"console.log", TB "IndexError: index out of range in self\n" TB GONE TB GONE}},
         .want = {"tokenizer-vocab-embedding-mismatch unknown"}},
        {.name = "Open MPI tags the pieces of a line",
         .files = {{"console.log", "[1,2]<stderr>:Traceback (most recent call last):\n[1,2]<stderr>:  File \"/srv/fit.py\", line 9, in load\n"
                    "[1,2]<stderr>:    return table[key]\n[1,2]<stderr>:    [1,2]<stderr>:    [1,2]<stderr>:^^^^^[1,2]<stderr>:\n"
                    "[1,2]<stderr>:KeyError[1,2]<stderr>:: 'lr'[1,2]<stderr>:\n"}},
         .want = {"python-exception rank 2"}},
        {.name = "a converter that a rank started is its own failure, a program of a launcher is not",
         .files = {{"console.log", "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/srv/fit.py\", line 9, in load\n[rank2]:     subprocess.run(x)\n"
                    "[rank2]: subprocess.CalledProcessError: Command '['convert', 'a.png']' returned non-zero exit status 4.\n"}},
         .want = {"python-exception rank 2"}},
        {.name = "one rank's traceback, and another's bar that was printed at its end",
         .files = {{"console.log", "1: [rank1]: Traceback (most recent call last):\n1: [rank1]:   File \"/home/ivo/fit/fit.py\", line 100, in fit\n"
                    "1: [rank1]: IndexError: Target 6 is out of bounds.\n"
                    "0: Epoch 0:   0%|          | 0/20 [00:00<?, ?it/s]\rEpoch 0:  20%|##        | 4/20 [00:00<00:01, 12.29it/s, train_loss=1.568]"
                    "\rEpoch 0:  40%|####      | 8/20 [00:00<00:01, 12.29it/s, train_loss=1.560]\rEpoch 0:  60%|######    | 12/20 [00:00<00:01, 12.29it/s, train_loss=1.551]\n"
                    "0: " CLOSED_BY_PEER("[rank0]: ", "[127.0.0.1]:63666")}},
         .want = {"label-out-of-range rank 1", "python-exception rank 1"}},
        {.name = "a launcher whose port is taken joins the one that has it",
         .files = {{"n0.out", I_AM("0", "4", "900", "gn11") CLOSED_BY_PEER("", "[10.2.0.5]:14727")},
                   {"n1.out", PORT_TAKEN I_AM("2", "4", "902", "gn11") KEY_ERROR("")}},
         .want = {"python-exception rank 2"}},
        {.name = "a process whose port is taken ends of it",
         .files = {{"n0.out", PORT_TAKEN TRACE("", "fit.py", "20", "setup", "RuntimeError: The server socket has failed to listen on any local network address. "
                                               "The server socket has failed to bind to [::]:29511 (errno: 98 - Address already in use).")}},
         .want = {"c10d-address-in-use *"}},
        {.name = "waiting for the others at the start, as the last word",
         .files = {{"a.log", JOINING JOINING JOINING}}, .want = {"store-based-barrier-timeout *"}},
        {.name = "two that wait once each",
         .files = {{"a.log", JOINING "INFO:torch.distributed.distributed_c10d:Waiting in store based barrier to initialize process group for rank: 3, key: store_based_barrier_key:1 "
                    "(world_size=8, worker_count=3, timeout=0:30:00)\n"}},
         .want = {"store-based-barrier-timeout *"}},
        {.name = "waiting for the others at the start, and then they came",
         .files = {{"a.log", JOINING JOINING "INFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 8 nodes.\n"}},
         .want = {"healthy"}},
    };
    LOGS_CASES(rows);
}

T_TEST(a_death_by_signal_began_with_the_first_complaint)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "console.log", "using world size: 2, data-parallel size: 2\n" CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") STOP("900") FAILED("-7", "1", "901"));
    T_EQ_STR(logs_answer(&l), "sigbus-exit-minus-7 rank 1");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->evidence.n > 0 && fr_sv_has(in->evidence.v[0].text, FR_SV("Connection closed by peer")));
    logs_end(&l);
}

T_TEST(of_tracebacks_one_that_was_not_cut_is_quoted)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "console.log", "using world size: 2, data-parallel size: 2\n[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ivo/fit/collator.py\", line 88, in pad_fields\n"
                                KEY_ERROR("[rank0]: "));
    T_OK(logs_answer(&l) != NULL);
    const struct fr_incident *in = logs_incident(&l, 0);
    T_OK(in != NULL && in->evidence.n > 0 && fr_sv_has(in->evidence.v[0].text, FR_SV("token_mask")));
    logs_end(&l);
}

/* The first evidence of a run of one file, and what to do about it. */
static bool begins_with(const char *text, const char *evidence, enum fr_action action)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "console.log", text);
    (void)logs_answer(&l);
    const struct fr_incident *in = logs_incident(&l, 0);
    bool right = in != NULL && in->evidence.n > 0 && fr_sv_has(in->evidence.v[0].text, fr_sv_z(evidence)) && in->action == action;
    logs_end(&l);
    return right;
}

#define NO_LINK                                                                                                        \
    "gn11:900:950 [0] NCCL INFO socketPollConnect: connect returned Connection refused, retrying (1/34) after sleep for 100 msec\n"  \
    TRACE("[rank1]: ", "fit.py", "12", "main", "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, remote process " \
          "exited or there was a network error, NCCL version 2.26.2\n[rank1]: ncclRemoteError: A call failed possibly due to a "      \
          "network error or a remote process exiting prematurely.\n[rank1]: Last error:\n[rank1]: socketPollConnect: connect "        \
          "returned Connection refused, exceeded error retry count (35)")

T_TEST(where_it_showed_and_what_to_do)
{
    T_OK(begins_with(NO_LINK, "retrying (1/34)", FR_ACTION_FIX_FIRST));                /* nothing came through yet */
    T_OK(begins_with(STEPS NO_LINK, "retrying (1/34)", FR_ACTION_RESTART));
    T_OK(begins_with(STEPS STOP("900") FAILED("-6", "1", "901") TABLE_HEAD ROW("1", "10:05:03", "gn11", "0", "0", "-15", "900", " (SIGTERM)") TABLE_ROOT
                     ROW("0", "10:05:02", "gn11", "1", "1", "-6", "901", " (SIGABRT)") TABLE_END, "-6", FR_ACTION_FIX_FIRST)); /* one alone */
}

#define INTERRUPT(p) TRACE(p, "loop.py", "12", "tick", "KeyboardInterrupt")

T_TEST(interrupted)
{
    static const struct logs_case rows[] = {
        {.name = "one rank alone, and the others lose it after that",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11") STEPS INTERRUPT("[rank1]: ")
                    CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14729")}},
         .want = {"python-exception rank 1"}},
        {.name = "all of them, by somebody at the keyboard",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") I_AM("1", "2", "901", "gn11") STEPS INTERRUPT("[rank1]: ") INTERRUPT("[rank0]: ")}},
         .want = {"!* rank *"}},
        {.name = "somebody gave up on a run whose ranks had lost a peer",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11") STEPS
                    CLOSED_BY_PEER("[rank0]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[rank2]: ", "[10.2.0.5]:14729") INTERRUPT("[rank1]: ")}},
         .want = {"!python-exception rank 1", "*"}},
    };
    LOGS_CASES(rows);
}

#define RECORDED(i, r, pid, exception)                                                                                 \
    "[" i "]:\n  time      : 2026-03-09_10:05:02\n  host      : localhost\n  rank      : " r " (local_rank: " r ")\n"        \
    "  exitcode  : 1 (pid: " pid ")\n  error_file: /tmp/te/attempt_0/" r "/error.json\n  traceback : Traceback (most recent call last):\n" \
    "    File \"/home/ivo/fit/fit.py\", line 84, in main\n      t.run()\n  " exception "\n  \n"
#define PLAN_ERROR "PlanError: stage 9 has no entry in the plan"
#define ZIP_ERROR "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
#define PEER_GONE "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.2.0.5]:14727"

T_TEST(rows_that_hold_a_traceback)
{
    static const struct logs_case rows[] = {
        {.name = "the exception that nobody signed stands in the row of rank 1",
         .files = {{"console.log", STEPS TRACE("", "fit.py", "84", "main", PLAN_ERROR) TRACE("", "fit.py", "84", "main", PEER_GONE) TABLE_HEAD
                    RECORDED("1", "1", "901", PLAN_ERROR) TABLE_ROOT RECORDED("0", "0", "900", PEER_GONE) TABLE_END}},
         .want = {"python-exception rank 1"}},
        {.name = "three printed it, and the launcher wrote the row of the first that it saw",
         .files = {{"console.log", I_AM("0", "3", "900", "gn11") I_AM("1", "3", "901", "gn11") I_AM("2", "3", "902", "gn11")
                    TRACE("", "fit.py", "84", "main", ZIP_ERROR) TRACE("", "fit.py", "84", "main", ZIP_ERROR) TRACE("", "fit.py", "84", "main", ZIP_ERROR)
                    STOP("901") STOP("902") TABLE_HEAD "  <NO_OTHER_FAILURES>\n" TABLE_ROOT RECORDED("0", "0", "900", ZIP_ERROR) TABLE_END}},
         .want = {"corrupt-zip-checkpoint all-ranks"}},
    };
    LOGS_CASES(rows);
}

#define CHUNKS                                                                                                         \
    "chunk done\nchunk done\nchunk done\nchunk done\nchunk done\nchunk done\nchunk done\nchunk done\nchunk done\nchunk done\n"

T_TEST(a_warning_of_several_lines)
{
    static const struct logs_case rows[] = {
        {.name = "what it quotes is handled, and the run ends of something else",
         .files = {{"console.log", I_AM("0", "2", "900", "gn11") "2026-03-09 10:00:01,410 WARNING [fit] Direct load failed: Error(s) in loading state_dict for Net:\n"
                    "\tMissing key(s) in state_dict: \"module.pos\", \"module.head\".\n\tUnexpected key(s) in state_dict: \"pos\", \"head\".\n"
                    CHUNKS CHUNKS CHUNKS TRACE("[rank1]: ", "out.py", "7", "write", "PermissionError: [Errno 13] Permission denied: '/scratch/out.nc'")}},
         .want = {"permission-denied rank 1"}},
    };
    LOGS_CASES(rows);
}

#define NO_MEMORY(p)                                                                                                   \
    TRACE(p, "fit.py", "39", "main", "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you "   \
          "tried to allocate 83886080000000 bytes. Error code 12 (Cannot allocate memory)")
#define LOST_ON_THE_WAY(p) CLOSED_BY_PEER(p, "[10.2.0.5]:14727")
#define LONG_TRACE(p)                                                                                                  \
    p "  at a\n" p "  at b\n" p "  at c\n" p "  at d\n" p "  at e\n" p "  at f\n" p "  at g\n" p "  at h\n" p "  at i\n" p "  at j\n" p "  at k\n"   \
    p "  at l\n" p "  at m\n" p "  at n\n" p "  at o\n" LOST_ON_THE_WAY(p)

T_TEST(words_and_ends_of_one_process)
{
    static const struct logs_case rows[] = {
        {.name = "it said why it aborts, and mpirun saw it end by that signal; another one printed nothing",
         .files = {{"console.log", "[1,0]<stdout>:" I_AM("0", "4", "900", "gn11") "[1,1]<stdout>:" I_AM("1", "4", "901", "gn11") "[1,2]<stdout>:" I_AM("2", "4", "902", "gn11")
                    "[1,3]<stdout>:" I_AM("3", "4", "903", "gn11") "[1,3]<stderr>:free(): double free detected in tcache 2\n"
                    CLOSED_BY_PEER("[1,2]<stderr>:[rank2]: ", "[10.2.0.5]:14727") CLOSED_BY_PEER("[1,0]<stderr>:[rank0]: ", "[10.2.0.5]:14729")
                    "mpirun noticed that process rank 3 with PID 0 on node gn11 exited on signal 6 (Aborted).\n"}},
         .want = {"native-abort rank 3"}},
        {.name = "what it had in a buffer comes behind its traceback, and the others go on",
         .files = {{"console.log", "[default0]:" I_AM("0", "3", "900", "gn11") "[default1]:" I_AM("1", "3", "901", "gn11") "[default2]:" I_AM("2", "3", "902", "gn11")
                    NO_MEMORY("[default2]:") "[default2]:" STEP("4", "2.60") "[default2]:" STEP("5", "2.59") "[default0]:" STEP("4", "2.60") "[default1]:" STEP("4", "2.60")
                    "[default0]:" STEP("5", "2.60") "[default1]:" STEP("5", "2.60") LONG_TRACE("[default0]:") LONG_TRACE("[default1]:")}},
         .want = {"host-memory-error rank 2"}},
    };
    LOGS_CASES(rows);
}

#define COORDINATION(task)                                                                                                                \
    "2026-03-09 10:05:55.684022: E external/org_tensorflow/tensorflow/tsl/distributed_runtime/coordination/coordination_service.cc:956] /job:jax_worker/"     \
    "replica:0/task:" task " has been set to ERROR in coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:" task                           \
    " heartbeat timeout. This indicates that the remote task has failed, got preempted, or crashed unexpectedly.\n"

T_TEST(a_crash_is_why_it_is_awaited)
{
    static const struct logs_case rows[] = {
        {.name = "three crashed, and one of them is said to be missing",
         .files = {{"job.out", "srun: error: gn11: task 15: Segmentation fault\nsrun: error: gn12: task 16: Segmentation fault\n"
                    "srun: error: gn12: task 17: Segmentation fault\n" COORDINATION("15")}},
         .want = {"segfault ranks 15-17", "segfault ranks 15,16,17"}},
        {.name = "another one is missing", .files = {{"job.out", "srun: error: gn12: task 16: Segmentation fault\n" COORDINATION("15")}}, .want = {"jax-distributed-barrier rank 15"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
