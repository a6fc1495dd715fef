/* SPDX-License-Identifier: Apache-2.0 */
/* classify: what each event means. Law 2: whom it is about is decided by the signal, not by who printed it. Law 3: symptom and
 * teardown texts never become causes. Law 8: a fault after which the same writer went on training is recovered. */
#include "incident/case.h"

#include <stdio.h>
#include <string.h>

/* Exceptions that only wrap or announce another process's end. */
static const char *const wrappers[] = {"ChildFailedError", "CalledProcessError", "SignalException", "ProcessExitedException",
    "ProcessRaisedException", "KeyboardInterrupt", "SystemExit", "MultiprocessingError", "WorkerGroupFailure", NULL};
/* Exceptions of somebody whose other side went away. */
static const char *const peer_errors[] = {"DistNetworkError", "DistStoreError", "DistBackendError", "ConnectionResetError",
    "BrokenPipeError", "ConnectionRefusedError", "ConnectionAbortedError", "RendezvousConnectionError", "RendezvousClosedError",
    "RendezvousTimeoutError", "EOFError", NULL};

static bool is_one_of(fr_sv name, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (fr_sv_eq(name, fr_sv_z(*list))) {
            return true;
        }
    }
    return false;
}

/* The exception announces another process's end. CalledProcessError does when the command was a program in Python, as launchers start;
 * of a converter or a shell it is the caller's own failure. */
static bool is_wrapper(const struct fr_obs *o, fr_sv exception)
{
    return is_one_of(exception, wrappers) && (o->e->fact == FR_FACT_EXIT || !fr_sv_eq(exception, FR_SV("CalledProcessError")));
}

static const struct { const char *exception, *failure; } by_exception[] = {
    {"AssertionError", "assertion-failed"}, {"ZeroDivisionError", "zero-division"}, {"MemoryError", "host-memory-error"},
    {"FileNotFoundError", "file-not-found"}, {"PermissionError", "permission-denied"},
};

/* "torch.distributed.elastic...ChildFailedError" -> "ChildFailedError" */
static fr_sv last_part(fr_sv dotted)
{
    for (size_t i = dotted.n; i-- > 0;) {
        if (dotted.p[i] == '.') {
            return fr_sv_skip(dotted, i + 1);
        }
    }
    return dotted;
}

/* gRPC statuses of XLA that report somebody else's end. */
static bool is_remote_status(fr_sv exception, fr_sv message)
{
    static const char *const words[] = {"DEADLINE_EXCEEDED", "UNAVAILABLE", "ABORTED", "CANCELLED", NULL};
    for (const char *const *w = words; fr_sv_eq(exception, FR_SV("XlaRuntimeError")) && *w != NULL; w++) {
        if (fr_sv_starts(message, fr_sv_z(*w))) {
            return true;
        }
    }
    return false;
}

/* Somebody says that the run finished, and nobody ended, was stopped or lost a peer: what stands below a warning was survived. */
bool fr_case_ended_well(const struct fr_case *c)
{
    bool done = false;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        bool bad = e->fact == FR_FACT_STOP_SENT || e->fact == FR_FACT_STOP_RECEIVED || e->fact == FR_FACT_PEER_LOST ||
                   e->fact == FR_FACT_TIMEOUT || (e->fact == FR_FACT_EXIT && fr_event_num(e, FR_KEY_EXITCODE, 1) != 0);
        if (bad) {
            return false;
        }
        done |= e->fact == FR_FACT_DONE;
    }
    return done;
}

/* The frames are a launcher's own: torchrun, accelerate, or torch.distributed.launch after it killed its children. */
static bool is_launcher(const struct fr_case *c, const struct fr_obs *o)
{
    static const char *const functions[] = {"launch_agent", "elastic", "_terminate_process_handler", "execute_subprocess_async", NULL};
    for (const char *const *f = functions; *f != NULL; f++) {
        if (fr_sv_has(o->e->trace->frames, fr_sv_z(*f))) {
            return true;
        }
    }
    bool killed = false;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *k = &c->obs.v[i];
        killed |= k->src == o->src && k->e->fact == FR_FACT_STOP_SENT && k->e->line < o->e->line;
    }
    return killed && fr_sv_has(o->e->trace->frames, FR_SV("main (launch.py:"));
}

