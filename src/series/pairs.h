/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: "name: value" and "name=value" anywhere on a line, whatever stands between them: the
 * engine below most dialects. Names are looked up in keys; a quoted value, a one-element list,
 * tensor(...) and ANSI colours are seen through. */
#ifndef FR_SERIES_PAIRS_H
#define FR_SERIES_PAIRS_H

#include "series/keys.h"

/* A bar that was redrawn in place: its last state, where the reader has not cut at '\r' already. */
fr_sv fr_last_redraw(fr_sv text);

/* Puts every known pair of [p, e) into the point; returns how many. A name that ends in "loss"
 * and is not known is an evaluation loss when it says so, else an auxiliary one (of several, a
 * non-finite one is kept). */
unsigned fr_pairs(const char *p, const char *e, struct fr_point *ret);

/* The same for "name value" without a separator. The value must look like a measurement (a decimal
 * point, an exponent, nan or inf): "step 10" and "saw 3 losses" are none. */
unsigned fr_spaced_pairs(const char *p, const char *e, struct fr_point *ret);

/* The value at p: spaces, a quote, a bracket and colours skipped. A number must end there: "0.5
 * * x" and "3D" are none. */
bool fr_pair_value(const char **p, const char *e, double *ret);

/* The number behind `word` where the word stands alone ("step 10", "[step]  89", "Step
 * [10/100]", "iter: 5"). */
bool fr_word_number(const char *p, const char *e, const char *word, int64_t *ret_at,
                    int64_t *ret_of);

/* At a point with a step inside an epoch: counts on from the epochs before (epoch from `first`,
 * 0 or 1). */
void fr_point_across_epochs(struct fr_point *pt, int first);

#endif
