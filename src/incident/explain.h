/* SPDX-License-Identifier: Apache-2.0 */
/* explain: the judged case to the incident of the report. All text is copied into the report's arena. */
#ifndef FR_INCIDENT_EXPLAIN_H
#define FR_INCIDENT_EXPLAIN_H

#include "incident/case.h"

/* best: index into c->cands. Appends one incident to r. 0 or -FR_NOMEM. */
int fr_explain_incident(struct fr_case *c, int32_t best, struct fr_report *r);
/* The picture's lanes and the list of what was checked, once per report. */
void fr_explain_lanes(struct fr_case *c, struct fr_report *r);
void fr_explain_checked(const struct fr_case *c, struct fr_report *r);
/* advice.c: band, action, resume and what to collect next. */
void fr_explain_band(const struct fr_case *c, const struct fr_cand *k, struct fr_incident *in);
void fr_explain_advice(struct fr_case *c, const struct fr_cand *k, struct fr_incident *in, struct fr_report *r);

#endif
