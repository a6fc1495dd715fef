/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the tables behind struct fr_rules, private to match/ and to the build tool that writes them as const data.
 * Every literal (of a signal or a hook) is found through one of its 4-byte grams: the gate finds the gram, the gram's
 * entries name the literals that hold it and where. */
#ifndef FR_MATCH_RULES_H
#define FR_MATCH_RULES_H

#include "failure/parse.h"
#include "match/gate.h"
#include "match/scan.h"

#include <pthread.h>

struct fr_literal {
    const char *text;
    uint32_t n;
    uint32_t first_owner, n_owners; /* signals, in fr_rules.owners */
    uint32_t traces;
    uint64_t facts, metrics;
};

/* One literal that holds a gram. The first look compares 8 bytes inside the literal (fewer when it is shorter). */
struct fr_entry {
    uint64_t word, mask;
    uint32_t literal;
    uint16_t at;      /* offset of the gram in the literal */
    uint16_t word_at; /* offset of word in the literal */
};

struct fr_gram {
    uint32_t gram; /* the 4 bytes as a little-endian number */
    uint32_t first, n; /* entries */
};

/* What changes after loading: the database is unpacked at the first regex that is needed. */
struct fr_rules_state {
    pthread_mutex_t lock;
    void *database; /* hs_database_t */
};

struct fr_rules {
    const struct fr_library *library;
    const struct fr_gate *gate;
    const struct fr_literal *literals;
    const struct fr_entry *entries;
    const struct fr_gram *grams;   /* hash table: n = 0 is a free place */
    const uint16_t *owners;
    uint32_t n_literals, n_entries, n_owners, n_grams;
    uint32_t gram_mask;            /* size of grams - 1 */
    const unsigned char *database; /* serialized; NULL when no signal has a regex */
    size_t database_size;
    struct fr_rules_state *state;
    struct fr_arena *arena;        /* what fr_rules_free releases; NULL for built-in rules */
};

static inline uint32_t fr_gram_place(uint32_t gram, uint32_t mask)
{
    return ((gram * 0x85ebca6bu) >> 15) & mask;
}

static inline const struct fr_gram *fr_gram_find(const struct fr_rules *r, uint32_t gram)
{
    for (uint32_t i = fr_gram_place(gram, r->gram_mask);; i = (i + 1) & r->gram_mask) {
        const struct fr_gram *const g = &r->grams[i];
        if (g->n == 0) {
            return NULL;
        }
        if (g->gram == gram) {
            return g;
        }
    }
}

/* Everything but the database; takes `database` (already serialized, in the same arena) as it is. build.c */
int fr_rules_build(const struct fr_library *lib, struct fr_hooks hooks, struct fr_arena *arena,
                   struct fr_rules *ret, struct fr_err *err);
/* Compiles all regexes of the library to one serialized database in the arena; NULL, 0 when there are none. A regex that
 * does not compile is reported through complain, and then the result is -FR_SYNTAX. compile.c, needs Vectorscan's compiler */
int fr_database_compile(const struct fr_library *lib, struct fr_arena *arena, struct fr_complain *complain,
                        const unsigned char **ret, size_t *ret_n, struct fr_err *err);
/* Complains about every capture that PCRE2 does not take. captures.c */
void fr_captures_check(const struct fr_library *lib, struct fr_complain *complain);
/* The unpacked database, made at the first call. rules.c */
int fr_rules_database(const struct fr_rules *r, void **ret, struct fr_err *err);

#endif
