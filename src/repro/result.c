/* SPDX-License-Identifier: Apache-2.0 */
/* result: see result.h. Arrays grow by copying inside the arena: results are small and die whole. */
#include "repro/result.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define RESULT_MAX ((size_t)64 << 20)
#define LINE_MAX_  2048

void fr_result_init(struct fr_result *r)
{
    *r = (struct fr_result){.arena = FR_ARENA_INIT(RESULT_MAX)};
    r->no_chain = (struct fr_chain){.owner = r, .first = -1};
    r->no_curve.owner = r;
    r->no_table = (struct fr_table){.owner = r, .columns = 1};
}

void fr_result_release(struct fr_result *r)
{
    fr_arena_release(&r->arena);
    *r = (struct fr_result){.failed = true};
}

/* Room for one more element in an array of the arena: the array, moved where it had to, or NULL. */
static void *grown(struct fr_result *r, void *v, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) {
        return v;
    }
    uint32_t more = *cap > 0 ? *cap * 2 : 8;
    void *fresh = fr_arena_alloc(&r->arena, more * size);
    if (fresh == NULL) {
        r->failed = true;
        return NULL;
    }
    if (n > 0) {
        memcpy(fresh, v, n * size);
    }
    *cap = more;
    return fresh;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* printf's "nan", "-nan" (the sign differs between machines) and "inf", as everything else spells them. */
static void respell(char *line)
{
    char *to = line;
    for (const char *from = line; *from != '\0';) {
        const bool start = from == line || !is_word(from[-1]);
        const bool minus = strncmp(from, "-nan", 4) == 0;
        const bool nan = minus || strncmp(from, "nan", 3) == 0, inf = strncmp(from, "inf", 3) == 0;
        if (start && (nan || inf) && !is_word(from[minus ? 4 : 3])) {
            memcpy(to, nan ? "NaN" : "Inf", 3);
            to += 3;
            from += minus ? 4 : 3;
        } else {
            *to++ = *from++;
        }
    }
    *to = '\0';
}

static fr_sv print(struct fr_result *r, const char *fmt, va_list args)
{
    char line[LINE_MAX_];
    int n = vsnprintf(line, sizeof line, fmt, args);
    line[n < 0 ? 0 : sizeof line - 1] = '\0';
    respell(line);
    fr_sv text = fr_arena_dup(&r->arena, fr_sv_z(line));
    r->failed |= text.p == NULL;
    return text;
}

static fr_sv copy(struct fr_result *r, const char *text)
{
    fr_sv s = fr_arena_dup(&r->arena, fr_sv_z(text));
    r->failed |= s.p == NULL;
    return s;
}

static struct fr_item *item(struct fr_result *r, uint8_t kind)
{
    struct fr_item *v = grown(r, r->item, r->n, &r->cap, sizeof *r->item);
    if (v == NULL) {
        return NULL;
    }
    r->item = v;
    struct fr_item *it = &v[r->n++];
    *it = (struct fr_item){.act = r->act, .kind = kind};
    return it;
}

void fr_result_act(struct fr_result *r, uint8_t act, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    r->act = act;
    r->title[act] = print(r, fmt, args);
    va_end(args);
}

void fr_result_say(struct fr_result *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fr_sv text = print(r, fmt, args);
    va_end(args);
    struct fr_item *it = item(r, FR_ITEM_SAY);
    if (it != NULL) {
        it->text = text;
    }
}

struct fr_chain *fr_result_chain(struct fr_result *r, const char *title)
{
    struct fr_chain *t = FR_NEW(&r->arena, struct fr_chain);
    struct fr_item *it = t != NULL ? item(r, FR_ITEM_CHAIN) : NULL;
    if (it == NULL) {
        r->failed = true;
        return &r->no_chain;
    }
    *t = (struct fr_chain){.owner = r, .title = copy(r, title), .first = -1};
    it->chain = t;
    return t;
}

struct fr_curve *fr_result_curve(struct fr_result *r, const char *name, const char *per,
                                 bool is_log)
{
    struct fr_curve *s = FR_NEW(&r->arena, struct fr_curve);
    struct fr_item *it = s != NULL ? item(r, FR_ITEM_CURVE) : NULL;
    if (it == NULL) {
        r->failed = true;
        return &r->no_curve;
    }
    *s =
        (struct fr_curve){.owner = r, .name = copy(r, name), .per = copy(r, per), .is_log = is_log};
    it->curve = s;
    return s;
}

struct fr_table *fr_result_table(struct fr_result *r, const char *title, const char *const *heads)
{
    struct fr_table *t = FR_NEW(&r->arena, struct fr_table);
    struct fr_item *it = t != NULL ? item(r, FR_ITEM_TABLE) : NULL;
    if (it == NULL) {
        r->failed = true;
        return &r->no_table;
    }
    *t = (struct fr_table){.owner = r, .title = copy(r, title), .heads = heads};
    while (heads[t->columns] != NULL && t->columns < FR_TABLE_COLUMNS) {
        t->columns++;
    }
    it->table = t;
    return t;
}

static void claim(struct fr_result *r, const struct fr_claim *made)
{
    struct fr_claim *c = FR_NEW(&r->arena, struct fr_claim);
    struct fr_item *it = c != NULL ? item(r, FR_ITEM_CLAIM) : NULL;
    if (it == NULL) {
        r->failed = true;
        return;
    }
    *c = *made;
    it->claim = c;
    r->claims++;
    r->held += made->held;
    r->unknown += made->unknown;
}

