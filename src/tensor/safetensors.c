/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors: u64 header length, JSON header, data. The law of formats.md 9.1: offsets are
 * relative to the data, sorted by their begin they are contiguous from 0 to the end of the file,
 * and each is exactly as long as shape and type say. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "tensor/build.h"
#include "tensor/json.h"

#include <stdlib.h>

#define HEADER_MAX 100000000u /* the format's own limit */

struct claim { /* what a header entry says of itself */
    uint64_t begin, end;
    size_t at;                /* byte of its key in the file */
    fr_sv name;               /* in the arena */
};

struct st {
    struct fr_ckpt *c;
    uint32_t file;
    uint64_t data, size; /* first byte of the data, bytes of data there are */
    struct fr_js j;
    struct fr_arena scratch; /* keys seen */
    struct fr_map keys;
    FR_VEC(struct claim) claims;
};

struct entry {
    fr_sv dtype;
    uint64_t shape[FR_DIMS_MAX], begin, end;
    uint32_t dims;
    bool has_dtype, has_shape, has_offsets;
};


static void read_shape(struct fr_js *j, struct entry *e)
{
    uint64_t v;
    e->has_shape = fr_js_open(j, '[');
    while (e->has_shape && fr_js_item(j) && fr_js_u64(j, &v)) {
        if (e->dims < FR_DIMS_MAX) {
            e->shape[e->dims] = v;
        }
        if (e->dims++ == 1000) {
            fr_js_fail(j, "a shape with more than 1000 dimensions");
        }
    }
}

static void read_offsets(struct fr_js *j, struct entry *e)
{
    e->has_offsets = fr_js_open(j, '[') && fr_js_item(j) && fr_js_u64(j, &e->begin) &&
                     fr_js_item(j) && fr_js_u64(j, &e->end);
    if (e->has_offsets && fr_js_item(j)) {
        fr_js_fail(j, "data_offsets with more than two numbers");
    }
}

static bool read_entry(struct fr_js *j, struct entry *e)
{
    fr_sv key;
    *e = (struct entry){0};
    fr_js_open(j, '{');
    while (fr_js_key(j, &key)) {
        if (fr_sv_eq(key, FR_SV("dtype"))) {
            e->has_dtype = fr_js_string(j, &e->dtype);
        } else if (fr_sv_eq(key, FR_SV("shape"))) {
            e->dims = 0;
            read_shape(j, e);
        } else if (fr_sv_eq(key, FR_SV("data_offsets"))) {
            read_offsets(j, e);
        } else {
            fr_js_skip(j);
        }
    }
    return j->why == NULL;
}

/* Type, shape and offsets against each other and against the file. */
static void judge(struct st *s, struct fr_tensor *t, const struct entry *e, size_t at)
{
    uint64_t bytes, length = e->end - e->begin;
    if (e->end < e->begin) {
        fr_ckpt_say(s->c, FR_PROBLEM_HEADER, true, s->file, at, t->name,
                    "'%.*s' at byte %zu ends before it begins (%llu, %llu)", FR_SHOWN(t->name), at,
                    (unsigned long long)e->begin, (unsigned long long)e->end);
        t->cut = true;
        return;
    }
    t->offset = s->data + (e->begin <= s->size ? e->begin : s->size);
    t->bytes = length;
    t->cut = e->end > s->size;
    if (t->dtype == FR_DTYPE_UNKNOWN) {
        fr_ckpt_say(s->c, FR_PROBLEM_DTYPE, false, s->file, at, t->name,
                    "'%.*s' at byte %zu has the type '%.*s', which is not known; its %llu bytes "
                    "are skipped",
                    FR_SHOWN(t->name), at, (int)fr_sv_head(e->dtype, 40).n, e->dtype.p,
                    (unsigned long long)length);
        return;
    }
    if (!fr_ckpt_bytes(t->dtype, t->elements, &bytes) || bytes != length ||
        (t->elements % 2 != 0 && t->dtype == FR_F4_E2M1)) {
        fr_ckpt_say(s->c, FR_PROBLEM_SIZE, true, s->file, at, t->name,
                    "'%.*s' at byte %zu has %llu elements of %.*s, but its offsets hold %llu bytes",
                    FR_SHOWN(t->name), at, (unsigned long long)t->elements,
                    FR_SV_ARG(t->dtype_word), (unsigned long long)length);
        t->cut = true;
    }
}

