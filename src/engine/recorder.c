/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/recorder.h"

#include "base/alloc.h"
#include "base/err.h"

#include <stdio.h>
#include <stdlib.h>

enum { LAST_TEXT_MAX = 240, KEY_MAX = 200 };

int fr_recorder_init(struct fr_recorder *r, struct fr_source_evidence *ev,
                     const struct fr_library *lib, const struct fr_peel_ctx *peel)
{
    *r = (struct fr_recorder){
        .ev = ev, .lib = lib, .peel = peel, .last_speaker = UINT32_MAX, .newest = UINT32_MAX, .said_rank = -1};
    fr_map_init(&r->by_content, &r->keys);
    fr_map_init(&r->by_speaker, &r->keys);
    r->per_signal = fr_calloc(lib->n_signals + 1, sizeof *r->per_signal);
    return r->per_signal == NULL ? -FR_NOMEM : 0;
}

void fr_recorder_release(struct fr_recorder *r)
{
    fr_free(r->per_signal);
    fr_arena_release(&r->keys);
    *r = (struct fr_recorder){0};
}

/* ---- life signs ---- */

static bool same_speaker(const struct fr_who *a, const struct fr_who *b)
{
    return a->rank == b->rank && a->local_rank == b->local_rank && a->task == b->task &&
           a->pid == b->pid && fr_sv_eq(a->node, b->node) && fr_sv_eq(a->role, b->role);
}

static struct fr_activity *speaker_of(struct fr_recorder *r, const struct fr_record *rec)
{
    if (r->last_speaker != UINT32_MAX &&
        same_speaker(&r->ev->speakers.v[r->last_speaker].who, &rec->who)) {
        return &r->ev->speakers.v[r->last_speaker];
    }
    char key[KEY_MAX];
    const struct fr_who *w = &rec->who;
    int n = snprintf(key, sizeof key, "%d/%d/%d/%lld/%.*s/%.*s", w->rank, w->local_rank, w->task,
                     (long long)w->pid, (int)(w->node.n < 64 ? w->node.n : 64),
                     w->node.p ? w->node.p : "", (int)(w->role.n < 32 ? w->role.n : 32),
                     w->role.p ? w->role.p : "");
    bool fresh = false;
    uint32_t *slot = fr_map_slot(
        &r->by_speaker, (fr_sv){key, (size_t)n < sizeof key ? (size_t)n : sizeof key - 1}, &fresh);
    if (slot == NULL) {
        return NULL;
    }
    if (fresh) {
        struct fr_activity *a =
            r->ev->speakers.n < FR_RECORDER_SPEAKERS ? FR_PUSH(&r->ev->speakers) : NULL;
        if (a == NULL) {
            *slot = UINT32_MAX;
            r->ev->flags |= FR_SRC_LIMIT;
            return NULL;
        }
        *a = (struct fr_activity){.who = rec->who,
                                  .first_line = rec->lineno,
                                  .first = FR_WHEN_NONE,
                                  .last = FR_WHEN_NONE,
                                  .last_step = -1};
        a->who.node = fr_arena_dup(&r->ev->arena, w->node);
        a->who.role = fr_arena_dup(&r->ev->arena, w->role);
        *slot = r->ev->speakers.n - 1;
    }
    if (*slot == UINT32_MAX) {
        return NULL;
    }
    r->last_speaker = *slot;
    return &r->ev->speakers.v[*slot];
}

/* The last text is kept in a fixed place of the arena, written over: life signs are many. */
static void keep_text(struct fr_recorder *r, fr_sv *slot, fr_sv text)
{
    fr_sv cut = fr_sv_head(fr_sv_trim(text), LAST_TEXT_MAX);
    if (slot->p == NULL) {
        slot->p = fr_arena_alloc(&r->ev->arena, LAST_TEXT_MAX + 1);
        if (slot->p == NULL) {
            return;
        }
    }
    if (cut.n != 0) {
        memcpy((char *)(uintptr_t)slot->p, cut.p, cut.n);
    }
    ((char *)(uintptr_t)slot->p)[cut.n] = '\0';
    slot->n = cut.n;
}