bool fr_result_claim(struct fr_result *r, const char *id, bool held, const char *says,
                     const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fr_sv measured = print(r, fmt, args);
    va_end(args);
    claim(r, &(struct fr_claim){id, says, measured, r->act, held, false});
    return held;
}

void fr_result_unknown(struct fr_result *r, const char *id, const char *says, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fr_sv missing = print(r, fmt, args);
    va_end(args);
    claim(r, &(struct fr_claim){id, says, missing, r->act, false, true});
}

const struct fr_claim *fr_result_find(const struct fr_result *r, const char *id)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->item[i].kind == FR_ITEM_CLAIM && strcmp(r->item[i].claim->id, id) == 0) {
            return r->item[i].claim;
        }
    }
    return NULL;
}

/* ---- chain ---- */

static void look(struct fr_link *w, const double *v, uint32_t cols)
{
    uint32_t zeros = w->zeros;
    for (uint32_t i = 0; i < cols; i++) {
        double m = fabs(v[i]);
        w->zeros += m == 0;
        w->infs += isinf(m) != 0;
        w->nans += isnan(m) != 0;
        w->most = m > w->most ? m : w->most;
        w->least = m > 0 && (w->least == 0 || m < w->least) ? m : w->least;
    }
    w->zero_rows += cols > 1 && w->zeros - zeros == cols;
}

static void mark(struct fr_chain *t, struct fr_link *w)
{
    const uint8_t m = w->infs > 0        ? FR_MARK_INF
                      : w->nans > 0      ? FR_MARK_NAN
                      : w->zero_rows > 0 ? FR_MARK_ZERO_ROW
                                         : FR_MARK_NONE;
    /* A row may hold Inf that is old news and NaN that is new. */
    const uint8_t fresh =
        w->nans > 0 && (t->seen & 1u << FR_MARK_NAN) == 0 && (t->seen & 1u << m) != 0 ? FR_MARK_NAN
                                                                                      : m;
    if (fresh == FR_MARK_NONE || (t->seen & 1u << fresh) != 0) {
        return;
    }
    t->seen |= (uint8_t)(1u << fresh);
    w->mark = fresh;
    if (t->first < 0) {
        t->first = (int32_t)t->n;
    }
}

static const struct fr_link *add(struct fr_chain *t, const char *op, uint32_t dtype,
                                 const double *v, uint32_t rows, uint32_t cols, bool is_input)
{
    static const struct fr_link nothing;
    struct fr_link *all = grown(t->owner, t->row, t->n, &t->cap, sizeof *t->row);
    if (all == NULL) {
        return &nothing;
    }
    t->row = all;
    struct fr_link *w = &all[t->n];
    *w = (struct fr_link){.op = copy(t->owner, op),
                          .dtype = dtype,
                          .is_input = is_input,
                          .n = rows * cols,
                          .rows = rows};
    for (uint32_t i = 0; i < rows; i++) {
        look(w, v + (size_t)i * cols, cols);
    }
    if (!is_input) {
        mark(t, w);
    }
    t->n++;
    return w;
}

void fr_chain_link(struct fr_chain *t, const struct fr_link *link)
{
    struct fr_link *all = grown(t->owner, t->row, t->n, &t->cap, sizeof *t->row);
    if (all == NULL) {
        return;
    }
    t->row = all;
    all[t->n] = *link;
    mark(t, &all[t->n]);
    t->n++;
}

void fr_chain_input(struct fr_chain *t, const char *name, uint32_t dtype, const double *v,
                    uint32_t rows, uint32_t cols)
{
    add(t, name, dtype, v, rows, cols, true);
}

const struct fr_link *fr_chain_add(struct fr_chain *t, const char *op, uint32_t dtype,
                                   const double *v, uint32_t rows, uint32_t cols)
{
    return add(t, op, dtype, v, rows, cols, false);
}

const char *fr_chain_first(const struct fr_chain *t)
{
    return t->first >= 0 ? t->row[t->first].op.p : "none";
}

bool fr_chain_first_is(const struct fr_chain *t, const char *op)
{
    return strcmp(fr_chain_first(t), op) == 0;
}

const char *fr_mark_name(uint8_t m)
{
    static const char *const names[] = {[FR_MARK_NONE] = "",
                                        [FR_MARK_INF] = "first Inf",
                                        [FR_MARK_NAN] = "first NaN",
                                        [FR_MARK_ZERO_ROW] = "first row of zeros"};
    return names[m];
}

/* ---- series, tables ---- */

void fr_curve_add(struct fr_curve *s, double v)
{
    double *all = grown(s->owner, s->v, s->n, &s->cap, sizeof *s->v);
    if (all != NULL) {
        s->v = all;
        s->v[s->n++] = v;
    }
}

void fr_table_cell(struct fr_table *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fr_sv text = print(t->owner, fmt, args);
    va_end(args);
    fr_sv *all = grown(t->owner, t->cell, t->n, &t->cap, sizeof *t->cell);
    if (all != NULL) {
        t->cell = all;
        t->cell[t->n++] = text;
    }
}
