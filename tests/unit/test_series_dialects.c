/* SPDX-License-Identifier: Apache-2.0 */
/* Every dialect reads its own samples, and only them; the gate literals occur on every line that
 * must be read. */
#include <math.h>

#include "base/buf.h"
#include "series/num.h"
#include "series/series.h"
#include "support/t.h"

static void print_metrics(struct fr_buf *b, uint32_t bits, const struct fr_point *p)
{
    for (int m = 0; m < FR_METRIC_COUNT_; m++) {
        if ((bits >> m & 1) != 0) {
            fr_buf_printf(b, " %s=%.10g", fr_metric_name((enum fr_metric)m),
                          fabs(p->value[m]) * (p->value[m] < 0 ? -1 : 1));
        }
    }
}

/* "step=10 max=100 epoch=1 batch=16 loss=2.5 ... missing=loss overflow from=8 minimum rl bar":
 * the samples' language. */
static void describe(struct fr_buf *b, const struct fr_point *p)
{
    if (p->step >= 0) {
        fr_buf_printf(b, " step=%lld", (long long)p->step);
    }
    if (p->max_step >= 0) {
        fr_buf_printf(b, " max=%lld", (long long)p->max_step);
    }
    if (!isnan(p->epoch)) {
        fr_buf_printf(b, " epoch=%.10g", p->epoch);
    }
    if (p->global_batch >= 0) {
        fr_buf_printf(b, " batch=%lld", (long long)p->global_batch);
    }
    print_metrics(b, p->present, p);
    for (int m = 0; m < FR_METRIC_COUNT_; m++) {
        if ((p->missing >> m & 1) != 0) {
            fr_buf_printf(b, " missing=%s", fr_metric_name((enum fr_metric)m));
        }
    }
    static const struct {
        unsigned bit;
        const char *word;
    } flags[] = {
        {FR_POINT_OVERFLOW, " overflow"}, {FR_POINT_AT_MINIMUM, " minimum"}, {FR_POINT_RL, " rl"},
        {FR_POINT_BAR, " bar"},           {FR_POINT_EPOCH, " epoch-end"},   {FR_POINT_SAID, " said"},
                  {FR_POINT_HEADER, " header"},
    };
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++) {
        if ((p->flags & flags[i].bit) != 0) {
            fr_buf_addz(b, flags[i].word);
        }
    }
    if (!isnan(p->attempted)) {
        fr_buf_printf(b, " from=%.10g", p->attempted);
    }
    if (!isnan(p->best)) {
        fr_buf_printf(b, " best=%.10g", p->best);
    }
}

static bool has_literal(const struct fr_dialect *d, fr_sv line)
{
    for (const char *const *l = d->literals; *l != NULL; l++) {
        if (fr_sv_has(line, fr_sv_z(*l))) {
            return true;
        }
    }
    return false;
}

static uint64_t gate(fr_sv line)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        bits |= (uint64_t)has_literal(fr_dialects[i], line) << i;
    }
    return bits;
}

T_TEST(samples)
{
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        const struct fr_dialect *d = fr_dialects[i];
        for (const struct fr_dialect_sample *s = d->samples; s->line != NULL; s++) {
            fr_sv line = fr_sv_z(s->line);
            struct fr_point p;
            FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
            bool ok = fr_point_parse(line, gate(line) & (~0ull >> (63 - i)), &p);
            t_checks_++;
            if (*s->expect == '\0') {
                if (ok && p.dialect == i) {
                    T_FAIL("%s: took '%s'", d->name, s->line);
                }
                continue;
            }
            if (!has_literal(d, line)) {
                T_FAIL("%s: no gate literal on '%s'", d->name, s->line);
            }
            if (!ok || p.dialect != i) {
                T_FAIL("%s: %s read '%s'", d->name, ok ? fr_dialects[p.dialect]->name : "nobody",
                       s->line);
                continue;
            }
            describe(&got, &p);
            fr_sv text = fr_buf_sv(&got);
            T_EQ_SV(fr_sv_skip(text, text.n != 0), fr_sv_z(s->expect));
        }
    }
}

