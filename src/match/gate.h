/* SPDX-License-Identifier: Apache-2.0 */
/* gate: finds the places where a literal may stand, and counts newlines on the way.
 * Only every fourth byte is looked at: 4 bytes from there make a key, and a literal of 5 bytes or
 * more is sure to show one of four keys of its own at one of those places, whatever its alignment
 * (choose.h picks them). A table of 64 KiB says at the key's hash which bytes may follow. One file
 * per kind of CPU, one row each in gate.c; all report the same places. Private to match/. */
#ifndef FR_MATCH_GATE_H
#define FR_MATCH_GATE_H

#include "base/load.h"
#include "match/dull.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FR_GATE_STRIDE      4
#define FR_LITERAL_SHORTEST 5

/* Of the outer two bytes only 5 bits count, so that a short literal with one free byte beside it
 * needs 32 keys, not 256. */
#define FR_KEY_MASK   0x1fffff1fu
#define FR_KEY_FACTOR 0x9e3779b1u

#define FR_GATE_BITS  16

/* At the hash of each key: bit (next byte & 7) for what may follow it. */
struct fr_gate {
    uint8_t next[1u << FR_GATE_BITS];
};

#define FR_GATE_BLOCK  64 /* a bit for each of its newlines fits a word */
#define FR_GATE_BATCH  4096 /* bytes one call goes through, and up to a block more */
#define FR_GATE_BLOCKS (FR_GATE_BATCH / FR_GATE_BLOCK)
#define FR_GATE_CANDS  (FR_GATE_BATCH / FR_GATE_STRIDE + 32)

struct fr_gate_run {
    const uint8_t *p;
    size_t n;       /* of the chunk, below 4 GiB */
    size_t at;      /* where to go on; n when done */
    size_t upto;    /* from there on nothing need be looked at yet */
    uint32_t lines; /* newlines before at */
    uint32_t from;  /* where the batch began */
    uint32_t lines_at[FR_GATE_BLOCKS + 2]; /* newlines before each block of it, */
    uint64_t newlines[FR_GATE_BLOCKS + 2]; /* and a bit for each one in it */
    uint32_t n_cands;
    uint32_t cands[FR_GATE_CANDS]; /* offsets of keys in the chunk, multiples of 4 */
};

/* Goes on from run->at for one batch, whose candidates it puts into run. */
typedef void (*fr_gate_fn)(const struct fr_gate *g, struct fr_gate_run *run);

struct fr_gate_engine {
    const char *name;
    fr_gate_fn fn;
    bool (*works)(void); /* on this CPU */
    fr_dull_fn dull;     /* NULL: none that is faster */
};
extern const struct fr_gate_engine
    fr_gate_engines[]; /* by enum fr_scan_engine - 1; best one last */
extern const unsigned fr_gate_engines_count;

void fr_gate_portable(const struct fr_gate *g, struct fr_gate_run *run);
void fr_gate_avx2(const struct fr_gate *g, struct fr_gate_run *run);
void fr_gate_avx512(const struct fr_gate *g, struct fr_gate_run *run);

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

static inline uint32_t fr_gate_hash(uint32_t key)
{
    return (key * FR_KEY_FACTOR) >> (32 - FR_GATE_BITS);
}

static inline bool fr_gate_has(const struct fr_gate *g, uint32_t key, uint32_t next)
{
    return (g->next[fr_gate_hash(key)] >> (next & 7)) & 1;
}

/* Newlines before `at`, a multiple of 4 in the last batch. */
static inline uint32_t fr_gate_lines(const struct fr_gate_run *run, uint32_t at)
{
    const uint32_t block = (at - run->from) / FR_GATE_BLOCK;
    const uint64_t before = (UINT64_C(1) << (at - run->from) % FR_GATE_BLOCK) - 1;
    return run->lines_at[block] + (uint32_t)__builtin_popcountll(run->newlines[block] & before);
}

/* Blocks need 4 bytes behind them; what is left at the end of a chunk is for fr_gate_tail. */
#define FR_GATE_BEHIND 4

/* The last bytes of a chunk, fewer than a block and what it needs behind it: all engines end with
 * it. */
static inline void fr_gate_tail(const struct fr_gate *g, struct fr_gate_run *run)
{
    for (; run->at < run->n; run->at++) {
        const uint32_t next = run->n - run->at > 4 ? run->p[run->at + 4] : 0;
        const size_t block = (run->at - run->from) / FR_GATE_BLOCK;
        const size_t in_block = (run->at - run->from) % FR_GATE_BLOCK;
        const uint64_t is_newline = run->p[run->at] == '\n';
        if (in_block == 0) {
            run->lines_at[block] = run->lines;
            run->newlines[block] = 0;
        }
        run->newlines[block] |= is_newline << in_block;
        if (run->at % FR_GATE_STRIDE == 0 &&
            fr_gate_has(g, fr_key_at(run->p, run->n, run->at), next)) {
            run->cands[run->n_cands++] = (uint32_t)run->at;
        }
        run->lines += (uint32_t)is_newline;
    }
}

#endif
