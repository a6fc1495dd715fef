/* SPDX-License-Identifier: Apache-2.0 */
/* list: the failures this program knows. */
#include "cli/cli.h"

#include "base/vec.h"
#include "cli/library.h"
#include "report/catalogue.h"

static const char *const formats[] = {"text", "json", NULL};

static const struct fr_option options[] = {
    {'c', "category", FR_ARG_WORD, "NAME", NULL, "only this category", false},
    {'f', "format", FR_ARG_CHOICE, "FORMAT", formats, "how to write the list", false},
    {0, "failures", FR_ARG_FOLDER, "DIR", NULL, "also the failure files in DIR", false},
    {0, "ids", FR_ARG_NONE, NULL, NULL, "ids only, one a line", false},
    {0},
};

static int unknown_category(const struct fr_library *lib, const char *category)
{
    const char *names[64];
    unsigned n = 0;
    FR_AUTO(fr_buf) all = FR_BUF_INIT(0);
    for (uint32_t i = 0; i < lib->n_failures && n < sizeof names / sizeof *names; i++) {
        unsigned k = 0;
        while (k < n && strcmp(names[k], lib->failures[i].category) != 0) {
            k++;
        }
        if (k == n) {
            names[n++] = lib->failures[i].category;
            fr_buf_printf(&all, "%s%s", n > 1 ? ", " : "", lib->failures[i].category);
        }
    }
    const char *near = fr_nearest(category, names, n);
    return near != NULL
               ? fr_fail(FR_EXIT_USAGE, "there is no category '%s'; did you mean '%s'?", category, near)
               : fr_fail(FR_EXIT_USAGE, "there is no category '%s'; there are %s", category, all.p != NULL ? all.p : "none");
}

static void table(const struct fr_library *lib, const uint16_t *which, unsigned n, struct fr_buf *out)
{
    size_t widest = 0;
    for (unsigned i = 0; i < n; i++) {
        size_t w = strlen(lib->failures[which[i]].id);
        widest = w > widest ? w : widest;
    }
    /* One group per category, in the order of their first failure. */
    for (unsigned i = 0; i < n; i++) {
        const char *category = lib->failures[which[i]].category;
        bool seen = false;
        for (unsigned k = 0; k < i && !seen; k++) {
            seen = strcmp(lib->failures[which[k]].category, category) == 0;
        }
        if (seen) {
            continue;
        }
        fr_buf_printf(out, "%s%s\n", i > 0 ? "\n" : "", category);
        for (unsigned k = i; k < n; k++) {
            const struct fr_failure *f = &lib->failures[which[k]];
            if (strcmp(f->category, category) == 0) {
                fr_buf_printf(out, "  %-*s  %-8s  %s\n", (int)(widest < 48 ? widest : 48), f->id, f->severity, f->title);
            }
        }
    }
    fr_buf_printf(out, "\n%u failures. 'faultrank explain ID' shows a page.\n", n);
}

static int write_list(const struct fr_command *c, const struct fr_args *a, const struct fr_library *lib)
{
    const char *category = fr_args_get(c, a, "category"), *format = fr_args_get(c, a, "format");
    FR_VEC(uint16_t) which = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    struct fr_err err = {0};
    for (uint32_t i = 0; i < lib->n_failures; i++) {
        if (category == NULL || strcmp(lib->failures[i].category, category) == 0) {
            uint16_t *w = FR_PUSH(&which);
            if (w != NULL) {
                *w = (uint16_t)i;
            }
        }
    }
    int rc = 0;
    if (which.n == 0 && category != NULL) {
        rc = unknown_category(lib, category);
    } else if (format != NULL && strcmp(format, "json") == 0) {
        rc = fr_catalogue_json(lib, which.v, which.n, false, &out, &err) != 0 ? fr_fail_err(&err) : fr_print(&out);
    } else if (fr_args_get(c, a, "ids") != NULL) {
        for (uint32_t i = 0; i < which.n; i++) {
            fr_buf_printf(&out, "%s\n", lib->failures[which.v[i]].id);
        }
        rc = fr_print(&out);
    } else {
        table(lib, which.v, which.n, &out);
        rc = fr_print(&out);
    }
    fr_vec_free(which.v);
    return rc;
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct fr_library lib;
    int rc = fr_cli_library(fr_args_get(c, a, "failures"), &arena, &lib);
    if (rc == 0) {
        rc = write_list(c, a, &lib);
    }
    fr_arena_release(&arena);
    return rc;
}

static const struct fr_example examples[] = {
    {"faultrank list", "All failures, by category."},
    {"faultrank list --category memory", "One category."},
    {"faultrank list --format json", "For programs: ids, titles, severity, owner, action, tags."},
    {0},
};

const struct fr_command fr_command_list = {
    .name = "list", .operands = "", .summary = "list the failures faultrank knows",
    .about = "Lists the failures that faultrank recognises or concludes, by category, with severity and title.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_NONE, .min = 0, .max = 0, .run = run,
};
