/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation n fails, for n = 0, 1, 2 and on, through the whole engine and every writer: either one clean sentence or a report
 * (what is lost must be less, not other); nothing leaks and nothing is read that is not there (the sanitizers see to that). */
#include "base/alloc.h"
#include "report/writer.h"
#include "support/logs.h"
#include "support/pipeline.h"
#include "support/t.h"

#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#else
static int __lsan_do_recoverable_leak_check(void)
{
    return 0;
}
#endif

static void small_run(struct logs *l)
{
    logs_begin(l);
    logs_add(l, "rank0.log", "2026-03-09 10:00:00,410 INFO [fit] rank 0/2 pid 900 ready on gn11\n"
                             "2026-03-09 10:01:00,000 INFO [fit] step 10 loss 2.91 grad_norm 1.21 lr 3.0e-04\n"
                             "[rank0]:[E309 10:14:30.120394857 ProcessGroupNCCL.cpp:688] [Rank 0] Watchdog caught collective operation timeout: "
                             "WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n");
    logs_add(l, "rank1.log", "2026-03-09 10:00:00,410 INFO [fit] rank 1/2 pid 901 ready on gn12\n"
                             "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ivo/fit/blocks.py\", line 9, in forward\n"
                             "[rank1]:     y = f(x)\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.25 GiB. GPU 0 has a total "
                             "capacity of 79.11 GiB of which 1.06 GiB is free.\n");
    logs_add(l, "kern.log", "Mar  9 10:05:00 gn12 kernel: NVRM: Xid (PCI:0000:9b:00): 31, pid=901, name=python3, MMU Fault\n");
}

/* Whether allocation n was still reached. */
static bool run_with_failure(const struct logs *l, long n)
{
    struct fr_engine_options o = {.size = sizeof o, .threads = 1};
    struct fr_engine *e = NULL;
    struct fr_err err = {0};
    size_t before = fr_alloc_calls();
    fr_alloc_fail_after(n);
    int rc = fr_engine_new(&o, &e, &err);
    rc = rc == 0 ? fr_engine_add(e, l->dir, &err) : rc;
    rc = rc == 0 ? fr_engine_run(e, &err) : rc;
    fr_alloc_fail_after(-1);
    bool reached = fr_alloc_calls() - before > (size_t)n;
    t_checks_++;
    if (rc != 0 && (rc >= 0 || err.code != -rc || err.msg[0] == '\0')) {
        T_FAIL("allocation %ld: returned %d with code %d and '%s'", n, rc, err.code, err.msg);
    }
    if (rc == 0) {
        const struct fr_report *r = fr_engine_report(e);
        struct fr_write_options w = {.why = true};
        FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
        T_OK(r != NULL);
        if (r != NULL && fr_writer_find(FR_SV("json"))->write(r, &w, &out, &err) != 0) {
            T_FAIL("allocation %ld: a report that cannot be written: %s", n, err.msg);
        }
        if (r != NULL && reached && r->verdict == FR_VERDICT_HEALTHY) {
            T_FAIL("allocation %ld: a failed run is called healthy", n);
        }
    }
    fr_engine_free(&e);
    return reached;
}

enum { REACHED = 40, DONE, WRONG, LEAKS }; /* not 1, with which a sanitizer ends a process that it stopped */

/* In a process of its own, so that a crash is one finding and not the end; its words are kept in `log`. */
static int in_child(const struct logs *l, long n, FILE *log)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(log), STDERR_FILENO);
        dup2(fileno(log), STDOUT_FILENO);
        int before = t_failed_;
        bool reached = run_with_failure(l, n);
        fflush(NULL);
        _exit(t_failed_ != before ? WRONG : __lsan_do_recoverable_leak_check() ? LEAKS : reached ? REACHED : DONE);
    }
    int status = 0;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

/* Places in the source where a failed allocation is known to do harm: the words of a finding name one of them. One that is not met any
 * more must leave the list. */
static const char *const waits[] = {NULL};

static int known(FILE *log, bool *met)
{
    char line[600];
    rewind(log);
    while (fgets(line, sizeof line, log) != NULL) {
        for (int i = 0; waits[i] != NULL; i++) {
            if (strstr(line, waits[i]) != NULL) {
                met[i] = true;
                return i;
            }
        }
    }
    return -1;
}

static void show(FILE *log)
{
    char line[600];
    rewind(log);
    for (int i = 0; i < 12 && fgets(line, sizeof line, log) != NULL; i++) {
        fprintf(stderr, "    %s", line);
    }
}

T_TEST(every_allocation_of_a_diagnosis)
{
    struct logs l;
    bool met[sizeof waits / sizeof waits[0]] = {0};
    long n = 0;
    small_run(&l);
    for (int end = REACHED; n < 20000 && end != DONE; n++) {
        FILE *log = tmpfile();
        end = in_child(&l, n, log);
        t_checks_++;
        if (end != REACHED && end != DONE && known(log, met) < 0) {
            T_FAIL("allocation %ld: %s", n, end == WRONG ? "wrong" : end == LEAKS ? "leaks" : "crashes");
            show(log);
        }
        fclose(log);
    }
    T_OK(n > 50 && n < 20000);
    for (int i = 0; waits[i] != NULL; i++) {
        if (!met[i]) {
            T_FAIL("not met any more, take it off the list: %s", waits[i]);
        }
    }
    printf("# %ld allocations\n", n);
    logs_end(&l);
}

T_TEST(every_allocation_of_every_writer)
{
    struct logs l;
    small_run(&l);
    T_EQ_INT(logs_run(&l), 0);
    for (unsigned i = 0; l.report != NULL && i < fr_writers_count; i++) {
        long n = 0;
        for (bool reached = true; reached && n < 100000; n++) {
            struct fr_write_options w = {.why = true};
            FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
            struct fr_err err = {0};
            size_t before = fr_alloc_calls();
            fr_alloc_fail_after(n);
            int rc = fr_writers[i]->write(l.report, &w, &out, &err);
            fr_alloc_fail_after(-1);
            reached = fr_alloc_calls() - before > (size_t)n;
            t_checks_++;
            if (reached != (rc != 0 || !fr_buf_ok(&out))) { /* a lost allocation must be told: half a document is none */
                T_FAIL("%s: allocation %ld: returned %d, buffer %s", fr_writers[i]->name, n, rc, fr_buf_ok(&out) ? "whole" : "failed");
            }
        }
    }
    logs_end(&l);
}

T_TEST(every_allocation_of_a_merge)
{
    struct logs l;
    small_run(&l);
    const char *dir = l.dir;
    bool reached = true;
    for (long n = 0; reached && n < 1000; n++) {
        struct pipeline p;
        struct fr_evidence_set a = {0}, b = {0};
        uint32_t first = 0, others[] = {1, 2};
        pipeline_open(&p, &dir, 1, NULL, FR_ENGINE_AUTO);
        pipeline_collect(&p, &first, 1, &a);
        pipeline_collect(&p, others, 2, &b);
        size_t before = fr_alloc_calls();
        fr_alloc_fail_after(n);
        int rc = fr_evidence_merge(&a, &b);
        fr_alloc_fail_after(-1);
        reached = fr_alloc_calls() - before > (size_t)n;
        T_EQ_INT(rc, reached ? -FR_NOMEM : 0);
        T_EQ_INT(a.sources.n + b.sources.n, 3); /* in one of the two, and in one only */
        fr_evidence_set_release(&a);
        fr_evidence_set_release(&b);
        pipeline_close(&p);
    }
    logs_end(&l);
}

int main(void)
{
    return t_run();
}
