/* SPDX-License-Identifier: Apache-2.0 */
/* hooks-none: no hooks, for a tree without formats and series. */
#include "engine/hooks.h"

struct fr_hooks fr_engine_hooks(void)
{
    return (struct fr_hooks){NULL, 0};
}
