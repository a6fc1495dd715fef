/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_trace: any text as a log: the joiner ends, keeps its bounds, and all it hands out can be
 * read. */
#include "format/format.h"
#include "fuzz/fuzz.h"

static unsigned check(const struct fr_trace_done *d, uint64_t lines)
{
    const struct fr_trace *t = &d->trace;
    unsigned sum = touch(d->exc_text) + touch(d->who.node) + touch(d->who.role);
    CHECK(d->line <= d->exc_line && d->exc_line <= lines);
    if (d->is_row) {
        bool known = d->row.fact == FR_FACT_EXIT || d->row.fact == FR_FACT_IDENTITY ||
                     d->row.fact == FR_FACT_MISSING ||
                     d->row.fact == FR_FACT_STACK;
        CHECK(known && d->row.n_caps <= FR_DRAFT_CAPS);
        for (unsigned i = 0; i < d->row.n_caps; i++) {
            sum += touch(d->row.caps[i].text);
        }
        return sum;
    }
    CHECK(t->message.n <= 1024 && t->origin_message.n <= 1024 && t->frames.n <= 512 &&
          t->first_line <= t->last_line);
    return sum + touch(t->exception) + touch(t->message) + touch(t->origin_exception) +
           touch(t->origin_message) + touch(t->file) + touch(t->func) + touch(t->library) +
           touch(t->frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_arena scratch = FR_ARENA_INIT(8 << 20), out = FR_ARENA_INIT(16 << 20);
    const struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};
    struct fr_tracer *t = NULL;
    struct fr_trace_done done;
    fr_sv rest = {(const char *)data, size}, line, seg;
    unsigned sink = 0;
    CHECK(fr_tracer_new(&t) == 0);
    uint64_t no = 0;
    while (rest.n > 0) {
        fr_sv_cut(rest, '\n', &line, &rest);
        no++;
        while (fr_segment_next(&line, &seg)) {
            struct fr_record rec;
            fr_peel(&ctx, seg, &rec);
            rec.lineno = no;
            int r = fr_tracer_feed(t, &rec, &out, &done);
            if (r == 1) {
                sink += check(&done, no);
            }
        }
        fr_arena_reset(&scratch);
    }
    int results = 0, r;
    while ((r = fr_tracer_feed(t, NULL, &out, &done)) == 1) {
        sink += check(&done, no);
        CHECK(++results <= 64 + 64 + 4); /* traces, stacks, listings */
    }
    CHECK(r < 0 || !fr_tracer_open(t));
    fr_tracer_free(&t);
    fr_arena_release(&scratch);
    fr_arena_release(&out);
    return sink == 0xffffffffu ? -1 : 0; /* or the reads above may be dropped */
}