static void by_trace(const struct fr_case *c, struct fr_obs *o)
{
    const struct fr_trace *t = o->e->trace;
    bool origin = o->e->line == t->origin_line && t->origin_line != t->last_line;
    fr_sv name = last_part(origin ? t->origin_exception : t->exception);
    if (t->mild && t->kind == FR_TRACE_PYTHON && fr_case_ended_well(c)) {
        return; /* caught, and told of as a warning */
    }
    if (t->exception.n == 0 && t->kind == FR_TRACE_PYTHON) { /* cut off before its exception: it says who failed, not of what */
        bool after_exit = c->src_exits[o->src] != 0 && c->src_exits[o->src] < o->e->line && o->e->who.rank < 0;
        bool launcher = after_exit || is_launcher(c, o);
        o->cut = true;
        o->meaning = launcher ? FR_MEANS_TEARDOWN : FR_MEANS_CAUSE;
        o->failure = launcher ? o->failure : fr_case_class(c, "python-exception");
        return;
    }
    if (t->kind == FR_TRACE_FAULTHANDLER) {
        bool segv = fr_sv_has(t->message, FR_SV("Segmentation fault"));
        bool bus = fr_sv_has(t->message, FR_SV("Bus error"));
        o->failure = fr_case_class(c, segv ? "segfault" : bus ? "sigbus-exit-minus-7" : "native-abort");
        o->meaning = segv || bus ? FR_MEANS_CAUSE : FR_MEANS_TEARDOWN; /* an abort's dump is the watchdog's or somebody's above */
        return;
    }
    if (t->kind == FR_TRACE_CPP) {
        bool nccl = fr_sv_has(t->message, FR_SV("NCCL")) || fr_sv_has(t->exception, FR_SV("Dist")) || fr_sv_has(t->message, FR_SV("atchdog"));
        o->failure = fr_case_class(c, "native-abort");
        o->meaning = nccl ? FR_MEANS_TEARDOWN : FR_MEANS_CAUSE;
        return;
    }
    bool interrupted = fr_sv_starts(origin ? t->origin_message : t->message, FR_SV("KeyboardInterrupt")); /* inside of an extension */
    bool tracker = fr_sv_ends(t->file, FR_SV("multiprocessing/resource_tracker.py")); /* a helper that cleans up what others left */
    if (is_wrapper(o, name) || interrupted || tracker) {
        o->meaning = FR_MEANS_TEARDOWN;
        return;
    }
    o->failure = fr_case_class(c, "python-exception");
    o->meaning = is_one_of(name, peer_errors) || is_remote_status(name, origin ? t->origin_message : t->message) ? FR_MEANS_SYMPTOM : FR_MEANS_CAUSE;
    for (size_t i = 0; i < sizeof by_exception / sizeof by_exception[0]; i++) {
        int32_t f = fr_case_class(c, by_exception[i].failure);
        if (f >= 0 && fr_sv_eq(name, fr_sv_z(by_exception[i].exception))) {
            o->failure = f;
        }
    }
}

static void by_signal(const struct fr_case *c, struct fr_obs *o)
{
    static const uint8_t means[] = {FR_MEANS_CAUSE, FR_MEANS_SYMPTOM, FR_MEANS_TEARDOWN, FR_MEANS_NOTHING, FR_MEANS_NOTHING};
    const struct fr_signal *s = &c->lib->signals[o->e->signals[0]];
    o->signal = o->e->signals[0];
    o->failure = s->failure;
    o->meaning = means[s->role];
}

/* Only the world's own group is seen: a group rank is then a global one. */
static bool no_other_group(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        fr_sv desc = fr_event_text(c->obs.v[i].e, FR_KEY_PG_DESC), pg = fr_event_text(c->obs.v[i].e, FR_KEY_PG);
        if ((desc.n != 0 && !fr_sv_eq(desc, FR_SV("default_pg"))) || (pg.n != 0 && !fr_sv_eq(pg, FR_SV("0")))) {
            return false;
        }
    }
    return true;
}

