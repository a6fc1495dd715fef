/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation against PyTorch's own bits: files of tests/numerics/torch_bits.py, those given as
 * arguments or the fixtures beside it. An operation is either exact (every bit, NaN equal to NaN) or
 * has a bound: PyTorch's code must be one that some real number within bound * 2^-24, relative, of the
 * fp64 result rounds to. */
#include "faultrank/numerics.h"
#include "support/t.h"

#include <math.h>
#include <string.h>

struct block {
    uint32_t dtype;
    size_t rows, n;
    double *v;
};

struct outcome {
    size_t values, differ, outside, unclaimed;
};

static const double EPS = 1e-5;
static struct fr_policy policy;
static int modern; /* torch 2 */

/* ---- one operation on one row ---- */

static struct fr_array weights(const struct block *in, double *v)
{
    for (size_t i = 0; i < in->n; i++) {
        v[i] = 1 + (double)(i % 5) / 4;
    }
    return (struct fr_array){v, in->n, in->dtype};
}

/* Runs op on a row with a policy; out has room for in->n. 0 when the name is unknown. */
static int run_norm(const char *op, const struct fr_policy *p, const struct block *in,
                    struct fr_array x, double param, double *work, struct fr_array *out)
{
    size_t n = in->n;
    struct fr_array w = weights(in, work), dy = {work + n, n, in->dtype};
    work += 2 * n;
    const char *form_name = strchr(op, ':') + 1;
    uint32_t form = fr_form_find(form_name);
    if (strncmp(op, "ms:", 3) == 0) {
        return fr_mean_square(p, form, &x, work, out, NULL) == 0;
    }
    if (strncmp(op, "rms:", 4) == 0) {
        return fr_rms_norm(p, form, &x, &w, EPS, work, out, NULL, NULL) == 0;
    }
    for (size_t i = 0; i < n; i++) {
        dy.v[i] = fr_round(in->dtype, param * (1 - (double)(i % 3) / 2), FR_OVERFLOW_IEEE);
    }
    int dx = op[1] == 'x';
    return fr_rms_norm_backward(p, form, &x, &w, EPS, &dy, work, dx ? out : NULL,
                                dx ? NULL : out, NULL) == 0;
}

static int run_named(const char *op, const struct fr_policy *p, const struct fr_array *x,
                     double param, struct fr_array *out)
{
    static const struct { const char *name; uint32_t op; } unary[] = {
        {"pow2", FR_OP_POW2}, {"pow3", FR_OP_POW3}, {"rsqrt", FR_OP_RSQRT}, {"sqrt", FR_OP_SQRT},
        {"exp", FR_OP_EXP},   {"log", FR_OP_LOG},   {"silu", FR_OP_SILU},   {"gelu", FR_OP_GELU},
    }, scalar[] = {{"add-scalar", FR_OP_ADD}, {"mul-scalar", FR_OP_MUL}, {"div-scalar", FR_OP_DIV}},
      reduce[] = {{"sum", FR_REDUCE_SUM}, {"mean", FR_REDUCE_MEAN}, {"norm", FR_REDUCE_NORM2}};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++) {
        if (strcmp(op, unary[i].name) == 0) {
            return fr_op(p, unary[i].op, x, NULL, out) == 0;
        }
    }
    for (size_t i = 0; i < sizeof scalar / sizeof *scalar; i++) {
        if (strcmp(op, scalar[i].name) == 0) {
            return fr_op_scalar(p, scalar[i].op, x, param, out) == 0;
        }
    }
    for (size_t i = 0; i < sizeof reduce / sizeof *reduce; i++) {
        if (strcmp(op, reduce[i].name) == 0) {
            return fr_reduce(p, reduce[i].op, x, out) == 0;
        }
    }
    return strcmp(op, "mul") == 0 && fr_op(p, FR_OP_MUL, x, x, out) == 0;
}

static int run(const char *op, const struct fr_policy *p, const struct block *in, size_t row,
               double param, double *work, struct fr_array *out)
{
    struct fr_array x = {in->v + row * in->n, in->n, in->dtype};
    if (strcmp(op, "cast") == 0) {
        return fr_cast(p, &x, out->dtype, out) == 0;
    }
    if (strcmp(op, "softmax") == 0) {
        return fr_softmax(p, FR_SOFTMAX_LIBRARY, &x, work, out, NULL) == 0;
    }
    if (strcmp(op, "layer-norm") == 0) {
        struct fr_array w = weights(in, work);
        return fr_layer_norm(p, 0, &x, &w, NULL, EPS, work + in->n, out, NULL) == 0;
    }
    if (strchr(op, ':') != NULL) {
        return run_norm(op, p, in, x, param, work, out);
    }
    return run_named(op, p, &x, param, out);
}

