/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/manifest.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "tensor/build.h"
#include "tensor/digest.h"
#include "tensor/folder.h"
#include "tensor/json.h"

#define BUFFER ((size_t)1 << 20)
#define MANIFEST_MAX ((uint64_t)256 << 20) /* bytes of a manifest that is read */

/* The hash of a whole file; *ret_size its bytes. */
static int hash_file(struct fr_digest *d, const char *path, char *buffer, uint64_t *ret_size,
                     char hex[FR_DIGEST_HEX + 1], struct fr_err *err)
{
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err why = {0};
    int rc = fr_blob_open(&b, path, &why);
    fr_digest_begin(d);
    for (uint64_t at = 0; rc == 0 && at < b.size;) {
        size_t n = b.size - at < BUFFER ? (size_t)(b.size - at) : BUFFER;
        rc = fr_blob_read(&b, at, buffer, n, &why);
        if (rc == 0) {
            fr_digest_add(d, buffer, n);
        }
        at += n;
    }
    fr_digest_end(d, hex);
    *ret_size = b.size;
    return rc == 0 ? 0 : fr_err_set(err, -rc, "'%.160s' %s", path, why.msg);
}

static int add_span(void *ctx, const void *p, size_t n)
{
    fr_digest_add(ctx, p, n);
    return 0;
}

static int hash_tensor(struct fr_digest *d, struct fr_spans *s, const struct fr_tensor *t,
                       char hex[FR_DIGEST_HEX + 1], struct fr_err *err)
{
    fr_digest_begin(d);
    int rc = fr_spans_walk(s, t, add_span, d, err);
    fr_digest_end(d, hex);
    return rc;
}

/* ---- writing ---- */

static void add_string(struct fr_buf *out, fr_sv s)
{
    fr_buf_addc(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        unsigned char ch = (unsigned char)s.p[i];
        if (ch == '"' || ch == '\\') {
            fr_buf_addc(out, '\\');
            fr_buf_addc(out, (char)ch);
        } else if (ch < 0x20) {
            fr_buf_printf(out, "\\u%04x", ch);
        } else {
            fr_buf_addc(out, (char)ch);
        }
    }
    fr_buf_addc(out, '"');
}

static fr_sv below(fr_sv path, fr_sv root)
{
    fr_sv rest = path;
    while (root.n > 1 && root.p[root.n - 1] == '/') {
        root.n--;
    }
    return root.n > 0 && fr_sv_take(&rest, root) && fr_sv_take(&rest, FR_SV("/")) ? rest : path;
}

struct writer {
    const struct fr_checkpoint *c;
    fr_sv root;
    struct fr_digest *digest;
    char *buffer;
    struct fr_buf *out;
};

static int write_files(struct writer *w, struct fr_err *err)
{
    char hex[FR_DIGEST_HEX + 1];
    uint64_t size;
    const char *comma = "";
    for (uint32_t i = 0; i < w->c->files_n; i++) {
        fr_sv path = w->c->files[i].path;
        if (fr_is_leftover(fr_path_name(path))) {
            continue;
        }
        if (!fr_utf8_valid(path)) {
            return fr_err_set(err, FR_ARG,
                              "'%.*s': its name is not UTF-8, a manifest cannot hold it",
                              FR_SHOWN(path));
        }
        int rc = hash_file(w->digest, path.p, w->buffer, &size, hex, err);
        if (rc != 0) {
            return rc;
        }
        fr_buf_printf(w->out, "%s\n    {\"path\": ", comma);
        add_string(w->out, below(path, w->root));
        fr_buf_printf(w->out, ", \"size\": %llu, \"sha256\": \"%s\"}", (unsigned long long)size,
                      hex);
        comma = ",";
    }
    return 0;
}

/* In the checkpoint's order; a file is opened again only when the next tensor is in another one. */
static int write_tensors(struct writer *w, struct fr_err *err)
{
    char hex[FR_DIGEST_HEX + 1];
    struct fr_spans *spans = NULL;
    uint32_t open = UINT32_MAX;
    const char *comma = "";
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < w->c->tensors_n; i++) {
        const struct fr_tensor *t = &w->c->tensors[i];
        if (t->cut || t->bytes == 0 || !fr_utf8_valid(t->name)) {
            continue;
        }
        if (t->file != open) {
            fr_spans_close(&spans);
            rc = fr_spans_open(w->c, t->file, &spans, err);
            open = t->file;
        }
        rc = rc == 0 ? hash_tensor(w->digest, spans, t, hex, err) : rc;
        if (rc == 0) {
            fr_buf_printf(w->out, "%s\n    {\"name\": ", comma);
            add_string(w->out, t->name);
            fr_buf_addz(w->out, ", \"file\": ");
            add_string(w->out, below(w->c->files[t->file].path, w->root));
            fr_buf_printf(w->out, ", \"offset\": %llu, \"bytes\": %llu, \"sha256\": \"%s\"}",
                          (unsigned long long)t->offset, (unsigned long long)t->bytes, hex);
            comma = ",";
        }
    }
    fr_spans_close(&spans);
    return rc;
}

