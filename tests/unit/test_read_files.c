/* SPDX-License-Identifier: Apache-2.0 */
/* Files, folders, globs, streams and encodings, and every bad input that is not an archive. */
#include "test_read.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

T_TEST(a_file_as_it_is)
{
    struct t_read r = t_read_path(t_file("plain.log", FR_SV("one\r\ntwo \x1b[31mred\x1b[0m\nlatin \xe9t\xe9\nbar 1%\rbar 2%\rlast")));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("one\r\ntwo \x1b[31mred\x1b[0m\nlatin \xe9t\xe9\nbar 1%\rbar 2%\rlast"));
    T_EQ_SV(fr_buf_sv(&r.names), FR_SV("plain.log\n"));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
    T_EQ_INT(r.flags, 0); /* a last line without a newline is ordinary */
    t_read_release(&r);
}

T_TEST(an_empty_file_is_a_member_without_chunks)
{
    struct t_read r = t_read_path(t_file("empty/rank0.log", FR_SV("")));
    T_EQ_SV(fr_buf_sv(&r.names), FR_SV("empty/rank0.log\n"));
    T_EQ_INT(r.chunks, 0);
    T_EQ_INT(r.flags, 0);
    t_read_release(&r);
}

T_TEST(a_folder_is_one_run_in_natural_order)
{
    t_file("run/rank10.log", FR_SV("ten\n"));
    t_file("run/rank2.log", FR_SV("two\n"));
    t_file("run/attempt_0/3/stderr.log", FR_SV("err\n"));
    t_file("run/attempt_0/3/error.json", FR_SV("{}\n"));
    t_file("run/slurm-8_1.out", FR_SV("task\n"));
    t_file("run/.git/config", FR_SV("no\n"));
    t_file("run/.hidden", FR_SV("no\n"));
    t_file("run/model.safetensors", FR_SV("no\n"));
    t_file("run/train.py", FR_SV("CUDA out of memory\n"));
    t_file("run/labels.jsonl", FR_SV("{\"a\":1}\n"));
    t_file("run/core.77", FR_SV("\x7F" "ELF\2\1\1"));
    struct t_read r = t_read_path(t_path("run"));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("{}\nerr\n{\"a\":1}\ntwo\nten\ntask\n"));
    fr_sv skips = fr_buf_sv(&r.skips);
    T_OK(fr_sv_has(skips, FR_SV("run/.git: a hidden folder\n")));
    T_OK(fr_sv_has(skips, FR_SV("run/.hidden: a hidden file\n")));
    T_OK(fr_sv_has(skips, FR_SV("run/model.safetensors: a checkpoint")));
    T_OK(fr_sv_has(skips, FR_SV("run/train.py: a program")));
    T_OK(fr_sv_has(skips, FR_SV("run/core.77: binary file")));
    t_read_release(&r);
    char slashes[256];
    snprintf(slashes, sizeof slashes, "%s//", t_path("run"));
    r = t_read_path(slashes);
    T_EQ_INT(r.members, 6);
    T_OK(fr_sv_has(fr_buf_sv(&r.names), FR_SV("\nrun/rank2.log\n")));
    t_read_release(&r);
}

T_TEST(a_named_file_is_not_judged_by_its_name)
{
    struct t_read r = t_read_path(t_file("named/.out.py", FR_SV("Traceback\n")));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("Traceback\n"));
    t_read_release(&r);
}

T_TEST(globs)
{
    t_file("glob/a1.log", FR_SV("1\n"));
    t_file("glob/a2.log", FR_SV("2\n"));
    t_file("glob/b.txt", FR_SV("3\n"));
    struct t_read r = t_read_path(t_path("glob/*.{log,err}"));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("1\n2\n"));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
    t_read_release(&r);
    r = t_read_path(t_path("glob/*.nothing"));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("glob/*.nothing: no file matches\n"));
    t_read_release(&r);
    r = t_read_path(t_file("glob/odd[1].log", FR_SV("odd\n")));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("odd\n")); /* a file that is there is no pattern */
    t_read_release(&r);
}

