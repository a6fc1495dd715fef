/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/npy.h"

#include "base/alloc.h"
#include "tensor/zipdir.h"


size_t fr_npy_header_length(fr_sv first)
{
    if (first.n < 12 || memcmp(first.p, "\x93NUMPY", 6) != 0) {
        return 0;
    }
    switch (first.p[6]) {
    case 1:
        return 10 + (size_t)fr_le16(first.p + 8);
    case 2:
    case 3:
        return 12 + (size_t)fr_le32(first.p + 8);
    default:
        return 0;
    }
}

struct literal {
    fr_sv descr; /* empty when it is no string */
    bool has_descr, has_order, has_shape, fortran;
    uint64_t shape[FR_DIMS_MAX];
    uint32_t dims;
};

static void spaces(fr_sv *s)
{
    while (s->n > 0 && (s->p[0] == ' ' || s->p[0] == '\n' || s->p[0] == ',')) {
        *s = fr_sv_skip(*s, 1);
    }
}

static bool quoted(fr_sv *s, fr_sv *ret)
{
    size_t end = s->n > 0 && (s->p[0] == '\'' || s->p[0] == '"')
                     ? fr_sv_chr(fr_sv_skip(*s, 1), s->p[0])
                     : FR_NPOS;
    if (end == FR_NPOS) {
        return false;
    }
    *ret = (fr_sv){s->p + 1, end};
    *s = fr_sv_skip(*s, end + 2);
    return true;
}

static bool take_shape(fr_sv *s, struct literal *l)
{
    uint64_t v;
    l->dims = 0;
    if (!fr_sv_take(s, FR_SV("("))) {
        return false;
    }
    for (;;) {
        spaces(s);
        if (fr_sv_take(s, FR_SV(")"))) {
            return true;
        }
        if (!fr_sv_take_u64(s, &v)) {
            return false;
        }
        (void)fr_sv_take(s, FR_SV("L")); /* numpy of Python 2 */
        if (l->dims < FR_DIMS_MAX) {
            l->shape[l->dims] = v;
        }
        if (l->dims++ > 1000) {
            return false;
        }
    }
}

/* A list of fields, "[('a', '<f4'), ...]": passed over. */
static bool take_list(fr_sv *s)
{
    int depth = 0;
    while (s->n > 0) {
        fr_sv text;
        char ch = s->p[0];
        if (ch == '\'' || ch == '"') {
            if (!quoted(s, &text)) {
                return false;
            }
            continue;
        }
        *s = fr_sv_skip(*s, 1);
        depth += (ch == '[' || ch == '(') - (ch == ']' || ch == ')');
        if (depth == 0) {
            return true;
        }
    }
    return false;
}

static bool take_pair(fr_sv *s, struct literal *l)
{
    fr_sv key;
    if (!quoted(s, &key)) {
        return false;
    }
    spaces(s);
    if (!fr_sv_take(s, FR_SV(":"))) {
        return false;
    }
    spaces(s);
    if (fr_sv_eq(key, FR_SV("descr"))) {
        l->has_descr = true;
        return quoted(s, &l->descr) || (s->n > 0 && s->p[0] == '[' && take_list(s));
    }
    if (fr_sv_eq(key, FR_SV("fortran_order"))) {
        l->has_order = true;
        l->fortran = fr_sv_take(s, FR_SV("True"));
        return l->fortran || fr_sv_take(s, FR_SV("False"));
    }
    l->has_shape = fr_sv_eq(key, FR_SV("shape")) && take_shape(s, l);
    return l->has_shape;
}

static bool parse(fr_sv s, struct literal *l)
{
    *l = (struct literal){0};
    spaces(&s);
    if (!fr_sv_take(&s, FR_SV("{"))) {
        return false;
    }
    for (spaces(&s); !fr_sv_take(&s, FR_SV("}")); spaces(&s)) {
        if (!take_pair(&s, l)) {
            return false;
        }
    }
    return l->has_descr && l->has_order && l->has_shape;
}

static uint8_t dtype_of(fr_sv descr, bool *swapped)
{
    static const struct { const char *code; uint8_t dtype;
    } codes[] = {
        {"b1", FR_BOOL}, {"u1", FR_U8},  {"i1", FR_I8},  {"u2", FR_U16},   {"i2", FR_I16},
        {"u4", FR_U32},  {"i4", FR_I32}, {"u8", FR_U64}, {"i8", FR_I64},   {"f2", FR_F16},
        {"f4", FR_F32},  {"f8", FR_F64}, {"c8", FR_C64}, {"c16", FR_C128},
    };
    fr_sv code = descr.n > 0 && strchr("<>|=", descr.p[0]) != NULL ? fr_sv_skip(descr, 1) : descr;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (fr_sv_eq(code, fr_sv_z(codes[i].code))) {
            *swapped = descr.p[0] == '>' && code.p[1] != '1';
            return codes[i].dtype;
        }
    }
    return FR_DTYPE_UNKNOWN;
}

