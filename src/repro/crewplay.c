/* SPDX-License-Identifier: Apache-2.0 */
/* crewplay: see crewplay.h. */
#include "repro/crewplay.h"

#include <stdio.h>

int fr_crewplay_run(struct fr_lab *lab, const struct fr_crew *crew, const char *name,
                    const char *script, struct fr_crewplay *ret, void *seats, struct fr_err *err)
{
    const int n = snprintf(ret->folder, sizeof ret->folder, "%s/%s", lab->env->folder, name);
    if (n < 0 || (size_t)n + 64 > sizeof ret->folder) { /* room for what lies below it */
        return fr_err_set(err, FR_ARG, "the name of the folder is too long");
    }
    int rc = fr_crewlog_folders(ret->folder, crew->world, err);
    rc = rc != 0 ? rc : fr_crew_run(crew, ret->end, seats, err);
    return rc != 0 ? rc : fr_crewlog_launcher(ret->folder, script, ret->end, crew->world, err);
}

/* false: there is nobody to ask. A folder that could not be read has a sentence for a class. */
static bool ask(struct fr_lab *lab, const struct fr_crewplay *p, fr_sv *ret_class, fr_sv *ret_who)
{
    struct fr_err why = {0};
    const struct fr_repro_env *env = lab->env;
    if (env->diagnose == NULL) {
        return false;
    }
    if (env->diagnose(env->ctx, p->folder, &lab->scratch, ret_class, ret_who, &why) != 0) {
        *ret_class = *ret_who = fr_arena_dup(&lab->scratch, fr_sv_z(why.msg));
    }
    return true;
}

void fr_crewplay_diagnosed(struct fr_lab *lab, const struct fr_crewplay *p, const char *says,
                           const char *who)
{
    fr_sv cls, got;
    if (ask(lab, p, &cls, &got)) {
        const bool held = fr_sv_eq(cls, fr_sv_z(lab->repro->id)) && fr_sv_starts(got, fr_sv_z(who));
        fr_result_claim(lab->result, "diagnosed", held, says, "%.*s", FR_SV_ARG(got));
    }
}

void fr_crewplay_healthy(struct fr_lab *lab, const struct fr_crewplay *p)
{
    fr_sv cls, got;
    if (ask(lab, p, &cls, &got)) {
        fr_result_claim(lab->result, "fixed-is-healthy", cls.n == 0,
                        "faultrank diagnose finds nothing in its logs", "%.*s",
                        FR_SV_ARG(cls.n == 0 ? FR_SV("no failure found") : got));
    }
}
