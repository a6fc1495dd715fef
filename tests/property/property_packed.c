/* SPDX-License-Identifier: Apache-2.0 */
/* One file plain, as gzip and as zstd gives one report, apart from its name. */
#include "support/logs.h"
#include "support/pipeline.h"
#include "support/t.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

static void slurp(const char *path, struct fr_buf *out)
{
    char part[8192];
    FILE *f = fopen(path, "rb");
    size_t n = 0;
    while (f != NULL && (n = fread(part, 1, sizeof part, f)) > 0) {
        fr_buf_add(out, (fr_sv){part, n});
    }
    if (f == NULL || fclose(f) != 0) {
        abort();
    }
}

static void pack(const char *path, fr_sv bytes, int (*filter)(struct archive *))
{
    static const struct timespec times[2] = {{.tv_sec = 1773050400}, {.tv_sec = 1773050400}};
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, "data");
    archive_entry_set_filetype(e, AE_IFREG);
    archive_write_set_format_raw(a);
    archive_write_add_filter_none(a);
    if (filter != NULL) {
        filter(a);
    }
    if (archive_write_open_filename(a, path) != ARCHIVE_OK || archive_write_header(a, e) != ARCHIVE_OK ||
        archive_write_data(a, bytes.p, bytes.n) != (la_ssize_t)bytes.n || archive_write_close(a) != ARCHIVE_OK) {
        fprintf(stderr, "cannot pack %s: %s\n", path, archive_error_string(a));
        abort();
    }
    archive_entry_free(e);
    archive_write_free(a);
    utimensat(AT_FDCWD, path, times, 0);
}

/* The report with the temporary folder and the ending of the compressed name taken out. */
static void report_of(const struct logs *l, const char *path, fr_sv ending, struct fr_buf *out)
{
    FR_AUTO(fr_buf) json = FR_BUF_INIT(0);
    pipeline_whole(&path, 1, NULL, FR_ENGINE_AUTO, &json);
    fr_sv rest = fr_buf_sv(&json), dir = fr_sv_z(l->dir);
    while (rest.n != 0) {
        if (fr_sv_take(&rest, dir)) {
            fr_buf_addz(out, "DIR");
        } else if (ending.n == 0 || !fr_sv_take(&rest, ending)) {
            fr_buf_addc(out, rest.p[0]);
            rest = fr_sv_skip(rest, 1);
        }
    }
}

static void check(const char *source)
{
    static const struct { const char *folder, *ending; int (*filter)(struct archive *); } kinds[] = {
        {"plain", "", NULL}, {"gz", ".gz", archive_write_add_filter_gzip}, {"zst", ".zst", archive_write_add_filter_zstd}};
    FR_AUTO(fr_buf) bytes = FR_BUF_INIT(0);
    FR_AUTO(fr_buf) want = FR_BUF_INIT(0);
    struct logs l;
    logs_begin(&l);
    slurp(source, &bytes);
    for (int i = 0; i < 3; i++) {
        FR_AUTO(fr_buf) got = FR_BUF_INIT(0);
        char path[800];
        const char *name = strrchr(source, '/') + 1;
        snprintf(path, sizeof path, "%s/%s%s", l.dir, name, kinds[i].ending);
        pack(path, fr_buf_sv(&bytes), kinds[i].filter);
        report_of(&l, path, fr_sv_z(kinds[i].ending), &got);
        if (i == 0) {
            fr_buf_add(&want, fr_buf_sv(&got));
        }
        t_checks_++;
        if (!fr_sv_eq(fr_buf_sv(&got), fr_buf_sv(&want))) {
            T_FAIL("%s: %s differs from plain:\n%.1500s\n---\n%.1500s", source, kinds[i].folder, got.p, want.p);
        }
    }
    logs_end(&l);
}

T_TEST(plain_gzip_and_zstd)
{
    struct corpus c;
    corpus_load(&c, false, true);
    for (unsigned i = 0; i < c.n; i++) {
        size_t n = strlen(c.v[i]);
        if (n < 3 || strcmp(c.v[i] + n - 3, ".gz") != 0) {
            check(c.v[i]);
        }
    }
    corpus_free(&c);
}

int main(void)
{
    return t_run();
}
