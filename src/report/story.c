/* SPDX-License-Identifier: Apache-2.0 */
/* story: the sentences that are not about lines of a log but about people: cost, owner, recurrence, what to type. */
#include "report/words.h"

#include "failure/library.h"

#include <inttypes.h>

static int32_t ranks_of(const struct fr_report *r)
{
    return r->input.world_size > 0 ? r->input.world_size : r->input.ranks_seen;
}

void fr_story_stopped(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in)
{
    const struct fr_initiator *i = &in->initiator;
    fr_buf_addz(b, r->verdict == FR_VERDICT_INCONCLUSIVE ? "The run may have stopped because of this: " : "The run stopped: ");
    fr_words_add(b, in->title);
    fr_buf_addz(b, ". ");
    if (i->scope == FR_SCOPE_ALL_RANKS || i->scope == FR_SCOPE_LAUNCHER) {
        fr_buf_addz(b, "It hit the job as a whole, not one machine.");
    } else if (ranks_of(r) > 1 && i->node.n > 0) {
        fr_buf_addz(b, "It began on machine ");
        fr_words_add(b, i->node);
        fr_buf_addz(b, "; the other workers stopped only because they depend on it.");
    } else if (ranks_of(r) > 1 && i->ranks.n > 0) {
        fr_buf_printf(b, "It began in %" PRIu32 " of %" PRId32 " workers; the others stopped only because they depend on %s.",
                      i->ranks.n, ranks_of(r), i->ranks.n == 1 ? "it" : "them");
    }
}

void fr_story_cost(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in)
{
    int64_t idle = fr_words_idle(r, in), ranks = ranks_of(r);
    size_t start = b->n;
    if (idle >= 60) {
        fr_words_duration(b, idle);
        fr_buf_addz(b, " passed between the first failure and the end of the run");
        if (ranks > 1) {
            fr_buf_printf(b, "; with %" PRId64 " workers waiting that is about %.*f worker hours", ranks,
                          idle * ranks < 36000 ? 1 : 0, (double)(idle * ranks) / 3600.0);
        }
        fr_buf_addz(b, ". ");
    }
    if (in->first_bad_step >= 0 && in->last_good_step >= 0) {
        fr_buf_printf(b, "Training was last known good at step %" PRId64 " and bad from step %" PRId64 ". ",
                      in->last_good_step, in->first_bad_step);
    }
    if (in->resume_checkpoint.n > 0) {
        fr_buf_addz(b, "Work up to ");
        fr_words_add(b, in->resume_checkpoint);
        fr_buf_addz(b, in->resume_safe == 0 ? " was saved, but is not safe to continue from. " : " was saved. ");
    }
    if (b->n == start) {
        fr_buf_addz(b, "These logs do not say: they hold neither step numbers nor times that can be compared.");
    }
}

void fr_story_recurrence(struct fr_buf *b, const struct fr_incident *in)
{
    static const char *const words[] = {
        [FR_ACTION_NONE] = "It does not need attention now.",
        [FR_ACTION_RESTART] = "It may. Nothing has to be changed before a restart; if it comes back, it needs a lasting fix.",
        [FR_ACTION_FIX_FIRST] = "Yes. The next run will end the same way until this is fixed; restarting alone does not help.",
        [FR_ACTION_DRAIN_NODE] = "Yes, if the same machine is used again; not for this reason once it is out of service.",
        [FR_ACTION_WAIT] = "It is no defect of the run; it can come again with the next shortage or limit.",
    };
    if (in->recurrences > 1) {
        fr_buf_printf(b, "It already has: %" PRIu32 " attempts of this run ended the same way. ", in->recurrences);
    }
    fr_buf_addz(b, words[in->action]);
}

void fr_story_confidence(struct fr_buf *b, const struct fr_incident *in)
{
    static const char *const words[] = {
        [FR_BAND_POSSIBLE] = "Possible: the logs fit this, and other explanations too",
        [FR_BAND_LIKELY] = "Likely: the evidence points here, but does not exclude everything else",
        [FR_BAND_CERTAIN] = "Certain: direct evidence, and nothing against it",
    };
    fr_buf_addz(b, words[in->band]);
    if (in->confidence >= 0) { /* not NAN */
        fr_buf_printf(b, " (such answers were right in %.0f of 100 labelled cases)", in->confidence * 100);
    }
    fr_buf_addc(b, '.');
}

void fr_story_resume(struct fr_buf *b, const struct fr_incident *in)
{
    if (in->resume_safe < 0 && in->resume_checkpoint.n == 0 && in->resume_why.n == 0) {
        return;
    }
    fr_buf_addz(b, in->resume_safe == 1   ? "Safe to resume"
                   : in->resume_safe == 0 ? "Not safe to resume"
                                          : "Unknown whether it is safe to resume");
    if (in->resume_checkpoint.n > 0) {
        fr_buf_addz(b, " from ");
        fr_words_add(b, in->resume_checkpoint);
    }
    if (in->resume_why.n > 0) {
        fr_buf_addz(b, ": ");
        fr_words_add(b, in->resume_why);
    }
}

const char *fr_story_step(const struct fr_incident *in)
{
    const struct fr_failure *f = in->failure;
    return in->action == FR_ACTION_FIX_FIRST || !fr_has(f->fix_emergency) ? f->fix_primary : f->fix_emergency;
}

const char *fr_story_typed_check(const struct fr_failure *f)
{
    static const char *const tools[] = {"faultrank ", "grep ",   "nvidia-smi", "dmesg",    "journalctl", "scontrol ", "squeue",
                                        "sacct",      "kubectl ", "docker ",   "df ",      "ulimit ",    "python ",   "python3 ",
                                        "pip ",       "ls ",      "dcgmi ",    "ibstat",   "free ",      "sinfo",     "mount"};
    for (const char *const *c = f->confirm; c != NULL && *c != NULL; c++) {
        for (unsigned i = 0; i < sizeof tools / sizeof *tools; i++) {
            /* A sentence may begin with a tool's name, too; only commands have no comma, colon or closing dot. */
            if (fr_sv_starts(fr_sv_z(*c), fr_sv_z(tools[i])) && strpbrk(*c, ",;") == NULL && strstr(*c, ": ") == NULL &&
                !fr_sv_ends(fr_sv_z(*c), FR_SV("."))) {
                return *c;
            }
        }
    }
    return NULL;
}

static bool is_plain_name(fr_sv s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || strchr("-._", c) == NULL)) {
            return false;
        }
    }
    return s.n > 0;
}

bool fr_story_drain(const struct fr_incident *in, struct fr_buf *slurm, struct fr_buf *kubernetes)
{
    fr_sv node = in->initiator.node;
    if (in->action != FR_ACTION_DRAIN_NODE || !is_plain_name(node) || !is_plain_name(in->cls)) {
        return false;
    }
    fr_buf_printf(slurm, "scontrol update nodename=%.*s state=drain reason=%.*s", FR_SV_ARG(node), FR_SV_ARG(in->cls));
    fr_buf_printf(kubernetes, "kubectl cordon %.*s", FR_SV_ARG(node));
    return fr_buf_ok(slurm) && fr_buf_ok(kubernetes);
}
