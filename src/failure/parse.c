/* SPDX-License-Identifier: Apache-2.0 */
/* parse: keys are rows of a table, so that a new key is one row and unknown keys are found for
 * free. */
#include "failure/parse.h"

#include "base/vec.h"
#include "failure/yaml.h"
#include "model/series.h"

#include <stdarg.h>
#include <stdio.h>

const char *const fr_failure_categories[] = {
    "hardware",    "collective", "numerics",    "cuda",      "network",  "config",    "driver",
    "environment", "inference",  "memory",      "framework", "data",     "scheduler", "checkpoint",
    "compile",     "storage",    "parallelism", "tokenizer", "security", "container", NULL};
static const char *const severities[] = {"info", "low", "medium", "high", "critical", NULL};
static const char *const layers[] = {"hardware",  "driver", "network",   "runtime", "framework",
                                     "user-code", "data",   "scheduler", "storage", NULL};
static const char *const owners[] = {"ml-engineer", "infrastructure", "data", "platform", NULL};
static const char *const abouts[] = {"reporter", "captured", "peer", "nobody", "self", NULL};
static const char *const no_strings[] = {NULL};

struct parser {
    const char *path;
    uint32_t first_line; /* of the front matter in the file, minus 1 */
    struct fr_arena *arena;
    struct fr_complain *complain;
    bool nomem;
};

void fr_complain(struct fr_complain *c, enum fr_complaint level, const char *path, uint32_t line,
                 const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (level == FR_COMPLAINT_ERROR) {
        c->errors++;
    } else {
        c->warnings++;
    }
    if (c->fn != NULL) {
        c->fn(c->ctx, level, path, line, text);
    }
}

#define BAD(p, node, ...)                                                                     \
    fr_complain((p)->complain, FR_COMPLAINT_ERROR, (p)->path, (node)->line + (p)->first_line, \
                __VA_ARGS__)
#define ODD(p, node, ...)                                                                       \
    fr_complain((p)->complain, FR_COMPLAINT_WARNING, (p)->path, (node)->line + (p)->first_line, \
                __VA_ARGS__)

static const char *get_string(struct parser *p, const struct fr_yaml *v)
{
    if (v->kind != FR_YAML_SCALAR) {
        BAD(p, v, "'%.40s' must be a text (quote it when it holds ': ')",
            v->key.p ? v->key.p : "list item");
        return "";
    }
    if (fr_sv_trim(v->text).n == 0) {
        BAD(p, v, "'%.40s' is empty", v->key.p ? v->key.p : "list item");
    }
    return v->text.p;
}

/* A list of texts; `single` also takes one text. Never NULL. */
static const char *const *get_list(struct parser *p, const struct fr_yaml *v, bool single)
{
    if (v->kind == FR_YAML_SCALAR && single) {
        const char **one = FR_NEW_N(p->arena, const char *, 2);
        if (one == NULL) {
            p->nomem = true;
            return no_strings;
        }
        one[0] = get_string(p, v);
        return one;
    }
    if (v->kind != FR_YAML_LIST) {
        BAD(p, v, "'%.40s' must be a list", v->key.p ? v->key.p : "list item");
        return no_strings;
    }
    const char **list = FR_NEW_N(p->arena, const char *, v->n + 1);
    if (list == NULL) {
        p->nomem = true;
        return no_strings;
    }
    uint32_t n = 0;
    for (const struct fr_yaml *c = v->first; c != NULL; c = c->next) {
        list[n++] = get_string(p, c);
    }
    return list;
}

static int get_word(struct parser *p, const struct fr_yaml *v, const char *const *words)
{
    const char *text = get_string(p, v);
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], text) == 0) {
            return i;
        }
    }
    BAD(p, v, "'%.40s' cannot be '%.60s'", v->key.p, text);
    return -1;
}

static int64_t get_int(struct parser *p, const struct fr_yaml *v, int64_t min, int64_t max)
{
    int64_t n = 0;
    fr_sv s = v->kind == FR_YAML_SCALAR ? v->text : FR_SV_NONE;
    if (!fr_sv_take_i64(&s, &n) || s.n != 0 || n < min || n > max) {
        BAD(p, v, "'%.40s' must be a number from %lld to %lld", v->key.p, (long long)min,
            (long long)max);
        return min;
    }
    return n;
}

/* ---- signals ---- */

