/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, attention scores and a row times a matrix. */
#include "numerics/emulate.h"

static void softmax_steps(struct fr_run *r, uint32_t kind, const struct fr_array *x, double *work,
                          struct fr_array *out)
{
    double top, total;
    struct fr_array e = {work, x->n, x->dtype}, max = {&top, 1, 0}, sum = {&total, 1, 0};
    if (kind == FR_SOFTMAX_NAIVE) {
        fr_run_op(r, "exp(x)", FR_OP_EXP, x, NULL, &e);
    } else {
        fr_run_reduce(r, "max", FR_REDUCE_AMAX, x, &max);
        fr_run_op(r, "x - max", FR_OP_SUB, x, &max, &e);
        fr_run_op(r, "exp(x - max)", FR_OP_EXP, &e, NULL, &e);
    }
    fr_run_reduce(r, "sum of exp", FR_REDUCE_SUM, &e, &sum);
    fr_run_op(r, "exp / sum", FR_OP_DIV, &e, &sum, out);
}

int fr_softmax(const struct fr_policy *p, uint32_t kind, const struct fr_array *x, double *work,
               struct fr_array *y, struct fr_op_trace *trace)
{
    if (!fr_policy_ok(p) || !fr_is_value(x->dtype) || x->n == 0 || y->n != x->n ||
        kind > FR_SOFTMAX_NAIVE) {
        return -1;
    }
    struct fr_policy q = kind == FR_SOFTMAX_LIBRARY ? fr_fused_policy(p, x->dtype) : *p;
    struct fr_run run = {&q, trace, 0};
    struct fr_array out = {work + x->n, x->n, 0};
    softmax_steps(&run, kind, x, work, &out);
    uint32_t type = out.dtype;
    if (kind == FR_SOFTMAX_LIBRARY) {
        type = p->raised != 0 ? fr_promote(p->raised, x->dtype) : x->dtype;
    } else if (p->intermediate != 0) {
        type = x->dtype;
    }
    if (run.failed == 0) {
        fr_run_cast(&run, "softmax", &out, type, y);
    }
    return run.failed;
}

int fr_attention_scores(const struct fr_policy *p, uint32_t placing, const struct fr_array *q,
                        const struct fr_array *k, double scale, const struct fr_array *mask,
                        double *work, struct fr_array *out, struct fr_op_trace *trace)
{
    if (!fr_policy_ok(p) || placing > FR_SCALE_FUSED || !fr_is_value(q->dtype) ||
        !fr_is_value(k->dtype) || q->n == 0 || out->n == 0 || k->n / q->n != out->n ||
        k->n % q->n != 0 || (mask != NULL && mask->n != out->n)) {
        return -1;
    }
    struct fr_policy at =
        placing == FR_SCALE_FUSED ? fr_fused_policy(p, fr_promote(q->dtype, k->dtype)) : *p;
    struct fr_run run = {&at, trace, 0};
    struct fr_array query = *q;
    if (placing == FR_SCALE_BEFORE) {
        query.v = work;
        fr_run_scalar(&run, "q * scale", FR_OP_MUL, q, scale, &query);
    }
    for (size_t i = 0; i < out->n && run.failed == 0; i++) {
        struct fr_array key = {k->v + i * q->n, q->n, k->dtype}, score = {out->v + i, 1, 0};
        run.failed = fr_dot(&at, &query, &key, &score);
        out->dtype = score.dtype;
    }
    if (run.failed == 0) {
        fr_op_trace_add(trace, "q @ k.T", out);
    }
    if (placing != FR_SCALE_BEFORE) {
        fr_run_scalar(&run, "scores * scale", FR_OP_MUL, out, scale, out);
    }
    if (mask != NULL) {
        fr_run_op(&run, "scores + mask", FR_OP_ADD, out, mask, out);
    }
    return run.failed;
}

int fr_linear(const struct fr_policy *p, const struct fr_array *x, const struct fr_array *w,
              const struct fr_array *bias, struct fr_array *out, struct fr_op_trace *trace)
{
    if (!fr_policy_ok(p) || !fr_is_value(x->dtype) || !fr_is_value(w->dtype) || x->n == 0 ||
        w->n / x->n != out->n || w->n % x->n != 0 ||
        (bias != NULL && (bias->n != out->n || !fr_is_value(bias->dtype)))) {
        return -1;
    }
    uint32_t operands = p->raised != 0 ? p->element : fr_promote(x->dtype, w->dtype);
    uint32_t type = fr_result(p, 0, operands), sum_type = fr_accumulator(p, operands);
    for (size_t i = 0; i < out->n; i++) {
        double sum = fr_dot_sum(p, x->v, w->v + i * x->n, x->n, operands);
        if (bias != NULL) { /* an epilogue: added before the one rounding */
            sum = fr_keep(p, sum_type, fr_keep(p, fr_wide(sum_type), sum + bias->v[i]));
        }
        out->v[i] = fr_keep(p, type, sum);
    }
    out->dtype = type;
    fr_op_trace_add(trace, bias != NULL ? "x @ w.T + b" : "x @ w.T", out);
    return 0;
}
