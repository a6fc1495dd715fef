/* SPDX-License-Identifier: Apache-2.0 */
/* html: one self-contained page without scripts. Everything foreign passes fr_escape, nothing foreign becomes a tag, an
 * attribute's name or a link, and the policy in the head forbids loading anything at all should that ever fail. */
#include "report/escape.h"
#include "report/picture.h"

#include "failure/render.h"

#include <inttypes.h>

struct page {
    struct fr_buf *out;
    struct fr_buf scratch; /* clean, not escaped yet */
    bool why;
};

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>";

static const char style[] =
    "</title>\n<style>\n"
    ":root{--bg:#fbfaf8;--fg:#1d1f23;--mid:#5c6470;--line:#dcdfe4;--card:#ffffff;--code:#f1f2f4;--first:#c62828;--victim:#d99a2b;"
    "--fine:#3f8f6b;--none:#a9b0ba;--accent:#1f5fa8}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e6e8eb;--mid:#9aa3af;--line:#30353c;--card:#1c1f23;--code:#25292f;"
    "--first:#ff6b62;--victim:#c8892a;--fine:#4fa27c;--none:#5d6672;--accent:#7db4ee}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif}\n"
    "main{max-width:64rem;margin:0 auto;padding:2rem 1.25rem 4rem}\n"
    "h1{font-size:1.7rem;line-height:1.25;margin:0 0 .4rem;overflow-wrap:anywhere}h1.bad{color:var(--first)}\n"
    "h2{font-size:1.05rem;margin:2rem 0 .5rem}p,ul,ol{margin:.4rem 0}li{margin:.25rem 0}li,p,dd{overflow-wrap:anywhere}\n"
    ".facts{color:var(--mid)}.facts b{color:var(--fg);font-weight:600}\n"
    "pre{background:var(--code);border-left:3px solid var(--line);margin:.3rem 0 .8rem;padding:.6rem .8rem;white-space:pre-wrap;"
    "overflow-wrap:anywhere;font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}pre.first{border-color:var(--first)}\n"
    "code{background:var(--code);padding:.05rem .3rem;border-radius:3px;font:.9em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
    "overflow-wrap:anywhere}\n"
    ".src{white-space:pre-wrap;font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;color:var(--mid);overflow-wrap:anywhere;margin:.6rem 0 0}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1.25rem 1.5rem 1.5rem;margin:1.25rem 0}\n"
    ".now{border-left:4px solid var(--accent);padding-left:1rem}.now>p:first-child{font-weight:600}\n"
    "table{border-collapse:collapse;width:100%;table-layout:fixed}th:first-child{width:24%}th:nth-child(2){width:19%}td,th{text-align:left;vertical-align:top;padding:.35rem .8rem .35rem 0;"
    "border-bottom:1px solid var(--line);overflow-wrap:anywhere}th{color:var(--mid);font-weight:500}\n"
    "footer{color:var(--mid);font-size:.9rem;margin-top:2rem}summary{cursor:pointer}\n"
    ".key span{display:inline-block;margin-right:1.2rem;color:var(--mid);font-size:.9rem}.key i{display:inline-block;width:.8em;"
    "height:.8em;border-radius:2px;margin-right:.4em}.ki{background:var(--first)}.kc{background:var(--victim)}.kf{background:var(--fine)}"
    ".ku{background:var(--none)}\n"
    "svg{width:100%;height:auto;display:block}svg text{font:10px system-ui,sans-serif;fill:var(--mid)}\n"
    ".l{text-anchor:end}.l.b{fill:var(--first);font-weight:700}.t{text-anchor:middle}.e{fill:var(--first);font-weight:600;"
    "text-anchor:start}.e.r{text-anchor:end}\n"
    ".i rect{fill:var(--first)}.c rect{fill:var(--victim)}.f rect{fill:var(--fine)}.u rect{fill:var(--none)}.n rect{opacity:.45}\n"
    "svg .m{fill:var(--fg);opacity:.55}.g{stroke:var(--line)}.d{stroke:var(--first);stroke-dasharray:3 3}"
    ".p{fill:var(--first);stroke:var(--card);stroke-width:1.5}\n"
    "@media print{section{break-inside:avoid}}\n"
    "</style>\n</head>\n<body>\n<main>\n";

static void flush(struct page *p)
{
    fr_escape_flush(p->out, &p->scratch);
}

static void tagged(struct page *p, const char *open, fr_sv s, const char *close)
{
    if (s.n > 0) {
        fr_buf_addz(p->out, open);
        fr_escape(p->out, s, 4096);
        fr_buf_addz(p->out, close);
    }
}

static void flush_tagged(struct page *p, const char *open, const char *close)
{
    if (p->scratch.n > 0) {
        fr_buf_addz(p->out, open);
        flush(p);
        fr_buf_addz(p->out, close);
    }
}

