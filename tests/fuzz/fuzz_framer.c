/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_framer: any bytes, any buffer, any edge, any read sizes: chunks come in order, nothing is lost, borders are where they say.
 * The first four bytes choose buffer, edge, read size and whether the size is known; the rest is the text. */
#include "base/alloc.h"
#include "read/framer.h"
#include "fuzz/fuzz.h"

struct memory {
    struct fr_stream s;
    const char *p;
    size_t n, at, step;
    bool tells; /* as a file whose size is known does */
};

static int64_t memory_read(struct fr_stream *s, char *p, size_t n, struct fr_err *err)
{
    struct memory *m = (struct memory *)s;
    size_t take = m->n - m->at;
    (void)err;
    take = take < n ? take : n;
    take = take < m->step ? take : m->step;
    memcpy(p, m->p + m->at, take);
    m->at += take;
    s->ended = m->tells && m->at == m->n;
    return (int64_t)take;
}

static void check(const struct fr_chunk *c, uint64_t at, const char *text)
{
    CHECK(c->bytes.n > 0 && c->offset == at);
    CHECK(c->partial || c->last || c->bytes.p[c->bytes.n - 1] == '\n');
    for (size_t i = 0; i < c->bytes.n; i++) {
        char was = text[at + i];
        CHECK(c->bytes.p[i] == was || (was == '\0' && c->bytes.p[i] == ' '));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_input_limits limits = fr_input_default_limits;
    struct fr_framer f;
    struct fr_chunk c;
    if (size < 4) {
        return 0;
    }
    struct memory m = {{.read = memory_read}, (const char *)data + 4, size - 4, 0, 1 + data[2] * 7u, (data[3] & 1) != 0};
    limits.buffer = 16 + data[0] * 5u;
    limits.edge = data[1] * 3u;
    if (fr_framer_init(&f, &limits, NULL) != 0) {
        return 0;
    }
    fr_framer_start(&f, &m.s, data[3] & 1 ? m.n : UINT64_MAX, 0);
    bool mark = m.n >= 3 && memcmp(m.p, "\xEF\xBB\xBF", 3) == 0;
    uint64_t at = mark ? 3 : 0;
    bool tail = false, partial = false, last = false;
    while (fr_framer_next(&f, &c) == 1) {
        check(&c, at, m.p);
        CHECK(!last && c.cont == partial && !(tail && !c.tail));
        at += c.bytes.n;
        tail = c.tail;
        partial = c.partial;
        last = c.last;
    }
    CHECK(at == m.n && !partial);
    CHECK(last || at == (mark ? 3 : 0));
    fr_framer_release(&f);
    return 0;
}
