/* SPDX-License-Identifier: Apache-2.0 */
/* test_read: what the reader's tests share: a folder that goes away, files in it, and everything that reading some paths gave. */
#ifndef FR_TESTS_TEST_READ_H
#define FR_TESTS_TEST_READ_H

#include "base/alloc.h"
#include "base/buf.h"
#include "read/input.h"
#include "support/t.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char t_dir[64];

__attribute__((destructor)) static void t_dir_remove(void)
{
    char cmd[200];
    if (t_dir[0] != '\0') {
        snprintf(cmd, sizeof cmd, "chmod -R u+rwx %s; rm -rf %s", t_dir, t_dir);
        if (system(cmd) != 0) {
            fprintf(stderr, "%s stays\n", t_dir);
        }
    }
}

/* A path in the test's folder; good until eight more were asked for. */
__attribute__((unused)) static const char *t_path(const char *name)
{
    static char ring[8][256];
    static unsigned at;
    if (t_dir[0] == '\0') {
        snprintf(t_dir, sizeof t_dir, "/tmp/fr-read-XXXXXX");
        if (mkdtemp(t_dir) == NULL) {
            abort();
        }
    }
    char *p = ring[at++ % 8];
    snprintf(p, 256, "%s/%s", t_dir, name);
    return p;
}

/* Writes a file, making the folders above it. Returns its path. */
__attribute__((unused)) static const char *t_file(const char *name, fr_sv text)
{
    const char *path = t_path(name);
    char part[256];
    for (const char *slash = path + strlen(t_dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        (void)mkdir(part, 0755);
    }
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(text.p, 1, text.n, f) != text.n || fclose(f) != 0) {
        abort();
    }
    return path;
}

struct t_read {
    struct fr_buf text;    /* all chunks of all members, one after another */
    struct fr_buf names;   /* "name\n" per member, relative to the test's folder */
    struct fr_buf skips;   /* "name: why\n" */
    uint32_t flags;        /* of all members together */
    uint64_t nuls, chunks, members, pieces;
    uint64_t head, tail;   /* bytes in chunks flagged so */
    bool last_seen;        /* every member with chunks had one flagged last */
};

static fr_sv t_relative(fr_sv s)
{
    fr_sv dir = fr_sv_z(t_dir);
    return dir.n > 0 && fr_sv_starts(s, dir) ? fr_sv_skip(s, dir.n + (s.n > dir.n)) : s;
}

static void t_skip(void *ctx, fr_sv source, fr_sv why)
{
    struct t_read *r = ctx;
    fr_buf_printf(&r->skips, "%.*s: %.*s\n", FR_SV_ARG(t_relative(source)), FR_SV_ARG(why));
}

static void t_read_members(struct fr_reader *reader, struct t_read *r)
{
    struct fr_member m;
    struct fr_chunk c;
    struct fr_err err = {0};
    int rc;
    while ((rc = fr_reader_member(reader, &m, &err)) == 1) {
        bool any = false, last = false;
        uint64_t end = UINT64_MAX;
        fr_buf_printf(&r->names, "%.*s\n", FR_SV_ARG(t_relative(m.name)));
        r->members++;
        while ((rc = fr_reader_chunk(reader, &c, &err)) == 1) {
            T_OK(!last && c.bytes.n > 0);
            T_OK(end == UINT64_MAX || c.offset == end); /* nothing left out, nothing twice */
            end = c.offset + c.bytes.n;
            any = true;
            last = c.last;
            fr_buf_add(&r->text, c.bytes);
            r->chunks++;
            r->pieces += c.partial;
            r->head += c.head ? c.bytes.n : 0;
            r->tail += c.tail ? c.bytes.n : 0;
        }
        T_EQ_INT(rc, 0);
        r->last_seen &= !any || last;
        r->flags |= c.flags;
        r->nuls += c.nuls;
    }
    T_EQ_INT(rc, 0);
}

/* Reads n paths with these limits (NULL: the defaults). The caller releases the result. */
__attribute__((unused)) static struct t_read t_read_paths(const struct fr_input_limits *limits, const char *const *paths, unsigned n)
{
    struct t_read r = {.last_seen = true};
    struct fr_input *in = NULL;
    struct fr_reader *reader = NULL;
    struct fr_err err = {0};
    T_EQ_INT(fr_input_new(limits, &in, &err), 0);
    for (unsigned i = 0; i < n; i++) {
        T_EQ_INT(fr_input_add(in, paths[i], t_skip, &r, &err), 0);
    }
    uint32_t units = fr_input_count(in);
    T_EQ_INT(fr_reader_new(in, t_skip, &r, &reader, &err), 0);
    for (uint32_t u = 0; u < units; u++) {
        T_EQ_INT(fr_reader_open(reader, u, &err), 0);
        t_read_members(reader, &r);
    }
    fr_reader_free(&reader);
    fr_input_free(&in);
    return r;
}

__attribute__((unused)) static struct t_read t_read_path(const char *path)
{
    return t_read_paths(NULL, &path, 1);
}

__attribute__((unused)) static void t_read_release(struct t_read *r)
{
    fr_buf_release(&r->text);
    fr_buf_release(&r->names);
    fr_buf_release(&r->skips);
}

#endif
