/* SPDX-License-Identifier: Apache-2.0 */
/* diff: two tensors of equal type and shape, element by element. Tensors that are the same bytes
 * cost a memcmp. */
#ifndef FR_TENSOR_DIFF_H
#define FR_TENSOR_DIFF_H

#include "model/check.h"
#include "tensor/checkpoint.h"

struct fr_differ; /* keeps files open and a buffer of 1 MiB; for one thread */
struct fr_differ *fr_differ_new(const struct fr_checkpoint *a,
                                const struct fr_checkpoint *b); /* borrowed; NULL without memory */
/* Fills the numbers of *ret. 0, -FR_NOMEM, or what reading returned. */
int fr_differ_run(struct fr_differ *d, const struct fr_tensor *a, const struct fr_tensor *b,
                  struct fr_check_diff *ret, struct fr_err *err);
void fr_differ_free(struct fr_differ **d);

#endif
