/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_peel: any bytes as one physical line: segments lie in it and in order, peeling ends, every
 * view can be read, and every dialect's fact parser keeps its promise (at most four facts, sixteen
 * captures each). The same bytes are the head of a source, of which a tag may be learned. */
#include "format/format.h"
#include "format/own_tag.h"
#include "format/relay.h"
#include "fuzz/fuzz.h"

static unsigned check_facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < fr_formats_count; i++) {
        struct fr_draft drafts[4];
        int n = fr_formats[i]->facts == NULL ? 0 : fr_formats[i]->facts(ctx, rec, drafts, 4);
        CHECK(n >= 0 && n <= 4);
        for (int k = 0; k < n; k++) {
            CHECK(drafts[k].fact > FR_FACT_NONE && drafts[k].fact < FR_FACT_COUNT_ &&
                  drafts[k].n_caps <= FR_DRAFT_CAPS);
            for (unsigned c = 0; c < drafts[k].n_caps; c++) {
                CHECK(drafts[k].caps[c].key < FR_KEY_COUNT_);
                sum += touch(drafts[k].caps[c].text);
            }
        }
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_arena scratch = FR_ARENA_INIT(8 << 20);
    struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};
    struct fr_own_tag own;
    struct fr_relay relay;
    ctx.relay = fr_relay_learn(&ctx, (fr_sv){(const char *)data, size}, &relay) ? &relay : NULL;
    ctx.own = fr_own_tag_learn(&ctx, (fr_sv){(const char *)data, size}, &own) ? &own : NULL;
    fr_arena_reset(&scratch);
    fr_sv rest = {(const char *)data, size}, seg;
    const char *at = rest.p;
    unsigned sink = 0;
    for (size_t i = 0; fr_segment_next(&rest, &seg); i++) {
        struct fr_record rec;
        CHECK(i <= size && seg.n > 0 && seg.p >= at && seg.p + seg.n <= (const char *)data + size);
        at = seg.p + seg.n;
        fr_peel(&ctx, seg, &rec);
        CHECK(rec.when.basis <= FR_TIME_BASIS_BOOT &&
              (rec.when.basis == FR_TIME_BASIS_NONE) == (rec.when.ns == FR_TIME_NONE));
        CHECK(rec.who.rank >= -1 && rec.who.local_rank >= -1 && rec.who.task >= -1 &&
              rec.level <= FR_LEVEL_FATAL);
        sink += touch(rec.line) + touch(rec.text) + touch(rec.who.node) + touch(rec.who.role) +
                check_facts(&ctx, &rec);
        (void)fr_trace_opens(rec.text);
        fr_arena_reset(&scratch);
    }
    fr_arena_release(&scratch);
    return sink == 0xffffffffu ? -1 : 0; /* or the reads above may be dropped */
}
