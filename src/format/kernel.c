/* SPDX-License-Identifier: Apache-2.0 */
/* kernel: the clocks of kernel logs (since boot, dmesg -T, /dev/kmsg; syslog and ISO shapes are
 * other dialects) and what the kernel says about GPUs and dead processes: Xid, SXid, OOM kills,
 * segfaults, memory failures. */
#include "format/dialect.h"

/* "6,1234,5140900,-;text" */
static bool peel_kmsg(struct fr_record *rec)
{
    fr_sv at = rec->text, flags;
    uint64_t prio = 0, seq = 0, us = 0;
    if (!fr_lex_digits(&at, 1, 4, &prio) || !fr_lex_char(&at, ',') ||
        !fr_lex_digits(&at, 1, 18, &seq) || !fr_lex_char(&at, ',') ||
        !fr_lex_digits(&at, 1, 15, &us) || !fr_lex_char(&at, ',') ||
        !fr_lex_until(&at, ';', &flags) || flags.n > 40) {
        return false;
    }
    static const uint8_t levels[] = {FR_LEVEL_FATAL, FR_LEVEL_FATAL, FR_LEVEL_FATAL,
                                     FR_LEVEL_ERROR, FR_LEVEL_WARN,  FR_LEVEL_INFO,
                                     FR_LEVEL_INFO,  FR_LEVEL_DEBUG};
    rec->when = (struct fr_when){(int64_t)us * 1000, 1000, FR_TIME_BASIS_BOOT};
    rec->level = levels[prio & 7];
    rec->is_kernel = true;
    rec->text = at;
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text;
    struct fr_when when;
    if (fr_is_digit(at.p[0])) {
        return peel_kmsg(rec);
    }
    if (fr_lex_lit(&at, "kernel: ") || fr_lex_lit(&at, "kern  :")) {
        rec->is_kernel = true;
        rec->text = at;
        return true;
    }
    if (at.p[0] == '<') { /* "<4>[  123.456789] " of dmesg -r */
        uint64_t prio = 0;
        fr_sv behind = fr_sv_skip(at, 1);
        if (!fr_lex_digits(&behind, 1, 3, &prio) || !fr_lex_lit(&behind, ">[")) {
            return false;
        }
        at = (fr_sv){behind.p - 1, behind.n + 1};
    }
    if (!fr_lex_char(&at, '[')) {
        return false;
    }
    fr_lex_spaces(&at);
    if (fr_stamp_boot(&at, &when) && when.resolution_ns == 1000) {
        (void)fr_lex_char(&at, '+');
        rec->when = when;
    } else if (fr_stamp_ctime(&at, ctx->year, &when)) {
        rec->when = when;
    } else {
        return false;
    }
    fr_sv thread;
    if (at.n > 0 && at.p[0] == ']') {
        at = fr_sv_skip(at, 1);
    } else if (!fr_lex_until(&at, ']', &thread) ||
               thread.n > 16) { /* CONFIG_PRINTK_CALLER: "[    1.2][ T123]" begins anew */
        return false;
    }
    if (fr_lex_peek(at, 0) == '[' &&
        (fr_lex_peek(at, 1) == ' ' || fr_lex_peek(at, 1) == 'T' || fr_lex_peek(at, 1) == 'C') &&
        fr_sv_chr(fr_sv_head(at, 14), ']') != FR_NPOS) {
        (void)fr_lex_until(&at, ']', &thread);
    }
    rec->is_kernel = true;
    fr_rec_move(rec, at);
    return true;
}

/* "(PCI:0000:9b:00)" or "(0000:03:00)" or "(PCI:0000:05:00.0)" at the cursor. */
static bool take_pci(const struct fr_peel_ctx *ctx, struct fr_draft *d, fr_sv *s)
{
    fr_sv inside, address;
    fr_lex_spaces(s);
    if (!fr_lex_char(s, '(') || !fr_lex_until(s, ')', &inside) || inside.n > 80 ||
        !fr_lex_token(&inside, &address)) {
        return false;
    }
    fr_draft_text(d, FR_KEY_PCI, fr_pci_normal(ctx->scratch, address));
    return fr_lex_lit(s, ": ");
}

