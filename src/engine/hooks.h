/* SPDX-License-Identifier: Apache-2.0 */
/* hooks: what formats, metric dialects and the trace joiner want the gate to find, in one table.
 * The build tool compiles the same table into the built-in rules, so the module numbers agree by
 * construction. */
#ifndef FR_ENGINE_HOOKS_H
#define FR_ENGINE_HOOKS_H

#include "match/scan.h"

/* Built once on first use; static memory. Thread-safe after the first call (the engine makes it
 * before starting threads). */
struct fr_hooks fr_engine_hooks(void);

#endif
