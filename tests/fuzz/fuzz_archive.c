/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_archive: any bytes as a file: compressed, archived, nested, damaged. Reading ends, within its limits. */
#include "base/alloc.h"
#include "read/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void count_skip(void *ctx, fr_sv source, fr_sv why)
{
    unsigned *n = ctx;
    if (source.n == 0 || why.n == 0 || ++*n > 100000) {
        abort();
    }
}

static void read_all(struct fr_input *in, unsigned *skips)
{
    struct fr_reader *r = NULL;
    struct fr_member m;
    struct fr_chunk c;
    uint64_t bytes = 0, members = 0;
    if (fr_input_count(in) != 1 || fr_reader_new(in, count_skip, skips, &r, NULL) != 0) {
        abort();
    }
    if (fr_reader_open(r, 0, NULL) != 0) {
        abort();
    }
    while (fr_reader_member(r, &m, NULL) == 1) {
        uint64_t at = 0;
        if (++members > 2000 || m.name.n == 0) {
            abort();
        }
        while (fr_reader_chunk(r, &c, NULL) == 1) {
            if (c.offset < at) {
                abort();
            }
            at = c.offset + c.bytes.n;
            bytes += c.bytes.n;
        }
    }
    if (bytes > 8u << 20) { /* max_unpacked and what sits in buffers */
        abort();
    }
    fr_reader_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fr_input_limits limits = fr_input_default_limits;
    struct fr_input *in = NULL;
    unsigned skips = 0;
    char path[64];
    int fd = memfd_create("input", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    limits.max_members = 40;
    limits.max_unpacked = 4 << 20;
    limits.buffer = 4096;
    limits.edge = 1000;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fr_input_new(&limits, &in, NULL) != 0 || fr_input_add(in, path, count_skip, &skips, NULL) != 0) {
        abort();
    }
    read_all(in, &skips);
    fr_input_free(&in);
    close(fd);
    return 0;
}
