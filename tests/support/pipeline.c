/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pipeline.h"

#include "incident/incident.h"
#include "report/writer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static void must(int rc, const struct fr_err *err)
{
    if (rc < 0) {
        fprintf(stderr, "pipeline: %s\n", err->msg);
        abort();
    }
}

static void on_skip(void *ctx, fr_sv source, fr_sv why)
{
    struct fr_evidence_set *set = ctx;
    struct fr_skipped *s = FR_PUSH(&set->skipped);
    if (s != NULL) {
        s->source = fr_arena_dup(&set->arena, source);
        s->why = fr_arena_dup(&set->arena, why);
    }
}

void pipeline_open(struct pipeline *p, const char *const *paths, unsigned n, const struct fr_input_limits *limits, enum fr_scan_engine engine)
{
    struct fr_err err = {0};
    const struct fr_rules *rules = NULL;
    *p = (struct pipeline){0};
    must(fr_rules_builtin(&rules, &err), &err);
    must(fr_input_new(limits != NULL ? limits : &fr_input_default_limits, &p->input, &err), &err);
    for (unsigned i = 0; i < n; i++) {
        must(fr_input_add(p->input, paths[i], on_skip, &p->skipped, &err), &err);
    }
    p->n = fr_input_count(p->input);
    p->options = (struct fr_collect_options){.library = fr_library_builtin(), .rules = rules, .input = p->input, .engine = engine, .skip = on_skip};
}

void pipeline_collect(struct pipeline *p, const uint32_t *units, uint32_t n, struct fr_evidence_set *out)
{
    struct fr_err err = {0};
    struct fr_collector *c = NULL;
    struct fr_collect_options o = p->options;
    o.skip_ctx = out;
    must(fr_collector_new(&o, &c, &err), &err);
    for (uint32_t i = 0; i < n; i++) {
        must(fr_collect_unit(c, units[i], out, &err), &err);
    }
    fr_collector_free(&c);
}

void pipeline_close(struct pipeline *p)
{
    fr_input_free(&p->input);
    fr_evidence_set_release(&p->skipped);
}

void pipeline_json(struct fr_evidence_set *set, struct fr_buf *out)
{
    struct fr_err err = {0};
    struct fr_report report = {0};
    const struct fr_write_options o = {0};
    fr_evidence_seal(set);
    must(fr_incident_decide(set, fr_library_builtin(), &report, &err), &err);
    must(fr_writer_find(FR_SV("json"))->write(&report, &o, out, &err), &err);
    fr_report_release(&report);
}

void pipeline_whole(const char *const *paths, unsigned n, const struct fr_input_limits *limits, enum fr_scan_engine engine, struct fr_buf *out)
{
    struct pipeline p;
    struct fr_evidence_set set = {0};
    pipeline_open(&p, paths, n, limits, engine);
    for (uint32_t i = 0; i < p.n; i++) {
        pipeline_collect(&p, &i, 1, &set);
    }
    pipeline_json(&set, out);
    fr_evidence_set_release(&set);
    pipeline_close(&p);
}

/* ---- the corpus ---- */

static void corpus_add(struct corpus *c, const char *path)
{
    char **v = realloc(c->v, (c->n + 1) * sizeof *v);
    char *copy = v != NULL ? strdup(path) : NULL;
    if (copy == NULL) {
        abort();
    }
    c->v = v;
    c->v[c->n++] = copy;
}

static bool is_about_cases(const char *name)
{
    static const char *const names[] = {"labels.jsonl", "known.txt", "README.md", "origin.md", "run.py", NULL};
    for (const char *const *n = names; *n != NULL; n++) {
        if (strcmp(name, *n) == 0) {
            return true;
        }
    }
    return name[0] == '.';
}

static void corpus_group(struct corpus *c, const char *dir, bool folders, bool files)
{
    DIR *d = opendir(dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[1024];
        struct stat st;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path) {
            continue;
        }
        if (!is_about_cases(e->d_name) && stat(path, &st) == 0 && (S_ISDIR(st.st_mode) ? folders : files)) {
            corpus_add(c, path);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
}

static int cmp_path(const void *pa, const void *pb)
{
    return strcmp(*(char *const *)pa, *(char *const *)pb);
}

void corpus_load(struct corpus *c, bool folders, bool files)
{
    const char *root = FR_SOURCE_DIR "/tests/cases";
    DIR *d = opendir(root);
    *c = (struct corpus){0};
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", root, e->d_name);
        if (!is_about_cases(e->d_name)) {
            corpus_group(c, path, folders, files);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    if (c->n == 0) {
        fprintf(stderr, "no cases under %s\n", root);
        abort();
    }
    qsort(c->v, c->n, sizeof *c->v, cmp_path);
}

void corpus_free(struct corpus *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        free(c->v[i]);
    }
    free(c->v);
    *c = (struct corpus){0};
}

/* ---- dice: splitmix64 ---- */

uint32_t dice_below(struct dice *d, uint32_t n)
{
    uint64_t z = (d->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return n == 0 ? 0 : (uint32_t)((z ^ (z >> 31)) % n);
}

void dice_shuffle(struct dice *d, uint32_t *v, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = dice_below(d, i), was = v[i - 1];
        v[i - 1] = v[k];
        v[k] = was;
    }
}
