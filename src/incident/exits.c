/* SPDX-License-Identifier: Apache-2.0 */
/* exits: how processes ended, as launchers and schedulers saw it. An exit number is evidence of how, not of who was first;
 * a process that somebody stopped says nothing. A signal death nobody sent and nobody explains is the finding itself. */
#include "incident/case.h"

#include <string.h>

static bool is_cleanup_text(fr_sv t)
{
    static const char *const texts[] = {"forcing job termination", "Job step aborted", "Terminating StepId", "Terminating job step",
                                        "CANCELLED AT", "terminating all other processes", NULL};
    for (const char *const *p = texts; *p != NULL; p++) {
        if (fr_sv_has(t, fr_sv_z(*p))) {
            return true;
        }
    }
    return false;
}

/* pids of one agent that were told to stop: they were alive when it saw the first death. */
static bool was_stopped(const struct fr_case *c, const struct fr_obs *exit, int64_t pid)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->src != exit->src || o->attempt != exit->attempt) {
            continue;
        }
        if (o->e->fact == FR_FACT_STOP_SENT && pid > 0 && fr_event_num(o->e, FR_KEY_PID, -2) == pid) {
            return true;
        }
        if (o->e->line < exit->e->line && is_cleanup_text(o->e->text)) {
            return true;
        }
    }
    return false;
}

/* A program that tells of an exit in passing and goes on: a sample text, a retried helper. */
static bool is_quoted(const struct fr_obs *o)
{
    return o->recovered && o->e->level != FR_LEVEL_NONE && o->e->level <= FR_LEVEL_INFO;
}

static void exit_of(struct fr_case *c, const struct fr_obs *o, int32_t task, int32_t rank, void *ctx)
{
    (void)task;
    (void)ctx;
    struct fr_rank *r = fr_case_rank(c, rank);
    int64_t code = fr_event_num(o->e, FR_KEY_EXITCODE, 0);
    if (r == NULL || (r->has_exit && r->exitcode != 0)) {
        return;
    }
    if (code > 128 && code < 160) {
        code = 128 - code; /* the shell's way to say a signal */
    }
    r->has_exit = true;
    r->exit = o;
    r->exitcode = (int)code;
    r->stopped = code == -15 || ((code == -9 || code == 0) && was_stopped(c, o, fr_event_num(o->e, FR_KEY_PID, r->pid)));
}

static int64_t ended_at(const struct fr_rank *r)
{
    return r->has_exit ? fr_event_num(r->exit->e, FR_KEY_TIME, r->exit->began) : FR_TIME_NONE;
}

/* torchrun kills with SIGKILL what has not obeyed SIGTERM for 30 s (shutdown timeout of its process contexts): such a death comes long
 * after another one, and is no finding. */
static void mark_late_kills(struct fr_case *c)
{
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        bool own = !r->stopped && r->exitcode != 0 && r->exitcode != -9 && ended_at(r) != FR_TIME_NONE;
        first = own && ended_at(r) < first ? ended_at(r) : first;
    }
    for (uint32_t i = 0; i < c->ranks.n && first != INT64_MAX; i++) {
        struct fr_rank *r = &c->ranks.v[i];
        r->stopped |= r->exitcode == -9 && ended_at(r) != FR_TIME_NONE && ended_at(r) - first >= 25 * FR_NS_PER_S;
    }
}

/* Who is killed after all others had ended, some of them because they awaited somebody in vain, was the one that they awaited: it is
 * the clean-up that kills it. */
static void mark_last_kill(struct fr_case *c)
{
    struct fr_rank *killed = NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        struct fr_rank *r = &c->ranks.v[i];
        if (!r->has_exit || (r->exitcode == -9 && killed != NULL)) {
            return;
        }
        killed = r->exitcode == -9 ? r : killed;
    }
    uint32_t waited = 0;
    for (uint32_t i = 0; killed != NULL && i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (r != killed && (r->exit->src != killed->exit->src || r->exit->e->line >= killed->exit->e->line)) {
            return;
        }
        waited += r->timeout != NULL;
    }
    if (killed != NULL && waited != 0 && killed->symptom == NULL) {
        killed->stopped = true;
    }
}

