/* SPDX-License-Identifier: Apache-2.0 */
/* check_html: one self-contained page without scripts. Everything foreign passes fr_escape; the
 * policy in the head forbids loading anything at all should that ever fail. */
#include "report/check_words.h"
#include "report/escape.h"
#include "report/words.h"

#include <inttypes.h>
#include <math.h>

#define TENSORS_MAX 4000 /* rows of the table */
#define CELL 12          /* pixels of the picture */

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" "
    "content=\"no-referrer\">\n<title>";

static const char style[] =
    "</title>\n<style>\n"
    ":root{--bg:#fbfaf8;--fg:#1d1f23;--mid:#5c6470;--line:#dcdfe4;--card:#ffffff;--code:#f1f2f4;--"
    "bad:#c62828;--risk:#b3771a;--fine:#2e7a56;"
    "--bar:#1f5fa8}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e6e8eb;--mid:#9aa3af;--line:#"
    "30353c;--card:#1c1f23;--code:#25292f;"
    "--bad:#ff6b62;--risk:#d99a2b;--fine:#5fb88c;--bar:#7db4ee}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 "
    "system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}\n"
    "main{max-width:70rem;margin:0 auto;padding:2rem 1.25rem 4rem}\n"
    "h1{font-size:1.6rem;line-height:1.25;margin:0 0 "
    ".4rem;overflow-wrap:anywhere}.promote{color:var(--fine)}.do-not-promote{color:var(--bad)}"
    ".cannot-tell{color:var(--risk)}\n"
    "h2{font-size:1.05rem;margin:1.8rem 0 .5rem}p,ul{margin:.4rem "
    "0}li,p,td{overflow-wrap:anywhere}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1.25rem "
    "1.5rem 1.5rem;margin:1.25rem 0}\n"
    ".f{border-left:4px solid var(--line);padding:.1rem 0 .1rem .9rem;margin:.9rem 0}.f "
    "b{display:block}.blocks{border-color:var(--bad)}"
    ".hides,.risk{border-color:var(--risk)}.m{color:var(--mid);font-size:.92rem}\n"
    "code{background:var(--code);padding:.05rem .3rem;border-radius:3px;font:.9em "
    "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
    "overflow-wrap:anywhere}\n"
    ".w{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{text-align:"
    "left;vertical-align:top;padding:.25rem .8rem .25rem 0;"
    "border-bottom:1px solid "
    "var(--line)}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}th{"
    "color:var(--mid);font-weight:500}\n"
    "svg{display:block;max-width:100%;height:auto}svg text{font:10px "
    "system-ui,sans-serif;fill:var(--mid)}svg rect{fill:var(--bar)}"
    "svg .x{fill:var(--bad)}svg .r{fill:var(--risk)}svg "
    ".u{fill:var(--line)}summary{cursor:pointer}footer{color:var(--mid);font-size:.9rem}\n"
    "</style>\n</head>\n<body>\n<main>\n";

struct page {
    const struct fr_check *c;
    struct fr_buf *out;
    struct fr_buf scratch; /* clean, not escaped yet */
};

static void flush(struct page *p, const char *open, const char *close)
{
    if (p->scratch.n > 0) {
        fr_buf_addz(p->out, open);
        fr_escape_flush(p->out, &p->scratch);
        fr_buf_addz(p->out, close);
    }
}

static void tagged(struct page *p, const char *open, fr_sv s, const char *close)
{
    if (s.n > 0) {
        fr_buf_addz(p->out, open);
        fr_escape(p->out, s, 4096);
        fr_buf_addz(p->out, close);
    }
}

static void top(struct page *p)
{
    fr_buf_printf(p->out, "<section>\n<h1 class=\"%s\">", fr_check_verdict_name(p->c->verdict));
    fr_check_words_headline(&p->scratch, p->c);
    flush(p, "", "");
    fr_buf_addz(p->out, "</h1>\n");
    fr_check_words_input(&p->scratch, p->c);
    flush(p, "<p class=\"m\">", "</p>\n");
    fr_check_words_last_good(&p->scratch, p->c);
    flush(p, "<p>Of the steps here, ", ".</p>\n");
}

