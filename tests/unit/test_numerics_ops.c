/* SPDX-License-Identifier: Apache-2.0 */
/* Operations and sums under policies: that rounding through double is innocent, and every threshold
 * that people quote about half precision. */
#include "faultrank/numerics.h"
#include "support/t.h"

#include <math.h>
#include <string.h>

static uint64_t state = 7;
static uint64_t random_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state ^ (state >> 29);
}

static float random_float(void)
{
    uint32_t bits = (uint32_t)(random_bits() >> 16);
    if (random_bits() & 1) { /* few significant bits and near exponents: ties are common */
        bits = (bits & 0x8000f000u) | ((120 + bits % 16) << 23) | (bits >> 28 & 3);
    }
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double op1(const char *policy, uint32_t op, uint32_t dtype, double a)
{
    double v;
    struct fr_array in = {&a, 1, dtype}, out = {&v, 1, 0};
    T_EQ_INT(fr_op(fr_policy_find(policy), op, &in, NULL, &out), 0);
    T_EQ_INT(out.dtype, dtype);
    return v;
}

static double op2(const char *policy, uint32_t op, uint32_t dtype, double a, double b)
{
    double v;
    struct fr_array x = {&a, 1, dtype}, y = {&b, 1, dtype}, out = {&v, 1, 0};
    T_EQ_INT(fr_op(fr_policy_find(policy), op, &x, &y, &out), 0);
    return v;
}

static int same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* C's own float arithmetic rounds once (FLT_EVAL_METHOD 0); ours goes through double. */
T_TEST(rounding_through_double_is_innocent)
{
    for (int i = 0; i < 300000; i++) {
        float a = random_float(), b = random_float();
        volatile float sum = a + b, difference = a - b, product = a * b, quotient = a / b;
        volatile float root = sqrtf(a);
        T_OK(same(op2("float", FR_OP_ADD, FR_F32, (double)a, (double)b), (double)sum));
        T_OK(same(op2("float", FR_OP_SUB, FR_F32, (double)a, (double)b), (double)difference));
        T_OK(same(op2("float", FR_OP_MUL, FR_F32, (double)a, (double)b), (double)product));
        T_OK(same(op2("float", FR_OP_DIV, FR_F32, (double)a, (double)b), (double)quotient));
        T_OK(same(op1("float", FR_OP_SQRT, FR_F32, (double)a), (double)root));
    }
}

/* fp16 through fp32 against one rounding of what double holds exactly, or to more than 24 bits. */
T_TEST(fp16_through_fp32_is_innocent)
{
    for (int i = 0; i < 300000; i++) {
        double a = fr_decode(FR_F16, (uint32_t)random_bits()), b = fr_decode(FR_F16, (uint32_t)random_bits());
        T_OK(same(op2("naive-half", FR_OP_ADD, FR_F16, a, b), fr_round(FR_F16, a + b, 0)));
        T_OK(same(op2("naive-half", FR_OP_MUL, FR_F16, a, b), fr_round(FR_F16, a * b, 0)));
        T_OK(same(op2("naive-half", FR_OP_DIV, FR_F16, a, b), fr_round(FR_F16, a / b, 0)));
        T_OK(same(op1("naive-half", FR_OP_SQRT, FR_F16, a), fr_round(FR_F16, sqrt(a), 0)));
    }
}

T_TEST(fused_addition_rounds_once)
{
    struct fr_policy p = *fr_policy_find("float");
    p.fused_add = 1;
    for (int i = 0; i < 200000; i++) {
        float a = random_float(), b = random_float(), c = random_float();
        double x[] = {(double)c, (double)a}, y[] = {1, (double)b}, v;
        struct fr_array l = {x, 2, FR_F32}, r = {y, 2, FR_F32}, out = {&v, 1, 0};
        T_EQ_INT(fr_dot(&p, &l, &r, &out), 0);
        float want = fmaf(a, b, fmaf(c, 1.0f, 0.0f));
        T_OK(v == (double)want || (isnan(v) && isnan(want)));
    }
}

T_TEST(presets)
{
    size_t n = 0;
    for (const struct fr_policy *p; (p = fr_policy_at(n)) != NULL; n++) {
        T_OK(fr_policy_find(p->name) == p && p->about[0] != '\0');
        for (uint32_t e = FR_F64; e <= FR_F8_E4M3FN; e++) { /* a row serves any element type */
            struct fr_policy q = *p;
            double a[] = {1, 2}, v[2];
            struct fr_array x = {a, 2, e}, out = {v, 2, 0};
            q.element = e;
            T_EQ_INT(fr_op(&q, FR_OP_ADD, &x, &x, &out), 0);
            T_OK(v[0] == 2 && v[1] == 4);
            T_EQ_INT(fr_reduce(&q, FR_REDUCE_SUM, &x, &out), 0);
            T_OK(v[0] == 3);
        }
    }
    T_EQ_INT(n, 10);
    T_OK(fr_policy_find("cuda") == NULL && fr_policy_find(NULL) == NULL);
}

T_TEST(squares_of_half)
{
    T_OK(op1("torch-cuda", FR_OP_POW2, FR_F16, 255.875) == 65472);
    T_OK(isinf(op1("torch-cuda", FR_OP_POW2, FR_F16, 256)));
    T_OK(fr_round(FR_F16, 255.9375, 0) == 256); /* a real number overflows from here up */
    T_OK(fr_round(FR_F16, nextafter(255.9375, 0), 0) == 255.875);
    double tiny = fr_round(FR_F16, 0x1.6a09e667f3bcdp-13, 0); /* 2^-12.5 */
    T_OK(op1("torch-cuda", FR_OP_POW2, FR_F16, tiny) == 0);
    T_OK(op1("torch-cuda", FR_OP_POW2, FR_F16, tiny + 0x1p-23) > 0);
    T_OK(isinf(op1("torch-cuda", FR_OP_POW2, FR_BF16, fr_round(FR_BF16, 1.85e19, 0))));
    T_OK(isfinite(op1("torch-cuda", FR_OP_POW2, FR_BF16, fr_round(FR_BF16, 1.84e19, 0))));
    T_OK(isinf(op2("torch-cuda", FR_OP_MUL, FR_F16, 256, 256))); /* SwiGLU's product */
}

T_TEST(eps_in_half)
{
    T_OK(fr_round(FR_F16, 2.98e-8, 0) == 0 && fr_round(FR_F16, 1e-8, 0) == 0);
    T_OK(fr_round(FR_F16, 1e-12, 0) == 0 && fr_round(FR_F16, 2.9803e-8, 0) > 0);
    T_OK(fabs(fr_round(FR_F16, 1e-6, 0) - 1.013e-6) < 1e-9);
    T_OK(fabs(fr_round(FR_F16, 1e-5, 0) - 1e-5) < 2e-8);
}

T_TEST(exponentials_and_gates)
{
    T_OK(isinf(op1("torch-cuda", FR_OP_EXP, FR_F16, 11.09375)));
    T_OK(isfinite(op1("torch-cuda", FR_OP_EXP, FR_F16, 11.0859375)));
    T_OK(isnan(op1("torch-cuda", FR_OP_SILU, FR_F16, -INFINITY)));
    T_OK(isnan(op1("torch-cuda", FR_OP_GELU, FR_F16, -INFINITY)));
    T_OK(isinf(op1("torch-cuda", FR_OP_RSQRT, FR_F16, 0)));
    T_OK(op1("torch-cuda", FR_OP_RSQRT, FR_F16, INFINITY) == 0);
    T_OK(isnan(op2("torch-cuda", FR_OP_MAXIMUM, FR_F16, NAN, 1)));
    T_OK(isnan(op2("torch-cuda", FR_OP_MAXIMUM, FR_F16, 1, NAN)));
    T_OK(op2("torch-cuda", FR_OP_MAXIMUM, FR_F16, -1, 2) == 2);
}

static double reduce(const char *policy, uint32_t what, double value, size_t n)
{
    static double x[16384];
    double v;
    struct fr_array a = {x, n, FR_F16}, out = {&v, 1, 0};
    for (size_t i = 0; i < n; i++) {
        x[i] = value;
    }
    T_EQ_INT(fr_reduce(fr_policy_find(policy), what, &a, &out), 0);
    return v;
}

T_TEST(sums_of_half)
{
    T_OK(reduce("naive-half", FR_REDUCE_SUM, 1, 4096) == 2048); /* adding 1 has no effect there */
    T_OK(reduce("naive-half", FR_REDUCE_MEAN, 1, 4096) == 0.5);
    T_OK(reduce("torch-cuda", FR_REDUCE_MEAN, 1, 4096) == 1);
    T_OK(isinf(reduce("torch-cuda", FR_REDUCE_SUM, 10000, 4096)));
    T_OK(reduce("torch-cuda", FR_REDUCE_MEAN, 10000, 4096) == 10000);
    T_OK(reduce("torch-cpu", FR_REDUCE_MEAN, 10000, 4096) == 10000);
    T_OK(isinf(reduce("torch-cpu-1.13", FR_REDUCE_MEAN, 10000, 4096))); /* the sum was rounded first */
    T_OK(reduce("torch-cuda", FR_REDUCE_NORM2, 256, 4096) == 16384);
    T_OK(isinf(reduce("torch-cpu-1.13", FR_REDUCE_NORM2, 256, 2)));
    T_OK(reduce("torch-cuda", FR_REDUCE_SUM, 1, 0) == 0 && isnan(reduce("torch-cuda", FR_REDUCE_MEAN, 1, 0)));
    T_OK(reduce("torch-cuda", FR_REDUCE_AMAX, -3, 5) == -3);
    double x[] = {1, NAN, 3}, v; /* C's fmax would drop it */
    struct fr_array a = {x, 3, FR_F16}, out = {&v, 1, 0};
    T_EQ_INT(fr_reduce(fr_policy_find("torch-cuda"), FR_REDUCE_AMAX, &a, &out), 0);
    T_OK(isnan(v));
}

/* The same numbers in every order: what an order may change stays within its bound. */
T_TEST(orders_agree_within_their_bound)
{
    for (size_t n = 1; n < 700; n += n < 40 ? 1 : 53) {
        double x[700], exact = 0, size = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = fr_round(FR_F32, (double)(int64_t)random_bits() * 0x1p-63, 0);
            exact += x[i];
            size += fabs(x[i]);
        }
        for (uint32_t order = 0; order <= FR_ORDER_TORCH1_AVX512; order++) {
            struct fr_policy p = *fr_policy_find("float");
            double v;
            struct fr_array a = {x, n, FR_F32}, out = {&v, 1, 0};
            p.order = order;
            T_EQ_INT(fr_reduce(&p, FR_REDUCE_SUM, &a, &out), 0);
            T_OK(fabs(v - exact) <= size * (double)n * 0x1p-24);
            a.dtype = FR_F64;
            T_EQ_INT(fr_reduce(&p, FR_REDUCE_SUM, &a, &out), 0);
            T_OK(out.dtype == FR_F64 && fabs(v - exact) <= size * (double)n * 0x1p-53);
        }
    }
}

