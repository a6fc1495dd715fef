/* SPDX-License-Identifier: Apache-2.0 */
/* library: see library.h. */
#include "cli/library.h"

#include "cli/cli.h"

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

unsigned fr_cli_recognise(const struct fr_library *lib, fr_sv text, uint16_t *ret, unsigned max)
{
    struct candidate found[64];
    unsigned n = 0;
    for (uint32_t i = 0; i < lib->n_failures && n < sizeof found / sizeof *found; i++) {
        const struct fr_failure *f = &lib->failures[i];
        int64_t best = -1;
        for (uint32_t k = f->first_signal; k < (uint32_t)f->first_signal + f->n_signals; k++) {
            const struct fr_signal *s = &lib->signals[k];
            size_t longest = 0, veto = 0;
            if (s->role != FR_ROLE_CONTEXT && s->role != FR_ROLE_PROGRESS && has_any(text, s->literals, &longest) &&
                !has_any(text, s->none_of, &veto)) {
                int64_t score = score_of(f, s, longest);
                best = score > best ? score : best;
            }
        }
        if (best >= 0) {
            found[n++] = (struct candidate){(uint16_t)i, best};
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
