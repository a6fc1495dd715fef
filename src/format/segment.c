/* SPDX-License-Identifier: Apache-2.0 */
/* segment: one physical line may hold the text of several writers: '\r' bars, launchers that glue a
 * second rank's output to an unfinished line, c10d and kernel lines behind a progress bar. Only
 * unmistakable beginnings cut, and never between two prefixes of the same writer: what precedes a
 * cut must be more than prefixes. */
#include "format/peel.h"

/* "[default3]:", "[rank3]:" at p; role: the tag name that the line itself begins with, if any. */
static bool tag_at(fr_sv s, fr_sv role)
{
    fr_sv name;
    uint64_t n = 0;
    s = fr_sv_skip(s, 1);
    size_t i = 0;
    while (i < s.n && i < 32 && (fr_is_lower(s.p[i]) || s.p[i] == '_')) {
        i++;
    }
    name = fr_sv_head(s, i);
    s = fr_sv_skip(s, i);
    if (i == 0 || !fr_lex_digits(&s, 1, 6, &n) || !fr_lex_lit(&s, "]:")) {
        return false;
    }
    return fr_sv_eq(name, FR_SV("default")) || fr_sv_eq(name, FR_SV("rank")) ||
           fr_sv_eq(name, FR_SV("trainer")) || fr_sv_eq(name, FR_SV("worker")) ||
           (role.n > 0 && fr_sv_eq(name, role));
}

/* "[E ProcessGroupNCCL.cpp:458] ", "[W808 04:21:41.160918398 socket.cpp:426] " */
static bool c10_at(fr_sv s)
{
    struct fr_when when;
    fr_sv file;
    s = fr_sv_skip(s, 1);
    if (s.n < 8 || (s.p[1] != ' ' && !fr_is_digit(s.p[1])) ||
        fr_level_letter(s.p[0]) == FR_LEVEL_NONE) {
        return false;
    }
    s = fr_sv_skip(s, 1);
    if (fr_is_digit(s.p[0]) && !fr_stamp_glog(&s, 2000, &when)) {
        return false;
    }
    uint64_t line = 0;
    return fr_lex_char(&s, ' ') && fr_lex_name(&s, &file) && fr_sv_chr(file, '.') != FR_NPOS &&
           fr_lex_char(&s, ':') && fr_lex_digits(&s, 1, 6, &line) && fr_lex_lit(&s, "] ");
}

/* "[ 4502.694381] " */
static bool boot_at(fr_sv s)
{
    struct fr_when when;
    s = fr_sv_skip(s, 1);
    (void)fr_lex_spaces(&s);
    return fr_stamp_boot(&s, &when) && when.resolution_ns == 1000 && fr_lex_lit(&s, "] ");
}

/* "(Name pid=123", "(Name[rank=8] pid=1, ip=...) ", "(pid=123) " */
static bool actor_at(fr_sv s)
{
    size_t end = fr_sv_chr(fr_sv_head(s, 160), ')');
    if (end == FR_NPOS) {
        return false;
    }
    fr_sv inside = fr_sv_head(s, end);
    size_t pid = fr_sv_find(inside, FR_SV("pid="));
    if (fr_lex_peek(s, end + 1) != ' ' || fr_sv_chr(fr_sv_head(inside, pid), ',') != FR_NPOS) {
        return false;
    }
    return pid != FR_NPOS && (pid == 1 || inside.p[pid - 1] == ' ') &&
           fr_is_digit(fr_lex_peek(inside, pid + 4)) && fr_sv_chr(inside, '(') == 0 &&
           fr_sv_chr(fr_sv_skip(inside, 1), '(') == FR_NPOS;
}

/* "E1130 14:52:02.024000 27144 torch/...": an agent's or glog line behind something without
 * newline. */
static bool glog_at(fr_sv s)
{
    struct fr_when when;
    if (!fr_is_digit(fr_lex_peek(s, 1)) || fr_level_letter(s.p[0]) == FR_LEVEL_NONE) {
        return false;
    }
    s = fr_sv_skip(s, 1);
    return fr_stamp_glog(&s, 2000, &when) && fr_lex_peek(s, 0) == ' ' &&
           fr_sv_has(fr_sv_head(s, 160), FR_SV("] "));
}

static bool logging_at(fr_sv s)
{
    return fr_sv_starts(s, FR_SV("WARNING:torch.")) || fr_sv_starts(s, FR_SV("ERROR:torch.")) ||
           fr_sv_starts(s, FR_SV("INFO:torch.")) || fr_sv_starts(s, FR_SV("CRITICAL:torch."));
}

