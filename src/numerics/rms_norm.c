/* SPDX-License-Identifier: Apache-2.0 */
/* The forms in which models write the mean of squares, and the norm around each, forwards and
 * backwards as autograd takes it apart. */
#include "numerics/emulate.h"

#include <math.h>
#include <string.h>

struct form {
    const char *name, *expression;
};

static const struct form forms[] = {
#define FORM(constant, value, text, code) [value] = {text, code},
    FR_FORMS(FORM)
};
enum { FORMS = sizeof forms / sizeof forms[0] };

const char *fr_form_name(uint32_t form)
{
    return form < FORMS ? forms[form].name : NULL;
}

const char *fr_form_expression(uint32_t form)
{
    return form < FORMS ? forms[form].expression : NULL;
}

uint32_t fr_form_find(const char *name)
{
    for (uint32_t i = 1; name != NULL && i < FORMS; i++) {
        if (strcmp(name, forms[i].name) == 0) {
            return i;
        }
    }
    return 0;
}

/* The policy of code that x.float() made fp32: what is "the element type" is fp32 there. */
static struct fr_policy float_policy(const struct fr_policy *p, uint32_t form, uint32_t dtype)
{
    struct fr_policy q = *p;
    if (form == FR_FORM_FLOAT_FIRST) {
        q.element = fr_wide(dtype);
        q.raised = 0;
    }
    return q;
}

/* x * x or x.pow(2) as the policy stores it before a sum takes it. */
static void square(struct fr_run *r, uint32_t form, const struct fr_array *x, struct fr_array *out)
{
    struct fr_policy at = *r->p;
    const char *name = "x.pow(2)";
    uint32_t op = FR_OP_POW2;
    if (form == FR_FORM_MUL_MEAN || form == FR_FORM_MUL_SUM_DIV) {
        name = "x * x";
        op = FR_OP_MUL;
    }
    if (at.square != 0) { /* the kernel's own product */
        at.intermediate = at.square;
    } else if (at.intermediate != 0) {
        at.intermediate = at.element;
    }
    struct fr_run here = {&at, r->trace, r->failed};
    fr_run_op(&here, name, op, x, op == FR_OP_MUL ? x : NULL, out);
    r->failed = here.failed;
}

void fr_run_mean_square(struct fr_run *r, uint32_t form, const struct fr_array *x, double *squares,
                        struct fr_array *ret)
{
    struct fr_array s = {squares, x->n, 0}, one = {ret->v, 1, 0};
    double n = (double)x->n;
    ret->n = 1;
    switch (form) {
    case FR_FORM_POW_MEAN:
    case FR_FORM_MUL_MEAN:
    case FR_FORM_FLOAT_FIRST:
        square(r, form, x, &s);
        fr_run_reduce(r, "mean", FR_REDUCE_MEAN, &s, &one);
        break;
    case FR_FORM_MUL_SUM_DIV:
        square(r, form, x, &s);
        fr_run_reduce(r, "sum", FR_REDUCE_SUM, &s, &one);
        fr_run_scalar(r, "sum / N", FR_OP_DIV, &one, n, &one);
        break;
    case FR_FORM_NORM:
        fr_run_reduce(r, "x.norm(2)", FR_REDUCE_NORM2, x, &one);
        fr_run_scalar(r, "norm * N**-0.5", FR_OP_MUL, &one, 1 / sqrt(n), &one);
        break;
    default: r->failed = -1;
    }
    ret->dtype = one.dtype;
}

int fr_mean_square(const struct fr_policy *p, uint32_t form, const struct fr_array *x, double *work,
                   struct fr_array *ret, struct fr_op_trace *trace)
{
    if (!fr_is_value(x->dtype) || x->n == 0) {
        return -1;
    }
    struct fr_policy q = float_policy(p, form, x->dtype);
    struct fr_run r = {&q, trace, 0};
    struct fr_array in = *x;
    if (form == FR_FORM_FLOAT_FIRST) {
        in.v = work + x->n;
        fr_run_cast(&r, "x.float()", x, q.element, &in);
    }
    fr_run_mean_square(&r, form, &in, work, ret);
    return r.failed;
}

/* What forward leaves for backward. Rows lie in work: 0 scratch, 1 x as the form sees it, 2
 * x_hat. */
struct state {
    struct fr_array x, hat;
    double square_mean, shifted, root; /* backing of the three below */
    struct fr_array mean, plus_eps, r; /* norm form: root mean square, that + eps, its reciprocal */
};

