/* SPDX-License-Identifier: Apache-2.0 */
/* zero_grid: the files of a DeepSpeed tag are a grid, model-parallel ranks by data-parallel ranks;
 * every save writes all of it. */
#ifndef FR_TENSOR_ZERO_GRID_H
#define FR_TENSOR_ZERO_GRID_H

#include "tensor/build.h"

/* Holes in the grid of one folder of a step, as problems. What a shard's own pickle promises
 * (its partition_count) and gaps below the highest rank are told elsewhere. */
void fr_zero_grid(struct fr_ckpt *c, uint32_t step, fr_sv folder);

#endif
