/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/emulate.h"

#include <math.h>

struct fr_op_step fr_observe(const char *op, const double *values, size_t n, uint32_t dtype)
{
    struct fr_op_step s = {.op = op, .dtype = dtype, .n = n, .first_bad = UINT64_MAX};
    const struct fr_dtype_info *info = fr_dtype_info(dtype);
    double normal = info != NULL ? info->min_normal : 0;
    for (size_t i = 0; i < n; i++) {
        double magnitude = fabs(values[i]);
        if (!isfinite(values[i])) {
            s.nan += isnan(values[i]);
            s.inf += isinf(values[i]) != 0;
            s.first_bad = s.first_bad == UINT64_MAX ? i : s.first_bad;
            continue;
        }
        s.absmax = magnitude > s.absmax ? magnitude : s.absmax;
        if (magnitude == 0) {
            s.zero++;
        } else {
            s.subnormal += magnitude < normal;
            if (s.min_nonzero == 0 || magnitude < s.min_nonzero) {
                s.min_nonzero = magnitude;
            }
        }
    }
    if (s.nan > 0) {
        s.seen = FR_SEEN_NAN;
    } else if (s.inf > 0) {
        s.seen = FR_SEEN_INF;
    } else if (n > 1 && s.zero == n) {
        s.seen = FR_SEEN_ZERO_ROW;
        s.first_bad = 0;
    }
    return s;
}

void fr_op_trace_add(struct fr_op_trace *trace, const char *op, const struct fr_array *output)
{
    if (trace == NULL) {
        return;
    }
    struct fr_op_step step = fr_observe(op, output->v, output->n, output->dtype);
    if (trace->first.op == NULL && step.seen != FR_SEEN_FINE) {
        trace->first = step;
    }
    if (trace->n < trace->cap) {
        trace->steps[trace->n] = step;
    }
    trace->n++;
}

const struct fr_op_step *fr_op_trace_first_bad(const struct fr_op_trace *trace)
{
    return trace->first.op != NULL ? &trace->first : NULL;
}
