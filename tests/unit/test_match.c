/* SPDX-License-Identifier: Apache-2.0 */
/* The matcher against a naive one: every literal searched in every line, every regex tried by
 * PCRE2. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/alloc.h"
#include "base/vec.h"
#include "match/rules.h"
#include "support/t.h"

#include <dirent.h>
#include <pcre2.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- randomness ---- */

static uint64_t seed = 20240307;

static uint32_t roll(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % below);
}

/* ---- rules under test: the built-in library with hooks of our own, some very common ---- */

static const struct fr_hook hook_rows[] = {
    {"'loss':", FR_HOOK_METRIC, 3},
    {"lm loss", FR_HOOK_METRIC, 4},
    {"loss ", FR_HOOK_METRIC, 5},
    {"a step", FR_HOOK_METRIC, 63},
    {"Signal 15", FR_HOOK_FACT, 0},
    {"exitcode", FR_HOOK_FACT, 17},
    {"tcode", FR_HOOK_FACT, 17},
    {" gpu ", FR_HOOK_FACT, 2},
    {"Traceback (most recent call last)", FR_HOOK_TRACE, 0},
    {"Fatal Python error", FR_HOOK_TRACE, 1},
    {"\xc3\xa9\x74\xc3\xa9", FR_HOOK_FACT, 9},
};
static const struct fr_hooks hooks = {hook_rows, sizeof hook_rows / sizeof hook_rows[0]};

static const struct fr_rules *rules_under_test(void)
{
    static struct fr_rules *rules;
    struct fr_err err = {0};
    if (rules == NULL && fr_rules_compile(fr_library_builtin(), hooks, NULL, &rules, &err) < 0) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    return rules;
}

/* ---- text ---- */

struct text {
    char *p;
    size_t n, cap;
};

static void add(struct text *t, const char *p, size_t n)
{
    if (t->n + n > t->cap) {
        t->cap = (t->n + n) * 2;
        t->p = realloc(t->p, t->cap);
    }
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

static void addz(struct text *t, const char *z)
{
    add(t, z, strlen(z));
}

static void add_ordinary(struct text *t)
{
    static const char *const words[] = {"step",
                                        " loss",
                                        ": 2.31",
                                        " lr 1e-4",
                                        "\r",
                                        "Epoch 3",
                                        " gpu ",
                                        "\x1b[32mINFO\x1b[0m",
                                        " of ",
                                        "\t",
                                        "error",
                                        " tokens/s",
                                        "[rank3]: ",
                                        "2024-03-05 12:00:00,123 ",
                                        "CUDA",
                                        " NCCL",
                                        "failed",
                                        "\xc3\xa9t\xc3\xa9",
                                        "|####  | 42%",
                                        "a ste",
                                        "p",
                                        "torch/",
                                        "RuntimeErro",
                                        "r",
                                        "Xid",
                                        "exit",
                                        "code",
                                        "\xff\xfe",
                                        "'loss': nan",
                                        "lm los"};
    for (uint32_t n = roll(14); n > 0; n--) {
        addz(t, words[roll(sizeof words / sizeof words[0])]);
    }
}

static void add_sample(struct text *t)
{
    const struct fr_library *lib = fr_library_builtin();
    const struct fr_signal *s = &lib->signals[roll(lib->n_signals)];
    const char *const *list = roll(3) == 0 ? s->no : s->yes;
    const char *sample = list[0];
    for (uint32_t k = 0; list[k] != NULL; k++) {
        sample = roll(2) ? list[k] : sample;
    }
    if (sample != NULL) {
        const size_t n = strlen(sample);
        add(t, sample, roll(6) == 0 ? roll((uint32_t)n + 1) : n); /* sometimes cut short */
    }
}

/* A damaged literal, a bare one, or two run together. */
static void add_literal(struct text *t)
{
    const struct fr_rules *r = rules_under_test();
    const struct fr_literal *l = &r->literals[roll(r->n_literals)];
    const uint32_t drop = roll(3) == 0 ? roll(l->n) : 0;
    add(t, l->text + drop, l->n - drop - (roll(4) == 0 && l->n - drop > 0));
}

static struct text make_text(uint32_t lines, bool storm)
{
    struct text t = {NULL, 0, 0};
    for (uint32_t i = 0; i < lines; i++) {
        const uint32_t kind = roll(100);
        add_ordinary(&t);
        if (kind < (storm ? 95u : 20u)) {
            add_sample(&t);
        } else if (kind < 30 || storm) {
            add_literal(&t);
        } else if (kind == 31 && roll(20) == 0) { /* longer than a window */
            for (uint32_t n = 1000 + roll(9000); n > 0; n--) {
                add_ordinary(&t);
            }
            add_sample(&t);
            add_ordinary(&t);
        }
        if (roll(3) == 0) {
            add_ordinary(&t);
        }
        addz(&t, roll(9) == 0 ? "\r\n" : roll(12) == 0 ? "\n\n\n" : "\n");
    }
    if (roll(2) == 0) {
        add_sample(&t); /* no newline at the end */
    }
    return t;
}

/* ---- what was delivered ---- */

struct seen {
    uint64_t offset, lineno, facts, metrics;
    uint32_t traces;
    size_t n;
    uint16_t n_signals, signals[FR_HIT_SIGNALS];
    bool in_every;
};
typedef FR_VEC(struct seen) seen_list;

/* From every line on that ends in a number divisible by 7 all lines are wanted, until one divisible
 * by 5. */
static int next_mode(uint64_t lineno, int mode)
{
    return lineno % 7 == 0 ? FR_SCAN_EVERY : lineno % 5 == 0 ? FR_SCAN_HITS : mode;
}

struct collector {
    seen_list list;
    bool toggles;
    int mode;
};

static int collect(void *ctx, const struct fr_hit *hit)
{
    struct collector *c = ctx;
    struct seen *s = FR_PUSH(&c->list);
    *s = (struct seen){hit->offset, hit->lineno,    hit->facts, hit->metrics, hit->traces,
                       hit->line.n, hit->n_signals, {0},        hit->in_every};
    memcpy(s->signals, hit->signals, hit->n_signals * sizeof hit->signals[0]);
    if (c->toggles) {
        c->mode = next_mode(hit->lineno, c->mode);
    }
    return c->mode;
}

/* ---- the naive matcher ---- */

static bool naive_regex(uint32_t signal, fr_sv line)
{
    static pcre2_code *codes[UINT16_MAX];
    static pcre2_match_data *match;
    const char *regex = fr_library_builtin()->signals[signal].regex;
    if (codes[signal] == NULL) {
        int why = 0;
        PCRE2_SIZE at = 0;
        codes[signal] = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, 0, &why, &at, NULL);
        match = match != NULL ? match : pcre2_match_data_create(1, NULL);
        T_OK(codes[signal] != NULL);
    }
    return codes[signal] != NULL &&
           pcre2_match(codes[signal], (PCRE2_SPTR)line.p, line.n, 0, 0, match, NULL) >= 0;
}

