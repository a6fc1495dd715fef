/* SPDX-License-Identifier: Apache-2.0 */
/* Every dialect accepts and refuses its own sample lines. An expectation is "key=value ..." on what
 * the whole peeler says, then per fact "fact=name key=value ..."; facts are separated by "; ", "-"
 * is absent, "" means that no fact may be found. A line with a fact must also hold one of the
 * dialect's literals, or the gate would never bring it here. */
#include "format/format.h"
#include "support/t.h"

static const char *const fact_names[FR_FACT_COUNT_] = {
    "none",    "identity", "address",   "exit",       "stop_sent",    "stop_received",
    "timeout", "counters", "peer_lost", "missing",    "mismatch",     "dump_signal",
    "xid",     "sxid",     "gpu_map",   "oom_kill",   "kernel_crash", "scheduler",
    "attempt", "done",     "start",     "checkpoint", "phase",
    "stack"};
static const char *const level_names[] = {"-", "debug", "info", "warn", "error", "fatal"};
static const char *const basis_names[] = {"-", "wall", "utc", "noyear", "clock", "boot"};

static const char *number_or_dash(int64_t v, char *buf)
{
    snprintf(buf, 32, "%lld", (long long)v);
    return v < 0 ? "-" : buf;
}

static const char *sv_or_dash(fr_sv s, char *buf, size_t size)
{
    snprintf(buf, size, "%.*s", FR_SV_ARG(s));
    return s.n == 0 ? "-" : buf;
}

/* What the record says under that name; NULL = no such name. */
static const char *record_value(const struct fr_record *r, const char *key, char *buf, size_t size)
{
    if (strcmp(key, "rank") == 0) {
        return number_or_dash(r->who.rank, buf);
    } else if (strcmp(key, "local_rank") == 0) {
        return number_or_dash(r->who.local_rank, buf);
    } else if (strcmp(key, "task") == 0) {
        return number_or_dash(r->who.task, buf);
    } else if (strcmp(key, "pg_rank") == 0) {
        return number_or_dash(r->who.pg_rank, buf);
    } else if (strcmp(key, "gpu") == 0) {
        return number_or_dash(r->who.gpu, buf);
    } else if (strcmp(key, "pid") == 0) {
        return number_or_dash(r->who.pid, buf);
    } else if (strcmp(key, "node") == 0) {
        return sv_or_dash(r->who.node, buf, size);
    } else if (strcmp(key, "role") == 0) {
        return sv_or_dash(r->who.role, buf, size);
    } else if (strcmp(key, "text") == 0) {
        return sv_or_dash(r->text, buf, size);
    } else if (strcmp(key, "level") == 0) {
        return level_names[r->level];
    } else if (strcmp(key, "basis") == 0) {
        return basis_names[r->when.basis];
    } else if (strcmp(key, "kernel") == 0) {
        return r->is_kernel ? "1" : "0";
    } else if (strcmp(key, "repeated") == 0) {
        return r->repeated ? "1" : "0";
    } else if (strcmp(key, "res") == 0) {
        return number_or_dash(r->when.resolution_ns, buf);
    }
    return NULL;
}

static const char *cap_value(const struct fr_draft *d, const char *key, char *buf, size_t size)
{
    for (unsigned i = 0; i < d->n_caps; i++) {
        const struct fr_cap *c = &d->caps[i];
        if (strcmp(fr_key_name(c->key), key) != 0) {
            continue;
        }
        if (c->is_num && c->key == FR_KEY_TIME) {
            fr_time_iso(c->num, 0, buf);
            return buf;
        }
        bool list = c->key == FR_KEY_MISSING || c->key == FR_KEY_RANKS;
        if (c->is_num && !(list && c->text.n > 0)) {
            snprintf(buf, size, "%lld", (long long)c->num);
            return buf;
        }
        return sv_or_dash(c->text, buf, size);
    }
    return "-";
}

/* Cuts "key=value " off *s; values may be in double quotes with backslash escapes. */
static bool take_pair(const char **s, char *key, char *value)
{
    const char *p = *s;
    while (*p == ' ') {
        p++;
    }
    const char *eq = strchr(p, '=');
    if (eq == NULL || *p == '\0' || *p == ';') {
        return false;
    }
    memcpy(key, p, (size_t)(eq - p));
    key[eq - p] = '\0';
    p = eq + 1;
    bool quoted = *p == '"';
    p += quoted;
    while (*p != '\0' && (quoted ? *p != '"' : *p != ' ' && *p != ';')) {
        p += quoted && *p == '\\';
        *value++ = *p++;
    }
    *value = '\0';
    *s = p + (quoted && *p == '"');
    return true;
}

static void check_when(const char *name, const char *line, const char *key, const struct fr_when *w,
                       const char *want)
{
    char got[48] = "-";
    if (w->basis != FR_TIME_BASIS_NONE) {
        const char *dot = strchr(want, '.');
        fr_time_iso(w->ns, dot == NULL ? 0 : (int)strlen(dot + 1), got);
    }
    t_checks_++;
    if (strcmp(got, want) != 0) {
        T_FAIL("%s: %s\n    %s: got '%s', want '%s'", name, line, key, got, want);
    }
}

