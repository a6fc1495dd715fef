/* SPDX-License-Identifier: Apache-2.0 */
/* collect: one unit of input to the evidence of its members. One collector per thread; everything
 * it makes is owned by the evidence set it is given. Bounded by events kept, not by input size. */
#ifndef FR_ENGINE_COLLECT_H
#define FR_ENGINE_COLLECT_H

#include "match/scan.h"
#include "model/evidence.h"
#include "read/input.h"

struct fr_collector;

struct fr_collect_options {
    const struct fr_library *library;
    const struct fr_rules *rules;
    const struct fr_input *input;
    enum fr_scan_engine engine;
    fr_skip_fn skip;
    void *skip_ctx;
    void (*bytes)(void *ctx, uint64_t more); /* progress, NULL = none */
    void *bytes_ctx;
};

int fr_collector_new(const struct fr_collect_options *o, struct fr_collector **ret,
                     struct fr_err *err);
/* Adds one source evidence per member of the unit to out. -FR_NOMEM only; unreadable input goes to
 * skip. */
int fr_collect_unit(struct fr_collector *c, uint32_t unit, struct fr_evidence_set *out,
                    struct fr_err *err);
void fr_collector_free(struct fr_collector **c);

#endif
