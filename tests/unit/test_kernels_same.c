/* SPDX-License-Identifier: Apache-2.0 */
/* Every variant of the kernels that this CPU has gives the bits of the plain one; and what a caller
 * may get wrong is told, not done. */

#include "unit/kernels_same.h"

T_TEST(all_variants_give_the_same_bits)
{
    for (unsigned k = 0; k < fr_kernel_variants_count; k++) {
        const struct fr_kernel_variant *v = &fr_kernel_variants[k];
        if (v->works()) {
            same_sweep(v->kernels, v->name, 1000);
        } else {
            printf("# %s: not on this CPU\n", v->name);
        }
    }
}

T_TEST(one_is_chosen_and_has_a_name)
{
    fr_kernel_force(NULL);
    const char *name = fr_kernel_variant();
    printf("# chosen: %s\n", name);
    T_OK(strcmp(name, "portable") == 0 || strcmp(name, "avx2") == 0 || strcmp(name, "avx512") == 0);
    fr_kernel_force(&fr_kernels_portable);
    T_EQ_STR(fr_kernel_variant(), "portable");
    fr_kernel_force(NULL);
    T_EQ_STR(fr_kernel_variant(), name);
}

/* The codes of a half are all there are. */
T_TEST(conversions_are_the_codecs)
{
    static uint8_t in[2 * 65536], f[4 * 65536], out[2 * 65536];
    static const uint32_t types[] = {FR_F16, FR_BF16};
    for (unsigned k = 0; k < fr_kernel_variants_count; k++) {
        if (!fr_kernel_variants[k].works()) {
            continue;
        }
        for (int t = 0; t < 2; t++) {
            for (size_t i = 0; i < 65536; i++) {
                const uint16_t code = (uint16_t)i;
                memcpy(in + 2 * i, &code, sizeof code);
            }
            struct fr_kernel_row r = {.n = 65536, .x = in, .y = f, .x_type = FR_F32, .y_type = types[t]};
            fr_decode_n(types[t], in, 65536, (float *)(void *)f);
            r.x = f;
            r.y = out;
            fr_kernel_variants[k].kernels->add_mask(&r); /* without a mask: a conversion */
            for (size_t i = 0; i < 65536; i++) {
                T_OK(memcmp(in + 2 * i, out + 2 * i, 2) == 0 || same_nan(types[t], in + 2 * i, out + 2 * i));
            }
        }
    }
}

/* Values between codes, ties among them, against the codec that rounds in integers. */
T_TEST(stores_round_to_nearest_even)
{
    enum { N = 4096 };
    static float f[N];
    static uint8_t out[2 * N];
    static const uint32_t types[] = {FR_F16, FR_BF16};
    struct oracle_rng g = {42};
    for (unsigned k = 0; k < fr_kernel_variants_count; k++) {
        for (int turn = 0; turn < 40 && fr_kernel_variants[k].works(); turn++) {
            const uint32_t type = types[turn & 1];
            for (size_t i = 0; i < N; i++) {
                const uint32_t code = oracle_random(&g), near = fr_bits_of((float)fr_decode(type, code & 0xffff));
                f[i] = fr_float_of(turn % 4 < 2 ? code : near + (turn & 1 ? 0x8000u : 0x1000u) + code % 3 - 1);
            }
            struct fr_kernel_row r = {.n = N, .x = (uint8_t *)f, .y = out, .x_type = FR_F32, .y_type = type};
            fr_kernel_variants[k].kernels->add_mask(&r);
            for (size_t i = 0; i < N; i++) {
                const uint32_t want = fr_encode(type, (double)f[i], FR_OVERFLOW_IEEE);
                uint32_t got = 0;
                memcpy(&got, out + 2 * i, 2);
                T_OK(got == want || (isnan(f[i]) && isnan(fr_decode(type, got))));
            }
        }
    }
}

T_TEST(wrong_arguments_are_refused)
{
    uint8_t x[64] = {0}, y[64];
    float work[8];
    const struct fr_in in = {x, FR_F16, 8}, none = {NULL, 0, 0}, bad = {x, FR_F64, 8}, mask = {x, FR_BOOL, 8};
    const struct fr_out out = {y, FR_F16, 8}, narrow = {y, FR_F16, 7};
    memset(y, 7, sizeof y);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, none, none, 1e-6f, out), FR_NUM_NULL);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, none, 1e-6f, (struct fr_out){NULL, FR_F16, 8}), FR_NUM_NULL);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, bad, none, 1e-6f, out), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, mask, 1e-6f, out), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, none, 1e-6f, (struct fr_out){y, FR_BOOL, 8}), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, none, 1e-6f, narrow), FR_NUM_SHAPE);
    T_EQ_INT(fr_kernel_rms_norm(2, SIZE_MAX / 2, in, none, 1e-6f, out), FR_NUM_SHAPE);
    T_EQ_INT(fr_kernel_rms_norm(SIZE_MAX / 4, 8, in, none, 1e-6f, out), FR_NUM_SHAPE);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, none, -1, out), FR_NUM_VALUE);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, none, NAN, out), FR_NUM_VALUE);
    T_EQ_INT(fr_kernel_rms_norm(2, 8, in, none, INFINITY, out), FR_NUM_VALUE);
    T_EQ_INT(fr_kernel_rms_norm_backward(2, 8, in, none, none, 0, out, NULL), FR_NUM_NULL);
    T_EQ_INT(fr_kernel_layer_norm(2, 8, in, none, bad, 0, out), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_layer_norm_backward(2, 8, in, bad, in, 0, out, NULL, NULL), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_softmax(2, 8, mask, none, out), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_softmax(2, 8, in, bad, out), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_attention_scores(2, 2, 8, in, in, NAN, none, 0, NULL, out), FR_NUM_VALUE);
    T_EQ_INT(fr_kernel_attention_scores(2, 2, 8, in, in, 1, none, 1, NULL, out), FR_NUM_NULL);
    T_EQ_INT(fr_kernel_attention_scores(2, 8, 8, in, bad, 1, none, 1, work, out), FR_NUM_DTYPE);
    T_EQ_INT(fr_kernel_attention_scores(2, 8, 8, in, in, 1, none, 1, work, narrow), FR_NUM_SHAPE);
    for (size_t i = 0; i < sizeof y; i++) {
        T_EQ_INT(y[i], 7);
    }
    T_EQ_INT(fr_kernel_rms_norm(0, 8, in, none, 0, out), 0);
    T_EQ_INT(fr_kernel_rms_norm(2, 0, in, none, 0, out), 0);
    T_EQ_INT(fr_kernel_softmax(2, 0, in, none, out), 0);
    T_EQ_INT(fr_kernel_attention_scores(2, 0, 8, in, in, 1, none, 1, work, out), 0);
    T_EQ_INT(fr_kernel_attention_scores(1, 1, 0, in, in, 1, none, 1, work, out), 0); /* one key: 1 */
    T_OK(y[0] == 0x00 && y[1] == 0x3c);
    T_EQ_INT(fr_kernel_rms_norm_backward(1, 8, in, none, in, 0, (struct fr_out){NULL, 0, 0}, NULL), 0);
}

int main(void)
{
    return t_run();
}