static void quote(struct page *p, const struct fr_quote *q, const char *open)
{
    fr_words_place(&p->scratch, q);
    fr_words_origin(&p->scratch, q);
    flush_tagged(p, "<p class=\"src\">", "</p>\n");
    tagged(p, open, q->text, "</pre>\n");
}

static void facts(struct page *p, const struct fr_incident *in)
{
    fr_buf_addz(p->out, "<p class=\"facts\">Confidence <b>");
    fr_words_confidence(p->out, in);
    fr_buf_addz(p->out, "</b>");
    fr_words_when(&p->scratch, &in->initiator.when);
    flush_tagged(p, ", began <b>", "</b>");
    fr_words_whereabouts(&p->scratch, in);
    flush_tagged(p, ", ", "");
    if (in->recurrences > 1) {
        fr_buf_printf(p->out, ", seen in %" PRIu32 " attempts", in->recurrences);
    }
    fr_buf_addz(p->out, "</p>\n");
}

static void victims(struct page *p, const struct fr_incident *in)
{
    struct fr_victims_list l;
    fr_victims_group(in, &l);
    p->out->failed |= l.failed;
    if (l.n > 0) {
        fr_buf_addz(p->out, "<h2>Victims: ");
        fr_words_count(p->out, in->collateral.n, "other rank", "other ranks");
        fr_buf_addz(p->out, "</h2>\n<table><tr><th>who</th><th>what they show</th><th>for example</th></tr>\n");
    }
    for (uint32_t i = 0; i < l.n; i++) {
        const struct fr_victims *g = &l.v[i];
        fr_buf_addz(p->out, "<tr><td>");
        if (g->ranks.n == 0) {
            fr_words_count(p->out, g->n, "process", "processes");
        } else if (!fr_words_rank_list(p->out, g->ranks.v, g->ranks.n)) {
            fr_buf_addz(p->out, "<details><summary>all</summary>");
            fr_words_ranks(p->out, g->ranks.v, g->ranks.n);
            fr_buf_addz(p->out, "</details>");
        }
        fr_buf_addz(p->out, "</td><td>");
        fr_escape(p->out, g->cls.n > 0 ? g->cls : FR_SV("no line of its own"), 200);
        fr_buf_addz(p->out, "</td><td>");
        if (g->example != NULL) {
            quote(p, &g->example->evidence, "<pre>");
        }
        fr_buf_addz(p->out, "</td></tr>\n");
    }
    fr_buf_addz(p->out, l.n > 0 ? "</table>\n" : "");
    fr_victims_list_release(&l);
}

static void ruled_out(struct page *p, const struct fr_incident *in)
{
    fr_buf_addz(p->out, in->not_the_cause.n > 0 ? "<h2>Not the cause</h2>\n<ul>\n" : "");
    for (uint32_t i = 0; i < in->not_the_cause.n; i++) {
        const struct fr_innocent *n = &in->not_the_cause.v[i];
        tagged(p, "<li><code>", fr_sv_head(n->text, 240), "</code> ");
        if (n->at.source.n > 0) {
            fr_words_place(&p->scratch, &n->at);
            flush_tagged(p, "at <code>", "</code>: ");
        }
        fr_escape(p->out, n->why, 1024);
        fr_buf_addz(p->out, "</li>\n");
    }
    fr_buf_addz(p->out, in->not_the_cause.n > 0 ? "</ul>\n" : "");
}

static void ranking(struct page *p, const struct fr_incident *in)
{
    if (in->hypotheses.n == 0) {
        return;
    }
    fr_buf_printf(p->out, "<details%s><summary>Ranking of %" PRIu32 " hypotheses</summary>\n<ol>\n", p->why ? " open" : "",
                  in->hypotheses.n);
    for (uint32_t i = 0; i < in->hypotheses.n; i++) {
        const struct fr_hypothesis *h = &in->hypotheses.v[i];
        tagged(p, "<li><code>", h->cls, "</code>");
        fr_buf_printf(p->out, ", score %.2f<ul>\n", h->score);
        for (uint32_t k = 0; k < h->for_.n; k++) {
            tagged(p, "<li>for: ", h->for_.v[k], "</li>\n");
        }
        for (uint32_t k = 0; k < h->against.n; k++) {
            tagged(p, "<li>against: ", h->against.v[k], "</li>\n");
        }
        fr_buf_addz(p->out, "</ul></li>\n");
    }
    fr_buf_addz(p->out, "</ol></details>\n");
}

static void literals(struct page *p, const char *what, const char *const *v)
{
    if (v == NULL || *v == NULL) {
        return;
    }
    fr_buf_printf(p->out, "<p>%s", what);
    for (bool first = true; *v != NULL; v++, first = false) {
        fr_buf_addz(p->out, first ? " <code>" : ", <code>");
        fr_escape_z(p->out, *v);
        fr_buf_addz(p->out, "</code>");
    }
    fr_buf_addz(p->out, "</p>\n");
}

