/* SPDX-License-Identifier: Apache-2.0 */
/* RMS norm and layer norm kernels, both directions, against double: every variant this CPU has,
 * every type, rows made to break them. */
#include "numerics/kernel.h"
#include "support/kernel_oracle.h"
#include "support/t.h"

#include <math.h>

static const uint32_t types[] = {FR_F16, FR_BF16, FR_F32};
static struct oracle_row x, w, b, dy, y;
static struct oracle_want want, want_w;
static float dw[ORACLE_MOST], db[ORACLE_MOST];
static double worst_seen[4][3];

enum { RMS, RMS_BACK, LAYER, LAYER_BACK };
static const char *const op_names[] = {"rms norm", "rms norm backward", "layer norm", "layer norm backward"};

static void check(int op, int fill, const char *variant, const char *what, double worst, size_t at)
{
    const int t = y.type == FR_F16 ? 0 : y.type == FR_BF16 ? 1 : 2;
    worst_seen[op][t] = worst > worst_seen[op][t] ? worst : worst_seen[op][t];
    t_checks_++;
    if (!(worst <= 1)) {
        T_FAIL("%s of %s, %s, n %zu, x %s, y %s: %s[%zu] is %g times the bound away from %g", op_names[op],
               oracle_fill_name(fill), variant, x.n, fr_dtype_info(x.type)->name, fr_dtype_info(y.type)->name, what, at,
               worst, want.v[at]);
    }
}

/* dw began at 2, so that adding shows; what adding rounds is allowed too. */
static double worst_dw(size_t *at)
{
    double worst = 0;
    for (size_t i = 0; i < x.n; i++) {
        const double off = oracle_off(FR_F32, (double)dw[i], 2 + want_w.v[i],
                                      want_w.bound[i] + 0x1p-24 * (fabs(want_w.v[i]) + fabs(2 + want_w.v[i])));
        if (off > worst) {
            worst = off;
            *at = i;
        }
    }
    return worst;
}

static void forward(int op, int fill, const char *variant, double eps)
{
    size_t at = 0;
    const int status = op == RMS ? fr_kernel_rms_norm(1, x.n, oracle_in(&x), oracle_in(&w), (float)eps, oracle_out(&y))
                                 : fr_kernel_layer_norm(1, x.n, oracle_in(&x), oracle_in(&w), oracle_in(&b), (float)eps,
                                                        oracle_out(&y));
    T_EQ_INT(status, 0);
    if (op == RMS) {
        oracle_rms(&x, &w, (double)(float)eps, &want);
    } else {
        oracle_layer(&x, &w, &b, (double)(float)eps, &want);
    }
    const double worst = oracle_worst(&y, &want, &at);
    check(op, fill, variant, "y", worst, at);
}

static void backward(int op, int fill, const char *variant, double eps)
{
    size_t at = 0;
    for (size_t i = 0; i < x.n; i++) {
        dw[i] = 2;
        db[i] = 3;
    }
    const int status = op == RMS_BACK ? fr_kernel_rms_norm_backward(1, x.n, oracle_in(&x), oracle_in(&w), oracle_in(&dy),
                                                                    (float)eps, oracle_out(&y), dw)
                                      : fr_kernel_layer_norm_backward(1, x.n, oracle_in(&x), oracle_in(&w), oracle_in(&dy),
                                                                      (float)eps, oracle_out(&y), dw, db);
    T_EQ_INT(status, 0);
    if (op == RMS_BACK) {
        oracle_rms_backward(&x, &w, &dy, (double)(float)eps, &want, &want_w);
    } else {
        oracle_layer_backward(&x, &w, &dy, (double)(float)eps, &want, &want_w);
    }
    const double worst = oracle_worst(&y, &want, &at);
    check(op, fill, variant, "dx", worst, at);
    const double worst_w = worst_dw(&at);
    check(op, fill, variant, "dw", worst_w, at);
    for (size_t i = 0; i < x.n; i++) {
        T_OK(db[i] == (op == RMS_BACK ? 3 : (float)(3 + dy.v[i])));
    }
}

static void all_of(int fill, const char *variant, size_t n, struct oracle_rng *g)
{
    static const double eps[] = {0, 1e-12, 1e-6, 1e-5};
    const uint32_t tx = types[oracle_below(g, 3)];
    oracle_fill(&x, fill, tx, n, oracle_random(g) & 1, g);
    oracle_fill(&w, FILL_NORMAL, types[oracle_below(g, 3)], n, oracle_random(g) & 1, g);
    oracle_fill(&b, FILL_NORMAL, types[oracle_below(g, 3)], n, oracle_random(g) & 1, g);
    oracle_fill(&dy, FILL_NORMAL, types[oracle_below(g, 3)], n, oracle_random(g) & 1, g);
    for (int op = RMS; op <= LAYER_BACK; op++) {
        oracle_blank(&y, types[oracle_below(g, 3)], n, oracle_random(g) & 1);
        const double e = eps[oracle_below(g, 4)];
        if (op == RMS || op == LAYER) {
            forward(op, fill, variant, e);
        } else {
            backward(op, fill, variant, e);
        }
    }
}

T_TEST(norms_are_within_their_bounds)
{
    for (unsigned k = 0; k < fr_kernel_variants_count; k++) {
        const struct fr_kernel_variant *v = &fr_kernel_variants[k];
        if (!v->works()) {
            printf("# %s: not on this CPU\n", v->name);
            continue;
        }
        fr_kernel_force(v->kernels);
        struct oracle_rng g = {20261130};
        for (int fill = 0; fill < FILLS; fill++) {
            for (size_t n = 1; n <= 70; n++) {
                all_of(fill, v->name, n, &g);
            }
            for (int i = 0; i < 12; i++) {
                all_of(fill, v->name, (size_t[]){255, 256, 257, 511, 4096, 4097, 4127}[i % 7], &g);
            }
        }
    }
    fr_kernel_force(NULL);
    for (int op = 0; op < 4; op++) {
        printf("# %s: worst %.3f fp16, %.3f bf16, %.3f fp32 of what is allowed\n", op_names[op], worst_seen[op][0],
               worst_seen[op][1], worst_seen[op][2]);
    }
}

int main(void)
{
    return t_run();
}
