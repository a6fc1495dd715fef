/* SPDX-License-Identifier: Apache-2.0 */
/* Names lie (rank3.log that is gzip, model.bin that is text), so content decides. Text is what has few control characters: the
 * high half says nothing, because logs in GBK, Shift-JIS or Latin-1 are still logs with English error lines in them. */
#include "read/sniff.h"

static const struct magic {
    uint16_t at;
    uint8_t n;
    const char *bytes;
    uint8_t content;
    const char *why;
} magics[] = {
    {0, 4, "\x28\xB5\x2F\xFD", FR_CONTENT_ZSTD, NULL},
    {0, 3, "\x1F\x8B\x08", FR_CONTENT_GZIP, NULL},
    {0, 6, "\xFD" "7zXZ\0", FR_CONTENT_XZ, NULL},
    {0, 4, "\x04\x22\x4D\x18", FR_CONTENT_LZ4, NULL},
    {0, 4, "PK\x03\x04", FR_CONTENT_ZIP, NULL},
    {0, 4, "PK\x05\x06", FR_CONTENT_ZIP, NULL}, /* a zip without files */
    {257, 5, "ustar", FR_CONTENT_TAR, NULL},
    {0, 4, "\x7F" "ELF", FR_CONTENT_BINARY, "binary file (a program or library)"},
    {0, 6, "\x93NUMPY", FR_CONTENT_BINARY, "binary file (a NumPy array)"},
    {0, 4, "PAR1", FR_CONTENT_BINARY, "binary file (Parquet)"},
    {0, 8, "\x89HDF\r\n\x1A\n", FR_CONTENT_BINARY, "binary file (HDF5)"},
    {0, 8, "\x89PNG\r\n\x1A\n", FR_CONTENT_BINARY, "binary file (an image)"},
    {0, 3, "\xFF\xD8\xFF", FR_CONTENT_BINARY, "binary file (an image)"},
    {0, 4, "GIF8", FR_CONTENT_BINARY, "binary file (an image)"},
    {0, 5, "%PDF-", FR_CONTENT_BINARY, "binary file (PDF)"},
    {0, 16, "SQLite format 3\0", FR_CONTENT_BINARY, "binary file (an SQLite database)"},
    {0, 6, "7z\xBC\xAF\x27\x1C", FR_CONTENT_BINARY, "a 7z archive, which is not read: unpack it first"},
    {0, 6, "Rar!\x1A\x07", FR_CONTENT_BINARY, "a rar archive, which is not read: unpack it first"},
    {0, 8, "LPKSHHRH", FR_CONTENT_BINARY, "a binary journal: export it with 'journalctl --file FILE -o export'"},
};

/* A tar header proves itself by its checksum, also in the old format without a magic. */
static bool is_tar(fr_sv h)
{
    unsigned sum = 0, want = 0, digits = 0;
    if (h.n < 512 || h.p[0] == '\0') {
        return false;
    }
    for (unsigned i = 148; i < 156; i++) {
        char c = h.p[i];
        if (c >= '0' && c <= '7') {
            want = want * 8 + (unsigned)(c - '0');
            digits++;
        } else if (c != ' ' && c != '\0') {
            return false;
        }
    }
    for (unsigned i = 0; i < 512; i++) {
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)h.p[i];
    }
    return digits > 0 && sum == want;
}

static bool is_bzip2(fr_sv h)
{
    return h.n >= 10 && memcmp(h.p, "BZh", 3) == 0 && h.p[3] >= '1' && h.p[3] <= '9' &&
           (memcmp(h.p + 4, "1AY&SY", 6) == 0 || memcmp(h.p + 4, "\x17rE8P\x90", 6) == 0);
}

static const char *binary_by_shape(fr_sv h)
{
    const unsigned char *u = (const unsigned char *)h.p;
    if (h.n >= 16 && u[0] == 0x80 && u[1] >= 2 && u[1] <= 5) {
        return "binary file (a pickle)";
    }
    if (h.n >= 16 && h.p[8] == '{' && (h.p[9] == '"' || h.p[9] == '}') && (u[5] | u[6] | u[7]) == 0) {
        return "binary file (safetensors)"; /* a little-endian length, then JSON */
    }
    return NULL;
}

