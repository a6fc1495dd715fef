/* SPDX-License-Identifier: Apache-2.0 */
#include "failure/lint.h"
#include "failure/load.h"
#include "failure/render.h"
#include "failure/search.h"
#include "match/scan.h"
#include "support/t.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- parsing ---- */

static const char page[] =
    "---\n"
    "id: boiler-empty\n"
    "title: 'Boiler ran empty'\n"
    "category: memory\n"
    "severity: high\n"
    "layer: runtime\n"
    "owner: platform\n"
    "action: drain-node\n"
    "scope: node\n"
    "weight: 70\n"
    "explains: [steam-missing]\n"
    "signals:\n"
    "  - id: dry\n"
    "    role: cause\n"
    "    literal: ['boiler is dry', \"kettle is dry\"]\n"
    "    regex: 'is dry: \\d{1,4} K'\n"
    "    not: 'drill'\n"
    "    captures: {gpu: 'GPU (\\d+)', size: '(\\d{1,4}) K'}\n"
    "    about: peer\n"
    "    yes: ['boiler is dry: 400 K']\n"
    "    no: ['boiler is dry: drill 400 K']\n"
    "  - id: flat\n"
    "    role: symptom\n"
    "    metric: {name: loss, is: plateau, until_step: 20}\n"
    "    yes: [\"loss 1\\nloss 1\"]\n"
    "    no: ['loss 2']\n"
    "confirm: ['look inside']\n"
    "fix: {primary: 'fill it', fallback: 'wait', emergency: 'leave'}\n"
    "verify: {command: 'ls', expect: [], absent: ['boiler is dry']}\n"
    "prevent: ['fill it daily']\n"
    "refs: [https://example.org/boiler]\n"
    "---\n"
    "## Quick answer\n\nNo water. Use `fill`.\n\n## What this failure is\n\nIt is **dry**.\n\n"
    "## Why it happens\n\n- nobody looked\n- the float sticks, and then a rather long line follows "
    "that has to be wrapped\n\n"
    "## Symptoms\n\n| symptom | why |\n|---|---|\n| steam | heat |\n";

struct heard {
    char text[4096];
    uint32_t line;
};

static void hear(void *ctx, enum fr_complaint level, const char *path, uint32_t line,
                 const char *text)
{
    struct heard *h = ctx;
    (void)path;
    if (level == FR_COMPLAINT_ERROR && h->text[0] == '\0') {
        snprintf(h->text, sizeof h->text, "%s", text);
        h->line = line;
    }
}

/* The page with `from` replaced by `to` must give an error that holds `what`, on that line. */
static void bad(const char *from, const char *to, const char *what, uint32_t line)
{
    static char text[2 * sizeof page];
    const char *at = strstr(page, from);
    struct heard heard = {"", 0};
    struct fr_complain complain = {.fn = hear, .ctx = &heard};
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_parsed parsed;
    T_OK(at != NULL);
    if (at == NULL) {
        return;
    }
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - page), page, to, at + strlen(from));
    T_EQ_INT(fr_failure_parse(fr_sv_z(text), "memory/boiler-empty.md", &arena, &complain, &parsed),
             -FR_SYNTAX);
    if (strstr(heard.text, what) == NULL) {
        T_FAIL("'%s' -> '%s': got '%s'", from, to, heard.text);
    }
    T_EQ_INT(heard.line, line);
    fr_arena_release(&arena);
}