/* ---- what is claimed ---- */

/* Bounds of what PyTorch computes in fp32 by other means than we do, in units of 2^-24 of a scale: the
 * value itself, or for by_row the row's largest result (differences cancel within a row, so that its
 * small values carry the error of the large ones). n_part: more with every addition of a row. */
static const struct bound {
    const char *op;
    double fixed, n_part;
    int by_row;
} bounds[] = {
    {"exp", 3, 0, 0},     {"log", 3, 0, 0},     {"silu", 6, 0, 0},       {"gelu", 8, 0, 2},
    {"softmax", 8, 0.5, 0}, {"layer-norm", 24, 1, 1},
};
static const struct bound exact = {"", 0, 0, 0};

/* What is not claimed: 1.13 computes these in bf16 in ways no policy describes (silu and gelu round to
 * bf16 in between, layer norm applies weight and bias in it); and every version rounds up in E8M0 from
 * 2^-127 on, not from 1.5 * 2^-127. */
static int claimed(const char *op, const struct block *in, const struct block *want, size_t row,
                   size_t i)
{
    if (want->dtype == FR_F8_E8M0) {
        double magnitude = fabs(in->v[row * in->n + i]);
        return !(magnitude > 0x1p-127 && magnitude < 0x1p-126);
    }
    return modern || in->dtype != FR_BF16 ||
           (strcmp(op, "silu") != 0 && strcmp(op, "gelu") != 0 && strcmp(op, "layer-norm") != 0);
}

static const struct bound *bound_of(const char *op)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(op, bounds[i].op) == 0) {
            return &bounds[i];
        }
    }
    return &exact;
}

static int same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

/* Whether torch's code is one that a number within tolerance of wide rounds to. */
static int within(uint32_t dtype, double torch, double wide, double tolerance)
{
    double low = fr_round(dtype, wide - tolerance, FR_OVERFLOW_IEEE);
    double high = fr_round(dtype, wide + tolerance, FR_OVERFLOW_IEEE);
    return torch >= low && torch <= high;
}

/* The policy of one result: PyTorch handles the last few of a 16-bit tensor one by one. */
static struct fr_policy policy_at(const struct block *in, const char *op, size_t row, size_t i,
                                  uint32_t to)
{
    struct fr_policy p = policy;
    size_t index = strchr(op, ':') != NULL ? row : row * in->n + i;
    size_t count = strchr(op, ':') != NULL ? in->rows : in->rows * in->n;
    if (fr_dtype_info(in->dtype)->bits == 16 && index >= count / 32 * 32) {
        p.rsqrt = FR_RSQRT_NARROW;
    }
    if (strcmp(op, "cast") == 0 && to == FR_F8_E4M3FN && modern) {
        p.element = to; /* since 2.12 */
        p.overflow = FR_OVERFLOW_SATURATE;
    }
    return p;
}

/* Room for one row's results and scratch. */
static double out_v[400000], tail_v[400000], wide_v[400000], work_v[4000000];

static void compare_row(const char *op, const struct block *in, const struct block *want, size_t row,
                        double param, struct outcome *o)
{
    const struct bound *b = bound_of(op);
    struct block as_float = *in;
    size_t n = want->n == 1 ? in->n : want->n;
    struct fr_array out = {out_v, n, want->dtype}, tail = {tail_v, n, want->dtype};
    struct fr_array wide = {wide_v, n, want->dtype};
    struct fr_policy first = policy_at(in, op, row, 0, want->dtype);
    struct fr_policy last = policy_at(in, op, row, in->n - 1, want->dtype);
    as_float.dtype = FR_F32; /* the same values: what came before the result's rounding */
    int fine = run(op, &first, in, row, param, work_v, &out) && run(op, &last, in, row, param, work_v, &tail) &&
               (b == &exact || run(op, &policy, &as_float, row, param, work_v, &wide));
    T_OK(fine && out.dtype == want->dtype);
    double top = 0;
    for (size_t i = 0; i < want->n; i++) {
        top = isfinite(out_v[i]) && fabs(out_v[i]) > top ? fabs(out_v[i]) : top;
    }
    for (size_t i = 0; i < want->n; i++) {
        struct fr_policy p = policy_at(in, op, row, i, want->dtype);
        double got = p.rsqrt == last.rsqrt ? tail_v[i] : out_v[i], torch = want->v[row * want->n + i];
        o->values++;
        if (!claimed(op, in, want, row, i)) {
            o->unclaimed++;
            continue;
        }
        if (same(got, torch)) {
            continue;
        }
        o->differ++;
        double scale = b->by_row == 1 ? top : b->by_row == 2 ? in->v[row * in->n + i] : wide_v[i];
        double tolerance = (b->fixed + b->n_part * (double)in->n) * 0x1p-24 * fabs(scale) + 0x1p-149;
        if ((b == &exact || !within(want->dtype, torch, wide_v[i], tolerance)) && o->outside++ < 3) {
            fprintf(stderr, "  %s %s n=%zu row %zu [%zu]: ours %a torch %a\n", op,
                    fr_dtype_info(in->dtype)->name, in->n, row, i, got, torch);
        }
    }
}