T_TEST(what_cannot_be_read_is_told)
{
    char dir[256];
    snprintf(dir, sizeof dir, "%s", t_path("nothing"));
    (void)t_file("nothing/x", FR_SV(""));
    (void)unlink(t_path("nothing/x"));
    const char *paths[] = {t_path("absent.log"), "/dev/null", dir};
    struct t_read r = t_read_paths(NULL, paths, 3);
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("absent.log: cannot be read: No such file or directory\n"
                                       "/dev/null: a device, not a file\nnothing: a folder without any log\n"));
    T_EQ_INT(r.members, 0);
    t_read_release(&r);
    if (geteuid() != 0) {
        const char *path = t_file("secret.log", FR_SV("x\n"));
        (void)chmod(path, 0);
        r = t_read_path(path);
        T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("secret.log: cannot be opened: Permission denied\n"));
        t_read_release(&r);
    }
}

T_TEST(loops_links_pipes_and_sockets_in_a_folder)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    t_file("odd/sub/z.log", FR_SV("real\n"));
    T_EQ_INT(symlink("..", t_path("odd/sub/up")), 0);
    T_EQ_INT(symlink("sub", t_path("odd/elsewhere")), 0);
    T_EQ_INT(symlink("sub/z.log", t_path("odd/a-link.log")), 0);
    T_EQ_INT(link(t_path("odd/sub/z.log"), t_path("odd/sub/zz.log")), 0);
    T_EQ_INT(symlink("gone", t_path("odd/dangling.log")), 0);
    T_EQ_INT(mkfifo(t_path("odd/pipe.log"), 0600), 0);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", t_path("odd/socket"));
    T_EQ_INT(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    struct t_read r = t_read_path(t_path("odd"));
    fr_sv skips = fr_buf_sv(&r.skips);
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("real\n"));
    T_EQ_SV(fr_buf_sv(&r.names), FR_SV("odd/sub/z.log\n"));
    T_OK(fr_sv_has(skips, FR_SV("odd/sub/up: a link back to a folder around it\n")));
    T_OK(fr_sv_has(skips, FR_SV("odd/elsewhere: a link to a folder")));
    T_OK(fr_sv_has(skips, FR_SV("odd/a-link.log: the same file as another one")));
    T_OK(fr_sv_has(skips, FR_SV("odd/sub/zz.log: the same file as another one")));
    T_OK(fr_sv_has(skips, FR_SV("odd/dangling.log: a link to nowhere")));
    T_OK(fr_sv_has(skips, FR_SV("odd/pipe.log: a pipe, not a file\n")));
    T_OK(fr_sv_has(skips, FR_SV("odd/socket: a socket or device")));
    t_read_release(&r);
    close(s);
}

T_TEST(the_same_path_twice_is_read_once)
{
    const char *path = t_file("twice/rank1.log", FR_SV("x\n"));
    const char *paths[] = {path, path, t_path("twice")};
    struct t_read r = t_read_paths(NULL, paths, 3);
    T_EQ_INT(r.members, 1);
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV(""));
    t_read_release(&r);
}

T_TEST(depth_and_number_are_bounded)
{
    struct fr_input_limits limits = fr_input_default_limits;
    const char *path;
    t_file("deep/a/b/c/d/x.log", FR_SV("deep\n"));
    t_file("deep/a/y.log", FR_SV("y\n"));
    limits.max_dir_depth = 3;
    path = t_path("deep");
    struct t_read r = t_read_paths(&limits, &path, 1);
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("y\n"));
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("deep/a/b/c: folders nested too deep\n"));
    t_read_release(&r);
    for (unsigned i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/%u.log", i);
        t_file(name, FR_SV("m\n"));
    }
    limits = fr_input_default_limits;
    limits.max_units = 7;
    path = t_path("many");
    r = t_read_paths(&limits, &path, 1);
    T_EQ_INT(r.members, 7);
    T_OK(fr_sv_has(fr_buf_sv(&r.skips), FR_SV("more than 7 files")));
    t_read_release(&r);
}

T_TEST(many_small_files)
{
    char name[64];
    uint64_t calls;
    for (unsigned i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "crowd/%u/rank%u.log", i / 500, i);
        t_file(name, FR_SV("a line\n"));
    }
    for (unsigned i = 0; i < 1100; i++) {
        snprintf(name, sizeof name, "crowd/w/%u.pt", i);
        t_file(name, FR_SV("a line\n"));
    }
    calls = fr_alloc_calls();
    struct t_read r = t_read_path(t_path("crowd"));
    T_EQ_INT(r.members, 2000);
    T_EQ_INT(r.text.n, 2000 * 7);
    T_OK(fr_sv_has(fr_buf_sv(&r.skips), FR_SV("crowd: 100 more files that are no logs")));
    T_OK(fr_alloc_calls() - calls < 200); /* nothing is allocated per file */
    t_read_release(&r);
}