static void get_captures(struct parser *p, const struct fr_yaml *v, struct fr_signal *s)
{
    if (v->kind != FR_YAML_MAP || v->n > 16) {
        BAD(p, v, "'captures' must be a map of at most 16 names to regexes");
        return;
    }
    struct fr_capture_def *defs = FR_NEW_N(p->arena, struct fr_capture_def, v->n + 1);
    if (defs == NULL) {
        p->nomem = true;
        return;
    }
    for (const struct fr_yaml *c = v->first; c != NULL; c = c->next) {
        defs[s->n_captures++] = (struct fr_capture_def){c->key.p, get_string(p, c)};
    }
    s->captures = defs;
}

static void get_metric(struct parser *p, const struct fr_yaml *v, struct fr_signal *s)
{
    const struct fr_yaml *name = fr_yaml_get(v, "name"), *is = fr_yaml_get(v, "is");
    const struct fr_yaml *until = fr_yaml_get(v, "until_step");
    if (name == NULL || is == NULL) {
        BAD(p, v, "'metric' needs 'name' and 'is'");
        return;
    }
    for (int i = 0; i < FR_METRIC_COUNT_; i++) {
        if (fr_sv_eq(name->text, fr_sv_z(fr_metric_name((enum fr_metric)i)))) {
            s->metric = (int8_t)i;
        }
    }
    for (int i = 0; i < FR_FINDING_COUNT_; i++) {
        if (fr_sv_eq(is->text, fr_sv_z(fr_finding_name((enum fr_finding_kind)i)))) {
            s->finding = (int8_t)i;
        }
    }
    if (s->metric < 0) {
        BAD(p, name, "unknown metric '%.40s'", get_string(p, name));
    }
    if (s->finding < 0) {
        BAD(p, is, "unknown finding '%.40s'", get_string(p, is));
    }
    if (until != NULL) {
        s->until_step = (int32_t)get_int(p, until, 0, INT32_MAX);
    }
}

static void signal_key(struct parser *p, const struct fr_yaml *v, struct fr_signal *s)
{
    static const char *const roles[] = {"cause",   "symptom",  "teardown",
                                        "context", "progress", NULL};
    const char *key = v->key.p;
    if (strcmp(key, "id") == 0) {
        s->id = get_string(p, v);
    } else if (strcmp(key, "role") == 0) {
        const int role = get_word(p, v, roles);
        s->role = role < 0 ? 0 : (uint8_t)role;
    } else if (strcmp(key, "literal") == 0) {
        s->literals = get_list(p, v, true);
    } else if (strcmp(key, "regex") == 0) {
        s->regex = get_string(p, v);
    } else if (strcmp(key, "not") == 0) {
        s->none_of = get_list(p, v, true);
    } else if (strcmp(key, "captures") == 0) {
        get_captures(p, v, s);
    } else if (strcmp(key, "about") == 0) {
        const int about = get_word(p, v, abouts);
        s->about = about < 0 ? 0 : (uint8_t)about;
    } else if (strcmp(key, "metric") == 0) {
        get_metric(p, v, s);
    } else if (strcmp(key, "yes") == 0) {
        s->yes = get_list(p, v, true);
    } else if (strcmp(key, "no") == 0) {
        s->no = get_list(p, v, true);
    } else {
        ODD(p, v, "unknown key '%.40s' in a signal", key);
    }
}

static void check_literals(struct parser *p, const struct fr_yaml *v, const struct fr_signal *s)
{
    unsigned n = 0;
    for (; s->literals[n] != NULL; n++) {
        const size_t len = strlen(s->literals[n]);
        if (len < FR_LITERAL_MIN || len > FR_LITERAL_MAX) {
            BAD(p, v, "signal '%.60s': a literal must have %d to %d bytes: '%.60s'", s->id,
                FR_LITERAL_MIN, FR_LITERAL_MAX, s->literals[n]);
        } else if (strpbrk(s->literals[n], "\r\n") != NULL) {
            BAD(p, v, "signal '%.60s': a literal cannot hold a line end", s->id);
        }
    }
    if (n == 0 || n > 256) {
        BAD(p, v, "signal '%.60s': 1 to 256 literals are needed", s->id);
    }
}

