/* SPDX-License-Identifier: Apache-2.0 */
/* causes: candidates that somebody printed, one per failure class, with all its sightings; and candidates from series. */
#include "incident/case.h"

#include <math.h>
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
    } else {
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

/* ---- series ---- */

static const struct fr_signal *metric_signal(const struct fr_case *c, const struct fr_finding *f, uint32_t from)
{
    for (uint32_t i = from; i < c->lib->n_signals; i++) {
        const struct fr_signal *s = &c->lib->signals[i];
        if (s->metric == (int)f->metric && s->finding == (int)f->kind && (s->until_step < 0 || f->step <= s->until_step)) {
            return s;
        }
    }
    return NULL;
}

/* In how many sources: those that print metrics, and those where a detector found this kind in this metric. */
struct shares {
    uint32_t printing, found[FR_METRIC_COUNT_][FR_FINDING_COUNT_];
};

static void count_shares(const struct fr_case *c, struct shares *ret)
{
    *ret = (struct shares){0};
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        ret->printing += s->metric_points != 0;
        for (uint32_t k = 0; k < s->findings.n; k++) {
            const struct fr_finding *f = &s->findings.v[k];
            bool again = false;
            for (uint32_t j = 0; j < k; j++) {
                again |= s->findings.v[j].metric == f->metric && s->findings.v[j].kind == f->kind;
            }
            ret->found[f->metric][f->kind] += !again;
        }
    }
}

/* What only stands out from noise does so by chance in a few of thousands of series. Ranks share their steps, their loss and the norm of
 * their gradients, so what is real shows in more than one in twenty of them. */
static bool by_chance(const struct shares *all, const struct fr_finding *f)
{
    bool noise = f->kind == FR_FINDING_DROP || f->kind == FR_FINDING_SPIKE || f->kind == FR_FINDING_JUMP;
    return noise && all->found[f->metric][f->kind] * 20 < all->printing;
}

/* A loss scaler says in this log that it skips the steps whose gradients are not finite. */
static bool skips(const struct fr_case *c, uint32_t src)
{
    const int32_t skip = fr_case_class(c, "deepspeed-overflow-skip");
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        if (o->src == src && ((o->failure >= 0 && o->failure == skip) || fr_sv_has(o->e->text, FR_SV("kipping step")) || fr_sv_has(o->e->text, FR_SV("verflow detected")))) {
            return true;
        }
    }
    return false;
}

static void from_finding(struct fr_case *c, uint32_t src, const struct fr_finding *f)
{
    /* law 8: it came back; of a gradient norm only the very first value is nothing, a scaler's search */
    bool first_step = f->n_bad <= 1 && f->step >= 0 && f->last_good_step < 0;
    bool back = f->n_after_good >= 3;
    bool over = !f->terminal && (f->metric == FR_METRIC_GRAD_NORM ? first_step || (back && (skips(c, src) || fr_case_ended_well(c))) : back);
    const struct fr_signal *s = over ? NULL : metric_signal(c, f, 0);
    for (; s != NULL; s = metric_signal(c, f, (uint32_t)(s - c->lib->signals) + 1)) {
        struct fr_cand *k = s->role == FR_ROLE_CAUSE ? fr_case_cand(c, s->failure, FR_GROUND_SERIES) : NULL;
        if (k == NULL || (k->finding != NULL && (k->finding_src != src || k->finding->line <= f->line))) {
            continue;
        }
        k->finding = f;
        k->finding_src = src;
        k->n_unknown++; /* a metric line is one rank's print of what all ranks share */
        if (f->note.n != 0) {
            fr_cand_for(c, k, "%.*s", FR_SV_ARG(f->note));
        }
    }
}

/* The first of all findings of k's kind, by steps that ranks share; false when one of them tells no step. */
static bool find_first(struct fr_case *c, struct fr_cand *k)
{
    const struct fr_finding *first = k->finding;
    uint32_t src = k->finding_src;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t n = 0; n < s->findings.n; n++) {
            const struct fr_finding *f = &s->findings.v[n];
            if (f->metric != first->metric || f->kind != first->kind) {
                continue;
            }
            if (f->step < 0) {
                return false;
            }
            if (f->step < first->step) {
                first = f;
                src = i;
            }
        }
    }
    k->finding = first;
    k->finding_src = src;
    return true;
}

