/* SPDX-License-Identifier: Apache-2.0 */
/* Norms, softmax and scores step by step: where a row dies, what a gradient does then, and what the
 * trace says. Numbers are those that PyTorch gave (N 4096 unless said otherwise). */
#include "faultrank/numerics.h"
#include "support/t.h"

#include <math.h>
#include <string.h>

enum { N = 4096 };
static double x_v[N], w_v[N], dy_v[N], y_v[N], dw_v[N], work[N * FR_WORK_ROWS];
static struct fr_op_step steps[40];

static struct fr_array row(double *v, double value, uint32_t dtype)
{
    for (size_t i = 0; i < N; i++) {
        v[i] = value;
    }
    return (struct fr_array){v, N, dtype};
}

static double mean_square(const char *policy, uint32_t form, double value, struct fr_op_trace *trace)
{
    struct fr_array x = row(x_v, value, FR_F16);
    double v;
    struct fr_array out = {&v, 1, 0};
    T_EQ_INT(fr_mean_square(fr_policy_find(policy), form, &x, work, &out, trace), 0);
    return v;
}

/* x as in x_v, weights 1; *r the reciprocal root. */
static double forward(const char *policy, uint32_t form, double eps, double *r, struct fr_op_trace *trace)
{
    struct fr_array x = {x_v, N, FR_F16}, w = row(w_v, 1, FR_F16), y = {y_v, N, 0}, root = {r, 1, 0};
    T_EQ_INT(fr_rms_norm(fr_policy_find(policy), form, &x, &w, eps, work, &y, &root, trace), 0);
    return y_v[0];
}

static int near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

T_TEST(a_healthy_row)
{
    double r;
    T_OK(mean_square("torch-cuda", FR_FORM_POW_MEAN, 100, NULL) == 10000);
    T_OK(isinf(mean_square("torch-cuda", FR_FORM_MUL_SUM_DIV, 100, NULL)));
    T_OK(mean_square("torch-cuda", FR_FORM_FLOAT_FIRST, 100, NULL) == 10000);
    T_OK(mean_square("torch-cuda", FR_FORM_NORM, 100, NULL) == 100);
    row(x_v, 100, FR_F16);
    T_OK(forward("torch-cuda", FR_FORM_POW_MEAN, 1e-6, &r, NULL) == 1 || near(y_v[0], 1.0009766));
    T_OK(near(r, 0.0100021));
    row(x_v, 255.875, FR_F16);
    forward("torch-cuda", FR_FORM_POW_MEAN, 1e-6, &r, NULL);
    T_OK(near(r, 0.00391006));
    T_OK(mean_square("torch-cuda", FR_FORM_POW_MEAN, 255.875, NULL) == 65472);
    struct fr_array x = row(x_v, 100, FR_F32);
    double sum; /* 40960000 in fp32 */
    struct fr_array out = {&sum, 1, 0};
    T_EQ_INT(fr_dot(fr_policy_find("float"), &x, &x, &out), 0);
    T_OK(sum == 40960000);
}

T_TEST(one_large_channel_kills_the_row)
{
    static const char *const eager[] = {"torch-cuda", "torch-cpu", "naive-half", "naive-half-product"};
    double r;
    row(x_v, 1, FR_F16);
    x_v[17] = 256;
    for (int i = 0; i < 4; i++) {
        struct fr_op_trace trace = {.steps = steps, .cap = 40};
        forward(eager[i], FR_FORM_POW_MEAN, 1e-6, &r, &trace);
        T_OK(r == 0);
        for (size_t k = 0; k < N; k++) { /* no NaN, no Inf: zeros */
            T_OK(y_v[k] == 0);
        }
        T_EQ_STR(fr_op_trace_first_bad(&trace)->op, "x.pow(2)");
        T_EQ_INT(fr_op_trace_first_bad(&trace)->first_bad, 17);
    }
    T_OK(forward("fused-float", FR_FORM_POW_MEAN, 1e-6, &r, NULL) > 0.2);
    T_OK(forward("torch-cuda", FR_FORM_FLOAT_FIRST, 1e-6, &r, NULL) > 0.2);
    T_OK(forward("torch-autocast", FR_FORM_POW_MEAN, 1e-6, &r, NULL) > 0.2);
    T_OK(forward("torch-autocast", FR_FORM_MUL_MEAN, 1e-6, &r, NULL) == 0);
    row(x_v, 256, FR_F16);
    T_OK(forward("fused-float", FR_FORM_POW_MEAN, 1e-6, &r, NULL) == 1); /* F.rms_norm */
    T_OK(forward("torch-cuda", FR_FORM_NORM, 0, &r, NULL) == 1);
}