/* ---- files that change under us */

static struct fr_reader *open_one(struct fr_input **in, struct t_read *r, const char *path)
{
    struct fr_reader *reader = NULL;
    struct fr_member m;
    T_EQ_INT(fr_input_new(NULL, in, NULL), 0);
    T_EQ_INT(fr_input_add(*in, path, t_skip, r, NULL), 0);
    T_EQ_INT(fr_input_count(*in), 1);
    T_EQ_INT(fr_reader_new(*in, t_skip, r, &reader, NULL), 0);
    T_EQ_INT(fr_reader_open(reader, 0, NULL), 0);
    (void)m;
    return reader;
}

static const char *big_file(const char *name, size_t lines)
{
    struct fr_buf b = FR_BUF_INIT(0);
    for (size_t i = 0; i < lines; i++) {
        fr_buf_printf(&b, "%015zu\n", i);
    }
    const char *path = t_file(name, fr_buf_sv(&b));
    fr_buf_release(&b);
    return path;
}

T_TEST(a_file_that_grows)
{
    struct t_read r = {.last_seen = true};
    struct fr_input *in = NULL;
    struct fr_member m;
    struct fr_chunk c;
    const char *path = big_file("grows.log", 50000);
    struct fr_reader *reader = open_one(&in, &r, path);
    T_EQ_INT(fr_reader_member(reader, &m, NULL), 1);
    uint64_t bytes = 0;
    bool last = false;
    while (fr_reader_chunk(reader, &c, NULL) == 1) {
        if (bytes == 0) {
            FILE *f = fopen(path, "a");
            fputs("one more\n", f);
            fclose(f);
        }
        bytes += c.bytes.n;
        last = c.last;
    }
    T_EQ_INT(bytes, 50000 * 16 + 9);
    T_OK(last);
    T_EQ_INT(c.flags, 0);
    fr_reader_free(&reader);
    fr_input_free(&in);
    t_read_release(&r);
}

T_TEST(a_file_that_shrinks)
{
    struct t_read r = {.last_seen = true};
    struct fr_input *in = NULL;
    struct fr_member m;
    struct fr_chunk c;
    const char *path = big_file("shrinks.log", 100000);
    struct fr_reader *reader = open_one(&in, &r, path);
    T_EQ_INT(fr_reader_member(reader, &m, NULL), 1);
    uint64_t bytes = 0;
    while (fr_reader_chunk(reader, &c, NULL) == 1) {
        if (bytes == 0) {
            T_EQ_INT(truncate(path, 700000), 0);
        }
        bytes += c.bytes.n;
    }
    T_OK(bytes >= 700000 && bytes < 1600000);
    T_OK(c.flags & FR_SRC_TRUNCATED);
    fr_reader_free(&reader);
    fr_input_free(&in);
    t_read_release(&r);
}

T_TEST(a_file_that_vanishes_or_becomes_a_pipe)
{
    struct t_read r = {.last_seen = true};
    struct fr_input *in = NULL;
    struct fr_member m;
    const char *path = t_file("vanishes.log", FR_SV("x\n"));
    T_EQ_INT(fr_input_new(NULL, &in, NULL), 0);
    T_EQ_INT(fr_input_add(in, path, t_skip, &r, NULL), 0);
    T_EQ_INT(fr_input_count(in), 1);
    struct fr_reader *reader = NULL;
    T_EQ_INT(fr_reader_new(in, t_skip, &r, &reader, NULL), 0);
    T_EQ_INT(unlink(path), 0);
    T_EQ_INT(fr_reader_open(reader, 0, NULL), 0);
    T_EQ_INT(fr_reader_member(reader, &m, NULL), 0);
    T_EQ_INT(mkfifo(path, 0600), 0);
    T_EQ_INT(fr_reader_open(reader, 0, NULL), 0);
    T_EQ_INT(fr_reader_member(reader, &m, NULL), 0);
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("vanishes.log: cannot be opened: No such file or directory\n"
                                       "vanishes.log: not a regular file\n"));
    T_EQ_INT(fr_reader_open(reader, 1, NULL), -FR_ARG);
    fr_reader_free(&reader);
    fr_input_free(&in);
    t_read_release(&r);
}

/* ---- streams */

