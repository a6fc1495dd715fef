/* SPDX-License-Identifier: Apache-2.0 */
/* out: the only place of the program that prints. */
#include "cli/cli.h"

#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

int fr_fail(int status, const char *fmt, ...)
{
    char msg[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(msg, sizeof msg, fmt, ap);
    va_end(ap);
    FR_AUTO(fr_buf) line = FR_BUF_INIT(0);
    fr_buf_addz(&line, "faultrank: ");
    fr_utf8_clean(&line, fr_sv_z(msg), 0); /* file names are hostile input, too */
    fr_buf_addc(&line, '\n');
    (void)!write(STDERR_FILENO, line.p, line.n);
    return status;
}

int fr_fail_err(const struct fr_err *err)
{
    int status = FR_EXIT_SOFTWARE;
    switch (err->code) {
    case FR_IO:
        status = FR_EXIT_IO;
        break;
    case FR_SYNTAX:
    case FR_LIMIT:
        status = FR_EXIT_DATA;
        break;
    case FR_ARG:
        status = FR_EXIT_USAGE;
        break;
    case FR_ABSENT:
        status = FR_EXIT_NOINPUT;
        break;
    default:
        break;
    }
    return fr_fail(status, "%s", err->msg);
}

/* 0 or an errno. */
static int write_all(int fd, const struct fr_buf *out)
{
    for (size_t done = 0; done < out->n;) {
        ssize_t n = write(fd, out->p + done, out->n - done);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int fr_print(const struct fr_buf *out)
{
    if (!fr_buf_ok(out)) {
        return fr_fail(FR_EXIT_SOFTWARE, "out of memory");
    }
    int e = write_all(STDOUT_FILENO, out);
    if (e != 0 && e != EPIPE) {
        return fr_fail(FR_EXIT_IO, "cannot write to standard output: %s", strerror(e));
    }
    return 0;
}

int fr_save(const char *path, const struct fr_buf *out)
{
    struct stat st;
    /* A device, a FIFO or /dev/stdout can't be replaced, only written to. */
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        int fd = S_ISDIR(st.st_mode) ? -1 : open(path, O_WRONLY | O_CLOEXEC);
        int e = S_ISDIR(st.st_mode) ? EISDIR : fd < 0 ? errno : write_all(fd, out);
        if (fd >= 0) {
            close(fd);
        }
        return e == 0 || e == EPIPE ? 0 : fr_fail(FR_EXIT_IO, "cannot write '%s': %s", path, strerror(e));
    }
    char real[PATH_MAX];
    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, real) != NULL) {
        path = real; /* replace what the link points at, not the link */
    }
    FR_AUTO(fr_buf) temp = FR_BUF_INIT(0);
    const char *slash = strrchr(path, '/');
    fr_buf_add(&temp, fr_sv_range(path, slash != NULL ? slash + 1 : path));
    fr_buf_printf(&temp, ".%s.XXXXXX", slash != NULL ? slash + 1 : path);
    if (!fr_buf_ok(&temp)) {
        return fr_fail(FR_EXIT_SOFTWARE, "out of memory");
    }
    int fd = mkostemp(temp.p, O_CLOEXEC);
    if (fd < 0) {
        return fr_fail(FR_EXIT_IO, "cannot create a file beside '%s': %s; nothing was written", path, strerror(errno));
    }
    mode_t mask = umask(0);
    umask(mask);
    int e = write_all(fd, out);
    if (e == 0 && (fchmod(fd, 0666 & ~mask) != 0 || fsync(fd) != 0)) {
        e = errno;
    }
    if (close(fd) != 0 && e == 0) {
        e = errno;
    }
    if (e == 0 && rename(temp.p, path) != 0) {
        e = errno;
    }
    if (e != 0) {
        unlink(temp.p);
        return fr_fail(FR_EXIT_IO, "cannot write '%s': %s; nothing was changed", path, strerror(e));
    }
    return 0;
}

bool fr_color_wanted(bool forbidden)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !forbidden && (no == NULL || no[0] == '\0') && term != NULL && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO);
}

int fr_terminal_width(void)
{
    struct winsize w;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 40) {
        return w.ws_col > 120 ? 120 : w.ws_col;
    }
    return 100;
}
