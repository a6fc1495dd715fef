/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/survey.h"

#include "base/alloc.h"
#include "base/vec.h"
#include "tensor/rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define TASK_BYTES ((uint64_t)64 << 20)
#define THREADS_MAX 64
#define NO_TENSOR UINT32_MAX

struct task {
    uint32_t tensor, slot;   /* in the checkpoint, in ret; tensor NO_TENSOR: in the sums */
    uint32_t crc;            /* of a sum */
    uint64_t from, bytes;    /* of the tensor's bytes */
    uint64_t row, row_bytes; /* the first row; 0 bytes: no rows */
    struct fr_tally tally;
    struct fr_rows rows;
    struct fr_err err;
    int rc;
};

struct crew {
    const struct fr_checkpoint *c;
    const struct fr_survey_options *o;
    struct task *tasks;
    uint32_t n;
    _Atomic uint32_t next;
    _Atomic uint64_t done;
    uint64_t total;
};

/* ---- one task ---- */

struct reading {
    struct task *t;
    uint32_t dtype;
    bool swapped;
    uint32_t width; /* bytes of what is swapped */
    size_t kept;
    char block[FR_TALLY_PIECE]; /* what did not fill a piece yet: pieces do not depend on how spans
                                   are cut */
};

static void swap(char *p, size_t n, uint32_t width)
{
    for (size_t i = 0; i + width <= n; i += width) {
        for (uint32_t k = 0; k < width / 2; k++) {
            const char c = p[i + k];
            p[i + k] = p[i + width - 1 - k];
            p[i + width - 1 - k] = c;
        }
    }
}

static void piece(struct reading *r, const char *p, size_t n)
{
    (void)fr_tally_add(r->dtype, p, n, &r->t->tally);
    if (r->t->row_bytes > 0) {
        fr_rows_add(&r->t->rows, p, n);
    }
}

static void keep_full(struct reading *r)
{
    if (r->swapped) {
        swap(r->block, r->kept, r->width);
    }
    piece(r, r->block, r->kept);
    r->kept = 0;
}

static int on_span(void *ctx, const void *span, size_t n)
{
    struct reading *r = ctx;
    const char *p = span;
    while (n > 0) {
        if (r->kept == 0 && n >= FR_TALLY_PIECE && !r->swapped) {
            const size_t now = n - n % FR_TALLY_PIECE;
            for (size_t i = 0; i < now; i += FR_TALLY_PIECE) {
                piece(r, p + i, FR_TALLY_PIECE);
            }
            p += now;
            n -= now;
            continue;
        }
        const size_t now = FR_TALLY_PIECE - r->kept < n ? FR_TALLY_PIECE - r->kept : n;
        memcpy(r->block + r->kept, p, now);
        r->kept += now;
        p += now;
        n -= now;
        if (r->kept == FR_TALLY_PIECE) {
            keep_full(r);
        }
    }
    return 0;
}

/* What is walked: a tensor, or a member of a zip as if it were one. */
static struct fr_tensor walked(const struct fr_checkpoint *c, const struct fr_survey_options *o,
                               const struct task *t)
{
    const struct fr_ckpt_sum *s = t->tensor == NO_TENSOR ? &c->sums[o->sums[t->slot].of] : NULL;
    return s == NULL ? c->tensors[t->tensor]
                     : (struct fr_tensor){.file = s->file,
                                          .offset = s->offset,
                                          .bytes = s->bytes,
                                          .member = s->member};
}

static int on_sum(void *ctx, const void *span, size_t n)
{
    uint32_t *crc = ctx;
    *crc = (uint32_t)crc32_z(*crc, span, n);
    return 0;
}

static void do_task(struct fr_tensor part, struct fr_spans *s, struct task *t)
{
    const uint32_t width = fr_tally_width(part.dtype);
    struct reading r; /* not zeroed: 16 KiB for each of many small tensors */
    r.t = t;
    r.dtype = part.dtype;
    r.swapped = part.swapped && width > 1;
    r.width = width;
    r.kept = 0;
    part.offset += t->from;
    part.bytes = t->bytes;
    if (t->tensor == NO_TENSOR) {
        t->rc = fr_spans_walk(s, &part, on_sum, &t->crc, &t->err);
        return;
    }
    if (t->row_bytes > 0) {
        fr_rows_begin(&t->rows, t->row_bytes, width, t->row);
    }
    t->rc = fr_spans_walk(s, &part, on_span, &r, &t->err);
    keep_full(&r);
}