static int32_t captured_subject(const struct fr_case *c, const struct fr_obs *o)
{
    const struct fr_event *e = o->e;
    int64_t rank = fr_event_num(e, FR_KEY_RANK, fr_event_num(e, FR_KEY_TASK, -1));
    if (rank >= 0) {
        return (int32_t)rank;
    }
    int32_t r = fr_case_pid_rank(c, o->node, fr_event_num(e, FR_KEY_PID, -1));
    if (r < 0 && c->world > 0 && no_other_group(c)) {
        r = (int32_t)fr_event_num(e, FR_KEY_PG_RANK, -1);
        r = r < c->world ? r : -1;
    }
    fr_sv pci = fr_event_text(e, FR_KEY_PCI);
    if (r < 0 && pci.n != 0 && pci.n < 40 && o->node >= 0) {
        char key[80];
        uint32_t v;
        snprintf(key, sizeof key, "%d/%.*s", o->node, FR_SV_ARG(pci));
        if (fr_map_get(&c->pci_rank, fr_sv_z(key), &v) && (int32_t)v >= 0 && v != FR_RANK_CONFLICT) {
            r = (int32_t)v;
        }
    }
    return r;
}

/* Before groups had names in it, c10d's watchdog said of its own process which rank it is in its group, and why it ended. Where no
 * other group is spoken of, that is the world. */
static int32_t watchdog_rank(const struct fr_case *c, const struct fr_obs *o)
{
    int32_t r = o->e->who.pg_rank;
    bool own = fr_sv_starts(o->e->text, FR_SV("NCCL watchdog thread terminated with exception: CUDA error"));
    return own && r >= 0 && (c->world <= 0 || r < c->world) && no_other_group(c) ? r : -1;
}

static void set_subject(const struct fr_case *c, struct fr_obs *o)
{
    uint8_t about = o->signal >= 0 ? c->lib->signals[o->signal].about : FR_ABOUT_REPORTER;
    switch (about) {
    case FR_ABOUT_CAPTURED: o->subject = captured_subject(c, o); break;
    case FR_ABOUT_PEER: o->subject = (int32_t)fr_event_num(o->e, FR_KEY_PEER_RANK, -1); break;
    case FR_ABOUT_NOBODY: o->subject = -1; break;
    case FR_ABOUT_SELF: o->subject = o->rank; break;
    default:
        /* Whoever cannot reach a peer is only one end of the path. */
        o->subject = o->failure >= 0 && strcmp(c->lib->failures[o->failure].category, "network") == 0 ? -1 : o->rank;
    }
    if (about == FR_ABOUT_REPORTER && o->rank < 0 && o->subject < 0) {
        o->subject = watchdog_rank(c, o);
    }
    if (o->e->is_kernel && o->subject < 0) {
        o->subject = captured_subject(c, o);
    }
}

/* Classes that say no more than how a process ended. */
static bool is_exit_class(const struct fr_case *c, int32_t failure)
{
    static const char *const ids[] = {"torchrun-sigkill-exit-minus-9", "process-killed-sigkill", "torchrun-sigsegv", "torchrun-sigabrt",
                                      "sigbus-exit-minus-7", "torchrun-child-failed", NULL};
    for (const char *const *id = ids; failure >= 0 && *id != NULL; id++) {
        if (strcmp(c->lib->failures[failure].id, *id) == 0) {
            return true;
        }
    }
    return false;
}