static void normalise(struct fr_run *r, uint32_t form, const struct fr_array *x, double eps,
                      double *work, struct state *s)
{
    size_t n = x->n;
    s->x = (struct fr_array){work + n, n, x->dtype};
    s->hat = (struct fr_array){work + 2 * n, n, 0};
    s->mean = (struct fr_array){&s->square_mean, 1, 0};
    s->plus_eps = (struct fr_array){&s->shifted, 1, 0};
    s->r = (struct fr_array){&s->root, 1, 0};
    memcpy(s->x.v, x->v, n * sizeof *x->v);
    if (form == FR_FORM_FLOAT_FIRST) {
        fr_run_cast(r, "x.float()", x, fr_wide(x->dtype), &s->x);
    }
    fr_run_mean_square(r, form, &s->x, work, &s->mean);
    if (form == FR_FORM_NORM) {
        fr_run_scalar(r, "root + eps", FR_OP_ADD, &s->mean, eps, &s->plus_eps);
        fr_run_op(r, "x / (root + eps)", FR_OP_DIV, &s->x, &s->plus_eps, &s->hat);
        if (r->failed == 0) {
            r->failed = fr_op(r->p, FR_OP_RECIPROCAL, &s->plus_eps, NULL, &s->r);
        }
        return;
    }
    fr_run_scalar(r, "mean + eps", FR_OP_ADD, &s->mean, eps, &s->plus_eps);
    fr_run_op(r, "rsqrt", FR_OP_RSQRT, &s->plus_eps, NULL, &s->r);
    fr_run_op(r, "x * r", FR_OP_MUL, &s->x, &s->r, &s->hat);
}

static int arguments_ok(const struct fr_policy *p, uint32_t form, const struct fr_array *x,
                        const struct fr_array *w)
{
    return fr_policy_ok(p) && form > 0 && form < FORMS && fr_is_value(x->dtype) && x->n > 0 &&
           (w == NULL || (fr_is_value(w->dtype) && w->n == x->n));
}

int fr_rms_norm(const struct fr_policy *p, uint32_t form, const struct fr_array *x,
                const struct fr_array *w, double eps, double *work, struct fr_array *y,
                struct fr_array *r, struct fr_op_trace *trace)
{
    if (!arguments_ok(p, form, x, w) || y->n != x->n) {
        return -1;
    }
    struct fr_policy inner = float_policy(p, form, x->dtype);
    struct fr_run run = {&inner, trace, 0};
    struct state s;
    normalise(&run, form, x, eps, work, &s);
    run.p = p;
    if (form == FR_FORM_FLOAT_FIRST && p->intermediate == 0) {
        fr_run_cast(&run, "x_hat.to(x.dtype)", &s.hat, x->dtype, &s.hat);
    }
    uint32_t type = s.hat.dtype;
    if (w != NULL) {
        fr_run_op(&run, "x_hat * w", FR_OP_MUL, &s.hat, w, y);
        type = p->intermediate != 0 ? fr_promote(x->dtype, w->dtype) : y->dtype;
    } else if (run.failed == 0) {
        memcpy(y->v, s.hat.v, x->n * sizeof *y->v);
        y->dtype = s.hat.dtype;
        type = p->intermediate != 0 ? x->dtype : type;
    }
    if (run.failed == 0) {
        fr_run_cast(&run, "y", y, type, y);
    }
    if (run.failed == 0 && r != NULL) {
        *r->v = s.root;
        r->n = 1;
        r->dtype = s.r.dtype;
    }
    return run.failed;
}

static int multiplies(uint32_t form)
{
    return form == FR_FORM_MUL_MEAN || form == FR_FORM_MUL_SUM_DIV;
}

/* The gradient that reaches x through the mean of squares: grad is that of mean + eps. */
static void through_square(struct fr_run *r, uint32_t form, const struct fr_array *x,
                           struct fr_array *grad, struct fr_array *out)
{
    double n = (double)x->n;
    fr_run_scalar(r, "dv / N", FR_OP_DIV, grad, n, grad);
    if (multiplies(form)) { /* the share of one of the two equal factors */
        fr_run_op(r, "x * dv", FR_OP_MUL, x, grad, out);
        return;
    }
    fr_run_scalar(r, "2 * x", FR_OP_MUL, x, 2, out);
    fr_run_op(r, "2 * x * dv", FR_OP_MUL, out, grad, out);
}

/* Rows 3.. of work. dxh is the gradient of x_hat. */
static void backward_mean_form(struct fr_run *r, uint32_t form, struct state *s,
                               const struct fr_array *dxh, double *work, struct fr_array *direct,
                               struct fr_array *indirect)
{
    size_t n = s->x.n;
    double dr_value, cube_value;
    struct fr_array t = {work, n, 0}, dr = {&dr_value, 1, 0}, cube = {&cube_value, 1, 0};
    fr_run_op(r, "dx_hat * x", FR_OP_MUL, dxh, &s->x, &t);
    fr_run_reduce(r, "dr = sum(dx_hat * x)", FR_REDUCE_SUM, &t, &dr);
    fr_run_cast(r, "dr", &dr, s->r.dtype, &dr);
    fr_run_op(r, "dx_hat * r", FR_OP_MUL, dxh, &s->r, direct);
    fr_run_scalar(r, "-0.5 * dr", FR_OP_MUL, &dr, -0.5, &dr);
    fr_run_op(r, "r.pow(3)", FR_OP_POW3, &s->r, NULL, &cube);
    fr_run_op(r, "dv = -0.5 * dr * r**3", FR_OP_MUL, &dr, &cube, &dr);
    through_square(r, form, &s->x, &dr, indirect);
}

