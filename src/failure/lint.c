/* SPDX-License-Identifier: Apache-2.0 */
/* lint: each rule is one function over one failure; what needs the whole library (copied text, twin
 * signals) goes through one map from text to the failure that had it first. */
#include "failure/lint.h"

#include "base/map.h"
#include "failure/page.h"
#include "failure/render.h"

#define SHARED_MIN 40 /* shorter lines may well be equal by chance */
#define TITLE_MAX  90

struct lint {
    const struct fr_library *lib;
    const struct fr_lint_checks *checks;
    struct fr_complain *complain;
    bool (*own)(void *ctx, const struct fr_failure *f);
    void *own_ctx;
    struct fr_arena arena;
    struct fr_map texts;   /* a line of prose -> failure + 1 */
    struct fr_map signals; /* a recogniser written out -> signal + 1 */
    bool nomem;
};

#define BAD(l, f, ...) fr_complain((l)->complain, FR_COMPLAINT_ERROR, (f)->path, 0, __VA_ARGS__)
#define ODD(l, f, ...) fr_complain((l)->complain, FR_COMPLAINT_WARNING, (f)->path, 0, __VA_ARGS__)

/* ---- the page ---- */

/* The text under the first heading of a body, as written; a section may be shown beside lists. */
static bool has_section(const struct fr_failure *f, const char *name)
{
    return fr_body_section(f->body, name).n > 0;
}

/* Sections in the order of names[0..n), from `last` on; all must be there. Where it ended. */
static const char *in_order(struct lint *l, const struct fr_failure *f, const char *const *names,
                            size_t n, const char *last)
{
    for (size_t i = 0; i < n; i++) {
        const fr_sv text = fr_body_section(f->body, names[i]);
        if (text.n == 0) {
            BAD(l, f, "section '## %s' is missing or empty", names[i]);
        } else if (text.p < last) {
            BAD(l, f, "section '## %s' is out of order", names[i]);
        } else {
            last = text.p;
        }
    }
    return last;
}

static void lint_sections(struct lint *l, const struct fr_failure *f)
{
    static const char *const names[] = {"Quick answer", "What this failure is", "Why it happens",
                                        "Symptoms"};
    static const char *const more[] = {"Affected systems",  "How to confirm",   "Fix",
                                       "Prevention",        "For the executive", "For the engineer",
                                       "For the on-call",   "Questions",         "References"};
    const size_t n_more = sizeof more / sizeof more[0];
    const char *last = in_order(l, f, names, sizeof names / sizeof names[0], f->body);
    bool complete = f->repro != NULL;
    for (size_t i = 0; i < n_more && !complete; i++) {
        complete = has_section(f, more[i]);
    }
    if (complete) {
        in_order(l, f, more, n_more, last);
    }
    const fr_sv symptoms = fr_body_section(f->body, "Symptoms");
    if (symptoms.n > 0 && !fr_sv_has(symptoms, FR_SV("\n|"))) {
        BAD(l, f, "'## Symptoms' needs a table '| symptom | why |'");
    }
    if (f->repro != NULL && strcmp(f->repro, f->id) != 0) {
        BAD(l, f, "'repro' must be the id of the failure, not '%.60s'", f->repro);
    }
}

static void lint_head(struct lint *l, const struct fr_failure *f)
{
    const size_t n = strlen(f->title);
    if (n > 0 && f->title[n - 1] == '.') {
        BAD(l, f, "the title ends with a dot");
    }
    if (n > TITLE_MAX) {
        BAD(l, f, "the title is longer than %d bytes", TITLE_MAX);
    }
    if (f->confirm[0] == NULL || f->prevent[0] == NULL || f->refs[0] == NULL) {
        BAD(l, f, "'confirm', 'prevent' and 'refs' need at least one item each");
    }
    for (const char *const *r = f->refs; *r != NULL; r++) {
        if (strncmp(*r, "https://", 8) != 0 || strpbrk(*r, " \t") != NULL) {
            BAD(l, f, "not a URL: '%.80s'", *r);
        }
    }
}

static void lint_ids(struct lint *l, const struct fr_failure *f, const char *key,
                     const char *const *ids)
{
    for (; *ids != NULL; ids++) {
        if (strcmp(*ids, f->id) == 0) {
            BAD(l, f, "'%s' names the failure itself", key);
        } else if (fr_library_find(l->lib, fr_sv_z(*ids)) < 0) {
            BAD(l, f, "'%s' names '%.60s', which does not exist", key, *ids);
        }
    }
}

/* Each would take the other's place as the answer, and a third one would be it. */
static void lint_mutual(struct lint *l, const struct fr_failure *f)
{
    for (const char *const *id = f->explains; *id != NULL; id++) {
        int at = fr_library_find(l->lib, fr_sv_z(*id));
        const char *const *back = at < 0 ? NULL : l->lib->failures[at].explains;
        for (; back != NULL && *back != NULL; back++) {
            if (strcmp(*back, f->id) == 0 && strcmp(f->id, *id) < 0) {
                BAD(l, f, "'explains' names '%.60s', which names it back: keep the one that comes first", *id);
            }
        }
    }
}

