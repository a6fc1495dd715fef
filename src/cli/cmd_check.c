/* SPDX-License-Identifier: Apache-2.0 */
/* check: a checkpoint in, a verdict out: for promotion gates, and for the morning after a crash. */
#include "cli/cli.h"

#include "cli/progress.h"
#include "report/check_writer.h"
#include "tensor/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPORT_MAX ((size_t)512 << 20) /* a million tensors in JSON */

static const char *const formats[] = {
#define X(name) #name,
#include "report/check_writers.def"
#undef X
    NULL,
};

static const struct fr_option options[] = {
    {'f', "format", FR_ARG_CHOICE, "FORMAT", formats, "how to write the report", false},
    {'c', "compare", FR_ARG_FILE, "PATH", NULL,
     "also compare with another checkpoint: an earlier step, or a replica of this one", false},
    {0, "replicas", FR_ARG_NONE, NULL, NULL,
     "the paths are replicas that should be equal: compare each with the first", false},
    {0, "config", FR_ARG_FILE, "FILE,...", NULL,
     "settings: config.json (else the one beside the tensors), DeepSpeed or TrainingArguments "
     "JSON, Megatron arguments",
     false},
    {0, "step", FR_ARG_WORD, "N", NULL,
     "check this step of a folder of steps instead of the newest", false},
    {0, "max-abs", FR_ARG_WORD, "X", NULL, "do not promote when a weight is larger than X", false},
    {0, "allow-nan", FR_ARG_WORD, "PATTERN,...", NULL,
     "permit NaN and Inf in tensors whose names match", false},
    {0, "manifest", FR_ARG_FILE, "FILE", NULL, "hold the files against the manifest in FILE",
     false},
    {0, "write-manifest", FR_ARG_FILE, "FILE", NULL,
     "after the check, write a manifest to FILE: sizes and SHA-256 of the files and their tensors",
     false},
    {0, "crc", FR_ARG_NONE, NULL, NULL,
     "compare the checksums of all members of PyTorch and NumPy zips; without it, where they are "
     "over 64 MiB, only of those up to 64 KiB",
     false},
    {'a', "all", FR_ARG_NONE, NULL, NULL,
     "list all findings and tensors (text; the other formats always do)", false},
    {'o', "output", FR_ARG_FILE, "FILE", NULL,
     "write to FILE (whole or not at all) instead of standard output", false},
    {'j', "threads", FR_ARG_NUMBER, "N", NULL,
     "threads to read with; 0, the default, is one per core", false},
    {'q', "quiet", FR_ARG_NONE, NULL, NULL, "no progress on standard error", false},
    {0, "no-color", FR_ARG_NONE, NULL, NULL,
     "no colours; also when NO_COLOR is set or the output is not a terminal", false},
    {0},
};

/* -1: something else than a number was given, which is said. */
static double number(const char *name, const char *value)
{
    fr_sv s = fr_sv_z(value);
    double d;
    if (!fr_sv_take_double(&s, &d) || s.n > 0 || !isfinite(d) || d < 0) {
        fr_fail(FR_EXIT_USAGE, "'--%s %s' is not a number", name, value);
        return -1;
    }
    return d;
}

static int write_report(const struct fr_command *c, const struct fr_args *a,
                        const struct fr_check *r)
{
    const char *format = fr_args_get(c, a, "format"), *file = fr_args_get(c, a, "output");
    const struct fr_check_writer *w =
        fr_check_writer_find(fr_sv_z(format != NULL ? format : "text"));
    const struct fr_check_write_options o = {
        .color = file == NULL && fr_color_wanted(fr_args_get(c, a, "no-color") != NULL),
        .all = fr_args_get(c, a, "all") != NULL,
        .width = file == NULL ? fr_terminal_width() : 100,
    };
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(REPORT_MAX);
    if (w->write(r, &o, &out, &err) != 0) {
        return fr_fail_err(&err);
    }
    return file != NULL ? fr_save(file, &out) : fr_print(&out);
}

