/* SPDX-License-Identifier: Apache-2.0 */
#include "format/trace_tag.h"

#include <string.h>

#include "format/trace_line.h"

static fr_sv view(const struct fr_tag *tag)
{
    return (fr_sv){tag->text, tag->n};
}

struct fr_tag fr_tag_of_header(fr_sv text)
{
    struct fr_tag tag = {.n = 0};
    size_t at = fr_sv_find(text, FR_SV("Traceback (most recent call last):"));
    if (at != FR_NPOS && at > 0 && at <= FR_TAG_BYTES) {
        memcpy(tag.text, text.p, at);
        tag.n = (uint8_t)at;
    }
    return tag;
}

bool fr_tag_on_frame(const struct fr_tag *tag, fr_sv text)
{
    struct fr_line_parts p;
    return tag->n > 0 && fr_sv_take(&text, view(tag)) &&
           fr_trace_line_of(text, &p) == FR_LINE_FRAME;
}

void fr_tags_learn(struct fr_tags *t, const struct fr_tag *tag)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (fr_sv_eq(view(&t->v[i]), view(tag))) {
            return;
        }
    }
    if (t->n < FR_TAGS_MAX) {
        t->v[t->n++] = *tag;
    }
}

uint64_t fr_tag_speaker(const struct fr_tag *tag, uint64_t speaker)
{
    return speaker ^ fr_sv_hash(view(tag)) * 31;
}

fr_sv fr_tags_strip(const struct fr_tags *t, fr_sv text, uint64_t *speaker)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (fr_sv_take(&text, view(&t->v[i]))) {
            *speaker = fr_tag_speaker(&t->v[i], *speaker);
            break;
        }
    }
    return text;
}
