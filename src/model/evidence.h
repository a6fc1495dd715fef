/* SPDX-License-Identifier: Apache-2.0 */
/* evidence: the mergeable summary of what one source has seen. A set of them, keyed by source name, is all that
 * incident/ reads. Merging sets is a union by key (equal keys: the fuller one wins, ties by content), so it is
 * associative, commutative and idempotent. Owns its arena; immutable once sealed. */
#ifndef FR_MODEL_EVIDENCE_H
#define FR_MODEL_EVIDENCE_H

#include "base/arena.h"
#include "base/vec.h"
#include "model/diagnosis.h"
#include "model/series.h"

enum fr_source_kind { FR_SOURCE_UNKNOWN, FR_SOURCE_RANK, FR_SOURCE_CONSOLE, FR_SOURCE_KERNEL, FR_SOURCE_AGENT };

/* Life signs of one speaker (distinct rank/local rank/task/pid/node) of a source. */
struct fr_activity {
    struct fr_who who;
    uint64_t first_line, last_line; /* lines seen in full reading (edges of the file, hits) */
    uint64_t lines;
    struct fr_when first, last;
    int64_t last_step;              /* -1 none */
    fr_sv last_text;                /* its last line, at most 240 bytes */
};

struct fr_source_evidence {
    fr_sv name;            /* as shown to people: path, path!member, "-" */
    struct fr_who hint;    /* what the path says: rank3.log, attempt_0/3/stderr.log, slurm-8_1.out */
    int32_t attempt;       /* attempt_N of the path, else -1 */
    uint8_t kind;          /* enum fr_source_kind */
    uint64_t bytes, lines;
    int64_t mtime_ns;      /* FR_TIME_NONE unknown */
    uint32_t flags;        /* FR_SRC_* */
    FR_VEC(struct fr_event) events;
    FR_VEC(struct fr_activity) speakers;
    fr_findings findings;
    FR_VEC(struct fr_metric_summary) metrics;
    uint32_t dropped_events; /* over the limit: counted, not kept */
    uint64_t metric_points;
    uint64_t metric_tail[4];      /* lines of the last metric points, newest first: what came after an error */
    int64_t last_step, max_step;  /* -1 unknown */
    fr_sv last_text; uint64_t last_line_no; /* the last non-empty line */
    struct fr_arena arena;
};
enum {
    FR_SRC_TRUNCATED = 1 << 0,  /* an archive or stream was cut short, or the file shrank while it was read */
    FR_SRC_BINARY = 1 << 1,
    FR_SRC_LONG_LINES = 1 << 2, /* a line over the limit was scanned in pieces */
    FR_SRC_LIMIT = 1 << 3,      /* an event or byte limit was hit */
    FR_SRC_DECODED = 1 << 4,    /* UTF-16 / Latin-1: offsets are approximate */
    FR_SRC_SERIES = 1 << 5      /* more speakers print metrics, or more is found in them, than is kept */
};

struct fr_evidence_set {
    FR_VEC(struct fr_source_evidence *) sources; /* sorted by natural name order once sealed */
    FR_VEC(struct fr_skipped) skipped;
    struct fr_arena arena;
};

/* Union of b into a; b's sources move (b is left empty). */
int fr_evidence_merge(struct fr_evidence_set *a, struct fr_evidence_set *b);
void fr_evidence_seal(struct fr_evidence_set *s); /* sort, number the sources: events' .source is set */
void fr_source_evidence_free(struct fr_source_evidence *s);
void fr_evidence_set_release(struct fr_evidence_set *s);

#endif
