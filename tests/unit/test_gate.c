/* SPDX-License-Identifier: Apache-2.0 */
/* Every gate against the portable one, place by place. The AVX-512 gate runs here on any x86-64:
 * its own file is compiled over plain C stand-ins for the intrinsics it uses, because most machines
 * that build this have no AVX-512. */
#include "match/rules.h"
#include "support/t.h"

#include <smmintrin.h>

#define _IMMINTRIN_H_INCLUDED /* gcc: keeps the real header out of gate_avx512.c */
#define __IMMINTRIN_H         /* clang */

struct wide {
    uint8_t b[64];
};
#define __m512i struct wide

static uint32_t lane(struct wide v, int i)
{
    uint32_t x;
    memcpy(&x, v.b + 4 * i, 4);
    return x;
}

static struct wide set_lane(struct wide v, int i, uint32_t x)
{
    memcpy(v.b + 4 * i, &x, 4);
    return v;
}

#define EACH_LANE(expr)                       \
    struct wide r = {{0}};                    \
    for (int i = 0; i < 16; i++) {            \
        r = set_lane(r, i, (uint32_t)(expr)); \
    }                                         \
    return r

static struct wide _mm512_loadu_si512(const void *p)
{
    struct wide r;
    memcpy(&r, p, 64);
    return r;
}

static void _mm512_store_si512(void *p, struct wide v)
{
    memcpy(p, &v, 64);
}

static void _mm512_storeu_si512(void *p, struct wide v)
{
    memcpy(p, &v, 64);
}

static struct wide _mm512_set1_epi8(char c)
{
    struct wide r;
    memset(&r, c, 64);
    return r;
}

static struct wide _mm512_set1_epi32(int x)
{
    EACH_LANE(x);
}

static struct wide _mm512_and_si512(struct wide a, struct wide b)
{
    EACH_LANE(lane(a, i) & lane(b, i));
}

static struct wide _mm512_add_epi32(struct wide a, struct wide b)
{
    EACH_LANE(lane(a, i) + lane(b, i));
}

static struct wide _mm512_maskz_compress_epi32(uint16_t mask, struct wide a)
{
    struct wide r = {{0}};
    for (int i = 0, n = 0; i < 16; i++) {
        if (mask >> i & 1) {
            r = set_lane(r, n++, lane(a, i));
        }
    }
    return r;
}

static struct wide _mm512_mullo_epi32(struct wide a, struct wide b)
{
    EACH_LANE(lane(a, i) * lane(b, i));
}

static struct wide _mm512_srli_epi32(struct wide a, unsigned n)
{
    EACH_LANE(lane(a, i) >> n);
}

static struct wide _mm512_sllv_epi32(struct wide a, struct wide n)
{
    EACH_LANE(lane(n, i) > 31 ? 0 : lane(a, i) << lane(n, i));
}

static struct wide _mm512_cvtepu8_epi32(__m128i bytes)
{
    uint8_t b[16];
    memcpy(b, &bytes, 16);
    EACH_LANE(b[i]);
}

static uint64_t _mm512_cmpeq_epi8_mask(struct wide a, struct wide b)
{
    uint64_t r = 0;
    for (int i = 0; i < 64; i++) {
        r |= (uint64_t)(a.b[i] == b.b[i]) << i;
    }
    return r;
}

static uint16_t _mm512_test_epi32_mask(struct wide a, struct wide b)
{
    uint16_t r = 0;
    for (int i = 0; i < 16; i++) {
        r |= (uint16_t)(((lane(a, i) & lane(b, i)) != 0) << i);
    }
    return r;
}

#define fr_gate_avx512 emulated_avx512
void emulated_avx512(const struct fr_gate *g, struct fr_gate_run *run);
#include "match/gate_avx512.c"
#undef fr_gate_avx512

/* ---- the comparison ---- */

static uint64_t seed = 77;

static uint32_t roll(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed >> 11) % below);
}

struct cand {
    uint32_t at, lines; /* newlines before it */
};

struct all {
    struct cand *v;
    uint32_t n;
    uint32_t lines;
};

static struct all run_gate(fr_gate_fn fn, const struct fr_gate *g, const uint8_t *p, size_t n)
{
    static struct fr_gate_run run;
    struct all a = {malloc((n / 4 + 2) * sizeof(struct cand)), 0, 0};
    run.p = p;
    run.n = run.upto = n;
    run.at = 0;
    run.lines = 0;
    while (run.at < n) {
        const size_t before = run.at;
        fn(g, &run);
        T_OK(run.at > before && run.n_cands <= FR_GATE_CANDS);
        for (uint32_t i = 0; i < run.n_cands; i++) {
            a.v[a.n++] = (struct cand){run.cands[i], fr_gate_lines(&run, run.cands[i])};
        }
    }
    a.lines = run.lines;
    return a;
}

static void compare(fr_gate_fn fn, const char *name, const struct fr_gate *g, const uint8_t *p,
                    size_t n)
{
    struct all want = {malloc((n / 4 + 2) * sizeof(struct cand)), 0,
                       0}; /* the definition, place by place */
    for (size_t i = 0; i < n; i++) {
        if (i % FR_GATE_STRIDE == 0 && fr_gate_has(g, fr_key_at(p, n, i), i + 4 < n ? p[i + 4] : 0)) {
            want.v[want.n++] = (struct cand){(uint32_t)i, want.lines};
        }
        want.lines += p[i] == '\n';
    }
    const struct all got = run_gate(fn, g, p, n);
    if (got.n != want.n || got.lines != want.lines ||
        memcmp(got.v, want.v, got.n * sizeof got.v[0]) != 0) {
        T_FAIL("%s, %zu bytes: %u places and %u lines, want %u and %u", name, n, got.n, got.lines,
               want.n, want.lines);
    }
    free(want.v);
    free(got.v);
}

/* Text of a few letters and newlines, in a block of exactly its size. */
static uint8_t *make_text(size_t n, bool wide)
{
    static const char letters[] = "loss:errn \n\n=0";
    uint8_t *p = malloc(n + 1);
    p = realloc(p, n > 0 ? n : 1);
    for (size_t i = 0; i < n; i++) {
        p[i] = wide ? (uint8_t)roll(256) : (uint8_t)letters[roll(sizeof letters - 1)];
    }
    return p;
}

static void sweep(fr_gate_fn fn, const char *name)
{
    const struct fr_rules *rules = NULL;
    static struct fr_gate dense, all;
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    memset(&all, 0xff, sizeof all);
    for (size_t i = 0; i < sizeof dense.next; i++) {
        dense.next[i] = roll(3) == 0 ? (uint8_t)roll(256) : 0;
    }
    const struct fr_gate *const gates[] = {rules->gate, &dense, &all};
    for (size_t n = 0; n < 420; n++) {
        uint8_t *p = make_text(n, n % 2);
        for (int k = 0; k < 3; k++) {
            compare(fn, name, gates[k], p, n);
        }
        free(p);
    }
    for (int round = 0; round < 20; round++) {
        const size_t n = 4000 + roll(30000);
        uint8_t *p = make_text(n, round % 2);
        compare(fn, name, gates[round % 3], p, n);
        free(p);
    }
}

T_TEST(every_gate_finds_the_same_places)
{
    for (unsigned i = 0; i < fr_gate_engines_count; i++) {
        if (fr_gate_engines[i].works()) {
            sweep(fr_gate_engines[i].fn, fr_gate_engines[i].name);
        }
    }
}

T_TEST(the_avx512_gate_does_too)
{
    sweep(emulated_avx512, "avx512, emulated");
}

int main(void)
{
    return t_run();
}
