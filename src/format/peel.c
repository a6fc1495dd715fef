/* SPDX-License-Identifier: Apache-2.0 */
/* peel: takes known prefixes off the front of a segment, in any order and several deep, until none
 * fits. The dialects do the knowing; this file only asks them, and removes what terminals would
 * have eaten. */
#include "format/peel.h"

#include "format/relay.h"

enum { DEPTH_MAX = 12 };

/* Length of a terminal sequence at s, raw or as text; 0 = none. `sgr` also takes "[31m" that lost
 * its escape byte. */
static size_t csi_len(fr_sv s, size_t intro)
{
    size_t i = intro;
    while (i < s.n && i < intro + 32 && s.p[i] >= 0x20 && s.p[i] <= 0x3f) {
        i++;
    }
    return i < s.n && s.p[i] >= 0x40 && s.p[i] <= 0x7e ? i + 1 : 0;
}

static size_t escape_len(fr_sv s)
{
    if (s.n < 2) {
        return s.n;
    }
    if (s.p[1] == '[') {
        size_t n = csi_len(s, 2);
        return n != 0 ? n : 2;
    }
    if (s.p[1] == ']') { /* title or link: up to BEL or ESC \ */
        for (size_t i = 2; i < s.n && i < 2048; i++) {
            if (s.p[i] == '\a') {
                return i + 1;
            }
            if (s.p[i] == '\033' && fr_lex_peek(s, i + 1) == '\\') {
                return i + 2;
            }
        }
        return 2;
    }
    return s.p[1] == '(' || s.p[1] == ')' ? (s.n < 3 ? s.n : 3) : 2;
}

static size_t literal_len(fr_sv s, bool bare)
{
    static const char *const intros[] = {"^[[", "\\u001b[", "\\x1b[", "\\033[", "#033["};
    for (size_t i = 0; i < sizeof intros / sizeof *intros; i++) {
        fr_sv intro = fr_sv_z(intros[i]);
        if (fr_sv_starts(s, intro)) {
            return csi_len(s, intro.n);
        }
    }
    if (bare && s.p[0] == '[') {
        size_t i = 1;
        while (i < s.n && i < 12 && (fr_is_digit(s.p[i]) || s.p[i] == ';')) {
            i++;
        }
        return i < s.n && s.p[i] == 'm' ? i + 1 : 0;
    }
    return 0;
}

bool fr_peel_has_ansi(fr_sv s)
{
    if (s.n == 0) {
        return false;
    }
    if (memchr(s.p, '\033', s.n) != NULL || memchr(s.p, '\b', s.n) != NULL) {
        return true;
    }
    const char *end = s.p + s.n;
    for (const char *p = s.p; (p = memchr(p, '[', (size_t)(end - p))) != NULL; p++) {
        bool reset = end - p > 2 && p[1] == '0' && p[2] == 'm';
        bool caret = p > s.p && p[-1] == '^' && end - p > 1 && p[1] == '[';
        if (reset || caret) {
            return true;
        }
    }
    return false;
}

size_t fr_peel_strip_ansi(fr_sv s, char *ret)
{
    bool bare = fr_sv_has(s, FR_SV("[0m"));
    size_t n = 0;
    while (s.n > 0) {
        char c = s.p[0];
        size_t skip = c == '\033' ? escape_len(s) : c == '\b' ? 1 : 0;
        if (skip == 0 && (c == '^' || c == '\\' || c == '#' || c == '[')) { /* "#033[": rsyslog's */
            skip = literal_len(s, bare);
        }
        if (skip == 0) {
            ret[n++] = c;
            skip = 1;
        }
        s = fr_sv_skip(s, skip);
    }
    return n;
}

fr_sv fr_peel_clean(const struct fr_peel_ctx *ctx, fr_sv s)
{
    if (!fr_peel_has_ansi(s) || ctx->scratch == NULL) {
        return s;
    }
    char *clean = fr_arena_alloc(ctx->scratch, s.n);
    return clean == NULL ? s : (fr_sv){clean, fr_peel_strip_ansi(s, clean)};
}

/* Ray counts equal lines of other workers instead of printing them. */
static void take_repeated(struct fr_record *rec)
{
    if (!fr_sv_ends(rec->text, FR_SV(" across cluster]"))) {
        return;
    }
    size_t at = fr_sv_find(rec->text, FR_SV(" [repeated "));
    if (at != FR_NPOS) {
        rec->text = fr_sv_head(rec->text, at);
        rec->repeated = true;
    }
}

static fr_sv right_trimmed(fr_sv s)
{
    while (s.n > 0 && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == '\n' || fr_is_space(s.p[s.n - 1]))) {
        s.n--;
    }
    return s;
}

/* The first level of a line is of the program that passes it on, where that one's is known. */
static bool is_passed_on(const struct fr_peel_ctx *ctx, const struct fr_record *rec)
{
    return ctx->relay != NULL && rec->level != FR_LEVEL_NONE && rec->level == ctx->relay->level;
}

void fr_peel_prefixes(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    bool passed_on = false;
    for (int depth = 0; depth < DEPTH_MAX && rec->text.n > 0; depth++) {
        uint64_t candidates = fr_formats_beginning(rec->text);
        bool peeled = false;
        while (candidates != 0 && !peeled) {
            int i = __builtin_ctzll(candidates);
            candidates &= candidates - 1;
            peeled = fr_formats[i]->peel(ctx, rec);
        }
        if (!peeled) {
            break;
        }
        if (!passed_on && is_passed_on(ctx, rec)) {
            rec->level = FR_LEVEL_NONE;
            passed_on = true;
        }
    }
}

/* "/opt/env/fit.py:63: UserWarning: text", as Python's warnings module prints it. */
static bool is_python_warning(fr_sv text)
{
    fr_sv head = fr_sv_head(text, 300);
    size_t at = fr_sv_find(head, FR_SV("Warning: "));
    size_t begin = at == FR_NPOS ? 0 : at;
    while (begin > 0 && ((head.p[begin - 1] | 0x20) >= 'a' && (head.p[begin - 1] | 0x20) <= 'z')) {
        begin--;
    }
    return at != FR_NPOS && begin < at && begin > 4 && fr_sv_ends(fr_sv_head(head, begin), FR_SV(": ")) &&
           fr_sv_has(fr_sv_head(head, begin), FR_SV(".py:"));
}

void fr_peel(const struct fr_peel_ctx *ctx, fr_sv segment, struct fr_record *ret)
{
    segment = right_trimmed(segment);
    *ret = (struct fr_record){
        .line = segment, .who = FR_WHO_NONE, .when = FR_WHEN_NONE, .outer = FR_WHEN_NONE};
    ret->text = fr_peel_clean(ctx, segment);
    fr_peel_prefixes(ctx, ret);
    ret->text = right_trimmed(ret->text);
    take_repeated(ret);
    if (ret->level == FR_LEVEL_NONE && is_python_warning(ret->text)) {
        ret->level = FR_LEVEL_WARN;
    }
    ret->is_kernel = ret->is_kernel || fr_sv_starts(ret->text, FR_SV("NVRM: "));
    ret->has_traceback_margin = ret->text.n > 0 && fr_is_space(ret->text.p[0]);
}
