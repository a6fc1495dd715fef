/* SPDX-License-Identifier: Apache-2.0 */
/* survey: reads the bytes of tensors once and says what they hold: the tally of numerics.h, and
 * rows that are all zero or all equal.
 *
 * Tensors are cut into tasks of about 64 MiB that begin at a row; threads take tasks in the order
 * of the files, results are merged in the order of the tasks. So the result depends neither on the
 * number of threads nor on how the reader cuts its windows. Memory: a block of 16 KiB and a mapped
 * window (spans) per thread, 200 bytes per task.
 *
 * Checksums of zip members are tasks of their own, which come just before those of the tensors in
 * the same bytes: a member is no tensor, it may hold several views or a header. */
#ifndef FR_TENSOR_SURVEY_H
#define FR_TENSOR_SURVEY_H

#include "faultrank/numerics.h"
#include "tensor/checkpoint.h"

#define FR_SURVEY_ROW_LEAST 32 /* elements: shorter rows are kernels of convolutions and the like \
                                */

struct fr_survey {
    struct fr_tally tally;
    uint64_t rows;                  /* looked at; 0 when the tensor has none */
    uint64_t zero_rows, equal_rows; /* all bytes 0; all elements the same (zeros too) */
    uint64_t first_zero_row,
        first_equal_row;     /* the latter is of an equal row that is not zero; UINT64_MAX none */
    uint64_t equal_not_zero; /* equal_rows that are not zero */
    uint64_t zero_rows_at_end;
    int rc;          /* 0, or what reading returned; then `why` says it */
    const char *why; /* in the arena */
    uint64_t at;     /* of the failure, UINT64_MAX unknown */
    bool done;       /* false: nothing was read (type unknown, bytes missing) */
};

/* The checksum of sums[of] of the checkpoint, reckoned again. */
struct fr_survey_sum {
    uint32_t of, crc;
    int rc; /* as in struct fr_survey */
};

struct fr_survey_options {
    unsigned threads;                                           /* 0 = one per core */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* any thread; may be NULL */
    void *ctx;
    struct fr_survey_sum *sums; /* `of` is set; the rest is filled */
    uint32_t sums_n;
};

/* Surveys tensors which[0..n-1] of c into ret[0..n-1]. 0, or -FR_NOMEM. What cannot be read is told
 * in the result. */
int fr_survey(const struct fr_checkpoint *c, const uint32_t *which, uint32_t n,
              const struct fr_survey_options *o, struct fr_arena *arena, struct fr_survey *ret,
              struct fr_err *err);

/* 64 bits of what the tensor's bytes are; equal contents give equal ones. false when they cannot be
 * read. */
bool fr_survey_hash(const struct fr_checkpoint *c, uint32_t tensor, uint64_t *ret);

#endif
