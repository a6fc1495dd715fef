/* SPDX-License-Identifier: Apache-2.0 */
/* scan: passes over lines that are known to bring nothing, or to the caller, walks the candidates of
 * the gate on the others in order and puts together what was found on each line.
 * A candidate is checked against the whole literal before its line is even cut, so common false
 * alarms cost a hash. */
#include "match/scanner.h"

#include "base/alloc.h"

#include <hs/hs_runtime.h>

#define CHUNK_MAX (1u << 30)

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
    s->dull = s->engine->dull != NULL ? fr_calloc(1, sizeof *s->dull) : NULL; /* or without */
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
    fr_dull_free(&s->dull);
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
    bool at_line;     /* the gate has come to the end of its stretch, which is a line's */
    size_t stretch;   /* how far it goes where nothing is skipped */
    size_t doubtful;  /* the stretch's first line, while nothing is found on it; SIZE_MAX: none */
    struct fr_dull_stop stop; /* what is known of that line */
    struct fr_hit hit;
};

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
        const int rc = fr_scan_confirm(c->s, &c->hit);
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
    c->doubtful = c->begin == c->doubtful ? SIZE_MAX : c->doubtful;
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

/* Lines before the one that begins at `next` are done with. */
static void go_to(struct scan *c, size_t next, uint64_t lineno)
{
    c->next = next;
    c->next_no = lineno;
    c->end = next > 0 ? next - 1 : 0;
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
    if (c->begin == c->doubtful) {
        return 0; /* it was asked about */
    }
    const fr_sv rest = {c->p + c->begin, c->n - c->begin};
    const size_t n = s->known(s->known_ctx, rest, c->end - c->begin, c->offset + c->begin,
                              c->lineno, &lines);
    if (n > 0) {
        go_to(c, c->begin + n, c->lineno + lines);
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

/* ---- whole lines ---- */

/* Where the first line that ends at or behind `at` ends. */
static size_t line_end(const struct scan *c, size_t at)
{
    const char *nl = at < c->n ? memchr(c->p + at, '\n', c->n - at) : NULL;
    return nl != NULL ? (size_t)(nl - c->p) : c->n;
}

/* The number of the line that begins at `begin`, as far as the gate has come. */
static uint64_t number_of(const struct scan *c, size_t begin)
{
    uint64_t lineno = c->first_line + c->s->run.lines;
    for (size_t i = c->s->run.at; i < begin; i++) {
        lineno += c->p[i] == '\n';
    }
    return lineno;
}

/* Skips lines from the one at `begin` on that are dull, or known to the caller. Returns where it
 * stops. */
static size_t skip_lines(struct scan *c, size_t begin, uint64_t *lineno)
{
    const struct fr_scanner *s = c->s;
    for (size_t before = SIZE_MAX; before != begin;) {
        uint64_t lines = 0;
        begin += s->engine->dull(s->dull, (const uint8_t *)c->p + begin, c->n - begin, &lines,
                                 &c->stop);
        *lineno += lines;
        before = begin;
        if (s->known == NULL || begin == c->n) {
            break;
        }
        if (c->stop.n == SIZE_MAX) {
            c->stop.n = line_end(c, begin) - begin;
        }
        begin += s->known(s->known_ctx, (fr_sv){c->p + begin, c->n - begin}, c->stop.n,
                          c->offset + begin, *lineno, &lines);
        *lineno += begin > before ? lines : 0;
    }
    return begin;
}

/* At the start of a line: goes past those that need no gate, and says how far it is needed. Where
 * most lines need it, they are not looked at one by one. */
static int pass_lines(struct scan *c)
{
    struct fr_gate_run *const run = &c->s->run;
    const size_t from = c->next > run->upto ? c->next : run->upto;
    uint64_t lineno = c->next >= run->upto && c->next > 0 ? c->next_no : number_of(c, from);
    if (c->doubtful != SIZE_MAX && c->stop.tag != 0) {
        fr_dull_note(c->s->dull, c->s->rules, (fr_sv){c->p + c->doubtful, c->stop.n}, c->stop.tag);
    }
    c->doubtful = SIZE_MAX;
    const int rc = close_line(c);
    if (rc < 0 || c->mode == FR_SCAN_EVERY) {
        return rc;
    }
    const size_t begin = skip_lines(c, from, &lineno);
    c->stretch = begin > from ? 0 : c->stretch < FR_GATE_BATCH ? 2 * c->stretch + FR_GATE_BLOCK
                                                               : FR_GATE_BATCH;
    go_to(c, begin, lineno);
    run->upto = line_end(c, begin + c->stretch) + 1;
    run->upto = run->upto < c->n ? run->upto : c->n;
    c->doubtful = begin;
    c->at_line = false;
    if (begin > 0) {
        skip(c);
    }
    return 0;
}

/* How far the gate goes next: to the end of a line, unless all of them are wanted. */
static int plan(struct scan *c)
{
    struct fr_gate_run *const run = &c->s->run;
    if (c->at_line && c->s->dull != NULL && c->mode == FR_SCAN_HITS) {
        const int rc = pass_lines(c);
        if (rc < 0 || c->mode == FR_SCAN_HITS) {
            return rc;
        }
    }
    c->at_line = false;
    if (c->s->dull == NULL || c->mode == FR_SCAN_EVERY) {
        run->upto = run->n;
        c->doubtful = SIZE_MAX;
        return 0;
    }
    if (run->upto == run->n && c->doubtful == SIZE_MAX) {
        run->upto = line_end(c, run->at) + 1;
        run->upto = run->upto < c->n ? run->upto : c->n;
    }
    return 0;
}

/* Behind a batch: candidates of the next stretch are left to it. */
static void cut_off(struct fr_gate_run *run)
{
    while (run->upto < run->n && run->n_cands > 0 &&
           run->cands[run->n_cands - 1] + 1 >= run->upto) {
        run->n_cands--;
    }
}

/* Where the gate goes on: behind the lines that were taken; at the end of its stretch, at the
 * newline there. */
static void go_on(struct scan *c)
{
    struct fr_gate_run *const run = &c->s->run;
    c->at_line = c->at_line || run->at >= run->upto || c->next >= run->upto;
    if (c->next > run->at) {
        skip(c);
    } else if (c->at_line && run->upto < run->n) {
        const uint32_t at = (uint32_t)(run->upto - 1) / FR_GATE_STRIDE * FR_GATE_STRIDE;
        run->lines = fr_gate_lines(run, at);
        run->at = at;
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
                     .next_no = first_line,
                     .at_line = true,
                     .doubtful = SIZE_MAX};
    struct fr_gate_run *run = &s->run;
    int rc = 0;
    if (chunk.n > CHUNK_MAX) {
        return -FR_LIMIT;
    }
    run->p = (const uint8_t *)chunk.p;
    run->n = chunk.n;
    run->at = run->upto = 0;
    run->lines = 0;
    while (rc == 0 && run->at < run->n) {
        rc = plan(&c);
        if (rc < 0) {
            break;
        }
        s->engine->fn(s->rules->gate, run);
        cut_off(run);
        rc = try_places(&c, sieve(s));
        go_on(&c);
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
