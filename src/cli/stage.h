/* SPDX-License-Identifier: Apache-2.0 */
/* stage: what reproductions need from the program that plays them: a folder for those that fork
 * processes, and a diagnosis of what these wrote. */
#ifndef FR_CLI_STAGE_H
#define FR_CLI_STAGE_H

#include "base/buf.h"
#include "repro/repro.h"

#include <signal.h>

struct fr_stage {
    struct fr_repro_env env;
    struct fr_buf folder; /* a temporary one that is ours to remove; empty: the user's, or none */
    sigset_t signals;     /* the mask before, where there is such a folder */
};

/* `keep`: the user's folder, made when it is not there; NULL = a temporary one. Only makes one when p needs it.
 * The exit status; complaints are printed. While there is a temporary folder, SIGINT, SIGTERM and SIGHUP wait until it is removed. */
int fr_stage_open(struct fr_stage *s, const struct fr_repro *p, const char *keep);
void fr_stage_close(struct fr_stage *s);

#endif
