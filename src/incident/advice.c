/* SPDX-License-Identifier: Apache-2.0 */
/* advice: how sure, what to do with the job, from where to resume, what to collect next. */
#include "incident/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double runner_up(const struct fr_case *c, const struct fr_cand *k)
{
    double second = -1000;
    for (uint32_t i = 0; i < c->cands.n; i++) {
        const struct fr_cand *o = &c->cands.v[i];
        if (o != k && o->score > second) {
            second = o->score;
        }
    }
    return second;
}

/* How often answers of this band were right on the held-out cases (Laplace's rule, so never 0 or 1); no number from fewer than 50. */
static double measured(uint8_t band)
{
    static const struct { uint8_t band; unsigned cases, right; } table[] = {
#define X(name, cases_, right_) {FR_BAND_##name, cases_, right_},
#include "incident/reliability.def"
#undef X
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].band == band && table[i].cases >= 50) {
            return (table[i].right + 1.0) / (table[i].cases + 2.0);
        }
    }
    return NAN;
}

/* Certain: a named cause that ended its process (or the kernel's or scheduler's own word), nothing else near it, and its place known.
 * Possible: only victims' texts, or another candidate close behind. */
void fr_explain_band(const struct fr_case *c, const struct fr_cand *k, struct fr_incident *in)
{
    double gap = k->score - runner_up(c, k);
    bool named = fr_cand_class(c, k)->weight >= 50 && k->fatal && k->ground == FR_GROUND_SIGNAL;
    bool placed = k->scope != FR_SCOPE_UNKNOWN || c->ranks.n <= 1;
    if (k->ground == FR_GROUND_SYMPTOM || k->score < 15 || k->contested) {
        in->band = FR_BAND_POSSIBLE;
    } else if (named && placed && gap >= 25) {
        in->band = FR_BAND_CERTAIN;
    } else if (gap >= 8) {
        in->band = FR_BAND_LIKELY;
    } else {
        in->band = FR_BAND_POSSIBLE;
    }
    in->confidence = measured(in->band);
}

static void collect(struct fr_incident *in, struct fr_report *r, const char *text)
{
    fr_sv *slot = in->collect_next.n < 3 ? FR_PUSH(&in->collect_next) : NULL;
    if (slot != NULL) {
        *slot = fr_arena_dup(&r->arena, fr_sv_z(text));
    }
}

static bool have_kernel_log(const struct fr_case *c)
{
    for (uint32_t i = 0; i < c->obs.n; i++) {
        if (c->obs.v[i].e->is_kernel) {
            return true;
        }
    }
    return false;
}

static void what_next(const struct fr_case *c, const struct fr_cand *k, struct fr_incident *in, struct fr_report *r)
{
    char text[200];
    if (k->silent && k->ranks.n == 1) {
        snprintf(text, sizeof text, "the log of rank %d up to its last line, and a stack of it (py-spy dump) if it still runs", k->ranks.v[0]);
        collect(in, r, text);
    }
    if (k->scope == FR_SCOPE_UNKNOWN && (c->ranks.n > 1 || k->ground == FR_GROUND_SYMPTOM)) {
        collect(in, r, "one log file per rank: torchrun --log-dir DIR --redirects 3, or srun --output=run-%j-%t.log");
    }
    if (k->ground == FR_GROUND_SYMPTOM) {
        collect(in, r, "the other ranks' and nodes' logs of the same minutes: only victims speak in these");
    }
    bool below = k->ground == FR_GROUND_EXIT || k->ground == FR_GROUND_SYMPTOM || k->silent;
    if (below && !have_kernel_log(c)) {
        collect(in, r, "the kernel log of the node (journalctl -k or dmesg -T) around that time");
    }
}

