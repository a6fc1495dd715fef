/* SPDX-License-Identifier: Apache-2.0 */
/* collector: an RFC 3339 time with a zone, then a space: GitHub Actions, docker logs -t, kubectl
 * --timestamps, log consoles. With 'T' and a zone it is the collector's clock; programs print local
 * time without either. dmesg --time-format iso too. */
#include "format/dialect.h"

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    (void)ctx;
    fr_sv at = rec->text;
    struct fr_when when;
    if (at.n < 20 || at.p[10] != 'T' || !fr_stamp_iso(&at, &when) ||
        when.basis != FR_TIME_BASIS_UTC || rec->when.basis != FR_TIME_BASIS_NONE ||
        (at.n > 0 && !fr_is_space(at.p[0]))) {
        return false;
    }
    fr_rec_outer(rec, &when);
    (void)fr_lex_char(&at, '\t');
    fr_sv bar = at; /* "| 2024-09-01T22:28:32.879Z | text" */
    if (fr_lex_lit(&bar, " | ")) {
        rec->text = bar;
    } else {
        fr_rec_move(rec, at);
    }
    return true;
}

static const struct fr_format_sample samples[] = {
    {"2025-11-25T12:34:56.1234567Z ##[error]boom",
     "outer=2025-11-25T12:34:56.1234567 time=- text=\"##[error]boom\""},
    {"2024-04-29T14:55:41,678628+02:00 NVRM: loading", "outer=2024-04-29T12:55:41.678628 kernel=1"},
    {"2025-11-25T12:34:56 local", "outer=- time=2025-11-25T12:34:56"},
    {NULL, NULL}};

const struct fr_format fr_format_collector = {.name = "collector",
                                              .summary = "RFC 3339 stamp of a log collector",
                                              .peel = peel,
                                              .samples = samples};
