/* SPDX-License-Identifier: Apache-2.0 */
/* lint: what docs/failure-format.md asks of a library and a parser cannot see: sections, references
 * between classes, signals that cannot fire or hide behind others, regexes without bound, text
 * copied from another failure, samples. Whether a sample fires is asked through a callback, since
 * matching is a layer above. */
#ifndef FR_FAILURE_LINT_H
#define FR_FAILURE_LINT_H

#include "failure/parse.h"

struct fr_lint_checks {
    void *ctx;
    /* 1: the signal fires on a line of the sample, 0: it does not, negative: cannot tell (not
     * checked). */
    int (*fires)(void *ctx, uint16_t signal, const char *sample);
};

/* Complains about failures [of the library] for which `own` says true (NULL: all). checks may be
 * NULL. -FR_NOMEM or 0. */
int fr_library_lint(const struct fr_library *lib,
                    bool (*own)(void *ctx, const struct fr_failure *f), void *own_ctx,
                    const struct fr_lint_checks *checks, struct fr_complain *complain);

#endif
