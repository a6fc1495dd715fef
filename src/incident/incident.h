/* SPDX-License-Identifier: Apache-2.0 */
/* incident: evidence to diagnosis. Reads a sealed evidence set and the library, writes a report: deterministic, no I/O, no clock.
 * The laws are those of the design's section 5; each has its file and its tests (docs/architecture.md lists them). */
#ifndef FR_INCIDENT_INCIDENT_H
#define FR_INCIDENT_INCIDENT_H

#include "base/err.h"
#include "failure/library.h"
#include "model/evidence.h"

/* Fills *ret (released by fr_report_release). Quotes borrow nothing: the report owns its text. 0 or -FR_NOMEM. */
int fr_incident_decide(const struct fr_evidence_set *set, const struct fr_library *lib, struct fr_report *ret, struct fr_err *err);

#endif
