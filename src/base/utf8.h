/* SPDX-License-Identifier: Apache-2.0 */
/* utf8: what leaves us is valid UTF-8 and inert. */
#ifndef FR_BASE_UTF8_H
#define FR_BASE_UTF8_H

#include "base/buf.h"

/* Length of the valid sequence at s (1-4), or 0 when the bytes there are not UTF-8 (overlong, surrogate, truncated). */
size_t fr_utf8_len(fr_sv s);
bool fr_utf8_valid(fr_sv s);
/* Appends s for people: ANSI sequences (ESC and literal ^[[) dropped, C0/C1 controls, bidi overrides and zero-width characters dropped or turned into
 * a space (tab stays), bad bytes to U+FFFD, at most max bytes (0 = all) cut on a character with "..." appended. */
void fr_utf8_clean(struct fr_buf *out, fr_sv s, size_t max);
/* UTF-16 (little or big endian) to UTF-8; a lone surrogate or odd last byte becomes U+FFFD. */
void fr_utf8_from_utf16(struct fr_buf *out, fr_sv s, bool big_endian);
void fr_utf8_from_latin1(struct fr_buf *out, fr_sv s);

#endif
