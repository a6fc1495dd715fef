/* SPDX-License-Identifier: Apache-2.0 */
/* survived: law 8, one event at a time: after which the program went on, so that it is no failure. */
#include "incident/case.h"

#include <string.h>

/* Its rank is known, and that rank said nothing after it: who trained on was somebody else. */
static bool fell_silent(const struct fr_case *c, const struct fr_obs *o)
{
    const struct fr_source_evidence *s = c->set->sources.v[o->src];
    uint64_t last = 0;
    for (uint32_t i = 0; o->rank >= 0 && o->e->trace != NULL && i < s->speakers.n; i++) {
        const struct fr_activity *a = &s->speakers.v[i];
        last = fr_case_rank_of(c, &a->who, o->src) == o->rank && a->last_line > last ? a->last_line : last;
    }
    /* what it had in a buffer may come behind its traceback, where others go on for long */
    const uint64_t flushed = s->lines > o->e->last_line + 30 && s->speakers.n > 2 ? 4 : 1;
    return last != 0 && last <= o->e->last_line + flushed;
}

/* The line itself says that something else was done then. */
static bool says_handled(fr_sv text)
{
    static const char *const words[] = {"falling back to ", "fell back to ", "using the fallback", NULL};
    for (const char *const *w = words; *w != NULL; w++) {
        if (fr_sv_has(text, fr_sv_z(*w))) {
            return true;
        }
    }
    return fr_sv_ends(fr_sv_trim(text), FR_SV(" instead")) || fr_sv_ends(fr_sv_trim(text), FR_SV(" instead."));
}

static bool has_tag(const struct fr_failure *f, const char *tag)
{
    return f != NULL && f->tags != NULL && fr_case_lists(f->tags, tag);
}

/* std::terminate leaves nobody to go on. */
bool fr_case_is_abort(const struct fr_event *e)
{
    return (e->trace != NULL && e->trace->kind == FR_TRACE_CPP) || fr_sv_starts(fr_sv_trim(e->text), FR_SV("what():")) ||
           fr_sv_has(e->text, FR_SV("terminate called after throwing"));
}

enum { CALM = 20, FAR = 500 }; /* lines behind a warning in which nothing fell; no traceback that begins in them ends later */

/* A traceback begins right behind it: those lines are no sign of life. */
static bool fell_soon(const struct fr_case *c, const struct fr_obs *o)
{
    for (const struct fr_obs *next = o + 1; next < c->obs.v + c->obs.n && next->src == o->src && next->e->line < o->e->last_line + FAR; next++) {
        const struct fr_trace *t = next->e->trace;
        if (t != NULL && !t->mild && t->first_line > o->e->last_line && t->first_line <= o->e->last_line + CALM) {
            return true;
        }
    }
    return false;
}

/* The whole traceback that a logger's warning told of. */
static bool below_warning(const struct fr_event *e)
{
    return e->trace != NULL && e->trace->mild && e->trace->kind == FR_TRACE_PYTHON && !e->trace->chained && e->line == e->trace->last_line;
}

/* Somebody's lines with a time go on to there. */
static bool spoke_on(const struct fr_source_evidence *s, uint64_t line)
{
    for (uint32_t i = 0; i < s->speakers.n; i++) {
        if (s->speakers.v[i].last.basis != FR_TIME_BASIS_NONE && s->speakers.v[i].last_line >= line) {
            return true;
        }
    }
    return false;
}

/* Behind it in that log there is no error, no traceback and no end. */
static bool nothing_fell(const struct fr_case *c, const struct fr_obs *o)
{
    for (const struct fr_obs *next = o + 1; next < c->obs.v + c->obs.n && next->src == o->src; next++) {
        if (next->e->line > o->e->last_line && (next->e->level >= FR_LEVEL_ERROR || next->e->trace != NULL || next->e->fact == FR_FACT_EXIT)) {
            return false;
        }
    }
    return true;
}

/* At least three metric points after the last time it was seen, or twenty lines or its end after what was only a warning: it went on; a
 * warning after the program said that it had finished is about the end of somebody else who had finished. The kernel's and the scheduler's word
 * stands all the same: a job that bypasses SIGTERM trains on for a while after its end was decided. */
