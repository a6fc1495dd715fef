/* SPDX-License-Identifier: Apache-2.0 */
/* dull: see dull.h. How a shape is learnt, and the proof that no literal has place in it: for each
 * byte there is a set of the places where it may stand, and a literal is walked through them as a
 * string is through a nondeterministic automaton, all its places at once. */
#include "match/dull.h"

#include "base/alloc.h"
#include "match/rules.h"

/* A proof costs as much as gating two hundred lines: it waits for so many that half of it would have
 * been paid off. */
enum { ENOUGH = 64, AGAIN = 8, FAILS_MAX = 8, WORDS = FR_DULL_BYTES / 64 };

struct places {
    uint64_t of[128][WORDS]; /* by byte */
    struct fr_dull_bytes any;
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(uint8_t c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_word(uint8_t c)
{
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}

static void add_byte(struct fr_dull_bytes *b, uint8_t c)
{
    b->set[c / 64 & 1] |= UINT64_C(1) << c % 64;
    b->others |= c >= 128;
}

static void may_stand(struct places *p, uint8_t c, unsigned at)
{
    p->of[c][at / 64] |= UINT64_C(1) << at % 64;
    add_byte(&p->any, c);
}

static void find_places(const uint8_t *like, unsigned n, struct places *p)
{
    *p = (struct places){0};
    for (unsigned i = 0; i < n; i++) {
        if (like[i] < 0x80) {
            may_stand(p, like[i], i);
            continue;
        }
        for (uint8_t c = '0'; c <= '9'; c++) {
            may_stand(p, c, i);
        }
        for (uint8_t c = 'a'; c <= 'f' && like[i] == FR_DULL_HEX; c++) {
            may_stand(p, c, i);
        }
    }
}

static bool has_place(const struct places *p, const uint8_t *text, uint32_t n)
{
    uint64_t at[WORDS];
    memcpy(at, p->of[text[0]], sizeof at);
    for (uint32_t i = 1; i < n; i++) {
        uint64_t some = 0, carry = 0;
        for (unsigned k = 0; k < WORDS; k++) {
            const uint64_t next = at[k] >> 63;
            at[k] = (at[k] << 1 | carry) & p->of[text[i]][k];
            carry = next;
            some |= at[k];
        }
        if (some == 0) {
            return false;
        }
    }
    return true;
}

/* The bytes of each literal: most have one that a shape has nowhere. */
static bool know_literals(struct fr_dull *d, const struct fr_rules *r)
{
    if (d->literals != NULL) {
        return true;
    }
    d->literals = fr_calloc(r->n_literals + 1, sizeof d->literals[0]);
    for (uint32_t i = 0; d->literals != NULL && i < r->n_literals; i++) {
        const struct fr_literal *l = &r->literals[i];
        for (uint32_t k = 0; k < l->n; k++) {
            add_byte(&d->literals[i], (uint8_t)l->text[k]);
        }
    }
    return d->literals != NULL;
}

static bool is_dull(struct fr_dull *d, const struct fr_rules *r, const uint8_t *like, unsigned n)
{
    struct places p;
    if (!know_literals(d, r)) {
        return false;
    }
    find_places(like, n, &p);
    for (uint32_t i = 0; i < r->n_literals; i++) {
        const struct fr_dull_bytes *b = &d->literals[i];
        const uint64_t missing = (b->set[0] & ~p.any.set[0]) | (b->set[1] & ~p.any.set[1]) | b->others;
        if (missing == 0 &&
            has_place(&p, (const uint8_t *)r->literals[i].text, r->literals[i].n)) {
            return false;
        }
    }
    return true;
}

/* Where the word that begins at `at` ends, and whether it is a hexadecimal number. */
static unsigned word_end(const uint8_t *line, unsigned n, unsigned at, bool *ret_hex)
{
    const unsigned first = at + 2 < n && line[at] == '0' && line[at + 1] == 'x' ? at + 2 : at;
    unsigned i = first, digits = 0, letters = 0;
    for (; i < n && is_word(line[i]); i++) {
        digits += is_digit(line[i]);
        letters += !is_digit(line[i]);
        if (!is_hex(line[i])) {
            digits = 0;
            letters = n; /* no more a number */
        }
    }
    *ret_hex = letters < n && (first > at || (digits > 0 && letters > 0));
    return i;
}

/* False: the line has bytes that no shape has. */
static bool set_free(fr_sv text, uint8_t *ret)
{
    const uint8_t *line = (const uint8_t *)text.p;
    const unsigned n = (unsigned)text.n;
    for (unsigned i = 0; i < n;) {
        bool hex = false;
        const unsigned begin = i, end = is_word(line[i]) ? word_end(line, n, i, &hex) : i + 1;
        if (line[i] >= 0x80) {
            return false;
        }
        for (; i < end; i++) {
            const bool is_free = hex && (i > begin + 1 || line[begin + 1] != 'x');
            ret[i] = is_free ? FR_DULL_HEX : is_digit(line[i]) ? FR_DULL_DIGIT : line[i];
        }
    }
    return true;
}

/* What may stand at a place of either; 0: they have nothing in common. */
static uint8_t both(uint8_t a, uint8_t b)
{
    if (a == b) {
        return a;
    }
    if ((a < 0x80 && !is_hex(a)) || (b < 0x80 && !is_hex(b))) {
        return 0;
    }
    return a == FR_DULL_DIGIT && b == FR_DULL_DIGIT ? FR_DULL_DIGIT : FR_DULL_HEX;
}

/* Makes the shape of a slot fit the line too, or its first one. */
static bool learn(struct fr_dull *d, struct fr_dull_slot *slot, const struct fr_rules *r, fr_sv line)
{
    uint8_t *like = d->like[slot - d->slots];
    uint8_t wider[FR_DULL_BYTES];
    if (!set_free(line, wider) || (slot->n != 0 && slot->n != line.n)) {
        return false;
    }
    for (unsigned i = 0; i < slot->n; i++) {
        wider[i] = both(wider[i], like[i]);
        if (wider[i] == 0) {
            return false;
        }
    }
    if (!is_dull(d, r, wider, (unsigned)line.n)) {
        return false;
    }
    memset(like, FR_DULL_ANY, FR_DULL_BYTES);
    memcpy(like, wider, line.n);
    slot->n = (uint16_t)line.n;
    return true;
}

/* What would be lost with it. */
static unsigned worth(const struct fr_dull_slot *slot)
{
    return slot->tag == 0 ? 0 : slot->n == 0 ? 1u + slot->seen : 1000u + slot->in_use;
}

/* The slot of a tag that has none may become free for it: one that is worth less is idle, or seen
 * less often. */
static void ask_for_seat(struct fr_dull_slot *second, uint32_t tag)
{
    struct fr_dull_slot *first = second - 1;
    struct fr_dull_slot *slot = worth(first) <= worth(second) ? first : second;
    slot->seen -= slot->seen > 0 && !slot->in_use;
    if (slot->seen == 0 && !slot->in_use) {
        *slot = (struct fr_dull_slot){.tag = tag, .seen = 1};
    }
    slot->in_use = false;
}

void fr_dull_note(struct fr_dull *d, const struct fr_rules *rules, fr_sv line, uint32_t tag)
{
    struct fr_dull_slot *slot = fr_dull_slot_of(d, tag);
    if (slot->tag != tag) {
        ask_for_seat(slot, tag);
        return;
    }
    if (slot->fails == FAILS_MAX || ++slot->seen < ENOUGH) {
        return;
    }
    slot->seen = ENOUGH - AGAIN;
    if (!learn(d, slot, rules, line)) {
        slot->fails = slot->n == 0 ? FAILS_MAX : slot->fails + 1;
    }
}

void fr_dull_free(struct fr_dull **d)
{
    if (*d != NULL) {
        fr_free((*d)->literals);
        fr_free(*d);
        *d = NULL;
    }
}
