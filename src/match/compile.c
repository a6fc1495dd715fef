/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the part that needs Vectorscan's compiler. The database is made for no CPU in particular, so that the machine
 * that builds does not matter: it is used on single lines, where wider instructions gain nothing. */
#include "match/rules.h"

#include <hs/hs.h>
#include <stdlib.h>

struct sources {
    const char **texts;
    unsigned *flags, *ids;
    unsigned n;
};

static const hs_platform_info_t any_cpu = {.tune = HS_TUNE_FAMILY_GENERIC, .cpu_features = 0};

/* One by one, so that each bad regex is named. */
static bool check(const struct sources *s, const struct fr_library *lib, struct fr_complain *complain)
{
    bool good = true;
    for (unsigned i = 0; i < s->n; i++) {
        hs_compile_error_t *why = NULL;
        hs_expr_info_t *info = NULL;
        const struct fr_signal *signal = &lib->signals[s->ids[i]];
        const struct fr_failure *f = &lib->failures[signal->failure];
        if (hs_expression_info(s->texts[i], s->flags[i], &info, &why) != HS_SUCCESS) {
            fr_complain(complain, FR_COMPLAINT_ERROR, f->path, 0, "signal '%s': regex: %s", signal->id,
                        why != NULL ? why->message : "out of memory");
            hs_free_compile_error(why);
            good = false;
        } else if (info->min_width == 0) {
            fr_complain(complain, FR_COMPLAINT_ERROR, f->path, 0, "signal '%s': the regex matches nothing at all",
                        signal->id);
            good = false;
        }
        free(info); /* allocated by Vectorscan with malloc */
    }
    return good;
}

static int compile(const struct sources *s, const struct fr_library *lib, struct fr_arena *arena,
                   struct fr_complain *complain, const unsigned char **ret, size_t *ret_n, struct fr_err *err)
{
    hs_database_t *db = NULL;
    hs_compile_error_t *why = NULL;
    char *bytes = NULL;
    size_t n = 0;
    if (hs_compile_multi(s->texts, s->flags, s->ids, s->n, HS_MODE_BLOCK, &any_cpu, &db, &why) != HS_SUCCESS) {
        if (why != NULL && why->expression >= 0) {
            const struct fr_signal *signal = &lib->signals[s->ids[why->expression]];
            fr_complain(complain, FR_COMPLAINT_ERROR, lib->failures[signal->failure].path, 0,
                        "signal '%s': regex: %s", signal->id, why->message);
        }
        const int rc = fr_err_set(err, FR_SYNTAX, "cannot compile the patterns: %s",
                                  why != NULL ? why->message : "out of memory");
        hs_free_compile_error(why);
        return rc;
    }
    const hs_error_t e = hs_serialize_database(db, &bytes, &n);
    hs_free_database(db);
    const fr_sv copy = e == HS_SUCCESS ? fr_arena_dup(arena, (fr_sv){bytes, n}) : FR_SV_NONE;
    free(bytes);
    if (copy.p == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory while compiling the patterns");
    }
    *ret = (const unsigned char *)copy.p;
    *ret_n = n;
    return 0;
}

int fr_database_compile(const struct fr_library *lib, struct fr_arena *arena, struct fr_complain *complain,
                        const unsigned char **ret, size_t *ret_n, struct fr_err *err)
{
    struct fr_complain silent = {0};
    struct sources s = {FR_NEW_N(arena, const char *, lib->n_signals + 1),
                        FR_NEW_N(arena, unsigned, lib->n_signals + 1),
                        FR_NEW_N(arena, unsigned, lib->n_signals + 1), 0};
    if (s.texts == NULL || s.flags == NULL || s.ids == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory while compiling the patterns");
    }
    for (uint32_t i = 0; i < lib->n_signals; i++) {
        if (lib->signals[i].regex != NULL) {
            s.texts[s.n] = lib->signals[i].regex;
            s.flags[s.n] = HS_FLAG_SINGLEMATCH;
            s.ids[s.n++] = i;
        }
    }
    *ret = NULL;
    *ret_n = 0;
    if (s.n == 0) {
        return 0;
    }
    complain = complain != NULL ? complain : &silent;
    if (!check(&s, lib, complain)) {
        return fr_err_set(err, FR_SYNTAX, "a regex does not compile");
    }
    return compile(&s, lib, arena, complain, ret, ret_n, err);
}
