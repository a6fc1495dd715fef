/* SPDX-License-Identifier: Apache-2.0 */
/* fsdp_divergent_init: data-parallel processes that hold whole replicas (NO_SHARD; the replicas of
 * HYBRID_SHARD are the same), one of which begins with other weights. Nothing complains. */
#include "repro/alphabet.h"
#include "repro/crewplay.h"

#include <math.h>
#include <stdio.h>

#define STEPS 80
#define VOCAB FR_ALPHABET_VOCAB
#define WORDS FR_ALPHABET_WORDS

enum { EMBED = FR_ALPHABET_EMBED, NORM = FR_ALPHABET_NORM, TENSORS = FR_ALPHABET_TENSORS };
enum { SEED, EVERY, LOAD };
static const char *const policies[] = {"seed", "every", "load", NULL};
static const struct fr_repro_param params[] = {
    {"rank", 2, 0, FR_RING_RANKS - 1, true, NULL, "the rank that begins with other weights"},
    {"ranks", 4, 3, FR_RING_RANKS, true, NULL, "processes, each with a replica"},
    {"policy", SEED, 0, 0, false, policies,
     "how they differ: one rank has another seed, every rank has one of its own, one rank did not "
     "load the weights"},
    {"hidden", 16, 4, FR_ALPHABET_HIDDEN, true, NULL, "elements of an activation"},
    {"timeout", 5000, 100, 60000, true, NULL, "milliseconds until a wait is given up"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

/* ---- a rank ---- */

struct seat {
    uint32_t steps;
    uint32_t sum[TENSORS]; /* after initialisation */
    double loss[STEPS], norm[STEPS];
    double apart[2]; /* largest distance of a weight from rank 0's, before and after training */
    int32_t named;   /* whom the check named; -1 nobody, -2 all differ */
    int32_t tensor;  /* the first one that differs */
    bool lost;       /* the ring failed */
};

struct plan {
    uint32_t ranks, hidden, timeout;
    int32_t odd;
    int policy;
    bool check, synchronise;
    uint64_t seed;
    const char *folder;
    const struct fr_alphabet *trained; /* of LOAD */
};

struct rank {
    const struct plan *plan;
    struct fr_ring *ring;
    struct fr_ring_group *world;
    struct fr_ranklog log;
    struct seat *seat;
    struct fr_alphabet m;
    double buffer[FR_RING_RANKS * TENSORS];
};

static void initialise(struct rank *k)
{
    const struct plan *p = k->plan;
    const bool odd = k->ring->rank == p->odd;
    uint64_t seed = p->seed;
    if (p->policy == EVERY || odd) {
        seed += 1000 + (uint64_t)k->ring->rank;
    }
    fr_alphabet_new(&k->m, p->hidden, seed);
    if (p->policy == LOAD && !odd) {
        k->m = *p->trained;
    }
}

/* sync_module_states=True. */
static int synchronise(struct rank *k)
{
    int rc = 0;
    for (int t = 0; t < TENSORS && rc == 0; t++) {
        rc = fr_ring_broadcast(k->ring, k->world, 0, k->m.w + k->m.at[t],
                               k->m.at[t + 1] - k->m.at[t]);
    }
    return rc;
}

static bool same_sums(const double *a, const double *b)
{
    return memcmp(a, b, TENSORS * sizeof *a) == 0;
}

/* The page's check_same_parameters(): everybody gets everybody's checksums, and the most frequent
 * ones are the right ones. */
static uint32_t find_odd(struct rank *k, uint32_t *ret_usual)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < k->plan->ranks; i++) {
        uint32_t votes = 0;
        for (uint32_t j = 0; j < k->plan->ranks; j++) {
            votes += same_sums(k->buffer + i * TENSORS, k->buffer + j * TENSORS);
        }
        if (votes > most) {
            most = votes;
            *ret_usual = i;
        }
    }
    uint32_t odd = 0;
    while (odd < k->plan->ranks &&
           same_sums(k->buffer + odd * TENSORS, k->buffer + *ret_usual * TENSORS)) {
        odd++;
    }
    k->seat->named = odd == k->plan->ranks ? -1 : most == 1 ? -2 : (int32_t)odd;
    return odd;
}

