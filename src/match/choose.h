/* SPDX-License-Identifier: Apache-2.0 */
/* choose: which keys find which literal. A literal starts at any distance (0 to 3) from the places
 * the gate looks at, so it needs a key for each: at offsets whose remainders by 4 are all
 * different. Many offsets qualify; those with keys that are rare in ordinary logs and shared with
 * other literals are taken. */
#ifndef FR_MATCH_CHOOSE_H
#define FR_MATCH_CHOOSE_H

#include "base/arena.h"
#include "base/err.h"

struct fr_choice {
    int16_t at; /* offset of the key in the literal; -1 when the byte before the literal is part of
                   it */
};

/* Four choices per literal (each 5 bytes or longer), by remainder, into
 * ret[4 * n]. Deterministic. */
int fr_choose_keys(const fr_sv *literals, uint32_t n, struct fr_arena *arena, struct fr_choice *ret,
                   struct fr_err *err);

#endif
