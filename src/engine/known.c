/* SPDX-License-Identifier: Apache-2.0 */
/* known: see known.h. Lines are found by length, dialects and first bytes; most lists have one. */
#include "engine/known.h"

/* Learning a line costs as much as parsing twenty. The first ones are learned soon, so that they pay
 * off in a source of a few hundred; where no line is like another, it stays at those. */
enum { SOON = 8, LATER = 64, SOON_N = 128 };

void fr_known_clear(struct fr_known *k)
{
    k->n = k->hand = k->n_unknown = k->n_learned = k->last = 0;
    memset(k->heads, 0, sizeof k->heads);
}

static inline unsigned head_of(fr_sv segment)
{
    uint64_t w;
    memcpy(&w, segment.p, sizeof w);
    w |= 0x0f0f0f0f0f0f0f0fu; /* digits are alike */
    w = (w ^ segment.n) * 0x9e3779b97f4a7c15u;
    return (unsigned)(w >> 56);
}

/* Lines come in runs: the one found last comes first. */
static void to_front(struct fr_known *k, unsigned head, uint8_t before, uint8_t at)
{
    k->keys[before - 1].next = k->keys[at - 1].next;
    k->keys[at - 1].next = k->heads[head];
    k->heads[head] = at;
}

struct fr_known_line *fr_known_find(struct fr_known *k, uint64_t kind, fr_sv segment,
                                    struct fr_when *ret_when)
{
    if (segment.n < FR_SHAPE_LEAST) {
        return NULL;
    }
    unsigned head = head_of(segment);
    uint8_t before = 0;
    for (uint8_t at = k->heads[head]; at != 0; before = at, at = k->keys[at - 1].next) {
        struct fr_known_key *key = &k->keys[at - 1];
        struct fr_known_line *line = &k->lines[at - 1];
        if (key->kind != kind || key->n != segment.n || !fr_shape_fits(&line->shape, segment) ||
            !fr_form_time(&line->form, segment, ret_when)) {
            continue;
        }
        if (before != 0) {
            to_front(k, head, before, at);
        }
        key->in_use = true;
        return line;
    }
    return NULL;
}

/* The key of a whole line is in use, and was found at offset. */
static struct fr_known_line *found_whole(struct fr_known *k, uint8_t at, uint64_t offset)
{
    k->keys[at - 1].in_use = true;
    k->last = at;
    k->end = offset + k->keys[at - 1].n + 1;
    return &k->lines[at - 1];
}

struct fr_known_line *fr_known_first(struct fr_known *k, fr_sv text, uint64_t offset,
                                     struct fr_when *ret_when)
{
    if (text.n < FR_SHAPE_LEAST) {
        return NULL;
    }
    for (uint8_t at = k->heads[head_of(text)]; at != 0; at = k->keys[at - 1].next) {
        struct fr_known_line *line = &k->lines[at - 1];
        if (k->keys[at - 1].n != text.n || line->whole != FR_KNOWN_WHOLE ||
            !fr_shape_fits(&line->shape, text) || !fr_form_time(&line->form, text, ret_when)) {
            continue;
        }
        if (k->last != 0 && k->end == offset) {
            k->keys[k->last - 1].then = at;
        }
        return found_whole(k, at, offset);
    }
    return NULL;
}

struct fr_known_line *fr_known_then(struct fr_known *k, fr_sv rest, struct fr_when *ret_when)
{
    uint8_t at = k->keys[k->last - 1].then;
    if (at == 0) {
        return NULL;
    }
    struct fr_known_line *line = &k->lines[at - 1];
    fr_sv segment = {rest.p, k->keys[at - 1].n};
    if (rest.n <= segment.n || rest.p[segment.n] != '\n' || line->whole != FR_KNOWN_WHOLE ||
        !fr_shape_fits(&line->shape, segment) || !fr_form_time(&line->form, segment, ret_when)) {
        return NULL;
    }
    return found_whole(k, at, k->end);
}

static void unlink_key(struct fr_known *k, uint8_t at)
{
    uint8_t *link = &k->heads[k->keys[at - 1].head];
    while (*link != at) {
        link = &k->keys[*link - 1].next;
    }
    *link = k->keys[at - 1].next;
}

/* The first one from the hand on that was not found since the hand came by. */
static uint8_t give_way(struct fr_known *k)
{
    if (k->n < FR_KNOWN) {
        return (uint8_t)++k->n;
    }
    while (k->keys[k->hand].in_use) {
        k->keys[k->hand].in_use = false;
        k->hand = (k->hand + 1) % FR_KNOWN;
    }
    uint8_t at = (uint8_t)(k->hand + 1);
    k->hand = (k->hand + 1) % FR_KNOWN;
    unlink_key(k, at);
    return at;
}

void fr_known_learn(struct fr_known *k, uint64_t kind, fr_sv segment, const struct fr_form *form)
{
    struct fr_shape shape;
    if (++k->n_unknown < (k->n_learned < SOON_N ? SOON : LATER)) {
        return;
    }
    k->n_unknown = 0;
    k->n_learned++;
    if (!fr_segment_stays_whole(segment, form->n > 0 ? form->n : 1) ||
        !fr_shape_learn(&shape, segment, kind, form->n, form->stamp, form->stamp_end)) {
        return;
    }
    uint8_t at = give_way(k), head = (uint8_t)head_of(segment);
    k->keys[at - 1] = (struct fr_known_key){kind, shape.n, k->heads[head], head, 0, true};
    k->lines[at - 1].shape = shape;
    k->lines[at - 1].form = *form;
    k->lines[at - 1].seat = NULL;
    k->lines[at - 1].whole = FR_KNOWN_UNASKED;
    k->lines[at - 1].n_found = 0;
    k->heads[head] = at;
}
