/* SPDX-License-Identifier: Apache-2.0 */
/* markdown: for a pull request, an issue or a chat. Log lines go into fences longer than any run of backticks in them, names
 * into code spans, other foreign words are escaped, so that a log can neither format, link nor mention. */
#include "report/words.h"

#include "failure/library.h"

#include <inttypes.h>

struct md {
    struct fr_buf *out;
    struct fr_buf scratch; /* foreign text, cleaned, before it is escaped */
};

static void add_escaped(struct fr_buf *out, fr_sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '@') {
            fr_buf_addz(out, "`@`"); /* a backslash does not stop a mention */
        } else if (strchr("\\`*_{}[]<>|~&$", c) != NULL || (c == ':' && i + 1 < s.n && s.p[i + 1] == '/')) {
            fr_buf_addc(out, '\\');
            fr_buf_addc(out, c);
        } else {
            fr_buf_addc(out, c);
        }
    }
}

static void flush(struct md *m)
{
    add_escaped(m->out, fr_buf_sv(&m->scratch));
    m->out->failed |= !fr_buf_ok(&m->scratch);
    fr_buf_clear(&m->scratch);
}

static void prose(struct md *m, fr_sv s)
{
    fr_words_add(&m->scratch, s);
    flush(m);
}

static size_t longest_run(fr_sv s, char c)
{
    size_t best = 0, run = 0;
    for (size_t i = 0; i < s.n; i++) {
        run = s.p[i] == c ? run + 1 : 0;
        best = run > best ? run : best;
    }
    return best;
}

static void repeat(struct fr_buf *b, char c, size_t n)
{
    while (n-- > 0) {
        fr_buf_addc(b, c);
    }
}

/* What the scratch holds, as a code span. */
static void flush_code(struct md *m)
{
    fr_sv s = fr_buf_sv(&m->scratch);
    size_t ticks = longest_run(s, '`') + 1;
    const char *pad = ticks > 1 ? " " : "";
    if (s.n > 0) {
        repeat(m->out, '`', ticks);
        fr_buf_addz(m->out, pad);
        fr_buf_add(m->out, s);
        fr_buf_addz(m->out, pad);
        repeat(m->out, '`', ticks);
    }
    m->out->failed |= !fr_buf_ok(&m->scratch);
    fr_buf_clear(&m->scratch);
}

static void code(struct md *m, fr_sv s)
{
    fr_words_add(&m->scratch, s);
    flush_code(m);
}

static void fence(struct md *m, fr_sv s, const char *language)
{
    fr_utf8_clean(&m->scratch, s, 400);
    size_t ticks = longest_run(fr_buf_sv(&m->scratch), '`');
    ticks = ticks < 3 ? 3 : ticks + 1;
    repeat(m->out, '`', ticks);
    fr_buf_printf(m->out, "%s\n", language);
    fr_buf_add(m->out, fr_buf_sv(&m->scratch));
    fr_buf_addc(m->out, '\n');
    repeat(m->out, '`', ticks);
    fr_buf_addc(m->out, '\n');
    m->out->failed |= !fr_buf_ok(&m->scratch);
    fr_buf_clear(&m->scratch);
}

static void place(struct md *m, const struct fr_quote *q)
{
    fr_words_place(&m->scratch, q);
    flush_code(m);
}

static void item(struct md *m, const char *lead, fr_sv s)
{
    if (s.n > 0) {
        fr_buf_addz(m->out, lead);
        prose(m, s);
        fr_buf_addc(m->out, '\n');
    }
}

static void headline(struct md *m, const struct fr_report *r, const struct fr_incident *in)
{
    fr_buf_addz(m->out, "## ");
    fr_words_headline(&m->scratch, r, in);
    flush(m);
    fr_buf_addz(m->out, "\n\n**Confidence** ");
    fr_words_confidence(m->out, in);
    if (in->initiator.when.basis != FR_TIME_BASIS_NONE) {
        fr_buf_addz(m->out, ", **began** ");
        fr_words_when(m->out, &in->initiator.when);
    }
    fr_words_whereabouts(&m->scratch, in);
    if (m->scratch.n > 0) {
        fr_buf_addz(m->out, ", ");
        flush_code(m);
    }
    fr_buf_addz(m->out, "\n\n");
}

