/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed files and archives, made here with libarchive: every kind, one inside another, cut short, damaged, and bombs. */
#include "test_read.h"

#include <archive.h>
#include <archive_entry.h>

struct entry {
    const char *name;
    fr_sv text;
    unsigned type; /* 0: a regular file */
};

typedef int (*setter)(struct archive *);

static int no_filter(struct archive *a) { return archive_write_add_filter_none(a); }

/* Writes an archive file of these entries; with the raw format the text of the first one only. */
static const char *pack(const char *name, setter format, setter filter, const struct entry *v, unsigned n)
{
    const char *path = t_file(name, FR_SV(""));
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    bool ok = format(a) == ARCHIVE_OK && filter(a) == ARCHIVE_OK && archive_write_open_filename(a, path) == ARCHIVE_OK;
    for (unsigned i = 0; i < n && ok; i++) {
        archive_entry_clear(e);
        archive_entry_set_pathname(e, v[i].name);
        archive_entry_set_filetype(e, v[i].type != 0 ? v[i].type : AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_mtime(e, 1700000000, 0);
        archive_entry_set_size(e, (la_int64_t)v[i].text.n);
        if (v[i].type == AE_IFLNK) {
            archive_entry_set_symlink(e, "/etc/passwd");
        }
        ok = archive_write_header(a, e) >= ARCHIVE_WARN &&
             archive_write_data(a, v[i].text.p, v[i].text.n) == (la_ssize_t)v[i].text.n;
    }
    ok = archive_write_close(a) == ARCHIVE_OK && ok;
    if (!ok) {
        fprintf(stderr, "cannot make %s: %s\n", name, archive_error_string(a));
        abort();
    }
    archive_entry_free(e);
    archive_write_free(a);
    return path;
}

static struct fr_buf load(const char *path)
{
    struct fr_buf b = FR_BUF_INIT(0);
    char part[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    while ((n = fread(part, 1, sizeof part, f)) > 0) {
        fr_buf_add(&b, (fr_sv){part, n});
    }
    fclose(f);
    return b;
}

static const char *const endings[] = {"gz", "zst", "xz", "bz2", "lz4"};
static const setter filters[] = {archive_write_add_filter_gzip, archive_write_add_filter_zstd, archive_write_add_filter_xz,
                                 archive_write_add_filter_bzip2, archive_write_add_filter_lz4};

static struct fr_buf numbered(unsigned lines)
{
    struct fr_buf b = FR_BUF_INIT(0);
    for (unsigned i = 0; i < lines; i++) {
        fr_buf_printf(&b, "step %u loss %u\n", i, (i * 2654435761u) >> 8);
    }
    return b;
}

T_TEST(one_compressed_file)
{
    struct fr_buf text = numbered(30000);
    struct entry e = {"x", fr_buf_sv(&text), 0};
    for (unsigned i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "rank3.log.%s", endings[i]);
        struct t_read r = t_read_path(pack(name, archive_write_set_format_raw, filters[i], &e, 1));
        T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
        T_OK(fr_sv_eq(fr_buf_sv(&r.text), fr_buf_sv(&text)));
        fr_buf_addc(&r.names, '|');
        T_OK(fr_sv_starts(fr_buf_sv(&r.names), FR_SV("rank3.log.")) && r.members == 1);
        T_OK(r.last_seen && r.flags == 0);
        T_OK(r.tail >= 64 << 10 && r.tail < (64 << 10) + 32);
        t_read_release(&r);
    }
    fr_buf_release(&text);
}

T_TEST(any_buffer_gives_the_same_lines)
{
    static const uint32_t buffers[] = {16, 100, 4096, 100000, 1 << 20};
    struct fr_buf text = numbered(20000);
    struct entry e = {"x.log", fr_buf_sv(&text), 0};
    char plain[256], zst[256], tar[256];
    snprintf(plain, sizeof plain, "%s", t_file("sizes.log", fr_buf_sv(&text)));
    snprintf(zst, sizeof zst, "%s", pack("sizes.zst", archive_write_set_format_raw, filters[1], &e, 1));
    snprintf(tar, sizeof tar, "%s", pack("sizes.tgz", archive_write_set_format_pax, filters[0], &e, 1));
    const char *paths[] = {plain, zst, tar};
    for (unsigned i = 0; i < 15; i++) {
        struct fr_input_limits limits = fr_input_default_limits;
        limits.buffer = buffers[i / 3];
        limits.edge = i * 1000;
        struct t_read r = t_read_paths(&limits, &paths[i % 3], 1);
        T_OK(fr_sv_eq(fr_buf_sv(&r.text), fr_buf_sv(&text)));
        T_OK(r.tail >= limits.edge && r.tail < limits.edge + 40 && r.head >= limits.edge && r.head < limits.edge + 40);
        T_EQ_INT(r.pieces, 0);
        t_read_release(&r);
    }
    fr_buf_release(&text);
}

T_TEST(members_and_frames_one_after_another)
{
    struct entry e1 = {"x", FR_SV("first\n"), 0}, e2 = {"x", FR_SV("second\n"), 0};
    for (unsigned i = 0; i < 4; i++) {
        struct fr_buf a = load(pack("a", archive_write_set_format_raw, filters[i], &e1, 1));
        struct fr_buf b = load(pack("b", archive_write_set_format_raw, filters[i], &e2, 1));
        fr_buf_add(&a, fr_buf_sv(&b));
        fr_buf_add(&a, fr_buf_sv(&b));
        struct t_read r = t_read_path(t_file("both", fr_buf_sv(&a)));
        T_EQ_SV(fr_buf_sv(&r.text), FR_SV("first\nsecond\nsecond\n"));
        T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
        t_read_release(&r);
        if (i == 0) { /* padding behind gzip, as on tapes: no error */
            fr_buf_add(&a, FR_SV("\0\0\0\0\0\0\0\0"));
            r = t_read_path(t_file("padded.gz", fr_buf_sv(&a)));
            T_EQ_SV(fr_buf_sv(&r.text), FR_SV("first\nsecond\nsecond\n"));
            T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
            t_read_release(&r);
        }
        fr_buf_release(&a);
        fr_buf_release(&b);
    }
}

static const struct entry run_entries[] = {
    {"run/", {NULL, 0}, AE_IFDIR},
    {"run/rank0.log", {"zero\n", 5}, 0},
    {"run/attempt_0/1/stderr.log", {"one\n", 4}, 0},
    {"run/model.pt", {"PK", 2}, 0},
    {"run/.hidden/x.log", {"no\n", 3}, 0},
    {"run/core.9", {"\x7F" "ELF\2\1\1", 7}, 0},
    {"run/link.log", {"", 0}, AE_IFLNK},
    {"run/empty.log", {"", 0}, 0},
    {"../../etc/evil.log", {"evil\n", 5}, 0},
};
#define RUN_ENTRIES (sizeof run_entries / sizeof run_entries[0])

/* A zip that cannot be rewound keeps its links for the end: there they are small files, still without harm. */
static void check_run(const char *path, const char *base, bool links)
{
    char want[512];
    struct t_read r = t_read_path(path);
    if (!links) {
        T_OK(fr_sv_starts(fr_buf_sv(&r.text), FR_SV("zero\none\n")) && r.members == 5);
        t_read_release(&r);
        return;
    }
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("zero\none\nevil\n"));
    snprintf(want, sizeof want, "%s!run/rank0.log\n%s!run/attempt_0/1/stderr.log\n%s!run/empty.log\n%s!../../etc/evil.log\n", base,
             base, base, base);
    T_EQ_SV(fr_buf_sv(&r.names), fr_sv_z(want));
    T_EQ_INT(r.flags, 0);
    snprintf(want, sizeof want,
             "%s!run/model.pt: a checkpoint or data file, not a log\n%s!run/.hidden/x.log: a hidden folder\n"
             "%s!run/core.9: binary file (a program or library)\n%s!run/link.log: a link or device inside an archive\n",
             base, base, base, base);
    T_EQ_SV(fr_buf_sv(&r.skips), fr_sv_z(want));
    t_read_release(&r);
}

