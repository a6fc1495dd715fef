/* SPDX-License-Identifier: Apache-2.0 */
/* alphabet: a toy language model for processes: it learns the next token of a permuted alphabet
 * with an embedding, one tanh layer, a norm's weight and a head, in fp32. It lies in one piece, so
 * that a rank can be copied, cut into shards and sent. */
#ifndef FR_REPRO_ALPHABET_H
#define FR_REPRO_ALPHABET_H

#include "repro/lab.h"

#define FR_ALPHABET_VOCAB 16
#define FR_ALPHABET_HIDDEN 64 /* at most */
#define FR_ALPHABET_WORDS                                                                   \
    (2 * FR_ALPHABET_VOCAB * FR_ALPHABET_HIDDEN + FR_ALPHABET_HIDDEN * FR_ALPHABET_HIDDEN + \
     FR_ALPHABET_HIDDEN)

enum fr_alphabet_tensor {
    FR_ALPHABET_EMBED,
    FR_ALPHABET_LAYER,
    FR_ALPHABET_NORM,
    FR_ALPHABET_HEAD,
    FR_ALPHABET_TENSORS
};
extern const char *const fr_alphabet_names[]; /* of the tensors, as in a state dict */

struct fr_alphabet {
    uint32_t n;                           /* hidden */
    uint32_t at[FR_ALPHABET_TENSORS + 1]; /* first word of each tensor, and the end of the last */
    double w[FR_ALPHABET_WORDS], g[FR_ALPHABET_WORDS];
};

/* Random weights; the norm's are ones. hidden <= FR_ALPHABET_HIDDEN. */
void fr_alphabet_new(struct fr_alphabet *m, uint32_t hidden, uint64_t seed);
/* The mean loss of a batch of tokens that it draws; m->g is the gradient of `share` of it. */
double fr_alphabet_batch(struct fr_alphabet *m, struct fr_rng *tokens, double share);
/* One step of SGD with m->g; gives the gradient's norm. */
double fr_alphabet_update(struct fr_alphabet *m);
/* CRC-32 of a tensor in fp32, as zlib.crc32(p.detach().numpy()) gives it. */
uint32_t fr_alphabet_checksum(const struct fr_alphabet *m, int tensor);

#endif
