/* SPDX-License-Identifier: Apache-2.0 */
/* dcp: what the two halves of the DCP layout share. */
#ifndef FR_TENSOR_DCP_H
#define FR_TENSOR_DCP_H

#include "tensor/folder.h"
#include "tensor/torchzip.h"

/* Reads the blobs of all .distcp files of a step in one folder by the ends of their zips; tensors
 * are named "__0_0.distcp#1". Bounded: FR_DCP_TRIES places that look like an end and are none, per
 * file. */
#define FR_DCP_TRIES 100
void fr_dcp_walk_folder(struct fr_ckpt *c, uint32_t step, fr_sv folder);

#endif