/* What launchers say about ends and stops is weighed in exits.c; their text alone is a reaction. */
static void reactions(const struct fr_case *c, struct fr_obs *o)
{
    uint8_t fact = o->e->fact;
    bool general = o->failure >= 0 && c->lib->failures[o->failure].weight <= 20;
    bool how = fr_event_num(o->e, FR_KEY_EXITCODE, INT64_MIN) != INT64_MIN; /* "died unexpectedly" tells nothing but that */
    if (fact == FR_FACT_NONE && o->e->trace == NULL && o->meaning == FR_MEANS_CAUSE && c->src_exits[o->src] != 0 &&
        is_exit_class(c, o->failure)) {
        o->meaning = FR_MEANS_NOTHING; /* the row it stands in is a fact already */
    }
    bool says_why = o->meaning == FR_MEANS_CAUSE && o->failure >= 0 &&
                    fr_case_lists(c->lib->failures[o->failure].explains, "torchrun-sigterm-cascade");
    if (fact == FR_FACT_STOP_RECEIVED && says_why) {
        return; /* "this job is preempted" */
    }
    if (fact == FR_FACT_STOP_SENT || fact == FR_FACT_STOP_RECEIVED) {
        int32_t f = fr_case_class(c, "torchrun-sigterm-cascade");
        o->meaning = FR_MEANS_TEARDOWN;
        o->failure = f >= 0 ? f : o->failure;
        o->signal = -1;
    } else if (fact == FR_FACT_EXIT && (general ? how : is_exit_class(c, o->failure))) {
        o->meaning = FR_MEANS_NOTHING;
    }
}

/* A check that reports having found nothing quotes the words it looked for. */
static bool is_negated(fr_sv text)
{
    static const char *const words[] = {"0 matches", "no matches", "grep '", "grep -", "grep \"", NULL};
    for (const char *const *w = words; *w != NULL; w++) {
        if (fr_sv_has(text, fr_sv_z(*w))) {
            return true;
        }
    }
    return false;
}

/* "CUDA error: out of memory" says the same at start-up and after hours; once the program trains, the device has filled up. */
static void later_full(const struct fr_case *c, struct fr_obs *o)
{
    const char *id = o->failure >= 0 ? c->lib->failures[o->failure].id : "";
    uint64_t trained = c->set->sources.v[o->src]->metric_tail[0];
    int32_t full = fr_case_class(c, "cuda-oom");
    bool early = strcmp(id, "cuda-lazy-loading-oom") == 0 || strcmp(id, "cuda-oom-at-startup") == 0;
    if (early && trained != 0 && trained < o->e->line && full >= 0) {
        o->failure = full;
    }
}

static void classify(const struct fr_case *c, struct fr_obs *o)
{
    const struct fr_event *e = o->e;
    o->failure = o->signal = o->subject = -1;
    if (e->n_signals != 0 && !is_negated(e->text)) {
        by_signal(c, o);
    }
    bool closes = e->trace != NULL && (e->line == e->trace->last_line || e->line == e->trace->origin_line);
    if (closes && e->line == e->trace->last_line && is_wrapper(o, last_part(e->trace->exception))) {
        o->meaning = o->meaning == FR_MEANS_CAUSE && o->signal >= 0 ? FR_MEANS_CAUSE : FR_MEANS_TEARDOWN;
        closes = false;
    } else if (closes && (o->meaning == FR_MEANS_NOTHING || o->failure < 0)) {
        by_trace(c, o);
    }
    later_full(c, o);
    reactions(c, o);
    o->recovered = o->meaning != FR_MEANS_NOTHING && fr_case_went_on(c, o);
    closes = closes && (e->trace->exception.n != 0 || e->trace->kind != FR_TRACE_PYTHON);
    o->fatal = !o->recovered && (closes || e->is_kernel || e->fact == FR_FACT_OOM_KILL);
    set_subject(c, o);
}

/* Its rank complains of another one in the few lines above. */
static bool lost_a_peer_above(const struct fr_case *c, const struct fr_obs *o)
{
    for (const struct fr_obs *p = o; p > c->obs.v && p[-1].src == o->src && p[-1].e->line + 3 >= o->e->line; p--) {
        if (p[-1].rank >= 0 && p[-1].rank == o->rank && p[-1].meaning == FR_MEANS_SYMPTOM) {
            return true;
        }
    }
    return false;
}

