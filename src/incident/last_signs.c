/* SPDX-License-Identifier: Apache-2.0 */
/* last_signs: law 4 by what each rank printed last, its step or its time: who fell silent long before all others, and who still printed
 * when all others had given up. */
#include "incident/silence.h"

/* The step of its last line, or when it came. */
static int64_t last_sign(const struct fr_case *c, const struct fr_rank *r, bool steps)
{
    if (r->life == NULL) {
        return FR_TIME_NONE;
    }
    if (steps) {
        int64_t own = r->src >= 0 ? c->set->sources.v[r->src]->last_step : -1;
        return own > r->life->last_step ? own : r->life->last_step >= 0 ? r->life->last_step : FR_TIME_NONE;
    }
    return r->seen;
}

/* All others waited until their time was up; one lost a peer, and had still been printing when the last sign of all others was as old as that
 * time: it was what they waited for, busy with something else. */
void fr_accuse_busy(struct fr_case *c, const struct fr_complaints *t)
{
    const struct fr_rank *busy = NULL;
    int64_t others = FR_TIME_NONE, limit = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        const struct fr_rank *r = &c->ranks.v[i];
        int64_t at = last_sign(c, r, false);
        if (at == FR_TIME_NONE || r->symptom == NULL || (r->timeout == NULL && busy != NULL)) {
            return;
        }
        if (r->timeout == NULL) {
            busy = r;
        } else {
            int64_t ran = fr_event_num(r->timeout->e, FR_KEY_RAN_MS, 0);
            limit = ran > limit ? ran : limit;
            others = others == FR_TIME_NONE || at > others ? at : others;
        }
    }
    int64_t at = busy == NULL || others == FR_TIME_NONE || limit < 1000 ? FR_TIME_NONE : last_sign(c, busy, false);
    struct fr_cand *k = at == FR_TIME_NONE || at - others < limit * (FR_NS_PER_S / 1000) ? NULL : fr_silence_cand(c, t, fr_case_class(c, "rank-stalled"), 26);
    if (k == NULL) {
        return;
    }
    k->silent = true;
    fr_cand_rank(c, k, busy->rank);
    fr_cand_for(c, k, "all others waited until their time was up; rank %d still printed %lld s after their last line", busy->rank,
                (long long)((at - others) / FR_NS_PER_S));
}

/* Three reports: logs that print every tenth step differ by ten where they differ by one report. */
static int64_t three_reports(const struct fr_case *c, const struct fr_rank *r)
{
    const struct fr_source_evidence *s = c->set->sources.v[r->src];
    int64_t stride = 1;
    for (uint32_t i = 0; i < s->metrics.n; i++) {
        const struct fr_metric_summary *m = &s->metrics.v[i];
        int64_t each = m->points > 1 && m->first_step >= 0 ? (m->last_step - m->first_step) / (m->points - 1) : 1;
        stride = each > stride ? each : stride;
    }
    return 3 * stride;
}

/* Nobody complained. One rank's own log ends long before all others' (in steps, or in time by far more than they differ among
 * themselves): it stopped, and the others may not even have noticed yet. */
static const struct fr_rank *ended_early(const struct fr_case *c, bool steps, int64_t *ret_gap)
{
    const struct fr_rank *low = NULL;
    int64_t lowest = INT64_MAX, second = INT64_MAX, top = INT64_MIN;
    uint32_t known = 0;
    for (uint32_t i = 0; i < c->ranks.n; i++) {
        int64_t at = last_sign(c, &c->ranks.v[i], steps);
        if (at == FR_TIME_NONE || c->ranks.v[i].src < 0) {
            continue;
        }
        known++;
        top = at > top ? at : top;
        if (at < lowest) {
            second = lowest;
            lowest = at;
            low = &c->ranks.v[i];
        } else if (at < second) {
            second = at;
        }
    }
    int64_t least = steps && low != NULL ? three_reports(c, low) : 120 * FR_NS_PER_S;
    bool alone = known >= 3 && known == c->ranks.n && second != INT64_MAX && second - lowest >= least &&
                 top - second <= (second - lowest) / 3;
    *ret_gap = alone ? second - lowest : 0;
    return alone && !low->done ? low : NULL;
}

void fr_last_signs(struct fr_case *c)
{
    int64_t gap = 0;
    bool steps = true;
    const struct fr_rank *r = ended_early(c, true, &gap);
    if (r == NULL) {
        steps = false;
        r = ended_early(c, false, &gap);
    }
    int32_t f = r == NULL ? -1 : fr_case_class(c, "rank-stalled");
    struct fr_cand *k = f < 0 ? NULL : fr_case_cand(c, f, FR_GROUND_SILENCE);
    if (k == NULL || r->cause != NULL) {
        return;
    }
    k->ground = FR_GROUND_SILENCE;
    k->silent = true;
    k->score = 22;
    k->life = r->life;
    k->life_src = r->life_src;
    fr_cand_rank(c, k, r->rank);
    if (steps) {
        fr_cand_for(c, k, "the log of rank %d ends %lld steps before all others", r->rank, (long long)gap);
    } else {
        fr_cand_for(c, k, "the log of rank %d ends %lld s before all others", r->rank, (long long)(gap / FR_NS_PER_S));
    }
}
