/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "model/evidence.h"
#include "support/t.h"

#include <math.h>

T_TEST(views_compare_naturally)
{
    T_OK(fr_sv_cmp_natural(FR_SV("rank2.log"), FR_SV("rank10.log")) < 0);
    T_OK(fr_sv_cmp_natural(FR_SV("rank02"), FR_SV("rank2")) != 0);
    T_OK(fr_sv_cmp_natural(FR_SV("a"), FR_SV("a1")) < 0);
    T_EQ_INT(fr_sv_cmp_natural(FR_SV("x9y"), FR_SV("x9y")), 0);
}

T_TEST(a_view_of_nothing)
{
    T_OK(fr_sv_skip(FR_SV_NONE, 3).p == NULL && fr_sv_skip(FR_SV_NONE, 3).n == 0);
    T_OK(fr_sv_starts(FR_SV_NONE, FR_SV("")) && !fr_sv_starts(FR_SV_NONE, FR_SV("a")));
    T_OK(fr_sv_ends(FR_SV_NONE, FR_SV("")) && !fr_sv_ends(FR_SV_NONE, FR_SV("a")));
    fr_sv rest = fr_sv_skip(FR_SV("abc"), 7);
    T_OK(rest.n == 0 && rest.p != NULL);
}

T_TEST(numbers_are_taken_whole_or_not_at_all)
{
    static const struct { const char *text; bool ok; double want; size_t left; } rows[] = {
        {"1.5e-3|", true, 1.5e-3, 1}, {"-12", true, -12, 0},      {"1,234.5 x", true, 1234.5, 2}, {"1,2", true, 1, 2},
        {"nan,", true, NAN, 1},       {"-inf", true, -INFINITY, 0}, {"nano", false, 0, 4},          {".", false, 0, 1},
        {"2e", true, 2, 1},           {"", false, 0, 0},          {"Infinity", true, INFINITY, 0}, {"1,234,567", true, 1234567, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fr_sv s = fr_sv_z(rows[i].text);
        double got = -1;
        T_EQ_INT(fr_sv_take_double(&s, &got), rows[i].ok);
        T_EQ_INT(s.n, rows[i].left);
        if (rows[i].ok) {
            T_OK(isnan(rows[i].want) ? isnan(got) : got == rows[i].want);
        }
    }
    fr_sv big = FR_SV("18446744073709551615x"), over = FR_SV("18446744073709551616");
    uint64_t u = 0;
    T_OK(fr_sv_take_u64(&big, &u) && u == UINT64_MAX && big.n == 1);
    T_OK(!fr_sv_take_u64(&over, &u));
}

T_TEST(words_are_found_where_memmem_finds_them)
{
    char text[80];
    uint32_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        const size_t n = (size_t)round % sizeof text, m = 1 + (size_t)round % 7;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = "ab"[seed >> 31];
        }
        char *copy = malloc(n + m); /* of exactly its size: a read past its end is seen */
        memcpy(copy + m, text, n);
        memcpy(copy, text + (n > 9 ? n - 9 : 0), n > 9 ? m : 0);
        const fr_sv s = {copy + m, n}, what = {n > 9 ? copy : "abababa", m};
        const char *at = memmem(s.p, s.n, what.p, what.n);
        T_EQ_INT(fr_sv_find(s, what), at != NULL ? (size_t)(at - s.p) : FR_NPOS);
        free(copy);
    }
}

T_TEST(civil_time_goes_both_ways)
{
    struct fr_civil c = {.year = 2024, .month = 2, .day = 29, .hour = 23, .minute = 59, .second = 59, .nanos = 5}, back;
    int64_t ns = fr_time_from_civil(&c);
    T_EQ_INT(ns, 1709251199LL * FR_NS_PER_S + 5);
    fr_time_to_civil(ns, &back);
    T_OK(back.year == 2024 && back.month == 2 && back.day == 29 && back.second == 59 && back.nanos == 5);
    c.year = 2023;
    T_EQ_INT(fr_time_from_civil(&c), FR_TIME_NONE);
    c = (struct fr_civil){.year = 2026, .month = 1, .day = 1, .zone_s = 3600, .has_zone = true};
    T_EQ_INT(fr_time_from_civil(&c), (1767225600LL - 3600) * FR_NS_PER_S);
    char iso[40];
    T_EQ_INT(fr_time_iso(1709251199LL * FR_NS_PER_S + 250000000, 3, iso), 23);
    T_EQ_STR(iso, "2024-02-29T23:59:59.250");
}

