/* SPDX-License-Identifier: Apache-2.0 */
/* gate: finds every place where one of the chosen 4-byte grams stands, and counts newlines on the way.
 * One file per kind of CPU (gate_portable.c, gate_avx2.c, gate_avx512.c), one row each in gate.c; all report the same
 * places. Private to match/. */
#ifndef FR_MATCH_GATE_H
#define FR_MATCH_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FR_GATE_BITS 16

struct fr_gate {
    uint64_t bits[1u << (FR_GATE_BITS - 6)]; /* set of gram hashes */
};

struct fr_cand {
    uint32_t at;    /* offset of the gram in the chunk */
    uint32_t lines; /* newlines before it */
};

/* Candidates a call may add beyond the place where it notices that the buffer is full: one block. */
#define FR_GATE_BLOCK 64
#define FR_GATE_CANDS 1024

struct fr_gate_run {
    const uint8_t *p;
    size_t n;      /* of the chunk, below 4 GiB */
    size_t at;     /* where to go on; n when done */
    uint32_t lines; /* newlines before at */
    uint32_t n_cands;
    struct fr_cand cands[FR_GATE_CANDS];
};

/* Goes on from run->at until the end or until cands is full; n_cands starts at 0. */
typedef void (*fr_gate_fn)(const struct fr_gate *g, struct fr_gate_run *run);

struct fr_gate_engine {
    const char *name;
    fr_gate_fn fn;
    bool (*works)(void); /* on this CPU */
};
extern const struct fr_gate_engine fr_gate_engines[]; /* by enum fr_scan_engine - 1; best one last */
extern const unsigned fr_gate_engines_count;

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run);
void fr_gate_avx2(const struct fr_gate *g, struct fr_gate_run *run);
void fr_gate_avx512(const struct fr_gate *g, struct fr_gate_run *run);

static inline uint32_t fr_gram_at(const uint8_t *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap32(w);
#endif
    return w;
}

static inline uint32_t fr_gate_hash(uint32_t gram)
{
    return (gram * 0x9e3779b1u) >> (32 - FR_GATE_BITS);
}

static inline bool fr_gate_has(const struct fr_gate *g, uint32_t gram)
{
    const uint32_t h = fr_gate_hash(gram);
    return (g->bits[h >> 6] >> (h & 63)) & 1;
}

#endif
