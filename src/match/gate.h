/* SPDX-License-Identifier: Apache-2.0 */
/* gate: finds the places where a literal may stand, and counts newlines on the way.
 * Only every fourth byte is looked at: 4 bytes from there make a key, and a literal of 5 bytes or more is sure to show
 * one of four keys of its own at one of those places, whatever its alignment (choose.h picks them). A key's hash is
 * looked up in a table of 64 KiB. One file per kind of CPU, one row each in gate.c; all report the same places.
 * Private to match/. */
#ifndef FR_MATCH_GATE_H
#define FR_MATCH_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FR_GATE_STRIDE 4
#define FR_LITERAL_SHORTEST 5

/* Of the outer two bytes only 5 bits count, so that a short literal with one free byte beside it needs 32 keys, not 256. */
#define FR_KEY_MASK 0x1fffff1fu
#define FR_KEY_FACTOR 0x9e3779b1u

/* table[product >> 16] has bit (product >> 13 & 7) for each key in the set. */
struct fr_gate {
    uint8_t table[1u << 16];
};

struct fr_cand {
    uint32_t at;    /* offset of the key in the chunk, a multiple of 4 */
    uint32_t lines; /* newlines before it */
};

#define FR_GATE_BLOCK 64 /* bytes between two looks at whether cands is full */
#define FR_GATE_CANDS 1024

struct fr_gate_run {
    const uint8_t *p;
    size_t n;       /* of the chunk, below 4 GiB */
    size_t at;      /* where to go on; n when done */
    uint32_t lines; /* newlines before at */
    uint32_t n_cands;
    struct fr_cand cands[FR_GATE_CANDS];
};

/* Goes on from run->at until the end or until cands is nearly full; n_cands starts at 0. */
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

static inline uint32_t fr_load32(const void *p)
{
    uint32_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap32(w);
#endif
    return w;
}

static inline uint32_t fr_key(uint32_t w)
{
    return w & FR_KEY_MASK;
}

/* The key at `at`; past the end of the chunk there are zeros. */
static inline uint32_t fr_key_at(const uint8_t *p, size_t n, size_t at)
{
    if (n - at >= 4) {
        return fr_key(fr_load32(p + at));
    }
    uint8_t last[4] = {0};
    memcpy(last, p + at, n - at);
    return fr_key(fr_load32(last));
}

static inline bool fr_gate_has(const struct fr_gate *g, uint32_t key)
{
    const uint32_t product = key * FR_KEY_FACTOR;
    return (g->table[product >> 16] >> (product >> 13 & 7)) & 1;
}

/* The last bytes of a chunk, fewer than a block: all engines end with it. */
static inline void fr_gate_tail(const struct fr_gate *g, struct fr_gate_run *run)
{
    for (; run->at < run->n; run->at++) {
        if (run->at % FR_GATE_STRIDE == 0 && fr_gate_has(g, fr_key_at(run->p, run->n, run->at))) {
            run->cands[run->n_cands++] = (struct fr_cand){(uint32_t)run->at, run->lines};
        }
        run->lines += run->p[run->at] == '\n';
    }
}

/* Room for the candidates of one more block and of the tail. */
static inline bool fr_gate_room(const struct fr_gate_run *run)
{
    return run->n_cands <= FR_GATE_CANDS - 2 * FR_GATE_BLOCK / FR_GATE_STRIDE;
}

#endif
