/* SPDX-License-Identifier: Apache-2.0 */
/* numbers: candidates from what the series of metrics show, and whose they are. */
#include "incident/case.h"

#include <string.h>

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

/* A trainer's summary without a step, below it in the same log: it cannot have come first. */
static bool is_below(const struct fr_finding *f, uint32_t f_src, const struct fr_finding *first, uint32_t src)
{
    return f->step < 0 && f_src == src && f->line > first->line;
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
            if (f->metric != first->metric || f->kind != first->kind || is_below(f, i, k->finding, k->finding_src)) {
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

enum { PRINTED = 1, AMISS = 2 };

/* For each rank: did it print the metric in that step or later, and is anything of it amiss? */
static uint8_t *look_at_ranks(struct fr_case *c, const struct fr_finding *bad)
{
    fr_sv name = fr_sv_z(fr_metric_name((enum fr_metric)bad->metric));
    uint8_t *state = FR_NEW_N(&c->arena, uint8_t, c->ranks.n + 1);
    for (uint32_t i = 0; state != NULL && i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t n = 0; n < s->metrics.n; n++) {
            const struct fr_metric_summary *m = &s->metrics.v[n];
            const struct fr_rank *r = fr_case_rank(c, m->rank >= 0 ? m->rank : c->src_rank[i]);
            if (r != NULL && fr_sv_eq(m->name, name) && m->last_step >= bad->step) {
                state[r - c->ranks.v] |= PRINTED;
            }
        }
        for (uint32_t n = 0; n < s->findings.n; n++) {
            const struct fr_finding *f = &s->findings.v[n];
            const struct fr_rank *r = fr_case_rank(c, fr_case_rank_of(c, &f->who, i));
            if (r != NULL && f->metric == bad->metric && f->kind != FR_FINDING_RECOVERED) {
                state[r - c->ranks.v] |= AMISS;
            }
        }
    }
    return state;
}

/* A loss that is bad on one rank only, and in order on each other one in the same step: it is that rank's. */
static void only_here(struct fr_case *c, struct fr_cand *k)
{
    int32_t rank = fr_case_rank_of(c, &k->finding->who, k->finding_src);
    int32_t world = c->world > 0 ? c->world : fr_case_is_whole(c) ? (int32_t)c->ranks.n : -1;
    if (rank < 0 || k->finding->metric != FR_METRIC_LOSS || k->finding->step < 0 || k->ranks.n != 0 || world < 2) {
        return;
    }
    const uint8_t *state = look_at_ranks(c, k->finding);
    int32_t sound = 0;
    for (uint32_t i = 0; state != NULL && i < c->ranks.n; i++) {
        sound += c->ranks.v[i].rank != rank && state[i] == PRINTED;
    }
    if (sound + 1 == world) {
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "in step %lld it is rank %d's alone, all others print a sound one", (long long)k->finding->step, rank);
    }
}

enum { WENT_BAD = 1, SOUND_THEN = 2 };

/* For each rank: did it go bad in that step or later, and does something of it say that it was sound in that step? NULL: something is
 * nobody's, or was bad by then. */
static uint8_t *compare_ranks(struct fr_case *c, const struct fr_finding *first, uint32_t src, int32_t rank)
{
    uint8_t *state = FR_NEW_N(&c->arena, uint8_t, c->ranks.n + 1);
    for (uint32_t i = 0; state != NULL && i < c->set->sources.n; i++) {
        const struct fr_source_evidence *s = c->set->sources.v[i];
        for (uint32_t n = 0; n < s->findings.n; n++) {
            const struct fr_finding *f = &s->findings.v[n];
            const struct fr_rank *r = fr_case_rank(c, fr_case_rank_of(c, &f->who, i));
            if (f->metric != first->metric || f->kind != first->kind || (r != NULL && r->rank == rank)) {
                continue;
            }
            if (r == NULL && (is_below(f, i, first, src) || f->step > first->step)) {
                continue; /* nobody's, and later */
            }
            if (r == NULL || f->step <= first->step) {
                return NULL;
            }
            state[r - c->ranks.v] |= f->last_good_step >= first->step ? WENT_BAD | SOUND_THEN : WENT_BAD;
        }
    }
    return state;
}

/* A loss or norm that each rank prints of its own becomes NaN everywhere once the gradients were reduced. Where exactly one rank has it
 * some steps before all the others, it began there. */
static void first_to_go_bad(struct fr_case *c, struct fr_cand *k)
{
    int32_t others = 0;
    prefer_loss(c, k);
    if (!find_first(c, k)) {
        return;
    }
    const struct fr_finding *first = k->finding;
    int32_t rank = fr_case_rank_of(c, &first->who, k->finding_src);
    const uint8_t *state = rank < 0 ? NULL : compare_ranks(c, first, k->finding_src, rank);
    for (uint32_t i = 0; state != NULL && i < c->ranks.n; i++) {
        if (state[i] == WENT_BAD) {
            return; /* nothing was printed of it in that step */
        }
        others += state[i] != 0;
    }
    if (state != NULL && others != 0 && others + 1 >= c->world) {
        k->ranks.n = 0;
        fr_cand_rank(c, k, rank);
        fr_cand_for(c, k, "rank %d had it in step %lld, all others later", rank, (long long)first->step);
    }
}

void fr_case_numbers(struct fr_case *c)
{
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
        bool told = k->ground == FR_GROUND_SERIES || k->ground == FR_GROUND_SIGNAL; /* by numbers, or also in words */
        if (told && k->finding != NULL && (k->finding->kind == FR_FINDING_NAN || k->finding->kind == FR_FINDING_INF)) {
            first_to_go_bad(c, k);
        }
        if (k->ground == FR_GROUND_SERIES && k->finding != NULL) {
            only_here(c, k);
        }
    }
}
