/* SPDX-License-Identifier: Apache-2.0 */
/* text: for a tired person at a terminal. Answer first; everything below it is there to be believed or acted on.
 * Every byte that comes from a log or a page passes fr_utf8_clean, so nothing but our own colours reaches the terminal. */
#include "report/text.h"

#include "report/wrap.h"

#include <inttypes.h>
#include <stdio.h>

static void scratch_wrap(struct fr_text *t, const char *first, const char *next)
{
    fr_wrap(t->out, fr_buf_sv(&t->scratch), first, next, t->width);
    t->failed |= !fr_buf_ok(&t->scratch);
    fr_buf_clear(&t->scratch);
}

void fr_text_prose(struct fr_text *t, fr_sv s, const char *first, const char *next)
{
    fr_utf8_clean(&t->scratch, s, 0);
    scratch_wrap(t, first, next);
}

void fr_text_heading(struct fr_text *t, const char *heading)
{
    fr_buf_printf(t->out, "\n%s%s%s\n", t->color ? "\033[1m" : "", heading, t->color ? "\033[0m" : "");
}

void fr_text_quote(struct fr_text *t, const struct fr_quote *q, const char *indent)
{
    fr_buf_addz(t->out, indent);
    fr_buf_addz(t->out, t->color ? "\033[36m" : "");
    fr_words_place(t->out, q);
    fr_buf_addz(t->out, t->color ? "\033[0m" : "");
    fr_words_origin(t->out, q);
    fr_buf_addc(t->out, '\n');
    if (q->text.n > 0) {
        char margin[32];
        snprintf(margin, sizeof margin, "%s  | ", indent);
        fr_utf8_clean(&t->scratch, q->text, 400);
        scratch_wrap(t, margin, margin);
    }
}

void fr_text_list(struct fr_text *t, const char *const *v, const char *bullet)
{
    for (; v != NULL && *v != NULL; v++) {
        fr_text_prose(t, fr_sv_z(*v), bullet, "      ");
    }
}

static void headline(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    bool unsure = r->verdict == FR_VERDICT_INCONCLUSIVE;
    fr_buf_addz(t->out, !t->color ? "" : unsure ? "\033[1;33m" : "\033[1;31m");
    fr_words_headline(t->out, r, in);
    fr_buf_addz(t->out, t->color ? "\033[0m\n" : "\n");
    fr_buf_addz(&t->scratch, "confidence: ");
    fr_words_confidence(&t->scratch, in);
    if (in->initiator.when.basis != FR_TIME_BASIS_NONE) {
        fr_buf_addz(&t->scratch, "; began ");
        fr_words_when(&t->scratch, &in->initiator.when);
    }
    size_t before = t->scratch.n;
    fr_buf_addz(&t->scratch, "; ");
    fr_words_whereabouts(&t->scratch, in);
    if (t->scratch.n == before + 2) {
        t->scratch.n = before;
    }
    scratch_wrap(t, "  ", "  ");
}

static void where_it_began(struct fr_text *t, const struct fr_incident *in)
{
    const uint32_t shown = in->evidence.n > 3 && !t->why ? 3 : in->evidence.n;
    if (in->evidence.n == 0) {
        return;
    }
    fr_text_heading(t, fr_words_began(in));
    fr_text_quote(t, &in->evidence.v[0], "  ");
    for (uint32_t i = 1; i < shown; i++) {
        fr_text_quote(t, &in->evidence.v[i], "    ");
    }
    if (shown < in->evidence.n) {
        fr_buf_printf(t->out, "    ... and %" PRIu32 " more (--why shows all)\n", in->evidence.n - shown);
    }
}

void fr_text_victims(struct fr_text *t, const struct fr_incident *in)
{
    struct fr_victims_list l;
    fr_victims_group(in, &l);
    t->failed |= l.failed;
    if (in->collateral.n > 0) {
        fr_text_heading(t, "Victims");
        fr_words_count(&t->scratch, in->collateral.n, "other rank failed", "other ranks failed");
        fr_buf_addz(&t->scratch, " because of it:");
        scratch_wrap(t, "  ", "  ");
    }
    for (uint32_t i = 0; i < l.n; i++) {
        const struct fr_victims *g = &l.v[i];
        if (g->ranks.n > 0) {
            fr_words_rank_list(&t->scratch, g->ranks.v, g->ranks.n);
        } else {
            fr_words_count(&t->scratch, g->n, "process", "processes");
        }
        fr_buf_addz(&t->scratch, ": ");
        fr_words_add(&t->scratch, g->cls.n > 0 ? g->cls : FR_SV("no line of its own"));
        if (g->n > 1 && g->example != NULL) {
            fr_buf_addz(&t->scratch, ", e.g.");
        }
        scratch_wrap(t, "  ", "      ");
        if (g->example != NULL) {
            fr_text_quote(t, &g->example->evidence, "    ");
        }
    }
    fr_victims_list_release(&l);
}

