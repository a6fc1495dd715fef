/* SPDX-License-Identifier: Apache-2.0 */
/* scan: walks the gate's candidates in order and puts together what was found on each line.
 * A candidate is checked against the whole literal before its line is even cut, so common false
 * alarms cost a hash. */
#include "match/scanner.h"

#include "base/alloc.h"

#include <hs/hs_runtime.h>

#define CHUNK_MAX      (1u << 30)
#define WINDOW         (64u << 10) /* a longer line is searched by regexes in windows */
#define WINDOW_OVERLAP (4u << 10)  /* that overlap by more than any bounded regex spans */

int fr_scanner_new(const struct fr_rules *rules, enum fr_scan_engine engine,
                   struct fr_scanner **ret, struct fr_err *err)
{
    struct fr_scanner *s = fr_calloc(1, sizeof *s);
    const uint32_t n = rules->library->n_signals;
    if (s != NULL) {
        s->rules = rules;
        s->asked = fr_calloc(n + 1, sizeof s->asked[0]);
        s->matched = fr_calloc(n + 1, sizeof s->matched[0]);
        s->groups = fr_calloc(rules->n_groups + 1, sizeof s->groups[0]);
        s->pending = fr_calloc(n + 1, sizeof s->pending[0]);
        s->captures = fr_calloc(n + 1, sizeof s->captures[0]);
    }
    if (s == NULL || s->asked == NULL || s->matched == NULL || s->groups == NULL ||
        s->pending == NULL || s->captures == NULL) {
        fr_scanner_free(&s);
        return fr_err_set(err, FR_NOMEM, "out of memory for a scanner");
    }
    unsigned best = engine == FR_ENGINE_AUTO ? fr_gate_engines_count : (unsigned)engine;
    best = best > fr_gate_engines_count ? fr_gate_engines_count : best;
    while (best > 1 && !fr_gate_engines[best - 1].works()) {
        best--; /* an engine this CPU lacks falls back to the next one */
    }
    s->engine = &fr_gate_engines[best - 1];
    *ret = s;
    return 0;
}

void fr_scanner_free(struct fr_scanner **ps)
{
    struct fr_scanner *s = *ps;
    if (s == NULL) {
        return;
    }
    if (s->captures != NULL) {
        fr_captures_free(s);
    }
    hs_free_scratch(s->scratch);
    fr_free(s->asked);
    fr_free(s->matched);
    fr_free(s->groups);
    fr_free(s->pending);
    fr_free(s->captures);
    fr_free(s->digits);
    fr_free(s);
    *ps = NULL;
}

const char *fr_scanner_engine(const struct fr_scanner *s)
{
    return s->engine->name;
}

void fr_scanner_know(struct fr_scanner *s, fr_known_fn fn, void *ctx)
{
    s->known = fn;
    s->known_ctx = ctx;
}

/* ---- one scan ---- */

struct scan {
    struct fr_scanner *s;
    const char *p;
    size_t n;
    uint64_t offset, first_line;
    fr_hit_fn fn;
    void *ctx;
    int mode;
    size_t begin, end; /* the line looked at last, */
    uint64_t lineno;
    bool open;        /* and whether it is being put together in hit */
    size_t next;      /* start of the first line not delivered yet */
    uint64_t next_no; /* and its number; only kept up with FR_SCAN_EVERY */
    struct fr_hit hit;
};

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                    void *ctx)
{
    struct fr_scanner *s = ctx;
    (void)from;
    (void)to;
    (void)flags;
    s->matched[id] = s->epoch;
    return 0;
}

static int open_group(struct fr_scanner *s, uint16_t group)
{
    const int rc = fr_rules_database(s->rules, group, &s->groups[group].database, NULL);
    if (rc < 0) {
        return rc;
    }
    return hs_alloc_scratch(s->groups[group].database, &s->scratch) == HS_SUCCESS ? 0 : -FR_NOMEM;
}

/* Marks in s->matched those signals of the group whose regex matches the line. */
static int ask_group(struct fr_scanner *s, uint16_t group, fr_sv line)
{
    struct fr_group_state *g = &s->groups[group];
    if (g->epoch == s->epoch) {
        return 0;
    }
    if (g->database == NULL) {
        const int rc = open_group(s, group);
        if (rc < 0) {
            return rc;
        }
    }
    g->epoch = s->epoch;
    for (;;) {
        const fr_sv window = fr_sv_head(line, WINDOW);
        const hs_error_t e =
            hs_scan(g->database, window.p, (unsigned)window.n, 0, s->scratch, on_match, s);
        if (e != HS_SUCCESS) {
            return e == HS_NOMEM ? -FR_NOMEM : -FR_STATE;
        }
        if (window.n == line.n) {
            return 0;
        }
        line = fr_sv_skip(line, WINDOW - WINDOW_OVERLAP);
    }
}

