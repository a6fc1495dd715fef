/* SPDX-License-Identifier: Apache-2.0 */
/* collect: bytes -> chunks -> hits -> events, activity, series. The matcher decides which lines are
 * looked at; on top of that every line of the first and last 64 KiB of a member is, and every line
 * while a traceback is open. */
#include "engine/collect.h"

#include "base/alloc.h"
#include "engine/known.h"
#include "engine/recorder.h"
#include "format/format.h"
#include "format/own_tag.h"
#include "format/relay.h"
#include "series/series.h"

enum { ABOVE_MAX = 512 };            /* bytes of a line that are enough to know its level */
enum { HEAD_BYTES = 60u << 10 }; /* of a source that are enough to know what stands in front of its lines; every first window has them */

struct fr_collector {
    struct fr_collect_options o;
    struct fr_reader *reader;
    struct fr_scanner *scanner;
    struct fr_tracer *tracer;
    struct fr_series *series; /* of the current member */
    struct fr_arena scratch;
    struct fr_peel_ctx peel;
    struct fr_own_tag own; /* of the current member */
    struct fr_relay relay;
    struct fr_recorder rec; /* of the current member */
    struct fr_forms forms;  /* of its metric lines; tag: the speaker */
    struct fr_form bars;    /* nobody's, of its progress bars; tag UINT32_MAX: none seen */
    struct fr_known known;
    bool edge;              /* the current chunk is head or tail */
    fr_sv chunk;            /* the current one */
    char before[ABOVE_MAX]; /* the last line of the one before it, cut */
    size_t before_n;
};