void fr_case_each_task(struct fr_case *c, const struct fr_obs *o, fr_sv list, fr_task_fn *fn, void *ctx)
{
    while (list.n != 0) {
        uint64_t a, b;
        if (!fr_sv_take_u64(&list, &a)) {
            return;
        }
        b = a;
        if (fr_sv_take(&list, FR_SV("-")) && !fr_sv_take_u64(&list, &b)) {
            return;
        }
        for (uint64_t t = a; t <= b && b - a < 100000; t++) {
            struct fr_who who = FR_WHO_NONE;
            who.task = (int32_t)t;
            int32_t r = fr_case_rank_of(c, &who, o->src);
            fn(c, o, who.task, r, ctx);
        }
        if (!fr_sv_take(&list, FR_SV(","))) {
            return;
        }
    }
}

/* The rank of all that one container, or one instance of a unit, printed. */
static int32_t only_rank_in(const struct fr_case *c, fr_sv container)
{
    int32_t found = -1;
    for (uint32_t i = 0; container.n != 0 && i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t k = 0; k < s->speakers.n; k++) {
            const struct fr_who *who = &s->speakers.v[k].who;
            int32_t r = fr_sv_eq(who->node, container) || fr_sv_eq(who->role, container) ? fr_case_rank_of(c, &s->speakers.v[k].who, i) : -1;
            if (r >= 0 && found >= 0 && r != found) {
                return -1;
            }
            found = r >= 0 ? r : found;
        }
    }
    return found;
}

/* Whom a launcher tells to stop was alive when it had seen another one's end. Whose pid is not known is among them where there are as
 * many as ranks of which no end is known. */
static void mark_outlived(struct fr_case *c)
{
    uint32_t told = 0, open = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->e->fact != FR_FACT_STOP_SENT || o->attempt != c->attempt) {
            continue;
        }
        int64_t pid = fr_event_num(o->e, FR_KEY_PID, -1);
        struct fr_rank *r = fr_case_rank(c, fr_case_pid_rank(c, o->node, pid));
        told += pid > 0;
        if (r != NULL) {
            r->outlived = true;
        }
    }
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        open += !c->ranks.v[i].has_exit || c->ranks.v[i].outlived;
    }
    for (uint32_t i = 0; i < c->ranks.n && told != 0 && told == open; i++) {
        c->ranks.v[i].outlived |= !c->ranks.v[i].has_exit;
    }
}

int32_t fr_case_exit_rank(const struct fr_case *c, const struct fr_obs *o)
{
    const struct fr_event *e = o->e;
    int64_t rank = fr_event_num(e, FR_KEY_RANK, -1);
    if (rank >= 0) {
        return (int32_t)rank;
    }
    int32_t r = fr_case_pid_rank(c, o->node, fr_event_num(e, FR_KEY_PID, -1));
    if (r < 0 && c->nodes.n <= 1 && (fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("spawn")) || fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("vllm")))) {
        r = (int32_t)fr_event_num(e, FR_KEY_LOCAL_RANK, -1); /* on one host, the index that mp.spawn or vLLM's executor gave is the rank */
    }
    if (r < 0 && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("compose"))) {
        struct fr_who who = FR_WHO_NONE;
        who.node = fr_event_text(e, FR_KEY_NODE);
        r = c->host_is_rank ? fr_case_rank_of(c, &who, o->src) : only_rank_in(c, who.node);
    }
    if (r < 0 && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("systemd"))) {
        r = only_rank_in(c, fr_event_text(e, FR_KEY_MODULE));
    }
    if (r < 0 && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("shell"))) {
        r = c->src_rank[o->src]; /* the shell that started this rank, in this rank's log */
    }
    if (r < 0) {
        struct fr_who who = FR_WHO_NONE;
        who.local_rank = (int32_t)fr_event_num(e, FR_KEY_LOCAL_RANK, -1);
        who.task = (int32_t)fr_event_num(e, FR_KEY_TASK, -1);
        r = who.local_rank < 0 && who.task < 0 ? -1 : fr_case_rank_of(c, &who, o->src);
    }
    return r;
}

static const struct { int code; const char *launcher, *plain; int score; } signal_classes[] = {
    {-9, "torchrun-sigkill-exit-minus-9", "process-killed-sigkill", 45}, {-11, "torchrun-sigsegv", "segfault", 45},
    {-7, "sigbus-exit-minus-7", "sigbus-exit-minus-7", 45},              {-6, "torchrun-sigabrt", "native-abort", 40},
    {-4, "illegal-instruction-cpu", "illegal-instruction-cpu", 40},      {-8, "silent-exit", "silent-exit", 40},
};

/* How many ranks (or processes of unknown rank) ended by themselves with this code? */
static uint32_t how_many(const struct fr_case *c, int code)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        n += c->ranks.v[i].has_exit && !c->ranks.v[i].stopped && c->ranks.v[i].exitcode == code;
    }
    return n;
}