T_TEST(a_page_becomes_a_failure)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_complain complain = {0};
    struct fr_parsed p = {0};
    T_EQ_INT(fr_failure_parse(FR_SV(page), "memory/boiler-empty.md", &arena, &complain, &p), 0);
    T_EQ_INT(complain.errors + complain.warnings, 0);
    T_EQ_STR(p.failure.id, "boiler-empty");
    T_EQ_INT(p.failure.action, FR_ACTION_DRAIN_NODE);
    T_EQ_INT(p.failure.scope, FR_SCOPE_NODE);
    T_EQ_INT(p.failure.weight, 70);
    T_EQ_STR(p.failure.explains[0], "steam-missing");
    T_OK(p.failure.related[0] == NULL);
    T_EQ_INT(p.failure.n_signals, 2);
    T_EQ_STR(p.signals[0].literals[1], "kettle is dry");
    T_EQ_STR(p.signals[0].none_of[0], "drill");
    T_EQ_INT(p.signals[0].n_captures, 2);
    T_EQ_STR(p.signals[0].captures[1].name, "size");
    T_EQ_INT(p.signals[0].about, FR_ABOUT_PEER);
    T_EQ_INT(p.signals[0].metric, -1);
    T_EQ_INT(p.signals[1].metric, FR_METRIC_LOSS);
    T_EQ_INT(p.signals[1].finding, FR_FINDING_PLATEAU);
    T_EQ_INT(p.signals[1].until_step, 20);
    T_OK(p.signals[1].literals == NULL);
    T_OK(strncmp(p.failure.body, "## Quick answer", 15) == 0);
    fr_arena_release(&arena);
}

T_TEST(mistakes_are_named_with_their_line)
{
    bad("severity: high", "severity: awful", "cannot be 'awful'", 5);
    bad("title: 'Boiler ran empty'\n", "", "'title' is missing", 2);
    bad("id: boiler-empty", "id: boiler-full", "differs from the file's name", 2);
    bad("category: memory", "category: cuda", "differs from the folder", 4);
    bad("weight: 70", "weight: 700", "number from 0 to 100", 10);
    bad("'boiler is dry', ", "'dry', ", "5 to 240 bytes", 15);
    bad("    role: cause\n", "", "needs a 'role'", 13);
    bad("    literal: ['boiler is dry', \"kettle is dry\"]\n", "", "either 'literal' or 'metric'",
        13);
    bad("name: loss", "name: lost", "unknown metric", 24);
    bad("is: plateau", "is: plato", "unknown finding", 24);
    bad("id: flat", "id: dry", "two signals", 22);
    bad("confirm: ['look inside']", "confirm: [a: b]", "must be a text", 27);
    bad("explains: [steam-missing]", "explains: &x [steam]", "anchors", 11);
    bad("explains: [steam-missing]", "explains: [*x]", "", 11);
    bad("explains: [steam-missing]", "explains: [[[[[[[[[a]]]]]]]]]", "nested too deeply", 11);
    bad("weight: 70", "weight: 70\nweight: 71", "given twice", 11);
    bad("weight: 70", "weight: [", "", 12);
    bad("---\nid", "id", "front matter", 1);
}

T_TEST(any_prefix_of_a_page_is_an_error_not_a_crash)
{
    for (size_t n = 0; n + 1 < sizeof page; n += 3) {
        struct fr_arena arena = FR_ARENA_INIT(0);
        struct fr_complain complain = {0};
        struct fr_parsed p;
        const int rc =
            fr_failure_parse((fr_sv){page, n}, "memory/boiler-empty.md", &arena, &complain, &p);
        T_OK(rc == 0 || (rc == -FR_SYNTAX && complain.errors > 0));
        fr_arena_release(&arena);
    }
}

/* ---- the library ---- */

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    T_OK(f != NULL);
    if (f != NULL) {
        fputs(text, f);
        fclose(f);
    }
}

