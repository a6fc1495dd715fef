/* SPDX-License-Identifier: Apache-2.0 */
/* place: where in the model a tensor is, from its name. Conventions of PyTorch, Hugging Face,
 * Megatron and their optimizers; a name that follows none is outside of the layers. */
#ifndef FR_TENSOR_PLACE_H
#define FR_TENSOR_PLACE_H

#include "model/check.h"

/* Sets layer, module and param of t from its name; views of the name. */
void fr_place(struct fr_check_tensor *t);
/* The order of a forward pass: embeddings, layers by number, what follows them; the optimizer's
 * state last. For qsort. */
int fr_place_cmp(const void *a, const void *b);
/* What the picture calls its group: "layer 3", "embed_tokens", "optimizer". In the arena. */
fr_sv fr_place_label(const struct fr_check_tensor *t, struct fr_arena *arena);
bool fr_place_is_embedding(const struct fr_check_tensor *t); /* of tokens */
bool fr_place_is_head(const struct fr_check_tensor *t);
bool fr_place_is_norm(const struct fr_check_tensor *t);
bool fr_place_is_bias(const struct fr_check_tensor *t);
/* The tensor is the optimizer's second moment. */
bool fr_place_is_second_moment(const struct fr_check_tensor *t);

#endif
