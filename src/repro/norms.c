/* SPDX-License-Identifier: Apache-2.0 */
/* norms: see norms.h. Which operation stores what in which type is the policies' knowledge; here
 * are only the pairs of a policy and an expression that are found in the wild. */
#include "repro/norms.h"

#include <math.h>

#define STEPS_MAX 24

const struct fr_norm_form fr_norm_forms[] = {
    {"float", "x.float().pow(2).mean(-1)", "HF Llama, Qwen, Mistral, T5", "torch-cuda",
     FR_FORM_FLOAT_FIRST, true},
    {"fused", "F.rms_norm", "PyTorch, apex, TE, Liger", "fused-float", FR_FORM_POW_MEAN, true},
    {"autocast-pow", "x.pow(2).mean(-1)", "torch.autocast: pow is raised", "torch-autocast",
     FR_FORM_POW_MEAN, true},
    {"pow-mean", "x.pow(2).mean(-1)", "CUDA, recent CPU", "torch-cuda", FR_FORM_POW_MEAN, false},
    {"autocast-mul", "(x*x).mean(-1)", "torch.autocast: * is not raised", "torch-autocast",
     FR_FORM_MUL_MEAN, false},
    {"half-product", "float += __hmul(x, x)", "hand-written kernel", "naive-half-product",
     FR_FORM_MUL_MEAN, false},
    {"old-cpu", "x.pow(2).mean(-1)", "CPU of PyTorch 1.13", "torch-cpu-1.13", FR_FORM_POW_MEAN,
     false},
    {"sum-div", "(x*x).sum(-1) / N", "CUDA, CPU", "torch-cuda", FR_FORM_MUL_SUM_DIV, false},
    {"half-sum", "half += x*x", "hand-written kernel", "naive-half", FR_FORM_MUL_MEAN, false},
    {"vector-norm", "x.norm(2, -1) * N**-0.5", "CUDA, CPU", "torch-cuda", FR_FORM_NORM, false},
};
const unsigned fr_norm_forms_count = sizeof fr_norm_forms / sizeof *fr_norm_forms;
const char *const fr_norm_names[] = {
    "float",   "fused",    "autocast-pow", "pow-mean", "autocast-mul", "half-product", "old-cpu",
    "sum-div", "half-sum", "vector-norm",  NULL};

/* Arrays are written through fr_array only where a function says so. */
static struct fr_array of(const double *v, size_t n, uint32_t dtype)
{
    return (struct fr_array){(double *)(uintptr_t)v, n, dtype};
}

void fr_norm_apply(const struct fr_norm_form *f, const double *x, uint32_t n, double eps,
                   double *out, double *work, struct fr_chain *c)
{
    struct fr_op_step steps[STEPS_MAX];
    struct fr_op_trace t = {.steps = steps, .cap = c != NULL ? STEPS_MAX : 0};
    const struct fr_array in = of(x, n, FR_F16);
    struct fr_array y = of(out, n, FR_F16);
    if (c != NULL) {
        fr_chain_input(c, "x", FR_F16, x, 1, n);
    }
    fr_rms_norm(fr_policy_find(f->policy), f->form, &in, NULL, eps, work, &y, NULL,
                c != NULL ? &t : NULL);
    if (c != NULL) {
        fr_lab_chain(c, &t);
    }
    fr_lab_cast(FR_F16, out, n); /* under autocast the output is fp32; the next matmul casts it */
}

void fr_norm_backward(const struct fr_norm_form *f, const double *x, const double *dy, uint32_t n,
                      double eps, double *dx, double *dw, double *work, struct fr_chain *c)
{
    struct fr_op_step steps[STEPS_MAX];
    struct fr_op_trace t = {.steps = steps, .cap = c != NULL ? STEPS_MAX : 0};
    const struct fr_array in = of(x, n, FR_F16), up = of(dy, n, FR_F16);
    struct fr_array down = of(dx, n, FR_F16), weights = of(dw, n, FR_F16);
    if (c != NULL) {
        fr_chain_input(c, "x", FR_F16, x, 1, n);
        fr_chain_input(c, "dy", FR_F16, dy, 1, n);
    }
    fr_rms_norm_backward(fr_policy_find(f->policy), f->form, &in, NULL, eps, &up, work, &down,
                         dw != NULL ? &weights : NULL, c != NULL ? &t : NULL);
    if (c != NULL) {
        fr_lab_chain(c, &t);
    }
    fr_lab_cast(FR_F16, dx, n);
}

static bool overflows(const struct fr_norm_form *f, double value, uint32_t n, bool all, double *x,
                      double *work)
{
    double mean = 0;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = all || i == 0 ? value : 0;
    }
    const struct fr_array in = of(x, n, FR_F16);
    struct fr_array ret = of(&mean, 1, FR_F16);
    fr_mean_square(fr_policy_find(f->policy), f->form, &in, work, &ret, NULL);
    return !isfinite(mean);
}

double fr_norm_limit(const struct fr_norm_form *f, uint32_t n, bool all, double *x, double *work)
{
    const uint32_t row =
        all || n < 64 ? n : 64; /* zeros add nothing: a short row has the same limit */
    uint32_t good = 0x3400,
             bad = 0x7c00; /* codes of 0.25 and Inf: order of codes is order of values */
    if (!overflows(f, 65504, row, all, x, work)) {
        return INFINITY;
    }
    while (bad - good > 1) {
        const uint32_t code = (good + bad) / 2;
        if (overflows(f, fr_decode(FR_F16, code), row, all, x, work)) {
            bad = code;
        } else {
            good = code;
        }
    }
    return fr_decode(FR_F16, bad);
}
