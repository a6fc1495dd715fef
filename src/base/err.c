/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int fr_err_set(struct fr_err *err, int code, const char *fmt, ...)
{
    if (err != NULL) {
        va_list ap;
        err->code = code;
        err->sys = 0;
        err->pos = 0;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof err->msg, fmt, ap);
        va_end(ap);
    }
    return -code;
}

const char *fr_err_name(int code)
{
    switch (code) {
#define FR_X(name, value, text) \
    case value: return text;
        FR_ERRORS(FR_X)
#undef FR_X
    default: return "unknown error";
    }
}
