/* SPDX-License-Identifier: Apache-2.0 */
/* moerouter: top-1 routing over linear experts, trained with and without a balancing loss. Tokens
 * come from clusters with a map each, and share a direction, as hidden states do. */
#include "repro/lab.h"
#include "repro/smoke.h"

#include <math.h>

#define D      6
#define TOKENS 64
#define STEPS  400
#define RATE   0.1
#define MOST   16 /* experts */

static const char *const policies[] = {"none", "aux-loss", NULL};

static const struct fr_repro_param params[] = {
    {"scale", 2.5, 0, 100, false, NULL, "length of the direction that all tokens share"},
    {"policy", 0, 0, 0, true, policies, "balancing of the run that fails"},
    {"experts", 8, 2, MOST, true, NULL, "experts, and clusters of tokens"},
    {"aux", 0.5, 0, 100, false, NULL, "coefficient of the balancing loss"},
    FR_REPRO_SEED,
    FR_REPRO_END,
};

struct layer {
    uint32_t e;
    double *gate, *ggate;     /* e x D */
    double *expert, *gexpert; /* e x D x D */
    double *teacher, *centre; /* e x D x D, e x D */
    double *common;           /* D */
    double *x, *target, *y;   /* D */
    double *p, *dlogits;      /* e */
    double *probs;            /* TOKENS x e */
    double *xs, *ts;          /* TOKENS x D */
    uint32_t choice[TOKENS];
};

static void build(struct fr_lab *lab, struct layer *l)
{
    const uint32_t e = l->e = fr_lab_count(lab, "experts");
    l->gate = fr_lab_vector(lab, e * D);
    l->ggate = fr_lab_vector(lab, e * D);
    l->expert = fr_lab_vector(lab, e * D * D);
    l->gexpert = fr_lab_vector(lab, e * D * D);
    l->teacher = fr_lab_vector(lab, e * D * D);
    l->centre = fr_lab_vector(lab, e * D);
    l->common = fr_lab_vector(lab, D);
    l->y = fr_lab_vector(lab, D);
    l->p = fr_lab_vector(lab, e);
    l->dlogits = fr_lab_vector(lab, e);
    l->probs = fr_lab_vector(lab, TOKENS * e);
    l->xs = fr_lab_vector(lab, TOKENS * D);
    l->ts = fr_lab_vector(lab, TOKENS * D);
}

static void fill(struct fr_lab *lab, struct layer *l)
{
    lab->rng.state = (uint64_t)fr_lab_get(lab, "seed");
    fr_rng_fill(&lab->rng, l->gate, l->e * D, 0.5, FR_F32);
    fr_rng_fill(&lab->rng, l->expert, l->e * D * D, 0.1, FR_F32);
    fr_rng_fill(&lab->rng, l->teacher, l->e * D * D, 0.5, FR_F32);
    fr_rng_fill(&lab->rng, l->centre, l->e * D, 1, FR_F32);
    fr_rng_fill(&lab->rng, l->common, D, 1, FR_F32);
    const double length = fr_lab_look(l->common, D).norm;
    for (int k = 0; k < D; k++) {
        l->common[k] *= fr_lab_get(lab, "scale") / length;
    }
}

static void draw(struct fr_lab *lab, struct layer *l)
{
    for (uint32_t t = 0; t < TOKENS; t++) {
        const uint32_t c = fr_rng_below(&lab->rng, l->e);
        double *x = l->xs + t * D;
        for (int k = 0; k < D; k++) {
            x[k] = (float)(l->common[k] + l->centre[c * D + k] + 0.6 * fr_rng_normal(&lab->rng));
        }
        fr_lab_matvec(FR_F32, l->teacher + c * D * D, x, D, D, l->ts + t * D);
    }
}

/* Probabilities and the chosen expert of each token; the share of the most chosen one. */
static double route(struct layer *l, uint32_t count[MOST])
{
    uint32_t most = 0;
    memset(count, 0, MOST * sizeof *count);
    for (uint32_t t = 0; t < TOKENS; t++) {
        double *p = l->probs + t * l->e;
        fr_lab_matvec(FR_F32, l->gate, l->xs + t * D, l->e, D, p);
        fr_lab_softmax(FR_F32, p, l->e, p);
        l->choice[t] = 0;
        for (uint32_t i = 1; i < l->e; i++) {
            l->choice[t] = p[i] > p[l->choice[t]] ? i : l->choice[t];
        }
        most = ++count[l->choice[t]] > most ? count[l->choice[t]] : most;
    }
    return (double)most / TOKENS;
}

