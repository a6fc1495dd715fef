/* SPDX-License-Identifier: Apache-2.0 */
/* peel: the parts of the peeler that the segmenter needs too. */
#ifndef FR_FORMAT_PEEL_H
#define FR_FORMAT_PEEL_H

#include "format/dialect.h"

/* Bit per format that can peel a text that begins so. */
uint64_t fr_formats_beginning(fr_sv text);
void fr_peel_prefixes(const struct fr_peel_ctx *ctx, struct fr_record *rec);
bool fr_peel_has_ansi(fr_sv s);
fr_sv fr_peel_clean(const struct fr_peel_ctx *ctx,
                    fr_sv s); /* stripped into the scratch when there is anything */
size_t fr_peel_strip_ansi(fr_sv s, char *ret); /* ret: s.n bytes */

#endif
