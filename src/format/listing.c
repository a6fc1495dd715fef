/* SPDX-License-Identifier: Apache-2.0 */
/* listing: see listing.h. */
#include "format/listing.h"

#include "format/lex.h"

enum { IDLE_MAX = 64, WORLD_MAX = 1000000 };

static bool is_ranks_head(fr_sv text)
{
    fr_sv at = fr_sv_trim(text);
    return fr_sv_eq(at, FR_SV("Missing ranks:")) || fr_sv_eq(at, FR_SV("Stalled ranks:"));
}

bool fr_listing_opens(fr_sv text)
{
    return is_ranks_head(text) ||
           fr_sv_ends(fr_sv_trim(text), FR_SV("Starting elastic_operator with launch configs:"));
}

static void begin(struct fr_listing *ret, const struct fr_record *rec, fr_sv text, uint64_t speaker)
{
    text = fr_sv_trim(text);
    *ret = (struct fr_listing){.state = FR_LISTING_OPEN,
                               .speaker = speaker,
                               .who = rec->who,
                               .when = rec->when,
                               .outer = rec->outer,
                               .offset = rec->offset,
                               .line = rec->lineno,
                               .min_nodes = -1,
                               .max_nodes = -1,
                               .per_node = -1};
    ret->is_ranks = is_ranks_head(text);
    ret->who.node = ret->who.role = FR_SV_NONE;
    fr_sv kept = text.n > FR_LISTING_TEXT ? fr_sv_skip(text, text.n - FR_LISTING_TEXT) : text;
    memcpy(ret->text, kept.p, kept.n);
    ret->text_n = kept.n;
}

/* "  nproc_per_node   : 8" */
static bool take_setting(struct fr_listing *l, fr_sv text)
{
    static const char *const names[] = {"min_nodes", "max_nodes", "nproc_per_node"};
    int32_t *const values[] = {&l->min_nodes, &l->max_nodes, &l->per_node};
    fr_sv at = text, name;
    if (fr_lex_spaces(&at) == 0 || !fr_lex_name(&at, &name) ||
        (fr_lex_spaces(&at), !fr_lex_char(&at, ':'))) {
        return false;
    }
    fr_lex_spaces(&at);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (fr_sv_eq(name, fr_sv_z(names[i]))) {
            (void)fr_lex_index(&at, values[i]);
        }
    }
    return true;
}

/* "4: [grad/a, grad/b ...]"; its number may have been peeled as srun's label. */
static bool take_rank(struct fr_listing *l, const struct fr_record *rec, fr_sv text)
{
    fr_sv at = fr_sv_trim(text);
    int32_t rank = -1;
    bool labelled = l->who.task < 0 && rec->who.task >= 0 && fr_lex_peek(at, 0) == '[';
    if (!labelled && !(fr_lex_index(&at, &rank) && fr_lex_lit(&at, ": ["))) {
        return false;
    }
    if (l->n_ranks < FR_LISTING_RANKS) {
        l->ranks[l->n_ranks++] = labelled ? rec->who.task : rank;
    }
    return true;
}

static bool take_item(struct fr_listing *l, const struct fr_record *rec, fr_sv text)
{
    return l->is_ranks ? take_rank(l, rec, text) : take_setting(l, text);
}

bool fr_listings_open(const struct fr_listings *set)
{
    for (int i = 0; i < FR_LISTING_MAX; i++) {
        if (set->v[i].state != FR_LISTING_NONE) {
            return true;
        }
    }
    return false;
}

void fr_listings_feed(struct fr_listings *set, const struct fr_record *rec, fr_sv text,
                      uint64_t speaker)
{
    struct fr_listing *vacant = NULL;
    for (int i = 0; i < FR_LISTING_MAX; i++) {
        struct fr_listing *l = &set->v[i];
        bool labelled = l->is_ranks && l->who.task < 0 && rec->who.task >= 0;
        if (l->state == FR_LISTING_OPEN && (l->speaker == speaker || labelled)) {
            l->idle = 0;
            l->state = take_item(l, rec, text) ? FR_LISTING_OPEN : FR_LISTING_DONE;
        }
        vacant = l->state == FR_LISTING_NONE ? l : vacant;
    }
    if (vacant != NULL && fr_listing_opens(text)) {
        begin(vacant, rec, text, speaker);
    }
}

void fr_listings_age(struct fr_listings *set, bool at_end)
{
    for (int i = 0; i < FR_LISTING_MAX; i++) {
        struct fr_listing *l = &set->v[i];
        if (l->state == FR_LISTING_OPEN && (at_end || ++l->idle > IDLE_MAX)) {
            l->state = FR_LISTING_DONE;
        }
    }
}

static int take(struct fr_listing *l, struct fr_arena *out, struct fr_trace_done *ret)
{
    bool known = l->min_nodes > 0 && l->min_nodes == l->max_nodes && l->per_node > 0 &&
                 (int64_t)l->min_nodes * l->per_node <= WORLD_MAX;
    l->state = FR_LISTING_NONE;
    if (l->is_ranks ? l->n_ranks == 0 : !known) {
        return 0;
    }
    *ret = (struct fr_trace_done){.is_row = true,
                                  .who = l->who,
                                  .when = l->when,
                                  .outer = l->outer,
                                  .offset = l->offset,
                                  .line = l->line,
                                  .exc_offset = l->offset,
                                  .exc_line = l->line};
    ret->exc_text = fr_arena_dup(out, (fr_sv){l->text, l->text_n});
    if (l->is_ranks) {
        fr_sv list = FR_SV_NONE;
        for (uint32_t i = 0; i < l->n_ranks; i++) {
            list = i == 0 ? fr_arena_printf(out, "%d", (int)l->ranks[i])
                          : fr_arena_printf(out, "%.*s,%d", FR_SV_ARG(list), (int)l->ranks[i]);
        }
        ret->row.fact = FR_FACT_MISSING;
        fr_draft_num(&ret->row, FR_KEY_MISSING, l->ranks[0], list);
        fr_draft_text(&ret->row, FR_KEY_REASON, FR_SV("stalled"));
        return 1;
    }
    ret->row.fact = FR_FACT_IDENTITY;
    fr_draft_num(&ret->row, FR_KEY_WORLD, l->min_nodes * l->per_node, FR_SV_NONE);
    return 1;
}

int fr_listings_take(struct fr_listings *set, struct fr_arena *out, struct fr_trace_done *ret)
{
    for (int i = 0; i < FR_LISTING_MAX; i++) {
        if (set->v[i].state == FR_LISTING_DONE && take(&set->v[i], out, ret) == 1) {
            return 1;
        }
    }
    return 0;
}
