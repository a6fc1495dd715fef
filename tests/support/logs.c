/* SPDX-License-Identifier: Apache-2.0 */
#include "support/logs.h"

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what, const char *path)
{
    fprintf(stderr, "%s %s: %s\n", what, path, strerror(errno));
    abort();
}

void logs_begin(struct logs *l)
{
    const char *tmp = getenv("TMPDIR");
    *l = (struct logs){0};
    snprintf(l->dir, sizeof l->dir, "%s/faultrank-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(l->dir) == NULL) {
        die("cannot make", l->dir);
    }
}

void logs_add(struct logs *l, const char *name, const char *text)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s", l->dir, name);
    for (char *p = path + strlen(l->dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            die("cannot make", path);
        }
        *p = '/';
    }
    FILE *f = fopen(path, "ab");
    if (f == NULL || fwrite(text, 1, strlen(text), f) != strlen(text) || fclose(f) != 0) {
        die("cannot write", path);
    }
}

int logs_run(struct logs *l)
{
    struct fr_engine_options o = {.size = sizeof o, .threads = 1};
    int rc = fr_engine_new(&o, &l->engine, &l->err);
    if (rc == 0) {
        rc = fr_engine_add(l->engine, l->dir, &l->err);
    }
    if (rc == 0) {
        rc = fr_engine_run(l->engine, &l->err);
    }
    l->report = rc == 0 ? fr_engine_report(l->engine) : NULL;
    return rc;
}

const char *logs_answer(struct logs *l)
{
    if (l->engine == NULL) {
        logs_run(l);
    }
    if (l->report == NULL) {
        snprintf(l->answer, sizeof l->answer, "error: %s", l->err.msg);
        return l->answer;
    }
    if (l->report->verdict != FR_VERDICT_FAILURE) {
        return fr_verdict_name((enum fr_verdict)l->report->verdict);
    }
    const struct fr_incident *in = &l->report->incidents.v[0];
    size_t n = (size_t)snprintf(l->answer, sizeof l->answer, "%.*s %s", FR_SV_ARG(in->cls), fr_scope_name((enum fr_scope)in->initiator.scope));
    for (uint32_t i = 0; i < in->initiator.ranks.n && n + 16 < sizeof l->answer; i++) {
        n += (size_t)snprintf(l->answer + n, sizeof l->answer - n, "%s%d", i == 0 ? " " : ",", in->initiator.ranks.v[i]);
    }
    if (in->initiator.scope == FR_SCOPE_NODE && n < sizeof l->answer) {
        snprintf(l->answer + n, sizeof l->answer - n, " %.*s", FR_SV_ARG(in->initiator.node));
    }
    return l->answer;
}

const struct fr_incident *logs_incident(struct logs *l, uint32_t i)
{
    return l->report != NULL && i < l->report->incidents.n ? &l->report->incidents.v[i] : NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

void logs_remove_tree(const char *dir)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void logs_end(struct logs *l)
{
    fr_engine_free(&l->engine);
    l->report = NULL;
    logs_remove_tree(l->dir);
}

static bool is_right(const char *const *want, const char *got)
{
    bool asked = false, matched = false;
    for (; *want != NULL; want++) {
        bool forbidden = **want == '!';
        bool same = fnmatch(*want + forbidden, got, 0) == 0;
        if (forbidden && same) {
            return false;
        }
        asked |= !forbidden;
        matched |= same;
    }
    return matched || !asked;
}

unsigned logs_check(const struct logs_case *rows, unsigned n)
{
    unsigned failed = 0;
    for (unsigned i = 0; i < n; i++) {
        const struct logs_case *row = &rows[i];
        struct logs l;
        logs_begin(&l);
        for (int k = 0; k < LOGS_FILES && row->files[k].name != NULL; k++) {
            logs_add(&l, row->files[k].name, row->files[k].text);
        }
        const char *got = logs_answer(&l);
        bool right = is_right(row->want, got);
        if (right == (row->waits != NULL)) {
            failed++;
            fprintf(stderr, "  %s: got '%s', want '%s'%s\n", row->name, got, row->want[0],
                    right ? " (known to fail but passes: drop .waits)" : "");
        }
        logs_end(&l);
    }
    return failed;
}
