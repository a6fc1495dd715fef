/* SPDX-License-Identifier: Apache-2.0 */
/* smoke: the sizes of the user's own model, for the prevention smoke tests of `faultrank smoke`.
 * What config.json does not say keeps the default. */
#ifndef FR_REPRO_SMOKE_H
#define FR_REPRO_SMOKE_H

#include "repro/repro.h"

/* X(field, "option", default, min, max, whole, "names in config.json, by blanks", "help") */
#define FR_SMOKE_SIZES(X)                                                                          \
    X(hidden, "hidden", 4096, 1, 65536, true, "hidden_size n_embd d_model dim", "hidden size")     \
    X(eps, "eps", 1e-5, 0, 1, false, "rms_norm_eps layer_norm_eps layer_norm_epsilon norm_eps",    \
      "eps of the norms")                                                                          \
    X(seq, "seq", 512, 1, 1048576, true, "max_position_embeddings n_positions n_ctx max_seq_len",  \
      "sequence length")                                                                           \
    X(scale, "scale", 16, 1e-6, 1e30, false, "", "largest activation you have seen, or expect")    \
    X(heads, "heads", 32, 1, 4096, true, "num_attention_heads n_head num_heads n_heads",           \
      "attention heads")                                                                           \
    X(vocab, "vocab", 32000, 2, 1048576, true, "vocab_size", "vocabulary")                         \
    X(padding, "padding", 3, 0, 1048576, true, "", "padding tokens at the left of a sequence")

struct fr_smoke {
    uint32_t dtype; /* FR_F16, FR_BF16, FR_F32: of weights and activations */
    int policy; /* index into the reproduction's smoke_policies; -1 = as the model is known to do */
    bool upcasts; /* the model's norms compute in fp32 */
    bool fused;   /* its attention is fused: scores stay in fp32 */
#define FR_X(field, option, value, min, max, whole, names, help) double field;
    FR_SMOKE_SIZES(FR_X)
#undef FR_X
};

void fr_smoke_defaults(struct fr_smoke *ret);
/* One size by its option's name. -FR_ARG with a sentence. */
int fr_smoke_set(struct fr_smoke *s, fr_sv name, double value, struct fr_err *err);
/* Runs p's smoke test; -FR_ABSENT when it has none. */
int fr_smoke_run(const struct fr_repro *p, const struct fr_smoke *s, struct fr_result *ret,
                 struct fr_err *err);

#endif