static void findings(struct page *p, uint8_t weight)
{
    bool any = false;
    for (uint32_t i = 0; i < p->c->findings.n; i++) {
        const struct fr_check_finding *f = &p->c->findings.v[i];
        if (f->weight != weight) {
            continue;
        }
        if (!any) {
            fr_buf_printf(p->out, "<h2>%s</h2>\n", fr_check_words_heading(weight));
        }
        any = true;
        fr_buf_printf(p->out, "<div class=\"f %s\">", fr_check_weight_name(weight));
        tagged(p, "<b>", f->title, "</b>");
        fr_check_words_where(&p->scratch, f);
        flush(p, "<code>", "</code>");
        tagged(p, "<p>", f->text, "</p>");
        tagged(p, "<p class=\"m\">Not known: ", f->unknown, "</p>");
        tagged(p, "<p class=\"m\"><code>faultrank explain ", f->cls, "</code></p>");
        fr_buf_addz(p->out, "</div>\n");
    }
}

/* ---- the picture: a row for each layer, a bar for each tensor ---- */

static void bars(struct page *p, const struct fr_check_layer *l, const struct fr_check_scale *s,
                 uint32_t y)
{
    const uint32_t n = l->n < FR_CHECK_CELLS ? l->n : FR_CHECK_CELLS;
    for (uint32_t i = 0; i < n; i++) {
        const struct fr_check_tensor *t = &p->c->tensors.v[l->from + i];
        const unsigned height = t->worst <= FR_CHECK_HIDES ? 8 : fr_check_height(s, t),
                       h = height > 0 ? height * CELL / 8 : 2;
        const char *cls = t->worst == FR_CHECK_BLOCKS ? " class=\"x\""
                          : t->worst <= FR_CHECK_RISK ? " class=\"r\""
                          : height == 0               ? " class=\"u\""
                                                      : "";
        fr_buf_printf(p->out, "<rect%s x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\"><title>", cls,
                      130 + i * CELL, y + CELL - h, CELL - 2, h);
        fr_escape(p->out, t->name, 300);
        fr_buf_printf(p->out, ": max %.4g</title></rect>", t->abs_max);
    }
}

static void picture(struct page *p)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct fr_check_row *rows = FR_NEW_N(&scratch, struct fr_check_row, p->c->layers.n + 1);
    const uint32_t n = rows != NULL ? fr_check_rows(p->c, rows) : 0;
    const struct fr_check_scale s = fr_check_scale_of(p->c);
    p->out->failed |= rows == NULL;
    if (n > 0) {
        fr_buf_printf(
            p->out,
            "<h2>Layers</h2>\n<p class=\"m\">One bar a tensor; its height is the largest "
            "magnitude, from %.3g to %.3g on a logarithmic scale.</p>\n"
            "<svg viewBox=\"0 0 %u %u\" role=\"img\" aria-label=\"largest magnitudes by layer\">\n",
            s.low, s.high, 140 + FR_CHECK_CELLS * CELL, n * (CELL + 4));
        for (uint32_t i = 0; i < n; i++) {
            const struct fr_check_layer *first = &p->c->layers.v[rows[i].from],
                                        *last = &p->c->layers.v[rows[i].from + rows[i].n - 1];
            fr_buf_printf(p->out, "<text x=\"0\" y=\"%u\">", i * (CELL + 4) + CELL - 2);
            if (rows[i].shared) {
                fr_buf_printf(p->out, "layers %" PRId32 "-%" PRId32, first->first, last->last);
            } else {
                fr_escape(p->out, first->label, 22);
            }
            fr_buf_addz(p->out, "</text>");
            bars(p, first, &s, i * (CELL + 4));
            fr_buf_addc(p->out, '\n');
        }
        fr_buf_addz(p->out, "</svg>\n");
    }
    fr_arena_release(&scratch);
}

/* ---- tables ---- */

static void cell(struct page *p, const char *format, double d)
{
    fr_buf_addz(p->out, "<td class=\"n\">");
    fr_buf_printf(p->out,
                  strcmp(format, "count") == 0    ? "%.0f"
                  : strcmp(format, "cosine") == 0 ? "%.4f"
                                                  : "%.4g",
                  d);
    fr_buf_addz(p->out, "</td>");
}

