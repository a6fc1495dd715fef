/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/emulate.h"

#include <string.h>

/* One row a preset. What the torch rows state of the CPU is compared with torch's own bits by
 * tests/unit/test_numerics_torch.c; the CUDA rows follow its kernels' sources
 * (ReduceMomentKernel.cu, BinaryDivTrueKernel.cu, PowKernel.cu, autocast_mode.h). */
static const struct fr_policy presets[] = {
    {.name = "torch-cuda",
     .about = "PyTorch eager on CUDA: every operation's result is rounded, sums run in fp32",
     .element = FR_F16, .product = FR_F32, .accumulator = FR_F32, .divide = FR_DIVIDE_RECIPROCAL,
     .rsqrt = FR_RSQRT_ONE_STEP, .scalar = FR_F32, .scalar_add = FR_F32, .cube = FR_CUBE_TWICE,
     .order = FR_ORDER_PAIRWISE},
    {.name = "torch-cpu",
     .about = "PyTorch 2.x eager on CPU: as on CUDA, with its own order of sums and true division",
     .element = FR_F16, .product = FR_F32, .accumulator = FR_F32, .scalar = FR_F32,
     .cube = FR_CUBE_TORCH_CPU, .order = FR_ORDER_TORCH_AVX2},
    {.name = "torch-cpu-1.13",
     .about = "PyTorch 1.13 on CPU: a mean's sum is rounded to the element type before 1/N",
     .element = FR_F16, .product = FR_F32, .accumulator = FR_F32, .mean = FR_ROUND_THEN_MEAN,
     .cube = FR_CUBE_TORCH_CPU, .order = FR_ORDER_TORCH1_AVX2},
    {.name = "torch-autocast",
     .about = "PyTorch on CUDA under autocast: pow, rsqrt, sum, norm and softmax run in fp32",
     .element = FR_F16, .raised = FR_F32, .product = FR_F32, .accumulator = FR_F32,
     .divide = FR_DIVIDE_RECIPROCAL, .rsqrt = FR_RSQRT_ONE_STEP, .scalar = FR_F32,
     .scalar_add = FR_F32, .cube = FR_CUBE_TWICE, .order = FR_ORDER_PAIRWISE},
    {.name = "fused-float",
     .about = "one kernel with fp32 inside and one rounding at the end: F.rms_norm, apex, Triton",
     .element = FR_F16, .intermediate = FR_F32, .square = FR_F32, .product = FR_F32,
     .accumulator = FR_F32, .rsqrt = FR_RSQRT_ONE_STEP, .scalar = FR_F32, .scalar_add = FR_F32,
     .order = FR_ORDER_PAIRWISE},
    {.name = "naive-half",
     .about = "a kernel whose every variable is half: sums overflow at 65520 and stagnate at 2048",
     .element = FR_F16, .rsqrt = FR_RSQRT_ONE_STEP},
    {.name = "naive-half-product",
     .about = "a kernel with a float accumulator that multiplies in half first (__hmul)",
     .element = FR_F16, .intermediate = FR_F32, .accumulator = FR_F32, .rsqrt = FR_RSQRT_ONE_STEP,
     .scalar = FR_F32, .scalar_add = FR_F32},
    {.name = "naive-half-excess",
     .about = "C _Float16 without AVX512-FP16: products stay float until the half sum takes them",
     .element = FR_F16, .square = FR_F32, .product = FR_F32, .rsqrt = FR_RSQRT_TWO_STEPS},
    {.name = "float",
     .about = "everything in fp32, summed one after another",
     .element = FR_F32},
    {.name = "double",
     .about = "everything in fp64: the oracle",
     .element = FR_F64},
};
enum { PRESETS = sizeof presets / sizeof presets[0] };

const struct fr_policy *fr_policy_at(size_t index)
{
    return index < PRESETS ? &presets[index] : NULL;
}

const struct fr_policy *fr_policy_find(const char *name)
{
    for (size_t i = 0; name != NULL && i < PRESETS; i++) {
        if (strcmp(name, presets[i].name) == 0) {
            return &presets[i];
        }
    }
    return NULL;
}

int fr_is_value(uint32_t dtype)
{
    return dtype == FR_F64 || (fr_layout_of(dtype) != NULL && dtype != FR_F8_E8M0);
}

int fr_policy_ok(const struct fr_policy *p)
{
    const uint32_t optional[] = {p->raised,      p->intermediate, p->square,    p->product,
                                 p->accumulator, p->scalar,       p->scalar_add};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        if (optional[i] != 0 && !fr_is_value(optional[i])) {
            return 0;
        }
    }
    return fr_is_value(p->element) && p->mean <= FR_ROUND_THEN_MEAN &&
           p->divide <= FR_DIVIDE_RECIPROCAL && p->rsqrt <= FR_RSQRT_NARROW &&
           p->cube <= FR_CUBE_TORCH_CPU && p->order <= FR_ORDER_TORCH1_AVX512 &&
           p->overflow <= FR_OVERFLOW_SATURATE;
}

uint32_t fr_promote(uint32_t a, uint32_t b)
{
    if (a == b) {
        return a;
    }
    if (a == FR_F64 || b == FR_F64) {
        return FR_F64;
    }
    const struct fr_layout *x = fr_layout_of(a), *y = fr_layout_of(b);
    if (x->bits == y->bits) { /* fp16 and bf16, two kinds of fp8: neither holds the other */
        return FR_F32;
    }
    return x->bits > y->bits ? a : b;
}

uint32_t fr_result(const struct fr_policy *p, uint32_t raised, uint32_t operands)
{
    if (p->intermediate != 0) {
        return fr_promote(p->intermediate, fr_wide(operands) == FR_F64 ? FR_F64 : p->intermediate);
    }
    return raised && p->raised != 0 ? fr_promote(p->raised, operands) : operands;
}

struct fr_policy fr_fused_policy(const struct fr_policy *p, uint32_t input)
{
    struct fr_policy q = *p;
    uint32_t wide = fr_wide(input);
    q.raised = 0;
    q.intermediate = q.square = q.product = q.accumulator = q.scalar = q.scalar_add = wide;
    q.mean = FR_MEAN_THEN_ROUND;
    return q;
}
