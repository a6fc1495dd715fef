/* SPDX-License-Identifier: Apache-2.0 */
/* The same input gives the same report, byte for byte: at any number of threads, in any order of the arguments, with any size
 * of the reader's buffer, by any scan engine. */
#include "faultrank/faultrank.h"
#include "report/writer.h"
#include "support/logs.h"
#include "support/pipeline.h"
#include "support/t.h"

enum { SEED = 20260310 };

static void same(const char *what, const char *run, fr_sv got, fr_sv want)
{
    t_checks_++;
    T_OK(want.n > 200);
    if (fr_sv_eq(got, want)) {
        return;
    }
    size_t at = 0;
    while (at < got.n && at < want.n && got.p[at] == want.p[at]) {
        at++;
    }
    size_t from = at > 80 ? at - 80 : 0;
    T_FAIL("%s: %s differs at byte %zu:\n  got  ...%.*s\n  want ...%.*s", run, what, at, FR_SV_ARG(fr_sv_head(fr_sv_skip(got, from), 200)),
           FR_SV_ARG(fr_sv_head(fr_sv_skip(want, from), 200)));
}

/* ---- through the public header: threads and order ---- */

static void through_engine(const char *const *paths, const uint32_t *order, uint32_t n, uint32_t threads, uint32_t kind, struct fr_buf *out)
{
    struct fr_engine_options o = {.size = sizeof o, .threads = threads, .engine = kind};
    const struct fr_write_options w = {.why = true};
    struct fr_engine *e = NULL;
    struct fr_err err = {0};
    int rc = fr_engine_new(&o, &e, &err);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        rc = fr_engine_add(e, paths[order[i]], &err);
    }
    if (rc == 0) {
        rc = fr_engine_run(e, &err);
    }
    for (unsigned i = 0; rc == 0 && i < fr_writers_count; i++) {
        rc = fr_writers[i]->write(fr_engine_report(e), &w, out, &err);
    }
    if (rc != 0) {
        T_FAIL("%s: %s", paths[0], err.msg);
    }
    fr_engine_free(&e);
}

static void threads_and_order(struct dice *d, const char *run, const char *const *paths, uint32_t n)
{
    static const uint32_t threads[] = {1, 2, 5};
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    uint32_t order[32];
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
    }
    through_engine(paths, order, n, 1, 0, &want);
    for (int i = 0; i < 3; i++) {
        FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
        dice_shuffle(d, order, n);
        through_engine(paths, order, n, threads[i], 0, &got);
        char what[60];
        snprintf(what, sizeof what, "%u threads, shuffled", threads[i]);
        same(what, run, fr_buf_sv(&got), fr_buf_sv(&want));
    }
}

T_TEST(threads_and_order_of_the_files_of_a_run)
{
    struct dice d = {SEED};
    struct corpus c;
    corpus_load(&c, true, false);
    for (unsigned i = 0; i < c.n; i++) {
        struct pipeline p;
        const char *dir = c.v[i], *paths[32];
        pipeline_open(&p, &dir, 1, NULL, FR_ENGINE_AUTO);
        uint32_t n = p.n < 32 ? p.n : 32;
        for (uint32_t k = 0; k < n; k++) {
            paths[k] = fr_input_unit(p.input, k)->path.p;
        }
        threads_and_order(&d, dir, paths, n);
        pipeline_close(&p);
    }
    corpus_free(&c);
}

T_TEST(threads_and_order_of_unrelated_files)
{
    struct dice d = {SEED + 1};
    struct corpus c;
    corpus_load(&c, false, true);
    for (int run = 0; run < 25; run++) {
        const char *paths[16];
        char name[80];
        uint32_t n = 3 + dice_below(&d, 14);
        for (uint32_t i = 0; i < n; i++) {
            paths[i] = c.v[dice_below(&d, c.n)];
        }
        snprintf(name, sizeof name, "made-up run %d of seed %d", run, SEED + 1);
        threads_and_order(&d, name, paths, n);
    }
    corpus_free(&c);
}

/* ---- a long file: all kinds of lines between steps, so that most of it is read by hits only ---- */

