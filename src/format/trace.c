/* SPDX-License-Identifier: Apache-2.0 */
/* trace: the joiner. Lines are grouped by who speaks; among the open traces of one speaker (several
 * processes writing to one file without prefixes) a line goes to the trace whose state expects it:
 * a frame to the one with the fewest frames, a source line to the oldest that waits for one, an
 * exception to the oldest that has its frames. Right for identical tracebacks, which is the common
 * case, and best effort for others. */
#include "format/format.h"

#include "base/alloc.h"
#include "base/err.h"
#include "format/lex.h"
#include "format/trace_open.h"

enum {
    NOISE_MAX = 60,     /* strange lines of the same speaker inside one trace */
    MESSAGE_LINES = 60, /* continuation lines of a message */
    PLAIN_LINES = 12,   /* ... of them not indented */
    IDLE_FRAMES = 5000, /* records of others while frames are missing */
    IDLE_MESSAGE = 64,
    PENDING_AGE = 30
};

int fr_tracer_new(struct fr_tracer **ret)
{
    struct fr_tracer *t = fr_calloc(1, sizeof *t);
    if (t == NULL) {
        return -FR_NOMEM;
    }
    *ret = t;
    return 0;
}

static void close_open(struct open *o)
{
    fr_trace_build_release(&o->b);
    if (o->is_table) {
        fr_table_release(&o->table);
    }
    fr_free(o);
}

void fr_tracer_free(struct fr_tracer **t)
{
    if (*t == NULL) {
        return;
    }
    for (uint32_t i = 0; i < (*t)->n; i++) {
        close_open((*t)->open[i]);
    }
    fr_free(*t);
    *t = NULL;
}

bool fr_tracer_open(const struct fr_tracer *t)
{
    return t->n > 0 || t->n_ignored > 0 || fr_listings_open(&t->listings) ||
           fr_stacks_open(&t->stacks);
}

static uint64_t speaker_of(const struct fr_record *rec)
{
    const struct fr_who *w = &rec->who;
    uint64_t parts[4] = {(uint64_t)(uint32_t)w->rank << 32 | (uint32_t)w->local_rank,
                         (uint64_t)(uint32_t)w->task, (uint64_t)w->pid, rec->is_kernel};
    return fr_sv_hash((fr_sv){(const char *)parts, sizeof parts}) ^ fr_sv_hash(w->node) * 31 ^
           fr_sv_hash(w->role) * 131;
}

static bool is_dressed(const struct fr_record *rec)
{
    return rec->when.basis != FR_TIME_BASIS_NONE || rec->level != FR_LEVEL_NONE;
}

static struct open *open_new(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker)
{
    if (t->n == OPEN_MAX) {
        return NULL;
    }
    struct open *o = fr_calloc(1, sizeof *o);
    if (o == NULL) {
        return NULL;
    }
    o->speaker = speaker;
    o->order = t->order++;
    o->dressed = is_dressed(rec);
    t->open[t->n++] = o;
    return o;
}

static void finish(struct open *o)
{
    o->state = DONE;
}

/* A line went to this trace. */
static void touch(struct open *o, enum state next)
{
    o->state = (uint8_t)next;
    o->idle = 0;
    if (++o->lines > FR_TRACE_MAX && !o->is_table) {
        o->b.truncated = true;
        finish(o);
    }
}

static bool take_ignored(struct fr_tracer *t, uint64_t speaker)
{
    for (uint32_t i = 0; i < t->n_ignored; i++) {
        if (t->ignored[i] == speaker) {
            t->ignored[i] = t->ignored[--t->n_ignored];
            return true;
        }
    }
    return false;
}

/* A line after the exception line that belongs to no message ends the trace. */
static void end_messages(struct fr_tracer *t, uint64_t speaker)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct open *o = t->open[i];
        if (!o->is_table && o->speaker == speaker &&
            (o->state == IN_MESSAGE || o->state == IN_GAP)) {
            finish(o);
        }
    }
}