T_TEST(tar_and_zip_with_every_compression)
{
    char name[32];
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "logs.tar.%s", endings[i]);
        check_run(pack(name, archive_write_set_format_pax_restricted, filters[i], run_entries, RUN_ENTRIES), name, true);
    }
    check_run(pack("logs.tar", archive_write_set_format_gnutar, no_filter, run_entries, RUN_ENTRIES), "logs.tar", true);
    check_run(pack("old.tar", archive_write_set_format_v7tar, no_filter, run_entries, RUN_ENTRIES), "old.tar", true);
    check_run(pack("logs.zip", archive_write_set_format_zip, no_filter, run_entries, RUN_ENTRIES), "logs.zip", true);
    check_run(pack("misnamed.log", archive_write_set_format_zip, no_filter, run_entries, RUN_ENTRIES), "misnamed.log", true);
}

T_TEST(an_archive_on_stdin)
{
    static const setter formats[] = {archive_write_set_format_zip, archive_write_set_format_pax};
    for (unsigned i = 0; i < 2; i++) {
        char cmd[512];
        snprintf(cmd, sizeof cmd, "cat %s", pack("piped", formats[i], i == 0 ? no_filter : filters[0], run_entries, RUN_ENTRIES));
        FILE *p = popen(cmd, "r");
        int keep = dup(0);
        dup2(fileno(p), 0);
        check_run("-", "-", i == 1);
        dup2(keep, 0);
        close(keep);
        pclose(p);
    }
}