/* Remembers one line of prose; complains when another failure already has it. */
static void lint_prose(struct lint *l, const struct fr_failure *f, uint32_t index, bool own,
                       fr_sv text)
{
    bool is_new = false;
    text = fr_sv_trim(text);
    if (text.n < SHARED_MIN) {
        return;
    }
    uint32_t *slot = fr_map_slot(&l->texts, text, &is_new);
    if (slot == NULL) {
        l->nomem = true;
    } else if (is_new) {
        *slot = index + 1;
    } else if (*slot != index + 1 && (own || l->own(l->own_ctx, &l->lib->failures[*slot - 1]))) {
        BAD(l, f, "shares a line word for word with '%s': '%.60s...'",
            l->lib->failures[*slot - 1].id, text.p);
    }
}

static void lint_shared(struct lint *l, const struct fr_failure *f, uint32_t index, bool own)
{
    bool code = false;
    for (fr_sv line, rest = fr_sv_z(f->body); fr_page_line(&rest, &line);) {
        code ^= fr_sv_starts(fr_sv_trim(line), FR_SV("```"));
        if (!code) {
            lint_prose(l, f, index, own, line);
        }
    }
    lint_prose(l, f, index, own, fr_sv_z(f->fix_primary));
    for (const char *const *p = f->confirm; *p != NULL; p++) {
        lint_prose(l, f, index, own, fr_sv_z(*p));
    }
    for (const char *const *p = f->prevent; *p != NULL; p++) {
        lint_prose(l, f, index, own, fr_sv_z(*p));
    }
}

/* ---- signals ---- */

/* What can be told from a regex without compiling it: bytes outside classes and escapes. */
struct regex_facts {
    bool unbounded, anchored;
    int groups;
};

static void skip_class(const char **at)
{
    const char *c = *at + 1;
    c += *c == '^';
    c += *c == ']'; /* a first ']' is itself */
    for (; *c != '\0' && *c != ']'; c++) {
        c += *c == '\\' && c[1] != '\0';
    }
    *at = *c == ']' ? c : c - 1;
}

static struct regex_facts look_at_regex(const char *regex)
{
    struct regex_facts facts = {false, false, 0};
    for (const char *c = regex; *c != '\0'; c++) {
        if (*c == '\\') {
            c += c[1] != '\0';
        } else if (*c == '[') {
            skip_class(&c);
        } else if (*c == '(') {
            facts.groups += c[1] != '?' || (c[2] == 'P' && c[3] == '<') ||
                            (c[2] == '<' && c[3] != '=' && c[3] != '!');
        } else if (*c == '^' || *c == '$') {
            facts.anchored = true;
        } else if (*c == '.') {
            const char *end = c[1] == '{' ? strchr(c, '}') : NULL;
            facts.unbounded |= c[1] == '*' || c[1] == '+' || (end != NULL && end[-1] == ',');
        }
    }
    return facts;
}

static void lint_regexes(struct lint *l, const struct fr_failure *f, const struct fr_signal *s)
{
    if (s->regex != NULL) {
        const struct regex_facts facts = look_at_regex(s->regex);
        if (facts.unbounded) {
            BAD(l, f, "signal '%s': unbounded '.*' in the regex: write '.{0,200}'", s->id);
        }
        if (facts.anchored) {
            ODD(l, f, "signal '%s': '^' or '$' in the regex: prefixes and '\\r' may stand there",
                s->id);
        }
    }
    for (uint16_t i = 0; i < s->n_captures; i++) {
        if (look_at_regex(s->captures[i].regex).groups != 1) {
            BAD(l, f, "signal '%s': capture '%s' needs exactly one group", s->id,
                s->captures[i].name);
        }
    }
}

static void lint_literals(struct lint *l, const struct fr_failure *f, const struct fr_signal *s)
{
    for (const char *const *a = s->literals; *a != NULL; a++) {
        for (const char *const *v = s->none_of; v != NULL && *v != NULL; v++) {
            if (strstr(*a, *v) != NULL) {
                BAD(l, f,
                    "signal '%s': literal '%.60s' holds what 'not' forbids: it can never fire",
                    s->id, *a);
            }
        }
        for (const char *const *b = s->literals; *b != NULL; b++) {
            if (a != b && strstr(*a, *b) != NULL) {
                ODD(l, f, "signal '%s': literal '%.60s' is covered by '%.60s'", s->id, *a, *b);
            }
        }
    }
}

static void add_list(struct fr_buf *out, char mark, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        fr_buf_printf(out, "\n%c%s", mark, *list);
    }
}