int fr_collector_new(const struct fr_collect_options *o, struct fr_collector **ret,
                     struct fr_err *err)
{
    struct fr_collector *c = fr_calloc(1, sizeof *c);
    if (c == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    c->o = *o;
    c->scratch = FR_ARENA_INIT(64u << 20);
    int rc = fr_reader_new(o->input, o->skip, o->skip_ctx, &c->reader, err);
    if (rc == 0) {
        rc = fr_scanner_new(o->rules, o->engine, &c->scanner, err);
    }
    if (rc == 0) {
        rc = fr_tracer_new(&c->tracer);
        rc = rc != 0 ? fr_err_set(err, -rc, "out of memory") : 0;
    }
    if (rc != 0) {
        fr_collector_free(&c);
        return rc;
    }
    *ret = c;
    return 0;
}

void fr_collector_free(struct fr_collector **pc)
{
    struct fr_collector *c = *pc;
    if (c == NULL) {
        return;
    }
    fr_tracer_free(&c->tracer);
    fr_series_free(&c->series);
    fr_scanner_free(&c->scanner);
    fr_reader_free(&c->reader);
    fr_arena_release(&c->scratch);
    fr_free(c);
    *pc = NULL;
}

/* ---- one segment of one line ---- */

/* Keeps of the line's signals those whose literal stands in this segment. */
static unsigned signals_of(const struct fr_library *lib, const struct fr_hit *hit, fr_sv segment,
                           uint16_t *ret)
{
    unsigned n = 0;
    for (unsigned i = 0; i < hit->n_signals; i++) {
        const char *const *l = lib->signals[hit->signals[i]].literals;
        while (*l != NULL && !fr_sv_has(segment, fr_sv_z(*l))) {
            l++;
        }
        if (*l != NULL) {
            ret[n++] = hit->signals[i];
        }
    }
    return n;
}

static int trace_done(struct fr_collector *c, const struct fr_record *rec)
{
    struct fr_trace_done done;
    int rc;
    while ((rc = fr_tracer_feed(c->tracer, rec, &c->rec.ev->arena, &done)) == 1) {
        rc = fr_recorder_trace(&c->rec, &done);
        if (rc < 0 || rec != NULL) {
            return rc;
        }
    }
    return rc;
}

static int take_facts(struct fr_collector *c, const struct fr_hit *hit, const struct fr_record *rec,
                      struct fr_draft *drafts, int max)
{
    int n = 0;
    for (uint64_t left = hit->facts; left != 0 && n < max; left &= left - 1) {
        const struct fr_format *f = fr_formats[__builtin_ctzll(left)];
        if (f->facts != NULL) {
            n += f->facts(&c->peel, rec, drafts + n, max - n);
        }
    }
    return n;
}

static bool take_point(struct fr_collector *c, const struct fr_hit *hit, const struct fr_who *who,
                       const struct fr_when *when, fr_sv segment, struct fr_point *ret)
{
    if (!fr_point_parse(segment, hit->metrics, ret)) {
        return false;
    }
    fr_series_add(c->series, ret, who, when, hit->lineno, hit->offset, segment);
    return true;
}

/* ---- the short way ---- A fifth of the lines of a training log are metrics and bring nothing
 * else. Most differ from an earlier one in digits only, and are read by its example; where digits
 * make no literal, the scan leaves them to us as they are. Of the others, nothing is peeled off
 * those whose prefix is known, nor off progress bars. */

enum { FINDS_ENOUGH = 4 };

static bool is_plain(const struct fr_collector *c, const struct fr_hit *hit)
{
    return hit->metrics != 0 && hit->n_signals == 0 && hit->facts == 0 && hit->traces == 0 &&
           !c->edge && !fr_tracer_open(c->tracer);
}

static void take_metrics(struct fr_collector *c, const struct fr_hit *hit, fr_sv segment,
                         const struct fr_form *form, const struct fr_when *when)
{
    struct fr_point point;
    bool is_point = take_point(c, hit, &form->who, when, segment, &point);
    fr_recorder_alive_late(&c->rec, form->tag, when, segment, hit->lineno,
                           is_point ? &point : NULL);
    fr_known_learn(&c->known, hit->metrics, segment, form);
}

static void put_known(struct fr_collector *c, struct fr_known_line *line, fr_sv segment,
                      const struct fr_when *when, uint64_t lineno, uint64_t offset)
{
    const struct fr_point *point = fr_shape_point(&line->shape, segment);
    if (point != NULL && line->seat == NULL) {
        line->seat = fr_series_seat(c->series, &line->form.who, point->dialect);
    }
    if (point != NULL && line->seat != NULL) {
        fr_series_put(c->series, line->seat, point, when, lineno, offset, segment);
    }
    fr_recorder_alive_late(&c->rec, line->form.tag, when, segment, lineno, point);
}

/* Whether such lines have always the literals that this one has: asked when they turn out to be
 * common. */
static void find_out(struct fr_collector *c, const struct fr_hit *hit, struct fr_known_line *line)
{
    if (++line->n_found == FINDS_ENOUGH) {
        bool may_bring_more = hit->asked || fr_scan_digits_matter(c->scanner, hit->line);
        line->whole = may_bring_more ? FR_KNOWN_NOT : FR_KNOWN_WHOLE;
    }
}

/* A segment that differs from an earlier one in digits only. */
static bool take_known(struct fr_collector *c, const struct fr_hit *hit, fr_sv segment)
{
    struct fr_when when;
    struct fr_known_line *line = fr_known_find(&c->known, hit->metrics, segment, &when);
    if (line == NULL) {
        return false;
    }
    if (line->whole == FR_KNOWN_UNASKED && segment.n == hit->line.n) {
        find_out(c, hit, line);
    }
    put_known(c, line, segment, &when, hit->lineno, hit->offset);
    return true;
}

/* Lines whose literals need not be looked for. */
static size_t take_whole_lines(void *ctx, fr_sv rest, size_t first, uint64_t offset,
                               uint64_t lineno, uint64_t *ret_lines)
{
    struct fr_collector *c = ctx;
    struct fr_when when;
    size_t n = 0;
    uint64_t lines = 0;
    struct fr_known_line *line =
        first < rest.n ? fr_known_first(&c->known, fr_sv_head(rest, first), offset, &when) : NULL;
    while (line != NULL) {
        fr_sv segment = {rest.p + n, line->shape.n};
        put_known(c, line, segment, &when, lineno + lines, offset + n);
        n += segment.n + 1;
        lines++;
        line = fr_known_then(&c->known, fr_sv_skip(rest, n), &when);
    }
    *ret_lines = lines;
    return n;
}

/* A line that is one segment of a known form: most of them. */
static bool take_known_line(struct fr_collector *c, const struct fr_hit *hit)
{
    struct fr_when when;
    fr_sv line = hit->line;
    line.n -= line.n > 0 && line.p[line.n - 1] == '\r';
    if (take_known(c, hit, line)) {
        return true;
    }
    const struct fr_form *form = line.n == 0 || memchr(line.p, '\r', line.n) != NULL
                                     ? NULL
                                     : fr_forms_find(&c->forms, hit->metrics, line, &when);
    if (form == NULL || !fr_segment_is_whole(line, form->n)) {
        return false;
    }
    take_metrics(c, hit, line, form, &when);
    return true;
}

/* The pieces that redrawn bars make of a line, as long as they are known: moves *rest past them. */
static void take_known_pieces(struct fr_collector *c, const struct fr_hit *hit, fr_sv *rest)
{
    while (rest->n != 0) {
        const char *cr = memchr(rest->p, '\r', rest->n);
        fr_sv piece = cr != NULL ? fr_sv_range(rest->p, cr) : *rest;
        if (piece.n == hit->line.n || (piece.n != 0 && !take_known(c, hit, piece))) {
            return;
        }
        *rest = fr_sv_skip(*rest, piece.n + (cr != NULL));
    }
}

static bool take_known_segment(struct fr_collector *c, const struct fr_hit *hit, fr_sv segment)
{
    struct fr_when when = FR_WHEN_NONE;
    if (take_known(c, hit, segment)) {
        return true;
    }
    if (c->bars.tag != UINT32_MAX && fr_form_is_bar(segment)) {
        take_metrics(c, hit, segment, &c->bars, &when);
        return true;
    }
    const struct fr_form *form = fr_forms_find(&c->forms, hit->metrics, segment, &when);
    if (form != NULL) {
        take_metrics(c, hit, segment, form, &when);
    }
    return form != NULL;
}

/* rec: what was peeled off the segment, the long way. */
static void learn(struct fr_collector *c, const struct fr_hit *hit, fr_sv segment,
                  const struct fr_record *rec)
{
    uint32_t speaker = fr_recorder_speaker(&c->rec, rec);
    if (speaker == UINT32_MAX) {
        return;
    }
    if (fr_form_is_bar(segment)) {
        c->bars.tag = speaker;
        return;
    }
    struct fr_who who = rec->who;
    who.node = c->rec.ev->speakers.v[speaker].who.node;
    who.role = c->rec.ev->speakers.v[speaker].who.role;
    fr_forms_learn(&c->forms, hit->metrics, segment, rec, &who, speaker);
}

/* ---- the long way ---- */

/* The last line of text, which ends before its last newline. */
static fr_sv last_line(fr_sv text)
{
    text.n -= text.n > 0 && text.p[text.n - 1] == '\n';
    const char *nl = text.n > 0 ? memrchr(text.p, '\n', text.n) : NULL;
    fr_sv line = nl != NULL ? fr_sv_range(nl + 1, text.p + text.n) : text;
    return fr_sv_head(line, ABOVE_MAX);
}

/* The line speaks of an exception, so that a traceback right below it is that one and not another process's. */
static bool tells_of_exception(fr_sv text)
{
    static const fr_sv words[] = {FR_SV("exception"), FR_SV("uncaught"), FR_SV("unhandled"),
                                  FR_SV("traceback"), FR_SV("Error")};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (fr_sv_find_ci(text, words[i]) != FR_NPOS) {
            return true;
        }
    }
    return false;
}