static bool naive_signal(uint32_t i, fr_sv line)
{
    const struct fr_signal *s = &fr_library_builtin()->signals[i];
    bool literal = false;
    for (const char *const *l = s->literals; l != NULL && *l != NULL && !literal; l++) {
        literal = memmem(line.p, line.n, *l, strlen(*l)) != NULL;
    }
    if (!literal || (s->regex != NULL && !naive_regex(i, line))) {
        return false;
    }
    for (const char *const *v = s->none_of; v != NULL && *v != NULL; v++) {
        if (memmem(line.p, line.n, *v, strlen(*v)) != NULL) {
            return false;
        }
    }
    return true;
}

static struct seen naive_line(fr_sv line)
{
    struct seen s = {.n = line.n};
    for (unsigned i = 0; i < hooks.n; i++) {
        if (memmem(line.p, line.n, hooks.v[i].literal, strlen(hooks.v[i].literal)) != NULL) {
            s.facts |= hooks.v[i].kind == FR_HOOK_FACT ? 1ull << hooks.v[i].module : 0;
            s.metrics |= hooks.v[i].kind == FR_HOOK_METRIC ? 1ull << hooks.v[i].module : 0;
            s.traces |= hooks.v[i].kind == FR_HOOK_TRACE ? 1u << hooks.v[i].module : 0;
        }
    }
    for (uint32_t i = 0; i < fr_library_builtin()->n_signals && s.n_signals < FR_HIT_SIGNALS; i++) {
        if (naive_signal(i, line)) {
            s.signals[s.n_signals++] = (uint16_t)i;
        }
    }
    return s;
}

