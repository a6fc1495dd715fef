/* SPDX-License-Identifier: Apache-2.0 */
/* acts_text: a reproduction for a terminal. */
#include "report/acts.h"

#include "faultrank/numerics.h"
#include "report/wrap.h"

#include <math.h>
#include <stdio.h>

#define BOLD          "\x1b[1m"
#define RED           "\x1b[31m"
#define GREEN         "\x1b[32m"
#define DIM           "\x1b[2m"
#define OFF           "\x1b[0m"
#define SPARK_COLUMNS 60

struct page {
    struct fr_buf *out;
    int width;
    bool color;
};

static void paint(struct page *p, const char *how, const char *text)
{
    fr_buf_addz(p->out, p->color ? how : "");
    fr_buf_addz(p->out, text);
    fr_buf_addz(p->out, p->color ? OFF : "");
}

const char *fr_acts_number(double v, char ret[32])
{
    if (isnan(v)) {
        return "NaN";
    }
    if (isinf(v)) {
        return v > 0 ? "Inf" : "-Inf";
    }
    snprintf(ret, 32, fabs(v) >= 1000 && fabs(v) < 1e6 ? "%.0f" : "%.4g", v);
    return ret;
}

/* ---- curves ---- */

struct span {
    double low, high;
    bool any; /* a finite value that can be drawn */
};

static double drawn(const struct fr_curve *s, double v)
{
    return s->is_log ? log2(fabs(v))
                     : v; /* zero on a logarithmic scale is -Inf: the lowest height */
}

static struct span span_of(const struct fr_curve *s)
{
    struct span p = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        double d = drawn(s, s->v[i]);
        if (isfinite(s->v[i]) && isfinite(d)) {
            p.low = !p.any || d < p.low ? d : p.low;
            p.high = !p.any || d > p.high ? d : p.high;
            p.any = true;
        }
    }
    return p;
}

void fr_acts_spark(const struct fr_curve *s, unsigned columns, struct fr_buf *out)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const struct span p = span_of(s);
    const unsigned n = s->n < columns ? s->n : columns;
    for (unsigned c = 0; c < n; c++) {
        const uint32_t from = (uint32_t)((uint64_t)c * s->n / n),
                       to = (uint32_t)((uint64_t)(c + 1) * s->n / n);
        double top = -INFINITY;
        bool broken = false;
        for (uint32_t i = from; i < to; i++) {
            broken |= !isfinite(s->v[i]);
            top = drawn(s, s->v[i]) > top ? drawn(s, s->v[i]) : top;
        }
        if (broken) {
            fr_buf_addc(out, '!');
            continue;
        }
        double share = p.high > p.low && top > p.low ? (top - p.low) / (p.high - p.low) : 0;
        fr_buf_addz(out, heights[share >= 1 ? 7 : (int)(share * 8)]);
    }
}

static void curve(struct page *p, const struct fr_curve *s)
{
    char a[32], b[32];
    fr_buf_printf(p->out, "  %-26.*s ", FR_SV_ARG(s->name));
    fr_buf_addz(p->out, p->color ? GREEN : "");
    fr_acts_spark(s, SPARK_COLUMNS, p->out);
    fr_buf_addz(p->out, p->color ? OFF : "");
    if (s->n > 0) {
        fr_buf_printf(p->out, "  %s to %s over %u %.*ss%s", fr_acts_number(s->v[0], a),
                      fr_acts_number(s->v[s->n - 1], b), s->n, FR_SV_ARG(s->per),
                      s->is_log ? ", log scale" : "");
    }
    fr_buf_addc(p->out, '\n');
}

/* ---- tables ---- */

static void pad(struct page *p, fr_sv text, int width, bool right)
{
    const int gap = width - fr_wrap_columns(text);
    if (right) {
        fr_buf_printf(p->out, "%*s", gap > 0 ? gap : 0, "");
    }
    fr_buf_add(p->out, text);
    if (!right) {
        fr_buf_printf(p->out, "%*s", gap > 0 ? gap : 0, "");
    }
}

static void end_line(struct page *p)
{
    while (p->out->n > 0 && p->out->p[p->out->n - 1] == ' ') {
        p->out->p[--p->out->n] = '\0';
    }
    fr_buf_addc(p->out, '\n');
}

static void table(struct page *p, const struct fr_table *t)
{
    int width[FR_TABLE_COLUMNS] = {0};
    for (uint32_t c = 0; c < t->columns; c++) {
        width[c] = fr_wrap_columns(fr_sv_z(t->heads[c]));
        for (uint32_t i = c; i < t->n; i += t->columns) {
            const int w = fr_wrap_columns(t->cell[i]);
            width[c] = w > width[c] ? w : width[c];
        }
    }
    fr_buf_printf(p->out, "  %.*s\n    ", FR_SV_ARG(t->title));
    fr_buf_addz(p->out, p->color ? DIM : "");
    for (uint32_t c = 0; c < t->columns; c++) {
        pad(p, fr_sv_z(t->heads[c]), width[c] + 2, false);
    }
    end_line(p);
    fr_buf_addz(p->out, p->color ? OFF : "");
    for (uint32_t i = 0; i < t->n; i++) {
        fr_buf_addz(p->out, i % t->columns == 0 ? "    " : "");
        pad(p, t->cell[i], width[i % t->columns] + 2, false);
        if (i % t->columns == t->columns - 1 || i == t->n - 1) {
            end_line(p);
        }
    }
}

/* ---- traces ---- */

