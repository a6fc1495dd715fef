/* SPDX-License-Identifier: Apache-2.0 */
/* err: how every fallible function fails.
 * Fallible functions return 0 or -FR_*; iterators 1 (item), 0 (end), negative. `err` may be NULL, is untouched on
 * success, and on failure holds a whole sentence that names the file or object: ready to print. */
#ifndef FR_BASE_ERR_H
#define FR_BASE_ERR_H

#include <stdint.h>

#define FR_ERRORS(X)                                                               \
    X(NOMEM, 1, "out of memory")     X(IO, 2, "input/output error")                \
    X(SYNTAX, 10, "malformed input") X(LIMIT, 11, "limit exceeded")                \
    X(ARG, 20, "invalid argument")   X(STATE, 21, "call out of order")             \
    X(ABSENT, 30, "not found")

enum fr_error_code {
#define FR_X(name, value, text) FR_##name = value,
    FR_ERRORS(FR_X)
#undef FR_X
};

struct fr_err {
    int code;     /* FR_..., values never reused */
    int sys;      /* errno or a library's code, else 0 */
    uint64_t pos; /* byte offset in the input, where that means something */
    char msg[256];
};

/* The only way to fail: fills *err (when not NULL) and yields -code. */
__attribute__((format(printf, 3, 4))) int fr_err_set(struct fr_err *err, int code, const char *fmt, ...);
const char *fr_err_name(int code);

#endif