/* "[WARNING|logging.py:290] 2023-11-04 02:38:30,787 >> " */
static bool transformers_at(fr_sv s)
{
    s = fr_sv_skip(s, 1);
    if (fr_sv_chr(fr_sv_head(s, 16), '|') == FR_NPOS) {
        return false;
    }
    return fr_level_take(&s) != FR_LEVEL_NONE && fr_lex_peek(s, 0) == '|' &&
           fr_sv_chr(fr_sv_head(s, 80), ']') != FR_NPOS;
}

#define RANK_WORD FR_SV("Rank ")

/* "[Rank 3] ", which programs put before what they print. */
static bool rank_word_at(fr_sv s)
{
    uint64_t n = 0;
    return fr_lex_lit(&s, "[Rank ") && fr_lex_digits(&s, 1, 6, &n) && fr_lex_lit(&s, "] ");
}

/* role: the tag that the line itself begins with, without its number. */
static bool begins_writer(fr_sv s, fr_sv role)
{
    switch (s.p[0]) {
    case '[': {
        char next = fr_lex_peek(s, 1);
        if (fr_is_lower(next)) {
            return tag_at(s, role);
        }
        return fr_is_upper(next) ? c10_at(s) || transformers_at(s) ||
                                       (fr_sv_eq(role, RANK_WORD) && rank_word_at(s))
                                 : (next == ' ' || fr_is_digit(next)) && boot_at(s);
    }
    case '(':
        return actor_at(s);
    case 'W':
    case 'E':
    case 'I':
    case 'F':
    case 'C':
        return glog_at(s) || logging_at(s);
    default:
        return false;
    }
}

/* Nothing but prefixes and white space. */
static bool only_prefixes(fr_sv head)
{
    char clean[512];
    const struct fr_peel_ctx ctx = {.scratch = NULL, .year = 2000};
    struct fr_record rec = {.line = head, .text = head, .who = FR_WHO_NONE};
    if (fr_peel_has_ansi(head)) {
        if (head.n > sizeof clean) {
            return false;
        }
        rec.text = (fr_sv){clean, fr_peel_strip_ansi(head, clean)};
    }
    while (rec.text.n > 0 &&
           (rec.text.p[0] == '>' || rec.text.p[0] == '|' || rec.text.p[0] == ' ')) {
        rec.text = fr_sv_skip(rec.text, 1);
    }
    fr_peel_prefixes(&ctx, &rec);
    return fr_sv_trim(rec.text).n == 0;
}

static fr_sv own_role(fr_sv s)
{
    size_t i = 1;
    if (rank_word_at(s)) {
        return RANK_WORD;
    }
    while (i < s.n && i < 32 && (fr_is_lower(s.p[i]) || s.p[i] == '_')) {
        i++;
    }
    return s.n > 2 && s.p[0] == '[' && i > 1 && fr_is_digit(fr_lex_peek(s, i))
               ? fr_sv_range(s.p + 1, s.p + i)
               : FR_SV_NONE;
}

/* What may begin a cut. */
static const bool interesting[256] = {['\r'] = true, ['['] = true, ['('] = true, ['W'] = true,
                                      ['E'] = true,  ['I'] = true, ['F'] = true, ['C'] = true};

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
typedef unsigned char bytes16 __attribute__((vector_size(16)));

/* The first interesting byte of p[0..16); 16 when there is none. */
static inline size_t first_interesting(const char *p)
{
    bytes16 v;
    memcpy(&v, p, sizeof v);
    bytes16 hit = (bytes16)((v == '\r') | (v == '[') | (v == '(') | (v == 'W') | (v == 'E') |
                            (v == 'I') | (v == 'F') | (v == 'C'));
    uint64_t half[2];
    memcpy(half, &hit, sizeof half);
    if (half[0] != 0) {
        return (size_t)__builtin_ctzll(half[0]) / 8;
    }
    return half[1] != 0 ? 8 + (size_t)__builtin_ctzll(half[1]) / 8 : 16;
}
#else
static inline size_t first_interesting(const char *p)
{
    size_t i = 0;
    while (i < 16 && !interesting[(unsigned char)p[i]]) {
        i++;
    }
    return i;
}
#endif

/* The first interesting byte from i on; s.n when there is none. */
static inline size_t next_interesting(fr_sv s, size_t i)
{
    while (s.n - i >= 16) {
        size_t k = first_interesting(s.p + i);
        i += k;
        if (k < 16) {
            return i;
        }
    }
    while (i < s.n && !interesting[(unsigned char)s.p[i]]) {
        i++;
    }
    return i;
}

/* A level letter or word; behind "[" or inside a word it begins nothing. */
static bool is_inside(fr_sv s, size_t i)
{
    char c = s.p[i], next = fr_lex_peek(s, i + 1);
    return fr_is_upper(c) &&
           (s.p[i - 1] == '[' || s.p[i - 1] == '_' || (!fr_is_digit(next) && !fr_is_upper(next)));
}

