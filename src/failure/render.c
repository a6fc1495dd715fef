/* SPDX-License-Identifier: Apache-2.0 */
/* render: the answer first, then what to do, then the explanation is where the file has it. */
#include "failure/render.h"

#include "failure/page.h"

#include <stdio.h>

fr_sv fr_body_section(const char *body, const char *heading)
{
    fr_sv rest = fr_sv_z(body), line;
    const char *begin = NULL;
    const fr_sv want = fr_sv_z(heading);
    while (fr_page_line(&rest, &line)) {
        if (!fr_sv_starts(line, FR_SV("## "))) {
            continue;
        }
        if (begin != NULL) {
            return fr_sv_trim(fr_sv_range(begin, line.p));
        }
        if (fr_sv_eq(fr_sv_trim(fr_sv_skip(line, 3)), want)) {
            begin = rest.p;
        }
    }
    return begin != NULL ? fr_sv_trim(fr_sv_range(begin, rest.p)) : FR_SV_NONE;
}

static void heading(struct fr_page *p, const char *text)
{
    fr_page_heading(p, fr_sv_z(text));
}

static void items(struct fr_page *p, const char *title, const char *const *list, bool numbered)
{
    if (list == NULL || *list == NULL) {
        return;
    }
    heading(p, title);
    for (int i = 1; *list != NULL; list++, i++) {
        char lead[16];
        snprintf(lead, sizeof lead, numbered ? "  %d. " : "  - ", i);
        fr_page_wrap(p, lead, fr_sv_z(*list));
    }
}

static void words(struct fr_page *p, const char *title, const char *const *list)
{
    if (list == NULL || *list == NULL) {
        return;
    }
    FR_AUTO(fr_buf) all = FR_BUF_INIT(1u << 16);
    for (int i = 0; list[i] != NULL; i++) {
        fr_buf_addz(&all, i > 0 ? ", " : "");
        fr_buf_addz(&all, list[i]);
    }
    heading(p, title);
    fr_page_wrap(p, "  ", fr_buf_sv(&all));
}

static void command(struct fr_page *p, const char *text)
{
    fr_buf_addz(p->out, p->color ? "  $ " FR_PAGE_CODE : "  $ ");
    struct fr_page plain = {p->out, 100000, false}; /* a command is never wrapped: it is copied */
    fr_page_wrap(&plain, "", fr_sv_z(text));
    if (p->color) {
        fr_buf_addz(p->out, FR_PAGE_OFF);
    }
}

static void quoted(struct fr_page *p, const char *lead, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        fr_page_wrap(p, lead, fr_sv_z(*list));
    }
}

static void fix(struct fr_page *p, const struct fr_failure *f)
{
    heading(p, "Fix");
    fr_page_wrap(p, "  first:     ", fr_sv_z(f->fix_primary));
    if (f->fix_fallback[0] != '\0') {
        fr_page_wrap(p, "  otherwise: ", fr_sv_z(f->fix_fallback));
    }
    if (f->fix_emergency[0] != '\0') {
        fr_page_wrap(p, "  emergency: ", fr_sv_z(f->fix_emergency));
    }
}

static void verify(struct fr_page *p, const struct fr_failure *f)
{
    heading(p, "Verify");
    command(p, f->verify_command);
    quoted(p, "  must show:     ", f->verify_expect);
    quoted(p, "  must not show: ", f->verify_absent);
}

static void top(struct fr_page *p, const struct fr_failure *f)
{
    if (p->color) {
        fr_buf_addz(p->out, FR_PAGE_BOLD);
    }
    struct fr_page plain = {p->out, p->width, false};
    fr_page_wrap(&plain, "", fr_sv_z(f->title));
    if (p->color) {
        fr_buf_addz(p->out, FR_PAGE_OFF FR_PAGE_DIM);
    }
    fr_buf_printf(p->out, "%s   %s, %s, %s layer   owner: %s   action: %s%s\n\n", f->id,
                  f->category, f->severity, f->layer, f->owner, fr_action_name(f->action),
                  p->color ? FR_PAGE_OFF : "");
}

/* The body without the section that was already shown. */
static void rest_of_body(struct fr_page *p, const struct fr_failure *f, fr_sv shown)
{
    const fr_sv body = fr_sv_z(f->body);
    if (shown.n == 0) {
        fr_page_body(p, body);
        return;
    }
    fr_page_body(p, fr_sv_range(shown.p + shown.n, body.p + body.n));
}

/* A complete page has prose of its own where others have only the lists of their front matter. */
static bool has_section(const struct fr_failure *f, const char *name)
{
    return fr_body_section(f->body, name).n > 0;
}

static void recognised(struct fr_page *p, const struct fr_library *lib, const struct fr_failure *f)
{
    if (f->n_signals == 0) {
        return;
    }
    heading(p, "Recognised by");
    for (uint16_t i = 0; i < f->n_signals; i++) {
        const struct fr_signal *s = &lib->signals[f->first_signal + i];
        FR_AUTO(fr_buf) text = FR_BUF_INIT(4096);
        if (s->metric >= 0) {
            fr_buf_printf(&text, "%s: %s is %s (%s)", s->id,
                          fr_metric_name((enum fr_metric)s->metric),
                          fr_finding_name((enum fr_finding_kind)s->finding), fr_role_name(s->role));
        } else {
            fr_buf_printf(&text, "%s: `%s` (%s)", s->id, s->literals[0], fr_role_name(s->role));
        }
        fr_page_wrap(p, "  - ", fr_buf_sv(&text));
    }
}

