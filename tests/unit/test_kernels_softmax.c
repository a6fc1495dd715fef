/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and attention scores against double, and what the kernels make of Inf, NaN, zero and fully
 * masked rows; next to each safe result, what a kernel whose every variable is half gives. */
#include "numerics/kernel.h"
#include "support/kernel_oracle.h"
#include "support/t.h"

#include <math.h>

static const uint32_t types[] = {FR_F16, FR_BF16, FR_F32};
static const struct fr_in none = {NULL, 0, 0};
static struct oracle_row x, k, mask, y;
static struct oracle_want want;
static double worst_seen[2];

static void check(int op, int fill, const char *variant)
{
    size_t at = 0;
    const double worst = oracle_worst(&y, &want, &at);
    worst_seen[op] = worst > worst_seen[op] ? worst : worst_seen[op];
    t_checks_++;
    if (!(worst <= 1)) {
        T_FAIL("%s of %s, %s, %zu values: [%zu] is %g times the bound away from %g", op ? "scores" : "softmax",
               oracle_fill_name(fill), variant, y.n, at, worst, want.v[at]);
    }
}

/* kind 0: no mask; 1: bytes; 2: 0 and -Inf; 3: 0 and the lowest half; 4: any floats. */
static void make_mask(int kind, size_t n, struct oracle_rng *g)
{
    oracle_fill(&mask, FILL_NORMAL, kind == 1 ? FR_F32 : types[oracle_below(g, 3)], n, oracle_random(g) & 1, g);
    if (kind == 1) {
        oracle_blank(&mask, FR_BOOL, n, 0);
    }
    for (size_t i = 0; i < n && kind < 4; i++) {
        const bool keep = oracle_random(g) & 1;
        mask.v[i] = kind == 1 ? keep : keep ? 0 : kind == 2 ? -INFINITY : fr_round(mask.type, -65504, FR_OVERFLOW_IEEE);
    }
    oracle_encode(&mask);
}

static void softmax(int fill, const char *variant, size_t n, struct oracle_rng *g)
{
    const int kind = (int)oracle_below(g, 5);
    oracle_fill(&x, fill, types[oracle_below(g, 3)], n, oracle_random(g) & 1, g);
    make_mask(kind, n, g);
    oracle_blank(&y, types[oracle_below(g, 3)], n, oracle_random(g) & 1);
    const struct oracle_row *m = kind == 0 ? NULL : &mask;
    oracle_softmax(&x, m, &want);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += want.v[i];
    }
    const int status = fr_kernel_softmax(1, n, oracle_in(&x), oracle_in(m), oracle_out(&y));
    T_EQ_INT(status, sum == 0 ? FR_NUM_MASKED : 0);
    check(0, fill, variant);
}

static void scores(int fill, const char *variant, size_t d, struct oracle_rng *g)
{
    const uint32_t type = types[oracle_below(g, 3)];
    const double scale = (double)(float)(1 / sqrt((double)d));
    oracle_fill(&x, fill, type, d, oracle_random(g) & 1, g);
    oracle_fill(&k, oracle_random(g) & 1 ? fill : FILL_NORMAL, type, d, oracle_random(g) & 1, g);
    oracle_blank(&y, FR_F32, 1, oracle_random(g) & 1);
    double sum = 0, size = 0;
    for (size_t i = 0; i < d; i++) {
        sum += x.v[i] * k.v[i];
        size += fabs(x.v[i] * k.v[i]);
    }
    want.v[0] = fabs(sum * scale) > (double)FLT_MAX * (1 + 0x1p-25) ? copysign(INFINITY, sum) : sum * scale;
    want.bound[0] = 14 * 0x1p-24 * scale * size + 0x1p-148 + (double)d * 0x1p-150 * scale;
    T_EQ_INT(fr_kernel_attention_scores(1, 1, d, oracle_in(&x), oracle_in(&k), (float)scale, none, 0, NULL, oracle_out(&y)),
             0);
    if (isinf(want.v[0]) || fabs(want.v[0]) + want.bound[0] < (double)FLT_MAX) {
        check(1, fill, variant);
    }
}

T_TEST(softmax_and_scores_are_within_their_bounds)
{
    for (unsigned i = 0; i < fr_kernel_variants_count; i++) {
        const struct fr_kernel_variant *v = &fr_kernel_variants[i];
        struct oracle_rng g = {20261201};
        if (!v->works()) {
            printf("# %s: not on this CPU\n", v->name);
            continue;
        }
        fr_kernel_force(v->kernels);
        for (int fill = 0; fill < FILLS; fill++) {
            for (size_t n = 1; n <= 80; n++) {
                softmax(fill, v->name, n < 75 ? n : n * 52 - 7, &g);
                scores(fill, v->name, n < 75 ? n : n * 52 - 7, &g);
            }
        }
    }
    fr_kernel_force(NULL);
    printf("# softmax: worst %.3f, scores: worst %.3f of what is allowed\n", worst_seen[0], worst_seen[1]);
}