static void add_tensor(struct st *s, fr_sv name, const struct entry *e, size_t at)
{
    struct fr_tensor *t = fr_ckpt_tensor(s->c, s->file, name);
    struct claim *claim = t == NULL ? NULL : FR_PUSH(&s->claims);
    if (claim == NULL) {
        s->c->nomem = s->c->nomem || t != NULL;
        return;
    }
    t->dtype = fr_dtype_of(e->dtype);
    t->dtype_word = fr_ckpt_dup(s->c, fr_sv_head(e->dtype, 40));
    *claim = (struct claim){e->begin, e->end, at, t->name};
    if (!fr_ckpt_shape(s->c, t, e->shape, e->dims, at)) {
        t->cut = true;
        t->elements = 0;
        return;
    }
    t->role = fr_role_of(t->name, t->dtype);
    judge(s, t, e, at);
}

static void one_key(struct st *s, fr_sv raw, size_t at)
{
    struct entry e;
    bool is_new = false;
    fr_sv name = fr_js_text(raw, s->c->arena);
    uint32_t *slot = name.p == NULL ? NULL : fr_map_slot(&s->keys, name, &is_new);
    if (slot == NULL) {
        s->c->nomem = true;
        return;
    }
    if (!is_new) {
        fr_ckpt_say(s->c, FR_PROBLEM_DUPLICATE, true, s->file, at, name,
                    "the key '%.*s' comes twice, again at byte %zu", FR_SHOWN(name), at);
    }
    if (fr_sv_eq(name, FR_SV("__metadata__"))) {
        fr_js_skip(&s->j);
        return;
    }
    if (name.n == 0) {
        fr_js_fail(&s->j, "a tensor without a name");
    }
    if (!read_entry(&s->j, &e)) {
        return;
    }
    if (!e.has_dtype || !e.has_shape || !e.has_offsets) {
        fr_ckpt_say(s->c, FR_PROBLEM_HEADER, true, s->file, at, name,
                    "'%.*s' at byte %zu lacks its dtype, shape or data_offsets", FR_SHOWN(name),
                    at);
        return;
    }
    add_tensor(s, name, &e, at);
}

static int by_begin(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : (x->at > y->at) - (x->at < y->at);
}

/* The data against all claims, in order of their begin. */
static void check_cover(struct st *s)
{
    uint64_t reached = 0, lost = 0, first_at = 0;
    fr_sv last = FR_SV_NONE, first_lost = FR_SV_NONE;
    if (s->claims.n > 0) {
        qsort(s->claims.v, s->claims.n, sizeof s->claims.v[0], by_begin);
    }
    for (uint32_t i = 0; i < s->claims.n; i++) {
        const struct claim *k = &s->claims.v[i];
        if (k->end < k->begin) {
            continue;
        }
        if (k->end > s->size && lost++ == 0) {
            first_lost = k->name;
            first_at = k->begin;
        }
        if (k->begin < reached && k->end > k->begin) {
            fr_ckpt_say(s->c, FR_PROBLEM_OVERLAP, true, s->file, k->at, k->name,
                        "'%.*s' and '%.*s' claim the same bytes, from byte %llu on",
                        FR_SHOWN(k->name), FR_SHOWN(last),
                        (unsigned long long)(s->data + k->begin));
        } else if (k->begin > reached && reached < s->size) {
            fr_ckpt_say(s->c, FR_PROBLEM_HOLE, true, s->file, s->data + reached, FR_SV_NONE,
                        "the bytes %llu to %llu belong to no tensor",
                        (unsigned long long)(s->data + reached),
                        (unsigned long long)(s->data + (k->begin < s->size ? k->begin : s->size)));
        }
        if (k->end > reached || last.p == NULL) {
            reached = k->end > reached ? k->end : reached;
            last = k->name;
        }
    }
    if (lost > 0) {
        fr_ckpt_say(s->c, FR_PROBLEM_TRUNCATED, true, s->file, s->data + s->size, first_lost,
                    "ends at byte %llu, %llu bytes before what its header promises; tensors cut: "
                    "%llu, the first '%.*s' (begins at byte %llu)",
                    (unsigned long long)(s->data + s->size),
                    (unsigned long long)(reached - s->size), (unsigned long long)lost,
                    FR_SHOWN(first_lost), (unsigned long long)(s->data + first_at));
    } else if (reached < s->size) {
        fr_ckpt_say(s->c, FR_PROBLEM_HOLE, true, s->file, s->data + reached, FR_SV_NONE,
                    "%llu bytes from byte %llu on belong to no tensor",
                    (unsigned long long)(s->size - reached),
                    (unsigned long long)(s->data + reached));
    }
}

