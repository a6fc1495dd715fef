/* SPDX-License-Identifier: Apache-2.0 */
#include "format/trace_tag.h"

#include <string.h>

#include "format/lex.h"
#include "format/trace_line.h"

static fr_sv view(const struct fr_tag *tag)
{
    return (fr_sv){tag->text, tag->n};
}

/* Length of the clock that s begins with, "114.62" or "12:03:04,5": a number of parts. 0: none. */
static size_t clock_len(fr_sv s)
{
    size_t n = 0;
    bool parts = false;
    while (n < s.n && (fr_is_digit(s.p[n]) || (n > 0 && strchr(".:,", s.p[n]) != NULL && fr_is_digit(fr_lex_peek(s, n + 1))))) {
        parts = parts || !fr_is_digit(s.p[n]);
        n++;
    }
    return parts ? n : 0;
}

/* Takes the tag off the front of *text. A clock in it may have gone on. */
static bool take_tag(fr_sv *text, fr_sv tag)
{
    fr_sv at = *text;
    while (tag.n > 0) {
        size_t was = clock_len(tag), is = was > 0 ? clock_len(at) : 0;
        if (is == 0 && (at.n == 0 || at.p[0] != tag.p[0])) {
            return false;
        }
        at = fr_sv_skip(at, is > 0 ? is : 1);
        tag = fr_sv_skip(tag, is > 0 ? was : 1);
    }
    *text = at;
    return true;
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
    return tag->n > 0 && take_tag(&text, view(tag)) &&
           fr_trace_line_of(text, &p) == FR_LINE_FRAME;
}

const struct fr_tag *fr_tags_learn(struct fr_tags *t, const struct fr_tag *tag)
{
    for (uint32_t i = 0; i < t->n; i++) {
        fr_sv again = view(tag);
        if (take_tag(&again, view(&t->v[i])) && again.n == 0) {
            return &t->v[i];
        }
    }
    if (t->n < FR_TAGS_MAX) {
        t->v[t->n] = *tag;
        return &t->v[t->n++];
    }
    return tag;
}

uint64_t fr_tag_speaker(const struct fr_tag *tag, uint64_t speaker)
{
    return speaker ^ fr_sv_hash(view(tag)) * 31;
}

fr_sv fr_tags_strip(const struct fr_tags *t, fr_sv text, uint64_t *speaker)
{
    for (uint32_t i = 0; i < t->n; i++) {
        if (take_tag(&text, view(&t->v[i]))) {
            *speaker = fr_tag_speaker(&t->v[i], *speaker);
            break;
        }
    }
    return text;
}
