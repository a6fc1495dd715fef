/* SPDX-License-Identifier: Apache-2.0 */
/* completion: scripts for shells, from the same tables that parsing uses. The ones in completions/ are this output. */
#include "cli/cli.h"

static const struct fr_option options[] = {{0}};

static void commands(struct fr_buf *out, const char *between)
{
    for (unsigned i = 0; i < fr_commands_count; i++) {
        fr_buf_printf(out, "%s%s", i > 0 ? between : "", fr_commands[i]->name);
    }
}

static void words(const char *const *v, struct fr_buf *out)
{
    for (unsigned i = 0; v[i] != NULL; i++) {
        fr_buf_printf(out, "%s%s", i > 0 ? " " : "", v[i]);
    }
}

/* ---- bash ---- */

static void bash_value(const struct fr_option *o, struct fr_buf *out)
{
    if (o->kind == FR_ARG_CHOICE) {
        fr_buf_addz(out, "COMPREPLY=($(compgen -W '");
        words(o->choices, out);
        fr_buf_addz(out, "' -- \"$cur\"))");
    } else if (o->kind == FR_ARG_FILE || o->kind == FR_ARG_FOLDER) {
        fr_buf_printf(out, "compopt -o filenames; COMPREPLY=($(compgen -%c -- \"$cur\"))", o->kind == FR_ARG_FILE ? 'f' : 'd');
    } else {
        fr_buf_addz(out, "COMPREPLY=()");
    }
    fr_buf_addz(out, "; return ;;\n");
}

static void bash_command(const struct fr_command *c, struct fr_buf *out)
{
    fr_buf_printf(out, "    %s)\n        case \"$prev\" in\n", c->name);
    for (const struct fr_option *o = c->options; o->name != NULL; o++) {
        if (o->hidden || o->kind == FR_ARG_NONE) {
            continue;
        }
        fr_buf_printf(out, "        --%s", o->name);
        if (o->letter != 0) {
            fr_buf_printf(out, "|-%c", o->letter);
        }
        fr_buf_addz(out, ") ");
        bash_value(o, out);
    }
    fr_buf_addz(out, "        esac\n        options='");
    for (const struct fr_option *o = c->options; o->name != NULL; o++) {
        if (!o->hidden) {
            fr_buf_printf(out, "--%s ", o->name);
        }
    }
    fr_buf_addz(out, "--help'\n");
    if (c->operand_kind == FR_ARG_WORD) {
        fr_buf_addz(out, "        others=$(faultrank list --ids 2>/dev/null)\n");
    } else if (c->operand_kind == FR_ARG_CHOICE) {
        fr_buf_addz(out, "        others='bash zsh fish'\n");
    } else if (strcmp(c->name, "help") == 0) {
        fr_buf_addz(out, "        others=$commands\n");
    }
    if (c->operand_kind == FR_ARG_FILE || c->operand_kind == FR_ARG_FOLDER) {
        fr_buf_printf(out, "        files=%c\n", c->operand_kind == FR_ARG_FILE ? 'f' : 'd');
    }
    fr_buf_addz(out, "        ;;\n");
}

static void bash(struct fr_buf *out)
{
    fr_buf_addz(out, "# bash completion of faultrank, written by 'faultrank completion bash'\n_faultrank()\n{\n"
                     "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "    local options='' others='' files='' commands='");
    commands(out, " ");
    fr_buf_addz(out, "'\n    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                     "        COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\"))\n        return\n    fi\n"
                     "    case \"${COMP_WORDS[1]}\" in\n");
    for (unsigned i = 0; i < fr_commands_count; i++) {
        bash_command(fr_commands[i], out);
    }
    fr_buf_addz(out, "    esac\n    case \"$cur\" in\n    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")); return ;;\n    esac\n"
                     "    if [ -n \"$files\" ]; then\n        compopt -o filenames\n"
                     "        COMPREPLY=($(compgen -\"$files\" -- \"$cur\"))\n    else\n"
                     "        COMPREPLY=($(compgen -W \"$others\" -- \"$cur\"))\n    fi\n}\n"
                     "complete -F _faultrank faultrank\n");
}

/* ---- zsh ---- */

/* For inside single quotes, with the characters that _arguments gives a meaning. */
static void zsh_text(const char *z, struct fr_buf *out)
{
    for (; *z != '\0'; z++) {
        if (*z == '\'') {
            fr_buf_addz(out, "'\\''");
        } else {
            fr_buf_addz(out, strchr("[]:\\", *z) != NULL ? "\\" : "");
            fr_buf_addc(out, *z);
        }
    }
}

static void zsh_option(const struct fr_option *o, struct fr_buf *out)
{
    if (o->letter != 0) {
        fr_buf_printf(out, "            '(-%c --%s)'{-%c,--%s}'[", o->letter, o->name, o->letter, o->name);
    } else {
        fr_buf_printf(out, "            '--%s[", o->name);
    }
    zsh_text(o->help, out);
    fr_buf_addc(out, ']');
    if (o->kind != FR_ARG_NONE) {
        fr_buf_printf(out, ":%s:", o->arg);
    }
    if (o->kind == FR_ARG_CHOICE) {
        fr_buf_addc(out, '(');
        words(o->choices, out);
        fr_buf_addc(out, ')');
    } else if (o->kind == FR_ARG_FILE || o->kind == FR_ARG_FOLDER) {
        fr_buf_addz(out, o->kind == FR_ARG_FILE ? "_files" : "_files -/");
    }
    fr_buf_addz(out, "' \\\n");
}