/* N * rms^2 >= 65520 is what the sum forms die of; the table of rms by N. */
T_TEST(sum_forms_die_of_their_sum)
{
    static const struct { size_t n; double rms; } table[] = {
        {2048, 5.66}, {4096, 4.00}, {5120, 3.58}, {8192, 2.83}, {12288, 2.31}, {16384, 2.00},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        T_OK(fabs(sqrt(65504.0 / (double)table[t].n) - table[t].rms) < 0.006);
    }
    T_OK(isinf(mean_square("torch-cuda", FR_FORM_MUL_SUM_DIV, 4.0, NULL)));
    T_OK(isfinite(mean_square("torch-cuda", FR_FORM_MUL_SUM_DIV, 3.99609375, NULL)));
    T_OK(isinf(mean_square("torch-cpu-1.13", FR_FORM_POW_MEAN, 4.0, NULL)));
    T_OK(mean_square("torch-cpu", FR_FORM_POW_MEAN, 4.0, NULL) == 16);
    T_OK(mean_square("naive-half", FR_FORM_POW_MEAN, 1.0, NULL) == 0.5); /* stagnates, silently */
    T_OK(mean_square("naive-half-excess", FR_FORM_POW_MEAN, 1.0, NULL) == 0.5);
    struct fr_op_trace trace = {.steps = steps, .cap = 40};
    mean_square("torch-cuda", FR_FORM_MUL_SUM_DIV, 100, &trace);
    T_EQ_STR(fr_op_trace_first_bad(&trace)->op, "sum");
    T_EQ_INT(fr_op_trace_first_bad(&trace)->seen, FR_SEEN_INF);
}

T_TEST(zero_rows_and_eps)
{
    double r;
    row(x_v, 0, FR_F16);
    struct fr_op_trace trace = {.steps = steps, .cap = 40};
    T_OK(isnan(forward("torch-cuda", FR_FORM_POW_MEAN, 1e-8, &r, &trace)) && isinf(r));
    T_OK(isnan(forward("torch-cuda", FR_FORM_POW_MEAN, 1e-12, &r, NULL)));
    T_OK(forward("torch-cuda", FR_FORM_POW_MEAN, 1e-6, &r, NULL) == 0);
    T_OK(near(r, 993.5) || r == 993);
    T_OK(forward("torch-cuda", FR_FORM_FLOAT_FIRST, 1e-8, &r, NULL) == 0);
    T_OK(forward("fused-float", FR_FORM_POW_MEAN, 1e-8, &r, NULL) == 0);
}

T_TEST(an_infinite_channel)
{
    double r;
    row(x_v, 1, FR_F16);
    x_v[5] = INFINITY;
    forward("torch-cuda", FR_FORM_POW_MEAN, 1e-6, &r, NULL);
    T_OK(isnan(y_v[5]) && y_v[0] == 0 && y_v[N - 1] == 0); /* NaN there, zeros elsewhere */
    struct fr_array x = {x_v, N, FR_F16}, y = {y_v, N, 0};
    T_EQ_INT(fr_layer_norm(fr_policy_find("torch-cuda"), 0, &x, NULL, NULL, 1e-5, work, &y, NULL), 0);
    for (size_t i = 0; i < N; i++) {
        T_OK(isnan(y_v[i])); /* inf - inf in all of them */
    }
}

static void backward(const char *policy, uint32_t form, double dy_value, struct fr_op_trace *trace)
{
    struct fr_array x = {x_v, N, FR_F16}, w = row(w_v, 1, FR_F16), dy = row(dy_v, dy_value, FR_F16);
    struct fr_array dx = {y_v, N, 0}, dw = {dw_v, N, 0};
    T_EQ_INT(fr_rms_norm_backward(fr_policy_find(policy), form, &x, &w, 1e-6, &dy, work, &dx, &dw,
                                  trace), 0);
    T_EQ_INT(dx.dtype, FR_F16);
}

