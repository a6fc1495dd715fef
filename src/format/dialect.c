/* SPDX-License-Identifier: Apache-2.0 */
/* dialect: see dialect.h. */
#include "format/dialect.h"

enum fr_begin fr_begin_of(fr_sv text)
{
    char c = fr_lex_peek(text, 0), next = fr_lex_peek(text, 1);
    switch (c) {
    case '[':
        return fr_is_digit(next) || next == ' ' ? FR_BEGIN_BRACKET_DIGIT
               : fr_is_upper(next)              ? FR_BEGIN_BRACKET_UPPER
               : fr_is_lower(next)              ? FR_BEGIN_BRACKET_LOWER
                                                : FR_BEGIN_OTHER;
    case '(':
        return FR_BEGIN_PAREN;
    case '{':
        return FR_BEGIN_BRACE;
    case '<':
    case '>':
    case '|':
        return FR_BEGIN_ANGLE;
    case ' ':
    case '\t':
        return FR_BEGIN_SPACE;
    default:
        return fr_is_digit(c)   ? FR_BEGIN_DIGIT
               : fr_is_upper(c) ? FR_BEGIN_UPPER
               : fr_is_lower(c) ? FR_BEGIN_LOWER
                                : FR_BEGIN_OTHER;
    }
}

static const struct {
    const char *word;
    uint8_t n, level;
} level_words[] = {{"INFO", 4, FR_LEVEL_INFO},       {"WARNING", 7, FR_LEVEL_WARN},
                   {"WARN", 4, FR_LEVEL_WARN},       {"ERROR", 5, FR_LEVEL_ERROR},
                   {"DEBUG", 5, FR_LEVEL_DEBUG},     {"CRITICAL", 8, FR_LEVEL_FATAL},
                   {"FATAL", 5, FR_LEVEL_FATAL},     {"TRACE", 5, FR_LEVEL_DEBUG},
                   {"NOTICE", 6, FR_LEVEL_INFO},     {"SUCCESS", 7, FR_LEVEL_INFO},
                   {"EXCEPTION", 9, FR_LEVEL_ERROR}, {"EMERG", 5, FR_LEVEL_FATAL},
                   {"ALERT", 5, FR_LEVEL_FATAL},     {"CRIT", 4, FR_LEVEL_FATAL},
                   {"ERR", 3, FR_LEVEL_ERROR},       {"INFORMATION", 11, FR_LEVEL_INFO},
                   {"PANIC", 5, FR_LEVEL_FATAL},     {"VERBOSE", 7, FR_LEVEL_DEBUG},
                   {"SEVERE", 6, FR_LEVEL_ERROR}};

/* Upper case, lower case or Capitalised, but not mixed: "Error" yes, "eRRor" no. */
static bool word_is(fr_sv s, const char *upper, size_t n)
{
    bool all_upper = true, all_lower = true;
    for (size_t i = 0; i < n; i++) {
        char c = s.p[i];
        if ((c & ~0x20) != upper[i]) {
            return false;
        }
        if (i > 0) {
            all_upper = all_upper && fr_is_upper(c);
            all_lower = all_lower && fr_is_lower(c);
        }
    }
    return all_lower || (all_upper && fr_is_upper(s.p[0]));
}

uint8_t fr_level_take(fr_sv *s)
{
    if (s->n < 3 || !fr_is_alpha(s->p[0])) {
        return FR_LEVEL_NONE;
    }
    size_t n = 0;
    while (n < s->n && n < 12 && fr_is_alpha(s->p[n])) {
        n++;
    }
    if (n < s->n && fr_is_word(s->p[n])) {
        return FR_LEVEL_NONE;
    }
    for (size_t i = 0; i < sizeof level_words / sizeof *level_words; i++) {
        if (level_words[i].n == n && word_is(*s, level_words[i].word, n)) {
            *s = fr_sv_skip(*s, n);
            return level_words[i].level;
        }
    }
    return FR_LEVEL_NONE;
}

uint8_t fr_level_of(fr_sv s)
{
    uint8_t level = fr_level_take(&s);
    return s.n == 0 ? level : FR_LEVEL_NONE;
}