static void trace_row(struct page *p, const struct fr_link *w, int wide)
{
    char a[32], b[32];
    const struct fr_dtype_info *type = fr_dtype_info(w->dtype);
    fr_buf_addz(p->out, "    ");
    pad(p, w->op, wide + 2, false);
    pad(p, fr_sv_z(type != NULL ? type->name : ""), 13, false);
    pad(p, fr_sv_z(w->nans == w->n ? "NaN" : fr_acts_number(w->most, a)), 10, true);
    pad(p, fr_sv_z(w->least > 0 ? fr_acts_number(w->least, b) : "-"), 11, true);
    fr_buf_printf(p->out, " %7u %7u %7u   ", w->zeros, w->infs, w->nans);
    if (w->mark != FR_MARK_NONE) {
        fr_buf_addz(p->out, "<- ");
        paint(p, RED, fr_mark_name(w->mark));
    }
    end_line(p);
}

static void trace(struct page *p, const struct fr_chain *t)
{
    int wide = 9;
    for (uint32_t i = 0; i < t->n; i++) {
        const int w = fr_wrap_columns(t->row[i].op);
        wide = w > wide ? w : wide;
    }
    fr_buf_printf(p->out, "  %.*s\n", FR_SV_ARG(t->title));
    fr_buf_addz(p->out, p->color ? DIM : "");
    fr_buf_printf(p->out, "    %-*s  %-13s%10s%11s %7s %7s %7s\n", wide, "operation", "stored in",
                  "largest", "smallest", "zeros", "Inf", "NaN");
    fr_buf_addz(p->out, p->color ? OFF : "");
    for (uint32_t i = 0; i < t->n; i++) {
        trace_row(p, &t->row[i], wide);
    }
}

/* ---- the page ---- */

static void claim(struct page *p, const struct fr_claim *c)
{
    FR_AUTO(fr_buf) text = FR_BUF_INIT(0);
    fr_buf_addz(p->out, "  ");
    paint(p, c->held ? GREEN : RED, c->held ? "[holds]" : c->unknown ? "[  ?  ]" : "[FAILS]");
    fr_buf_printf(&text, "%s: %.*s", c->says, FR_SV_ARG(c->measured));
    fr_wrap(p->out, fr_buf_sv(&text), " ", "          ", p->width - 9);
}

static void show(struct page *p, const struct fr_item *it)
{
    switch (it->kind) {
    case FR_ITEM_SAY:
        fr_wrap(p->out, it->text, "  ", "  ", p->width);
        break;
    case FR_ITEM_CHAIN:
        trace(p, it->chain);
        break;
    case FR_ITEM_CURVE:
        curve(p, it->curve);
        break;
    case FR_ITEM_TABLE:
        table(p, it->table);
        break;
    default:
        claim(p, it->claim);
        break;
    }
}

static void verdict(struct page *p, const struct fr_result *r, const char *what,
                    const char *not_what)
{
    const bool good = fr_result_as_claimed(r);
    fr_buf_addc(p->out, '\n');
    fr_buf_printf(p->out, "%u of %u hold: ", r->held, r->claims);
    paint(p, good ? GREEN : RED,
          good                   ? what
          : fr_result_refuted(r) ? not_what
                                 : "cannot tell, something is not said");
    fr_buf_addc(p->out, '\n');
}

static struct page page_of(const struct fr_acts_options *o, struct fr_buf *out)
{
    return (struct page){out, o->width > 0 ? o->width : 100, o->color};
}

/* The page speaks of the defaults; whoever brings other numbers asks whether they fail too. */
static bool own_numbers(const struct fr_acts *a)
{
    for (unsigned i = 0; a->repro->params[i].name != NULL; i++) {
        if (a->values->v[i] != a->repro->params[i].value) {
            return true;
        }
    }
    return false;
}

void fr_acts_text(const struct fr_acts *a, const struct fr_acts_options *o, struct fr_buf *out)
{
    static const char *const names[] = {"It fails", "Why", "The fix"};
    struct page p = page_of(o, out);
    char shown[32];
    paint(&p, BOLD, a->title);
    fr_buf_printf(out, "\n%s ", a->repro->id);
    for (unsigned i = 0; a->repro->params[i].name != NULL; i++) {
        fr_buf_printf(out, " %s=%s", a->repro->params[i].name,
                      fr_repro_show(&a->repro->params[i], a->values->v[i], shown));
    }
    fr_buf_addc(out, '\n');
    int act = -1;
    uint8_t last = FR_ITEM_SAY;
    for (uint32_t i = 0; i < a->result->n; i++) {
        const struct fr_item *it = &a->result->item[i];
        if (it->act != act) {
            act = it->act;
            fr_buf_printf(out, "\n%s%s: %.*s%s\n", p.color ? BOLD : "", names[act],
                          FR_SV_ARG(a->result->title[act]), p.color ? OFF : "");
        } else if (it->kind != last || it->kind == FR_ITEM_TABLE || it->kind == FR_ITEM_CHAIN) {
            fr_buf_addc(out, '\n');
        }
        last = it->kind;
        show(&p, it);
    }
    verdict(&p, a->result, "it behaves as its page claims",
            own_numbers(a) ? "with these numbers it does not go as its page says; what is marked "
                             "[FAILS] did not happen"
                           : "it does not behave as its page claims");
}

void fr_acts_claims(const struct fr_acts *a, const struct fr_acts_options *o, struct fr_buf *out)
{
    struct page p = page_of(o, out);
    paint(&p, BOLD, a->title);
    fr_buf_printf(out, "\n%s\n\n", a->repro->id);
    for (uint32_t i = 0; i < a->result->n; i++) {
        show(&p, &a->result->item[i]);
    }
    verdict(&p, a->result, "this model is safe from it", "this model is not safe from it");
}
