/* SPDX-License-Identifier: Apache-2.0 */
/* pp_stage_asymmetry: a pipeline of real processes that runs Megatron's 1F1B schedule, until one
 * stage disagrees with its neighbours about what comes next. */
#include "repro/crewplay.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>

#define STEPS 6
#define FAULT 4 /* the iteration in which they disagree */
#define FEW 4   /* microbatches before, where the batch grows */
#define RATE 0.5
#define HIDDEN 64
#define MANY 32

enum { EXTRA_REDUCTION, FEWER_MICROBATCHES };
static const char *const policies[] = {"extra-reduction", "fewer-microbatches", NULL};
static const struct fr_repro_param params[] = {
    {"rank", 2, 0, FR_RING_RANKS - 1, true, NULL, "the stage that disagrees"},
    {"stages", 4, 3, FR_RING_RANKS, true, NULL, "stages of the pipeline, one process each"},
    {"microbatches", 8, FEW + 1, MANY, true, NULL, "microbatches of an iteration"},
    {"policy", EXTRA_REDUCTION, 0, 0, false, policies, "what that stage does otherwise"},
    {"hidden", 8, 1, HIDDEN, true, NULL, "elements of an activation"},
    {"timeout", 1500, 100, 60000, true, NULL, "milliseconds until a wait is given up"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

/* What a rank leaves behind. */
struct seat {
    uint32_t steps;             /* iterations done */
    uint32_t forwards, planned; /* forward passes of the last one, done and meant to do */
    double loss[STEPS], norm[STEPS];
    struct fr_ring_fault fault; /* its group is a pointer of another process */
    char group[48];
};

struct plan {
    uint32_t stages, microbatches, hidden, timeout;
    int32_t odd; /* -1: all stages agree */
    int policy;
    uint64_t seed;
    const char *folder;
};

/* One stage while it runs. */
struct stage {
    const struct plan *plan;
    struct fr_ring *ring;
    struct fr_ring_group *model, *pipe;
    struct fr_ranklog log;
    struct seat *seat;
    uint32_t n, m; /* hidden, microbatches of this iteration */
    double w[HIDDEN * HIDDEN], g[HIDDEN * HIDDEN];
    double x[MANY][HIDDEN], y[MANY][HIDDEN], d[HIDDEN], dx[HIDDEN];
    double loss;
};

static bool is_first(const struct stage *s)
{
    return s->pipe->rank == 0;
}

static bool is_last(const struct stage *s)
{
    return s->pipe->rank + 1u == s->plan->stages;
}

/* ---- compute ---- */

/* Input of the first stage, or target of the last one: both ends read the same data. */
static void data(const struct stage *s, uint32_t micro, bool is_target, double *v)
{
    struct fr_rng g = {s->plan->seed * 977 + micro};
    for (uint32_t i = 0; i < s->n; i++) {
        const double u = fr_rng_uniform(&g);
        v[i] = is_target ? 0.8 * u - 0.4 : 2 * u - 1;
    }
}

static void forward(struct stage *s, uint32_t k)
{
    if (is_first(s)) {
        data(s, k, false, s->x[k]);
    }
    fr_lab_matvec(FR_F32, s->w, s->x[k], s->n, s->n, s->y[k]);
    for (uint32_t i = 0; i < s->n; i++) {
        s->y[k][i] = fr_lab_to(FR_F32, fr_lab_tanh(s->y[k][i]));
    }
    s->seat->forwards++;
}

/* s->d: gradient of the output; leaves that of the input in s->dx. */
static void backward(struct stage *s, uint32_t k)
{
    if (is_last(s)) {
        data(s, k, true, s->d);
        for (uint32_t i = 0; i < s->n; i++) {
            const double e = s->y[k][i] - s->d[i];
            s->loss += e * e / (s->n * s->m);
            s->d[i] = 2 * e / (s->n * s->m);
        }
    }
    for (uint32_t i = 0; i < s->n; i++) {
        s->d[i] *= 1 - s->y[k][i] * s->y[k][i];
        for (uint32_t j = 0; j < s->n; j++) {
            s->g[i * s->n + j] += s->d[i] * s->x[k][j];
        }
    }
    fr_lab_matvec_t(FR_F32, s->w, s->d, s->n, s->n, s->dx);
}

/* ---- the schedule: forward_backward_pipelining_without_interleaving ---- */

/* One batch_isend_irecv; NULL: nothing that way. Ends of the pipeline have no neighbour there. */
static int communicate(struct stage *s, double *send_prev, double *recv_prev, double *send_next,
                       double *recv_next)
{
    struct fr_ring_p2p op[4];
    uint32_t n = 0;
    const uint8_t prev = (uint8_t)(s->pipe->rank - 1), next = (uint8_t)(s->pipe->rank + 1);
    double *const what[] = {send_prev, recv_prev, send_next, recv_next};
    for (int i = 0; i < 4; i++) {
        if (what[i] != NULL && !(i < 2 ? is_first(s) : is_last(s))) {
            op[n++] = (struct fr_ring_p2p){i % 2 == 1, i < 2 ? prev : next, what[i], s->n};
        }
    }
    return fr_ring_exchange(s->ring, s->pipe, op, n);
}

static int steady(struct stage *s, uint32_t warm)
{
    int rc = 0;
    for (uint32_t i = 0; i + warm < s->m && rc == 0; i++) {
        const uint32_t k = i + warm;
        forward(s, k);
        rc = communicate(s, NULL, NULL, s->y[k], s->d); /* send forward, receive backward */
        if (rc == 0) {
            backward(s, i);
            rc = communicate(s, s->dx, k + 1 < s->m ? s->x[k + 1] : NULL, NULL, NULL);
        }
    }
    return rc;
}

static int one_iteration(struct stage *s)
{
    const uint32_t ahead = s->plan->stages - s->pipe->rank - 1u, warm = ahead < s->m ? ahead : s->m;
    int rc = 0;
    for (uint32_t k = 0; k < warm && rc == 0; k++) {
        rc = communicate(s, NULL, s->x[k], NULL, NULL);
        if (rc == 0) {
            forward(s, k);
            rc = communicate(s, NULL, NULL, s->y[k], NULL);
        }
    }
    rc = rc == 0 && warm < s->m ? communicate(s, NULL, s->x[warm], NULL, NULL) : rc;
    rc = rc == 0 ? steady(s, warm) : rc;
    for (uint32_t k = s->m - warm; k < s->m && rc == 0; k++) {
        rc = communicate(s, NULL, NULL, NULL, s->d);
        if (rc == 0) {
            backward(s, k);
            rc = communicate(s, s->dx, NULL, NULL, NULL);
        }
    }
    return rc;
}

/* The auxiliary losses of layers with experts, summed over the pipeline for the log: by all stages,
 * or only by those that have such layers, where a stage without experts forgets that the others
 * count on it. */
static int reduce_aux_losses(struct stage *s, uint32_t step)
{
    double aux[FR_RING_RANKS] = {0.01};
    const bool mine = s->plan->odd < 0 || (s->ring->rank == s->plan->odd && step == FAULT);
    return s->plan->policy == EXTRA_REDUCTION && mine
               ? fr_ring_all_reduce(s->ring, s->pipe, aux, s->plan->stages)
               : 0;
}

/* Gradient norm over all stages, and the step. */
static int update(struct stage *s, double *ret_norm)
{
    double square = 0;
    for (uint32_t i = 0; i < s->n * s->n; i++) {
        square += s->g[i] * s->g[i];
    }
    const int rc = fr_ring_all_reduce(s->ring, s->model, &square, 1);
    *ret_norm = sqrt(square);
    for (uint32_t i = 0; i < s->n * s->n && rc == 0; i++) {
        s->w[i] = fr_lab_to(FR_F32, s->w[i] - RATE * s->g[i]);
    }
    return rc;
}

/* ---- a rank ---- */

/* Megatron computes it on every rank by itself, from the samples that the rank has consumed. */
static uint32_t microbatches(const struct stage *s, uint32_t step)
{
    const bool grows = s->plan->policy == FEWER_MICROBATCHES, odd = s->ring->rank == s->plan->odd;
    return grows && (step < FAULT || odd) ? FEW : s->plan->microbatches;
}

static void log_start(struct stage *s)
{
    char at[40];
    if (s->ring->rank == 0) {
        fr_ranklog_out(
            &s->log,
            "using world size: %u, data-parallel size: 1, context-parallel size: 1, hierarchical "
            "context-parallel "
            "sizes: None, tensor-model-parallel size: 1, pipeline-model-parallel size: %u\n",
            s->plan->stages, s->plan->stages);
        if (s->plan->policy == FEWER_MICROBATCHES) {
            fr_ranklog_out(&s->log,
                           "will use batch size rampup starting from global batch size %d to "
                           "global batch size %u with batch size "
                           "increments %u over %d samples.\n",
                           FEW, s->plan->microbatches, s->plan->microbatches - FEW,
                           FEW * (FAULT - 1));
        }
        fr_ranklog_stamp(at);
        fr_ranklog_out(&s->log, "[before the start of training step] datetime: %.19s \n", at + 2);
    }
}

/* print_rank_last */
static void log_iteration(struct stage *s, uint32_t step, uint32_t consumed, double norm)
{
    char at[40];
    if (is_last(s)) {
        fr_ranklog_out(&s->log,
                       "%s iteration %8u/%8d | consumed samples: %12u | elapsed time per iteration "
                       "(ms): %.1f | learning rate: "
                       "%.6E | global batch size: %5u | lm loss: %.6E | loss scale: 1.0 | grad "
                       "norm: %.3f | number of skipped "
                       "iterations:   0 | number of nan iterations:   0 |\n",
                       fr_ranklog_stamp(at), step, STEPS, consumed, 1.0, RATE, s->m, s->loss, norm);
    }
}

static int train(struct stage *s)
{
    uint32_t consumed = 0;
    int rc = fr_ring_barrier(s->ring, &s->ring->group[0]);
    log_start(s);
    for (uint32_t step = 1; step <= STEPS && rc == 0; step++) {
        double norm = 0;
        s->m = microbatches(s, step);
        s->loss = 0;
        s->seat->forwards = 0;
        s->seat->planned = s->m;
        memset(s->g, 0, sizeof s->g);
        rc = one_iteration(s);
        rc = rc == 0 ? update(s, &norm) : rc;
        if (rc == 0) {
            consumed += s->m;
            s->seat->loss[step - 1] = s->loss;
            s->seat->norm[step - 1] = norm;
            s->seat->steps = step;
            rc = reduce_aux_losses(s, step);
        }
        if (rc == 0) {
            log_iteration(s, step, consumed, norm);
        }
    }
    return rc;
}

static void set_up(struct stage *s)
{
    struct fr_rng g = {s->plan->seed * 31 + (uint64_t)s->ring->rank};
    uint8_t all[FR_RING_RANKS];
    for (uint8_t i = 0; i < FR_RING_RANKS; i++) {
        all[i] = i;
    }
    (void)fr_ring_new_world(s->ring);
    s->model = fr_ring_new_group(s->ring, "MODEL_PARALLEL_GROUP", all, (uint8_t)s->plan->stages);
    s->pipe =
        fr_ring_new_group(s->ring, "PIPELINE_MODEL_PARALLEL_GROUP", all, (uint8_t)s->plan->stages);
    fr_rng_fill(&g, s->w, (size_t)s->n * s->n, 1.2 / sqrt(s->n), FR_F32);
    fr_ranklog_open(&s->log, s->plan->folder, s->ring->rank);
}

static int rank_body(struct fr_ring *ring, void *seat, void *ctx)
{
    static struct stage s; /* large, and the process is its own */
    char at[40];
    s.plan = ctx;
    s.ring = ring;
    s.seat = seat;
    s.n = s.plan->hidden;
    set_up(&s);
    const int rc = train(&s);
    if (rc == 0 && ring->rank == 0) {
        fr_ranklog_stamp(at);
        fr_ranklog_out(&s.log, "[after training is done] datetime: %.19s \n", at + 2);
    }
    if (rc != 0) {
        s.seat->fault = ring->fault;
        snprintf(s.seat->group, sizeof s.seat->group, "%s", ring->fault.group->desc);
        fr_ranklog_timeout(&s.log, ring);
        fr_crew_desk(ring);
        fr_ranklog_teardown(&s.log, ring);
    }
    fr_ranklog_close(&s.log);
    if (rc != 0) {
        (void)signal(SIGABRT, SIG_DFL);
        raise(SIGABRT); /* std::terminate */
    }
    return 0;
}

/* ---- the acts ---- */

struct outcome {
    struct seat seat[FR_RING_RANKS];
    struct fr_crewplay play;
};

static int run_pipeline(struct fr_lab *lab, struct plan *plan, const char *name,
                        struct outcome *ret, struct fr_err *err)
{
    const struct fr_crew crew = {plan->stages,        plan->timeout, plan->timeout * 3 + 10000,
                                 sizeof(struct seat), rank_body,     plan};
    plan->folder = ret->play.folder;
    return fr_crewplay_run(lab, &crew, name, "pretrain_gpt.py", &ret->play, ret->seat, err);
}

static void show_losses(struct fr_lab *lab, const struct seat *last)
{
    struct fr_curve *loss = fr_result_curve(lab->result, "lm loss", "iteration", false);
    for (uint32_t i = 0; i < STEPS && i < last->steps; i++) {
        fr_curve_add(loss, last->loss[i]);
    }
}

static int fails(struct fr_lab *lab, struct plan *plan, struct outcome *o, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    uint32_t stuck = 0, aborted = 0;
    fr_result_act(r, FR_ACT_FAILS, "every stage waits, and none has crashed");
    const int rc = run_pipeline(lab, plan, "fails", o, err);
    for (uint32_t i = 0; i < plan->stages && rc == 0; i++) {
        stuck += o->seat[i].steps >= FAULT - 1 && o->seat[i].fault.why == FR_RING_LATE;
        aborted += o->play.end[i].exitcode == -SIGABRT;
    }
    fr_result_say(
        r,
        plan->policy == EXTRA_REDUCTION
            ? "%u processes run Megatron's 1F1B schedule over sockets. After iteration %d, one "
              "stage reduces the auxiliary loss of "
              "its experts over the pipeline group; the others have no experts and do not."
            : "%u processes run Megatron's 1F1B schedule over sockets. In iteration %d the batch "
              "grows, but one stage counts "
              "samples otherwise and keeps the old number of microbatches.",
        plan->stages, FAULT);
    show_losses(lab, &o->seat[plan->stages - 1]);
    fr_result_claim(r, "all-hang", stuck == plan->stages,
                    "it trains, then all stages wait until the time-out",
                    "%u of %u stages timed out", stuck, plan->stages);
    fr_result_claim(r, "all-abort", aborted == plan->stages,
                    "the watchdog takes every process down: exit codes tell nothing",
                    "%u of %u ended by SIGABRT", aborted, plan->stages);
    return rc;
}

static void table_of_waits(struct fr_lab *lab, const struct plan *plan, const struct outcome *o)
{
    static const char *const heads[] = {"rank",   "forwards",  "waits in", "of group",
                                        "SeqNum", "completed", "for rank", NULL};
    struct fr_table *t = fr_result_table(lab->result, "where each stage stands", heads);
    for (uint32_t i = 0; i < plan->stages; i++) {
        const struct seat *s = &o->seat[i];
        fr_table_cell(t, "%u", i);
        fr_table_cell(t, "%u of %u", s->forwards, s->planned);
        fr_table_cell(t, "%s", fr_ring_op_name(s->fault.op));
        fr_table_cell(t, "%s", s->group);
        fr_table_cell(t, "%lld", (long long)s->fault.seq);
        fr_table_cell(t, "%lld", (long long)s->fault.completed);
        if (s->fault.op == FR_RING_COALESCED) {
            fr_table_cell(t, "%d", s->fault.peer);
        } else {
            fr_table_cell(t, "all others");
        }
    }
}

/* "0 -> 1 -> 2 <- 3": who waits for whom, as far as the pipeline tells. */
static void picture(struct fr_lab *lab, const struct plan *plan, const struct outcome *o)
{
    char line[160] = "";
    for (uint32_t i = 0; i < plan->stages; i++) {
        const size_t n = strlen(line);
        const bool right = i + 1 < plan->stages && o->seat[i].fault.op == FR_RING_COALESCED &&
                           o->seat[i].fault.peer == (int32_t)i + 1;
        const bool left = i + 1 < plan->stages && o->seat[i + 1].fault.op == FR_RING_COALESCED &&
                          o->seat[i + 1].fault.peer == (int32_t)i;
        const char *arrow = right && left ? " <> " : right ? " -> " : left ? " <- " : " .. ";
        snprintf(line + n, sizeof line - n, "%u%s", i, i + 1 < plan->stages ? arrow : "");
    }
    fr_result_say(lab->result, "Who waits for whom in the pipeline: %s", line);
}

/* How many stages wait outside of the pipeline; *ret_rank is the last of them. */
static uint32_t elsewhere(const struct plan *plan, const struct outcome *o, int32_t *ret_rank)
{
    uint32_t n = 0;
    *ret_rank = -1;
    for (uint32_t i = 0; i < plan->stages; i++) {
        if (o->seat[i].fault.op != FR_RING_COALESCED) {
            n++;
            *ret_rank = (int32_t)i;
        }
    }
    return n;
}

static void why(struct fr_lab *lab, const struct plan *plan, const struct outcome *o)
{
    struct fr_result *r = lab->result;
    uint32_t pointed = 0;
    int32_t out;
    const uint32_t n = elsewhere(plan, o, &out);
    fr_result_act(r, FR_ACT_WHY,
                  n > 0 ? "one stage waits outside of the pipeline, for those that wait for it"
                        : "two neighbours wait for each other");
    table_of_waits(lab, plan, o);
    picture(lab, plan, o);
    for (int32_t i = 0; i < (int32_t)plan->stages;
         i++) { /* the break is at that stage: all waits lead towards it */
        pointed += i != plan->odd && o->seat[i].fault.op == FR_RING_COALESCED &&
                   o->seat[i].fault.peer == (i < plan->odd ? i + 1 : i - 1);
    }
    fr_result_claim(r, "all-point-there", pointed + 1 == plan->stages,
                    "all other stages wait for it, directly or through their neighbours",
                    "%u of %u", pointed, plan->stages - 1);
    if (n > 0 || plan->policy == EXTRA_REDUCTION) {
        fr_result_claim(r, "one-elsewhere", n == 1 && out == plan->odd,
                        "all wait in sends and receives (COALESCED), but one in an all-reduce",
                        "rank %d in %s", out,
                        out >= 0 ? fr_ring_op_name(o->seat[out].fault.op) : "none");
    } else {
        const int32_t next = o->seat[plan->odd].fault.peer;
        fr_result_claim(
            r, "wait-for-each-other",
            next == plan->odd + 1 && o->seat[next].fault.peer == plan->odd,
            "it waits for a gradient of the next stage, which waits for one more microbatch",
            "rank %d for rank %d, and back", plan->odd, next);
    }
    if (plan->policy == FEWER_MICROBATCHES) {
        fr_result_claim(r, "fewer-microbatches", o->seat[plan->odd].planned < plan->microbatches,
                        "it meant to do fewer microbatches", "%u, not %u",
                        o->seat[plan->odd].planned, plan->microbatches);
    }
    char who[40] = "The run failed, first rank unknown";
    if (n == 1) {
        snprintf(who, sizeof who, "Rank %d failed first", out);
    }
    fr_crewplay_diagnosed(
        lab, &o->play,
        "faultrank diagnose names the failure, and the stage where the logs can tell it", who);
}

static int fix(struct fr_lab *lab, struct plan *plan, struct outcome *o, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    uint32_t done = 0;
    fr_result_act(r, FR_ACT_FIX, "all stages agree on the schedule");
    plan->odd = -1;
    const int rc = run_pipeline(lab, plan, "fixed", o, err);
    const struct seat *last = &o->seat[plan->stages - 1];
    for (uint32_t i = 0; i < plan->stages; i++) {
        done += o->seat[i].steps == STEPS && o->play.end[i].exitcode == 0;
    }
    show_losses(lab, last);
    fr_result_claim(r, "fixed-finishes",
                    done == plan->stages && last->loss[STEPS - 1] < last->loss[0],
                    "the same run finishes, and the loss falls",
                    "%u of %u stages did %d iterations, loss %.3g to %.3g", done, plan->stages,
                    STEPS, last->loss[0], last->loss[STEPS - 1]);
    if (rc == 0) {
        fr_crewplay_healthy(lab, &o->play);
    }
    return rc;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct plan plan = {.stages = fr_lab_count(lab, "stages"),
                        .microbatches = fr_lab_count(lab, "microbatches"),
                        .hidden = fr_lab_count(lab, "hidden"),
                        .timeout = fr_lab_count(lab, "timeout"),
                        .odd = (int32_t)fr_lab_get(lab, "rank"),
                        .policy = (int)fr_lab_get(lab, "policy"),
                        .seed = (uint64_t)fr_lab_get(lab, "seed")};
    struct outcome *o = FR_NEW(&lab->scratch, struct outcome);
    if (o == NULL) {
        return fr_lab_nomem(err);
    }
    if (plan.odd >= (int32_t)plan.stages) {
        return fr_err_set(err, FR_ARG, "there is no stage %d in a pipeline of %u", plan.odd,
                          plan.stages);
    }
    int rc = fails(lab, &plan, o, err);
    if (rc == 0) {
        why(lab, &plan, o);
        rc = fix(lab, &plan, o, err);
    }
    return rc;
}

const struct fr_repro fr_repro_pp_stage_asymmetry = {
    .id = "megatron-pp-stage-asymmetry-hang",
    .summary = "a pipeline of processes in which one stage does fewer microbatches: it hangs",
    .params = params,
    .needs_folder = true,
    .run = run,
};
