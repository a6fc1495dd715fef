/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: what paths hold: files, tensors by name, and what is wrong with their structure. No element is read here; a tensor says
 * where its bytes are, and `spans` reads them.
 *
 * All memory is the arena's; nothing is executed, nothing outside the named paths is opened. Bounded by struct fr_ckpt_limits; what a
 * limit left out is a problem of kind FR_PROBLEM_LIMIT. Damage is not an error: it is a problem with its file and byte offset, and
 * the rest of the checkpoint is still listed. An error is only: out of memory, or not one path could be read (-FR_ABSENT). */
#ifndef FR_TENSOR_CHECKPOINT_H
#define FR_TENSOR_CHECKPOINT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/view.h"

#define FR_DIMS_MAX 16

/* One file src/tensor/<format>.c and one row of formats.def reads each format. */
enum fr_tensor_role { FR_ROLE_WEIGHT, FR_ROLE_OPTIMIZER, FR_ROLE_SCALE, FR_ROLE_PACKED, FR_ROLE_BUFFER, FR_ROLE_OTHER };

struct fr_tensor {
    fr_sv name;               /* "model.layers.3.mlp.up_proj.weight"; path of keys for pickles; never empty */
    fr_sv dtype_word;         /* as the file spells it */
    uint8_t dtype;            /* FR_F16 ... of faultrank/numerics.h; FR_DTYPE_UNKNOWN = skipped by offsets */
    uint8_t role;             /* enum fr_tensor_role */
    uint8_t dims;
    bool packed_rows;         /* row-major without gaps: a row is the last dimension */
    bool swapped;             /* big-endian elements */
    bool cut;                 /* its bytes are not all in the file (a problem tells): known by name, not to be walked */
    uint64_t shape[FR_DIMS_MAX];
    uint64_t elements;        /* product of shape; 1 for a scalar */
    uint32_t file;            /* index in files */
    uint32_t storage;         /* tensors of one storage (views, tied weights) have the same number */
    uint64_t offset, bytes;   /* where the elements lie in the file (in the unpacked member when `member` is deflated); of a strided view
                               * (packed_rows false) the extent from its first to its last element */
    int32_t member;           /* index in members of a compressed one, -1 = plain bytes of the file */
    uint64_t chunk[FR_DIMS_MAX]; /* a shard's first index in the whole tensor; 0 when it is whole */
    bool shard;               /* one chunk of a larger tensor of the same name */
    int32_t rank;             /* the writer's rank, -1 unknown */
};

struct fr_ckpt_member {       /* a deflated member of a zip: its elements have to be unpacked */
    uint32_t file;
    uint64_t offset, packed, unpacked;
};

struct fr_ckpt_sum {          /* a member of a zip whose writer noted a checksum of what tensors are read from */
    fr_sv name;               /* "archive/data/3" */
    uint32_t file, crc;       /* CRC-32 of the unpacked bytes; 0, which torch writes when told not to reckon it, is not listed */
    uint64_t offset, bytes;   /* as in struct fr_tensor */
    int32_t member;
};

struct fr_ckpt_file {
    fr_sv path;               /* as given or found; for people and for opening */
    fr_sv format;             /* name of its formats.def row, or "index", "config", "manifest", "other" */
    uint64_t size, mtime_ns;
    uint32_t step_index;      /* index in steps */
    int32_t rank;             /* -1 unknown */
    bool complete;            /* its structure is whole */
};

struct fr_ckpt_step {         /* one checkpoint of a folder of checkpoints; a lone file or folder is one step */
    fr_sv path;
    int64_t step;             /* -1 unknown */
    fr_sv layout;             /* "safetensors", "hf-sharded", "torch", "dcp", "deepspeed", "megatron", "numpy", ... */
    fr_sv config;             /* path of config.json beside it, empty when none */
    bool complete;            /* nothing missing and nothing torn, as far as structure tells */
};

