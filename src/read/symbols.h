/* SPDX-License-Identifier: Apache-2.0 */
/* symbols: libarchive and ISA-L, loaded when a file first needs them. libarchive alone pulls in 20 libraries (XML, ICU, crypto)
 * and would cost every start several milliseconds. Never unloaded. Thread-safe. */
#ifndef FR_READ_SYMBOLS_H
#define FR_READ_SYMBOLS_H

#include "base/err.h"

#include <archive.h>
#include <archive_entry.h>
#include <isa-l/igzip_lib.h>

#define FR_ARCHIVE_SYMBOLS(X)                                                                                          \
    X(archive_read_new) X(archive_read_free) X(archive_read_support_format_tar) X(archive_read_support_format_zip)     \
    X(archive_read_support_format_raw) X(archive_read_support_filter_gzip) X(archive_read_support_filter_bzip2)        \
    X(archive_read_support_filter_xz) X(archive_read_support_filter_lz4) X(archive_read_set_read_callback)             \
    X(archive_read_set_seek_callback) X(archive_read_set_callback_data) X(archive_read_open1)                          \
    X(archive_read_next_header) X(archive_read_data) X(archive_error_string) X(archive_entry_pathname)                 \
    X(archive_entry_pathname_utf8) X(archive_entry_filetype) X(archive_entry_mtime) X(archive_entry_mtime_nsec)        \
    X(archive_entry_mtime_is_set) X(archive_entry_hardlink)

struct fr_archive_lib {
#define FR_X(name) __typeof__(&name) name;
    FR_ARCHIVE_SYMBOLS(FR_X)
#undef FR_X
};

#define FR_ISAL_SYMBOLS(X) X(isal_inflate_init) X(isal_inflate_reset) X(isal_inflate)

struct fr_isal_lib {
#define FR_X(name) __typeof__(&name) name;
    FR_ISAL_SYMBOLS(FR_X)
#undef FR_X
};

/* NULL with *err filled (-FR_ABSENT's reason names the package to install) when the library is not there. */
const struct fr_archive_lib *fr_archive_lib(struct fr_err *err);
const struct fr_isal_lib *fr_isal_lib(struct fr_err *err);

#endif
