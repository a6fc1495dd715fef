/* SPDX-License-Identifier: Apache-2.0 */
/* sharded: Hugging Face folders, an index.json that names the shard of each tensor. The index
 * against the shards that were read: files and tensors missing or extra, tensors in another shard
 * than promised, total_size against the sum. */
#include "base/alloc.h"
#include "tensor/build.h"
#include "tensor/json.h"

#include <stdio.h>

enum { EACH_MAX = 20 }; /* tensors told one by one; more are counted */

struct promise { /* one row of weight_map */
    uint32_t shard; /* number of the file, FR_NO_FILE when it is not there */
    bool met;
    size_t at;
};

/* What the indexes of a step name together. */
struct named {
    struct fr_arena scratch;
    struct fr_map families; /* paths of shards less their numbers -> the index that names one */
    struct fr_map files;    /* shards that are there -> the same */
};

struct index {
    struct fr_ckpt *c;
    struct named *named;
    uint32_t file, step;
    fr_sv path;
    struct fr_arena scratch;
    struct fr_map names;  /* tensor -> index in promises */
    FR_VEC(struct promise) promises;
    struct fr_map shards; /* file name -> number of the file, FR_NO_FILE when it is not there */
    struct fr_js j;
    uint64_t total;
    bool has_total, has_map;
};

static void read_total(struct index *x)
{
    fr_sv key;
    if (fr_js_peek(&x->j) != '{') {
        fr_js_skip(&x->j);
        return;
    }
    fr_js_open(&x->j, '{');
    while (fr_js_key(&x->j, &key)) {
        char first = fr_js_peek(&x->j);
        size_t at = x->j.at;
        if (!fr_sv_eq(key, FR_SV("total_size")) || first < '0' || first > '9') {
            fr_js_skip(&x->j);
        } else if (fr_js_skip(&x->j)) { /* "1024.0" occurs: the integer part counts */
            fr_sv number = {x->j.p + at, x->j.at - at};
            x->has_total = fr_sv_take_u64(&number, &x->total);
        }
    }
}

static void find_shard(struct index *x, fr_sv name, size_t at, uint32_t *slot)
{
    *slot = FR_NO_FILE;
    if (fr_sv_chr(name, '\0') != FR_NPOS || fr_sv_starts(name, FR_SV("/")) ||
        fr_sv_has(name, FR_SV(".."))) {
        fr_ckpt_say(x->c, FR_PROBLEM_HEADER, true, x->file, at, FR_SV_NONE,
                    "names the shard '%.*s' at byte %zu, which is outside its folder",
                    FR_SHOWN(name), at);
        return;
    }
    *slot = fr_ckpt_sibling(x->c, x->path, name);
    if (*slot == FR_NO_FILE) {
        fr_ckpt_say(x->c, FR_PROBLEM_MISSING, true, x->file, at, FR_SV_NONE,
                    "the shard '%.*s', which it names at byte %zu, is not there", FR_SHOWN(name),
                    at);
    }
}

static void read_map(struct index *x)
{
    fr_sv key, shard;
    x->has_map = fr_js_open(&x->j, '{');
    while (x->has_map && !x->c->nomem && fr_js_key(&x->j, &key) && fr_js_string(&x->j, &shard)) {
        size_t at = (size_t)(key.p - x->j.p) - 1;
        bool is_new = false, new_shard = false;
        fr_sv name = fr_js_text(key, &x->scratch), file = fr_js_text(shard, &x->scratch);
        uint32_t *known = name.p == NULL || file.p == NULL
                              ? NULL
                              : fr_map_slot(&x->shards, file, &new_shard);
        if (known != NULL && new_shard) {
            uint32_t found;
            find_shard(x, file, (size_t)(shard.p - x->j.p) - 1, &found);
            *known = found;
        }
        uint32_t *slot = known == NULL ? NULL : fr_map_slot(&x->names, name, &is_new);
        if (slot == NULL) {
            x->c->nomem = true;
            return;
        }
        struct promise *p = is_new ? FR_PUSH(&x->promises) : NULL;
        if (p != NULL) {
            *slot = x->promises.n - 1;
            *p = (struct promise){*known, false, at};
        } else if (is_new) {
            x->c->nomem = true;
        } else {
            fr_ckpt_say(x->c, FR_PROBLEM_DUPLICATE, true, x->file, at, name,
                        "the key '%.*s' comes twice, again at byte %zu", FR_SHOWN(name), at);
        }
    }
}

