/* SPDX-License-Identifier: Apache-2.0 */
/* listing: a fact that a program prints over several lines: torchrun's launch
 * configuration, whose nodes and processes make the world. Owned by the tracer,
 * which sees every line while one is open. Bounded: four at a time; any line
 * that is no item ends one. */
#ifndef FR_FORMAT_LISTING_H
#define FR_FORMAT_LISTING_H

#include "format/format.h"

enum { FR_LISTING_MAX = 4, FR_LISTING_TEXT = 256, FR_LISTING_RANKS = 128 };
enum fr_listing_state { FR_LISTING_NONE, FR_LISTING_OPEN, FR_LISTING_DONE };

struct fr_listing {
    uint8_t state; /* enum fr_listing_state */
    uint32_t idle;
    uint64_t speaker;
    struct fr_who who; /* its names are dropped: they would not outlive the line */
    struct fr_when when, outer;
    uint64_t offset, line;
    char text[FR_LISTING_TEXT]; /* the head line */
    size_t text_n;
    int32_t min_nodes, max_nodes, per_node;
    int32_t ranks[FR_LISTING_RANKS]; /* Horovod's */
    uint32_t n_ranks;
    bool is_ranks;
};
struct fr_listings {
    struct fr_listing v[FR_LISTING_MAX];
};

bool fr_listing_opens(fr_sv text); /* text is the head of a list */
bool fr_listings_open(const struct fr_listings *set);
/* One line of a speaker: an item, or the end, or a head, or nothing. */
void fr_listings_feed(struct fr_listings *set, const struct fr_record *rec, fr_sv text,
                      uint64_t speaker);
/* After each record; at_end ends all. */
void fr_listings_age(struct fr_listings *set, bool at_end);
/* 1 = *ret filled with one that is done, 0 = none is. */
int fr_listings_take(struct fr_listings *set, struct fr_arena *out, struct fr_trace_done *ret);

#endif