static void on_header(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                      const struct fr_line_parts *p, enum fr_trace_line kind)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_HEADER);
    if (o == NULL && kind == FR_LINE_ORIGINAL) {
        o = fr_trace_pick(t, speaker, p, FOR_MORE);
        if (o != NULL) {
            o->wants_inner = true;
        }
    }
    if (o != NULL) {
        if (o->state == WANT_HEADER) {
            fr_trace_build_next(&o->b);
        } else if (o->state != WANT_FRAME) { /* a group's part has begun already */
            fr_trace_build_inner(&o->b);
        }
        o->wants_inner = false;
        o->indent = p->indent;
        touch(o, WANT_FRAME);
        return;
    }
    end_messages(t, speaker);
    o = open_new(t, rec, speaker);
    if (o != NULL) {
        fr_trace_build_begin(&o->b, rec, FR_TRACE_PYTHON);
        o->b.ignored = take_ignored(t, speaker);
        o->state = WANT_FRAME;
        o->indent = p->indent;
        o->has_group = kind == FR_LINE_GROUP;
        o->tag = fr_tag_of_header(p->text);
    }
}

static void on_frame(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                     const struct fr_line_parts *p)
{
    struct open *o = fr_trace_below_header(t, rec, speaker);
    o = o != NULL ? o : fr_trace_pick(t, speaker, p, FOR_FRAME);
    if (o == NULL) {
        o = fr_trace_pick(t, speaker, p, FOR_MORE);
        if (o != NULL && fr_sv_has(fr_trace_build_link(&o->b)->type, FR_SV("RayTaskError"))) {
            fr_trace_build_inner(&o->b); /* Ray prints the remote frames right below its own line */
        } else if (o != NULL) {
            fr_trace_build_more(&o->b, p->text); /* "from user code:" of torch.compile */
            touch(o, IN_MESSAGE);
            return;
        } else {
            o = open_new(t, rec, speaker); /* the header is lost */
            if (o == NULL) {
                return;
            }
            fr_trace_build_begin(&o->b, rec, FR_TRACE_PYTHON);
            o->b.truncated = true;
            o->indent = p->indent >= 2 ? p->indent - 2 : 0;
        }
    }
    fr_trace_build_frame(&o->b, p);
    touch(o, WANT_SOURCE);
}

static void on_exception(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                         const struct fr_line_parts *p)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_EXCEPTION);
    if (o == NULL) {
        return;
    }
    fr_trace_build_exception(&o->b, p, rec);
    touch(o, IN_MESSAGE);
    o->more = o->plain = 0;
    o->wants_inner = fr_sv_ends(p->type, FR_SV("RemoteTraceback"));
    if (fr_sv_ends(p->type, FR_SV("ChildFailedError"))) {
        struct open *table = open_new(t, rec, speaker);
        finish(o);
        if (table != NULL) {
            table->is_table = true;
            table->state = IN_DUMP;
            fr_table_begin(&table->table);
        }
    }
}

/* Lines that cannot continue a message: another program's, or a metric line or bar of the same one.
 */
static bool is_foreign(const struct open *o, const struct fr_record *rec, fr_sv text)
{
    fr_sv at = fr_sv_trim(text);
    if (is_dressed(rec) && !o->dressed) {
        return true;
    }
    return fr_sv_starts(at, FR_SV("{'")) || fr_sv_has(at, FR_SV("%|")) ||
           fr_sv_starts(at, FR_SV("srun: ")) || fr_sv_starts(at, FR_SV("slurmstepd")) ||
           fr_sv_starts(at, FR_SV("iteration ")) || fr_sv_starts(at, FR_SV("=====")) ||
           fr_sv_starts(at, FR_SV("-----"));
}

/* A line no other kind claims: source, message or noise. */
static void on_other(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                     const struct fr_line_parts *p)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_SOURCE);
    if (o != NULL && !(is_dressed(rec) && !o->dressed)) {
        touch(o, WANT_ANY);
        return;
    }
    o = fr_trace_pick(t, speaker, p, FOR_MORE);
    if (o == NULL) {
        o = fr_trace_pick(t, speaker, p, FOR_NOISE);
        if (o != NULL && ++o->noise > NOISE_MAX) {
            o->b.truncated = true;
            finish(o);
        }
        return;
    }
    bool indented = p->indent > o->indent;
    if (o->state == IN_GAP || is_foreign(o, rec, p->text) || ++o->more > MESSAGE_LINES ||
        (!indented && ++o->plain > PLAIN_LINES)) {
        finish(o);
        return;
    }
    fr_trace_build_more(&o->b, p->text);
    touch(o, IN_MESSAGE);
}

