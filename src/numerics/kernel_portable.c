/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_portable: for any CPU, and the reference of the others: the compiler's own vectors of four
 * floats, which it takes apart where the CPU has none. */
#include "numerics/kernel.h"

#include <math.h>

#define LANES 4

typedef float V __attribute__((vector_size(16)));
typedef uint32_t bits4 __attribute__((vector_size(16)));

#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))

/* A call of these is little beside what they do, and inlined they would be most of the library. */
#define APART static __attribute__((noinline))

static inline V v_set(float f)
{
    return (V){f, f, f, f};
}

static inline V select_of(bits4 mask, V yes, V no)
{
    return (V)(((bits4)yes & mask) | ((bits4)no & ~mask));
}

static inline V v_max(V a, V b)
{
    return select_of((bits4)(a > b), a, b);
}

static inline V v_keep(V v, const uint8_t *p)
{
    const bits4 bytes = {p[0], p[1], p[2], p[3]};
    return select_of((bits4)(bytes != 0), v, v_set(-INFINITY));
}

static inline V v_pow2(V z)
{
    return (V)(((bits4)z + 127) << 23);
}

static inline V v_load_f32(const uint8_t *p)
{
    V v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void v_store_f32(uint8_t *p, V v)
{
    memcpy(p, &v, sizeof v);
}

APART V v_load_f16(const uint8_t *p)
{
    return (V){fr_element_get(FR_F16, p, 0), fr_element_get(FR_F16, p, 1),
               fr_element_get(FR_F16, p, 2), fr_element_get(FR_F16, p, 3)};
}

APART V v_load_bf16(const uint8_t *p)
{
    return (V){fr_element_get(FR_BF16, p, 0), fr_element_get(FR_BF16, p, 1),
               fr_element_get(FR_BF16, p, 2), fr_element_get(FR_BF16, p, 3)};
}

APART void v_store_f16(uint8_t *p, V v)
{
    for (unsigned l = 0; l < LANES; l++) {
        fr_element_put(FR_F16, p, l, v[l]);
    }
}

APART void v_store_bf16(uint8_t *p, V v)
{
    for (unsigned l = 0; l < LANES; l++) {
        fr_element_put(FR_BF16, p, l, v[l]);
    }
}

static inline void v_fold(const V a[FR_GROUP / LANES], float f[8])
{
    v_store_f32((uint8_t *)f, v_add(v_add(a[0], a[4]), v_add(a[2], a[6])));
    v_store_f32((uint8_t *)(f + 4), v_add(v_add(a[1], a[5]), v_add(a[3], a[7])));
}

#define KERNELS fr_kernels_portable
#include "numerics/kernel_body.h"
