/* SPDX-License-Identifier: Apache-2.0 */
/* shape: see shape.h. What makes it right: all that depends on how long a piece is, or of which
 * kind a byte, is the same for lines of one shape, so parsers go the same way through them, unless
 * they branch on a number's value. Those branches are what the trials are for: of any two numbers
 * each is seen as the greater one, as zeros and as nines. */
#include "series/shape_wide.h"

#include "base/load.h"
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"

#ifdef FR_SHAPE_X86
#define CHOOSE(fn) (__builtin_cpu_supports("avx2") ? fn##_avx2 : fn##_portable)
#else
#define CHOOSE(fn) fn##_portable
#endif

/* ---- does it fit ---- */

/* Byte by byte, x = line ^ like may be up to 9 where `like` has a '0' for any digit, else 0. With
 * `room` added, what is too much shows in the top bit. */
enum { ROOM_FIXED = 0x7f, ROOM_DIGIT = 0x7f - 9 };

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline bytes16 wrong(const char *p, const uint8_t *like, const uint8_t *room)
{
    bytes16 x, l, r;
    memcpy(&x, p, sizeof x);
    memcpy(&l, like, sizeof l);
    memcpy(&r, room, sizeof r);
    x ^= l;
    return x | (x + r);
}

static inline bytes16 wrong_at(const struct fr_shape *s, const char *p, size_t i)
{
    return wrong(p + i, __builtin_assume_aligned(s->like + i, 16),
                 __builtin_assume_aligned(s->room + i, 16));
}

static inline bool any(bytes16 x)
{
    uint64_t half[2];
    memcpy(half, &x, sizeof half);
    return ((half[0] | half[1]) & 0x8080808080808080u) != 0;
}

/* What differs early, as prefixes do, is told early; then the rest is looked at in one go. */
bool fr_shape_fits_portable(const struct fr_shape *s, fr_sv line)
{
    if (line.n != s->n) {
        return false;
    }
    size_t i = 0, last = line.n - 16;
    bytes16 x = wrong(line.p + last, s->like + last, s->room + last), y = x;
    if (line.n >= 96) {
        y |= wrong_at(s, line.p, 0) | wrong_at(s, line.p, 16) | wrong_at(s, line.p, 32) |
             wrong_at(s, line.p, 48) | wrong_at(s, line.p, 64) | wrong_at(s, line.p, 80);
        if (any(y)) {
            return false;
        }
        i = 96;
    }
    for (; i + 16 < last; i += 32) {
        x |= wrong_at(s, line.p, i);
        y |= wrong_at(s, line.p, i + 16);
    }
    for (; i < last; i += 16) {
        x |= wrong_at(s, line.p, i);
    }
    return !any(x | y);
}

bool fr_shape_fits(const struct fr_shape *s, fr_sv line)
{
    return CHOOSE(fr_shape_fits)(s, line);
}

/* ---- the numbers of a line that fits ---- */

/* The digits one byte each, the point closed up. */
static inline uint64_t digits_at(const char *p, unsigned shift, uint64_t before, uint64_t others)
{
    uint64_t w = fr_load64(p) << shift;
    return (w & before) << 8 | (w & others);
}

static inline uint64_t last_digits(const struct fr_shape_slot *slot, const char *line)
{
    return digits_at(line + slot->at, slot->shift, slot->before, slot->others);
}

/* All eight at once: neighbours are added up to numbers of two, four, eight digits. */
static inline uint64_t sum_up(uint64_t w)
{
    const uint64_t pairs = 0x000000ff000000ffu, hundred = 1000000ull << 32 | 100,
                   one = 10000ull << 32 | 1;
    w = w * 10 + (w >> 8);
    return ((w & pairs) * hundred + (w >> 16 & pairs) * one) >> 32;
}

static double read_long(const struct fr_shape_more *more, fr_sv line)
{
    const char *p = line.p + more->number;
    double v = 0;
    (void)fr_num_long(&p, line.p + line.n, &v);
    return v;
}

/* As fr_num reads it, to the last bit: both factors are exact, so it is rounded once. */
static inline double read_number(const struct fr_shape_slot *slot, const struct fr_shape_more *more,
                                 uint64_t last, fr_sv line)
{
    uint64_t m = sum_up(last);
    int ten = slot->point;
    if (!slot->is_short && more->times != 0) {
        m += more->times *
             sum_up(digits_at(line.p + more->at, more->shift, more->before, more->others));
    }
    if (slot->exponent != 0) {
        const char *x = line.p + slot->exponent;
        int by = (x[0] - '0') * 10 + (x[1] - '0');
        ten += slot->down ? -by : by;
    }
    double v = (double)(int64_t)m; /* signed: that takes one instruction */
    if (ten < -22 || ten > 22 || slot->is_long) {
        v = read_long(more, line);
    } else if (ten < 0) {
        v /= fr_num_double10[-ten];
    } else {
        v *= fr_num_double10[ten];
    }
    v = slot->minus ? -v : v;
    return slot->milli ? v * 1e-3 : v;
}

