/* SPDX-License-Identifier: Apache-2.0 */
/* gate: the table of engines. */
#include "match/gate.h"

static bool always(void)
{
    return true;
}

#ifdef FR_GATE_X86
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("popcnt");
}
#endif

const struct fr_gate_engine fr_gate_engines[] = {
    {"portable", fr_gate_portable, always, NULL},
#ifdef FR_GATE_X86
    {"avx2", fr_gate_avx2, has_avx2, fr_dull_avx2},
    {"avx512", fr_gate_avx512, has_avx512, fr_dull_avx2},
#endif
};
const unsigned fr_gate_engines_count = sizeof fr_gate_engines / sizeof fr_gate_engines[0];
