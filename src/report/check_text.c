/* SPDX-License-Identifier: Apache-2.0 */
/* check_text: the verdict first, then what is worst, then the model as a picture. Everything
 * foreign passes fr_utf8_clean. */
#include "report/check_words.h"
#include "report/words.h"
#include "report/wrap.h"

#include <inttypes.h>

#define EACH_RULE 3 /* findings of one rule that are shown; all are in the JSON */
#define EACH_WEIGHT 12
#define DIFFS 12

struct text {
    const struct fr_check *c;
    const struct fr_check_write_options *o;
    struct fr_buf *out;
    struct fr_buf line; /* clean, before it is wrapped */
};

static const char *bold(const struct text *t)
{
    return t->o->color ? "\033[1m" : "";
}

static const char *plain(const struct text *t)
{
    return t->o->color ? "\033[0m" : "";
}

static const char *paint(const struct text *t, uint8_t weight)
{
    static const char *const paints[] = {[FR_CHECK_BLOCKS] = "\033[1;31m",
                                         [FR_CHECK_HIDES] = "\033[1;33m",
                                         [FR_CHECK_RISK] = "\033[33m",
                                         [FR_CHECK_NOTE] = "\033[36m"};
    return t->o->color && weight < FR_CHECK_WEIGHTS ? paints[weight] : "";
}

static void flush(struct text *t, const char *first, const char *next)
{
    fr_wrap(t->out, fr_buf_sv(&t->line), first, next, t->o->width > 0 ? t->o->width : 100);
    t->out->failed |= !fr_buf_ok(&t->line);
    fr_buf_clear(&t->line);
}

static void heading(struct text *t, const char *z)
{
    fr_buf_printf(t->out, "\n%s%s%s\n", bold(t), z, plain(t));
}

static void top(struct text *t)
{
    const struct fr_check *c = t->c;
    const char *color = c->verdict == FR_CHECK_PROMOTE  ? "\033[1;32m"
                        : c->verdict == FR_CHECK_DO_NOT ? "\033[1;31m"
                                                        : "\033[1;33m";
    fr_buf_addz(t->out, t->o->color ? color : "");
    fr_check_words_headline(t->out, c);
    fr_buf_printf(t->out, "%s\n", plain(t));
    fr_check_words_input(&t->line, c);
    const size_t before = t->line.n;
    fr_buf_addz(&t->line, "; ");
    fr_check_words_last_good(&t->line, c);
    if (t->line.n == before + 2) {
        t->line.n = before;
        t->line.p[before] = '\0';
    }
    flush(t, "  ", "  ");
}

static void finding(struct text *t, const struct fr_check_finding *f)
{
    static const char marks[] = {[FR_CHECK_BLOCKS] = 'x',
                                 [FR_CHECK_HIDES] = '?',
                                 [FR_CHECK_RISK] = '!',
                                 [FR_CHECK_NOTE] = '-'};
    fr_buf_printf(t->out, "  %s%c %.*s%s\n", paint(t, f->weight), marks[f->weight],
                  FR_SV_ARG(f->title), plain(t));
    fr_check_words_where(&t->line, f);
    if (t->line.n > 0) {
        flush(t, "    ", "      ");
    }
    fr_utf8_clean(&t->line, f->text, 0);
    flush(t, "    ", "    ");
    if (f->unknown.n > 0) {
        fr_buf_addz(&t->line, "Not known: ");
        fr_utf8_clean(&t->line, f->unknown, 0);
        flush(t, "    ", "    ");
    }
}

static void explain(struct text *t, const struct fr_check_finding *f)
{
    if (f->cls.n > 0) {
        fr_buf_printf(t->out, "    faultrank explain %.*s\n", FR_SV_ARG(f->cls));
    }
}

/* Findings of one weight; of each rule a few. */
static void findings(struct text *t, uint8_t weight)
{
    uint32_t shown = 0, of_rule = 0, left = 0, rest = 0;
    for (uint32_t i = 0; i < t->c->findings.n; i++) {
        const struct fr_check_finding *f = &t->c->findings.v[i],
                                      *next = i + 1 < t->c->findings.n ? f + 1 : NULL;
        if (f->weight != weight) {
            continue;
        }
        if (shown + rest == 0) {
            heading(t, fr_check_words_heading(weight));
        }
        if (!t->o->all && (of_rule >= EACH_RULE || shown >= EACH_WEIGHT)) {
            left += of_rule >= EACH_RULE;
            rest += of_rule < EACH_RULE;
        } else {
            finding(t, f);
            shown++;
        }
        of_rule++;
        if (next == NULL || next->weight != weight || !fr_sv_eq(next->rule, f->rule)) {
            if (left > 0) {
                fr_buf_printf(
                    t->out, "    ... and %" PRIu32 " more of this kind (--all lists them)\n", left);
            }
            if (of_rule > 0 && shown > 0 && rest == 0) {
                explain(t, f);
            }
            of_rule = left = 0;
        }
    }
    if (rest > 0) {
        fr_buf_printf(t->out, "  ... and %" PRIu32 " more (--all lists them)\n", rest);
    }
}

