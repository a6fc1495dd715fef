/* SPDX-License-Identifier: Apache-2.0 */
/* cpu: what __builtin_cpu_supports() cannot be asked. Only on x86. Private to numerics/. */
#ifndef FR_NUMERICS_CPU_H
#define FR_NUMERICS_CPU_H

#include <cpuid.h>
#include <stdbool.h>

/* clang 14, the one of Debian 12, does not know the word "f16c". Ask for "avx2" beside this: that
 * answer includes whether the system saves the registers. */
static inline bool fr_cpu_has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

#endif