static void compare(const char *op, const struct block *in, const struct block *want, double param,
                    struct outcome *o)
{
    for (size_t row = 0; row < want->rows; row++) {
        compare_row(op, in, want, row, param, o);
    }
}

/* ---- what was found, one line for an operation and its types ---- */

static struct total {
    char name[64];
    size_t rows;
    struct outcome o;
} totals[200];
static size_t total_count;

static void add_up(const char *op, const struct block *in, const struct block *want,
                   const struct outcome *o)
{
    char name[64];
    snprintf(name, sizeof name, "%s %s -> %s", op, fr_dtype_info(in->dtype)->name,
             fr_dtype_info(want->dtype)->name);
    size_t i = 0;
    while (i < total_count && strcmp(totals[i].name, name) != 0) {
        i++;
    }
    if (i == sizeof totals / sizeof *totals) {
        return;
    }
    total_count = i == total_count ? i + 1 : total_count;
    memcpy(totals[i].name, name, sizeof name);
    totals[i].rows += want->rows;
    totals[i].o.values += o->values;
    totals[i].o.differ += o->differ;
    totals[i].o.unclaimed += o->unclaimed;
}

static void print_totals(void)
{
    for (size_t i = 0; i < total_count; i++) {
        const struct outcome *o = &totals[i].o;
        printf("# %-34s %6zu rows %8zu values: %8zu to the bit, %zu within, %zu unclaimed\n",
               totals[i].name, totals[i].rows, o->values, o->values - o->differ - o->unclaimed,
               o->differ, o->unclaimed);
    }
    total_count = 0;
    memset(totals, 0, sizeof totals);
}

/* ---- files ---- */

static int read_block(FILE *f, const char *dtype, size_t rows, size_t n, struct block *b)
{
    b->dtype = fr_dtype_find(dtype);
    b->rows = rows;
    b->n = n;
    size_t bits = fr_dtype_info(b->dtype) != NULL ? fr_dtype_info(b->dtype)->bits : 0, count = rows * n;
    uint8_t *raw = malloc(count * 4 + 1);
    b->v = malloc((count + 1) * sizeof *b->v);
    int fine = bits > 0 && fread(raw, bits / 8, count, f) == count;
    for (size_t i = 0; fine && i < count; i++) {
        uint32_t code = 0;
        memcpy(&code, raw + i * bits / 8, bits / 8); /* little-endian, as is every machine we build for */
        b->v[i] = fr_decode(b->dtype, code);
    }
    free(raw);
    return fine;
}

static void check_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char line[256], version[32], name[32], dtype[32];
    size_t rows, n;
    double param;
    struct block in = {0}, want;
    if (f == NULL || fgets(line, sizeof line, f) == NULL || sscanf(line, "torch %31s", version) != 1) {
        T_FAIL("%s: no file of torch_bits.py", path);
        return;
    }
    modern = atoi(version) >= 2;
    printf("# torch %s\n", version);
    while (fgets(line, sizeof line, f) != NULL) {
        if (sscanf(line, "in %31s %zu %zu", dtype, &rows, &n) == 3) {
            free(in.v);
            T_OK(read_block(f, dtype, rows, n, &in));
            policy = *fr_policy_find(modern ? "torch-cpu" : "torch-cpu-1.13");
            policy.element = in.dtype;
        } else if (sscanf(line, "out %31s %31s %zu %zu %lf", name, dtype, &rows, &n, &param) == 5) {
            struct outcome o = {0};
            T_OK(read_block(f, dtype, rows, n, &want));
            compare(name, &in, &want, param, &o);
            T_EQ_INT(o.outside, 0);
            add_up(name, &in, &want, &o);
            free(want.v);
        } else {
            T_FAIL("%s: what is '%s'?", path, line);
            break;
        }
    }
    print_totals();
    free(in.v);
    fclose(f);
}

static char **paths;
static int path_count;

T_TEST(torch_bits)
{
    for (int i = 0; i < path_count; i++) {
        check_file(paths[i]);
    }
}

int main(int argc, char **argv)
{
    static char *fixtures[] = {FR_SOURCE_DIR "/tests/numerics/torch-1.13.bits",
                               FR_SOURCE_DIR "/tests/numerics/torch-2.14.bits"};
    paths = argc > 1 ? argv + 1 : fixtures;
    path_count = argc > 1 ? argc - 1 : 2;
    return t_run();
}
