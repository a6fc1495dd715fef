/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of include/faultrank/faultrank.h, and what the engine adds to its layers: limits that are told, lines that are counted
 * right, a user's own failures. */
#include "base/buf.h"
#include "failure/library.h"
#include "support/logs.h"
#include "support/t.h"

#define CRASH "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ivo/fit/loop.py\", line 9, in run\n[rank1]:     step()\n" \
              "[rank1]: KeyError: 'token_mask'\n"

T_TEST(calls_out_of_order_are_errors)
{
    struct fr_engine_options none = {0}, o = {.size = sizeof o};
    struct fr_engine *e = (struct fr_engine *)&o;
    struct fr_err err = {0};
    T_EQ_INT(fr_engine_new(NULL, &e, &err), -FR_ARG);
    T_OK(e == NULL);
    T_EQ_INT(fr_engine_new(&none, &e, &err), -FR_ARG);
    T_OK(err.msg[0] != '\0');

    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank1.log", CRASH);
    T_EQ_INT(fr_engine_new(&o, &e, &err), 0);
    T_OK(fr_engine_report(e) == NULL);
    T_EQ_INT(fr_engine_add(e, l.dir, &err), 0);
    T_EQ_INT(fr_engine_run(e, &err), 0);
    const struct fr_report *r = fr_engine_report(e);
    T_EQ_INT(fr_engine_run(e, &err), -FR_STATE);
    T_OK(r != NULL && fr_engine_report(e) == r);
    fr_engine_free(&e);
    T_OK(e == NULL);
    fr_engine_free(&e);
    logs_end(&l);
}

T_TEST(nothing_to_read_is_absent_and_names_it)
{
    struct fr_engine_options o = {.size = sizeof o};
    struct fr_engine *e = NULL;
    struct fr_err err = {0};
    T_EQ_INT(fr_engine_new(&o, &e, &err), 0);
    T_EQ_INT(fr_engine_add(e, "/nonexistent/rank0.log", &err), 0); /* remembered, not refused */
    T_EQ_INT(fr_engine_run(e, &err), -FR_ABSENT);
    T_OK(strstr(err.msg, "/nonexistent/rank0.log") != NULL);
    T_OK(fr_engine_report(e) == NULL);
    fr_engine_free(&e);
    T_EQ_INT(fr_engine_new(&o, &e, &err), 0);
    T_EQ_INT(fr_engine_run(e, &err), -FR_ABSENT);
    fr_engine_free(&e);
}

struct seen {
    uint64_t last, total, calls;
    bool backwards;
};

static void on_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct seen *s = ctx;
    s->backwards |= done < s->last;
    s->last = done;
    s->total = total;
    s->calls++;
}

T_TEST(progress_ends_at_the_total)
{
    struct logs l;
    struct seen s = {0};
    struct fr_engine_options o = {.size = sizeof o, .threads = 2, .progress = on_progress, .progress_ctx = &s};
    logs_begin(&l);
    logs_add(&l, "rank0.log", "2026-03-09 10:00:00,410 INFO [fit] rank 0/2 pid 900 ready on gn11\n");
    logs_add(&l, "rank1.log", CRASH);
    T_EQ_INT(fr_engine_new(&o, &l.engine, &l.err), 0);
    T_EQ_INT(fr_engine_add(l.engine, l.dir, &l.err), 0);
    T_EQ_INT(fr_engine_run(l.engine, &l.err), 0);
    T_OK(s.calls >= 2 && !s.backwards && s.total > 0);
    T_EQ_INT(s.last, s.total);
    logs_end(&l);
}

