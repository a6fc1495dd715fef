/* SPDX-License-Identifier: Apache-2.0 */
/* json_line: one JSON object per line: Docker's json-file, journalctl -o json, Loki and everybody's
 * own keys. Time, level, host and rank come from the keys people use; the message is unescaped into
 * the scratch arena and peeled further by the others. An object without a message stays text:
 * metric lines are JSON too. */
#include "format/peel.h"

#include <jansson.h>

enum { TEXT_LIMIT = 1 << 20 };

static const json_t *first_of(const json_t *object, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        const json_t *v = json_object_get(object, *keys);
        if (v != NULL && !json_is_null(v)) {
            return v;
        }
    }
    return NULL;
}

static fr_sv text_of(const struct fr_peel_ctx *ctx, const json_t *v)
{
    if (json_is_string(v)) {
        return fr_arena_dup(ctx->scratch, (fr_sv){json_string_value(v), json_string_length(v)});
    }
    size_t n = json_array_size(v); /* journald prints bytes it cannot read as an array of numbers */
    if (n == 0 || n > TEXT_LIMIT) {
        return FR_SV_NONE;
    }
    char *bytes = fr_arena_alloc(ctx->scratch, n);
    if (bytes == NULL) {
        return FR_SV_NONE;
    }
    for (size_t i = 0; i < n; i++) {
        json_int_t b = json_integer_value(json_array_get(v, i));
        bytes[i] = b >= 32 || b == '\t' || b == '\n' ? (char)b : ' ';
    }
    return (fr_sv){bytes, n};
}

static int64_t number_of(const json_t *v, int64_t otherwise)
{
    if (json_is_integer(v)) {
        return (int64_t)json_integer_value(v);
    }
    int64_t n = 0;
    fr_sv s = {json_string_value(v), json_string_length(v)};
    return json_is_string(v) && fr_lex_int(&s, &n) && s.n == 0 ? n : otherwise;
}

static bool time_of(const struct fr_peel_ctx *ctx, const json_t *v, struct fr_when *ret)
{
    char number[40];
    if (json_is_string(v)) {
        fr_sv s = {json_string_value(v), json_string_length(v)};
        return fr_stamp_any(&s, ctx->year, ret) || fr_stamp_epoch(&s, ret);
    }
    if (json_is_integer(v)) {
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        snprintf(number, sizeof number, "%.9f", json_real_value(v));
    } else {
        return false;
    }
    fr_sv s = fr_sv_z(number);
    return fr_stamp_epoch(&s, ret);
}

static void take_times(const struct fr_peel_ctx *ctx, const json_t *object, struct fr_record *rec)
{
    static const char *const collector[] = {"__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP",
                                            NULL};
    static const char *const common[] = {"time",    "ts",       "timestamp", "@timestamp",
                                         "asctime", "datetime", "t",         NULL};
    struct fr_when when;
    const json_t *v = first_of(object, collector);
    if (v != NULL && time_of(ctx, v, &when)) {
        fr_rec_outer(rec, &when);
        const json_t *boot = json_object_get(object, "_SOURCE_MONOTONIC_TIMESTAMP");
        if (boot != NULL && number_of(boot, -1) >= 0 && number_of(boot, -1) < INT64_MAX / 1000) {
            rec->when = (struct fr_when){number_of(boot, 0) * 1000, 1000, FR_TIME_BASIS_BOOT};
        }
        return;
    }
    v = first_of(object, common);
    if (v == NULL || !time_of(ctx, v, &when)) {
        return;
    }
    /* Docker and log shippers stamp what they read; a logger that writes JSON itself has a level
     * beside the time. */
    if (json_object_get(object, "log") != NULL || json_object_get(object, "stream") != NULL ||
        json_object_get(object, "line") != NULL) {
        fr_rec_outer(rec, &when);
    } else {
        rec->when = when;
    }
}

