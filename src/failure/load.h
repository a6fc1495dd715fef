/* SPDX-License-Identifier: Apache-2.0 */
/* load: a folder of failure files to a library, in the caller's arena.
 * Bounded: FR_FAILURE_FILES_MAX files, 4 folders deep; links and hidden names are not followed. */
#ifndef FR_FAILURE_LOAD_H
#define FR_FAILURE_LOAD_H

#include "failure/parse.h"

#define FR_FAILURE_FILES_MAX 5000

/* Reads dir/ **.md, sorted by id. shown: what paths in messages begin with, instead of dir. Files
 * with errors are left out and complained about: complain->errors tells. Fails only when the folder
 * cannot be read, or memory ends. */
int fr_library_read(const char *dir, const char *shown, struct fr_arena *arena,
                    struct fr_complain *complain, struct fr_library *ret, struct fr_err *err);
/* The union; on equal ids b's failure is taken. Texts and samples are shared with a and b. */
int fr_library_merge(const struct fr_library *a, const struct fr_library *b, struct fr_arena *arena,
                     struct fr_library *ret, struct fr_err *err);

#endif