/* Loss and gradients of y = p_c * expert_c(x), and of aux * E * sum(f_i P_i) (Switch Transformer). */
static double learn(struct layer *l, const uint32_t count[MOST], double aux)
{
    float loss = 0;
    memset(l->ggate, 0, l->e * D * sizeof *l->ggate);
    memset(l->gexpert, 0, l->e * D * D * sizeof *l->gexpert);
    for (uint32_t t = 0; t < TOKENS; t++) {
        const double *x = l->xs + t * D, *p = l->probs + t * l->e;
        const uint32_t c = l->choice[t];
        double *w = l->expert + c * D * D, *gw = l->gexpert + c * D * D, inner = 0, mean = 0;
        fr_lab_matvec(FR_F32, w, x, D, D, l->y);
        for (int k = 0; k < D; k++) {
            const float err = (float)(p[c] * l->y[k] - l->ts[t * D + k]);
            loss += err * err / (TOKENS * D);
            inner += 2 * err * l->y[k] / (TOKENS * D); /* d loss / d p_c */
            for (int i = 0; i < D; i++) {
                gw[k * D + i] += 2 * err * p[c] * x[i] / (TOKENS * D);
            }
        }
        for (uint32_t i = 0; i < l->e; i++) {
            const double f = (double)count[i] / TOKENS;
            l->dlogits[i] = aux * l->e * f / TOKENS + (i == c ? inner : 0); /* d / d p_i, for now */
            mean += l->dlogits[i] * p[i];
        }
        for (uint32_t i = 0; i < l->e; i++) {
            const double g = p[i] * (l->dlogits[i] - mean);
            for (int k = 0; k < D; k++) {
                l->ggate[i * D + k] += g * x[k];
            }
        }
    }
    return loss;
}

struct outcome {
    double first, last;        /* loss, mean of 20 steps */
    double share_first, share; /* of the busiest expert, likewise */
    uint32_t starved;          /* experts without a token in the last 20 steps */
};

static void train(struct fr_lab *lab, struct layer *l, double aux, struct outcome *o)
{
    struct fr_curve *loss = fr_result_curve(lab->result, "loss", "step", false);
    struct fr_curve *busiest =
        fr_result_curve(lab->result, "busiest expert's share", "step", false);
    uint32_t count[MOST], late[MOST] = {0};
    fill(lab, l);
    *o = (struct outcome){.starved = 0};
    for (int i = 0; i < STEPS; i++) {
        draw(lab, l);
        const double share = route(l, count), now = learn(l, count, aux);
        fr_curve_add(loss, now);
        fr_curve_add(busiest, share);
        o->first += i < 20 ? now / 20 : 0;
        o->share_first += i < 20 ? share / 20 : 0;
        o->last += i >= STEPS - 20 ? now / 20 : 0;
        o->share += i >= STEPS - 20 ? share / 20 : 0;
        for (uint32_t k = 0; k < l->e; k++) {
            late[k] += i >= STEPS - 20 ? count[k] : 0;
        }
        for (uint32_t k = 0; k < l->e * D; k++) {
            l->gate[k] = (float)(l->gate[k] - RATE * 10 * l->ggate[k]);
        }
        for (uint32_t k = 0; k < l->e * D * D; k++) {
            l->expert[k] = (float)(l->expert[k] - RATE * 2 * l->gexpert[k]);
        }
    }
    for (uint32_t k = 0; k < l->e; k++) {
        o->starved += late[k] == 0;
    }
}

