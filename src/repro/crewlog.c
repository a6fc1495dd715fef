/* SPDX-License-Identifier: Apache-2.0 */
/* crewlog: see crewlog.h. Order, blanks and file positions are those of PyTorch 2.8's
 * ProcessGroupNCCL.cpp and of torchrun's api.py; the fraction of a C++ time is CLOCK_MONOTONIC's,
 * as it is there. */
#include "repro/crewlog.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RUN "none_reprolog" /* run id and the 8 letters that torchrun draws */
#define PATH_MAX_ 4096

/* ---- files ---- */

static int make_folder(const char *path, struct fr_err *err)
{
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return fr_err_set(err, FR_IO, "cannot make the folder '%.160s': %s", path, strerror(errno));
    }
    return 0;
}

int fr_crewlog_folders(const char *folder, uint32_t world, struct fr_err *err)
{
    static const char *const below[] = {"", "/" RUN, "/" RUN "/attempt_0"};
    char path[PATH_MAX_];
    int rc = 0;
    for (size_t i = 0; i < sizeof below / sizeof *below && rc == 0; i++) {
        snprintf(path, sizeof path, "%s%s", folder, below[i]);
        rc = make_folder(path, err);
    }
    for (uint32_t i = 0; i < world && rc == 0; i++) {
        snprintf(path, sizeof path, "%s/" RUN "/attempt_0/%u", folder, i);
        rc = make_folder(path, err);
    }
    return rc;
}

