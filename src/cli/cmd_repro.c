/* SPDX-License-Identifier: Apache-2.0 */
/* repro: the executable reproductions. They are played here; what they show is src/report/acts*.c. */
#include "cli/cli.h"

#include "cli/stage.h"
#include "failure/library.h"
#include "report/acts.h"
#include "report/wrap.h"

#include <stdio.h>

static const struct fr_option options[] = {
    {0, "hidden", FR_ARG_WORD, "N", NULL, "elements of a row: the hidden size", false},
    {0, "scale", FR_ARG_WORD, "X", NULL, "how large the numbers are that make it fail", false},
    {0, "policy", FR_ARG_WORD, "NAME", NULL,
     "where arithmetic rounds: the expression, kernel or dtype to imitate", false},
    {0, "loss-scale", FR_ARG_WORD, "X", NULL, "factor on the loss in backward", false},
    {0, "seed", FR_ARG_WORD, "N", NULL, "seed of the random numbers", false},
    {0, "set", FR_ARG_WORD, "NAME=X,...", NULL, "parameters that only some reproductions have",
     false},
    {0, "params", FR_ARG_NONE, NULL, NULL,
     "list the reproduction's parameters instead of running it", false},
    {0, "svg", FR_ARG_FILE, "FILE", NULL, "also draw it into FILE", false},
    {0, "json", FR_ARG_NONE, NULL, NULL, "write JSON (schema/repro.schema.json) instead of text",
     false},
    {0, "folder", FR_ARG_FOLDER, "DIR", NULL,
     "where reproductions with processes leave their logs; else they are removed", false},
    {0, "no-color", FR_ARG_NONE, NULL, NULL, "no colours", false},
    {0},
};

static const char *title_of(const struct fr_repro *p)
{
    const struct fr_library *lib = fr_library_builtin();
    const int i = fr_library_find(lib, fr_sv_z(p->id));
    return i >= 0 ? lib->failures[i].title : p->summary;
}

static int unknown(const char *word)
{
    const char *names[64];
    unsigned n = 0;
    for (; n < fr_repros_count && n < sizeof names / sizeof *names; n++) {
        names[n] = fr_repros[n]->id;
    }
    const char *near = fr_nearest(word, names, n);
    if (near != NULL) {
        return fr_fail(FR_EXIT_USAGE, "there is no reproduction '%s'; did you mean '%s'?", word,
                       near);
    }
    if (fr_library_find(fr_library_builtin(), fr_sv_z(word)) >= 0) {
        return fr_fail(FR_EXIT_USAGE,
                       "'%s' has no reproduction; 'faultrank repro' lists those there are", word);
    }
    return fr_fail(FR_EXIT_USAGE, "there is no reproduction '%s'; 'faultrank repro' lists them",
                   word);
}

static int list(void)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    for (unsigned i = 0; i < fr_repros_count; i++) {
        fr_buf_printf(&out, "%-32s  %s\n", fr_repros[i]->id, fr_repros[i]->summary);
    }
    fr_buf_printf(
        &out,
        "\n%u reproductions. 'faultrank repro ID' runs one, 'faultrank repro all' every one.\n",
        fr_repros_count);
    return fr_print(&out);
}

static int list_params(const struct fr_repro *p)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    for (const struct fr_repro_param *q = p->params; q->name != NULL; q++) {
        char shown[32], lead[80];
        fr_repro_show(q, q->value, shown);
        snprintf(lead, sizeof lead, "%-12s %-14s ", q->name, shown);
        FR_AUTO(fr_buf) text = FR_BUF_INIT(0);
        fr_buf_addz(&text, q->help);
        if (q->choices == NULL) {
            fr_buf_printf(&text, " (%g to %g)", q->min, q->max);
        }
        for (unsigned i = 0; q->choices != NULL && q->choices[i] != NULL; i++) {
            fr_buf_printf(&text, "%s%s", i == 0 ? ": " : ", ", q->choices[i]);
        }
        fr_wrap(&out, fr_buf_sv(&text), lead, "                            ", fr_terminal_width());
    }
    return fr_print(&out);
}

