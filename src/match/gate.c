/* SPDX-License-Identifier: Apache-2.0 */
/* gate: the table of engines. */
#include "match/gate.h"

static bool always(void)
{
    return true;
}

const struct fr_gate_engine fr_gate_engines[] = {
    {"portable", fr_gate_portable, always},
};
const unsigned fr_gate_engines_count = sizeof fr_gate_engines / sizeof fr_gate_engines[0];
