/* SPDX-License-Identifier: Apache-2.0 */
/* Writers against hand-built reports. With arguments "show FIXTURE WRITER [VIEW [why]]" it prints one output instead: that is
 * what tests/e2e/check_outputs.py reads. */
#include "report_fixtures.h"
#include "support/t.h"

#include "base/alloc.h"
#include "report/words.h"
#include "report/wrap.h"

#include <unistd.h>

static int render(const char *fixture, const char *writer, struct fr_write_options o, struct fr_buf *out)
{
    struct fr_report r;
    struct fr_err err = {0};
    fixture_make(fixture, &r);
    int rc = fr_writer_find(fr_sv_z(writer))->write(&r, &o, out, &err);
    fr_report_release(&r);
    return rc;
}

T_TEST(rank_lists_compress)
{
    static const struct { int32_t v[8]; uint32_t n; const char *want; } rows[] = {
        {{0}, 0, ""}, {{3}, 1, "3"}, {{3, 4}, 2, "3,4"}, {{0, 1, 2, 5, 7, 8, 9}, 7, "0-2,5,7-9"}, {{1, 1, 2}, 3, "1,2"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        fr_words_ranks(&b, rows[i].v, rows[i].n);
        T_EQ_SV(fr_buf_sv(&b), fr_sv_z(rows[i].want));
    }
}

T_TEST(long_rank_lists_end)
{
    int32_t odd[200];
    for (int i = 0; i < 200; i++) {
        odd[i] = 2 * i + 1;
    }
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    T_OK(!fr_words_rank_list(&b, odd, 200));
    T_EQ_SV(fr_buf_sv(&b), FR_SV("ranks 1,3,5,7,9,11,13,15,17,19,21,23 and 188 more"));
}

T_TEST(times_say_what_the_log_said)
{
    const int64_t t = 1763000000LL * FR_NS_PER_S; /* 2025-11-13T02:13:20 */
    const struct { struct fr_when w; const char *iso, *people; } rows[] = {
        {FR_WHEN_NONE, "", ""},
        {{t, FR_NS_PER_S, FR_TIME_BASIS_UTC}, "2025-11-13T02:13:20Z", "2025-11-13 02:13:20 UTC"},
        {{t + 5000000, 1000000, FR_TIME_BASIS_WALL}, "2025-11-13T02:13:20.005", "2025-11-13 02:13:20.005"},
        {{t + 5000, 1000, FR_TIME_BASIS_UTC}, "2025-11-13T02:13:20.000005Z", "2025-11-13 02:13:20.000 UTC"},
        {{t, FR_NS_PER_S, FR_TIME_BASIS_NOYEAR}, "--11-13T02:13:20", "11-13 02:13:20"},
        {{3723 * FR_NS_PER_S, FR_NS_PER_S, FR_TIME_BASIS_CLOCK}, "01:02:03", "01:02:03"},
        {{12500 * 1000000LL, 1000000, FR_TIME_BASIS_BOOT}, "PT12.500S", "12.500 s after boot"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        FR_AUTO(fr_buf) iso = FR_BUF_INIT(0);
        FR_AUTO(fr_buf) people = FR_BUF_INIT(0);
        fr_words_iso(&iso, &rows[i].w);
        fr_words_when(&people, &rows[i].w);
        T_EQ_SV(fr_buf_sv(&iso), fr_sv_z(rows[i].iso));
        T_EQ_SV(fr_buf_sv(&people), fr_sv_z(rows[i].people));
    }
}

T_TEST(sizes_and_spans)
{
    static const struct { uint64_t n; const char *bytes; } sizes[] = {
        {0, "0 bytes"}, {999, "999 bytes"}, {1000, "1.0 KB"}, {12345, "12 KB"}, {999600, "1.0 MB"}, {UINT64_MAX, "18 EB"}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        fr_words_bytes(&b, sizes[i].n);
        T_EQ_SV(fr_buf_sv(&b), fr_sv_z(sizes[i].bytes));
    }
    static const struct { int64_t s; const char *words; } spans[] = {
        {0, "0 s"}, {119, "119 s"}, {603, "10 min"}, {125, "2 min 5 s"}, {7265, "2 h 1 min"}, {200000, "2 days 7 h"}};
    for (unsigned i = 0; i < sizeof spans / sizeof *spans; i++) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        fr_words_duration(&b, spans[i].s);
        T_EQ_SV(fr_buf_sv(&b), fr_sv_z(spans[i].words));
    }
}

T_TEST(wrapping_keeps_words_whole)
{
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    fr_wrap(&b, FR_SV("one two  three\n/a/very/long/path/that/does/not/fit four"), "- ", "  ", 20);
    T_EQ_SV(fr_buf_sv(&b), FR_SV("- one two three\n  /a/very/long/path/that/does/not/fit\n  four\n"));
    fr_buf_clear(&b);
    fr_wrap(&b, FR_SV_NONE, "> ", "> ", 20);
    T_EQ_SV(fr_buf_sv(&b), FR_SV("> \n"));
}

/* The first line names who, what and how sure; nothing stands above it. */
T_TEST(answer_comes_first)
{
    static const struct { const char *fixture, *want; } rows[] = {
        {"one-rank", "Rank 11 failed first: CUDA out of memory\n  confidence: certain (0.97); began 2025-11-13 02:15:00 UTC; "},
        {"single", "Rank 0 failed: CUDA out of memory\n"},
        {"silent", "Rank 3 failed first, without a word: A rank stopped without a word\n"},
        {"all-ranks", "All 8 ranks failed alike: CUDA out of memory\n"},
        {"node", "Node gpu-07 failed first: CUDA out of memory\n"},
        {"unknown", "The run failed, first rank unknown: Unknown failure\n"},
        {"healthy", "No failure found.\n"},
        {"inconclusive", "Cannot tell from these logs what failed first.\n"},
        {"two-incidents", "[1 of 2] Rank 3 failed first: CUDA out of memory\n"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        T_EQ_INT(render(rows[i].fixture, "text", (struct fr_write_options){0}, &b), 0);
        T_EQ_SV(fr_sv_head(fr_buf_sv(&b), strlen(rows[i].want)), fr_sv_z(rows[i].want));
    }
}

T_TEST(victims_collapse_and_keep_a_quote)
{
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    render("huge", "text", (struct fr_write_options){0}, &b);
    T_OK(b.n < 6000);
    T_OK(fr_sv_has(fr_buf_sv(&b), FR_SV("4,095 other ranks failed because of it")));
    T_OK(fr_sv_has(fr_buf_sv(&b), FR_SV("runs/42/rank0.log:9120")));
}

/* Somebody will paste the command: a node's name that a shell does not take literally must not get into it. */
T_TEST(drain_commands_are_safe_to_paste)
{
    static const struct { const char *node; bool safe; } rows[] = {
        {"gpu-07.cluster.local", true}, {"gpu;reboot", false}, {"$(id)", false}, {"-a", false}, {"a b", false}, {"", false}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fr_incident in = {.cls = FR_SV("xid-79"), .action = FR_ACTION_DRAIN_NODE};
        in.initiator.node = fr_sv_z(rows[i].node);
        FR_AUTO(fr_buf) slurm = FR_BUF_INIT(0);
        FR_AUTO(fr_buf) kubernetes = FR_BUF_INIT(0);
        T_EQ_INT(fr_story_drain(&in, &slurm, &kubernetes), rows[i].safe);
        T_EQ_INT(slurm.n > 0, rows[i].safe);
    }
}

T_TEST(colour_is_only_ours)
{
    for (unsigned i = 0; i < fixtures_count; i++) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        render(fixtures[i].name, "text", (struct fr_write_options){.color = true, .why = true}, &b);
        for (size_t k = 0; k < b.n; k++) { /* every ESC begins one of the sequences that text.c writes: ESC [ digits m */
            if (b.p[k] == '\033') {
                size_t e = k + 2;
                while (e < b.n && ((b.p[e] >= '0' && b.p[e] <= '9') || b.p[e] == ';')) {
                    e++;
                }
                T_OK(b.p[k + 1] == '[' && e < b.n && b.p[e] == 'm');
            }
        }
    }
}

T_TEST(equal_reports_give_equal_bytes)
{
    for (unsigned w = 0; w < fr_writers_count; w++) {
        FR_AUTO(fr_buf) a = FR_BUF_INIT(0);
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        struct fr_report r;
        fixture_make("one-rank", &r);
        r.timings.read_s = 1.5; /* what differs from run to run must not show */
        fr_writers[w]->write(&r, &(struct fr_write_options){0}, &a, NULL);
        r.timings.read_s = 9;
        fr_writers[w]->write(&r, &(struct fr_write_options){0}, &b, NULL);
        T_OK(a.n > 0 && fr_sv_eq(fr_buf_sv(&a), fr_buf_sv(&b)));
        fr_report_release(&r);
    }
}

T_TEST(a_report_that_is_too_large_says_so)
{
    for (unsigned w = 0; w < fr_writers_count; w++) {
        struct fr_report r;
        struct fr_err err = {0};
        FR_AUTO(fr_buf) out = FR_BUF_INIT(200);
        fixture_make("one-rank", &r);
        T_EQ_INT(fr_writers[w]->write(&r, &(struct fr_write_options){0}, &out, &err), -FR_LIMIT);
        T_OK(strstr(err.msg, "200 bytes") != NULL);
        fr_report_release(&r);
    }
}

/* Allocation n fails, for every n: an error, no crash, no leak (the sanitizer looks), never a report that lacks a part. */
T_TEST(no_memory_is_an_error)
{
    for (unsigned w = 0; w < fr_writers_count; w++) {
        struct fr_report r;
        FR_AUTO(fr_buf) whole = FR_BUF_INIT(0);
        fixture_make("two-incidents", &r);
        T_EQ_INT(fr_writers[w]->write(&r, &(struct fr_write_options){.why = true}, &whole, NULL), 0);
        for (long n = 0; n < 4000; n++) {
            struct fr_err err = {0};
            FR_AUTO(fr_buf) out = FR_BUF_INIT(0);
            fr_alloc_fail_after(n);
            int rc = fr_writers[w]->write(&r, &(struct fr_write_options){.why = true}, &out, &err);
            fr_alloc_fail_after(-1);
            T_OK(rc == -FR_NOMEM || fr_sv_eq(fr_buf_sv(&out), fr_buf_sv(&whole)));
            if (rc == 0) {
                break;
            }
            T_OK(err.msg[0] != '\0');
        }
        fr_report_release(&r);
    }
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "show") == 0) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        struct fr_write_options o = {.view = argc > 4 ? (uint8_t)atoi(argv[4]) : 0, .why = argc > 5};
        return render(argv[2], argv[3], o, &b) == 0 && write(1, b.p, b.n) == (ssize_t)b.n ? 0 : 1;
    }
    return t_run();
}