T_TEST(a_users_folder_adds_and_replaces)
{
    char dir[] = "/tmp/fr-test-XXXXXX", path[128], text[sizeof page + 64];
    T_OK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/memory", dir);
    T_EQ_INT(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/memory/boiler-empty.md", dir);
    put(path, page);
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_library lib;
    struct fr_err err = {0};
    const struct fr_library *builtin = fr_library_builtin();
    T_EQ_INT(fr_library_load(dir, &arena, &lib, &err), 0);
    T_EQ_INT(lib.n_failures, builtin->n_failures + 1);
    T_EQ_INT(lib.n_signals, builtin->n_signals + 2);
    const int at = fr_library_find(&lib, FR_SV("boiler-empty"));
    T_OK(at >= 0);
    if (at >= 0) {
        T_EQ_INT(lib.signals[lib.failures[at].first_signal].failure, at);
    }
    for (uint32_t i = 0; i < builtin->n_failures; i++) {
        T_OK(fr_library_find(builtin, fr_sv_z(builtin->failures[i].id)) == (int)i);
        T_OK(fr_library_find(&lib, fr_sv_z(builtin->failures[i].id)) >= 0);
    }
    T_EQ_INT(fr_library_find(&lib, FR_SV("boiler-empt")), -1);
    /* the same page under a built-in's name */
    const char *rest = strchr(page + 4, '\n');
    snprintf(text, sizeof text, "---\nid: python-exception%s", rest);
    snprintf(path, sizeof path, "%s/python-exception.md", dir);
    put(path, text);
    T_EQ_INT(fr_library_load(dir, &arena, &lib, &err), 0);
    T_EQ_INT(lib.n_failures, builtin->n_failures + 1);
    const int replaced = fr_library_find(&lib, FR_SV("python-exception"));
    T_OK(replaced >= 0 && strcmp(lib.failures[replaced].title, "Boiler ran empty") == 0);
    /* an error names file and line */
    put(path, "---\nid: python-exception\ntitle: [\n---\n");
    T_EQ_INT(fr_library_load(dir, &arena, &lib, &err), -FR_SYNTAX);
    T_OK(strstr(err.msg, "python-exception.md:") != NULL);
    unlink(path);
    snprintf(path, sizeof path, "%s/memory/boiler-empty.md", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/memory", dir);
    rmdir(path);
    rmdir(dir);
    T_EQ_INT(fr_library_load(dir, &arena, &lib, &err), -FR_IO);
    fr_arena_release(&arena);
}

T_TEST(search_finds_by_id_title_and_text)
{
    const struct fr_library *lib = fr_library_builtin();
    struct fr_found found[8];
    T_OK(fr_library_search(lib, FR_SV("host-oom-killer"), found, 8) >= 1);
    T_EQ_STR(lib->failures[found[0].failure].id, "host-oom-killer");
    const unsigned n = fr_library_search(lib, FR_SV("oom KILLER linux"), found, 8);
    T_OK(n >= 1);
    T_EQ_STR(lib->failures[found[0].failure].id, "host-oom-killer");
    T_EQ_INT(fr_library_search(lib, FR_SV("zzqx"), found, 8), 0);
    T_EQ_INT(fr_library_search(lib, FR_SV("  "), found, 8), 0);
    T_EQ_INT(fr_library_search(lib, FR_SV("a"), found, 2), 2);
    T_OK(found[0].score >= found[1].score);
}

T_TEST(a_page_is_rendered)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_parsed p = {0};
    T_EQ_INT(fr_failure_parse(FR_SV(page), "memory/boiler-empty.md", &arena, NULL, &p), 0);
    const struct fr_library lib = {&p.failure, 1, p.signals, 2};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    fr_page_text(&lib, &p.failure, &(struct fr_page_options){.width = 60}, &out);
    const fr_sv text = fr_buf_sv(&out);
    T_OK(fr_sv_starts(text, FR_SV("Boiler ran empty\nboiler-empty   memory, high, runtime layer")));
    T_OK(fr_sv_has(text, FR_SV("\nNo water. Use `fill`.\n\nFIX\n  first:     fill it\n")));
    T_OK(fr_sv_has(text, FR_SV("\n  $ ls\n  must not show: boiler is dry\n")));
    T_OK(fr_sv_has(text, FR_SV("\nSYMPTOMS\n  symptom  why\n  steam    heat\n")));
    T_OK(fr_sv_has(text, FR_SV("\n  - the float sticks, and then a rather long line follows\n    "
                               "that has to be wrapped\n")));
    T_OK(fr_sv_find(text, FR_SV("QUICK ANSWER")) == FR_NPOS);
    T_OK(memchr(text.p, 0x1b, text.n) == NULL);
    FR_AUTO(fr_buf) color = FR_BUF_INIT(0);
    fr_page_text(&lib, &p.failure, &(struct fr_page_options){.width = 60, .color = true}, &color);
    T_OK(fr_sv_has(fr_buf_sv(&color), FR_SV("\x1b[36mfill")));
    FR_AUTO(fr_buf) md = FR_BUF_INIT(0);
    fr_page_markdown(&lib, &p.failure, &md);
    T_OK(fr_sv_starts(fr_buf_sv(&md), FR_SV("# Boiler ran empty\n")));
    T_OK(fr_sv_has(fr_buf_sv(&md), FR_SV("\n## Fix\n\n- **first:** fill it\n")));
    struct fr_failure complete = p.failure; /* its lists stand in the sections of the body */
    complete.body = "## Fix\n\nTurn the tap.\n\n## References\n\n- a book\n";
    fr_buf_clear(&md);
    fr_page_markdown(&lib, &complete, &md);
    T_OK(fr_sv_has(fr_buf_sv(&md), FR_SV("## Fix\n\n- **first:** fill it\n")));
    T_OK(fr_sv_has(fr_buf_sv(&md), FR_SV("### Verify\n\n```\nls\n```\n\n- must not show `boiler is dry`\n\nTurn the tap.\n")));
    T_OK(!fr_sv_has(fr_buf_sv(&md), FR_SV("example.org")));
    fr_arena_release(&arena);
}

T_TEST(every_builtin_page_renders_at_any_width)
{
    const struct fr_library *lib = fr_library_builtin();
    for (uint32_t i = 0; i < lib->n_failures; i++) {
        FR_AUTO(fr_buf) out = FR_BUF_INIT(1u << 20);
        fr_page_text(lib, &lib->failures[i],
                     &(struct fr_page_options){.width = (int)(i % 150), .color = i % 2}, &out);
        T_OK(fr_buf_ok(&out) && out.n > 200);
    }
}

/* ---- lint ---- */

static void print(void *ctx, enum fr_complaint level, const char *path, uint32_t line,
                  const char *text)
{
    (void)ctx;
    (void)line;
    if (level == FR_COMPLAINT_ERROR || getenv("FR_LINT_WARNINGS") != NULL) {
        fprintf(stderr, "%s: %s: %s\n", path, level == FR_COMPLAINT_ERROR ? "error" : "warning",
                text);
    }
}

static int fires(void *ctx, uint16_t signal, const char *sample)
{
    const struct fr_signal *s = &fr_library_builtin()->signals[signal];
    return s->metric >= 0 ? -1 : fr_scan_fires(ctx, signal, fr_sv_z(sample));
}

T_TEST(the_builtin_library_passes_lint)
{
    const struct fr_rules *rules = NULL;
    struct fr_scanner *scanner = NULL;
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, FR_ENGINE_AUTO, &scanner, NULL), 0);
    const struct fr_lint_checks checks = {scanner, fires};
    struct fr_complain complain = {.fn = print};
    T_EQ_INT(fr_library_lint(fr_library_builtin(), NULL, NULL, &checks, &complain), 0);
    T_EQ_INT(complain.errors, 0);
    fr_scanner_free(&scanner);
}

