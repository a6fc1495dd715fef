/* SPDX-License-Identifier: Apache-2.0 */
/* units: the inside of struct fr_input, shared by input.c (paths), walk.c (folders) and reader.c.
 * Owner: struct fr_input; paths live in its arena. Bounded: limits.max_units units; skips beyond FR_SKIPS_EACH are summed up. */
#ifndef FR_READ_UNITS_H
#define FR_READ_UNITS_H

#include "read/input.h"

#include <sys/stat.h>

#define FR_NESTING_MAX 2 /* what limits.max_nesting may ask for */
#define FR_SKIPS_EACH 1000 /* reported one by one; the rest as one line */

enum fr_item_kind { FR_ITEM_FILE, FR_ITEM_LINK, FR_ITEM_STREAM };
struct fr_item {
    struct fr_unit unit; /* first: fr_input_unit() hands out its address */
    uint64_t dev, ino;   /* 0, 0: a stream */
    bool is_stream;      /* stdin or a FIFO that was named by the user */
    bool is_link;        /* found under the name of a link */
};

struct fr_input {
    struct fr_input_limits limits;
    struct fr_arena arena;
    FR_VEC(struct fr_item) items;
    uint32_t *seen; /* open addressing: index + 1 into items, by dev and ino; power of two */
    uint32_t seen_cap;
    bool sorted, over_limit;
    /* while adding */
    fr_skip_fn skip;
    void *ctx;
    uint32_t n_skips;
};

void fr_input_skip(struct fr_input *in, fr_sv source, fr_sv why);
/* Adds one file; st is NULL for stdin. 0, or -FR_NOMEM. Duplicates and what is over the limit are skipped. */
int fr_input_add_file(struct fr_input *in, fr_sv path, const struct stat *st, enum fr_item_kind kind, struct fr_err *err);
/* Adds what is inside a folder. */
int fr_input_walk(struct fr_input *in, const char *path, struct fr_err *err);
bool fr_input_full(const struct fr_input *in);

#endif
