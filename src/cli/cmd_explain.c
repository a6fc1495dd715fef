/* SPDX-License-Identifier: Apache-2.0 */
/* explain: the page of a failure, found by its id or by the text of an error. */
#include "cli/cli.h"

#include "cli/library.h"
#include "failure/render.h"
#include "failure/search.h"
#include "report/catalogue.h"

static const char *const formats[] = {"text", "markdown", "json", NULL};

static const struct fr_option options[] = {
    {'f', "format", FR_ARG_CHOICE, "FORMAT", formats, "how to write the page", false},
    {'b', "brief", FR_ARG_NONE, NULL, NULL, "only the quick answer, how to confirm, the fix and its check", false},
    {0, "failures", FR_ARG_FOLDER, "DIR", NULL, "also know the failure files in DIR", false},
    {0, "no-color", FR_ARG_NONE, NULL, NULL, "no colours", false},
    {0},
};

#define FOUND_MAX 6

/* Indexes of the failures that what was typed means, best first. */
static unsigned find(const char *dir, const struct fr_library *lib, fr_sv what, uint16_t *ret)
{
    int exact = fr_library_find(lib, what);
    if (exact >= 0) {
        ret[0] = (uint16_t)exact;
        return 1;
    }
    unsigned n = fr_cli_recognise(dir, lib, what, ret, FOUND_MAX);
    if (n > 0) {
        return n;
    }
    struct fr_found found[FOUND_MAX];
    n = fr_library_search(lib, what, found, FOUND_MAX);
    for (unsigned i = 0; i < n; i++) {
        ret[i] = found[i].failure;
    }
    return n;
}

static int show(const struct fr_command *c, const struct fr_args *a, const struct fr_library *lib, const uint16_t *found,
                unsigned n)
{
    const char *format = fr_args_get(c, a, "format");
    const struct fr_failure *f = &lib->failures[found[0]];
    struct fr_page_options o = {.width = fr_terminal_width(), .brief = fr_args_get(c, a, "brief") != NULL,
                                .color = fr_color_wanted(fr_args_get(c, a, "no-color") != NULL)};
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    if (format != NULL && strcmp(format, "json") == 0) {
        return fr_catalogue_json(lib, found, n, true, &out, &err) == 0 ? fr_print(&out) : fr_fail_err(&err);
    }
    if (format != NULL && strcmp(format, "markdown") == 0) {
        fr_page_markdown(lib, f, &out);
        return fr_print(&out);
    }
    fr_page_text(lib, f, &o, &out);
    for (unsigned i = 1; i < n; i++) {
        fr_buf_printf(&out, "%s%s", i == 1 ? "\nIt may also be: " : ", ", lib->failures[found[i]].id);
    }
    fr_buf_addz(&out, n > 1 ? "\n" : "");
    return fr_print(&out);
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_library lib;
    uint16_t found[FOUND_MAX];
    FR_AUTO(fr_buf) what = FR_BUF_INIT(0);
    fr_cli_join(a->path, a->n, &what);
    int rc = fr_cli_library(fr_args_get(c, a, "failures"), &arena, &lib);
    if (rc == 0) {
        unsigned n = find(fr_args_get(c, a, "failures"), &lib, fr_buf_sv(&what), found);
        const char *near = n == 0 && a->n == 1 ? fr_cli_nearest_id(&lib, a->path[0]) : NULL;
        rc = n > 0          ? show(c, a, &lib, found, n)
             : near != NULL ? fr_fail(FR_EXIT_NOINPUT, "there is no failure '%s'; did you mean '%s'?", what.p, near)
                            : fr_fail(FR_EXIT_NOINPUT, "no failure is known for '%.200s'; 'faultrank list' shows all", what.p);
    }
    fr_arena_release(&arena);
    return rc;
}

static const struct fr_example examples[] = {
    {"faultrank explain cuda-oom", "The whole page: what it is, why, how to confirm, fix and prevent it."},
    {"faultrank explain --brief nccl-watchdog-timeout", "What to do, on one screen."},
    {"faultrank explain 'CUDA out of memory. Tried to allocate 2.00 GiB'", "By the text of an error."},
    {0},
};

const struct fr_command fr_command_explain = {
    .name = "explain", .operands = "ID|TEXT", .summary = "show the page of a failure, by id or error text",
    .about = "Shows what is known about a failure: what it is, why it happens, how to confirm, fix, check and prevent it. "
             "It is named by its id, as reports print it, or by the text of an error.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_WORD, .min = 1, .max = -1, .run = run,
};
