/* SPDX-License-Identifier: Apache-2.0 */
/* causes: candidates that somebody printed, one per failure class, with all its sightings. */
#include "incident/case.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int32_t fr_case_class(const struct fr_case *c, const char *id)
{
    return fr_library_find(c->lib, fr_sv_z(id));
}

struct fr_cand *fr_case_cand(struct fr_case *c, int32_t failure, enum fr_ground ground)
{
    for (uint32_t i = 0; i < c->cands.n; i++) {
        if (c->cands.v[i].failure == failure) {
            return &c->cands.v[i];
        }
    }
    struct fr_cand *k = FR_PUSH(&c->cands);
    if (k == NULL) {
        c->nomem = true;
        return NULL;
    }
    *k = (struct fr_cand){.failure = failure, .ground = (uint8_t)ground, .local_rank = -1, .gpu = -1, .began = FR_TIME_NONE};
    return k;
}

void fr_cand_obs(struct fr_case *c, struct fr_cand *k, uint32_t obs)
{
    for (uint32_t i = 0; i < k->obs.n; i++) {
        if (k->obs.v[i] == obs) {
            return;
        }
    }
    uint32_t *slot = FR_PUSH(&k->obs);
    if (slot == NULL) {
        c->nomem = true;
        return;
    }
    *slot = obs;
}

void fr_cand_rank(struct fr_case *c, struct fr_cand *k, int32_t rank)
{
    if (rank < 0) {
        k->n_unknown++;
        return;
    }
    uint32_t at = 0;
    while (at < k->ranks.n && k->ranks.v[at] < rank) {
        at++;
    }
    if (at < k->ranks.n && k->ranks.v[at] == rank) {
        return;
    }
    if (FR_PUSH(&k->ranks) == NULL) {
        c->nomem = true;
        return;
    }
    memmove(k->ranks.v + at + 1, k->ranks.v + at, (k->ranks.n - 1 - at) * sizeof *k->ranks.v);
    k->ranks.v[at] = rank;
}

static fr_sv format(struct fr_case *c, const char *fmt, va_list ap)
{
    char text[400];
    vsnprintf(text, sizeof text, fmt, ap);
    return fr_arena_dup(&c->arena, fr_sv_z(text));
}

void fr_cand_for(struct fr_case *c, struct fr_cand *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fr_sv text = format(c, fmt, ap);
    va_end(ap);
    for (uint32_t i = 0; i < k->for_.n; i++) {
        if (fr_sv_eq(k->for_.v[i], text)) {
            return; /* the same of another rank */
        }
    }
    fr_sv *slot = k->for_.n < 16 ? FR_PUSH(&k->for_) : NULL;
    if (slot != NULL) {
        *slot = text;
    }
}

void fr_cand_against(struct fr_case *c, struct fr_cand *k, const char *fmt, ...)
{
    fr_sv *slot = k->against.n < 16 ? FR_PUSH(&k->against) : NULL;
    if (slot != NULL) {
        va_list ap;
        va_start(ap, fmt);
        *slot = format(c, fmt, ap);
        va_end(ap);
    }
}

/* The kernel killed a process of this run? A pid that is a rank's, or a name that training processes have. */
static bool is_ours(const struct fr_obs *o)
{
    static const char *const names[] = {"python", "pt_", "ray", "torch", "train", "vllm", "VLLM", "Worker", "jax", "mpi", "srun", NULL};
    fr_sv name = fr_event_text(o->e, FR_KEY_MODULE);
    if (o->subject >= 0 || name.n == 0) {
        return true;
    }
    for (const char *const *n = names; *n != NULL; n++) {
        if (fr_sv_has(name, fr_sv_z(*n))) {
            return true;
        }
    }
    return false;
}

/* A line about several tasks: where the first counts as a rank (SLURM_PROCID is what srun's programs take for it), all do. */
static void add_task(struct fr_case *c, const struct fr_obs *o, int32_t task, int32_t rank, void *cand)
{
    fr_cand_rank(c, cand, rank < 0 && o->subject >= 0 ? task : rank);
}

