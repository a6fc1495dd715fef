/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/json.h"

bool fr_js_fail(struct fr_js *j, const char *why)
{
    if (j->why == NULL) {
        j->why = why;
    }
    return false;
}

char fr_js_peek(struct fr_js *j)
{
    while (j->at < j->n && (j->p[j->at] == ' ' || j->p[j->at] == '\n' || j->p[j->at] == '\r' ||
                            j->p[j->at] == '\t')) {
        j->at++;
    }
    return j->at < j->n && j->why == NULL ? j->p[j->at] : '\0';
}

static bool take(struct fr_js *j, char c, const char *why)
{
    if (fr_js_peek(j) != c) {
        return fr_js_fail(j, why);
    }
    j->at++;
    return true;
}

bool fr_js_open(struct fr_js *j, char what)
{
    j->fresh = true;
    return take(j, what, what == '{' ? "an object was expected" : "an array was expected");
}

/* Whether another element follows; takes the comma or the closing bracket. */
static bool more(struct fr_js *j, char close)
{
    char c = fr_js_peek(j);
    bool fresh = j->fresh;
    j->fresh = false;
    if (c == close && c != '\0') {
        j->at++;
        return false;
    }
    if (fresh) {
        return c == '\0' ? fr_js_fail(j, "the JSON ends early") : true;
    }
    return take(j, ',',
                c == '\0' ? "the JSON ends early" : "a comma or a closing bracket was expected");
}

bool fr_js_key(struct fr_js *j, fr_sv *raw)
{
    return more(j, '}') && fr_js_string(j, raw) && take(j, ':', "a colon was expected");
}

bool fr_js_item(struct fr_js *j)
{
    return more(j, ']');
}

static bool hex4(const char *p, unsigned *ret)
{
    unsigned v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned d = (unsigned char)p[i] | 0x20u;
        if (p[i] >= '0' && p[i] <= '9') {
            d = (unsigned)(p[i] - '0');
        } else if (d >= 'a' && d <= 'f') {
            d = d - 'a' + 10;
        } else {
            return false;
        }
        v = v * 16 + d;
    }
    *ret = v;
    return true;
}

bool fr_js_string(struct fr_js *j, fr_sv *raw)
{
    unsigned v;
    if (!take(j, '"', "a string was expected")) {
        return false;
    }
    size_t from = j->at;
    while (j->at < j->n && j->p[j->at] != '"') {
        if ((unsigned char)j->p[j->at] < 0x20) {
            return fr_js_fail(j, "a control character inside a string");
        }
        if (j->p[j->at] == '\\') {
            char e = j->at + 1 < j->n ? j->p[j->at + 1] : '\0';
            if (e == '\0' || strchr("\"\\/bfnrtu", e) == NULL) {
                return fr_js_fail(j, "an unknown escape in a string");
            }
            if (e == 'u' && (j->n - j->at < 6 || !hex4(j->p + j->at + 2, &v))) {
                return fr_js_fail(j, "a broken \\u escape in a string");
            }
            j->at++;
        }
        j->at++;
    }
    if (j->at >= j->n) {
        j->at = j->n;
        return fr_js_fail(j, "a string without its end");
    }
    *raw = (fr_sv){j->p + from, j->at - from};
    j->at++;
    return true;
}

bool fr_js_u64(struct fr_js *j, uint64_t *ret)
{
    fr_js_peek(j);
    if (j->why != NULL) {
        return false;
    }
    fr_sv rest = {j->p + j->at, j->n - j->at};
    fr_sv s = rest;
    if (s.n == 0 || s.p[0] < '0' || s.p[0] > '9' || !fr_sv_take_u64(&s, ret)) {
        return fr_js_fail(j, "a whole number of at most 64 bits was expected");
    }
    if (s.n > 0 && (s.p[0] == '.' || s.p[0] == 'e' || s.p[0] == 'E')) {
        return fr_js_fail(j, "a whole number was expected, not a fraction");
    }
    j->at += rest.n - s.n;
    return true;
}

static bool skip_number(struct fr_js *j)
{
    size_t from = j->at;
    if (fr_sv_starts((fr_sv){j->p + j->at, j->n - j->at}, FR_SV("-Infinity"))) {
        j->at += strlen("-Infinity");
        return true;
    }
    while (j->at < j->n && j->p[j->at] != '\0' && strchr("+-.eE0123456789", j->p[j->at]) != NULL) {
        j->at++;
    }
    return j->at > from ? true : fr_js_fail(j, "a value was expected");
}