static void why(struct fr_lab *lab, struct layer *l)
{
    static const char *const heads[] = {"expert", "tokens at the start", "tokens at the end",
                                        "its loss on the busiest one's tokens", NULL};
    struct fr_result *r = lab->result;
    uint32_t begin[MOST], end[MOST];
    double error[MOST] = {0}, starved = INFINITY;
    uint32_t busiest = 0;
    fr_result_act(r, FR_ACT_WHY, "who is chosen learns, and who has learnt is chosen");
    draw(lab, l);
    route(l, end);
    for (uint32_t i = 1; i < l->e; i++) {
        busiest = end[i] > end[busiest] ? i : busiest;
    }
    for (uint32_t t = 0; t < TOKENS; t++) { /* every expert on the busiest one's tokens */
        for (uint32_t i = 0; i < l->e && l->choice[t] == busiest; i++) {
            fr_lab_matvec(FR_F32, l->expert + i * D * D, l->xs + t * D, D, D, l->y);
            for (int k = 0; k < D; k++) {
                const double e = l->y[k] - l->ts[t * D + k];
                error[i] += e * e / (end[busiest] * D);
            }
        }
    }
    struct fr_chain *c = fr_result_chain(r, "the router after training, one batch");
    fr_chain_input(c, "x", FR_F32, l->xs, TOKENS, D);
    fr_chain_add(c, "softmax(gate x)", FR_F32, l->probs, TOKENS, l->e);
    fill(lab, l);
    draw(lab, l);
    route(l, begin);
    struct fr_table *t = fr_result_table(r, "one batch", heads);
    for (uint32_t i = 0; i < l->e; i++) {
        fr_table_cell(t, "%u", i);
        fr_table_cell(t, "%u", begin[i]);
        fr_table_cell(t, "%u", end[i]);
        fr_table_cell(t, "%.3f", error[i]);
        starved = end[i] == 0 && error[i] < starved ? error[i] : starved;
    }
    fr_result_claim(r, "chosen-is-better", isfinite(starved) && error[busiest] < 0.5 * starved,
                    "on its tokens the busiest expert is far better than any that got none: why "
                    "should the gate try those",
                    "loss %.3f against %.3f at best", error[busiest], starved);
}

static int run(struct fr_lab *lab, struct fr_err *err)
{
    struct fr_result *r = lab->result;
    struct layer l;
    struct outcome bad, good;
    build(lab, &l);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const double aux = fr_lab_get(lab, "aux"), even = 1.0 / l.e;
    fr_result_act(r, FR_ACT_FAILS, "few experts get all tokens");
    fr_result_say(
        r,
        "%u experts, %u clusters of tokens, top-1 routing. Tokens share a direction of length %g.",
        l.e, l.e, fr_lab_get(lab, "scale"));
    train(lab, &l, fr_lab_get(lab, "policy") == 1 ? aux : 0, &bad);
    fr_result_claim(r, "busiest", bad.share > 3 * even,
                    "the busiest expert has more than three times its share",
                    "%.0f%% of the tokens, even would be %.0f%%", 100 * bad.share, 100 * even);
    fr_result_claim(r, "starved", bad.starved * 4 >= l.e,
                    "a quarter of the experts or more get no token at all", "%u of %u", bad.starved,
                    l.e);
    fr_result_claim(r, "loss-looks-fine", bad.last < bad.first && isfinite(bad.last),
                    "the loss falls all the same, and nothing is NaN", "%.3g to %.3g", bad.first,
                    bad.last);
    why(lab, &l);
    fr_result_act(r, FR_ACT_FIX, "a balancing loss, %g * E * sum(share * probability)", aux);
    train(lab, &l, aux, &good);
    fr_result_claim(r, "balanced", good.share < 2.5 * even && good.starved == 0,
                    "the busiest expert stays near its share and none is starved",
                    "%.0f%%, %u starved", 100 * good.share, good.starved);
    fr_result_claim(r, "better-loss", good.last < bad.last,
                    "and the loss is lower, since more experts learn", "%.3g, unbalanced %.3g",
                    good.last, bad.last);
    return 0;
}

/* ---- smoke test: the user's experts on random input ---- */

#define SMOKE_D    256    /* of the hidden size, at most */
#define SMOKE_COST 1e9    /* multiplications of all gates */
#define SMOKE_LEAST 20.0  /* tokens of an expert below which chance alone is uneven */

struct router {
    uint32_t e, k, d, tokens;
    double *gate, *x, *common, *p, *count;
};

/* Rows of the whole hidden size would all be about as long; those of a part are made so, or the
 * longest would win. */
static void even_rows(struct router *m)
{
    for (uint32_t i = 0; i < m->e; i++) {
        double *row = m->gate + (size_t)i * m->d;
        const double by = sqrt(m->d) / fr_lab_look(row, m->d).norm;
        for (uint32_t k = 0; k < m->d; k++) {
            row[k] = (float)(row[k] * by);
        }
    }
}

/* The share of the busiest expert over the even one, for tokens of which `shared` of the squared
 * norm is one direction. */
