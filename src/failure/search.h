/* SPDX-License-Identifier: Apache-2.0 */
/* search: words to failures, best first. Case is ignored; a word may be the beginning of a longer
 * one; a failure must hold every word somewhere. Ids and titles weigh more than tags, tags more
 * than the page. */
#ifndef FR_FAILURE_SEARCH_H
#define FR_FAILURE_SEARCH_H

#include "failure/library.h"

struct fr_found {
    uint16_t failure; /* index in the library */
    uint32_t score;
};

/* Fills at most max; returns how many. Ties by id. query: at most 16 words count. */
unsigned fr_library_search(const struct fr_library *lib, fr_sv query, struct fr_found *ret,
                           unsigned max);

#endif