T_TEST(cleaned_text_is_inert)
{
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    fr_utf8_clean(&b, FR_SV("a\x1b[31mb\x1b]0;title\x07" "c\xff\xe2\x80\xae" "d\te^[[1;36mf\n"), 0);
    T_EQ_SV(fr_buf_sv(&b), FR_SV("abc\xef\xbf\xbd" "d\tef "));
    fr_buf_clear(&b);
    fr_utf8_clean(&b, FR_SV("\xe2\x82\xac\xe2\x82\xac"), 4);
    T_EQ_SV(fr_buf_sv(&b), FR_SV("\xe2\x82\xac..."));
    fr_buf_clear(&b);
    fr_utf8_from_utf16(&b, FR_SV("a\0\x3d\xd8\x00\xde\x00\xd8"), false);
    T_EQ_SV(fr_buf_sv(&b), FR_SV("a\xf0\x9f\x98\x80\xef\xbf\xbd"));
    T_OK(!fr_utf8_valid(FR_SV("\xc0\x80")) && !fr_utf8_valid(FR_SV("\xed\xa0\x80")) && fr_utf8_valid(FR_SV("\xf0\x9f\x98\x80")));
}

T_TEST(buffers_fail_softly_at_their_limit)
{
    FR_AUTO(fr_buf) b = FR_BUF_INIT(5);
    fr_buf_addz(&b, "abc");
    fr_buf_addz(&b, "defg");
    T_OK(!fr_buf_ok(&b));
    T_EQ_SV(fr_buf_sv(&b), FR_SV("abc"));
}

T_TEST(maps_keep_insertion_order)
{
    struct fr_arena a = FR_ARENA_INIT(0);
    struct fr_map m;
    fr_map_init(&m, &a);
    for (uint32_t i = 0; i < 1000; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", 999 - i);
        T_OK(fr_map_put(&m, fr_sv_z(key), i));
    }
    uint32_t v = 0;
    T_OK(fr_map_get(&m, FR_SV("k0"), &v) && v == 999);
    T_EQ_SV(fr_map_key(&m, 0), FR_SV("k999"));
    T_OK(!fr_map_get(&m, FR_SV("k1000"), &v));
    fr_arena_release(&a);
}

T_TEST(no_memory_is_an_answer)
{
    struct fr_arena a = FR_ARENA_INIT(0), small = FR_ARENA_INIT(64);
    fr_alloc_fail_after(0);
    T_OK(fr_arena_alloc(&a, 8) == NULL);
    fr_alloc_fail_after(-1);
    T_OK(fr_arena_alloc(&small, 48) != NULL && fr_arena_alloc(&small, 48) == NULL);
    fr_arena_release(&a);
    fr_arena_release(&small);
    struct fr_err err = {0};
    T_EQ_INT(fr_err_set(&err, FR_IO, "cannot read '%s'", "x"), -FR_IO);
    T_EQ_STR(err.msg, "cannot read 'x'");
}

static struct fr_source_evidence *summary(const char *name, uint64_t bytes)
{
    struct fr_source_evidence *s = fr_calloc(1, sizeof *s);
    s->name = fr_arena_dup(&s->arena, fr_sv_z(name));
    s->bytes = bytes;
    *(struct fr_event *)FR_PUSH(&s->events) = (struct fr_event){.line = bytes};
    return s;
}

static void add(struct fr_evidence_set *set, const char *name, uint64_t bytes)
{
    *(struct fr_source_evidence **)FR_PUSH(&set->sources) = summary(name, bytes);
}

T_TEST(evidence_merges_in_any_order)
{
    struct fr_evidence_set x = {0}, y = {0}, p = {0}, q = {0};
    add(&x, "rank10.log", 5), add(&x, "rank2.log", 7), add(&y, "rank2.log", 9), add(&y, "rank1.log", 1);
    add(&q, "rank10.log", 5), add(&q, "rank2.log", 7), add(&p, "rank2.log", 9), add(&p, "rank1.log", 1);
    T_EQ_INT(fr_evidence_merge(&x, &y), 0);
    T_EQ_INT(fr_evidence_merge(&p, &q), 0);
    T_EQ_INT(x.sources.n, 3);
    T_EQ_INT(p.sources.n, 3);
    for (uint32_t i = 0; i < 3; i++) {
        T_EQ_SV(x.sources.v[i]->name, p.sources.v[i]->name);
        T_EQ_INT(x.sources.v[i]->bytes, p.sources.v[i]->bytes);
        T_EQ_INT(x.sources.v[i]->events.v[0].source, i);
    }
    T_EQ_SV(x.sources.v[1]->name, FR_SV("rank2.log"));
    T_EQ_INT(x.sources.v[1]->bytes, 9);
    fr_evidence_set_release(&x), fr_evidence_set_release(&y), fr_evidence_set_release(&p), fr_evidence_set_release(&q);
}

int main(void)
{
    return t_run();
}