static void get_signal(struct parser *p, const struct fr_yaml *v, struct fr_signal *s)
{
    *s = (struct fr_signal){.id = "",
                            .metric = -1,
                            .finding = -1,
                            .until_step = -1,
                            .yes = no_strings,
                            .no = no_strings};
    if (v->kind != FR_YAML_MAP) {
        BAD(p, v, "a signal must be a map");
        return;
    }
    for (const struct fr_yaml *c = v->first; c != NULL; c = c->next) {
        signal_key(p, c, s);
    }
    if (s->id[0] == '\0') {
        BAD(p, v, "a signal needs an 'id'");
    }
    if (fr_yaml_get(v, "role") == NULL) {
        BAD(p, v, "signal '%.60s' needs a 'role'", s->id);
    }
    const bool is_metric = fr_yaml_get(v, "metric") != NULL;
    if (is_metric == (s->literals != NULL)) {
        BAD(p, v, "signal '%.60s' needs either 'literal' or 'metric'", s->id);
    } else if (!is_metric) {
        check_literals(p, fr_yaml_get(v, "literal"), s);
    } else if (s->regex != NULL || s->none_of != NULL || s->n_captures != 0) {
        BAD(p, v, "signal '%.60s': 'regex', 'not' and 'captures' need a 'literal'", s->id);
    }
}

static void get_signals(struct parser *p, const struct fr_yaml *v, struct fr_parsed *ret)
{
    if (v->kind != FR_YAML_LIST || v->n > FR_FAILURE_SIGNALS_MAX) {
        BAD(p, v, "'signals' must be a list of at most %d", FR_FAILURE_SIGNALS_MAX);
        return;
    }
    struct fr_signal *signals = FR_NEW_N(p->arena, struct fr_signal, v->n + 1);
    if (signals == NULL) {
        p->nomem = true;
        return;
    }
    uint16_t n = 0;
    for (const struct fr_yaml *c = v->first; c != NULL; c = c->next) {
        get_signal(p, c, &signals[n]);
        for (uint16_t i = 0; i < n; i++) {
            if (strcmp(signals[i].id, signals[n].id) == 0) {
                BAD(p, c, "two signals have the id '%.60s'", signals[n].id);
            }
        }
        n++;
    }
    ret->signals = signals;
    ret->failure.n_signals = n;
}

/* ---- the failure ---- */

static void get_action(struct parser *p, const struct fr_yaml *v, struct fr_failure *f)
{
    static const char *const words[] = {"none", "restart", "fix-first", "drain-node", "wait", NULL};
    static const uint8_t values[] = {FR_ACTION_NONE, FR_ACTION_RESTART, FR_ACTION_FIX_FIRST,
                                     FR_ACTION_DRAIN_NODE, FR_ACTION_WAIT};
    const int i = get_word(p, v, words);
    f->action = i < 0 ? FR_ACTION_NONE : values[i];
}

static void get_scope(struct parser *p, const struct fr_yaml *v, struct fr_failure *f)
{
    static const char *const words[] = {"rank", "all-ranks", "node", "launcher", "none", NULL};
    static const uint8_t values[] = {FR_SCOPE_RANK, FR_SCOPE_ALL_RANKS, FR_SCOPE_NODE,
                                     FR_SCOPE_LAUNCHER, FR_SCOPE_UNKNOWN};
    const int i = get_word(p, v, words);
    f->scope = i < 0 ? FR_SCOPE_RANK : values[i];
}

static void get_fix(struct parser *p, const struct fr_yaml *v, struct fr_failure *f)
{
    static const char *const names[] = {"primary", "fallback", "emergency"};
    const char **at[] = {&f->fix_primary, &f->fix_fallback, &f->fix_emergency};
    for (int i = 0; i < 3; i++) {
        const struct fr_yaml *c = fr_yaml_get(v, names[i]);
        if (c == NULL) {
            fr_complain(p->complain, i == 0 ? FR_COMPLAINT_ERROR : FR_COMPLAINT_WARNING, p->path,
                        v->line + p->first_line, "'fix' needs '%s'", names[i]);
            continue;
        }
        *at[i] = get_string(p, c);
    }
    for (const struct fr_yaml *c = v->first; c != NULL; c = c->next) {
        if (v->kind == FR_YAML_MAP && strcmp(c->key.p, names[0]) != 0 &&
            strcmp(c->key.p, names[1]) != 0 && strcmp(c->key.p, names[2]) != 0) {
            ODD(p, c, "unknown key '%.40s' in 'fix'", c->key.p);
        }
    }
}

