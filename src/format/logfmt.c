/* SPDX-License-Identifier: Apache-2.0 */
/* logfmt: time=2025-01-02T03:04:05.678 level=info rank=3 msg="text" step=10 loss=2.1. What is known of the writer stands first; the
 * message loses its name and its opening quote; other keys follow it, which may be metrics. */
#include "format/dialect.h"

/* value of "key=value" at *s, quoted or bare; moves behind the space that follows. */
static bool take_pair(fr_sv *s, fr_sv *ret_key, fr_sv *ret_value)
{
    fr_sv at = *s;
    if (!fr_lex_name(&at, ret_key) || !fr_lex_char(&at, '=')) {
        return false;
    }
    if (fr_lex_char(&at, '"')) {
        if (!fr_lex_until(&at, '"', ret_value)) {
            return false;
        }
    } else if (!fr_lex_token(&at, ret_value)) {
        return false;
    }
    if (at.n != 0 && !fr_lex_char(&at, ' ')) {
        return false;
    }
    *s = at;
    return true;
}

static bool is_one_of(fr_sv key, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (fr_sv_eq(key, fr_sv_z(*names))) {
            return true;
        }
    }
    return false;
}

/* Takes what the pair says into rec; false: it is none of the writer's. */
static bool take_known(const struct fr_peel_ctx *ctx, struct fr_record *rec, fr_sv key, fr_sv value)
{
    static const char *const times[] = {"time", "ts", "timestamp", "t", NULL};
    static const char *const levels[] = {"level", "lvl", "severity", NULL};
    static const char *const hosts[] = {"host", "hostname", "node", NULL};
    static const char *const others[] = {"logger", "caller", "module", "source", NULL};
    struct fr_when when;
    uint64_t pid = 0;
    int32_t rank = -1;
    if (is_one_of(key, times)) {
        return fr_stamp_any(&value, ctx->year, &when) && (rec->when = when, true);
    }
    if (is_one_of(key, levels)) {
        uint8_t level = fr_level_take(&value);
        return level != FR_LEVEL_NONE && value.n == 0 && (rec->level = level, true);
    }
    if (fr_sv_eq(key, FR_SV("rank"))) {
        return fr_lex_index(&value, &rank) && value.n == 0 && (rec->who.rank = rank, true);
    }
    if (fr_sv_eq(key, FR_SV("pid"))) {
        return fr_lex_digits(&value, 1, 10, &pid) && value.n == 0 && (rec->who.pid = (int64_t)pid, true);
    }
    if (is_one_of(key, hosts)) {
        rec->who.node = value;
        return true;
    }
    return is_one_of(key, others);
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, next = at, key, value;
    struct fr_record known = *rec;
    unsigned n = 0;
    while (take_pair(&next, &key, &value) && take_known(ctx, &known, key, value)) {
        at = next;
        n++;
    }
    if (n < 2 || known.level == FR_LEVEL_NONE || known.when.basis == FR_TIME_BASIS_NONE) {
        return false;
    }
    *rec = known;
    next = at;
    bool message = take_pair(&next, &key, &value) && (fr_sv_eq(key, FR_SV("msg")) || fr_sv_eq(key, FR_SV("message")));
    rec->text = !message ? at : next.n == 0 ? value : fr_sv_range(value.p, at.p + at.n);
    return true;
}

static const struct fr_format_sample samples[] = {
    {"time=2025-01-02T03:04:05.678 level=info rank=3 msg=\"train\" step=10 loss=2.1",
     "rank=3 level=info time=2025-01-02T03:04:05.678 text=\"train\\\" step=10 loss=2.1\""},
    {"ts=2025-01-02T03:04:05Z level=error host=gn11 pid=71 rank=0 msg=\"shard is missing\"",
     "rank=0 pid=71 node=gn11 level=error text=\"shard is missing\""},
    {"time=2025-01-02T03:04:05.678 level=warning logger=fit msg=\"a b\"", "rank=- level=warn text=\"a b\""},
    {"level=info rank=3 step=10", "rank=-"},
    {"time=3.5 level=info rank=3", "rank=-"},
    {"step=10 loss=2.1 time=2025-01-02T03:04:05", "rank=- text=\"step=10 loss=2.1 time=2025-01-02T03:04:05\""},
    {NULL, NULL}};

const struct fr_format fr_format_logfmt = {.name = "logfmt",
                                           .summary = "time=... level=info rank=3 msg=\"...\"",
                                           .peel = peel,
                                           .samples = samples};
