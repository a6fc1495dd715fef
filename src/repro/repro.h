/* SPDX-License-Identifier: Apache-2.0 */
/* repro: the executable reproductions. One is one file, src/repro/<short>.c, that ends in
 * `const struct fr_repro fr_repro_<short>`, and one row of repros.def. It plays three acts - it
 * fails, why, the fix - by really computing, and claims what its failure's page says
 * (result.h): a claim is measured, never written down as held.
 *
 * Deterministic: the same parameters give the same result on every machine (lab.h has the random
 * numbers and the functions of libm that would differ). Pure, but for those that say
 * `needs_folder`: they fork processes and write logs into env->folder.
 */
#ifndef FR_REPRO_REPRO_H
#define FR_REPRO_REPRO_H

#include "base/err.h"
#include "repro/result.h"

struct fr_lab; /* lab.h: what an act works with */

/* A number, or one of some words (its value is then the index). */
struct fr_repro_param {
    const char *name;       /* "hidden" = option --hidden; NULL ends a table */
    double value, min, max; /* value: the default, which must bear out the page */
    bool is_whole;
    const char *const *choices; /* NULL-terminated, or NULL: a number */
    const char *help;
};
#define FR_REPRO_PARAMS_MAX 12
/* The last two rows of every table. */
#define FR_REPRO_SEED                                                                              \
    {                                                                                              \
        "seed", 1, 0, 9007199254740992, true, NULL, "seed of the random numbers"                   \
    }
#define FR_REPRO_END                                                                               \
    {                                                                                              \
        NULL, 0, 0, 0, false, NULL, NULL                                                           \
    }

struct fr_repro {
    const char *id;                      /* of the failure whose page it belongs to */
    const char *summary;                 /* what is run, in one line, for the list */
    const struct fr_repro_param *params; /* every one has "seed" */
    bool needs_folder;
    /* Plays the acts into lab->result. 0, or -FR_... with *err filled when it could not be run at
     * all; a claim that does not hold is no error. */
    int (*run)(struct fr_lab *lab, struct fr_err *err);
    /* The prevention smoke test with the user's sizes (smoke.h): claims only. NULL: none. */
    int (*smoke)(struct fr_lab *lab, struct fr_err *err);
    const char *const *smoke_policies; /* what smoke's --policy may be; NULL: nothing */
};

extern const struct fr_repro *const fr_repros[]; /* from repros.def */
extern const unsigned fr_repros_count;
const struct fr_repro *fr_repro_find(fr_sv id); /* NULL absent */

/* What a reproduction may need from its caller. */
struct fr_repro_env {
    const char
        *folder; /* needs_folder: an empty folder that is the reproduction's to fill; else NULL */
    /* Diagnoses a folder as `faultrank diagnose` does. ret_class and ret_who belong to arena: the
     * failure's id and the headline ("Rank 1 failed first, ..."), empty where it cannot tell.
     * NULL: the caller cannot (then claims about it are left out). 0 or -FR_... */
    int (*diagnose)(void *ctx, const char *folder, struct fr_arena *arena, fr_sv *ret_class,
                    fr_sv *ret_who, struct fr_err *err);
    void *ctx;
};

/* Parameter values by row of p->params. */
struct fr_repro_values {
    double v[FR_REPRO_PARAMS_MAX];
};
void fr_repro_defaults(const struct fr_repro *p, struct fr_repro_values *ret);
/* -FR_ARG with a sentence that names the parameter and what it may be. */
int fr_repro_set(const struct fr_repro *p, struct fr_repro_values *values, fr_sv name, fr_sv text,
                 struct fr_err *err);
/* Appends the value as a user would type it to ret (>= 32 bytes). */
const char *fr_repro_show(const struct fr_repro_param *p, double value, char *ret);

/* Plays it into *ret, which the caller has initialised and releases. env may be NULL. */
int fr_repro_run(const struct fr_repro *p, const struct fr_repro_values *values,
                 const struct fr_repro_env *env, struct fr_result *ret, struct fr_err *err);

#endif