static bool skip_word(struct fr_js *j, fr_sv word)
{
    if (!fr_sv_starts((fr_sv){j->p + j->at, j->n - j->at}, word)) {
        return fr_js_fail(j, "a value was expected");
    }
    j->at += word.n;
    return true;
}

static bool skip_scalar(struct fr_js *j, char c)
{
    fr_sv raw;
    switch (c) {
    case '"':
        return fr_js_string(j, &raw);
    case 't':
        return skip_word(j, FR_SV("true"));
    case 'f':
        return skip_word(j, FR_SV("false"));
    case 'n':
        return skip_word(j, FR_SV("null"));
    case 'N':
        return skip_word(j, FR_SV("NaN")); /* Python's json.dump writes it, and Infinity */
    case 'I':
        return skip_word(j, FR_SV("Infinity"));
    default:
        return skip_number(j);
    }
}

/* Without recursion: `close` holds the brackets that are open. */
bool fr_js_skip(struct fr_js *j)
{
    char close[FR_JS_DEPTH];
    int depth = 0;
    fr_sv key;
    do {
        if (depth > 0 && !(close[depth - 1] == '}' ? fr_js_key(j, &key) : fr_js_item(j))) {
            if (j->why != NULL) {
                return false;
            }
            depth--;
            continue;
        }
        char c = fr_js_peek(j);
        if (c == '{' || c == '[') {
            if (depth == FR_JS_DEPTH) {
                return fr_js_fail(j, "the JSON is nested too deep");
            }
            close[depth++] = c == '{' ? '}' : ']';
            fr_js_open(j, c);
        } else if (!skip_scalar(j, c)) {
            return false;
        }
    } while (depth > 0);
    return true;
}

bool fr_js_end(struct fr_js *j)
{
    (void)fr_js_peek(j);
    return j->why == NULL &&
           (j->at >= j->n || fr_js_fail(j, "something follows the end of the JSON"));
}

static size_t put_utf8(char *out, unsigned v)
{
    if (v < 0x80) {
        out[0] = (char)v;
        return 1;
    }
    if (v < 0x800) {
        out[0] = (char)(0xC0 | v >> 6);
        out[1] = (char)(0x80 | (v & 63));
        return 2;
    }
    if (v < 0x10000) {
        out[0] = (char)(0xE0 | v >> 12);
        out[1] = (char)(0x80 | (v >> 6 & 63));
        out[2] = (char)(0x80 | (v & 63));
        return 3;
    }
    out[0] = (char)(0xF0 | v >> 18);
    out[1] = (char)(0x80 | (v >> 12 & 63));
    out[2] = (char)(0x80 | (v >> 6 & 63));
    out[3] = (char)(0x80 | (v & 63));
    return 4;
}

/* At the 'u' of an escape; moves past it, and past the second half of a pair. A lone half becomes
 * U+FFFD. */
static unsigned code_point(fr_sv raw, size_t *i)
{
    unsigned v = 0xFFFD, low;
    (void)hex4(raw.p + *i + 1, &v);
    *i += 5;
    if (v >= 0xD800 && v < 0xDC00 && raw.n - *i >= 6 && raw.p[*i] == '\\' && raw.p[*i + 1] == 'u' &&
        hex4(raw.p + *i + 2, &low) && low >= 0xDC00 && low < 0xE000) {
        *i += 6;
        return 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    }
    return v >= 0xD800 && v < 0xE000 ? 0xFFFD : v;
}

fr_sv fr_js_text(fr_sv raw, struct fr_arena *arena)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (fr_sv_chr(raw, '\\') == FR_NPOS) {
        return raw;
    }
    char *out = fr_arena_alloc(arena, raw.n + 1); /* never longer than its escapes */
    size_t n = 0;
    for (size_t i = 0; out != NULL && i < raw.n;) {
        if (raw.p[i] != '\\') {
            out[n++] = raw.p[i++];
            continue;
        }
        i++;
        if (raw.p[i] == 'u') {
            n += put_utf8(out + n, code_point(raw, &i));
            continue;
        }
        const char *at = strchr(from, raw.p[i]);
        out[n++] = at != NULL ? to[at - from] : raw.p[i];
        i++;
    }
    return out == NULL ? FR_SV_NONE : (fr_sv){out, n};
}