/* ---- the picture ---- */

static void label(struct text *t, const struct fr_check_row *row, size_t width)
{
    const struct fr_check_layer *first = &t->c->layers.v[row->from],
                                *last = &t->c->layers.v[row->from + row->n - 1];
    const size_t before = t->out->n;
    if (row->shared) {
        fr_buf_printf(t->out, "layers %" PRId32 "-%" PRId32, first->first, last->last);
    } else {
        fr_utf8_clean(t->out, fr_sv_head(first->label, width), 0);
    }
    for (size_t n = (size_t)fr_wrap_columns(fr_sv_skip(fr_buf_sv(t->out), before)); n < width;
         n++) {
        fr_buf_addc(t->out, ' ');
    }
}

static void cells(struct text *t, const struct fr_check_layer *l, const struct fr_check_scale *s)
{
    static const char *const bars[] = {"\u00b7", "\u2581", "\u2582", "\u2583", "\u2584",
                                       "\u2585", "\u2586", "\u2587", "\u2588"};
    uint32_t n = l->n < FR_CHECK_CELLS ? l->n : FR_CHECK_CELLS;
    for (uint32_t i = 0; i < n; i++) {
        const struct fr_check_tensor *x = &t->c->tensors.v[l->from + i];
        if (x->worst <= FR_CHECK_HIDES) {
            fr_buf_printf(t->out, "%s%c%s", paint(t, x->worst),
                          x->worst == FR_CHECK_BLOCKS ? 'x' : '?', plain(t));
        } else {
            fr_buf_printf(t->out, "%s%s%s", paint(t, x->worst), bars[fr_check_height(s, x)],
                          x->worst < FR_CHECK_WEIGHTS ? plain(t) : "");
        }
    }
    fr_buf_addz(t->out, l->n > n ? "+" : "");
    for (uint32_t i = n + (l->n > n); i < 14; i++) {
        fr_buf_addc(t->out, ' ');
    }
}

static void row_of(struct text *t, const struct fr_check_row *row, const struct fr_check_scale *s)
{
    double most = 0, rms = 0;
    uint64_t nan = 0, inf = 0;
    for (uint32_t i = row->from; i < row->from + row->n; i++) {
        const struct fr_check_layer *l = &t->c->layers.v[i];
        most = l->abs_max > most ? l->abs_max : most;
        rms = l->rms > rms ? l->rms : rms;
        nan += l->nan;
        inf += l->inf;
    }
    fr_buf_addz(t->out, "  ");
    label(t, row, 18);
    cells(t, &t->c->layers.v[row->from], s);
    fr_buf_printf(t->out, "  max %-9.3g rms %-9.3g", most, rms);
    if (nan > 0) {
        fr_buf_printf(t->out, " %" PRIu64 " NaN", nan);
    }
    if (inf > 0) {
        fr_buf_printf(t->out, " %" PRIu64 " Inf", inf);
    }
    while (t->out->n > 0 && t->out->p[t->out->n - 1] == ' ') {
        t->out->p[--t->out->n] = '\0';
    }
    fr_buf_addc(t->out, '\n');
}

static void picture(struct text *t)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct fr_check_row *rows = FR_NEW_N(&scratch, struct fr_check_row, t->c->layers.n + 1);
    const struct fr_check_scale s = fr_check_scale_of(t->c);
    if (t->c->layers.n > 0 && rows != NULL) {
        const uint32_t n = fr_check_rows(t->c, rows);
        heading(t, "Layers");
        fr_buf_printf(t->out,
                      "  one mark a tensor, its height the largest magnitude (%.3g to %.3g, "
                      "logarithmic); x forbids, ? unread\n",
                      s.low, s.high);
        for (uint32_t i = 0; i < n; i++) {
            row_of(t, &rows[i], &s);
        }
    }
    t->out->failed |= rows == NULL;
    fr_arena_release(&scratch);
}

