/* SPDX-License-Identifier: Apache-2.0 */
/* smoke: the prevention smoke tests of numerics pages, with the sizes of the user's own model. */
#include "cli/cli.h"

#include "cli/model_config.h"
#include "failure/library.h"
#include "report/acts.h"

#include <math.h>

#define FR_X(field, option, value, min, max, whole, help)                                          \
    {0, option, FR_ARG_WORD, "N", NULL, help, false},
static const struct fr_option options[] = {
    {'c', "config", FR_ARG_FILE, "FILE,...", NULL,
     "take sizes and settings from config.json, DeepSpeed or TrainingArguments JSON, Megatron "
     "arguments",
     false},
    FR_SMOKE_SIZES(FR_X){0, "dtype", FR_ARG_WORD, "TYPE", NULL,
                         "fp16, bf16 or fp32: of weights and activations", false},
    {0, "policy", FR_ARG_WORD, "NAME", NULL,
     "how your code computes it; else as the model type is known to", false},
    {0, "set", FR_ARG_WORD, "NAME=X,...", NULL, "facts that no file says: --facts lists them",
     false},
    {0, "facts", FR_ARG_NONE, NULL, NULL, "list the facts that --set can say", false},
    {0, "json", FR_ARG_NONE, NULL, NULL, "write JSON (schema/repro.schema.json) instead of text",
     false},
    {0, "no-color", FR_ARG_NONE, NULL, NULL, "no colours", false},
    {0},
};
#undef FR_X

static int unknown(const char *word)
{
    const char *names[64];
    unsigned n = 0;
    FR_AUTO(fr_buf) all = FR_BUF_INIT(0);
    for (unsigned i = 0; i < fr_repros_count && n < sizeof names / sizeof *names; i++) {
        if (fr_repros[i]->smoke != NULL) {
            fr_buf_printf(&all, "%s%s", n > 0 ? ", " : "", fr_repros[i]->id);
            names[n++] = fr_repros[i]->id;
        }
    }
    const char *near = fr_nearest(word, names, n);
    if (near != NULL) {
        return fr_fail(FR_EXIT_USAGE, "'%s' has no smoke test; did you mean '%s'?", word, near);
    }
    return fr_fail(FR_EXIT_USAGE, "'%s' has no smoke test; there are %s", word, all.p);
}

static int take_policy(const struct fr_repro *p, const char *word, struct fr_smoke *s)
{
    FR_AUTO(fr_buf) all = FR_BUF_INIT(0);
    for (int i = 0; p->smoke_policies != NULL && p->smoke_policies[i] != NULL; i++) {
        if (strcmp(p->smoke_policies[i], word) == 0) {
            s->policy = i;
            return 0;
        }
        fr_buf_printf(&all, "%s%s", i > 0 ? ", " : "", p->smoke_policies[i]);
    }
    return fr_fail(FR_EXIT_USAGE, "--policy can be %s, not '%s'",
                   all.p != NULL ? all.p : "nothing here", word);
}

