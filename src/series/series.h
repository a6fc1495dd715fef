/* SPDX-License-Identifier: Apache-2.0 */
/* series: metric lines to points, points to findings. Hand-written parsers keyed on their
 * dialect's own prefix (about 100 ns a line); streaming detectors with stated statistics; memory
 * per series is fixed however long the run. */
#ifndef FR_SERIES_SERIES_H
#define FR_SERIES_SERIES_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/series.h"

struct fr_dialect_sample {
    const char *line;
    const char *expect; /* "step=10 loss=2.5 grad_norm=nan", or "" = not a metric line */
};
struct fr_dialect {
    const char *name, *summary;
    /* What brings a line here: gate hooks, NULL-terminated, each at least 4 bytes and rare. */
    const char *const *literals;
    /* Parses text (a physical line or segment; prefixes may still be in front: find your own
     * key) into *ret. False = not mine. */
    bool (*parse)(fr_sv text, struct fr_point *ret);
    const struct fr_dialect_sample *samples; /* ends with {NULL,NULL} */
};
extern const struct fr_dialect *const fr_dialects[]; /* from dialects.def; at most 64 */
extern const unsigned fr_dialects_count;

#define FR_POINT_LINE_MAX 16384 /* longer lines are no metric lines */
/* Tries the dialects of the bit mask in order; fills ret->dialect. */
bool fr_point_parse(fr_sv text, uint64_t dialects, struct fr_point *ret);

/* The series of one source: one lane per (speaker, dialect, metric). Bounded: at most 64
 * speakers, then flagged. */
struct fr_series;
int fr_series_new(struct fr_series **ret);
void fr_series_free(struct fr_series **s);
/* Where the points of one speaker in one dialect go; NULL over a limit. Valid as long as s. */
struct fr_group *fr_series_seat(struct fr_series *s, const struct fr_who *who, uint8_t dialect);
/* Takes one point in file order. when/text borrowed for the call only. */
void fr_series_put(struct fr_series *s, struct fr_group *seat, const struct fr_point *p,
                   const struct fr_when *when, uint64_t line, uint64_t offset, fr_sv text);
/* Both; who borrowed for the call only. */
void fr_series_add(struct fr_series *s, const struct fr_point *p, const struct fr_who *who,
                   const struct fr_when *when, uint64_t line, uint64_t offset, fr_sv text);
/* The latest time the source knows (of any line), before finish: a log that goes on without new
 * steps has stalled. */
void fr_series_ends(struct fr_series *s, const struct fr_when *when);
/* Runs what needs the end of the series and lists all findings in order of their line; strings
 * into arena. */
int fr_series_finish(struct fr_series *s, struct fr_arena *arena, fr_findings *ret);
uint64_t fr_series_points(const struct fr_series *s);
int64_t fr_series_last_step(const struct fr_series *s); /* -1 none */
int64_t fr_series_max_step(const struct fr_series *s);
bool fr_series_full(const struct fr_series *s); /* a limit or memory cut the picture short */
/* Summaries: per metric, of each rank, and of the speaker who is none and prints most of it:
 * points, first, last step, last value. Calls fn for each. */
void fr_series_each(const struct fr_series *s,
                    void (*fn)(void *ctx, enum fr_metric m, const struct fr_who *who,
                               uint64_t points, int64_t first_step, int64_t last_step, double last),
                    void *ctx);

#endif