static bool vetoed(const struct fr_signal *signal, fr_sv line)
{
    for (const char *const *v = signal->none_of; v != NULL && *v != NULL; v++) {
        if (fr_sv_has(line, fr_sv_z(*v))) {
            return true;
        }
    }
    return false;
}

/* From the signals whose literal was seen to those that really fire, ascending. */
static int confirm(struct fr_scanner *s, struct fr_hit *hit)
{
    const struct fr_signal *signals = s->rules->library->signals;
    for (uint32_t i = 1; i < s->n_pending; i++) { /* few: insertion sort */
        const uint16_t v = s->pending[i];
        uint32_t k = i;
        for (; k > 0 && s->pending[k - 1] > v; k--) {
            s->pending[k] = s->pending[k - 1];
        }
        s->pending[k] = v;
    }
    for (uint32_t i = 0; i < s->n_pending && hit->n_signals < FR_HIT_SIGNALS; i++) {
        const uint16_t id = s->pending[i];
        if (signals[id].regex != NULL) {
            const int rc = ask_group(s, s->rules->group_of[id], hit->line);
            if (rc < 0) {
                return rc;
            }
            if (s->matched[id] != s->epoch) {
                continue;
            }
        }
        if (!vetoed(&signals[id], hit->line)) {
            hit->signals[hit->n_signals++] = id;
        }
    }
    return 0;
}

/* Hands the line in c->hit over and moves on; the callback's answer is the new mode. */
static int deliver(struct scan *c)
{
    const int rc = c->fn(c->ctx, &c->hit);
    c->next = c->end < c->n ? c->end + 1 : c->n;
    c->next_no = c->hit.lineno + 1;
    if (rc >= 0) {
        c->mode = rc;
    }
    return rc < 0 ? rc : 0;
}

static int close_line(struct scan *c)
{
    if (!c->open) {
        return 0;
    }
    c->open = false;
    c->hit.asked = c->s->n_pending > 0;
    if (c->hit.asked) {
        const int rc = confirm(c->s, &c->hit);
        if (rc < 0) {
            return rc;
        }
    }
    const struct fr_hit *h = &c->hit;
    c->hit.in_every = c->mode == FR_SCAN_EVERY;
    if (c->hit.in_every || h->n_signals > 0 || h->facts != 0 || h->metrics != 0 || h->traces != 0) {
        return deliver(c);
    }
    return 0;
}

/* Looks at the line that begins at `begin`. */
static void look_at(struct scan *c, size_t begin, uint64_t lineno)
{
    const char *nl = memchr(c->p + begin, '\n', c->n - begin);
    c->begin = begin;
    c->end = nl != NULL ? (size_t)(nl - c->p) : c->n;
    c->lineno = lineno;
}

/* Looks at the line of the key at `key`, unless that is done already. A key may begin one byte
 * before its literal, and that byte may be the newline. */
static void look_around(struct scan *c, uint32_t key)
{
    const size_t at = key + (c->p[key] == '\n');
    if (at < c->end) {
        return;
    }
    const uint32_t lines = fr_gate_lines(&c->s->run, key) + (key < at);
    const char *nl = memrchr(c->p + c->next, '\n', at - c->next);
    look_at(c, nl != NULL ? (size_t)(nl - c->p) + 1 : c->next, c->first_line + lines);
}

/* Puts the line looked at together. */
static void open_line(struct scan *c)
{
    c->hit.line = (fr_sv){c->p + c->begin, c->end - c->begin};
    c->hit.offset = c->offset + c->begin;
    c->hit.lineno = c->lineno;
    c->hit.n_signals = 0;
    c->hit.facts = 0;
    c->hit.metrics = 0;
    c->hit.traces = 0;
    c->hit.asked = false;
    c->s->n_pending = 0;
    c->s->epoch++;
}