static void from_obs(struct fr_case *c, uint32_t i)
{
    const struct fr_obs *o = &c->obs.v[i];
    enum fr_ground ground = o->signal >= 0 ? FR_GROUND_SIGNAL : FR_GROUND_TRACE;
    struct fr_cand *k = fr_case_cand(c, o->failure, ground);
    if (k == NULL) {
        return;
    }
    fr_cand_obs(c, k, i);
    const fr_sv tasks = o->e->fact == FR_FACT_EXIT ? fr_event_text(o->e, FR_KEY_RANKS) : FR_SV_NONE;
    if (tasks.n != 0) {
        fr_case_each_task(c, o, tasks, add_task, k);
    } else if (!o->e->in_row) {
        fr_cand_rank(c, k, o->subject);
    }
    bool pair = o->signal >= 0 && c->lib->signals[o->signal].about == FR_ABOUT_CAPTURED;
    int64_t other = pair ? fr_event_num(o->e, FR_KEY_PEER_RANK, -1) : -1;
    if (other >= 0) {
        fr_cand_rank(c, k, (int32_t)other);
    }
    if (o->subject < 0) {
        k->n_unknown += o->e->count - 1;
        k->local_rank = k->local_rank < 0 ? o->e->who.local_rank : k->local_rank;
    }
    k->fatal |= o->fatal;
    k->gpu = k->gpu < 0 ? (int32_t)fr_event_num(o->e, FR_KEY_GPU, -1) : k->gpu;
    fr_sv named = o->e->n_signals != 0 ? fr_event_text(o->e, FR_KEY_NODE) : FR_SV_NONE;
    bool earlier = o->began != FR_TIME_NONE && k->began != FR_TIME_NONE && o->began + o->slack < k->began - k->slack;
    if (k->node.n == 0 || earlier) {
        int32_t node = fr_case_node_of(c, named);
        k->node = node >= 0 ? c->nodes.v[node].name : o->node >= 0 ? c->nodes.v[o->node].name : FR_SV_NONE;
    }
    if (o->began != FR_TIME_NONE && (k->began == FR_TIME_NONE || o->began < k->began)) {
        k->began = o->began;
        k->slack = o->slack;
    }
}

/* Other signals of the same line name further classes: one line may say two things (a CUDA error inside an NCCL warning). */
static void from_other_signals(struct fr_case *c, uint32_t i)
{
    const struct fr_event *e = c->obs.v[i].e;
    bool as_said = e->n_signals != 0 && c->obs.v[i].failure == (int32_t)c->lib->signals[e->signals[0]].failure;
    for (unsigned s = 1; as_said && s < e->n_signals; s++) {
        const struct fr_signal *sig = &c->lib->signals[e->signals[s]];
        struct fr_cand *k = sig->role == FR_ROLE_CAUSE ? fr_case_cand(c, sig->failure, FR_GROUND_SIGNAL) : NULL;
        if (k != NULL) {
            fr_cand_obs(c, k, i);
            fr_cand_rank(c, k, c->obs.v[i].subject);
            k->fatal |= c->obs.v[i].fatal;
        }
    }
}

/* A row of torchrun's table with what was printed before is no further sighting. As many rows as nameless sightings: those ranks. Fewer
 * rows: the launcher stopped before it had seen the other ones, and whose row it wrote says nothing. */
static void from_rows(struct fr_case *c, struct fr_cand *k)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        rows += c->obs.v[k->obs.v[i]].e->in_row;
    }
    if (rows == 0 || rows < k->n_unknown) {
        return;
    }
    k->n_unknown = 0;
    for (uint32_t i = 0; i < k->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[k->obs.v[i]];
        if (o->e->in_row) {
            fr_cand_rank(c, k, o->subject);
        }
    }
}

/* o is seen to be behind other: in one file by its line, else by a time that both have. */
static bool is_behind(const struct fr_obs *o, const struct fr_obs *other)
{
    bool timed = o->began != FR_TIME_NONE && other->began != FR_TIME_NONE;
    return o->src == other->src ? o->e->line > other->e->line : timed && o->began - o->slack > other->began + other->slack;
}

/* Somebody's Ctrl-C reaches all ranks of a console. One rank that alone was interrupted, and others that lose it as their peer after that: it
 * began there, whoever sent the signal. */