uint32_t fr_recorder_speaker(struct fr_recorder *r, const struct fr_record *rec)
{
    return speaker_of(r, rec) != NULL ? r->last_speaker : UINT32_MAX;
}

static void sign(struct fr_activity *a, const struct fr_when *t, uint64_t lineno)
{
    a->lines++;
    a->last_line = lineno;
    if (t->basis != FR_TIME_BASIS_NONE) {
        if (a->first.basis == FR_TIME_BASIS_NONE) {
            a->first = *t;
        }
        a->last = *t;
    }
}

/* A newer text of the same speaker is at hand. */
static void forget_late(struct fr_recorder *r, uint32_t speaker)
{
    for (uint32_t i = 0; i < r->n_late; i++) {
        if (r->late[i].speaker == speaker) {
            r->late[i].segment = FR_SV_NONE;
        }
    }
    r->newest = UINT32_MAX;
}

void fr_recorder_alive(struct fr_recorder *r, const struct fr_record *rec)
{
    struct fr_activity *a = speaker_of(r, rec);
    if (a == NULL) {
        return;
    }
    sign(a, rec->when.basis != FR_TIME_BASIS_NONE ? &rec->when : &rec->outer, rec->lineno);
    if (rec->text.n != 0) {
        forget_late(r, r->last_speaker);
        keep_text(r, &a->last_text, rec->text);
        keep_text(r, &r->ev->last_text, rec->text);
        r->ev->last_line_no = rec->lineno;
    }
}

static void step(struct fr_recorder *r, struct fr_activity *a, uint64_t lineno,
                 const struct fr_point *p)
{
    struct fr_source_evidence *ev = r->ev;
    for (unsigned i = sizeof ev->metric_tail / sizeof *ev->metric_tail - 1; i > 0; i--) {
        ev->metric_tail[i] = ev->metric_tail[i - 1];
    }
    ev->metric_tail[0] = lineno;
    if (a != NULL && p->step >= 0) {
        a->last_step = p->step;
    }
}

void fr_recorder_progress(struct fr_recorder *r, const struct fr_record *rec,
                          const struct fr_point *p)
{
    step(r, speaker_of(r, rec), rec->lineno, p);
}

void fr_recorder_settle(struct fr_recorder *r)
{
    for (uint32_t i = 0; i < r->n_late; i++) {
        const struct fr_late *l = &r->late[i];
        struct fr_record rec;
        if (l->segment.n == 0) {
            continue;
        }
        fr_peel(r->peel, l->segment, &rec);
        keep_text(r, &r->ev->speakers.v[l->speaker].last_text, rec.text);
        if (i == r->newest) {
            keep_text(r, &r->ev->last_text, rec.text);
            r->ev->last_line_no = l->lineno;
        }
    }
    r->n_late = 0;
    r->newest = UINT32_MAX;
}

void fr_recorder_alive_late(struct fr_recorder *r, uint32_t speaker, const struct fr_when *when,
                            fr_sv segment, uint64_t lineno, const struct fr_point *p)
{
    struct fr_activity *a = &r->ev->speakers.v[speaker];
    uint32_t i = 0;
    if (p != NULL) {
        step(r, a, lineno, p);
    }
    sign(a, when, lineno);
    while (i < r->n_late && r->late[i].speaker != speaker) {
        i++;
    }
    if (i == FR_RECORDER_LATE) {
        fr_recorder_settle(r);
        i = 0;
    }
    r->late[i] = (struct fr_late){speaker, segment, lineno};
    r->n_late += i == r->n_late;
    r->newest = i;
}

/* ---- events ---- */

/* What makes two events equal, as 128 bits: keys of a map that are texts would take more room than
 * the events. */
struct content {
    uint64_t a, b;
};

static inline void mix(struct content *c, uint64_t v)
{
    c->a = (c->a ^ v) * 0x9e3779b97f4a7c15u;
    c->b = (c->b + v) * 0xc2b2ae3d27d4eb4fu;
    c->a ^= c->a >> 29;
    c->b ^= c->b >> 31;
}

