/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that the caller of a scan knows: nothing else is left out, whatever the engine, the chunks
 * and the mode. And whether digits matter to literals. */
#include "base/vec.h"
#include "match/rules.h"
#include "match/scan.h"
#include "support/t.h"

#include <stdlib.h>

enum { LINES = 3000 };

static uint64_t seed = 20261201;

static uint32_t roll(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % below);
}

/* ---- text ---- */

static const char *const parts[] = {
    "lm loss: 2.5 ", "'loss': 0.25, ", "shard=17 ", "\r", "CUDA out of memory", "step", "x",
    "NCCL INFO ",    "exitcode: -9 ",  "grad norm: 1.0 | ",
};

static fr_sv make_text(void)
{
    static char text[LINES * 256];
    size_t n = 0;
    for (unsigned i = 0; i < LINES; i++) {
        for (uint32_t k = roll(7); k > 0; k--) {
            const char *part = parts[roll(sizeof parts / sizeof parts[0])];
            memcpy(text + n, part, strlen(part));
            n += strlen(part);
        }
        text[n++] = '\n';
    }
    n -= roll(2); /* the last newline may be missing */
    return (fr_sv){text, n};
}

/* What the caller knows: a third of the lines, and most empty ones. */
static bool is_known(const char *line, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (unsigned char)line[i];
    }
    return sum % 3 == 0;
}

static size_t take_known(void *ctx, fr_sv rest, size_t n, uint64_t offset, uint64_t lineno,
                         uint64_t *ret_lines)
{
    size_t taken = 0;
    const char *nl;
    (void)ctx;
    (void)offset;
    T_OK(lineno > 0 && (n == rest.n || rest.p[n] == '\n'));
    *ret_lines = 0;
    while ((nl = memchr(rest.p + taken, '\n', rest.n - taken)) != NULL &&
           is_known(rest.p + taken, (size_t)(nl - rest.p) - taken)) {
        taken = (size_t)(nl - rest.p) + 1;
        ++*ret_lines;
    }
    return taken;
}

/* ---- what is delivered ---- */

struct seen {
    uint64_t offset, lineno, metrics, facts;
    size_t n;
    bool known, is_hit;
};
struct seen_list {
    FR_VEC(struct seen) v;
    bool every; /* the mode stays at that */
    int mode;
};

static int next_mode(uint64_t lineno, int mode)
{
    return lineno % 11 == 0 ? FR_SCAN_EVERY : lineno % 7 == 0 ? FR_SCAN_HITS : mode;
}

static int collect(void *ctx, const struct fr_hit *h)
{
    struct seen_list *list = ctx;
    const bool is_hit = h->n_signals > 0 || h->facts != 0 || h->metrics != 0 || h->traces != 0;
    *FR_PUSH(&list->v) =
        (struct seen){h->offset, h->lineno, h->metrics, h->facts, h->line.n,
                      is_known(h->line.p, h->line.n), is_hit};
    list->mode = list->every ? FR_SCAN_EVERY : next_mode(h->lineno, list->mode);
    return list->mode;
}

static void scan(struct fr_scanner *s, fr_sv text, uint32_t chunk, struct seen_list *ret)
{
    uint64_t lineno = 1;
    ret->mode = ret->every ? FR_SCAN_EVERY : FR_SCAN_HITS;
    for (size_t at = 0; at < text.n;) {
        size_t n = 1 + roll(chunk);
        n = n > text.n - at ? text.n - at : n;
        const char *nl = memchr(text.p + at + n - 1, '\n', text.n - at - n + 1);
        n = nl != NULL ? (size_t)(nl - text.p) + 1 - at : text.n - at;
        uint64_t newlines = 0;
        T_OK(fr_scan(s, (fr_sv){text.p + at, n}, at, lineno, ret->mode, collect, ret,
                     &newlines) >= 0);
        lineno += newlines;
        at += n;
    }
    T_EQ_INT(lineno, LINES + (text.p[text.n - 1] == '\n'));
}

/* all: every line. Those that a scan should deliver, one after the other, are in got. A known line
 * that ends FR_SCAN_EVERY may be. */
static void check(const struct seen_list *all, const struct seen_list *got, fr_sv text)
{
    uint32_t k = 0, n_taken = 0;
    int mode = FR_SCAN_HITS;
    for (uint32_t i = 0; i < all->v.n; i++) {
        const struct seen *want = &all->v.v[i];
        const bool is_taken = want->known && want->offset + want->n < text.n;
        const struct seen *have = k < got->v.n ? &got->v.v[k] : NULL;
        const bool is_next = have != NULL && have->offset == want->offset;
        if (mode == FR_SCAN_HITS && (!want->is_hit || (is_taken && !is_next))) {
            n_taken += want->is_hit;
            continue;
        }
        k++;
        if (have == NULL || have->offset != want->offset || have->lineno != want->lineno ||
            have->n != want->n || have->metrics != want->metrics || have->facts != want->facts) {
            T_FAIL("line %llu is not the one delivered", (unsigned long long)want->lineno);
            return;
        }
        mode = next_mode(want->lineno, mode);
    }
    T_EQ_INT(k, got->v.n);
    T_OK(n_taken > LINES / 20);
}

static void with_engine(enum fr_scan_engine engine)
{
    const struct fr_rules *rules = NULL;
    struct fr_scanner *s = NULL;
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, engine, &s, NULL), 0);
    for (unsigned round = 0; round < 8; round++) {
        struct seen_list all = {.every = true}, got = {.every = false};
        const fr_sv text = make_text();
        fr_scanner_know(s, NULL, NULL);
        scan(s, text, 1 << 20, &all);
        fr_scanner_know(s, take_known, NULL);
        scan(s, text, round % 2 == 0 ? 1 << 20 : 700, &got);
        T_EQ_INT(all.v.n, LINES);
        check(&all, &got, text);
        fr_vec_free(all.v.v);
        fr_vec_free(got.v.v);
    }
    fr_scanner_free(&s);
}

T_TEST(known_lines_are_left_out)
{
    with_engine(FR_ENGINE_AUTO);
    with_engine(FR_ENGINE_PORTABLE);
}

T_TEST(digits_matter_where_a_literal_has_some)
{
    const struct fr_rules *rules = NULL;
    struct fr_scanner *s = NULL;
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, FR_ENGINE_AUTO, &s, NULL), 0);
    T_OK(!fr_scan_digits_matter(s, FR_SV("")));
    T_OK(!fr_scan_digits_matter(s, FR_SV("step 12 lm loss: 2.500000E+00")));
    T_OK(fr_scan_digits_matter(s, FR_SV("os error 28")));
    T_OK(fr_scan_digits_matter(s, FR_SV("step 12 os error 11")));
    T_OK(!fr_scan_digits_matter(s, FR_SV("step 12 os error x1")));
    char text[600];
    memset(text, 'x', sizeof text);
    T_OK(fr_scan_digits_matter(s, (fr_sv){text, sizeof text})); /* too long to tell */
    fr_scanner_free(&s);
}

int main(void)
{
    return t_run();
}