static void naive(const struct text *t, bool toggles, seen_list *ret)
{
    uint64_t lineno = 1;
    int mode = FR_SCAN_HITS;
    for (size_t at = 0; at < t->n; lineno++) {
        const char *nl = memchr(t->p + at, '\n', t->n - at);
        const size_t end = nl != NULL ? (size_t)(nl - t->p) : t->n;
        struct seen s = naive_line((fr_sv){t->p + at, end - at});
        s.offset = at;
        s.lineno = lineno;
        s.in_every = mode == FR_SCAN_EVERY;
        if (s.in_every || s.facts || s.metrics || s.traces || s.n_signals) {
            *FR_PUSH(ret) = s;
            mode = toggles ? next_mode(lineno, mode) : mode;
        }
        at = end + 1;
    }
}

/* Scans in chunks cut after random newlines, each in a block of exactly its size, so that a read
 * past it is seen. */
static void scan_in_chunks(struct fr_scanner *s, const struct text *t, uint32_t size,
                           struct collector *c)
{
    uint64_t lineno = 1;
    int mode = FR_SCAN_HITS;
    for (size_t at = 0; at < t->n;) {
        size_t n = size == 0 ? t->n - at : 1 + roll(size);
        n = n > t->n - at ? t->n - at : n;
        const char *nl = memchr(t->p + at + n - 1, '\n', t->n - at - n + 1);
        n = nl != NULL ? (size_t)(nl - t->p) + 1 - at : t->n - at;
        char *copy = malloc(n);
        memcpy(copy, t->p + at, n);
        uint64_t newlines = 0, want = 0;
        mode = fr_scan(s, (fr_sv){copy, n}, at, lineno, mode, collect, c, &newlines);
        T_OK(mode >= 0);
        for (size_t i = 0; i < n; i++) {
            want += copy[i] == '\n';
        }
        T_EQ_INT(newlines, want);
        free(copy);
        lineno += newlines;
        at += n;
    }
}

static void compare(const seen_list *got, const seen_list *want, const struct text *t,
                    const char *what, uint32_t size)
{
    T_EQ_INT(got->n, want->n);
    for (uint32_t i = 0; i < got->n && i < want->n; i++) {
        const struct seen *g = &got->v[i], *w = &want->v[i];
        const bool same = g->offset == w->offset && g->lineno == w->lineno && g->n == w->n &&
                          g->facts == w->facts && g->metrics == w->metrics &&
                          g->traces == w->traces && g->in_every == w->in_every &&
                          g->n_signals == w->n_signals &&
                          memcmp(g->signals, w->signals, g->n_signals * sizeof g->signals[0]) == 0;
        if (!same) {
            T_FAIL("%s, chunks of %u: hit %u: line %llu/%llu, %u/%u signals, facts %llx/%llx, "
                   "metrics %llx/%llx\n  %.*s",
                   what, size, i, (unsigned long long)g->lineno, (unsigned long long)w->lineno,
                   g->n_signals, w->n_signals, (unsigned long long)g->facts,
                   (unsigned long long)w->facts, (unsigned long long)g->metrics,
                   (unsigned long long)w->metrics, (int)(g->n < 400 ? g->n : 400),
                   t->p + g->offset);
            for (uint16_t k = 0; k < g->n_signals || k < w->n_signals; k++) {
                const struct fr_signal *signals = fr_library_builtin()->signals;
                fprintf(stderr, "  got %s, want %s\n",
                        k < g->n_signals ? signals[g->signals[k]].id : "-",
                        k < w->n_signals ? signals[w->signals[k]].id : "-");
            }
            return;
        }
    }
}

static void against_naive(uint32_t lines, bool storm)
{
    static const uint32_t sizes[] = {1, 300, 5000, 100000, 0};
    const struct text t = make_text(lines, storm);
    for (int toggles = 0; toggles < 2; toggles++) {
        seen_list want = {0};
        naive(&t, toggles, &want);
        T_OK(want.n > lines / 10);
        for (int engine = FR_ENGINE_PORTABLE; engine <= FR_ENGINE_AVX512; engine++) {
            struct fr_scanner *s = NULL;
            T_EQ_INT(fr_scanner_new(rules_under_test(), (enum fr_scan_engine)engine, &s, NULL), 0);
            for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
                struct collector c = {.toggles = toggles};
                scan_in_chunks(s, &t, sizes[k], &c);
                compare(&c.list, &want, &t, fr_scanner_engine(s), sizes[k]);
                fr_vec_free(c.list.v);
            }
            fr_scanner_free(&s);
        }
        fr_vec_free(want.v);
    }
    free(t.p);
}

T_TEST(same_hits_as_a_naive_search)
{
    against_naive(4000, false);
}

T_TEST(same_hits_in_a_storm)
{
    against_naive(600, true);
}

/* ---- small things ---- */

