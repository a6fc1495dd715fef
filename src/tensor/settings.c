/* SPDX-License-Identifier: Apache-2.0 */
/* settings: what training settings say about precision. Each rule is one that a page of the
 * encyclopedia explains. */
#include "tensor/checking.h"

#include <math.h>

/* Both at once: none of the three starts. */
static void conflict(struct fr_checking *k, const struct fr_settings *s)
{
    static const char *const ends[] = {
        [FR_SETTINGS_DEEPSPEED] = "DeepSpeed ends with 'bfloat16 and fp16 modes cannot be "
                                  "simultaneously enabled'",
        [FR_SETTINGS_HF] = "TrainingArguments ends with 'At most one of fp16 and bf16 can be True'",
        [FR_SETTINGS_MEGATRON] = "Megatron's check of its arguments fails"};
    fr_found(k, FR_RULE_PRECISION_CONFLICT, NULL, s->path,
             "fp16 and bf16 are both enabled in the %s; a run takes one of them: %s.",
             fr_settings_name(s->kind), ends[s->kind]);
}

/* A scale beside bf16. Megatron applies it; DeepSpeed reads that of its fp16 block only, and only
 * when that is enabled. */
static void scale_of_bf16(struct fr_checking *k, const struct fr_settings *s)
{
    struct fr_check_finding *f;
    if (s->bf16_scale > 0) {
        f = fr_found(k, FR_RULE_RISK_BF16_SCALER, NULL, s->path,
                     "bf16.loss_scale is %.6g, a key that DeepSpeed's bf16 block does not have: no "
                     "loss is scaled by it, and bf16 needs none.",
                     s->bf16_scale);
        fr_found_unknown(f, "Whether this version of DeepSpeed passes over the key or refuses it.");
    }
    if (s->bf16 == 1 && s->fp16 != 1 && s->loss_scale > 1) {
        if (s->kind == FR_SETTINGS_MEGATRON) {
            fr_found(k, FR_RULE_RISK_BF16_SCALER, NULL, s->path,
                     "--loss-scale %.6g is given with --bf16: Megatron scales every loss by it, "
                     "though bf16 has the range of fp32 and needs none.",
                     s->loss_scale);
            return;
        }
        f = fr_found(k, FR_RULE_RISK_BF16_SCALER, NULL, s->path,
                     "fp16.loss_scale is %.6g beside bf16 enabled and fp16 not: it has no effect.",
                     s->loss_scale);
        if (f != NULL) {
            f->weight = FR_CHECK_NOTE;
        }
    }
}

static void scaler(struct fr_checking *k, const struct fr_settings *s)
{
    struct fr_check_finding *f;
    scale_of_bf16(k, s);
    if (s->fp16 == 1 && s->bf16 == 1) {
        conflict(k, s);
        return;
    }
    if (s->fp16 != 1) {
        return;
    }
    if (s->loss_scale > 0) {
        f = fr_found(k, FR_RULE_RISK_SCALER, NULL, s->path,
                     "The loss scale is fixed at %.6g: a gradient above %.3g overflows in every "
                     "step, and nothing lowers the scale.",
                     s->loss_scale, 65504 / s->loss_scale);
        fr_found_unknown(f, "How large the gradients of this model are.");
    }
    if (s->initial_scale > 65536.0 * 65536.0) {
        f = fr_found(k, FR_RULE_RISK_SCALER, NULL, s->path,
                     "The loss scale begins at %.6g: about %.0f steps are skipped until gradients "
                     "of size 1 fit fp16.",
                     s->initial_scale, log2(s->initial_scale / 65504));
        fr_found_unknown(f, "How large the gradients of this model are.");
    }
    if (s->min_scale == 0) {
        f = fr_found(k, FR_RULE_RISK_SCALER, NULL, s->path,
                     "The smallest loss scale is 0: a run whose overflow does not come from the "
                     "scale goes on skipping steps for ever.");
        fr_found_unknown(f, "Whether somebody watches the scale.");
    }
}

static void others(struct fr_checking *k, const struct fr_settings *s)
{
    struct fr_check_finding *f;
    if (s->clip == 0) {
        f = fr_found(k, FR_RULE_RISK_CLIP, NULL, s->path,
                     "Clipping of gradients is switched off in the %s.", fr_settings_name(s->kind));
        fr_found_unknown(f, "Whether the training loop clips them itself.");
    }
    if (s->fp16 == 1 && s->adam_eps > 0 && fr_round(FR_F16, s->adam_eps, FR_OVERFLOW_IEEE) == 0) {
        f = fr_found(
            k, FR_RULE_RISK_ADAM_EPS, NULL, s->path,
            "The optimizer's eps is %.3g, which fp16 rounds to zero (all up to 2.98e-8 is).",
            s->adam_eps);
        fr_found_unknown(f, "Whether the optimizer's state is kept in fp32, where it is harmless.");
    }
    if (s->kind == FR_SETTINGS_MEGATRON && s->fp16 == 1 && s->softmax_fp32 == 0) {
        f = fr_found(k, FR_RULE_RISK_SOFTMAX, NULL, s->path,
                     "--fp16 is given without --attention-softmax-in-fp32: unfused attention "
                     "scores stay in half precision.");
        fr_found_unknown(f, "Whether a fused kernel, which computes in fp32 inside, is used.");
    }
    if (s->kind == FR_SETTINGS_MEGATRON && s->bf16 == 1 && s->reduce_fp32 == 0) {
        f = fr_found(k, FR_RULE_RISK_REDUCE, NULL, s->path,
                     "--bf16 is given without --accumulate-allreduce-grads-in-fp32: gradients are "
                     "summed with 8 bits.");
        fr_found_unknown(f, "Whether this version switches it on by itself, as newer ones do.");
    }
}

void fr_check_settings(struct fr_checking *k)
{
    for (uint32_t i = 0; i < k->config.settings_n; i++) {
        scaler(k, &k->config.settings[i]);
        others(k, &k->config.settings[i]);
    }
}
