/* SPDX-License-Identifier: Apache-2.0 */
/* args: the command line against a command's option table. getopt_long is not used, because it can neither suggest nor name
 * the command that an option belongs to. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

/* Optimal string alignment distance, at most 32 characters: enough for a typing error in an option. */
static unsigned distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned d[33][33];
    if (n > 32 || m > 32) {
        return 99;
    }
    for (size_t i = 0; i <= n; i++) {
        d[i][0] = (unsigned)i;
    }
    for (size_t j = 0; j <= m; j++) {
        d[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            unsigned v = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            v = d[i - 1][j] + 1 < v ? d[i - 1][j] + 1 : v;
            v = d[i][j - 1] + 1 < v ? d[i][j - 1] + 1 : v;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < v) {
                v = d[i - 2][j - 2] + 1;
            }
            d[i][j] = v;
        }
    }
    return d[n][m];
}

const char *fr_nearest(const char *word, const char *const *names, unsigned n)
{
    const char *best = NULL;
    unsigned least = 99;
    for (unsigned i = 0; i < n; i++) {
        size_t longer = strlen(word) > strlen(names[i]) ? strlen(word) : strlen(names[i]);
        unsigned d = distance(word, names[i]);
        if (strlen(word) >= 3 && strncmp(word, names[i], strlen(word)) == 0) {
            d = 0; /* the beginning of a name */
        }
        if (d < least && d <= 1 + longer / 4) {
            least = d;
            best = names[i];
        }
    }
    return best;
}

static int unknown_option(const struct fr_command *c, const char *shown, const char *name)
{
    const char *names[FR_OPTIONS_MAX + 1] = {"help"};
    unsigned n = 1;
    for (const struct fr_option *o = c->options; o->name != NULL && n < FR_OPTIONS_MAX; o++) {
        if (!o->hidden) {
            names[n++] = o->name;
        }
    }
    const char *near = strlen(name) > 1 ? fr_nearest(name, names, n) : NULL;
    if (near != NULL) {
        return fr_fail(FR_EXIT_USAGE, "'%s' has no option '%s'; did you mean '--%s'?", c->name, shown, near);
    }
    return fr_fail(FR_EXIT_USAGE, "'%s' has no option '%s'; 'faultrank %s --help' lists them", c->name, shown, c->name);
}

static int check_value(const struct fr_command *c, const struct fr_option *o, const char *value)
{
    if (o->kind == FR_ARG_NUMBER) {
        fr_sv s = fr_sv_z(value);
        uint64_t n;
        if (!fr_sv_take_u64(&s, &n) || s.n > 0 || n > 65535) {
            return fr_fail(FR_EXIT_USAGE, "'--%s %s' is not a number from 0 to 65535", o->name, value);
        }
    }
    if (o->kind != FR_ARG_CHOICE) {
        return 0;
    }
    FR_AUTO(fr_buf) all = FR_BUF_INIT(0);
    unsigned n = 0;
    for (; o->choices[n] != NULL; n++) {
        if (strcmp(o->choices[n], value) == 0) {
            return 0;
        }
        fr_buf_printf(&all, "%s%s", n > 0 ? ", " : "", o->choices[n]);
    }
    const char *near = fr_nearest(value, o->choices, n);
    if (near != NULL) {
        return fr_fail(FR_EXIT_USAGE, "'--%s %s' is unknown; did you mean '%s'?", o->name, value, near);
    }
    (void)c;
    return fr_fail(FR_EXIT_USAGE, "'--%s %s' is unknown; it is one of %s", o->name, value, all.p);
}

/* One option at argv[*i]; word is what follows its dashes. */
static int take_long(const struct fr_command *c, int argc, char **argv, int *i, struct fr_args *a)
{
    fr_sv name, value;
    bool joined = fr_sv_cut(fr_sv_z(argv[*i] + 2), '=', &name, &value);
    for (unsigned k = 0; c->options[k].name != NULL; k++) {
        const struct fr_option *o = &c->options[k];
        if (!fr_sv_eq(name, fr_sv_z(o->name))) {
            continue;
        }
        if (o->kind == FR_ARG_NONE) {
            a->value[k] = "";
            return joined ? fr_fail(FR_EXIT_USAGE, "'--%s' takes no value", o->name) : 0;
        }
        if (!joined && *i + 1 >= argc) {
            return fr_fail(FR_EXIT_USAGE, "'--%s' needs %s: '--%s %s'", o->name, "a value", o->name, o->arg);
        }
        a->value[k] = joined ? value.p : argv[++*i];
        return check_value(c, o, a->value[k]);
    }
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)(name.n < 63 ? name.n : 63), name.p);
    return unknown_option(c, argv[*i], word);
}

static int take_letters(const struct fr_command *c, int argc, char **argv, int *i, struct fr_args *a)
{
    const char *p = argv[*i] + 1;
    while (*p != '\0') {
        unsigned k = 0;
        while (c->options[k].name != NULL && c->options[k].letter != *p) {
            k++;
        }
        const struct fr_option *o = &c->options[k];
        if (o->name == NULL) {
            return unknown_option(c, argv[*i], p);
        }
        p++;
        if (o->kind == FR_ARG_NONE) {
            a->value[k] = "";
            continue;
        }
        if (*p == '\0' && *i + 1 >= argc) {
            return fr_fail(FR_EXIT_USAGE, "'-%c' needs a value: '-%c %s'", o->letter, o->letter, o->arg);
        }
        a->value[k] = *p != '\0' ? p : argv[++*i];
        return check_value(c, o, a->value[k]);
    }
    return 0;
}

int fr_args_parse(const struct fr_command *c, int argc, char **argv, struct fr_args *a)
{
    bool options = true;
    int kept = 0;
    for (int i = 0; i < argc; i++) {
        int rc = 0;
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && strncmp(argv[i], "--", 2) == 0) {
            rc = take_long(c, argc, argv, &i, a);
        } else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            rc = take_letters(c, argc, argv, &i, a);
        } else {
            argv[kept++] = argv[i];
        }
        if (rc != 0) {
            return rc;
        }
    }
    a->path = argv;
    a->n = kept;
    if (kept < c->min) {
        return fr_fail(FR_EXIT_USAGE, "'%s' needs %s: 'faultrank %s --help' shows how", c->name, c->operands, c->name);
    }
    if (c->max >= 0 && kept > c->max) {
        return fr_fail(FR_EXIT_USAGE, "'%s' does not take '%s': 'faultrank %s --help' shows how", c->name,
                       argv[c->max], c->name);
    }
    return 0;
}

const char *fr_args_get(const struct fr_command *c, const struct fr_args *a, const char *name)
{
    for (unsigned k = 0; c->options[k].name != NULL; k++) {
        if (strcmp(c->options[k].name, name) == 0) {
            return a->value[k];
        }
    }
    return NULL;
}