/* The process printed its own end (faulthandler, a handler's message): the number only says whose it was. */
static struct fr_cand *said_itself(struct fr_case *c, const char *a, const char *b, int32_t rank)
{
    const char *ids[] = {a, b};
    for (uint32_t i = 0; i < c->cands.n && rank >= 0; i++) {
        struct fr_cand *k = &c->cands.v[i];
        bool voiced = k->ground == FR_GROUND_SIGNAL || k->ground == FR_GROUND_TRACE;
        bool fits = k->ranks.n == 0 || (k->ranks.n == 1 && k->ranks.v[0] == rank);
        for (int n = 0; n < 2; n++) {
            if (voiced && fits && strcmp(fr_cand_class(c, k)->id, ids[n]) == 0) {
                return k;
            }
        }
    }
    return NULL;
}

static void signal_death(struct fr_case *c, const struct fr_obs *o, int32_t rank, int code)
{
    for (size_t i = 0; i < sizeof signal_classes / sizeof signal_classes[0]; i++) {
        if (signal_classes[i].code != code) {
            continue;
        }
        struct fr_cand *voiced = said_itself(c, signal_classes[i].launcher, signal_classes[i].plain, rank);
        if (voiced != NULL) {
            fr_cand_rank(c, voiced, rank);
            fr_cand_for(c, voiced, "rank %d ended by signal %d", rank, -code);
            return;
        }
        bool launcher = fr_sv_has(o->e->text, FR_SV("exitcode")) || fr_sv_has(o->e->text, FR_SV("torch"));
        int32_t f = fr_case_class(c, launcher ? signal_classes[i].launcher : signal_classes[i].plain);
        struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_EXIT);
        if (k == NULL) {
            return;
        }
        fr_cand_obs(c, k, (uint32_t)(o - c->obs.v));
        fr_cand_rank(c, k, rank);
        k->ground = FR_GROUND_EXIT;
        k->score += k->score == 0 ? signal_classes[i].score : 0;
        k->silent = true;
        k->fatal = true;
        if (o->e->fact == FR_FACT_EXIT && rank < 0) {
            k->local_rank = (int32_t)fr_event_num(o->e, FR_KEY_LOCAL_RANK, -1);
        }
        fr_cand_for(c, k, "ended by signal %d although nobody is seen to have sent it", -code);
        return;
    }
}

/* An exit code that no Python exception gives (not 0 or 1), from a rank that printed no error of its own. */
static void odd_exit(struct fr_case *c, const struct fr_rank *r)
{
    int32_t f = fr_case_class(c, "silent-exit");
    bool odd = r->exitcode > 1 && r->exitcode < 126 && how_many(c, r->exitcode) == 1;
    if (f < 0 || !odd || r->cause != NULL || r->symptom != NULL) {
        return;
    }
    struct fr_cand *k = fr_case_cand(c, f, FR_GROUND_EXIT);
    if (k == NULL) {
        return;
    }
    fr_cand_obs(c, k, (uint32_t)(r->exit - c->obs.v));
    fr_cand_rank(c, k, r->rank);
    k->score = 40;
    k->silent = true;
    k->fatal = true;
    fr_cand_for(c, k, "rank %d ended with exit code %d and printed no error", r->rank, r->exitcode);
}

/* Somebody waited in vain or lost a peer: then a lone exit may be a victim's. */
bool fr_case_has_complaints(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool complaint = o->meaning == FR_MEANS_SYMPTOM || o->e->fact == FR_FACT_TIMEOUT || o->e->fact == FR_FACT_PEER_LOST;
        if (o->attempt == c->attempt && complaint) {
            return true;
        }
    }
    return false;
}

static bool has_timeouts(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        if (c->obs.v[i].attempt == c->attempt && c->obs.v[i].e->fact == FR_FACT_TIMEOUT) {
            return true;
        }
    }
    return false;
}

bool fr_case_told_first(const struct fr_obs *exit)
{
    fr_sv reason = fr_event_text(exit->e, FR_KEY_REASON);
    return fr_sv_eq(reason, FR_SV("mpirun-first")) || fr_sv_eq(reason, FR_SV("horovodrun")) || fr_sv_eq(reason, FR_SV("vllm"));
}

/* One process ended with code 1 while the launcher had to stop the others, and nobody complains of a peer: where it began is known,
 * why is not. */