T_TEST(one_inside_another_once)
{
    struct entry log = {"x", FR_SV("deep inside\n"), 0};
    struct fr_buf gz = load(pack("in.gz", archive_write_set_format_raw, filters[0], &log, 1));
    struct entry inner[] = {{"node0/rank1.log.gz", fr_buf_sv(&gz), 0}, {"node0/rank2.log", FR_SV("two\n"), 0}};
    struct fr_buf tgz = load(pack("in.tgz", archive_write_set_format_gnutar, filters[0], inner, 2));
    struct entry middle[] = {{"node0.tar.gz", fr_buf_sv(&tgz), 0}, {"console.log", FR_SV("console\n"), 0}};
    struct t_read r = t_read_path(pack("bundle.zip", archive_write_set_format_zip, no_filter, middle, 2));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("deep inside\ntwo\nconsole\n"));
    T_EQ_SV(fr_buf_sv(&r.names), FR_SV("bundle.zip!node0.tar.gz!node0/rank1.log.gz\n"
                                       "bundle.zip!node0.tar.gz!node0/rank2.log\nbundle.zip!console.log\n"));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
    t_read_release(&r);
    struct fr_buf zip = load(t_path("bundle.zip"));
    struct entry outer[] = {{"bundle.zip", fr_buf_sv(&zip), 0}, {"after.log", FR_SV("after\n"), 0}};
    r = t_read_path(pack("outer.tar", archive_write_set_format_pax, no_filter, outer, 2));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("console\nafter\n"));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("outer.tar!bundle.zip!node0.tar.gz: packed inside too many archives\n"));
    t_read_release(&r);
    fr_buf_release(&gz);
    fr_buf_release(&tgz);
    fr_buf_release(&zip);
}

T_TEST(cut_short_gives_what_is_there)
{
    struct fr_buf text = numbered(40000);
    struct entry e[] = {{"a.log", fr_buf_sv(&text), 0}, {"b.log", fr_buf_sv(&text), 0}};
    for (unsigned i = 0; i < 5; i++) {
        for (unsigned tar = 0; tar < 2; tar++) {
            setter format = tar ? archive_write_set_format_pax : archive_write_set_format_raw;
            struct fr_buf b = load(pack("whole", format, filters[i], e, tar ? 2 : 1));
            struct t_read r = t_read_path(t_file("cut", fr_sv_head(fr_buf_sv(&b), b.n / 2)));
            T_OK(r.text.n < (tar + 1) * text.n);
            T_OK(r.text.n > 0 || i >= 3); /* bzip2 and lz4 come in large blocks */
            T_OK(fr_sv_starts(fr_buf_sv(&text), fr_sv_head(fr_buf_sv(&r.text), text.n)));
            T_OK((r.flags & FR_SRC_TRUNCATED) != 0 || r.members == 0);
            T_OK(r.skips.n > 0 && memchr(r.skips.p, '\n', r.skips.n) == r.skips.p + r.skips.n - 1); /* told once */
            t_read_release(&r);
            fr_buf_release(&b);
        }
    }
    struct fr_buf b = load(pack("whole.zip", archive_write_set_format_zip, no_filter, e, 2));
    struct t_read r = t_read_path(t_file("cut.zip", fr_sv_head(fr_buf_sv(&b), b.n / 3)));
    T_OK(r.skips.n > 0);
    t_read_release(&r);
    fr_buf_release(&b);
    fr_buf_release(&text);
}

T_TEST(damage_is_told_and_ends_nothing_else)
{
    struct fr_buf text = numbered(9000);
    struct entry e = {"a.log", fr_buf_sv(&text), 0};
    uint32_t x = 7;
    for (unsigned round = 0; round < 40; round++) {
        struct fr_buf b = load(pack("whole", round % 2 ? archive_write_set_format_pax : archive_write_set_format_raw,
                                    filters[round / 2 % 5], &e, 1));
        for (unsigned k = 0; k < 3; k++) {
            x = x * 1664525u + 1013904223u;
            b.p[x % b.n] ^= (char)(x >> 24 | 1);
        }
        struct t_read r = t_read_path(t_file("damaged", fr_buf_sv(&b))); /* the checks inside are the test */
        t_read_release(&r);
        fr_buf_release(&b);
    }
    fr_buf_release(&text);
    struct t_read r = t_read_path(t_file("head.gz", FR_SV("\x1F\x8B\x08\0")));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("head.gz: cut short: the gzip data end early\n"));
    t_read_release(&r);
    r = t_read_path(t_file("head.zst", FR_SV("\x28\xB5\x2F\xFD\0\xF8\0\0\0\0\0\0\0\0\0")));
    T_OK(fr_sv_starts(fr_buf_sv(&r.skips), FR_SV("head.zst: damaged zstd data")));
    t_read_release(&r);
}

