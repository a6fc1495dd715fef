/* SPDX-License-Identifier: Apache-2.0 */
/* series: training metrics as they are passed between layers. */
#ifndef FR_MODEL_SERIES_H
#define FR_MODEL_SERIES_H

#include "base/vec.h"
#include "model/record.h"

#define FR_METRICS(X)                                                                                              \
    X(LOSS, "loss") X(GRAD_NORM, "grad_norm") X(LOSS_SCALE, "loss_scale") X(LR, "lr") X(STEP_TIME, "step_time")    \
    X(THROUGHPUT, "throughput") X(ACCURACY, "accuracy") X(REWARD, "reward") X(AUX_LOSS, "aux_loss")                \
    X(EVAL_LOSS, "eval_loss") X(SKIPPED, "skipped") X(NAN_COUNT, "nan_count")
enum fr_metric {
#define FR_X(name, text) FR_METRIC_##name,
    FR_METRICS(FR_X)
#undef FR_X
    FR_METRIC_COUNT_
};
const char *fr_metric_name(enum fr_metric m);

/* One line's metrics. present: bit per enum fr_metric; value may be NAN or +-INFINITY as printed. step_time in seconds. */
struct fr_point {
    int64_t step;      /* -1 when the line has none */
    int64_t max_step;  /* -1 unknown */
    double epoch;      /* NAN unknown */
    uint32_t present;
    uint32_t missing;  /* bit set: the dialect always prints it, and it is left out (Megatron's lm loss = NaN) */
    double value[FR_METRIC_COUNT_];
    double attempted;  /* overflow lines: the loss scale before; NAN unknown */
    double best;       /* the best evaluation loss so far where the line says it; NAN unknown */
    int64_t global_batch; /* -1 unknown; a changed batch explains a changed step time */
    uint16_t flags;    /* FR_POINT_* */
    uint8_t dialect;   /* which parser; series of different dialects are never mixed */
};
enum {
    FR_POINT_RL = 1 << 0,       /* reinforcement or preference training: a loss of 0 is normal */
    FR_POINT_BAR = 1 << 1,      /* a redrawn progress bar: values repeat, the step counts inside an epoch */
    FR_POINT_OVERFLOW = 1 << 2, /* an optimizer step was skipped for an overflow; LOSS_SCALE is what it was lowered to */
    FR_POINT_AT_MINIMUM = 1 << 3, /* the program says the scale cannot go lower */
    FR_POINT_SUMMARY = 1 << 4,  /* averages at the end of a run: no point of a series */
    FR_POINT_SKIPPED_SUM = 1 << 6, /* SKIPPED counts from the start of the run, not since the last line */
    FR_POINT_SAID = 1 << 8,     /* the program says so in every step in which it is: the steps before were sound */
    FR_POINT_EPOCH = 1 << 7,    /* the one point of an epoch, which the line does not number */
    FR_POINT_HEADER = 1 << 5    /* only says which step the following lines belong to */
};

#define FR_FINDINGS(X)                                                                                     \
    X(NAN, "nan") X(INF, "inf") X(ZERO, "zero") X(MISSING, "missing") X(PLATEAU, "plateau") X(JUMP, "jump")  \
    X(DIVERGE, "diverge") X(SPIKE, "spike") X(COLLAPSE, "collapse") X(EXPLODE, "explode") X(SLOW, "slow")  \
    X(DROP, "drop") X(STALL, "stall") X(SCALE_SEARCH, "scale-search") X(RECOVERED, "recovered")
enum fr_finding_kind {
#define FR_X(name, text) FR_FINDING_##name,
    FR_FINDINGS(FR_X)
#undef FR_X
    FR_FINDING_COUNT_
};
const char *fr_finding_name(enum fr_finding_kind k);

/* What a detector found in one series of one speaker. */
struct fr_finding {
    uint8_t metric, kind;
    struct fr_who who;        /* the speaker of the line where it begins */
    uint64_t line, offset;    /* where it begins */
    uint64_t last_line;
    struct fr_when when;
    int64_t step, last_good_step; /* -1 unknown */
    double value, baseline;   /* the first bad value and what it is compared with */
    uint32_t n_bad, n_after_good; /* points in the bad state; good points seen after it ended (recovery) */
    bool terminal;            /* still bad at the end of the series */
    fr_sv text;               /* the line where it begins (copied, cut) */
    fr_sv note;               /* one sentence with the statistic, for people */
};

typedef FR_VEC(struct fr_finding) fr_findings;

#endif
