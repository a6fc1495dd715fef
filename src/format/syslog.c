/* SPDX-License-Identifier: Apache-2.0 */
/* syslog: RFC 3164, rsyslog's ISO form, RFC 5424, and journalctl -o short, short-iso,
 * short-precise, short-monotonic, short-full. The stamp is the collector's; the tag tells host,
 * program and pid. */
#include "format/dialect.h"

/* "prog[pid]: ", "kernel: ", "prog: " */
static bool take_tag(struct fr_record *rec, fr_sv *s)
{
    fr_sv at = *s, tag, program, inside;
    if (!fr_lex_token(&at, &tag) || tag.n > 120 || !fr_sv_ends(tag, FR_SV(":")) || tag.n < 2) {
        return false;
    }
    tag = fr_sv_head(tag, tag.n - 1);
    if (fr_sv_cut(tag, '[', &program, &inside)) {
        rec->who.role = fr_sv_chr(program, '@') != FR_NPOS ? program : rec->who.role; /* one instance of a unit */
        uint64_t pid = 0;
        if (fr_lex_digits(&inside, 1, 10, &pid)) {
            rec->who.pid = (int64_t)pid;
        }
    }
    rec->is_kernel = rec->is_kernel || fr_sv_eq(program, FR_SV("kernel"));
    *s = at;
    return true;
}

/* "<PRI>1 TS HOST APP PROCID MSGID (- | [sd]) MSG" */
static bool peel_5424(struct fr_record *rec)
{
    fr_sv at = rec->text, host, app, proc, msgid, sd;
    struct fr_when when;
    uint64_t pri = 0, pid = 0;
    static const uint8_t levels[] = {FR_LEVEL_FATAL, FR_LEVEL_FATAL, FR_LEVEL_FATAL,
                                     FR_LEVEL_ERROR, FR_LEVEL_WARN,  FR_LEVEL_INFO,
                                     FR_LEVEL_INFO,  FR_LEVEL_DEBUG};
    if (!fr_lex_char(&at, '<') || !fr_lex_digits(&at, 1, 3, &pri) || !fr_lex_char(&at, '>')) {
        return false;
    }
    if (!fr_lex_lit(&at, "1 ")) { /* 3164 with its priority */
        if (fr_lex_peek(at, 0) == '[' || at.n == 0) {
            return false;
        }
        rec->level = levels[pri & 7];
        rec->text = at;
        return fr_is_upper(fr_lex_peek(at, 0));
    }
    if (!fr_stamp_iso(&at, &when) && !fr_lex_char(&at, '-')) {
        return false;
    }
    if (!fr_lex_char(&at, ' ') || !fr_lex_token(&at, &host) || !fr_lex_char(&at, ' ') ||
        !fr_lex_token(&at, &app) || !fr_lex_char(&at, ' ') || !fr_lex_token(&at, &proc) ||
        !fr_lex_char(&at, ' ') || !fr_lex_token(&at, &msgid) || !fr_lex_char(&at, ' ')) {
        return false;
    }
    if (!fr_lex_char(&at, '-')) {
        while (fr_lex_peek(at, 0) == '[' && fr_lex_until(&at, ']', &sd)) {
        }
    }
    fr_rec_outer(rec, &when);
    rec->level = levels[pri & 7];
    rec->who.node = fr_sv_eq(host, FR_SV("-")) ? FR_SV_NONE : host;
    if (fr_lex_digits(&proc, 1, 10, &pid)) {
        rec->who.pid = (int64_t)pid;
    }
    rec->is_kernel = fr_sv_eq(app, FR_SV("kernel"));
    fr_rec_move(rec, at);
    (void)fr_sv_take(&rec->text, FR_SV("\xef\xbb\xbf"));
    return true;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, host;
    struct fr_when when;
    if (at.p[0] == '<') {
        return peel_5424(rec);
    }
    if (fr_is_digit(at.p[0]) && (at.n < 22 || at.p[10] != 'T')) {
        return false;
    }
    if (at.p[0] == '[') { /* short-monotonic: "[12345.678901] host kernel: text" */
        at = fr_sv_skip(at, 1);
        fr_lex_spaces(&at);
        if (!fr_stamp_boot(&at, &when) || !fr_lex_char(&at, ']')) {
            return false;
        }
    } else if (!fr_stamp_syslog(&at, ctx->year, &when) && !fr_stamp_iso(&at, &when) &&
               !fr_stamp_ctime(&at, ctx->year, &when)) {
        return false;
    }
    /* not a header word: "2026-.. ERROR x: y" and "... host x: y" differ in the level word only */
    struct fr_record copy = *rec;
    if (!fr_lex_char(&at, ' ') || !fr_lex_name(&at, &host) || fr_level_of(host) != FR_LEVEL_NONE ||
        host.n < 2 || !fr_lex_char(&at, ' ') || !take_tag(&copy, &at)) {
        return false;
    }
    if ((fr_is_digit(rec->text.p[0]) || rec->text.p[0] == '[') && !copy.is_kernel && copy.who.pid < 0) {
        return false; /* an application's "2026-01-01 00:00:00 name text:", dmesg's "[1.2] pcieport 0000:15:01.0: AER" */
    }
    *rec = copy;
    fr_rec_outer(rec, &when);
    rec->who.node = host;
    fr_rec_move(rec, at);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"May 15 23:09:30 gpu07 kernel: [  518.050606] NVRM: loading",
     "outer=2026-05-15T23:09:30 node=gpu07 kernel=1 basis=boot text=\"NVRM: loading\""},
    {"Oct  4 13:39:39 box trainer[394]: RuntimeError: no kernel image",
     "outer=2026-10-04T13:39:39 node=box pid=394 kernel=0 text=\"RuntimeError: no kernel image\""},
    {"2025-05-15T23:09:30.123456+00:00 gpu07 kernel: text",
     "outer=2025-05-15T23:09:30.123456 node=gpu07 kernel=1 text=text"},
    {"2025-11-25T12:34:56+0000 gpu07 slurmd[77]: error: x", "node=gpu07 pid=77"},
    {"[12345.678901] gpu07 kernel: text", "node=gpu07 kernel=1 text=text"},
    {"Tue 2025-11-25 12:34:56 UTC gpu07 kernel: text",
     "outer=2025-11-25T12:34:56 node=gpu07 text=text"},
    {"<134>1 2025-11-25T12:34:56.003Z gpu07 trainer 4242 ID47 [x@1 a=\"b\"] text here",
     "outer=2025-11-25T12:34:56.003 node=gpu07 pid=4242 level=info text=\"text here\""},
    {"2026-01-02 03:04:05 worker finished: ok", "node=- outer=-"},
    {NULL, NULL}};

const struct fr_format fr_format_syslog = {
    .name = "syslog",
    .summary = "syslog (3164, 5424, rsyslog) and journalctl short forms",
    .peel = peel,
    .samples = samples};
