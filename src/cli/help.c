/* SPDX-License-Identifier: Apache-2.0 */
/* help: --help from the same tables that parsing uses. */
#include "cli/cli.h"

#include "report/wrap.h"

#include <stdio.h>
#include <string.h>

#define HELP_COLUMN 26

static void option_row(struct fr_buf *out, const struct fr_option *o)
{
    char left[64], margin[HELP_COLUMN + 1];
    char letter[5] = "    ";
    if (o->letter != 0) {
        snprintf(letter, sizeof letter, "-%c, ", o->letter);
    }
    snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->arg != NULL ? " " : "", o->arg != NULL ? o->arg : "");
    memset(margin, ' ', HELP_COLUMN);
    margin[HELP_COLUMN] = '\0';
    char first[64 + HELP_COLUMN];
    snprintf(first, sizeof first, "%-*s", HELP_COLUMN, left);
    if (strlen(left) >= HELP_COLUMN) {
        fr_buf_printf(out, "%s\n", left);
        snprintf(first, sizeof first, "%s", margin);
    }
    FR_AUTO(fr_buf) text = FR_BUF_INIT(0);
    fr_buf_addz(&text, o->help);
    for (unsigned i = 0; o->kind == FR_ARG_CHOICE && o->choices[i] != NULL; i++) {
        fr_buf_printf(&text, "%s%s", i > 0 ? ", " : ": ", o->choices[i]);
    }
    fr_wrap(out, fr_buf_sv(&text), first, margin, 100);
}

void fr_help_command(const struct fr_command *c, struct fr_buf *out)
{
    static const struct fr_option help = {'h', "help", FR_ARG_NONE, NULL, NULL, "show this page", false};
    fr_buf_printf(out, "Usage: faultrank %s%s%s%s\n\n", c->name, c->options[0].name != NULL ? " [OPTION]..." : "",
                  c->operands[0] != '\0' ? " " : "", c->operands);
    fr_wrap(out, fr_sv_z(c->about), "", "", 100);
    fr_buf_addz(out, "\nOptions:\n");
    for (const struct fr_option *o = c->options; o->name != NULL; o++) {
        if (!o->hidden) {
            option_row(out, o);
        }
    }
    option_row(out, &help);
    if (c->examples[0].line != NULL) {
        fr_buf_addz(out, "\nExamples:\n");
    }
    for (const struct fr_example *e = c->examples; e->line != NULL; e++) {
        fr_buf_printf(out, "  $ %s\n", e->line);
        fr_wrap(out, fr_sv_z(e->what), "      ", "      ", 100);
    }
}

void fr_help_all(struct fr_buf *out)
{
    fr_buf_addz(out, "faultrank reads the logs of a failed training or inference run and says which rank failed first,\n"
                     "why, what to do now, and how to check that it worked. Nothing leaves this machine.\n\n"
                     "Usage: faultrank COMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n");
    for (unsigned i = 0; i < fr_commands_count; i++) {
        fr_buf_printf(out, "  %-11s %s\n", fr_commands[i]->name, fr_commands[i]->summary);
    }
    fr_buf_addz(out, "\nStart here:\n"
                     "  $ faultrank diagnose runs/42/        a folder with the logs of one run\n"
                     "  $ faultrank COMMAND --help           options and examples of a command\n");
}
