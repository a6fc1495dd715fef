/* SPDX-License-Identifier: Apache-2.0 */
/* Every line through every dialect on its own and through all at once, and what they read through the detectors. */
#include <stdlib.h>

#include "base/arena.h"
#include "series/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct fr_series *s, fr_sv line, uint64_t no)
{
    struct fr_who who = FR_WHO_NONE;
    struct fr_when when = FR_WHEN_NONE;
    struct fr_point p;
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        fr_point_parse(line, 1ull << i, &p);
    }
    if (fr_point_parse(line, ~0ull, &p)) {
        who.rank = (int32_t)(no % 3);
        fr_series_add(s, &p, &who, &when, no, no * 10, line);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_series *s;
    if (fr_series_new(&s) != 0) {
        return 0;
    }
    uint64_t no = 0;
    for (size_t i = 0; i < size;) {
        const uint8_t *nl = memchr(data + i, '\n', size - i);
        size_t n = nl != NULL ? (size_t)(nl - (data + i)) : size - i;
        char *exact = malloc(n != 0 ? n : 1); /* its own block, so that a read past the line is seen */
        memcpy(exact, data + i, n);
        feed(s, (fr_sv){exact, n}, ++no);
        free(exact);
        i += n + 1;
    }
    struct fr_arena arena = FR_ARENA_INIT(1 << 20);
    fr_findings found = {0};
    fr_series_finish(s, &arena, &found);
    fr_vec_free(found.v);
    fr_arena_release(&arena);
    fr_series_free(&s);
    return 0;
}
