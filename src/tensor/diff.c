/* SPDX-License-Identifier: Apache-2.0 */
/* diff: a first walk with memcmp finds tensors that are the same bytes; the others are walked
 * again, element by element. A part of the first tensor is copied, then the second one's is walked
 * beside it: two walks inside each other would need two guarded windows at once. */
#include "tensor/diff.h"

#include "base/alloc.h"
#include "faultrank/numerics.h"

#include <math.h>

#define PART ((size_t)1 << 20)

struct fr_differ {
    const struct fr_checkpoint *c[2];
    struct fr_spans *spans[2];
    uint32_t open[2];
    char *part;
    float *values; /* of all codes of a type of 16 or 8 bits */
    uint8_t values_of;
    /* of the pair at hand */
    uint8_t dtype;
    uint32_t width;
    bool swapped;
    size_t filled, seen;
    uint64_t at; /* element number of the part's first */
    double diff2, a2, b2, dot;
    struct fr_check_diff *out;
};

struct fr_differ *fr_differ_new(const struct fr_checkpoint *a, const struct fr_checkpoint *b)
{
    struct fr_differ *d = fr_calloc(1, sizeof *d);
    if (d != NULL) {
        *d = (struct fr_differ){.c = {a, b},
                                .open = {UINT32_MAX, UINT32_MAX},
                                .part = fr_malloc(PART),
                                .values = fr_malloc(65536 * sizeof(float))};
        if (d->part == NULL || d->values == NULL) {
            fr_differ_free(&d);
        }
    }
    return d;
}

void fr_differ_free(struct fr_differ **d)
{
    if (*d != NULL) {
        fr_spans_close(&(*d)->spans[0]);
        fr_spans_close(&(*d)->spans[1]);
        fr_free((*d)->part);
        fr_free((*d)->values);
        fr_free(*d);
    }
    *d = NULL;
}

static uint64_t code_at(const struct fr_differ *d, const char *p, size_t i)
{
    uint64_t w = 0;
    memcpy(&w, p + i * d->width, d->width);
    if (d->swapped) {
        w = __builtin_bswap64(w) >> (64 - 8 * d->width);
    }
    return w;
}

static double value_of(const struct fr_differ *d, uint64_t code)
{
    float f;
    double x;
    const uint32_t low = (uint32_t)code;
    if (d->width <= 2) {
        return (double)d->values[code];
    }
    if (d->width == 4) {
        memcpy(&f, &low, 4);
        return (double)f;
    }
    memcpy(&x, &code, 8);
    return x;
}

static bool is_exponent_flip(const struct fr_differ *d, uint64_t a, uint64_t b)
{
    const struct fr_dtype_info *info = fr_dtype_info(d->dtype);
    const uint64_t bits = a ^ b, exponent = ((1ull << info->exponent_bits) - 1)
                                            << info->mantissa_bits;
    return (bits & (bits - 1)) == 0 && (bits & exponent) != 0;
}

static void element(struct fr_differ *d, uint64_t at, uint64_t a, uint64_t b, bool numbers)
{
    if (a != b) {
        d->out->first = d->out->differing == 0 ? at : d->out->first;
        d->out->differing++;
        d->out->exponent_flips += numbers && is_exponent_flip(d, a, b);
    }
    if (!numbers) {
        return;
    }
    const double x = value_of(d, a), y = value_of(d, b);
    if (isfinite(x) && isfinite(y)) {
        d->out->max_abs = fmax(d->out->max_abs, fabs(x - y));
        d->diff2 += (x - y) * (x - y);
        d->a2 += x * x;
        d->b2 += y * y;
        d->dot += x * y;
    }
}

/* n bytes that begin at byte `seen` of the part. */
static void close_look(struct fr_differ *d, const char *a, const char *b, size_t n)
{
    const struct fr_dtype_info *info = fr_dtype_info(d->dtype);
    const bool numbers = info != NULL && info->is_float && d->width * 8 == info->bits;
    for (size_t i = 0; i < n / d->width; i++) {
        element(d, d->at + d->seen / d->width + i, code_at(d, a, i), code_at(d, b, i), numbers);
    }
}

static int on_second(void *ctx, const void *span, size_t n)
{
    struct fr_differ *d = ctx;
    const char *b = span;
    close_look(d, d->part + d->seen, b, n); /* equal parts too: norms and angles are of the whole */
    d->seen += n;
    return 0;
}

static int on_same(void *ctx, const void *span, size_t n)
{
    struct fr_differ *d = ctx;
    const int other = memcmp(d->part + d->seen, span, n) != 0;
    d->seen += n;
    return other;
}

static int on_first(void *ctx, const void *span, size_t n)
{
    struct fr_differ *d = ctx;
    memcpy(d->part + d->filled, span, n);
    d->filled += n;
    return 0;
}

static int open_side(struct fr_differ *d, int side, uint32_t file, struct fr_err *err)
{
    if (d->open[side] == file) {
        return 0;
    }
    fr_spans_close(&d->spans[side]);
    d->open[side] = UINT32_MAX;
    const int rc = fr_spans_open(d->c[side], file, &d->spans[side], err);
    d->open[side] = rc == 0 ? file : UINT32_MAX;
    return rc;
}

/* Walks both; 1 when fn found a difference and asked to stop. */
static int walk(struct fr_differ *d, const struct fr_tensor *a, const struct fr_tensor *b,
                fr_span_fn fn, struct fr_err *err)
{
    int rc = 0;
    for (uint64_t from = 0; rc == 0 && from < a->bytes; from += PART) {
        struct fr_tensor x = *a, y = *b;
        x.offset += from;
        y.offset += from;
        x.bytes = y.bytes = a->bytes - from < PART ? a->bytes - from : PART;
        d->filled = d->seen = 0;
        d->at = from / d->width;
        rc = fr_spans_walk(d->spans[0], &x, on_first, d, err);
        rc = rc == 0 ? fr_spans_walk(d->spans[1], &y, fn, d, err) : rc;
    }
    return rc;
}

static void table(struct fr_differ *d)
{
    const uint32_t codes = d->width == 2 ? 65536 : 256;
    for (uint32_t i = 0; d->values_of != d->dtype && d->width <= 2 && i < codes; i++) {
        d->values[i] = (float)fr_decode(d->dtype, i);
    }
    d->values_of = d->width <= 2 ? d->dtype : d->values_of;
}

int fr_differ_run(struct fr_differ *d, const struct fr_tensor *a, const struct fr_tensor *b,
                  struct fr_check_diff *ret, struct fr_err *err)
{
    const uint32_t width = fr_tally_width(a->dtype);
    int rc = open_side(d, 0, a->file, err);
    rc = rc == 0 ? open_side(d, 1, b->file, err) : rc;
    d->dtype = a->dtype;
    d->width = width > 0 ? width : 1;
    d->swapped = a->swapped;
    d->diff2 = d->a2 = d->b2 = d->dot = 0;
    d->out = ret;
    ret->relative = ret->cosine = NAN;
    if (rc == 0) {
        rc = walk(d, a, b, on_same, err);
    }
    if (rc != 1) {
        return rc;
    }
    table(d);
    rc = walk(d, a, b, on_second, err);
    ret->relative = d->a2 > 0 ? sqrt(d->diff2 / d->a2) : NAN;
    ret->cosine = d->a2 > 0 && d->b2 > 0 ? d->dot / sqrt(d->a2 * d->b2) : NAN;
    return rc;
}