static void do_now(struct page *p, const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_failure *f = in->failure;
    FR_AUTO(fr_buf) slurm = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) kubernetes = FR_BUF_INIT(0);
    fr_buf_addz(p->out, "<h2>Do now</h2>\n<div class=\"now\">");
    fr_words_action(&p->scratch, r, in);
    flush_tagged(p, "<p>", "</p>\n");
    if (fr_story_drain(in, &slurm, &kubernetes)) {
        tagged(p, "<pre>", fr_buf_sv(&slurm), "</pre>");
        tagged(p, "<pre>", fr_buf_sv(&kubernetes), "</pre>\n");
    }
    p->out->failed |= !fr_buf_ok(&slurm) || !fr_buf_ok(&kubernetes);
    if (fr_has(f->fix_primary)) {
        fr_buf_addz(p->out, "<ul>\n");
        tagged(p, "<li><b>Fix:</b> ", fr_sv_z(f->fix_primary), "</li>\n");
        tagged(p, "<li><b>Otherwise:</b> ", fr_sv_z(f->fix_fallback), "</li>\n");
        tagged(p, "<li><b>Stopgap:</b> ", fr_sv_z(f->fix_emergency), "</li>\n");
        fr_buf_addz(p->out, "</ul>\n");
    }
    fr_story_resume(&p->scratch, in);
    flush_tagged(p, "<p>", "</p>\n");
    fr_words_steps(&p->scratch, in);
    flush_tagged(p, "<p>Steps: ", "</p>\n");
    fr_buf_addz(p->out, "</div>\n");
    if (fr_has(f->verify_command)) {
        tagged(p, "<h2>Check that it worked</h2>\n<pre>", fr_sv_z(f->verify_command), "</pre>\n");
        literals(p, "The next log must show", f->verify_expect);
        literals(p, "It must not show", f->verify_absent);
    }
}

static void texts(struct page *p, const char *heading, const fr_sv *v, uint32_t n)
{
    if (n == 0) {
        return;
    }
    fr_buf_printf(p->out, "<h2>%s</h2>\n<ul>\n", heading);
    for (uint32_t i = 0; i < n; i++) {
        tagged(p, "<li>", v[i], "</li>\n");
    }
    fr_buf_addz(p->out, "</ul>\n");
}

static void collect(struct page *p, const struct fr_incident *in)
{
    texts(p, "To be surer, collect next", in->collect_next.v, in->collect_next.n);
}

static void picture(struct page *p, const struct fr_report *r)
{
    if (r->lanes.n == 0) {
        return;
    }
    fr_buf_addz(p->out, "<h2>The run</h2>\n<p class=\"key\"><span><i class=\"ki\"></i>failed first</span><span>"
                        "<i class=\"kc\"></i>victim</span><span><i class=\"kf\"></i>no failure seen</span><span>"
                        "<i class=\"ku\"></i>unknown</span></p>\n");
    if (fr_picture(r, p->out) != 0) {
        p->out->failed = true;
    }
}

static void engineer(struct page *p, const struct fr_report *r, const struct fr_incident *in)
{
    if (in->evidence.n > 0) {
        tagged(p, "<h2>", fr_sv_z(fr_words_began(in)), "</h2>\n");
    }
    for (uint32_t i = 0; i < in->evidence.n; i++) {
        quote(p, &in->evidence.v[i], i == 0 ? "<pre class=\"first\">" : "<pre>");
    }
    tagged(p, "<h2>Why this one first</h2>\n<p>", in->why_first, "</p>\n");
    tagged(p, "<h2>What it is</h2>\n<p>", fr_body_section(in->failure->body, "Quick answer"), "</p>\n");
    if (r->verdict == FR_VERDICT_INCONCLUSIVE) {
        collect(p, in);
    }
    if (in == r->incidents.v) {
        picture(p, r);
    }
    do_now(p, r, in);
    victims(p, in);
    ruled_out(p, in);
    if (r->verdict != FR_VERDICT_INCONCLUSIVE) {
        collect(p, in);
    }
    ranking(p, in);
}

static void oncall(struct page *p, const struct fr_report *r, const struct fr_incident *in)
{
    do_now(p, r, in);
    if (in->evidence.n > 0) {
        fr_buf_addz(p->out, "<h2>Proof</h2>\n");
        quote(p, &in->evidence.v[0], "<pre class=\"first\">");
    }
    tagged(p, "<h2>Escalate to</h2>\n<p>", fr_sv_z(fr_words_owner(in->owner)), "</p>\n");
    if (in == r->incidents.v) {
        picture(p, r);
    }
}

