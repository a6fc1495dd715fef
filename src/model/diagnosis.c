/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis: names of the contract's words, and the end of a report. */
#include "model/diagnosis.h"

const char *fr_verdict_name(enum fr_verdict v)
{
    static const char *const names[] = {"failure", "healthy", "inconclusive"};
    return names[v];
}

const char *fr_band_name(enum fr_band b)
{
    static const char *const names[] = {"possible", "likely", "certain"};
    return names[b];
}

const char *fr_scope_name(enum fr_scope s)
{
    static const char *const names[] = {"unknown", "rank", "ranks", "all-ranks", "node", "launcher"};
    return names[s];
}

const char *fr_action_name(enum fr_action a)
{
    static const char *const names[] = {"none", "restart", "fix-first", "drain-node", "wait"};
    return names[a];
}

const char *fr_role_name(enum fr_role r)
{
    static const char *const names[] = {"cause", "symptom", "teardown", "context", "progress"};
    return names[r];
}

static void incident_release(struct fr_incident *in)
{
    for (uint32_t i = 0; i < in->hypotheses.n; i++) {
        fr_vec_free(in->hypotheses.v[i].for_.v);
        fr_vec_free(in->hypotheses.v[i].against.v);
    }
    fr_vec_free(in->initiator.ranks.v);
    fr_vec_free(in->evidence.v);
    fr_vec_free(in->collateral.v);
    fr_vec_free(in->hypotheses.v);
    fr_vec_free(in->not_the_cause.v);
    fr_vec_free(in->collect_next.v);
}

void fr_report_release(struct fr_report *r)
{
    if (r == NULL) {
        return;
    }
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        incident_release(&r->incidents.v[i]);
    }
    fr_vec_free(r->incidents.v);
    fr_vec_free(r->input.skipped.v);
    fr_vec_free(r->metrics.v);
    fr_vec_free(r->checked.v);
    fr_vec_free(r->lanes.v);
    fr_arena_release(&r->arena);
    *r = (struct fr_report){0};
}