static void put_place(struct fr_point *pt, unsigned field, double v)
{
    switch (field) {
    case STEP:
        pt->step = (int64_t)v;
        break;
    case MAX_STEP:
        pt->max_step = (int64_t)v;
        break;
    case BATCH:
        pt->global_batch = (int64_t)v;
        break;
    case EPOCH:
        pt->epoch = v;
        break;
    case ATTEMPTED:
        pt->attempted = v;
        break;
    default:
        pt->best = v;
        break;
    }
}

/* Columns seldom change all at once, so most numbers are in the point already. */
const struct fr_point *fr_shape_point_portable(struct fr_shape *s, fr_sv line)
{
    for (unsigned i = 0; i < s->n_slots; i++) {
        struct fr_shape_slot *slot = &s->slots[i];
        uint64_t last = last_digits(slot, line.p);
        if (last == slot->seen) {
            continue;
        }
        slot->seen = slot->is_short ? last : NEVER_SEEN;
        double v = read_number(slot, &s->more[i], last, line);
        if (slot->field >= VALUE) {
            s->point.value[slot->field - VALUE] = v;
        } else {
            put_place(&s->point, slot->field, v);
        }
    }
    return s->is_point ? &s->point : NULL;
}

const struct fr_point *fr_shape_point(struct fr_shape *s, fr_sv line)
{
    return CHOOSE(fr_shape_point)(s, line);
}

void fr_shape_alone(const struct fr_shape *s, fr_sv line, double *ret)
{
    for (unsigned bits = s->by_itself; bits != 0; bits &= bits - 1) {
        unsigned i = (unsigned)__builtin_ctz(bits);
        ret[i] = read_number(&s->slots[i], &s->more[i], last_digits(&s->slots[i], line.p), line);
    }
}

/* ---- learning one ---- */

enum { BITS_MAX = 6, TOKENS_MAX = (1 << BITS_MAX) - 1, BY_CHANCE = 3 };
enum { TRIALS_MAX = 1 + 2 * BITS_MAX + BY_CHANCE };
enum { EXACT_DIGITS = 15 }; /* fewer than 2^53 */

/* A number as it is printed: "12", "0.25", "1.5E-04". */
struct token {
    uint16_t at, point, end, exponent; /* point, exponent: 0 = none; end: of its digits */
};

struct trials {
    unsigned n, n_tokens, n_trials;
    struct token tokens[TOKENS_MAX];
    uint8_t token_of[FR_SHAPE_BYTES];      /* 1 + the token whose digit it is, 0: none's */
    char line[TRIALS_MAX][FR_SHAPE_BYTES]; /* the first is the line itself */
    struct fr_point answer[TRIALS_MAX];
};

static bool is_letter(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26 || c == '_';
}

static size_t skip_digits(fr_sv s, size_t i)
{
    while (i < s.n && fr_is_digit(s.p[i])) {
        i++;
    }
    return i;
}

/* The token whose first digit is s.p[i]. */
static struct token token_at(fr_sv s, size_t i)
{
    struct token t = {.at = (uint16_t)i, .end = (uint16_t)skip_digits(s, i)};
    size_t k = t.end;
    if (k + 1 < s.n && s.p[k] == '.' && fr_is_digit(s.p[k + 1])) {
        t.point = t.end;
        k = skip_digits(s, k + 1);
        t.end = (uint16_t)k;
    }
    if (k + 3 < s.n && (s.p[k] | 0x20) == 'e' && (s.p[k + 1] == '-' || s.p[k + 1] == '+') &&
        skip_digits(s, k + 2) == k + 4) {
        t.exponent = (uint16_t)(k + 2);
    }
    return t;
}

static void add_token(struct trials *t, struct token k)
{
    t->tokens[t->n_tokens++] = k;
    for (unsigned i = k.at; i < k.end; i++) {
        t->token_of[i] = (uint8_t)(i != k.point || k.point == 0 ? t->n_tokens : 0);
    }
}

/* Digits of a word belong to its name ("top1_acc"), those of a prefix to who speaks. */
static bool find_tokens(struct trials *t, fr_sv line, size_t fixed, size_t from, size_t to)
{
    t->n = (unsigned)line.n;
    t->n_tokens = 0;
    memset(t->token_of, 0, line.n);
    for (size_t i = 0; i < line.n;) {
        bool in_time = i >= from && i < to;
        if (!fr_is_digit(line.p[i])) {
            i++;
        } else if (!in_time && (i < fixed || (i > 0 && is_letter(line.p[i - 1])))) {
            i = skip_digits(line, i);
        } else if (t->n_tokens == TOKENS_MAX) {
            return false;
        } else {
            struct token k = token_at(in_time ? fr_sv_head(line, to) : line, i);
            i = k.exponent != 0 ? k.exponent + 2u : k.end;
            add_token(t, k);
        }
    }
    return true;
}

