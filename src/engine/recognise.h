/* SPDX-License-Identifier: Apache-2.0 */
/* recognise: which signals fire on a piece of text of any number of lines. Borrows everything;
 * allocates only while it runs. */
#ifndef FR_ENGINE_RECOGNISE_H
#define FR_ENGINE_RECOGNISE_H

#include "match/scan.h"

/* Fills ret with at most max indexes of lib's signals, in order of first sighting; their number, or
 * -FR_NOMEM. */
int fr_recognise(const struct fr_library *lib, struct fr_scanner *scanner, fr_sv text,
                 uint16_t *ret, uint32_t max);

#endif
