/* SPDX-License-Identifier: Apache-2.0 */
/* event: something seen once (or counted): a signal, a fact of a format, or a joined traceback.
 * Events are copied into the evidence's arena; nothing in them borrows from a chunk. */
#ifndef FR_MODEL_EVENT_H
#define FR_MODEL_EVENT_H

#include "model/record.h"

/* Captured values. Names in failure files are these in lower case; unknown names become FR_KEY_OTHER and keep their text. */
#define FR_KEYS(X)                                                                                                     \
    X(RANK, "rank") X(LOCAL_RANK, "local_rank") X(PG_RANK, "pg_rank") X(WORLD, "world") X(PID, "pid") X(NODE, "node")  \
    X(PEER, "peer") X(PEER_RANK, "peer_rank") X(GPU, "gpu") X(PCI, "pci") X(UUID, "uuid") X(XID, "xid") X(SEQ, "seq")  \
    X(OP, "op") X(NUMEL, "numel") X(RAN_MS, "ran_ms") X(TIMEOUT_MS, "timeout_ms") X(ENQUEUED, "enqueued")              \
    X(COMPLETED, "completed") X(PG, "pg") X(PG_DESC, "pg_desc") X(COMM, "comm") X(EXITCODE, "exitcode")                \
    X(SIGNAL, "signal") X(TASK, "task") X(STEP, "step") X(PATH, "path") X(SIZE, "size") X(MODULE, "module")            \
    X(MISSING, "missing") X(WORKER, "worker") X(JOB, "job") X(REASON, "reason") X(ADDR, "addr") X(TIME, "time")        \
    X(COUNT, "count") X(ATTEMPT, "attempt") X(EXCEPTION, "exception") X(RANKS, "ranks") X(OTHER, "other")

enum fr_key {
#define FR_X(name, text) FR_KEY_##name,
    FR_KEYS(FR_X)
#undef FR_X
    FR_KEY_COUNT_
};
const char *fr_key_name(enum fr_key k);
enum fr_key fr_key_from(fr_sv name); /* FR_KEY_OTHER when unknown */

struct fr_cap {
    uint8_t key;  /* enum fr_key */
    bool is_num;
    int64_t num;  /* when is_num */
    fr_sv text;   /* as printed */
    fr_sv name;   /* the capture's own name, for FR_KEY_OTHER */
};

/* Facts: what formats parse by hand because the engine reasons with them. Keys each one fills are listed beside it. */
enum fr_fact {
    FR_FACT_NONE,
    FR_FACT_IDENTITY,      /* rank and any of world local_rank pid node gpu pci comm pg: one process said who it is */
    FR_FACT_ADDRESS,       /* node, addr: this host uses that address */
    FR_FACT_EXIT,          /* a process ended: any of rank local_rank task pid node, exitcode (negative = signal), time */
    FR_FACT_STOP_SENT,     /* the launcher sends SIGTERM/SIGKILL to pid (signal): that process was alive then */
    FR_FACT_STOP_RECEIVED, /* a process or agent says that it was told to stop (signal) */
    FR_FACT_TIMEOUT,       /* a collective or store wait timed out: op seq numel ran_ms timeout_ms pg pg_desc pg_rank */
    FR_FACT_COUNTERS,      /* pg, pg_desc, pg_rank, seq, enqueued, completed */
    FR_FACT_PEER_LOST,     /* the other side went away: peer (address or host), peer_rank (never the reporter's fault) */
    FR_FACT_MISSING,       /* the named ranks did not arrive: missing (list "1,3"), pg; explicit accusation */
    FR_FACT_MISMATCH,      /* rank / peer_rank run different collectives: op, size, reason */
    FR_FACT_DUMP_SIGNAL,   /* peer_rank signalled a dump first; or observed from another rank */
    FR_FACT_XID,           /* pci xid pid reason */
    FR_FACT_SXID,          /* pci xid reason */
    FR_FACT_GPU_MAP,       /* pci uuid gpu */
    FR_FACT_OOM_KILL,      /* pid, reason = memcg|global, module = comm */
    FR_FACT_KERNEL_CRASH,  /* pid, signal: segfault, trap, SIGBUS by memory failure */
    FR_FACT_SCHEDULER,     /* the scheduler ended the job: reason (time-limit preemption node-failure cancelled requeue oom evicted), job node time */
    FR_FACT_ATTEMPT,       /* a new attempt begins: attempt */
    FR_FACT_DONE,          /* a rank or the run says that it finished: rank */
    FR_FACT_START,         /* the program begins (first lines of a run, launcher start) */
    FR_FACT_CHECKPOINT,    /* a checkpoint was saved (step, path); reason = saved|saving|failed */
    FR_FACT_PHASE,         /* the program says what it is busy with (tokenising, saving, evaluating, compiling): reason */
    FR_FACT_STACK,         /* py-spy or gdb: where a main thread stood: pid, reason = idle|active, op = function, path = file:line,
                              module = all functions, innermost first: equal text is an equal stack */
    FR_FACT_COUNT_
};

/* A joined traceback (Python, faulthandler, C++ what()). */
struct fr_trace {
    fr_sv exception;   /* "KeyError", "torch.OutOfMemoryError": type of the exception that ended it */
    fr_sv message;     /* its text, up to 1 KiB */
    fr_sv origin_exception, origin_message; /* first link of a chain, or the worker's inner one; empty when the same */
    fr_sv origin_text;                      /* its exception line as peeled */
    uint64_t origin_line, origin_offset;    /* 0 when there is none */
    fr_sv file, func;  /* innermost frame outside installed packages, else the innermost frame */
    int32_t line;
    fr_sv library;     /* package of the innermost frame: torch, datasets, ...; empty for user code */
    uint64_t first_line, last_line; /* physical lines of header and exception line */
    uint8_t kind;      /* enum fr_trace_kind */
    bool chained, truncated;
    bool mild;         /* it stands right below a logger's warning, which may have told of it */
    bool in_thread;    /* below "Exception in thread ...": that thread ended, and the process went on */
    uint64_t frames_hash; /* of (file base name, func) pairs: same code path = same hash */
    fr_sv frames;      /* "func (file:line)" innermost last, joined by " > ", up to 512 bytes */
};
enum fr_trace_kind { FR_TRACE_PYTHON, FR_TRACE_FAULTHANDLER, FR_TRACE_CPP };

#define FR_EVENT_SIGNALS 6
#define FR_EVENT_TEXT_MAX 1024

struct fr_event {
    uint32_t source;       /* index of its source in the evidence */
    uint32_t seq;          /* order inside the source */
    uint64_t offset, line; /* where it was printed */
    fr_sv text;            /* peeled message, at most FR_EVENT_TEXT_MAX bytes */
    struct fr_who who;     /* the reporter, as peeled */
    struct fr_when when, outer;
    uint8_t fact;          /* enum fr_fact */
    uint8_t level;
    bool is_kernel;
    bool in_row;           /* in a row of torchrun's table: a copy of what the row's rank recorded */
    uint8_t n_signals;
    uint16_t signals[FR_EVENT_SIGNALS]; /* indexes into the library, strongest first */
    uint16_t n_caps;
    struct fr_cap *caps;
    struct fr_trace *trace;
    uint32_t count;        /* times seen, this first one included */
    uint64_t last_line;
    struct fr_when last_when;
};

/* First value of a key: NULL when absent. */
const struct fr_cap *fr_event_cap(const struct fr_event *e, enum fr_key key);
int64_t fr_event_num(const struct fr_event *e, enum fr_key key, int64_t otherwise);
fr_sv fr_event_text(const struct fr_event *e, enum fr_key key); /* empty when absent */

#endif
