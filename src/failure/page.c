/* SPDX-License-Identifier: Apache-2.0 */
/* page: a wrapped page needs only the blocks below, so there is no Markdown library here: pages are
 * our own files, and a user's page that uses more is still readable. */
#include "failure/page.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdio.h>

#define CELLS_MAX 6

bool fr_page_line(fr_sv *rest, fr_sv *ret)
{
    if (rest->n == 0) {
        return false;
    }
    const size_t end = fr_sv_chr(*rest, '\n');
    *ret = end == FR_NPOS ? *rest : fr_sv_head(*rest, end);
    *rest = end == FR_NPOS ? fr_sv_skip(*rest, rest->n) : fr_sv_skip(*rest, end + 1);
    while (ret->n > 0 && (ret->p[ret->n - 1] == '\r' || ret->p[ret->n - 1] == ' ')) {
        ret->n--;
    }
    return true;
}

static int columns(fr_sv s)
{
    int n = 0;
    for (size_t i = 0; i < s.n; i++) {
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    }
    return n;
}

static void spaces(struct fr_buf *out, int n)
{
    for (; n > 0; n--) {
        fr_buf_addc(out, ' ');
    }
}

/* ---- inline text ---- */

struct style {
    bool code, bold;
};

static size_t marker(fr_sv s, const struct style *st)
{
    if (s.p[0] == '`') {
        return 1;
    }
    return !st->code && s.n >= 2 && s.p[0] == '*' && s.p[1] == '*' ? 2 : 0;
}

/* Columns a word takes: with colours the markers turn into colour and take none. */
static int word_columns(const struct fr_page *page, fr_sv word, struct style st)
{
    int n = columns(word);
    for (size_t i = 0; page->color && i < word.n;) {
        const size_t m = marker(fr_sv_skip(word, i), &st);
        n -= (int)m;
        st.code ^= m == 1;
        i += m > 0 ? m : 1;
    }
    return n;
}

static void put_style(struct fr_page *page, const struct style *st)
{
    fr_buf_addz(page->out, FR_PAGE_OFF);
    if (st->bold) {
        fr_buf_addz(page->out, FR_PAGE_BOLD);
    }
    if (st->code) {
        fr_buf_addz(page->out, FR_PAGE_CODE);
    }
}

static void put_word(struct fr_page *page, fr_sv word, struct style *st)
{
    for (size_t i = 0; i < word.n;) {
        const size_t m = marker(fr_sv_skip(word, i), st);
        if (m == 0 || !page->color) {
            fr_buf_add(page->out, fr_sv_head(fr_sv_skip(word, i), m > 0 ? m : 1));
            i += m > 0 ? m : 1;
            continue;
        }
        st->code ^= m == 1;
        st->bold ^= m == 2;
        put_style(page, st);
        i += m;
    }
}

static bool take_word(fr_sv *rest, fr_sv *ret)
{
    while (rest->n > 0 && isspace((unsigned char)rest->p[0])) {
        *rest = fr_sv_skip(*rest, 1);
    }
    size_t n = 0;
    while (n < rest->n && !isspace((unsigned char)rest->p[n])) {
        n++;
    }
    *ret = fr_sv_head(*rest, n);
    *rest = fr_sv_skip(*rest, n);
    return n > 0;
}

/* Puts words until `width` columns are full; returns the columns used. *rest: what did not fit. */
static int put_line(struct fr_page *page, fr_sv *rest, int width, struct style *st)
{
    int used = 0;
    fr_sv word;
    for (fr_sv at = *rest; take_word(&at, &word); *rest = at) {
        const int n = word_columns(page, word, *st);
        if (used > 0 && used + 1 + n > width) {
            return used;
        }
        if (used > 0) {
            fr_buf_addc(page->out, ' ');
            used++;
        }
        put_word(page, word, st);
        used += n;
    }
    *rest = FR_SV_NONE;
    return used;
}

static void end_style(struct fr_page *page, const struct style *st)
{
    if (page->color && (st->code || st->bold)) {
        fr_buf_addz(page->out, FR_PAGE_OFF);
    }
}

