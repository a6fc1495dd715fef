/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to a report of any shape, through every writer and view. Whatever the texts hold: no crash, valid UTF-8, no control
 * characters but line ends and tabs, and no '<' in HTML that is not ours. */
#include "report/writer.h"

#include "base/utf8.h"
#include "failure/library.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct feed {
    const uint8_t *p;
    size_t n;
};

static unsigned byte(struct feed *f)
{
    return f->n > 0 ? f->n--, *f->p++ : 0;
}

static int64_t number(struct feed *f)
{
    static const int64_t edges[] = {0, 1, -1, INT32_MAX, INT64_MAX, INT64_MIN, 1763000000000000000, -5000000000};
    unsigned b = byte(f);
    return b < 8 ? edges[b] : b < 128 ? b : (int64_t)(((uint64_t)b << 55) ^ ((uint64_t)byte(f) << 40) ^ (byte(f) << 8));
}

static fr_sv text(struct feed *f)
{
    size_t n = byte(f) % 48;
    n = n < f->n ? n : f->n;
    fr_sv s = {(const char *)f->p, n};
    f->p += n;
    f->n -= n;
    return s;
}

static struct fr_when when(struct feed *f)
{
    struct fr_when w = {number(f), number(f), (uint8_t)(byte(f) % 6)};
    return w;
}

static struct fr_quote quote(struct feed *f)
{
    return (struct fr_quote){.source = text(f), .line = (uint64_t)number(f), .offset = (uint64_t)number(f),
                             .rank = (int32_t)number(f), .when = when(f), .role = (uint8_t)(byte(f) % 5), .signal = text(f),
                             .text = text(f)};
}

static void add_lists(struct feed *f, struct fr_incident *in)
{
    for (unsigned n = byte(f) % 4; n > 0; n--) {
        *FR_PUSH(&in->evidence) = quote(f);
    }
    for (unsigned n = byte(f) % 40; n > 0; n--) {
        *FR_PUSH(&in->collateral) = (struct fr_collateral){(int32_t)number(f), text(f), quote(f), byte(f) % 2 != 0};
    }
    for (unsigned n = byte(f) % 3; n > 0; n--) {
        struct fr_hypothesis *h = FR_PUSH(&in->hypotheses);
        h->cls = text(f);
        h->score = (double)number(f);
        *FR_PUSH(&h->for_) = text(f);
        *FR_PUSH(&h->against) = text(f);
    }
    for (unsigned n = byte(f) % 3; n > 0; n--) {
        *FR_PUSH(&in->not_the_cause) = (struct fr_innocent){text(f), text(f), quote(f)};
    }
    for (unsigned n = byte(f) % 3; n > 0; n--) {
        *FR_PUSH(&in->collect_next) = text(f);
    }
    for (unsigned n = byte(f) % 4; n > 0; n--) {
        *FR_PUSH(&in->initiator.ranks) = (int32_t)number(f);
    }
}

static void make(struct feed *f, const struct fr_failure *page, struct fr_report *r)
{
    *r = (struct fr_report){.verdict = (uint8_t)(byte(f) % 3), .arena = FR_ARENA_INIT(0)};
    r->input.sources = (uint64_t)number(f);
    r->input.bytes = (uint64_t)number(f);
    r->input.ranks_seen = (int32_t)number(f);
    r->input.world_size = (int32_t)number(f);
    r->input.nodes = (int32_t)number(f);
    for (unsigned n = byte(f) % 3; n > 0; n--) {
        struct fr_incident *in = FR_PUSH(&r->incidents);
        in->attempt = (int32_t)number(f);
        in->cls = text(f);
        in->title = text(f);
        in->action = (uint8_t)(byte(f) % 5);
        in->band = (uint8_t)(byte(f) % 3);
        in->confidence = byte(f) % 2 != 0 ? (double)NAN : 0.5;
        in->initiator.scope = (uint8_t)(byte(f) % 6);
        in->initiator.node = text(f);
        in->initiator.when = when(f);
        in->initiator.silent = byte(f) % 2 != 0;
        in->why_first = text(f);
        in->resume_safe = (int)(byte(f) % 3) - 1;
        in->resume_why = text(f);
        in->resume_checkpoint = text(f);
        in->last_good_step = number(f);
        in->first_bad_step = number(f);
        in->failure = page;
        add_lists(f, in);
    }
    for (unsigned n = byte(f) % 3; n > 0; n--) {
        *FR_PUSH(&r->input.skipped) = (struct fr_skipped){text(f), text(f)};
        *FR_PUSH(&r->checked) = text(f);
        *FR_PUSH(&r->metrics) = (struct fr_metric_summary){text(f), (int32_t)number(f), number(f), number(f), number(f), (double)INFINITY};
    }
    for (unsigned n = byte(f) * 4; n > 0; n--) {
        *FR_PUSH(&r->lanes) = (struct fr_lane){(int32_t)number(f), text(f), (uint8_t)(byte(f) % 4), number(f), number(f), number(f)};
    }
}

static void require(bool ok)
{
    if (!ok) {
        abort();
    }
}

static void check(const struct fr_writer *w, fr_sv out)
{
    bool html = fr_sv_eq(fr_sv_z(w->name), FR_SV("html"));
    require(fr_utf8_valid(out));
    for (size_t i = 0; i < out.n; i++) {
        unsigned char c = (unsigned char)out.p[i];
        require((c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t');
    }
    require(!html || !fr_sv_has(out, FR_SV("<script")));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const none[] = {NULL};
    static const char *const some[] = {"nvidia-smi", "", NULL};
    static const struct fr_failure bare = {.id = "", .title = "", .category = "", .body = ""};
    static const struct fr_failure full = {.id = "x", .title = "t", .category = "c", .body = "## Quick answer\nx", .confirm = some,
                                           .prevent = some, .refs = none, .verify_expect = some, .verify_absent = some,
                                           .fix_primary = "a", .fix_fallback = "b", .fix_emergency = "", .verify_command = "v"};
    struct feed f = {data, size};
    struct fr_report r;
    unsigned mode = byte(&f);
    make(&f, mode & 1 ? &full : &bare, &r);
    for (unsigned i = 0; i < fr_writers_count; i++) {
        for (uint8_t view = 0; view < 3; view++) {
            struct fr_write_options o = {.view = view, .why = (mode & 2) != 0, .width = (int)(mode & 0xf0)};
            struct fr_err err = {0};
            struct fr_buf out = FR_BUF_INIT((mode & 4) != 0 ? 3000 : 0);
            int rc = fr_writers[i]->write(&r, &o, &out, &err);
            require(rc == 0 || (out.limit > 0 && err.code == FR_LIMIT && err.msg[0] != '\0'));
            if (rc == 0) {
                check(fr_writers[i], fr_buf_sv(&out));
            }
            fr_buf_release(&out);
        }
    }
    fr_report_release(&r);
    return 0;
}
