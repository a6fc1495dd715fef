/* SPDX-License-Identifier: Apache-2.0 */
/* check_words: the phrases and the picture's groups that the outputs of `check` share. What is
 * appended is clean; HTML still escapes it. */
#ifndef FR_REPORT_CHECK_WORDS_H
#define FR_REPORT_CHECK_WORDS_H

#include "report/check_writer.h"

#define FR_CHECK_ROWS 48  /* of the picture: healthy layers share rows when there are more */
#define FR_CHECK_CELLS 40 /* of a row */

/* "Do not promote: NaN in weights: model.layers.3..." */
void fr_check_words_headline(struct fr_buf *b, const struct fr_check *c);
const char *fr_check_words_verdict(uint8_t verdict); /* "Do not promote" */
/* "step 300 in runs/step-300, safetensors, 2 files, 13.5 GB, 291 tensors, 6,738,415,616 elements"
 */
void fr_check_words_input(struct fr_buf *b, const struct fr_check *c);
bool fr_check_step_shown(
    const struct fr_check_step *s); /* no folder that only holds a pointer to others */
/* "the last good one is 200 (runs/step-200)"; nothing when it is the chosen one */
void fr_check_words_last_good(struct fr_buf *b, const struct fr_check *c);
/* "model.layers.3.mlp.down_proj.weight, rank 2, in a.safetensors at byte 128": what is known of it
 */
void fr_check_words_where(struct fr_buf *b, const struct fr_check_finding *f);
void fr_check_words_number(struct fr_buf *b, double d); /* "0.021" */
const char *fr_check_words_heading(uint8_t weight);     /* "What forbids it" */

/* Groups of the picture; ret has room for c->layers.n. Their number. Labels are views. */
struct fr_check_row {
    uint32_t from, n; /* layers */
    bool shared; /* several healthy layers: label is that of the first, last_label of the last */
};
uint32_t fr_check_rows(const struct fr_check *c, struct fr_check_row *ret);
/* A height from 0 (nothing) to 8 for a magnitude, on a logarithmic scale over all tensors of c. */
struct fr_check_scale {
    double low, high;
};
struct fr_check_scale fr_check_scale_of(const struct fr_check *c);
unsigned fr_check_height(const struct fr_check_scale *s, const struct fr_check_tensor *t);

#endif
