/* SPDX-License-Identifier: Apache-2.0 */
/* check: what `faultrank check` found out about a checkpoint, for all renderers. Plain structs;
 * texts and arrays are the arena's, texts are as read (not cleaned: names of tensors are hostile).
 * Mirrors schema/check.schema.json. */
#ifndef FR_MODEL_CHECK_H
#define FR_MODEL_CHECK_H

#include "base/arena.h"
#include "base/vec.h"

#define FR_CHECK_DIMS 16
#define FR_CHECK_NOWHERE UINT64_MAX

enum fr_check_verdict { FR_CHECK_PROMOTE, FR_CHECK_DO_NOT, FR_CHECK_CANNOT_TELL };
/* What a finding does to the verdict. */
enum fr_check_weight {
    FR_CHECK_BLOCKS, /* do not promote */
    FR_CHECK_HIDES,  /* something could not be looked at: cannot tell */
    FR_CHECK_RISK,   /* may go wrong when it is used; a bound or a habit, not a fault */
    FR_CHECK_NOTE,
    FR_CHECK_WEIGHTS
};
const char *fr_check_verdict_name(uint8_t verdict); /* "promote", "do-not-promote", "cannot-tell" */
const char *fr_check_weight_name(uint8_t weight);   /* "blocks", "hides", "risk", "note" */

struct fr_check_finding {
    uint8_t weight;      /* enum fr_check_weight */
    fr_sv rule, title;   /* of a row of src/tensor/findings.def */
    fr_sv cls;           /* the failure whose page explains it; empty when none does */
    fr_sv text;          /* one or two sentences with the numbers */
    fr_sv unknown;       /* what the rule cannot know; empty when it is certain */
    fr_sv file;          /* empty: of the whole */
    uint64_t offset;     /* in the file; FR_CHECK_NOWHERE */
    fr_sv tensor;        /* empty: of no single one */
    int32_t layer, rank; /* -1 none */
};

enum fr_check_cast { FR_CHECK_F16, FR_CHECK_BF16, FR_CHECK_E4M3, FR_CHECK_E5M2, FR_CHECK_CASTS };

struct fr_check_tensor {
    fr_sv name, dtype, file;
    fr_sv module, param; /* "mlp.down_proj", "weight" */
    fr_sv role;          /* "weight", "optimizer", "scale", "packed", "buffer", "other" */
    int32_t layer;       /* -1: outside of the numbered layers */
    int32_t rank;        /* -1 unknown */
    uint8_t worst;       /* enum fr_check_weight of its worst finding; FR_CHECK_WEIGHTS when none */
    uint8_t dims;
    bool scanned;  /* else the numbers below mean nothing */
    bool is_float; /* else only zero and abs_max are counted */
    uint64_t shape[FR_CHECK_DIMS];
    uint64_t elements, nan, inf, zero, subnormal;
    uint64_t beyond[FR_CHECK_CASTS]; /* finite elements that a cast to that type would lose */
    double abs_max, rms;             /* of the finite elements */
    uint64_t rows; /* looked at: matrices with rows of 32 elements or more; else 0 */
    uint64_t zero_rows, equal_rows, first_zero_row, first_equal_row, zero_rows_at_end;
    uint32_t file_index, source; /* of the reader's lists */
};

struct fr_check_layer {  /* a row of the picture */
    fr_sv label;         /* "embed_tokens", "layer 3", "lm_head", "optimizer" */
    int32_t first, last; /* layer numbers; -1 */
    uint32_t from, n;    /* its tensors */
    uint64_t nan, inf;
    double abs_max, rms; /* the largest of its tensors */
    uint8_t worst;       /* enum fr_check_weight, FR_CHECK_WEIGHTS when all is well */
};

struct fr_check_step {
    fr_sv path, layout;
    int64_t step; /* -1 unknown */
    uint32_t files, tensors;
    uint64_t bytes;
    bool checked;    /* else only its structure was looked at */
    uint8_t verdict; /* enum fr_check_verdict */
    fr_sv why;       /* in a few words */
};

struct fr_check_diff { /* one tensor of two checkpoints */
    fr_sv name;
    int32_t layer;
    uint64_t elements, differing, first; /* first: index of the first element that differs */
    uint64_t exponent_flips; /* elements where exactly one bit differs, and it is of the exponent */
    double max_abs;          /* largest difference of two finite elements */
    double relative;         /* norm of the difference over the norm of the first; NAN unknown */
    double cosine;           /* of the angle between the two; NAN unknown */
    bool odd;                /* a finding speaks of it */
};
struct fr_check_comparison {
    fr_sv a, b;
    bool replicas; /* should be equal; else two steps of one run */
    fr_sv text;    /* what it comes to, one sentence */
    uint32_t compared, equal, only_a, only_b;
    int64_t first; /* index in diffs of the first in the order of the model, -1: all are equal */
    FR_VEC(struct fr_check_diff) diffs; /* those that differ, in the order of the model */
};

struct fr_check {
    uint8_t verdict;   /* enum fr_check_verdict, of the step that was asked for */
    fr_sv headline;    /* one sentence, without the verdict's word */
    int64_t chosen;    /* index in steps, -1 none */
    int64_t last_good; /* index in steps, -1: none was found good */
    uint64_t bytes, elements;
    uint32_t files;
    FR_VEC(struct fr_check_step) steps;       /* oldest first */
    FR_VEC(struct fr_check_finding) findings; /* worst first */
    FR_VEC(struct fr_check_tensor) tensors;   /* of the chosen step, in the order of the model */
    FR_VEC(struct fr_check_layer) layers;
    FR_VEC(struct fr_check_comparison) comparisons;
    FR_VEC(fr_sv) checked; /* what was looked for: sentences */
    struct fr_arena arena;
};
void fr_check_release(struct fr_check *c);

#endif
