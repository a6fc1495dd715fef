/* SPDX-License-Identifier: Apache-2.0 */
/* The command line against a command of our own. fr_fail's sentences on stderr are expected noise. */
#include "support/t.h"

#include "cli/cli.h"

static const char *const choices[] = {"text", "json", NULL};
static const struct fr_option options[] = {
    {'f', "format", FR_ARG_CHOICE, "FORMAT", choices, "how", false},
    {'q', "quiet", FR_ARG_NONE, NULL, NULL, "hush", false},
    {0, "threads", FR_ARG_NUMBER, "N", NULL, "how many", false},
    {0, "secret", FR_ARG_NONE, NULL, NULL, "not shown", true},
    {0},
};
static const struct fr_example examples[] = {{"faultrank try x", "Tries."}, {0}};
static const struct fr_command try = {
    .name = "try", .operands = "PATH...", .summary = "try it", .about = "About it.", .options = options,
    .examples = examples, .min = 1, .max = 3,
};
const struct fr_command *const fr_commands[] = {&try};
const unsigned fr_commands_count = 1;

struct row {
    const char *argv[6];
    int want, operands;
    const char *format, *quiet, *threads;
};

T_TEST(options_are_taken_wherever_they_stand)
{
    static const struct row rows[] = {
        {{"a"}, 0, 1, NULL, NULL, NULL},
        {{"a", "--format", "json", "b"}, 0, 2, "json", NULL, NULL},
        {{"--format=text", "a", "-q"}, 0, 1, "text", "", NULL},
        {{"-qf", "json", "a"}, 0, 1, "json", "", NULL},
        {{"-fjson", "a"}, 0, 1, "json", NULL, NULL},
        {{"--", "--format", "-q"}, 0, 2, NULL, NULL, NULL},
        {{"-"}, 0, 1, NULL, NULL, NULL},
        {{"a", "--threads", "8"}, 0, 1, NULL, NULL, "8"},
        {{"a", "--threads", "8x"}, 64, 0, NULL, NULL, NULL},
        {{"a", "--threads", "65536"}, 64, 0, NULL, NULL, NULL},
        {{"a", "--threads"}, 64, 0, NULL, NULL, NULL},
        {{"a", "--format", "xml"}, 64, 0, NULL, NULL, NULL},
        {{"a", "--quiet=1"}, 64, 0, NULL, NULL, NULL},
        {{"a", "--mask"}, 64, 0, NULL, NULL, NULL},
        {{"a", "-x"}, 64, 0, NULL, NULL, NULL},
        {{NULL}, 64, 0, NULL, NULL, NULL},
        {{"a", "b", "c", "d"}, 64, 0, NULL, NULL, NULL},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *argv[6] = {0};
        int argc = 0;
        while (argc < 6 && rows[i].argv[argc] != NULL) {
            argv[argc] = (char *)(uintptr_t)rows[i].argv[argc];
            argc++;
        }
        struct fr_args a = {.n = 0};
        T_EQ_INT(fr_args_parse(&try, argc, argv, &a), rows[i].want);
        if (rows[i].want == 0) {
            T_EQ_INT(a.n, rows[i].operands);
            T_EQ_STR(fr_args_get(&try, &a, "format"), rows[i].format);
            T_OK((fr_args_get(&try, &a, "quiet") != NULL) == (rows[i].quiet != NULL));
            T_EQ_STR(fr_args_get(&try, &a, "threads"), rows[i].threads);
        }
    }
}

T_TEST(suggestions_are_near_or_absent)
{
    static const char *const names[] = {"diagnose", "explain", "format", "list"};
    T_EQ_STR(fr_nearest("diagnsoe", names, 4), "diagnose");
    T_EQ_STR(fr_nearest("diag", names, 4), "diagnose");
    T_EQ_STR(fr_nearest("fromat", names, 4), "format");
    T_OK(fr_nearest("banana", names, 4) == NULL);
    T_OK(fr_nearest("", names, 4) == NULL);
    T_OK(fr_nearest("a-word-that-is-much-longer-than-any-name-can-be", names, 4) == NULL);
}

T_TEST(help_comes_from_the_table)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    fr_help_command(&try, &out);
    T_OK(fr_sv_has(fr_buf_sv(&out), FR_SV("Usage: faultrank try [OPTION]... PATH...")));
    T_OK(fr_sv_has(fr_buf_sv(&out), FR_SV("-f, --format FORMAT     how: text, json\n")));
    T_OK(fr_sv_has(fr_buf_sv(&out), FR_SV("  $ faultrank try x\n")));
    T_OK(!fr_sv_has(fr_buf_sv(&out), FR_SV("secret")));
}

int main(void)
{
    return t_run();
}
