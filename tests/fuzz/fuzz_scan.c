/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes: the same hits from every engine and for chunks cut after any newline; captures of
 * whatever fires. The first byte says where chunks are cut and which lines ask for all that follow.
 */
#include "match/scan.h"

#include <stdlib.h>

struct sum {
    struct fr_scanner *s;
    uint64_t hash, hits;
    uint8_t pattern;
};

static int add(void *ctx, const struct fr_hit *hit)
{
    struct sum *sum = ctx;
    const uint64_t parts[] = {hit->offset,    hit->lineno,   hit->line.n,
                              hit->facts,     hit->metrics,  hit->traces,
                              hit->n_signals, hit->in_every, fr_sv_hash(hit->line)};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        sum->hash = (sum->hash ^ parts[i]) * 0x100000001b3ull;
    }
    for (uint16_t i = 0; i < hit->n_signals; i++) {
        struct fr_cap caps[16];
        const int n = fr_scan_captures(sum->s, hit->signals[i], hit->line, caps, 16);
        for (int k = 0; k < n; k++) {
            sum->hash = (sum->hash ^ fr_sv_hash(caps[k].text)) * 0x100000001b3ull;
        }
        sum->hash = (sum->hash ^ hit->signals[i]) * 0x100000001b3ull;
    }
    sum->hits++;
    return (hit->lineno & (sum->pattern & 7)) == 1 ? FR_SCAN_EVERY : FR_SCAN_HITS;
}

static struct sum scan(const struct fr_rules *rules, enum fr_scan_engine engine, fr_sv text,
                       uint8_t pattern, bool cut)
{
    struct sum sum = {.pattern = pattern};
    uint64_t line = 1;
    int mode = FR_SCAN_HITS;
    if (fr_scanner_new(rules, engine, &sum.s, NULL) < 0) {
        abort();
    }
    for (size_t at = 0; at < text.n && mode >= 0;) {
        const size_t least = cut ? (size_t)pattern * 7 % 300 : text.n;
        const char *from = text.p + at, *end = text.p + text.n;
        const char *nl = (size_t)(end - from) > least
                             ? memchr(from + least, '\n', (size_t)(end - from) - least)
                             : NULL;
        const size_t n = nl != NULL ? (size_t)(nl + 1 - from) : (size_t)(end - from);
        uint64_t newlines = 0;
        mode = fr_scan(sum.s, (fr_sv){from, n}, at, line, mode, add, &sum, &newlines);
        line += newlines;
        at += n;
    }
    fr_scanner_free(&sum.s);
    if (mode < 0) {
        abort();
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fr_rules *rules = NULL;
    if (size == 0 || fr_rules_builtin(&rules, NULL) < 0) {
        return 0;
    }
    const fr_sv text = {(const char *)data + 1, size - 1};
    const struct sum want = scan(rules, FR_ENGINE_PORTABLE, text, data[0], false);
    for (int engine = FR_ENGINE_PORTABLE; engine <= FR_ENGINE_AVX512; engine++) {
        const struct sum got = scan(rules, (enum fr_scan_engine)engine, text, data[0], true);
        if (got.hash != want.hash || got.hits != want.hits) {
            abort();
        }
    }
    return 0;
}