enum fr_problem_kind {
    FR_PROBLEM_TRUNCATED,     /* ends before what its header promises */
    FR_PROBLEM_HEADER,        /* malformed header, zip directory, pickle, JSON */
    FR_PROBLEM_OVERLAP,       /* two tensors claim the same bytes */
    FR_PROBLEM_OUTSIDE,       /* a tensor outside its file */
    FR_PROBLEM_HOLE,          /* bytes that belong to no tensor, trailing bytes */
    FR_PROBLEM_SIZE,          /* shape and dtype against byte count; product overflow */
    FR_PROBLEM_DUPLICATE,     /* a key twice */
    FR_PROBLEM_MISSING,       /* a file or tensor that an index, metadata or layout promises */
    FR_PROBLEM_RANK,          /* a file that other ranks have */
    FR_PROBLEM_TRAINER,       /* a part of what HF Trainer saves together */
    FR_PROBLEM_STORAGE,       /* a tensor whose data are not in its file */
    FR_PROBLEM_EXTRA,         /* a tensor or shard that the index does not know */
    FR_PROBLEM_LEFTOVER,      /* a temporary file of an interrupted atomic write */
    FR_PROBLEM_UNFINISHED,    /* the marker written last is missing: .metadata, latest, metadata.json */
    FR_PROBLEM_POINTER,       /* fatal: the file that names the newest step names none that is there; else it is missing */
    FR_PROBLEM_CODE,          /* a pickle that would run code when it is loaded: nobody writes that into weights */
    FR_PROBLEM_OBJECTS,       /* objects besides tensors, as training_args.bin has them: closed, yet every storage was read */
    FR_PROBLEM_REFUSED,       /* what only running a pickle brings back: refused by name */
    FR_PROBLEM_FORMAT,        /* a format that is not read: PyTorch's before 1.6, a bare pickle */
    FR_PROBLEM_DTYPE,         /* a type we do not know; its bytes are skipped */
    FR_PROBLEM_CHECKSUM,      /* against a manifest */
    FR_PROBLEM_DAMAGED,       /* bytes that are not those whose checksum the file holds */
    FR_PROBLEM_UNREADABLE,    /* open, read, shrunk while read */
    FR_PROBLEM_LIMIT,
    FR_PROBLEM_KINDS
};

struct fr_problem {
    uint8_t kind;             /* enum fr_problem_kind */
    bool fatal;               /* the checkpoint must not be used; false = worth knowing */
    uint32_t file;            /* index in files; UINT32_MAX = of the whole */
    uint64_t offset;          /* where in the file; UINT64_MAX = nowhere in particular */
    fr_sv tensor;             /* empty when it is not about one */
    fr_sv text;               /* one whole sentence, names the file, ready to print (cleaned by the writer) */
};

struct fr_ckpt_limits {
    uint32_t files, tensors, depth, problems; /* 0 = the default */
    uint64_t header_bytes;
};

struct fr_checkpoint {
    struct fr_ckpt_file *files;     uint32_t files_n;
    struct fr_ckpt_step *steps;     uint32_t steps_n;   /* by step, then path */
    struct fr_tensor *tensors;      uint32_t tensors_n; /* by step, then natural order of names, then rank and chunk */
    struct fr_ckpt_member *members; uint32_t members_n;
    struct fr_ckpt_sum *sums;       uint32_t sums_n;
    struct fr_problem *problems;    uint32_t problems_n; /* by file, then offset */
};

/* Looks at n paths: files or folders. 0, or negative with *err. *ret is valid as long as the arena. */
int fr_checkpoint_open(const char *const *paths, uint32_t n, const struct fr_ckpt_limits *limits, struct fr_arena *arena,
                       struct fr_checkpoint *ret, struct fr_err *err);

/* The newest step that is complete and has tensors: the highest number, without numbers the latest file. UINT32_MAX when there is none. */
uint32_t fr_checkpoint_last_good(const struct fr_checkpoint *c);

/* ---- spans: the bytes of tensors ---- */

struct fr_spans;
/* Opens one file of the checkpoint for reading its tensors' bytes: mapped windows where that is fast, guarded so that a file that shrinks
 * ends the walk with an error and never with a signal; unpacked through a bounded buffer where a member is deflated. */
int fr_spans_open(const struct fr_checkpoint *c, uint32_t file, struct fr_spans **ret, struct fr_err *err);
/* Calls back with consecutive pieces of the tensor's bytes, each a whole number of elements and 64-byte aligned in length except the last.
 * The callback's memory is valid during the call only; non-zero from it ends the walk and is returned. -FR_IO with *err (pos = offset)
 * when the file ends early or shrinks: drop what the callback made of this tensor, it may have seen zeros in the place of lost pages. */
typedef int (*fr_span_fn)(void *ctx, const void *p, size_t n);
int fr_spans_walk(struct fr_spans *s, const struct fr_tensor *t, fr_span_fn fn, void *ctx, struct fr_err *err);
void fr_spans_close(struct fr_spans **s);

#endif