/* "Scheduler hit an exception: Traceback ..." says no more than the exception below it: where that is what a victim prints, so is this. */
static void headers(struct fr_case *c)
{
    uint32_t begin = 0; /* of the source's events, which stand together */
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *t = &c->obs.v[i];
        begin = t->src == c->obs.v[begin].src ? begin : i;
        if (t->meaning == FR_MEANS_CAUSE && t->e->trace != NULL && t->e->trace->exception.n == 0 && lost_a_peer_above(c, t)) {
            c->obs.v[i].meaning = FR_MEANS_SYMPTOM; /* of its traceback no more is left than the head */
        }
        if (t->e->trace == NULL || t->meaning != FR_MEANS_SYMPTOM || t->e->line != t->e->trace->last_line) {
            continue;
        }
        for (uint32_t j = begin; j < c->obs.n && c->obs.v[j].src == t->src; j++) {
            struct fr_obs *o = &c->obs.v[j];
            if (o->e->trace == t->e->trace && o->e->line == t->e->trace->first_line && o->meaning == FR_MEANS_CAUSE && o->e->count == 1) {
                o->meaning = FR_MEANS_SYMPTOM;
            }
        }
    }
}

/* What fails while a victim's exception is handled, such as its emergency checkpoint, is that victim's too. */
static void handled(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        const struct fr_trace *t = o->e->trace;
        bool lost = o->e->fact == FR_FACT_PEER_LOST || o->e->fact == FR_FACT_TIMEOUT;
        for (uint32_t k = 0; lost && t != NULL && o->e->line == t->origin_line && k < c->obs.n; k++) {
            struct fr_obs *later = &c->obs.v[k];
            if (later->e->trace == t && later->e->line > o->e->line && later->meaning == FR_MEANS_CAUSE) {
                later->meaning = FR_MEANS_SYMPTOM;
                later->failure = o->failure;
            }
        }
    }
}

/* A traceback in the error file of a rank whose output file says that it finished, in a run in which nobody failed, was caught. */
static void caught(struct fr_case *c)
{
    int32_t top = -1;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        top = o->e->fact == FR_FACT_DONE && o->rank > top && o->rank < 1000000 ? o->rank : top;
    }
    uint32_t *said = top >= 0 && fr_case_ended_well(c) ? FR_NEW_N(&c->arena, uint32_t, (size_t)top + 1) : NULL; /* its source + 1 */
    for (uint32_t i = 0; said != NULL && i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->e->fact == FR_FACT_DONE && o->rank >= 0 && o->rank <= top) {
            said[o->rank] = o->src + 1;
        }
    }
    for (uint32_t i = 0; said != NULL && i < c->obs.n; i++) {
        struct fr_obs *o = &c->obs.v[i];
        bool done = o->rank >= 0 && o->rank <= top && said[o->rank] != 0 && said[o->rank] != o->src + 1;
        if (done && o->e->trace != NULL && o->meaning == FR_MEANS_CAUSE) {
            o->recovered = true;
            o->fatal = false;
        }
    }
}

/* Waiting for the others at the start is how every run begins, and how one ends whose others never come: then it is its log's last
 * word, and nothing else was said. */
static void waits(struct fr_case *c)
{
    int32_t barrier = fr_case_class(c, "store-based-barrier-timeout");
    uint64_t times = 0; /* by one process again and again, or by several */
    for (uint32_t i = 0; i < c->obs.n; i++) {
        if (c->obs.v[i].failure != barrier && c->obs.v[i].meaning != FR_MEANS_NOTHING) {
            return;
        }
        times += c->obs.v[i].failure == barrier ? c->obs.v[i].e->count : 0;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        struct fr_obs *o = &c->obs.v[i];
        const struct fr_source_evidence *s = c->set->sources.v[o->src];
        bool last = fr_sv_has(s->last_text, FR_SV("Waiting in store based barrier")) && s->metric_tail[0] == 0;
        if (o->failure == barrier && barrier >= 0 && o->meaning == FR_MEANS_NOTHING && last && times > 1) {
            o->meaning = FR_MEANS_SYMPTOM;
            o->waits = true;
        }
    }
}

