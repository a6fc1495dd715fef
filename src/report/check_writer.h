/* SPDX-License-Identifier: Apache-2.0 */
/* check_writer: what a check found, to bytes. One file per output, one row in check_writers.def.
 * Pure: no I/O, no clock. */
#ifndef FR_REPORT_CHECK_WRITER_H
#define FR_REPORT_CHECK_WRITER_H

#include "base/buf.h"
#include "base/err.h"
#include "model/check.h"

struct fr_check_write_options {
    bool color; /* ANSI colours (text only) */
    bool all;   /* list every finding and tensor (text only) */
    int width;  /* terminal columns, 0 = 100 */
};
struct fr_check_writer {
    const char *name, *summary;
    int (*write)(const struct fr_check *c, const struct fr_check_write_options *o,
                 struct fr_buf *out, struct fr_err *err);
};
extern const struct fr_check_writer *const fr_check_writers[]; /* from check_writers.def */
extern const unsigned fr_check_writers_count;
const struct fr_check_writer *fr_check_writer_find(fr_sv name);

#endif
