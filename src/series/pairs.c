/* SPDX-License-Identifier: Apache-2.0 */
/* pairs: found by their separator, then read to both sides; that costs nothing on text without
 * separators. */
#include "series/pairs.h"

#include <ctype.h>
#include <math.h>

#include "series/num.h"

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '/' || c == '.' || c == '-';
}

/* "\x1b[1;31m" or "^[[31m" at p: its end, else p. */
static const char *skip_colour(const char *p, const char *e)
{
    while (p < e && *p == '\x1b') {
        const char *q = p + 1;
        if (q < e && *q == '[') {
            q++;
            while (q < e && (fr_is_digit(*q) || *q == ';')) {
                q++;
            }
            q += q < e;
        }
        p = fr_skip_space(q, e);
    }
    return p;
}

bool fr_pair_value(const char **p, const char *e, double *ret)
{
    const char *q = skip_colour(fr_skip_space(*p, e), e);
    if (q < e && (*q == '"' || *q == '\'' || *q == '[' || *q == '(')) {
        q++;
    } else if (FR_AT(q, e, "tensor(")) {
        q += sizeof "tensor(" - 1;
        q += q < e && *q == '[';
    }
    double v;
    if (!fr_num_grouped(&q, e, &v)) {
        return false;
    }
    bool sentence_ends = q < e && *q == '.' && (q + 1 == e || q[1] == ' ');
    if (q < e && (*q == ':' || *q == '.') && !sentence_ends) {
        return false; /* a clock, an address, a version */
    }
    const char *r = fr_skip_space(q, e);
    if (r < e && (*r == '*' || *r == '+' || (*r == '-' && r + 1 < e && r[1] == ' ' && r == q))) {
        return false; /* an expression in a source line */
    }
    *ret = v;
    *p = q;
    return true;
}

/* The name that ends right before `sep` and begins at or after p. */
static fr_sv name_before(const char *p, const char *sep)
{
    const char *z = sep;
    while (z > p && (z[-1] == ' ' || z[-1] == '"' || z[-1] == '\'' || z[-1] == ']')) {
        z--;
    }
    const char *a = z;
    while (a > p && is_name(a[-1])) {
        a--;
    }
    if (a > p && (a[-1] == '[' ||
                  a[-1] == ';')) { /* "\x1b[31mstep": the colour's tail is no part of the name */
        const char *b = a;
        while (b < z && fr_is_digit(*b)) {
            b++;
        }
        if (b < z && b > a && *b == 'm') {
            a = b + 1;
        }
    }
    return fr_sv_range(a, z);
}

static bool ends_in_loss(fr_sv s)
{
    return s.n >= 4 && fr_sv_find_ci(fr_sv_skip(s, s.n - 4), FR_SV("loss")) == 0;
}

/* "val", "valid", "validation", "eval", "test", "dev", in any case, somewhere in it. */
static bool names_evaluation(fr_sv s)
{
    for (size_t i = 0; i + 3 <= s.n; i++) {
        char a = s.p[i] | 0x20, b = s.p[i + 1] | 0x20, c = s.p[i + 2] | 0x20;
        if ((a == 'v' && b == 'a' && c == 'l') || (a == 't' && b == 'e' && c == 's') ||
            (a == 'd' && b == 'e' && c == 'v' && i == 0)) {
            return true;
        }
    }
    return false;
}

/* The word before the name: "val loss: 0.5", "Validation Loss=..". */
static fr_sv word_before(const char *p, const char *name)
{
    const char *z = name;
    while (z > p && z[-1] == ' ') {
        z--;
    }
    const char *a = z;
    while (a > p && (isalnum((unsigned char)a[-1]) || a[-1] == '_')) {
        a--;
    }
    return z == name ? FR_SV_NONE : fr_sv_range(a, z);
}

static struct fr_mkey meaning(const char *p, fr_sv name)
{
    struct fr_mkey k = fr_mkey_find(name);
    if (k.role == FR_MKEY_NONE && ends_in_loss(name)) { /* diffusers' scripts show "step_loss", RL trainers "policy/loss" */
        bool whole = fr_sv_ends(name, FR_SV("step_loss")) || fr_sv_eq(name, FR_SV("local_loss")) || fr_sv_eq(name, FR_SV("policy/loss"));
        k.role = 1 + (names_evaluation(name) ? FR_METRIC_EVAL_LOSS : whole ? FR_METRIC_LOSS : FR_METRIC_AUX_LOSS);
    }
    if (k.role == 1 + FR_METRIC_LOSS) {
        fr_sv before = word_before(p, name.p);
        if (before.n != 0 && before.n <= 10 && names_evaluation(before)) {
            k.role = 1 + FR_METRIC_EVAL_LOSS;
        }
    }
    return k;
}

/* "1099.34ms" under a name whose unit is seconds. */
static double in_seconds(struct fr_mkey k, const char *q, const char *e, double v)
{
    return k.role == 1 + FR_METRIC_STEP_TIME && k.factor == 1.0f &&
                   FR_AT(fr_skip_space(q, e), e, "ms")
               ? v * 1e-3
               : v;
}

/* "step=44ms": how long it took, not which one it was. */
static struct fr_mkey or_duration(struct fr_mkey k, const char *q, const char *e)
{
    const char *end = q + (FR_AT(q, e, "ms") ? 2 : FR_AT(q, e, "s") ? 1 : 0);
    if (k.role == FR_MKEY_STEP && end > q && (end == e || !isalnum((unsigned char)*end))) {
        k = (struct fr_mkey){.role = 1 + FR_METRIC_STEP_TIME, .factor = 1.0f};
    }
    return k;
}