void fr_page_wrap(struct fr_page *page, const char *lead, fr_sv text)
{
    FR_AUTO(fr_buf) clean = FR_BUF_INIT(1u << 20);
    fr_utf8_clean(&clean, text, 0);
    fr_sv rest = fr_sv_trim(fr_buf_sv(&clean));
    const int indent = columns(fr_sv_z(lead));
    const int width = page->width - indent > 20 ? page->width - indent : 20;
    struct style st = {false, false};
    fr_buf_addz(page->out, lead);
    for (bool first = true; first || rest.n > 0; first = false) {
        if (!first) {
            spaces(page->out, indent);
        }
        put_line(page, &rest, width, &st);
        if (rest.n == 0) {
            end_style(page, &st);
        }
        fr_buf_addc(page->out, '\n');
    }
}

void fr_page_heading(struct fr_page *page, fr_sv text)
{
    FR_AUTO(fr_buf) clean = FR_BUF_INIT(4096);
    fr_utf8_clean(&clean, text, 200);
    fr_buf_addz(page->out, page->color ? "\n" FR_PAGE_BOLD : "\n");
    const fr_sv s = fr_buf_sv(&clean);
    for (size_t i = 0; i < s.n; i++) {
        fr_buf_addc(page->out, (char)toupper((unsigned char)s.p[i]));
    }
    fr_buf_addz(page->out, page->color ? FR_PAGE_OFF "\n" : "\n");
}

/* ---- tables ---- */

static int cells_of(fr_sv line, fr_sv *cells)
{
    int n = 0;
    line = fr_sv_trim(line);
    fr_sv_take(&line, FR_SV("|"));
    while (line.n > 0 && n < CELLS_MAX) {
        size_t end = 0;
        bool code = false;
        while (end < line.n &&
               (line.p[end] != '|' || code || (end > 0 && line.p[end - 1] == '\\'))) {
            code ^= line.p[end] == '`';
            end++;
        }
        cells[n++] = fr_sv_trim(fr_sv_head(line, end));
        line = fr_sv_skip(line, end + 1);
    }
    return n;
}

static bool is_rule(fr_sv line)
{
    for (size_t i = 0; i < line.n; i++) {
        if (strchr("|-: ", line.p[i]) == NULL) {
            return false;
        }
    }
    return line.n > 0;
}

static void put_row(struct fr_page *page, fr_sv line, const int *widths, int columns_n, bool head)
{
    fr_sv cells[CELLS_MAX] = {{NULL, 0}};
    struct style styles[CELLS_MAX] = {{false, false}};
    const int n = cells_of(line, cells);
    bool more = true;
    while (more) {
        more = false;
        fr_buf_addz(page->out, "  ");
        for (int i = 0; i < columns_n; i++) {
            if (page->color && head) {
                fr_buf_addz(page->out, FR_PAGE_DIM);
            } else if (page->color && (styles[i].code || styles[i].bold)) {
                put_style(page, &styles[i]);
            }
            const int used = i < n ? put_line(page, &cells[i], widths[i], &styles[i]) : 0;
            if (page->color && (head || styles[i].code || styles[i].bold)) {
                fr_buf_addz(page->out, FR_PAGE_OFF);
            }
            more |= i < n && cells[i].n > 0;
            if (i + 1 < columns_n) {
                spaces(page->out, widths[i] - used + 2);
            }
        }
        fr_buf_addc(page->out, '\n');
    }
}

/* Columns share the width in proportion to their longest cell. */
static void put_table(struct fr_page *page, fr_sv table)
{
    int widths[CELLS_MAX] = {0}, n = 0, total = 0;
    fr_sv line, rest = table, cells[CELLS_MAX];
    while (fr_page_line(&rest, &line)) {
        const int k = is_rule(line) ? 0 : cells_of(line, cells);
        n = k > n ? k : n;
        for (int i = 0; i < k; i++) {
            const int c = word_columns(page, cells[i], (struct style){false, false});
            widths[i] = c > widths[i] ? c : widths[i];
        }
    }
    for (int i = 0; i < n; i++) {
        total += widths[i];
    }
    const int room = page->width - 2 - 2 * (n - 1);
    for (int i = 0; i < n && total > room; i++) {
        const int share = widths[i] * room / total;
        widths[i] = share < 8 ? 8 : share;
    }
    rest = table;
    for (bool head = true; fr_page_line(&rest, &line);) {
        if (!is_rule(line)) {
            put_row(page, line, widths, n, head);
            head = false;
        }
    }
}

