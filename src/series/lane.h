/* SPDX-License-Identifier: Apache-2.0 */
/* lane: one metric of one speaker in one dialect, and what its detectors remember. Private to
 * src/series. Fixed size: a ring of the last good values, a few accumulators, and marks. A mark
 * holds the line where a suspicion began; it is taken from the series' pool when a suspicion
 * starts, so a healthy lane has none. */
#ifndef FR_SERIES_LANE_H
#define FR_SERIES_LANE_H

#include "series/keys.h"
#include "series/series.h"

enum {
    FR_RING = 16,          /* good values that make the baseline */
    FR_MARK_TEXT = 480,    /* bytes kept of the line where something began */
    FR_KEEP = 64,          /* reservoir: every k-th value of the whole run */
    FR_SPEAKERS_MAX = 64,
    FR_DIALECTS_MAX = 64,
    FR_PENDING_MAX = 256,
    FR_HARMLESS_MAX = 4, /* spikes, and scale searches, per lane */
    /* no detector but for NaN */
    FR_PLAIN = 1 << FR_METRIC_LR | 1 << FR_METRIC_REWARD | 1 << FR_METRIC_NAN_COUNT
};

struct fr_mark {
    struct fr_mark *next; /* pool */
    uint64_t line, offset;
    struct fr_when when;
    int64_t step, good_step; /* the step of the mark and of the last good point before it */
    double value, baseline;
    uint16_t speaker, n;
    char text[FR_MARK_TEXT];
};

/* One point as the detectors see it. */
struct fr_at {
    const struct fr_point *point;
    const struct fr_when *when;
    uint64_t line, offset;
    fr_sv text;
    int64_t step; /* the point's, or that of the header line before it */
    uint16_t speaker;
};

/* NaN, inf and left-out values: one machine each. */
struct fr_bad_run {
    struct fr_mark *first, *run; /* begin of the first run, and of the one open or last */
    uint32_t n_first, n_run, n_runs;
    uint64_t last_first, last_run;   /* their last lines */
    uint64_t good_first, good_run;   /* good points of the lane before their end */
    bool open;
};

/* A level shift upwards: open from the first value over the threshold until three values are
 * normal again. */
struct fr_shift {
    struct fr_mark *mark, *recovery;
    double base, limit, close, sum, peak, low;
    double tail_low, tail_high; /* of the high values from the third on */
    uint32_t n_high, normal_run, n_inside; /* n_inside: normal values between the high ones */
    uint64_t last_line;
    uint8_t n_before; /* points the baseline came from */
    bool open;
    bool broke; /* a NaN or inf followed while it was open */
    bool found; /* reported as a jump to the end: the trend need not say it again */
};

/* Optimizer steps left out: a run in which none was made. */
struct fr_skips {
    struct fr_mark *mark;
    double sum;             /* DeepSpeed's counter */
    int64_t step;           /* of the last line */
    uint64_t n, good_seen;
    bool known;
};

/* Step time (or time per item): a sample of the whole run, and the streak of slow points that is
 * open. */
struct fr_pace {
    struct fr_mark *begin, *slow, *far, *creep;
    double keep[FR_KEEP];
    uint64_t keep_every, next_learn;
    uint8_t keep_n;
    double middle, limit, sigma; /* median; 90 % quantile or 4 % over the median; robust sigma */
    double sum, clipped; /* of the streak; clipped: single values count at most 1.5 x the median */
    uint32_t n_slow, n_far, normal_run; /* of the streak; over 3 x the median; normal since */
    uint32_t n_inside;                  /* normal points within the streak */
    uint64_t last_line;
    double creep_base, creep_last; /* short series: steps that grow from an even start */
    uint32_t creep_n;
    bool creep_dead;
};

/* The loss scale: a run of overflows and where it stands. */
struct fr_scale {
    struct fr_mark *mark;
    double now, from, lowest; /* current value, value before the run, lowest in the run */
    uint32_t n;               /* distinct reductions in the run */
    uint64_t last_line, good_seen;
    int64_t last_step;
    uint32_t n_at_minimum;
    bool known, open;
};

struct fr_lane {
    /* what every point touches, together */
    uint8_t metric, ring_n, ring_at, keep_n, brief_n; /* brief_n: FR_RING + 1 when it is longer */
    bool rl, bar, bad_open, by_epoch; /* by_epoch: one point an epoch */
    uint8_t n_spikes, n_searches; /* harmless findings kept: a few tell the story */
    uint16_t speaker, since_baseline;
    uint64_t n, n_good;
    int64_t first_step, last_step, good_step;
    double last;
    uint64_t last_line;
    double typical, spread, limit; /* median, robust sigma; over `limit` a level opens */
    double ring[FR_RING];

    double smooth, deviation; /* exponential mean, and mean absolute deviation from it */
    double best, begin_sum;   /* lowest mean; sum of the first five values */
    double rise_deviation;    /* the deviation before the rise began */
    uint64_t n_trend, rise_n; /* points seen, and until the rise */
    struct fr_mark *rise; /* where `smooth` last left `best` for good */
    bool rising;

    struct fr_mark *growth; /* third point of a run of rising values */
    uint32_t growth_n, doubled_n;
    double growth_from, growth_last; /* value before the run; last value */
    double growth_over;              /* largest value of the ring before it */

    double brief[FR_RING];         /* the whole of a series that is no longer */
    struct fr_mark *first, *climb, *surge; /* its first point; that behind its lowest; its last leap */

