/* SPDX-License-Identifier: Apache-2.0 */
/* digits: which literals depend on them. The line and the literals are compared with every digit a
 * zero: what is equal then is equal for some digits. Most literals are ruled out by their first
 * bytes, looked up in a set of all places of the line. */
#include "match/scanner.h"

#include "base/alloc.h"

enum { LINE_MAX = 512, SET_BITS = 13 };

struct fr_digits {
    uint32_t n;
    struct zeroed {
        uint32_t hash, at, n; /* of the first bytes; its place in texts */
    } *v;
    char *texts;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void zero(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = is_digit(from[i]) ? '0' : from[i];
    }
}

static bool has_digit(const struct fr_literal *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        if (is_digit(l->text[i])) {
            return true;
        }
    }
    return false;
}

static uint32_t hash_of(const char *p)
{
    return (fr_load32(p) * FR_KEY_FACTOR) >> (32 - SET_BITS);
}

/* NULL without memory. */
static struct fr_digits *prepare(const struct fr_rules *r)
{
    uint32_t n = 0, size = 0;
    for (uint32_t i = 0; i < r->n_literals; i++) {
        const bool has = has_digit(&r->literals[i]);
        n += has;
        size += has ? r->literals[i].n : 0;
    }
    struct fr_digits *d = fr_malloc(sizeof *d + n * sizeof d->v[0] + size);
    if (d == NULL) {
        return NULL;
    }
    d->n = 0;
    d->v = (struct zeroed *)(void *)(d + 1);
    d->texts = (char *)(d->v + n);
    for (uint32_t i = 0, at = 0; i < r->n_literals; i++) {
        const struct fr_literal *l = &r->literals[i];
        if (has_digit(l)) {
            zero(d->texts + at, l->text, l->n);
            d->v[d->n++] = (struct zeroed){hash_of(d->texts + at), at, l->n};
            at += l->n;
        }
    }
    return d;
}

bool fr_scan_digits_matter(struct fr_scanner *s, fr_sv line)
{
    char text[LINE_MAX];
    uint64_t set[(1 << SET_BITS) / 64] = {0};
    if (s->digits == NULL) {
        s->digits = prepare(s->rules);
    }
    if (s->digits == NULL || line.n > sizeof text) {
        return true;
    }
    zero(text, line.p, line.n);
    for (size_t i = 0; i + 4 <= line.n; i++) {
        const uint32_t h = hash_of(text + i);
        set[h / 64] |= 1ull << h % 64;
    }
    for (uint32_t i = 0; i < s->digits->n; i++) {
        const struct zeroed *z = &s->digits->v[i];
        if ((set[z->hash / 64] >> z->hash % 64 & 1) != 0 &&
            fr_sv_has((fr_sv){text, line.n}, (fr_sv){s->digits->texts + z->at, z->n})) {
            return true;
        }
    }
    return false;
}
