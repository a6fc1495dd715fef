/* SPDX-License-Identifier: Apache-2.0 */
/* picture: see picture.h. Positions are whole tenths of a unit, so that equal reports give equal bytes. */
#include "report/picture.h"

#include "report/escape.h"

#include <inttypes.h>

#define LEFT 112 /* room for labels */
#define RIGHT 20
#define WIDTH 960
#define TOP 26
#define ISOLATED_MAX 64

struct row {
    uint32_t first, last; /* lanes of the report, inclusive */
    uint8_t role;
    int64_t from, to, mark;
};
typedef FR_VEC(struct row) rows;

struct frame {
    int64_t t0, t1;  /* t0 == t1: no time to show */
    double height;   /* of one row */
};

static int weight(uint8_t role)
{
    return role == FR_LANE_INITIATOR ? 3 : role == FR_LANE_COLLATERAL ? 2 : role == FR_LANE_FINE ? 0 : 1;
}

static int64_t least(int64_t a, int64_t b)
{
    return a == FR_TIME_NONE ? b : b == FR_TIME_NONE || a < b ? a : b;
}

/* Differences of times must not overflow: beyond a century from 1970 a time is a broken one, and unknown. */
static int64_t sane(int64_t t)
{
    const int64_t most = 4000000000LL * FR_NS_PER_S;
    return t > most || t < -most ? FR_TIME_NONE : t;
}

static void join(struct row *w, const struct fr_lane *l, uint32_t i)
{
    w->last = i;
    w->role = weight(l->role) > weight(w->role) ? l->role : w->role;
    w->from = least(w->from, sane(l->from_ns));
    w->to = sane(l->to_ns) > w->to ? l->to_ns : w->to; /* NONE is the smallest number */
    w->mark = least(w->mark, sane(l->mark_ns));
}

static bool bucket(const struct fr_report *r, rows *ret)
{
    uint32_t n = r->lanes.n, first = 0;
    for (uint32_t i = 0; i < n; i++) {
        first += r->lanes.v[i].role == FR_LANE_INITIATOR;
    }
    bool isolate = first <= ISOLATED_MAX;
    uint32_t room = FR_PICTURE_LANES - (n > FR_PICTURE_LANES && isolate ? 2 * first : 0);
    uint32_t share = (n + room - 1) / room;
    bool open = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct fr_lane *l = &r->lanes.v[i];
        bool alone = isolate && l->role == FR_LANE_INITIATOR;
        if (!open || alone || i - ret->v[ret->n - 1].first >= share) {
            struct row *w = FR_PUSH(ret);
            if (w == NULL) {
                return false;
            }
            *w = (struct row){i, i, l->role, sane(l->from_ns), sane(l->to_ns), sane(l->mark_ns)};
            open = !alone;
            continue;
        }
        join(&ret->v[ret->n - 1], l, i);
    }
    return true;
}

static void bounds(const rows *w, struct frame *f)
{
    int64_t t0 = FR_TIME_NONE, t1 = FR_TIME_NONE;
    for (uint32_t i = 0; i < w->n; i++) {
        t0 = least(least(t0, w->v[i].from), w->v[i].mark);
        t1 = w->v[i].to > t1 ? w->v[i].to : t1;
        t1 = w->v[i].mark > t1 ? w->v[i].mark : t1;
    }
    f->t0 = t0;
    f->t1 = t1 > t0 && t0 != FR_TIME_NONE ? t1 : t0;
}

static double x_of(const struct frame *f, int64_t t)
{
    double share = f->t1 > f->t0 ? ((double)t - (double)f->t0) / ((double)f->t1 - (double)f->t0) : 0;
    return LEFT + (WIDTH - LEFT - RIGHT) * (share < 0 ? 0 : share > 1 ? 1 : share);
}