static const struct fr_ranklog_frame frames[] = {
    {"/workspace/train.py", 142, "<module>", "main()"},
    {"/workspace/train.py", 97, "main", "check_same_parameters(model)"},
    {"/workspace/train.py", 38, "check_same_parameters", "raise RuntimeError("},
    {NULL, 0, NULL, NULL},
};

/* true: they differ, and the exception was written. */
static bool check_fails(struct rank *k)
{
    char text[300];
    uint32_t usual = 0;
    const uint32_t odd = find_odd(k, &usual);
    if (odd == k->plan->ranks) {
        return false;
    }
    const double *a = k->buffer + odd * TENSORS, *b = k->buffer + usual * TENSORS;
    if (k->seat->named ==
        -2) { /* then the first one is as good as any: compare it with the second */
        a = k->buffer;
        b = k->buffer + TENSORS;
    }
    int t = 0;
    while (t < TENSORS - 1 && a[t] == b[t]) {
        t++;
    }
    k->seat->tensor = t;
    if (k->seat->named == -2) {
        snprintf(text, sizeof text,
                 "RuntimeError: all %u ranks initialised other parameters: %s has crc32 %08x on "
                 "rank 0, %08x on rank 1",
                 k->plan->ranks, fr_alphabet_names[t], (uint32_t)a[t], (uint32_t)b[t]);
    } else {
        snprintf(text, sizeof text,
                 "RuntimeError: rank %u initialised other parameters than the other ranks: %s has "
                 "crc32 %08x, not %08x",
                 odd, fr_alphabet_names[t], (uint32_t)a[t], (uint32_t)b[t]);
    }
    fr_ranklog_raise(&k->log, frames, text);
    return true;
}

static int gather_sums(struct rank *k)
{
    double mine[TENSORS];
    for (int t = 0; t < TENSORS; t++) {
        k->seat->sum[t] = fr_alphabet_checksum(&k->m, t);
        mine[t] = k->seat->sum[t];
    }
    return fr_ring_all_gather(k->ring, k->world, mine, TENSORS, k->buffer);
}

/* Largest distance of a weight from rank 0's. */
static int measure(struct rank *k, double *ret)
{
    static double first[WORDS];
    memcpy(first, k->m.w, sizeof first);
    int rc = 0;
    for (uint32_t at = 0; at < k->m.at[TENSORS] && rc == 0; at += 1024) {
        const uint32_t n = k->m.at[TENSORS] - at < 1024 ? k->m.at[TENSORS] - at : 1024;
        rc = fr_ring_broadcast(k->ring, k->world, 0, first + at, n);
    }
    for (uint32_t i = 0; i < k->m.at[TENSORS]; i++) {
        const double d = fabs(k->m.w[i] - first[i]);
        *ret = d > *ret ? d : *ret;
    }
    return rc;
}

static void log_line(struct rank *k, const char *text)
{
    char at[40];
    fr_ranklog_stamp(at);
    fr_ranklog_out(&k->log, "%.19s,%.3s - train - INFO - [rank %d/%u] %s\n", at + 2, at + 22,
                   k->ring->rank, k->plan->ranks, text);
}

static int train(struct rank *k)
{
    struct fr_rng tokens = {k->plan->seed * 7919 + 17 +
                            (uint64_t)k->ring->rank}; /* every rank has its own data */
    int rc = 0;
    for (uint32_t step = 0; step < STEPS && rc == 0; step++) {
        char text[120];
        k->seat->loss[step] = fr_alphabet_batch(&k->m, &tokens, 1.0 / k->plan->ranks);
        for (int t = 0; t < TENSORS && rc == 0; t++) {
            rc = fr_ring_all_reduce(k->ring, k->world, k->m.g + k->m.at[t],
                                    k->m.at[t + 1] - k->m.at[t]);
        }
        k->seat->norm[step] = rc == 0 ? fr_alphabet_update(&k->m) : NAN;
        k->seat->steps = rc == 0 ? step + 1 : step;
        if (rc == 0 && (step % 5 == 0 || step + 1 == STEPS)) {
            snprintf(text, sizeof text, "step: %2u  loss: %8.5f  grad_norm: %7.4f", step + 1,
                     k->seat->loss[step], k->seat->norm[step]);
            log_line(k, text);
        }
    }
    return rc;
}

