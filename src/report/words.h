/* SPDX-License-Identifier: Apache-2.0 */
/* words: the phrases, lists and groupings that every renderer shares, so that all outputs tell one story.
 * What is appended is clean (fr_utf8_clean): a terminal may print it, HTML and Markdown still escape it.
 * Nothing is owned except struct fr_victims_list, which its caller releases. */
#ifndef FR_REPORT_WORDS_H
#define FR_REPORT_WORDS_H

#include "base/utf8.h"
#include "report/writer.h"

/* Ranks of one kind of collateral: "60 x nccl-timeout on ranks 0-10,12-59". */
struct fr_victims {
    fr_sv cls;                            /* empty: nothing was seen of them */
    FR_VEC(int32_t) ranks;                /* ascending, known ranks only */
    uint32_t n;                           /* collateral entries, those without a rank too */
    const struct fr_collateral *example;  /* lowest one with a line; NULL none */
};
struct fr_victims_list {
    struct fr_victims *v;
    uint32_t n, cap;
    bool failed;
};
/* Groups by class, largest group first (ties: by class). At most 32 groups, the rest share the last. */
void fr_victims_group(const struct fr_incident *in, struct fr_victims_list *ret);
void fr_victims_list_release(struct fr_victims_list *l);

#define FR_TEXT_MAX 1024 /* bytes of one quoted line that any renderer shows */

static inline void fr_words_add(struct fr_buf *b, fr_sv s) { fr_utf8_clean(b, s, FR_TEXT_MAX); }
/* A page may leave any of its texts out. */
static inline bool fr_has(const char *z) { return z != NULL && z[0] != '\0'; }
void fr_words_addz(struct fr_buf *b, const char *z);  /* NULL = nothing */
void fr_words_ranks(struct fr_buf *b, const int32_t *v, uint32_t n);      /* "0-10,12-63"; v ascending */
/* "rank 3", "ranks 0-10,12", and after a dozen runs "and 3,900 more"; true when all are named. */
bool fr_words_rank_list(struct fr_buf *b, const int32_t *v, uint32_t n);
void fr_words_bytes(struct fr_buf *b, uint64_t n);                        /* "12.3 MB" */
void fr_words_count(struct fr_buf *b, uint64_t n, const char *one, const char *many); /* "1 file", "64 files" */
void fr_words_duration(struct fr_buf *b, int64_t seconds);                /* "10 min 3 s" */
void fr_words_iso(struct fr_buf *b, const struct fr_when *w);             /* machine form, see the schema */
void fr_words_when(struct fr_buf *b, const struct fr_when *w);            /* for people; nothing when unknown */
const char *fr_words_basis(const struct fr_when *w);                      /* "utc", "wall", ..., "none" */
void fr_words_place(struct fr_buf *b, const struct fr_quote *q);          /* "logs/rank3.log:17" */
void fr_words_origin(struct fr_buf *b, const struct fr_quote *q);         /* "  rank 3  02:15:00", what is known of it */
const char *fr_words_began(const struct fr_incident *in);                 /* heading above the evidence */
void fr_words_confidence(struct fr_buf *b, const struct fr_incident *in); /* "certain (0.97)" */

/* "Rank 11 failed first", "All 64 ranks failed alike", ... */
void fr_words_who(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in);
/* who: title */
void fr_words_headline(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in);
/* "node gpu07, GPU 3, local rank 3"; nothing when nothing is known */
void fr_words_whereabouts(struct fr_buf *b, const struct fr_incident *in);
/* "Restart the job from the last checkpoint." etc.: what to do with the job right now */
void fr_words_action(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in);
/* "64 files, 1.2 GB, 3,456,789 lines; 64 ranks of 64 on 8 nodes" */
void fr_words_input(struct fr_buf *b, const struct fr_report *r);
/* Which steps are lost: "Last good step 4000, first bad step 4812." Nothing when unknown. */
void fr_words_steps(struct fr_buf *b, const struct fr_incident *in);
/* Seconds from the beginning of the incident to the last sign of life of any lane; -1 unknown. */
int64_t fr_words_idle(const struct fr_report *r, const struct fr_incident *in);
const char *fr_words_owner(fr_sv owner); /* "the machine learning team" */
bool fr_words_many(const struct fr_report *r); /* the run has more than one rank */

/* story.c: the sentences for those who pay or who are woken up; every output that has views uses them. */
void fr_story_stopped(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in);    /* what happened */
void fr_story_cost(struct fr_buf *b, const struct fr_report *r, const struct fr_incident *in);
void fr_story_recurrence(struct fr_buf *b, const struct fr_incident *in);                            /* will it recur */
void fr_story_confidence(struct fr_buf *b, const struct fr_incident *in);
void fr_story_resume(struct fr_buf *b, const struct fr_incident *in);   /* nothing when nothing is known */
/* The step to take at once: the emergency measure where a restart is in order, else the fix. NULL none. */
const char *fr_story_step(const struct fr_incident *in);
/* The first check of the page that can be typed; NULL none. */
const char *fr_story_typed_check(const struct fr_failure *f);
/* Commands that take the node out, Slurm and Kubernetes; false when there is no node to name or no reason to. Node names
 * that a shell would not take literally are left out, because somebody will paste this. */
bool fr_story_drain(const struct fr_incident *in, struct fr_buf *slurm, struct fr_buf *kubernetes);

/* 0, or -FR_LIMIT / -FR_NOMEM when appending to out failed: the last line of every writer. */
int fr_words_finish(const struct fr_buf *out, struct fr_err *err);

#endif