/* Does a rank's number begin at i: "rank 3", "Rank: 3", "ranks=[3"? */
static bool is_rank_at(fr_sv text, size_t i)
{
    const size_t window = 10;
    fr_sv before = fr_sv_skip(fr_sv_head(text, i), i > window ? i - window : 0);
    while (before.n != 0 && strchr(" =:#[(", before.p[before.n - 1]) != NULL) {
        before.n--;
    }
    before.n -= before.n > 4 && before.p[before.n - 1] == 's';
    return fr_sv_ends(before, FR_SV("rank")) || fr_sv_ends(before, FR_SV("Rank"));
}

/* Digits count as one: the same message about another address, step or time is the same event; about another rank it is not. */
static void mix_text(struct content *c, fr_sv text, bool exact)
{
    bool in_number = false, kept = exact;
    for (size_t i = 0; i < text.n; i++) {
        bool digit = text.p[i] >= '0' && text.p[i] <= '9';
        if (digit && !in_number) {
            kept = exact || is_rank_at(text, i);
        }
        if (!digit || kept || !in_number) {
            mix(c, digit && !kept ? '#' : (unsigned char)text.p[i]);
        }
        in_number = digit;
    }
}

static struct content content_of(const struct fr_record *rec, const uint16_t *signals, unsigned n,
                                 const struct fr_draft *d, bool alone)
{
    const struct fr_who *w = &rec->who;
    struct content c = {0x243f6a8885a308d3u, 0x13198a2e03707344u};
    mix(&c,
        (uint64_t)(d != NULL ? d->fact : 0) << 32 | (uint64_t)n << 16 | (n != 0 ? signals[0] : 0));
    mix(&c, (uint64_t)(uint32_t)w->rank << 32 | (uint32_t)w->local_rank);
    mix(&c, (uint32_t)w->task);
    mix(&c, (uint64_t)w->pid);
    mix(&c, alone ? rec->lineno : 0);
    mix_text(&c, fr_sv_head(rec->text, FR_EVENT_TEXT_MAX),
             d != NULL); /* a fact's numbers are its content */
    return c;
}

static void drop(struct fr_recorder *r)
{
    r->ev->dropped_events++;
    r->ev->flags |= FR_SRC_LIMIT;
}

static struct fr_event *event_new(struct fr_recorder *r, const struct fr_record *rec)
{
    struct fr_source_evidence *ev = r->ev;
    if (ev->events.n >= FR_RECORDER_EVENTS) {
        drop(r);
        return NULL;
    }
    struct fr_event *e = FR_PUSH(&ev->events);
    if (e == NULL) {
        return NULL;
    }
    *e = (struct fr_event){.seq = ev->events.n - 1,
                           .offset = rec->offset,
                           .line = rec->lineno,
                           .who = rec->who,
                           .when = rec->when,
                           .outer = rec->outer,
                           .level = rec->level,
                           .is_kernel = rec->is_kernel,
                           .count = 1,
                           .last_line = rec->lineno,
                           .last_when = rec->when};
    e->text = fr_arena_dup(&ev->arena, fr_sv_head(rec->text, FR_EVENT_TEXT_MAX));
    e->who.node = fr_arena_dup(&ev->arena, rec->who.node);
    e->who.role = fr_arena_dup(&ev->arena, rec->who.role);
    return e;
}

/* Causes before symptoms, specific before general, so that the first one is the event's class. */
static int rank_of_signal(const struct fr_library *lib, uint16_t s)
{
    static const int by_role[] = {4000, 3000, 2000, 1000, 0};
    return by_role[lib->signals[s].role] + lib->failures[lib->signals[s].failure].weight;
}

