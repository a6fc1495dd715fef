/* SPDX-License-Identifier: Apache-2.0 */
/* tails: a file that was given its size and then written, or copied with holes, and not to the end,
 * is whole by its header and zero from somewhere on. One zero tensor may be meant; zeros that begin
 * in the middle of a matrix and do not end before the file does are not. Tables are no such matrix:
 * a padded vocabulary ends in zero rows. */
#include "tensor/checking.h"
#include "tensor/place.h"

#include <inttypes.h>
#include <stdlib.h>

struct spot {
    struct fr_check_tensor *t;
    uint64_t offset, bytes;
    uint32_t file;
};

static int by_place(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    return x->file != y->file ? (x->file < y->file ? -1 : 1)
                              : (x->offset > y->offset) - (x->offset < y->offset);
}

static bool begins_zeros(const struct fr_check_tensor *t)
{
    return t->zero_rows_at_end > 0 && t->zero_rows == t->zero_rows_at_end &&
           !fr_place_is_embedding(t) && !fr_place_is_head(t);
}

/* The spots [from, to) are one file's, in its order. */
static void file_tail(struct fr_checking *k, const struct spot *v, uint32_t from, uint32_t to)
{
    uint32_t zeros = 0, telling = 0;
    while (to - zeros > from && v[to - zeros - 1].t->zero == v[to - zeros - 1].t->elements) {
        telling += !fr_place_is_bias(v[to - zeros - 1].t);
        zeros++;
    }
    if (zeros == 0 || to - zeros == from || telling == 0 || !begins_zeros(v[to - zeros - 1].t)) {
        return;
    }
    const struct spot *first = &v[to - zeros - 1];
    const uint64_t row = first->bytes / first->t->rows,
                   at = first->offset + first->bytes - row * first->t->zero_rows_at_end;
    struct fr_check_finding *f = fr_found(
        k, FR_RULE_ZERO_TO_END, first->t, FR_SV_NONE,
        "Its last %" PRIu64 " of %" PRIu64 " rows are zero, and so is all that follows in the "
        "file, %u tensor%s: from byte %" PRIu64 " on nothing was written.",
        first->t->zero_rows_at_end, first->t->rows, zeros, zeros == 1 ? "" : "s", at);
    if (f != NULL) {
        f->offset = at;
    }
}

void fr_check_tails(struct fr_checking *k)
{
    struct fr_arena scratch = FR_ARENA_INIT(0);
    struct spot *v = FR_NEW_N(&scratch, struct spot, k->r->tensors.n + 1);
    uint32_t n = 0, from = 0;
    k->nomem |= v == NULL;
    for (uint32_t i = 0; v != NULL && i < k->r->tensors.n; i++) {
        struct fr_check_tensor *t = &k->r->tensors.v[i];
        const struct fr_tensor *s = &k->c->tensors[t->source];
        if (t->scanned && t->elements > 0 &&
            fr_sv_eq(k->c->files[s->file].format, FR_SV("safetensors"))) {
            v[n++] = (struct spot){t, s->offset, s->bytes, s->file};
        }
    }
    if (n > 1) {
        qsort(v, n, sizeof *v, by_place);
    }
    for (uint32_t i = 1; i <= n; i++) {
        if (i == n || v[i].file != v[from].file) {
            file_tail(k, v, from, i);
            from = i;
        }
    }
    fr_arena_release(&scratch);
}
