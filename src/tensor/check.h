/* SPDX-License-Identifier: Apache-2.0 */
/* check: from paths to struct fr_check. Opens the checkpoint, chooses a step, reads its tensors
 * once, runs the detectors, and goes back to earlier steps until it finds a good one. */
#ifndef FR_TENSOR_CHECK_H
#define FR_TENSOR_CHECK_H

#include "base/err.h"
#include "model/check.h"

struct fr_check_options {
    double max_abs;        /* a larger finite weight blocks; 0 = any */
    const char *allow_nan; /* shell patterns of tensor names, separated by commas; NULL none */
    const char *compare;   /* another checkpoint: the step before, or a replica; NULL none */
    bool replicas; /* the paths are replicas of one checkpoint: compare each with the first */
    const char
        *config; /* files of settings, separated by commas; NULL: config.json beside the tensors */
    const char *manifest; /* a manifest to hold the files against; NULL none */
    bool crc;             /* compare all checksums in zips, also of large members */
    int64_t step;         /* -1: the newest */
    unsigned threads;     /* 0: one per core */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

/* 0 and *ret filled (fr_check_release), or: -FR_ABSENT nothing there, -FR_SYNTAX nothing of it is a
 * checkpoint, -FR_ARG no such step, -FR_IO, -FR_NOMEM. */
int fr_check_paths(const char *const *paths, uint32_t n, const struct fr_check_options *o,
                   struct fr_check *ret, struct fr_err *err);

/* The manifest (tensor/manifest.h) of the checkpoint at the paths, for a file named `manifest`:
 * paths are relative to its folder. */
struct fr_buf;
int fr_check_manifest(const char *const *paths, uint32_t n, const char *manifest,
                      struct fr_buf *out, struct fr_err *err);

#endif