static void set_signals(struct fr_recorder *r, struct fr_event *e, const uint16_t *signals,
                        unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned at = e->n_signals;
        while (at > 0 &&
               rank_of_signal(r->lib, e->signals[at - 1]) < rank_of_signal(r->lib, signals[i])) {
            at--;
        }
        if (at >= FR_EVENT_SIGNALS) {
            continue;
        }
        unsigned last = e->n_signals < FR_EVENT_SIGNALS ? e->n_signals : FR_EVENT_SIGNALS - 1;
        memmove(e->signals + at + 1, e->signals + at, (last - at) * sizeof e->signals[0]);
        e->signals[at] = signals[i];
        e->n_signals = (uint8_t)(last + 1);
    }
}

static void set_caps(struct fr_recorder *r, struct fr_event *e, const struct fr_cap *caps,
                     unsigned n)
{
    struct fr_cap *all = n == 0 ? NULL : FR_NEW_N(&r->ev->arena, struct fr_cap, e->n_caps + n);
    if (all == NULL) {
        return;
    }
    if (e->n_caps != 0) {
        memcpy(all, e->caps, e->n_caps * sizeof *all);
    }
    for (unsigned i = 0; i < n; i++) {
        all[e->n_caps + i] = caps[i];
        all[e->n_caps + i].text =
            fr_arena_dup(&r->ev->arena, fr_sv_head(caps[i].text, FR_EVENT_TEXT_MAX));
        all[e->n_caps + i].name = fr_arena_dup(&r->ev->arena, caps[i].name);
    }
    e->caps = all;
    e->n_caps = (uint16_t)(e->n_caps + n);
}

/* which: of the facts that the line brings. */
static int one_event(struct fr_recorder *r, struct fr_scanner *scanner, const struct fr_record *rec,
                     const uint16_t *signals, unsigned n, const struct fr_draft *d, int which)
{
    /* Lines of a traceback belong to it: the same words in the next one are another process's. */
    bool alone = r->in_trace && n != 0 && r->per_signal[signals[0]] < FR_RECORDER_PER_SIGNAL / 2;
    struct content content = content_of(rec, signals, n, d, alone);
    mix(&content, (uint64_t)which);
    fr_sv key = {(const char *)&content, sizeof content};
    uint32_t at;
    if (fr_map_get(&r->by_content, key, &at)) {
        struct fr_event *old = &r->ev->events.v[at];
        old->count++;
        old->last_line = rec->lineno;
        old->last_when = rec->when;
        return 0;
    }
    if (n != 0 && r->per_signal[signals[0]] >= FR_RECORDER_PER_SIGNAL) {
        r->ev->dropped_events++;
        return 0;
    }
    struct fr_event *e = event_new(r, rec);
    if (e == NULL) {
        return 0;
    }
    if (n != 0) {
        r->per_signal[signals[0]]++;
    }
    if (!fr_map_put(&r->by_content, key, r->ev->events.n - 1)) {
        return -FR_NOMEM;
    }
    set_signals(r, e, signals, n);
    if (d != NULL) {
        e->fact = d->fact;
        set_caps(r, e, d->caps, d->n_caps);
    }
    for (unsigned i = 0; i < e->n_signals; i++) {
        struct fr_cap caps[8];
        int got = r->lib->signals[e->signals[i]].n_captures == 0
                      ? 0
                      : fr_scan_captures(scanner, e->signals[i], rec->text, caps, 8);
        set_caps(r, e, caps, got > 0 ? (unsigned)got : 0);
    }
    return 0;
}

/* A line without a header goes on with the message of the line above: indented, it is no error but a warning's second line; and
 * CANN's own error stands below that of torch_npu, which says the rank. */
static bool goes_on(const struct fr_recorder *r, const struct fr_record *rec)
{
    bool bare = rec->level == FR_LEVEL_NONE && rec->when.basis == FR_TIME_BASIS_NONE && rec->text.n != 0;
    bool indented = bare && (rec->text.p[0] == ' ' || rec->text.p[0] == '\t');
    return bare && rec->lineno == r->said_line + 1 &&
           ((indented && r->said_level == FR_LEVEL_WARN && !r->in_trace) || (r->said_rank >= 0 && fr_is_cann(rec->text)));
}

