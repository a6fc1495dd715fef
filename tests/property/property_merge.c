/* SPDX-License-Identifier: Apache-2.0 */
/* Evidence merges: analysing files one by one and merging equals analysing them together, in any order and any grouping.
 * Over the runs of tests/cases and over made-up runs of files that have nothing to do with each other. */
#include "support/logs.h"
#include "support/pipeline.h"
#include "support/t.h"

#include "base/vec.h"

enum { SEED = 20260309, UNITS_MAX = 64, GROUPS_MAX = 6 };

static void merge(struct fr_evidence_set *a, struct fr_evidence_set *b)
{
    if (fr_evidence_merge(a, b) != 0) {
        abort();
    }
    fr_evidence_set_release(b);
}

static void same(const char *what, const char *run, const struct fr_buf *got, const struct fr_buf *want)
{
    t_checks_++;
    T_OK(want->n > 200);
    if (fr_sv_eq(fr_buf_sv(got), fr_buf_sv(want))) {
        return;
    }
    size_t at = 0;
    while (at < got->n && at < want->n && got->p[at] == want->p[at]) {
        at++;
    }
    size_t from = at > 80 ? at - 80 : 0;
    T_FAIL("%s: %s differs at byte %zu:\n  got  ...%.*s\n  want ...%.*s", run, what, at, (int)(got->n - from < 200 ? got->n - from : 200),
           got->p + from, (int)(want->n - from < 200 ? want->n - from : 200), want->p + from);
}

/* The units of each group, every unit in one group at least; some in two when `overlap`. */
static void partition(struct dice *d, uint32_t n, uint32_t groups, bool overlap, uint32_t (*v)[UNITS_MAX * 2], uint32_t *count)
{
    uint32_t order[UNITS_MAX];
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    dice_shuffle(d, order, n);
    for (uint32_t g = 0; g < groups; g++) {
        count[g] = 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t g = dice_below(d, groups);
        v[g][count[g]++] = order[i];
        if (overlap && dice_below(d, 3) == 0) {
            g = dice_below(d, groups);
            v[g][count[g]++] = order[i];
        }
    }
}

static void check_run(struct dice *d, const char *run, const char *const *paths, unsigned n_paths)
{
    struct pipeline p;
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
    struct fr_evidence_set whole = {0};
    uint32_t all[UNITS_MAX];
    pipeline_open(&p, paths, n_paths, NULL, FR_ENGINE_AUTO);
    uint32_t n = p.n < UNITS_MAX ? p.n : UNITS_MAX;
    for (uint32_t i = 0; i < n; i++) {
        all[i] = i;
    }
    pipeline_collect(&p, all, n, &whole);
    pipeline_json(&whole, &want);

    for (int round = 0; round < 3; round++) {
        static uint32_t v[GROUPS_MAX][UNITS_MAX * 2];
        uint32_t count[GROUPS_MAX], groups = 1 + dice_below(d, GROUPS_MAX);
        struct fr_evidence_set set[GROUPS_MAX] = {0};
        partition(d, n, groups, round == 2, v, count);
        for (uint32_t g = 0; g < groups; g++) {
            pipeline_collect(&p, v[g], count[g], &set[g]);
        }
        while (groups > 1) { /* any two neighbours: associativity; either into the other: commutativity */
            uint32_t g = dice_below(d, groups - 1), into = g + dice_below(d, 2), from = g + (g + 1 - into);
            merge(&set[into], &set[from]);
            set[g] = set[into];
            memmove(&set[g + 1], &set[g + 2], (groups - g - 2) * sizeof set[0]);
            groups--;
        }
        fr_buf_clear(&got);
        pipeline_json(&set[0], &got);
        same(round == 2 ? "a partition with repeated files" : "a partition", run, &got, &want);
        fr_evidence_set_release(&set[0]);
    }

    struct fr_evidence_set again = {0};
    pipeline_collect(&p, all, n, &again);
    merge(&whole, &again);
    fr_buf_clear(&got);
    pipeline_json(&whole, &got);
    same("merging with itself", run, &got, &want);
    fr_evidence_set_release(&whole);
    pipeline_close(&p);
}