/* ---- blocks ---- */

/* Columns of a list marker at the start of the line ("- ", "* ", "12. "), or 0. */
static size_t bullet(fr_sv line)
{
    size_t n = 0;
    while (n < line.n && isdigit((unsigned char)line.p[n])) {
        n++;
    }
    if (n > 0 && n + 1 < line.n && line.p[n] == '.' && line.p[n + 1] == ' ') {
        return n + 2;
    }
    return line.n > 2 && (line.p[0] == '-' || line.p[0] == '*') && line.p[1] == ' ' ? 2 : 0;
}

static size_t margin(fr_sv line)
{
    size_t n = 0;
    while (n < line.n && line.p[n] == ' ') {
        n++;
    }
    return n;
}

/* A paragraph or list item: its first line and those that go on with it. */
static void put_paragraph(struct fr_page *page, fr_sv first, fr_sv *rest)
{
    const size_t in = margin(first) < 16 ? margin(first) : 16;
    fr_sv text = fr_sv_skip(first, margin(first));
    const size_t mark = bullet(text);
    char lead[48];
    snprintf(lead, sizeof lead, "  %*s%.*s", (int)in, "", (int)(mark < 8 ? mark : 8), text.p);
    if (mark > 0 && text.p[0] == '*') {
        lead[2 + in] = '-';
    }
    text = fr_sv_skip(text, mark);
    for (fr_sv line, at = *rest; fr_page_line(&at, &line); *rest = at) {
        const fr_sv t = fr_sv_trim(line);
        if (t.n == 0 || t.p[0] == '|' || t.p[0] == '#' || bullet(t) > 0 ||
            fr_sv_starts(t, FR_SV("```"))) {
            break;
        }
        text = fr_sv_range(text.p, line.p + line.n);
    }
    fr_page_wrap(page, lead, text);
}

static void put_code(struct fr_page *page, fr_sv *rest)
{
    for (fr_sv line; fr_page_line(rest, &line) && !fr_sv_starts(fr_sv_trim(line), FR_SV("```"));) {
        FR_AUTO(fr_buf) clean = FR_BUF_INIT(1u << 16);
        fr_utf8_clean(&clean, line, 0);
        fr_buf_addz(page->out, page->color ? "    " FR_PAGE_CODE : "    ");
        fr_buf_add(page->out, fr_buf_sv(&clean));
        fr_buf_addz(page->out, page->color ? FR_PAGE_OFF "\n" : "\n");
    }
}

void fr_page_body(struct fr_page *page, fr_sv markdown)
{
    bool gap = false; /* a blank line is due before the next block, but not after a heading */
    bool fresh = true;
    for (fr_sv line, rest = markdown; fr_page_line(&rest, &line);) {
        const fr_sv t = fr_sv_trim(line);
        if (t.n == 0) {
            gap = !fresh;
            continue;
        }
        if (t.p[0] == '#') {
            fr_sv title = t;
            while (fr_sv_take(&title, FR_SV("#"))) {
            }
            fr_page_heading(page, fr_sv_trim(title));
            gap = false;
            fresh = true;
            continue;
        }
        if (gap) {
            fr_buf_addc(page->out, '\n');
        }
        gap = false;
        fresh = false;
        if (fr_sv_starts(t, FR_SV("```"))) {
            put_code(page, &rest);
        } else if (t.p[0] == '|') {
            const char *begin = line.p, *end = line.p + line.n;
            for (fr_sv at = rest;
                 fr_page_line(&at, &line) && fr_sv_starts(fr_sv_trim(line), FR_SV("|"));
                 rest = at) {
                end = line.p + line.n;
            }
            put_table(page, fr_sv_range(begin, end));
        } else {
            put_paragraph(page, line, &rest);
        }
    }
}
