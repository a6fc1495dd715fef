/* SPDX-License-Identifier: Apache-2.0 */
/* escape: text into XML and HTML, as content or inside double quotes. */
#ifndef FR_REPORT_ESCAPE_H
#define FR_REPORT_ESCAPE_H

#include "base/buf.h"

/* Cleans s (at most max bytes, 0 = all), drops what XML 1.0 forbids and escapes & < > " '. */
void fr_escape(struct fr_buf *out, fr_sv s, size_t max);
static inline void fr_escape_z(struct fr_buf *out, const char *z) { fr_escape(out, fr_sv_z(z), 0); }
/* Escapes what scratch holds (already clean) and empties it. */
void fr_escape_flush(struct fr_buf *out, struct fr_buf *scratch);

#endif
