/* SPDX-License-Identifier: Apache-2.0 */
/* text: the pieces that the text views share. Inner header of the text writer; scratch belongs to write_text. */
#ifndef FR_REPORT_TEXT_H
#define FR_REPORT_TEXT_H

#include "report/words.h"

#include "failure/library.h"

struct fr_text {
    struct fr_buf *out;
    struct fr_buf scratch; /* one paragraph, cleaned, before it is wrapped */
    bool color, why, failed;
    int width;
};

void fr_text_heading(struct fr_text *t, const char *heading);
/* Cleans and wraps s; what the scratch already holds goes in front. */
void fr_text_prose(struct fr_text *t, fr_sv s, const char *first, const char *next);
void fr_text_quote(struct fr_text *t, const struct fr_quote *q, const char *indent);
void fr_text_list(struct fr_text *t, const char *const *v, const char *bullet);
void fr_text_victims(struct fr_text *t, const struct fr_incident *in);
void fr_text_do_now(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in);
void fr_text_resume(struct fr_text *t, const struct fr_incident *in);
void fr_text_verify(struct fr_text *t, const struct fr_failure *f);
void fr_text_collect(struct fr_text *t, const struct fr_incident *in);

void fr_text_oncall(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in);
void fr_text_executive(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in);

#endif
