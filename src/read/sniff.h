/* SPDX-License-Identifier: Apache-2.0 */
/* sniff: what a stream is, told from its first bytes. Pure. */
#ifndef FR_READ_SNIFF_H
#define FR_READ_SNIFF_H

#include "base/view.h"

enum fr_content {
    FR_CONTENT_TEXT,
    FR_CONTENT_UTF16_LE,
    FR_CONTENT_UTF16_BE,
    FR_CONTENT_BINARY,
    FR_CONTENT_ZSTD, /* compressed: one stream inside */
    FR_CONTENT_GZIP,
    FR_CONTENT_XZ,
    FR_CONTENT_BZIP2,
    FR_CONTENT_LZ4,
    FR_CONTENT_TAR, /* archives: entries inside */
    FR_CONTENT_ZIP
};

/* head: up to 64 KiB from the beginning. *ret_why (may be NULL) names the kind of a binary file: a literal. */
enum fr_content fr_sniff(fr_sv head, const char **ret_why);
static inline bool fr_content_is_packed(enum fr_content c) { return c >= FR_CONTENT_ZSTD && c <= FR_CONTENT_LZ4; }
static inline bool fr_content_is_box(enum fr_content c) { return c >= FR_CONTENT_TAR; }

#endif