/* Cut anywhere, a line never makes a parser read outside it (the copy ends where the line ends,
 * so ASan sees it). */
T_TEST(truncated_lines)
{
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        for (const struct fr_dialect_sample *s = fr_dialects[i]->samples; s->line != NULL; s++) {
            for (size_t n = 0; n <= strlen(s->line); n++) {
                char *copy = malloc(n + 1);
                memcpy(copy, s->line, n);
                char *exact = realloc(copy, n != 0 ? n : 1);
                struct fr_point p;
                fr_point_parse((fr_sv){exact, n}, ~0ull, &p);
                free(exact);
            }
        }
    }
    T_OK(fr_dialects_count <= 64);
}

T_TEST(literals_are_long_enough)
{
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        for (const char *const *l = fr_dialects[i]->literals; *l != NULL; l++) {
            T_OK(strlen(*l) >= 4);
        }
    }
}

static uint64_t rnd_state = 0x9e3779b97f4a7c15u;
static uint64_t rnd(void)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;
    return rnd_state;
}

T_TEST(numbers_like_strtod)
{
    static const struct {
        int digits;
        char how;
    } forms[] = {{0, 'f'}, {3, 'f'}, {6, 'f'}, {4, 'e'}, {17, 'g'}, {9, 'g'}, {12, 'f'}};
    for (int i = 0; i < 200000; i++) {
        char text[400];
        double x = (double)(rnd() >> 11) / (double)(1 << 20) * (rnd() % 2 ? 1e-6 : 1.0) /
                   (double)(1 + rnd() % 1000);
        x = rnd() % 5 == 0 ? -x : x;
        int k = (int)(rnd() % 7), d = forms[k].digits;
        snprintf(text, sizeof text,
                 forms[k].how == 'f'   ? "%.*f"
                 : forms[k].how == 'e' ? "%.*e"
                                       : "%.*g",
                 d, x);
        const char *p = text, *e = text + strlen(text);
        double got, want = strtod(text, NULL);
        bool ok = fr_num(&p, e, &got);
        if (!ok || p != e ||
            got != want) { /* long double rounds once more: a last-bit difference is allowed */
            if (!ok || p != e || fabs(got - want) > fabs(want) * 2.3e-16) {
                T_FAIL("'%s': got %.17g, want %.17g", text, got, want);
            }
        }
        t_checks_++;
    }
}

T_TEST(odd_numbers)
{
    static const struct {
        const char *text;
        double v;
        size_t used;
        bool grouped;
    } rows[] = {
        {"nan", NAN, 3, false},
        {"-inf,", -INFINITY, 4, false},
        {"Infinity ", INFINITY, 8, false},
        {"NaN}", NAN, 3, false},
        {"1.5e-310", 1.5e-310, 8, false},
        {"7,282 ", 7282, 5, true},
        {"7,282", 7, 1, false},
        {"1,234,567.5", 1234567.5, 11, true},
        {".5", 0.5, 2, false},
        {"12345678901234567890123", 12345678901234567890123.0, 23, false},
        {"3e", 3, 1, false},
        {"5.", 5, 2, false},
        {"1e400", INFINITY, 5, false},
        {"0.10000000000000000000000001", 0.1, 28, false},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *p = rows[i].text, *e = p + strlen(p);
        double v = 0;
        bool ok = rows[i].grouped ? fr_num_grouped(&p, e, &v) : fr_num(&p, e, &v);
        if (!ok || (size_t)(p - rows[i].text) != rows[i].used ||
            !(v == rows[i].v || (isnan(v) && isnan(rows[i].v)))) {
            T_FAIL("'%s': ok %d, %.17g, used %zu", rows[i].text, ok, v, (size_t)(p - rows[i].text));
        }
        t_checks_++;
    }
    static const char *const none[] = {"", "-", ".", "nano", "info", "abc", "--1", "e5"};
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++) {
        const char *p = none[i];
        double v;
        T_OK(!fr_num(&p, p + strlen(p), &v) && p == none[i]);
    }
}

int main(void)
{
    return t_run();
}