static void take_who(const struct fr_peel_ctx *ctx, const json_t *object, struct fr_record *rec)
{
    static const char *const nodes[] = {"_HOSTNAME", "node", "host", "hostname",
                                        "node_name", "pod",  NULL};
    static const char *const ranks[] = {"rank", "global_rank", NULL};
    static const char *const pids[] = {"_PID", "pid", "process", NULL};
    static const char *const programs[] = {"SYSLOG_IDENTIFIER", "_TRANSPORT", NULL};
    const json_t *v = first_of(object, nodes);
    if (json_is_string(v)) {
        rec->who.node = text_of(ctx, v);
    }
    int64_t rank = number_of(first_of(object, ranks), -1);
    int64_t local = number_of(json_object_get(object, "local_rank"), -1);
    rec->who.rank = rank >= 0 && rank < 10000000 ? (int32_t)rank : rec->who.rank;
    rec->who.local_rank = local >= 0 && local < 10000 ? (int32_t)local : rec->who.local_rank;
    int64_t pid = number_of(first_of(object, pids), -1);
    rec->who.pid = pid >= 0 ? pid : rec->who.pid;
    v = first_of(object, programs);
    rec->is_kernel =
        rec->is_kernel || (json_is_string(v) && strcmp(json_string_value(v), "kernel") == 0);
}

/* {"ctx": {"rank": 3}}: loggers that keep what is bound to them apart. */
static void take_bound(const struct fr_peel_ctx *ctx, const json_t *object, struct fr_record *rec)
{
    static const char *const names[] = {"ctx", "context", "extra", "labels", "meta", "fields", NULL};
    const json_t *v = first_of(object, names);
    if (json_is_object(v)) {
        take_who(ctx, v, rec);
    }
}

static void take_level(const json_t *object, struct fr_record *rec)
{
    static const char *const names[] = {"level", "severity", "levelname", "lvl", "log_level", NULL};
    static const uint8_t priorities[] = {FR_LEVEL_FATAL, FR_LEVEL_FATAL, FR_LEVEL_FATAL,
                                         FR_LEVEL_ERROR, FR_LEVEL_WARN,  FR_LEVEL_INFO,
                                         FR_LEVEL_INFO,  FR_LEVEL_DEBUG};
    const json_t *v = first_of(object, names);
    if (json_is_string(v)) {
        rec->level = fr_level_of((fr_sv){json_string_value(v), json_string_length(v)});
    }
    int64_t priority = number_of(json_object_get(object, "PRIORITY"), -1);
    if (priority >= 0 && priority < 8) {
        rec->level = priorities[priority];
    }
}

/* torchelastic's error.json: {"message": {"message": "..", "extraInfo": {"py_callstack": "Traceback
 * ..", "timestamp": "1796050455"}}}; the callstack is the message: it ends in the exception. The
 * C++ handler writes a string and a top-level timestamp. */
static const json_t *error_file(const struct fr_peel_ctx *ctx, const json_t *message,
                                struct fr_record *rec)
{
    struct fr_when when;
    const json_t *extra = json_object_get(message, "extraInfo"),
                 *stack = json_object_get(extra, "py_callstack");
    if (!json_is_object(message)) {
        return message;
    }
    const json_t *time = json_object_get(extra, "timestamp");
    if (time != NULL && time_of(ctx, time, &when)) {
        rec->when = when;
    }
    rec->level = FR_LEVEL_ERROR;
    return json_is_string(stack) ? stack : json_object_get(message, "message");
}

/* Loggers that put the traceback of an exception beside the message (structlog, python-json-logger): it ends in the
 * exception, which says more. */
static const json_t *traceback_beside(const json_t *object, const json_t *message)
{
    static const char *const names[] = {"exception", "exc_info", "exc_text", "traceback", "stack_trace", "stack", NULL};
    for (const char *const *n = names; message != NULL && *n != NULL; n++) {
        const json_t *v = json_object_get(object, *n);
        if (json_is_string(v) && strstr(json_string_value(v), "Traceback (most recent call last)") != NULL) {
            return v;
        }
    }
    return message;
}

