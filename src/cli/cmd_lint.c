/* SPDX-License-Identifier: Apache-2.0 */
/* lint: failure files against docs/failure-format.md. Complaints are what this command is for, so they go to standard output. */
#include "cli/cli.h"

#include "base/utf8.h"
#include "cli/library.h"
#include "faultrank/faultrank.h"
#include "failure/lint.h"
#include "failure/load.h"

#include <inttypes.h>

static const struct fr_option options[] = {
    {'q', "quiet", FR_ARG_NONE, NULL, NULL, "errors only, no warnings and no summary", false},
    {0},
};

struct lint {
    struct fr_buf out;
    bool quiet;
    const struct fr_library *own; /* NULL: all */
};

static void complain(void *ctx, enum fr_complaint level, const char *path, uint32_t line, const char *text)
{
    struct lint *l = ctx;
    if (level == FR_COMPLAINT_WARNING && l->quiet) {
        return;
    }
    fr_utf8_clean(&l->out, fr_sv_z(path), 0);
    if (line > 0) {
        fr_buf_printf(&l->out, ":%" PRIu32, line);
    }
    fr_buf_addz(&l->out, level == FR_COMPLAINT_ERROR ? ": error: " : ": warning: ");
    fr_utf8_clean(&l->out, fr_sv_z(text), 0);
    fr_buf_addc(&l->out, '\n');
}

static bool is_own(void *ctx, const struct fr_failure *f)
{
    const struct lint *l = ctx;
    return l->own == NULL || fr_library_find(l->own, fr_sv_z(f->id)) >= 0;
}

/* Runs a sample through the engine's own rules: 1 when the signal is among those that fire. */
static int fires(void *ctx, uint16_t signal, const char *sample)
{
    uint16_t hit[128];
    int n = fr_engine_match(ctx, sample, strlen(sample), hit, 128);
    for (int i = 0; i < n; i++) {
        if (hit[i] == signal) {
            return 1;
        }
    }
    return n < 0 ? n : 0;
}

static int lint(const char *dir, struct lint *l, struct fr_arena *arena)
{
    struct fr_complain c = {.fn = complain, .ctx = l};
    struct fr_library own = {0}, all = *fr_library_builtin();
    struct fr_err err = {0};
    uint32_t n = all.n_failures;
    if (dir != NULL) {
        if (fr_library_read(dir, dir, arena, &c, &own, &err) != 0 ||
            fr_library_merge(fr_library_builtin(), &own, arena, &all, &err) != 0) {
            return fr_fail_err(&err);
        }
        l->own = &own;
        n = own.n_failures;
    }
    struct fr_engine_options o = {.size = sizeof o, .failures_dir = dir};
    struct fr_engine *e = NULL; /* NULL when the files are too broken to compile: their samples stay unchecked */
    struct fr_lint_checks checks = {NULL, fires};
    checks.ctx = c.errors == 0 && fr_engine_new(&o, &e, NULL) == 0 ? e : NULL;
    int rc = fr_library_lint(&all, is_own, l, checks.ctx != NULL ? &checks : NULL, &c);
    fr_engine_free(&e);
    if (rc != 0) {
        return fr_fail(FR_EXIT_SOFTWARE, "out of memory");
    }
    if (!l->quiet) {
        fr_buf_printf(&l->out, "%" PRIu32 " failures, %" PRIu32 " errors, %" PRIu32 " warnings\n", n, c.errors, c.warnings);
    }
    rc = fr_print(&l->out);
    return rc != 0 ? rc : c.errors > 0 ? FR_EXIT_DATA : 0;
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    struct fr_arena arena = FR_ARENA_INIT(0);
    struct lint l = {.out = FR_BUF_INIT(0), .quiet = fr_args_get(c, a, "quiet") != NULL};
    int rc = lint(a->n > 0 ? a->path[0] : NULL, &l, &arena);
    fr_buf_release(&l.out);
    fr_arena_release(&arena);
    return rc;
}

static const struct fr_example examples[] = {
    {"faultrank lint my-failures/", "Your own failure files."},
    {"faultrank lint", "The built-in ones."},
    {0},
};

const struct fr_command fr_command_lint = {
    .name = "lint", .operands = "[DIR]", .summary = "check failure files",
    .about = "Checks failure files: missing sections, signals that cannot fire or hide behind others, unbounded patterns, "
             "dead references, copied text. Prints FILE:LINE: error|warning: what. Exits with 65 when there are errors.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_FOLDER, .min = 0, .max = 1, .run = run,
};