static void interrupted_alone(struct fr_case *c)
{
    int32_t f = fr_case_class(c, "python-exception");
    const struct fr_obs *alone = NULL;
    uint32_t lost = 0;
    for (uint32_t i = 0; i < c->obs.n && f >= 0; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt != c->attempt || o->rank < 0) {
            continue;
        }
        if (o->e->trace != NULL && fr_sv_ends(o->e->trace->exception, FR_SV("KeyboardInterrupt"))) {
            if (alone != NULL && alone->rank != o->rank) {
                return;
            }
            alone = alone == NULL ? o : alone;
        }
    }
    for (uint32_t i = 0; i < c->obs.n && alone != NULL; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool told = o->e->fact == FR_FACT_STOP_RECEIVED || o->meaning == FR_MEANS_CAUSE;
        bool victim = o->meaning == FR_MEANS_SYMPTOM && o->rank >= 0 && o->rank != alone->rank && !o->recovered;
        if (o->attempt == c->attempt && (told || (victim && !is_behind(o, alone)))) {
            return;
        }
        lost += o->attempt == c->attempt && victim;
    }
    struct fr_cand *k = lost == 0 ? NULL : fr_case_cand(c, f, FR_GROUND_TRACE);
    if (k != NULL) {
        fr_cand_obs(c, k, (uint32_t)(alone - c->obs.v));
        fr_cand_rank(c, k, alone->rank);
        k->fatal = true;
        k->score = 20;
        fr_cand_for(c, k, "rank %d alone was interrupted, and the others lost a peer after that", alone->rank);
    }
}

void fr_case_causes(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt != c->attempt || o->meaning != FR_MEANS_CAUSE || o->recovered || o->failure < 0) {
            continue;
        }
        from_obs(c, i);
        if (o->e->fact == FR_FACT_OOM_KILL && !is_ours(o)) {
            fr_case_cand(c, o->failure, FR_GROUND_SIGNAL)->stranger = true;
        }
        from_other_signals(c, i);
    }
    for (uint32_t i = 0; i < c->cands.n; i++) {
        from_rows(c, &c->cands.v[i]);
    }
    fr_case_numbers(c);
    interrupted_alone(c);
}

/* Watchdogs that complain about their own process: it is the one that is stuck, as far as others are seen to which it can be compared. */
static bool is_own_trouble(const struct fr_case *c, const struct fr_obs *o)
{
    const char *id = c->lib->failures[o->failure].id;
    uint32_t heard = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        heard += c->ranks.v[i].life != NULL || c->ranks.v[i].symptom != NULL;
    }
    return o->rank >= 0 && 2 * (int32_t)heard > c->world && (strcmp(id, "nccl-watchdog-heartbeat") == 0 || strcmp(id, "gil-induced-hang") == 0);
}

/* Was somebody dead when the order came? Not where all ends that are seen follow it. */
static bool died_before(const struct fr_case *c, const struct fr_obs *order)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt == c->attempt && o->e->fact == FR_FACT_EXIT && fr_event_num(o->e, FR_KEY_EXITCODE, 0) != 0 && !is_behind(o, order)) {
            return true;
        }
    }
    return false;
}

/* srun tells of every task that it was terminated, of none that it ended by itself. */
static bool all_terminated(const struct fr_case *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->attempt != c->attempt || o->e->fact != FR_FACT_EXIT) {
            continue;
        }
        if (fr_event_num(o->e, FR_KEY_EXITCODE, 0) != -15 || !fr_sv_eq(fr_event_text(o->e, FR_KEY_REASON), FR_SV("srun"))) {
            return false;
        }
        n++;
    }
    return n != 0;
}

/* A launcher was told to stop before anything had failed under it, and elsewhere there are only victims: its node went first. Where
 * nothing at all had failed and the scheduler says that it cancelled the job, that is who told it. A step is cancelled when a task of
 * it failed, too; a job as a whole only by somebody's order. */
