/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose: logs in, report out. */
#include "cli/cli.h"

#include "cli/progress.h"
#include "faultrank/faultrank.h"
#include "report/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 4,096 ranks with a quoted line each need about 3 MB; beyond this something is wrong. */
#define REPORT_MAX ((size_t)256 << 20)

static const char *const formats[] = {
#define X(name) #name,
#include "report/writers.def"
#undef X
    NULL,
};
static const char *const views[] = {"engineer", "oncall", "executive", NULL};
static const char *const engines[] = {"auto", "portable", "avx2", "avx512", NULL};

static const struct fr_option options[] = {
    {'f', "format", FR_ARG_CHOICE, "FORMAT", formats, "how to write the report", false},
    {0, "view", FR_ARG_CHOICE, "VIEW", views, "who reads it", false},
    {'w', "why", FR_ARG_NONE, NULL, NULL, "also show the ranking, the evidence for and against, and what was ruled out", false},
    {'o', "output", FR_ARG_FILE, "FILE", NULL, "write to FILE (whole or not at all) instead of standard output", false},
    {0, "failures", FR_ARG_FOLDER, "DIR", NULL, "also know the failure files in DIR; equal ids replace built-in ones", false},
    {'e', "exit-code", FR_ARG_NONE, NULL, NULL, "exit with 0 healthy, 1 failure, 2 cannot tell", false},
    {'j', "threads", FR_ARG_NUMBER, "N", NULL, "threads to read with; 0, the default, is one per core", false},
    {0, "timings", FR_ARG_NONE, NULL, NULL, "say how long it took; the output then differs from run to run", false},
    {'q', "quiet", FR_ARG_NONE, NULL, NULL, "no progress on standard error", false},
    {0, "no-color", FR_ARG_NONE, NULL, NULL, "no colours; also when NO_COLOR is set or the output is not a terminal", false},
    {0, "engine", FR_ARG_CHOICE, "ENGINE", engines, "how to scan", true},
    {0},
};

static unsigned choice(const char *const *choices, const char *value)
{
    for (unsigned i = 0; value != NULL && choices[i] != NULL; i++) {
        if (strcmp(choices[i], value) == 0) {
            return i;
        }
    }
    return 0;
}

/* Compiling a user's failure files takes a moment; the result may be kept where caches belong. */
static const char *cache_dir(struct fr_buf *b)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg != NULL && xdg[0] == '/') {
        fr_buf_printf(b, "%s/faultrank", xdg);
    } else if (home != NULL && home[0] == '/') {
        fr_buf_printf(b, "%s/.cache/faultrank", home);
    }
    return fr_buf_ok(b) ? b->p : NULL;
}

static int write_report(const struct fr_command *c, const struct fr_args *a, const struct fr_report *r)
{
    const char *format = fr_args_get(c, a, "format"), *file = fr_args_get(c, a, "output");
    const struct fr_writer *w = fr_writer_find(fr_sv_z(format != NULL ? format : "text"));
    struct fr_write_options o = {
        .view = (uint8_t)choice(views, fr_args_get(c, a, "view")),
        .color = file == NULL && fr_color_wanted(fr_args_get(c, a, "no-color") != NULL),
        .why = fr_args_get(c, a, "why") != NULL,
        .width = file == NULL ? fr_terminal_width() : 100,
        .timings = fr_args_get(c, a, "timings") != NULL,
    };
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(REPORT_MAX);
    if (w->write(r, &o, &out, &err) != 0) {
        return fr_fail_err(&err);
    }
    return file != NULL ? fr_save(file, &out) : fr_print(&out);
}

static int diagnose(const struct fr_command *c, const struct fr_args *a, struct fr_engine *e)
{
    struct fr_err err = {0};
    for (int i = 0; i < a->n; i++) {
        if (strcmp(a->path[i], "-") == 0 && isatty(STDIN_FILENO) && fr_args_get(c, a, "quiet") == NULL) {
            fr_fail(0, "reading standard input; Ctrl-D ends it");
        }
        if (fr_engine_add(e, a->path[i], &err) != 0) {
            return fr_fail_err(&err);
        }
    }
    int rc = fr_engine_run(e, &err);
    fr_progress_end();
    if (rc != 0) {
        return fr_fail_err(&err);
    }
    const struct fr_report *r = fr_engine_report(e);
    rc = write_report(c, a, r);
    if (rc != 0 || fr_args_get(c, a, "exit-code") == NULL) {
        return rc;
    }
    return r->verdict == FR_VERDICT_HEALTHY ? 0 : r->verdict == FR_VERDICT_FAILURE ? 1 : 2;
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    const char *failures = fr_args_get(c, a, "failures"), *threads = fr_args_get(c, a, "threads");
    FR_AUTO(fr_buf) cache = FR_BUF_INIT(4096);
    bool progress = fr_args_get(c, a, "quiet") == NULL && isatty(STDERR_FILENO);
    struct fr_engine_options o = {
        .size = sizeof o,
        .threads = threads != NULL ? (uint32_t)strtoul(threads, NULL, 10) : 0,
        .failures_dir = failures,
        .cache_dir = failures != NULL ? cache_dir(&cache) : NULL,
        .engine = choice(engines, fr_args_get(c, a, "engine")),
        .progress = progress ? fr_progress : NULL,
    };
    struct fr_engine *e = NULL;
    struct fr_err err = {0};
    if (fr_engine_new(&o, &e, &err) != 0) {
        return fr_fail_err(&err);
    }
    int rc = diagnose(c, a, e);
    fr_engine_free(&e);
    return rc;
}

static const struct fr_example examples[] = {
    {"faultrank diagnose runs/42/", "A folder with the logs of one run, one file per rank or any other way."},
    {"faultrank diagnose slurm-8123.out", "One log."},
    {"faultrank diagnose --view oncall runs/42/", "What to type now."},
    {"faultrank diagnose --why runs/42/", "Why this rank and not another."},
    {"zcat console.log.gz | faultrank diagnose -", "Standard input; compressed files can also be named directly."},
    {"faultrank diagnose --format html --output report.html runs/42/", "One self-contained page with a picture of the run."},
    {"faultrank diagnose --exit-code --format github runs/42/", "In CI: annotations, and exit status 1 when the run failed."},
    {0},
};

const struct fr_command fr_command_diagnose = {
    .name = "diagnose", .operands = "PATH...|-", .summary = "say which rank failed first, why, and what to do",
    .about = "Reads files, folders (one folder is one run), globs, archives and, for '-', standard input, and writes a report: "
             "which rank failed first, the line where it began, why the others are only victims, what to do, how to check it.\n"
             "Exits with 0 when it produced a report, 66 when nothing could be read.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_FILE, .min = 1, .max = -1, .run = run,
};
