/* SPDX-License-Identifier: Apache-2.0 */
/* acts: a reproduction's result for people (text), as a picture (SVG) and for programs (JSON,
 * schema/repro.schema.json). Pure, like every writer: equal results give equal bytes. */
#ifndef FR_REPORT_ACTS_H
#define FR_REPORT_ACTS_H

#include "base/buf.h"
#include "base/err.h"
#include "repro/repro.h"

struct fr_acts {
    const struct fr_repro *repro;
    const struct fr_repro_values *values; /* NULL in a smoke test: parameters are not shown */
    const struct fr_result *result;
    const char *title; /* of the failure */
};
struct fr_acts_options {
    int width; /* terminal columns, 0 = 100 */
    bool color;
};

void fr_acts_text(const struct fr_acts *a, const struct fr_acts_options *o, struct fr_buf *out);
/* The claims alone, one line each, and the verdict: what a smoke test prints. */
void fr_acts_claims(const struct fr_acts *a, const struct fr_acts_options *o, struct fr_buf *out);
/* One standalone <svg> document: curves, and the magnitudes of traces. */
void fr_acts_svg(const struct fr_acts *a, struct fr_buf *out);
int fr_acts_json(const struct fr_acts *a, struct fr_buf *out, struct fr_err *err);

/* "65504", "1.2e+07", "Inf", "NaN": at most four digits. */
const char *fr_acts_number(double v, char ret[32]);
/* A curve as at most `columns` characters: eight heights, '!' where values are Inf or NaN. */
void fr_acts_spark(const struct fr_curve *s, unsigned columns, struct fr_buf *out);

#endif
