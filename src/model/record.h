/* SPDX-License-Identifier: Apache-2.0 */
/* record: one logical line with what was peeled off it. Text and names are borrowed views into the chunk or the peeler's scratch. */
#ifndef FR_MODEL_RECORD_H
#define FR_MODEL_RECORD_H

#include "base/time.h"

enum fr_level { FR_LEVEL_NONE, FR_LEVEL_DEBUG, FR_LEVEL_INFO, FR_LEVEL_WARN, FR_LEVEL_ERROR, FR_LEVEL_FATAL };

/* Separate facts about one process; -1 (or an empty view) = unknown. Never derive one from another here. */
struct fr_who {
    int32_t rank;       /* global rank, proven ("[rank3]:", "rank 3/8", error tables) */
    int32_t local_rank; /* "[default3]:", attempt_0/3/, "local_rank: 3" */
    int32_t task;       /* srun -l, slurm-%j_%t, mpirun tag: the rank only where there is one process per task */
    int32_t pg_rank;    /* rank inside a process group ("[PG ID 2 ... Rank 1]") */
    int32_t world;      /* world size when the line says it */
    int32_t gpu;        /* device index as printed; not a rank */
    int64_t pid;
    fr_sv node;         /* host name or pod */
    fr_sv role;         /* Ray actor, "EngineCore", torchrun role */
};
#define FR_WHO_NONE ((struct fr_who){-1, -1, -1, -1, -1, -1, -1, {NULL, 0}, {NULL, 0}})

enum fr_time_basis {
    FR_TIME_BASIS_NONE,
    FR_TIME_BASIS_WALL,   /* date and time, zone unknown (local) */
    FR_TIME_BASIS_UTC,    /* zone known, or an epoch number: ns is real UTC */
    FR_TIME_BASIS_NOYEAR, /* month and day, no year: ns computed with the peeler's year */
    FR_TIME_BASIS_CLOCK,  /* hours and minutes only, no date: ns since midnight */
    FR_TIME_BASIS_BOOT    /* seconds since boot */
};

struct fr_when {
    int64_t ns; /* FR_TIME_NONE when basis is NONE */
    int64_t resolution_ns; /* the text's resolution; c10 lines: 1 s (their fraction is another clock) */
    uint8_t basis;
};
#define FR_WHEN_NONE ((struct fr_when){FR_TIME_NONE, 0, FR_TIME_BASIS_NONE})

struct fr_record {
    fr_sv line;      /* the whole segment, as read */
    fr_sv text;      /* the message: what is left when prefixes are peeled */
    uint64_t offset; /* of the physical line in the original bytes */
    uint64_t lineno; /* physical line, from 1 */
    struct fr_who who;
    struct fr_when when;  /* the innermost time: the program's own clock */
    struct fr_when outer; /* the collector's time (docker, CRI, journald, syslog), when there is one */
    uint8_t level;        /* enum fr_level */
    uint8_t above;        /* of a traceback's bare header: the level of the logger's line right above it */
    bool in_thread;  /* of a traceback's bare header: the line right above it is Python's "Exception in thread ..." */
    const struct fr_record *teller; /* ... and that line, where it tells of the exception; NULL: it does not */
    bool is_kernel;       /* dmesg or a "kernel:" tag */
    bool has_traceback_margin; /* the text kept leading spaces that matter (trace lines) */
    bool repeated;        /* "[repeated 7x across cluster]" */
    bool bound;           /* who speaks may be said in the text: its beginning does not tell */
};

#endif