static void label(const struct fr_report *r, const struct row *w, struct fr_buf *b)
{
    const struct fr_lane *x = &r->lanes.v[w->first], *y = &r->lanes.v[w->last];
    if (w->first == w->last) {
        if (x->label.n > 0) {
            fr_utf8_clean(b, x->label, 40);
        } else {
            fr_buf_printf(b, "rank %" PRId32, x->rank);
        }
    } else if (x->rank >= 0 && y->rank >= x->rank) {
        fr_buf_printf(b, "ranks %" PRId32 "-%" PRId32, x->rank, y->rank);
    } else {
        fr_words_count(b, w->last - w->first + 1, "source", "sources");
    }
}

static const char *role_words(uint8_t role)
{
    static const char *const words[] = {[FR_LANE_UNKNOWN] = "unknown", [FR_LANE_INITIATOR] = "failed first",
                                        [FR_LANE_COLLATERAL] = "victim", [FR_LANE_FINE] = "no failure seen"};
    return words[role];
}

static const char *role_class(uint8_t role)
{
    static const char *const names[] = {[FR_LANE_UNKNOWN] = "u", [FR_LANE_INITIATOR] = "i", [FR_LANE_COLLATERAL] = "c",
                                        [FR_LANE_FINE] = "f"};
    return names[role];
}

static void axis(const struct frame *f, double bottom, struct fr_buf *out)
{
    static const int64_t nice[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
                                   172800, 432000, 864000, 2592000};
    int64_t span = (f->t1 - f->t0) / FR_NS_PER_S, step = nice[0];
    for (unsigned i = 0; i < sizeof nice / sizeof *nice && span / step > 7; i++) {
        step = nice[i];
    }
    if (span == 0) {
        fr_buf_printf(out, "<text class=\"t\" x=\"%d\" y=\"%.1f\">all within one second</text>\n", (WIDTH + LEFT) / 2, bottom + 15);
        return;
    }
    if (span / step > 100) {
        return; /* years: the clocks are broken, no axis can help */
    }
    for (int64_t s = 0; s <= span; s += step) {
        double x = x_of(f, f->t0 + s * FR_NS_PER_S);
        fr_buf_printf(out, "<line class=\"g\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>", x, TOP, x, bottom);
        fr_buf_printf(out, "<text class=\"t\" x=\"%.1f\" y=\"%.1f\">+", x, bottom + 15);
        fr_words_duration(out, s);
        fr_buf_addz(out, "</text>\n");
    }
}

static void bar(const struct fr_report *r, const struct frame *f, const struct row *w, double y, struct fr_buf *out)
{
    FR_AUTO(fr_buf) name = FR_BUF_INIT(0);
    bool timed = w->from != FR_TIME_NONE && w->to != FR_TIME_NONE && f->t1 > f->t0;
    double x0 = timed ? x_of(f, w->from) : LEFT, x1 = timed ? x_of(f, w->to) : WIDTH - RIGHT;
    double gap = f->height > 6 ? 2 : f->height > 3 ? 0.6 : 0, height = f->height - gap;
    if (w->role == FR_LANE_INITIATOR && height < 5) { /* the one row that must be seen may cover its neighbours' edges */
        gap = f->height - 5;
        height = 5;
    }
    fr_buf_printf(out, "<g class=\"%s%s\"><title>", role_class(w->role), timed ? "" : " n");
    label(r, w, &name);
    fr_buf_printf(&name, ": %s", role_words(w->role));
    if (timed) {
        fr_buf_addz(&name, ", last sign of life at +");
        fr_words_duration(&name, (w->to - f->t0) / FR_NS_PER_S);
    }
    fr_escape_flush(out, &name);
    fr_buf_printf(out, "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", x0, y + gap / 2,
                  x1 - x0 > 1.5 ? x1 - x0 : 1.5, height);
    if (w->mark != FR_TIME_NONE && timed && w->role != FR_LANE_INITIATOR) {
        fr_buf_printf(out, "<rect class=\"m\" x=\"%.1f\" y=\"%.1f\" width=\"2\" height=\"%.1f\"/>", x_of(f, w->mark) - 1, y + gap / 2,
                      height);
    }
    fr_buf_addz(out, "</g>\n");
}