static void comparisons(struct page *p)
{
    for (uint32_t i = 0; i < p->c->comparisons.n; i++) {
        const struct fr_check_comparison *m = &p->c->comparisons.v[i];
        tagged(p, "<h2>Compared with ", m->b, "</h2>\n");
        tagged(p, "<p>", m->text, "</p>\n");
        fr_buf_addz(p->out, m->diffs.n > 0
                                ? "<div "
                                  "class=\"w\"><table><tr><th>tensor</th><th>elements</"
                                  "th><th>differ</th><th>of its norm</th><th>cosine</th></tr>\n"
                                : "");
        for (uint32_t k = 0; k < m->diffs.n && k < TENSORS_MAX; k++) {
            const struct fr_check_diff *d = &m->diffs.v[k];
            tagged(p, "<tr><td><code>", d->name, "</code></td>");
            cell(p, "count", (double)d->elements);
            cell(p, "count", (double)d->differing);
            cell(p, "real", d->relative);
            cell(p, "cosine", d->cosine);
            fr_buf_addz(p->out, "</tr>\n");
        }
        fr_buf_addz(p->out, m->diffs.n > 0 ? "</table></div>\n" : "");
    }
}

static void steps(struct page *p)
{
    if (p->c->steps.n < 2) {
        return;
    }
    fr_buf_addz(p->out, "<h2>Steps</h2>\n<ul>\n");
    for (uint32_t i = p->c->steps.n; i-- > 0;) {
        const struct fr_check_step *s = &p->c->steps.v[i];
        if (!fr_check_step_shown(s)) {
            continue;
        }
        fr_buf_printf(p->out, "<li>%s: ",
                      s->checked || s->verdict == FR_CHECK_DO_NOT
                          ? fr_check_verdict_name(s->verdict)
                          : "not checked");
        tagged(p, "<code>", s->path, "</code>");
        tagged(p, ", ", s->why, "");
        fr_buf_addz(p->out, "</li>\n");
    }
    fr_buf_addz(p->out, "</ul>\n");
}

static void tensors(struct page *p)
{
    if (p->c->tensors.n == 0) {
        return;
    }
    fr_buf_printf(p->out,
                  "<details><summary>%" PRIu32 " tensors</summary>\n<div "
                                               "class=\"w\"><table><tr><th>tensor</th><th>type</"
                                               "th><th>elements</th><th>NaN</th><th>Inf</th>"
                  "<th>zero</th><th>subnormal</th><th>max</th><th>rms</th></tr>\n",
                  p->c->tensors.n);
    for (uint32_t i = 0; i < p->c->tensors.n && i < TENSORS_MAX; i++) {
        const struct fr_check_tensor *t = &p->c->tensors.v[i];
        tagged(p, "<tr><td><code>", t->name, "</code></td>");
        tagged(p, "<td>", t->dtype, "</td>");
        const double counts[] = {(double)t->elements, (double)t->nan, (double)t->inf,
                                 (double)t->zero, (double)t->subnormal};
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            cell(p, "count", counts[k]);
        }
        cell(p, "real", t->abs_max);
        cell(p, "real", t->rms);
        fr_buf_addz(p->out, "</tr>\n");
    }
    fr_buf_addz(p->out,
                p->c->tensors.n > TENSORS_MAX
                    ? "</table></div>\n<p class=\"m\">The rest is in the JSON.</p></details>\n"
                    : "</table></div></details>\n");
}

static int write_html(const struct fr_check *c, const struct fr_check_write_options *o,
                      struct fr_buf *out, struct fr_err *err)
{
    struct page p = {c, out, FR_BUF_INIT(0)};
    (void)o;
    fr_buf_addz(out, head);
    fr_check_words_headline(&p.scratch, c);
    flush(&p, "", "");
    fr_buf_addz(out, style);
    top(&p);
    for (uint8_t w = 0; w < FR_CHECK_WEIGHTS; w++) {
        findings(&p, w);
    }
    comparisons(&p);
    picture(&p);
    steps(&p);
    tensors(&p);
    fr_buf_addz(out, "</section>\n<footer>Checked: ");
    for (uint32_t i = 0; i < c->checked.n; i++) {
        tagged(&p, i > 0 ? "; " : "", c->checked.v[i], "");
    }
    fr_buf_addz(out, ". Written by faultrank; nothing in this page loads or runs "
                     "anything.</footer>\n</main>\n</body>\n</html>\n");
    out->failed |= !fr_buf_ok(&p.scratch);
    fr_buf_release(&p.scratch);
    return fr_words_finish(out, err);
}

const struct fr_check_writer fr_check_writer_html = {
    .name = "html", .summary = "one self-contained page", .write = write_html};
