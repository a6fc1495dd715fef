/* SPDX-License-Identifier: Apache-2.0 */
/* build: a checkpoint while it is being read. Readers of formats and layouts append files, tensors
 * and problems here; the arrays are on the heap until fr_ckpt_seal() sorts them into the arena.
 * Names and texts are the arena's from the start.
 *
 * Sticky: when memory ends, `nomem` is set and appenders yield NULL; readers return,
 * fr_checkpoint_open() fails once. Limits are counted, and told once each as a problem of kind
 * FR_PROBLEM_LIMIT. */
#ifndef FR_TENSOR_BUILD_H
#define FR_TENSOR_BUILD_H

#include "base/map.h"
#include "base/vec.h"
#include "faultrank/numerics.h"
#include "tensor/blob.h"
#include "tensor/checkpoint.h"

#define FR_NO_FILE UINT32_MAX
#define FR_NO_POS UINT64_MAX
#define FR_CKPT_TEXT_MAX 240 /* bytes of a hostile name shown in a sentence */
#define FR_SHOWN(s) (int)fr_sv_head((s), FR_CKPT_TEXT_MAX).n, (s).p /* for "%.*s" */

struct fr_ckpt_note {
    uint32_t next; /* file of the same step, FR_NO_FILE after the last */
    bool given;    /* named by the user, not found in a folder */
    uint32_t root; /* length of the argument in its path; 0 when it is not of one */
};

struct fr_ckpt {
    struct fr_arena *arena;
    struct fr_ckpt_limits limits;
    FR_VEC(struct fr_ckpt_file) files;
    FR_VEC(struct fr_ckpt_step) steps;
    FR_VEC(struct fr_tensor) tensors;
    FR_VEC(struct fr_ckpt_member) members;
    FR_VEC(struct fr_ckpt_sum) sums;
    FR_VEC(struct fr_problem) problems;
    FR_VEC(struct fr_ckpt_note) notes; /* of each file, what is of no use afterwards */
    struct fr_map by_path;   /* path of a file -> index in files */
    struct fr_map by_step;   /* path of a step -> index in steps */
    struct fr_map by_folder; /* folder around steps -> the last of them */
    uint32_t *first_of_step; /* per step, its first file; the next is in notes */
    uint32_t storages;       /* numbers given out */
    uint64_t work;           /* steps of searches whose cost is a product */
    bool nomem, full_files, full_tensors, full_problems, full_work;
};

/* The files of one step, in order:
 * for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE; i = c->notes.v[i].next) */
static inline uint32_t fr_ckpt_first(const struct fr_ckpt *c, uint32_t step)
{
    return c->first_of_step[step];
}
/* Counts n steps of a search; false when FR_CKPT_WORK_MAX are used up: give the search up, a
 * problem tells. */
#define FR_CKPT_WORK_MAX 100000000u
bool fr_ckpt_work(struct fr_ckpt *c, uint64_t n);

/* How a format is read: one file and one row of formats.def. */
struct fr_ckpt_format {
    const char *name, *summary;
    /* Whether this file is one: its name (no folder) and first bytes (at most 64). */
    bool (*sniff)(fr_sv name, fr_sv head);
    /* Appends tensors and problems of files[file]; never fails, damage is a problem. */
    void (*read)(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b);
};
/* How the files of one step belong together: one file and one row of layouts.def. Runs after every
 * file was read. Each looks whether the step is one of its own; `layout` is set by the first that
 * says so. */
struct fr_ckpt_layout {
    const char *name, *summary;
    void (*check)(struct fr_ckpt *c, uint32_t step);
};

/* Appends a problem; `text` is one sentence about the file at `file` (whose path is put in front)
 * or about the whole. A fatal one makes its file, or its step, incomplete. */
__attribute__((format(printf, 7, 8))) void fr_ckpt_say(struct fr_ckpt *c, uint8_t kind, bool fatal,
                                                       uint32_t file, uint64_t offset, fr_sv tensor,
                                                       const char *fmt, ...);
/* The same about a path that is no file of ours; step UINT32_MAX = of no step. */
__attribute__((format(printf, 6, 7))) void fr_ckpt_say_step(struct fr_ckpt *c, uint8_t kind,
                                                            bool fatal, uint32_t step, fr_sv path,
                                                            const char *fmt, ...);
/* The sentence of an error a blob or parser gave. -FR_NOMEM only sets nomem. */
void fr_ckpt_say_err(struct fr_ckpt *c, uint8_t kind, bool fatal, uint32_t file, int rc,
                     const struct fr_err *err);

/* A new tensor of a file, named, rank from the file, a storage number of its own, member -1; NULL
 * at a limit or without memory. Valid until the next one. */
struct fr_tensor *fr_ckpt_tensor(struct fr_ckpt *c, uint32_t file, fr_sv name);
/* Drops the last one. */
void fr_ckpt_tensor_undo(struct fr_ckpt *c);
/* Sets the shape and elements; false (with a problem) when the product overflows or there are too
 * many dimensions. */
bool fr_ckpt_shape(struct fr_ckpt *c, struct fr_tensor *t, const uint64_t *shape, uint32_t dims,
                   uint64_t header_at);
/* bytes that `elements` of a type take, rounded up; false when that overflows. FR_DTYPE_UNKNOWN:
 * false. */
bool fr_ckpt_bytes(uint8_t dtype, uint64_t elements, uint64_t *ret);

/* Notes the checksum of a member; a crc of 0 is none. */
void fr_ckpt_sum(struct fr_ckpt *c, const struct fr_ckpt_sum *sum);

/* The number of the file (in the files read so far) with this path; FR_NO_FILE when there is
 * none. */
uint32_t fr_ckpt_find(const struct fr_ckpt *c, fr_sv path);
/* The same for `name` in the folder of `beside` (a path). */
uint32_t fr_ckpt_sibling(struct fr_ckpt *c, fr_sv beside, fr_sv name);
uint32_t fr_ckpt_new_file(struct fr_ckpt *c, fr_sv path, uint32_t step,
                          bool given); /* FR_NO_FILE at the limit */
fr_sv fr_path_name(fr_sv path);   /* what follows the last '/' */
fr_sv fr_path_folder(fr_sv path); /* what is before it; "" when there is none */

/* fr_arena_dup, with nomem set on failure. */
fr_sv fr_ckpt_dup(struct fr_ckpt *c, fr_sv s);
uint8_t fr_role_of(fr_sv name, uint8_t dtype); /* enum fr_tensor_role, by naming conventions */
uint8_t fr_dtype_of(fr_sv word); /* a dtype by any of its names; FR_DTYPE_UNKNOWN when none */

#endif
