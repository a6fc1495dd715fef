/* SPDX-License-Identifier: Apache-2.0 */
/* weights: the table is text, one hex digit a place, so that a diff of it can be read. */
#include "match/weights.h"

static const char digits[] =
#include "match/weights.inc"
    ;

uint32_t fr_gram_weight(uint32_t gram)
{
    const char c = digits[(gram * 0x9e3779b1u) >> 16];
    return 1u << (c <= '9' ? c - '0' : c - 'a' + 10);
}