/* Exponents stay small, where numbers are exact. */
static void set_exponents(const struct trials *t, char *line, char last)
{
    for (unsigned k = 0; k < t->n_tokens; k++) {
        if (t->tokens[k].exponent != 0) {
            line[t->tokens[k].exponent] = '0';
            line[t->tokens[k].exponent + 1] = last;
        }
    }
}

/* All tokens whose number has the bit are nines and the others zeros, or the other way round. */
static void set_by_bit(const struct trials *t, char *restrict ret, uint8_t bit, bool set)
{
    const char *line = t->line[0];
    const uint8_t *token_of = t->token_of;
    const char with = set ? '9' : '0', without = set ? '0' : '9';
    for (unsigned i = 0, n = t->n; i < n; i++) {
        char fixed = line[i], digit = (token_of[i] & bit) != 0 ? with : without;
        ret[i] = token_of[i] != 0 ? digit : fixed;
    }
    set_exponents(t, ret, set ? '7' : '0');
}

static void set_by_chance(const struct trials *t, char *restrict ret, unsigned seed)
{
    const char *line = t->line[0];
    const uint8_t *token_of = t->token_of;
    for (unsigned i = 0, n = t->n; i < n; i++) {
        uint16_t chance = (uint8_t)(i * 37 + seed * 101);
        char fixed = line[i], digit = (char)('1' + (chance * 9 >> 8));
        ret[i] = token_of[i] != 0 ? digit : fixed;
    }
    set_exponents(t, ret, (char)('1' + seed % 8));
}

/* No two tokens go together in all trials, and of any two each is the greater one in some. */
static void set_up(struct trials *t, fr_sv line)
{
    unsigned n = 0;
    memcpy(t->line[n++], line.p, line.n);
    for (uint8_t bit = 1; bit <= t->n_tokens; bit = (uint8_t)(bit * 2)) {
        set_by_bit(t, t->line[n++], bit, true);
        set_by_bit(t, t->line[n++], bit, false);
    }
    for (unsigned i = 0; i < BY_CHANCE; i++) {
        set_by_chance(t, t->line[n++], i);
    }
    t->n_trials = n;
}

/* The parsers give the same kind of answer in all trials. */
static bool answers_agree(struct trials *t, uint64_t dialects, bool *ret_is_point)
{
    const struct fr_point *first = &t->answer[0];
    for (unsigned i = 0; i < t->n_trials; i++) {
        struct fr_point *a = &t->answer[i];
        bool is_point = fr_point_parse((fr_sv){t->line[i], t->n}, dialects, a);
        if (i == 0) {
            *ret_is_point = is_point;
        } else if (is_point != *ret_is_point ||
                   (is_point && (a->present != first->present || a->missing != first->missing ||
                                 a->flags != first->flags || a->dialect != first->dialect))) {
            return false;
        }
    }
    return true;
}

/* Where eight bytes that end at `end` hold digits of [from, end). */
struct window {
    uint64_t before, others;
    uint16_t at;
    uint8_t shift;
};

static struct window window_of(const struct token *k, unsigned from, unsigned end)
{
    struct window w = {.at = (uint16_t)(end < 8 ? 0 : end - 8),
                       .shift = (uint8_t)(end < 8 ? 8 * (8 - end) : 0)};
    for (unsigned i = from; i < end; i++) {
        uint64_t here = (uint64_t)0x0f << (8 * (8 - (end - i)));
        bool before = i < k->point && k->point < end;
        w.before |= before ? here : 0;
        w.others |= !before && (i != k->point || k->point == 0) ? here : 0;
    }
    return w;
}

/* Both parts of a number, its field excepted. */
static void number_of(const struct token *k, const char *line, struct fr_shape_slot *slot,
                      struct fr_shape_more *more)
{
    bool has_point = k->point != 0;
    unsigned n = (unsigned)(k->end - k->at), cut = n > 8 ? k->end - 8u : k->at;
    unsigned in_last = k->end - cut - (has_point && k->point >= cut);
    *slot = (struct fr_shape_slot){.exponent = k->exponent, .seen = NEVER_SEEN};
    *more = (struct fr_shape_more){.number = k->at};
    slot->minus = k->at > 0 && line[k->at - 1] == '-';
    slot->down = k->exponent != 0 && line[k->exponent - 1] == '-';
    slot->is_long = n - has_point > EXACT_DIGITS;
    if (slot->is_long) {
        return;
    }
    struct window last = window_of(k, cut, k->end), first = window_of(k, k->at, cut);
    slot->is_short = cut == k->at && k->exponent == 0;
    slot->point = (int8_t)(has_point ? k->point + 1 - k->end : 0);
    slot->before = last.before;
    slot->others = last.others;
    slot->at = last.at;
    slot->shift = last.shift;
    if (cut > k->at) {
        more->before = first.before;
        more->others = first.others;
        more->at = first.at;
        more->shift = first.shift;
        more->times = (uint64_t)fr_num_double10[in_last];
    }
}

