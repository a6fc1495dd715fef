/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "faultrank/faultrank.h"

static int run(const struct fr_command *c, const struct fr_args *a)
{
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    (void)c;
    (void)a;
    fr_buf_printf(&out, "faultrank %s\n", fr_version());
    return fr_print(&out);
}

static const struct fr_option options[] = {{0}};
static const struct fr_example examples[] = {{"faultrank version", "Prints one line, for scripts and bug reports."}, {0}};

const struct fr_command fr_command_version = {
    .name = "version", .operands = "", .summary = "print the version",
    .about = "Prints the program's name and version.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_NONE, .min = 0, .max = 0, .run = run,
};