/* The string behind an opening quote, without \\u: to the closing quote, which is dropped. */
static bool take_string(struct fr_arena *scratch, fr_sv *s, fr_sv *ret)
{
    static const char from[] = "nrtbf\"\\/", to[] = "\n\r\t\b\f\"\\/";
    char *bytes = fr_arena_alloc(scratch, s->n + 1);
    size_t n = 0, i = 0;
    while (bytes != NULL && i < s->n && s->p[i] != '"') {
        char c = s->p[i++];
        if (c == '\\') {
            const char *at = i < s->n && s->p[i] != '\0' ? strchr(from, s->p[i]) : NULL;
            if (at == NULL) {
                return false;
            }
            c = to[at - from];
            i++;
        }
        bytes[n++] = c;
    }
    if (bytes == NULL || i == s->n) {
        return false;
    }
    *ret = (fr_sv){bytes, n};
    *s = fr_sv_skip(*s, i + 1);
    return true;
}

/* Docker's own shape, the most frequent one, without building a tree: {"log":"text\n",
 * "stream":"stderr","time":"2025-11-25T12:34:56.123456789Z"}. Anything else about it is for the
 * parser. */
static bool peel_docker(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    fr_sv at = rec->text, body, time;
    struct fr_when when;
    if (!fr_lex_lit(&at, "{\"log\":\"") || !take_string(ctx->scratch, &at, &body) ||
        !fr_lex_lit(&at, ",\"stream\":\"std") ||
        (!fr_lex_lit(&at, "err\"") && !fr_lex_lit(&at, "out\"")) ||
        !fr_lex_lit(&at, ",\"time\":\"") || !fr_lex_until(&at, '"', &time) ||
        !fr_sv_eq(at, FR_SV("}")) || !fr_stamp_iso(&time, &when) || time.n != 0) {
        return false;
    }
    while (body.n > 0 && (body.p[body.n - 1] == '\n' || body.p[body.n - 1] == '\r')) {
        body.n--;
    }
    fr_rec_outer(rec, &when);
    rec->text = fr_peel_clean(ctx, body);
    return true;
}

/* Python writes NaN, Infinity and -Infinity, which JSON does not know: null in their place. Values are the metric reader's. */
static fr_sv without_nan(const struct fr_peel_ctx *ctx, fr_sv text)
{
    static const char *const names[] = {"NaN", "-Infinity", "Infinity", NULL};
    char *copy = fr_arena_alloc(ctx->scratch, text.n * 2);
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; copy != NULL && i < text.n;) {
        const char *const *name = names;
        for (; *name != NULL && (quoted || !fr_sv_starts(fr_sv_skip(text, i), fr_sv_z(*name))); name++) {
        }
        if (*name != NULL) {
            memcpy(copy + n, "null", 4);
            n += 4;
            i += strlen(*name);
            continue;
        }
        quoted ^= text.p[i] == '"';
        if (quoted && text.p[i] == '\\' && i + 1 < text.n) {
            copy[n++] = text.p[i++];
        }
        copy[n++] = text.p[i++];
    }
    return copy != NULL ? (fr_sv){copy, n} : FR_SV_NONE;
}

static json_t *load(const struct fr_peel_ctx *ctx, fr_sv text)
{
    json_t *object = json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL);
    if (object == NULL && (fr_sv_has(text, FR_SV("NaN")) || fr_sv_has(text, FR_SV("Infinity")))) {
        text = without_nan(ctx, text);
        object = text.p != NULL ? json_loadb(text.p, text.n, JSON_ALLOW_NUL, NULL) : NULL;
    }
    return object;
}

static bool peel(const struct fr_peel_ctx *ctx, struct fr_record *rec)
{
    static const char *const messages[] = {"log",  "MESSAGE",     "message", "msg",
                                           "line", "textPayload", "text",    "event", NULL};
    fr_sv text = rec->text;
    if (ctx->scratch == NULL || text.n < 9 || text.n > TEXT_LIMIT || text.p[1] != '"' ||
        text.p[text.n - 1] != '}') {
        return false;
    }
    if (peel_docker(ctx, rec)) {
        return true;
    }
    json_t *object = load(ctx, text);
    const json_t *message =
        object == NULL ? NULL : traceback_beside(object, error_file(ctx, first_of(object, messages), rec));
    fr_sv body = message == NULL ? FR_SV_NONE : text_of(ctx, message);
    bool is_line = body.p != NULL;
    if (is_line) {
        while (body.n > 0 && (body.p[body.n - 1] == '\n' || body.p[body.n - 1] == '\r')) {
            body.n--;
        }
        take_times(ctx, object, rec);
        take_who(ctx, object, rec);
        take_bound(ctx, object, rec);
        take_level(object, rec);
        rec->text = fr_peel_clean(ctx, body);
    }
    json_decref(object);
    return is_line;
}