/* logging.error(..., exc_info=True) prints its line and the traceback below it, bare: how grave it is, and who speaks,
 * stand in that line. *ret is it. */
static void look_above(struct fr_collector *c, const struct fr_hit *hit, struct fr_record *rec, struct fr_record *ret)
{
    bool inside = hit->line.p > c->chunk.p && hit->line.p < c->chunk.p + c->chunk.n;
    fr_sv line = inside ? last_line(fr_sv_range(c->chunk.p, hit->line.p)) : FR_SV_NONE;
    if (hit->line.p == c->chunk.p) {
        line = (fr_sv){c->before, c->before_n};
    }
    *ret = (struct fr_record){.line = line, .text = line, .who = FR_WHO_NONE, .when = FR_WHEN_NONE, .outer = FR_WHEN_NONE};
    if (line.n > 0) {
        fr_peel(&c->peel, line, ret);
        bool nccl = ret->who.gpu >= 0 && ret->who.pid >= 0; /* C code, which tells of no exception */
        rec->above = nccl ? FR_LEVEL_NONE : ret->level;
        rec->in_thread = fr_sv_starts(ret->text, FR_SV("Exception in thread "));
        rec->teller = ret->level >= FR_LEVEL_ERROR && tells_of_exception(ret->text) ? ret : NULL;
    }
}