static void not_the_cause(struct fr_text *t, const struct fr_incident *in)
{
    const uint32_t shown = in->not_the_cause.n > 3 && !t->why ? 3 : in->not_the_cause.n;
    if (shown == 0) {
        return;
    }
    fr_text_heading(t, "Not the cause");
    for (uint32_t i = 0; i < shown; i++) {
        const struct fr_innocent *n = &in->not_the_cause.v[i];
        fr_utf8_clean(&t->scratch, n->text, 160);
        if (n->at.source.n > 0) {
            fr_buf_addz(&t->scratch, " (");
            fr_words_place(&t->scratch, &n->at);
            fr_buf_addc(&t->scratch, ')');
        }
        fr_buf_addz(&t->scratch, ": ");
        fr_words_add(&t->scratch, n->why);
        scratch_wrap(t, "  - ", "    ");
    }
}

void fr_text_do_now(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_failure *f = in->failure;
    fr_text_heading(t, "Do now");
    fr_words_action(&t->scratch, r, in);
    scratch_wrap(t, "  ", "  ");
    if (fr_has(f->fix_primary)) {
        fr_text_prose(t, fr_sv_z(f->fix_primary), "  Fix:       ", "             ");
    }
    if (fr_has(f->fix_fallback)) {
        fr_text_prose(t, fr_sv_z(f->fix_fallback), "  Otherwise: ", "             ");
    }
    if (fr_has(f->fix_emergency)) {
        fr_text_prose(t, fr_sv_z(f->fix_emergency), "  Stopgap:   ", "             ");
    }
    fr_text_resume(t, in);
}

void fr_text_resume(struct fr_text *t, const struct fr_incident *in)
{
    fr_story_resume(&t->scratch, in);
    if (t->scratch.n > 0) {
        scratch_wrap(t, "  ", "  ");
    }
    fr_words_steps(&t->scratch, in);
    if (t->scratch.n > 0) {
        scratch_wrap(t, "  steps: ", "         ");
    }
}

static void literals(struct fr_text *t, const char *what, const char *const *v)
{
    if (v == NULL || *v == NULL) {
        return;
    }
    fr_buf_addz(&t->scratch, what);
    for (bool first = true; *v != NULL; v++, first = false) {
        fr_buf_addz(&t->scratch, first ? " \"" : ", \"");
        fr_words_addz(&t->scratch, *v);
        fr_buf_addc(&t->scratch, '"');
    }
    scratch_wrap(t, "  ", "    ");
}

void fr_text_verify(struct fr_text *t, const struct fr_failure *f)
{
    if (!fr_has(f->verify_command) && (f->verify_expect == NULL || *f->verify_expect == NULL)) {
        return;
    }
    fr_text_heading(t, "Check that it worked");
    if (fr_has(f->verify_command)) {
        fr_buf_addz(t->out, "  $ ");
        fr_words_addz(t->out, f->verify_command);
        fr_buf_addc(t->out, '\n');
    }
    literals(t, "must show", f->verify_expect);
    literals(t, "must not show", f->verify_absent);
}

void fr_text_collect(struct fr_text *t, const struct fr_incident *in)
{
    if (in->collect_next.n == 0) {
        return;
    }
    fr_text_heading(t, "To be surer, collect next");
    for (uint32_t i = 0; i < in->collect_next.n; i++) {
        fr_text_prose(t, in->collect_next.v[i], "  - ", "    ");
    }
}

static void ranking(struct fr_text *t, const struct fr_incident *in)
{
    if (!t->why || in->hypotheses.n == 0) {
        return;
    }
    fr_text_heading(t, "Ranking");
    for (uint32_t i = 0; i < in->hypotheses.n; i++) {
        const struct fr_hypothesis *h = &in->hypotheses.v[i];
        fr_buf_printf(t->out, "  %" PRIu32 ". ", i + 1);
        fr_words_add(t->out, h->cls);
        fr_buf_printf(t->out, "  score %.2f\n", h->score);
        for (uint32_t k = 0; k < h->for_.n; k++) {
            fr_text_prose(t, h->for_.v[k], "     + ", "       ");
        }
        for (uint32_t k = 0; k < h->against.n; k++) {
            fr_text_prose(t, h->against.v[k], "     - ", "       ");
        }
    }
}

static void engineer(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    headline(t, r, in);
    where_it_began(t, in);
    if (in->why_first.n > 0) {
        fr_text_heading(t, "Why this one first");
        fr_text_prose(t, in->why_first, "  ", "  ");
    }
    if (r->verdict == FR_VERDICT_INCONCLUSIVE) {
        fr_text_collect(t, in);
    }
    fr_text_victims(t, in);
    not_the_cause(t, in);
    ranking(t, in);
    fr_text_do_now(t, r, in);
    fr_text_verify(t, in->failure);
    if (r->verdict != FR_VERDICT_INCONCLUSIVE) {
        fr_text_collect(t, in);
    }
    fr_buf_addz(&t->scratch, "More: faultrank explain ");
    fr_words_add(&t->scratch, in->cls);
    if (in->fingerprint.n > 0) {
        fr_buf_addz(&t->scratch, "   fingerprint ");
        fr_words_add(&t->scratch, in->fingerprint);
    }
    if (in->recurrences > 1) {
        fr_buf_printf(&t->scratch, "   seen in %" PRIu32 " attempts", in->recurrences);
    }
    fr_buf_addc(t->out, '\n');
    scratch_wrap(t, "", "");
}

