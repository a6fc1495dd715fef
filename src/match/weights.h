/* SPDX-License-Identifier: Apache-2.0 */
/* weights: how often a key of the gate occurs in ordinary logs (weights.inc, made by
 * tools/gram-weights.py). */
#ifndef FR_MATCH_WEIGHTS_H
#define FR_MATCH_WEIGHTS_H

#include <stdint.h>

/* Expected number in 2^22 bytes, a power of two from 1 to 32768. Keys never seen share a place with
 * ones that were. */
uint32_t fr_key_weight(uint32_t key);

#endif
