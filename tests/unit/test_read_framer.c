/* SPDX-License-Identifier: Apache-2.0 */
/* The framer's promise: whatever the size of the reads, of the buffer and of the edges, the bytes are the same and in order, chunks
 * end at line ends, and head and tail are the lines that they say. */
#include "read/framer.h"
#include "base/buf.h"
#include "support/t.h"

struct memory { /* a stream that gives at most `step` bytes at a time */
    struct fr_stream s;
    fr_sv text;
    size_t at, step;
    int fail; /* -FR_* at the end instead of 0 */
    bool tells; /* sets `ended` with the last bytes */
};

static int64_t memory_read(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct memory *m = (struct memory *)s;
    size_t take = m->text.n - m->at;
    take = take < n ? take : n;
    take = take < m->step ? take : m->step;
    if (take == 0 && m->fail != 0) {
        return fr_err_set(err, -m->fail, "it broke");
    }
    memcpy(p, m->text.p + m->at, take);
    m->at += take;
    s->ended = m->tells && m->fail == 0 && m->at == m->text.n;
    return (int64_t)take;
}

struct outcome {
    struct fr_buf text;
    uint64_t head_end, tail_start; /* offsets; tail_start is the size when there is no tail */
    unsigned pieces;
    bool last;
    uint32_t flags;
    int failed;
};

static struct outcome run(fr_sv text, size_t step, uint32_t buffer, uint32_t edge, bool sized, int fail)
{
    struct outcome o = {0};
    struct memory m = {{.read = memory_read}, text, 0, step, fail, sized};
    struct fr_input_limits limits = fr_input_default_limits;
    struct fr_framer f;
    struct fr_chunk c;
    uint64_t at = 0;
    limits.buffer = buffer;
    limits.edge = edge;
    T_EQ_INT(fr_framer_init(&f, &limits, NULL), 0);
    fr_framer_start(&f, &m.s, sized ? text.n : UINT64_MAX, 0);
    o.tail_start = text.n;
    bool was_partial = false, tail = false;
    while (fr_framer_next(&f, &c) == 1) {
        T_OK(c.bytes.n > 0 && c.offset == at && !o.last);
        T_OK(c.window.p == c.bytes.p && c.window.n >= c.bytes.n);
        T_OK(at != 0 || c.window.n >= (text.n < 60u << 10 ? text.n : 60u << 10)); /* input.h promises it, of any buffer */
        T_OK(c.cont == was_partial);
        T_OK(c.partial || c.last || c.bytes.p[c.bytes.n - 1] == '\n');
        T_OK(!(tail && !c.tail)); /* once in the tail, always */
        if (c.tail && !tail) {
            o.tail_start = c.offset;
        }
        tail = c.tail;
        at = c.offset + c.bytes.n;
        o.head_end = c.head ? at : o.head_end;
        o.pieces += c.partial;
        o.last = c.last;
        was_partial = c.partial;
        fr_buf_add(&o.text, c.bytes);
    }
    T_OK(!was_partial);
    T_EQ_INT(at, text.n);
    o.flags = f.flags;
    o.failed = f.failed;
    fr_framer_release(&f);
    return o;
}

/* Where head and tail must border when no line is longer than the buffer. */
static uint64_t want_head_end(fr_sv text, uint64_t edge)
{
    if (edge == 0 || text.n <= edge) {
        return edge == 0 ? 0 : text.n;
    }
    const char *nl = memchr(text.p + edge - 1, '\n', text.n - (edge - 1));
    return nl != NULL ? (uint64_t)(nl - text.p) + 1 : text.n;
}

static uint64_t want_tail_start(fr_sv text, uint64_t edge)
{
    if (edge == 0) {
        return text.n;
    }
    if (text.n <= edge) {
        return 0;
    }
    const char *nl = memrchr(text.p, '\n', text.n - edge);
    return nl != NULL ? (uint64_t)(nl - text.p) + 1 : 0;
}

static uint32_t seed = 1;
static uint32_t rnd(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed % n;
}

static void make_text(struct fr_buf *b, size_t bytes, unsigned line_max)
{
    fr_buf_clear(b);
    while (b->n < bytes) {
        for (unsigned n = rnd(line_max); n > 0; n--) {
            fr_buf_addc(b, "abc \r\t\xC3xyz"[rnd(10)]);
        }
        fr_buf_addc(b, '\n');
    }
    if (rnd(2) == 0) {
        fr_buf_addz(b, "no newline");
    }
}