T_TEST(autocast_raises_what_torch_lists)
{
    const struct fr_policy *p = fr_policy_find("torch-autocast");
    double x[] = {256, 256}, v[2];
    struct fr_array a = {x, 2, FR_F16}, out = {v, 2, 0};
    T_OK(fr_op(p, FR_OP_POW2, &a, NULL, &out) == 0 && out.dtype == FR_F32 && v[0] == 65536);
    T_OK(fr_op(p, FR_OP_MUL, &a, &a, &out) == 0 && out.dtype == FR_F16 && isinf(v[0]));
    T_OK(fr_reduce(p, FR_REDUCE_SUM, &a, &out) == 0 && out.dtype == FR_F32);
    T_OK(fr_reduce(p, FR_REDUCE_MEAN, &a, &out) == 0 && out.dtype == FR_F16);
    T_OK(fr_dot(p, &a, &a, &out) == 0 && out.dtype == FR_F16 && isinf(v[0]));
}

T_TEST(what_is_refused)
{
    const struct fr_policy *p = fr_policy_find("float");
    struct fr_policy broken = *p;
    double x[3] = {1, 2, 3}, v[3];
    struct fr_array a = {x, 3, FR_F32}, b = {x, 2, FR_F32}, out = {v, 3, 0}, ints = {x, 3, FR_I32};
    T_EQ_INT(fr_op(p, FR_OP_ADD, &a, &b, &out), -1);
    T_EQ_INT(fr_op(p, FR_OP_ADD, &a, NULL, &out), -1);
    T_EQ_INT(fr_op(p, FR_OP_EXP, &a, &a, &out), -1);
    T_EQ_INT(fr_op(p, 0, &a, &a, &out), -1);
    T_EQ_INT(fr_op(p, 99, &a, NULL, &out), -1);
    T_EQ_INT(fr_op(p, FR_OP_EXP, &ints, NULL, &out), -1);
    T_EQ_INT(fr_op_scalar(p, FR_OP_EXP, &a, 1, &out), -1);
    T_EQ_INT(fr_cast(p, &a, FR_C64, &out), -1);
    T_EQ_INT(fr_reduce(p, 9, &a, &out), -1);
    broken.order = 77;
    T_EQ_INT(fr_op(&broken, FR_OP_EXP, &a, NULL, &out), -1);
    broken = *p;
    broken.accumulator = FR_I8;
    T_EQ_INT(fr_reduce(&broken, FR_REDUCE_SUM, &a, &out), -1);
}

int main(void)
{
    return t_run();
}
