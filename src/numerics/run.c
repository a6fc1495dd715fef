/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/emulate.h"

#include <string.h>

void fr_run_op(struct fr_run *r, const char *name, uint32_t op, const struct fr_array *a,
               const struct fr_array *b, struct fr_array *out)
{
    if (r->failed == 0 && (r->failed = fr_op(r->p, op, a, b, out)) == 0) {
        fr_op_trace_add(r->trace, name, out);
    }
}

void fr_run_scalar(struct fr_run *r, const char *name, uint32_t op, const struct fr_array *a,
                   double b, struct fr_array *out)
{
    if (r->failed == 0 && (r->failed = fr_op_scalar(r->p, op, a, b, out)) == 0) {
        fr_op_trace_add(r->trace, name, out);
    }
}

void fr_run_reduce(struct fr_run *r, const char *name, uint32_t reduction, const struct fr_array *a,
                   struct fr_array *out)
{
    if (r->failed == 0 && (r->failed = fr_reduce(r->p, reduction, a, out)) == 0) {
        fr_op_trace_add(r->trace, name, out);
    }
}

void fr_run_cast(struct fr_run *r, const char *name, const struct fr_array *a, uint32_t dtype,
                 struct fr_array *out)
{
    uint32_t before = a->dtype;
    if (r->failed == 0 && (r->failed = fr_cast(r->p, a, dtype, out)) == 0 && before != dtype) {
        fr_op_trace_add(r->trace, name, out);
    }
}