static void get_verify(struct parser *p, const struct fr_yaml *v, struct fr_failure *f)
{
    const struct fr_yaml *command = fr_yaml_get(v, "command"), *expect = fr_yaml_get(v, "expect");
    const struct fr_yaml *absent = fr_yaml_get(v, "absent");
    if (command == NULL || expect == NULL || absent == NULL) {
        BAD(p, v, "'verify' needs 'command', 'expect' and 'absent'");
        return;
    }
    f->verify_command = get_string(p, command);
    f->verify_expect = get_list(p, expect, true);
    f->verify_absent = get_list(p, absent, true);
}

struct key {
    const char *name;
    size_t at;                /* offset in struct fr_failure of a text or a list */
    const char *const *words; /* what a text may be */
    char kind;                /* 't' text, 'l' list, 's' special */
    bool required;
};
#define AT(field) offsetof(struct fr_failure, field)
static const struct key keys[] = {
    {"id", AT(id), NULL, 't', true},
    {"title", AT(title), NULL, 't', true},
    {"category", AT(category), fr_failure_categories, 't', true},
    {"severity", AT(severity), severities, 't', true},
    {"layer", AT(layer), layers, 't', true},
    {"owner", AT(owner), owners, 't', true},
    {"action", 0, NULL, 's', true},
    {"scope", 0, NULL, 's', false},
    {"weight", 0, NULL, 's', false},
    {"explains", AT(explains), NULL, 'l', false},
    {"requires", AT(requires), NULL, 'l', false},
    {"excludes", AT(excludes), NULL, 'l', false},
    {"stacks", AT(stacks), NULL, 'l', false},
    {"tags", AT(tags), NULL, 'l', false},
    {"signals", 0, NULL, 's', true},
    {"confirm", AT(confirm), NULL, 'l', true},
    {"fix", 0, NULL, 's', true},
    {"verify", 0, NULL, 's', true},
    {"prevent", AT(prevent), NULL, 'l', true},
    {"repro", AT(repro), NULL, 't', false},
    {"related", AT(related), NULL, 'l', false},
    {"refs", AT(refs), NULL, 'l', true},
};
#define N_KEYS (sizeof keys / sizeof keys[0])

static void get_special(struct parser *p, const struct fr_yaml *v, struct fr_parsed *ret)
{
    const char *key = v->key.p;
    if (strcmp(key, "action") == 0) {
        get_action(p, v, &ret->failure);
    } else if (strcmp(key, "scope") == 0) {
        get_scope(p, v, &ret->failure);
    } else if (strcmp(key, "weight") == 0) {
        ret->failure.weight = (int16_t)get_int(p, v, 0, 100);
    } else if (strcmp(key, "signals") == 0) {
        get_signals(p, v, ret);
    } else if (strcmp(key, "fix") == 0) {
        get_fix(p, v, &ret->failure);
    } else {
        get_verify(p, v, &ret->failure);
    }
}

static void get_key(struct parser *p, const struct fr_yaml *v, struct fr_parsed *ret)
{
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].name, v->key.p) != 0) {
            continue;
        }
        char *const at = (char *)&ret->failure + keys[i].at;
        if (keys[i].kind == 's') {
            get_special(p, v, ret);
        } else if (keys[i].kind == 'l') {
            *(const char *const **)(void *)at = get_list(p, v, false);
        } else if (keys[i].words == NULL || get_word(p, v, keys[i].words) >= 0) {
            *(const char **)(void *)at = get_string(p, v);
        }
        return;
    }
    ODD(p, v, "unknown key '%.40s'", v->key.p);
}

static struct fr_failure blank_failure(void)
{
    return (struct fr_failure){.id = "",
                               .title = "",
                               .category = "",
                               .severity = "",
                               .layer = "",
                               .owner = "",
                               .scope = FR_SCOPE_RANK,
                               .weight = 50,
                               .explains = no_strings,
                               .requires = no_strings,
                               .excludes = no_strings,
                               .related = no_strings,
                               .stacks = no_strings,
                               .tags = no_strings,
                               .confirm = no_strings,
                               .prevent = no_strings,
                               .refs = no_strings,
                               .fix_primary = "",
                               .fix_fallback = "",
                               .fix_emergency = "",
                               .verify_command = "",
                               .verify_expect = no_strings,
                               .verify_absent = no_strings,
                               .body = "",
                               .path = ""};
}

