/* SPDX-License-Identifier: Apache-2.0 */
/* faultrank: reads the logs of a failed training or inference run and says which rank failed first, why, and what to do.
 *
 * The only public header of the engine. Handles are opaque and not thread-safe; different handles may be used in
 * different threads. Nothing here prints, exits or opens a network connection. Strings are UTF-8.
 *
 *   struct fr_engine *e = NULL; struct fr_err err = {0};
 *   struct fr_engine_options o = { .size = sizeof o };
 *   if (fr_engine_new(&o, &e, &err) == 0 && fr_engine_add(e, "runs/42/", &err) == 0 && fr_engine_run(e, &err) == 0)
 *       report = fr_engine_report(e);
 *   fr_engine_free(&e);
 */
#ifndef FAULTRANK_H
#define FAULTRANK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fr_engine;
struct fr_report;
struct fr_library;
struct fr_err;

#define FR_VERSION "0.1.0"
const char *fr_version(void);

struct fr_engine_options {
    size_t size;              /* sizeof(struct fr_engine_options): later versions append fields */
    uint32_t threads;         /* 0 = one per core, at most the number of files */
    const char *failures_dir; /* a user's own failure files, NULL = built-in ones only */
    const char *cache_dir;    /* where compiled rules of failures_dir may be kept, NULL = nowhere */
    uint32_t engine;          /* scan engine: 0 auto, 1 portable, 2 avx2, 3 avx512 (unsupported ones fall back) */
    void (*progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total); /* any thread; NULL = none */
    void *progress_ctx;
};

/* 0 or a negative FR_* of base/err.h with *err filled. *ret is NULL on failure. */
int fr_engine_new(const struct fr_engine_options *options, struct fr_engine **ret, struct fr_err *err);
/* Adds a file, folder, glob or "-" (stdin). Unusable paths are remembered and appear as input.skipped. */
int fr_engine_add(struct fr_engine *e, const char *path, struct fr_err *err);
/* Reads everything and decides. -FR_ABSENT when nothing at all could be read. Once per handle. */
int fr_engine_run(struct fr_engine *e, struct fr_err *err);
/* The result; owned by the engine, valid until fr_engine_free. NULL before fr_engine_run succeeded. */
const struct fr_report *fr_engine_report(const struct fr_engine *e);
const struct fr_library *fr_engine_library(const struct fr_engine *e);
/* Which of the library's signals fire on text (n bytes, any number of lines; metric signals too). Fills at most max indexes;
 * returns their number or a negative FR_*. Independent of add/run; text is borrowed for the call. */
int fr_engine_match(struct fr_engine *e, const char *text, size_t n, uint16_t *signals, uint32_t max);
void fr_engine_free(struct fr_engine **e);

#ifdef __cplusplus
}
#endif
#endif