static double busiest(struct fr_lab *lab, struct router *m, double shared)
{
    double most = 0;
    lab->rng.state = 1;
    fr_rng_fill(&lab->rng, m->gate, (size_t)m->e * m->d, 1, FR_F32);
    if (m->d < lab->smoke->hidden) {
        even_rows(m);
    }
    fr_rng_fill(&lab->rng, m->common, m->d, 1, FR_F32);
    memset(m->count, 0, m->e * sizeof *m->count);
    for (uint32_t t = 0; t < m->tokens; t++) {
        for (uint32_t i = 0; i < m->d; i++) {
            m->x[i] = (float)(sqrt(1 - shared) * fr_rng_normal(&lab->rng) +
                              sqrt(shared) * m->common[i]);
        }
        fr_lab_matvec(FR_F32, m->gate, m->x, m->e, m->d, m->p);
        for (uint32_t k = 0; k < m->k; k++) {
            uint32_t best = 0;
            for (uint32_t i = 1; i < m->e; i++) {
                best = m->p[i] > m->p[best] ? i : best;
            }
            m->p[best] = -INFINITY;
            most = ++m->count[best] > most ? m->count[best] : most;
        }
    }
    return most * m->e / ((double)m->tokens * m->k);
}

static int spread(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "an untrained router spreads tokens: no expert gets three times "
                               "its share";
    const struct fr_smoke *s = lab->smoke;
    if (!fr_smoke_needs(lab, "spreads", says, "experts top-k hidden seq micro-batch")) {
        return 0;
    }
    struct router m = {.e = (uint32_t)s->experts,
                       .k = (uint32_t)(s->top_k < s->experts ? s->top_k : s->experts),
                       .d = (uint32_t)(s->hidden < SMOKE_D ? s->hidden : SMOKE_D)};
    const double all = s->seq * s->micro_batch, most = floor(SMOKE_COST / ((double)m.e * m.d));
    m.tokens = (uint32_t)(all < most ? all : most);
    m.tokens = m.tokens < 32768 ? m.tokens : 32768;
    m.gate = fr_lab_vector(lab, (size_t)m.e * m.d);
    m.x = fr_lab_vector(lab, m.d);
    m.common = fr_lab_vector(lab, m.d);
    m.p = fr_lab_vector(lab, m.e);
    m.count = fr_lab_vector(lab, m.e);
    if (!fr_lab_ok(lab)) {
        return fr_lab_nomem(err);
    }
    const double each = (double)m.tokens * m.k / m.e, shared = isnan(s->shared) ? 0 : s->shared;
    if (each < SMOKE_LEAST) {
        fr_result_unknown(lab->result, "spreads", says,
                          "%u tokens are %.3g for each of %u experts: chance alone is uneven; %s",
                          m.tokens, each, m.e,
                          all > m.tokens ? "more are not tried"
                                         : "give a larger --seq or --set micro-batch=N");
        return 0;
    }
    const double busy = busiest(lab, &m, shared);
    fr_result_claim(lab->result, "spreads", busy < 3, says,
                    "%u tokens with %g%% of their square in common, top %u of %u: the busiest has "
                    "%.2f times its share",
                    m.tokens, 100 * shared, m.k, m.e, busy);
    return 0;
}

static int smoke(struct fr_lab *lab, struct fr_err *err)
{
    static const char says[] = "something balances the router in training";
    const struct fr_smoke *s = lab->smoke;
    const bool given = s->from.aux != NULL && strcmp(s->from.aux, "option") == 0;
    const int on = s->policy >= 0 ? s->policy : given ? s->aux > 0 : s->balancing;
    fr_smoke_inputs(lab, "experts top-k aux hidden seq micro-batch shared");
    if (on < 0) {
        fr_result_unknown(lab->result, "balanced", says,
                          "not said: give --policy aux-loss or none, or --set aux=N");
    } else {
        fr_result_claim(lab->result, "balanced", on > 0, says, "%s (%s)",
                        on > 0 ? "yes" : "no",
                        s->policy >= 0 || given ? "option" : s->from.balancing);
    }
    return spread(lab, err);
}

const struct fr_repro fr_repro_moerouter = {
    .id = "moe-router-collapse",
    .summary = "top-1 routing collapses onto few experts; a balancing loss keeps all of them",
    .params = params,
    .run = run,
    .smoke = smoke,
    .smoke_policies = policies,
};
