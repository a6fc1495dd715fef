/* SPDX-License-Identifier: Apache-2.0 */
/* compile: the part that needs Vectorscan's compiler. Databases are made for no CPU in particular,
 * so that the machine that builds does not matter: they are used on single lines, where wider
 * instructions gain nothing. */
#include "match/rules.h"

#include "base/buf.h"

#include <hs/hs.h>
#include <stdio.h>
#include <stdlib.h>

#define DATABASES_MAX (1u << 30)

static const hs_platform_info_t any_cpu = {.tune = HS_TUNE_FAMILY_GENERIC, .cpu_features = 0};

static int complain_of(const struct fr_library *lib, const struct fr_signal *signal,
                       struct fr_complain *complain, const char *why)
{
    fr_complain(complain, FR_COMPLAINT_ERROR, lib->failures[signal->failure].path, 0,
                "signal '%s': regex: %s", signal->id, why);
    return -FR_SYNTAX;
}

static int check(const struct fr_library *lib, const struct fr_signal *signal,
                 struct fr_complain *complain)
{
    hs_compile_error_t *why = NULL;
    hs_expr_info_t *info = NULL;
    int rc = 0;
    if (hs_expression_info(signal->regex, HS_FLAG_SINGLEMATCH, &info, &why) != HS_SUCCESS) {
        rc = complain_of(lib, signal, complain, why != NULL ? why->message : "out of memory");
        hs_free_compile_error(why);
    } else if (info->min_width == 0) {
        rc = complain_of(lib, signal, complain, "matches nothing at all");
    }
    free(info); /* allocated by Vectorscan with malloc */
    return rc;
}

struct batch {
    const char *texts[FR_GROUP_SIZE];
    unsigned flags[FR_GROUP_SIZE], ids[FR_GROUP_SIZE]; /* id: the signal */
    unsigned n;
};

/* Appends the serialized database of one group to `out`. */
static int compile_batch(const struct fr_library *lib, const struct batch *b,
                         struct fr_complain *complain, struct fr_buf *out)
{
    hs_database_t *db = NULL;
    hs_compile_error_t *why = NULL;
    char *bytes = NULL;
    size_t n = 0;
    int rc = 0;
    if (hs_compile_multi(b->texts, b->flags, b->ids, b->n, HS_MODE_BLOCK, &any_cpu, &db, &why) !=
        HS_SUCCESS) {
        const unsigned at = why != NULL && why->expression >= 0 ? (unsigned)why->expression : 0;
        rc = complain_of(lib, &lib->signals[b->ids[at]], complain,
                         why != NULL ? why->message : "out of memory");
        hs_free_compile_error(why);
        return rc;
    }
    if (hs_serialize_database(db, &bytes, &n) != HS_SUCCESS) {
        rc = -FR_NOMEM;
    } else {
        fr_buf_add(out, (fr_sv){bytes, n});
    }
    hs_free_database(db);
    free(bytes);
    return rc;
}

struct output {
    struct fr_group *groups;
    uint16_t *group_of;
    uint32_t n;
    struct fr_buf all;
};

/* Closes the batch, empties it. */
static int flush(const struct fr_library *lib, struct batch *b, struct fr_complain *complain,
                 struct output *out)
{
    if (b->n == 0) {
        return 0;
    }
    const size_t at = out->all.n;
    const int rc = compile_batch(lib, b, complain, &out->all);
    out->groups[out->n++] = (struct fr_group){(uint32_t)at, (uint32_t)(out->all.n - at)};
    b->n = 0;
    return rc;
}

static int compile_all(const struct fr_library *lib, struct fr_complain *complain,
                       struct output *out)
{
    struct batch b = {.n = 0};
    int result = 0;
    for (uint32_t i = 0; i < lib->n_signals && result != -FR_NOMEM; i++) {
        const struct fr_signal *signal = &lib->signals[i];
        out->group_of[i] = FR_GROUP_NONE;
        if (signal->regex == NULL) {
            continue;
        }
        int rc = check(lib, signal, complain);
        if (rc == 0) {
            out->group_of[i] = (uint16_t)out->n;
            b.texts[b.n] = signal->regex;
            b.flags[b.n] = HS_FLAG_SINGLEMATCH;
            b.ids[b.n++] = i;
            rc = b.n == FR_GROUP_SIZE ? flush(lib, &b, complain, out) : 0;
        }
        result = rc < 0 ? rc : result;
    }
    const int rc = result != -FR_NOMEM ? flush(lib, &b, complain, out) : 0;
    return rc < 0 ? rc : result;
}

struct sentence {
    char text[240];
};

/* For callers that want one sentence: the first complaint. */
static void keep_first(void *ctx, enum fr_complaint level, const char *path, uint32_t line,
                       const char *text)
{
    struct sentence *first = ctx;
    (void)line;
    if (level == FR_COMPLAINT_ERROR && first->text[0] == '\0') {
        snprintf(first->text, sizeof first->text, "%.100s: %s", path, text);
    }
}

int fr_rules_compile_regexes(struct fr_rules *r, struct fr_arena *arena,
                             struct fr_complain *complain, struct fr_err *err)
{
    const struct fr_library *lib = r->library;
    struct sentence first = {""};
    struct fr_complain own = {.fn = keep_first, .ctx = &first};
    struct output out = {FR_NEW_N(arena, struct fr_group, lib->n_signals / FR_GROUP_SIZE + 2),
                         FR_NEW_N(arena, uint16_t, lib->n_signals + 1), 0,
                         FR_BUF_INIT(DATABASES_MAX)};
    int rc = out.groups == NULL || out.group_of == NULL ? -FR_NOMEM : 0;
    rc = rc < 0 ? rc : compile_all(lib, complain != NULL ? complain : &own, &out);
    const fr_sv copy = fr_arena_dup(arena, fr_buf_sv(&out.all));
    const bool good = copy.p != NULL && fr_buf_ok(&out.all);
    fr_buf_release(&out.all);
    if (rc == -FR_SYNTAX) {
        return fr_err_set(err, FR_SYNTAX, "%s",
                          complain != NULL ? "a regex does not compile" : first.text);
    }
    if (rc < 0 || !good) {
        return fr_err_set(err, FR_NOMEM, "out of memory while compiling the patterns");
    }
    r->groups = out.groups;
    r->group_of = out.group_of;
    r->n_groups = out.n;
    r->databases = (const unsigned char *)copy.p;
    r->databases_size = copy.n;
    return 0;
}
