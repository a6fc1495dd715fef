/* SPDX-License-Identifier: Apache-2.0 */
/* load: little-endian words from any place in memory. */
#ifndef FR_BASE_LOAD_H
#define FR_BASE_LOAD_H

#include <stdint.h>
#include <string.h>

static inline uint32_t fr_load32(const void *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap32(w);
#endif
    return w;
}

static inline uint64_t fr_load64(const void *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

#endif
