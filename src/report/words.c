/* SPDX-License-Identifier: Apache-2.0 */
/* words: see words.h. */
#include "report/words.h"

#include "base/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void fr_words_addz(struct fr_buf *b, const char *z)
{
    if (z != NULL) {
        fr_utf8_clean(b, fr_sv_z(z), 0);
    }
}

/* At most `most` runs; the number of ranks that were left out. */
static uint32_t add_runs(struct fr_buf *b, const int32_t *v, uint32_t n, uint32_t most)
{
    uint32_t runs = 0, i = 0;
    while (i < n && runs++ < most) {
        uint32_t j = i;
        while (j + 1 < n && (int64_t)v[j + 1] - v[j] <= 1) {
            j++;
        }
        fr_buf_printf(b, "%s%" PRId32, i > 0 ? "," : "", v[i]);
        if (v[j] > v[i]) {
            fr_buf_printf(b, "%c%" PRId32, (int64_t)v[j] - v[i] == 1 ? ',' : '-', v[j]);
        }
        i = j + 1;
    }
    return n - i;
}

void fr_words_ranks(struct fr_buf *b, const int32_t *v, uint32_t n)
{
    add_runs(b, v, n, UINT32_MAX);
}

bool fr_words_rank_list(struct fr_buf *b, const int32_t *v, uint32_t n)
{
    fr_buf_addz(b, n == 1 ? "rank " : "ranks ");
    uint32_t rest = add_runs(b, v, n, 12);
    if (rest > 0) {
        fr_buf_addz(b, " and ");
        fr_words_count(b, rest, "more", "more");
    }
    return rest == 0;
}

void fr_words_bytes(struct fr_buf *b, uint64_t n)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB", "EB"};
    double d = (double)n;
    unsigned u = 0;
    while (d >= 999.5 && u + 1 < sizeof units / sizeof *units) {
        d /= 1000;
        u++;
    }
    fr_buf_printf(b, u > 0 && d < 9.95 ? "%.1f %s" : "%.0f %s", d, units[u]);
}

static void add_grouped(struct fr_buf *b, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0) {
            fr_buf_addc(b, ',');
        }
        fr_buf_addc(b, digits[i]);
    }
}

void fr_words_count(struct fr_buf *b, uint64_t n, const char *one, const char *many)
{
    add_grouped(b, n);
    fr_buf_addc(b, ' ');
    fr_buf_addz(b, n == 1 ? one : many);
}