static void on_blank(struct fr_tracer *t, uint64_t speaker, const struct fr_line_parts *p)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_MORE);
    if (o != NULL && fr_trace_build_link(&o->b)->message.n > 0) {
        o->state = IN_GAP;
    }
}

static void on_group(struct fr_tracer *t, uint64_t speaker, const struct fr_line_parts *p,
                     enum fr_trace_line kind)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_MORE);
    if (o == NULL || !o->has_group) {
        return;
    }
    if (kind == FR_LINE_GROUP_END) {
        finish(o);
    } else if (!o->b.has_outer) { /* the first part is the origin */
        fr_trace_build_inner(&o->b);
        touch(o, WANT_FRAME);
    }
}

static void on_dump(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                    const struct fr_line_parts *p, enum fr_trace_line kind)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_DUMP);
    if (kind == FR_LINE_FH_HEADER || kind == FR_LINE_CPP) {
        end_messages(t, speaker);
        if (o != NULL && kind == FR_LINE_FH_HEADER) {
            finish(o);
        }
        o = open_new(t, rec, speaker);
        if (o != NULL) {
            fr_trace_build_begin(&o->b, rec,
                                 kind == FR_LINE_CPP ? FR_TRACE_CPP : FR_TRACE_FAULTHANDLER);
            fr_trace_build_exception(&o->b, p, rec);
            o->state = IN_DUMP;
        }
        return;
    }
    if (o == NULL) {
        return;
    }
    touch(o, IN_DUMP);
    if (kind ==
        FR_LINE_FH_THREAD) { /* of all threads the current one counts; without one, the first */
        if (p->current && !o->current_seen) {
            o->current_seen = true;
            o->b.first.n = 0;
            o->b.n_frames = 0;
            o->b.hash = 14695981039346656037u;
            o->in_section = true;
        } else {
            o->in_section = !o->current_seen && o->b.first.n == 0;
        }
    } else if (kind == FR_LINE_WHAT && o->b.first.message.n == 0) {
        fr_trace_build_more(&o->b, p->message);
    } else if (kind == FR_LINE_FH_FRAME ? o->in_section
                                        : o->b.kind == FR_TRACE_CPP && kind != FR_LINE_WHAT) {
        fr_trace_build_frame(&o->b, p);
    }
}

/* Lines between a dump's own: blank, C stack, the rest of what(). */
static bool in_dump(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                    const struct fr_line_parts *p, enum fr_trace_line kind)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_DUMP);
    if (o == NULL) {
        return false;
    }
    fr_sv at = fr_sv_trim(p->text);
    bool part = kind == FR_LINE_BLANK || fr_sv_eq(at, FR_SV("...")) ||
                fr_sv_starts(at, FR_SV("Binary file ")) ||
                fr_sv_starts(at, FR_SV("Current thread's C stack"));
    if (part) {
        return true;
    }
    bool more = o->b.kind == FR_TRACE_CPP && o->b.n_frames == 0 && !is_foreign(o, rec, p->text) &&
                kind == FR_LINE_OTHER && ++o->more < PLAIN_LINES;
    if (more) {
        fr_trace_build_more(&o->b, p->text);
        return true;
    }
    bool ends =
        fr_sv_starts(at, FR_SV("Extension modules:")) || ++o->noise > 8 || o->b.n_frames > 0;
    if (ends) {
        finish(o);
    }
    return fr_sv_starts(at, FR_SV("Extension modules:"));
}