/* "a=1,b=2" */
static int take_set(const char *set, struct fr_smoke *s, struct fr_err *err)
{
    for (fr_sv rest = fr_sv_z(set), one, name, text; rest.n > 0;) {
        double v = 0;
        fr_sv_cut(rest, ',', &one, &rest);
        if (!fr_sv_cut(one, '=', &name, &text)) {
            return fr_err_set(err, FR_ARG, "--set takes NAME=X, not '%.*s'",
                              (int)(one.n < 60 ? one.n : 60), one.p);
        }
        fr_sv left = text;
        if (!fr_sv_take_double(&left, &v) || left.n != 0 || !isfinite(v)) {
            return fr_err_set(err, FR_ARG, "--set %.*s is not followed by a number",
                              (int)(name.n < 40 ? name.n : 40), name.p);
        }
        const int rc = fr_smoke_set(s, name, v, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int list_facts(void)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
#define FR_X(field, name, min, max, whole, help)                                                   \
    fr_buf_printf(&out, "%-14s %s (%g to %g)\n", name, help, (double)(min), (double)(max));
    FR_SMOKE_FACTS(FR_X)
#undef FR_X
    return fr_print(&out);
}

/* The files first, then the options, which override it. */
static int take(const struct fr_command *c, const struct fr_args *a, const struct fr_repro *p,
                struct fr_smoke *s)
{
    static const char *const names[] = {
#define FR_X(field, option, ...) option,
        FR_SMOKE_SIZES(FR_X)
#undef FR_X
    };
    const char *config = fr_args_get(c, a, "config"), *dtype = fr_args_get(c, a, "dtype"),
               *policy = fr_args_get(c, a, "policy"), *set = fr_args_get(c, a, "set");
    struct fr_err err = {0};
    fr_smoke_defaults(s);
    if (config != NULL && fr_model_config(config, s, &err) != 0) {
        return fr_fail_err(&err);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = fr_args_get(c, a, names[i]);
        fr_sv rest = fr_sv_z(text);
        double v = 0;
        if (text == NULL) {
            continue;
        }
        if (!fr_sv_take_double(&rest, &v) || rest.n != 0 || !isfinite(v)) {
            return fr_fail(FR_EXIT_USAGE, "'--%s %s' is not a number", names[i], text);
        }
        if (fr_smoke_set(s, fr_sv_z(names[i]), v, &err) != 0) {
            return fr_fail_err(&err);
        }
    }
    if (dtype != NULL && !fr_model_dtype(dtype, s)) {
        return fr_fail(FR_EXIT_USAGE, "'--dtype %s' is unknown; it is one of fp16, bf16, fp32",
                       dtype);
    }
    if (set != NULL && take_set(set, s, &err) != 0) {
        return fr_fail_err(&err);
    }
    return policy != NULL ? take_policy(p, policy, s) : 0;
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    const struct fr_repro *p = fr_repro_find(fr_sv_z(a->path[0]));
    struct fr_smoke s;
    struct fr_result result;
    struct fr_err err = {0};
    if (fr_args_get(c, a, "facts") != NULL) {
        return list_facts();
    }
    if (p == NULL || p->smoke == NULL) {
        return unknown(a->path[0]);
    }
    int rc = take(c, a, p, &s);
    if (rc != 0) {
        return rc;
    }
    fr_result_init(&result);
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    const struct fr_library *lib = fr_library_builtin();
    const int i = fr_library_find(lib, fr_sv_z(p->id));
    const struct fr_acts acts = {p, NULL, &result, i >= 0 ? lib->failures[i].title : p->summary};
    const struct fr_acts_options o = {fr_terminal_width(),
                                      fr_color_wanted(fr_args_get(c, a, "no-color") != NULL)};
    if (fr_smoke_run(p, &s, &result, &err) != 0) {
        rc = fr_fail_err(&err);
    } else if (fr_args_get(c, a, "json") == NULL) {
        fr_acts_claims(&acts, &o, &out);
        rc = fr_print(&out);
    } else {
        rc = fr_acts_json(&acts, &out, &err) == 0 ? fr_print(&out) : fr_fail_err(&err);
    }
    rc = rc != 0 ? rc : fr_smoke_exit(&result);
    fr_result_release(&result);
    return rc;
}

static const struct fr_example examples[] = {
    {"faultrank smoke rmsnorm-fp16-variance-overflow --config llama/config.json",
     "The norm of this model, in its dtype."},
    {"faultrank smoke rmsnorm-fp16-variance-overflow --hidden 8192 --scale 120", "By hand."},
    {"faultrank smoke attention-scores-fp16-overflow --hidden 4096 --heads 32 --policy fused",
     "With a fused attention."},
    {"faultrank smoke adamw-eps-fp16 --policy fp32 --set adam-eps=1e-8,beta1=0.9,beta2=0.999",
     "A setting that no file says."},
    {0},
};

const struct fr_command fr_command_smoke = {
    .name = "smoke",
    .operands = "ID",
    .summary = "the prevention test of a numeric failure, with your model's sizes",
    .about = "Runs the prevention smoke test of a numerics page with the sizes of your own model: "
             "rows and scores as large as yours go "
             "through the arithmetic that your code is known, or said, to use.\n"
             "A fact that no file and no option says is never guessed: its line is undecided and "
             "names the option that says it.\n"
             "Exits with 0 when every line passes, 1 when one fails, 2 when none fails but one is "
             "undecided.",
    .options = options,
    .examples = examples,
    .operand_kind = FR_ARG_WORD,
    .min = 1,
    .max = 1,
    .run = run,
};
