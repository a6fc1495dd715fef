/* SPDX-License-Identifier: Apache-2.0 */
/* result: what a reproduction found, before anybody renders it: three acts, each a list of items
 * in the order in which they were said. Everything is owned by the result's arena and dies with it.
 * Bounded: the arena's limit. A failed allocation is sticky: build freely, ask fr_result_ok() at
 * the end; until then every function takes and returns objects that can be used.
 *
 *     fr_result_act(r, FR_ACT_WHY, "The square is the first number that does not fit");
 *     struct fr_chain *t = fr_result_chain(r, "one row, step by step");
 *     fr_chain_input(t, "x", FR_F16, x, 1, n);
 *     fr_chain_add(t, "x.pow(2)", FR_F16, squares, 1, n);
 *     fr_result_claim(r, "square-first", fr_chain_first_is(t, "x.pow(2)"),
 *                     "the square is the first Inf", "%s", fr_chain_first(t));
 */
#ifndef FR_REPRO_RESULT_H
#define FR_REPRO_RESULT_H

#include "base/arena.h"

enum fr_act { FR_ACT_FAILS, FR_ACT_WHY, FR_ACT_FIX, FR_ACT_COUNT_ };

/* ---- chain: what a step-by-step trace found; one link per operation, with magnitudes ---- */

/* What is wrong with an operation's output, on the first operation of the trace that shows it. */
enum fr_mark { FR_MARK_NONE, FR_MARK_INF, FR_MARK_NAN, FR_MARK_ZERO_ROW };

struct fr_link {
    fr_sv op;       /* the expression, as its author writes it */
    uint32_t dtype; /* FR_F16 ... of faultrank/numerics.h: the type its output is stored in */
    bool is_input;  /* no operation of ours: never marked */
    uint32_t n;     /* elements */
    uint32_t zeros, infs, nans;
    uint32_t rows, zero_rows; /* a row of zeros only counts when it has two elements or more */
    double most, least;       /* largest magnitude (Inf when there is one), smallest one above 0 */
    uint8_t mark;             /* enum fr_mark */
};

struct fr_chain {
    struct fr_result *owner;
    fr_sv title;
    struct fr_link *row;
    uint32_t n, cap;
    int32_t first; /* row of the first mark, -1 none */
    uint8_t seen;  /* bits of the marks that were given */
};

/* Both look at rows x cols elements. Values are what was stored: round before. */
void fr_chain_input(struct fr_chain *t, const char *name, uint32_t dtype, const double *v,
                    uint32_t rows, uint32_t cols);
const struct fr_link *fr_chain_add(struct fr_chain *t, const char *op, uint32_t dtype,
                                   const double *v, uint32_t rows, uint32_t cols);
/* The same with what somebody else has counted; the mark is found here. */
void fr_chain_link(struct fr_chain *t, const struct fr_link *link);
/* The operation with the first mark; "none" when there is none. */
const char *fr_chain_first(const struct fr_chain *t);
bool fr_chain_first_is(const struct fr_chain *t, const char *op);
const char *fr_mark_name(uint8_t mark); /* "first Inf", "first NaN", "first row of zeros", "" */

/* ---- series: numbers over steps, layers or sizes ---- */

struct fr_curve {
    struct fr_result *owner;
    fr_sv name, per; /* "loss", "step" */
    bool is_log;     /* drawn on a logarithmic scale */
    double *v;       /* Inf and NaN are values like others */
    uint32_t n, cap;
};

void fr_curve_add(struct fr_curve *s, double v);

/* ---- table: text cells ---- */

#define FR_TABLE_COLUMNS 8
struct fr_table {
    struct fr_result *owner;
    fr_sv title;
    const char *const *heads; /* NULL-terminated, static */
    uint32_t columns;
    fr_sv *cell;     /* row by row */
    uint32_t n, cap; /* cells */
};

/* The next cell, from left to right, top to bottom. */
__attribute__((format(printf, 2, 3))) void fr_table_cell(struct fr_table *t, const char *fmt, ...);

/* ---- claim: a sentence of the page that can turn out to be wrong ---- */

struct fr_claim {
    const char *id;   /* a-z 0-9 -; unique in a reproduction */
    const char *says; /* what the page says */
    fr_sv measured;
    uint8_t act;
    bool held;
    bool unknown; /* not measured: something it needs was not said; `measured` names it */
};

/* ---- the result ---- */

enum fr_item_kind { FR_ITEM_SAY, FR_ITEM_CHAIN, FR_ITEM_CURVE, FR_ITEM_TABLE, FR_ITEM_CLAIM };
struct fr_item {
    uint8_t act, kind;
    fr_sv text; /* FR_ITEM_SAY */
    union {
        const struct fr_chain *chain;
        const struct fr_curve *curve;
        const struct fr_table *table;
        const struct fr_claim *claim;
    };
};

struct fr_result {
    struct fr_arena arena;
    fr_sv title[FR_ACT_COUNT_]; /* of the acts; empty: the act was not played */
    uint8_t act;                /* the one that is being played */
    struct fr_item *item;
    uint32_t n, cap;
    uint32_t claims, held, unknown; /* claims: all; unknown: those nobody could measure */
    bool failed; /* out of memory, or over the arena's limit */
    /* handed out when there is no memory, never shown */
    struct fr_chain no_chain;
    struct fr_curve no_curve;
    struct fr_table no_table;
};

void fr_result_init(struct fr_result *r);
void fr_result_release(struct fr_result *r);
static inline bool fr_result_ok(const struct fr_result *r)
{
    return !r->failed;
}
/* Every claim held, and there was one. */
static inline bool fr_result_as_claimed(const struct fr_result *r)
{
    return r->claims > 0 && r->held == r->claims;
}
/* A claim was measured and did not hold. */
static inline bool fr_result_refuted(const struct fr_result *r)
{
    return r->held + r->unknown < r->claims;
}
/* A claim by its id; NULL when nobody made it. */
const struct fr_claim *fr_result_find(const struct fr_result *r, const char *id);

/* Acts are played in order; what follows belongs to the act. */
__attribute__((format(printf, 3, 4))) void fr_result_act(struct fr_result *r, uint8_t act,
                                                         const char *fmt, ...);
/* A paragraph. */
__attribute__((format(printf, 2, 3))) void fr_result_say(struct fr_result *r, const char *fmt, ...);
struct fr_chain *fr_result_chain(struct fr_result *r, const char *title);
struct fr_curve *fr_result_curve(struct fr_result *r, const char *name, const char *per,
                                 bool is_log);
struct fr_table *fr_result_table(struct fr_result *r, const char *title, const char *const *heads);
/* id and says are static texts; the rest is what was measured. Gives held back. */
__attribute__((format(printf, 5, 6))) bool fr_result_claim(struct fr_result *r, const char *id,
                                                           bool held, const char *says,
                                                           const char *fmt, ...);
/* A claim that cannot be measured; the rest says what is missing. */
__attribute__((format(printf, 4, 5))) void
fr_result_unknown(struct fr_result *r, const char *id, const char *says, const char *fmt, ...);

#endif