    struct fr_mark *flat, *narrow, *same; /* begin of the run near ln(n), very near it, of equals */
    double flat_at, flat_head, flat_tail; /* ln(n); sum of the first 16; exponential mean */
    double same_at;
    uint32_t flat_n, same_n, narrow_n;
    uint8_t epoch_n; /* points that are whole epochs */

    struct fr_mark *zero; /* begin of the run of zeros */
    double zero_base;
    uint32_t zero_n, zero_exact;
    uint64_t zero_line;
    double before[3]; /* the last three values that were not zero, newest first */
    uint8_t before_n;

    struct fr_bad_run bad[3]; /* NAN, INF, MISSING */
    struct fr_shift level;
    uint32_t longest_spike;
    union {
        struct fr_scale scale; /* LOSS_SCALE */
        struct fr_pace *pace;  /* STEP_TIME, THROUGHPUT */
        struct fr_skips skips; /* SKIPPED */
    };
};

/* The lanes of one speaker in one dialect, and its place in time. */
struct fr_group {
    uint16_t speaker;
    uint8_t dialect;
    int64_t step, max_step, interval; /* of the newest training point; between the last two */
    double epoch;
    int64_t batch;
    uint32_t restarts;
    struct fr_lane *lanes[FR_METRIC_COUNT_];
};

struct fr_pending {
    struct fr_lane *lane;
    struct fr_mark mark;
    uint8_t kind, metric;
    uint64_t last_line, good_then; /* good points of the lane when it closed */
    uint32_t n_bad;
    bool open; /* still bad at the end of the series */
    char note[200];
};

struct fr_series {
    struct fr_who *speakers; /* names inside are owned copies */
    char (*names)[2][64];
    uint16_t n_speakers, cap_speakers, last_speaker;
    bool full; /* more speakers than we follow */
    struct fr_group *groups[FR_SPEAKERS_MAX][FR_DIALECTS_MAX];
    struct fr_mark *marks;
    FR_VEC(struct fr_pending) pending;
    uint64_t points;
    uint64_t good_losses; /* of any lane: what "training goes on" means to the loss scale */
    int64_t last_step, max_step;
    bool no_memory;

    /* progress against the clock */
    int64_t top_step;
    struct fr_when top_when, end_when; /* of top_step, and the latest time the source knows */
    double pace_s;                     /* seconds per step, exponential mean */
    uint32_t n_paces, n_stalls;
    struct fr_mark top;                /* the line of top_step */
};

/* A mark filled from `at`, reusing `old` when there is one; NULL without memory (flagged, the
 * finding is lost). */
struct fr_mark *fr_mark_take(struct fr_series *s, struct fr_mark *old, const struct fr_at *at,
                             double value, int64_t good_step, double baseline);

/* Keeps a finding; it gets its final `terminal` and `n_after_good` at the end of the series.
 * note: a printf format. */
__attribute__((format(printf, 7, 8))) struct fr_pending *
fr_pend(struct fr_series *s, struct fr_lane *l, enum fr_finding_kind kind, const struct fr_mark *m,
        uint32_t n_bad, bool open, const char *note, ...);

double fr_median(double *v, unsigned n); /* reorders v */
void fr_lane_baseline(struct fr_lane *l);
void fr_lane_learn(struct fr_lane *l, double v, uint32_t times);
void fr_lane_add(struct fr_series *s, struct fr_group *g, struct fr_lane *l, const struct fr_at *at,
                 double v);
void fr_lane_missing(struct fr_series *s, struct fr_lane *l, const struct fr_at *at);

/* Detectors. *_add: a new point; *_close: at a restart (open = false) or at the end (open =
 * true). */
void fr_bad_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v,
                int which);
void fr_bad_good(struct fr_lane *l);
void fr_bad_finish(struct fr_series *s, struct fr_lane *l);
void fr_zero_add(struct fr_series *s, struct fr_group *g, struct fr_lane *l, const struct fr_at *at,
                 double v);
void fr_zero_close(struct fr_series *s, struct fr_group *g, struct fr_lane *l, bool at_end);

void fr_norm_zero_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_norm_zero_close(struct fr_series *s, const struct fr_group *g, struct fr_lane *l,
                        bool at_end);

void fr_level_limit(struct fr_lane *l);
/* true: v is not normal */
bool fr_level_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_level_close(struct fr_series *s, struct fr_lane *l, bool at_end);
void fr_trend_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_trend_close(struct fr_series *s, struct fr_lane *l, bool at_end);
void fr_flat_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_flat_close(struct fr_series *s, const struct fr_group *g, struct fr_lane *l, bool at_end);
void fr_brief_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
/* Before fr_trend_close. */
void fr_brief_close(struct fr_series *s, const struct fr_group *g, struct fr_lane *l, bool at_end);
/* true: found, so the jump in it need not be told */
bool fr_growth_close(struct fr_series *s, struct fr_lane *l, bool at_end);
void fr_chance_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_chance_close(struct fr_series *s, struct fr_lane *l, bool at_end);
void fr_eval_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);

void fr_scale_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v,
                  bool has_value);
void fr_scale_close(struct fr_series *s, struct fr_lane *l, bool at_end);

void fr_skips_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_skips_close(struct fr_series *s, struct fr_lane *l, bool at_end);

void fr_pace_add(struct fr_series *s, struct fr_lane *l, const struct fr_at *at, double v);
void fr_pace_close(struct fr_series *s, struct fr_lane *l, bool at_end);
void fr_eval_close(struct fr_series *s, struct fr_lane *l, bool at_end);
void fr_clock_add(struct fr_series *s, const struct fr_at *at);
void fr_clock_finish(struct fr_series *s);
void fr_pace_finish(struct fr_series *s);

#endif
