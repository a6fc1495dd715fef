/* SPDX-License-Identifier: Apache-2.0 */
/* progress: one line on stderr that rewrites itself. Only for terminals; the caller checks. */
#ifndef FR_CLI_PROGRESS_H
#define FR_CLI_PROGRESS_H

#include <stdint.h>

void fr_progress(void *ctx, uint64_t done, uint64_t total); /* any thread */
void fr_progress_end(void);                                 /* wipes the line */

#endif