static bool in_table(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker, fr_sv text)
{
    struct open *o = NULL;
    for (uint32_t i = 0; i < t->n && o == NULL; i++) {
        if (t->open[i]->is_table && t->open[i]->state != DONE && t->open[i]->speaker == speaker) {
            o = t->open[i];
        }
    }
    if (o == NULL) {
        o = fr_table_begins(text) ? open_new(t, rec, speaker) : NULL;
        if (o == NULL) {
            return false;
        }
        o->is_table = true;
        o->state = IN_DUMP;
        fr_table_begin(&o->table);
    }
    o->idle = 0;
    int r = fr_table_line(&o->table, rec, text);
    if (r == 1) { /* the row is complete: it leaves as an entry of its own, the table goes on */
        struct open *next = open_new(t, rec, speaker);
        if (next != NULL) {
            next->is_table = true;
            next->state = IN_DUMP;
            fr_table_begin(&next->table);
            next->table.is_root = o->table.is_root;
            next->table.lines = o->table.lines;
            (void)fr_table_line(&next->table, rec, text);
        }
        finish(o);
        return true;
    }
    if (r < 0) {
        finish(o);
    }
    return r == 0; /* others may have written between the lines of the table */
}

static bool is_dump(enum fr_trace_line kind)
{
    return kind == FR_LINE_FH_HEADER || kind == FR_LINE_CPP || kind == FR_LINE_FH_THREAD ||
           kind == FR_LINE_FH_FRAME || kind == FR_LINE_WHAT || kind == FR_LINE_CPP_FRAME ||
           kind == FR_LINE_CPP_FROM;
}

/* "The above exception was ...", "-- Process 1 terminated with the following error:" */
static void on_link(struct fr_tracer *t, uint64_t speaker, const struct fr_line_parts *p,
                    enum fr_trace_line kind)
{
    struct open *o = fr_trace_pick(t, speaker, p, FOR_CHAIN);
    if (o != NULL) {
        o->wants_inner = kind == FR_LINE_CHILD;
        touch(o, kind == FR_LINE_CHILD ? IN_MESSAGE : WANT_HEADER);
    }
}

static void on_ignored(struct fr_tracer *t, uint64_t speaker)
{
    end_messages(t, speaker);
    t->ignored_age = 0;
    if (t->n_ignored < PENDING_MAX) {
        t->ignored[t->n_ignored++] = speaker;
    }
}

static void on_exception_line(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                              const struct fr_line_parts *p)
{
    bool wanted = fr_trace_pick(t, speaker, p, FOR_EXCEPTION) != NULL;
    bool alone =
        !wanted && fr_trace_opens(p->text) && fr_trace_pick(t, speaker, p, FOR_MORE) == NULL;
    if (alone) { /* a SyntaxError or torchrun's report without header */
        on_header(t, rec, speaker, p, FR_LINE_HEADER);
    }
    if (wanted || alone) {
        on_exception(t, rec, speaker, p);
    } else {
        on_other(t, rec, speaker, p);
    }
}

/* The first frame below a header says whether what stood before that was a prefix. */
static void learn_tag(struct fr_tracer *t, fr_sv text)
{
    for (uint32_t i = 0; i < t->n; i++) {
        struct open *o = t->open[i];
        if (o->state == WANT_FRAME && fr_tag_on_frame(&o->tag, text)) {
            o->speaker = fr_tag_speaker(fr_tags_learn(&t->tags, &o->tag), o->speaker);
            o->tag.n = 0;
            return;
        }
    }
}

