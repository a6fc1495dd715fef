/* SPDX-License-Identifier: Apache-2.0 */
/* toy: see toy.h. Backward is written out: what autograd would store is stored in the same type. */
#include "repro/toy.h"

#include <math.h>

void fr_toy_new(struct fr_lab *lab, struct fr_toy *t)
{
    t->weights = t->hidden * t->in + t->out * t->hidden;
    t->gain = t->gain > 0 ? t->gain : 1;
    t->x = fr_lab_vector(lab, t->samples * t->in);
    t->target = fr_lab_vector(lab, t->samples * t->out);
    t->w = fr_lab_vector(lab, t->weights);
    t->g = fr_lab_vector(lab, t->weights);
    t->stored = fr_lab_vector(lab, t->weights);
    t->h = fr_lab_vector(lab, t->hidden);
    t->z = fr_lab_vector(lab, t->hidden);
    t->y = fr_lab_vector(lab, t->out);
    t->dy = fr_lab_vector(lab, t->out);
    t->dh = fr_lab_vector(lab, t->hidden);
    if (!fr_lab_ok(lab)) {
        return;
    }
    const size_t first = t->hidden * t->in;
    fr_rng_fill(&lab->rng, t->x, t->samples * t->in, 1, FR_F16);
    fr_rng_fill(&lab->rng, t->stored, first, 1 / sqrt(t->in),
                FR_F32); /* the teacher, for a moment */
    fr_rng_fill(&lab->rng, t->stored + first, t->out * t->hidden, 1 / sqrt(t->hidden), FR_F32);
    for (uint32_t s = 0; s < t->samples; s++) {
        fr_lab_matvec(FR_F32, t->stored, t->x + s * t->in, t->hidden, t->in, t->h);
        for (uint32_t k = 0; k < t->hidden; k++) {
            t->h[k] = t->h[k] > 0 ? t->h[k] : 0;
        }
        fr_lab_matvec(FR_F32, t->stored + first, t->h, t->out, t->hidden, t->target + s * t->out);
    }
    fr_rng_fill(&lab->rng, t->w, first, 1 / sqrt(t->in), FR_F32);
    fr_rng_fill(&lab->rng, t->w + first, t->out * t->hidden, 1 / sqrt(t->hidden), FR_F32);
}

static float forward(struct fr_toy *t, uint32_t dtype, const double *x, const double *target,
                     struct fr_chain *chain)
{
    const size_t first = t->hidden * t->in;
    float loss = 0;
    fr_lab_matvec(dtype, t->stored, x, t->hidden, t->in, t->h);
    for (uint32_t k = 0; k < t->hidden; k++) {
        t->h[k] = t->h[k] > 0 || isnan(t->h[k]) ? t->h[k] : 0;
        t->z[k] = fr_lab_to(dtype, t->gain * t->h[k]);
    }
    fr_lab_matvec(dtype, t->stored + first, t->z, t->out, t->hidden, t->y);
    if (chain != NULL) {
        fr_chain_input(chain, "x", dtype, x, 1, t->in);
        fr_chain_add(chain, "h = relu(w1 x)", dtype, t->h, 1, t->hidden);
        fr_chain_add(chain, "z = gain * h", dtype, t->z, 1, t->hidden);
        fr_chain_add(chain, "w2 z", dtype, t->y, 1, t->out);
    }
    for (uint32_t k = 0; k < t->out; k++) {
        t->y[k] = fr_lab_to(dtype, t->y[k] / t->gain);
        const float e = (float)(t->y[k] - target[k]);
        loss += e * e;
    }
    return loss;
}

static void backward(struct fr_toy *t, uint32_t dtype, const double *x, const double *target,
                     double seed, struct fr_chain *chain)
{
    const size_t first = t->hidden * t->in;
    for (uint32_t k = 0; k < t->out; k++) {
        t->dy[k] = fr_lab_to(dtype, (float)(seed * (float)(t->y[k] - target[k])));
    }
    if (chain != NULL) {
        fr_chain_add(chain, "dy = 2 (y - target) * loss scale / count", dtype, t->dy, 1, t->out);
    }
    for (uint32_t k = 0; k < t->out; k++) {
        t->dy[k] = fr_lab_to(dtype, t->dy[k] / t->gain);
        for (uint32_t i = 0; i < t->hidden; i++) {
            t->g[first + k * t->hidden + i] += (float)(t->dy[k] * t->z[i]);
        }
    }
    fr_lab_matvec_t(dtype, t->stored + first, t->dy, t->out, t->hidden, t->dh);
    for (uint32_t i = 0; i < t->hidden; i++) {
        t->dh[i] = t->h[i] > 0 || isnan(t->h[i]) ? fr_lab_to(dtype, t->gain * t->dh[i]) : 0;
        for (uint32_t k = 0; k < t->in; k++) {
            t->g[i * t->in + k] += (float)(t->dh[i] * x[k]);
        }
    }
    if (chain != NULL) {
        fr_chain_add(chain, "dh", dtype, t->dh, 1, t->hidden);
    }
}

double fr_toy_step(struct fr_toy *t, uint32_t dtype, double scale, double count,
                   struct fr_chain *chain)
{
    float loss = 0;
    memset(t->g, 0, t->weights * sizeof *t->g);
    memcpy(t->stored, t->w, t->weights * sizeof *t->w);
    fr_lab_cast(dtype, t->stored, t->weights);
    for (uint32_t s = 0; s < t->samples; s++) {
        const double *x = t->x + s * t->in, *target = t->target + s * t->out;
        struct fr_chain *c = s == 0 ? chain : NULL;
        loss += forward(t, dtype, x, target, c);
        backward(t, dtype, x, target, 2 * scale / count, c);
    }
    fr_lab_cast(dtype, t->g,
                t->weights); /* a GEMM over the batch accumulates in fp32, stores once */
    if (chain != NULL) {
        fr_chain_add(chain, "dw1, over the batch", dtype, t->g, 1, t->hidden * t->in);
        fr_chain_add(chain, "dw2, over the batch", dtype, t->g + t->hidden * t->in, 1,
                     t->out * t->hidden);
    }
    return loss / (float)(t->samples * t->out);
}

bool fr_toy_update(struct fr_toy *t, double rate, double scale)
{
    const struct fr_lab_stats s = fr_lab_look(t->g, t->weights);
    if (s.nans + s.infs > 0) {
        return false;
    }
    for (uint32_t i = 0; i < t->weights; i++) {
        t->w[i] = (float)(t->w[i] - rate * (t->g[i] / scale));
    }
    return true;
}

void fr_scaler_next(struct fr_scaler *s, bool taken)
{
    if (!taken) {
        s->skipped++;
        s->good = 0;
        s->scale = s->scale / 2 > s->least ? s->scale / 2 : s->least;
        return;
    }
    s->taken++;
    if (++s->good >= s->interval) {
        s->good = 0;
        s->scale = s->scale * 2 < s->most ? s->scale * 2 : s->most;
    }
}