/* The same recogniser twice: one of the two failures would always stand in the other's shadow. */
static void lint_twins(struct lint *l, const struct fr_failure *f, uint32_t index, bool own)
{
    const struct fr_signal *s = &l->lib->signals[index];
    FR_AUTO(fr_buf) text = FR_BUF_INIT(1u << 16);
    bool is_new = false;
    add_list(&text, 'l', s->literals);
    add_list(&text, 'n', s->none_of);
    fr_buf_printf(&text, "\nr%s", s->regex != NULL ? s->regex : "");
    fr_buf_printf(&text, "\nm%d %d %d", s->metric, s->finding, s->until_step);
    uint32_t *slot = fr_map_slot(&l->signals, fr_buf_sv(&text), &is_new);
    if (slot == NULL || !fr_buf_ok(&text)) {
        l->nomem = true;
    } else if (is_new) {
        *slot = index + 1;
    } else {
        const struct fr_signal *twin = &l->lib->signals[*slot - 1];
        const struct fr_failure *g = &l->lib->failures[twin->failure];
        if (own || l->own(l->own_ctx, g)) {
            BAD(l, f, "signal '%s' is shadowed by '%s/%s', which says the same", s->id, g->id,
                twin->id);
        }
    }
}

/* Every text that fires `s` fires `other` of the same failure and role too: s adds nothing. */
static bool is_covered(const struct fr_signal *s, const struct fr_signal *other)
{
    if (other->literals == NULL || s->literals == NULL || other->regex != NULL ||
        other->none_of != NULL || other->role != s->role || s->n_captures > other->n_captures) {
        return false;
    }
    for (const char *const *a = s->literals; *a != NULL; a++) {
        bool within = false;
        for (const char *const *b = other->literals; *b != NULL && !within; b++) {
            within = strstr(*a, *b) != NULL;
        }
        if (!within) {
            return false;
        }
    }
    return true;
}

static void lint_samples(struct lint *l, const struct fr_failure *f, uint32_t index)
{
    const struct fr_signal *s = &l->lib->signals[index];
    if (s->yes[0] == NULL || s->no[0] == NULL) {
        BAD(l, f, "signal '%s' needs at least one 'yes' and one 'no' sample", s->id);
    }
    if (l->checks == NULL || l->checks->fires == NULL) {
        return;
    }
    for (const char *const *y = s->yes; *y != NULL; y++) {
        if (l->checks->fires(l->checks->ctx, (uint16_t)index, *y) == 0) {
            BAD(l, f, "signal '%s' does not fire on its 'yes' sample '%.100s'", s->id, *y);
        }
    }
    for (const char *const *n = s->no; *n != NULL; n++) {
        if (l->checks->fires(l->checks->ctx, (uint16_t)index, *n) == 1) {
            BAD(l, f, "signal '%s' fires on its 'no' sample '%.100s'", s->id, *n);
        }
    }
}

static void lint_signals(struct lint *l, const struct fr_failure *f, bool own)
{
    for (uint16_t i = 0; i < f->n_signals; i++) {
        const uint32_t index = (uint32_t)f->first_signal + i;
        const struct fr_signal *s = &l->lib->signals[index];
        lint_twins(l, f, index, own);
        if (!own) {
            continue;
        }
        lint_samples(l, f, index);
        if (s->literals == NULL) {
            continue;
        }
        lint_regexes(l, f, s);
        lint_literals(l, f, s);
        for (uint16_t k = 0; k < f->n_signals; k++) {
            if (k != i && is_covered(s, &l->lib->signals[f->first_signal + k])) {
                ODD(l, f, "signal '%s' is covered by '%s'", s->id,
                    l->lib->signals[f->first_signal + k].id);
            }
        }
    }
}

static bool every(void *ctx, const struct fr_failure *f)
{
    (void)ctx;
    (void)f;
    return true;
}

int fr_library_lint(const struct fr_library *lib,
                    bool (*own)(void *ctx, const struct fr_failure *f), void *own_ctx,
                    const struct fr_lint_checks *checks, struct fr_complain *complain)
{
    struct lint l = {.lib = lib,
                     .checks = checks,
                     .complain = complain,
                     .own = own != NULL ? own : every,
                     .own_ctx = own_ctx,
                     .arena = FR_ARENA_INIT(256u << 20)};
    fr_map_init(&l.texts, &l.arena);
    fr_map_init(&l.signals, &l.arena);
    for (uint32_t i = 0; i < lib->n_failures; i++) {
        const struct fr_failure *f = &lib->failures[i];
        const bool is_own = l.own(own_ctx, f);
        lint_shared(&l, f, i, is_own);
        lint_signals(&l, f, is_own);
        if (!is_own) {
            continue;
        }
        lint_head(&l, f);
        lint_sections(&l, f);
        lint_ids(&l, f, "related", f->related);
        lint_ids(&l, f, "explains", f->explains);
        lint_mutual(&l, f);
        lint_ids(&l, f, "requires", f->requires);
        lint_ids(&l, f, "excludes", f->excludes);
    }
    fr_arena_release(&l.arena);
    return l.nomem ? -FR_NOMEM : 0;
}