T_TEST(any_read_size_gives_the_same_lines)
{
    static const uint32_t buffers[] = {16, 64, 1000, 4096, 256 << 10};
    static const uint32_t edges[] = {0, 1, 100, 5000, 64 << 10};
    struct fr_buf text = FR_BUF_INIT(0);
    for (unsigned round = 0; round < 200; round++) {
        uint32_t buffer = buffers[rnd(5)], edge = edges[rnd(5)];
        make_text(&text, rnd(round % 20 == 0 ? 900000 : 20000), buffer < 1000 ? buffer : 300);
        size_t step = round % 3 == 0 ? SIZE_MAX : 1 + rnd(3000);
        struct outcome o = run(fr_buf_sv(&text), step, buffer, edge, rnd(2) == 0, 0);
        T_EQ_SV(fr_buf_sv(&o.text), fr_buf_sv(&text));
        T_EQ_INT(o.pieces, 0);
        T_OK(o.last || text.n == 0);
        T_EQ_INT(o.head_end, want_head_end(fr_buf_sv(&text), edge));
        T_EQ_INT(o.tail_start, want_tail_start(fr_buf_sv(&text), edge));
        T_EQ_INT(o.flags, 0);
        fr_buf_release(&o.text);
    }
    fr_buf_release(&text);
}

T_TEST(long_lines_come_in_pieces)
{
    struct fr_buf text = FR_BUF_INIT(0);
    for (unsigned round = 0; round < 60; round++) {
        uint32_t buffer = 64 + rnd(2000);
        make_text(&text, 100000, 20 * buffer);
        struct outcome a = run(fr_buf_sv(&text), 1 + rnd(5000), buffer, rnd(9000), rnd(2) == 0, 0);
        struct outcome b = run(fr_buf_sv(&text), SIZE_MAX, buffer, 100, false, 0);
        T_EQ_SV(fr_buf_sv(&a.text), fr_buf_sv(&text));
        T_EQ_SV(fr_buf_sv(&b.text), fr_buf_sv(&text));
        T_OK(a.pieces > 0 && (a.flags & FR_SRC_LONG_LINES));
        fr_buf_release(&a.text);
        fr_buf_release(&b.text);
    }
    fr_buf_release(&text);
}

T_TEST(pieces_end_between_characters_or_at_a_carriage_return)
{
    struct fr_buf text = FR_BUF_INIT(0);
    struct fr_input_limits limits = fr_input_default_limits;
    struct fr_framer f;
    struct fr_chunk c;
    limits.buffer = 50;
    T_EQ_INT(fr_framer_init(&f, &limits, NULL), 0);
    for (unsigned i = 0; i < 100; i++) {
        fr_buf_addz(&text, "\xE2\x96\x88"); /* a bar of full blocks */
    }
    struct memory m = {{.read = memory_read}, fr_buf_sv(&text), 0, 7, 0, false};
    fr_framer_start(&f, &m.s, UINT64_MAX, 0);
    T_EQ_INT(fr_framer_next(&f, &c), 1);
    T_EQ_INT(c.bytes.n, 99);
    T_OK(c.partial && !c.cont);
    fr_buf_clear(&text);
    for (unsigned i = 0; i < 30; i++) {
        fr_buf_printf(&text, " %2u%%|###|\r", i);
    }
    m = (struct memory){{.read = memory_read}, fr_buf_sv(&text), 0, 7, 0, false};
    fr_framer_start(&f, &m.s, UINT64_MAX, 0);
    while (fr_framer_next(&f, &c) == 1) {
        T_OK(c.bytes.p[c.bytes.n - 1] == '\r');
    }
    fr_framer_release(&f);
    fr_buf_release(&text);
}

T_TEST(a_stream_that_breaks_is_one_that_ends)
{
    struct outcome o = run(FR_SV("one\ntwo\nthr"), 5, 256 << 10, 64 << 10, false, -FR_SYNTAX);
    T_EQ_SV(fr_buf_sv(&o.text), FR_SV("one\ntwo\nthr"));
    T_EQ_INT(o.failed, -FR_SYNTAX);
    T_EQ_INT(o.flags, FR_SRC_TRUNCATED);
    fr_buf_release(&o.text);
    o = run(FR_SV("one\n"), 5, 256 << 10, 64 << 10, false, -FR_LIMIT);
    T_EQ_INT(o.flags, FR_SRC_TRUNCATED | FR_SRC_LIMIT);
    fr_buf_release(&o.text);
}

T_TEST(nul_bytes_become_blanks_and_a_mark_goes)
{
    struct fr_input_limits limits = fr_input_default_limits;
    struct fr_framer f;
    struct fr_chunk c;
    struct memory m = {{.read = memory_read}, FR_SV("\xEF\xBB\xBF" "a\0\0b\n\0"), 0, 2, 0, false};
    T_EQ_INT(fr_framer_init(&f, &limits, NULL), 0);
    fr_framer_start(&f, &m.s, UINT64_MAX, 0);
    T_EQ_INT(fr_framer_next(&f, &c), 1);
    T_EQ_SV(c.bytes, FR_SV("a  b\n"));
    T_EQ_INT(c.offset, 3);
    T_EQ_INT(fr_framer_next(&f, &c), 1);
    T_EQ_SV(c.bytes, FR_SV(" "));
    T_EQ_INT(c.nuls, 3);
    T_EQ_INT(fr_framer_next(&f, &c), 0);
    fr_framer_release(&f);
}

int main(void) { return t_run(); }