static void lone_exit(struct fr_case *c)
{
    const struct fr_rank *lone = NULL;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (!r->has_exit || r->stopped || r->exitcode == 0) {
            continue;
        }
        if (lone != NULL || r->exitcode != 1 || r->cause != NULL || r->symptom != NULL) {
            return; /* one that itself lost a peer is only the first victim */
        }
        lone = r;
    }
    for (uint32_t i = 0; lone != NULL && i < c->ranks.n; i++) { /* who did not obey SIGTERM was stuck: the lone one may have waited for it */
        const struct fr_rank *r = &c->ranks.v[i];
        bool late = r->exitcode == -9 && ended_at(r) != FR_TIME_NONE && ended_at(lone) != FR_TIME_NONE &&
                    ended_at(r) - ended_at(lone) >= 25 * FR_NS_PER_S;
        if (late) {
            return;
        }
    }
    bool task = lone != NULL && fr_sv_eq(fr_event_text(lone->exit->e, FR_KEY_REASON), FR_SV("srun"));
    static const char *const telling[] = {"mpirun-first", "horovodrun", "composer", "paddle", "tgi", "sglang", "vllm", NULL}; /* of several, this one */
    bool told = c->ranks.n > 1 || c->world == 1;
    for (const char *const *t = telling; lone != NULL && *t != NULL; t++) {
        told |= fr_sv_eq(fr_event_text(lone->exit->e, FR_KEY_REASON), fr_sv_z(*t));
    }
    bool vllm = lone != NULL && fr_sv_eq(fr_event_text(lone->exit->e, FR_KEY_REASON), FR_SV("vllm"));
    int32_t f = fr_case_class(c, task ? "slurm-task-exit" : vllm ? "vllm-engine-core-died" : "silent-exit");
    bool first = lone != NULL && fr_case_told_first(lone->exit) && !has_timeouts(c); /* those who lost a peer lost this one */
    if (lone == NULL || f < 0 || !told || (fr_case_has_complaints(c) && !first)) {
        return;
    }
    struct fr_cand *k = fr_case_cand(c, f, FR_GROUND_EXIT);
    if (k != NULL && k->obs.n == 0) {
        fr_cand_obs(c, k, (uint32_t)(lone->exit - c->obs.v));
        fr_cand_rank(c, k, lone->rank);
        k->score = fr_case_told_first(lone->exit) ? 18 : 10; /* any cause that somebody printed says more */
        k->silent = true;
        k->fatal = true;
        fr_cand_for(c, k, "rank %d ended by itself, and nobody else did", lone->rank);
    }
}

const struct fr_rank *fr_case_ended_first(const struct fr_case *c, int64_t *ret_lead)
{
    const struct fr_rank *first = NULL;
    int64_t second = INT64_MAX;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        if (!r->has_exit || r->stopped || r->exitcode == 0) {
            continue;
        }
        if (ended_at(r) == FR_TIME_NONE) {
            return NULL;
        }
        if (first == NULL || ended_at(r) < ended_at(first)) {
            second = first == NULL ? second : ended_at(first);
            first = r;
        } else if (ended_at(r) < second) {
            second = ended_at(r);
        }
    }
    *ret_lead = second == INT64_MAX ? 0 : second - ended_at(first);
    return *ret_lead >= 45 * FR_NS_PER_S && first->symptom == NULL ? first : NULL;
}

/* All ended by SIGTERM, which the launcher sent to all but one: that one got it from outside, and first. */
static void stopped_alone(struct fr_case *c)
{
    const struct fr_rank *alone = NULL;
    uint32_t outlived = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        outlived += r->outlived;
        alone = !r->outlived && r->has_exit && r->exitcode == -15 ? r : alone;
    }
    int32_t f = alone == NULL || outlived < 1 || outlived + 1 != c->ranks.n ? -1 : fr_case_class(c, "silent-exit");
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_EXIT);
    if (k != NULL && k->obs.n == 0) {
        fr_cand_obs(c, k, (uint32_t)(alone->exit - c->obs.v));
        fr_cand_rank(c, k, alone->rank);
        k->score = 22;
        k->silent = true;
        k->fatal = true;
        fr_cand_for(c, k, "rank %d was ended by SIGTERM, and its launcher sent that to all others only", alone->rank);
    }
}

/* A corrupt heap, a failed check: the process itself said why it aborts. */
static bool says_why(const struct fr_case *c, const struct fr_cand *k)
{
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (k->failure == fr_case_class(c, "native-abort") && o->meaning == FR_MEANS_CAUSE && o->signal >= 0 && o->e->fact == FR_FACT_NONE) {
            return true;
        }
    }
    return false;
}

