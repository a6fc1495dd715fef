/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/build.h"

#include <stdarg.h>
#include <stdio.h>

static struct fr_problem *problem_new(struct fr_ckpt *c)
{
    if (c->problems.n >= c->limits.problems) {
        c->full_problems = true;
        return NULL;
    }
    struct fr_problem *p = FR_PUSH(&c->problems);
    if (p == NULL) {
        c->nomem = true;
    }
    return p;
}

/* The sentence "'PATH': TEXT"; %.*s of the caller are bounded by FR_CKPT_TEXT_MAX. */
__attribute__((format(printf, 4, 0))) static void tell(struct fr_ckpt *c, struct fr_problem about,
                                                       fr_sv path, const char *fmt, va_list ap)
{
    char text[1024];
    struct fr_problem *p = problem_new(c);
    if (p == NULL) {
        return;
    }
    (void)vsnprintf(text, sizeof text, fmt, ap);
    *p = about;
    p->text = fr_arena_printf(c->arena, "'%.*s': %s", FR_SV_ARG(path), text);
    p->tensor = about.tensor.n == 0 ? FR_SV_NONE : fr_arena_dup(c->arena, about.tensor);
    c->nomem = c->nomem || p->text.p == NULL;
}

void fr_ckpt_say(struct fr_ckpt *c, uint8_t kind, bool fatal, uint32_t file, uint64_t offset,
                 fr_sv tensor, const char *fmt, ...)
{
    va_list ap;
    fr_sv path = FR_SV("(all)");
    if (file != FR_NO_FILE) {
        path = c->files.v[file].path;
        c->files.v[file].complete = c->files.v[file].complete && !fatal;
    }
    va_start(ap, fmt);
    tell(c,
         (struct fr_problem){
             .kind = kind, .fatal = fatal, .file = file, .offset = offset, .tensor = tensor},
         path, fmt, ap);
    va_end(ap);
}

void fr_ckpt_say_step(struct fr_ckpt *c, uint8_t kind, bool fatal, uint32_t step, fr_sv path,
                      const char *fmt, ...)
{
    va_list ap;
    if (step != UINT32_MAX) {
        c->steps.v[step].complete = c->steps.v[step].complete && !fatal;
    }
    va_start(ap, fmt);
    tell(c,
         (struct fr_problem){.kind = kind, .fatal = fatal, .file = FR_NO_FILE, .offset = FR_NO_POS},
         path, fmt, ap);
    va_end(ap);
}

void fr_ckpt_say_err(struct fr_ckpt *c, uint8_t kind, bool fatal, uint32_t file, int rc,
                     const struct fr_err *err)
{
    if (rc == -FR_NOMEM) {
        c->nomem = true;
        return;
    }
    fr_ckpt_say(c, kind, fatal, file, err->pos != 0 ? err->pos : FR_NO_POS, FR_SV_NONE, "%s",
                err->msg);
}

struct fr_tensor *fr_ckpt_tensor(struct fr_ckpt *c, uint32_t file, fr_sv name)
{
    if (c->tensors.n >= c->limits.tensors) {
        c->full_tensors = true;
        return NULL;
    }
    fr_sv copy = fr_arena_dup(c->arena, name.n > 0 ? name : FR_SV("(unnamed)"));
    struct fr_tensor *t = copy.p == NULL ? NULL : FR_PUSH(&c->tensors);
    if (t == NULL) {
        c->nomem = true;
        return NULL;
    }
    t->name = copy;
    t->dtype_word = FR_SV("?");
    t->file = file;
    t->storage = c->storages++;
    t->member = -1;
    t->rank = c->files.v[file].rank;
    t->packed_rows = true;
    return t;
}

void fr_ckpt_tensor_undo(struct fr_ckpt *c)
{
    c->tensors.n--;
}

bool fr_ckpt_shape(struct fr_ckpt *c, struct fr_tensor *t, const uint64_t *shape, uint32_t dims,
                   uint64_t header_at)
{
    uint64_t n = 1;
    bool over = false, empty = false;
    if (dims > FR_DIMS_MAX) {
        fr_ckpt_say(c, FR_PROBLEM_LIMIT, true, t->file, header_at, t->name,
                    "'%.*s' has %u dimensions; at most %d are read", FR_SHOWN(t->name), dims,
                    FR_DIMS_MAX);
        return false;
    }
    for (uint32_t i = 0; i < dims; i++) {
        t->shape[i] = shape[i];
        empty = empty || shape[i] == 0;
        over = over || __builtin_mul_overflow(n, shape[i], &n);
    }
    t->dims = (uint8_t)dims;
    t->elements = empty ? 0 : n;
    if (over && !empty) {
        fr_ckpt_say(c, FR_PROBLEM_SIZE, true, t->file, header_at, t->name,
                    "the shape of '%.*s' at byte %llu has more elements than 64 bits can count",
                    FR_SHOWN(t->name), (unsigned long long)header_at);
        return false;
    }
    return true;
}