static int rank_body(struct fr_ring *ring, void *seat, void *ctx)
{
    static struct rank k; /* large, and the process is its own */
    k.plan = ctx;
    k.ring = ring;
    k.seat = seat;
    k.world = fr_ring_new_world(ring);
    k.seat->named = -1;
    k.seat->tensor = -1;
    fr_ranklog_open(&k.log, k.plan->folder, ring->rank);
    initialise(&k);
    log_line(&k, k.plan->policy == LOAD && ring->rank == k.plan->odd
                     ? "no checkpoint found in /local/ckpt, starting from scratch"
                     : "model initialised");
    int rc = k.plan->synchronise ? synchronise(&k) : 0;
    rc = rc == 0 ? gather_sums(&k) : rc;
    if (rc == 0 && k.plan->check && check_fails(&k)) {
        fr_crew_desk(ring);
        fr_ranklog_close(&k.log);
        return 1;
    }
    rc = rc == 0 ? measure(&k, &k.seat->apart[0]) : rc;
    rc = rc == 0 ? train(&k) : rc;
    rc = rc == 0 ? measure(&k, &k.seat->apart[1]) : rc;
    if (rc == 0) {
        log_line(&k, "training finished");
    }
    k.seat->lost = rc != 0;
    fr_ranklog_close(&k.log);
    return rc != 0;
}

/* ---- the acts ---- */

struct outcome {
    struct seat seat[FR_RING_RANKS];
    struct fr_crewplay play;
};

struct work {
    struct fr_alphabet trained, mixed;
    struct outcome silent, checked, fixed;
};

static int run_crew(struct fr_lab *lab, struct plan *plan, const char *name, struct outcome *ret,
                    struct fr_err *err)
{
    const struct fr_crew crew = {plan->ranks,         plan->timeout, plan->timeout * 3 + 20000,
                                 sizeof(struct seat), rank_body,     plan};
    plan->folder = ret->play.folder;
    return fr_crewplay_run(lab, &crew, name, "train.py", &ret->play, ret->seat, err);
}

/* Over the whole run: how long it took to learn. */
static double mean_loss(const struct seat *s)
{
    double sum = 0;
    for (uint32_t i = 0; i < STEPS; i++) {
        sum += s->loss[i] / STEPS;
    }
    return sum;
}

/* The mean of mean_loss over all ranks but `odd`. */
static double others_loss(const struct plan *plan, const struct outcome *o, int32_t odd)
{
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->ranks; i++) {
        if ((int32_t)i != odd) {
            sum += mean_loss(&o->seat[i]);
            n++;
        }
    }
    return sum / n;
}

static void show_curve(struct fr_lab *lab, const struct outcome *o, uint32_t rank)
{
    char name[32];
    snprintf(name, sizeof name, "loss of rank %u", rank);
    struct fr_curve *c = fr_result_curve(lab->result, name, "step", false);
    for (uint32_t i = 0; i < o->seat[rank].steps; i++) {
        fr_curve_add(c, o->seat[rank].loss[i]);
    }
}

static uint32_t finished(const struct plan *plan, const struct outcome *o)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->ranks; i++) {
        n += o->seat[i].steps == STEPS && o->play.end[i].exitcode == 0;
    }
    return n;
}

/* Some other rank than the odd one. */
static uint32_t another(const struct plan *plan)
{
    return plan->odd == 0 ? 1 : 0;
}