static void hits_in(fr_sv text, struct collector *c)
{
    struct fr_scanner *s = NULL;
    T_EQ_INT(fr_scanner_new(rules_under_test(), FR_ENGINE_AUTO, &s, NULL), 0);
    T_OK(fr_scan(s, text, 1000, 1, c->mode, collect, c, NULL) >= 0);
    fr_scanner_free(&s);
}

T_TEST(edges_of_a_chunk)
{
    struct collector c = {.mode = FR_SCAN_HITS};
    hits_in(FR_SV(""), &c);
    hits_in(FR_SV("\n"), &c);
    hits_in(FR_SV("loss"), &c);
    T_EQ_INT(c.list.n, 0);
    hits_in(FR_SV("loss "), &c);
    T_EQ_INT(c.list.n, 1);
    T_EQ_INT(c.list.v[0].offset, 1000);
    hits_in(FR_SV("lo\nss \n\nloss "), &c);
    T_EQ_INT(c.list.n, 2);
    T_EQ_INT(c.list.v[1].lineno, 4);
    T_EQ_INT(c.list.v[1].offset, 1008);
    T_EQ_INT(c.list.v[1].n, 5);
    fr_vec_free(c.list.v);
}

T_TEST(every_line_includes_empty_ones)
{
    struct collector c = {.mode = FR_SCAN_EVERY};
    hits_in(FR_SV("a\n\nloss \n\n\nb"), &c);
    T_EQ_INT(c.list.n, 6);
    for (uint32_t i = 0; i < c.list.n; i++) {
        T_EQ_INT(c.list.v[i].lineno, i + 1);
        T_OK(c.list.v[i].in_every);
        T_EQ_INT(c.list.v[i].metrics != 0, i == 2);
    }
    fr_vec_free(c.list.v);
}

static int stop(void *ctx, const struct fr_hit *hit)
{
    (void)hit;
    ++*(int *)ctx;
    return -7;
}

T_TEST(a_negative_answer_stops_the_scan)
{
    struct fr_scanner *s = NULL;
    int calls = 0;
    T_EQ_INT(fr_scanner_new(rules_under_test(), FR_ENGINE_AUTO, &s, NULL), 0);
    T_EQ_INT(fr_scan(s, FR_SV("loss \nloss \n"), 0, 1, FR_SCAN_HITS, stop, &calls, NULL), -7);
    T_EQ_INT(calls, 1);
    T_EQ_INT(fr_scan(s, FR_SV("a\nb\n"), 0, 1, FR_SCAN_EVERY, stop, &calls, NULL), -7);
    T_EQ_INT(calls, 2);
    fr_scanner_free(&s);
}

T_TEST(captures_are_values)
{
    const struct fr_rules *rules = NULL;
    struct fr_scanner *s = NULL;
    struct fr_cap caps[8];
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, FR_ENGINE_AUTO, &s, NULL), 0);
    const struct fr_library *lib = rules->library;
    const struct fr_failure *f = &lib->failures[fr_library_find(lib, FR_SV("host-oom-killer"))];
    const fr_sv line = fr_sv_z(lib->signals[f->first_signal].yes[0]);
    T_EQ_INT(fr_scan_fires(s, f->first_signal, line), 1);
    T_EQ_INT(fr_scan_captures(s, f->first_signal, line, caps, 8), 3);
    T_EQ_INT(caps[0].key, FR_KEY_PID);
    T_OK(caps[0].is_num);
    T_EQ_INT(caps[0].num, 40122);
    T_EQ_SV(caps[1].text, FR_SV("python"));
    T_EQ_INT(caps[2].key, FR_KEY_OTHER);
    T_EQ_SV(caps[2].name, FR_SV("rss"));
    T_OK(!caps[2].is_num);
    T_EQ_INT(fr_scan_captures(s, f->first_signal, line, caps, 1), 1);
    T_EQ_INT(fr_scan_captures(s, f->first_signal, FR_SV("nothing here"), caps, 8), 0);
    fr_scanner_free(&s);
}

/* ---- the cache of a user's rules ---- */

static struct fr_library two_signals(void)
{
    static const char *const literals[] = {"boiler", NULL}, *const none[] = {NULL};
    static struct fr_signal signals[2];
    static struct fr_failure failure;
    failure = *fr_library_builtin()->failures;
    failure.first_signal = 0;
    failure.n_signals = 2;
    signals[0] = (struct fr_signal){.id = "a",
                                    .literals = literals,
                                    .regex = "boiler \\d",
                                    .metric = -1,
                                    .yes = none,
                                    .no = none};
    signals[1] = signals[0];
    signals[1].regex = "(?i)DRY boiler";
    return (struct fr_library){&failure, 1, signals, 2};
}