static void victims(struct md *m, const struct fr_incident *in)
{
    struct fr_victims_list l;
    fr_victims_group(in, &l);
    m->out->failed |= l.failed;
    if (l.n > 0) {
        fr_buf_addz(m->out, "\n**Victims:** ");
        fr_words_count(m->out, in->collateral.n, "other rank", "other ranks");
        fr_buf_addz(m->out, "\n\n");
    }
    for (uint32_t i = 0; i < l.n; i++) {
        const struct fr_victims *g = &l.v[i];
        fr_buf_addz(m->out, "- ");
        if (g->ranks.n > 0) {
            fr_words_rank_list(m->out, g->ranks.v, g->ranks.n);
        } else {
            fr_words_count(m->out, g->n, "process", "processes");
        }
        fr_buf_addz(m->out, ": ");
        if (g->cls.n > 0) {
            code(m, g->cls);
        } else {
            fr_buf_addz(m->out, "no line of its own");
        }
        if (g->example != NULL) {
            fr_buf_printf(m->out, ", e.g. rank %" PRId32 " ", g->example->rank);
            place(m, &g->example->evidence);
        }
        fr_buf_addc(m->out, '\n');
    }
    fr_victims_list_release(&l);
}

static void ruled_out(struct md *m, const struct fr_incident *in)
{
    if (in->not_the_cause.n > 0) {
        fr_buf_addz(m->out, "\n**Not the cause**\n\n");
    }
    for (uint32_t i = 0; i < in->not_the_cause.n; i++) {
        const struct fr_innocent *n = &in->not_the_cause.v[i];
        fr_buf_addz(m->out, "- ");
        code(m, fr_sv_head(n->text, 160));
        if (n->at.source.n > 0) {
            fr_buf_addz(m->out, " at ");
            place(m, &n->at);
        }
        fr_buf_addz(m->out, ": ");
        prose(m, n->why);
        fr_buf_addc(m->out, '\n');
    }
}

static void ranking(struct md *m, const struct fr_incident *in)
{
    fr_buf_addz(m->out, "\n**Ranking**\n\n");
    for (uint32_t i = 0; i < in->hypotheses.n; i++) {
        const struct fr_hypothesis *h = &in->hypotheses.v[i];
        fr_buf_printf(m->out, "%" PRIu32 ". ", i + 1);
        code(m, h->cls);
        fr_buf_printf(m->out, ", score %.2f\n", h->score);
        for (uint32_t k = 0; k < h->for_.n; k++) {
            item(m, "   - for: ", h->for_.v[k]);
        }
        for (uint32_t k = 0; k < h->against.n; k++) {
            item(m, "   - against: ", h->against.v[k]);
        }
    }
}

static void literals(struct md *m, const char *what, const char *const *v)
{
    for (bool first = true; v != NULL && *v != NULL; v++, first = false) {
        fr_buf_addz(m->out, first ? what : ", ");
        code(m, fr_sv_z(*v));
    }
}

static void do_now(struct md *m, const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_failure *f = in->failure;
    fr_buf_addz(m->out, "\n**Do now.** ");
    fr_words_action(&m->scratch, r, in);
    flush(m);
    fr_buf_addz(m->out, "\n\n");
    item(m, "- **Fix:** ", fr_sv_z(f->fix_primary));
    item(m, "- **Otherwise:** ", fr_sv_z(f->fix_fallback));
    item(m, "- **Stopgap:** ", fr_sv_z(f->fix_emergency));
    fr_story_resume(&m->scratch, in);
    if (m->scratch.n > 0) {
        fr_buf_addc(m->out, '\n');
        flush(m);
        fr_buf_addc(m->out, '\n');
    }
    if (fr_has(f->verify_command)) {
        fr_buf_addz(m->out, "\n**Check that it worked**\n\n");
        fence(m, fr_sv_z(f->verify_command), "sh");
        fr_buf_addc(m->out, '\n');
        literals(m, "Must show ", f->verify_expect);
        literals(m, f->verify_expect != NULL && *f->verify_expect != NULL ? "; must not show " : "Must not show ",
                 f->verify_absent);
        fr_buf_addc(m->out, '\n');
    }
}

static void collect(struct md *m, const struct fr_incident *in)
{
    if (in->collect_next.n > 0) {
        fr_buf_addz(m->out, "\n**To be surer, collect next**\n\n");
    }
    for (uint32_t i = 0; i < in->collect_next.n; i++) {
        item(m, "- ", in->collect_next.v[i]);
    }
}

static void engineer(struct md *m, const struct fr_report *r, const struct fr_incident *in, bool why)
{
    headline(m, r, in);
    const uint32_t shown = in->evidence.n > 3 && !why ? 3 : in->evidence.n;
    for (uint32_t i = 0; i < shown; i++) {
        place(m, &in->evidence.v[i]);
        fr_words_origin(m->out, &in->evidence.v[i]);
        fr_buf_addc(m->out, '\n');
        fence(m, in->evidence.v[i].text, "");
    }
    item(m, "\n**Why this one first.** ", in->why_first);
    victims(m, in);
    ruled_out(m, in);
    if (why) {
        ranking(m, in);
    }
    if (r->verdict == FR_VERDICT_INCONCLUSIVE) {
        collect(m, in);
        do_now(m, r, in);
    } else {
        do_now(m, r, in);
        collect(m, in);
    }
    fr_buf_addz(m->out, "\nMore: ");
    fr_buf_addz(&m->scratch, "faultrank explain ");
    code(m, in->cls);
    fr_buf_addc(m->out, '\n');
}

