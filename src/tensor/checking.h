/* SPDX-License-Identifier: Apache-2.0 */
/* checking: a check while it is made; what the detectors of src/tensor share. A detector looks at
 * struct fr_check's tensors and calls fr_found() for what it sees. Sticky: without memory `nomem`
 * is set, and the check fails once. */
#ifndef FR_TENSOR_CHECKING_H
#define FR_TENSOR_CHECKING_H

#include "model/check.h"
#include "tensor/check.h"
#include "tensor/checkpoint.h"
#include "tensor/config.h"
#include "tensor/survey.h"

#define FR_FINDINGS_MAX 20000

enum fr_rule {
#define X(constant, id, weight, cls, title) FR_RULE_##constant,
#include "tensor/findings.def"
#undef X
    FR_RULES
};

struct fr_checking {
    const struct fr_check_options *o;
    const struct fr_checkpoint *c;
    struct fr_check *r;
    struct fr_arena *arena;         /* the report's */
    const struct fr_survey *survey; /* by index in c->tensors; NULL until surveyed */
    struct fr_config config;
    uint32_t sums_reckoned, sums_passed; /* checksums of the step: compared, left to --crc */
    bool nomem, full;
};

/* Adds a finding; tensor NULL: of none. The text is one or two sentences without the file's name.
 * The last one added, for fields that few set; NULL when there is no room. Valid until the next. */
__attribute__((format(printf, 5, 6))) struct fr_check_finding *fr_found(
    struct fr_checking *k, enum fr_rule rule, struct fr_check_tensor *tensor, fr_sv file,
    const char *fmt, ...);
/* Sets what the rule cannot know. */
void fr_found_unknown(struct fr_check_finding *f, const char *what);
/* Sets the page of a finding whose row has none, or another one. */
void fr_found_page(struct fr_check_finding *f, const char *failure);
/* Worst first, then as listed in findings.def, then in the order of the model. */
void fr_findings_sort(struct fr_check *r);
enum fr_check_weight fr_rule_weight(enum fr_rule rule);

/* problems.c: what the readers complained about, in the steps marked. */
void fr_check_problems(struct fr_checking *k, const bool *steps, fr_sv layout);
const char *fr_page_of_error(fr_sv text); /* of a sentence with the system's reason; "" none */
void fr_check_problem(struct fr_checking *k, const struct fr_problem *p, fr_sv layout);
/* sums.c: which checksums of zips in these steps to reckon (false without memory), and what came
 * out. */
#define FR_SUM_WHOLE ((uint64_t)64 << 20) /* all members of a step that are no more together; of a */
#define FR_SUM_SMALL ((uint64_t)64 << 10) /* larger one those up to this, and all with o->crc */
bool fr_sums_list(struct fr_checking *k, uint32_t from, uint32_t to, struct fr_arena *scratch,
                  struct fr_survey_sum **ret, uint32_t *ret_n);
void fr_sums_say(struct fr_checking *k, const struct fr_survey_sum *sums, uint32_t n);
void fr_check_values(struct fr_checking *k);   /* values.c: each tensor on its own */
void fr_check_tails(struct fr_checking *k);    /* tails.c: zeros to the end of a file */
void fr_check_peers(struct fr_checking *k);    /* peers.c: tensors among each other */
void fr_check_risk(struct fr_checking *k);     /* risk.c: with config.json */
void fr_check_settings(struct fr_checking *k); /* settings.c: training settings */
/* compare.c: with o->compare, and with n replicas. */
int fr_check_compare(struct fr_checking *k, const char *const *others, uint32_t n,
                     struct fr_err *err);

#endif