int fr_manifest_write(const struct fr_checkpoint *c, fr_sv root, bool tensors, struct fr_buf *out,
                      struct fr_err *err)
{
    struct writer w = {.c = c, .root = root, .out = out};
    int rc = fr_digest_new(&w.digest, err);
    if (rc != 0) {
        return rc;
    }
    w.buffer = fr_malloc(BUFFER);
    rc = w.buffer == NULL ? fr_err_set(err, FR_NOMEM, "out of memory") : 0;
    fr_buf_addz(out, "{\n  \"schema\": \"faultrank.manifest/1\",\n  \"files\": [");
    rc = rc == 0 ? write_files(&w, err) : rc;
    fr_buf_addz(out, "\n  ]");
    if (rc == 0 && tensors) {
        fr_buf_addz(out, ",\n  \"tensors\": [");
        rc = write_tensors(&w, err);
        fr_buf_addz(out, "\n  ]");
    }
    fr_buf_addz(out, "\n}\n");
    fr_free(w.buffer);
    fr_digest_free(&w.digest);
    return rc == 0 && !fr_buf_ok(out) ? fr_err_set(err, FR_NOMEM, "out of memory") : rc;
}

/* ---- verifying ---- */

struct reader {
    const struct fr_checkpoint *c;
    fr_sv folder; /* of the manifest */
    struct fr_js j;
    struct fr_arena scratch, *arena;
    struct fr_digest *digest;
    char *buffer;
    struct fr_map files;  /* path in the checkpoint -> number */
    struct fr_map differ; /* paths whose bytes differ */
    struct fr_map listed;
    FR_VEC(struct fr_problem) problems;
    bool nomem;
};

struct entry { /* a row of files or tensors */
    fr_sv path, name, sha;
    uint64_t size, offset;
    bool has_size, has_offset;
};

static void add(struct reader *r, uint8_t kind, bool fatal, fr_sv path, uint64_t offset,
                fr_sv tensor, fr_sv text)
{
    uint32_t file = UINT32_MAX;
    struct fr_problem *p = FR_PUSH(&r->problems);
    if (p == NULL || text.p == NULL) {
        r->nomem = true;
        return;
    }
    (void)fr_map_get(&r->files, path, &file);
    *p = (struct fr_problem){.kind = kind,
                             .fatal = fatal,
                             .file = file,
                             .offset = offset,
                             .text = text,
                             .tensor = tensor.n > 0 ? fr_arena_dup(r->arena, tensor) : FR_SV_NONE};
}

static bool read_entry(struct reader *r, struct entry *e)
{
    fr_sv key, raw;
    *e = (struct entry){0};
    fr_js_open(&r->j, '{');
    while (fr_js_key(&r->j, &key)) {
        bool is_path = fr_sv_eq(key, FR_SV("path")) || fr_sv_eq(key, FR_SV("file"));
        if ((is_path || fr_sv_eq(key, FR_SV("name")) || fr_sv_eq(key, FR_SV("sha256"))) &&
            fr_js_string(&r->j, &raw)) {
            fr_sv *to = is_path ? &e->path : fr_sv_eq(key, FR_SV("name")) ? &e->name : &e->sha;
            *to = fr_js_text(raw, &r->scratch);
            r->nomem = r->nomem || to->p == NULL;
        } else if (fr_sv_eq(key, FR_SV("size")) || fr_sv_eq(key, FR_SV("bytes"))) {
            e->has_size = fr_js_u64(&r->j, &e->size);
        } else if (fr_sv_eq(key, FR_SV("offset"))) {
            e->has_offset = fr_js_u64(&r->j, &e->offset);
        } else if (r->j.why == NULL) {
            fr_js_skip(&r->j);
        }
    }
    return r->j.why == NULL && !r->nomem;
}

/* The path of an entry as the checkpoint spells it. Nothing outside the manifest's folder is
 * opened unless the checkpoint has it. */