static void read_header(struct st *s, const char *text, size_t n)
{
    fr_sv raw;
    s->j = fr_js_of(text, n);
    if (n == 0 || text[0] != '{') {
        fr_js_fail(&s->j, "the header does not start with '{'");
    } else if (!fr_utf8_valid((fr_sv){text, n})) {
        fr_js_fail(&s->j, "the header is not UTF-8");
    } else {
        fr_js_open(&s->j, '{');
        while (!s->c->nomem && !s->c->full_tensors && fr_js_key(&s->j, &raw)) {
            one_key(s, raw, 8 + (size_t)(raw.p - text) - 1);
        }
        if (s->j.why == NULL && !s->c->nomem && !s->c->full_tensors) {
            fr_js_end(&s->j);
        }
    }
    if (s->j.why != NULL) {
        fr_ckpt_say(s->c, FR_PROBLEM_HEADER, true, s->file, 8 + s->j.at, FR_SV_NONE,
                    "malformed header at byte %zu: %s", 8 + s->j.at, s->j.why);
    } else if (!s->c->full_tensors) {
        check_cover(s);
    }
}

/* The header's length, or 0 with a problem. */
static size_t header_length(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b)
{
    unsigned char le[8];
    struct fr_err err = {0};
    uint64_t n = 0,
             most = c->limits.header_bytes < HEADER_MAX ? c->limits.header_bytes : HEADER_MAX;
    if (b->size < 8) {
        fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, file, b->size, FR_SV_NONE,
                    "%s: a safetensors file has at least 8 bytes, this one has %llu",
                    b->size == 0 ? "is empty" : "is cut short", (unsigned long long)b->size);
        return 0;
    }
    int rc = fr_blob_read(b, 0, le, sizeof le, &err);
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return 0;
    }
    for (int i = 7; i >= 0; i--) {
        n = n << 8 | le[i];
    }
    if (n > most || n < 2) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, 0, FR_SV_NONE,
                    "claims a header of %llu bytes at byte 0; from 2 to %llu are possible",
                    (unsigned long long)n, (unsigned long long)most);
        return 0;
    }
    if (n > b->size - 8) {
        fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, file, b->size, FR_SV_NONE,
                    "ends at byte %llu, inside its header of %llu bytes",
                    (unsigned long long)b->size, (unsigned long long)n);
        return 0;
    }
    return (size_t)n;
}

static void read_file(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b)
{
    struct st s = {.c = c, .file = file, .scratch = FR_ARENA_INIT(0)};
    struct fr_err err = {0};
    char *text = NULL;
    size_t n = header_length(c, file, b);
    if (n == 0) {
        return;
    }
    int rc = fr_blob_load(b, 8, n, &text, &err);
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return;
    }
    s.data = 8 + n;
    s.size = b->size - s.data;
    fr_map_init(&s.keys, &s.scratch);
    read_header(&s, text, n);
    fr_arena_release(&s.scratch);
    fr_vec_free(s.claims.v);
    fr_free(text);
}

static bool sniff(fr_sv name, fr_sv head)
{
    return fr_sv_ends(name, FR_SV(".safetensors")) ||
           (head.n > 9 && head.p[8] == '{' && (head.p[9] == '"' || head.p[9] == '}'));
}

const struct fr_ckpt_format fr_ckpt_format_safetensors = {
    .name = "safetensors", .summary = "safetensors files", .sniff = sniff, .read = read_file,
};