/* x / (root + eps): the quotient's two gradients, then the norm's, x * (grad / norm). */
static void backward_norm_form(struct fr_run *r, struct state *s, const struct fr_array *dxh,
                               double *work, struct fr_array *direct, struct fr_array *indirect)
{
    size_t n = s->x.n;
    double droot_value, norm_value;
    struct fr_array t = {work, n, 0}, droot = {&droot_value, 1, 0}, norm = {&norm_value, 1, 0};
    fr_run_op(r, "dx_hat / (root + eps)", FR_OP_DIV, dxh, &s->plus_eps, direct);
    fr_run_op(r, "x_hat / (root + eps)", FR_OP_DIV, &s->hat, &s->plus_eps, &t);
    fr_run_op(r, "-dx_hat", FR_OP_NEG, dxh, NULL, indirect);
    fr_run_op(r, "-dx_hat * x_hat / (root + eps)", FR_OP_MUL, indirect, &t, &t);
    fr_run_reduce(r, "droot = sum", FR_REDUCE_SUM, &t, &droot);
    fr_run_scalar(r, "droot * N**-0.5", FR_OP_MUL, &droot, 1 / sqrt((double)n), &droot);
    fr_run_reduce(r, "x.norm(2)", FR_REDUCE_NORM2, &s->x, &norm);
    fr_run_op(r, "x / norm", FR_OP_DIV, &s->x, &norm, indirect);
    if (r->failed == 0 && norm_value == 0) {
        memset(indirect->v, 0, n * sizeof *indirect->v); /* torch fills with zeros */
    }
    fr_run_op(r, "x / norm * dnorm", FR_OP_MUL, indirect, &droot, indirect);
}

int fr_rms_norm_backward(const struct fr_policy *p, uint32_t form, const struct fr_array *x,
                         const struct fr_array *w, double eps, const struct fr_array *dy,
                         double *work, struct fr_array *dx, struct fr_array *dw,
                         struct fr_op_trace *trace)
{
    if (!arguments_ok(p, form, x, w) || !fr_is_value(dy->dtype) || dy->n != x->n) {
        return -1;
    }
    size_t n = x->n;
    struct fr_policy inner = float_policy(p, form, x->dtype);
    struct fr_run run = {&inner, NULL, 0};
    struct state s;
    normalise(&run, form, x, eps, work, &s);
    inner.raised = 0; /* autograd runs outside autocast, in the types that forward left */
    struct fr_policy outer = *p;
    outer.raised = 0;
    run = (struct fr_run){&outer, trace, run.failed};
    struct fr_array hat = s.hat, dxh = {work + 3 * n, n, dy->dtype}, direct = {work + 4 * n, n, 0};
    struct fr_array indirect = {work + 5 * n, n, 0}, cast_hat = {work + 6 * n, n, 0};
    int eager = p->intermediate == 0;
    if (eager && form == FR_FORM_FLOAT_FIRST && run.failed == 0) {
        run.failed = fr_cast(p, &s.hat, x->dtype, &cast_hat);
        hat = cast_hat;
    }
    if (dw != NULL) {
        fr_run_op(&run, "dw = dy * x_hat", FR_OP_MUL, dy, &hat, dw);
        fr_run_cast(&run, "dw", dw, w != NULL ? w->dtype : dy->dtype, dw);
    }
    memcpy(dxh.v, dy->v, n * sizeof *dy->v);
    if (w != NULL) {
        fr_run_op(&run, "dx_hat = dy * w", FR_OP_MUL, dy, w, &dxh);
    }
    if (eager) {
        fr_run_cast(&run, "dx_hat", &dxh, hat.dtype, &dxh);
    }
    run.p = &inner;
    if (form == FR_FORM_FLOAT_FIRST) {
        fr_run_cast(&run, "dx_hat.float()", &dxh, s.hat.dtype, &dxh);
    }
    if (form == FR_FORM_NORM) {
        backward_norm_form(&run, &s, &dxh, work, &direct, &indirect);
    } else {
        backward_mean_form(&run, form, &s, &dxh, work, &direct, &indirect);
    }
    if (eager && run.failed == 0) { /* both shares arrive in the type of what they differentiate */
        fr_run_cast(&run, "dx, direct", &direct, s.x.dtype, &direct);
        fr_run_cast(&run, "dx, indirect", &indirect, s.x.dtype, &indirect);
    }
    if (dx != NULL && run.failed == 0 && dx->n == n) {
        if (multiplies(form)) { /* autograd adds the factors' shares as they come */
            fr_run_op(&run, "dx, first factor", FR_OP_ADD, &direct, &indirect, &direct);
        }
        fr_run_op(&run, "dx", FR_OP_ADD, &direct, &indirect, dx);
        run.p = &outer;
        fr_run_cast(&run, "dx.to(x.dtype)", dx, x->dtype, dx);
    }
    return run.failed;
}