static int fails(struct fr_lab *lab, struct plan *plan, struct work *w, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    const struct outcome *o = &w->silent;
    double far = 0, norms = 0;
    fr_result_act(r, FR_ACT_FAILS, "the run trains and complains of nothing, but learns late");
    const int rc = run_crew(lab, plan, "silent", &w->silent, err);
    fr_result_say(
        r, "%u processes with a replica each (NO_SHARD), data of their own, gradients averaged. %s",
        plan->ranks,
        plan->policy == EVERY  ? "Every rank has seeded its generator with its own number."
        : plan->policy == LOAD ? "One rank found no checkpoint and kept its random weights."
                               : "One rank has drawn its weights with another seed.");
    for (uint32_t i = 0; i < plan->ranks; i++) {
        const double d = fabs(o->seat[i].loss[0] / fr_lab_log(VOCAB) - 1);
        far = d > far ? d : far;
        for (uint32_t k = 0; k < STEPS; k++) {
            norms = fmax(norms, fabs(o->seat[i].norm[k] - o->seat[0].norm[k]));
        }
    }
    show_curve(lab, o, another(plan));
    show_curve(lab, o, (uint32_t)plan->odd);
    fr_result_claim(r, "nothing-complains", finished(plan, o) == plan->ranks,
                    "no process stops or reports an error", "%u of %u finished with exit code 0",
                    finished(plan, o), plan->ranks);
    if (plan->policy != LOAD) {
        fr_result_claim(
            r, "starts-alike", far < 0.1,
            "the first loss is ln(vocabulary) on every rank: it does not tell them apart",
            "%.3g %% away from ln(%d) = %.4f at most", 100 * far, VOCAB, fr_lab_log(VOCAB));
    }
    fr_result_claim(
        r, "same-gradient-norm", norms == 0,
        "the gradient norm is the same on all ranks at every step: it is that of the average",
        "largest difference %g", norms);
    if (plan->policy != EVERY) {
        const double bad = mean_loss(&o->seat[plan->odd]), rest = others_loss(plan, o, plan->odd);
        fr_result_claim(r, "learns-late", bad > 1.3 * rest, "the rank that differs learns late",
                        "mean loss %.4f on it, %.4f on the others", bad, rest);
    }
    return rc;
}

static void table_of_ranks(struct fr_lab *lab, const struct plan *plan, const struct outcome *o)
{
    static const char *const heads[] = {"rank",         "crc32 embed", "crc32 norm",
                                        "first loss",   "mean loss",   "grad norm",
                                        "apart, first", "apart, last", NULL};
    struct fr_table *t = fr_result_table(
        lab->result, "each rank's weights after initialisation, and what became of them", heads);
    for (uint32_t i = 0; i < plan->ranks; i++) {
        const struct seat *s = &o->seat[i];
        fr_table_cell(t, "%u", i);
        fr_table_cell(t, "%08x", s->sum[EMBED]);
        fr_table_cell(t, "%08x", s->sum[NORM]);
        fr_table_cell(t, "%.4f", s->loss[0]);
        fr_table_cell(t, "%.4f", mean_loss(s));
        fr_table_cell(t, "%.4f", s->norm[STEPS - 1]);
        fr_table_cell(t, "%.4f", s->apart[0]);
        fr_table_cell(t, "%.4f", s->apart[1]);
    }
    fr_result_say(
        lab->result,
        "apart: the largest distance of a weight from rank 0's, before and after training.");
}

/* ---- FULL_SHARD: every rank sees the same model, put together from everybody's pieces ---- */

/* Trains it alone on as much data as the crew had; the first loss, and the mean over all steps. */
static void solo(struct fr_alphabet *m, const struct plan *plan, double *ret_first,
                 double *ret_mean)
{
    struct fr_rng tokens = {plan->seed * 7919 + 5};
    *ret_mean = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        double g[WORDS] = {0}, loss = 0;
        for (uint32_t i = 0; i < plan->ranks; i++) {
            loss += fr_alphabet_batch(m, &tokens, 1.0 / plan->ranks) / plan->ranks;
            for (uint32_t k = 0; k < m->at[TENSORS]; k++) {
                g[k] += m->g[k];
            }
        }
        memcpy(m->g, g, sizeof g);
        fr_alphabet_update(m);
        *ret_first = step == 0 ? loss : *ret_first;
        *ret_mean += loss / STEPS;
    }
}

/* Piece r of the flat parameter is what rank r has there: its own random weights, or, where it is
 * `loaded`, the trained ones. */