/* The page changed as told must give exactly this complaint. */
static void lint_says(const char *from, const char *to, const char *what)
{
    static char text[2 * sizeof page];
    const char *at = strstr(page, from);
    struct heard heard = {"", 0};
    struct fr_complain complain = {.fn = hear, .ctx = &heard};
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_parsed p[2];
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - page), page, to, at + strlen(from));
    T_EQ_INT(fr_failure_parse(fr_sv_z(text), "memory/boiler-empty.md", &arena, NULL, &p[0]), 0);
    struct fr_failure both[2] = {p[0].failure, p[0].failure};
    both[0].explains = both[0].related; /* empty unless the test says so */
    both[1].id = "boiler-other";
    const struct fr_library lib = {both, strstr(what, "word for word") != NULL ? 2 : 1,
                                   p[0].signals, 2};
    T_EQ_INT(fr_library_lint(&lib, NULL, NULL, NULL, &complain), 0);
    if (strstr(heard.text, what) == NULL || (what[0] == '\0' && heard.text[0] != '\0')) {
        T_FAIL("'%s' -> '%s': got '%s'", from, to, heard.text);
    }
    fr_arena_release(&arena);
}

T_TEST(two_that_explain_each_other)
{
    static const char *const first[] = {"boiler-other", NULL}, *const second[] = {"boiler-empty", NULL}, *const none[] = {NULL};
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_parsed p;
    T_EQ_INT(fr_failure_parse(fr_sv_z(page), "memory/boiler-empty.md", &arena, NULL, &p), 0);
    for (int mutual = 0; mutual < 2; mutual++) {
        struct heard heard = {"", 0};
        struct fr_complain complain = {.fn = hear, .ctx = &heard};
        struct fr_failure both[2] = {p.failure, p.failure};
        both[1].id = "boiler-other";
        both[0].explains = first;
        both[1].explains = mutual != 0 ? second : none;
        const struct fr_library lib = {both, 2, p.signals, 2};
        T_EQ_INT(fr_library_lint(&lib, NULL, NULL, NULL, &complain), 0);
        T_EQ_INT(strstr(heard.text, "names it back") != NULL, mutual);
    }
    fr_arena_release(&arena);
}