/* An abort is how the watchdog, a failed check or a C++ exception ends a process: with several of them, or beside a
 * time-out, the number says nothing about who was first. */
static void weigh_aborts(struct fr_case *c)
{
    bool waited = false, timed_out = false;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool nccl = o->failure >= 0 && o->meaning == FR_MEANS_SYMPTOM && strncmp(c->lib->failures[o->failure].id, "nccl-", 5) == 0;
        timed_out |= o->attempt == c->attempt && (o->e->fact == FR_FACT_TIMEOUT || nccl);
        bool own = o->failure >= 0 && (o->failure == fr_case_class(c, "torchrun-sigabrt") || o->failure == fr_case_class(c, "native-abort"));
        bool complaint = !own && (o->e->fact == FR_FACT_TIMEOUT || o->e->fact == FR_FACT_PEER_LOST || o->meaning == FR_MEANS_SYMPTOM);
        waited |= o->attempt == c->attempt && complaint && (o->e->level == FR_LEVEL_NONE || o->e->level >= FR_LEVEL_ERROR);
    }
    for (uint32_t i = 0; i < c->cands.n; i++) {
        struct fr_cand *k = &c->cands.v[i];
        bool abort_class = k->failure == fr_case_class(c, "torchrun-sigabrt") || k->failure == fr_case_class(c, "native-abort");
        if (abort_class && says_why(c, k)) {
            continue;
        }
        if (abort_class && !waited && how_many(c, -6) > 1) {
            k->score -= 25;
            fr_cand_against(c, k, "several ranks ended so, and the number says nothing about who was first");
        } else if (abort_class && waited && (timed_out || how_many(c, -6) > 1)) { /* whose peer closes a connection gets an exception */
            k->score -= 60;
            fr_cand_against(c, k, "an abort is how a process ends that waited for another one in vain");
        }
    }
}

/* It printed a cause, and a signal ended it: the two belong together. */
static void died_of_it(struct fr_case *c, const struct fr_rank *r)
{
    struct fr_cand *k = r->exitcode < 0 && r->cause->failure >= 0 ? fr_case_cand(c, r->cause->failure, FR_GROUND_SIGNAL) : NULL;
    if (k != NULL && k->ground == FR_GROUND_SIGNAL && !k->fatal && k->obs.n != 0) {
        k->fatal = true;
        fr_cand_for(c, k, "rank %d printed it and ended by signal %d", r->rank, -r->exitcode);
    }
}

void fr_case_exits(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->e->fact != FR_FACT_EXIT || o->attempt != c->attempt || is_quoted(o)) {
            continue;
        }
        fr_sv list = fr_event_text(o->e, FR_KEY_RANKS);
        if (list.n != 0) {
            fr_case_each_task(c, o, list, exit_of, NULL);
        } else {
            exit_of(c, o, -1, fr_case_exit_rank(c, o), NULL);
        }
        c->failed |= fr_event_num(o->e, FR_KEY_EXITCODE, 0) != 0;
    }
    mark_late_kills(c);
    mark_last_kill(c);
    mark_outlived(c);
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        struct fr_rank *r = &c->ranks.v[i];
        if (!r->has_exit || r->stopped) {
            continue;
        }
        if (r->cause != NULL) {
            died_of_it(c, r);
        } else if (r->exitcode < 0) {
            signal_death(c, r->exit, r->rank, r->exitcode);
        } else {
            odd_exit(c, r);
        }
    }
    for (uint32_t i = 0; i < c->obs.n; i++) { /* deaths of processes whose rank nobody proved */
        const struct fr_obs *o = &c->obs.v[i];
        int64_t code = fr_event_num(o->e, FR_KEY_EXITCODE, 0);
        code = code > 128 && code < 160 ? 128 - code : code;
        bool named = fr_case_exit_rank(c, o) >= 0 || (fr_event_text(o->e, FR_KEY_RANKS).n != 0 && c->task_is_rank);
        if (o->e->fact == FR_FACT_EXIT && !is_quoted(o) && o->meaning != FR_MEANS_CAUSE && o->attempt == c->attempt && code < 0 && code != -15 && !named &&
            !was_stopped(c, o, fr_event_num(o->e, FR_KEY_PID, -1))) {
            signal_death(c, o, -1, (int)code);
        }
    }
    weigh_aborts(c);
    lone_exit(c);
    stopped_alone(c);
}