T_TEST(real_runs)
{
    struct dice d = {SEED};
    struct corpus c;
    corpus_load(&c, true, false);
    for (unsigned i = 0; i < c.n; i++) {
        const char *path = c.v[i];
        check_run(&d, path, &path, 1);
    }
    corpus_free(&c);
}

T_TEST(made_up_runs)
{
    struct dice d = {SEED + 1};
    struct corpus c;
    corpus_load(&c, false, true);
    for (int run = 0; run < 40; run++) {
        const char *paths[12];
        char name[80];
        unsigned n = 2 + dice_below(&d, 11);
        for (unsigned i = 0; i < n; i++) {
            paths[i] = c.v[dice_below(&d, c.n)];
        }
        snprintf(name, sizeof name, "made-up run %d of seed %d", run, SEED + 1);
        check_run(&d, name, paths, n);
    }
    corpus_free(&c);
}

/* The paths of a folder's units, each analysed by an input and a collector of its own, as nodes of a cluster would. */
T_TEST(one_machine_per_file)
{
    struct corpus c;
    corpus_load(&c, true, false);
    for (unsigned i = 0; i < c.n; i++) {
        FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
        FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
        struct pipeline p, single;
        struct fr_evidence_set whole = {0}, sum = {0};
        const char *dir = c.v[i];
        pipeline_open(&p, &dir, 1, NULL, FR_ENGINE_AUTO);
        for (uint32_t k = p.n; k-- > 0;) {
            struct fr_evidence_set one = {0};
            uint32_t first = 0, other = p.n - 1 - k; /* the other way round */
            char path[1200];
            pipeline_collect(&p, &other, 1, &whole);
            snprintf(path, sizeof path, "%.*s", FR_SV_ARG(fr_input_unit(p.input, k)->path));
            const char *name = path;
            pipeline_open(&single, &name, 1, NULL, FR_ENGINE_AUTO);
            pipeline_collect(&single, &first, 1, &one);
            pipeline_close(&single);
            merge(&sum, &one);
        }
        pipeline_json(&whole, &want);
        pipeline_json(&sum, &got);
        same("one machine per file", dir, &got, &want);
        fr_evidence_set_release(&whole);
        fr_evidence_set_release(&sum);
        pipeline_close(&p);
    }
    corpus_free(&c);
}

/* Of two summaries of one file, the one that has seen more stays, in either order. */
T_TEST(a_file_that_has_grown)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank0.log", "2026-03-09 10:00:00,410 INFO [fit] rank 0/2 pid 900 ready on gn11\n");
    logs_add(&l, "rank1.log", "2026-03-09 10:00:00,410 INFO [fit] rank 1/2 pid 901 ready on gn11\n");
    const char *dir = l.dir;
    struct pipeline p;
    struct fr_evidence_set early[2] = {0}, late[2] = {0}, whole = {0};
    uint32_t all[2] = {0, 1};
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    pipeline_open(&p, &dir, 1, NULL, FR_ENGINE_AUTO);
    pipeline_collect(&p, all, 2, &early[0]);
    pipeline_collect(&p, all, 2, &early[1]);
    logs_add(&l, "rank1.log", "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ivo/fit/loop.py\", line 9, in run\n"
                              "[rank1]:     step()\n[rank1]: KeyError: 'token_mask'\n");
    pipeline_collect(&p, all, 2, &late[0]);
    pipeline_collect(&p, all, 2, &late[1]);
    pipeline_collect(&p, all, 2, &whole);
    pipeline_json(&whole, &want);
    merge(&early[0], &late[0]);
    merge(&late[1], &early[1]);
    struct fr_evidence_set *sums[] = {&early[0], &late[1]};
    for (int i = 0; i < 2; i++) {
        FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
        pipeline_json(sums[i], &got);
        same(i == 0 ? "late into early" : "early into late", "a file that has grown", &got, &want);
        fr_evidence_set_release(sums[i]);
    }
    fr_evidence_set_release(&whole);
    pipeline_close(&p);
    logs_end(&l);
}

int main(void)
{
    return t_run();
}