static fr_sv full_path(struct reader *r, fr_sv path)
{
    uint32_t known;
    if (fr_map_get(&r->files, path, &known) || fr_sv_starts(path, FR_SV("/"))) {
        return path;
    }
    fr_sv full = fr_arena_printf(&r->scratch, "%.*s%s%.*s", FR_SV_ARG(r->folder),
                                 r->folder.n > 0 ? "/" : "", FR_SV_ARG(path));
    r->nomem = r->nomem || full.p == NULL;
    return full;
}

static bool may_open(const struct reader *r, fr_sv path, fr_sv full)
{
    uint32_t known;
    bool inside = !fr_sv_starts(path, FR_SV("/")) && !fr_sv_has(path, FR_SV("..")) &&
                  fr_sv_chr(path, '\0') == FR_NPOS;
    return inside || fr_map_get(&r->files, full, &known);
}

static void compare_file(struct reader *r, const struct entry *e)
{
    char hex[FR_DIGEST_HEX + 1];
    struct fr_err err = {0};
    uint64_t size = 0;
    fr_sv full = full_path(r, e->path),
          path = r->nomem ? FR_SV_NONE : fr_arena_dup(r->arena, full); /* NUL-terminated */
    if (path.p == NULL || !fr_map_put(&r->listed, path, 0)) {
        r->nomem = true;
        return;
    }
    if (!may_open(r, e->path, full)) {
        add(r, FR_PROBLEM_MISSING, true, path, UINT64_MAX, FR_SV_NONE,
            fr_arena_printf(r->arena, "'%.*s': outside the manifest's folder, not looked at",
                            FR_SHOWN(path)));
        return;
    }
    int rc = hash_file(r->digest, path.p, r->buffer, &size, hex, &err);
    if (rc != 0) {
        add(r, rc == -FR_ABSENT ? FR_PROBLEM_MISSING : FR_PROBLEM_UNREADABLE, true, path,
            UINT64_MAX, FR_SV_NONE, fr_arena_printf(r->arena, "%s", err.msg));
    } else if (e->has_size && size != e->size) {
        add(r, FR_PROBLEM_TRUNCATED, true, path, size < e->size ? size : e->size, FR_SV_NONE,
            fr_arena_printf(r->arena, "'%.*s': has %llu bytes, its manifest says %llu",
                            FR_SHOWN(path), (unsigned long long)size, (unsigned long long)e->size));
    } else if (!fr_sv_eq(e->sha, (fr_sv){hex, FR_DIGEST_HEX})) {
        add(r, FR_PROBLEM_CHECKSUM, true, path, UINT64_MAX, FR_SV_NONE,
            fr_arena_printf(
                r->arena,
                "'%.*s': its bytes are not those of its manifest (sha256 %.12s..., listed %.*s...)",
                FR_SHOWN(path), hex, (int)fr_sv_head(e->sha, 12).n, e->sha.p));
        r->nomem = r->nomem || !fr_map_put(&r->differ, path, 0);
    }
}

/* A tensor of a file that differs: is it one of those that do? */
static void compare_tensor(struct reader *r, const struct entry *e)
{
    char hex[FR_DIGEST_HEX + 1];
    struct fr_spans *s = NULL;
    uint32_t file, none;
    fr_sv full = full_path(r, e->path);
    if (r->nomem || !fr_map_get(&r->differ, full, &none) || !fr_map_get(&r->files, full, &file) ||
        e->name.n == 0) {
        return;
    }
    struct fr_tensor t = {.file = file, .member = -1, .offset = e->offset, .bytes = e->size};
    bool found = false;
    for (uint32_t i = 0; i < r->c->tensors_n && !found; i++) {
        const struct fr_tensor *k = &r->c->tensors[i];
        found = k->file == file && k->offset == e->offset && k->bytes == e->size &&
                fr_sv_eq(k->name, e->name);
        t = found ? *k : t;
    }
    bool same = found && fr_spans_open(r->c, file, &s, NULL) == 0 &&
                hash_tensor(r->digest, s, &t, hex, NULL) == 0 &&
                fr_sv_eq(e->sha, (fr_sv){hex, FR_DIGEST_HEX});
    fr_spans_close(&s);
    if (!same) {
        add(r, FR_PROBLEM_CHECKSUM, true, full, e->offset, e->name,
            fr_arena_printf(r->arena, "'%.*s': '%.*s' at byte %llu %s", FR_SHOWN(full),
                            FR_SHOWN(e->name), (unsigned long long)e->offset,
                            found ? "is not what its manifest says"
                                  : "is not where its manifest says, or has another size"));
    }
}