static void stopped_from_outside(struct fr_case *c)
{
    const struct fr_obs *told = NULL, *order = NULL;
    bool job = false;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        order = order == NULL && o->attempt == c->attempt && o->e->fact == FR_FACT_SCHEDULER && o->failure >= 0 ? o : order;
        job |= order != NULL && o->attempt == c->attempt && fr_sv_has(o->e->text, FR_SV("*** JOB "));
        if (o->attempt == c->attempt && o->e->fact == FR_FACT_STOP_RECEIVED && o->e->level >= FR_LEVEL_WARN && told == NULL &&
            (c->src_exits[o->src] == 0 || c->src_exits[o->src] > o->e->line)) {
            told = o;
        }
    }
    bool alive = order != NULL && !died_before(c, order);
    bool ordered = alive && (told != NULL || ((job || all_terminated(c)) && !fr_case_has_complaints(c)));
    int32_t f = ordered ? order->failure : told != NULL ? fr_case_class(c, "torchrun-sigterm-cascade") : -1;
    told = ordered ? order : told;
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_SYMPTOM);
    if (k != NULL && k->ground == FR_GROUND_SYMPTOM) {
        fr_cand_obs(c, k, (uint32_t)(told - c->obs.v));
        k->node = c->nodes.n > 1 && told->node >= 0 ? c->nodes.v[told->node].name : FR_SV_NONE;
        k->score = -20; /* before every mere victim, behind every cause */
        fr_cand_for(c, k, ordered ? "the job was cancelled before a process of it had failed"
                                  : "the launcher was told to stop before a process of its own had failed");
    }
}

/* ---- victims only: the class of the best symptom is the answer when there is no cause to name ---- */
void fr_case_symptoms(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        /* the kernel's "INFO: task python:40122 blocked ..." is no mere information */
        bool quiet = o->e->level != FR_LEVEL_NONE && o->e->level < FR_LEVEL_WARN && !o->waits && !o->e->is_kernel;
        if (o->attempt != c->attempt || o->recovered) {
            continue;
        }
        c->failed |= o->e->fact == FR_FACT_STOP_SENT || o->e->fact == FR_FACT_STOP_RECEIVED ||
                     (o->e->fact == FR_FACT_SCHEDULER && o->meaning == FR_MEANS_TEARDOWN);
        if (quiet) {
            continue;
        }
        bool user = o->e->trace != NULL && fr_sv_ends(o->e->trace->exception, FR_SV("KeyboardInterrupt"));
        bool ended = (o->e->trace != NULL && !user) || (o->failure >= 0 && strcmp(c->lib->failures[o->failure].id, "torchrun-child-failed") == 0);
        c->failed |= o->meaning == FR_MEANS_SYMPTOM || (o->meaning == FR_MEANS_TEARDOWN && (ended || (o->e->level != FR_LEVEL_NONE && !user)));
        if (o->meaning != FR_MEANS_SYMPTOM || o->failure < 0) {
            continue;
        }
        struct fr_cand *k = fr_case_cand(c, o->failure, FR_GROUND_SYMPTOM);
        if (k == NULL || (k->ground != FR_GROUND_SYMPTOM)) {
            continue;
        }
        bool first = k->obs.n == 0;
        fr_cand_obs(c, k, i);
        if (first) {
            bool very_first = true;
            for (uint32_t n = 0; n < c->cands.n; n++) {
                very_first &= &c->cands.v[n] == k || c->cands.v[n].ground != FR_GROUND_SYMPTOM;
            }
            k->score = (very_first ? -36 : -40) + 0.3 * c->lib->failures[o->failure].weight;
            fr_cand_against(c, k, "it is what a victim prints when another process has failed");
        }
        uint8_t about = o->signal >= 0 ? c->lib->signals[o->signal].about : FR_ABOUT_REPORTER;
        bool about_peer = about == FR_ABOUT_PEER;
        if (is_own_trouble(c, o)) {
            fr_cand_rank(c, k, o->rank);
        }
        if ((about_peer || about == FR_ABOUT_CAPTURED) && o->subject >= 0) {
            fr_cand_rank(c, k, o->subject);
            k->silent = true;
        }
        int32_t gone = o->e->fact == FR_FACT_EXIT ? fr_case_exit_rank(c, o) : -1;
        if (gone >= 0) { /* its launcher saw it go, and cannot tell how */
            fr_cand_rank(c, k, gone);
            k->silent = true;
        }
        fr_sv peer = fr_event_text(o->e, FR_KEY_PEER);
        if (about_peer && k->node.n == 0 && peer.n != 0) {
            k->node = peer;
        }
    }
    stopped_from_outside(c);
}
