/* SPDX-License-Identifier: Apache-2.0 */
/* library: see library.h. */
#include "cli/library.h"

#include "cli/cli.h"
#include "faultrank/faultrank.h"

#include <stdlib.h>

int fr_cli_library(const char *dir, struct fr_arena *arena, struct fr_library *ret)
{
    struct fr_err err = {0};
    if (dir == NULL) {
        *ret = *fr_library_builtin();
        return 0;
    }
    return fr_library_load(dir, arena, ret, &err) == 0 ? 0 : fr_fail_err(&err);
}

struct candidate {
    uint16_t failure;
    int64_t score;
};

static bool has_any(fr_sv text, const char *const *literals, size_t *ret_longest)
{
    bool found = false;
    for (; literals != NULL && *literals != NULL; literals++) {
        fr_sv l = fr_sv_z(*literals);
        if (fr_sv_has(text, l)) {
            found = true;
            *ret_longest = l.n > *ret_longest ? l.n : *ret_longest;
        }
    }
    return found;
}

/* A cause says more than a symptom, a specific class more than its parent, a long literal more than a short one. */
static int64_t score_of(const struct fr_failure *f, const struct fr_signal *s, size_t longest)
{
    int64_t role = s->role == FR_ROLE_CAUSE ? 3 : s->role == FR_ROLE_SYMPTOM ? 2 : s->role == FR_ROLE_TEARDOWN ? 1 : 0;
    return role * 1000000 + (int64_t)f->weight * 1000 + (int64_t)(longest < 999 ? longest : 999);
}

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return x->failure < y->failure ? -1 : x->failure > y->failure;
}

/* A piece of a message, typed from memory, fires nothing but may hold a literal. */
static unsigned by_literals(const struct fr_library *lib, fr_sv text, uint16_t *ret, unsigned max)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < lib->n_signals && n < max; i++) {
        const struct fr_signal *s = &lib->signals[i];
        size_t longest = 0, veto = 0;
        if (has_any(text, s->literals, &longest) && !has_any(text, s->none_of, &veto)) {
            ret[n++] = (uint16_t)i;
        }
    }
    return n;
}

static unsigned fired(const char *dir, const struct fr_library *lib, fr_sv text, uint16_t *ret, unsigned max)
{
    struct fr_engine_options o = {.size = sizeof o, .failures_dir = dir};
    struct fr_engine *e = NULL;
    int n = fr_engine_new(&o, &e, NULL) == 0 ? fr_engine_match(e, text.p, text.n, ret, max) : 0;
    fr_engine_free(&e);
    return n > 0 ? (unsigned)n : by_literals(lib, text, ret, max);
}

unsigned fr_cli_recognise(const char *dir, const struct fr_library *lib, fr_sv text, uint16_t *ret, unsigned max)
{
    struct candidate found[64];
    uint16_t signals[64];
    unsigned n = 0, hits = fired(dir, lib, text, signals, 64);
    for (unsigned i = 0; i < hits; i++) {
        const struct fr_signal *s = &lib->signals[signals[i]];
        const struct fr_failure *f = &lib->failures[s->failure];
        size_t longest = 0;
        has_any(text, s->literals, &longest);
        int64_t score = score_of(f, s, longest);
        unsigned k = 0;
        while (k < n && found[k].failure != s->failure) {
            k++;
        }
        if (s->role == FR_ROLE_CONTEXT || s->role == FR_ROLE_PROGRESS) {
            continue;
        }
        if (k == n) {
            found[n++] = (struct candidate){s->failure, score};
        } else if (score > found[k].score) {
            found[k].score = score;
        }
    }
    qsort(found, n, sizeof *found, by_score);
    n = n < max ? n : max;
    for (unsigned i = 0; i < n; i++) {
        ret[i] = found[i].failure;
    }
    return n;
}

const char *fr_cli_nearest_id(const struct fr_library *lib, const char *word)
{
    const char *names[4096];
    unsigned n = 0;
    for (; n < lib->n_failures && n < sizeof names / sizeof *names; n++) {
        names[n] = lib->failures[n].id;
    }
    return fr_nearest(word, names, n);
}

void fr_cli_join(char **words, int n, struct fr_buf *ret)
{
    for (int i = 0; i < n; i++) {
        fr_buf_addz(ret, i > 0 ? " " : "");
        fr_buf_addz(ret, words[i]);
    }
}