static void long_log(struct logs *l, struct dice *d, int lines)
{
    static const char *const between[] = {
        "2026-03-09 10:00:0%u,000 INFO [fit] step %u loss 2.%u grad_norm 1.21 lr 3.0e-04\n",
        "2026-03-09 10:00:0%u,000 DEBUG [cache] shard %u read in 0.%u s\n",
        "\r  1%%|#         | %u/%u [00:21<1:09:10,  3.%uit/s]\n",
        "[rank%u]:[W309 10:04:30.120601334 socket.cpp:%u] [c10d] The client socket has failed to connect to [gn11]:2950%u (errno: 111 - Connection refused).\n",
        "Traceback (most recent call last):\n  File \"/home/ivo/fit/a%u.py\", line %u, in f%u\n    g()\nKeyError: 'x'\n",
        "[rank%u]: Traceback (most recent call last):\n[rank2]:   File \"/home/ivo/fit/b%u.py\", line 4, in g\n[rank2]:     h()\n[rank2]: ValueError: bad shard %u\n",
        "gn11:90%u:977 [0] NCCL INFO Channel %u/0 : 0[0] -> 1[1] via P2P/CUMEM/%u\n",
        "\x1b[31mW309\x1b[0m %u %u %u text with colours and \xff\xfe bytes \xc3\xa9\n",
        "%u %u %u \n\n\n",
    };
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    for (int i = 0; i < lines; i++) {
        const char *f = between[dice_below(d, 40) < 30 ? dice_below(d, 2) : dice_below(d, sizeof between / sizeof between[0])];
        char text[400];
        uint32_t small = dice_below(d, 4), middle = (uint32_t)i, digit = dice_below(d, 10);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, f, small, middle, digit);
#pragma GCC diagnostic pop
        fr_buf_addz(&b, text);
    }
    fr_buf_addz(&b, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.25 GiB. GPU 0 has a total capacity of 79.11 GiB");
    logs_add(l, "fit.log", b.p);
}

static void buffers(const char *run, const char *path, uint32_t edge)
{
    static const uint32_t sizes[] = {1500, 4096, 10000, 1 << 16};
    struct fr_input_limits limits = fr_input_default_limits;
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    limits.edge = edge;
    pipeline_whole(&path, 1, &limits, FR_ENGINE_AUTO, &want);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
        char what[60];
        limits.buffer = sizes[i];
        snprintf(what, sizeof what, "a buffer of %u with an edge of %u", sizes[i], edge);
        pipeline_whole(&path, 1, &limits, FR_ENGINE_AUTO, &got);
        same(what, run, fr_buf_sv(&got), fr_buf_sv(&want));
    }
}

static void engines(const char *run, const char *path, uint32_t edge)
{
    static const char *const names[] = {"auto", "portable", "avx2", "avx512"};
    struct fr_input_limits limits = fr_input_default_limits;
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    limits.edge = edge;
    pipeline_whole(&path, 1, &limits, FR_ENGINE_PORTABLE, &want);
    for (int i = 0; i < 4; i++) {
        FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
        pipeline_whole(&path, 1, &limits, (enum fr_scan_engine)i, &got);
        same(names[i], run, fr_buf_sv(&got), fr_buf_sv(&want));
    }
}

/* A line over two buffers is given out in pieces, which is a limit and said in the report: not for the small sizes. */
static bool has_long_line(const char *path, size_t limit)
{
    FILE *f = fopen(path, "rb");
    size_t run = 0;
    bool found = false;
    for (int ch; f != NULL && !found && (ch = getc(f)) != EOF;) {
        run = ch == '\n' ? 0 : run + 1;
        found = run > limit;
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

T_TEST(buffers_and_engines_on_long_files)
{
    for (int i = 0; i < 6; i++) {
        struct dice d = {(uint64_t)SEED + 100 + (uint64_t)i};
        struct logs l;
        char path[300], run[60];
        logs_begin(&l);
        long_log(&l, &d, 400 << i);
        snprintf(path, sizeof path, "%s/fit.log", l.dir);
        snprintf(run, sizeof run, "long log of seed %d", SEED + 100 + i);
        buffers(run, path, i % 2 == 0 ? 3000 : 1 << 16);
        engines(run, path, i % 2 == 0 ? 3000 : 1 << 16);
        logs_end(&l);
    }
}

T_TEST(buffers_and_engines_on_the_corpus)
{
    struct corpus c;
    corpus_load(&c, false, true);
    for (unsigned i = 0; i < c.n; i += 2) {
        if (!has_long_line(c.v[i], 2900) && strstr(c.v[i], "utf16") == NULL) {
            buffers(c.v[i], c.v[i], i % 4 == 0 ? 512 : 1 << 16);
        }
        engines(c.v[i], c.v[i], 512);
    }
    corpus_free(&c);
}

int main(void)
{
    return t_run();
}
