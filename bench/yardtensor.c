/* SPDX-License-Identifier: Apache-2.0 */
/* yardtensor: the ceiling of a checkpoint scan, and its engines alone, for bench/run.
 *   yardtensor map THREADS FILE...          maps windows of 32 MiB and loads every byte of them
 *   yardtensor tally ENGINE DTYPE FILE...   the same windows through one engine of
 * numerics/tally.h, header and all */
#include "numerics/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW ((size_t)32 << 20)

static char **files;
static atomic_ulong next_window;
static volatile long long sink;
static uint32_t dtype; /* 0: only load */

static void die(const char *what)
{
    fprintf(stderr, "yardtensor: %s: %s\n", what, strerror(errno));
    exit(1);
}

typedef long long vector __attribute__((vector_size(32), aligned(1)));

/* Four vectors at a time; `or` keeps the adders out of it. */
#if defined(__x86_64__)
__attribute__((target("avx2")))
#endif
static void
load_all(const char *p, size_t n)
{
    vector a = {0}, b = a, c = a, d = a;
    for (size_t i = 0; i + 128 <= n; i += 128) {
        a |= *(const vector *)(const void *)(p + i);
        b |= *(const vector *)(const void *)(p + i + 32);
        c |= *(const vector *)(const void *)(p + i + 64);
        d |= *(const vector *)(const void *)(p + i + 96);
    }
    a |= b | c | d;
    sink = a[0] | a[1] | a[2] | a[3];
}

static void do_window(int fd, size_t size, size_t at)
{
    const size_t n = size - at < WINDOW ? size - at : WINDOW;
    struct fr_tally t = {0};
    void *p = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, (off_t)at);
    if (p == MAP_FAILED) {
        die("mmap");
    }
    (void)madvise(
        p, n,
        MADV_SEQUENTIAL); /* faults cost a third of MADV_POPULATE_READ, see src/tensor/spans.c */
    if (dtype != 0) {
        fr_tally_add(dtype, p, n, &t);
        sink = (long long)t.zero;
    } else {
        load_all(p, n);
    }
    munmap(p, n);
}

static void *work(void *arg)
{
    unsigned long mine = atomic_fetch_add(&next_window, 1), before = 0;
    (void)arg;
    for (char **f = files; *f != NULL; f++) {
        struct stat st;
        const int fd = open(*f, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) != 0) {
            die(*f);
        }
        const unsigned long windows = ((unsigned long)st.st_size + WINDOW - 1) / WINDOW;
        for (; mine < before + windows; mine = atomic_fetch_add(&next_window, 1)) {
            do_window(fd, (size_t)st.st_size, (mine - before) * WINDOW);
        }
        before += windows;
        close(fd);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t other[64];
    unsigned threads = 1, started = 1;
    if (argc >= 4 && strcmp(argv[1], "map") == 0) {
        threads = (unsigned)atoi(argv[2]);
        files = argv + 3;
    } else if (argc >= 5 && strcmp(argv[1], "tally") == 0 && fr_tally_use(argv[2]) &&
               fr_dtype_find(argv[3]) != 0) {
        dtype = fr_dtype_find(argv[3]);
        files = argv + 4;
    } else {
        fputs("usage: yardtensor map THREADS FILE... | tally ENGINE DTYPE FILE...\n", stderr);
        return 64;
    }
    for (; started < threads && started < 64; started++) {
        if (pthread_create(&other[started], NULL, work, NULL) != 0) {
            break;
        }
    }
    work(NULL);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(other[i], NULL);
    }
    return 0;
}