void fr_ckpt_sum(struct fr_ckpt *c, const struct fr_ckpt_sum *sum)
{
    if (sum->crc == 0 || sum->bytes == 0 || c->sums.n >= c->limits.tensors) {
        return; /* as many as tensors: who names more was told of that limit */
    }
    struct fr_ckpt_sum *s = FR_PUSH(&c->sums);
    if (s == NULL) {
        c->nomem = true;
        return;
    }
    *s = *sum;
    s->name = fr_ckpt_dup(c, sum->name);
}

uint32_t fr_ckpt_find(const struct fr_ckpt *c, fr_sv path)
{
    uint32_t file;
    return fr_map_get(&c->by_path, path, &file) ? file : FR_NO_FILE;
}

uint32_t fr_ckpt_sibling(struct fr_ckpt *c, fr_sv beside, fr_sv name)
{
    FR_AUTO(fr_buf) path = FR_BUF_INIT(0);
    fr_buf_add(&path, fr_sv_head(beside, beside.n - fr_path_name(beside).n));
    fr_buf_add(&path, name);
    c->nomem = c->nomem || !fr_buf_ok(&path);
    return fr_ckpt_find(c, fr_buf_sv(&path));
}

uint32_t fr_ckpt_new_file(struct fr_ckpt *c, fr_sv path, uint32_t step, bool given)
{
    if (c->files.n >= c->limits.files) {
        c->full_files = true;
        return FR_NO_FILE;
    }
    fr_sv copy = fr_arena_dup(c->arena, path);
    struct fr_ckpt_file *f = copy.p == NULL || !fr_map_put(&c->by_path, path, c->files.n)
                                 ? NULL
                                 : FR_PUSH(&c->files);
    struct fr_ckpt_note *note = f == NULL ? NULL : FR_PUSH(&c->notes);
    if (note == NULL) {
        c->nomem = true;
        return FR_NO_FILE;
    }
    *note = (struct fr_ckpt_note){.next = FR_NO_FILE, .given = given};
    f->path = copy;
    f->format = FR_SV("other");
    f->rank = -1;
    f->step_index = step;
    f->complete = true;
    return c->files.n - 1;
}

bool fr_ckpt_work(struct fr_ckpt *c, uint64_t n)
{
    if (n > FR_CKPT_WORK_MAX - c->work) {
        c->full_work = true;
        return false;
    }
    c->work += n;
    return true;
}

fr_sv fr_path_name(fr_sv path)
{
    size_t n = path.n;
    while (n > 0 && path.p[n - 1] != '/') {
        n--;
    }
    return fr_sv_skip(path, n);
}

fr_sv fr_path_folder(fr_sv path)
{
    size_t n = path.n - fr_path_name(path).n;
    return fr_sv_head(path, n > 1 ? n - 1 : n);
}

fr_sv fr_ckpt_dup(struct fr_ckpt *c, fr_sv s)
{
    fr_sv copy = fr_arena_dup(c->arena, s);
    c->nomem = c->nomem || copy.p == NULL;
    return copy;
}

/* The time of the newest file of a step that is a candidate; 0 when it is none. */
static uint64_t newest_of(const struct fr_checkpoint *c, uint32_t step)
{
    uint64_t newest = 0;
    for (uint32_t i = 0; i < c->files_n; i++) {
        newest = c->files[i].step_index == step && c->files[i].mtime_ns > newest
                     ? c->files[i].mtime_ns
                     : newest;
    }
    return newest;
}

static bool has_tensors(const struct fr_checkpoint *c, uint32_t step)
{
    uint32_t low = 0, high = c->tensors_n; /* tensors are sorted by step */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->files[c->tensors[mid].file].step_index < step) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < c->tensors_n && c->files[c->tensors[low].file].step_index == step;
}

uint32_t fr_checkpoint_last_good(const struct fr_checkpoint *c)
{
    uint32_t best = UINT32_MAX;
    uint64_t best_time = 0;
    for (uint32_t i = c->steps_n; i-- > 0;) {
        if (!c->steps[i].complete || !has_tensors(c, i)) {
            continue;
        }
        if (c->steps[i].step >= 0) {
            return i; /* steps are sorted by number */
        }
        uint64_t time = newest_of(c, i);
        if (best == UINT32_MAX || time > best_time) {
            best = i;
            best_time = time;
        }
    }
    return best;
}
