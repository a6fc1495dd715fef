/* SPDX-License-Identifier: Apache-2.0 */
/* choose: which 4-byte gram finds which literal. Weighted greedy set cover: few grams, rare in ordinary logs. */
#ifndef FR_MATCH_CHOOSE_H
#define FR_MATCH_CHOOSE_H

#include "base/arena.h"
#include "base/err.h"

struct fr_choice {
    uint32_t gram; /* little-endian number */
    uint16_t at;   /* its offset in the literal */
};

/* One choice per literal (each 4 bytes or longer), into ret. Deterministic. */
int fr_choose_grams(const fr_sv *literals, uint32_t n, struct fr_arena *arena, struct fr_choice *ret,
                    struct fr_err *err);

#endif