bool fr_case_went_on(const struct fr_case *c, const struct fr_obs *o)
{
    const struct fr_source_evidence *s = c->set->sources.v[o->src];
    const struct fr_failure *f = o->failure >= 0 ? &c->lib->failures[o->failure] : NULL;
    bool decided = o->e->is_kernel || o->e->fact == FR_FACT_SCHEDULER || o->e->fact == FR_FACT_OOM_KILL ||
                   (f != NULL && f->weight >= 90);
    decided |= has_tag(f, "silent-fallback"); /* that it goes on, on the wrong device, is the failure */
    if (has_tag(f, "until-start") && c->src_start[o->src] > o->e->last_line) {
        return true; /* it waited for a place, and got one */
    }
    if (has_tag(f, "while-silent") && o->e->level == FR_LEVEL_INFO && spoke_on(s, o->e->last_line + 1) && nothing_fell(c, o)) {
        return true;
    }
    bool restarted = c->src_restart[o->src] > o->e->last_line;
    uint64_t end = c->src_exits[o->src] > o->e->last_line ? c->src_exits[o->src] : UINT64_MAX; /* what is printed after it was kept in a pipe */
    bool dead = fr_case_is_abort(o->e) || (fell_silent(c, o) && !o->e->trace->in_thread); /* who ends by itself, or only one thread of it */
    bool trained = s->metric_tail[2] > o->e->last_line && s->metric_tail[2] < end && !dead;
    bool warned = o->e->level != FR_LEVEL_NONE && o->e->level <= FR_LEVEL_WARN && s->lines > o->e->last_line + CALM && !fell_soon(c, o);
    bool finished = o->e->level != FR_LEVEL_NONE && o->e->level <= FR_LEVEL_WARN && c->src_done[o->src] > o->e->last_line;
    bool after_end = c->src_done[o->src] != 0 && c->src_done[o->src] < o->e->line && o->e->level == FR_LEVEL_WARN;
    bool below = below_warning(o->e) && !dead && spoke_on(s, o->e->last_line + 5) && !fell_soon(c, o);
    bool handled = o->e->trace == NULL && says_handled(o->e->text) && s->lines > o->e->last_line + 5 && !fell_soon(c, o);
    return !decided && !restarted && (trained || warned || finished || after_end || handled || below);
}

/* A logger's warning and the traceback below it, once more: the place that survived it before does so again, also where the run is ended
 * right behind it. */
static void survived_before(struct fr_case *c)
{
    for (uint32_t i = 1; i < c->obs.n; i++) {
        struct fr_obs *o = &c->obs.v[i];
        const struct fr_trace *t = o->e->trace;
        for (uint32_t k = i; t != NULL && t->mild && !o->recovered && k > 0 && c->obs.v[k - 1].src == o->src; k--) {
            const struct fr_obs *p = &c->obs.v[k - 1];
            const struct fr_trace *u = p->e->trace;
            if (p->recovered && u != NULL && u != t && u->mild && u->frames_hash == t->frames_hash && fr_sv_eq(u->exception, t->exception)) {
                o->recovered = true;
                o->fatal = false;
            }
        }
    }
}

static bool is_of_thread(const struct fr_event *e)
{
    return fr_sv_starts(e->text, FR_SV("Exception in thread ")) || (e->trace != NULL && e->trace->in_thread);
}

/* A thread's end that a console shows to have been survived stands once more in that rank's own file, where nothing follows it. */
static void survived_elsewhere(struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        for (uint32_t k = 0; o->recovered && is_of_thread(o->e) && k < c->obs.n; k++) {
            struct fr_obs *twin = &c->obs.v[k];
            if (is_of_thread(twin->e) && fr_sv_eq(twin->e->text, o->e->text)) {
                twin->recovered = true;
                twin->fatal = false;
            }
        }
    }
}

void fr_case_survived(struct fr_case *c)
{
    survived_elsewhere(c);
    survived_before(c);
}