static void parse(struct index *x)
{
    fr_sv key;
    fr_js_open(&x->j, '{');
    while (fr_js_key(&x->j, &key)) {
        if (fr_sv_eq(key, FR_SV("metadata"))) {
            read_total(x);
        } else if (fr_sv_eq(key, FR_SV("weight_map"))) {
            read_map(x);
        } else {
            fr_js_skip(&x->j);
        }
        if (x->c->nomem) {
            return;
        }
    }
    fr_js_end(&x->j);
}

/* Tensors of the shards that the index does not know, or has elsewhere; marks the promises that
 * are met. */
static void check_tensors(struct index *x, const bool *is_shard)
{
    uint64_t sum = 0;
    uint32_t extra = 0;
    for (uint32_t i = 0; i < x->c->tensors.n && !x->c->nomem; i++) {
        const struct fr_tensor *t = &x->c->tensors.v[i];
        uint32_t at;
        if (!is_shard[t->file]) {
            continue;
        }
        sum += t->bytes;
        if (fr_map_get(&x->names, t->name, &at) && x->promises.v[at].shard == t->file) {
            x->promises.v[at].met = true;
        } else if (extra++ < EACH_MAX) {
            fr_ckpt_say(x->c, FR_PROBLEM_EXTRA, false, t->file, t->offset, t->name,
                        "holds '%.*s', which its index '%.*s' does not look for here",
                        FR_SHOWN(t->name), FR_SHOWN(fr_path_name(x->path)));
        }
    }
    if (extra > EACH_MAX) {
        fr_ckpt_say(x->c, FR_PROBLEM_EXTRA, false, x->file, FR_NO_POS, FR_SV_NONE,
                    "does not know %u tensors of its shards, or has them elsewhere", extra);
    }
    bool whole = x->c->files.v[x->file].complete; /* else the sum is short for a reason that is told */
    for (uint32_t i = 0; i < x->c->files.n; i++) {
        whole = whole && !(is_shard[i] && !x->c->files.v[i].complete);
    }
    if (x->has_total && sum != x->total && whole) {
        bool views = fr_sv_has(
            x->path,
            FR_SV(".bin.")); /* torch files: tied tensors are counted once by some writers */
        fr_ckpt_say(x->c, FR_PROBLEM_SIZE, sum < x->total && !views, x->file, FR_NO_POS, FR_SV_NONE,
                    "promises %llu bytes of tensors (total_size), the shards hold %llu",
                    (unsigned long long)x->total, (unsigned long long)sum);
    }
}

/* What was promised and is in no shard; of shards that are damaged themselves only a count. */
static void check_promises(struct index *x)
{
    uint32_t missing = 0, first = 0;
    for (uint32_t i = 0; i < x->promises.n; i++) {
        const struct promise *p = &x->promises.v[i];
        fr_sv name = fr_map_key(&x->names, i);
        if (p->met || p->shard == FR_NO_FILE) {
            continue;
        }
        first = missing == 0 ? i : first;
        if (missing++ < EACH_MAX && x->c->files.v[p->shard].complete) {
            fr_ckpt_say(x->c, FR_PROBLEM_MISSING, true, x->file, p->at, name,
                        "promises '%.*s' at byte %zu, but '%.*s' does not hold it", FR_SHOWN(name),
                        p->at, FR_SHOWN(fr_path_name(x->c->files.v[p->shard].path)));
        }
    }
    if (missing > EACH_MAX) {
        fr_ckpt_say(x->c, FR_PROBLEM_MISSING, true, x->file, FR_NO_POS,
                    fr_map_key(&x->names, first),
                    "promises %u tensors that its shards do not hold, the first '%.*s'", missing,
                    FR_SHOWN(fr_map_key(&x->names, first)));
    }
}

/* "model-00002-of-00005.safetensors": its numbers, the digits before and the text around them. */
static bool series(fr_sv name, fr_sv *before, fr_sv *digits, fr_sv *after, uint64_t *of)
{
    size_t at = fr_sv_find(name, FR_SV("-of-")), from = at;
    while (at != FR_NPOS && from > 0 && name.p[from - 1] >= '0' && name.p[from - 1] <= '9') {
        from--;
    }
    if (at == FR_NPOS || from == at) {
        return false;
    }
    *before = fr_sv_head(name, from);
    *digits = fr_sv_range(name.p + from, name.p + at);
    *after = fr_sv_skip(name, at);
    fr_sv rest = fr_sv_skip(*after, 4);
    return digits->n <= 8 && fr_sv_take_u64(&rest, of) && *of > 0;
}