static void *work(void *arg)
{
    struct crew *w = arg;
    struct fr_spans *s = NULL;
    uint32_t open = UINT32_MAX, i;
    while ((i = atomic_fetch_add(&w->next, 1)) < w->n) {
        struct task *t = &w->tasks[i];
        const struct fr_tensor of = walked(w->c, w->o, t);
        const uint32_t file = of.file;
        if (file != open) {
            fr_spans_close(&s);
            open = UINT32_MAX;
            t->rc = fr_spans_open(w->c, file, &s, &t->err);
            open = t->rc == 0 ? file : open;
        }
        if (open == file) {
            do_task(of, s, t);
        }
        const uint64_t done = atomic_fetch_add(&w->done, t->bytes) + t->bytes;
        if (w->o->progress != NULL) {
            w->o->progress(w->o->ctx, done, w->total);
        }
    }
    fr_spans_close(&s);
    return NULL;
}

static void run(struct crew *w)
{
    pthread_t threads[THREADS_MAX];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned n = w->o->threads > 0 ? w->o->threads : cores > 0 ? (unsigned)cores : 1, started = 1;
    n = n > THREADS_MAX ? THREADS_MAX : n > w->n ? w->n : n;
    for (; started < n; started++) {
        if (pthread_create(&threads[started], NULL, work, w) != 0) {
            break;
        }
    }
    work(w);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* ---- cutting and putting together ---- */

static uint64_t row_bytes_of(const struct fr_tensor *t)
{
    const uint32_t width = fr_tally_width(t->dtype);
    const struct fr_dtype_info *info = fr_dtype_info(t->dtype);
    if (t->dims < 2 || !t->packed_rows || info == NULL || !info->is_float ||
        info->bits != 8 * width || width > 8) {
        return 0;
    }
    const uint64_t columns = t->shape[t->dims - 1], bytes = columns * width;
    return columns >= FR_SURVEY_ROW_LEAST && bytes / width == columns && t->bytes % bytes == 0
               ? bytes
               : 0;
}

typedef struct {
    FR_VEC(struct task) list;
} task_list;

static bool cut(task_list *tasks, const struct fr_checkpoint *c, uint32_t tensor, uint32_t slot)
{
    const struct fr_tensor *t = &c->tensors[tensor];
    const uint64_t row = row_bytes_of(t);
    /* Whole rows, and else whole pieces, whose sums stay the same. */
    uint64_t most = row == 0 ? TASK_BYTES : row > TASK_BYTES ? row : TASK_BYTES - TASK_BYTES % row;
    most = t->member >= 0 || t->swapped ? t->bytes : most;
    for (uint64_t from = 0; from < t->bytes;) {
        struct task *k = FR_PUSH(&tasks->list);
        if (k == NULL) {
            return false;
        }
        const uint64_t n = t->bytes - from < most ? t->bytes - from : most;
        *k = (struct task){.tensor = tensor,
                           .slot = slot,
                           .from = from,
                           .bytes = n,
                           .row_bytes = row,
                           .row = row > 0 ? from / row : 0};
        from += n;
    }
    return true;
}

static bool cut_sum(task_list *tasks, const struct fr_ckpt_sum *s, uint32_t slot)
{
    const uint64_t most = s->member >= 0 ? s->bytes : TASK_BYTES;
    for (uint64_t from = 0; from < s->bytes;) {
        struct task *k = FR_PUSH(&tasks->list);
        if (k == NULL) {
            return false;
        }
        const uint64_t n = s->bytes - from < most ? s->bytes - from : most;
        *k = (struct task){.tensor = NO_TENSOR, .slot = slot, .from = from, .bytes = n};
        from += n;
    }
    return true;
}

struct spot {
    uint32_t file;
    int32_t member;
    uint64_t offset;
};

static struct spot spot_of(const struct crew *w, const struct task *t)
{
    if (t->tensor == NO_TENSOR) {
        const struct fr_ckpt_sum *s = &w->c->sums[w->o->sums[t->slot].of];
        return (struct spot){s->file, s->member, s->offset};
    }
    const struct fr_tensor *of = &w->c->tensors[t->tensor];
    return (struct spot){of->file, of->member, of->offset};
}

static int by_place(const void *a, const void *b, void *crew)
{
    const struct task *x = a, *y = b;
    const struct spot s = spot_of(crew, x), t = spot_of(crew, y);
    const uint64_t from = s.offset + x->from, to = t.offset + y->from;
    const bool sum = x->tensor == NO_TENSOR, other = y->tensor == NO_TENSOR;
    return s.file != t.file       ? (s.file < t.file ? -1 : 1)
           : s.member != t.member ? (s.member < t.member ? -1 : 1)
           : from != to           ? (from < to ? -1 : 1)
           : sum != other         ? (sum ? -1 : 1)
           : x->slot != y->slot   ? (x->slot < y->slot ? -1 : 1)
                                  : 0;
}

static void put_sum(const struct task *t, struct fr_survey_sum *s)
{
    s->crc = t->from == 0 ? t->crc
                          : (uint32_t)crc32_combine(s->crc, t->crc, (z_off_t)t->bytes);
    s->rc = s->rc != 0 ? s->rc : t->rc;
}

static void put(const struct task *t, struct fr_arena *arena, struct fr_survey *s)
{
    const struct fr_rows *r = &t->rows;
    fr_tally_merge(&s->tally, &t->tally);
    s->done = true;
    if (t->row_bytes > 0) {
        const uint64_t now = r->rows - t->row;
        s->first_zero_row = s->zero_rows == 0 ? r->first_zero : s->first_zero_row;
        s->first_equal_row = s->equal_not_zero == 0 ? r->first_equal : s->first_equal_row;
        s->zero_rows_at_end = r->zero_at_end == now ? s->zero_rows_at_end + now : r->zero_at_end;
        s->rows += now;
        s->zero_rows += r->zero;
        s->equal_not_zero += r->equal_not_zero;
        s->equal_rows += r->zero + r->equal_not_zero;
    }
    if (t->rc != 0 && s->rc == 0) {
        s->rc = t->rc;
        s->why = fr_arena_strdup(arena, fr_sv_z(t->err.msg));
        s->at = t->err.pos;
    }
}

int fr_survey(const struct fr_checkpoint *c, const uint32_t *which, uint32_t n,
              const struct fr_survey_options *o, struct fr_arena *arena, struct fr_survey *ret,
              struct fr_err *err)
{
    task_list tasks = {0};
    struct crew w = {.c = c, .o = o};
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i++) {
        const struct fr_tensor *t = &c->tensors[which[i]];
        ret[i] = (struct fr_survey){
            .first_zero_row = UINT64_MAX, .first_equal_row = UINT64_MAX, .at = UINT64_MAX};
        if (fr_tally_width(t->dtype) > 0 && !t->cut) {
            ret[i].done = t->bytes == 0;
            w.total += t->bytes;
            ok = cut(&tasks, c, which[i], i);
        }
    }
    for (uint32_t i = 0; i < o->sums_n && ok; i++) {
        o->sums[i] = (struct fr_survey_sum){.of = o->sums[i].of};
        w.total += c->sums[o->sums[i].of].bytes;
        ok = cut_sum(&tasks, &c->sums[o->sums[i].of], i);
    }
    if (!ok) {
        fr_vec_free(tasks.list.v);
        return fr_err_set(err, FR_NOMEM, "out of memory");
    }
    if (tasks.list.n > 1) {
        qsort_r(tasks.list.v, tasks.list.n, sizeof *tasks.list.v, by_place, &w);
    }
    w.tasks = tasks.list.v;
    w.n = tasks.list.n;
    if (w.n > 0) {
        run(&w);
    }
    for (uint32_t i = 0; i < tasks.list.n; i++) { /* the tasks of one tensor stand in its order */
        const struct task *t = &tasks.list.v[i];
        if (t->tensor == NO_TENSOR) {
            put_sum(t, &o->sums[t->slot]);
        } else {
            put(t, arena, &ret[t->slot]);
        }
    }
    fr_vec_free(tasks.list.v);
    return 0;
}

/* ---- contents ---- */

static int on_hash(void *ctx, const void *span, size_t n)
{
    uint64_t *h = ctx;
    const unsigned char *p = span;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        *h = (*h ^ w) * 0x9e3779b97f4a7c15ull;
        *h ^= *h >> 29;
    }
    for (; n > 0; n--, p++) {
        *h = (*h ^ *p) * 0x9e3779b97f4a7c15ull;
    }
    return 0;
}

bool fr_survey_hash(const struct fr_checkpoint *c, uint32_t tensor, uint64_t *ret)
{
    struct fr_spans *s = NULL;
    const struct fr_tensor *t = &c->tensors[tensor];
    *ret = t->bytes;
    if (t->cut || fr_spans_open(c, t->file, &s, NULL) != 0) {
        return false;
    }
    const int rc = fr_spans_walk(s, t, on_hash, ret, NULL);
    fr_spans_close(&s);
    return rc == 0;
}
