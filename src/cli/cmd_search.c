/* SPDX-License-Identifier: Apache-2.0 */
/* search: words to failures. */
#include "cli/cli.h"

#include "cli/library.h"
#include "failure/search.h"
#include "report/catalogue.h"

static const char *const formats[] = {"text", "json", NULL};

static const struct fr_option options[] = {
    {'f', "format", FR_ARG_CHOICE, "FORMAT", formats, "how to write the result", false},
    {0, "failures", FR_ARG_FOLDER, "DIR", NULL, "also search the failure files in DIR", false},
    {0},
};

#define SHOWN_MAX 25

static int write_found(const struct fr_command *c, const struct fr_args *a, const struct fr_library *lib, fr_sv what)
{
    const char *format = fr_args_get(c, a, "format");
    struct fr_found found[SHOWN_MAX];
    uint16_t which[SHOWN_MAX];
    unsigned n = fr_library_search(lib, what, found, SHOWN_MAX);
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    for (unsigned i = 0; i < n; i++) {
        which[i] = found[i].failure;
    }
    if (format != NULL && strcmp(format, "json") == 0) {
        return fr_catalogue_json(lib, which, n, false, &out, &err) == 0 ? fr_print(&out) : fr_fail_err(&err);
    }
    if (n == 0) {
        return fr_fail(FR_EXIT_NOINPUT, "no failure holds all of these words; try fewer, or 'faultrank list'");
    }
    for (unsigned i = 0; i < n; i++) {
        fr_buf_printf(&out, "%-40s  %s\n", lib->failures[which[i]].id, lib->failures[which[i]].title);
    }
    return fr_print(&out);
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_library lib;
    FR_AUTO(fr_buf) what = FR_BUF_INIT(0);
    fr_cli_join(a->path, a->n, &what);
    int rc = fr_cli_library(fr_args_get(c, a, "failures"), &arena, &lib);
    if (rc == 0) {
        rc = write_found(c, a, &lib, fr_buf_sv(&what));
    }
    fr_arena_release(&arena);
    return rc;
}

static const struct fr_example examples[] = {
    {"faultrank search out of memory", "Failures whose page holds all three words, best first."},
    {"faultrank search --format json nccl timeout", "The same for programs."},
    {0},
};

const struct fr_command fr_command_search = {
    .name = "search", .operands = "WORD...", .summary = "find failures by words",
    .about = "Finds failures whose page holds all the words; ids and titles weigh more than the text.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_NONE, .min = 1, .max = -1, .run = run,
};