static void put(struct fr_point *ret, struct fr_mkey k, double v)
{
    if (k.role == 1 + FR_METRIC_AUX_LOSS && fr_point_has(ret, FR_METRIC_AUX_LOSS) && !isfinite(v)) {
        fr_point_set(ret, FR_METRIC_AUX_LOSS, v);
        return;
    }
    fr_mkey_put(ret, k, v);
}

/* Where no total is printed, a part of the loss that is NaN makes it so. */
static void only_a_part(struct fr_point *ret)
{
    if (!fr_point_has(ret, FR_METRIC_LOSS) && fr_point_has(ret, FR_METRIC_AUX_LOSS) && isnan(ret->value[FR_METRIC_AUX_LOSS]) &&
        (ret->flags & FR_POINT_RL) == 0) {
        fr_point_set(ret, FR_METRIC_LOSS, NAN);
    }
}

unsigned fr_pairs(const char *p, const char *e, struct fr_point *ret)
{
    unsigned n = 0;
    const char *from = p;
    for (const char *s = fr_seek_separator(p, e); s < e; s = fr_seek_separator(s + 1, e)) {
        if (s == p || s + 1 == e || s[1] == *s || s[-1] == *s || fr_is_digit(s[-1])) {
            continue;
        }
        fr_sv name = name_before(from, s);
        if (name.n == 0 || name.n > 48 ||
            (name.p > from && name.p[-1] == ':')) { /* "module:step:210" is a source line */
            continue;
        }
        struct fr_mkey k = meaning(from, name);
        if (k.role == FR_MKEY_NONE) {
            continue;
        }
        ret->flags |= k.rl ? FR_POINT_RL : 0;
        const char *q = s + 1;
        double v;
        if (k.role == FR_MKEY_STEP && ret->step < 0) {
            const char *r = fr_skip_space(q, e);
            r += r < e && *r == '[';
            if (fr_num_ratio(&r, e, &ret->step, &ret->max_step)) {
                s = r - 1;
                n++;
                continue;
            }
        }
        if (fr_pair_value(&q, e, &v) && !(k.role == FR_MKEY_STEP && q < e && *q == '%')) {
            k = or_duration(k, q, e);
            put(ret, k, in_seconds(k, q, e, v));
            s = q - 1;
            n++;
        }
    }
    only_a_part(ret);
    return n;
}

static bool is_measurement(const char *p, const char *e, double v)
{
    if (!isfinite(v)) {
        return true;
    }
    while (p < e && *p != '.' && *p != 'e' && *p != 'E') {
        p++;
    }
    return p < e;
}

unsigned fr_spaced_pairs(const char *p, const char *e, struct fr_point *ret)
{
    unsigned n = 0;
    for (const char *a = p; a < e;) {
        if (!isalpha((unsigned char)*a)) {
            a++;
            continue;
        }
        const char *z = a;
        while (z < e && is_name(*z)) {
            z++;
        }
        bool alone = a == p || !is_name(a[-1]);
        const char *gap = z;
        while (gap < e && (*gap == ']' || *gap == ')')) {
            gap++;
        }
        const char *q = fr_skip_space(gap, e), *begin = q;
        double v;
        if (alone && q > gap && fr_pair_value(&q, e, &v) && is_measurement(begin, q, v)) {
            struct fr_mkey k = meaning(p, fr_sv_range(a, z));
            if (k.role != FR_MKEY_NONE) {
                ret->flags |= k.rl ? FR_POINT_RL : 0;
                put(ret, k, in_seconds(k, q, e, v));
                n++;
            }
            z = q;
        }
        a = z;
    }
    return n;
}

fr_sv fr_last_redraw(fr_sv text)
{
    while (text.n != 0 && (text.p[text.n - 1] == '\r' || text.p[text.n - 1] == '\n')) {
        text.n--;
    }
    const char *cr = text.n != 0 ? memrchr(text.p, '\r', text.n) : NULL;
    return cr != NULL ? fr_sv_range(cr + 1, text.p + text.n) : text;
}

bool fr_word_number(const char *p, const char *e, const char *word, int64_t *ret_at,
                    int64_t *ret_of)
{
    size_t n = strlen(word);
    for (const char *q = p; (q = fr_seek(q, e, word, n)) != NULL; q++) {
        if (q > p && (isalnum((unsigned char)q[-1]) || q[-1] == '_')) {
            continue;
        }
        const char *r = q + n;
        if (r < e && isalpha((unsigned char)*r)) {
            continue;
        }
        while (r < e && (*r == ' ' || *r == '\t' || *r == ']' || *r == '[' || *r == ':' ||
                         *r == '=' || *r == '#')) {
            r++;
        }
        if (fr_num_ratio(&r, e, ret_at, ret_of) || fr_num_int(&r, e, ret_at)) {
            return r == e || (!isalnum((unsigned char)*r) && *r != '%');
        }
    }
    return false;
}

void fr_point_across_epochs(struct fr_point *pt, int first)
{
    double before = pt->epoch - first;
    if (pt->step < 0 || !(before >= 0) || before > 1e6 || pt->max_step <= 0 ||
        pt->max_step > 1000000000) {
        return;
    }
    pt->step += (int64_t)before * pt->max_step;
    pt->max_step = -1; /* that was the epoch's length */
}
