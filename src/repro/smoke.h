/* SPDX-License-Identifier: Apache-2.0 */
/* smoke: the sizes and settings of the user's own run, for the prevention smoke tests of
 * `faultrank smoke`. A size that nobody says keeps its default; a fact that nobody says is NaN, and
 * a test that needs it says so (fr_smoke_needs) instead of guessing. */
#ifndef FR_REPRO_SMOKE_H
#define FR_REPRO_SMOKE_H

#include "repro/repro.h"

/* X(field, "option", default, min, max, whole, "help") */
#define FR_SMOKE_SIZES(X)                                                                          \
    X(hidden, "hidden", 4096, 1, 65536, true, "hidden size")                                       \
    X(eps, "eps", 1e-5, 0, 1, false, "eps of the norms")                                           \
    X(seq, "seq", 512, 1, 1048576, true, "sequence length")                                        \
    X(scale, "scale", 16, 1e-6, 1e30, false, "largest activation you have seen, or expect")        \
    X(heads, "heads", 32, 1, 4096, true, "attention heads")                                        \
    X(vocab, "vocab", 32000, 2, 1048576, true, "vocabulary")                                       \
    X(padding, "padding", 3, 0, 1048576, true, "padding tokens at the left of a sequence")

/* X(field, "name in --set", min, max, whole, "what it is") */
#define FR_SMOKE_FACTS(X)                                                                          \
    X(lr, "lr", 0, 1e3, false, "learning rate")                                                    \
    X(min_lr, "min-lr", 0, 1e3, false, "lowest learning rate of the schedule")                     \
    X(adam_eps, "adam-eps", 0, 1, false, "Adam's eps")                                             \
    X(beta1, "beta1", 0, 0.999999999, false, "Adam's beta1")                                       \
    X(beta2, "beta2", 0, 0.999999999, false, "Adam's beta2")                                       \
    X(clip, "clip", 0, 1e30, false, "norm that gradients are clipped at, 0 = never")               \
    X(grad_norm, "grad-norm", 1e-30, 1e30, false, "usual global norm of the gradients")            \
    X(grad, "grad", 1e-30, 1e30, false, "smallest gradient that has to count")                     \
    X(grad_max, "grad-max", 1e-30, 1e30, false, "largest gradient, before loss scaling")           \
    X(loss_scale, "loss-scale", 0, 0x1p126, false, "fixed loss scale, 0 = dynamic")                \
    X(initial_scale, "initial-scale", 0x1p-126, 0x1p126, false, "loss scale at the start")         \
    X(min_scale, "min-scale", 0, 0x1p126, false, "smallest loss scale")                            \
    X(window, "window", 1, 1e9, true, "good steps before the loss scale doubles")                  \
    X(hysteresis, "hysteresis", 1, 100, true, "overflows before the loss scale halves")            \
    X(micro_batch, "micro-batch", 1, 1e9, true, "samples of a micro-batch")                        \
    X(accumulation, "accumulation", 1, 1e9, true, "micro-batches of a step")                       \
    X(labels, "labels", 0, 1e9, true, "fewest labels that a micro-batch can have")                 \
    X(ignore_index, "ignore-index", -1e9, 1e9, true, "label that the loss leaves out")             \
    X(experts, "experts", 2, 1024, true, "experts of a layer")                                     \
    X(top_k, "top-k", 1, 1024, true, "experts of a token")                                         \
    X(shared, "shared", 0, 1, false, "part of the tokens' squared norm that is common to all")     \
    X(aux, "aux", 0, 1e6, false, "coefficient of the balancing loss")                              \
    X(weight, "weight", 1e-30, 1e30, false, "standard deviation of the weights")                   \
    X(layers, "layers", 1, 100000, true, "layers")                                                 \
    X(gain, "gain", 1e-6, 1e6, false, "by how much a layer enlarges a gradient in backward")       \
    X(logit_scale, "logit-scale", 1e-6, 1e30, false, "logit scale (1 / temperature) at the start") \
    X(clamp, "clamp", 1e-6, 1e30, false, "where the logit scale is clamped")                       \
    X(pairs, "pairs", 2, 1e9, true, "pairs that are told apart: the batch over all ranks")         \
    X(steps, "steps", 1, 1e12, true, "steps of the run")                                           \
    X(margin, "margin", -64, 64, true, "FP8 margin: bits left free")                               \
    X(history, "history", 1, 1e6, true, "steps of the FP8 amax history")                           \
    X(growth, "growth", 1, 1e9, false, "by how much a tensor's amax may grow in one step")

enum { FR_SMOKE_FP8_OFF, FR_SMOKE_FP8_DELAYED, FR_SMOKE_FP8_CURRENT, FR_SMOKE_FP8_MX };

struct fr_smoke {
    uint32_t dtype;  /* FR_F16, FR_BF16, FR_F32: of weights and activations */
    uint32_t stored; /* what config.json says of it, whatever the settings say; 0 nothing */
    int policy; /* index into the reproduction's smoke_policies; -1 = as the model is known to do */
    bool upcasts; /* the model's norms compute in fp32 */
    bool fused;   /* its attention is fused: scores stay in fp32 */
    /* -1 (states: 0) where nothing is said. */
    uint32_t states; /* dtype of Adam's moments */
    int masters;     /* fp32 master weights are kept */
    int scaler;      /* a loss scaler is in use */
    int fp8;         /* FR_SMOKE_FP8_... */
    int fp8_hybrid;  /* gradients in e5m2 */
    int fp8_recent;  /* the scale comes from the last amax, not from the history's maximum */
    int balancing;   /* a balancing loss, or another balancer, takes part in training */
#define FR_X(field, ...) double field;
    FR_SMOKE_SIZES(FR_X)
    FR_SMOKE_FACTS(FR_X)
#undef FR_X
    struct { /* who said it: static text, NULL nobody */
#define FR_X(field, ...) const char *field;
        FR_SMOKE_SIZES(FR_X)
        FR_SMOKE_FACTS(FR_X)
#undef FR_X
        const char *dtype, *states, *masters, *scaler, *fp8, *balancing;
    } from;
};

void fr_smoke_defaults(struct fr_smoke *ret);
/* One size by its option's name, or a fact by its own; from: who says it (static text). -FR_ARG
 * with a sentence. */
int fr_smoke_say(struct fr_smoke *s, fr_sv name, double value, const char *from,
                 struct fr_err *err);
/* The same, said by an option. */
int fr_smoke_set(struct fr_smoke *s, fr_sv name, double value, struct fr_err *err);
/* Runs p's smoke test; -FR_ABSENT when it has none. */
int fr_smoke_run(const struct fr_repro *p, const struct fr_smoke *s, struct fr_result *ret,
                 struct fr_err *err);
/* 0 every line passed, 1 one fails, 2 cannot tell. */
int fr_smoke_exit(const struct fr_result *r);

/* ---- for the tests themselves; names are separated by blanks ---- */

bool fr_smoke_said(const struct fr_smoke *s, const char *name);
/* True when all are said (or the dtype, by the name "dtype"); else one line that cannot be decided,
 * which names what is missing and the options that say it. */
bool fr_smoke_needs(struct fr_lab *lab, const char *id, const char *says, const char *names);
/* A paragraph with those that are said, and by whom. */
void fr_smoke_inputs(struct fr_lab *lab, const char *names);
const char *fr_smoke_dtype(uint32_t dtype); /* "fp16", ... */

#endif