/* "a=1,b=2" */
static int take_set(const struct fr_repro *p, const char *set, struct fr_repro_values *values,
                    struct fr_err *err)
{
    for (fr_sv rest = fr_sv_z(set), one, name, text; rest.n > 0;) {
        fr_sv_cut(rest, ',', &one, &rest);
        if (!fr_sv_cut(one, '=', &name, &text)) {
            return fr_err_set(err, FR_ARG, "--set takes NAME=VALUE, not '%.*s'",
                              (int)(one.n < 60 ? one.n : 60), one.p);
        }
        const int rc = fr_repro_set(p, values, name, text, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int take_params(const struct fr_command *c, const struct fr_args *a,
                       const struct fr_repro *p, struct fr_repro_values *values, struct fr_err *err)
{
    static const char *const common[] = {"hidden", "scale", "policy", "loss-scale", "seed"};
    const char *set = fr_args_get(c, a, "set");
    fr_repro_defaults(p, values);
    for (unsigned i = 0; i < sizeof common / sizeof *common; i++) {
        const char *text = fr_args_get(c, a, common[i]);
        const int rc =
            text != NULL ? fr_repro_set(p, values, fr_sv_z(common[i]), fr_sv_z(text), err) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    return set != NULL ? take_set(p, set, values, err) : 0;
}

static int show(const struct fr_command *c, const struct fr_args *a, const struct fr_acts *acts)
{
    const char *svg = fr_args_get(c, a, "svg");
    const struct fr_acts_options o = {fr_terminal_width(),
                                      fr_color_wanted(fr_args_get(c, a, "no-color") != NULL)};
    struct fr_err err = {0};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) picture = FR_BUF_INIT(0);
    if (svg != NULL) {
        fr_acts_svg(acts, &picture);
        const int rc = fr_save(svg, &picture);
        if (rc != 0) {
            return rc;
        }
    }
    if (fr_args_get(c, a, "json") == NULL) {
        fr_acts_text(acts, &o, &out);
    } else if (fr_acts_json(acts, &out, &err) != 0) {
        return fr_fail_err(&err);
    }
    const int rc = fr_print(&out);
    return rc != 0 ? rc : fr_result_as_claimed(acts->result) ? 0 : 1;
}

static int play(const struct fr_command *c, const struct fr_args *a, const struct fr_repro *p)
{
    struct fr_repro_values values;
    struct fr_result result;
    struct fr_stage stage;
    struct fr_err err = {0};
    if (take_params(c, a, p, &values, &err) != 0) {
        return fr_fail_err(&err);
    }
    int rc = fr_stage_open(&stage, p, fr_args_get(c, a, "folder"));
    if (rc != 0) {
        return rc;
    }
    fr_result_init(&result);
    rc = fr_repro_run(p, &values, &stage.env, &result, &err);
    fr_stage_close(&stage); /* before anything is printed: a closed pipe ends us there */
    if (rc != 0) {
        rc = fr_fail_err(&err);
    } else {
        rc = show(c, a, &(struct fr_acts){p, &values, &result, title_of(p)});
    }
    fr_result_release(&result);
    return rc;
}

/* Every reproduction with its defaults, one line each. */
static int play_all(void)
{
    int worst = 0;
    for (unsigned i = 0; i < fr_repros_count; i++) {
        const struct fr_repro *p = fr_repros[i];
        struct fr_repro_values values;
        struct fr_result result;
        struct fr_stage stage;
        struct fr_err err = {0};
        FR_AUTO(fr_buf) line = FR_BUF_INIT(0);
        fr_repro_defaults(p, &values);
        fr_result_init(&result);
        int rc = fr_stage_open(&stage, p, NULL);
        if (rc == 0) {
            rc = fr_repro_run(p, &values, &stage.env, &result, &err);
            fr_stage_close(&stage);
            rc = rc != 0 ? fr_fail_err(&err) : 0;
        }
        if (rc == 0) {
            fr_buf_printf(&line, "%-8s %-32s %2u of %2u claims hold\n",
                          fr_result_as_claimed(&result) ? "ok" : "NOT OK", p->id, result.held,
                          result.claims);
            rc = fr_print(&line);
        }
        worst = rc != 0 ? rc : !fr_result_as_claimed(&result) && worst == 0 ? 1 : worst;
        fr_result_release(&result);
    }
    return worst;
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    if (a->n == 0) {
        return list();
    }
    if (strcmp(a->path[0], "all") == 0) {
        return play_all();
    }
    const struct fr_repro *p = fr_repro_find(fr_sv_z(a->path[0]));
    if (p == NULL) {
        return unknown(a->path[0]);
    }
    return fr_args_get(c, a, "params") != NULL ? list_params(p) : play(c, a, p);
}

static const struct fr_example examples[] = {
    {"faultrank repro", "The reproductions there are."},
    {"faultrank repro rmsnorm-fp16-variance-overflow",
     "It fails, why, and the fix: the same run, healthy."},
    {"faultrank repro rmsnorm-fp16-variance-overflow --svg norm.svg", "With a picture."},
    {"faultrank repro attention-scores-fp16-overflow --json", "For programs."},
    {"faultrank repro all",
     "Every one; exit status 1 when one does not behave as its page claims."},
    {0},
};

const struct fr_command fr_command_repro = {
    .name = "repro",
    .operands = "[ID|all]",
    .summary = "reproduce a numeric failure: it fails, why, and the fix",
    .about =
        "Runs the reproduction of a failure in three acts: it fails; why, step by step, with the "
        "first operation whose output is "
        "Inf, NaN or a row of zeros; the fix, and the same run healthy. Everything is computed on "
        "the spot, with the rounding "
        "of half precision emulated; no GPU is needed. Without ID it lists the reproductions.\n"
        "Exits with 0 when everything behaved as the failure's page claims, 1 when not; with your "
        "own numbers, 1 says that they do not fail that way.",
    .options = options,
    .examples = examples,
    .operand_kind = FR_ARG_WORD,
    .min = 0,
    .max = 1,
    .run = run,
};
