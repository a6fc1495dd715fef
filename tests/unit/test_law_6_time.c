/* SPDX-License-Identifier: Apache-2.0 */
/* Law 6: time is an interval. Overlap means "not ordered", never a coin toss; a host's skew is estimated from waits that all
 * hosts shared. */
#include "law_lines.h"

#define DIED(r, at, what) "2026-03-09 " at ",000 ERROR [fit] leaving the loop\n" what("[rank" r "]: ")
/* An error that carries its own time on its line, as a c10 line does. */
#define C10_FAULT(r, at, fraction)                                                                                         \
    "[rank" r "]:[E309 " at "." fraction " ProcessGroupNCCL.cpp:2268] [PG ID 0 PG GUID 0(default_pg) Rank " r "] Process group "  \
    "watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n"
#define KERNEL_XID(host, at, bus, xid, text) KERNEL(host, at, "NVRM: Xid (PCI:0000:" bus "): " xid ", pid='<unknown>', name=<unknown>, " text)

T_TEST(overlap_is_no_order)
{
    static const struct logs_case rows[] = {
        {.name = "two causes on two hosts in the same second",
         .files = {{"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "2", "1b000")}, {"rank1.log", NCCL_INIT("gn12", "901", "0", "1", "2", "43000")},
                   {"kern-gn11.log", KERNEL_XID("gn11", "10:03:20", "1b:00", "79", "GPU has fallen off the bus.")},
                   {"kern-gn12.log", KERNEL_XID("gn12", "10:03:20", "43:00", "48", "DBE (double bit error) detected in SRAM")}},
         .want = {"!* rank *"}},
        {.name = "two tracebacks without any time, in two files",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") OOM("[rank0]: ")}, {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") STEPS}, {"rank3.log", I_AM("3", "4", "903", "gn12") ILLEGAL("[rank3]: ")}},
         .want = {"!* rank *"}},
        {.name = "the fraction of a c10 line is another clock: .02 is not before .91",
         .files = {{"rank0.log", I_AM("0", "4", "900", "gn11") C10_FAULT("0", "10:04:30", "910394857")}, {"rank1.log", I_AM("1", "4", "901", "gn11") STEPS},
                   {"rank2.log", I_AM("2", "4", "902", "gn12") C10_FAULT("2", "10:04:30", "020394857")}, {"rank3.log", I_AM("3", "4", "903", "gn12") STEPS}},
         .want = {"!* rank *"}},
    };
    LOGS_CASES(rows);
}

T_TEST(what_is_ordered_is_ordered)
{
    static const struct logs_case rows[] = {
        {.name = "two causes on one host three minutes apart",
         .files = {{"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "2", "1b000")}, {"rank1.log", NCCL_INIT("gn11", "901", "1", "1", "2", "43000")},
                   {"kern-gn11.log", KERNEL_XID("gn11", "10:03:20", "43:00", "48", "DBE (double bit error) detected in SRAM")
                    KERNEL_XID("gn11", "10:06:20", "1b:00", "79", "GPU has fallen off the bus.")}},
         .want = {"* rank 1"}},
        {.name = "one cause on two hosts three minutes apart: the host of the first is named",
         .files = {{"rank0.log", NCCL_INIT("gn11", "900", "0", "0", "2", "1b000")}, {"rank1.log", NCCL_INIT("gn12", "901", "0", "1", "2", "43000")},
                   {"kern-gn11.log", KERNEL_XID("gn11", "10:06:20", "1b:00", "79", "GPU has fallen off the bus.")},
                   {"kern-gn12.log", KERNEL_XID("gn12", "10:03:20", "43:00", "79", "GPU has fallen off the bus.")}},
         .want = {"* rank 1", "* node gn12"}},
        {.name = "the order of files is not the order of time",
         .files = {{"rank0.log", I_AM("0", "2", "900", "gn11") C10_FAULT("0", "10:09:30", "110394857")},
                   {"rank1.log", I_AM("1", "2", "901", "gn11") C10_FAULT("1", "10:04:30", "910394857")}},
         .want = {"* rank 1", "* all-ranks"}},
    };
    LOGS_CASES(rows);
}

/* gn12's clock is 30 s ahead. Rank 3 there failed at 10:03:10 by gn11's clock and printed 10:03:40; rank 1 on gn11 failed at 10:03:25.
 * Both hosts waited in collective 412 from 10:02:30 on: that shows the skew. */
#define WAITS(r, host, dev, at) NCCL_INIT(host, "90" r, dev, r, "4", "1b000") WAITED(r, at, r, "412", "ALLREDUCE", "600000")
#define FAULT(r, host, dev, at) NCCL_INIT(host, "90" r, dev, r, "4", "43000") C10_FAULT(r, at, "500000000")

T_TEST(skew_is_estimated_from_shared_waits)
{
    static const struct logs_case rows[] = {
        {.name = "the later print of the fast clock was the earlier fault",
         .files = {{"rank0.log", WAITS("0", "gn11", "0", "10:12:30")}, {"rank1.log", FAULT("1", "gn11", "1", "10:03:25")},
                   {"rank2.log", WAITS("2", "gn12", "0", "10:13:00")}, {"rank3.log", FAULT("3", "gn12", "1", "10:03:40")}},
         .want = {"* rank 3"}},
        {.name = "the same prints of hosts that agree: the earlier one",
         .files = {{"rank0.log", WAITS("0", "gn11", "0", "10:12:30")}, {"rank1.log", FAULT("1", "gn11", "1", "10:03:25")},
                   {"rank2.log", WAITS("2", "gn12", "0", "10:12:30")}, {"rank3.log", FAULT("3", "gn12", "1", "10:03:40")}},
         .want = {"* rank 1"}},
    };
    LOGS_CASES(rows);
}

#define AT(t) "[pod/fit-worker-0/x] 2026-03-09T10:04:" t "Z "
#define ZERO(p) TRACE(p, "fit.py", "24", "mean", "ZeroDivisionError: division by zero")

T_TEST(an_error_of_its_own_logic_comes_before_one_that_weighs_more)
{
    static const struct logs_case rows[] = {
        {.name = "half a second apart in one merged log",
         .files = {{"all.log", KEY_ERROR("2026-03-09T10:04:27.100Z [rank2]: ") ZERO("2026-03-09T10:04:27.700Z [rank0]: ")
                    CLOSED_BY_PEER("2026-03-09T10:04:32.500Z [rank1]: ", "[10.2.0.5]:14727")}},
         .want = {"python-exception rank 2"}},
        {.name = "the other way round",
         .files = {{"all.log", ZERO("2026-03-09T10:04:27.100Z [rank0]: ") KEY_ERROR("2026-03-09T10:04:27.700Z [rank2]: ")
                    CLOSED_BY_PEER("2026-03-09T10:04:32.500Z [rank1]: ", "[10.2.0.5]:14727")}},
         .want = {"zero-division rank 0"}},
    };
    LOGS_CASES(rows);
}

int main(void)
{
    return t_run();
}
