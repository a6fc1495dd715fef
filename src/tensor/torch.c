/* SPDX-License-Identifier: Apache-2.0 */
/* torch: PyTorch files. The zip that torch.save() writes is read; what was before it is refused
 * with the way out. */
#include "base/alloc.h"
#include "tensor/globals.h"
#include "tensor/torchzip.h"

#include <stdio.h>


enum { NAMED_MAX = 5 }; /* unknown classes told by name */

static const char legacy_magic[] = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e";

static const struct fr_zip_member *find_pickle(const struct fr_zip *z, fr_sv *root)
{
    const struct fr_zip_member *best = NULL;
    for (uint32_t i = 0; i < z->n; i++) {
        fr_sv name = z->members[i].name;
        bool is_it = fr_sv_eq(name, FR_SV("data.pkl")) || fr_sv_ends(name, FR_SV("/data.pkl"));
        if (is_it && (best == NULL || name.n < best->name.n)) {
            best = &z->members[i];
        }
    }
    if (best != NULL) {
        *root = fr_sv_head(best->name, best->name.n - strlen("data.pkl"));
    }
    return best;
}

/* The member `byteorder` says "big" on a machine that is. */
static int read_byteorder(struct fr_torch *t, struct fr_err *err)
{
    char *order = NULL;
    fr_sv name = fr_arena_printf(&t->scratch, "%.*sbyteorder",
                                 (int)fr_sv_head(t->root, INT16_MAX).n, t->root.p);
    if (name.p == NULL) {
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    const struct fr_zip_member *m = fr_zip_find(&t->zip, name);
    int rc = m == NULL ? 0 : fr_zip_load(&t->zip, m, 64, &order, err);
    t->big_endian = order != NULL && strncmp(order, "big", 3) == 0;
    fr_free(order);
    return rc;
}

static uint8_t kind_of(int rc, const struct fr_err *err, uint64_t end)
{
    return rc == -FR_LIMIT   ? FR_PROBLEM_LIMIT
           : rc == -FR_IO    ? FR_PROBLEM_UNREADABLE
           : rc == -FR_ARG   ? FR_PROBLEM_REFUSED
           : err->pos >= end ? FR_PROBLEM_TRUNCATED
                             : FR_PROBLEM_HEADER;
}

/* In front of what the parser made of damaged bytes. */
static void say_damage(const struct fr_torch *t, struct fr_err *err)
{
    struct fr_err why = *err;
    (void)fr_err_set(err, FR_SYNTAX,
                     "its member '%.*s' is damaged, its bytes have the checksum %08x and not %08x: "
                     "%.100s",
                     (int)fr_sv_head(t->damaged->name, 60).n, t->damaged->name.p, t->damaged_crc,
                     t->damaged->crc, why.msg);
    err->pos = why.pos;
}

static int load_pickle(struct fr_torch *t, const struct fr_ckpt_limits *limits, struct fr_err *err)
{
    const struct fr_zip_member *m = find_pickle(&t->zip, &t->root);
    if (m == NULL) {
        int rc = fr_err_set(err, FR_SYNTAX, "a zip without data.pkl: not written by torch.save()");
        err->pos = t->zip.base;
        return rc;
    }
    int rc = fr_zip_load(&t->zip, m, (size_t)limits->header_bytes, &t->text, err);
    if (rc == 0 && m->method == 0) {
        rc = fr_zip_data(&t->zip, m, &t->pickle_at, err);
    }
    if (rc != 0) {
        return rc;
    }
    t->damaged = fr_zip_sound(m, t->text, &t->damaged_crc) ? NULL : m;
    rc = fr_pickle_read(t->text, (size_t)m->unpacked, &t->pickle, err);
    if (rc != 0) {
        err->pos += t->pickle_at;
        if (t->damaged != NULL && rc != -FR_NOMEM) {
            say_damage(t, err);
            rc = -FR_SYNTAX;
        }
        return rc;
    }
    return read_byteorder(t, err);
}

int fr_torch_open(const struct fr_blob *b, uint64_t base, uint64_t size,
                  const struct fr_ckpt_limits *limits, struct fr_torch *ret, uint8_t *ret_kind,
                  struct fr_err *err)
{
    *ret = (struct fr_torch){.scratch = FR_ARENA_INIT(0)};
    int rc = fr_zip_open(b, base, size, limits->tensors, &ret->scratch, &ret->zip, err);
    rc = rc == 0 ? load_pickle(ret, limits, err) : rc;
    if (rc != 0) {
        *ret_kind = ret->damaged != NULL && rc == -FR_SYNTAX ? (uint8_t)FR_PROBLEM_DAMAGED
                                                             : kind_of(rc, err, base + size);
        fr_torch_release(ret);
    }
    return rc;
}

void fr_torch_release(struct fr_torch *t)
{
    fr_pickle_release(&t->pickle);
    fr_free(t->text);
    t->text = NULL;
    fr_arena_release(&t->scratch);
}

/* ---- what the pickle names ---- */

static void add_name(struct fr_buf *names, uint32_t n, fr_sv full)
{
    if (n <= NAMED_MAX) {
        fr_buf_addz(names, n > 1 ? ", " : "");
        fr_buf_add(names, fr_sv_head(full, 80));
    }
}

static void refuse(struct fr_ckpt *c, uint32_t file, uint64_t at, fr_sv full)
{
    fr_ckpt_say(c, FR_PROBLEM_CODE, true, file, at, FR_SV_NONE,
                "its pickle names '%.*s' (byte %llu), which would run code when the file is "
                "loaded: refused",
                FR_SHOWN(full), (unsigned long long)at);
}

struct names {
    struct fr_arena arena;
    struct fr_map seen; /* full name -> mark */
    struct fr_buf unknown;
    uint32_t unknown_n, first_at;
};

static void judge_name(struct fr_ckpt *c, uint32_t file, struct names *s, struct fr_pk_node *g,
                       uint64_t base)
{
    char text[2 * FR_CKPT_TEXT_MAX + 2];
    bool is_new = false;
    int n = snprintf(text, sizeof text, "%.*s.%.*s", FR_SHOWN(fr_pk_module(g)),
                     FR_SHOWN(fr_pk_name(g)));
    fr_sv full = {text, (size_t)n};
    uint32_t *slot = fr_map_slot(&s->seen, full, &is_new);
    if (slot == NULL) {
        c->nomem = true;
        return;
    }
    if (is_new) {
        *slot = fr_global_kind(fr_pk_module(g), fr_pk_name(g)) + 1u;
        if (*slot == FR_GLOBAL_FORBIDDEN + 1) {
            refuse(c, file, base + g->at, full);
        } else if (*slot == FR_GLOBAL_UNKNOWN + 1) {
            s->first_at = s->unknown_n == 0 ? g->at : s->first_at;
            add_name(&s->unknown, ++s->unknown_n, full);
        }
    }
    g->mark = (uint8_t)*slot;
}

/* A call of what another call returned: getattr(X, "f")(...) and its like, which no checkpoint
 * needs and every attack does. */
static bool calls_a_result(const struct fr_pickle *k, const struct fr_pk_node *d)
{
    return d->kind == FR_PK_CALL && fr_pk_at(k, d->u.call.callable)->kind != FR_PK_GLOBAL;
}

/* Each name once: those that would run code are fatal, classes that are not known are listed. */
bool fr_torch_globals(struct fr_ckpt *c, uint32_t file, struct fr_pickle *k, uint64_t base,
                      enum fr_problem_kind objects)
{
    struct names s = {.arena = FR_ARENA_INIT(0), .unknown = FR_BUF_INIT(0)};
    fr_map_init(&s.seen, &s.arena);
    bool indirect = false;
    for (uint32_t i = 0; i < k->nodes.n && !c->nomem; i++) {
        if (k->nodes.v[i].kind == FR_PK_GLOBAL) {
            judge_name(c, file, &s, &k->nodes.v[i], base);
        } else if (!indirect && calls_a_result(k, &k->nodes.v[i])) {
            indirect = true;
            fr_ckpt_say(c, FR_PROBLEM_CODE, true, file, base + k->nodes.v[i].at, FR_SV_NONE,
                        "its pickle calls at byte %llu what is no name: refused",
                        (unsigned long long)(base + k->nodes.v[i].at));
        }
    }
    c->nomem = c->nomem || !fr_buf_ok(&s.unknown);
    if (s.unknown_n > 0) {
        if (s.unknown_n > NAMED_MAX) {
            fr_buf_printf(&s.unknown, " and %u more", s.unknown_n - NAMED_MAX);
        }
        c->nomem = c->nomem || !fr_buf_ok(&s.unknown);
        fr_ckpt_say(c, (uint8_t)objects, false, file, base + s.first_at, FR_SV_NONE,
                    "its pickle holds objects besides tensors, which stay closed here and which "
                    "torch.load(weights_only=True) refuses: %s",
                    fr_buf_sv(&s.unknown).p);
    }
    fr_buf_release(&s.unknown);
    fr_arena_release(&s.arena);
    return s.unknown_n > 0;
}

void fr_torch_read(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b, uint64_t base,
                   uint64_t size, fr_sv prefix)
{
    struct fr_torch t;
    struct fr_err err = {0};
    uint8_t kind = 0;
    int rc = fr_torch_open(b, base, size, &c->limits, &t, &kind, &err);
    if (rc != 0) {
        fr_ckpt_say_err(c, kind, true, file, rc, &err);
        return;
    }
    if (t.zip.twice.n > 0) {
        fr_ckpt_say(c, FR_PROBLEM_DUPLICATE, true, file, base + t.zip.directory, FR_SV_NONE,
                    "the zip member '%.*s' comes twice", FR_SHOWN(t.zip.twice));
    }
    if (t.zip.behind > 0) {
        fr_ckpt_say(c, FR_PROBLEM_HOLE, false, file, t.zip.behind, FR_SV_NONE,
                    "%llu bytes follow the end of the zip at byte %llu, where no reader looks: "
                    "something was appended, or a longer file was overwritten",
                    (unsigned long long)(size - t.zip.behind), (unsigned long long)t.zip.behind);
    }
    if (t.damaged != NULL) {
        fr_ckpt_say(c, FR_PROBLEM_DAMAGED, true, file, t.pickle_at, FR_SV_NONE,
                    "its member '%.*s' (%llu bytes from byte %llu) is damaged: its bytes have the "
                    "CRC-32 %08x, the zip was written with %08x",
                    FR_SHOWN(t.damaged->name), (unsigned long long)t.damaged->unpacked,
                    (unsigned long long)t.pickle_at, t.damaged_crc, t.damaged->crc);
    }
    t.objects = fr_torch_globals(c, file, &t.pickle, t.pickle_at, FR_PROBLEM_OBJECTS);
    fr_torch_tensors(c, file, &t, prefix);
    fr_torch_release(&t);
}

/* ---- the file ---- */

static bool refuse_old(struct fr_ckpt *c, uint32_t file, fr_sv head, const struct fr_blob *b)
{
    char magic[5] = "";
    struct fr_err err = {0};
    if (fr_sv_starts(head, (fr_sv){legacy_magic, sizeof legacy_magic - 1})) {
        fr_ckpt_say(c, FR_PROBLEM_FORMAT, true, file, 0, FR_SV_NONE,
                    "written in PyTorch's format before 1.6, which is not read: load it on a "
                    "machine that may run its pickle and save it again with "
                    "torch.save(torch.load(f, weights_only=True), f)");
        return true;
    }
    if (b->size >= 512 && fr_blob_read(b, 257, magic, sizeof magic, &err) == 0 &&
        memcmp(magic, "ustar", 5) == 0) {
        fr_ckpt_say(c, FR_PROBLEM_FORMAT, true, file, 257, FR_SV_NONE,
                    "a tar archive, as PyTorch before 0.1.10 wrote: not read; save it again with a "
                    "current torch.save()");
        return true;
    }
    if (head.n > 2 && head.p[0] == '\x80' && head.p[1] >= 2 && head.p[1] <= 5) {
        fr_ckpt_say(c, FR_PROBLEM_FORMAT, true, file, 0, FR_SV_NONE,
                    "a bare pickle, not a file of torch.save(): refused, loading it runs what it "
                    "says; save it with torch.save() or safetensors");
        return true;
    }
    return false;
}

static void read_file(struct fr_ckpt *c, uint32_t file, const struct fr_blob *b)
{
    char head[64];
    struct fr_err err = {0};
    size_t n = b->size < sizeof head ? (size_t)b->size : sizeof head;
    int rc = fr_blob_read(b, 0, head, n, &err);
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return;
    }
    if (fr_sv_starts((fr_sv){head, n}, FR_SV("PK\3\4"))) {
        fr_torch_read(c, file, b, 0, b->size, FR_SV(""));
    } else if (!refuse_old(c, file, (fr_sv){head, n}, b)) {
        if (b->size < 4) {
            fr_ckpt_say(c, FR_PROBLEM_TRUNCATED, true, file, b->size, FR_SV_NONE,
                        "ends at byte %llu, before anything", (unsigned long long)b->size);
            return;
        }
        fr_ckpt_say(
            c, FR_PROBLEM_HEADER, true, file, 0, FR_SV_NONE,
            "does not start as a PyTorch file does (a zip): bytes %02x %02x %02x %02x at byte 0",
            (unsigned char)head[0], (unsigned char)head[1], (unsigned char)head[2],
            (unsigned char)head[3]);
    }
}

static bool sniff(fr_sv name, fr_sv head)
{
    static const fr_sv ends[] = {FR_SV(".pt"), FR_SV(".pth"), FR_SV(".ckpt")};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (fr_sv_ends(name, ends[i])) {
            return true;
        }
    }
    bool is_weights = fr_sv_starts(name, FR_SV("pytorch_model")) ||
                      fr_sv_starts(name, FR_SV("adapter_model")) ||
                      fr_sv_starts(name, FR_SV("optimizer"));
    return fr_sv_starts(head, FR_SV("PK\3\4")) ||
           fr_sv_starts(head, (fr_sv){legacy_magic, sizeof legacy_magic - 1}) ||
           (is_weights && fr_sv_ends(name, FR_SV(".bin")));
}

const struct fr_ckpt_format fr_ckpt_format_torch = {
    .name = "torch", .summary = "PyTorch files (zip)", .sniff = sniff, .read = read_file,
};