static size_t cut_at(fr_sv s)
{
    fr_sv role = own_role(s);
    bool is_json = s.p[0] == '{' && (fr_lex_peek(s, 1) == '"');
    size_t known = 0; /* the text up to here is prefixes and nothing else */
    for (size_t i = next_interesting(s, 1); i < s.n; i = next_interesting(s, i + 1)) {
        if (s.p[i] == '\r') {
            return i;
        }
        if (is_json || is_inside(s, i) || !begins_writer(fr_sv_skip(s, i), role)) {
            continue;
        }
        if (!only_prefixes(fr_sv_range(s.p + known, s.p + i))) {
            return i;
        }
        known = i;
    }
    return s.n;
}

/* What begins with a bracket or a letter has a "]" behind it, an actor "pid=", a logger ":torch.".
 * So most lines are told to be whole without looking at what might begin something. */
enum { WHOLE, CUT, UNSURE };

static int stop_at(fr_sv at)
{
    switch (at.p[0]) {
    case '\r':
        return CUT;
    case ']':
        return UNSURE;
    case 'p':
        return fr_sv_starts(at, FR_SV("pid=")) ? UNSURE : WHOLE;
    case ':':
        return fr_sv_starts(at, FR_SV(":torch.")) ? UNSURE : WHOLE;
    default:
        return WHOLE;
    }
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* The first byte of p[0..16) that may be a stop; 16 when there is none. Reads p[16] too. */
static inline size_t first_stop(const char *p)
{
    bytes16 v, next;
    memcpy(&v, p, sizeof v);
    memcpy(&next, p + 1, sizeof next);
    bytes16 hit = (bytes16)((v == '\r') | (v == ']') | ((v == 'p') & (next == 'i')) |
                            ((v == ':') & (next == 't')));
    uint64_t half[2];
    memcpy(half, &hit, sizeof half);
    if (half[0] != 0) {
        return (size_t)__builtin_ctzll(half[0]) / 8;
    }
    return half[1] != 0 ? 8 + (size_t)__builtin_ctzll(half[1]) / 8 : 16;
}
#else
static inline size_t first_stop(const char *p)
{
    (void)p;
    return 0;
}
#endif

static int whole_at_sight(fr_sv s, size_t i)
{
    int stop = WHOLE;
    while (stop == WHOLE && s.n - i > 16) {
        size_t k = first_stop(s.p + i);
        i += k;
        if (k < 16) {
            stop = stop_at(fr_sv_skip(s, i++));
        }
    }
    for (; stop == WHOLE && i < s.n; i++) {
        stop = stop_at(fr_sv_skip(s, i));
    }
    return stop;
}

bool fr_segment_is_whole(fr_sv s, size_t from)
{
    int sight = whole_at_sight(s, from);
    if (sight != UNSURE) {
        return sight == WHOLE;
    }
    fr_sv role = own_role(s);
    for (size_t i = next_interesting(s, from); i < s.n; i = next_interesting(s, i + 1)) {
        if (s.p[i] == '\r' || (!is_inside(s, i) && begins_writer(fr_sv_skip(s, i), role))) {
            return false;
        }
    }
    return true;
}

/* What begins a writer's text here does so by its digits: only a glog stamp is read for its value,
 * all else for how many digits there are. */
static bool may_begin_writer(fr_sv s, fr_sv role)
{
    bool bracket = s.p[0] == '[';
    bool letter = fr_level_letter(fr_lex_peek(s, bracket)) != FR_LEVEL_NONE;
    return (letter && fr_is_digit(fr_lex_peek(s, bracket + 1u))) || begins_writer(s, role);
}

bool fr_segment_stays_whole(fr_sv s, size_t from)
{
    fr_sv role = own_role(s);
    for (size_t i = next_interesting(s, from); i < s.n; i = next_interesting(s, i + 1)) {
        if (s.p[i] == '\r' || (!is_inside(s, i) && may_begin_writer(fr_sv_skip(s, i), role))) {
            return false;
        }
    }
    return true;
}

bool fr_segment_next(fr_sv *rest, fr_sv *ret_segment)
{
    while (rest->n > 0) {
        size_t cut = rest->p[0] == '\r' ? 0 : cut_at(*rest);
        fr_sv piece = fr_sv_head(*rest, cut);
        *rest = fr_sv_skip(*rest, fr_lex_peek(*rest, cut) == '\r' ? cut + 1 : cut);
        if (fr_sv_trim(piece).n > 0) {
            *ret_segment = piece;
            return true;
        }
    }
    return false;
}