/* The usual claim is "NaN in backward". It takes an overflow of dr = sum(dy * w * x), too. */
T_TEST(gradients_of_a_dead_row)
{
    row(x_v, 1, FR_F16);
    x_v[9] = 300;
    for (int form = FR_FORM_POW_MEAN; form <= FR_FORM_MUL_SUM_DIV; form++) {
        backward("torch-cuda", (uint32_t)form, 1, NULL);
        for (size_t i = 0; i < N; i++) {
            T_OK(y_v[i] == 0 && dw_v[i] == 0);
        }
        struct fr_op_trace trace = {.steps = steps, .cap = 40};
        backward("torch-cuda", (uint32_t)form, 100, &trace);
        for (size_t i = 0; i < N; i++) {
            T_OK(isnan(y_v[i]) && dw_v[i] == 0);
        }
        int named = 0; /* the sum overflowed, then inf * -0 */
        for (uint64_t s = 0; s < trace.n; s++) {
            named += strcmp(steps[s].op, "dr = sum(dx_hat * x)") == 0 && steps[s].seen == FR_SEEN_INF;
        }
        T_EQ_INT(named, 1);
    }
    backward("torch-cuda", FR_FORM_FLOAT_FIRST, 100, NULL);
    T_OK(isfinite(y_v[0]) && y_v[0] != 0);
    backward("fused-float", FR_FORM_POW_MEAN, 100, NULL);
    T_OK(isfinite(y_v[0]) && y_v[0] != 0);
}

T_TEST(layer_norm_gradients_are_those_of_the_oracle)
{
    struct fr_array x = {x_v, N, FR_F32}, w = row(w_v, 1, FR_F32), dy = {dy_v, N, FR_F32};
    struct fr_array dx = {y_v, N, 0}, y = {dw_v, N, 0};
    double up[8], h = 1e-4;
    for (size_t i = 0; i < N; i++) {
        x_v[i] = (double)(i * 7 % 23) - 11 + (double)(i % 3);
        dy_v[i] = (double)(i * 5 % 17) - 8;
        w_v[i] = 1 + (double)(i % 4) / 4;
    }
    const struct fr_policy *p = fr_policy_find("double");
    x.dtype = w.dtype = dy.dtype = FR_F64;
    T_EQ_INT(fr_layer_norm_backward(p, 1, &x, &w, 1e-5, &dy, work, &dx, NULL, NULL, NULL), 0);
    for (size_t k = 0; k < 8; k++) { /* central differences of sum(dy * y) */
        double before = x_v[k], side[2];
        for (int s = 0; s < 2; s++) {
            x_v[k] = before + (s == 0 ? h : -h);
            T_EQ_INT(fr_layer_norm(p, 1, &x, &w, NULL, 1e-5, work, &y, NULL), 0);
            side[s] = 0;
            for (size_t i = 0; i < N; i++) {
                side[s] += dy_v[i] * dw_v[i];
            }
        }
        x_v[k] = before;
        up[k] = (side[0] - side[1]) / (2 * h);
        T_OK(fabs(up[k] - y_v[k]) < 1e-5 * (1 + fabs(up[k])));
    }
}

static double score(const char *policy, uint32_t placing, double value, size_t d)
{
    struct fr_array q = row(x_v, fr_round(FR_F16, value, 0), FR_F16), k = q;
    double v, scale = 1 / sqrt((double)d);
    struct fr_array out = {&v, 1, 0};
    q.n = k.n = d;
    T_EQ_INT(fr_attention_scores(fr_policy_find(policy), placing, &q, &k, scale, NULL, work, &out,
                                 NULL), 0);
    return v;
}

T_TEST(attention_scores)
{
    T_OK(isinf(score("torch-cuda", FR_SCALE_AFTER, 40, 128)));
    T_OK(score("torch-cuda", FR_SCALE_BEFORE, 40, 128) == 18096);
    T_OK(near(score("torch-cuda", FR_SCALE_FUSED, 40, 128), 204800 / sqrt(128)));
    T_OK(isfinite(score("torch-cuda", FR_SCALE_AFTER, 22.6, 128)));
    T_OK(isinf(score("torch-cuda", FR_SCALE_AFTER, 22.625, 128)));
    T_OK(isfinite(score("torch-cuda", FR_SCALE_BEFORE, 76, 128)));
    T_OK(isinf(score("torch-cuda", FR_SCALE_BEFORE, 77, 128)));
}

static double softmax(const char *policy, uint32_t kind, double *v, size_t n, double *y)
{
    struct fr_array x = {v, n, FR_F16}, out = {y, n, 0};
    T_EQ_INT(fr_softmax(fr_policy_find(policy), kind, &x, work, &out, NULL), 0);
    return y[0];
}