uint8_t fr_level_letter(char c)
{
    switch (c) {
    case 'V':
    case 'D':
        return FR_LEVEL_DEBUG;
    case 'I':
        return FR_LEVEL_INFO;
    case 'W':
        return FR_LEVEL_WARN;
    case 'E':
        return FR_LEVEL_ERROR;
    case 'F':
    case 'C':
        return FR_LEVEL_FATAL;
    default:
        return FR_LEVEL_NONE;
    }
}

void fr_rec_bound(struct fr_record *rec)
{
    fr_sv at;
    int32_t rank = -1;
    rec->bound = true;
    if (rec->who.rank < 0 && fr_lex_find(rec->text, " rank=", &at) && fr_lex_index(&at, &rank) && (at.n == 0 || at.p[0] == ' ')) {
        rec->who.rank = rank;
    }
}

void fr_rec_move(struct fr_record *rec, fr_sv rest)
{
    rec->text = fr_lex_peek(rest, 0) == ' ' ? fr_sv_skip(rest, 1) : rest;
}

void fr_rec_outer(struct fr_record *rec, const struct fr_when *when)
{
    if (rec->outer.basis == FR_TIME_BASIS_NONE) {
        rec->outer = *when;
    }
}

fr_sv fr_pci_normal(struct fr_arena *scratch, fr_sv s)
{
    uint64_t part[4] = {0};
    int n = 0;
    (void)fr_lex_lit(&s, "PCI:");
    while (n < 4 && fr_lex_hex(&s, &part[n])) {
        n++;
        if (!fr_lex_char(&s, n == 3 ? '.' : ':')) {
            break;
        }
    }
    if (scratch == NULL) {
        return FR_SV_NONE;
    }
    if (n == 1) { /* NCCL's busId: domain, bus, device and one digit of function, run together */
        return fr_arena_printf(scratch, "%04x:%02x:%02x", (unsigned)(part[0] >> 20 & 0xffff),
                               (unsigned)(part[0] >> 12 & 0xff), (unsigned)(part[0] >> 4 & 0xff));
    }
    if (n >= 3) {
        return fr_arena_printf(scratch, "%04x:%02x:%02x", (unsigned)(part[0] & 0xffff),
                               (unsigned)(part[1] & 0xff), (unsigned)(part[2] & 0xff));
    }
    return FR_SV_NONE;
}

static const struct {
    const char *name, *text; /* without SIG; what strsignal() says */
    int number;
} signal_names[] = {{"HUP", "Hangup", 1},
                    {"INT", "Interrupt", 2},
                    {"QUIT", "Quit", 3},
                    {"ILL", "Illegal instruction", 4},
                    {"TRAP", "Trace/breakpoint trap", 5},
                    {"ABRT", "Aborted", 6},
                    {"BUS", "Bus error", 7},
                    {"FPE", "Floating point exception", 8},
                    {"KILL", "Killed", 9},
                    {"USR1", "User defined signal 1", 10},
                    {"SEGV", "Segmentation fault", 11},
                    {"USR2", "User defined signal 2", 12},
                    {"PIPE", "Broken pipe", 13},
                    {"ALRM", "Alarm clock", 14},
                    {"TERM", "Terminated", 15},
                    {"CONT", "Continued", 18},
                    {"STOP", "Stopped (signal)", 19},
                    {"XCPU", "CPU time limit exceeded", 24},
                    {"XFSZ", "File size limit exceeded", 25}};

int fr_signal_number(fr_sv name)
{
    size_t core = fr_sv_find(name, FR_SV(" (core dumped)"));
    name = fr_sv_trim(core == FR_NPOS ? name : fr_sv_head(name, core));
    (void)fr_lex_lit(&name, "Signals.");
    (void)fr_lex_lit(&name, "SIG");
    for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++) {
        if (fr_sv_eq(name, fr_sv_z(signal_names[i].name)) ||
            fr_sv_eq(name, fr_sv_z(signal_names[i].text))) {
            return signal_names[i].number;
        }
    }
    return fr_sv_eq(name, FR_SV("Abort")) ? 6 : 0;
}