/* "NVRM: Xid (PCI:0000:9b:00): 79, pid=4242, name=python3, GPU has fallen off the bus." */
static bool xid_fact(const struct fr_peel_ctx *ctx, struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    uint64_t code = 0;
    bool is_switch = fr_lex_find(text, "SXid ", &at);
    if (!is_switch && !fr_lex_find(text, "Xid ", &at)) {
        return false;
    }
    d->fact = is_switch ? FR_FACT_SXID : FR_FACT_XID;
    if (!take_pci(ctx, d, &at)) {
        return false;
    }
    const char *begin = at.p;
    if (!fr_lex_digits(&at, 1, 6, &code)) {
        return false;
    }
    fr_draft_num(d, FR_KEY_XID, (int64_t)code, fr_sv_range(begin, at.p));
    (void)fr_lex_char(&at, ',');
    fr_lex_spaces(&at);
    if (fr_lex_lit(&at, "pid=")) {
        const char *digits = at.p;
        uint64_t pid = 0;
        if (fr_lex_digits(&at, 1, 10, &pid)) {
            fr_draft_num(d, FR_KEY_PID, (int64_t)pid, fr_sv_range(digits, at.p));
        } else {
            (void)fr_lex_until(&at, ',', &name);
            at = (fr_sv){at.p - 1, at.n + 1};
        }
        if (fr_lex_lit(&at, ", name=")) {
            size_t end = fr_sv_find(at, FR_SV(", "));
            fr_draft_text(d, FR_KEY_MODULE, fr_sv_head(at, end));
            at = end == FR_NPOS ? fr_sv_skip(at, at.n) : fr_sv_skip(at, end);
        }
        (void)fr_lex_lit(&at, ", ");
    }
    fr_draft_text(d, FR_KEY_REASON, at);
    return true;
}

/* nvidia-smi -L: "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-509665ad-...)" */
static bool listed_gpu(struct fr_draft *d, fr_sv text)
{
    fr_sv at = text, uuid;
    int32_t gpu = -1;
    if (!fr_lex_lit(&at, "GPU ") || !fr_lex_index(&at, &gpu) || !fr_lex_lit(&at, ": ") ||
        !fr_lex_find(at, " (UUID: ", &at) || !fr_sv_starts(at, FR_SV("GPU-")) ||
        !fr_lex_until(&at, ')', &uuid)) {
        return false;
    }
    d->fact = FR_FACT_GPU_MAP;
    fr_draft_num(d, FR_KEY_GPU, gpu, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_UUID, uuid);
    return true;
}

/* "NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-..."; "NVRM: GPU 0000:8a:00.0: GPU has fallen off the
 * bus." is signal enough */
static bool map_fact(const struct fr_peel_ctx *ctx, struct fr_draft *d, fr_sv text)
{
    fr_sv at, uuid;
    if (!fr_lex_find(text, "GPU at PCI:", &at)) {
        return listed_gpu(d, text);
    }
    size_t mark = fr_sv_find(at, FR_SV(": GPU-"));
    if (mark == FR_NPOS) {
        return false;
    }
    d->fact = FR_FACT_GPU_MAP;
    fr_draft_text(d, FR_KEY_PCI, fr_pci_normal(ctx->scratch, fr_sv_head(at, mark)));
    at = fr_sv_skip(at, mark + 2);
    if (fr_lex_token(&at, &uuid)) {
        fr_draft_text(d, FR_KEY_UUID, uuid);
    }
    return true;
}

/* "Memory cgroup out of memory: Killed process 63214 (python) total-vm:.."; "Out of memory: Kill
 * process 1 (x)"; "oom-kill:constraint=CONSTRAINT_MEMCG,...,task=python,pid=7899,uid=0" */
