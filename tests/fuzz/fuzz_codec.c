/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_codec: any bytes as codes of any type: what is decoded encodes to itself, arrays and blocks
 * touch no byte too many, and a double lands on one of its two neighbours. */
#include "faultrank/numerics.h"
#include "fuzz/fuzz.h"

#include <math.h>
#include <string.h>

enum { VALUES = 300 };

static void round_trip(uint32_t dtype, const uint8_t *codes, size_t n)
{
    size_t bytes = fr_packed_size(dtype, n);
    uint8_t *in = malloc(bytes + 1), *back = malloc(bytes + 1); /* exact sizes: the sanitizer watches */
    float *values = malloc((n + 1) * sizeof *values), *again = malloc((n + 1) * sizeof *again);
    memcpy(in, codes, bytes);
    CHECK(fr_decode_n(dtype, in, n, values) == 0);
    CHECK(fr_encode_n(dtype, values, n, back, FR_OVERFLOW_IEEE) == 0);
    CHECK(fr_decode_n(dtype, back, n, again) == 0);
    for (size_t i = 0; i < n; i++) {
        CHECK(isnan(values[i]) ? isnan(again[i]) : values[i] == again[i]);
        CHECK(values[i] != 0 || !signbit(values[i]) == !signbit(again[i]));
    }
    free(in);
    free(back);
    free(values);
    free(again);
}

static void nearest(uint32_t dtype, double value)
{
    double kept = fr_round(dtype, value, FR_OVERFLOW_SATURATE);
    const struct fr_dtype_info *t = fr_dtype_info(dtype);
    CHECK(fr_round(dtype, kept, FR_OVERFLOW_IEEE) == kept || isnan(kept));
    if (isnan(value)) {
        CHECK(isnan(kept) || !t->has_nan);
    } else if (t->is_signed && fabs(value) <= t->max) { /* within half a step of either neighbour */
        double step = fmax(t->min_subnormal, fabs(value) * t->eps);
        CHECK(fabs(kept - value) <= step / 2);
    } else if (t->is_signed) {
        CHECK(fabs(kept) == t->max);
    }
}

static void blocks(const uint8_t *data, size_t size)
{
    static const uint32_t elements[] = {FR_F4_E2M1, FR_F6_E2M3, FR_F6_E3M2, FR_F8_E4M3FN, FR_F8_E5M2};
    float values[VALUES], again[VALUES], first[VALUES];
    uint8_t codes[VALUES], scales[VALUES];
    size_t n = size / sizeof *values < VALUES ? size / sizeof *values : VALUES;
    memcpy(values, data, n * sizeof *values);
    for (size_t e = 0; e < 5; e++) {
        CHECK(fr_mx_encode(elements[e], values, n, codes, scales) == 0);
        CHECK(fr_mx_decode(elements[e], codes, scales, n, first) == 0);
        CHECK(fr_mx_encode(elements[e], first, n, codes, scales) == 0);
        CHECK(fr_mx_decode(elements[e], codes, scales, n, again) == 0);
        for (size_t i = 0; i < n; i++) { /* coded once, coded for good */
            CHECK(isnan(first[i]) ? isnan(again[i]) : first[i] == again[i]);
        }
    }
    fr_nvfp4_encode(values, n, 0.25f, codes, scales);
    fr_nvfp4_decode(codes, scales, 0.25f, n, first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint32_t d = FR_F32; d <= FR_F4_E2M1; d++) {
        size_t n = size * 8 / fr_dtype_info(d)->bits;
        round_trip(d, data, n < VALUES ? n : VALUES);
        for (size_t i = 0; i + 8 <= size && i < 256; i += 8) {
            double value;
            memcpy(&value, data + i, sizeof value);
            nearest(d, value);
        }
    }
    blocks(data, size);
    return 0;
}