/* The bits of a field, to compare. */
static uint64_t field_of(const struct fr_point *pt, unsigned field)
{
    uint64_t bits;
    const void *at = field == STEP        ? (const void *)&pt->step
                     : field == MAX_STEP  ? (const void *)&pt->max_step
                     : field == BATCH     ? (const void *)&pt->global_batch
                     : field == EPOCH     ? (const void *)&pt->epoch
                     : field == ATTEMPTED ? (const void *)&pt->attempted
                     : field == BEST      ? (const void *)&pt->best
                                          : (const void *)&pt->value[field - VALUE];
    memcpy(&bits, at, sizeof bits);
    return bits;
}

/* In this trial the field is what the slot reads. */
static bool explains_one(const struct trials *t, unsigned i, const struct fr_shape_slot *slot,
                         const struct fr_shape_more *more)
{
    struct fr_point pt;
    const char *line = t->line[i];
    double v = read_number(slot, more, last_digits(slot, line), (fr_sv){line, t->n});
    if (slot->field >= VALUE) {
        pt.value[slot->field - VALUE] = v;
    } else {
        put_place(&pt, slot->field, v);
    }
    return field_of(&pt, slot->field) == field_of(&t->answer[i], slot->field);
}

static bool explains(const struct trials *t, const struct fr_shape_slot *slot,
                     const struct fr_shape_more *more)
{
    for (unsigned i = t->n_trials; i > 0; i--) { /* the last ones tell most */
        if (!explains_one(t, i - 1, slot, more)) {
            return false;
        }
    }
    return true;
}

static bool is_constant(const struct trials *t, unsigned field)
{
    for (unsigned i = 1; i < t->n_trials; i++) {
        if (field_of(&t->answer[i], field) != field_of(&t->answer[0], field)) {
            return false;
        }
    }
    return true;
}

/* Adds the slot that a field comes from. */
static bool find_slot(struct fr_shape *s, const struct trials *t, unsigned field)
{
    for (unsigned k = 0; k < t->n_tokens && s->n_slots < FR_SHAPE_SLOTS; k++) {
        struct fr_shape_slot *slot = &s->slots[s->n_slots];
        struct fr_shape_more *more = &s->more[s->n_slots];
        number_of(&t->tokens[k], t->line[0], slot, more);
        slot->field = (uint8_t)field;
        if (field <= BATCH && (slot->is_long || slot->exponent != 0)) {
            continue;
        }
        bool found = explains(t, slot, more);
        if (!found && field == VALUE + FR_METRIC_STEP_TIME) {
            slot->milli = true;
            found = explains(t, slot, more);
        }
        if (found) {
            s->n_slots++;
            return true;
        }
    }
    return false;
}

static void set_bytes(struct fr_shape *s, const struct trials *t)
{
    const char *line = t->line[0];
    for (unsigned i = 0; i < t->n; i++) {
        bool is_free = t->token_of[i] != 0;
        s->like[i] = is_free ? '0' : (uint8_t)line[i];
        s->room[i] = is_free ? ROOM_DIGIT : ROOM_FIXED;
    }
    set_exponents(t, (char *)s->like, '0');
    for (unsigned k = 0; k < t->n_tokens; k++) {
        unsigned x = t->tokens[k].exponent;
        if (x != 0) {
            s->room[x] = s->room[x + 1] = ROOM_DIGIT;
        }
    }
}

bool fr_shape_learn(struct fr_shape *ret, fr_sv line, uint64_t dialects, size_t fixed, size_t from,
                    size_t to)
{
    struct trials t;
    if (line.n < FR_SHAPE_LEAST || line.n > FR_SHAPE_BYTES ||
        !find_tokens(&t, line, fixed, from, to)) {
        return false;
    }
    set_up(&t, line);
    if (!answers_agree(&t, dialects, &ret->is_point)) {
        return false;
    }
    ret->n = (uint16_t)t.n;
    ret->n_slots = 0;
    ret->point = t.answer[0];
    for (unsigned field = 0; ret->is_point && field < FIELDS; field++) {
        bool is_there = field < VALUE || (ret->point.present >> (field - VALUE) & 1) != 0;
        if (is_there && !is_constant(&t, field) && !find_slot(ret, &t, field)) {
            return false;
        }
    }
    set_bytes(ret, &t);
    fr_shape_widen(ret);
    return true;
}