static void compile_and_try(const struct fr_library *lib, const char *dir)
{
    struct fr_rules *rules = NULL;
    struct fr_scanner *s = NULL;
    T_EQ_INT(fr_rules_compile(lib, (struct fr_hooks){NULL, 0}, dir, &rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, FR_ENGINE_AUTO, &s, NULL), 0);
    T_EQ_INT(fr_scan_fires(s, 0, FR_SV("the boiler 7")), 1);
    T_EQ_INT(fr_scan_fires(s, 0, FR_SV("the boiler x")), 0);
    T_EQ_INT(fr_scan_fires(s, 1, FR_SV("dry boiler")), 1);
    fr_scanner_free(&s);
    fr_rules_free(&rules);
    T_OK(rules == NULL);
}

static int only_file(const char *dir, char *path, size_t size)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", dir, e->d_name);
            n++;
        }
    }
    closedir(d);
    return n;
}

T_TEST(a_users_rules_are_cached_and_bad_caches_ignored)
{
    char dir[] = "/tmp/fr-test-XXXXXX", path[512];
    const struct fr_library lib = two_signals();
    T_OK(mkdtemp(dir) != NULL);
    compile_and_try(&lib, dir);
    T_EQ_INT(only_file(dir, path, sizeof path), 1);
    compile_and_try(&lib, dir);
    T_EQ_INT(only_file(dir, path, sizeof path), 1);
    struct stat st;
    T_EQ_INT(stat(path, &st), 0);
    for (long cut = 0; cut < st.st_size; cut += 97) { /* any byte damaged, any length */
        FILE *f = fopen(path, "r+");
        fseek(f, cut, SEEK_SET);
        fputc(fgetc(f) ^ 0x40, f);
        fclose(f);
        compile_and_try(&lib, dir); /* writes a good one again */
        T_EQ_INT(truncate(path, cut), 0);
        compile_and_try(&lib, dir);
        cut += 4000;
    }
    compile_and_try(&lib, "/nonexistent/folder");
    unlink(path);
    rmdir(dir);
    struct fr_library bad = two_signals();
    struct fr_signal broken = bad.signals[0];
    broken.regex = "boiler (";
    bad.signals = &broken;
    bad.n_signals = 1;
    struct fr_rules *rules = NULL;
    struct fr_err err = {0};
    T_EQ_INT(fr_rules_compile(&bad, (struct fr_hooks){NULL, 0}, NULL, &rules, &err), -FR_SYNTAX);
    T_OK(rules == NULL && strstr(err.msg, "signal 'a': regex: ") != NULL);
}

/* ---- memory that ends ---- */

static int take(void *ctx, const struct fr_hit *hit)
{
    struct fr_cap caps[4];
    (void)hit;
    fr_scan_captures(ctx, 0, hit->line, caps, 4);
    return FR_SCAN_HITS;
}

static int whole_life(const struct fr_library *lib)
{
    struct fr_rules *rules = NULL;
    struct fr_scanner *s = NULL;
    int rc = fr_rules_compile(lib, hooks, NULL, &rules, NULL);
    rc = rc < 0 ? rc : fr_scanner_new(rules, FR_ENGINE_AUTO, &s, NULL);
    rc = rc < 0 ? rc : fr_scan(s, FR_SV("dry boiler 7\n"), 0, 1, FR_SCAN_HITS, take, s, NULL);
    fr_scanner_free(&s);
    fr_rules_free(&rules);
    return rc;
}

T_TEST(every_failed_allocation_is_an_error_and_no_leak)
{
    struct fr_library lib = two_signals();
    static const struct fr_capture_def capture = {"size", "(\\d)"};
    struct fr_signal signals[2] = {lib.signals[0], lib.signals[1]};
    signals[0].captures = &capture;
    signals[0].n_captures = 1;
    lib.signals = signals;
    long n = 0;
    for (int rc = -1; rc < 0 && n < 2000; n++) {
        fr_alloc_fail_after(n);
        rc = whole_life(&lib);
        fr_alloc_fail_after(-1);
        T_OK(rc >= 0 || rc == -FR_NOMEM);
    }
    T_OK(n > 20 && n < 2000);
}

int main(void)
{
    const int rc = t_run();
    struct fr_rules *rules = (struct fr_rules *)(uintptr_t)rules_under_test();
    fr_rules_free(&rules);
    return rc;
}