/* Labels of the first to fail always; of others only where there is room between them. */
static void labels(const struct fr_report *r, const struct frame *f, const rows *w, struct fr_buf *out)
{
    FR_AUTO(fr_buf) name = FR_BUF_INIT(0);
    double free_from = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        double y = TOP + f->height * (i + 0.5);
        bool first = w->v[i].role == FR_LANE_INITIATOR;
        double next = 1e9;
        for (uint32_t k = i + 1; k < w->n && k < i + 12 && !first; k++) {
            if (w->v[k].role == FR_LANE_INITIATOR) {
                next = TOP + f->height * (k + 0.5);
                break;
            }
        }
        if (y < free_from || next < y + 11) {
            continue;
        }
        label(r, &w->v[i], &name);
        fr_buf_printf(out, "<text class=\"l%s\" x=\"%d\" y=\"%.1f\">", first ? " b" : "", LEFT - 8, y + 3.5);
        fr_escape_flush(out, &name);
        fr_buf_addz(out, "</text>\n");
        free_from = y + 11;
    }
}

static void first_evidence(const struct fr_report *r, const struct frame *f, const rows *w, double bottom,
                           struct fr_buf *out)
{
    bool named = false;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct row *row = &w->v[i];
        if (row->role != FR_LANE_INITIATOR || row->mark == FR_TIME_NONE || f->t1 <= f->t0) {
            continue;
        }
        double x = x_of(f, row->mark), y = TOP + f->height * (i + 0.5);
        if (!named) {
            fr_buf_printf(out, "<line class=\"d\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>", x, TOP - 4, x, bottom);
            fr_buf_printf(out, "<text class=\"e%s\" x=\"%.1f\" y=\"%d\">first evidence", x > WIDTH * 0.75 ? " r" : "", x, TOP - 10);
            if (r->incidents.n > 0 && r->incidents.v[0].initiator.when.basis != FR_TIME_BASIS_NONE) {
                fr_buf_addz(out, ", ");
                fr_words_when(out, &r->incidents.v[0].initiator.when);
            }
            fr_buf_addz(out, "</text>\n");
            named = true;
        }
        fr_buf_printf(out, "<path class=\"p\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\"/>\n", x, y - 6);
    }
}

int fr_picture(const struct fr_report *r, struct fr_buf *out)
{
    rows w = {0};
    struct frame f = {0};
    if (r->lanes.n == 0) {
        return 0;
    }
    if (!bucket(r, &w)) {
        fr_vec_free(w.v);
        return -FR_NOMEM;
    }
    bounds(&w, &f);
    f.height = w.n <= 16 ? 18 : w.n <= 32 ? 11 : w.n <= 64 ? 6 : w.n <= 128 ? 3 : 2; /* never higher than a screen */
    double bottom = TOP + f.height * w.n;
    fr_buf_printf(out, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"The run: ranks down, time across\">\n", WIDTH,
                  bottom + 24);
    if (f.t1 > f.t0) {
        axis(&f, bottom, out);
    } else {
        fr_buf_printf(out, "<text class=\"t\" x=\"%d\" y=\"%.1f\">these logs carry no times that can be compared</text>\n",
                      (WIDTH + LEFT) / 2, bottom + 15);
    }
    for (int first = 0; first < 2; first++) { /* the first to fail last: on top */
        for (uint32_t i = 0; i < w.n; i++) {
            if ((w.v[i].role == FR_LANE_INITIATOR) == (first == 1)) {
                bar(r, &f, &w.v[i], TOP + f.height * i, out);
            }
        }
    }
    labels(r, &f, &w, out);
    first_evidence(r, &f, &w, bottom, out);
    fr_buf_addz(out, "</svg>\n");
    fr_vec_free(w.v);
    return 0;
}
