/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm, as one kernel with wide arithmetic inside or composed of operations. Backward is
 * the closed form that fused kernels use: dx = r * (g - mean(g) - x_hat * mean(g * x_hat)), g =
 * dy * w. */
#include "numerics/emulate.h"

#include <string.h>

struct state {
    double mean_value, root; /* backing of the two below */
    struct fr_array mean, r;
};

static int arguments_ok(const struct fr_policy *p, const struct fr_array *x,
                        const struct fr_array *w)
{
    return fr_policy_ok(p) && fr_is_value(x->dtype) && x->n > 0 &&
           (w == NULL || (fr_is_value(w->dtype) && w->n == x->n));
}

/* x_hat into hat; scratch holds n doubles. */
static void normalise(struct fr_run *r, const struct fr_array *x, double eps, double *scratch,
                      struct fr_array *hat, struct state *s)
{
    double variance;
    struct fr_array squares = {scratch, x->n, 0}, v = {&variance, 1, 0};
    s->mean = (struct fr_array){&s->mean_value, 1, 0};
    s->r = (struct fr_array){&s->root, 1, 0};
    fr_run_reduce(r, "mean", FR_REDUCE_MEAN, x, &s->mean);
    fr_run_op(r, "x - mean", FR_OP_SUB, x, &s->mean, hat);
    fr_run_op(r, "(x - mean).pow(2)", FR_OP_POW2, hat, NULL, &squares);
    fr_run_reduce(r, "variance", FR_REDUCE_MEAN, &squares, &v);
    fr_run_scalar(r, "variance + eps", FR_OP_ADD, &v, eps, &v);
    fr_run_op(r, "rsqrt", FR_OP_RSQRT, &v, NULL, &s->r);
    fr_run_op(r, "(x - mean) * r", FR_OP_MUL, hat, &s->r, hat);
}

/* Autocast lists layer norm as fp32: its result is raised too. */
static uint32_t result_type(const struct fr_policy *p, uint32_t composed, const struct fr_array *x,
                            const struct fr_array *got)
{
    if (composed && p->intermediate == 0) {
        return got->dtype;
    }
    return p->raised != 0 && p->intermediate == 0 ? fr_promote(p->raised, x->dtype) : x->dtype;
}

int fr_layer_norm(const struct fr_policy *p, uint32_t composed, const struct fr_array *x,
                  const struct fr_array *w, const struct fr_array *b, double eps, double *work,
                  struct fr_array *y, struct fr_op_trace *trace)
{
    if (!arguments_ok(p, x, w) || !arguments_ok(p, x, b) || y->n != x->n) {
        return -1;
    }
    struct fr_policy q = composed ? *p : fr_fused_policy(p, x->dtype);
    struct fr_run run = {&q, trace, 0};
    struct fr_array hat = {work, x->n, 0};
    struct state s;
    normalise(&run, x, eps, work + x->n, &hat, &s);
    if (w != NULL) {
        fr_run_op(&run, "x_hat * w", FR_OP_MUL, &hat, w, &hat);
    }
    if (b != NULL) {
        fr_run_op(&run, "x_hat * w + b", FR_OP_ADD, &hat, b, &hat);
    }
    if (run.failed == 0) {
        fr_run_cast(&run, "y", &hat, result_type(p, composed, x, &hat), y);
    }
    return run.failed;
}

int fr_layer_norm_backward(const struct fr_policy *p, uint32_t composed, const struct fr_array *x,
                           const struct fr_array *w, double eps, const struct fr_array *dy,
                           double *work, struct fr_array *dx, struct fr_array *dw,
                           struct fr_array *db, struct fr_op_trace *trace)
{
    if (!arguments_ok(p, x, w) || !fr_is_value(dy->dtype) || dy->n != x->n) {
        return -1;
    }
    size_t n = x->n;
    struct fr_policy q = composed ? *p : fr_fused_policy(p, x->dtype);
    struct fr_run run = {&q, NULL, 0};
    double c1, c2;
    struct fr_array hat = {work, n, 0}, g = {work + n, n, dy->dtype}, t = {work + 2 * n, n, 0};
    struct fr_array mean_g = {&c1, 1, 0}, mean_gx = {&c2, 1, 0};
    struct state s;
    normalise(&run, x, eps, work + n, &hat, &s);
    q.raised = 0;
    run.trace = trace;
    if (db != NULL && run.failed == 0) {
        run.failed = fr_cast(&q, dy, w != NULL ? w->dtype : dy->dtype, db);
    }
    if (dw != NULL) {
        fr_run_op(&run, "dw = dy * x_hat", FR_OP_MUL, dy, &hat, dw);
        fr_run_cast(&run, "dw", dw, w != NULL ? w->dtype : dy->dtype, dw);
    }
    memcpy(g.v, dy->v, n * sizeof *g.v);
    if (w != NULL) {
        fr_run_op(&run, "g = dy * w", FR_OP_MUL, dy, w, &g);
    }
    fr_run_op(&run, "g * x_hat", FR_OP_MUL, &g, &hat, &t);
    fr_run_reduce(&run, "mean(g * x_hat)", FR_REDUCE_MEAN, &t, &mean_gx);
    fr_run_reduce(&run, "mean(g)", FR_REDUCE_MEAN, &g, &mean_g);
    fr_run_op(&run, "x_hat * mean(g * x_hat)", FR_OP_MUL, &hat, &mean_gx, &t);
    fr_run_op(&run, "g - mean(g)", FR_OP_SUB, &g, &mean_g, &g);
    fr_run_op(&run, "g - mean(g) - x_hat * mean(g * x_hat)", FR_OP_SUB, &g, &t, &t);
    fr_run_op(&run, "dx", FR_OP_MUL, &t, &s.r, &t);
    if (dx != NULL && run.failed == 0) {
        fr_run_cast(&run, "dx.to(x.dtype)", &t, x->dtype, dx);
        run.failed = dx->n == n ? run.failed : -1;
    }
    return run.failed;
}
