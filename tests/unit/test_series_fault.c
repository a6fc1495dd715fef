/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a series fails once: it says so at the end, leaks nothing and goes on
 * as far as it can. */
#include "base/alloc.h"
#include "unit/series_run.h"

static void one_of_all(struct fr_series *s)
{
    struct fr_when when = FR_WHEN_NONE;
    for (int i = 0; i < 60; i++) {
        struct fr_who who = FR_WHO_NONE;
        who.rank = i % 5;
        struct fr_point p = point(i / 5);
        p.dialect = (uint8_t)(i % 2);
        for (int m = 0; m < FR_METRIC_COUNT_; m++) {
            set(&p, (enum fr_metric)m, i < 40 ? 2.0 + i % 3 : m % 2 ? NAN : 900.0);
        }
        fr_series_add(s, &p, &who, &when, (uint64_t)i + 1, (uint64_t)i * 10, FR_SV("the line"));
    }
}

T_TEST(every_allocation_fails_once)
{
    int failed = 0;
    for (long n = 0; n < 400; n++) {
        struct fr_series *s = NULL;
        struct fr_arena arena = FR_ARENA_INIT(0);
        fr_findings found = {0};
        fr_alloc_fail_after(n);
        int rc = fr_series_new(&s);
        if (rc == 0) {
            one_of_all(s);
            rc = fr_series_finish(s, &arena, &found);
        }
        fr_alloc_fail_after(-1);
        T_OK(rc == 0 || rc == -FR_NOMEM);
        failed += rc != 0;
        fr_vec_free(found.v);
        fr_arena_release(&arena);
        if (s != NULL) {
            fr_series_free(&s);
        }
    }
    T_OK(failed > 50 && failed < 400);
}

int main(void)
{
    return t_run();
}
