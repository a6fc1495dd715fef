/* SPDX-License-Identifier: Apache-2.0 */
/* json: a pull scanner for the JSON in and beside checkpoints. Not jansson: a header may have 100
 * MB and be hostile, a key that comes twice has to be named with its byte offset, and the rest has
 * to be read on.
 *
 * Scans caller's bytes in place, allocates nothing (only fr_js_text does, in the caller's arena).
 * The first mistake sticks: `why` says what, `at` says where, and every call then yields its "no".
 * Bounded: FR_JS_DEPTH levels in what is skipped.
 *
 *     fr_js_open(&j, '{');
 *     while (fr_js_key(&j, &key)) { ... take one value ... }
 *     if (j.why != NULL) { ... malformed at j.at ... } */
#ifndef FR_TENSOR_JSON_H
#define FR_TENSOR_JSON_H

#include "base/arena.h"

#define FR_JS_DEPTH 64

struct fr_js {
    const char *p;
    size_t n, at;
    const char *why; /* static text; NULL = fine so far */
    bool fresh;      /* right after an opening bracket */
};

static inline struct fr_js fr_js_of(const char *p, size_t n)
{
    return (struct fr_js){.p = p, .n = n};
}
char fr_js_peek(struct fr_js *j);            /* next character that is no space; '\0' at the end */
bool fr_js_open(struct fr_js *j, char what); /* '{' or '[' */
bool fr_js_key(struct fr_js *j, fr_sv *raw); /* next key and its colon; false at '}' (taken) or at a
                                                mistake. raw is still escaped */
bool fr_js_item(struct fr_js *j); /* an array has one more; false at ']' (taken) or at a mistake */
bool fr_js_string(struct fr_js *j, fr_sv *raw);
bool fr_js_u64(struct fr_js *j,
               uint64_t *ret); /* an integer without sign, fraction or exponent that fits */
bool fr_js_skip(struct fr_js *j);               /* any value */
bool fr_js_end(struct fr_js *j);                /* only white space is left */
bool fr_js_fail(struct fr_js *j, const char *why);
/* A raw string without its escapes: a borrowed view when it has none, else a copy in the arena; p
 * NULL without memory. */
fr_sv fr_js_text(fr_sv raw, struct fr_arena *arena);

#endif