/* A launcher of another node first tries to be the host of the rendezvous: where that is on the same machine its port is taken, and it
 * joins as a client. No exception says so, and what its processes did after it needed the rendezvous. */
static void joined_after_all(struct fr_case *c)
{
    int32_t taken = fr_case_class(c, "c10d-address-in-use");
    bool *said = FR_NEW_N(&c->arena, bool, c->set->sources.n + 1), anywhere = false, trained = false;
    uint64_t *worked = FR_NEW_N(&c->arena, uint64_t, c->set->sources.n + 1); /* the last line that tells so */
    c->nomem |= said == NULL || worked == NULL;
    for (uint32_t i = 0; !c->nomem && i < c->set->sources.n; i++) {
        worked[i] = c->set->sources.v[i]->metric_tail[0];
        trained |= c->set->sources.v[i]->metric_points != 0;
    }
    for (uint32_t i = 0; !c->nomem && i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool own = o->fatal && o->e->trace != NULL && o->meaning == FR_MEANS_CAUSE && o->failure != taken;
        said[o->src] |= o->failure == taken && o->e->trace != NULL;
        anywhere |= said[o->src];
        bool met = o->e->fact == FR_FACT_IDENTITY || o->e->fact == FR_FACT_PEER_LOST || o->e->fact == FR_FACT_TIMEOUT;
        if ((own || met) && o->e->line > worked[o->src]) {
            worked[o->src] = o->e->line;
        }
    }
    for (uint32_t i = 0; !c->nomem && taken >= 0 && i < c->obs.n; i++) {
        struct fr_obs *o = &c->obs.v[i];
        bool joined = (worked[o->src] > o->e->line && !said[o->src]) || (trained && !anywhere); /* a launcher's log apart from its processes' */
        o->recovered |= o->failure == taken && joined;
    }
}

/* SGLang ends itself by SIGKILL when one of its processes has failed: the shell's word below is nobody else's deed. */
static void ended_itself(struct fr_case *c)
{
    const struct fr_obs *told = NULL;
    int32_t sglang = fr_case_class(c, "sglang-scheduler-exception");
    for (uint32_t i = 0; i < c->obs.n; i++) {
        struct fr_obs *o = &c->obs.v[i];
        if (sglang >= 0 && o->failure == sglang && o->meaning == FR_MEANS_TEARDOWN) {
            told = o;
        } else if (told != NULL && told->src == o->src && o->e->line <= told->e->line + 3 && o->meaning == FR_MEANS_CAUSE &&
                   is_exit_class(c, o->failure)) {
            o->meaning = FR_MEANS_TEARDOWN;
        }
    }
}

void fr_case_classify(struct fr_case *c)
{
    c->src_exits = FR_NEW_N(&c->arena, uint64_t, c->set->sources.n + 1);
    c->src_restart = FR_NEW_N(&c->arena, uint64_t, c->set->sources.n + 1);
    c->src_done = FR_NEW_N(&c->arena, uint64_t, c->set->sources.n + 1);
    c->src_start = FR_NEW_N(&c->arena, uint64_t, c->set->sources.n + 1);
    if (c->src_exits == NULL || c->src_restart == NULL || c->src_done == NULL || c->src_start == NULL) {
        c->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        if (e->fact == FR_FACT_EXIT && c->src_exits[c->obs.v[i].src] == 0) {
            c->src_exits[c->obs.v[i].src] = e->line;
        }
        if (e->fact == FR_FACT_DONE && c->src_done[c->obs.v[i].src] == 0) {
            c->src_done[c->obs.v[i].src] = e->line;
        }
        if (e->fact == FR_FACT_START) {
            c->src_start[c->obs.v[i].src] = e->line;
        }
        if (e->fact == FR_FACT_ATTEMPT) {
            c->src_restart[c->obs.v[i].src] = e->line;
        }
    }
    for (uint32_t i = 0; i < c->obs.n; i++) {
        classify(c, &c->obs.v[i]);
    }
    headers(c);
    ended_itself(c);
    handled(c);
    fr_case_survived(c);
    caught(c);
    waits(c);
    joined_after_all(c);
}
