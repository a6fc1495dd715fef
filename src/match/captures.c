/* SPDX-License-Identifier: Apache-2.0 */
/* captures: values out of a line that is already known to match. PCRE2 without its JIT: a signal is
 * captured a few times per run, and compiling machine code for it would cost more than it saves. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "match/scanner.h"

#include "base/alloc.h"

#include <pcre2.h>

#define TEXT_MAX       (64u << 10)
#define MATCH_LIMIT    200000
#define DEPTH_LIMIT    2000
#define HEAP_LIMIT_KIB 2048

struct fr_captures {
    pcre2_match_context *limits;
    pcre2_match_data *match;
    uint16_t n;
    pcre2_code *code[]; /* NULL: does not compile (lint tells) */
};

static struct fr_captures *compile(const struct fr_signal *signal)
{
    struct fr_captures *c = fr_calloc(1, sizeof *c + signal->n_captures * sizeof c->code[0]);
    if (c == NULL) {
        return NULL;
    }
    c->limits = pcre2_match_context_create(NULL);
    c->match = pcre2_match_data_create(2, NULL);
    c->n = signal->n_captures;
    if (c->limits != NULL) {
        pcre2_set_match_limit(c->limits, MATCH_LIMIT);
        pcre2_set_depth_limit(c->limits, DEPTH_LIMIT);
        pcre2_set_heap_limit(c->limits, HEAP_LIMIT_KIB);
    }
    for (uint16_t i = 0; i < c->n; i++) {
        int why = 0;
        PCRE2_SIZE at = 0;
        c->code[i] = pcre2_compile((PCRE2_SPTR)signal->captures[i].regex, PCRE2_ZERO_TERMINATED, 0,
                                   &why, &at, NULL);
    }
    return c;
}

void fr_captures_check(const struct fr_library *lib, struct fr_complain *complain)
{
    for (uint32_t k = 0; k < lib->n_signals; k++) {
        const struct fr_signal *signal = &lib->signals[k];
        for (uint16_t i = 0; i < signal->n_captures; i++) {
            int why = 0;
            PCRE2_SIZE at = 0;
            const char *regex = signal->captures[i].regex;
            pcre2_code *code =
                pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED, 0, &why, &at, NULL);
            if (code == NULL) {
                PCRE2_UCHAR text[160] = "";
                pcre2_get_error_message(why, text, sizeof text);
                fr_complain(complain, FR_COMPLAINT_ERROR, lib->failures[signal->failure].path, 0,
                            "signal '%s': capture '%s': %s at byte %zu", signal->id,
                            signal->captures[i].name, (const char *)text, (size_t)at);
            }
            pcre2_code_free(code);
        }
    }
}

void fr_captures_free(struct fr_scanner *s)
{
    for (uint32_t k = 0; k < s->rules->library->n_signals; k++) {
        struct fr_captures *c = s->captures[k];
        if (c == NULL) {
            continue;
        }
        for (uint16_t i = 0; i < c->n; i++) {
            pcre2_code_free(c->code[i]);
        }
        pcre2_match_data_free(c->match);
        pcre2_match_context_free(c->limits);
        fr_free(c);
    }
}

static bool capture(const struct fr_captures *c, uint16_t i, fr_sv text, fr_sv *ret)
{
    if (c->code[i] == NULL || c->match == NULL || c->limits == NULL) {
        return false;
    }
    const int n = pcre2_match(c->code[i], (PCRE2_SPTR)text.p, text.n, 0, 0, c->match, c->limits);
    if (n < 0) {
        return false; /* no match, or over a limit: no value either way */
    }
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(c->match);
    const bool has_group = n >= 2 && at[2] != PCRE2_UNSET;
    if (n >= 2 && !has_group) {
        return false;
    }
    *ret = fr_sv_head(fr_sv_skip(text, has_group ? at[2] : at[0]),
                      has_group ? at[3] - at[2] : at[1] - at[0]);
    return at[1] >= at[0];
}

int fr_scan_captures(struct fr_scanner *s, uint16_t signal, fr_sv text, struct fr_cap *ret, int max)
{
    const struct fr_signal *def = &s->rules->library->signals[signal];
    int n = 0;
    if (signal >= s->rules->library->n_signals || def->n_captures == 0) {
        return 0;
    }
    if (s->captures[signal] == NULL) {
        s->captures[signal] = compile(def);
    }
    const struct fr_captures *c = s->captures[signal];
    text = fr_sv_head(text, TEXT_MAX);
    for (uint16_t i = 0; c != NULL && i < c->n && n < max; i++) {
        fr_sv value = FR_SV_NONE;
        if (!capture(c, i, text, &value)) {
            continue;
        }
        struct fr_cap *cap = &ret[n++];
        const fr_sv name = fr_sv_z(def->captures[i].name);
        fr_sv rest = value;
        *cap = (struct fr_cap){.key = (uint8_t)fr_key_from(name), .text = value, .name = name};
        cap->is_num = fr_sv_take_i64(&rest, &cap->num) && rest.n == 0;
    }
    return n;
}
