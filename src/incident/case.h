/* SPDX-License-Identifier: Apache-2.0 */
/* case: the working set of one decision. Built from a sealed evidence set in this order:
 *   identity.c  who is who: pids, local ranks, tasks, hosts and PCI addresses joined to global ranks where that is proven
 *   names.c     the same from the names of files, taken together
 *   timeline.c  when each event began, on one clock with per-node skew
 *   ranks.c     what is known about every rank: its log, life signs, exit, symptoms
 *   causes.c    candidates from signals, traces and series; silence.c, exits.c, collectives.c and stacks.c add those nobody printed
 *   adopt.c     joins candidates without a rank to the one rank that can have printed them
 *   judge.c     orders and prunes the candidates
 *   explain.c   writes the incident: evidence, victims, what was ruled out
 * Everything lives in the case's arena and dies with it; the evidence set and the library are borrowed. */
#ifndef FR_INCIDENT_CASE_H
#define FR_INCIDENT_CASE_H

#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "failure/library.h"
#include "model/evidence.h"

/* What one event means to the decision. */
enum fr_meaning { FR_MEANS_NOTHING, FR_MEANS_CAUSE, FR_MEANS_SYMPTOM, FR_MEANS_TEARDOWN };

struct fr_obs {
    const struct fr_event *e;
    uint32_t src;
    int32_t rank;        /* the reporter's global rank, proven; -1 unknown */
    int32_t subject;     /* the rank the event is about; -1 unknown */
    int32_t node;        /* index into nodes, -1 unknown */
    int32_t attempt;
    int32_t failure;     /* library index of its class, -1 none */
    int32_t signal;      /* library index of the signal that gave the class, -1: by trace or fact */
    uint8_t meaning;     /* enum fr_meaning */
    bool fatal;          /* it ended a process: the exception line of a traceback nobody caught */
    bool cut;            /* a traceback that ends before its exception */
    bool recovered;      /* the same writer went on training afterwards */
    bool waits;          /* it says calmly that it waits, and nothing came after it */
    int64_t began;       /* corrected ns, FR_TIME_NONE unknown */
    int64_t slack;       /* +- ns */
};

struct fr_rank {
    int32_t rank;
    int32_t node, src;       /* index, -1 unknown */
    int64_t pid;             /* -1 unknown */
    const struct fr_obs *exit; /* its own end as the launcher or scheduler saw it */
    int exitcode;
    bool has_exit, stopped;  /* stopped: the launcher ended it (SIGTERM/SIGKILL sent), so its end says nothing */
    const struct fr_obs *symptom, *cause; /* its first one of each */
    const struct fr_obs *timeout;
    const struct fr_trace *trace;         /* where it stood when it failed */
    bool done;               /* said that it finished */
    bool outlived;           /* its launcher told it to stop: it lived when another one's end had been seen */
    int64_t last_step;       /* the last one that it printed a number of, -1 none */
    int64_t numel;           /* of what it waited in, -1 unknown */
    int64_t enqueued, completed, seq; /* last collective counters of the widest group, -1 unknown */
    fr_sv op, pg;            /* pg: the group those belong to, empty unknown */
    const struct fr_activity *life;       /* its last speaker record, NULL none */
    uint32_t life_src;
    int64_t seen;            /* the last time that any of its lines shows, FR_TIME_NONE none */
};

struct fr_node {
    fr_sv name;          /* shortest host name */
    fr_sv token;         /* what file names call it ("node3") */
    int64_t skew;        /* ns to subtract from its wall clock */
};

/* Why a candidate exists: shown by --why. */
enum fr_ground { FR_GROUND_SIGNAL, FR_GROUND_TRACE, FR_GROUND_SERIES, FR_GROUND_EXIT, FR_GROUND_SILENCE, FR_GROUND_COUNTERS,
                 FR_GROUND_ACCUSED, FR_GROUND_SYMPTOM };

struct fr_cand {
    int32_t failure;
    uint8_t ground;
    FR_VEC(uint32_t) obs;        /* indexes into obs, in order; may be empty */
    const struct fr_activity *life; /* the last sign of life it is judged by, NULL none */
    uint32_t life_src;
    const struct fr_finding *finding;
    uint32_t finding_src;
    FR_VEC(int32_t) ranks;       /* subjects, ascending; empty = not known */
    uint32_t n_unknown;          /* occurrences whose subject is not known */
    fr_sv node;
    int32_t local_rank, gpu;
    uint8_t scope;               /* enum fr_scope, decided by judge.c */
    bool stranger;               /* the kernel tells of a process that is none of this run's */
    bool silent, fatal, contested; /* contested: another cause cannot be ordered against it */
    int64_t began, slack;
    double score;
    FR_VEC(fr_sv) for_, against;
};

struct fr_case {
    const struct fr_evidence_set *set;
    const struct fr_library *lib;
    struct fr_arena arena;
    FR_VEC(struct fr_obs) obs;
    FR_VEC(struct fr_rank) ranks;   /* ascending by rank */
    FR_VEC(struct fr_node) nodes;
    FR_VEC(struct fr_cand) cands;
    int32_t world;                  /* -1 unknown */
    int32_t attempts;               /* at least 1 */
    int32_t attempt;                /* the one being decided */
    bool failed;                    /* of this attempt: something ended that should not have */
    /* joins, see identity.c */
    struct fr_map pid_rank, local_rank, task_rank, pci_rank, addr_node, node_index, host_rank;
    int32_t *src_rank, *src_node;   /* per source, -1 unknown */
    uint64_t *src_exits;            /* per source: the line of the first exit it reports, 0 none */
    uint64_t *src_restart, *src_done, *src_start; /* per source: the line of its last restart, of its first "finished", of its last start, 0 none */
    bool local_is_rank, task_is_rank, host_is_rank;
    bool nomem;
};