/* The page "memory/cuda-oom.md" must be called as its id says, in the folder of its category. */
static void check_path(struct parser *p, const struct fr_yaml *root, const struct fr_failure *f)
{
    const char *slash = strrchr(p->path, '/');
    const fr_sv name = fr_sv_z(slash != NULL ? slash + 1 : p->path);
    const fr_sv stem = fr_sv_ends(name, FR_SV(".md")) ? fr_sv_head(name, name.n - 3) : name;
    if (f->id[0] != '\0' && !fr_sv_eq(stem, fr_sv_z(f->id))) {
        BAD(p, fr_yaml_get(root, "id"), "id '%.60s' differs from the file's name", f->id);
    }
    for (const char *c = f->id; *c != '\0'; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-')) {
            BAD(p, fr_yaml_get(root, "id"), "an id has only a-z, 0-9 and '-'");
            break;
        }
    }
    if (slash == NULL || f->category[0] == '\0') {
        return;
    }
    const char *folder = slash;
    while (folder > p->path && folder[-1] != '/') {
        folder--;
    }
    const fr_sv parent = fr_sv_range(folder, slash);
    for (int i = 0; fr_failure_categories[i] != NULL; i++) {
        if (fr_sv_eq(parent, fr_sv_z(fr_failure_categories[i])) &&
            !fr_sv_eq(parent, fr_sv_z(f->category))) {
            BAD(p, fr_yaml_get(root, "category"), "category '%s' differs from the folder",
                f->category);
        }
    }
}

/* Cuts "---\n yaml ---\n body". */
static bool split(fr_sv text, fr_sv *front, fr_sv *body)
{
    fr_sv_take(&text, FR_SV("\xef\xbb\xbf"));
    if (!fr_sv_take(&text, FR_SV("---\n")) && !fr_sv_take(&text, FR_SV("---\r\n"))) {
        return false;
    }
    for (size_t at = 0; at < text.n;) {
        const fr_sv rest = fr_sv_skip(text, at);
        const size_t end = fr_sv_chr(rest, '\n');
        const fr_sv line = fr_sv_trim(end == FR_NPOS ? rest : fr_sv_head(rest, end));
        const size_t next = end == FR_NPOS ? text.n : at + end + 1;
        if (fr_sv_eq(line, FR_SV("---")) && rest.p[0] == '-') {
            *front = fr_sv_head(text, at);
            *body = fr_sv_skip(text, next);
            return true;
        }
        at = next;
    }
    return false;
}

int fr_failure_parse(fr_sv text, const char *path, struct fr_arena *arena,
                     struct fr_complain *complain, struct fr_parsed *ret)
{
    struct fr_complain silent = {0};
    struct parser p = {path, 1, arena, complain != NULL ? complain : &silent, false};
    const uint32_t errors = p.complain->errors;
    fr_sv front = FR_SV_NONE, body = FR_SV_NONE;
    struct fr_yaml *root = NULL;
    struct fr_err err = {0};
    if (text.n > FR_FAILURE_FILE_MAX || memchr(text.p ? text.p : "", 0, text.n) != NULL) {
        fr_complain(p.complain, FR_COMPLAINT_ERROR, path, 0, "longer than %u bytes, or not text",
                    FR_FAILURE_FILE_MAX);
        return -FR_SYNTAX;
    }
    if (!split(text, &front, &body)) {
        fr_complain(p.complain, FR_COMPLAINT_ERROR, path, 1,
                    "needs a front matter between two '---' lines");
        return -FR_SYNTAX;
    }
    const int rc = fr_yaml_parse(front, arena, &root, &err);
    if (rc < 0) {
        fr_complain(p.complain, FR_COMPLAINT_ERROR, path, (uint32_t)err.pos + 1, "%s", err.msg);
        return rc;
    }
    struct fr_parsed out = {blank_failure(), NULL};
    if (root->kind != FR_YAML_MAP) {
        BAD(&p, root, "the front matter must be a map");
        return -FR_SYNTAX;
    }
    for (const struct fr_yaml *c = root->first; c != NULL; c = c->next) {
        get_key(&p, c, &out);
    }
    for (size_t i = 0; i < N_KEYS; i++) {
        if (keys[i].required && fr_yaml_get(root, keys[i].name) == NULL) {
            BAD(&p, root, "key '%s' is missing", keys[i].name);
        }
    }
    check_path(&p, root, &out.failure);
    out.failure.path = fr_arena_strdup(arena, fr_sv_z(path));
    out.failure.body = fr_arena_strdup(arena, body);
    if (p.nomem || out.failure.path == NULL || out.failure.body == NULL) {
        return -FR_NOMEM;
    }
    if (p.complain->errors != errors) {
        return -FR_SYNTAX;
    }
    *ret = out;
    return 0;
}
