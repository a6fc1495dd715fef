/* SPDX-License-Identifier: Apache-2.0 */
/* tree: see tree.h. jansson keeps insertion order. A lost node is remembered per thread, so that building needs no checks. */
#include "report/tree.h"

#include "base/alloc.h"
#include "base/utf8.h"
#include "report/words.h"

#include <math.h>

static _Thread_local bool lost;

json_t *fr_tree_root(void)
{
    json_set_alloc_funcs(fr_malloc, fr_free); /* counted and bounded like everything else */
    lost = false;
    return json_object();
}

void fr_tree_set(json_t *o, const char *key, json_t *value)
{
    lost |= json_object_set_new_nocheck(o, key, value) != 0;
}

void fr_tree_push(json_t *array, json_t *value)
{
    lost |= json_array_append_new(array, value) != 0;
}

json_t *fr_tree_text(fr_sv s)
{
    if (fr_utf8_valid(s)) {
        return json_stringn_nocheck(s.n > 0 ? s.p : "", s.n);
    }
    FR_AUTO(fr_buf) fixed = FR_BUF_INIT(0);
    while (s.n > 0) {
        size_t n = fr_utf8_len(s);
        fr_buf_add(&fixed, n > 0 ? fr_sv_head(s, n) : FR_SV("\xEF\xBF\xBD"));
        s = fr_sv_skip(s, n > 0 ? n : 1);
    }
    return fr_buf_ok(&fixed) ? json_stringn_nocheck(fixed.p, fixed.n) : NULL;
}

json_t *fr_tree_strings(const char *const *v)
{
    json_t *a = json_array();
    for (; v != NULL && *v != NULL; v++) {
        fr_tree_push(a, fr_tree_text(fr_sv_z(*v)));
    }
    return a;
}

void fr_tree_str(json_t *o, const char *key, fr_sv s)
{
    fr_tree_set(o, key, fr_tree_text(s));
}

void fr_tree_maybe(json_t *o, const char *key, fr_sv s)
{
    fr_tree_set(o, key, s.n > 0 ? fr_tree_text(s) : json_null());
}

void fr_tree_int(json_t *o, const char *key, int64_t n)
{
    fr_tree_set(o, key, json_integer(n));
}

void fr_tree_known(json_t *o, const char *key, int64_t n)
{
    fr_tree_set(o, key, n >= 0 ? json_integer(n) : json_null());
}

void fr_tree_real(json_t *o, const char *key, double d)
{
    fr_tree_set(o, key, isfinite(d) ? json_real(d) : json_null());
}

void fr_tree_when(json_t *o, const struct fr_when *w)
{
    FR_AUTO(fr_buf) iso = FR_BUF_INIT(0);
    fr_words_iso(&iso, w);
    lost |= !fr_buf_ok(&iso);
    fr_tree_maybe(o, "time", fr_buf_sv(&iso));
    fr_tree_str(o, "time_basis", fr_sv_z(fr_words_basis(w)));
}

void fr_tree_buf(json_t *o, const char *key, const struct fr_buf *b)
{
    lost |= !fr_buf_ok(b);
    fr_tree_str(o, key, fr_buf_sv(b));
}

void fr_tree_uri(json_t *o, const char *key, fr_sv path)
{
    static const char hex[] = "0123456789ABCDEF";
    FR_AUTO(fr_buf) b = FR_BUF_INIT(0);
    if (fr_sv_starts(path, FR_SV("/"))) {
        fr_buf_addz(&b, "file://");
    }
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c != 0 && strchr("-._~/", c))) {
            fr_buf_addc(&b, (char)c);
        } else {
            fr_buf_addc(&b, '%');
            fr_buf_addc(&b, hex[c >> 4]);
            fr_buf_addc(&b, hex[c & 15]);
        }
    }
    fr_tree_buf(o, key, &b);
}

json_t *fr_tree_array_at(json_t *o, fr_sv key)
{
    FR_AUTO(fr_buf) name = FR_BUF_INIT(0);
    fr_utf8_clean(&name, key, 0);
    lost |= !fr_buf_ok(&name);
    const char *z = name.p != NULL ? name.p : "";
    json_t *a = json_object_get(o, z);
    if (a == NULL) {
        fr_tree_set(o, z, json_array());
        a = json_object_get(o, z);
    }
    return a;
}

static int append(const char *p, size_t n, void *ctx)
{
    struct fr_buf *out = ctx;
    fr_sv rest = {p, n}, part;
    while (fr_sv_cut(rest, 0x7f, &part, &rest)) { /* the one control character that jansson leaves as it is */
        fr_buf_add(out, part);
        fr_buf_addz(out, "\\u007f");
    }
    fr_buf_add(out, part);
    return fr_buf_ok(out) ? 0 : -1;
}

int fr_tree_dump(json_t *root, struct fr_buf *out, struct fr_err *err)
{
    bool broken = lost || root == NULL;
    if (!broken) {
        broken = json_dump_callback(root, append, out, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) != 0;
        fr_buf_addc(out, '\n');
    }
    json_decref(root);
    if (broken && fr_buf_ok(out)) {
        return fr_err_set(err, FR_NOMEM, "out of memory while writing the report");
    }
    return fr_words_finish(out, err);
}
