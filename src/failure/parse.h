/* SPDX-License-Identifier: Apache-2.0 */
/* parse: one failure file to one fr_failure and its signals, in the caller's arena.
 * Every complaint goes through the callback with file and line, so one run shows all that is wrong
 * with a file. Bounded: FR_FAILURE_FILE_MAX bytes, FR_FAILURE_SIGNALS_MAX signals, and yaml.h's
 * limits. */
#ifndef FR_FAILURE_PARSE_H
#define FR_FAILURE_PARSE_H

#include "failure/library.h"

#define FR_FAILURE_FILE_MAX    (1u << 20)
#define FR_FAILURE_SIGNALS_MAX 64
#define FR_LITERAL_MIN         5
#define FR_LITERAL_MAX         240

enum fr_complaint { FR_COMPLAINT_ERROR, FR_COMPLAINT_WARNING };
/* text: one sentence without file and line; valid during the call. line 0 = the file as a whole. */
typedef void (*fr_complain_fn)(void *ctx, enum fr_complaint level, const char *path, uint32_t line,
                               const char *text);
struct fr_complain {
    fr_complain_fn fn; /* may be NULL */
    void *ctx;
    uint32_t errors, warnings;
};
__attribute__((format(printf, 5, 6))) void fr_complain(struct fr_complain *c,
                                                       enum fr_complaint level, const char *path,
                                                       uint32_t line, const char *fmt, ...);

struct fr_parsed {
    struct fr_failure failure; /* first_signal is 0: the library numbers them */
    const struct fr_signal *signals;
};

/* path is kept (copied); its last part names the id, the folder before it the category. 0,
 * -FR_SYNTAX after at least one complaint of level ERROR, or -FR_NOMEM. */
int fr_failure_parse(fr_sv text, const char *path, struct fr_arena *arena,
                     struct fr_complain *complain, struct fr_parsed *ret);

/* Words a front matter may use; NULL-terminated, for lint and help. */
extern const char *const fr_failure_categories[];

#endif