void fr_page_text(const struct fr_library *lib, const struct fr_failure *f,
                  const struct fr_page_options *o, struct fr_buf *out)
{
    const int width = o->width > 0 ? o->width : 100;
    struct fr_page p = {out, width < 40 ? 40 : width > 200 ? 200 : width, o->color};
    const fr_sv quick = fr_body_section(f->body, "Quick answer");
    top(&p, f);
    fr_page_wrap(&p, "", quick);
    fix(&p, f);
    items(&p, "How to confirm", f->confirm, true);
    verify(&p, f);
    if (o->brief) {
        return;
    }
    rest_of_body(&p, f, quick);
    if (!has_section(f, "Prevention")) {
        items(&p, "Prevent", f->prevent, false);
    }
    recognised(&p, lib, f);
    words(&p, "Related", f->related);
    if (!has_section(f, "References")) {
        items(&p, "References", f->refs, false);
    }
}

/* ---- Markdown ---- */

static void md_items(struct fr_buf *out, const char *const *list, const char *mark)
{
    for (; list != NULL && *list != NULL; list++) {
        fr_buf_printf(out, "%s%s\n", mark, *list);
    }
}

static void md_literals(struct fr_buf *out, const char *what, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        const char *tick = strchr(*list, '`') != NULL ? "``" : "`";
        fr_buf_printf(out, "- %s %s%s%s\n", what, tick, *list, tick);
    }
}

static void md_confirm(struct fr_buf *out, const struct fr_failure *f)
{
    md_items(out, f->confirm, "1. ");
}

static void md_fix(struct fr_buf *out, const struct fr_failure *f)
{
    fr_buf_printf(out, "- **first:** %s\n", f->fix_primary);
    if (f->fix_fallback[0] != '\0') {
        fr_buf_printf(out, "- **otherwise:** %s\n", f->fix_fallback);
    }
    if (f->fix_emergency[0] != '\0') {
        fr_buf_printf(out, "- **emergency:** %s\n", f->fix_emergency);
    }
    fr_buf_printf(out, "\n%s Verify\n\n```\n%s\n```\n", has_section(f, "Fix") ? "###" : "##",
                  f->verify_command);
    if (f->verify_expect[0] != NULL || f->verify_absent[0] != NULL) {
        fr_buf_addc(out, '\n');
    }
    md_literals(out, "must show", f->verify_expect);
    md_literals(out, "must not show", f->verify_absent);
}

static void md_prevent(struct fr_buf *out, const struct fr_failure *f)
{
    md_items(out, f->prevent, "- ");
}

static void md_related(struct fr_buf *out, const struct fr_failure *f)
{
    md_items(out, f->related, "- ");
}

static void md_refs(struct fr_buf *out, const struct fr_failure *f)
{
    md_items(out, f->refs, "- ");
}

/* What the front matter says, and the body's section that it stands in; pages without the section
 * get it at their end, under `heading`. */
static const struct {
    const char *section, *heading;
    void (*put)(struct fr_buf *out, const struct fr_failure *f);
} lists[] = {
    {"How to confirm", "How to confirm", md_confirm}, {"Fix", "Fix", md_fix},
    {"Prevention", "Prevent", md_prevent},            {"Related", "Related", md_related},
    {"References", "References", md_refs},
};
enum { LISTS = sizeof lists / sizeof lists[0] };

static void md_body(struct fr_buf *out, const struct fr_failure *f)
{
    bool code = false;
    for (fr_sv line, rest = fr_sv_trim(fr_sv_z(f->body)); fr_page_line(&rest, &line);) {
        fr_buf_add(out, line);
        fr_buf_addc(out, '\n');
        code ^= fr_sv_starts(fr_sv_trim(line), FR_SV("```"));
        for (int i = 0; i < LISTS && !code && fr_sv_starts(line, FR_SV("## ")); i++) {
            /* References has its links in its own words */
            if (fr_sv_eq(fr_sv_trim(fr_sv_skip(line, 3)), fr_sv_z(lists[i].section)) &&
                lists[i].put != md_refs) {
                fr_buf_addc(out, '\n');
                lists[i].put(out, f);
            }
        }
    }
}

void fr_page_markdown(const struct fr_library *lib, const struct fr_failure *f, struct fr_buf *out)
{
    (void)lib;
    fr_buf_printf(out, "# %s\n\n`%s` - %s, %s, %s layer; owner %s; action **%s**\n\n", f->title,
                  f->id, f->category, f->severity, f->layer, f->owner, fr_action_name(f->action));
    md_body(out, f);
    for (int i = 0; i < LISTS; i++) {
        const bool empty = lists[i].put == md_related && f->related[0] == NULL;
        if (!has_section(f, lists[i].section) && !empty) {
            fr_buf_printf(out, "\n## %s\n\n", lists[i].heading);
            lists[i].put(out, f);
        }
    }
}
