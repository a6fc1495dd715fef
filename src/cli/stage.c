/* SPDX-License-Identifier: Apache-2.0 */
/* stage: see stage.h. */
#include "cli/stage.h"

#include "cli/cli.h"
#include "faultrank/faultrank.h"
#include "report/words.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int diagnose(void *ctx, const char *folder, struct fr_arena *arena, fr_sv *ret_class,
                    fr_sv *ret_who, struct fr_err *err)
{
    (void)ctx;
    struct fr_engine_options o = {.size = sizeof o};
    struct fr_engine *e = NULL;
    int rc = fr_engine_new(&o, &e, err);
    rc = rc != 0 ? rc : fr_engine_add(e, folder, err);
    rc = rc != 0 ? rc : fr_engine_run(e, err);
    if (rc == 0) {
        const struct fr_report *r = fr_engine_report(e);
        FR_AUTO(fr_buf) who = FR_BUF_INIT(0);
        *ret_class = *ret_who = FR_SV("");
        if (r->incidents.n > 0) {
            fr_words_headline(&who, r, &r->incidents.v[0]);
            *ret_class = fr_arena_dup(arena, r->incidents.v[0].cls);
            *ret_who = fr_arena_dup(arena, fr_buf_sv(&who));
        }
    }
    fr_engine_free(&e);
    return rc;
}

int fr_stage_open(struct fr_stage *s, const struct fr_repro *p, const char *keep)
{
    *s = (struct fr_stage){.env = {.diagnose = diagnose}, .folder = FR_BUF_INIT(0)};
    if (!p->needs_folder) {
        return 0;
    }
    if (keep != NULL) {
        if (mkdir(keep, 0777) != 0 && errno != EEXIST) {
            return fr_fail(FR_EXIT_IO, "cannot make the folder '%s': %s", keep, strerror(errno));
        }
        s->env.folder = keep;
        return 0;
    }
    const char *tmp = getenv("TMPDIR");
    fr_buf_printf(&s->folder, "%s/faultrank-repro-XXXXXX",
                  tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ends, &s->signals); /* what runs on the stage sees them pending and gives up */
    if (!fr_buf_ok(&s->folder) || mkdtemp(s->folder.p) == NULL) {
        (void)sigprocmask(SIG_SETMASK, &s->signals, NULL);
        fr_buf_release(&s->folder);
        return fr_fail(FR_EXIT_IO, "cannot make a temporary folder: %s", strerror(errno));
    }
    s->env.folder = s->folder.p;
    return 0;
}

static int drop(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path);
    return 0;
}

void fr_stage_close(struct fr_stage *s)
{
    if (s->folder.n > 0) {
        (void)nftw(s->folder.p, drop, 8, FTW_DEPTH | FTW_PHYS);
        (void)sigprocmask(SIG_SETMASK, &s->signals, NULL);
    }
    fr_buf_release(&s->folder);
}
