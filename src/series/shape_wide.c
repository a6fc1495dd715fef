/* SPDX-License-Identifier: Apache-2.0 */
/* shape_wide: how four numbers are read at once, worked out when a shape is learned. */
#include "series/shape_wide.h"

#include "series/num.h"

enum { WIDE = 16, NONE = 0x80, TEN_MAX = 22 };

static void set_ten(struct fr_shape *s, unsigned slot, int ten)
{
    struct fr_shape_four *four = &s->fours[slot / 4];
    const bool is_exact = ten >= -TEN_MAX && ten <= TEN_MAX && !s->slots[slot].is_long;
    const unsigned bit = 1u << slot;
    four->by[slot % 4] = is_exact && ten < 0 ? fr_num_double10[-ten] : 1;
    four->times[slot % 4] = is_exact && ten > 0 ? fr_num_double10[ten] : 1;
    s->by_itself = (uint16_t)(is_exact ? s->by_itself & ~bit : s->by_itself | bit);
}

void fr_shape_exponent(struct fr_shape *s, unsigned slot, const char *p)
{
    const struct fr_shape_slot *const e = &s->slots[slot];
    const int by = (p[0] - '0') * 10 + (p[1] - '0');
    set_ten(s, slot, e->point + (e->down ? -by : by));
}

/* The places of its digits, the last one last. */
static void pick(struct fr_shape_four *four, unsigned k, unsigned begin, unsigned end,
                 unsigned point)
{
    unsigned to = WIDE;
    four->at[k] = (uint16_t)(end < WIDE ? 0 : end - WIDE);
    for (unsigned i = end; i > begin; i--) {
        if (i - 1 != point) {
            four->pick[k][--to] = (uint8_t)(i - 1 - four->at[k]);
        }
    }
}

static size_t offset_of(unsigned field)
{
    static const size_t places[VALUE] = {
        offsetof(struct fr_point, step),      offsetof(struct fr_point, max_step),
        offsetof(struct fr_point, global_batch), offsetof(struct fr_point, epoch),
        offsetof(struct fr_point, attempted), offsetof(struct fr_point, best)};
    return field < VALUE ? places[field]
                         : offsetof(struct fr_point, value) + (field - VALUE) * sizeof(double);
}

static void widen_slot(struct fr_shape *s, unsigned slot)
{
    struct fr_shape_slot *e = &s->slots[slot];
    struct fr_shape_four *four = &s->fours[slot / 4];
    const unsigned end = e->at + 8u - e->shift / 8u, k = slot % 4;
    four->last[k] = (e->minus ? -1 : 1) * (e->milli ? 1e-3 : 1);
    if (!e->is_long) {
        pick(four, k, s->more[slot].number, end,
             e->point != 0 ? end - 1 - (unsigned)-e->point : UINT32_MAX);
    }
    set_ten(s, slot, e->point);
    s->to[slot] = (uint8_t)(offset_of(e->field) / 8);
    s->n_whole = (uint8_t)(s->n_whole + (e->field <= BATCH)); /* slots are in the order of fields */
    s->with_exponent = (uint16_t)(s->with_exponent | (e->exponent != 0 ? 1u << slot : 0));
    e->seen = NEVER_SEEN;
}

void fr_shape_widen(struct fr_shape *s)
{
    s->with_exponent = s->by_itself = 0;
    s->n_whole = 0;
    for (unsigned i = 0; i < FR_SHAPE_SLOTS / 4; i++) {
        struct fr_shape_four *four = &s->fours[i];
        memset(four, 0, sizeof *four);
        memset(four->pick, NONE, sizeof four->pick);
        for (unsigned k = 0; k < 4; k++) {
            four->by[k] = four->times[k] = four->last[k] = 1;
        }
    }
    for (unsigned i = 0; i < s->n_slots; i++) {
        widen_slot(s, i);
    }
}
