/* SPDX-License-Identifier: Apache-2.0 */
/* ignoreindex: cross entropy with mean reduction divides by the labels that are left. A classifier
 * on four data-parallel ranks; one micro-batch of one rank has none. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define RANKS      4
#define TOKENS     8 /* of a micro-batch */
#define D          8
#define CLASSES    6
#define STEPS      60
#define EMPTY_STEP 20
#define EMPTY_RANK 2
#define IGNORE     (-100)
#define N          (CLASSES * D)

static const char *const policies[] = {"mean", "sum-over-count", "drop", NULL};
enum { MEAN, GLOBAL, DROP };

static const struct fr_repro_param params[] = {
    {"policy", MEAN, 0, 0, true, policies, "how the loss is reduced in the run that fails"},
    {"labels", 0, 0, TOKENS, true, NULL, "labels that the bad micro-batch has left"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct task {
    double *w, *teacher, *x, *logits, *p, *g, *total;
    int label[TOKENS];
};

struct outcome {
    double first, before, last;
    uint32_t nan_gradients, nan_weights; /* of the bad rank at that step; at the end */
    bool others_fine;
};

/* One rank's micro-batch: prompts and answers; only answers have labels. */
static void draw(struct fr_lab *lab, struct task *t, int step, int rank)
{
    const bool bad = step == EMPTY_STEP && rank == EMPTY_RANK;
    const int left = bad ? (int)fr_lab_get(lab, "labels") : TOKENS / 2;
    fr_rng_fill(&lab->rng, t->x, TOKENS * D, 1, FR_BF16);
    for (int i = 0; i < TOKENS; i++) {
        fr_lab_matvec(FR_F32, t->teacher, t->x + i * D, CLASSES, D, t->logits);
        int best = 0;
        for (int k = 1; k < CLASSES; k++) {
            best = t->logits[k] > t->logits[best] ? k : best;
        }
        t->label[i] = i >= TOKENS - left ? best : IGNORE;
    }
}

/* Sums loss and gradient of the labels that are left; their number. */
static int micro_batch(struct task *t, double *loss)
{
    int count = 0;
    *loss = 0;
    memset(t->g, 0, N * sizeof *t->g);
    for (int i = 0; i < TOKENS; i++) {
        if (t->label[i] == IGNORE) {
            continue;
        }
        const double *x = t->x + i * D;
        fr_lab_matvec(FR_F32, t->w, x, CLASSES, D, t->logits);
        fr_lab_softmax(FR_F32, t->logits, CLASSES, t->p);
        *loss += fr_lab_cross_entropy(t->logits, CLASSES, (size_t)t->label[i]);
        for (int k = 0; k < N; k++) {
            t->g[k] += (t->p[k / D] - (k / D == t->label[i])) * x[k % D];
        }
        count++;
    }
    return count;
}

/* All ranks of one step, the average of their gradients into t->total; the loss that rank 0 logs. */
static double all_ranks(struct fr_lab *lab, struct task *t, int step, int how, struct outcome *o)
{
    double sum = 0, losses[RANKS];
    int counts = 0;
    memset(t->total, 0, N * sizeof *t->total);
    o->others_fine = true;
    for (int rank = 0; rank < RANKS; rank++) {
        draw(lab, t, step, rank);
        const int count = micro_batch(t, &losses[rank]);
        const double divide = how == MEAN ? count : 1; /* 0 / 0 when nothing is left */
        counts += count;
        sum += how == MEAN ? losses[rank] / divide / RANKS : losses[rank];
        for (int k = 0; k < N; k++) {
            t->g[k] /= divide;
            t->total[k] += how == MEAN ? t->g[k] / RANKS : t->g[k];
        }
        const uint32_t nans = fr_lab_look(t->g, N).nans;
        o->nan_gradients = step == EMPTY_STEP && rank == EMPTY_RANK ? nans : o->nan_gradients;
        o->others_fine &= rank == EMPTY_RANK || nans == 0 || step > EMPTY_STEP;
    }
    if (how != MEAN) { /* one division for all, by at least 1 */
        counts = counts > 0 ? counts : 1;
        for (int k = 0; k < N; k++) {
            t->total[k] /= counts;
        }
        return sum / counts;
    }
    return sum;
}

static void train(struct fr_lab *lab, struct task *t, int how, const char *name, struct outcome *o)
{
    struct fr_curve *loss = fr_result_curve(lab->result, name, "step", false);
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    fr_rng_fill(&lab->rng, t->teacher, N, 1, FR_F32);
    memset(t->w, 0, N * sizeof *t->w);
    *o = (struct outcome){.first = NAN};
    for (int step = 0; step < STEPS; step++) {
        o->last = all_ranks(lab, t, step, how, o);
        o->first = step == 0 ? o->last : o->first;
        o->before = step == EMPTY_STEP - 1 ? o->last : o->before;
        fr_curve_add(loss, o->last);
        for (int k = 0; k < N; k++) {
            t->w[k] = (float)(t->w[k] - 0.5 * t->total[k]);
        }
    }
    o->nan_weights = fr_lab_look(t->w, N).nans;
}

static void acts(struct fr_lab *lab, struct task *t, int how)
{
    struct fr_result *r = lab->result;
    struct outcome bad, good;
    fr_result_act(r, FR_ACT_FAILS, "one micro-batch without labels, and all ranks are NaN");
    fr_result_say(r,
                  "%d data-parallel ranks, %d tokens each, half of them labelled, reduction '%s'. "
                  "At step %d rank %d gets a micro-batch with %g labels: "
                  "its answers were cut off.",
                  RANKS, TOKENS, policies[how], EMPTY_STEP, EMPTY_RANK, fr_lab_get(lab, "labels"));
    train(lab, t, how, "loss", &bad);
    fr_result_claim(r, "fine-before", isfinite(bad.before) && bad.before < bad.first,
                    "the loss falls until that step", "%.3g to %.3g", bad.first, bad.before);
    fr_result_claim(r, "nan-on-all", isnan(bad.last) && bad.nan_weights == N,
                    "from that step on loss and weights are NaN on every rank",
                    "loss %g, %u of %d weights NaN", bad.last, bad.nan_weights, N);

    fr_result_act(r, FR_ACT_WHY, "the mean of nothing is 0 / 0");
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    fr_rng_fill(&lab->rng, t->teacher, N, 1, FR_F32);
    memset(t->w, 0, N * sizeof *t->w);
    double sum = 0;
    draw(lab, t, EMPTY_STEP, EMPTY_RANK);
    const double count = micro_batch(t, &sum), mean = sum / count,
                 mean_fixed = sum / (count > 0 ? count : 1);
    struct fr_chain *c = fr_result_chain(r, "that micro-batch");
    fr_chain_input(c, "x", FR_BF16, t->x, TOKENS, D);
    fr_chain_input(c, "labels that are not -100", FR_F32, &count, 1, 1);
    fr_chain_add(c, "sum of token losses", FR_F32, &sum, 1, 1);
    fr_chain_add(c, "sum / count", FR_F32, &mean, 1, 1);
    for (int k = 0; k < N; k++) {
        t->g[k] /= count;
    }
    fr_chain_add(c, "gradient", FR_F32, t->g, CLASSES, D);
    fr_result_claim(r, "division-first", fr_chain_first_is(c, "sum / count"),
                    "the division is the first NaN: nothing overflowed", "first: %s",
                    fr_chain_first(c));
    fr_result_claim(r, "one-rank", bad.nan_gradients == N && bad.others_fine,
                    "only that rank's gradient is NaN; the all-reduce gives it to the others",
                    "%u of %d there, others %s", bad.nan_gradients, N,
                    bad.others_fine ? "finite" : "NaN");

    fr_result_act(r, FR_ACT_FIX,
                  "sum the token losses, divide once by the count of all ranks, at least 1");
    train(lab, t, GLOBAL, "loss", &good);
    fr_result_claim(r, "it-learns",
                    isfinite(good.last) && good.last < 0.5 * good.first && good.nan_weights == 0,
                    "the same data trains", "%.3g to %.3g", good.first, good.last);
    fr_result_claim(r, "empty-gives-zero", mean_fixed == 0 || count > 0,
                    "a batch without labels then has loss 0, and takes part in the all-reduce",
                    "%g", mean_fixed);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct task t = {.w = NULL};
    t.w = fr_lab_vector(lab, N);
    t.teacher = fr_lab_vector(lab, N);
    t.g = fr_lab_vector(lab, N);
    t.total = fr_lab_vector(lab, N);
    t.x = fr_lab_vector(lab, TOKENS * D);
    t.logits = fr_lab_vector(lab, CLASSES);
    t.p = fr_lab_vector(lab, CLASSES);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    acts(lab, &t, (int)fr_lab_get(lab, "policy"));
    return 0;
}

/* ---- smoke test: the user's batch and reduction ---- */

#define SMOKE_TOKENS 4096 /* of a micro-batch, at most */

/* The loss that one step logs, of `accumulation` micro-batches of which the first has `left` labels
 * and the others half of their tokens; every token's loss is that of an untrained model. */
static double smoke_loss(const struct fr_smoke *s, int how, double left, double tokens)
{
    const double logits[8] = {0}, each = fr_lab_cross_entropy(logits, 8, 3);
    const double all = isnan(s->accumulation) ? 1 : s->accumulation;
    const uint32_t parts = (uint32_t)(all < 64 ? all : 64);
    double sum = 0, count = 0, means = 0;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < parts; i++) {
        const double n = i == 0 ? left : tokens - floor(tokens / 2);
        float loss = 0;
        for (double k = 0; k < n; k++) {
            loss += (float)each;
        }
        sum += loss;
        count += n;
        means += how == DROP && n == 0 ? 0 : loss / n;
        taken += n > 0 || how == MEAN;
    }
    return how == GLOBAL ? sum / (count > 1 ? count : 1) : means / (taken > 0 ? taken : 1);
}

static void reduce(struct fr_lab *lab, double left)
{
    static const char says[] = "the loss of such a step is a number";
    const struct fr_smoke *s = lab->smoke;
    const double all = s->seq * s->micro_batch, tokens = all < SMOKE_TOKENS ? all : SMOKE_TOKENS;
    double losses[3];
    bool all_fine = true;
    for (int how = MEAN; how <= DROP; how++) {
        losses[how] = smoke_loss(s, how, left < tokens ? left : tokens, tokens);
        all_fine &= isfinite(losses[how]);
    }
    fr_result_say(lab->result,
                  "A step of %g micro-batches of %g tokens%s; one of them has %g labels%s.",
                  isnan(s->accumulation) ? 1 : s->accumulation, all,
                  all > SMOKE_TOKENS ? ", of which 4096 are tried" : "", left,
                  fr_smoke_said(s, "labels") ? " (option)" : ": the worst case");
    if (s->policy < 0 && !all_fine) {
        fr_result_unknown(lab->result, "finite", says,
                          "mean gives %g, sum-over-count %g, drop %g; not said: which one your "
                          "code does; give --policy, or --set labels=N if there is always one",
                          losses[MEAN], losses[GLOBAL], losses[DROP]);
        return;
    }
    const int how = s->policy < 0 ? MEAN : s->policy;
    fr_result_claim(lab->result, "finite", isfinite(losses[how]), says, "%s gives %g",
                    s->policy < 0 ? "every reduction" : policies[how], losses[how]);
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    const struct fr_smoke *s = lab->smoke;
    const bool told = fr_smoke_said(s, "ignore-index");
    const double index = told ? s->ignore_index : IGNORE;
    (void)err;
    fr_smoke_inputs(lab, "seq micro-batch accumulation ignore-index vocab labels");
    if (index < 0) {
        fr_result_claim(lab->result, "no-token", true, "the ignored label is no token",
                        "%g%s", index, told ? "" : ", PyTorch's default");
    } else if (fr_smoke_needs(lab, "no-token", "the ignored label is no token", "vocab")) {
        fr_result_claim(lab->result, "no-token", index >= s->vocab, "the ignored label is no token",
                        "%g, of a vocabulary of %g", index, s->vocab);
    }
    if (fr_smoke_needs(lab, "finite", "the loss of such a step is a number",
                       "seq micro-batch")) {
        reduce(lab, fr_smoke_said(s, "labels") ? s->labels : 0);
    }
    return 0;
}

const struct fr_repro fr_repro_ignoreindex = {
    .id = "ignore-index-all-masked",
    .summary = "a micro-batch whose labels are all -100: 0 / 0 on one rank, NaN on all",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
