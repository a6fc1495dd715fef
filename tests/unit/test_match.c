/* SPDX-License-Identifier: Apache-2.0 */
#include "match/rules.h"
#include "support/t.h"

static int count_hits(void *ctx, const struct fr_hit *hit)
{
    (void)hit;
    ++*(int *)ctx;
    return FR_SCAN_HITS;
}

T_TEST(builtin_rules_find_an_oom)
{
    const struct fr_rules *rules = NULL;
    struct fr_scanner *s = NULL;
    T_EQ_INT(fr_rules_builtin(&rules, NULL), 0);
    T_EQ_INT(fr_scanner_new(rules, FR_ENGINE_AUTO, &s, NULL), 0);
    const fr_sv text = FR_SV("step 1\n[1.0] Out of memory: Killed process 40122 (python) total-vm:1kB, anon-rss:1kB\nstep 2\n");
    int hits = 0;
    uint64_t lines = 0;
    T_EQ_INT(fr_scan(s, text, 0, 1, FR_SCAN_HITS, count_hits, &hits, &lines), 0);
    T_EQ_INT(hits, 1);
    T_EQ_INT(lines, 3);
    fr_scanner_free(&s);
}

int main(void)
{
    return t_run();
}