/* The data against shape and type. `at` in the file, or in its member. */
static void check_size(struct fr_ckpt *c, struct fr_tensor *t, uint64_t have)
{
    uint64_t want;
    if (!fr_ckpt_bytes(t->dtype, t->elements, &want)) {
        fr_ckpt_say(c, FR_PROBLEM_SIZE, true, t->file, t->offset, t->name,
                    "'%.*s' has more bytes than 64 bits can count", FR_SHOWN(t->name));
        t->cut = true;
        return;
    }
    t->bytes = want;
    if (want > have) {
        t->cut = true;
        fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, t->file, t->offset + have, t->name,
                    "'%.*s' ends at byte %llu, %llu bytes before what its header promises",
                    FR_SHOWN(t->name), (unsigned long long)(t->offset + have),
                    (unsigned long long)(want - have));
    } else if (want < have) {
        fr_ckpt_say(c, FR_PROBLEM_HOLE, false, t->file, t->offset + want, t->name,
                    "%llu bytes follow the array '%.*s' at byte %llu",
                    (unsigned long long)(have - want), FR_SHOWN(t->name),
                    (unsigned long long)(t->offset + want));
    }
}

static void add(struct fr_ckpt *c, struct fr_tensor *t, const struct literal *l, uint64_t at,
                uint64_t have)
{
    t->dtype = dtype_of(l->descr, &t->swapped);
    t->dtype_word = l->descr.n > 0 ? fr_ckpt_dup(c, fr_sv_head(l->descr, 40)) : FR_SV("structured");
    t->role = fr_role_of(t->name, t->dtype);
    t->offset = at;
    if (!fr_ckpt_shape(c, t, l->shape, l->dims, at)) {
        t->cut = true;
        return;
    }
    t->packed_rows = !l->fortran || t->dims < 2;
    if (t->dtype != FR_DTYPE_UNKNOWN) {
        check_size(c, t, have);
        return;
    }
    t->bytes = have;
    if (fr_sv_ends(l->descr, FR_SV("O"))) {
        t->cut = true;
        fr_ckpt_say(c, FR_PROBLEM_REFUSED, true, t->file, at, t->name,
                    "'%.*s' holds Python objects, which only running a pickle brings back: "
                    "refused; save plain arrays (allow_pickle=False)",
                    FR_SHOWN(t->name));
        return;
    }
    fr_ckpt_say(c, FR_PROBLEM_DTYPE, false, t->file, at, t->name,
                "'%.*s' has the type '%.*s', which is not known; its bytes are skipped",
                FR_SHOWN(t->name), FR_SV_ARG(t->dtype_word));
}

void fr_npy_add(struct fr_ckpt *c, uint32_t file, fr_sv name, fr_sv header, uint64_t at,
                uint64_t size, int32_t member)
{
    struct literal l;
    size_t skip = header.n > 6 && header.p[6] == 1 ? 10 : 12;
    if (!parse(fr_sv_skip(header, skip), &l)) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, at + skip, FR_SV_NONE,
                    "'%.*s' has a malformed numpy header at byte %llu", FR_SHOWN(name),
                    (unsigned long long)(at + skip));
        return;
    }
    struct fr_tensor *t = fr_ckpt_tensor(c, file, name);
    if (t != NULL) {
        t->member = member;
        add(c, t, &l, at + header.n, size - header.n);
    }
}

static void read_file(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b)
{
    struct fr_err err = {0};
    fr_sv name = fr_path_name(c->files.v[file].path);
    char first[12], *header = NULL;
    if (b->size < sizeof first) {
        fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, file, b->size, FR_SV_NONE,
                    "ends at byte %llu, before a numpy header", (unsigned long long)b->size);
        return;
    }
    int rc = fr_blob_read(b, 0, first, sizeof first, &err);
    size_t n = rc == 0 ? fr_npy_header_length((fr_sv){first, sizeof first}) : 0;
    if (rc == 0 && (n == 0 || n > FR_NPY_HEADER_MAX)) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, 0, FR_SV_NONE,
                    n == 0 ? "does not start as a numpy array does"
                           : "claims a numpy header of %zu bytes",
                    n);
        return;
    }
    if (rc == 0 && n > b->size) {
        fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, file, b->size, FR_SV_NONE,
                    "ends at byte %llu, inside its header of %zu bytes",
                    (unsigned long long)b->size, n);
        return;
    }
    rc = rc == 0 ? fr_blob_load(b, 0, n, &header, &err) : rc;
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return;
    }
    if (fr_sv_ends(name, FR_SV(".npy")) && name.n > 4) {
        name.n -= 4;
    }
    fr_npy_add(c, file, name, (fr_sv){header, n}, 0, b->size, -1);
    fr_free(header);
}

static bool sniff(fr_sv name, fr_sv head)
{
    return fr_sv_ends(name, FR_SV(".npy")) || fr_sv_starts(head, FR_SV("\x93NUMPY"));
}

const struct fr_ckpt_format fr_ckpt_format_npy = {
    .name = "npy", .summary = "numpy arrays", .sniff = sniff, .read = read_file,
};