void fr_words_duration(struct fr_buf *b, int64_t s)
{
    if (s < 120) {
        fr_buf_printf(b, "%" PRId64 " s", s);
    } else if (s < 7200) {
        fr_buf_printf(b, "%" PRId64 " min", s / 60);
        if (s < 600 && s % 60 != 0) {
            fr_buf_printf(b, " %" PRId64 " s", s % 60);
        }
    } else if (s < 2 * 86400) {
        fr_buf_printf(b, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    } else {
        fr_buf_printf(b, "%" PRId64 " days %" PRId64 " h", s / 86400, s % 86400 / 3600);
    }
}

/* As many digits as the log itself gave: more would be invented. */
static int digits_of(const struct fr_when *w)
{
    return w->resolution_ns <= 0 || w->resolution_ns >= FR_NS_PER_S ? 0
           : w->resolution_ns >= 1000000                            ? 3
                                                                    : 6;
}

static void add_boot(struct fr_buf *b, const struct fr_when *w)
{
    fr_buf_printf(b, "%.*f", digits_of(w), (double)w->ns / (double)FR_NS_PER_S);
}

void fr_words_iso(struct fr_buf *b, const struct fr_when *w)
{
    char iso[48];
    if (w->basis == FR_TIME_BASIS_NONE || w->ns == FR_TIME_NONE) {
        return;
    }
    if (w->basis == FR_TIME_BASIS_BOOT) {
        fr_buf_addz(b, "PT");
        add_boot(b, w);
        fr_buf_addc(b, 'S');
        return;
    }
    fr_sv s = {iso, fr_time_iso(w->ns, digits_of(w), iso)};
    fr_sv date, clock;
    if (w->basis == FR_TIME_BASIS_NOYEAR && fr_sv_chr(s, '-') == 4) { /* the year is a guess: leave it out */
        fr_buf_addc(b, '-');
        s = fr_sv_skip(s, 4);
    } else if (w->basis == FR_TIME_BASIS_CLOCK && fr_sv_cut(s, 'T', &date, &clock)) {
        s = clock;
    }
    fr_buf_add(b, s);
    if (w->basis == FR_TIME_BASIS_UTC) {
        fr_buf_addc(b, 'Z');
    }
}

void fr_words_when(struct fr_buf *b, const struct fr_when *w)
{
    char iso[48];
    if (w->basis == FR_TIME_BASIS_NONE || w->ns == FR_TIME_NONE) {
        return;
    }
    if (w->basis == FR_TIME_BASIS_BOOT) {
        add_boot(b, w);
        fr_buf_addz(b, " s after boot");
        return;
    }
    /* Milliseconds are enough to compare, and none are needed when they say nothing. */
    bool whole = digits_of(w) == 0 || w->ns % FR_NS_PER_S == 0;
    fr_sv s = {iso, fr_time_iso(w->ns, whole ? 0 : 3, iso)};
    fr_sv date, clock;
    if (!fr_sv_cut(s, 'T', &date, &clock)) {
        fr_buf_add(b, s);
        return;
    }
    if (w->basis == FR_TIME_BASIS_NOYEAR && fr_sv_chr(date, '-') == 4) {
        date = fr_sv_skip(date, 5);
    }
    if (w->basis != FR_TIME_BASIS_CLOCK) {
        fr_buf_add(b, date);
        fr_buf_addc(b, ' ');
    }
    fr_buf_add(b, clock);
    if (w->basis == FR_TIME_BASIS_UTC) {
        fr_buf_addz(b, " UTC");
    }
}

const char *fr_words_basis(const struct fr_when *w)
{
    static const char *const names[] = {"none", "wall", "utc", "no-year", "clock", "boot"};
    return w->ns == FR_TIME_NONE ? names[0] : names[w->basis];
}

void fr_words_place(struct fr_buf *b, const struct fr_quote *q)
{
    fr_words_add(b, q->source.n > 0 ? q->source : FR_SV("?"));
    if (q->line > 0) {
        fr_buf_printf(b, ":%" PRIu64, q->line);
    }
}

void fr_words_origin(struct fr_buf *b, const struct fr_quote *q)
{
    if (q->rank >= 0) {
        fr_buf_printf(b, "  rank %" PRId32, q->rank);
    }
    if (q->when.basis != FR_TIME_BASIS_NONE) {
        fr_buf_addz(b, "  ");
        fr_words_when(b, &q->when);
    }
}

const char *fr_words_began(const struct fr_incident *in)
{
    int32_t rank = in->evidence.n > 0 ? in->evidence.v[0].rank : -1;
    for (uint32_t i = 0; i < in->initiator.ranks.n && in->initiator.silent; i++) {
        if (in->initiator.ranks.v[i] == rank) {
            return "Last sign of it";
        }
    }
    return in->initiator.silent ? "Where it showed first" : "Where it began";
}

void fr_words_confidence(struct fr_buf *b, const struct fr_incident *in)
{
    fr_buf_addz(b, fr_band_name((enum fr_band)in->band));
    if (!isnan(in->confidence)) {
        fr_buf_printf(b, " (%.2f)", in->confidence);
    }
}

bool fr_words_many(const struct fr_report *r)
{
    return r->input.ranks_seen > 1 || r->input.world_size > 1;
}

void fr_words_who(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_initiator *i = &in->initiator;
    const char *how = i->silent ? " failed first, without a word" : " failed first";
    int32_t all = r->input.world_size > 0 ? r->input.world_size : r->input.ranks_seen;
    switch ((enum fr_scope)i->scope) {
    case FR_SCOPE_RANK:
    case FR_SCOPE_RANKS:
        if (i->ranks.n == 0) {
            break;
        }
        if (i->ranks.n == 1 && !fr_words_many(r)) {
            fr_buf_printf(b, "Rank %" PRId32 " failed%s", i->ranks.v[0], i->silent ? " without a word" : "");
            return;
        }
        fr_buf_addz(b, i->ranks.n == 1 ? "Rank " : "Ranks ");
        fr_words_ranks(b, i->ranks.v, i->ranks.n);
        fr_buf_addz(b, how);
        return;
    case FR_SCOPE_ALL_RANKS:
        if (r->input.world_size > 1) {
            fr_buf_printf(b, "All %" PRId32 " ranks failed alike", all);
        } else { /* ranks seen are no world: the others' logs may be missing */
            fr_buf_addz(b, all == 1 ? "The run failed" : "All ranks failed alike");
        }
        return;
    case FR_SCOPE_NODE:
        fr_buf_addz(b, i->node.n > 0 ? "Node " : "A node");
        fr_words_add(b, i->node);
        fr_buf_addz(b, how);
        return;
    case FR_SCOPE_LAUNCHER:
        fr_buf_addz(b, "The job as a whole was stopped, not by one rank");
        return;
    case FR_SCOPE_UNKNOWN:
        break;
    }
    fr_buf_addz(b, fr_words_many(r) ? "The run failed, first rank unknown" : "The run failed");
}

void fr_words_headline(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in)
{
    fr_words_who(b, r, in);
    fr_buf_addz(b, ": ");
    fr_words_add(b, in->title.n > 0 ? in->title : in->cls);
}

static void add_comma(struct fr_buf *b, size_t start)
{
    if (b->n > start) {
        fr_buf_addz(b, ", ");
    }
}

void fr_words_whereabouts(struct fr_buf *b, const struct fr_incident *in)
{
    const struct fr_initiator *i = &in->initiator;
    size_t start = b->n;
    if (i->node.n > 0 && i->scope != FR_SCOPE_NODE) {
        fr_buf_addz(b, "node ");
        fr_words_add(b, i->node);
    }
    if (i->gpu >= 0) {
        add_comma(b, start);
        fr_buf_printf(b, "GPU %" PRId32, i->gpu);
    }
    if (i->local_rank >= 0) {
        add_comma(b, start);
        fr_buf_printf(b, "local rank %" PRId32, i->local_rank);
    }
    if (in->attempt >= 0) {
        add_comma(b, start);
        fr_buf_printf(b, "attempt %" PRId32, in->attempt);
    }
}

void fr_words_action(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in)
{
    fr_sv node = in->initiator.node;
    switch ((enum fr_action)in->action) {
    case FR_ACTION_NONE:
        fr_buf_addz(b, r->verdict == FR_VERDICT_INCONCLUSIVE ? "Do not act on this yet: collect what is listed first."
                                                             : "Nothing needs to be done with the job.");
        return;
    case FR_ACTION_RESTART:
        fr_buf_addz(b, "Restart the job");
        if (in->resume_checkpoint.n > 0 && in->resume_safe == 1) {
            fr_buf_addz(b, " from ");
            fr_words_add(b, in->resume_checkpoint);
        }
        fr_buf_addc(b, '.');
        return;
    case FR_ACTION_FIX_FIRST:
        fr_buf_addz(b, "Do not restart yet: it would fail again. Fix this first.");
        return;
    case FR_ACTION_DRAIN_NODE:
        fr_buf_addz(b, "Take ");
        if (node.n > 0) {
            fr_buf_addz(b, "node ");
            fr_words_add(b, node);
        } else if (in->initiator.ranks.n > 0) {
            fr_buf_addz(b, "the node of ");
            fr_words_rank_list(b, in->initiator.ranks.v, in->initiator.ranks.n);
        } else {
            fr_buf_addz(b, "the faulty node");
        }
        fr_buf_addz(b, " out of service, then restart on other machines.");
        return;
    case FR_ACTION_WAIT:
        fr_buf_addz(b, "Wait: the job needs no intervention yet.");
        return;
    }
}

void fr_words_input(struct fr_buf *b, const struct fr_report *r)
{
    fr_words_count(b, r->input.sources, "log", "logs");
    fr_buf_addz(b, ", ");
    fr_words_bytes(b, r->input.bytes);
    fr_buf_addz(b, ", ");
    fr_words_count(b, r->input.lines, "line", "lines");
    if (r->input.ranks_seen > 0) {
        fr_buf_addz(b, "; ");
        if (r->input.world_size > 0 && r->input.world_size != r->input.ranks_seen) {
            fr_buf_printf(b, "%" PRId32 " of ", r->input.ranks_seen);
            fr_words_count(b, (uint64_t)r->input.world_size, "rank", "ranks");
        } else {
            fr_words_count(b, (uint64_t)r->input.ranks_seen, "rank", "ranks");
        }
    }
    if (r->input.nodes > 0) {
        fr_buf_addz(b, r->input.ranks_seen > 0 ? " on " : "; ");
        fr_words_count(b, (uint64_t)r->input.nodes, "node", "nodes");
    }
}

void fr_words_steps(struct fr_buf *b, const struct fr_incident *in)
{
    if (in->last_good_step >= 0) {
        fr_buf_printf(b, "last good step %" PRId64, in->last_good_step);
    }
    if (in->first_bad_step >= 0) {
        fr_buf_printf(b, "%sfirst bad step %" PRId64, in->last_good_step >= 0 ? ", " : "", in->first_bad_step);
    }
}

int64_t fr_words_idle(const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_when *w = &in->initiator.when;
    int64_t last = FR_TIME_NONE;
    if (w->basis == FR_TIME_BASIS_NONE || w->basis == FR_TIME_BASIS_BOOT || w->ns == FR_TIME_NONE) {
        return -1;
    }
    for (uint32_t i = 0; i < r->lanes.n; i++) {
        last = r->lanes.v[i].to_ns > last ? r->lanes.v[i].to_ns : last;
    }
    /* A week is more than any watchdog waits: then the two clocks were not the same one. */
    double seconds = ((double)last - (double)w->ns) / (double)FR_NS_PER_S;
    return last == FR_TIME_NONE || seconds < 0 || seconds > 7 * 86400 ? -1 : (int64_t)seconds;
}

const char *fr_words_owner(fr_sv owner)
{
    static const struct { const char *id, *words; } table[] = {
        {"ml-engineer", "the people who own the training code"},
        {"infrastructure", "the infrastructure team"},
        {"data", "the data team"},
        {"platform", "the platform team"},
    };
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
        if (fr_sv_eq(owner, fr_sv_z(table[i].id))) {
            return table[i].words;
        }
    }
    return "not assigned";
}

int fr_words_finish(const struct fr_buf *out, struct fr_err *err)
{
    if (fr_buf_ok(out)) {
        return 0;
    }
    if (out->limit > 0 && out->n + 65536 >= out->limit) { /* no single piece is larger than that */
        return fr_err_set(err, FR_LIMIT, "the report would be larger than %zu bytes", out->limit);
    }
    return fr_err_set(err, FR_NOMEM, "out of memory while writing the report");
}