/* Delivers the lines that end at or before `upto` while the mode says every line. */
static int deliver_plain(struct scan *c, size_t upto)
{
    while (c->mode == FR_SCAN_EVERY && c->next < upto) {
        look_at(c, c->next, c->next_no);
        open_line(c);
        if (c->end >= upto && upto < c->n) {
            return 0; /* the line that holds upto: its caller opens it again */
        }
        c->hit.in_every = true;
        const int rc = deliver(c);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Looks at the line of a key, and leaves it and those behind it to the caller as far as they are
 * known there: they are looked at as one. */
static int pass_known(struct scan *c, uint32_t key)
{
    const struct fr_scanner *s = c->s;
    uint64_t lines = 0;
    const int rc = close_line(c);
    if (rc < 0 || s->known == NULL || c->mode == FR_SCAN_EVERY) {
        return rc;
    }
    look_around(c, key);
    const fr_sv rest = {c->p + c->begin, c->n - c->begin};
    const size_t n = s->known(s->known_ctx, rest, c->end - c->begin, c->offset + c->begin,
                              c->lineno, &lines);
    if (n > 0) {
        c->next = c->begin + n;
        c->next_no = c->lineno + lines;
        c->end = c->next - 1;
    }
    return 0;
}

/* A literal of the rules stands at `at`, found by its key. */
static int found(struct scan *c, size_t at, uint32_t key, const struct fr_literal *l)
{
    struct fr_scanner *s = c->s;
    if (!c->open || at >= c->end) {
        int rc = close_line(c);
        rc = rc < 0 ? rc : deliver_plain(c, at);
        if (rc < 0) {
            return rc;
        }
        look_around(c, key);
        open_line(c);
        c->open = true;
    }
    c->hit.facts |= l->facts;
    c->hit.metrics |= l->metrics;
    c->hit.traces |= l->traces;
    for (uint32_t i = 0; i < l->n_owners; i++) {
        const uint16_t id = s->rules->owners[l->first_owner + i];
        if (s->asked[id] != s->epoch) {
            s->asked[id] = s->epoch;
            s->pending[s->n_pending++] = id;
        }
    }
    return 0;
}

/* memcmp(a, b, n) == 0 without a call: literals are short, and most that come here are equal. */
static inline bool same_bytes(const char *a, const char *b, size_t n)
{
    uint64_t x, y;
    if (n < sizeof x) {
        return memcmp(a, b, n) == 0;
    }
    for (size_t i = 0; i + sizeof x < n; i += sizeof x) {
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        if (x != y) {
            return false;
        }
    }
    memcpy(&x, a + n - sizeof x, sizeof x);
    memcpy(&y, b + n - sizeof y, sizeof y);
    return x == y;
}

/* The 4 bytes before a key and the 4 behind it; beyond the chunk's ends zeros, which are in no
 * literal. */
static inline uint64_t look_beside(const struct fr_gate_run *run, uint32_t at)
{
    const uint8_t *const p = run->p + at;
    if (at >= 4 && run->n - at >= 8) {
        return fr_two_words(fr_load32(p - 4), fr_load32(p + 4));
    }
    uint8_t bytes[8] = {0};
    for (uint32_t i = 0; i < 4; i++) {
        bytes[i] = at + i >= 4 ? p[(int)i - 4] : 0;
        bytes[4 + i] = run->n - at > 4 + i ? p[4 + i] : 0;
    }
    return fr_two_words(fr_load32(bytes), fr_load32(bytes + 4));
}

/* Compares the literals that were found by their keys and what is beside these: most are there. */
static int take(struct scan *c, uint32_t n)
{
    const struct fr_rules *r = c->s->rules;
    for (uint32_t i = 0; i < n; i++) {
        const struct fr_found *f = &c->s->found[i];
        const struct fr_entry *e = &r->entries[f->entry];
        const struct fr_literal *l = &r->literals[e->literal];
        const int64_t begin = (int64_t)f->key - e->at;
        if (begin < 0 || c->n - (size_t)begin < e->n ||
            !same_bytes(c->p + begin, l->text, e->n)) {
            continue;
        }
        const int rc = found(c, (size_t)begin, f->key, l);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

/* Tries the literals of the keys that are left, in the order of the text. Which of them match is
 * written down, not branched on. */
static int try_places(struct scan *c, uint32_t n)
{
    struct fr_scanner *const s = c->s;
    const struct fr_entry *const entries = s->rules->entries;
    uint32_t n_found = 0;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        const struct fr_place *const place = s->places[i];
        const uint32_t key = s->run.cands[i], end = place->first + place->n;
        const uint64_t beside = look_beside(&s->run, key);
        if (key >= c->end || place->n > FR_FOUND_MAX - n_found) {
            rc = take(c, n_found);
            n_found = 0;
        }
        if (rc == 0 && key >= c->end) {
            rc = pass_known(c, key);
        }
        if (rc < 0 || key + 1 < c->next) {
            continue; /* its line is taken */
        }
        for (uint32_t k = place->first; k < end; k++) {
            s->found[n_found] = (struct fr_found){key, k};
            n_found += ((beside ^ entries[k].beside) & entries[k].mask) == 0;
        }
    }
    return rc < 0 ? rc : take(c, n_found);
}

/* A key and the bytes before and behind it, in bytes 1 to 4, 0 and 5 of the word; beyond the ends
 * of the chunk zeros. */
static inline uint64_t look_close(const struct fr_gate_run *run, uint32_t at)
{
    uint8_t bytes[8] = {0};
    if (at > 0 && run->n - at >= 7) {
        return fr_load64(run->p + at - 1);
    }
    for (uint32_t i = 0; i < 6; i++) {
        bytes[i] = at + i > 0 && run->n - at > (size_t)i - (i > 0) ? run->p[at + i - 1] : 0;
    }
    return fr_load64(bytes);
}

/* Drops the candidates whose key is none of ours (its hash is), or stands between bytes that no
 * literal has there. It does not branch on the text: every wrong guess costs as much as a block of
 * the gate. Returns how many are left. */
static uint32_t sieve(struct fr_scanner *s)
{
    const struct fr_place *const places = s->rules->places;
    const uint16_t *const shifts = s->rules->shifts;
    const uint32_t mask = s->rules->place_mask, n_cands = s->run.n_cands;
    const struct fr_gate_run *const run = &s->run;
    uint32_t *const cands = s->run.cands, n = 0;
    for (uint32_t i = 0; i < n_cands; i++) {
        const uint32_t at = cands[i];
        const uint64_t close = look_close(run, at);
        const uint32_t key = fr_key((uint32_t)(close >> 8));
        const struct fr_place *place = &places[fr_place_of(key, shifts[fr_shift_of(key)], mask)];
        const uint32_t last = (uint32_t)close, next = (uint32_t)(close >> 40);
        cands[n] = at;
        s->places[n] = place;
        n += (place->key == key) & fr_place_may(place, last, next);
    }
    return n;
}

/* The gate goes on where lines were taken up to: at the newline before, since a key may begin one
 * byte before its literal. */
static void skip(struct scan *c)
{
    struct fr_gate_run *const run = &c->s->run;
    run->at = (c->next - 1) / FR_GATE_STRIDE * FR_GATE_STRIDE;
    run->lines = (uint32_t)(c->next_no - c->first_line);
    for (size_t i = run->at; i < c->next; i++) {
        run->lines -= c->p[i] == '\n';
    }
}

int fr_scan(struct fr_scanner *s, fr_sv chunk, uint64_t offset, uint64_t first_line, int mode,
            fr_hit_fn fn, void *ctx, uint64_t *ret_newlines)
{
    struct scan c = {.s = s,
                     .p = chunk.p,
                     .n = chunk.n,
                     .offset = offset,
                     .first_line = first_line,
                     .fn = fn,
                     .ctx = ctx,
                     .mode = mode,
                     .next_no = first_line};
    struct fr_gate_run *run = &s->run;
    int rc = 0;
    if (chunk.n > CHUNK_MAX) {
        return -FR_LIMIT;
    }
    run->p = (const uint8_t *)chunk.p;
    run->n = chunk.n;
    run->at = 0;
    run->lines = 0;
    while (rc == 0 && run->at < run->n) {
        s->engine->fn(s->rules->gate, run);
        rc = try_places(&c, sieve(s));
        if (c.next > run->at) {
            skip(&c);
        }
    }
    rc = rc < 0 ? rc : close_line(&c);
    rc = rc < 0 ? rc : deliver_plain(&c, c.n);
    if (rc < 0) {
        return rc;
    }
    if (ret_newlines != NULL) {
        *ret_newlines = run->lines;
    }
    return c.mode;
}

/* ---- one signal ---- */

struct wanted {
    uint16_t signal;
    bool fired;
};

static int look_for(void *ctx, const struct fr_hit *hit)
{
    struct wanted *w = ctx;
    for (uint16_t i = 0; i < hit->n_signals; i++) {
        w->fired |= hit->signals[i] == w->signal;
    }
    return FR_SCAN_HITS;
}

int fr_scan_fires(struct fr_scanner *s, uint16_t signal, fr_sv text)
{
    struct wanted w = {signal, false};
    const int rc = fr_scan(s, text, 0, 1, FR_SCAN_HITS, look_for, &w, NULL);
    return rc < 0 ? rc : w.fired;
}