static struct t_read read_stdin_from(fr_sv text, size_t step)
{
    int p[2], keep = dup(0), status = 0;
    if (pipe(p) != 0) {
        abort();
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(p[0]);
        for (size_t i = 0; i < text.n; i += step) {
            size_t n = text.n - i < step ? text.n - i : step;
            if (write(p[1], text.p + i, n) != (ssize_t)n) {
                _exit(1);
            }
        }
        _exit(0);
    }
    close(p[1]);
    dup2(p[0], 0);
    close(p[0]);
    const char *paths[] = {"-", "-"};
    struct t_read r = t_read_paths(NULL, paths, 2);
    dup2(keep, 0);
    close(keep);
    waitpid(pid, &status, 0);
    T_EQ_INT(status, 0);
    return r;
}

T_TEST(stdin_is_a_pipe)
{
    struct fr_buf b = FR_BUF_INIT(0);
    for (unsigned i = 0; i < 30000; i++) {
        fr_buf_printf(&b, "line %u\n", i);
    }
    struct t_read r = read_stdin_from(fr_buf_sv(&b), 1777);
    T_EQ_SV(fr_buf_sv(&r.text), fr_buf_sv(&b));
    T_EQ_SV(fr_buf_sv(&r.names), FR_SV("-\n"));
    T_OK(r.last_seen);
    T_OK(r.tail >= 64 << 10 && r.tail < (64 << 10) + 32); /* exact, though its size was not known */
    t_read_release(&r);
    r = read_stdin_from(FR_SV(""), 1);
    T_EQ_INT(r.members, 1);
    T_EQ_INT(r.chunks, 0);
    t_read_release(&r);
    fr_buf_release(&b);
}

T_TEST(stdin_is_a_file_read_in_part)
{
    const char *path = t_file("part.log", FR_SV("first\nsecond\nthird\n"));
    int keep = dup(0), fd = open(path, O_RDONLY);
    T_OK(lseek(fd, 6, SEEK_SET) == 6);
    dup2(fd, 0);
    struct t_read r = t_read_path("-");
    dup2(keep, 0);
    close(keep);
    close(fd);
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("second\nthird\n"));
    T_OK(r.last_seen);
    t_read_release(&r);
}

T_TEST(a_pipe_that_was_asked_for)
{
    char path[256];
    snprintf(path, sizeof path, "%s", t_path("asked.fifo"));
    t_file("x", FR_SV(""));
    T_EQ_INT(mkfifo(path, 0600), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_WRONLY);
        _exit(write(fd, "hello\nworld\n", 12) == 12 ? 0 : 1);
    }
    struct t_read r = t_read_path(path);
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("hello\nworld\n"));
    t_read_release(&r);
    waitpid(pid, NULL, 0);
    r = t_read_path(path); /* nobody writes: told after a moment, no hang */
    T_EQ_SV(fr_buf_sv(&r.skips), FR_SV("asked.fifo: a pipe that nobody writes to\n"));
    t_read_release(&r);
}

/* ---- encodings and binary files */

static void put16(struct fr_buf *b, unsigned c, bool big)
{
    fr_buf_addc(b, (char)(big ? c >> 8 : c & 0xFF));
    fr_buf_addc(b, (char)(big ? c & 0xFF : c >> 8));
}

T_TEST(utf16_becomes_utf8)
{
    for (int big = 0; big < 2; big++) {
        for (unsigned shift = 0; shift < 3; shift++) { /* pairs fall on every place of a block */
            struct fr_buf raw = FR_BUF_INIT(0), want = FR_BUF_INIT(0);
            put16(&raw, 0xFEFF, big);
            for (unsigned i = 0; i < shift; i++) {
                put16(&raw, 'x', big);
                fr_buf_addc(&want, 'x');
            }
            for (unsigned i = 0; i < 3000; i++) {
                put16(&raw, 0xD83D, big);
                put16(&raw, 0xDE00, big);
                put16(&raw, 0xE9, big);
                put16(&raw, '\n', big);
                fr_buf_addz(&want, "\xF0\x9F\x98\x80\xC3\xA9\n");
            }
            put16(&raw, 0xDE00, big); /* half a pair, and half a unit */
            fr_buf_addz(&want, "\xEF\xBF\xBD\xEF\xBF\xBD");
            fr_buf_addc(&raw, 'z');
            struct t_read r = t_read_path(t_file("utf16.log", fr_buf_sv(&raw)));
            T_EQ_SV(fr_buf_sv(&r.text), fr_buf_sv(&want));
            T_OK(r.flags & FR_SRC_DECODED);
            t_read_release(&r);
            fr_buf_release(&raw);
            fr_buf_release(&want);
        }
    }
    struct t_read r = t_read_path(t_file("bare16.log", FR_SV("E\0r\0r\0o\0r\0:\0 \0n\0o\0 \0m\0a\0r\0k\0\n\0")));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("Error: no mark\n"));
    t_read_release(&r);
}

