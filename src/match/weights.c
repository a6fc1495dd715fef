/* SPDX-License-Identifier: Apache-2.0 */
/* weights: the table is text, one hex digit a place, so that a diff of it can be read. */
#include "match/weights.h"

#include "match/gate.h"

static const char digits[] =
#include "match/weights.inc"
    ;

uint32_t fr_key_weight(uint32_t key)
{
    const char c = digits[(key * FR_KEY_FACTOR) >> 16];
    return 1u << (c <= '9' ? c - '0' : c - 'a' + 10);
}