static void mix(struct fr_alphabet *m, const struct plan *plan, const struct fr_alphabet *trained,
                uint32_t loaded)
{
    fr_alphabet_new(m, plan->hidden, plan->seed);
    const uint32_t words = m->at[TENSORS], piece = (words + plan->ranks - 1) / plan->ranks;
    struct fr_alphabet own;
    for (uint32_t i = 0; i < plan->ranks; i++) {
        const uint32_t from = i * piece, to = from + piece < words ? from + piece : words;
        fr_alphabet_new(&own, plan->hidden, plan->seed + 1000 + i);
        for (uint32_t k = from; k < to; k++) {
            m->w[k] = i < loaded ? trained->w[k] : own.w[k];
        }
    }
}

static void full_shard(struct fr_lab *lab, const struct plan *plan, struct work *w)
{
    static const char *const heads[] = {"weights under FULL_SHARD", "first loss", "mean loss",
                                        NULL};
    struct fr_table *t = fr_result_table(
        lab->result, "the same mistakes when every rank only keeps its piece", heads);
    double first, mean, good, mixed, broken;
    fr_alphabet_new(&w->mixed, plan->hidden, plan->seed);
    solo(&w->mixed, plan, &first, &good);
    fr_table_cell(t, "random, one seed");
    fr_table_cell(t, "%.4f", first);
    fr_table_cell(t, "%.4f", good);
    mix(&w->mixed, plan, &w->trained, 0);
    solo(&w->mixed, plan, &first, &mixed);
    fr_table_cell(t, "random, a seed per rank");
    fr_table_cell(t, "%.4f", first);
    fr_table_cell(t, "%.4f", mixed);
    mix(&w->mixed, plan, &w->trained, plan->ranks);
    solo(&w->mixed, plan, &first, &mean);
    fr_table_cell(t, "trained, loaded on all ranks");
    fr_table_cell(t, "%.4f", first);
    fr_table_cell(t, "%.4f", mean);
    mix(&w->mixed, plan, &w->trained, 1);
    solo(&w->mixed, plan, &broken, &mean);
    fr_table_cell(t, "trained, loaded on rank 0 only");
    fr_table_cell(t, "%.4f", broken);
    fr_table_cell(t, "%.4f", mean);
    fr_result_claim(lab->result, "mixing-random-is-harmless", mixed < 1.25 * good,
                    "pieces of different random weights are random weights: under FULL_SHARD they "
                    "train as well",
                    "mean loss %.4f, not %.4f", mixed, good);
    fr_result_claim(
        lab->result, "mixing-loaded-is-not", broken > 0.9 * fr_lab_log(VOCAB),
        "weights that only rank 0 has loaded are lost: the loss begins at ln(vocabulary) or above",
        "first loss %.4f, not %.4f", broken, first);
}

/* ---- the run with the check ---- */

static int checked(struct fr_lab *lab, struct plan *plan, struct work *w, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    uint32_t stopped = 0, agree = 0;
    plan->check = true;
    const int rc = run_crew(lab, plan, "fails", &w->checked, err);
    const int32_t want = plan->policy == EVERY ? -2 : plan->odd;
    for (uint32_t i = 0; i < plan->ranks; i++) {
        stopped += w->checked.play.end[i].exitcode == 1;
        agree += w->checked.seat[i].named == want;
    }
    const int32_t t = w->checked.seat[0].tensor;
    fr_result_claim(r, "check-stops-it",
                    stopped == plan->ranks && agree == plan->ranks && t == EMBED,
                    "comparing checksums before the first step stops it, and names rank and tensor",
                    "%u of %u ranks stopped, first tensor %s", stopped, plan->ranks,
                    t >= 0 ? fr_alphabet_names[t] : "none");
    if (rc == 0) {
        char who[40];
        if (plan->policy == EVERY) {
            snprintf(who, sizeof who, "All %u ranks failed", plan->ranks);
        } else {
            snprintf(who, sizeof who, "Rank %d failed first", plan->odd);
        }
        fr_crewplay_diagnosed(lab, &w->checked.play,
                              "faultrank diagnose names the class and the rank", who);
    }
    return rc;
}

