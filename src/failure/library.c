/* SPDX-License-Identifier: Apache-2.0 */
/* library: the built-in table and a user's folder over it. */
#include "failure/library.h"

#include "failure/load.h"

#include <stdio.h>

int fr_library_find(const struct fr_library *lib, fr_sv id)
{
    uint32_t lo = 0, hi = lib->n_failures;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        const int c = fr_sv_cmp(fr_sv_z(lib->failures[mid].id), id);
        if (c == 0) {
            return (int)mid;
        }
        if (c < 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return -1;
}

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