static void checked(struct fr_text *t, const struct fr_report *r)
{
    if (r->checked.n == 0) {
        return;
    }
    fr_text_heading(t, "Checked");
    for (uint32_t i = 0; i < r->checked.n; i++) {
        fr_text_prose(t, r->checked.v[i], "  - ", "    ");
    }
}

static void metrics(struct fr_text *t, const struct fr_report *r)
{
    const uint32_t shown = r->metrics.n > 6 && !t->why ? 6 : r->metrics.n;
    if (shown > 0) {
        fr_text_heading(t, "Metrics seen");
    }
    for (uint32_t i = 0; i < shown; i++) {
        const struct fr_metric_summary *m = &r->metrics.v[i];
        fr_words_add(&t->scratch, m->name);
        if (m->rank >= 0) {
            fr_buf_printf(&t->scratch, " of rank %d", m->rank);
        }
        fr_buf_printf(&t->scratch, ": %" PRId64 " points", m->points);
        if (m->last_step >= 0) {
            fr_buf_printf(&t->scratch, " up to step %" PRId64, m->last_step);
        }
        fr_buf_printf(&t->scratch, ", last %g", m->last);
        scratch_wrap(t, "  - ", "    ");
    }
}

static void footer(struct fr_text *t, const struct fr_report *r, const struct fr_write_options *o)
{
    fr_buf_addz(&t->scratch, "Read ");
    fr_words_input(&t->scratch, r);
    fr_buf_addc(&t->scratch, '.');
    if (o->timings) {
        fr_buf_printf(&t->scratch, " Took %.3f s reading, %.3f s deciding.", r->timings.read_s, r->timings.decide_s);
    }
    scratch_wrap(t, "", "");
    const uint32_t shown = r->input.skipped.n > 5 && !t->why ? 5 : r->input.skipped.n;
    for (uint32_t i = 0; i < shown; i++) {
        fr_buf_addz(&t->scratch, "Not read: ");
        fr_words_add(&t->scratch, r->input.skipped.v[i].source);
        fr_buf_addz(&t->scratch, ": ");
        fr_words_add(&t->scratch, r->input.skipped.v[i].why);
        scratch_wrap(t, "", "  ");
    }
    if (shown < r->input.skipped.n) {
        fr_buf_printf(t->out, "Not read: %" PRIu32 " more (--why shows all)\n", r->input.skipped.n - shown);
    }
}

static void verdict(struct fr_text *t, const struct fr_report *r)
{
    if (r->verdict == FR_VERDICT_HEALTHY) {
        fr_buf_printf(t->out, "%sNo failure found.%s\n", t->color ? "\033[1;32m" : "", t->color ? "\033[0m" : "");
        checked(t, r);
        metrics(t, r);
    } else if (r->verdict == FR_VERDICT_INCONCLUSIVE) {
        fr_buf_printf(t->out, "%sCannot tell from these logs what failed first.%s\n", t->color ? "\033[1;33m" : "",
                      t->color ? "\033[0m" : "");
        if (r->incidents.n > 0) {
            fr_buf_addz(t->out, "\nThe best guess so far: ");
        } else {
            checked(t, r);
        }
    }
}

static int write_text(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                      struct fr_err *err)
{
    static void (*const views[])(struct fr_text *, const struct fr_report *, const struct fr_incident *) = {
        [FR_VIEW_ENGINEER] = engineer, [FR_VIEW_ONCALL] = fr_text_oncall, [FR_VIEW_EXECUTIVE] = fr_text_executive};
    struct fr_text t = {.out = out, .scratch = FR_BUF_INIT(0), .color = o->color, .why = o->why,
                        .width = o->width > 0 ? o->width : 100};
    verdict(&t, r);
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        if (r->incidents.n > 1) {
            fr_buf_addz(out, i > 0 ? "\n" : "");
            fr_buf_printf(o->view == FR_VIEW_EXECUTIVE ? &t.scratch : out, "[%" PRIu32 " of %" PRIu32 "] ", i + 1,
                          r->incidents.n);
        }
        views[o->view](&t, r, &r->incidents.v[i]);
    }
    if (o->why && r->verdict == FR_VERDICT_FAILURE) {
        checked(&t, r);
        metrics(&t, r);
    }
    if (r->incidents.n == 0 || (o->why && r->checked.n + r->metrics.n > 0)) {
        fr_buf_addc(out, '\n');
    }
    footer(&t, r, o);
    bool failed = t.failed || !fr_buf_ok(&t.scratch);
    fr_buf_release(&t.scratch);
    if (failed) {
        return fr_err_set(err, FR_NOMEM, "out of memory while writing the report");
    }
    return fr_words_finish(out, err);
}

const struct fr_writer fr_writer_text = {
    .name = "text",
    .summary = "for people at a terminal: answer first, then evidence, victims, fix",
    .mime = "text/plain; charset=utf-8",
    .extension = "txt",
    .write = write_text,
};