int fr_recorder_event(struct fr_recorder *r, struct fr_scanner *scanner,
                      const struct fr_record *given, const uint16_t *signals, unsigned n_signals,
                      const struct fr_draft *facts, int n_facts)
{
    struct fr_record continued;
    const struct fr_record *rec = given;
    if (goes_on(r, given)) {
        continued = *given;
        continued.level = r->said_level;
        continued.when = r->said;
        continued.who.rank = continued.who.rank < 0 ? r->said_rank : continued.who.rank;
        rec = &continued;
    }
    r->said_line = rec->lineno;
    r->said_level = rec->level;
    r->said = rec->when;
    r->said_rank = rec->who.rank;
    int rc = one_event(r, scanner, rec, signals, n_signals, n_facts > 0 ? &facts[0] : NULL, 0);
    for (int i = 1; rc == 0 && i < n_facts; i++) {
        rc = one_event(r, scanner, rec, NULL, 0, &facts[i], i);
    }
    return rc;
}

static struct fr_event *event_of(struct fr_recorder *r, const struct fr_trace_done *done)
{
    struct fr_record rec = {.text = done->exc_text,
                            .offset = done->exc_offset,
                            .lineno = done->exc_line,
                            .who = done->who,
                            .when = done->when,
                            .outer = done->outer};
    return event_new(r, &rec);
}

/* A destructor's or exit handler's complaint: nothing died of it, whatever its lines say. */
static void ignore_lines(struct fr_recorder *r, const struct fr_trace_done *done)
{
    for (uint32_t i = 0; i < r->ev->events.n; i++) {
        struct fr_event *e = &r->ev->events.v[i];
        if (e->line >= done->line && e->line <= done->exc_line &&
            same_speaker(&e->who, &done->who)) {
            e->n_signals = 0;
        }
    }
}

/* The event of the exception's own line. Below a header with a logger's prefix that line stands bare: the trace knows whose it is. */
static bool is_of_trace(struct fr_recorder *r, struct fr_event *e, const struct fr_trace_done *done)
{
    static const struct fr_who nobody = FR_WHO_NONE;
    bool others = e->trace != NULL && e->line == e->trace->last_line && e->line != done->exc_line;
    if (e->line < done->line || e->line > done->exc_line || others) {
        return false; /* tracebacks of several processes are printed line by line: the exception of one stands inside another */
    }
    if (e->line == done->exc_line && same_speaker(&e->who, &nobody) &&
        fr_sv_eq(e->text, fr_sv_head(done->exc_text, FR_EVENT_TEXT_MAX))) {
        e->who = done->who;
        e->who.node = fr_arena_dup(&r->ev->arena, done->who.node);
        e->who.role = fr_arena_dup(&r->ev->arena, done->who.role);
        e->when = e->when.basis == FR_TIME_BASIS_NONE ? done->when : e->when;
    }
    return same_speaker(&e->who, &done->who);
}

/* The traceback in a row of torchrun's table is that of the rank the row is about, whoever prints the table. */
static void name_lines(struct fr_recorder *r, const struct fr_trace_done *done)
{
    int64_t rank = -1;
    for (unsigned i = 0; i < done->row.n_caps; i++) {
        rank = done->row.caps[i].key == FR_KEY_RANK ? done->row.caps[i].num : rank;
    }
    for (uint32_t i = r->ev->events.n; rank >= 0 && i-- > 0;) {
        struct fr_event *e = &r->ev->events.v[i];
        if (e->line > done->exc_line && e->line <= done->row_end && e->who.rank < 0 && same_speaker(&e->who, &done->who)) {
            e->who.rank = (int32_t)rank;
            e->in_row = true;
        }
    }
}

static void take_row(struct fr_recorder *r, const struct fr_trace_done *done)
{
    name_lines(r, done);
    struct fr_event *row = event_of(r, done);
    if (row != NULL) {
        row->fact = done->row.fact;
        set_caps(r, row, done->row.caps, done->row.n_caps);
    }
}