static int write_manifest(const struct fr_args *a, const char *file)
{
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(REPORT_MAX);
    if (fr_check_manifest((const char *const *)a->path, (uint32_t)a->n, file, &out, &err) != 0) {
        return fr_fail_err(&err);
    }
    return fr_save(file, &out);
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    const char *threads = fr_args_get(c, a, "threads"), *most = fr_args_get(c, a, "max-abs"),
               *step = fr_args_get(c, a, "step"), *manifest = fr_args_get(c, a, "write-manifest");
    const bool progress = fr_args_get(c, a, "quiet") == NULL && isatty(STDERR_FILENO);
    struct fr_check_options o = {
        .compare = fr_args_get(c, a, "compare"),
        .replicas = fr_args_get(c, a, "replicas") != NULL,
        .config = fr_args_get(c, a, "config"),
        .allow_nan = fr_args_get(c, a, "allow-nan"),
        .manifest = fr_args_get(c, a, "manifest"),
        .crc = fr_args_get(c, a, "crc") != NULL,
        .step = -1,
        .threads = threads != NULL ? (unsigned)strtoul(threads, NULL, 10) : 0,
        .progress = progress ? fr_progress : NULL,
    };
    if (a->n == 0 && o.config != NULL) {
        return fr_fail(FR_EXIT_USAGE,
                       "'check' needs the checkpoint, too: 'faultrank check --config %s PATH...'; "
                       "the config.json in its folder is found without --config",
                       o.config);
    }
    if (a->n == 0) {
        return fr_fail(FR_EXIT_USAGE,
                       "'check' needs PATH...: 'faultrank check --help' shows how");
    }
    if (o.replicas && a->n < 2) {
        return fr_fail(FR_EXIT_USAGE, "'--replicas' needs two paths or more");
    }
    const double max_abs = most != NULL ? number("max-abs", most) : 0,
                 at = step != NULL ? number("step", step) : -2;
    if (max_abs < 0 || at == -1) {
        return FR_EXIT_USAGE;
    }
    o.max_abs = max_abs;
    o.step = step != NULL ? (int64_t)at : -1;
    struct fr_check r;
    struct fr_err err = {0};
    int rc = fr_check_paths((const char *const *)a->path, (uint32_t)a->n, &o, &r, &err);
    fr_progress_end();
    if (rc != 0) {
        return fr_fail_err(&err);
    }
    const uint8_t verdict = r.verdict;
    rc = write_report(c, a, &r);
    fr_check_release(&r);
    rc = rc == 0 && manifest != NULL ? write_manifest(a, manifest) : rc;
    return rc != 0 ? rc : verdict == FR_CHECK_PROMOTE ? 0 : verdict == FR_CHECK_DO_NOT ? 1 : 2;
}

static const struct fr_example examples[] = {
    {"faultrank check model/", "Safe to promote? Exit status 0 promote, 1 do not, 2 cannot tell."},
    {"faultrank check --max-abs 1000 --allow-nan 'rope.*' model/", "With a policy of your own."},
    {"faultrank check --compare runs/steps/step-100 runs/steps/step-200",
     "What training changed between two steps."},
    {"faultrank check --step 100 runs/steps",
     "One step of a folder of steps; without --step, the newest, and the last good one."},
    {"faultrank check --write-manifest manifest.json model/",
     "Keep the hashes of the files; --manifest holds them against it later."},
    {"faultrank check --format html --output check.html model/", "One self-contained page."},
    {0},
};

const struct fr_command fr_command_check = {
    .name = "check",
    .operands = "PATH...",
    .summary = "say whether a checkpoint is safe to promote",
    .about = "Reads safetensors, PyTorch, NumPy, distributed and sharded checkpoints, files or "
             "folders, without running anything in them. Looks for damage, missing "
             "parts, NaN and Inf, rows of zeros, layers out of line, and, with config.json beside "
             "them, for what would overflow in fp16.\n"
             "Exits with 0 promote, 1 do not, 2 cannot tell; 65 when nothing there is a "
             "checkpoint, 66 when nothing is there.",
    .options = options,
    .examples = examples,
    .operand_kind = FR_ARG_FILE,
    .min = 0, /* run() says what is missing */
    .max = -1,
    .run = run,
};
