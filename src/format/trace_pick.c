/* SPDX-License-Identifier: Apache-2.0 */
/* trace_pick: see trace_open.h. Several processes may write tracebacks into one file without
 * prefixes; then only the state of each tells which one a line continues. */
#include "format/trace_open.h"

/* How much a trace in its state wants the line; 0 = not at all. */
typedef unsigned (*rank_fn)(const struct open *o, const struct fr_line_parts *p);

static unsigned for_frame(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    unsigned fewest = 100000 - (o->b.n_frames < 50000 ? o->b.n_frames : 50000);
    switch (o->state) {
    case WANT_FRAME:
    case WANT_ANY:
        return 200000 + fewest;
    case WANT_SOURCE:
        return fewest;
    default:
        return 0;
    }
}

static unsigned for_source(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    return o->state == WANT_SOURCE ? 1 : 0;
}

static unsigned for_exception(const struct open *o, const struct fr_line_parts *p)
{
    if (p->indent > o->indent + (o->has_group ? 8 : 0)) {
        return 0;
    }
    switch (o->state) {
    case WANT_ANY:
        return 3;
    case WANT_SOURCE:
        return p->sure ? 2 : 0;
    case WANT_FRAME:
        return o->b.n_frames == 0 && p->sure ? 1 : 0;
    default:
        return 0;
    }
}

static unsigned for_more(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    return o->state == IN_MESSAGE ? 2 : o->state == IN_GAP ? 1 : 0;
}

static unsigned for_chain(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    return o->state == IN_GAP ? 2 : o->state == IN_MESSAGE ? 1 : 0;
}

static unsigned for_header(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    if (o->has_group && o->state == WANT_FRAME) {
        return 3;
    }
    return o->state == WANT_HEADER                                            ? 2
           : (o->state == IN_MESSAGE || o->state == IN_GAP) && o->wants_inner ? 1
                                                                              : 0;
}

static unsigned for_dump(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    return o->state == IN_DUMP ? 1 : 0;
}

static unsigned for_noise(const struct open *o, const struct fr_line_parts *p)
{
    (void)p;
    return o->state <= WANT_ANY || o->state == WANT_HEADER ? 1 : 0;
}

/* Parts of a group after the first: the group is known by that one. */
static unsigned for_later_part(const struct open *o, const struct fr_line_parts *p)
{
    return p->in_group && o->has_group && o->b.has_outer && o->b.first.type.n > 0 ? 1 : 0;
}

struct open *fr_trace_pick(struct fr_tracer *t, uint64_t speaker, const struct fr_line_parts *p,
                           enum purpose purpose)
{
    static const rank_fn ranks[] = {
        [FOR_FRAME] = for_frame, [FOR_SOURCE] = for_source, [FOR_EXCEPTION] = for_exception,
        [FOR_MORE] = for_more,   [FOR_CHAIN] = for_chain,   [FOR_HEADER] = for_header,
        [FOR_DUMP] = for_dump,   [FOR_NOISE] = for_noise,   [FOR_LATER_PART] = for_later_part};
    struct open *best = NULL;
    unsigned best_rank = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        struct open *o = t->open[i];
        unsigned r =
            o->is_table || o->state == DONE || o->speaker != speaker ? 0 : ranks[purpose](o, p);
        if (r > best_rank) { /* the oldest of equals */
            best = o;
            best_rank = r;
        }
    }
    return best;
}

struct open *fr_trace_below_header(struct fr_tracer *t, const struct fr_record *rec, uint64_t speaker)
{
    const struct fr_who *w = &rec->who;
    bool bare = w->rank < 0 && w->local_rank < 0 && w->task < 0 && w->pid < 0 && w->node.n == 0 && w->role.n == 0 &&
                rec->when.basis == FR_TIME_BASIS_NONE && rec->level == FR_LEVEL_NONE;
    for (uint32_t i = 0; bare && i < t->n; i++) {
        struct open *o = t->open[i];
        if (!o->is_table && o->dressed && o->state == WANT_FRAME && o->b.n_frames == 0 && o->b.line + 1 == rec->lineno) {
            o->speaker = speaker;
            o->dressed = false; /* what follows is as bare as this line */
            return o;
        }
    }
    return NULL;
}