/* "Scheduler hit an exception: Traceback ...": what the traceback is about stands before it, not in the line above. */
static bool tells_itself(fr_sv text)
{
    size_t at = fr_sv_find(text, FR_SV("Traceback (most recent call last)"));
    return at != FR_NPOS && fr_sv_trim(fr_sv_head(text, at)).n > 3;
}

static int on_segment(struct fr_collector *c, const struct fr_hit *hit, fr_sv segment, bool only)
{
    struct fr_record rec = {.line = segment,
                            .text = segment,
                            .offset = hit->offset,
                            .lineno = hit->lineno,
                            .who = FR_WHO_NONE,
                            .when = FR_WHEN_NONE,
                            .outer = FR_WHEN_NONE};
    uint16_t signals[FR_HIT_SIGNALS];
    struct fr_draft drafts[4];
    struct fr_point point;
    struct fr_record above;
    fr_peel(&c->peel, segment, &rec);
    rec.offset = hit->offset;
    rec.lineno = hit->lineno;
    unsigned n = 0;
    if (hit->n_signals != 0) {
        if (only) {
            n = hit->n_signals;
            memcpy(signals, hit->signals, n * sizeof *signals);
        } else {
            n = signals_of(c->o.library, hit, segment, signals);
        }
    }
    int facts = hit->facts != 0 ? take_facts(c, hit, &rec, drafts, 4) : 0;
    if (hit->metrics != 0 && take_point(c, hit, &rec.who, &rec.when, segment, &point)) {
        fr_recorder_progress(&c->rec, &rec, &point);
    }
    fr_recorder_alive(&c->rec, &rec);
    int rc = 0;
    if (n == 0 && facts == 0 && !fr_tracer_open(c->tracer) && !fr_trace_opens(rec.text)) {
        rc = fr_recorder_bare(&c->rec, &rec);
    }
    c->rec.in_trace = fr_tracer_open(c->tracer);
    if (rc == 0 && (n != 0 || facts != 0)) {
        rc = fr_recorder_event(&c->rec, c->scanner, &rec, signals, n, drafts, facts);
    }
    if (rc >= 0 && (fr_tracer_open(c->tracer) || hit->traces != 0 || fr_trace_opens(rec.text))) {
        if (rec.level == FR_LEVEL_NONE && fr_trace_opens(rec.text) && !tells_itself(rec.text)) {
            look_above(c, hit, &rec, &above);
        }
        rc = trace_done(c, &rec);
    }
    if (is_plain(c, hit)) {
        learn(c, hit, segment, &rec);
    }
    return rc;
}