T_TEST(softmax_and_masks)
{
    double y[4], inf[] = {INFINITY, 1, 2, 3}, big[] = {12, 1, 2, 3}, none[] = {-INFINITY, -INFINITY};
    T_OK(isnan(softmax("torch-cuda", FR_SOFTMAX_LIBRARY, inf, 4, y)) && isnan(y[3]));
    T_OK(isnan(softmax("torch-cuda", FR_SOFTMAX_NAIVE, big, 4, y)));
    T_OK(softmax("torch-cuda", FR_SOFTMAX_SAFE, big, 4, y) > 0.99);
    T_OK(softmax("fused-float", FR_SOFTMAX_NAIVE, big, 4, y) > 0.99);
    T_OK(isnan(softmax("torch-cuda", FR_SOFTMAX_LIBRARY, none, 2, y)));
    double q_v[] = {1}, keys[] = {3, -2, -15.5, 0}, mask_v[] = {-65504, -65504, -65504, -65504};
    struct fr_array q = {q_v, 1, FR_F16}, k = {keys, 4, FR_F16}, mask = {mask_v, 4, FR_F16};
    struct fr_array out = {y, 4, 0};
    const struct fr_policy *p = fr_policy_find("torch-cuda");
    T_EQ_INT(fr_attention_scores(p, FR_SCALE_AFTER, &q, &k, 1, &mask, work, &out, NULL), 0);
    T_OK(softmax("torch-cuda", FR_SOFTMAX_LIBRARY, y, 4, work + 64) == 0.25); /* uniform: wrong, not NaN */
    keys[2] = -16; /* finfo.min - 16 rounds to -inf */
    T_EQ_INT(fr_attention_scores(p, FR_SCALE_AFTER, &q, &k, 1, &mask, work, &out, NULL), 0);
    T_OK(isinf(y[2]) && y[2] < 0 && isfinite(y[0]));
}

T_TEST(matrix_products_overflow_in_their_result)
{
    double x[] = {256, 256}, w[] = {200, 55.75, 200, 56}, b[] = {0, -100}, v[2];
    struct fr_array a = {x, 2, FR_F16}, m = {w, 4, FR_F16}, bias = {b, 2, FR_F16}, out = {v, 2, 0};
    T_EQ_INT(fr_linear(fr_policy_find("torch-cuda"), &a, &m, NULL, &out, NULL), 0);
    T_OK(v[0] == 65472 && isinf(v[1]));
    T_EQ_INT(fr_linear(fr_policy_find("torch-cuda"), &a, &m, &bias, &out, NULL), 0);
    T_OK(v[1] == 65440); /* the bias is added before the one rounding: 65436 to the nearest 32 */
    T_EQ_INT(fr_linear(fr_policy_find("torch-cuda"), &a, &m, &bias, &(struct fr_array){v, 3, 0}, NULL), -1);
}

T_TEST(a_trace_names_the_first_bad_operation)
{
    double v[] = {1, 0, -0x1p-20, NAN, INFINITY, 6};
    struct fr_op_step s = fr_observe("x", v, 6, FR_F16);
    T_EQ_INT(s.seen, FR_SEEN_NAN);
    T_OK(s.nan == 1 && s.inf == 1 && s.zero == 1 && s.subnormal == 1 && s.n == 6);
    T_OK(s.absmax == 6 && s.min_nonzero == 0x1p-20 && s.first_bad == 3);
    T_EQ_INT(fr_observe("x", v + 1, 1, FR_F16).seen, FR_SEEN_FINE); /* one zero is no row */
    double zeros[2] = {0, -0.0};
    T_EQ_INT(fr_observe("x", zeros, 2, FR_F16).seen, FR_SEEN_ZERO_ROW);
    struct fr_op_trace trace = {.steps = steps, .cap = 1};
    struct fr_array fine = {v, 1, FR_F16}, bad = {v + 4, 2, FR_F16};
    fr_op_trace_add(&trace, "a", &fine);
    T_OK(fr_op_trace_first_bad(&trace) == NULL);
    fr_op_trace_add(&trace, "b", &bad); /* no room, but not forgotten */
    fr_op_trace_add(&trace, "c", &bad);
    T_EQ_STR(fr_op_trace_first_bad(&trace)->op, "b");
    T_EQ_INT(trace.n, 3);
}

T_TEST(forms_have_names)
{
    for (uint32_t form = 1; form <= FR_FORM_FLOAT_FIRST; form++) {
        T_EQ_INT(fr_form_find(fr_form_name(form)), form);
        T_OK(strstr(fr_form_expression(form), "x") != NULL);
    }
    T_OK(fr_form_name(99) == NULL && fr_form_find("rms") == 0 && fr_form_find(NULL) == 0);
    double v;
    struct fr_array x = {x_v, 0, FR_F16}, out = {&v, 1, 0};
    T_EQ_INT(fr_mean_square(fr_policy_find("float"), 1, &x, work, &out, NULL), -1);
    x.n = 4;
    T_EQ_INT(fr_mean_square(fr_policy_find("float"), 77, &x, work, &out, NULL), -1);
}

int main(void)
{
    return t_run();
}