T_TEST(bombs)
{
    struct fr_input_limits limits = fr_input_default_limits;
    struct fr_buf zeros = FR_BUF_INIT(0);
    char block[4096];
    memset(block, '0', sizeof block);
    block[4095] = '\n';
    for (unsigned i = 0; i < 80u << 20 >> 12; i++) {
        fr_buf_add(&zeros, (fr_sv){block, sizeof block});
    }
    struct entry e[] = {{"a.log", fr_buf_sv(&zeros), 0}, {"b.log", FR_SV("b\n"), 0}};
    limits.max_ratio = 100;
    for (unsigned i = 0; i < 2; i++) {
        const char *path = pack("bomb", archive_write_set_format_raw, filters[i], e, 1);
        struct t_read r = t_read_paths(&limits, &path, 1);
        T_OK(r.text.n >= 64u << 20 && r.text.n < 70u << 20);
        T_OK((r.flags & (FR_SRC_LIMIT | FR_SRC_TRUNCATED)) == (FR_SRC_LIMIT | FR_SRC_TRUNCATED));
        T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("bomb: unpacks to more than 100 times its size: the rest is left unread\n"));
        t_read_release(&r);
    }
    const char *path = pack("bomb.zip", archive_write_set_format_zip, no_filter, e, 2);
    struct t_read r = t_read_paths(&limits, &path, 1);
    T_OK(r.text.n < 70u << 20 && (r.flags & FR_SRC_LIMIT));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("bomb.zip!a.log: unpacks to more than 100 times its size: the rest is left unread\n"));
    t_read_release(&r);
    limits = fr_input_default_limits;
    limits.max_unpacked = 1 << 20;
    r = t_read_paths(&limits, &path, 1);
    T_OK(r.text.n < 3u << 20 && (r.flags & FR_SRC_LIMIT));
    t_read_release(&r);
    fr_buf_release(&zeros);
}

T_TEST(entries_are_bounded)
{
    struct fr_input_limits limits = fr_input_default_limits;
    struct entry e[20];
    char names[20][16];
    for (unsigned i = 0; i < 20; i++) {
        snprintf(names[i], sizeof names[i], "%u.log", i);
        e[i] = (struct entry){names[i], FR_SV("x\n"), 0};
    }
    limits.max_members = 5;
    const char *path = pack("many.tar", archive_write_set_format_pax, no_filter, e, 20);
    struct t_read r = t_read_paths(&limits, &path, 1);
    T_EQ_INT(r.members, 5);
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("many.tar: an archive with too many files: the rest is left unread\n"));
    t_read_release(&r);
}

T_TEST(archives_without_logs)
{
    struct entry checkpoint[] = {{"archive/data.pkl", FR_SV("\x80\2}q\0."), 0}, {"archive/data/0", FR_SV("\1\2\3\4"), 0}};
    struct t_read r = t_read_path(pack("model.log", archive_write_set_format_zip, no_filter, checkpoint, 2));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("model.log: a PyTorch checkpoint, not a log\n"));
    t_read_release(&r);
    r = t_read_path(t_file("empty.zip", FR_SV("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")));
    T_EQ_INT(r.members, 0);
    T_OK(fr_sv_starts(fr_buf_sv(&r.skips), FR_SV("empty.zip: ")));
    t_read_release(&r);
}

T_TEST(a_member_may_be_left_before_its_end)
{
    struct fr_buf text = numbered(60000);
    struct entry e[] = {{"a.log", fr_buf_sv(&text), 0}, {"b.log", FR_SV("b\n"), 0}};
    struct fr_input *in = NULL;
    struct fr_reader *reader = NULL;
    struct fr_member m;
    struct fr_chunk c;
    T_EQ_INT(fr_input_new(NULL, &in, NULL), 0);
    T_EQ_INT(fr_input_add(in, pack("two.tar", archive_write_set_format_pax, no_filter, e, 2), NULL, NULL, NULL), 0);
    T_EQ_INT(fr_input_count(in), 1);
    T_EQ_INT(fr_reader_new(in, NULL, NULL, &reader, NULL), 0);
    for (unsigned round = 0; round < 2; round++) { /* and a unit before its end */
        T_EQ_INT(fr_reader_open(reader, 0, NULL), 0);
        T_EQ_INT(fr_reader_member(reader, &m, NULL), 1);
        T_EQ_INT(m.mtime_ns / 1000000000, 1700000000);
        T_EQ_INT(fr_reader_chunk(reader, &c, NULL), 1);
        T_EQ_INT(fr_reader_member(reader, &m, NULL), 1);
        T_OK(fr_sv_ends(m.name, FR_SV("two.tar!b.log")));
    }
    fr_reader_free(&reader);
    fr_input_free(&in);
    fr_buf_release(&text);
}

int main(void) { return t_run(); }
