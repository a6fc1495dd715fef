/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline: the engine's stages by hand, for tests that vary what the public header does not let one vary: which unit goes to
 * which collector, how sets are merged, how large the reader's buffer is. Everything that fails aborts the test. */
#ifndef FR_TESTS_PIPELINE_H
#define FR_TESTS_PIPELINE_H

#include "base/buf.h"
#include "engine/collect.h"
#include "model/evidence.h"

struct pipeline {
    struct fr_input *input;
    struct fr_collect_options options;
    struct fr_evidence_set skipped; /* what adding skipped */
    uint32_t n;                     /* units */
};
/* limits NULL: the default ones. Paths are added in the order given. */
void pipeline_open(struct pipeline *p, const char *const *paths, unsigned n, const struct fr_input_limits *limits, enum fr_scan_engine engine);
/* A new collector's evidence of these units, in this order, added to *out. */
void pipeline_collect(struct pipeline *p, const uint32_t *units, uint32_t n, struct fr_evidence_set *out);
void pipeline_close(struct pipeline *p);
/* Seals, decides, writes JSON. The set stays usable. */
void pipeline_json(struct fr_evidence_set *set, struct fr_buf *out);
/* All units through one collector. */
void pipeline_whole(const char *const *paths, unsigned n, const struct fr_input_limits *limits, enum fr_scan_engine engine, struct fr_buf *out);

/* The runs of tests/cases: every folder, and every file that is no label. Sorted; freed with corpus_free. */
struct corpus { char **v; unsigned n; };
void corpus_load(struct corpus *c, bool folders, bool files);
void corpus_free(struct corpus *c);

/* A small generator with a fixed seed. */
struct dice { uint64_t state; };
uint32_t dice_below(struct dice *d, uint32_t n);
void dice_shuffle(struct dice *d, uint32_t *v, uint32_t n);

#endif