/* ---- special values -------------------------------------------------------------------------- */

enum { N = 4096 };
static float in[N], out[N], more[N];

static struct fr_in floats(const float *p, size_t n)
{
    return (struct fr_in){p, FR_F32, n};
}

static struct fr_out result(size_t n)
{
    return (struct fr_out){out, FR_F32, n};
}

static int count(size_t n, int (*is)(double))
{
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        found += is((double)out[i]);
    }
    return found;
}

static int is_zero(double v) { return v == 0; }
static int is_nan(double v) { return isnan(v); }

static void fill(float *p, size_t n, float value)
{
    for (size_t i = 0; i < n; i++) {
        p[i] = value;
    }
}

T_TEST(inf_and_nan_propagate_as_stated)
{
    fill(in, 100, 1);
    in[50] = INFINITY;
    T_EQ_INT(fr_kernel_rms_norm(1, 100, floats(in, 100), none, 1e-6f, result(100)), 0);
    T_OK(isnan(out[50]) && count(100, is_zero) == 99);
    T_EQ_INT(fr_kernel_layer_norm(1, 100, floats(in, 100), none, none, 1e-6f, result(100)), 0);
    T_EQ_INT(count(100, is_nan), 100);
    T_EQ_INT(fr_kernel_softmax(1, 100, floats(in, 100), none, result(100)), 0);
    T_EQ_INT(count(100, is_nan), 100);
    fill(more, 100, 1);
    T_EQ_INT(fr_kernel_rms_norm_backward(1, 100, floats(in, 100), none, floats(more, 100), 1e-6f, result(100), NULL), 0);
    T_EQ_INT(count(100, is_nan), 100);
    in[50] = NAN;
    fr_kernel_rms_norm(1, 100, floats(in, 100), none, 1e-6f, result(100));
    T_EQ_INT(count(100, is_nan), 100);
    fr_kernel_layer_norm(1, 100, floats(in, 100), none, none, 1e-6f, result(100));
    T_EQ_INT(count(100, is_nan), 100);
    fr_kernel_layer_norm_backward(1, 100, floats(more, 100), none, floats(in, 100), 1e-6f, result(100), NULL, NULL);
    T_EQ_INT(count(100, is_nan), 100);
    fr_kernel_softmax(1, 100, floats(in, 100), none, result(100));
    T_EQ_INT(count(100, is_nan), 100);
    in[50] = -INFINITY; /* one score out of the running */
    T_EQ_INT(fr_kernel_softmax(1, 100, floats(in, 100), none, result(100)), 0);
    T_OK(out[50] == 0 && count(100, is_zero) == 1 && fabsf(out[0] - 1.0f / 99) < 1e-8f);
}

T_TEST(masked_rows_are_zeros_and_said_so)
{
    uint8_t keep[2 * 70] = {0}, few[70] = {0};
    fill(in, 70, 3);
    in[7] = NAN;
    keep[70 + 69] = 1;
    T_EQ_INT(fr_kernel_softmax(2, 70, floats(in, 0), (struct fr_in){keep, FR_BOOL, 70}, result(70)), FR_NUM_MASKED);
    T_EQ_INT(count(70, is_zero), 70); /* the NaN is masked too */
    T_OK(out[70 + 69] == 1 && out[70] == 0 && out[70 + 7] == 0);
    few[7] = 1;
    T_EQ_INT(fr_kernel_softmax(1, 70, floats(in, 70), (struct fr_in){few, FR_U8, 70}, result(70)), 0);
    T_EQ_INT(count(70, is_nan), 70); /* here it is the one that is kept */
    in[7] = 3;
    fill(more, 70, -INFINITY);
    T_EQ_INT(fr_kernel_softmax(1, 70, floats(in, 70), floats(more, 70), result(70)), FR_NUM_MASKED);
    T_EQ_INT(count(70, is_zero), 70);
    fill(more, 70, -65504); /* no -Inf in fp32: an ordinary softmax, here of equal scores */
    T_EQ_INT(fr_kernel_softmax(1, 70, floats(in, 70), floats(more, 70), result(70)), 0);
    T_OK(fabsf(out[0] - 1.0f / 70) < 1e-8f);
    T_EQ_INT(fr_kernel_attention_scores(1, 70, 1, floats(in, 1), floats(in, 1), 1, (struct fr_in){keep, FR_BOOL, 70}, 1, more,
                                        result(70)), FR_NUM_MASKED);
    T_EQ_INT(count(70, is_zero), 70);
}

