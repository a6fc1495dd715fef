/* SPDX-License-Identifier: Apache-2.0 */
/* trace_tag: prefixes that no dialect knows ("[nodeA:1] ", "w3> "), learnt from tracebacks: what
 * stands before the header and again before the first frame is a prefix of its writer. */
#ifndef FR_FORMAT_TRACE_TAG_H
#define FR_FORMAT_TRACE_TAG_H

#include "base/view.h"

enum { FR_TAG_BYTES = 48, FR_TAGS_MAX = 64 };

struct fr_tag {
    char text[FR_TAG_BYTES];
    uint8_t n; /* 0: none */
};
struct fr_tags {
    struct fr_tag v[FR_TAGS_MAX];
    uint32_t n;
};

/* What stands before the header of a traceback, when it is short enough to be a prefix. */
struct fr_tag fr_tag_of_header(fr_sv text);
/* text is the first frame below the header that bore the tag. */
bool fr_tag_on_frame(const struct fr_tag *tag, fr_sv text);
/* Keeps the tag, unless it is known or FR_TAGS_MAX are; what is kept of it. A clock in it goes on from line to line
 * ("t=114.62 | stderr | "): tags that differ in it only are one. */
const struct fr_tag *fr_tags_learn(struct fr_tags *t, const struct fr_tag *tag);
/* text without its tag, and *speaker made another one by it; text itself when it bears none. */
fr_sv fr_tags_strip(const struct fr_tags *t, fr_sv text, uint64_t *speaker);
/* Whose lines with this tag are, of all that this speaker writes. */
uint64_t fr_tag_speaker(const struct fr_tag *tag, uint64_t speaker);

#endif
