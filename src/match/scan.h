/* SPDX-License-Identifier: Apache-2.0 */
/* scan: all patterns in one pass over whole chunks. A gate (AVX-512, AVX-2 or portable, chosen at
 * run time) finds where literals may stand and counts newlines; only there the exact line is cut
 * and confirmed. Lines that match nothing cost nothing.
 * struct fr_rules is immutable and shared between threads; struct fr_scanner is one thread's state.
 * Bounded: FR_HIT_SIGNALS signals a line; a line over 64 KiB is searched by regexes in windows that
 * overlap by 4 KiB. */
#ifndef FR_MATCH_SCAN_H
#define FR_MATCH_SCAN_H

#include "base/err.h"
#include "base/view.h"
#include "failure/library.h"
#include "match/hook.h"

struct fr_rules;
struct fr_scanner;

enum fr_scan_engine { FR_ENGINE_AUTO, FR_ENGINE_PORTABLE, FR_ENGINE_AVX2, FR_ENGINE_AVX512 };

/* Patterns besides the library's signals: facts of formats, metric dialects, trace openers. match/
 * does not know those layers; the caller (engine, or the build tool) hands their literals over. */
struct fr_hooks { const struct fr_hook *v; unsigned n; };

/* The rules built into the program (tables and serialized Vectorscan databases made by the build):
 * no compiling at start. */
int fr_rules_builtin(const struct fr_rules **ret, struct fr_err *err);
/* Rules for another library (user failures), which must outlive them. Regexes are compiled, and
 * kept with a checksum under cache_dir when that is not NULL. */
int fr_rules_compile(const struct fr_library *lib, struct fr_hooks hooks, const char *cache_dir,
                     struct fr_rules **ret, struct fr_err *err);
void fr_rules_free(struct fr_rules **r);

/* An engine that this CPU lacks falls back to the next one. */
int fr_scanner_new(const struct fr_rules *rules, enum fr_scan_engine engine,
                   struct fr_scanner **ret, struct fr_err *err);
void fr_scanner_free(struct fr_scanner **s);
const char *fr_scanner_engine(const struct fr_scanner *s); /* "avx512", "avx2", "portable" */

#define FR_HIT_SIGNALS 16
struct fr_hit {
    fr_sv line;              /* without its '\n' (a last '\r' is still there); valid in the call */
    uint64_t offset, lineno; /* in the original bytes; from 1 */
    uint16_t n_signals;
    uint16_t signals[FR_HIT_SIGNALS]; /* library indexes, ascending: literal, regex, no veto */
    uint64_t facts;                   /* bit per format module whose literal occurs */
    uint64_t metrics;                 /* bit per metric dialect whose literal occurs */
    uint32_t traces;                  /* bit per trace opener */
    bool in_every;                    /* delivered because of FR_SCAN_EVERY */
    bool asked; /* a signal's literal occurs, whether or not the signal fires */
};

/* Return of the callback: what to deliver from the next line on. Negative stops with that value. */
enum { FR_SCAN_HITS = 0, FR_SCAN_EVERY = 1 };
typedef int (*fr_hit_fn)(void *ctx, const struct fr_hit *hit);

/* Scans chunk: begins at a line start, ends after a '\n' or at the end of input. first_line: number
 * of its first line. mode: FR_SCAN_HITS or FR_SCAN_EVERY at the chunk's start; returns the mode at
 * its end (>= 0) or the callback's negative. *ret_newlines = number of '\n' in chunk. The hits are
 * the same for any chunking at line ends and any engine. */
int fr_scan(struct fr_scanner *s, fr_sv chunk, uint64_t offset, uint64_t first_line, int mode,
            fr_hit_fn fn, void *ctx, uint64_t *ret_newlines);

/* Lines that the caller knows to bring what it has taken from others of their kind. `rest` goes
 * from the start of a line, of n bytes, on which a literal may stand to the end of the chunk; the
 * callback takes whole lines, each with its '\n', from its start on, and returns their bytes and
 * number. They are not delivered. It is not asked about all lines that it may know. */
typedef size_t (*fr_known_fn)(void *ctx, fr_sv rest, size_t n, uint64_t offset, uint64_t lineno,
                              uint64_t *ret_lines);
void fr_scanner_know(struct fr_scanner *s, fr_known_fn fn, void *ctx);

/* Whether a literal that has digits could stand on the line if the line had others. If not, lines
 * that differ from it in digits only have the same literals. */
bool fr_scan_digits_matter(struct fr_scanner *s, fr_sv line);

/* Whether a text signal fires on some line of text: 1 or 0, negative on failure. For lint. */
int fr_scan_fires(struct fr_scanner *s, uint16_t signal, fr_sv text);

/* Captures of one confirmed signal on one line, with PCRE2 under match limits. Views into text.
 * Returns the number filled. */
int fr_scan_captures(struct fr_scanner *s, uint16_t signal, fr_sv text, struct fr_cap *ret,
                     int max);

#endif
