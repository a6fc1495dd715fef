/* SPDX-License-Identifier: Apache-2.0 */
/* library: what explain, list, search and lint share: which failures there are, and which of them a text points at. */
#ifndef FR_CLI_LIBRARY_H
#define FR_CLI_LIBRARY_H

#include "base/buf.h"
#include "failure/library.h"

/* The built-in library, joined by dir's failure files when dir is not NULL. The exit status; complaints are printed. */
int fr_cli_library(const char *dir, struct fr_arena *arena, struct fr_library *ret);
/* Failures whose signals fire on an error text (or at least hold a piece of it), best first; the number filled. */
unsigned fr_cli_recognise(const char *dir, const struct fr_library *lib, fr_sv text, uint16_t *ret, unsigned max);
/* The id closest to a mistyped one, or NULL. */
const char *fr_cli_nearest_id(const struct fr_library *lib, const char *word);
/* Operands joined by spaces. */
void fr_cli_join(char **words, int n, struct fr_buf *ret);

#endif