static const struct fr_format_sample samples[] = {
    {"{\"ts\": \"2026-03-09T10:04:05\", \"rank\": 2, \"msg\": \"a \\\"NaN\\\" step\", \"loss\": NaN, \"low\": -Infinity}",
     "rank=2 text=\"a \\\"NaN\\\" step\""},
    {"{\"log\":\"[rank3]: KeyError: "
     "'x'\\n\",\"stream\":\"stderr\",\"time\":\"2025-11-25T12:34:56.123456789Z\"}",
     "outer=2025-11-25T12:34:56.123456789 time=- rank=3 text=\"KeyError: 'x'\""},
    {"{\"log\":\"a \\\"b\\\" \\\\ "
     "\\u003c\",\"stream\":\"stdout\",\"time\":\"2025-11-25T12:34:56Z\"}",
     "outer=2025-11-25T12:34:56 text=\"a \\\"b\\\" \\\\ <\""},
    {"{\"log\":\"a \\\"b\\\"\\tc\",\"stream\":\"stdout\",\"time\":\"2025-11-25T12:34:56Z\"}",
     "outer=2025-11-25T12:34:56 text=\"a \\\"b\\\"\tc\""},
    {"{\"__REALTIME_TIMESTAMP\":\"1700000000123456\",\"_HOSTNAME\":\"gpu07\",\"PRIORITY\":\"4\","
     "\"SYSLOG_IDENTIFIER\":\"kernel\","
     "\"MESSAGE\":\"NVRM: loading\",\"_SOURCE_MONOTONIC_TIMESTAMP\":\"77000000\"}",
     "outer=2023-11-14T22:13:20.123456 basis=boot node=gpu07 kernel=1 level=warn text=\"NVRM: "
     "loading\""},
    {"{\"__REALTIME_TIMESTAMP\":\"1700000000123456\",\"MESSAGE\":[104,105]}", "text=hi"},
    {"{\"ts\":1700000000.25,\"level\":\"error\",\"msg\":\"lost\",\"rank\":7,\"host\":\"n1\"}",
     "time=2023-11-14T22:13:20.25 level=error rank=7 node=n1 text=lost"},
    {"{\"@timestamp\":\"2025-01-02T03:04:05Z\",\"severity\":\"WARNING\",\"message\":\"\\u001b["
     "31mred\\u001b[0m\"}",
     "level=warn time=2025-01-02T03:04:05 text=red"},
    {"{\"message\": {\"message\": \"KeyError: 'x'\", \"extraInfo\": {\"py_callstack\": \"Traceback "
     "(most recent call last):\\n  File\", \"timestamp\": \"1796050455\"}}}",
     "level=error time=2026-11-30T14:54:15 text=\"Traceback (most recent call last):\n  File\""},
    {"{\"ts\": 1700000000.25, \"level\": \"error\", \"rank\": 3, \"event\": \"gave up\", "
     "\"exception\": \"Traceback (most recent call last):\\n  File\"}",
     "level=error rank=3 text=\"Traceback (most recent call last):\n  File\""},
    {"{\"loss\": 1.5, \"step\": 3}", "time=- text=\"{\\\"loss\\\": 1.5, \\\"step\\\": 3}\""},
    {"{\"log\": broken}", "time=-"},
    {NULL, NULL}};

const struct fr_format fr_format_json_line = {
    .name = "json_line",
    .summary = "JSON lines: Docker, journald, Loki, structured loggers",
    .peel = peel,
    .samples = samples};