static void each(struct reader *r, void (*fn)(struct reader *, const struct entry *))
{
    struct entry e;
    fr_js_open(&r->j, '[');
    while (fr_js_item(&r->j) && read_entry(r, &e)) {
        if (e.path.n == 0 || e.sha.n == 0) {
            fr_js_fail(&r->j, "an entry without its path or sha256");
        } else {
            fn(r, &e);
        }
    }
}

static void parse(struct reader *r)
{
    fr_sv key;
    bool has_files = false;
    fr_js_open(&r->j, '{');
    while (!r->nomem && fr_js_key(&r->j, &key)) {
        if (fr_sv_eq(key, FR_SV("files"))) {
            has_files = true;
            each(r, compare_file);
        } else if (fr_sv_eq(key, FR_SV("tensors"))) {
            each(r, compare_tensor);
        } else {
            fr_js_skip(&r->j);
        }
    }
    if (fr_js_end(&r->j) && !has_files) {
        fr_js_fail(&r->j, "no list of files: it is no manifest");
    }
}

static void check_extra(struct reader *r)
{
    uint32_t known;
    for (uint32_t i = 0; i < r->c->files_n; i++) {
        fr_sv path = r->c->files[i].path;
        if (!fr_map_get(&r->listed, path, &known) && !fr_is_leftover(fr_path_name(path))) {
            add(r, FR_PROBLEM_EXTRA, false, path, UINT64_MAX, FR_SV_NONE,
                fr_arena_printf(r->arena, "'%.*s': is not in the manifest", FR_SHOWN(path)));
        }
    }
}

static int verify(struct reader *r, const char *path, const char *text, size_t n,
                  struct fr_err *err)
{
    fr_map_init(&r->files, &r->scratch);
    fr_map_init(&r->differ, &r->scratch);
    fr_map_init(&r->listed, &r->scratch);
    r->folder = fr_path_folder(fr_sv_z(path));
    r->j = fr_js_of(text, n);
    for (uint32_t i = 0; i < r->c->files_n; i++) {
        r->nomem = r->nomem || !fr_map_put(&r->files, r->c->files[i].path, i);
    }
    parse(r);
    if (r->j.why != NULL) {
        int rc = fr_err_set(err, FR_SYNTAX, "'%.120s': malformed manifest at byte %zu: %s", path,
                            r->j.at, r->j.why);
        if (err != NULL) {
            err->pos = r->j.at;
        }
        return rc;
    }
    check_extra(r);
    return 0;
}

int fr_manifest_verify(const struct fr_checkpoint *c, const char *path, struct fr_arena *arena,
                       struct fr_problem **ret, uint32_t *ret_n, struct fr_err *err)
{
    struct reader r = {.c = c, .arena = arena, .scratch = FR_ARENA_INIT(0)};
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err why = {0};
    char *text = NULL;
    int rc = fr_blob_open(&b, path, &why);
    rc = rc == 0 && b.size > MANIFEST_MAX
             ? fr_err_set(&why, FR_LIMIT, "has more bytes than a manifest may have")
             : rc;
    rc = rc == 0 ? fr_blob_load(&b, 0, (size_t)b.size, &text, &why) : rc;
    if (rc != 0) {
        return fr_err_set(err, -rc, "'%.160s' %s", path, why.msg);
    }
    rc = fr_digest_new(&r.digest, err);
    r.buffer = fr_malloc(BUFFER);
    rc = rc == 0 && r.buffer == NULL ? fr_err_set(err, FR_NOMEM, "out of memory") : rc;
    rc = rc == 0 ? verify(&r, path, text, (size_t)b.size, err) : rc;
    struct fr_problem *made = rc == 0 ? FR_NEW_N(arena, struct fr_problem, r.problems.n) : NULL;
    if (rc == 0 && (r.nomem || made == NULL)) {
        rc = fr_err_set(err, FR_NOMEM, "out of memory");
    }
    if (rc == 0) {
        if (r.problems.n > 0) {
            memcpy(made, r.problems.v, r.problems.n * sizeof *made);
        }
        *ret = made;
        *ret_n = r.problems.n;
    }
    fr_vec_free(r.problems.v);
    fr_arena_release(&r.scratch);
    fr_digest_free(&r.digest);
    fr_free(r.buffer);
    fr_free(text);
    return rc;
}
