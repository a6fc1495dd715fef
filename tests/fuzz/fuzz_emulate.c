/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_emulate: any policy on any row: a refusal or results that are values of their type, with a
 * trace that agrees with them. */
#include "faultrank/numerics.h"
#include "fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { ROW = 96 };

static double work[ROW * FR_WORK_ROWS];

static void check(const struct fr_array *a)
{
    for (size_t i = 0; i < a->n; i++) {
        CHECK(isnan(a->v[i]) || fr_round(a->dtype, a->v[i], FR_OVERFLOW_IEEE) == a->v[i]);
    }
}

static struct fr_policy policy_from(const uint8_t *b)
{
    struct fr_policy p = *fr_policy_at(b[0] % 10);
    static const uint32_t types[] = {0, FR_F16, FR_BF16, FR_F32, FR_F64, FR_F8_E4M3FN, FR_F8_E5M2, FR_I8};
    if (b[1] & 1) { /* else the preset as it is */
        p.element = types[1 + b[2] % 6];
        p.raised = types[b[3] % 5];
        p.intermediate = types[b[4] % 8];
        p.square = types[b[5] % 6];
        p.product = types[b[6] % 6];
        p.accumulator = types[b[7] % 6];
        p.mean = b[8] & 1;
        p.divide = b[8] >> 1 & 1;
        p.rsqrt = b[9] % 4;
        p.scalar = types[b[10] % 6];
        p.scalar_add = types[b[11] % 6];
        p.order = b[12] % 7;
        p.cube = b[13] % 3;
        p.fused_add = b[14] & 1;
        p.overflow = b[14] >> 1 & 1;
    }
    return p;
}

static void expressions(const struct fr_policy *p, const struct fr_array *x, uint32_t pick)
{
    double y_v[ROW], w_v[ROW];
    struct fr_op_step steps[8];
    struct fr_op_trace trace = {.steps = steps, .cap = 8};
    struct fr_array y = {y_v, x->n, x->dtype}, w = {w_v, x->n, x->dtype};
    if (fr_softmax(p, pick % 3, x, work, &y, &trace) == 0) {
        check(&y);
    }
    if (fr_rms_norm(p, pick % 7, x, x, 1e-6, work, &y, NULL, &trace) == 0) {
        check(&y);
        CHECK(fr_rms_norm_backward(p, pick % 7, x, x, 1e-6, x, work, &y, &w, &trace) == 0);
        check(&y);
        check(&w);
    }
    if (fr_layer_norm(p, pick & 1, x, x, x, 1e-5, work, &y, &trace) == 0) {
        check(&y);
        CHECK(fr_layer_norm_backward(p, pick & 1, x, x, 1e-5, x, work, &y, &w, NULL, &trace) == 0);
        check(&y);
    }
    struct fr_array one = {y_v, 1, 0};
    if (fr_attention_scores(p, pick % 4, x, x, 0.125, NULL, work, &one, &trace) == 0) {
        check(&one);
    }
    for (uint64_t i = 0; i < trace.n && i < trace.cap; i++) {
        CHECK(steps[i].op != NULL && steps[i].nan + steps[i].inf + steps[i].zero <= steps[i].n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    double x_v[ROW], y_v[ROW];
    if (size < 20) {
        return 0;
    }
    struct fr_policy p = policy_from(data);
    size_t n = (size - 16) / 2 < ROW ? (size - 16) / 2 : ROW;
    uint32_t dtype = data[15] & 1 ? FR_F16 : FR_BF16;
    for (size_t i = 0; i < n; i++) {
        x_v[i] = fr_decode(dtype, (uint32_t)(data[16 + 2 * i] | data[17 + 2 * i] << 8));
    }
    struct fr_array x = {x_v, n, dtype}, y = {y_v, n, 0};
    for (uint32_t op = 0; op < 17; op++) {
        if (fr_op(&p, op, &x, op <= FR_OP_MAXIMUM ? &x : NULL, &y) == 0) {
            check(&y);
        }
        if (fr_op_scalar(&p, op, &x, x_v[0], &y) == 0) {
            check(&y);
        }
    }
    for (uint32_t r = 0; r < 6; r++) {
        struct fr_array one = {y_v, 1, 0};
        if (fr_reduce(&p, r, &x, &one) == 0) {
            check(&one);
        }
    }
    expressions(&p, &x, data[15] >> 1);
    return 0;
}
