/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: writes events and life signs of one member into its evidence. Equal events are counted,
 * not stored; at most FR_RECORDER_EVENTS are kept, per signal FR_RECORDER_PER_SIGNAL, the rest is
 * counted in dropped_events and flagged. */
#ifndef FR_ENGINE_RECORDER_H
#define FR_ENGINE_RECORDER_H

#include "base/map.h"
#include "format/format.h"
#include "match/scan.h"
#include "model/evidence.h"

enum {
    FR_RECORDER_EVENTS = 4000,
    FR_RECORDER_PER_SIGNAL = 200,
    FR_RECORDER_SPEAKERS = 8192,
    FR_RECORDER_LATE = 8
};

/* The last segment of a speaker, whose text nobody has looked at yet. */
struct fr_late {
    uint32_t speaker;
    fr_sv segment; /* of the chunk at hand */
    uint64_t lineno;
};

struct fr_recorder {
    struct fr_source_evidence *ev;
    const struct fr_library *lib;
    const struct fr_peel_ctx *peel;
    struct fr_arena keys;     /* of the two maps; freed with the recorder */
    struct fr_map by_content; /* event key -> index */
    struct fr_map by_speaker;
    uint32_t last_speaker;
    struct fr_late late[FR_RECORDER_LATE];
    uint32_t n_late,
        newest; /* index of the one that is the source's last text; UINT32_MAX: none is */
    uint16_t *per_signal;
    uint64_t said_line;   /* the line recorded last, */
    uint8_t said_level;   /* its level, */
    int32_t said_rank;    /* its rank, or -1, */
    struct fr_when said;  /* and its time */
    bool in_trace; /* set by the caller: a traceback is open, or this line opens one */
};

int fr_recorder_init(struct fr_recorder *r, struct fr_source_evidence *ev,
                     const struct fr_library *lib, const struct fr_peel_ctx *peel);
void fr_recorder_release(struct fr_recorder *r);
void fr_recorder_alive(struct fr_recorder *r, const struct fr_record *rec);
void fr_recorder_progress(struct fr_recorder *r, const struct fr_record *rec,
                          const struct fr_point *p);

/* The same for a segment whose speaker and time are known without peeling it: life signs are many,
 * and the text of the last one only is wanted. speaker: fr_recorder_speaker() of an earlier record;
 * p: its metrics or NULL. The segment must stay until fr_recorder_settle. */
uint32_t fr_recorder_speaker(struct fr_recorder *r,
                             const struct fr_record *rec); /* UINT32_MAX: over the limit */
void fr_recorder_alive_late(struct fr_recorder *r, uint32_t speaker, const struct fr_when *when,
                            fr_sv segment, uint64_t lineno, const struct fr_point *p);
/* Reads the texts that are still wanted, before their bytes go away. */
void fr_recorder_settle(struct fr_recorder *r);

/* One segment's signals and facts: the first fact shares the event with the signals, further ones
 * get their own. */
int fr_recorder_event(struct fr_recorder *r, struct fr_scanner *scanner,
                      const struct fr_record *rec, const uint16_t *signals, unsigned n_signals,
                      const struct fr_draft *facts, int n_facts);
/* A joined trace: attached to the events of its exception line, or an event of its own. */
int fr_recorder_trace(struct fr_recorder *r, const struct fr_trace_done *done);
/* "KeyError: 'x'" with no traceback around it: a trace of one line; nothing when the line is not
 * one, or of level warning or below. */
int fr_recorder_bare(struct fr_recorder *r, const struct fr_record *rec);
void fr_recorder_finish(struct fr_recorder *r);

#endif
