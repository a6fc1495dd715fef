/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis: the answer for each incident, and the report that carries them: the one model all renderers read.
 * Everything lives in the report's arena; strings are NUL-terminated views. Mirrors schema/diagnosis.schema.json. */
#ifndef FR_MODEL_DIAGNOSIS_H
#define FR_MODEL_DIAGNOSIS_H

#include "base/arena.h"
#include "base/vec.h"
#include "model/event.h"
#include "model/series.h"

struct fr_failure; /* failure/library.h */

enum fr_verdict { FR_VERDICT_FAILURE, FR_VERDICT_HEALTHY, FR_VERDICT_INCONCLUSIVE };
enum fr_band { FR_BAND_POSSIBLE, FR_BAND_LIKELY, FR_BAND_CERTAIN };
enum fr_scope { FR_SCOPE_UNKNOWN, FR_SCOPE_RANK, FR_SCOPE_RANKS, FR_SCOPE_ALL_RANKS, FR_SCOPE_NODE, FR_SCOPE_LAUNCHER };
enum fr_action { FR_ACTION_NONE, FR_ACTION_RESTART, FR_ACTION_FIX_FIRST, FR_ACTION_DRAIN_NODE, FR_ACTION_WAIT };
enum fr_role { FR_ROLE_CAUSE, FR_ROLE_SYMPTOM, FR_ROLE_TEARDOWN, FR_ROLE_CONTEXT, FR_ROLE_PROGRESS };
const char *fr_verdict_name(enum fr_verdict v);
const char *fr_band_name(enum fr_band b);
const char *fr_scope_name(enum fr_scope s);
const char *fr_action_name(enum fr_action a);
const char *fr_role_name(enum fr_role r);

struct fr_quote {          /* verbatim evidence */
    fr_sv source;
    uint64_t line, offset;
    int32_t rank;          /* -1 unknown */
    struct fr_when when;   /* basis NONE: no time */
    uint8_t role;          /* enum fr_role */
    fr_sv signal;          /* "cuda-oom/out-of-memory-error", "fact:exit", "series:loss-nan", "silence" */
    fr_sv text;            /* as printed (cut at 1 KiB) */
};

struct fr_collateral { int32_t rank; fr_sv cls; struct fr_quote evidence; bool has_evidence; };
struct fr_hypothesis { fr_sv cls; double score; FR_VEC(fr_sv) for_, against; };
struct fr_innocent { fr_sv text, why; struct fr_quote at; };

struct fr_initiator {
    uint8_t scope;              /* enum fr_scope */
    FR_VEC(int32_t) ranks;      /* ascending; empty unless scope is rank/ranks */
    fr_sv node;                 /* empty unknown */
    int32_t gpu, local_rank;    /* -1 unknown */
    struct fr_when when;        /* when it began (backdated) */
    bool silent;                /* it printed nothing itself */
};

struct fr_incident {
    int32_t attempt;            /* 0-based; -1 when attempts are not told apart */
    fr_sv cls, title, category, severity, layer, owner;
    uint8_t action;             /* enum fr_action */
    fr_sv fingerprint;          /* 16 hex digits */
    uint8_t band;               /* enum fr_band */
    double confidence;          /* NAN: no number supported by the table */
    struct fr_initiator initiator;
    fr_sv summary;              /* one sentence: which rank, what, where it began */
    fr_sv why_first;            /* one or two sentences: why this rank and not the others */
    FR_VEC(struct fr_quote) evidence;        /* first one = where it began */
    FR_VEC(struct fr_collateral) collateral; /* by rank */
    FR_VEC(struct fr_hypothesis) hypotheses; /* best first */
    FR_VEC(struct fr_innocent) not_the_cause;
    const struct fr_failure *failure;        /* the page; never NULL */
    int resume_safe;            /* 1, 0, -1 unknown */
    fr_sv resume_why, resume_checkpoint;
    int64_t first_bad_step, last_good_step;  /* -1 unknown */
    FR_VEC(fr_sv) collect_next;
    uint32_t recurrences;       /* attempts with the same fingerprint, this one included */
};

struct fr_metric_summary { fr_sv name; int32_t rank; int64_t points, first_step, last_step; double last; };

struct fr_skipped {
    fr_sv source, why;
};

enum fr_lane_role { FR_LANE_UNKNOWN, FR_LANE_INITIATOR, FR_LANE_COLLATERAL, FR_LANE_FINE };
struct fr_lane {            /* one row of the picture: a rank, or a source that is no rank */
    int32_t rank;           /* -1: a source */
    fr_sv label;
    uint8_t role;           /* enum fr_lane_role */
    int64_t from_ns, to_ns; /* first and last sign of life, FR_TIME_NONE unknown */
    int64_t mark_ns;        /* first evidence about it, FR_TIME_NONE none */
};

struct fr_report {
    uint8_t verdict;
    struct {
        uint64_t sources, bytes, lines;
        int32_t ranks_seen, world_size; /* world_size -1 unknown */
        int32_t nodes;
        FR_VEC(struct fr_skipped) skipped;
    } input;
    FR_VEC(struct fr_incident) incidents;
    FR_VEC(struct fr_metric_summary) metrics;
    FR_VEC(fr_sv) checked;      /* what was looked for: sentences */
    struct { double read_s, decide_s; } timings;
    /* for the picture: one lane per rank (or source) */
    FR_VEC(struct fr_lane) lanes;
    struct fr_arena arena;
};

void fr_report_release(struct fr_report *r);

#endif
