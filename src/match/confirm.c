/* SPDX-License-Identifier: Apache-2.0 */
/* confirm: from the signals whose literal was seen on a line to those that really fire: regexes, a
 * group at a time, then vetoes. */
#include "match/scanner.h"

#include <hs/hs_runtime.h>

#define WINDOW         (64u << 10) /* a longer line is searched by regexes in windows */
#define WINDOW_OVERLAP (4u << 10)  /* that overlap by more than any bounded regex spans */

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
                    void *ctx)
{
    struct fr_scanner *s = ctx;
    (void)from;
    (void)to;
    (void)flags;
    s->matched[id] = s->epoch;
    return 0;
}

static int open_group(struct fr_scanner *s, uint16_t group)
{
    const int rc = fr_rules_database(s->rules, group, &s->groups[group].database, NULL);
    if (rc < 0) {
        return rc;
    }
    return hs_alloc_scratch(s->groups[group].database, &s->scratch) == HS_SUCCESS ? 0 : -FR_NOMEM;
}

/* Marks in s->matched those signals of the group whose regex matches the line. */
static int ask_group(struct fr_scanner *s, uint16_t group, fr_sv line)
{
    struct fr_group_state *g = &s->groups[group];
    if (g->epoch == s->epoch) {
        return 0;
    }
    if (g->database == NULL) {
        const int rc = open_group(s, group);
        if (rc < 0) {
            return rc;
        }
    }
    g->epoch = s->epoch;
    for (;;) {
        const fr_sv window = fr_sv_head(line, WINDOW);
        const hs_error_t e =
            hs_scan(g->database, window.p, (unsigned)window.n, 0, s->scratch, on_match, s);
        if (e != HS_SUCCESS) {
            return e == HS_NOMEM ? -FR_NOMEM : -FR_STATE;
        }
        if (window.n == line.n) {
            return 0;
        }
        line = fr_sv_skip(line, WINDOW - WINDOW_OVERLAP);
    }
}

static bool vetoed(const struct fr_signal *signal, fr_sv line)
{
    for (const char *const *v = signal->none_of; v != NULL && *v != NULL; v++) {
        if (fr_sv_has(line, fr_sv_z(*v))) {
            return true;
        }
    }
    return false;
}

int fr_scan_confirm(struct fr_scanner *s, struct fr_hit *hit)
{
    const struct fr_signal *signals = s->rules->library->signals;
    for (uint32_t i = 1; i < s->n_pending; i++) { /* few: insertion sort */
        const uint16_t v = s->pending[i];
        uint32_t k = i;
        for (; k > 0 && s->pending[k - 1] > v; k--) {
            s->pending[k] = s->pending[k - 1];
        }
        s->pending[k] = v;
    }
    for (uint32_t i = 0; i < s->n_pending && hit->n_signals < FR_HIT_SIGNALS; i++) {
        const uint16_t id = s->pending[i];
        if (signals[id].regex != NULL) {
            const int rc = ask_group(s, s->rules->group_of[id], hit->line);
            if (rc < 0) {
                return rc;
            }
            if (s->matched[id] != s->epoch) {
                continue;
            }
        }
        if (!vetoed(&signals[id], hit->line)) {
            hit->signals[hit->n_signals++] = id;
        }
    }
    return 0;
}
