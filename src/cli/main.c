/* SPDX-License-Identifier: Apache-2.0 */
/* main: finds the command and hands over. No locale, no set-up: the program has to start in a millisecond or two. */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define X(name) extern const struct fr_command fr_command_##name;
#include "cli/commands.def"
#undef X

const struct fr_command *const fr_commands[] = {
#define X(name) &fr_command_##name,
#include "cli/commands.def"
#undef X
};
const unsigned fr_commands_count = sizeof fr_commands / sizeof *fr_commands;

const struct fr_command *fr_command_find(fr_sv name)
{
    for (unsigned i = 0; i < fr_commands_count; i++) {
        if (fr_sv_eq(name, fr_sv_z(fr_commands[i]->name))) {
            return fr_commands[i];
        }
    }
    return NULL;
}

static int unknown_command(const char *word)
{
    const char *names[32];
    unsigned n = 0;
    for (; n < fr_commands_count && n < sizeof names / sizeof *names; n++) {
        names[n] = fr_commands[n]->name;
    }
    const char *near = fr_nearest(word, names, n);
    if (near != NULL) {
        return fr_fail(FR_EXIT_USAGE, "there is no command '%s'; did you mean '%s'?", word, near);
    }
    if (access(word, F_OK) == 0 || strcmp(word, "-") == 0) {
        return fr_fail(FR_EXIT_USAGE, "to read logs, type 'faultrank diagnose %s'", word);
    }
    return fr_fail(FR_EXIT_USAGE, "there is no command '%s'; 'faultrank help' lists them", word);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that has seen enough is no failure: see fr_print */
    if (argc < 2) {
        FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
        fr_help_all(&out);
        (void)!write(STDERR_FILENO, out.p, out.n);
        return FR_EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        word = "help";
    } else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        word = "version";
    } else if (word[0] == '-' && word[1] != '\0') {
        return fr_fail(FR_EXIT_USAGE, "a command comes before options such as '%s'; 'faultrank help' lists them", word);
    }
    const struct fr_command *c = fr_command_find(fr_sv_z(word));
    if (c == NULL) {
        return unknown_command(word);
    }
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
            fr_help_command(c, &out);
            return fr_print(&out);
        }
    }
    struct fr_args a = {.n = 0};
    int rc = fr_args_parse(c, argc - 2, argv + 2, &a);
    return rc != 0 ? rc : c->run(c, &a);
}