static void feed_line(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker,
                      fr_sv text)
{
    struct fr_line_parts p;
    learn_tag(t, text);
    text = fr_tags_strip(&t->tags, text, &speaker);
    enum fr_trace_line kind = fr_trace_line_of(text, &p);
    if (in_table(t, rec, speaker, text)) {
        return;
    }
    struct open *group = p.in_group ? fr_trace_pick(t, speaker, &p, FOR_LATER_PART) : NULL;
    if (group != NULL) {
        touch(group, IN_MESSAGE);
        return;
    }
    if (is_dump(kind)) {
        on_dump(t, rec, speaker, &p, kind);
        return;
    }
    if (in_dump(t, rec, speaker, &p, kind)) {
        return;
    }
    switch (kind) {
    case FR_LINE_HEADER:
    case FR_LINE_ORIGINAL:
    case FR_LINE_GROUP:
        on_header(t, rec, speaker, &p, kind);
        break;
    case FR_LINE_FRAME:
        on_frame(t, rec, speaker, &p);
        break;
    case FR_LINE_BLANK:
        on_blank(t, speaker, &p);
        break;
    case FR_LINE_PART:
    case FR_LINE_GROUP_END:
        on_group(t, speaker, &p, kind);
        break;
    case FR_LINE_CHAIN:
    case FR_LINE_CHILD:
        on_link(t, speaker, &p, kind);
        break;
    case FR_LINE_IGNORED:
        on_ignored(t, speaker);
        break;
    case FR_LINE_EXCEPTION:
        on_exception_line(t, rec, speaker, &p);
        break;
    case FR_LINE_MARK:
        break;
    default:
        on_other(t, rec, speaker, &p);
    }
}

/* The text of one record may hold many lines: unescaped JSON, or "\n" as two characters. */
static void feed_record(struct fr_tracer *t, const struct fr_record *rec)
{
    uint64_t speaker = speaker_of(rec);
    fr_sv rest = rec->text;
    bool escaped = fr_sv_has(rest, FR_SV("last):\\n  File"));
    for (int i = 0; i < FR_TRACE_MAX; i++) {
        size_t end = escaped ? fr_sv_find(rest, FR_SV("\\n")) : fr_sv_chr(rest, '\n');
        fr_sv line = fr_sv_head(rest, end);
        fr_listings_feed(&t->listings, rec, line, speaker); /* takes no line away from traces */
        if (!fr_stacks_feed(&t->stacks, rec, line, speaker)) {
            feed_line(t, rec, speaker, line);
        }
        if (end == FR_NPOS) {
            break;
        }
        rest = fr_sv_skip(rest, end + (escaped ? 2 : 1));
    }
}

static void age(struct fr_tracer *t, bool at_end)
{
    if (t->n_ignored > 0 && ++t->ignored_age > PENDING_AGE) {
        t->n_ignored = 0;
    }
    fr_listings_age(&t->listings, at_end);
    fr_stacks_age(&t->stacks, at_end);
    for (uint32_t i = 0; i < t->n; i++) {
        struct open *o = t->open[i];
        if (o->state == DONE) {
            continue;
        }
        bool waits_long =
            ++o->idle >
            ((o->state == IN_MESSAGE || o->state == IN_GAP) ? IDLE_MESSAGE : IDLE_FRAMES);
        if (at_end || waits_long) {
            o->b.truncated = o->b.truncated || (!at_end && !o->is_table && o->state < IN_MESSAGE);
            finish(o);
        }
    }
}

/* Hands the oldest finished entry over; entries with nothing to say vanish. */
static int take_done(struct fr_tracer *t, struct fr_arena *out, struct fr_trace_done *ret)
{
    if (fr_listings_take(&t->listings, out, ret) == 1 ||
        fr_stacks_take(&t->stacks, out, ret) == 1) {
        return 1;
    }
    for (uint32_t i = 0; i < t->n;) {
        struct open *o = t->open[i];
        if (o->state != DONE) {
            i++;
            continue;
        }
        int r = 0;
        if (o->is_table) {
            r = fr_table_take(&o->table, out, ret);
        } else if (o->b.n_frames > 0 || o->b.first.type.n > 0) {
            r = fr_trace_build_finish(&o->b, out, ret);
        }
        memmove(&t->open[i], &t->open[i + 1], (t->n - i - 1) * sizeof *t->open);
        t->n--;
        close_open(o);
        if (r != 0) {
            return r;
        }
    }
    return 0;
}

int fr_tracer_feed(struct fr_tracer *t, const struct fr_record *rec, struct fr_arena *out,
                   struct fr_trace_done *ret)
{
    if (rec == NULL) { /* the next source has writers and prefixes of its own */
        t->n_ignored = 0;
        t->tags.n = 0;
        age(t, true);
    } else {
        feed_record(t, rec);
        age(t, false);
    }
    return take_done(t, out, ret);
}
