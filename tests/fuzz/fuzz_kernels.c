/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_kernels: any shapes, strides, types and codes: an error and nothing written, or the bits of the
 * plain kernels, and not a byte outside the rows (each operand is a block of exactly its size, so that
 * the sanitizers see a step too far). */
#include "numerics/kernel.h"
#include "fuzz/fuzz.h"

#include <math.h>

enum { MOST_ROWS = 4, MOST_N = 100, OPERANDS = 4 };

static const uint32_t types[] = {FR_F16, FR_BF16, FR_F32, FR_BOOL, FR_F64, FR_I8};

/* The bytes that rows of n at a stride take. */
static size_t extent(size_t rows, size_t n, size_t stride, uint32_t type)
{
    const size_t size = type == FR_F64 ? 8 : fr_element_size(type);
    return ((rows - 1) * stride + n) * size;
}

static uint8_t *block(const uint8_t *data, size_t size, size_t seed, size_t bytes)
{
    uint8_t *p = malloc(bytes > 0 ? bytes : 1);
    CHECK(p != NULL);
    for (size_t i = 0; i < bytes; i++) {
        p[i] = data[(seed + i) % size];
    }
    return p;
}

static int call(const uint8_t *d, size_t rows, size_t n, struct fr_in in[OPERANDS], struct fr_out y, float *sums)
{
    const float eps = d[3] & 1 ? 1e-6f : 0;
    switch (d[0] % 6) {
    case 0: return fr_kernel_rms_norm(rows, n, in[0], in[1], eps, y);
    case 1: return fr_kernel_rms_norm_backward(rows, n, in[0], in[1], in[3], eps, y, sums);
    case 2: return fr_kernel_layer_norm(rows, n, in[0], in[1], in[2], eps, y);
    case 3: return fr_kernel_layer_norm_backward(rows, n, in[0], in[1], in[3], eps, y, sums, sums + MOST_N);
    case 4: return fr_kernel_softmax(rows, n, in[0], in[3], y);
    default: /* as many keys as queries, each of n */
        return fr_kernel_attention_scores(rows, rows, n, in[0], in[0], 0.5f, (struct fr_in){0}, d[3] >> 1 & 1, sums, y);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 16) {
        return 0;
    }
    const size_t rows = 1 + data[1] % MOST_ROWS, n = 1 + data[2] % MOST_N;
    const int is_scores = data[0] % 6 == 5;
    uint8_t *p[OPERANDS], *out[2];
    struct fr_in in[OPERANDS];
    float sums[2][2 * MOST_N];
    for (int i = 0; i < OPERANDS; i++) {
        const uint8_t b = data[4 + i];
        const size_t stride = b % 3 == 0 ? n : data[8 + i] % (2 * MOST_N);
        const uint32_t type = types[b >> 3 & 7 ? (b >> 4) % 3 : b % 6];
        p[i] = block(data, size, 16 + (size_t)i * 7, extent(rows, n, stride, type));
        in[i] = (struct fr_in){i > 0 && b >> 7 ? NULL : p[i], type, stride};
    }
    const size_t wide = is_scores ? rows : n, stride = wide + data[12] % 4 - (data[12] == 255 && wide >= 4 ? 4 : 0);
    const uint32_t type = types[data[13] % 8 < 6 ? data[13] % 3 : data[13] % 6];
    const size_t bytes = extent(rows, wide, stride < wide ? wide : stride, type);
    int status[2];
    for (int i = 0; i < 2; i++) {
        out[i] = block(data, size, 16, bytes);
        memset(sums[i], 0, sizeof sums[i]);
        fr_kernel_force(i == 0 ? &fr_kernels_portable : NULL);
        status[i] = call(data, rows, n, in, (struct fr_out){out[i], type, stride}, sums[i]);
    }
    CHECK(status[0] == status[1]);
    for (size_t i = 0; i < bytes && status[0] < 0; i++) {
        CHECK(out[0][i] == data[(16 + i) % size]);
    }
    for (size_t i = 0; i < bytes / fr_element_size(type) && status[0] >= 0; i++) {
        const float a = fr_element_get(type, out[0], i), b = fr_element_get(type, out[1], i);
        CHECK(fr_bits_of(a) == fr_bits_of(b) || (isnan(a) && isnan(b)));
    }
    for (int i = 0; i < 2; i++) {
        free(out[i]);
    }
    for (int i = 0; i < OPERANDS; i++) {
        free(p[i]);
    }
    return 0;
}
