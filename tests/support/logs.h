/* SPDX-License-Identifier: Apache-2.0 */
/* logs: small runs written into a temporary folder and diagnosed through the public header.
 *   struct logs l; logs_begin(&l); logs_add(&l, "rank0.log", "..."); T_EQ_STR(logs_answer(&l), "cuda-oom rank 3"); logs_end(&l);
 * A file added twice grows. Or as a table: LOGS_CASES(rows) with one row per run and the answer that is right. */
#ifndef FR_TESTS_LOGS_H
#define FR_TESTS_LOGS_H

#include "base/err.h"
#include "faultrank/faultrank.h"
#include "model/diagnosis.h"

struct logs {
    char dir[200];
    struct fr_engine *engine;
    const struct fr_report *report; /* NULL until logs_run succeeded */
    struct fr_err err;
    char answer[400];
};

void logs_begin(struct logs *l);
void logs_add(struct logs *l, const char *name, const char *text);
int logs_run(struct logs *l); /* diagnoses the folder; what fr_engine_run returned */
/* "healthy", "inconclusive", or "CLASS SCOPE [RANKS or NODE]" of the first incident: "cuda-oom rank 3", "xid-79-fallen-off-bus node gn12". Runs first
 * when that was not done. "error: SENTENCE" when the engine failed. */
const char *logs_answer(struct logs *l);
const struct fr_incident *logs_incident(struct logs *l, uint32_t i); /* NULL when there are fewer */
void logs_end(struct logs *l);
void logs_remove_tree(const char *dir);

enum { LOGS_FILES = 10 };
struct logs_file { const char *name, *text; };
struct logs_case {
    const char *name;
    struct logs_file files[LOGS_FILES]; /* up to the first without a name */
    const char *want[4]; /* patterns (fnmatch): one of them must match, and none that begins with '!' may */
    const char *waits;   /* NULL, or why this row is known to fail: it is an error when it passes */
};
/* Runs the rows and reports those that fail. The number of failures. */
unsigned logs_check(const struct logs_case *rows, unsigned n);
/* A check that is right and known to fail; an error when it passes. Needs support/t.h. */
#define LOGS_KNOWN(cond, why)                                          \
    do {                                                               \
        if (cond) T_FAIL("passes, drop the mark: %s", why);            \
    } while (0)
#define LOGS_CASES(rows) T_EQ_INT(logs_check((rows), sizeof(rows) / sizeof(rows)[0]), 0)

#endif
