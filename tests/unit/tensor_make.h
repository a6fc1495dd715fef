/* SPDX-License-Identifier: Apache-2.0 */
/* tensor_make: safetensors files for tests, tensor by tensor. made_begin(); made_add(...); path =
 * made_write("name"). Values are given as doubles and rounded to the type. One file at a time;
 * files are removed by made_clean(). */
#ifndef FR_TESTS_TENSOR_MAKE_H
#define FR_TESTS_TENSOR_MAKE_H

#include "faultrank/numerics.h"
#include "support/t.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    char header[1 << 16];
    unsigned char *data;
    size_t n, at, cap;
} made;
static char made_folder[200], made_paths[64][300];
static unsigned made_files;

static inline void made_begin(void)
{
    made.n = made.at = 0;
    made.header[0] = '\0';
}

/* rows x columns (rows 0: one dimension) from a function of the element's number. */
static inline void made_add(const char *name, uint32_t dtype, unsigned rows, unsigned columns,
                            double (*value)(size_t i, void *ctx), void *ctx)
{
    const struct fr_dtype_info *info = fr_dtype_info(dtype);
    const size_t width = info->bits / 8u, count = (size_t)(rows > 0 ? rows : 1) * columns,
                 bytes = count * width;
    char shape[64];
    snprintf(shape, sizeof shape, rows > 0 ? "%u,%u" : "%.0u%u", rows, columns);
    made.n += (size_t)snprintf(
        made.header + made.n, sizeof made.header - made.n,
        "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
        made.n > 0 ? "," : "", name, info->safetensors, shape, made.at, made.at + bytes);
    if (made.at + bytes > made.cap) {
        made.cap = (made.at + bytes) * 2;
        made.data = realloc(made.data, made.cap);
    }
    for (size_t i = 0; i < count; i++) {
        const double x = value(i, ctx);
        const float f = (float)x;
        const uint32_t code =
            dtype == FR_F64 || dtype == FR_F32 ? 0 : fr_encode(dtype, x, FR_OVERFLOW_IEEE);
        memcpy(made.data + made.at + i * width,
               dtype == FR_F64   ? (const void *)&x
               : dtype == FR_F32 ? (const void *)&f
                                 : (const void *)&code,
               width);
    }
    made.at += bytes;
}

static inline const char *made_path(const char *name)
{
    char *path = made_paths[made_files++ % 64];
    if (made_folder[0] == '\0') {
        snprintf(made_folder, sizeof made_folder, "%s/fr-check-XXXXXX",
                 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        if (mkdtemp(made_folder) == NULL) {
            perror(made_folder);
            exit(1);
        }
    }
    snprintf(path, sizeof made_paths[0], "%s/%s", made_folder, name);
    for (char *slash = strchr(path + strlen(made_folder) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    return path;
}

static inline const char *made_text(const char *name, const void *p, size_t n)
{
    const char *path = made_path(name);
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(p, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
    return path;
}

static inline const char *made_write(const char *name)
{
    static unsigned char all[4 << 20];
    const size_t inside = made.n + 2, padded = (inside + 7) / 8 * 8;
    const uint64_t n = padded;
    memcpy(all, &n, 8);
    memset(all + 8, ' ', padded);
    all[8] = '{';
    memcpy(all + 9, made.header, made.n);
    all[9 + made.n] = '}';
    memcpy(all + 8 + padded, made.data, made.at);
    return made_text(name, all, 8 + padded + made.at);
}

static inline void made_clean(void)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", made_folder);
    if (made_folder[0] != '\0' && system(command) != 0) {
        perror(command);
    }
    free(made.data);
}

/* ---- values ---- */

static inline double made_zero(size_t i, void *ctx)
{
    (void)i;
    (void)ctx;
    return 0;
}

/* ctx: double, every element. */
static inline double made_same(size_t i, void *ctx)
{
    (void)i;
    return *(double *)ctx;
}

/* ctx: struct noise; bell-shaped, the same for the same seed. */
struct noise {
    uint64_t seed;
    double sigma;
    size_t at; /* element that is something else, when `set` */
    double other;
    bool set;
};

static inline double made_noise(size_t i, void *ctx)
{
    const struct noise *n = ctx;
    uint64_t x = (n->seed + 1) * 0x9e3779b97f4a7c15ull + i * 0xd1342543de82ef95ull;
    double sum = -2;
    for (int k = 0; k < 4; k++) {
        x ^= x >> 29;
        x *= 0xbf58476d1ce4e5b9ull;
        x ^= x >> 32;
        sum += (double)(x >> 40) * 0x1p-24;
    }
    return n->set && i == n->at ? n->other : sum * 1.7 * n->sigma;
}

#endif
