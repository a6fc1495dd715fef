/* SPDX-License-Identifier: Apache-2.0 */
/* Writers against hand-built reports. With arguments "show FIXTURE WRITER [VIEW]" it prints one output instead: that is what
 * tests/e2e validates against schemas. */
#include "report_fixtures.h"
#include "support/t.h"

#include "report/words.h"

#include <unistd.h>

static void render(const char *fixture, const char *writer, struct fr_write_options o, struct fr_buf *out)
{
    struct fr_report r;
    struct fr_err err = {0};
    fixture_make(fixture, &r);
    T_EQ_INT(fr_writer_find(fr_sv_z(writer))->write(&r, &o, out, &err), 0);
    fr_report_release(&r);
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

T_TEST(answer_comes_first)
{
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    render("one-rank", "text", (struct fr_write_options){0}, &b);
    T_OK(fr_sv_starts(fr_buf_sv(&b), FR_SV("Rank 11 failed first: CUDA out of memory\n")));
}

int main(int argc, char **argv)
{
    if (argc >= 4 && strcmp(argv[1], "show") == 0) {
        FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
        struct fr_write_options o = {.view = argc > 4 ? (uint8_t)atoi(argv[4]) : 0, .why = argc > 5};
        render(argv[2], argv[3], o, &b);
        return write(1, b.p, b.n) == (ssize_t)b.n ? 0 : 1;
    }
    return t_run();
}