static void executive(struct page *p, const struct fr_report *r, const struct fr_incident *in)
{
    fr_story_stopped(&p->scratch, r, in);
    flush_tagged(p, "<p>", "</p>\n");
    fr_story_cost(&p->scratch, r, in);
    flush_tagged(p, "<h2>What it cost</h2>\n<p>", "</p>\n");
    tagged(p, "<h2>Who owns it</h2>\n<p>", fr_sv_z(fr_words_owner(in->owner)), "</p>\n");
    fr_story_recurrence(&p->scratch, in);
    flush_tagged(p, "<h2>Will it recur</h2>\n<p>", "</p>\n");
    fr_words_action(&p->scratch, r, in);
    flush_tagged(p, "<h2>What happens now</h2>\n<p>", "</p>\n");
    fr_story_confidence(&p->scratch, in);
    flush_tagged(p, "<h2>How sure is this</h2>\n<p>", "</p>\n");
    if (in == r->incidents.v) {
        picture(p, r);
    }
}

static void headline(struct page *p, const struct fr_report *r)
{
    if (r->verdict == FR_VERDICT_FAILURE && r->incidents.n > 0) {
        fr_words_headline(&p->scratch, r, &r->incidents.v[0]);
    } else {
        fr_buf_addz(&p->scratch, r->verdict == FR_VERDICT_HEALTHY ? "No failure found"
                                                                  : "Cannot tell from these logs what failed first");
    }
}

static void incident(struct page *p, const struct fr_report *r, uint32_t i, uint8_t view)
{
    static void (*const views[])(struct page *, const struct fr_report *, const struct fr_incident *) = {
        [FR_VIEW_ENGINEER] = engineer, [FR_VIEW_ONCALL] = oncall, [FR_VIEW_EXECUTIVE] = executive};
    const struct fr_incident *in = &r->incidents.v[i];
    if (i > 0 || r->verdict != FR_VERDICT_FAILURE) {
        fr_buf_addz(&p->scratch, r->verdict != FR_VERDICT_FAILURE ? "The best guess so far: " : "");
        fr_words_headline(&p->scratch, r, in);
        flush_tagged(p, "<h1>", "</h1>\n");
    }
    facts(p, in);
    views[view](p, r, in);
    fr_buf_addz(p->out, "<footer>");
    fr_buf_addz(&p->scratch, "faultrank explain ");
    fr_words_add(&p->scratch, in->cls);
    flush_tagged(p, "More: <code>", "</code>");
    tagged(p, " &middot; fingerprint <code>", in->fingerprint, "</code>");
    fr_buf_addz(p->out, "</footer>\n</section>\n");
}

static int write_html(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out,
                      struct fr_err *err)
{
    struct page p = {.out = out, .scratch = FR_BUF_INIT(0), .why = o->why};
    fr_buf_addz(out, head);
    headline(&p, r);
    flush(&p);
    fr_buf_addz(out, style);
    fr_buf_addz(out, "<section>\n");
    headline(&p, r);
    flush_tagged(&p, r->verdict == FR_VERDICT_FAILURE ? "<h1 class=\"bad\">" : "<h1>", "</h1>\n");
    if (r->verdict != FR_VERDICT_FAILURE || r->incidents.n == 0) {
        texts(&p, "Checked", r->checked.v, r->checked.n);
        if (r->incidents.n == 0) {
            picture(&p, r);
        }
        fr_buf_addz(out, "</section>\n");
        fr_buf_addz(out, r->incidents.n > 0 ? "<section>\n" : "");
    }
    for (uint32_t i = 0; i < r->incidents.n; i++) {
        fr_buf_addz(out, i > 0 ? "<section>\n" : "");
        incident(&p, r, i, o->view);
    }
    fr_buf_addz(out, "<footer>Read ");
    fr_words_input(&p.scratch, r);
    flush(&p);
    fr_buf_addz(out, ". Written by faultrank; nothing in this page loads or runs anything.\n");
    for (uint32_t i = 0; i < r->input.skipped.n && i < 50; i++) {
        tagged(&p, "<br>Not read: <code>", r->input.skipped.v[i].source, "</code>: ");
        fr_escape(out, r->input.skipped.v[i].why, 400);
    }
    if (r->input.skipped.n > 50) {
        fr_buf_printf(out, "<br>Not read: %" PRIu32 " more", r->input.skipped.n - 50);
    }
    fr_buf_addz(out, "</footer>\n</main>\n</body>\n</html>\n");
    out->failed |= !fr_buf_ok(&p.scratch);
    fr_buf_release(&p.scratch);
    return fr_words_finish(out, err);
}

const struct fr_writer fr_writer_html = {
    .name = "html",
    .summary = "one self-contained page with a picture of the run",
    .mime = "text/html; charset=utf-8",
    .extension = "html",
    .write = write_html,
};
