/* SPDX-License-Identifier: Apache-2.0 */
/* kernels: the RMS norm kernel and what it is compared with, each printing its user CPU seconds for
 * the same rows: fp16 in memory, hidden 4096, weight fp16.
 *   kernels rms | naive                in cache: 16 rows, many times
 *   kernels rms-far | stream | copy    out of cache: 256 MiB in, 256 MiB out
 * naive accumulates in half, as a C loop is first written; stream reads and writes the same bytes by
 * plain loads and stores, copy by memcpy (which goes past the cache). Built -O3 -march=native; the
 * kernel comes from the library as it is shipped. */
#include "faultrank/numerics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { HIDDEN = 4096, NEAR_ROWS = 16, FAR_ROWS = 32768 };

typedef _Float16 half;
typedef uint64_t chunk __attribute__((vector_size(32), aligned(32), may_alias));

static double user_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)r.ru_utime.tv_sec + (double)r.ru_utime.tv_usec * 1e-6;
}

__attribute__((noinline)) static void naive(const half *x, const half *w, float eps, half *y)
{
    half sum = 0;
    for (size_t i = 0; i < HIDDEN; i++) {
        sum += x[i] * x[i];
    }
    const half r = (half)(1 / sqrtf((float)(sum / HIDDEN + (half)eps)));
    for (size_t i = 0; i < HIDDEN; i++) {
        y[i] = x[i] * r * w[i];
    }
}

__attribute__((noinline)) static void stream(const half *x, half *y, size_t bytes)
{
    const chunk *from = (const chunk *)(const void *)x;
    chunk *to = (chunk *)(void *)y;
    for (size_t i = 0; i < bytes / sizeof *to; i += 4) {
        const chunk a = from[i], b = from[i + 1], c = from[i + 2], d = from[i + 3];
        to[i] = a;
        to[i + 1] = b;
        to[i + 2] = c;
        to[i + 3] = d;
    }
}

static void once(const char *what, size_t rows, const half *x, const half *w, half *y)
{
    const struct fr_in in = {x, FR_F16, HIDDEN}, weight = {w, FR_F16, 0};
    if (strncmp(what, "rms", 3) == 0) {
        fr_kernel_rms_norm(rows, HIDDEN, in, weight, 1e-6f, (struct fr_out){y, FR_F16, HIDDEN});
    } else if (strcmp(what, "naive") == 0) {
        for (size_t i = 0; i < rows; i++) {
            naive(x + i * HIDDEN, w, 1e-6f, y + i * HIDDEN);
        }
    } else if (strcmp(what, "stream") == 0) {
        stream(x, y, rows * HIDDEN * sizeof *x);
    } else {
        memcpy(y, x, rows * HIDDEN * sizeof *x);
    }
    __asm__ volatile("" : : "r"(y) : "memory"); /* the results count as used */
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "rms";
    const int far = strcmp(what, "rms") != 0 && strcmp(what, "naive") != 0;
    const size_t rows = far ? FAR_ROWS : NEAR_ROWS, n = rows * HIDDEN;
    half *x = aligned_alloc(64, n * sizeof *x), *y = aligned_alloc(64, n * sizeof *y), w[HIDDEN];
    if (x == NULL || y == NULL) {
        return 74;
    }
    for (size_t i = 0; i < HIDDEN; i++) {
        w[i] = (half)(1 + (float)(i % 7) / 8);
    }
    for (size_t i = 0; i < n; i++) { /* small: a sum in half stays finite, and so does its speed */
        x[i] = (half)((float)(i * 2654435761u % 1000) / 1000 - 0.5f);
    }
    memset(y, 1, n * sizeof *y);
    const int times = far ? 4 : strcmp(what, "naive") == 0 ? 300 : 3000;
    once(what, rows, x, w, y);
    const double begin = user_seconds();
    for (int i = 0; i < times; i++) {
        once(what, rows, x, w, y);
    }
    printf("%.6g\n", (user_seconds() - begin) / times);
    free(x);
    free(y);
    return 0;
}
