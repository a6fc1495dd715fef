/* SPDX-License-Identifier: Apache-2.0 */
/* render: one failure's page, for a terminal or as Markdown. Pure: no I/O, no environment. Text
 * from files is cleaned (no control characters, no escape sequences) on the way out. */
#ifndef FR_FAILURE_RENDER_H
#define FR_FAILURE_RENDER_H

#include "base/buf.h"
#include "failure/library.h"

struct fr_page_options {
    int width;  /* terminal columns, 0 = 100 */
    bool color; /* ANSI colours */
    bool brief; /* quick answer, confirm, fix and verify only */
};

void fr_page_text(const struct fr_library *lib, const struct fr_failure *f,
                  const struct fr_page_options *o, struct fr_buf *out);
void fr_page_markdown(const struct fr_library *lib, const struct fr_failure *f, struct fr_buf *out);
/* The text under "## heading" of a body, without the heading; empty when there is none. */
fr_sv fr_body_section(const char *body, const char *heading);

#endif