static const char *zsh_operands(const struct fr_command *c)
{
    switch (c->operand_kind) {
    case FR_ARG_FILE:
        return "'*:path:_files'";
    case FR_ARG_FOLDER:
        return "'*:folder:_files -/'";
    case FR_ARG_WORD:
        return "'*:failure:($(faultrank list --ids 2>/dev/null))'";
    case FR_ARG_CHOICE:
        return "'1:shell:(bash zsh fish)'";
    default:
        return strcmp(c->name, "help") == 0 ? "'1:command:_faultrank_commands'" : "'*: :'";
    }
}

static void zsh(struct fr_buf *out)
{
    fr_buf_addz(out, "#compdef faultrank\n# zsh completion of faultrank, written by 'faultrank completion zsh'\n"
                     "_faultrank_commands()\n{\n    local -a commands=(\n");
    for (unsigned i = 0; i < fr_commands_count; i++) {
        fr_buf_printf(out, "        '%s:", fr_commands[i]->name);
        zsh_text(fr_commands[i]->summary, out);
        fr_buf_addz(out, "'\n");
    }
    fr_buf_addz(out, "    )\n    _describe command commands\n}\n\n_faultrank()\n{\n    if (( CURRENT == 2 )); then\n"
                     "        _faultrank_commands\n        return\n    fi\n    local command=$words[2]\n    shift words\n"
                     "    (( CURRENT-- ))\n    case $command in\n");
    for (unsigned i = 0; i < fr_commands_count; i++) {
        const struct fr_command *c = fr_commands[i];
        fr_buf_printf(out, "    %s)\n        _arguments -s \\\n", c->name);
        for (const struct fr_option *o = c->options; o->name != NULL; o++) {
            if (!o->hidden) {
                zsh_option(o, out);
            }
        }
        fr_buf_printf(out, "            '(-h --help)'{-h,--help}'[show help]' \\\n            %s ;;\n", zsh_operands(c));
    }
    fr_buf_addz(out, "    esac\n}\n\n_faultrank \"$@\"\n");
}

/* ---- fish ---- */

static void fish_text(const char *z, struct fr_buf *out)
{
    for (; *z != '\0'; z++) {
        fr_buf_addz(out, *z == '\'' || *z == '\\' ? "\\" : "");
        fr_buf_addc(out, *z);
    }
}

static void fish_option(const struct fr_command *c, const struct fr_option *o, struct fr_buf *out)
{
    fr_buf_printf(out, "complete -c faultrank -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
    if (o->letter != 0) {
        fr_buf_printf(out, " -s %c", o->letter);
    }
    if (o->kind == FR_ARG_CHOICE) {
        fr_buf_addz(out, " -x -a '");
        words(o->choices, out);
        fr_buf_addc(out, '\'');
    } else if (o->kind == FR_ARG_FOLDER) {
        fr_buf_addz(out, " -x -a '(__fish_complete_directories)'");
    } else if (o->kind != FR_ARG_NONE) {
        fr_buf_addz(out, o->kind == FR_ARG_FILE ? " -r -F" : " -x");
    }
    fr_buf_addz(out, " -d '");
    fish_text(o->help, out);
    fr_buf_addz(out, "'\n");
}

static void fish(struct fr_buf *out)
{
    fr_buf_addz(out, "# fish completion of faultrank, written by 'faultrank completion fish'\n"
                     "complete -c faultrank -n __fish_use_subcommand -f\n");
    for (unsigned i = 0; i < fr_commands_count; i++) {
        const struct fr_command *c = fr_commands[i];
        fr_buf_printf(out, "complete -c faultrank -n __fish_use_subcommand -a %s -d '", c->name);
        fish_text(c->summary, out);
        fr_buf_addz(out, "'\n");
        for (const struct fr_option *o = c->options; o->name != NULL; o++) {
            if (!o->hidden) {
                fish_option(c, o, out);
            }
        }
        const char *operands = c->operand_kind == FR_ARG_WORD     ? "(faultrank list --ids 2>/dev/null)"
                               : c->operand_kind == FR_ARG_CHOICE ? "bash zsh fish"
                               : c->operand_kind == FR_ARG_FOLDER ? "(__fish_complete_directories)"
                                                                  : "";
        if (c->operand_kind != FR_ARG_FILE) {
            fr_buf_printf(out, "complete -c faultrank -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", c->name, operands);
        }
    }
}

static int run(const struct fr_command *c, const struct fr_args *a)
{
    static const struct { const char *name; void (*write)(struct fr_buf *out); } shells[] = {
        {"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
    (void)c;
    for (unsigned i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(a->path[0], shells[i].name) == 0) {
            shells[i].write(&out);
            return fr_print(&out);
        }
    }
    return fr_fail(FR_EXIT_USAGE, "there is no completion for '%s'; it is one of bash, zsh, fish", a->path[0]);
}

static const struct fr_example examples[] = {
    {"faultrank completion bash > ~/.local/share/bash-completion/completions/faultrank", "For bash."},
    {"faultrank completion zsh > ~/.zfunc/_faultrank", "For zsh, with ~/.zfunc in fpath."},
    {"faultrank completion fish > ~/.config/fish/completions/faultrank.fish", "For fish."},
    {0},
};

const struct fr_command fr_command_completion = {
    .name = "completion", .operands = "bash|zsh|fish", .summary = "print a completion script for a shell",
    .about = "Prints a script that lets a shell complete commands, options, their values and the ids of failures.",
    .options = options, .examples = examples, .operand_kind = FR_ARG_CHOICE, .min = 1, .max = 1, .run = run,
};