fr_sv fr_address_only(fr_sv s)
{
    s = fr_sv_trim(s);
    fr_sv inner;
    if (fr_lex_char(&s, '[')) {
        return fr_lex_until(&s, ']', &inner) ? inner : s;
    }
    size_t end = fr_sv_chr(s, '<');
    if (end != FR_NPOS) {
        return fr_sv_head(s, end);
    }
    size_t colon = fr_sv_chr(s, ':');
    if (colon != FR_NPOS && fr_sv_chr(fr_sv_skip(s, colon + 1), ':') == FR_NPOS) {
        return fr_sv_head(s, colon);
    }
    return s;
}

void fr_draft_num(struct fr_draft *d, enum fr_key key, int64_t num, fr_sv text)
{
    if (d != NULL && d->n_caps < FR_DRAFT_CAPS) {
        d->caps[d->n_caps++] = (struct fr_cap){
            .key = (uint8_t)key, .is_num = true, .num = num, .text = text, .name = FR_SV_NONE};
    }
}

void fr_draft_text(struct fr_draft *d, enum fr_key key, fr_sv text)
{
    if (d != NULL && text.n > 0 && d->n_caps < FR_DRAFT_CAPS) {
        d->caps[d->n_caps++] =
            (struct fr_cap){.key = (uint8_t)key, .text = text, .name = FR_SV_NONE};
    }
}

bool fr_draft_num_after(struct fr_draft *d, enum fr_key key, fr_sv text, fr_sv lit)
{
    int64_t v = 0;
    fr_sv printed;
    if (!fr_lex_num_after(text, lit, &v, &printed)) {
        return false;
    }
    fr_draft_num(d, key, v, printed);
    return true;
}

/* "[PG ID 2 PG GUID 5(desc) Rank 1]", "[PG 1 (desc) Rank 10]", "[PG 1 Rank 10]", "[Rank 3]" */
void fr_draft_pg(struct fr_draft *d, const struct fr_record *rec)
{
    fr_sv at, group, name, desc, printed;
    int64_t rank = -1;
    size_t open = fr_sv_find(rec->line, FR_SV("[PG "));
    if (open != FR_NPOS) {
        at = fr_sv_skip(rec->line, open + 4);
        size_t end = fr_sv_find(at, FR_SV(" Rank "));
        if (end != FR_NPOS && end < 200) {
            group = fr_sv_head(at, end);
            (void)fr_lex_find(group, "PG GUID ", &group);
            if (fr_sv_cut(group, '(', &name, &desc)) {
                fr_draft_text(d, FR_KEY_PG_DESC,
                              fr_sv_ends(desc, FR_SV(")")) ? fr_sv_head(desc, desc.n - 1) : desc);
            }
            fr_draft_text(d, FR_KEY_PG, fr_sv_trim(name));
            if (fr_lex_num_after(fr_sv_skip(at, end), FR_SV(" Rank "), &rank, &printed)) {
                fr_draft_num(d, FR_KEY_PG_RANK, rank, printed);
            }
            return;
        }
    }
    if (rec->who.pg_rank >= 0) {
        fr_draft_num(d, FR_KEY_PG_RANK, rec->who.pg_rank, FR_SV_NONE);
    }
}

void fr_draft_list(struct fr_draft *d, enum fr_key key, fr_sv list)
{
    list = fr_sv_trim(list);
    if (fr_lex_char(&list, '[') || fr_lex_char(&list, '{')) {
        size_t end = 0;
        while (end < list.n && list.p[end] != ']' && list.p[end] != '}') {
            end++;
        }
        list = fr_sv_head(list, end);
    }
    fr_sv first = list;
    int64_t num = 0;
    if (fr_lex_int(&first, &num) && d != NULL && d->n_caps < FR_DRAFT_CAPS) {
        d->caps[d->n_caps++] = (struct fr_cap){
            .key = (uint8_t)key, .is_num = true, .num = num, .text = list, .name = FR_SV_NONE};
    } else {
        fr_draft_text(d, key, list);
    }
}