/* "folder/model-*.safetensors" of a shard; empty when its name has no numbers. */
static fr_sv family_of(struct fr_ckpt *c, struct fr_arena *scratch, fr_sv folder, fr_sv name)
{
    fr_sv file = fr_path_name(name), before, digits, after;
    uint64_t of;
    if (!series(file, &before, &digits, &after, &of)) {
        return FR_SV_NONE;
    }
    after = fr_sv_skip(after, strlen("-of-"));
    (void)fr_sv_take_u64(&after, &of);
    fr_sv key = fr_arena_printf(scratch, "%.*s/%.*s%.*s*%.*s", FR_SV_ARG(folder),
                                (int)(name.n - file.n), name.p, FR_SV_ARG(before),
                                FR_SV_ARG(after));
    c->nomem = c->nomem || key.p == NULL;
    return key;
}

static void note_named(struct index *x)
{
    for (uint32_t i = 0; i < x->shards.n && !x->c->nomem; i++) {
        uint32_t file = fr_map_value(&x->shards, i);
        fr_sv key = family_of(x->c, &x->named->scratch, fr_path_folder(x->path),
                              fr_map_key(&x->shards, i));
        if (key.n > 0 && !fr_map_put(&x->named->families, key, x->file)) {
            x->c->nomem = true;
        }
        if (file != FR_NO_FILE &&
            !fr_map_put(&x->named->files, x->c->files.v[file].path, x->file)) {
            x->c->nomem = true;
        }
    }
}

/* A file that is numbered like the shards of an index and that no index names: of another save. */
static void check_unnamed(struct fr_ckpt *c, struct named *n, uint32_t step)
{
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && n->families.n > 0 && !c->nomem;
         i = c->notes.v[i].next) {
        fr_sv path = c->files.v[i].path;
        uint32_t index;
        if (fr_map_get(&n->files, path, &index)) {
            continue;
        }
        fr_sv key = family_of(c, &n->scratch, fr_path_folder(path), fr_path_name(path));
        if (key.n > 0 && fr_map_get(&n->families, key, &index)) {
            fr_ckpt_say(c, FR_PROBLEM_EXTRA, false, i, FR_NO_POS, FR_SV_NONE,
                        "is numbered like a shard, but the index '%.*s' does not name it: it is of "
                        "another save, and who loads all shards of the folder mixes the two",
                        FR_SHOWN(fr_path_name(c->files.v[index].path)));
        }
    }
}

/* "model.safetensors" beside "model.safetensors.index.json": one of them is not looked at. */
static void check_single(struct index *x)
{
    fr_sv name = fr_path_name(x->path);
    const fr_sv single = fr_sv_head(name, name.n - strlen(".index.json"));
    const uint32_t file = fr_ckpt_sibling(x->c, x->path, single);
    uint32_t named;
    if (file != FR_NO_FILE && !fr_map_get(&x->shards, single, &named)) {
        fr_ckpt_say(x->c, FR_PROBLEM_EXTRA, false, file, FR_NO_POS, FR_SV_NONE,
                    "stands beside '%.*s': from_pretrained loads this file alone and passes over "
                    "the index and its shards",
                    FR_SHOWN(name));
    }
}

static void judge(struct index *x)
{
    if (!fr_ckpt_work(x->c, (uint64_t)x->c->files.n + x->c->tensors.n)) {
        return;
    }
    bool *is_shard = fr_calloc(x->c->files.n, sizeof *is_shard);
    if (is_shard == NULL) {
        x->c->nomem = true;
        return;
    }
    for (uint32_t i = 0; i < x->shards.n; i++) {
        if (fr_map_value(&x->shards, i) != FR_NO_FILE) {
            is_shard[fr_map_value(&x->shards, i)] = true;
        }
    }
    check_tensors(x, is_shard);
    check_promises(x);
    fr_free(is_shard);
}

