/* SPDX-License-Identifier: Apache-2.0 */
/* cli: what every command shares. A command is one file, one row of commands.def and one table of options; parsing, --help,
 * the suggestions for typing errors and the shell completions all come from these tables. */
#ifndef FR_CLI_CLI_H
#define FR_CLI_CLI_H

#include "base/buf.h"
#include "base/err.h"

/* sysexits.h, spelled out: the contract of design section 6. */
enum { FR_EXIT_OK = 0, FR_EXIT_USAGE = 64, FR_EXIT_DATA = 65, FR_EXIT_NOINPUT = 66, FR_EXIT_SOFTWARE = 70, FR_EXIT_IO = 74 };

/* What an argument is: decides checks and completion. */
enum fr_arg_kind { FR_ARG_NONE, FR_ARG_WORD, FR_ARG_NUMBER, FR_ARG_FILE, FR_ARG_FOLDER, FR_ARG_CHOICE };

struct fr_option {
    char letter;                 /* 0 none */
    const char *name;            /* NULL ends a table */
    uint8_t kind;                /* enum fr_arg_kind */
    const char *arg;             /* shown in help: "FILE" */
    const char *const *choices;  /* FR_ARG_CHOICE: NULL-terminated */
    const char *help;
    bool hidden;
};

struct fr_example {
    const char *line, *what; /* line NULL ends a table; lines are run by tests/e2e */
};

#define FR_OPTIONS_MAX 24
struct fr_args {
    const char *value[FR_OPTIONS_MAX]; /* by row; "" for a flag that is set; NULL absent */
    char **path;                       /* operands, borrowed from argv */
    int n;
};

struct fr_command {
    const char *name, *operands, *summary; /* "PATH...|-" */
    const char *about;                     /* paragraphs for --help */
    const struct fr_option *options;
    const struct fr_example *examples;
    uint8_t operand_kind;                  /* for completion; FR_ARG_WORD = a failure id */
    int min, max;                          /* operands; max -1 = any number */
    int (*run)(const struct fr_command *c, const struct fr_args *a);
};
extern const struct fr_command *const fr_commands[];
extern const unsigned fr_commands_count;
const struct fr_command *fr_command_find(fr_sv name);

/* 0, or FR_EXIT_USAGE after saying why. Reorders argv: operands come to a->path. */
int fr_args_parse(const struct fr_command *c, int argc, char **argv, struct fr_args *a);
const char *fr_args_get(const struct fr_command *c, const struct fr_args *a, const char *name); /* NULL absent */
/* The closest of n names, or NULL when none is near enough. */
const char *fr_nearest(const char *word, const char *const *names, unsigned n);

void fr_help_command(const struct fr_command *c, struct fr_buf *out);
void fr_help_all(struct fr_buf *out);

/* One sentence on stderr, "faultrank: ..." ; returns status, so that a command can end with it. */
__attribute__((format(printf, 2, 3))) int fr_fail(int status, const char *fmt, ...);
int fr_fail_err(const struct fr_err *err); /* with the exit status that fits err->code */
int fr_print(const struct fr_buf *out);    /* to stdout; the exit status */
int fr_save(const char *path, const struct fr_buf *out); /* whole or not at all; the exit status */
bool fr_color_wanted(bool forbidden);      /* stdout is a terminal that shows colours */
int fr_terminal_width(void);               /* of stdout; 100 when it is not a terminal */

#endif
