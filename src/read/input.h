/* SPDX-License-Identifier: Apache-2.0 */
/* input: paths to chunks of lines. Files, folders (one run), globs, "-"; gzip zstd xz bzip2 tar zip, also one inside another once.
 * A *unit* is one top-level file (or stdin): the piece of work one thread takes. A unit yields one or more *members* (an
 * archive's files; a plain file has itself). A member yields chunks that begin and end at line boundaries.
 * Bounded: depth, entries, decompression ratio, line length, number of units; what is over a limit is reported as skipped, never fatal. */
#ifndef FR_READ_INPUT_H
#define FR_READ_INPUT_H

#include "base/arena.h"
#include "base/err.h"
#include "model/evidence.h"

struct fr_input_limits {
    uint32_t max_units;      /* 200000 */
    uint32_t max_members;    /* per archive: 100000 */
    uint32_t max_dir_depth;  /* 32 */
    uint32_t max_nesting;    /* archives inside archives: 1 (at most 2) */
    uint64_t max_ratio;      /* decompressed / compressed: 2000, looked at after 64 MiB of output */
    uint64_t max_unpacked;   /* bytes from one archive: 1 TiB */
    uint32_t buffer;         /* chunk buffer: 256 KiB; a line over two buffers is cut into pieces and flagged */
    uint32_t edge;           /* head and tail window of every member whose lines are all looked at: 64 KiB */
};
extern const struct fr_input_limits fr_input_default_limits;

struct fr_unit {             /* public part of a unit */
    fr_sv path;              /* as given or found */
    uint64_t size;           /* 0 unknown */
    int64_t mtime_ns;
};
struct fr_input;
typedef void (*fr_skip_fn)(void *ctx, fr_sv source, fr_sv why); /* thread-safety is the caller's business */

int fr_input_new(const struct fr_input_limits *limits, struct fr_input **ret, struct fr_err *err);
void fr_input_free(struct fr_input **in);
/* Adds a path, folder, glob or "-". A path that cannot be used is reported through skip, not as an error. Resolves "evil" things: loops, FIFOs, sockets,
 * devices are skipped with a reason (a FIFO given explicitly on the command line is read like stdin). labels.jsonl-like files are not special. */
int fr_input_add(struct fr_input *in, const char *path, fr_skip_fn skip, void *ctx, struct fr_err *err);
uint32_t fr_input_count(struct fr_input *in);   /* how many units; sorts them by natural order of their path: call it once after the last add */
const struct fr_unit *fr_input_unit(const struct fr_input *in, uint32_t i);

struct fr_reader;  /* one thread's reader; buffers are reused from unit to unit */
int fr_reader_new(const struct fr_input *in, fr_skip_fn skip, void *ctx, struct fr_reader **ret, struct fr_err *err);
void fr_reader_free(struct fr_reader **r);
/* What cannot be opened or read is told through skip; the unit then has no members, and that is no error. Errors are no memory and a wrong index. */
int fr_reader_open(struct fr_reader *r, uint32_t unit, struct fr_err *err);

struct fr_member {
    fr_sv name;              /* shown to people: "runs/42/rank3.log", "logs.tar.gz!rank3.log" */
    int64_t mtime_ns;        /* FR_TIME_NONE unknown */
    struct fr_who hint;      /* what the name says, see fr_path_hint */
    int32_t attempt;
    uint8_t kind;            /* enum fr_source_kind by name: dmesg*, kern*.log -> kernel; *agent*, torchrun* -> agent */
};
/* 1 = *ret filled, 0 = no more members, -FR_NOMEM. Strings valid until the next call. A member may be left before its end.
 * An empty file is a member without chunks; binary files and what a folder holds besides logs are no members. */
int fr_reader_member(struct fr_reader *r, struct fr_member *ret, struct fr_err *err);

struct fr_chunk {
    fr_sv bytes;             /* valid until the next call; begins at a line start unless cont */
    fr_sv window;            /* bytes, and what of the member is read already behind them: with the first chunk at least 60 KiB, or all there is */
    uint64_t offset;         /* of its first byte in the member's original bytes (approximate for re-encoded text) */
    bool cont;               /* continues a line that was longer than the buffer */
    bool partial;            /* ends inside a line longer than the buffer: the next chunk is its cont */
    bool head, tail;         /* head: its lines begin in the first `edge` bytes of the member; tail: from the line that holds the first of the
                                last `edge` bytes on, for streams too. No chunk straddles either border (a line longer than two buffers may). */
    bool last;               /* no chunk follows (a file that shrinks just now may end without one) */
    uint64_t nuls;           /* NUL bytes of the member turned into spaces so far */
    uint32_t flags;          /* FR_SRC_* learned so far: TRUNCATED, BINARY, LONG_LINES, DECODED, LIMIT */
};
/* 1 = chunk, 0 = end of member (*ret then holds the final flags and nuls), -FR_NOMEM. Bytes are UTF-8-ish as they are (bad bytes stay; UTF-16 with BOM is converted; blocks of NUL bytes become spaces,
 * and so do all NULs near them; a lone one in a large file may stay). */
int fr_reader_chunk(struct fr_reader *r, struct fr_chunk *ret, struct fr_err *err);

/* What a path says about who wrote it: rank3.log, rank_00012.log, slurm-8_1.out (task), attempt_0/3/stderr.log (local rank 3, attempt 0), node07.log,
 * pod-worker-3.log, "host-gpu3-rank12.txt". Pure; used by tests. */
void fr_path_hint(fr_sv path, struct fr_member *ret);

#endif