/* Every rank prints the same norm, of the gradients after they were reduced. Its own loss in that step says more. */
static void prefer_loss(struct fr_case *c, struct fr_cand *k)
{
    const struct fr_finding *norm = k->finding;
    for (uint32_t i = 0; i < c->set->sources.n && k->finding->metric == FR_METRIC_GRAD_NORM; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t n = 0; n < s->findings.n; n++) {
            const struct fr_finding *f = &s->findings.v[n];
            if (f->metric == FR_METRIC_LOSS && f->kind == norm->kind && f->step >= 0 && f->step == norm->step) {
                k->finding = f;
                k->finding_src = i;
            }
        }
    }
}

/* A loss or norm that each rank prints of its own becomes NaN everywhere once the gradients were reduced. Where exactly one rank has it
 * some steps before all the others, it began there. */
static void first_to_go_bad(struct fr_case *c, struct fr_cand *k)
{
    uint32_t others = 0;
    prefer_loss(c, k);
    if (!find_first(c, k)) {
        return;
    }
    const struct fr_finding *first = k->finding;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t n = 0; n < s->findings.n; n++) {
            const struct fr_finding *f = &s->findings.v[n];
            if (f == first || f->metric != first->metric || f->kind != first->kind) {
                continue;
            }
            if (fr_case_rank_of(c, &f->who, i) < 0 || f->last_good_step < first->step) {
                return; /* nobody's, bad in the same step, or nothing printed in it */
            }
            others++;
        }
    }
    int32_t rank = fr_case_rank_of(c, &first->who, k->finding_src);
    if (rank >= 0 && others != 0 && (int32_t)others + 1 >= c->world) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "rank %d had it in step %lld, all others later", rank, (long long)first->step);
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
    struct shares all;
    count_shares(c, &all);
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t k = 0; k < s->findings.n; k++) {
            if (!by_chance(&all, &s->findings.v[k])) {
                from_finding(c, i, &s->findings.v[k]);
            }
        }
    }
    for (uint32_t i = 0; i < c->cands.n; i++) {
        struct fr_cand *k = &c->cands.v[i];
        if (k->ground == FR_GROUND_SERIES && k->finding != NULL && (k->finding->kind == FR_FINDING_NAN || k->finding->kind == FR_FINDING_INF)) {
            first_to_go_bad(c, k);
        }
    }
}

/* Watchdogs that complain about their own process: it is the one that is stuck. */
static bool is_own_trouble(const struct fr_case *c, const struct fr_obs *o)
{
    const char *id = c->lib->failures[o->failure].id;
    return o->rank >= 0 && (strcmp(id, "nccl-watchdog-heartbeat") == 0 || strcmp(id, "gil-induced-hang") == 0);
}

/* Was somebody dead when the order came? Not where all ends that are seen follow it. */
static bool died_before(const struct fr_case *c, const struct fr_obs *order)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        bool timed = o->began != FR_TIME_NONE && order->began != FR_TIME_NONE;
        bool behind = o->src == order->src ? o->e->line > order->e->line : timed && o->began - o->slack > order->began + order->slack;
        if (o->attempt == c->attempt && o->e->fact == FR_FACT_EXIT && fr_event_num(o->e, FR_KEY_EXITCODE, 0) != 0 && !behind) {
            return true;
        }
    }
    return false;
}

/* A launcher was told to stop before anything had failed under it, and elsewhere there are only victims: its node went first. Where
 * nothing at all had failed and the scheduler says that it cancelled the job, that is who told it. */
static void stopped_from_outside(struct fr_case *c)
{
    const struct fr_obs *told = NULL, *order = NULL;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        order = order == NULL && o->attempt == c->attempt && o->e->fact == FR_FACT_SCHEDULER && o->failure >= 0 ? o : order;
        if (o->attempt == c->attempt && o->e->fact == FR_FACT_STOP_RECEIVED && o->e->level >= FR_LEVEL_WARN && told == NULL &&
            (c->src_exits[o->src] == 0 || c->src_exits[o->src] > o->e->line)) {
            told = o;
        }
    }
    bool ordered = told != NULL && order != NULL && !died_before(c, order);
    int32_t f = told == NULL ? -1 : ordered ? order->failure : fr_case_class(c, "torchrun-sigterm-cascade");
    told = ordered ? order : told;
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_SYMPTOM);
    if (k != NULL && k->ground == FR_GROUND_SYMPTOM) {
        fr_cand_obs(c, k, (uint32_t)(told - c->obs.v));
        k->node = c->nodes.n > 1 && told->node >= 0 ? c->nodes.v[told->node].name : FR_SV_NONE;
        k->score = -20; /* before every mere victim, behind every cause */
        fr_cand_for(c, k, "the launcher was told to stop before a process of its own had failed");
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
