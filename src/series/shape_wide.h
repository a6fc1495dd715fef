/* SPDX-License-Identifier: Apache-2.0 */
/* shape_wide: what the ways to read a line of a shape share, and one for each kind of CPU. Private
 * to src/series, and for tests: fr_shape_fits and fr_shape_point choose. A shape that one of them
 * has read from is not for another. */
#ifndef FR_SERIES_SHAPE_WIDE_H
#define FR_SERIES_SHAPE_WIDE_H

#include "series/shape.h"

enum { STEP, MAX_STEP, BATCH, EPOCH, ATTEMPTED, BEST, VALUE, FIELDS = VALUE + FR_METRIC_COUNT_ };
#define NEVER_SEEN (~(uint64_t)0) /* no digits */

bool fr_shape_fits_portable(const struct fr_shape *s, fr_sv line);
const struct fr_point *fr_shape_point_portable(struct fr_shape *s, fr_sv line);
bool fr_shape_fits_avx2(const struct fr_shape *s, fr_sv line);
const struct fr_point *fr_shape_point_avx2(struct fr_shape *s, fr_sv line);

/* At the end of learning: the fours of the slots. */
void fr_shape_widen(struct fr_shape *s);
/* The exponent of a slot, whose digits are at `p`, is another one than in the line before. */
void fr_shape_exponent(struct fr_shape *s, unsigned slot, const char *p);
/* The numbers that are read by themselves. */
void fr_shape_alone(const struct fr_shape *s, fr_sv line, double *ret);

#endif
