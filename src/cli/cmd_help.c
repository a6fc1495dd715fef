/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

static int run(const struct fr_command *c, const struct fr_args *a)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    (void)c;
    if (a->n == 0) {
        fr_help_all(&out);
        return fr_print(&out);
    }
    const struct fr_command *about = fr_command_find(fr_sv_z(a->path[0]));
    if (about == NULL) {
        return fr_fail(FR_EXIT_USAGE, "there is no command '%s'; 'faultrank help' lists them", a->path[0]);
    }
    fr_help_command(about, &out);
    return fr_print(&out);
}

static const struct fr_option options[] = {{0}};
static const struct fr_example examples[] = {
    {"faultrank help", "Lists the commands."},
    {"faultrank help diagnose", "The same as 'faultrank diagnose --help'."},
    {0},
};

const struct fr_command fr_command_help = {
    .name = "help", .operands = "[COMMAND]", .summary = "show help, also of one command",
    .about = "Shows what faultrank can do, or the options and examples of one command.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_NONE, .min = 0, .max = 1, .run = run,
};
