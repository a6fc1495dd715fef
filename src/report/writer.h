/* SPDX-License-Identifier: Apache-2.0 */
/* writer: a report model to bytes. One file per output, one row in writers.def. Pure: no I/O, no clock, no environment. */
#ifndef FR_REPORT_WRITER_H
#define FR_REPORT_WRITER_H

#include "base/buf.h"
#include "base/err.h"
#include "model/diagnosis.h"

enum fr_view { FR_VIEW_ENGINEER, FR_VIEW_ONCALL, FR_VIEW_EXECUTIVE };
struct fr_write_options {
    uint8_t view;     /* enum fr_view */
    bool color;       /* ANSI colours (text only) */
    bool why;         /* --why: ranking, evidence for and against, what was ruled out */
    int width;        /* terminal columns for wrapping, 0 = 100 */
    bool timings;     /* include timings (makes output differ from run to run) */
};
struct fr_writer {
    const char *name, *summary, *mime, *extension;
    int (*write)(const struct fr_report *r, const struct fr_write_options *o, struct fr_buf *out, struct fr_err *err);
};
extern const struct fr_writer *const fr_writers[]; /* from writers.def */
extern const unsigned fr_writers_count;
const struct fr_writer *fr_writer_find(fr_sv name);

#endif