static void oncall(struct md *m, const struct fr_report *r, const struct fr_incident *in)
{
    FR_AUTO(fr_buf) slurm = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) kubernetes = FR_BUF_INIT(0);
    headline(m, r, in);
    fr_buf_addz(m->out, "**Now:** ");
    fr_words_action(&m->scratch, r, in);
    flush(m);
    fr_buf_addz(m->out, "\n\n");
    if (fr_story_drain(in, &slurm, &kubernetes)) {
        fence(m, fr_buf_sv(&slurm), "sh");
        fence(m, fr_buf_sv(&kubernetes), "sh");
    }
    m->out->failed |= !fr_buf_ok(&slurm) || !fr_buf_ok(&kubernetes);
    item(m, "", fr_sv_z(fr_story_step(in)));
    item(m, "\n**Afterwards:** ", fr_sv_z(in->failure->verify_command));
    if (in->evidence.n > 0) {
        fr_buf_addz(m->out, "\n**Proof:** ");
        place(m, &in->evidence.v[0]);
        fr_buf_addc(m->out, '\n');
    }
    fr_buf_printf(m->out, "\n**Escalate to:** %s\n", fr_words_owner(in->owner));
}

static void executive(struct md *m, const struct fr_report *r, const struct fr_incident *in)
{
    fr_story_stopped(&m->scratch, r, in);
    flush(m);
    fr_buf_addz(m->out, "\n\n- **Cost:** ");
    fr_story_cost(&m->scratch, r, in);
    flush(m);
    fr_buf_printf(m->out, "\n- **Owner:** %s\n- **Will it recur:** ", fr_words_owner(in->owner));
    fr_story_recurrence(m->out, in);
    fr_buf_addz(m->out, "\n- **What happens now:** ");
    fr_words_action(&m->scratch, r, in);
    flush(m);
    fr_buf_addz(m->out, "\n- **How sure:** ");
    fr_story_confidence(m->out, in);
    fr_buf_addc(m->out, '\n');
}

static void verdict(struct md *m, const struct fr_report *r)
{
    if (r->verdict == FR_VERDICT_FAILURE) {
        return;
    }
    fr_buf_addz(m->out, r->verdict == FR_VERDICT_HEALTHY ? "## No failure found\n\n"
                                                         : "## Cannot tell from these logs what failed first\n\n");
    for (uint32_t i = 0; i < r->checked.n; i++) {
        item(m, "- checked: ", r->checked.v[i]);
    }
    if (r->incidents.n > 0) {
        fr_buf_addz(m->out, "\nThe best guess so far:\n\n");
    }
}

static int write_markdown(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                          struct fr_err *err)
{
    struct md m = {.out = out, .scratch = FR_BUF_INIT(0)};
    verdict(&m, r);
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        const struct fr_incident *in = &r->incidents.v[i];
        if (i > 0) {
            fr_buf_addz(out, "\n---\n\n");
        }
        if (o->view == FR_VIEW_ENGINEER) {
            engineer(&m, r, in, o->why);
        } else if (o->view == FR_VIEW_ONCALL) {
            oncall(&m, r, in);
        } else {
            executive(&m, r, in);
        }
    }
    fr_buf_addz(out, "\n*Read ");
    fr_words_input(out, r);
    fr_buf_addz(out, ".*\n");
    for (uint32_t i = 0; i < r->input.skipped.n && i < 20; i++) {
        fr_buf_addz(out, i == 0 ? "\nNot read:\n\n- " : "- ");
        code(&m, r->input.skipped.v[i].source);
        item(&m, ": ", r->input.skipped.v[i].why);
    }
    if (r->input.skipped.n > 20) {
        fr_buf_printf(out, "- and %" PRIu32 " more\n", r->input.skipped.n - 20);
    }
    out->failed |= !fr_buf_ok(&m.scratch);
    fr_buf_release(&m.scratch);
    return fr_words_finish(out, err);
}

const struct fr_writer fr_writer_markdown = {
    .name = "markdown",
    .summary = "for a pull request, an issue or a chat",
    .mime = "text/markdown; charset=utf-8",
    .extension = "md",
    .write = write_markdown,
};
