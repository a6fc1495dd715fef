/* SPDX-License-Identifier: Apache-2.0 */
/* page: Markdown blocks to wrapped terminal text. Knows what failure pages use: headings,
 * paragraphs, lists, tables, fenced code, `code` and **bold**; anything else is shown as it is
 * written. Private to failure/. */
#ifndef FR_FAILURE_PAGE_H
#define FR_FAILURE_PAGE_H

#include "base/buf.h"

struct fr_page {
    struct fr_buf *out;
    int width;
    bool color;
};

#define FR_PAGE_BOLD "\x1b[1m"
#define FR_PAGE_DIM  "\x1b[2m"
#define FR_PAGE_CODE "\x1b[36m"
#define FR_PAGE_OFF  "\x1b[0m"

/* `text` cleaned, wrapped to the width; `lead` stands before the first line, as many columns of
 * space before the others. */
void fr_page_wrap(struct fr_page *page, const char *lead, fr_sv text);
void fr_page_heading(struct fr_page *page, fr_sv text);
/* Markdown text, indented by two columns. */
void fr_page_body(struct fr_page *page, fr_sv markdown);
/* The next line of *rest without its end; false when there is none. */
bool fr_page_line(fr_sv *rest, fr_sv *ret);

#endif
