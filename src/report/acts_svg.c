/* SPDX-License-Identifier: Apache-2.0 */
/* acts_svg: a reproduction as one picture. Panels from top to bottom, in the order of the acts:
 * a curve as a line, a trace as one bar per operation, as long as its largest magnitude has bits.
 * Positions have one decimal, so that equal results give equal bytes. No script, no reference. */
#include "report/acts.h"

#include "report/escape.h"

#include <math.h>

#define WIDTH  960
#define LEFT   300 /* room for names */
#define RIGHT  70
#define PLOT   (WIDTH - LEFT - RIGHT)
#define CURVE  84
#define BAR    18
#define POINTS 600 /* of a curve; longer ones are thinned by their largest */

static const char style[] = "text{font:12px "
                            "ui-monospace,monospace;fill:#1f2430}.h{font-weight:600;font-size:15px}"
                            ".a{font-weight:600;fill:#444c5e}"
                            ".n{text-anchor:end}.s{fill:#6b7385;font-size:11px}.c{fill:none;stroke:"
                            "#2563c9;stroke-width:1.6}.b{fill:#8fb3e8}"
                            ".x{fill:#c92a2a}.g{stroke:#d5d9e2}.l{stroke:#c92a2a;stroke-dasharray:"
                            "3 3}.k{fill:#2b8a3e}rect.p{fill:#fff}";

static void text(struct fr_buf *out, const char *class, double x, double y, fr_sv s)
{
    fr_buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
    fr_escape(out, s, 120);
    fr_buf_addz(out, "</text>\n");
}

static void numbered(struct fr_buf *out, const char *class, double x, double y, double v)
{
    char z[32];
    text(out, class, x, y, fr_sv_z(fr_acts_number(v, z)));
}

/* ---- a curve ---- */

static double height(const struct fr_curve *s, double v)
{
    return s->is_log ? (v == 0 ? -30 : log2(fabs(v))) : v;
}

static double curve(const struct fr_curve *s, double y, struct fr_buf *out)
{
    double low = INFINITY, high = -INFINITY, least = 0, most = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (isfinite(s->v[i])) {
            const double h = height(s, s->v[i]);
            least = h < low ? s->v[i] : least;
            most = h > high ? s->v[i] : most;
            low = h < low ? h : low;
            high = h > high ? h : high;
        }
    }
    const double room = CURVE - 24, unit = high > low ? room / (high - low) : 0,
                 floor_y = y + CURVE - 12;
    const uint32_t step = s->n / POINTS + 1;
    text(out, "n", LEFT - 12, y + CURVE / 2.0, s->name);
    fr_buf_printf(out, "<line class=\"g\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", LEFT,
                  floor_y, WIDTH - RIGHT, floor_y);
    bool drawing = false;
    for (uint32_t i = 0; i < s->n; i += step) {
        const double x = LEFT + PLOT * (s->n > 1 ? (double)i / (s->n - 1) : 0);
        if (!isfinite(s->v[i])) {
            fr_buf_addz(out, drawing ? "\"/>\n" : "");
            fr_buf_printf(out,
                          "<rect class=\"x\" x=\"%.1f\" y=\"%.1f\" width=\"3\" height=\"%.1f\"/>\n",
                          x - 1.5, y + 12, room);
            drawing = false;
            continue;
        }
        const double at = floor_y - (height(s, s->v[i]) - low) * unit;
        fr_buf_printf(out, "%s%.1f,%.1f", drawing ? " " : "<polyline class=\"c\" points=\"", x, at);
        drawing = true;
    }
    fr_buf_addz(out, drawing ? "\"/>\n" : "");
    if (high >= low) {
        numbered(out, "s", WIDTH - RIGHT + 6, y + 16, most);
        numbered(out, "s", WIDTH - RIGHT + 6, floor_y, least);
    }
    return y + CURVE;
}

/* ---- a trace ---- */

/* Magnitudes from 2^-24 to 2^40 across the plot. */
static double x_of(double v)
{
    const double bits = v > 0 ? log2(v) : -24;
    return LEFT + PLOT * (bits < -24 ? 0 : bits > 40 ? 1 : (bits + 24) / 64);
}

static void bar(const struct fr_link *w, double y, struct fr_buf *out)
{
    const bool bad = w->infs > 0 || w->nans > 0;
    const double end = bad ? WIDTH - RIGHT : x_of(w->most);
    text(out, "n", LEFT - 12, y + 13, w->op);
    fr_buf_printf(out, "<rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n",
                  bad ? "x" : "b", LEFT, y + 3, end - LEFT > 1 ? end - LEFT : 1, BAR - 6);
    if (w->mark != FR_MARK_NONE) {
        text(out, "a", LEFT + 6, y + 13, fr_sv_z(fr_mark_name(w->mark)));
    }
    numbered(out, "s", WIDTH - RIGHT + 6, y + 13, w->nans > 0 ? NAN : w->most);
}

static double trace(const struct fr_chain *t, double y, struct fr_buf *out)
{
    text(out, "s", LEFT, y + 14, t->title);
    y += 20;
    const double limit = x_of(65504);
    fr_buf_printf(out, "<line class=\"l\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                  limit, y, limit, y + t->n * BAR);
    for (uint32_t i = 0; i < t->n; i++, y += BAR) {
        bar(&t->row[i], y, out);
    }
    return y + 10;
}

/* ---- the picture ---- */

static double high(const struct fr_result *r)
{
    double y = 84;
    int act = -1;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct fr_item *it = &r->item[i];
        const double h = it->kind == FR_ITEM_CURVE   ? CURVE
                         : it->kind == FR_ITEM_CHAIN ? it->chain->n * BAR + 30.0
                                                     : 0;
        y += h > 0 && it->act != act ? 26 : 0;
        act = h > 0 ? it->act : act;
        y += h;
    }
    return y;
}

void fr_acts_svg(const struct fr_acts *a, struct fr_buf *out)
{
    static const char *const names[] = {"It fails: ", "Why: ", "The fix: "};
    const struct fr_result *r = a->result;
    double y = 56;
    int act = -1;
    fr_buf_printf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" role=\"img\">\n<title>",
        WIDTH, high(r));
    fr_escape_z(out, a->title);
    fr_buf_printf(out,
                  "</title>\n<style>%s</style>\n<rect class=\"p\" width=\"%d\" height=\"%.0f\"/>\n",
                  style, WIDTH, high(r));
    text(out, "h", 20, 26, fr_sv_z(a->title));
    text(out, "s", 20, 44, fr_sv_z(a->repro->id));
    for (uint32_t i = 0; i < r->n; i++) {
        const struct fr_item *it = &r->item[i];
        if (it->kind != FR_ITEM_CURVE && it->kind != FR_ITEM_CHAIN) {
            continue;
        }
        if (it->act != act) {
            FR_AUTO(fr_buf) title = FR_BUF_INIT(0);
            act = it->act;
            fr_buf_printf(&title, "%s%.*s", names[act], FR_SV_ARG(r->title[act]));
            text(out, "a", 20, y + 18, fr_buf_sv(&title));
            y += 26;
        }
        y = it->kind == FR_ITEM_CURVE ? curve(it->curve, y, out) : trace(it->chain, y, out);
    }
    FR_AUTO(fr_buf) end = FR_BUF_INIT(0);
    fr_buf_printf(&end, "%u of %u claims hold", r->held, r->claims);
    text(out, fr_result_as_claimed(r) ? "k" : "x", 20, y + 18, fr_buf_sv(&end));
    fr_buf_addz(out, "</svg>\n");
}
