/* SPDX-License-Identifier: Apache-2.0 */
/* engine: paths to a report. Units are handed out to threads largest first; each thread fills a set
 * of its own, and the sets are merged and sealed in name order, so the result does not depend on
 * who read what when. */
#include "faultrank/faultrank.h"

#include "base/alloc.h"
#include "base/err.h"
#include "engine/collect.h"
#include "engine/hooks.h"
#include "engine/recognise.h"
#include "incident/incident.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

struct fr_engine {
    struct fr_engine_options o;
    struct fr_arena arena; /* user library */
    const struct fr_library *library;
    struct fr_library own_library;
    const struct fr_rules *rules;
    struct fr_rules *own_rules;
    struct fr_scanner *matcher; /* of fr_engine_match, made on first use */
    struct fr_input *input;
    struct fr_evidence_set evidence; /* also holds what was skipped while adding */
    struct fr_report report;
    bool ran;
    pthread_mutex_t lock; /* skips and progress */
    uint64_t bytes_done, bytes_total;
    uint32_t *order; /* units, largest first */
    atomic_uint next;
};

const char *fr_version(void)
{
    return FR_VERSION;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void on_skip(void *ctx, fr_sv source, fr_sv why)
{
    struct fr_engine *e = ctx;
    pthread_mutex_lock(&e->lock);
    struct fr_skipped *s = FR_PUSH(&e->evidence.skipped);
    if (s != NULL) {
        s->source = fr_arena_dup(&e->evidence.arena, source);
        s->why = fr_arena_dup(&e->evidence.arena, why);
    }
    pthread_mutex_unlock(&e->lock);
}

static void on_bytes(void *ctx, uint64_t more)
{
    struct fr_engine *e = ctx;
    pthread_mutex_lock(&e->lock);
    e->bytes_done += more;
    e->o.progress(e->o.progress_ctx, e->bytes_done, e->bytes_total);
    pthread_mutex_unlock(&e->lock);
}

static int load_rules(struct fr_engine *e, struct fr_err *err)
{
    if (e->o.failures_dir == NULL) {
        e->library = fr_library_builtin();
        return fr_rules_builtin(&e->rules, err);
    }
    int rc = fr_library_load(e->o.failures_dir, &e->arena, &e->own_library, err);
    if (rc == 0) {
        e->library = &e->own_library;
        rc = fr_rules_compile(e->library, fr_engine_hooks(), e->o.cache_dir, &e->own_rules, err);
        e->rules = e->own_rules;
    }
    return rc;
}

int fr_engine_new(const struct fr_engine_options *options, struct fr_engine **ret,
                  struct fr_err *err)
{
    *ret = NULL;
    if (options == NULL || options->size < sizeof options->size + sizeof options->threads) {
        return fr_err_set(err, FR_ARG, "fr_engine_options.size is not set");
    }
    struct fr_engine *e = fr_calloc(1, sizeof *e);
    if (e == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    size_t known = options->size < sizeof e->o ? options->size : sizeof e->o;
    memcpy(&e->o, options, known);
    pthread_mutex_init(&e->lock, NULL);
    int rc = load_rules(e, err);
    if (rc == 0) {
        rc = fr_input_new(&fr_input_default_limits, &e->input, err);
    }
    if (rc != 0) {
        fr_engine_free(&e);
        return rc;
    }
    *ret = e;
    return 0;
}

int fr_engine_add(struct fr_engine *e, const char *path, struct fr_err *err)
{
    return fr_input_add(e->input, path, on_skip, e, err);
}

/* ---- threads ---- */

struct worker {
    struct fr_engine *e;
    struct fr_evidence_set out;
    struct fr_err err;
    int rc;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    struct fr_engine *e = w->e;
    struct fr_collector *c = NULL;
    struct fr_collect_options o = {e->library,
                                   e->rules,
                                   e->input,
                                   (enum fr_scan_engine)e->o.engine,
                                   on_skip,
                                   e,
                                   e->o.progress != NULL ? on_bytes : NULL,
                                   e};
    w->rc = fr_collector_new(&o, &c, &w->err);
    uint32_t n = fr_input_count(e->input), i;
    while (w->rc == 0 && (i = atomic_fetch_add(&e->next, 1)) < n) {
        w->rc = fr_collect_unit(c, e->order[i], &w->out, &w->err);
    }
    fr_collector_free(&c);
    return NULL;
}

struct sized {
    uint64_t size;
    uint32_t unit;
};

static int cmp_sized(const void *pa, const void *pb)
{
    const struct sized *a = pa, *b = pb;
    return a->size != b->size ? (a->size < b->size ? 1 : -1)
                              : (a->unit > b->unit) - (a->unit < b->unit);
}

static int order_units(struct fr_engine *e)
{
    uint32_t n = fr_input_count(e->input);
    struct sized *s = fr_calloc(n, sizeof *s);
    e->order = fr_calloc(n, sizeof *e->order);
    if (s == NULL || e->order == NULL) {
        fr_free(s);
        return -FR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        s[i] = (struct sized){fr_input_unit(e->input, i)->size, i};
        e->bytes_total += s[i].size;
    }
    qsort(s, n, sizeof *s, cmp_sized);
    for (uint32_t i = 0; i < n; i++) {
        e->order[i] = s[i].unit;
    }
    fr_free(s);
    return 0;
}

static uint32_t thread_count(const struct fr_engine *e)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = e->o.threads != 0 ? e->o.threads : cores > 0 ? (uint32_t)cores : 1;
    uint32_t units = fr_input_count(e->input);
    n = n > THREADS_MAX ? THREADS_MAX : n;
    n = n > units ? units : n;
    bool small = e->o.threads == 0 && e->bytes_total < (4u << 20) &&
                 units < 64; /* a thread costs more than it reads */
    return n == 0 || small ? 1 : n;
}

static int read_all(struct fr_engine *e, struct fr_err *err)
{
    int rc = order_units(e);
    if (rc != 0) {
        return fr_err_set(err, -rc, "out of memory");
    }
    uint32_t n = thread_count(e);
    struct worker *w = fr_calloc(n, sizeof *w);
    if (w == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    uint32_t started = 1;
    for (uint32_t i = 0; i < n; i++) {
        w[i].e = e;
    }
    for (; started < n && pthread_create(&w[started].thread, NULL, work, &w[started]) == 0;
         started++) {
    }
    work(&w[0]);
    for (uint32_t i = 0; i < started; i++) {
        if (i != 0) {
            pthread_join(w[i].thread, NULL);
        }
        if (rc == 0 && w[i].rc != 0) {
            rc = w[i].rc;
            if (err != NULL) {
                *err = w[i].err;
            }
        }
        if (fr_evidence_merge(&e->evidence, &w[i].out) != 0 && rc == 0) {
            rc = fr_err_set(err, FR_NOMEM, "out of memory");
        }
        fr_evidence_set_release(&w[i].out);
    }
    fr_free(w);
    return rc;
}

int fr_engine_run(struct fr_engine *e, struct fr_err *err)
{
    if (e->ran) {
        return fr_err_set(err, FR_STATE, "fr_engine_run was called twice");
    }
    double start = now_s();
    int rc = read_all(e, err);
    double read = now_s();
    if (rc == 0) {
        fr_evidence_seal(&e->evidence);
        if (e->evidence.sources.n == 0) {
            const struct fr_skipped *s =
                e->evidence.skipped.n != 0 ? &e->evidence.skipped.v[0] : NULL;
            return s != NULL ? fr_err_set(err, FR_ABSENT, "nothing could be read: '%.*s': %.*s",
                                          FR_SV_ARG(s->source), FR_SV_ARG(s->why))
                             : fr_err_set(err, FR_ABSENT,
                                          "nothing could be read: no log files were found");
        }
        rc = fr_incident_decide(&e->evidence, e->library, &e->report, err);
    }
    if (rc == 0) {
        e->ran = true;
        e->report.timings.read_s = read - start;
        e->report.timings.decide_s = now_s() - read;
    }
    return rc;
}

const struct fr_report *fr_engine_report(const struct fr_engine *e)
{
    return e->ran ? &e->report : NULL;
}

const struct fr_library *fr_engine_library(const struct fr_engine *e)
{
    return e->library;
}

int fr_engine_match(struct fr_engine *e, const char *text, size_t n, uint16_t *signals,
                    uint32_t max)
{
    if (e->matcher == NULL) {
        int rc = fr_scanner_new(e->rules, (enum fr_scan_engine)e->o.engine, &e->matcher, NULL);
        if (rc != 0) {
            return rc;
        }
    }
    return fr_recognise(e->library, e->matcher, (fr_sv){text, n}, signals, max);
}

void fr_engine_free(struct fr_engine **pe)
{
    struct fr_engine *e = *pe;
    if (e == NULL) {
        return;
    }
    fr_report_release(&e->report);
    fr_evidence_set_release(&e->evidence);
    fr_input_free(&e->input);
    fr_scanner_free(&e->matcher);
    fr_rules_free(&e->own_rules);
    fr_free(e->order);
    fr_arena_release(&e->arena);
    pthread_mutex_destroy(&e->lock);
    fr_free(e);
    *pe = NULL;
}
