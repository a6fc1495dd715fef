/* SPDX-License-Identifier: Apache-2.0 */
/* views: the text for whoever is on call (what to type now) and for whoever pays (cost, owner, recurrence). */
#include "report/text.h"

#include "report/wrap.h"

#include <inttypes.h>

static void flush(struct fr_text *t, const char *first, const char *next)
{
    fr_wrap(t->out, fr_buf_sv(&t->scratch), first, next, t->width);
    fr_buf_clear(&t->scratch);
}

/* A command that begins with one of these can be typed; a sentence can't. */
static bool looks_typed(fr_sv s)
{
    static const char *const tools[] = {"faultrank ", "grep ", "nvidia-smi", "dmesg", "journalctl", "scontrol ", "squeue",
                                        "sacct", "kubectl ", "docker ", "cat ", "df ", "ulimit ", "python ", "python3 ",
                                        "pip ", "ls ", "dcgmi ", "ibstat", "free ", "sinfo", "mount", "nccl-tests"};
    for (unsigned i = 0; i < sizeof tools / sizeof *tools; i++) {
        if (fr_sv_starts(s, fr_sv_z(tools[i]))) {
            return true;
        }
    }
    return false;
}

void fr_text_oncall(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_failure *f = in->failure;
    fr_words_headline(t->out, r, in);
    fr_buf_addz(t->out, "\n  ");
    fr_words_confidence(t->out, in);
    if (in->initiator.when.basis != FR_TIME_BASIS_NONE) {
        fr_buf_addz(t->out, ", began ");
        fr_words_when(t->out, &in->initiator.when);
    }
    if (in->initiator.node.n > 0) {
        fr_buf_addz(t->out, ", node ");
        fr_words_add(t->out, in->initiator.node);
    }
    fr_buf_addz(t->out, "\n\nNOW: ");
    fr_words_action(&t->scratch, in);
    flush(t, "", "     ");
    if (in->action == FR_ACTION_DRAIN_NODE && in->initiator.node.n > 0) {
        fr_buf_addz(t->out, "  $ scontrol update nodename=");
        fr_words_add(t->out, in->initiator.node);
        fr_buf_addz(t->out, " state=drain reason=\"faultrank: ");
        fr_words_add(t->out, in->cls);
        fr_buf_addz(t->out, "\"     (Slurm)\n  $ kubectl cordon ");
        fr_words_add(t->out, in->initiator.node);
        fr_buf_addz(t->out, "     (Kubernetes)\n");
    }
    const char *step = in->action == FR_ACTION_FIX_FIRST ? f->fix_primary
                       : f->fix_emergency != NULL        ? f->fix_emergency
                                                         : f->fix_primary;
    if (step != NULL) {
        fr_text_prose(t, fr_sv_z(step), "  ", "  ");
    }
    if (in->action == FR_ACTION_FIX_FIRST && f->fix_emergency != NULL) {
        fr_buf_addz(&t->scratch, "If it must run tonight: ");
        fr_text_prose(t, fr_sv_z(f->fix_emergency), "  ", "  ");
    }
    fr_text_resume(t, in);
    for (const char *const *c = f->confirm; c != NULL && *c != NULL; c++) {
        if (looks_typed(fr_sv_z(*c))) {
            fr_text_prose(t, fr_sv_z(*c), "TO BE SURE: ", "  ");
            break;
        }
    }
    if (f->verify_command != NULL) {
        fr_buf_addz(t->out, "AFTERWARDS: $ ");
        fr_words_addz(t->out, f->verify_command);
        fr_buf_addc(t->out, '\n');
    }
    if (in->evidence.n > 0) {
        fr_buf_addz(t->out, "PROOF: ");
        fr_words_place(t->out, &in->evidence.v[0]);
        fr_buf_addc(t->out, '\n');
    }
    if (r->verdict == FR_VERDICT_INCONCLUSIVE) {
        fr_text_collect(t, in);
    }
    fr_buf_addz(&t->scratch, "ESCALATE TO: ");
    fr_buf_addz(&t->scratch, fr_words_owner(in->owner));
    flush(t, "", "  ");
    fr_buf_addc(t->out, '\n');
}