T_TEST(binary_files_are_told_from_text)
{
    static const struct { fr_sv bytes; const char *why; } rows[] = {
        {FR_SV("\x7F" "ELF\2\1\1\0\0\0\0\0\0\0\0\0"), "binary file (a program or library)"},
        {FR_SV("\x80\x04\x95\x10\0\0\0\0\0\0\0}q\0X\1\0\0\0"), "binary file (a pickle)"},
        {FR_SV("\x40\0\0\0\0\0\0\0{\"__metadata__\":{}}"), "binary file (safetensors)"},
        {FR_SV("\x93NUMPY\1\0v\0{'descr': '<f4'}"), "binary file (a NumPy array)"},
        {FR_SV("\1\2\3\4\5\6\16\17 abc \0\1\0\2"), "binary file"},
        {FR_SV("7z\xBC\xAF\x27\x1C\0\4"), "a 7z archive, which is not read: unpack it first"},
        {FR_SV("\xC4\xE3\xBA\xC3 CUDA \xB4\xED\xCE\xF3\n"), NULL}, /* GBK */
        {FR_SV("\x1b[31mred\x1b[0m \b\b\a\n"), NULL},
        {FR_SV("text before a crash\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), NULL},
        {FR_SV("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), NULL},
        {FR_SV("x"), NULL},
        {FR_SV("PK is how this log begins\n"), NULL},
        {FR_SV("BZh9 is no archive\n"), NULL},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[128] = "";
        struct t_read r = t_read_path(t_file("kind.dat", rows[i].bytes));
        if (rows[i].why != NULL) {
            snprintf(want, sizeof want, "kind.dat: %s\n", rows[i].why);
        }
        T_EQ_SV(fr_buf_sv(&r.skips), fr_sv_z(want));
        T_EQ_INT(r.members, rows[i].why == NULL);
        t_read_release(&r);
    }
}

T_TEST(nul_blocks_are_blanks)
{
    struct t_read r = t_read_path(t_file("nul.log", FR_SV("a\0\0\0b\nlonger text in this line\n")));
    T_EQ_SV(fr_buf_sv(&r.text), FR_SV("a   b\nlonger text in this line\n"));
    T_EQ_INT(r.nuls, 3);
    t_read_release(&r);
}

T_TEST(a_line_of_20_megabytes)
{
    struct fr_buf b = FR_BUF_INIT(0);
    for (unsigned i = 0; i < 20u << 20; i += 16) {
        fr_buf_addz(&b, "0123456789 bcdef");
    }
    fr_buf_addz(&b, "\nshort\n");
    struct t_read r = t_read_path(t_file("long.log", fr_buf_sv(&b)));
    T_OK(r.text.n == b.n && memcmp(r.text.p, b.p, b.n) == 0);
    T_OK(r.pieces >= 39 && (r.flags & FR_SRC_LONG_LINES));
    t_read_release(&r);
    fr_buf_release(&b);
}

T_TEST(out_of_memory_is_an_error_not_a_crash)
{
    t_file("oom/rank1.log", FR_SV("x\n"));
    const char *path = t_path("oom");
    for (long n = 0; n < 12; n++) {
        struct t_read r = {0};
        struct fr_input *in = NULL;
        struct fr_reader *reader = NULL;
        struct fr_member m;
        struct fr_chunk c;
        fr_alloc_fail_after(n);
        int rc = fr_input_new(NULL, &in, NULL);
        rc = rc != 0 ? rc : fr_input_add(in, path, NULL, &r, NULL);
        rc = rc != 0 ? rc : fr_reader_new(in, NULL, &r, &reader, NULL);
        rc = rc != 0 ? rc : fr_input_count(in) == 1 ? fr_reader_open(reader, 0, NULL) : 0;
        rc = rc != 0 ? rc : fr_reader_member(reader, &m, NULL);
        rc = rc != 1 ? rc : fr_reader_chunk(reader, &c, NULL);
        fr_alloc_fail_after(-1);
        T_OK(rc == 1 || rc == -FR_NOMEM);
        fr_reader_free(&reader);
        fr_input_free(&in);
    }
}

int main(void) { return t_run(); }
