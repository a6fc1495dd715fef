/* SPDX-License-Identifier: Apache-2.0 */
/* own_tag: the tag that a training script made up for its ranks ("[R2] ", "worker 3 - ", "<1> ", "(2/8) "). No single line proves
 * one: "[2/8]" may as well count batches. Many lines do, so it is learned from the head of a source and peeled from there on. */
#ifndef FR_FORMAT_OWN_TAG_H
#define FR_FORMAT_OWN_TAG_H

#include "format/format.h"

enum { FR_OWN_TAG_BYTES = 24 };

struct fr_own_tag {
    char before[FR_OWN_TAG_BYTES], after[FR_OWN_TAG_BYTES]; /* the number */
    uint8_t n_before, n_after;
    uint8_t number; /* enum fr_own_number */
    int32_t of;     /* "/8": what follows the number; -1: nothing does */
};
enum fr_own_number { FR_OWN_NONE, FR_OWN_RANK, FR_OWN_LOCAL_RANK, FR_OWN_TASK };

/* Learns from whole lines, best the first tens of KiB of a source. False: its lines bear no such tag, and *ret is empty.
 * ctx->own is not looked at; its scratch is used. */
bool fr_own_tag_learn(const struct fr_peel_ctx *ctx, fr_sv head, struct fr_own_tag *ret);
/* "rank3", "worker-3", "R2": a word for a process and its number, which is not the name of a logger. */
bool fr_own_tag_like(fr_sv name);

#endif
