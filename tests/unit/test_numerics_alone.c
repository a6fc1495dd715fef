/* SPDX-License-Identifier: Apache-2.0 */
/* What a C project does: the public header, the one library, libm, nothing else of this tree. */
#include "faultrank/numerics.h"

#include <stdio.h>

int main(void)
{
    double values[2] = {256, 1}, out[2];
    struct fr_array x = {values, 2, FR_F16}, y = {out, 2, 0};
    struct fr_op_step steps[4];
    struct fr_op_trace trace = {.steps = steps, .cap = 4};
    if (fr_op(fr_policy_find("torch-cuda"), FR_OP_POW2, &x, NULL, &y) != 0) {
        return 1;
    }
    fr_op_trace_add(&trace, "x.pow(2)", &y);
    const struct fr_op_step *bad = fr_op_trace_first_bad(&trace);
    printf("%s: %llu of %llu are Inf\n", bad->op, (unsigned long long)bad->inf, (unsigned long long)bad->n);
    return bad->inf != 1;
}