/* ---- the rest ---- */

static void steps(struct text *t)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < t->c->steps.n; i++) {
        shown += fr_check_step_shown(&t->c->steps.v[i]);
    }
    if (shown < 2) {
        return;
    }
    heading(t, "Steps");
    for (uint32_t i = t->c->steps.n; i-- > 0;) {
        const struct fr_check_step *s = &t->c->steps.v[i];
        if (!fr_check_step_shown(s)) {
            continue;
        }
        if (s->step >= 0) {
            fr_buf_printf(&t->line, "step %" PRId64 ", ", s->step);
        }
        fr_words_add(&t->line, s->path);
        fr_buf_printf(&t->line, ": %s: ",
                      s->checked || s->verdict == FR_CHECK_DO_NOT
                          ? fr_check_verdict_name(s->verdict)
                          : "not checked");
        fr_utf8_clean(&t->line, s->why, 200);
        flush(t, "  ", "      ");
    }
}

static void comparisons(struct text *t)
{
    for (uint32_t i = 0; i < t->c->comparisons.n; i++) {
        const struct fr_check_comparison *m = &t->c->comparisons.v[i];
        heading(t, m->replicas ? "Compared with a replica" : "Compared with another checkpoint");
        fr_words_add(&t->line, m->b);
        fr_buf_addz(&t->line, ": ");
        fr_utf8_clean(&t->line, m->text, 600);
        fr_buf_printf(&t->line, " %" PRIu32 " tensors are only here, %" PRIu32 " only there.",
                      m->only_a, m->only_b);
        flush(t, "  ", "  ");
        for (uint32_t k = 0; k < m->diffs.n && (t->o->all || k < DIFFS); k++) {
            const struct fr_check_diff *d = &m->diffs.v[k];
            fr_buf_printf(t->out, "  %s", d->odd ? "! " : "  ");
            fr_words_add(t->out, d->name);
            fr_buf_printf(
                t->out, "  %" PRIu64 " of %" PRIu64 " elements, by %.3g of its norm, cosine %.4f\n",
                d->differing, d->elements, d->relative, d->cosine);
        }
        if (!t->o->all && m->diffs.n > DIFFS) {
            fr_buf_printf(t->out, "    ... and %" PRIu32 " more (--all lists them)\n",
                          m->diffs.n - DIFFS);
        }
    }
}

static void tensors(struct text *t)
{
    heading(t, "Tensors");
    for (uint32_t i = 0; i < t->c->tensors.n; i++) {
        const struct fr_check_tensor *x = &t->c->tensors.v[i];
        fr_buf_addz(t->out, "  ");
        fr_words_add(t->out, x->name);
        fr_buf_addz(t->out, "  ");
        fr_words_add(t->out, x->dtype);
        fr_buf_addz(t->out, " [");
        for (uint8_t k = 0; k < x->dims; k++) {
            fr_buf_printf(t->out, "%s%" PRIu64, k > 0 ? ", " : "", x->shape[k]);
        }
        fr_buf_printf(t->out,
                      "]  max %.4g rms %.4g zero %" PRIu64 " subnormal %" PRIu64 " NaN %" PRIu64
                      " Inf %" PRIu64 "%s\n",
                      x->abs_max, x->rms, x->zero, x->subnormal, x->nan, x->inf,
                      x->scanned ? "" : " (not read)");
    }
}

static void checked(struct text *t)
{
    heading(t, "Checked");
    for (uint32_t i = 0; i < t->c->checked.n; i++) {
        fr_utf8_clean(&t->line, t->c->checked.v[i], 400);
        flush(t, "  - ", "    ");
    }
}

static int write_text(const struct fr_check *c, const struct fr_check_write_options *o,
                      struct fr_buf *out, struct fr_err *err)
{
    struct text t = {c, o, out, FR_BUF_INIT(0)};
    top(&t);
    for (uint8_t w = 0; w < FR_CHECK_WEIGHTS; w++) {
        findings(&t, w);
    }
    comparisons(&t);
    picture(&t);
    if (o->all) {
        tensors(&t);
    }
    steps(&t);
    checked(&t);
    fr_buf_release(&t.line);
    return fr_words_finish(out, err);
}

const struct fr_check_writer fr_check_writer_text = {
    .name = "text", .summary = "for people at a terminal", .write = write_text};
