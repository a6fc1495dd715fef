/* SPDX-License-Identifier: Apache-2.0 */
/* search: a linear look through a few hundred pages takes well under a millisecond a word, so there
 * is no index. */
#include "failure/search.h"

#include <ctype.h>
#include <stdlib.h>

#define WORDS_MAX 16

struct wanted {
    fr_sv words[WORDS_MAX];
    unsigned n;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) != 0;
}

/* The word at the beginning of some word of the text. */
static bool has_word(const char *text, fr_sv word)
{
    fr_sv rest = fr_sv_z(text);
    while (rest.n >= word.n) {
        const size_t at = fr_sv_find_ci(rest, word);
        if (at == FR_NPOS) {
            return false;
        }
        const char *const here = rest.p + at;
        if (here == text || !is_word(here[-1]) || !is_word(word.p[0])) {
            return true;
        }
        rest = fr_sv_skip(rest, at + 1);
    }
    return false;
}

static bool list_has(const char *const *list, fr_sv word)
{
    for (; list != NULL && *list != NULL; list++) {
        if (has_word(*list, word)) {
            return true;
        }
    }
    return false;
}

static uint32_t score_of(const struct fr_library *lib, const struct fr_failure *f, fr_sv word)
{
    uint32_t score = 0;
    score += fr_sv_eq(fr_sv_z(f->id), word) ? 1000 : 0;
    score += has_word(f->id, word) ? 80 : 0;
    score += has_word(f->title, word) ? 60 : 0;
    score += list_has(f->tags, word) || has_word(f->category, word) ? 30 : 0;
    score += list_has(f->stacks, word) ? 15 : 0;
    bool literal = false;
    for (uint16_t i = 0; i < f->n_signals && !literal; i++) {
        literal = list_has(lib->signals[f->first_signal + i].literals, word);
    }
    score += literal ? 20 : 0;
    score += has_word(f->body, word) || has_word(f->fix_primary, word) ? 5 : 0;
    return score;
}

static void split(fr_sv query, struct wanted *w)
{
    while (query.n > 0 && w->n < WORDS_MAX) {
        size_t begin = 0;
        while (begin < query.n && isspace((unsigned char)query.p[begin])) {
            begin++;
        }
        size_t end = begin;
        while (end < query.n && !isspace((unsigned char)query.p[end])) {
            end++;
        }
        if (end > begin) {
            w->words[w->n++] = (fr_sv){query.p + begin, end - begin};
        }
        query = fr_sv_skip(query, end);
    }
}

static int by_score(const void *a, const void *b)
{
    const struct fr_found *x = a, *y = b;
    if (x->score != y->score) {
        return x->score > y->score ? -1 : 1;
    }
    return (int)x->failure - (int)y->failure; /* the library is sorted by id */
}

unsigned fr_library_search(const struct fr_library *lib, fr_sv query, struct fr_found *ret,
                           unsigned max)
{
    struct wanted w = {.n = 0};
    unsigned n = 0;
    split(query, &w);
    for (uint32_t i = 0; i < lib->n_failures && w.n > 0 && max > 0; i++) {
        uint32_t total = 0;
        for (unsigned k = 0; k < w.n; k++) {
            const uint32_t score = score_of(lib, &lib->failures[i], w.words[k]);
            total = score == 0 ? 0 : total + score;
            if (score == 0) {
                break;
            }
        }
        if (total == 0) {
            continue;
        }
        const struct fr_found one = {(uint16_t)i, total};
        if (n < max) {
            ret[n++] = one;
        } else { /* full: the worst makes room */
            qsort(ret, n, sizeof ret[0], by_score);
            if (by_score(&one, &ret[n - 1]) < 0) {
                ret[n - 1] = one;
            }
        }
    }
    if (n > 1) {
        qsort(ret, n, sizeof ret[0], by_score);
    }
    return n;
}
