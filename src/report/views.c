/* SPDX-License-Identifier: Apache-2.0 */
/* views: the text for whoever is on call (what to type now) and for whoever pays (cost, owner, recurrence). */
#include "report/text.h"

#include "report/wrap.h"


static void flush(struct fr_text *t, const char *first, const char *next)
{
    fr_wrap(t->out, fr_buf_sv(&t->scratch), first, next, t->width);
    t->failed |= !fr_buf_ok(&t->scratch);
    fr_buf_clear(&t->scratch);
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
    fr_words_action(&t->scratch, r, in);
    flush(t, "", "     ");
    FR_AUTO(fr_buf) slurm = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) kubernetes = FR_BUF_INIT(0);
    if (fr_story_drain(in, &slurm, &kubernetes)) {
        fr_buf_printf(t->out, "  $ %s     (Slurm)\n  $ %s     (Kubernetes)\n", slurm.p, kubernetes.p);
    }
    t->failed |= !fr_buf_ok(&slurm) || !fr_buf_ok(&kubernetes);
    const char *step = fr_story_step(in), *check = fr_story_typed_check(f);
    if (fr_has(step)) {
        fr_text_prose(t, fr_sv_z(step), "  ", "  ");
    }
    if (in->action == FR_ACTION_FIX_FIRST && fr_has(f->fix_emergency)) {
        fr_buf_addz(&t->scratch, "Stopgap: ");
        fr_text_prose(t, fr_sv_z(f->fix_emergency), "  ", "  ");
    }
    fr_text_resume(t, in);
    if (check != NULL) {
        fr_buf_addz(t->out, "TO BE SURE: $ ");
        fr_words_addz(t->out, check);
        fr_buf_addc(t->out, '\n');
    }
    if (fr_has(f->verify_command)) {
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

static void answer(struct fr_text *t, const char *heading)
{
    fr_text_heading(t, heading);
    flush(t, "  ", "  ");
}

void fr_text_executive(struct fr_text *t, const struct fr_report *r, const struct fr_incident *in)
{
    fr_story_stopped(&t->scratch, r, in);
    flush(t, "", "");
    fr_story_cost(&t->scratch, r, in);
    answer(t, "What it cost");
    fr_buf_addz(&t->scratch, fr_words_owner(in->owner));
    answer(t, "Who owns it");
    fr_story_recurrence(&t->scratch, in);
    answer(t, "Will it recur");
    fr_words_action(&t->scratch, r, in);
    answer(t, "What happens now");
    fr_story_confidence(&t->scratch, in);
    answer(t, "How sure is this");
    fr_buf_addc(t->out, '\n');
}