static int on_hit(void *ctx, const struct fr_hit *hit)
{
    struct fr_collector *c = ctx;
    fr_sv rest = hit->line, segment;
    int rc = 0;
    bool blank = true, plain = is_plain(c, hit);
    if (plain && take_known_line(c, hit)) {
        return FR_SCAN_HITS;
    }
    if (plain) {
        take_known_pieces(c, hit, &rest);
        blank = rest.n != hit->line.n;
    }
    fr_arena_reset(&c->scratch);
    while (rc >= 0 && fr_segment_next(&rest, &segment)) {
        if (!plain || !take_known_segment(c, hit, segment)) {
            rc = on_segment(c, hit, segment, segment.n + 2 >= hit->line.n);
        }
        blank = false;
    }
    if (blank && fr_tracer_open(c->tracer)) { /* ends the message of an exception */
        struct fr_record empty = {.line = hit->line,
                                  .text = FR_SV(""),
                                  .offset = hit->offset,
                                  .lineno = hit->lineno,
                                  .who = FR_WHO_NONE,
                                  .when = FR_WHEN_NONE,
                                  .outer = FR_WHEN_NONE};
        rc = trace_done(c, &empty);
    }
    if (rc < 0) {
        return rc;
    }
    return c->edge || fr_tracer_open(c->tracer) ? FR_SCAN_EVERY : FR_SCAN_HITS;
}

/* ---- one member ---- */

static int year_of(int64_t mtime_ns)
{
    struct fr_civil c = {.year = 2026};
    if (mtime_ns != FR_TIME_NONE) {
        fr_time_to_civil(mtime_ns, &c);
    }
    return c.year;
}

static void series_summary(void *ctx, enum fr_metric m, const struct fr_who *who, uint64_t points,
                           int64_t first_step, int64_t last_step, double last)
{
    struct fr_source_evidence *ev = ctx;
    struct fr_metric_summary *s = FR_PUSH(&ev->metrics);
    if (s != NULL) {
        *s = (struct fr_metric_summary){
            fr_sv_z(fr_metric_name(m)), who->rank, (int64_t)points, first_step, last_step, last};
    }
}

/* The last time anybody in this source printed: a series that ended long before has stalled. */
static struct fr_when latest_sign(const struct fr_source_evidence *ev)
{
    struct fr_when latest = FR_WHEN_NONE;
    for (uint32_t i = 0; i < ev->speakers.n; i++) {
        const struct fr_when *w = &ev->speakers.v[i].last;
        bool dated = w->basis != FR_TIME_BASIS_NONE && w->basis != FR_TIME_BASIS_BOOT &&
                     w->basis != FR_TIME_BASIS_CLOCK;
        if (dated && (latest.basis == FR_TIME_BASIS_NONE || w->ns > latest.ns)) {
            latest = *w;
        }
    }
    return latest;
}

static int finish_member(struct fr_collector *c)
{
    struct fr_source_evidence *ev = c->rec.ev;
    int rc = trace_done(c, NULL);
    if (rc < 0) {
        return rc;
    }
    struct fr_when latest = latest_sign(ev);
    fr_series_ends(c->series, &latest);
    rc = fr_series_finish(c->series, &ev->arena, &ev->findings);
    ev->metric_points = fr_series_points(c->series);
    ev->last_step = fr_series_last_step(c->series);
    ev->max_step = fr_series_max_step(c->series);
    ev->flags |= fr_series_full(c->series) ? FR_SRC_SERIES : 0;
    fr_series_each(c->series, series_summary, ev);
    fr_recorder_finish(&c->rec);
    return rc;
}

/* What stands in front of its lines; where no name of a file says whose they are, their own tag may. */
static void learn_head(struct fr_collector *c, fr_sv window)
{
    const struct fr_who *hint = &c->rec.ev->hint;
    fr_sv head = fr_sv_head(window, HEAD_BYTES);
    const char *nl = head.n == HEAD_BYTES ? memrchr(head.p, '\n', head.n) : NULL;
    bool named = hint->rank >= 0 || hint->local_rank >= 0 || hint->task >= 0;
    head.n = nl != NULL ? (size_t)(nl - head.p) : head.n;
    c->peel.relay = fr_relay_learn(&c->peel, head, &c->relay) ? &c->relay : NULL;
    c->peel.own = !named && fr_own_tag_learn(&c->peel, head, &c->own) ? &c->own : NULL;
    fr_arena_reset(&c->scratch);
}

