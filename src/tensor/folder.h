/* SPDX-License-Identifier: Apache-2.0 */
/* folder: the files under a path that can belong to a checkpoint, and which checkpoint (step) each
 * belongs to by its path alone. */
#ifndef FR_TENSOR_FOLDER_H
#define FR_TENSOR_FOLDER_H

#include "tensor/build.h"

struct fr_found {
    fr_sv path;    /* in the arena of the checkpoint */
    uint32_t root; /* length of the argument it was found under; path.n for a file that was named */
};
struct fr_found_list {
    FR_VEC(struct fr_found) list;
};

/* Appends the files under `path`, at most limits.depth folders down, in natural order. Links to
 * files are followed (the hub's cache keeps its blobs behind them), links to folders are not.
 * Pipes, loops and what cannot be read are problems. */
void fr_folder_list(struct fr_ckpt *c, const char *path, struct fr_found_list *ret);

/* A step's number in the name of a file or folder: checkpoint-100, step_200, global_step100,
 * iter_0000100, epoch=3-step=10.ckpt. */
bool fr_step_number(fr_sv name, int64_t *ret);
/* The rank that a file name speaks of: zero_pp_rank_3_mp_rank_00_..., mp_rank_02, __5_0.distcp,
 * rank_7.pt, rng_state_4.pth; -1 none. */
int32_t fr_rank_of(fr_sv path);
/* A name that an interrupted atomic write leaves behind. */
bool fr_is_leftover(fr_sv name);
/* A name that belongs to a checkpoint: worth opening. */
bool fr_is_part(fr_sv name);
/* Makes the steps of the files found and adds the files to them. */
void fr_steps_make(struct fr_ckpt *c, const struct fr_found_list *found);

#endif