T_TEST(rows_of_zeros_and_of_equal_values)
{
    float dw[70] = {0};
    fill(in, 70, 0);
    fill(more, 70, 1);
    fr_kernel_rms_norm(1, 70, floats(in, 70), none, 0, result(70));
    T_EQ_INT(count(70, is_zero), 70);
    fr_kernel_rms_norm_backward(1, 70, floats(in, 70), none, floats(more, 70), 0, result(70), dw);
    T_OK(count(70, is_zero) == 70 && dw[0] == 0);
    fill(in, 70, 0.1f);
    fr_kernel_layer_norm(1, 70, floats(in, 70), none, floats(more, 70), 0, result(70));
    T_OK(out[0] == 1 && out[69] == 1);
}

/* ---- beside a kernel whose every variable is half -------------------------------------------- */

static double half_v[N], weight_v[N], got_v[N], work[N * FR_WORK_ROWS];

/* What the naive kernel gives for in[] (as halves), at index i. */
static double naive_rms(size_t i)
{
    struct fr_array a = {half_v, N, FR_F16}, w = {weight_v, N, FR_F16}, o = {got_v, N, 0};
    for (size_t j = 0; j < N; j++) {
        half_v[j] = fr_round(FR_F16, (double)in[j], FR_OVERFLOW_IEEE);
        weight_v[j] = 1;
    }
    T_EQ_INT(fr_rms_norm(fr_policy_find("naive-half"), FR_FORM_MUL_SUM_DIV, &a, &w, 1e-6, work, &o, NULL, NULL), 0);
    return got_v[i];
}

static double ours_rms(size_t i)
{
    static uint16_t halves[N];
    float value;
    fr_encode_n(FR_F16, in, N, halves, FR_OVERFLOW_IEEE);
    T_EQ_INT(fr_kernel_rms_norm(1, N, (struct fr_in){halves, FR_F16, N}, none, 1e-6f, (struct fr_out){halves, FR_F16, N}), 0);
    fr_decode_n(FR_F16, halves + i, 1, &value);
    return (double)value;
}

T_TEST(the_naive_half_norm_fails_where_ours_is_right)
{
    fill(in, N, 0.01f); /* one element of 300: its square is Inf, so the row becomes zeros */
    in[17] = 300;
    T_OK(naive_rms(17) == 0);
    T_OK(fabs(ours_rms(17) - 64) < 0.05); /* sqrt(4096) times its share */
    fill(in, N, 100); /* no square overflows, their sum does */
    T_OK(naive_rms(0) == 0);
    T_OK(ours_rms(0) == 1);
    fill(in, N, 255.875f);
    T_OK(naive_rms(0) == 0);
    T_OK(ours_rms(0) == 1);
    fill(in, N, 65504);
    T_OK(naive_rms(0) == 0);
    T_OK(ours_rms(0) == 1);
    fill(in, N, 1); /* nothing overflows: the sum stops at 2048, half of what it is */
    T_OK(fabs(naive_rms(0) - 1.414) < 0.001);
    T_OK(ours_rms(0) == 1);
}

T_TEST(naive_half_scores_and_softmax_fail_where_ours_are_right)
{
    enum { D = 128 };
    static uint16_t q[D];
    double out_v[1];
    float got;
    struct fr_array a = {half_v, D, FR_F16}, o = {out_v, 1, 0};
    for (size_t i = 0; i < D; i++) {
        half_v[i] = 40;
        in[i] = 40;
    }
    fr_attention_scores(fr_policy_find("naive-half"), FR_SCALE_AFTER, &a, &a, 0.08838834764831845, NULL, work, &o, NULL);
    T_OK(isinf(out_v[0]));
    fr_encode_n(FR_F16, in, D, q, FR_OVERFLOW_IEEE);
    const struct fr_in row = {q, FR_F16, D};
    T_EQ_INT(fr_kernel_attention_scores(1, 1, D, row, row, 0.088388346f, none, 0, NULL, (struct fr_out){&got, FR_F32, 1}), 0);
    T_OK(fabsf(got - 18101.934f) < 0.01f);
    struct fr_array two = {half_v, 2, FR_F16}, soft = {got_v, 2, 0};
    half_v[0] = in[0] = 20; /* e^20 is no half */
    half_v[1] = in[1] = 19;
    fr_softmax(fr_policy_find("naive-half"), FR_SOFTMAX_NAIVE, &two, work, &soft, NULL);
    T_OK(isnan(got_v[0]));
    fr_kernel_softmax(1, 2, floats(in, 2), none, result(2));
    T_OK(fabsf(out[0] - 0.7310586f) < 1e-6f);
}

int main(void)
{
    return t_run();
}
