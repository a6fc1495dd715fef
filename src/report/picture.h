/* SPDX-License-Identifier: Apache-2.0 */
/* picture: the run as inline SVG: ranks down, time across, colour by role, the first evidence marked. At most
 * FR_PICTURE_LANES rows; more ranks share one, but the first to fail keep their own. Colours come from the page's classes. */
#ifndef FR_REPORT_PICTURE_H
#define FR_REPORT_PICTURE_H

#include "report/words.h"

#define FR_PICTURE_LANES 256

/* Appends one <svg>; nothing when the report has no lanes. -FR_NOMEM, or 0. */
int fr_picture(const struct fr_report *r, struct fr_buf *out);

#endif