static void cost(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    int64_t idle = fr_words_idle(r, in);
    int64_t ranks = r->input.world_size > 0 ? r->input.world_size : r->input.ranks_seen;
    fr_text_heading(t, "What it cost");
    if (idle >= 60) {
        fr_words_duration(&t->scratch, idle);
        fr_buf_addz(&t->scratch, " passed between the first failure and the end of the run");
        if (ranks > 1) {
            fr_buf_printf(&t->scratch, "; with %" PRId64 " workers that is about %.*f GPU hours", ranks,
                          idle * ranks < 36000 ? 1 : 0, (double)(idle * ranks) / 3600.0);
        }
        fr_buf_addz(&t->scratch, ". ");
    }
    if (in->first_bad_step >= 0 && in->last_good_step >= 0 && in->first_bad_step > in->last_good_step) {
        fr_buf_printf(&t->scratch, "Training was last known good at step %" PRId64 " and bad from step %" PRId64 ". ",
                      in->last_good_step, in->first_bad_step);
    }
    if (in->resume_checkpoint.n > 0) {
        fr_buf_addz(&t->scratch, "Work up to ");
        fr_words_add(&t->scratch, in->resume_checkpoint);
        fr_buf_addz(&t->scratch, in->resume_safe == 0 ? " was saved, but is not safe to continue from. " : " was saved. ");
    }
    if (t->scratch.n == 0) {
        fr_buf_addz(&t->scratch, "These logs do not say: they hold neither step numbers nor comparable times.");
    }
    flush(t, "  ", "  ");
}

static const char *recurrence(const struct fr_incident *in)
{
    switch ((enum fr_action)in->action) {
    case FR_ACTION_FIX_FIRST:
        return "Yes. The next run will end the same way until this is fixed; restarting alone does not help.";
    case FR_ACTION_DRAIN_NODE:
        return "Yes, if the same machine is used again; not because of this, once it is out of service.";
    case FR_ACTION_RESTART:
        return "It may. Nothing has to be changed before the restart; if it comes back, it needs a real fix.";
    case FR_ACTION_WAIT:
        return "It is not a defect of the run; it can come again with the next shortage or limit.";
    case FR_ACTION_NONE:
        return "It does not need attention now.";
    }
    return "";
}

void fr_text_executive(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    int32_t ranks = r->input.world_size > 0 ? r->input.world_size : r->input.ranks_seen;
    fr_buf_addz(&t->scratch, "The training run stopped: ");
    fr_words_add(&t->scratch, in->title);
    fr_buf_addz(&t->scratch, ". ");
    if (in->initiator.scope == FR_SCOPE_ALL_RANKS || in->initiator.scope == FR_SCOPE_LAUNCHER) {
        fr_buf_addz(&t->scratch, "It hit the job as a whole, not one machine.");
    } else if (ranks > 1 && (in->initiator.ranks.n > 0 || in->initiator.node.n > 0)) {
        fr_buf_addz(&t->scratch, "It began ");
        if (in->initiator.node.n > 0) {
            fr_buf_addz(&t->scratch, "on machine ");
            fr_words_add(&t->scratch, in->initiator.node);
        } else {
            fr_words_count(&t->scratch, in->initiator.ranks.n, "in one worker", "workers");
            fr_buf_printf(&t->scratch, " of %" PRId32, ranks);
        }
        fr_buf_addz(&t->scratch, "; the other workers stopped only because they depend on it.");
    }
    flush(t, "", "");
    cost(t, r, in);
    fr_text_heading(t, "Who owns it");
    fr_buf_addz(&t->scratch, fr_words_owner(in->owner));
    flush(t, "  ", "  ");
    fr_text_heading(t, "Will it recur");
    if (in->recurrences > 1) {
        fr_buf_printf(&t->scratch, "It already has: %" PRIu32 " attempts of this run ended the same way. ", in->recurrences);
    }
    fr_buf_addz(&t->scratch, recurrence(in));
    flush(t, "  ", "  ");
    fr_text_heading(t, "What happens now");
    fr_words_action(&t->scratch, in);
    flush(t, "  ", "  ");
    fr_text_heading(t, "How sure is this");
    fr_words_confidence(&t->scratch, in);
    flush(t, "  ", "  ");
    fr_buf_addc(t->out, '\n');
}
