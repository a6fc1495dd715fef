/* SPDX-License-Identifier: Apache-2.0 */
/* tree: building JSON (jansson) for the writers that need it. A failed allocation anywhere makes fr_tree_dump fail; until
 * then NULL nodes are carried along, so callers build without checking. Nodes are owned by the tree they are set in. */
#ifndef FR_REPORT_TREE_H
#define FR_REPORT_TREE_H

#include "base/buf.h"
#include "base/err.h"
#include "model/record.h"

#include <jansson.h>

json_t *fr_tree_root(void);                                    /* begin here: forgets earlier losses */
json_t *fr_tree_text(fr_sv s);                                 /* bad bytes become U+FFFD */
json_t *fr_tree_strings(const char *const *v);                 /* NULL-terminated, NULL = [] */
void fr_tree_set(json_t *o, const char *key, json_t *value);   /* takes value */
void fr_tree_push(json_t *array, json_t *value);               /* takes value */
void fr_tree_str(json_t *o, const char *key, fr_sv s);
void fr_tree_maybe(json_t *o, const char *key, fr_sv s);       /* null when empty */
void fr_tree_int(json_t *o, const char *key, int64_t n);
void fr_tree_known(json_t *o, const char *key, int64_t n);     /* null when negative */
void fr_tree_real(json_t *o, const char *key, double d);       /* null unless finite */
void fr_tree_when(json_t *o, const struct fr_when *w);         /* "time" and "time_basis" */
/* Text that was built in a buffer: a failure of the buffer counts as a loss. */
void fr_tree_buf(json_t *o, const char *key, const struct fr_buf *b);
/* A path as a URI reference: all but unreserved characters and '/' is percent-encoded. */
void fr_tree_uri(json_t *o, const char *key, fr_sv path);
json_t *fr_tree_array_at(json_t *o, fr_sv key);                /* found or made; borrowed */
/* Appends root and a newline to out, and frees root. */
int fr_tree_dump(json_t *root, struct fr_buf *out, struct fr_err *err);

#endif