static bool oom_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    int64_t pid = 0;
    fr_sv printed;
    d->fact = FR_FACT_OOM_KILL;
    if (fr_sv_has(text, FR_SV("oom-kill:constraint=")) &&
        fr_lex_num_after(text, FR_SV(",pid="), &pid, &printed)) {
        fr_draft_num(d, FR_KEY_PID, pid, printed);
        fr_draft_text(d, FR_KEY_REASON,
                      fr_sv_has(text, FR_SV("CONSTRAINT_MEMCG")) ? FR_SV("memcg")
                                                                 : FR_SV("global"));
        if (fr_lex_find(text, ",task=", &at) && fr_lex_until(&at, ',', &name)) {
            fr_draft_text(d, FR_KEY_MODULE, name);
        }
        if (fr_lex_find(text, "task_memcg=", &at) && fr_lex_until(&at, ',', &name)) {
            fr_draft_text(d, FR_KEY_PATH, name);
        }
        return true;
    }
    if (!fr_lex_num_after(text, FR_SV("Killed process "), &pid, &printed) &&
        !fr_lex_num_after(text, FR_SV("Kill process "), &pid, &printed)) {
        return false;
    }
    fr_draft_num(d, FR_KEY_PID, pid, printed);
    fr_draft_text(d, FR_KEY_REASON,
                  fr_sv_has(text, FR_SV("cgroup out of memory")) ? FR_SV("memcg")
                                                                 : FR_SV("global"));
    at = fr_sv_range(printed.p + printed.n, text.p + text.n);
    if (fr_lex_spaces(&at) > 0 && fr_lex_char(&at, '(') && fr_lex_until(&at, ')', &name)) {
        fr_draft_text(d, FR_KEY_MODULE, name);
    }
    (void)fr_draft_num_after(d, FR_KEY_SIZE, text, FR_SV("anon-rss:"));
    return true;
}

/* User space: earlyoom's "sending SIGKILL to process 4242 uid 1000 "python": oom_score 912, VmRSS
 * ..", systemd-oomd's "Killed /user.slice/x.service due to memory pressure for ..", and systemd's
 * "x.service: systemd-oomd killed 12 process(es) in this unit." */
static bool user_oom_fact(struct fr_draft *d, fr_sv text)
{
    fr_sv at, name;
    uint64_t pid = 0;
    d->fact = FR_FACT_OOM_KILL;
    if ((fr_lex_find(text, "sending SIGKILL to process ", &at) ||
         fr_lex_find(text, "sending SIGTERM to process ", &at)) &&
        (fr_sv_has(text, FR_SV("oom_score")) || fr_sv_has(text, FR_SV("badness")))) {
        const char *digits = at.p;
        if (!fr_lex_digits(&at, 1, 10, &pid)) {
            return false;
        }
        fr_draft_num(d, FR_KEY_PID, (int64_t)pid, fr_sv_range(digits, at.p));
        fr_draft_text(d, FR_KEY_REASON, FR_SV("earlyoom"));
        if (fr_lex_find(at, " \"", &at) && fr_lex_until(&at, '"', &name)) {
            fr_draft_text(d, FR_KEY_MODULE, name);
        }
        return true;
    }
    size_t mark = fr_sv_find(text, FR_SV(" due to memory pressure for "));
    if (mark != FR_NPOS && fr_lex_find(fr_sv_head(text, mark), "Killed /", &at)) {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("systemd-oomd"));
        fr_draft_text(d, FR_KEY_PATH, (fr_sv){at.p - 1, at.n + 1});
        return true;
    }
    mark = fr_sv_find(text, FR_SV(": systemd-oomd killed "));
    if (mark != FR_NPOS) {
        fr_draft_text(d, FR_KEY_REASON, FR_SV("systemd-oomd"));
        fr_draft_text(d, FR_KEY_PATH, fr_sv_head(text, mark));
        return true;
    }
    return false;
}