void fr_case_identify(struct fr_case *c);
void fr_case_names(struct fr_case *c); /* names.c: src_rank of files whose names are a series */
bool fr_case_family(fr_sv name, struct fr_buf *key, int32_t *ret_number); /* names.c: "worker_#.log" and 7 of "worker_7.log" */
bool fr_case_one_each(fr_sv key);      /* names.c: a name of this family may well be a process's */
void fr_case_hosts(struct fr_case *c); /* hosts.c: host_rank and host_is_rank */
void fr_case_timeline(struct fr_case *c);
void fr_case_classify(struct fr_case *c);
void fr_case_ranks(struct fr_case *c);
void fr_case_causes(struct fr_case *c);
void fr_case_numbers(struct fr_case *c);                        /* numbers.c; a part of fr_case_causes */
void fr_case_exits(struct fr_case *c);
void fr_case_collectives(struct fr_case *c);
void fr_case_silence(struct fr_case *c);
void fr_case_stacks(struct fr_case *c);
void fr_case_symptoms(struct fr_case *c);
void fr_case_adopt(struct fr_case *c);                          /* adopt.c: ranks for candidates whose own lines name none */
/* Best candidate's index, or -1: nothing to blame. */
int32_t fr_case_judge(struct fr_case *c);

bool fr_case_went_on(const struct fr_case *c, const struct fr_obs *o); /* survived.c: the program did, after it */
void fr_case_survived(struct fr_case *c);        /* survived.c: marks what was survived at another place, or before */
bool fr_case_is_abort(const struct fr_event *e); /* survived.c: what C++ prints of an exception that nobody catches; the process aborts */
bool fr_case_ended_well(const struct fr_case *c); /* classify.c: somebody finished, and nobody failed */
/* identity.c */
int32_t fr_case_rank_of(const struct fr_case *c, const struct fr_who *who, uint32_t src);
int32_t fr_case_node_of(struct fr_case *c, fr_sv name);         /* index, interned; -1 for empty */
enum { FR_RANK_CONFLICT = 0x7fffffff }; /* in a map of ranks: two were said */
void fr_case_join(struct fr_map *m, fr_sv key, int32_t rank);
fr_sv fr_case_short_host(fr_sv name);                           /* "gpu-07" of "gpu-07.cluster.local" */
int32_t fr_case_pid_rank(const struct fr_case *c, int32_t node, int64_t pid);
/* children.c */
uint32_t fr_case_children(struct fr_case *c);                    /* how many processes the launcher speaks of, in this attempt */
int32_t fr_case_last_child(struct fr_case *c, int64_t *ret_pid); /* the rank of the only one that nobody names, -1; its pid */
/* exits.c: mpirun, horovodrun and vLLM say which process was the first to end, which is no complaint of its own */
bool fr_case_told_first(const struct fr_obs *exit);
bool fr_case_has_complaints(const struct fr_case *c);           /* exits.c: somebody lost a peer or waited in vain, whoever it was */
/* Of the ranks that ended by themselves the one that did so first, by its launcher's clock, with a lead that no clock's skew explains;
 * NULL: there is none, or it had lost a peer. */
const struct fr_rank *fr_case_ended_first(const struct fr_case *c, int64_t *ret_lead);
/* exits.c: whose end an EXIT fact reports, -1 unknown */
/* "0-3,7" of srun -> fn for each task, with its rank or -1 where nobody proved it. */
typedef void fr_task_fn(struct fr_case *c, const struct fr_obs *o, int32_t task, int32_t rank, void *ctx);
void fr_case_each_task(struct fr_case *c, const struct fr_obs *o, fr_sv list, fr_task_fn *fn, void *ctx);
int32_t fr_case_exit_rank(const struct fr_case *c, const struct fr_obs *o);
/* ranks.c */
struct fr_rank *fr_case_rank(struct fr_case *c, int32_t rank);  /* NULL when not seen */
bool fr_case_is_whole(const struct fr_case *c);                 /* the ranks seen are 0 to n - 1: no number among them is missing */
/* causes.c */
struct fr_cand *fr_case_cand(struct fr_case *c, int32_t failure, enum fr_ground ground); /* find or add */
void fr_cand_obs(struct fr_case *c, struct fr_cand *k, uint32_t obs);
void fr_cand_rank(struct fr_case *c, struct fr_cand *k, int32_t rank);
__attribute__((format(printf, 3, 4))) void fr_cand_for(struct fr_case *c, struct fr_cand *k, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void fr_cand_against(struct fr_case *c, struct fr_cand *k, const char *fmt, ...);
int32_t fr_case_class(const struct fr_case *c, const char *id); /* library index, -1 */
bool fr_case_lists(const char *const *ids, const char *id);      /* judge.c: id is one of a NULL-terminated list */
static inline const struct fr_failure *fr_cand_class(const struct fr_case *c, const struct fr_cand *k)
{
    return &c->lib->failures[k->failure];
}

#endif
