/* SPDX-License-Identifier: Apache-2.0 */
/* alphabet: see alphabet.h. */
#include "repro/alphabet.h"

#include <math.h>

#define VOCAB FR_ALPHABET_VOCAB
#define WIDE FR_ALPHABET_HIDDEN
#define BATCH 8
#define RATE 1.0

enum { EMBED, LAYER, NORM, HEAD, TENSORS };
const char *const fr_alphabet_names[] = {"embed.weight", "layers.0.weight", "norm.weight",
                                         "head.weight"};

void fr_alphabet_new(struct fr_alphabet *m, uint32_t n, uint64_t seed)
{
    struct fr_rng g = {seed};
    const uint32_t size[] = {VOCAB * n, n * n, n, VOCAB * n};
    m->n = n;
    m->at[0] = 0;
    for (int t = 0; t < TENSORS; t++) {
        m->at[t + 1] = m->at[t] + size[t];
    }
    fr_rng_fill(&g, m->w, m->at[NORM], 1 / sqrt(n), FR_F32);
    for (uint32_t i = 0; i < n; i++) {
        m->w[m->at[NORM] + i] = 1; /* as every norm begins: no seed changes it */
    }
    fr_rng_fill(&g, m->w + m->at[HEAD], size[HEAD], 1 / sqrt(n), FR_F32);
}

/* Loss of one token, its gradients added to m->g with weight `share`. */
static double token(struct fr_alphabet *m, uint32_t in, uint32_t out, double share)
{
    const uint32_t n = m->n;
    const double *e = m->w + in * n, *norm = m->w + m->at[NORM], *head = m->w + m->at[HEAD];
    double h[WIDE], z[WIDE], logit[VOCAB], p[VOCAB], dz[WIDE], dh[WIDE], de[WIDE];
    fr_lab_matvec(FR_F32, m->w + m->at[LAYER], e, n, n, h);
    for (uint32_t i = 0; i < n; i++) {
        h[i] = fr_lab_tanh(h[i]);
        z[i] = norm[i] * h[i];
    }
    fr_lab_matvec(FR_F32, head, z, VOCAB, n, logit);
    const double loss = fr_lab_cross_entropy(logit, VOCAB, out);
    fr_lab_softmax(FR_F32, logit, VOCAB, p);
    p[out] -= 1;
    for (uint32_t v = 0; v < VOCAB; v++) {
        p[v] *= share;
        for (uint32_t i = 0; i < n; i++) {
            m->g[m->at[HEAD] + v * n + i] += p[v] * z[i];
        }
    }
    fr_lab_matvec_t(FR_F32, head, p, VOCAB, n, dz);
    for (uint32_t i = 0; i < n; i++) {
        m->g[m->at[NORM] + i] += dz[i] * h[i];
        dh[i] = dz[i] * norm[i] * (1 - h[i] * h[i]);
        for (uint32_t k = 0; k < n; k++) {
            m->g[m->at[LAYER] + i * n + k] += dh[i] * e[k];
        }
    }
    fr_lab_matvec_t(FR_F32, m->w + m->at[LAYER], dh, n, n, de);
    for (uint32_t i = 0; i < n; i++) {
        m->g[in * n + i] += de[i];
    }
    return loss;
}

double fr_alphabet_batch(struct fr_alphabet *m, struct fr_rng *tokens, double share)
{
    double loss = 0;
    memset(m->g, 0, sizeof m->g);
    for (uint32_t i = 0; i < BATCH; i++) {
        const uint32_t in = fr_rng_below(tokens, VOCAB);
        loss += token(m, in, (in * 5 + 3) % VOCAB, share / BATCH);
    }
    return loss / BATCH;
}

double fr_alphabet_update(struct fr_alphabet *m)
{
    double square = 0;
    for (uint32_t i = 0; i < m->at[TENSORS]; i++) {
        square += m->g[i] * m->g[i];
        m->w[i] = fr_lab_to(FR_F32, m->w[i] - RATE * m->g[i]);
    }
    return sqrt(square);
}

uint32_t fr_alphabet_checksum(const struct fr_alphabet *m, int t)
{
    uint32_t crc = ~0u;
    for (uint32_t i = m->at[t]; i < m->at[t + 1]; i++) {
        const float f = (float)m->w[i];
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        for (int k = 0; k < 4; k++) {
            crc ^= bits >> 8 * k & 0xff;
            for (int b = 0; b < 8; b++) {
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
            }
        }
    }
    return ~crc;
}