#define COMPLETE                                                                            \
    "## Affected systems\n\nx\n## How to confirm\n\nx\n## Fix\n\nx\n## Prevention\n\nx\n" \
    "## For the executive\n\nx\n## For the engineer\n\nx\n## For the on-call\n\nx\n"

T_TEST(lint_rules)
{
    lint_says("id", "id", "");
    lint_says("## Why it happens", "## Why so", "'## Why it happens' is missing");
    lint_says("refs: [https://example.org/boiler]", "refs: [ftp://x]", "not a URL");
    lint_says("refs:", "related: [nowhere]\nrefs:", "which does not exist");
    lint_says("refs:", "related: [boiler-empty]\nrefs:", "the failure itself");
    lint_says("is dry: \\d{1,4} K", "is dry: .*K", "unbounded");
    lint_says("is dry: \\d{1,4} K", "is dry: .{3,}K", "unbounded");
    lint_says("is dry: \\d{1,4} K", "is dry: [.*]\\.+ .{0,9}K", "");
    lint_says("'GPU (\\d+)'", "'GPU (\\d+)( x)'", "exactly one group");
    lint_says("'GPU (\\d+)'", "'GPU (?:a|\\(b) [(](\\d+)'", "");
    lint_says("not: 'drill'", "not: 'is dry'", "can never fire");
    lint_says("    no: ['loss 2']\n", "", "one 'no' sample");
    lint_says("| symptom | why |\n|---|---|\n| steam | heat |", "none", "needs a table");
    lint_says("| steam | heat |\n", "| steam | heat |\n\n## Fix\n\nx\n", "'## Affected systems' is missing");
    lint_says("refs:", "repro: boiler-empty\nrefs:", "'## Affected systems' is missing");
    lint_says("| steam | heat |\n",
              "| steam | heat |\n" COMPLETE "## References\n\nx\n## Questions\n\nx\n",
              "'## References' is out of order");
    lint_says("| steam | heat |\n",
              "| steam | heat |\n" COMPLETE "## Questions\n\nx\n## References\n\nx\n", "");
    lint_says("title: 'Boiler ran empty'", "title: 'Boiler ran empty.'", "ends with a dot");
    lint_says("It is **dry**.", "It is so dry that this line is long enough to be compared.",
              "word for word");
}

int main(void)
{
    return t_run();
}
