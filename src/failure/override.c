/* SPDX-License-Identifier: Apache-2.0 */
/* override: a user's folder over the built-in table. On its own, as only programs that link the compiled failures can. */
#include "failure/load.h"

#include <stdio.h>

struct first_error {
    char text[256];
};

static void keep_first(void *ctx, enum fr_complaint level, const char *path, uint32_t line,
                       const char *text)
{
    struct first_error *first = ctx;
    if (level == FR_COMPLAINT_ERROR && first->text[0] == '\0') {
        snprintf(first->text, sizeof first->text, "%.120s:%u: %.120s", path, line, text);
    }
}

int fr_library_load(const char *dir, struct fr_arena *arena, struct fr_library *ret,
                    struct fr_err *err)
{
    struct first_error first = {""};
    struct fr_complain complain = {.fn = keep_first, .ctx = &first};
    struct fr_library user;
    const int rc = fr_library_read(dir, dir, arena, &complain, &user, err);
    if (rc < 0) {
        return rc;
    }
    if (complain.errors > 0) {
        return fr_err_set(err, FR_SYNTAX, "%s", first.text);
    }
    return fr_library_merge(fr_library_builtin(), &user, arena, ret, err);
}
