/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks with a shared scale: values worked out by hand, and a search that no encoding can beat. */
#include "faultrank/numerics.h"
#include "support/t.h"

#include <math.h>
#include <string.h>

static const uint32_t elements[] = {FR_F4_E2M1, FR_F6_E2M3, FR_F6_E3M2, FR_F8_E4M3FN, FR_F8_E5M2};
enum { ELEMENTS = sizeof elements / sizeof elements[0] };

static uint64_t state = 42;
static float random_float(int spread)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    double unit = (double)(state >> 11) * 0x1p-53 - 0.5;
    return (float)ldexp(unit, (int)(state >> 7 & 0xff) % spread - spread / 2);
}

T_TEST(mxfp4_by_hand)
{
    float in[33] = {12, -12, 7, 5, 1, 0.9f, -0.0f}, out[33];
    uint8_t codes[17], scales[2];
    in[32] = 0x1p-20f;
    T_EQ_INT(fr_mx_encode(FR_F4_E2M1, in, 33, codes, scales), 0);
    T_EQ_INT(scales[0], 127 + 3 - 2);  /* floor(log2(12)) - emax */
    T_EQ_INT(scales[1], 127 - 20 - 2); /* a short last block has its own */
    T_EQ_INT(codes[0], 0xf7);          /* 6 and -6 times 2 */
    T_EQ_INT(codes[1], 0x46);          /* 3.5 ties to 4, 2.5 ties to 2 */
    T_EQ_INT(codes[2], 0x11);          /* 0.5, 0.45 */
    T_EQ_INT(codes[3], 0x08);
    T_EQ_INT(codes[16], 0x06);
    T_EQ_INT(fr_mx_decode(FR_F4_E2M1, codes, scales, 33, out), 0);
    T_OK(out[0] == 12 && out[1] == -12 && out[2] == 8 && out[3] == 4 && out[4] == 1 && out[5] == 1);
    T_OK(out[6] == 0 && signbit(out[6]) && out[32] == 0x1p-20f);
    in[0] = 15.9f; /* between 6 and 8 times the scale: saturates, as the specification says */
    fr_mx_encode(FR_F4_E2M1, in, 32, codes, scales);
    fr_mx_decode(FR_F4_E2M1, codes, scales, 32, out);
    T_OK(scales[0] == 128 && out[0] == 12);
}

T_TEST(mx_specials)
{
    for (int k = 0; k < ELEMENTS; k++) {
        float in[32] = {1, 2, 3}, out[32];
        uint8_t codes[32], scale;
        in[7] = k & 1 ? NAN : INFINITY;
        fr_mx_encode(elements[k], in, 32, codes, &scale);
        T_EQ_INT(scale, 0xff);
        fr_mx_decode(elements[k], codes, &scale, 32, out);
        for (int i = 0; i < 32; i++) { /* one bad scale poisons its whole block */
            T_OK(isnan(out[i]));
        }
        memset(in, 0, sizeof in);
        fr_mx_encode(elements[k], in, 32, codes, &scale);
        fr_mx_decode(elements[k], codes, &scale, 32, out);
        T_OK(scale == 0 && out[0] == 0 && out[31] == 0);
        in[0] = 3.4e38f;
        in[1] = 0x1p-149f;
        fr_mx_encode(elements[k], in, 32, codes, &scale);
        fr_mx_decode(elements[k], codes, &scale, 32, out);
        T_OK(isfinite(out[0]) && out[0] > 1e38f && out[1] == 0);
        in[0] = 0x1p-149f; /* the smallest float: no scale reaches down to it */
        fr_mx_encode(elements[k], in, 32, codes, &scale);
        T_EQ_INT(scale, 0);
    }
    float out[1];
    uint8_t none[8] = {0};
    T_EQ_INT(fr_mx_decode(FR_F16, none, none, 1, out), -1);
    T_EQ_INT(fr_mx_encode(FR_F8_E8M0, out, 1, none, none), -1);
}

/* Every element is the nearest value of its type times the scale, found by trying all codes. */
T_TEST(mx_elements_are_nearest)
{
    for (int k = 0; k < ELEMENTS; k++) {
        unsigned bits = fr_dtype_info(elements[k])->bits;
        for (int round = 0; round < 60; round++) {
            float in[32], out[32];
            uint8_t codes[32], scale;
            for (int i = 0; i < 32; i++) {
                in[i] = random_float(round < 30 ? 6 : 60);
            }
            fr_mx_encode(elements[k], in, 32, codes, &scale);
            fr_mx_decode(elements[k], codes, &scale, 32, out);
            double unit = ldexp(1, scale - 127);
            for (int i = 0; i < 32; i++) {
                double best = INFINITY;
                for (uint32_t c = 0; c < 1u << bits; c++) {
                    double distance = fabs(fr_decode(elements[k], c) * unit - (double)in[i]);
                    best = distance < best ? distance : best;
                }
                T_OK(fabs((double)out[i] - (double)in[i]) == best);
            }
        }
    }
}

T_TEST(nvfp4_by_hand)
{
    float in[17] = {6, -3, 1.25f, 0.2f}, out[17];
    uint8_t codes[9], scales[2];
    in[16] = 448 * 6;
    float tensor = fr_nvfp4_tensor_scale(448 * 6);
    T_OK(tensor == 1);
    fr_nvfp4_encode(in, 17, tensor, codes, scales);
    T_EQ_INT(scales[0], 0x38); /* 1 */
    T_EQ_INT(scales[1], 0x7e); /* 448 */
    T_EQ_INT(codes[0], 0xd7);
    T_EQ_INT(codes[1], 0x02); /* 1.25 ties to 1, 0.2 goes to 0 */
    T_EQ_INT(codes[8], 0x07);
    fr_nvfp4_decode(codes, scales, tensor, 17, out);
    T_OK(out[0] == 6 && out[1] == -3 && out[2] == 1 && out[3] == 0 && out[16] == 448 * 6);
    fr_nvfp4_decode(codes, scales, 0.5f, 17, out);
    T_OK(out[0] == 3 && out[16] == 1344);
}

T_TEST(nvfp4_specials)
{
    float in[16] = {1, 2}, out[16];
    uint8_t codes[8], scale;
    in[3] = NAN;
    fr_nvfp4_encode(in, 16, 1, codes, &scale);
    fr_nvfp4_decode(codes, &scale, 1, 16, out);
    T_OK(scale == 0x7f && isnan(out[0]) && isnan(out[15]));
    in[3] = 1e30f; /* far beyond what the tensor scale allows: saturated, not lost */
    fr_nvfp4_encode(in, 16, 1, codes, &scale);
    fr_nvfp4_decode(codes, &scale, 1, 16, out);
    T_OK(out[3] == 2688 && out[0] == 0);
    in[3] = 0;
    in[0] = in[1] = 1e-9f; /* the scale rounds to zero: the whole block with it */
    fr_nvfp4_encode(in, 16, 1, codes, &scale);
    fr_nvfp4_decode(codes, &scale, 1, 16, out);
    T_OK(scale == 0 && out[0] == 0);
    T_OK(fr_nvfp4_tensor_scale(0) == 1 && fr_nvfp4_tensor_scale(INFINITY) == 1);
    T_OK(fr_nvfp4_tensor_scale(NAN) == 1);
}

int main(void)
{
    return t_run();
}