/* "python[4242]: segfault at 0 ip ..", "traps: python[4242] general protection fault", "Sending
 * SIGBUS to python:4242 due to .." */
static bool crash_fact(struct fr_draft *d, fr_sv text)
{
    static const struct {
        const char *text;
        int signal;
    } kinds[] = {{"segfault at ", 11},
                 {"general protection fault", 11},
                 {"trap invalid opcode", 4},
                 {"trap divide error", 8},
                 {"trap stack segment", 11}};
    fr_sv at;
    int64_t pid = 0;
    d->fact = FR_FACT_KERNEL_CRASH;
    if (fr_lex_find(text, "Sending SIGBUS to ", &at)) {
        fr_sv name;
        if (!fr_lex_until(&at, ':', &name) || !fr_lex_int(&at, &pid)) {
            return false;
        }
        fr_draft_num(d, FR_KEY_PID, pid, FR_SV_NONE);
        fr_draft_text(d, FR_KEY_MODULE, name);
        fr_draft_num(d, FR_KEY_SIGNAL, 7, FR_SV("SIGBUS"));
        return true;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t mark = fr_sv_find(text, fr_sv_z(kinds[i].text));
        fr_sv head = fr_sv_head(text, mark);
        size_t open = mark == FR_NPOS ? FR_NPOS : fr_sv_chr(head, '[');
        if (open == FR_NPOS) {
            continue;
        }
        at = fr_sv_skip(head, open + 1);
        if (!fr_lex_int(&at, &pid) || fr_lex_peek(at, 0) != ']') {
            return false;
        }
        head = fr_sv_head(head, open);
        (void)fr_lex_lit(&head, "traps: ");
        fr_draft_num(d, FR_KEY_PID, pid, FR_SV_NONE);
        fr_draft_text(d, FR_KEY_MODULE, head);
        fr_draft_num(d, FR_KEY_SIGNAL, kinds[i].signal, FR_SV_NONE);
        return true;
    }
    return false;
}

static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_NONE);
    if (d == NULL) {
        return 0;
    }
    if (xid_fact(ctx, d, rec->text) || map_fact(ctx, d, rec->text)) {
        return 1;
    }
    d->n_caps = 0;
    if (oom_fact(d, rec->text)) {
        return 1;
    }
    d->n_caps = 0;
    return user_oom_fact(d, rec->text) || (d->n_caps = 0, crash_fact(d, rec->text));
}

static const char *const literals[] = {"Xid (",
                                       "GPU at PCI:",
                                       " (UUID: GPU-",
                                       "oom-kill:constraint=",
                                       "Killed process ",
                                       "Kill process ",
                                       "sending SIGTERM to process ",
                                       "sending SIGKILL to process ",
                                       " due to memory pressure",
                                       ": systemd-oomd killed",
                                       "segfault at ",
                                       "general protection fault",
                                       "trap invalid opcode",
                                       "trap divide error",
                                       "Sending SIGBUS to ",
                                       NULL};

