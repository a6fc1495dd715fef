/* SPDX-License-Identifier: Apache-2.0 */
/* systemd: how the manager tells of the end of a service's main process. An instance ("fit@3.service") also stands before its own lines
 * in the journal ("fit@3[4242]: "), which the syslog dialect keeps as the role of who speaks. */
#include "format/dialect.h"

/* "fit@3.service: Main process exited, code=killed, status=9/KILL", "code=dumped, status=11/SEGV", "code=exited, status=1/FAILURE" */
static int facts(const struct fr_peel_ctx *ctx, const struct fr_record *rec, struct fr_draft *ret,
                 int max)
{
    (void)ctx;
    fr_sv at = rec->text, unit, how, rest;
    uint64_t status = 0;
    struct fr_draft *d = fr_draft_begin(ret, 0, max, FR_FACT_EXIT);
    if (d == NULL || !fr_lex_token(&at, &unit) || !fr_sv_ends(unit, FR_SV(".service:")) ||
        !fr_lex_lit(&at, " Main process exited, code=") || !fr_sv_cut(at, ',', &how, &rest) ||
        !fr_lex_lit(&rest, " status=") || !fr_lex_digits(&rest, 1, 3, &status)) {
        return 0;
    }
    const bool signaled = fr_sv_eq(how, FR_SV("killed")) || fr_sv_eq(how, FR_SV("dumped"));
    fr_draft_num(d, FR_KEY_EXITCODE, signaled ? -(int64_t)status : (int64_t)status, FR_SV_NONE);
    fr_draft_text(d, FR_KEY_MODULE, fr_sv_head(unit, unit.n - strlen(".service:")));
    fr_draft_text(d, FR_KEY_REASON, FR_SV("systemd"));
    return 1;
}

static const char *const literals[] = {": Main process exited, code=", NULL};

static const struct fr_format_sample samples[] = {
    {"Dec 01 05:29:31 gn11 systemd[1]: fit@3.service: Main process exited, code=killed, status=9/KILL",
     "fact=exit exitcode=-9 module=fit@3 reason=systemd"},
    {"Dec 01 05:29:31 gn11 systemd[1]: fit.service: Main process exited, code=exited, status=1/FAILURE",
     "fact=exit exitcode=1 module=fit"},
    {"Dec 01 05:29:31 gn11 systemd[1]: fit@3.service: Failed with result 'exit-code'.", ""},
    {NULL, NULL}};

const struct fr_format fr_format_systemd = {.name = "systemd",
                                            .summary = "the end of a service's main process",
                                            .literals = literals,
                                            .facts = facts,
                                            .samples = samples};