static void read_index(struct fr_ckpt *c, struct named *named, uint32_t step, uint32_t file)
{
    struct index x = {.c = c,
                      .named = named,
                      .file = file,
                      .step = step,
                      .path = c->files.v[file].path,
                      .scratch = FR_ARENA_INIT(0)};
    FR_AUTO(fr_blob) b = FR_BLOB_INIT;
    struct fr_err err = {0};
    char *text = NULL;
    int rc = fr_blob_open(&b, x.path.p, &err);
    if (rc == 0 && b.size > c->limits.header_bytes) {
        rc = fr_err_set(&err, FR_LIMIT, "an index of %llu bytes; at most %llu are read",
                        (unsigned long long)b.size, (unsigned long long)c->limits.header_bytes);
    }
    rc = rc == 0 ? fr_blob_load(&b, 0, (size_t)b.size, &text, &err) : rc;
    if (rc != 0) {
        fr_ckpt_say_err(c, FR_PROBLEM_UNREADABLE, true, file, rc, &err);
        return;
    }
    fr_map_init(&x.names, &x.scratch);
    fr_map_init(&x.shards, &x.scratch);
    x.j = fr_js_of(text, (size_t)b.size);
    parse(&x);
    if (x.j.why != NULL) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, x.j.at, FR_SV_NONE,
                    "malformed JSON at byte %zu: %s", x.j.at, x.j.why);
    } else if (!x.has_map) {
        fr_ckpt_say(c, FR_PROBLEM_HEADER, true, file, 0, FR_SV_NONE,
                    "has no weight_map: it is no index");
    } else {
        note_named(&x);
        check_single(&x);
    }
    if (!c->nomem) {
        judge(&x);
    }
    fr_vec_free(x.promises.v);
    fr_arena_release(&x.scratch);
    fr_free(text);
}

static fr_sv folder_or_dot(fr_sv path)
{
    const fr_sv folder = fr_path_folder(path);
    return folder.n > 0 ? folder : FR_SV(".");
}

/* Without an index the names themselves say how many there are. Told once, by the first of the
 * series that is there. */
static void check_series(struct fr_ckpt *c, uint32_t step, uint32_t file)
{
    fr_sv before, digits, after, path = c->files.v[file].path, first = FR_SV_NONE;
    char text[300], lost[300];
    uint64_t of, missing = 0;
    if (fr_path_name(path).n > 255 || !series(fr_path_name(path), &before, &digits, &after, &of) ||
        of > c->limits.files) {
        return;
    }
    for (uint64_t i = 1; i <= of && !c->nomem; i++) {
        int n = snprintf(text, sizeof text, "%.*s%0*llu%.*s", FR_SV_ARG(before), (int)digits.n,
                         (unsigned long long)i, FR_SV_ARG(after));
        uint32_t other = fr_ckpt_sibling(c, path, (fr_sv){text, (size_t)n});
        if ((other != FR_NO_FILE && other < file) || !fr_ckpt_work(c, 20)) {
            return; /* told already, or too many */
        }
        if (other == FR_NO_FILE && missing++ == 0) {
            first = (fr_sv){lost, (size_t)n};
            memcpy(lost, text, (size_t)n);
        }
    }
    if (missing > 0) {
        c->steps.v[step].layout = FR_SV("hf-sharded");
        fr_ckpt_say_step(c, FR_PROBLEM_MISSING, true, step, folder_or_dot(path),
                         "%llu of the %llu files of '%.*s' are not there, the first '%.*s'",
                         (unsigned long long)missing, (unsigned long long)of,
                         FR_SHOWN(fr_path_name(path)), FR_SHOWN(first));
    } else if (of > 1 && (fr_sv_starts(before, FR_SV("model-")) ||
                          fr_sv_starts(before, FR_SV("pytorch_model-")))) {
        c->steps.v[step].layout = FR_SV("hf-sharded");
        fr_ckpt_say_step(c, FR_PROBLEM_MISSING, false, step, folder_or_dot(path),
                         "has all %llu files of '%.*s', but no index.json beside them: "
                         "from_pretrained does not find the model",
                         (unsigned long long)of, FR_SHOWN(fr_path_name(path)));
    }
}

static void check(struct fr_ckpt *c, uint32_t step)
{
    bool any_index = false;
    struct named named = {.scratch = FR_ARENA_INIT(0)};
    fr_map_init(&named.families, &named.scratch);
    fr_map_init(&named.files, &named.scratch);
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !c->nomem;
         i = c->notes.v[i].next) {
        if (fr_sv_eq(c->files.v[i].format, FR_SV("index")) &&
            fr_sv_ends(c->files.v[i].path, FR_SV(".index.json"))) {
            any_index = true;
            c->steps.v[step].layout = FR_SV("hf-sharded");
            read_index(c, &named, step, i);
        }
    }
    check_unnamed(c, &named, step);
    fr_arena_release(&named.scratch);
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE && !any_index && !c->nomem;
         i = c->notes.v[i].next) {
        if (fr_sv_has(fr_path_name(c->files.v[i].path), FR_SV("-of-")) &&
            !c->notes.v[i].given) { /* who names one shard means that one */
            check_series(c, step, i);
        }
    }
}

const struct fr_ckpt_layout fr_ckpt_layout_sharded = {
    .name = "hf-sharded", .summary = "index.json and its shards", .check = check,
};
