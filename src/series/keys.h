/* SPDX-License-Identifier: Apache-2.0 */
/* keys: what the names on metric lines mean. One table for all dialects, so a name never means
 * two things. */
#ifndef FR_SERIES_KEYS_H
#define FR_SERIES_KEYS_H

#include "base/view.h"
#include "model/series.h"

enum fr_mkey_role {
    FR_MKEY_NONE = 0,
    FR_MKEY_STEP = 32, /* below: 1 + enum fr_metric */
    FR_MKEY_MAX_STEP,
    FR_MKEY_EPOCH,
    FR_MKEY_SUMMARY, /* the line closes a run: its averages are no points */
    FR_MKEY_BATCH,
    FR_MKEY_BEST,
    FR_MKEY_RATIO, /* "5/100" */
    FR_MKEY_MARKS_RL
};
struct fr_mkey {
    uint8_t role;
    bool rl;      /* its line is of reinforcement or preference training: a loss of 0 is fine */
    float factor; /* to our unit */
};

/* Exact match. role 0 = unknown. */
struct fr_mkey fr_mkey_find(fr_sv key);

/* Puts one key and its value into the point. False when the key means nothing to us. */
bool fr_mkey_put(struct fr_point *pt, struct fr_mkey k, double v);

/* An empty point. */
static inline void fr_point_init(struct fr_point *pt)
{
    pt->step = pt->max_step = pt->global_batch = -1;
    pt->epoch = pt->attempted = pt->best = __builtin_nan("");
    pt->present = pt->missing = 0;
    pt->flags = 0;
    pt->dialect = 0;
}

static inline void fr_point_set(struct fr_point *pt, enum fr_metric m, double v)
{
    pt->present |= 1u << m;
    pt->value[m] = v;
}
static inline bool fr_point_has(const struct fr_point *pt, enum fr_metric m)
{
    return (pt->present >> m & 1u) != 0;
}

#endif