static int open_log(const char *folder, int32_t rank, const char *name)
{
    char path[PATH_MAX_];
    snprintf(path, sizeof path, "%s/" RUN "/attempt_0/%d/%s", folder, rank, name);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

void fr_ranklog_open(struct fr_ranklog *l, const char *folder, int32_t rank)
{
    *l = (struct fr_ranklog){rank, open_log(folder, rank, "stdout.log"),
                             open_log(folder, rank, "stderr.log")};
}

void fr_ranklog_close(struct fr_ranklog *l)
{
    if (l->out >= 0) {
        close(l->out);
    }
    if (l->err >= 0) {
        close(l->err);
    }
    l->out = l->err = -1;
}

void fr_ranklog_out(struct fr_ranklog *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (l->out >= 0) {
        (void)vdprintf(l->out, fmt, ap);
    }
    va_end(ap);
}

static struct tm local_now(struct timespec *ret)
{
    struct tm tm;
    clock_gettime(CLOCK_REALTIME, ret);
    localtime_r(&ret->tv_sec, &tm);
    return tm;
}

const char *fr_ranklog_stamp(char *ret)
{
    struct timespec t;
    const struct tm tm = local_now(&t);
    const size_t n = strftime(ret, 30, " [%Y-%m-%d %H:%M:%S", &tm);
    snprintf(ret + n, 40 - n, ".%06ld]", t.tv_nsec / 1000);
    return ret;
}

/* ---- the watchdog ---- */

/* One line of c10's logger. */
__attribute__((format(printf, 3, 4))) static void c10(struct fr_ranklog *l, int at, const char *fmt,
                                                      ...)
{
    char text[2048];
    struct timespec wall, mono;
    const struct tm tm = local_now(&wall);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (l->err >= 0) {
        (void)dprintf(l->err, "[rank%d]:[E%d %02d:%02d:%02d.%09ld ProcessGroupNCCL.cpp:%d] %s\n",
                      l->rank, (tm.tm_mon + 1) * 100 + tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                      mono.tv_nsec, at, text);
    }
}

static const char *group_prefix(const struct fr_ring_group *g, char *ret, size_t n)
{
    snprintf(ret, n, "[PG ID %u PG GUID %u(%s) Rank %u] ", g->id, g->id, g->desc, g->rank);
    return ret;
}

static const char *timeout_text(const struct fr_ring *r, char *ret, size_t n)
{
    const struct fr_ring_fault *f = &r->fault;
    snprintf(ret, n,
             "[Rank %u] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%lld, "
             "OpType=%s, NumelIn=%u, NumelOut=%u, "
             "Timeout(ms)=%u) ran for %u milliseconds before timing out.",
             f->group->rank, (long long)f->seq, fr_ring_op_name(f->op), f->numel, f->numel,
             r->timeout_ms, f->ran_ms);
    return ret;
}

void fr_ranklog_timeout(struct fr_ranklog *l, const struct fr_ring *r)
{
    const struct fr_ring_fault *f = &r->fault;
    const struct fr_ring_group *world = &r->group[0];
    char pg[120], all[120], text[400];
    group_prefix(f->group, pg, sizeof pg);
    group_prefix(world, all, sizeof all);
    c10(l, 655, "%s", timeout_text(r, text, sizeof text));
    c10(l, 2299,
        "%s failure detected by watchdog at work sequence id: %lld PG status: last enqueued work: "
        "%lld, last completed work: %lld",
        pg, (long long)f->seq, (long long)f->enqueued, (long long)f->completed);
    c10(l, 693,
        "Stack trace of the failed collective not found, potentially because FlightRecorder is "
        "disabled. You can enable it by "
        "setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.");
    c10(l, 2147, "%sFirst PG on this rank to signal dumping.", pg);
    c10(l, 1836,
        "%sReceived a dump signal due to a collective timeout from this local rank and we will try "
        "our best to dump the debug "
        "info. Last enqueued NCCL work: %lld, last completed NCCL work: %lld.This is most likely "
        "caused by incorrect usages of "
        "collectives, e.g., wrong sizes used across ranks, the order of collectives is not same "
        "for all ranks or the scheduled "
        "collective, for some reason, didn't run. Additionally, this can be caused by GIL deadlock "
        "or other reasons such as "
        "network errors or bugs in the communications library (e.g. NCCL), etc. ",
        all, (long long)world->enqueued, (long long)world->completed);
    c10(l, 1574,
        "%sProcessGroupNCCL preparing to dump debug info. Include stack trace: 1, only active "
        "collectives: 0",
        all);
}

void fr_ranklog_teardown(struct fr_ranklog *l, const struct fr_ring *r)
{
    char pg[120], text[400];
    group_prefix(r->fault.group, pg, sizeof pg);
    timeout_text(r, text, sizeof text);
    c10(l, 705,
        "[Rank %u] Some NCCL operations have failed or timed out. Due to the asynchronous nature "
        "of CUDA kernels, subsequent GPU "
        "operations might run on corrupted/incomplete data.",
        r->fault.group->rank);
    c10(l, 719, "[Rank %u] To avoid data inconsistency, we are taking the entire process down.",
        r->fault.group->rank);
    c10(l, 2092, "%sProcess group watchdog thread terminated with exception: %s", pg, text);
    if (l->err >= 0) {
        (void)dprintf(l->err,
                      "terminate called after throwing an instance of 'c10::DistBackendError'\n"
                      "  what():  %sProcess group watchdog thread terminated with exception: %s\n"
                      "Exception raised from checkTimeout at "
                      "/pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:658 (most "
                      "recent call first):\n",
                      pg, text);
    }
}

/* ---- Python ---- */

void fr_ranklog_raise(struct fr_ranklog *l, const struct fr_ranklog_frame *frames,
                      const char *exception)
{
    if (l->err < 0) {
        return;
    }
    (void)dprintf(l->err, "[rank%d]: Traceback (most recent call last):\n", l->rank);
    for (; frames->file != NULL; frames++) {
        (void)dprintf(l->err, "[rank%d]:   File \"%s\", line %d, in %s\n[rank%d]:     %s\n",
                      l->rank, frames->file, frames->line, frames->func, l->rank, frames->source);
    }
    (void)dprintf(l->err, "[rank%d]: %s\n", l->rank, exception);
}

/* ---- torchrun ---- */

/* One line of torchrun's own logger; Python pads the date that C++ does not. */
__attribute__((format(printf, 4, 5))) static void agent(int fd, char level, const char *at,
                                                        const char *fmt, ...)
{
    char text[400];
    struct timespec t;
    const struct tm tm = local_now(&t);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)dprintf(fd, "%c%02d%02d %02d:%02d:%02d.%03ld000 %d torch/distributed/%s] %s\n", level,
                  tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, t.tv_nsec / 1000000,
                  (int)getpid(), at, text);
}

/* What torchrun says at the start of every run with more than one process. */
static void omp_warning(int fd)
{
    static const char stars[] = "*****************************************";
    agent(fd, 'W', "run.py:774", "%s", "");
    agent(fd, 'W', "run.py:774", "%s", stars);
    agent(fd, 'W', "run.py:774",
          "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to "
          "avoid your system "
          "being overloaded, please further tune the variable for optimal performance in your "
          "application as needed. ");
    agent(fd, 'W', "run.py:774", "%s", stars);
}

