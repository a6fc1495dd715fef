/* SPDX-License-Identifier: Apache-2.0 */
/* yardstick: ceilings and peers for bench/run.
 *   yardstick read THREADS FILE...   reads every byte into a buffer of 256 KiB
 *   yardstick patterns               prints the patterns of the built-in signals, one a line
 *   yardstick scan PATTERNS FILE...  the same reading, and a Vectorscan block scan of every buffer
 *   yardstick unzstd FILE...         decodes into a buffer of 256 KiB
 * Prints the CPU seconds of the work, without compiling patterns, where that is not the whole process. */
#include "failure/library.h"

#include <errno.h>
#include <fcntl.h>
#include <hs/hs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#define BUFFER ((size_t)256 << 10)

static void die(const char *what)
{
    fprintf(stderr, "yardstick: %s: %s\n", what, strerror(errno));
    exit(1);
}

static char *buffer(size_t n)
{
    char *b = aligned_alloc(4096, n);
    if (b == NULL) {
        die("memory");
    }
    return b;
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0) {
        die(path);
    }
    return fd;
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- read ---- */

static char **files;
static unsigned n_files;
static atomic_uint next_file;

static void *read_files(void *arg)
{
    char *b = buffer(BUFFER);
    unsigned i;
    (void)arg;
    while ((i = atomic_fetch_add(&next_file, 1)) < n_files) {
        int fd = open_file(files[i]);
        while (read(fd, b, BUFFER) > 0) {
        }
        close(fd);
    }
    free(b);
    return NULL;
}

static int do_read(char **argv)
{
    unsigned threads = (unsigned)atoi(argv[0]), started = 1;
    pthread_t t[64];
    files = argv + 1;
    while (files[n_files] != NULL) {
        n_files++;
    }
    for (; started < threads && started < 64; started++) {
        if (pthread_create(&t[started], NULL, read_files, NULL) != 0) {
            break;
        }
    }
    read_files(NULL);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(t[i], NULL);
    }
    return 0;
}

/* ---- patterns ---- */

/* Bytes over 0x7f as escapes, so that every engine takes them; special characters too when it is a literal. */
static void put(const char *p, bool is_literal)
{
    for (; *p != '\0'; p++) {
        if ((unsigned char)*p >= 0x80) {
            printf("\\x%02x", (unsigned char)*p);
            continue;
        }
        if (is_literal && strchr("\\^$.|?*+()[]{}", *p) != NULL) {
            putchar('\\');
        }
        putchar(*p);
    }
    putchar('\n');
}

/* A signal's regex is what decides; its literals do where it has none. */
static int do_patterns(void)
{
    const struct fr_library *lib = fr_library_builtin();
    for (uint32_t i = 0; i < lib->n_signals; i++) {
        const struct fr_signal *s = &lib->signals[i];
        if (s->literals == NULL) {
            continue;
        }
        if (s->regex != NULL) {
            put(s->regex, false);
            continue;
        }
        for (const char *const *l = s->literals; *l != NULL; l++) {
            put(*l, true);
        }
    }
    return 0;
}

/* ---- scan ---- */

static int on_match(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *ctx)
{
    (void)id;
    (void)from;
    (void)to;
    (void)flags;
    ++*(unsigned long *)ctx;
    return 0;
}

static hs_database_t *compile(const char *path)
{
    static char *lines[65536];
    static unsigned flags[65536], ids[65536];
    unsigned n = 0;
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        die(path);
    }
    for (ssize_t got; n < 65536 && (got = getline(&line, &cap, f)) > 0; n++) {
        line[got - (line[got - 1] == '\n')] = '\0';
        lines[n] = strdup(line);
        ids[n] = n;
        flags[n] = HS_FLAG_MULTILINE;
    }
    free(line);
    fclose(f);
    hs_database_t *db = NULL;
    hs_compile_error_t *err = NULL;
    if (hs_compile_multi((const char *const *)lines, flags, ids, n, HS_MODE_BLOCK, NULL, &db, &err) != HS_SUCCESS) {
        fprintf(stderr, "yardstick: pattern %d: %s\n", err->expression, err->message);
        exit(1);
    }
    return db;
}

static int do_scan(char **argv)
{
    hs_database_t *db = compile(*argv++);
    hs_scratch_t *scratch = NULL;
    unsigned long hits = 0;
    char *b = buffer(2 * BUFFER);
    if (hs_alloc_scratch(db, &scratch) != HS_SUCCESS) {
        die("scratch");
    }
    double start = cpu_s();
    for (; *argv != NULL; argv++) {
        int fd = open_file(*argv);
        size_t have = 0;
        ssize_t got;
        while ((got = read(fd, b + have, BUFFER)) > 0) {
            have += (size_t)got;
            const char *nl = memrchr(b, '\n', have); /* patterns must not be cut: scan whole lines */
            size_t n = nl != NULL ? (size_t)(nl - b) + 1 : have > BUFFER ? have : 0;
            if (hs_scan(db, b, (unsigned)n, 0, scratch, on_match, &hits) != HS_SUCCESS) {
                die("scan");
            }
            memmove(b, b + n, have - n);
            have -= n;
        }
        hs_scan(db, b, (unsigned)have, 0, scratch, on_match, &hits);
        close(fd);
    }
    printf("%.6f\n", cpu_s() - start);
    fprintf(stderr, "%lu matches\n", hits);
    return 0;
}

/* ---- zstd ---- */

static int do_unzstd(char **argv)
{
    ZSTD_DStream *d = ZSTD_createDStream();
    char *in = buffer(BUFFER), *out = buffer(BUFFER);
    for (; *argv != NULL; argv++) {
        int fd = open_file(*argv);
        ssize_t got;
        ZSTD_initDStream(d);
        while ((got = read(fd, in, BUFFER)) > 0) {
            ZSTD_inBuffer i = {in, (size_t)got, 0};
            ZSTD_outBuffer o;
            do {
                o = (ZSTD_outBuffer){out, BUFFER, 0};
                if (ZSTD_isError(ZSTD_decompressStream(d, &o, &i))) {
                    die(*argv);
                }
            } while (i.pos < i.size || o.pos == o.size);
        }
        close(fd);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "patterns") == 0) {
        return do_patterns();
    }
    if (argc >= 4 && strcmp(argv[1], "read") == 0) {
        return do_read(argv + 2);
    }
    if (argc >= 4 && strcmp(argv[1], "scan") == 0) {
        return do_scan(argv + 2);
    }
    if (argc >= 3 && strcmp(argv[1], "unzstd") == 0) {
        return do_unzstd(argv + 2);
    }
    fputs("usage: yardstick read THREADS FILE... | patterns | scan PATTERNS FILE... | unzstd FILE...\n", stderr);
    return 64;
}