T_TEST(lines_bytes_and_places_are_those_of_the_file)
{
    struct logs l;
    logs_begin(&l);
    logs_add(&l, "rank1.log", "\n\r\nfirst words\r\n\xff\xfe bad bytes\n" CRASH "no newline at the end");
    T_EQ_STR(logs_answer(&l), "python-exception rank 1");
    const struct fr_incident *in = logs_incident(&l, 0);
    T_EQ_INT(l.report->input.lines, 9);
    T_EQ_INT(l.report->input.bytes, strlen("\n\r\nfirst words\r\n\xff\xfe bad bytes\n" CRASH "no newline at the end"));
    T_OK(in != NULL && in->evidence.n != 0);
    if (in != NULL && in->evidence.n != 0) {
        const struct fr_quote *q = &in->evidence.v[0];
        T_EQ_INT(q->line, 8);
        T_EQ_INT(q->offset, strstr("\n\r\nfirst words\r\n\xff\xfe bad bytes\n" CRASH, "[rank1]: KeyError") - "\n\r\nfirst words\r\n\xff\xfe bad bytes\n" CRASH);
        T_EQ_SV(q->text, FR_SV("KeyError: 'token_mask'"));
    }
    logs_end(&l);
}

/* One complaint a thousand times is one event with a count; a thousand different ones stay bounded and the report says so or copes. */
T_TEST(storms_are_bounded)
{
    struct logs l;
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    logs_begin(&l);
    for (int i = 0; i < 20000; i++) {
        fr_buf_printf(&b, "[rank0]:[W309 10:04:51.402113007 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=%d, addr=[gn12]:%d, "
                          "remote=[gn11]:29500): failed to recv, got 0 bytes\n", i % 977, 30000 + i);
    }
    logs_add(&l, "rank0.log", b.p);
    logs_add(&l, "rank1.log", CRASH);
    T_EQ_STR(logs_answer(&l), "python-exception rank 1");
    T_EQ_INT(l.report->input.lines, 20004);
    logs_end(&l);
}

static const char own_failure[] =
    "---\nid: reactor-coolant-low\ntitle: The coolant of the reactor is low\ncategory: hardware\nseverity: high\nlayer: hardware\n"
    "owner: infrastructure\naction: drain-node\nscope: rank\nweight: 95\nstacks: [pytorch]\ntags: [own]\nsignals:\n"
    "  - id: coolant\n    role: cause\n    literal: 'REACTOR COOLANT LOW'\n    yes: ['alarm: REACTOR COOLANT LOW']\n    no: ['reactor coolant fine']\n"
    "confirm: ['Look at the gauge.']\nfix: {primary: 'Refill it.', fallback: 'Stop the reactor.', emergency: 'Leave.'}\n"
    "verify: {command: 'gauge', expect: ['full'], absent: ['LOW']}\nprevent: ['Look at it every day.']\nrelated: []\n"
    "refs: ['https://example.org/coolant']\n---\n\n## Quick answer\n\nIt is low.\n\n## What this failure is\n\nLow.\n\n## Why it happens\n\nA leak.\n\n"
    "## Symptoms\n\n| symptom | why |\n|---|---|\n| heat | no coolant |\n";

T_TEST(a_users_own_failure)
{
    struct logs l, own;
    logs_begin(&l);
    logs_begin(&own);
    logs_add(&own, "reactor-coolant-low.md", own_failure);
    logs_add(&l, "rank0.log", "2026-03-09 10:00:00,410 INFO [fit] rank 0/1 pid 900 ready on gn11\nalarm: REACTOR COOLANT LOW\n");
    struct fr_engine_options o = {.size = sizeof o, .failures_dir = own.dir, .cache_dir = NULL};
    T_EQ_INT(fr_engine_new(&o, &l.engine, &l.err), 0);
    if (l.engine != NULL) {
        T_OK(fr_library_find(fr_engine_library(l.engine), FR_SV("reactor-coolant-low")) >= 0);
        T_EQ_INT(fr_engine_add(l.engine, l.dir, &l.err), 0);
        T_EQ_INT(fr_engine_run(l.engine, &l.err), 0);
        l.report = fr_engine_report(l.engine);
    }
    T_EQ_STR(logs_answer(&l), "reactor-coolant-low rank 0");
    T_EQ_STR(l.err.msg, "");
    logs_end(&l);
    logs_begin(&l);
    logs_add(&own, "broken.md", "---\nid: [\n");
    T_EQ_INT(fr_engine_new(&o, &l.engine, &l.err), -FR_SYNTAX);
    T_OK(l.engine == NULL && strstr(l.err.msg, "broken.md") != NULL);
    logs_end(&l);
    logs_end(&own);
}

int main(void)
{
    return t_run();
}
