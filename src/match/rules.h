/* SPDX-License-Identifier: Apache-2.0 */
/* rules: the tables behind struct fr_rules, private to match/ and to the build tool that writes
 * them as const data. Every literal (of a signal or a hook) is found through four keys of the gate:
 * a key's entries name the literals it may belong to and where in them it stands. */
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

/* One literal that a key may belong to. The first look compares the 4 bytes before the key and the
 * 4 behind it, as far as the literal has them. */
struct fr_entry {
    uint64_t beside, mask;
    uint16_t literal;
    int16_t at; /* offset of the key in the literal, -1 to 251 */
    uint16_t n; /* length of the literal */
};

struct fr_place { /* n = 0: free */
    uint32_t key;
    uint32_t first : 20, n : 12; /* entries */
    uint32_t next, last;         /* bit (byte & 31): what stands behind and before it in them */
};

/* Keys to places without collisions: a bucket's shift moves its keys to places of their own (hash
 * and displace), so that looking one up is two loads and one comparison, and nothing to guess. */
#define FR_SHIFT_BITS 12

/* Regexes are compiled in groups of up to FR_GROUP_SIZE: one database for all takes twice as long
 * to ask, one for each takes ten times the room. */
#define FR_GROUP_SIZE 16
#define FR_GROUP_NONE UINT16_MAX
struct fr_group { /* a serialized database in fr_rules.databases */
    uint32_t at, n;
};

/* What changes after loading: a database is unpacked when one of its regexes is first needed. */
struct fr_rules_state {
    pthread_mutex_t lock;
    void **unpacked; /* by group: hs_database_t */
};

struct fr_rules {
    const struct fr_library *library;
    const struct fr_gate *gate;
    const struct fr_literal *literals;
    const struct fr_entry *entries;
    const struct fr_place *places;
    const uint16_t *shifts; /* 1 << FR_SHIFT_BITS */
    const uint16_t *owners;
    const uint16_t *group_of; /* by signal; FR_GROUP_NONE: no regex */
    const struct fr_group *groups;
    const unsigned char *databases; /* serialized, one after the other */
    size_t databases_size;
    uint32_t n_literals, n_entries, n_owners, n_keys, n_groups;
    uint32_t place_mask; /* number of places - 1 */
    struct fr_rules_state *state;
    struct fr_arena *arena; /* what fr_rules_free releases; NULL for built-in rules */
};

static inline uint32_t fr_shift_of(uint32_t key)
{
    return (key * 0x85ebca6bu) >> (32 - FR_SHIFT_BITS);
}

static inline uint32_t fr_place_of(uint32_t key, uint32_t shift, uint32_t mask)
{
    return (((key * 0xc2b2ae35u) >> 13) + shift * 0x9e3779b1u) & mask;
}

/* The place where the key is when it is one of ours: compare. */
static inline const struct fr_place *fr_place_for(const struct fr_rules *r, uint32_t key)
{
    return &r->places[fr_place_of(key, r->shifts[fr_shift_of(key)], r->place_mask)];
}

static inline uint64_t fr_two_words(uint32_t first, uint32_t second)
{
    return first | (uint64_t)second << 32;
}

/* Whether the bytes beside a key make one of its entries possible. */
static inline uint32_t fr_place_may(const struct fr_place *p, uint32_t last, uint32_t next)
{
    return (p->next >> (next & 31)) & (p->last >> (last & 31)) & 1;
}

/* Everything but the databases. build.c */
int fr_rules_build(const struct fr_library *lib, struct fr_hooks hooks, struct fr_arena *arena,
                   struct fr_rules *ret, struct fr_err *err);
/* Compiles every regex of the library into r->groups and r->databases. What does not compile is
 * reported through complain, and then the result is -FR_SYNTAX. compile.c, needs Vectorscan's
 * compiler */
int fr_rules_compile_regexes(struct fr_rules *r, struct fr_arena *arena,
                             struct fr_complain *complain, struct fr_err *err);
/* Complains about every capture that PCRE2 does not take. captures.c */
void fr_captures_check(const struct fr_library *lib, struct fr_complain *complain);
/* The unpacked database of a group. rules.c */
int fr_rules_database(const struct fr_rules *r, uint16_t group, void **ret, struct fr_err *err);

#endif