static void resume(const struct fr_case *c, struct fr_incident *in, struct fr_report *r)
{
    const struct fr_event *saved = NULL;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_event *e = c->obs.v[i].e;
        int64_t step = fr_event_num(e, FR_KEY_STEP, -1);
        bool good = in->last_good_step < 0 || step < 0 || step <= in->last_good_step;
        if (e->fact == FR_FACT_CHECKPOINT && fr_sv_eq(fr_event_text(e, FR_KEY_REASON), FR_SV("saved")) && good) {
            saved = e;
        }
    }
    if (saved != NULL) {
        fr_sv path = fr_event_text(saved, FR_KEY_PATH);
        in->resume_checkpoint = fr_arena_dup(&r->arena, path.n != 0 ? path : saved->text);
    }
    if (in->action == FR_ACTION_RESTART || in->action == FR_ACTION_DRAIN_NODE) {
        in->resume_safe = 1;
        in->resume_why = FR_SV("nothing in the logs says that the model's state was damaged");
    } else if (in->last_good_step >= 0) {
        in->resume_safe = 0;
        in->resume_why = fr_arena_printf(&r->arena, "checkpoints after step %lld may hold the damage; go back to one from before it",
                                         (long long)in->last_good_step);
    } else if (in->action == FR_ACTION_FIX_FIRST) {
        in->resume_safe = 0;
        in->resume_why = FR_SV("the same failure will come back until it is fixed");
    }
}

static bool is_one_of(const char *id, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(id, *list) == 0) {
            return true;
        }
    }
    return false;
}

/* All that is known is that processes ended with code 1, as an uncaught exception of Python ends one. */
static bool only_code_one(const struct fr_case *c)
{
    uint32_t ones = 0;
    for (uint32_t i = 0; i < c->obs.n; i++) {
        const struct fr_obs *o = &c->obs.v[i];
        int64_t code = o->e->fact == FR_FACT_EXIT ? fr_event_num(o->e, FR_KEY_EXITCODE, 0) : 0;
        bool complaint = o->meaning == FR_MEANS_SYMPTOM || o->e->fact == FR_FACT_TIMEOUT || o->e->fact == FR_FACT_PEER_LOST;
        if (o->attempt != c->attempt) {
            continue;
        }
        fr_sv by = fr_event_text(o->e, FR_KEY_REASON);
        bool untold = fr_sv_eq(by, FR_SV("paddle")) || fr_sv_eq(by, FR_SV("vllm")); /* their launchers do not say the code */
        if (complaint || untold || (code != 0 && code != 1 && code != -15)) {
            return false;
        }
        ones += code == 1;
    }
    return ones != 0;
}

/* An end that nobody explains: after a stretch of training once more is worth a try; before the first step the same need (of memory, when
 * it was killed) or the same mistake (when it ended by itself) would only meet the same end. And what ended the run needs a remedy, also where
 * its class is a mere warning in most runs. */
static void action(const struct fr_case *c, const struct fr_cand *k, struct fr_incident *in)
{
    static const char *const kills[] = {"process-killed-sigkill", "torchrun-sigkill-exit-minus-9", NULL};
    static const char *const ends[] = {"inconclusive", "silent-exit", "slurm-task-exit", "torchrun-child-failed", NULL};
    static const char *const links[] = {"nccl-remote-error", "nccl-internal-error", "nccl-connect-retry-exceeded", "libfabric-cq-error", "deepep-timeout", NULL};
    const char *id = fr_cand_class(c, k)->id;
    uint64_t points = 0;
    for (uint32_t i = 0; i < c->set->sources.n; i++) {
        points += c->set->sources.v[i]->metric_points;
    }
    if (is_one_of(id, kills)) {
        in->action = points != 0 ? FR_ACTION_RESTART : FR_ACTION_FIX_FIRST;
    } else if (is_one_of(id, ends) && points == 0 && only_code_one(c)) {
        in->action = FR_ACTION_FIX_FIRST;
    } else if (strcmp(id, "collective-desync") == 0 && k->ground == FR_GROUND_COUNTERS) {
        in->action = FR_ACTION_FIX_FIRST; /* they have waited long enough: the program differs between ranks */
    } else if (is_one_of(id, links) && points == 0 && in->action == FR_ACTION_RESTART) {
        in->action = FR_ACTION_FIX_FIRST; /* nothing had come through yet, and nothing will */
    } else if (strcmp(id, "torchrun-sigabrt") == 0 && k->ranks.n == 1) {
        in->action = FR_ACTION_FIX_FIRST; /* one process of many aborted: its own check or library, no watchdog */
    } else if (in->action == FR_ACTION_NONE && k->fatal) {
        in->action = FR_ACTION_FIX_FIRST;
    }
}

void fr_explain_advice(struct fr_case *c, const struct fr_cand *k, struct fr_incident *in, struct fr_report *r)
{
    action(c, k, in);
    resume(c, in, r);
    what_next(c, k, in, r);
}