/* UTF-16 without a mark: every other byte is NUL and the rest is printable. */
static bool looks_utf16(fr_sv h, unsigned nul_at)
{
    size_t n = h.n < 4096 ? h.n : 4096, nul = 0, ok = 0, pairs;
    for (size_t i = 0; i + 1 < n; i += 2) {
        unsigned char c = (unsigned char)h.p[i + 1 - nul_at];
        nul += h.p[i + nul_at] == '\0';
        ok += (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\r' || c == '\t' || c == 0x1B;
    }
    pairs = n / 2;
    return pairs >= 8 && nul * 10 >= pairs * 9 && ok * 10 >= pairs * 9;
}

/* Nothing odd at all, as in nearly every log; written so that the compiler makes vectors of it. */
static bool is_clean(fr_sv h)
{
    unsigned char any = 0;
    for (size_t i = 0; i < h.n; i++) {
        unsigned char c = (unsigned char)h.p[i];
        any |= (unsigned char)((c < 7) | ((unsigned char)(c - 14) < 18 && c != 0x1B) | (c == 0x7F));
    }
    return any == 0;
}

/* Control characters that text does not have, and isolated NULs (a run of them is one: an unwritten block). */
static bool looks_binary(fr_sv h)
{
    if (is_clean(h)) {
        return false;
    }
    static const uint8_t text_controls[32] = {[7] = 1, [8] = 1, ['\t'] = 1, ['\n'] = 1, [11] = 1, [12] = 1, ['\r'] = 1, [0x1B] = 1};
    size_t odd = 0, n = 0;
    bool in_nul = false;
    for (size_t i = 0; i < h.n; i++) {
        unsigned char c = (unsigned char)h.p[i];
        if (c == 0) {
            odd += !in_nul;
            n += !in_nul;
            in_nul = true;
            continue;
        }
        in_nul = false;
        n++;
        odd += (c < 32 && !text_controls[c]) || c == 0x7F;
    }
    return odd > 1 && odd * 20 > n;
}

static bool is_utf16_mark(fr_sv h, enum fr_content *ret)
{
    if (h.n < 2 || (h.n >= 4 && memcmp(h.p, "\xFF\xFE\0\0", 4) == 0)) { /* the latter is UTF-32 */
        return false;
    }
    if (memcmp(h.p, "\xFF\xFE", 2) != 0 && memcmp(h.p, "\xFE\xFF", 2) != 0) {
        return false;
    }
    *ret = h.p[0] == '\xFF' ? FR_CONTENT_UTF16_LE : FR_CONTENT_UTF16_BE;
    return true;
}

/* pzstd begins with a frame to be skipped. */
static bool is_zstd_skippable(fr_sv h)
{
    return h.n >= 8 && ((unsigned char)h.p[0] & 0xF0) == 0x50 && memcmp(h.p + 1, "\x2A\x4D\x18", 3) == 0;
}

static const struct magic *find_magic(fr_sv head)
{
    for (unsigned i = 0; i < sizeof magics / sizeof magics[0]; i++) {
        const struct magic *m = &magics[i];
        if (head.n >= (size_t)m->at + m->n && memcmp(head.p + m->at, m->bytes, m->n) == 0 &&
            (m->content != FR_CONTENT_TAR || is_tar(head))) {
            return m;
        }
    }
    return NULL;
}

enum fr_content fr_sniff(fr_sv head, const char **ret_why)
{
    const struct magic *m = find_magic(head);
    const char *why = m != NULL ? m->why : NULL;
    enum fr_content c = FR_CONTENT_TEXT;
    if (m != NULL) {
        c = (enum fr_content)m->content;
    } else if (is_bzip2(head)) {
        c = FR_CONTENT_BZIP2;
    } else if (is_zstd_skippable(head)) {
        c = FR_CONTENT_ZSTD;
    } else if (is_tar(head)) {
        c = FR_CONTENT_TAR;
    } else if (is_utf16_mark(head, &c)) {
        return c;
    } else if ((why = binary_by_shape(head)) != NULL) {
        c = FR_CONTENT_BINARY;
    } else if (looks_utf16(head, 1)) {
        c = FR_CONTENT_UTF16_LE;
    } else if (looks_utf16(head, 0)) {
        c = FR_CONTENT_UTF16_BE;
    } else {
        why = looks_binary(head) ? "binary file" : NULL;
        c = why != NULL ? FR_CONTENT_BINARY : FR_CONTENT_TEXT;
    }
    if (ret_why != NULL) {
        *ret_why = why;
    }
    return c;
}
