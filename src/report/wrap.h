/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: prose into lines of a terminal. Text must be clean already (base/utf8.h). A line break in it ends a line;
 * words longer than the line are left whole, so that paths and commands can be copied. */
#ifndef FR_REPORT_WRAP_H
#define FR_REPORT_WRAP_H

#include "base/buf.h"

/* Appends text with `first` in front of its first line and `next` in front of the others, and a final '\n'. */
void fr_wrap(struct fr_buf *out, fr_sv text, const char *first, const char *next, int width);
/* Columns of clean text: characters, as far as that can be known without a locale. */
int fr_wrap_columns(fr_sv text);

#endif