static int scan_member(struct fr_collector *c, struct fr_err *err)
{
    struct fr_source_evidence *ev = c->rec.ev;
    struct fr_chunk chunk;
    int rc, mode = FR_SCAN_HITS;
    c->before_n = 0;
    fr_scanner_know(c->scanner, take_whole_lines, c);
    while ((rc = fr_reader_chunk(c->reader, &chunk, err)) == 1) {
        uint64_t newlines = 0;
        if (ev->bytes == 0) {
            learn_head(c, chunk.window);
        }
        ev->flags |= chunk.flags;
        c->edge = chunk.head || chunk.tail;
        mode = c->edge || fr_tracer_open(c->tracer) ? FR_SCAN_EVERY : FR_SCAN_HITS;
        c->chunk = chunk.bytes;
        mode = fr_scan(c->scanner, chunk.bytes, chunk.offset, ev->lines + 1, mode, on_hit, c,
                       &newlines);
        if (mode < 0) {
            return mode;
        }
        fr_sv last = last_line(chunk.bytes);
        memcpy(c->before, last.p != NULL ? last.p : "", last.n);
        c->before_n = last.n;
        fr_recorder_settle(&c->rec);
        ev->lines += newlines;
        ev->bytes = chunk.offset + chunk.bytes.n;
        if (chunk.last && chunk.bytes.n != 0 && chunk.bytes.p[chunk.bytes.n - 1] != '\n') {
            ev->lines++; /* the last line has no newline */
        }
        if (c->o.bytes != NULL) {
            c->o.bytes(c->o.bytes_ctx, chunk.bytes.n);
        }
    }
    return rc == -FR_NOMEM ? rc : 0; /* other read errors were reported; what was read stays */
}

static struct fr_source_evidence *evidence_new(const struct fr_member *m)
{
    struct fr_source_evidence *ev = fr_calloc(1, sizeof *ev);
    if (ev == NULL) {
        return NULL;
    }
    ev->arena = FR_ARENA_INIT(0);
    ev->name = fr_arena_dup(&ev->arena, m->name);
    ev->hint = m->hint;
    ev->hint.node = fr_arena_dup(&ev->arena, m->hint.node);
    ev->hint.role = fr_arena_dup(&ev->arena, m->hint.role);
    ev->attempt = m->attempt;
    ev->kind = m->kind;
    ev->mtime_ns = m->mtime_ns;
    ev->last_step = ev->max_step = -1;
    return ev;
}

static int collect_member(struct fr_collector *c, const struct fr_member *m,
                          struct fr_evidence_set *out, struct fr_err *err)
{
    struct fr_source_evidence **slot = FR_PUSH(&out->sources);
    struct fr_source_evidence *ev = slot != NULL ? evidence_new(m) : NULL;
    if (ev == NULL) {
        if (slot != NULL) {
            out->sources.n--;
        }
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    *slot = ev;
    fr_arena_reset(&c->scratch);
    c->peel = (struct fr_peel_ctx){.scratch = &c->scratch, .year = year_of(m->mtime_ns)};
    c->forms.n = c->forms.next = 0;
    c->bars = (struct fr_form){.who = FR_WHO_NONE, .day = FR_WHEN_NONE, .tag = UINT32_MAX};
    fr_known_clear(&c->known);
    int rc = fr_series_new(&c->series);
    if (rc == 0) {
        rc = fr_recorder_init(&c->rec, ev, c->o.library, &c->peel);
    }
    if (rc == 0) {
        rc = scan_member(c, err);
    }
    if (rc == 0) {
        rc = finish_member(c);
    }
    fr_recorder_release(&c->rec);
    fr_series_free(&c->series);
    return rc < 0 ? fr_err_set(err, -rc, "cannot analyse '%.*s': %s", FR_SV_ARG(ev->name),
                               fr_err_name(-rc))
                  : 0;
}

int fr_collect_unit(struct fr_collector *c, uint32_t unit, struct fr_evidence_set *out,
                    struct fr_err *err)
{
    if (fr_reader_open(c->reader, unit, err) != 0) {
        return 0; /* reported through skip */
    }
    struct fr_member m;
    int rc;
    while ((rc = fr_reader_member(c->reader, &m, err)) == 1) {
        rc = collect_member(c, &m, out, err);
        if (rc < 0) {
            return rc;
        }
    }
    return rc == -FR_NOMEM ? rc : 0;
}
