/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue: failures as JSON, for `list`, `search` and `explain`: {"schema": "faultrank.failures/1", "failures": [...]}. */
#ifndef FR_REPORT_CATALOGUE_H
#define FR_REPORT_CATALOGUE_H

#include "base/buf.h"
#include "failure/library.h"

/* The n failures whose indexes are in which, in that order; full adds what the page says. */
int fr_catalogue_json(const struct fr_library *lib, const uint16_t *which, unsigned n, bool full, struct fr_buf *out,
                      struct fr_err *err);

#endif
