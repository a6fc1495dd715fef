/* SPDX-License-Identifier: Apache-2.0 */
/* norms: RMSNorm as people write it in half precision: one form per expression and place where it
 * runs, computed by the emulated arithmetic of faultrank/numerics.h. Stateless. */
#ifndef FR_REPRO_NORMS_H
#define FR_REPRO_NORMS_H

#include "repro/lab.h"

struct fr_norm_form {
    const char *name;       /* of --policy */
    const char *expression; /* as in the source of a model */
    const char *where;      /* who computes so */
    const char *policy;     /* fr_policy_find() */
    uint32_t form;          /* FR_FORM_... */
    bool safe;              /* squares and sums in fp32: cannot overflow */
};

extern const struct fr_norm_form fr_norm_forms[];
extern const unsigned fr_norm_forms_count;
enum {
    FR_NORM_FLOAT = 0,
    FR_NORM_POW_MEAN = 3,
    FR_NORM_HALF_SUM = 8
}; /* indexes: Llama and its kin; the usual one in half */
/* Names of all forms, for a parameter's choices; NULL-terminated. */
extern const char *const fr_norm_names[];

/* All of n halves; work: FR_WORK_ROWS * n doubles. Forward: out. Backward: dx and dw (may be NULL)
 * for dy. steps go to c when it is not NULL. */
void fr_norm_apply(const struct fr_norm_form *f, const double *x, uint32_t n, double eps,
                   double *out, double *work, struct fr_chain *c);
void fr_norm_backward(const struct fr_norm_form *f, const double *x, const double *dy, uint32_t n,
                      double eps, double *dx, double *dw, double *work, struct fr_chain *c);

/* The smallest half for which the mean of squares (or the norm) is Inf: of one element among zeros,
 * or of all n elements alike. Inf: none. x: n doubles of scratch. */
double fr_norm_limit(const struct fr_norm_form *f, uint32_t n, bool all, double *x, double *work);

#endif