static const struct fr_format_sample samples[] = {
    {"[ 6781741.548779] NVRM: Xid (PCI:0000:9b:00): 79, pid=4242, name=python3, GPU has fallen off "
     "the bus.",
     "kernel=1 basis=boot fact=xid pci=0000:9b:00 xid=79 pid=4242 module=python3 reason=\"GPU has "
     "fallen off the bus.\""},
    {"[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:dc:00): 45, pid='<unknown>', name=<unknown>, "
     "Ch 00000008",
     "time=2025-02-23T16:24:18 kernel=1 fact=xid xid=45 pid=- module=<unknown> reason=\"Ch "
     "00000008\""},
    {"kernel: NVRM: Xid (PCI:0000:3b:00 GPU-I:02): 94, Contained: SM (0x1)",
     "kernel=1 fact=xid pci=0000:3b:00 xid=94 reason=\"Contained: SM (0x1)\""},
    {"NVRM: Xid (0000:03:00): 14, Channel 00000001", "kernel=1 fact=xid pci=0000:03:00 xid=14"},
    {"[   12.000001] nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault "
     "Up",
     "fact=sxid pci=0000:05:00 xid=20034 reason=\"Fatal, Link 30 LTSSM Fault Up\""},
    {"NVRM: GPU at PCI:0000:9b:00: GPU-509665ad-b600-ac93-3616-d754b23d636d",
     "fact=gpu_map pci=0000:9b:00 uuid=GPU-509665ad-b600-ac93-3616-d754b23d636d"},
    {"[ 4502.694381] Memory cgroup out of memory: Killed process 63214 (python3) "
     "total-vm:3149468kB, anon-rss:164992kB",
     "fact=oom_kill pid=63214 reason=memcg module=python3"},
    {"[ 4821.553190] Out of memory: Killed process 7 (python) total-vm:1kB, anon-rss:5kB",
     "fact=oom_kill pid=7 reason=global"},
    {"6,1234,5140900,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/slurm/"
     "job_5,task=python3,pid=7899,uid=0",
     "kernel=1 basis=boot fact=oom_kill pid=7899 reason=memcg module=python3 path=/slurm/job_5"},
    {"[  518.050606] python[4242]: segfault at 0 ip 00007f sp 00007f error 4 in "
     "libtorch_cuda.so[7f00+5e1000]",
     "fact=kernel_crash pid=4242 signal=11 module=python"},
    {"[  518.050606] traps: python3[42] general protection fault ip:7f sp:7f error:0 in "
     "libc.so.6[7f]",
     "fact=kernel_crash pid=42 signal=11 module=python3"},
    {"[  518.050606] Memory failure: 0x1234: Sending SIGBUS to python:4242 due to hardware memory "
     "corruption",
     "fact=kernel_crash pid=4242 signal=7"},
    {"[  9.000001] NVRM: Xid (PCI:0000:3b:00 GPU-I:02 GPU-CI:01): 94, pid=7194, Contained: SM "
     "(0x1). "
     "RST: No",
     "fact=xid pci=0000:3b:00 xid=94 pid=7194 module=- reason=\"Contained: SM (0x1). RST: No\""},
    {"May 15 23:09:30 gpu07 kernel: [  518.050606] NVRM: Xid (PCI:0000:01:00.0): 45, pid=9, "
     "name=python3, Ch 00000008 caused by previous Xid 94",
     "node=gpu07 fact=xid pci=0000:01:00 xid=45 pid=9 reason=\"Ch 00000008 caused by previous Xid "
     "94\""},
    {"NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
     "Reset "
     "Required)",
     "fact=xid xid=154 pid=-"},
    {"May 15 23:09:30 gpu07 earlyoom[644]: sending SIGTERM to process 40122 uid 1004 \"python\": "
     "oom_score 912, VmRSS 181022 MiB",
     "node=gpu07 fact=oom_kill pid=40122 reason=earlyoom module=python"},
    {"May 15 23:09:30 gpu07 systemd-oomd[812]: Killed /user.slice/user@4.service due to memory "
     "pressure for /user.slice being 91.22% > 50.00% for > 20s",
     "node=gpu07 fact=oom_kill pid=- reason=systemd-oomd path=/user.slice/user@4.service"},
    {"sending SIGTERM to process 4 of the pool", ""},
    {"GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-509665ad-b600-ac93-3616-d754b23d636d)",
     "fact=gpu_map gpu=3 uuid=GPU-509665ad-b600-ac93-3616-d754b23d636d"},
    {"<4>[  518.050606][ T4242] hello", "kernel=1 text=hello"},
    {"no Xid (found) here", ""},
    {"[1.5] text", "kernel=0"},
    {NULL, NULL}};

const struct fr_format fr_format_kernel = {.name = "kernel",
                                           .summary =
                                               "dmesg clocks, Xid, SXid, OOM killer, crashes",
                                           .peel = peel,
                                           .literals = literals,
                                           .facts = facts,
                                           .samples = samples};
