/* SPDX-License-Identifier: Apache-2.0 */
/* toy: a two-layer network that learns from a teacher, y = w2 (gain * relu(w1 x)) / gain, with
 * activations and gradients stored in any type. The gain stands for the massive activations that
 * trained transformers have between two projections: it cancels, unless something overflows.
 * All memory is the lab's. */
#ifndef FR_REPRO_TOY_H
#define FR_REPRO_TOY_H

#include "repro/lab.h"

struct fr_toy {
    uint32_t in, hidden, out, samples;
    uint32_t weights; /* hidden * in + out * hidden */
    double gain;
    double *x, *target;          /* samples rows */
    double *w;                   /* the masters: first w1, then w2 */
    double *g;                   /* gradients of the last fr_toy_step, still scaled */
    double *stored;              /* weights as the arithmetic sees them */
    double *h, *z, *y, *dy, *dh; /* of one sample */
};

/* Sizes are set by the caller before; weights and data are drawn from lab->rng. */
void fr_toy_new(struct fr_lab *lab, struct fr_toy *t);
/* Loss (mean squared error, fp32) with weights and activations in dtype; gradients of
 * scale * sum of squared errors / count into t->g, in dtype as well. NaN and Inf are kept.
 * chain: NULL, or gets the steps of the first sample, forward and backward. */
double fr_toy_step(struct fr_toy *t, uint32_t dtype, double scale, double count,
                   struct fr_chain *chain);
/* masters -= rate * g / scale, in fp32; nothing and false when g holds Inf or NaN. */
bool fr_toy_update(struct fr_toy *t, double rate, double scale);

/* A dynamic loss scaler as every framework has one. */
struct fr_scaler {
    double scale, least, most;
    uint32_t interval; /* good steps before it doubles */
    uint32_t good, skipped, taken;
};
/* After a step: halves and counts when it was skipped. */
void fr_scaler_next(struct fr_scaler *s, bool taken);

#endif