static int why(struct fr_lab *lab, struct plan *plan, struct work *w, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    const struct outcome *o = &w->silent;
    const struct seat *far = &o->seat[plan->odd == 0 ? another(plan) : (uint32_t)plan->odd];
    uint32_t norms = 0;
    fr_result_act(r, FR_ACT_WHY, "equal updates on unequal weights");
    table_of_ranks(lab, plan, o);
    for (uint32_t i = 0; i < plan->ranks; i++) {
        norms += o->seat[i].sum[NORM] == o->seat[0].sum[NORM];
    }
    fr_result_claim(r, "gap-never-closes",
                    far->apart[1] > 0.99 * far->apart[0] && far->apart[1] < 1.01 * far->apart[0],
                    "every rank adds the same update, so what was apart stays exactly as far apart",
                    "%.6f before, %.6f after %d steps", far->apart[0], far->apart[1], STEPS);
    if (plan->policy != LOAD) {
        fr_result_claim(
            r, "constants-agree", norms == plan->ranks,
            "weights that begin as constants agree on all ranks: one tensor is no check",
            "norm.weight: %u of %u", norms, plan->ranks);
    }
    full_shard(lab, plan, w);
    return checked(lab, plan, w, err);
}

static int fix(struct fr_lab *lab, struct plan *plan, struct work *w, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    fr_result_act(r, FR_ACT_FIX, "rank 0's weights are broadcast before the first step");
    plan->synchronise = true;
    if (plan->policy == LOAD && plan->odd == 0) {
        fr_result_say(r, "The rank without a checkpoint is the one that the others are made equal "
                         "to: here it must find it.");
        plan->odd = -1;
    }
    const int rc = run_crew(lab, plan, "fixed", &w->fixed, err);
    const double bad = others_loss(plan, &w->silent, -1), good = others_loss(plan, &w->fixed, -1);
    uint32_t same = 0;
    for (uint32_t i = 0; i < plan->ranks; i++) {
        same +=
            memcmp(w->fixed.seat[i].sum, w->fixed.seat[0].sum, sizeof w->fixed.seat[0].sum) == 0 &&
            w->fixed.seat[i].apart[1] == 0;
    }
    show_curve(lab, &w->fixed, plan->odd > 0 ? (uint32_t)plan->odd : 0);
    fr_result_claim(r, "fixed-agrees",
                    same == plan->ranks && finished(plan, &w->fixed) == plan->ranks,
                    "with sync_module_states all checksums agree, and stay equal",
                    "%u of %u ranks equal to rank 0, before and after", same, plan->ranks);
    fr_result_claim(r, "fixed-learns", good < 0.85 * bad, "and the run learns faster",
                    "mean loss of all ranks %.4f instead of %.4f", good, bad);
    if (rc == 0) {
        fr_crewplay_healthy(lab, &w->fixed.play);
    }
    return rc;
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct work *w = FR_NEW(&lab->scratch, struct work);
    if (w == NULL) {
        return fr_lab_nomem(err);
    }
    struct plan plan = {.ranks = fr_lab_count(lab, "ranks"),
                        .hidden = fr_lab_count(lab, "hidden"),
                        .timeout = fr_lab_count(lab, "timeout"),
                        .odd = (int32_t)fr_lab_get(lab, "rank"),
                        .policy = (int)fr_lab_get(lab, "policy"),
                        .seed = (uint64_t)fr_lab_get(lab, "seed"),
                        .trained = &w->trained};
    if (plan.odd >= (int32_t)plan.ranks) {
        return fr_err_set(err, FR_ARG, "there is no rank %d among %u", plan.odd, plan.ranks);
    }
    double first, mean;
    fr_alphabet_new(&w->trained, plan.hidden, plan.seed);
    solo(&w->trained, &plan, &first, &mean);
    int rc = fails(lab, &plan, w, err);
    rc = rc != 0 ? rc : why(lab, &plan, w, err);
    return rc != 0 ? rc : fix(lab, &plan, w, err);
}

const struct fr_repro fr_repro_fsdp_divergent_init = {
    .id = "fsdp-divergent-init",
    .summary = "data-parallel processes, one of which begins with other weights",
    .params = params,
    .needs_folder = true,
    .run = run,
};
