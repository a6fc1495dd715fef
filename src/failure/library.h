/* SPDX-License-Identifier: Apache-2.0 */
/* library: the failures this program knows. The built-in one is const data generated from failures/ at build time
 * (tools/compile-failures.c); a user's directory is loaded into the same structs at run time. Read-only after loading. */
#ifndef FR_FAILURE_LIBRARY_H
#define FR_FAILURE_LIBRARY_H

#include "base/arena.h"
#include "base/err.h"
#include "model/diagnosis.h"

enum fr_about { FR_ABOUT_REPORTER, FR_ABOUT_CAPTURED, FR_ABOUT_PEER, FR_ABOUT_NOBODY, FR_ABOUT_SELF };

struct fr_capture_def { const char *name, *regex; }; /* regex: PCRE2, one group */

struct fr_signal {
    const char *id;
    uint16_t failure;               /* index into the library's failures */
    uint8_t role, about;            /* enum fr_role, enum fr_about */
    const char *const *literals;    /* NULL-terminated; NULL for metric signals */
    const char *regex;              /* NULL: the literals alone decide */
    const char *const *none_of;     /* NULL-terminated or NULL: vetoes */
    const struct fr_capture_def *captures;
    uint16_t n_captures;
    int8_t metric, finding;         /* enum fr_metric / fr_finding_kind; -1 = a text signal */
    int32_t until_step;             /* -1 none */
    const char *const *yes, *const *no; /* samples, NULL-terminated */
};

struct fr_failure {
    const char *id, *title, *category, *severity, *layer, *owner;
    uint8_t action;                 /* enum fr_action */
    uint8_t scope;                  /* enum fr_scope the class belongs to by nature: RANK, ALL_RANKS, NODE, LAUNCHER, UNKNOWN (none) */
    int16_t weight;                 /* 0-100 */
    uint16_t first_signal, n_signals;
    const char *const *explains, *const *requires, *const *excludes, *const *related; /* NULL-terminated, never NULL */
    const char *const *stacks, *const *tags, *const *confirm, *const *prevent, *const *refs;
    const char *fix_primary, *fix_fallback, *fix_emergency;
    const char *verify_command;
    const char *const *verify_expect, *const *verify_absent;
    const char *repro;              /* NULL none */
    const char *body;               /* Markdown after the front matter */
    const char *path;               /* failures/memory/cuda-oom.md, for messages */
};

struct fr_library {
    const struct fr_failure *failures;
    uint32_t n_failures;
    const struct fr_signal *signals;
    uint32_t n_signals;
};

const struct fr_library *fr_library_builtin(void);
/* Built-in plus the *.md files under dir (recursively); same id replaces. Into arena. SYNTAX errors name file and line. */
int fr_library_load(const char *dir, struct fr_arena *arena, struct fr_library *ret, struct fr_err *err);
/* Index by id; -1 when absent. */
int fr_library_find(const struct fr_library *lib, fr_sv id);

#endif