static void check_record(const char *name, const char *line, const struct fr_record *rec,
                         const char **expect)
{
    char key[64], want[512], buf[2048];
    while (true) {
        const char *at = *expect;
        if (!take_pair(&at, key, want) || strcmp(key, "fact") == 0) {
            return;
        }
        *expect = at;
        if (strcmp(key, "time") == 0 || strcmp(key, "outer") == 0) {
            check_when(name, line, key, strcmp(key, "time") == 0 ? &rec->when : &rec->outer, want);
            continue;
        }
        const char *got = record_value(rec, key, buf, sizeof buf);
        t_checks_++;
        if (got == NULL || strcmp(got, want) != 0) {
            T_FAIL("%s: %s\n    %s: got '%s', want '%s'", name, line, key,
                   got == NULL ? "(no such key)" : got, want);
        }
    }
}

static void check_facts(const char *name, const char *line, const struct fr_draft *drafts, int n,
                        const char *expect)
{
    char key[64], want[512], buf[2048];
    int i = -1;
    while (take_pair(&expect, key, want)) {
        t_checks_++;
        if (strcmp(key, "fact") == 0) {
            i++;
            if (i >= n || strcmp(fact_names[drafts[i].fact], want) != 0) {
                T_FAIL("%s: %s\n    fact %d: got '%s', want '%s'", name, line, i,
                       i < n ? fact_names[drafts[i].fact] : "(none)", want);
                return;
            }
        } else {
            const char *got = cap_value(&drafts[i], key, buf, sizeof buf);
            if (strcmp(got, want) != 0) {
                T_FAIL("%s: %s\n    %s of fact %s: got '%s', want '%s'", name, line, key,
                       fact_names[drafts[i].fact], got, want);
            }
        }
        expect += strspn(expect, " ;");
    }
    t_checks_++;
    if (i + 1 != n) {
        T_FAIL("%s: %s\n    %d facts, want %d", name, line, n, i + 1);
    }
}

static void check_sample(const struct fr_format *f, const struct fr_format_sample *s)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    const struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};
    struct fr_record rec;
    struct fr_draft drafts[4];
    fr_peel(&ctx, fr_sv_z(s->line), &rec);
    const char *expect = s->expect;
    check_record(f->name, s->line, &rec, &expect);
    bool gated = false;
    for (const char *const *l = f->literals; l != NULL && *l != NULL; l++) {
        gated = gated || strstr(s->line, *l) != NULL;
    }
    int n = f->facts != NULL ? f->facts(&ctx, &rec, drafts, 4) : 0;
    if (strstr(expect, "fact=") != NULL) {
        t_checks_++;
        if (!gated) {
            T_FAIL("%s: %s\n    no literal brings this line to its parser", f->name, s->line);
        }
        check_facts(f->name, s->line, drafts, n, expect);
    } else if (s->expect[0] == '\0' && n != 0) {
        T_FAIL("%s: %s\n    fact %s, want none", f->name, s->line, fact_names[drafts[0].fact]);
    }
    fr_arena_release(&scratch);
}

T_TEST(every_dialect_reads_its_samples)
{
    for (unsigned i = 0; i < fr_formats_count; i++) {
        const struct fr_format *f = fr_formats[i];
        int n = 0;
        for (const struct fr_format_sample *s = f->samples; s->line != NULL; s++, n++) {
            check_sample(f, s);
        }
        T_OK(n >= 2);
    }
}

T_TEST(literals_are_long_enough_for_the_gate)
{
    for (unsigned i = 0; i < fr_formats_count; i++) {
        const struct fr_format *f = fr_formats[i];
        T_OK((f->facts != NULL) == (f->literals != NULL));
        for (const char *const *l = f->literals; l != NULL && *l != NULL; l++) {
            if (strlen(*l) < 5) {
                T_FAIL("%s: literal '%s' is too short", f->name, *l);
            }
        }
    }
}

T_TEST(no_view_leaves_the_line)
{
    for (unsigned i = 0; i < fr_formats_count; i++) {
        for (const struct fr_format_sample *s = fr_formats[i]->samples; s->line != NULL; s++) {
            size_t len = strlen(s->line);
            for (size_t n = 0; n <= len; n++) { /* every prefix, in a buffer of exactly that size */
                struct fr_arena scratch = FR_ARENA_INIT(0);
                const struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};
                struct fr_record rec;
                struct fr_draft drafts[4];
                char *copy = malloc(n + (n == 0));
                memcpy(copy, s->line, n);
                fr_peel(&ctx, (fr_sv){copy, n}, &rec);
                for (unsigned k = 0; k < fr_formats_count; k++) {
                    if (fr_formats[k]->facts != NULL) {
                        int got = fr_formats[k]->facts(&ctx, &rec, drafts, 4);
                        if (got < 0 || got > 4) {
                            T_FAIL("%s: %d facts", fr_formats[k]->name, got);
                        }
                    }
                }
                free(copy);
                fr_arena_release(&scratch);
            }
        }
    }
}

int main(void)
{
    return t_run();
}