int fr_recorder_trace(struct fr_recorder *r, const struct fr_trace_done *done)
{
    struct fr_source_evidence *ev = r->ev;
    if (done->is_row) {
        take_row(r, done);
        return 0;
    }
    if (done->ignored) {
        ignore_lines(r, done);
        return 0;
    }
    struct fr_trace *copy = FR_NEW(&ev->arena, struct fr_trace);
    if (copy == NULL) {
        return -FR_NOMEM;
    }
    *copy = done->trace;
    bool attached = false, origin_attached = copy->origin_line == 0;
    for (uint32_t i = 0; i < ev->events.n;
         i++) { /* events are not yet in line order: traces end when their speaker speaks again */
        struct fr_event *e = &ev->events.v[i];
        if (is_of_trace(r, e, done)) {
            e->trace = copy;
            attached |= e->line == done->exc_line;
        }
        if (e->line == copy->origin_line && same_speaker(&e->who, &done->who)) {
            e->trace = copy; /* an inner traceback comes after the line that re-raises it */
            origin_attached = true;
        }
    }
    struct fr_event *e = attached ? NULL : event_of(r, done);
    if (e != NULL) {
        e->trace = copy;
    }
    struct fr_record rec = {.text = copy->origin_text,
                            .offset = copy->origin_offset,
                            .lineno = copy->origin_line,
                            .who = done->who,
                            .when = done->when,
                            .outer = done->outer};
    e = origin_attached ? NULL : event_new(r, &rec);
    if (e != NULL) {
        e->trace = copy;
    }
    return 0;
}

/* The type of "pkg.mod.SomeError: message" at the start of text; empty when it does not look like
 * one. */
static fr_sv exception_type(fr_sv text)
{
    size_t colon = fr_sv_find(fr_sv_head(text, 120), FR_SV(": "));
    fr_sv type = fr_sv_head(text, colon == FR_NPOS ? 0 : colon);
    for (size_t i = 0; i < type.n; i++) {
        char ch = type.p[i];
        bool word = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
                    (ch >= '0' && ch <= '9') || ch == '.' || ch == '_';
        if (!word) {
            return FR_SV_NONE;
        }
    }
    bool named =
        type.n > 6 && (fr_sv_ends(type, FR_SV("Error")) || fr_sv_ends(type, FR_SV("Exception")));
    return named && !(type.p[0] >= '0' && type.p[0] <= '9') ? type : FR_SV_NONE;
}

int fr_recorder_bare(struct fr_recorder *r, const struct fr_record *rec)
{
    fr_sv type = exception_type(rec->text);
    if (type.n == 0 || (rec->level != FR_LEVEL_NONE && rec->level <= FR_LEVEL_WARN)) {
        return 0;
    }
    struct fr_event *e = event_new(r, rec);
    struct fr_trace *t = e == NULL ? NULL : FR_NEW(&r->ev->arena, struct fr_trace);
    if (t == NULL) {
        return 0;
    }
    fr_sv message = fr_sv_skip(rec->text, type.n + 2);
    *t = (struct fr_trace){.exception = fr_arena_dup(&r->ev->arena, type),
                           .message = fr_arena_dup(&r->ev->arena, fr_sv_head(message, 1024)),
                           .first_line = rec->lineno,
                           .last_line = rec->lineno,
                           .kind = FR_TRACE_PYTHON,
                           .truncated = true,
                           .line = -1};
    e->trace = t;
    return 0;
}

static int cmp_event(const void *pa, const void *pb)
{
    const struct fr_event *a = pa, *b = pb;
    return a->line != b->line ? (a->line < b->line ? -1 : 1)
                              : (a->seq > b->seq) - (a->seq < b->seq);
}

void fr_recorder_finish(struct fr_recorder *r)
{
    struct fr_source_evidence *ev = r->ev;
    if (ev->events.n != 0) {
        qsort(ev->events.v, ev->events.n, sizeof *ev->events.v, cmp_event);
    }
    for (uint32_t i = 0; i < ev->events.n; i++) {
        ev->events.v[i].seq = i;
    }
}