static void launcher_traceback(int fd)
{
    (void)dprintf(
        fd, "Traceback (most recent call last):\n"
            "  File \"/usr/local/bin/torchrun\", line 8, in <module>\n"
            "    sys.exit(main())\n"
            "  File "
            "\"/usr/local/lib/python3.12/dist-packages/torch/distributed/elastic/multiprocessing/"
            "errors/__init__.py\", "
            "line 357, in wrapper\n"
            "    return f(*args, **kwargs)\n"
            "  File \"/usr/local/lib/python3.12/dist-packages/torch/distributed/run.py\", line "
            "901, in main\n"
            "    run(args)\n"
            "  File \"/usr/local/lib/python3.12/dist-packages/torch/distributed/run.py\", line "
            "892, in run\n"
            "    elastic_launch(\n"
            "  File \"/usr/local/lib/python3.12/dist-packages/torch/distributed/launcher/api.py\", "
            "line 143, in __call__\n"
            "    return launch_agent(self._config, self._entrypoint, list(args))\n"
            "  File \"/usr/local/lib/python3.12/dist-packages/torch/distributed/launcher/api.py\", "
            "line 277, in launch_agent\n"
            "    raise ChildFailedError(\n"
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n");
}

static void table_row(int fd, const struct fr_crew_end *e, uint32_t number, uint32_t rank)
{
    struct timespec t;
    const struct tm tm = local_now(&t);
    char name[40] = "";
    if (e->exitcode < 0) {
        snprintf(name, sizeof name, "SIG%s", sigabbrev_np(-e->exitcode));
    }
    (void)dprintf(fd,
                  "[%u]:\n  time      : %04d-%02d-%02d_%02d:%02d:%02d\n  host      : localhost\n  "
                  "rank      : %u (local_rank: %u)\n"
                  "  exitcode  : %d (pid: %d)\n  error_file: <N/A>\n",
                  number, tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                  tm.tm_sec, rank, rank, e->exitcode, (int)e->pid);
    if (e->exitcode < 0) {
        (void)dprintf(fd, "  traceback : Signal %d (%s) received by PID %d\n", -e->exitcode, name,
                      (int)e->pid);
    } else {
        (void)dprintf(fd, "  traceback : To enable traceback see: "
                          "https://pytorch.org/docs/stable/elastic/errors.html\n");
    }
}

static void table(int fd, const char *script, const struct fr_crew_end *ends, uint32_t world,
                  uint32_t first)
{
    static const char thick[] = "============================================================";
    static const char thin[] = "------------------------------------------------------------";
    uint32_t others = 0;
    (void)dprintf(fd, "%s\n%s FAILED\n%s\nFailures:\n", thick, script, thin);
    for (uint32_t i = 0; i < world; i++) {
        if (i != first && ends[i].exitcode != 0) {
            table_row(fd, &ends[i], ++others, i);
        }
    }
    if (others == 0) {
        (void)dprintf(fd, "  <NO_OTHER_FAILURES>\n");
    }
    (void)dprintf(fd, "%s\nRoot Cause (first observed failure):\n", thin);
    table_row(fd, &ends[first], 0, first);
    (void)dprintf(fd, "%s\n", thick);
}

int fr_crewlog_launcher(const char *folder, const char *script, const struct fr_crew_end *ends,
                        uint32_t world, struct fr_err *err)
{
    char path[PATH_MAX_];
    uint32_t first = 0;
    snprintf(path, sizeof path, "%s/torchrun.log", folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return fr_err_set(err, FR_IO, "cannot create '%.160s': %s", path, strerror(errno));
    }
    omp_warning(fd);
    while (first < world && ends[first].exitcode == 0) {
        first++;
    }
    if (first < world) {
        agent(fd, 'E', "elastic/multiprocessing/api.py:874",
              "failed (exitcode: %d) local_rank: %u (pid: %d) of binary: /usr/bin/python3",
              ends[first].exitcode, first, (int)ends[first].pid);
        launcher_traceback(fd);
        table(fd, script, ends, world, first);
    }
    close(fd);
    return 0;
}
