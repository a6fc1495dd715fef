/* SPDX-License-Identifier: Apache-2.0 */
/* faultrank numerics: the element types of machine learning, arithmetic that rounds where a
 * framework rounds, and kernels that do not overflow where naive ones do.
 *
 * Plain functions over caller-owned memory: nothing here allocates, prints, keeps state or fails by
 * exiting; every function may be called from any thread. Element types are the FR_F16 ... constants
 * below, passed as uint32_t. Nothing needs alignment beyond what the C type of an argument has.
 *
 * Link with libfaultrank-numerics and libm; no other part of faultrank is needed.
 *
 * Sources: IEEE 754-2019; OCP "8-bit Floating Point" 1.0 (E4M3 = e4m3fn, E5M2); OCP "Microscaling
 * Formats (MX)" 1.0 (E8M0, E2M1, E2M3, E3M2, blocks of 32); the fnuz types as in LLVM's APFloat and
 * PyTorch's c10/util/Float8_e*fnuz.h.
 */
#ifndef FAULTRANK_NUMERICS_H
#define FAULTRANK_NUMERICS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- element types --------------------------------------------------------------------------- */

/* X(constant, value, bits, "name", "safetensors name", "torch name"); values never change. */
#define FR_DTYPES(X) \
    X(BOOL, 1, 8, "bool", "BOOL", "bool") \
    X(U8, 2, 8, "u8", "U8", "uint8") \
    X(I8, 3, 8, "i8", "I8", "int8") \
    X(U16, 4, 16, "u16", "U16", "uint16") \
    X(I16, 5, 16, "i16", "I16", "int16") \
    X(U32, 6, 32, "u32", "U32", "uint32") \
    X(I32, 7, 32, "i32", "I32", "int32") \
    X(U64, 8, 64, "u64", "U64", "uint64") \
    X(I64, 9, 64, "i64", "I64", "int64") \
    X(F64, 10, 64, "fp64", "F64", "float64") \
    X(F32, 11, 32, "fp32", "F32", "float32") \
    X(F16, 12, 16, "fp16", "F16", "float16") \
    X(BF16, 13, 16, "bf16", "BF16", "bfloat16") \
    X(F8_E4M3FN, 14, 8, "fp8-e4m3fn", "F8_E4M3", "float8_e4m3fn") \
    X(F8_E5M2, 15, 8, "fp8-e5m2", "F8_E5M2", "float8_e5m2") \
    X(F8_E4M3FNUZ, 16, 8, "fp8-e4m3fnuz", "F8_E4M3FNUZ", "float8_e4m3fnuz") \
    X(F8_E5M2FNUZ, 17, 8, "fp8-e5m2fnuz", "F8_E5M2FNUZ", "float8_e5m2fnuz") \
    X(F8_E8M0, 18, 8, "e8m0", "F8_E8M0", "float8_e8m0fnu") \
    X(F6_E2M3, 19, 6, "fp6-e2m3", "F6_E2M3", "float6_e2m3fn") \
    X(F6_E3M2, 20, 6, "fp6-e3m2", "F6_E3M2", "float6_e3m2fn") \
    X(F4_E2M1, 21, 4, "fp4-e2m1", "F4", "float4_e2m1fn_x2") \
    X(C64, 22, 64, "c64", "C64", "complex64") \
    X(C128, 23, 128, "c128", "C128", "complex128")

enum {
    FR_DTYPE_UNKNOWN = 0,
#define FR_X(name, value, bits, text, safetensors, torch) FR_##name = value,
    FR_DTYPES(FR_X)
#undef FR_X
    FR_DTYPE_END = 24
};

/* What a type is. Doubles are exact: every finite value of every type up to F64 is one. */
struct fr_dtype_info {
    const char *name, *safetensors, *torch;
    uint16_t bits;
    uint8_t is_float; /* has an exponent; 0 for integers, BOOL and complex types */
    uint8_t is_signed;
    uint8_t exponent_bits, mantissa_bits; /* mantissa without the hidden bit */
    int16_t bias;
    uint8_t has_inf, has_nan;
    double max;                       /* largest finite value; 0 for what is no float */
    double min_normal, min_subnormal; /* smallest positive; equal if no subnormals */
    double eps;                       /* distance from 1 to the next value */
};

/* NULL for FR_DTYPE_UNKNOWN and for values out of range. Static memory. */
const struct fr_dtype_info *fr_dtype_info(uint32_t dtype);
/* By any of the three names, case ignored, "torch." allowed in front; "half", "float" and
 * "double" too. FR_DTYPE_UNKNOWN when no type has it, or when name is NULL. */
uint32_t fr_dtype_find(const char *name);

/* ---- codecs ---------------------------------------------------------------------------------- */

/* What becomes of a value beyond the largest finite one, once rounded as if the exponent had no end
 * (so 464 is still 448 in e4m3fn, a tie to even, and 65519.99 is 65504 in fp16). */
enum {
    FR_OVERFLOW_IEEE = 0,     /* to Inf where the type has one, else to NaN, else to the largest */
    FR_OVERFLOW_SATURATE = 1, /* to the largest finite value, Inf too; NaN stays NaN */
};

/* The value of one code (its low bits; the rest is ignored). Types of at most 32 bits that are
 * floats; 0 for others. Exact. */
double fr_decode(uint32_t dtype, uint32_t code);

/* The code of a value, rounded once, to nearest, ties to even. NaN gives the type's canonical
 * NaN (positive and quiet; 0x7f for both OCP fp8 types as PyTorch writes them; 0 where there is
 * none). -0 stays -0 where the type has one. E8M0 has neither sign nor zero: it takes the
 * magnitude, zero and what is smaller give 2^-127; a tie goes up, its one-bit significand being
 * odd. 0 for types that fr_decode refuses. */
uint32_t fr_encode(uint32_t dtype, double value, uint32_t overflow);

/* fr_decode(fr_encode(value)): what is left of a value after it was stored. Gives the value back
 * for F64 and for any type that is no float. */
double fr_round(uint32_t dtype, double value, uint32_t overflow);

/* Bytes that n codes occupy. Codes lie as a little-endian string of bits: code i has the bits from
 * i * bits on. So FP4 keeps the first of two in the low nibble, and four FP6 take three bytes.
 * 0 for unknown types; SIZE_MAX when the size does not fit. */
size_t fr_packed_size(uint32_t dtype, size_t n);

/* n codes to floats, n floats to codes. Exact, or rounded once: F64 to float is the only
 * decoding that rounds (overflow to Inf). NaN stays NaN; its payload may change. codes holds
 * fr_packed_size(dtype, n) bytes; the unused high bits of the last byte are ignored and written
 * as 0. The two arrays may not overlap. 0, or -1 and nothing written when dtype is no float
 * type. */
int fr_decode_n(uint32_t dtype, const void *codes, size_t n, float *values);
int fr_encode_n(uint32_t dtype, const float *values, size_t n, void *codes, uint32_t overflow);

/* ---- block formats --------------------------------------------------------------------------- */

enum { FR_MX_BLOCK = 32, FR_NVFP4_BLOCK = 16 };

/* OCP MX: blocks of 32 elements, each with one E8M0 scale; value = element * 2^(scale - 127),
 * rounded once to float. element: F4_E2M1 (MXFP4), F6_E2M3, F6_E3M2, F8_E4M3FN or F8_E5M2. codes
 * holds fr_packed_size(element, n) bytes, scales (n + 31) / 32; a last block may be short. A
 * scale of 0xff makes its whole block NaN. 0, or -1 and nothing written for another element
 * type. */
int fr_mx_decode(uint32_t element, const void *codes, const uint8_t *scales, size_t n,
                 float *values);

/* The inverse, as OCP MX 1.0 section 6.3 computes it: scale 2^(floor(log2(amax)) - emax), kept
 * within E8M0; elements rounded to nearest even and saturated (so values between 6 and 8 times
 * the scale become 6 times in MXFP4). A block of zeros gets scale 0; a block with a NaN or an
 * Inf gets scale 0xff and zeros. */
int fr_mx_encode(uint32_t element, const float *values, size_t n, void *codes, uint8_t *scales);

/* NVFP4: blocks of 16 E2M1 elements, each with one E4M3 scale, and one float for the whole
 * tensor; value = element * scale * tensor_scale, rounded once to float. codes holds (n + 1) / 2
 * bytes, scales (n + 15) / 16. Source: NVIDIA cuDNN and TensorRT documentation of NVFP4. */
void fr_nvfp4_decode(const void *codes, const uint8_t *scales, float tensor_scale, size_t n,
                     float *values);

/* The tensor scale that lets a largest magnitude of amax use the whole range: amax / (6 * 448);
 * 1 for an amax that is 0 or no finite number. */
float fr_nvfp4_tensor_scale(float amax);

/* The inverse: block scale = round_e4m3(amax / 6 / tensor_scale), saturated; elements divided by
 * both scales, rounded to nearest even and saturated. A block whose scale rounds to 0 becomes
 * zeros; a block with a NaN or an Inf gets the NaN scale 0x7f and zeros. tensor_scale must be
 * finite and positive. */
void fr_nvfp4_encode(const float *values, size_t n, float tensor_scale, void *codes,
                     uint8_t *scales);

/* ---- kernels --------------------------------------------------------------------------------- */

/* Norms, softmax and attention scores for C programs: fp16, bf16 or fp32 in memory, fp32 and more
 * inside, one rounding at the end.
 *
 * Operands. Matrices of rows of n elements, each operand with a type of its own (FR_F16, FR_BF16,
 * FR_F32) and a stride: elements from one row to the next. Inputs may have any stride; 0 gives
 * every row the same memory, which is what a weight wants, and a mask for all queries. Outputs need
 * a stride of n or more. p NULL: not there, where that is allowed. No address need be aligned, not
 * even to an element; float pointers (dw, db, work) need what float needs.
 *
 * Aliasing. An output may be the memory of an input (x, dy or mask) of the same type and stride:
 * in place. No other overlap of an output with anything is allowed, nor of dw and db with anything.
 *
 * Threads, state. Any thread, at once, as long as outputs are apart. Nothing is allocated. The
 * variant for the CPU (plain C, AVX2 with F16C, AVX-512) is chosen at the first call; all give the
 * same bits, except that which NaN a NaN is may differ. Rounding to nearest and gradual underflow
 * (no FTZ, no DAZ) are taken for granted.
 *
 * What is promised. u = 2^-24; "of storage" is a half unit of the output's type, there to be added
 * to every bound. Sums take at most eleven roundings in fp32, then go on in double; rows beyond
 * fp32's comfort are done in double. So no intermediate overflows or vanishes: finite inputs give
 * the bounds below, and an infinite output only where the exact result rounds to one. */
struct fr_in {
    const void *p;
    uint32_t dtype;
    size_t stride;
};
struct fr_out {
    void *p;
    uint32_t dtype;
    size_t stride;
};

/* Nothing was written when an error (negative) is returned. Overlaps are not looked for. */
enum {
    FR_NUM_MASKED = 1, /* done; at least one row had every element masked, and is zeros */
    FR_NUM_OK = 0,     /* done; also for no rows or no elements */
    FR_NUM_NULL = -1,  /* an operand that must be there is not */
    FR_NUM_DTYPE = -2, /* a type the operand cannot have */
    FR_NUM_SHAPE = -3, /* a stride shorter than the row it is written to, or more than memory */
    FR_NUM_VALUE = -4, /* eps negative, or eps or scale not finite */
};

/* "portable", "avx2" or "avx512". */
const char *fr_kernel_variant(void);

/* y = x / sqrt(mean(x^2) + eps) * w, each row; w may be not there. eps counts as the float it is,
 * never as a half. Off by at most 9 u |y| + 2^-148 (1 + |w|) and half a unit of storage. A row of
 * zeros gives zeros, also with eps 0. Inf in x: NaN there, zeros elsewhere. NaN in x: a row of
 * NaN. */
int fr_kernel_rms_norm(size_t rows, size_t n, struct fr_in x, struct fr_in w, float eps,
                       struct fr_out y);

/* x, w, eps as they were forward, dy the gradient of y. dx (may be not there) is written; the
 * gradient of w is added, row after row, to the n floats of dw (may be NULL; the sum of w's rows if
 * w has more than one). Nothing of the forward need be kept. With g = dy w, x_hat = x / root:
 * dx = (g - x_hat mean(g x_hat)) / root, off by at most
 * 24 u (|g| + |x_hat| mean|g x_hat|) / root + 2^-148 (1 + 1 / root), and a row's dy x_hat by 9 u of
 * it before it is added. Holds while |dy w| < 2^100. Inf or NaN in a row of x, w or dy: its dx is
 * NaN. */
int fr_kernel_rms_norm_backward(size_t rows, size_t n, struct fr_in x, struct fr_in w,
                                struct fr_in dy, float eps, struct fr_out dx, float *dw);

/* y = x_hat w + b, x_hat = (x - mean) / sqrt(variance + eps), the variance divided by n; w and b
 * may be not there. The mean is as exact as two floats: large rows of small differences keep them.
 * Off by at most 40 u (|w| (|x_hat| + 1) + |b|) + 2^-148 (1 + |w|) and half a unit of storage,
 * while x_hat w itself is within fp32. A row of equal values gives b, also with eps 0. Inf or NaN
 * in x: a row of NaN. */
int fr_kernel_layer_norm(size_t rows, size_t n, struct fr_in x, struct fr_in w, struct fr_in b,
                         float eps, struct fr_out y);

/* As for RMS norm: dx = (g - mean(g) - x_hat mean(g x_hat)) / root, off by at most
 * 60 u (|g| + (1 + |x_hat|) (mean|g| + mean|g x_hat|)) / root + 2^-148 (1 + 1 / root), and a row's
 * dy x_hat by 40 u |dy| (1 + |x_hat|) before it is added; db (may be NULL) gets dy added. */
int fr_kernel_layer_norm_backward(size_t rows, size_t n, struct fr_in x, struct fr_in w,
                                  struct fr_in dy, float eps, struct fr_out dx, float *dw,
                                  float *db);

/* y = softmax(x + mask) of each row. mask may be not there; a float mask is added in fp32 (so the
 * lowest half does not become -Inf, and a row under nothing but it is still a softmax); of FR_BOOL
 * or FR_U8 elements 0 masks, whatever x is there, even NaN. A row that is -Inf throughout, so
 * masked, gives zeros, and the return is FR_NUM_MASKED. Off by at most (20 + 2 |s - max s|) u y +
 * 2^-148 and half a unit of storage, s = x + mask rounded to fp32. +Inf or NaN in s: a row of NaN.
 * -Inf: 0. */
int fr_kernel_softmax(size_t rows, size_t n, struct fr_in x, struct fr_in mask, struct fr_out y);

/* out[i][j] = scale (q[i] . k[j]) + mask[i][j], and with softmax not 0 the softmax of each row of
 * it (then work is keys floats of scratch, else NULL). mask as for softmax; without softmax a byte
 * mask writes -Inf. q has queries rows of d, k keys rows of d, out and mask queries rows of keys.
 * Sums are never rounded to half: a score is off by at most 14 u |scale| sum|q k| + 2^-148 + d
 * 2^-150 |scale|, an addition of the mask (u of it) and half a unit of storage. Inf and NaN
 * propagate as products and sums do. Out may not be the memory of q or k. */
int fr_kernel_attention_scores(size_t queries, size_t keys, size_t d, struct fr_in q,
                               struct fr_in k, float scale, struct fr_in mask, int softmax,
                               float *work, struct fr_out out);

/* ---- emulated arithmetic: policies ----------------------------------------------------------- */

/* In which order a sum adds. */
enum {
    FR_ORDER_SEQUENTIAL = 0,   /* one running sum, first to last */
    FR_ORDER_PAIRWISE = 1,     /* halves, each by itself: the shape of a parallel reduction */
    FR_ORDER_TORCH_AVX2 = 2,   /* PyTorch's CPU sum over a contiguous row, 256-bit vectors */
    FR_ORDER_TORCH_AVX512 = 3, /* with 512-bit vectors; from the source, not compared */
    FR_ORDER_TORCH1_AVX2 = 4,  /* PyTorch 1.13, which adds neighbours of fp16 before the rest */
    FR_ORDER_TORCH1_AVX512 = 5,
};

/* Where 1/N of a mean is applied. */
enum {
    FR_MEAN_THEN_ROUND = 0, /* in the accumulator; the mean is rounded once */
    FR_ROUND_THEN_MEAN = 1, /* the sum is rounded to the result's type first */
};

/* How a value is divided by a scalar known to the host (a mean's N, the N of sum / N). */
enum {
    FR_DIVIDE_TRUE = 0,       /* by it */
    FR_DIVIDE_RECIPROCAL = 1, /* by multiplying with 1/N, itself rounded (CUDA) */
};

/* How 1/sqrt(x) is computed. */
enum {
    FR_RSQRT_TWO_STEPS = 0, /* square root, rounded, then the quotient, rounded (PyTorch CPU) */
    FR_RSQRT_ONE_STEP = 1,  /* rounded once (CUDA's rsqrtf is within 1 ulp of it) */
    FR_RSQRT_NARROW = 2,    /* the square root is rounded to the result's type first: what PyTorch's
                               CPU does with the last values of a 16-bit tensor that fill no 32 */
};

/* How x.pow(3), which rsqrt's gradient takes, rounds in 16 bits. */
enum {
    FR_CUBE_ONCE = 0,
    FR_CUBE_TWICE = 1, /* after each multiplication */
    FR_CUBE_TORCH_CPU = 2, /* fp16 once, bf16 twice */
};

/* Where each step of an expression rounds. A type of 0 in a field marked (0) means the element
 * type, so that one row serves fp16 and bf16: copy a preset and set element. Every operation
 * first computes in fp32 (fp64 when an operand is), rounds there, then rounds to the field's
 * type. */
struct fr_policy {
    const char *name, *about; /* static text; about is one sentence */
    uint32_t element;         /* what tensors are stored in: FR_F16, FR_BF16, FR_F32, FR_F64, fp8 */
    uint32_t raised;          /* autocast: pow, rsqrt, exp, sum, norm, softmax and layer norm run in
                                 and return this type; x * x, + and mean do not; 0: no autocast */
    uint32_t intermediate;    /* results between the operations: 0 what the framework's promotion
                                 gives; else that type, as a fused kernel's registers */
    uint32_t square;          /* x * x and x.pow(2) where a sum takes them; 0: an operation like the
                                 others, or the element type where intermediate is set */
    uint32_t product;         /* (0) products inside a dot product or matrix product */
    uint32_t accumulator;     /* (0) the running sum, rounded after every addition */
    uint32_t mean;            /* FR_MEAN_THEN_ROUND or FR_ROUND_THEN_MEAN */
    uint32_t divide;          /* FR_DIVIDE_TRUE or FR_DIVIDE_RECIPROCAL */
    uint32_t rsqrt;           /* FR_RSQRT_... */
    uint32_t scalar;          /* (0) type of a host scalar that multiplies or divides (N) */
    uint32_t scalar_add;      /* (0) type of a host scalar that is added (eps) */
    uint32_t cube;            /* FR_CUBE_... */
    uint32_t order;           /* FR_ORDER_... */
    uint32_t fused_add;       /* 1: product and addition round once (FMA) */
    uint32_t overflow;        /* FR_OVERFLOW_... of roundings to the element type */
};

/* The presets, one row each; NULL past the last. Names never change meaning.
 * The CPU rows are compared with PyTorch's own bits (1.13 and 2.14, AVX2); the CUDA rows follow its
 * sources and no GPU has confirmed them: their order of sums is a guess, which hardly ever shows in
 * what is rounded to 16 bits.
 *
 *   torch-cuda         PyTorch eager on CUDA
 *   torch-cpu          PyTorch eager on CPU, 2.x
 *   torch-cpu-1.13     the same, 1.13: a mean's sum is rounded first
 *   torch-autocast     PyTorch under torch.autocast(fp16), weights fp32 held as given
 *   fused-float        one kernel, fp32 inside, one rounding at the end (F.rms_norm, apex, Triton)
 *   naive-half         a kernel whose every variable is half
 *   naive-half-product float accumulator, but __hmul before it
 *   naive-half-excess  C _Float16 without AVX512-FP16: products stay float, the sum is half
 *   float              everything in fp32
 *   double             everything in fp64: the oracle */
const struct fr_policy *fr_policy_at(size_t index);
const struct fr_policy *fr_policy_find(const char *name); /* NULL for unknown names and NULL */

/* ---- emulated arithmetic: arrays and what was seen of them ----------------------------------- */

/* A row of values, each exactly one of its type. Memory is the caller's. */
struct fr_array {
    double *v;
    size_t n;
    uint32_t dtype;
};

enum { FR_SEEN_FINE = 0, FR_SEEN_INF = 1, FR_SEEN_NAN = 2, FR_SEEN_ZERO_ROW = 3 };

/* One operation's output. */
struct fr_op_step {
    const char *op; /* static text such as "x.pow(2)" */
    uint32_t dtype;
    uint32_t seen; /* FR_SEEN_...; NaN when both; a zero row has two or more values, all zero */
    uint64_t n, inf, nan, zero, subnormal; /* subnormal: nonzero and below the type's min_normal */
    double absmax;      /* of the finite values; 0 when there are none */
    double min_nonzero; /* smallest finite magnitude that is not 0; 0 when there is none */
    uint64_t first_bad; /* index of the first NaN or Inf, 0 of a zero row; UINT64_MAX when fine */
};

/* Steps in the order they ran. The caller owns steps and sets cap; n may exceed cap: what did
 * not fit is counted, but the first bad step is never lost. */
struct fr_op_trace {
    struct fr_op_step *steps;
    uint64_t cap, n;
    struct fr_op_step first; /* the first step that is not fine; first.op NULL while there is none */
};

struct fr_op_step fr_observe(const char *op, const double *values, size_t n, uint32_t dtype);
/* Appends. trace NULL: does nothing. */
void fr_op_trace_add(struct fr_op_trace *trace, const char *op, const struct fr_array *output);
/* The first operation whose output is Inf, NaN or a zero row; NULL while all are fine. An input
 * can be a step too ("x"), and is then the first when it is bad itself. */
const struct fr_op_step *fr_op_trace_first_bad(const struct fr_op_trace *trace);

/* ---- emulated arithmetic: single operations -------------------------------------------------- */

/* X(constant, value, operands, raised by autocast, "name"). The square is x.pow(2), the cube
 * x.pow(3) as rsqrt's gradient takes it; silu and gelu are built from exp and erf in fp32. */
#define FR_OPS(X) \
    X(ADD, 1, 2, 0, "add") \
    X(SUB, 2, 2, 0, "sub") \
    X(MUL, 3, 2, 0, "mul") \
    X(DIV, 4, 2, 0, "div") \
    X(MAXIMUM, 5, 2, 0, "maximum") /* NaN wins, as in torch; not fmax */ \
    X(POW2, 6, 1, 1, "pow2") \
    X(POW3, 7, 1, 1, "pow3") \
    X(SQRT, 8, 1, 0, "sqrt") \
    X(RSQRT, 9, 1, 1, "rsqrt") \
    X(EXP, 10, 1, 1, "exp") \
    X(LOG, 11, 1, 1, "log") \
    X(NEG, 12, 1, 0, "neg") \
    X(RECIPROCAL, 13, 1, 1, "reciprocal") \
    X(SILU, 14, 1, 0, "silu") \
    X(GELU, 15, 1, 0, "gelu")

enum {
#define FR_X(name, value, operands, raised, text) FR_OP_##name = value,
    FR_OPS(FR_X)
#undef FR_X
};

/* out = op(a) or op(a, b), element by element; b NULL for one operand. An operand of one value
 * meets every value of the other. out->v may be a->v or b->v of the same length; out->n must
 * hold the longer length; out->dtype is set. Division and square root are correctly rounded in
 * fp32 and fp64, as is every sum and product: a double has more than twice an fp32's bits and
 * two, so that rounding to double first changes nothing. exp and log are libm's in double, rounded;
 * PyTorch's CPU results lie within 3 * 2^-24 of them relative to the value, silu within 6 * 2^-24,
 * gelu within 8 * 2^-24 of x, all before the rounding to 16 bits.
 * 0, or -1 for unknown ops, wrong operands, lengths or element types. */
int fr_op(const struct fr_policy *p, uint32_t op, const struct fr_array *a,
          const struct fr_array *b, struct fr_array *out);

/* The same with a host scalar on the right, rounded as the policy says: it does not raise a's
 * type. */
int fr_op_scalar(const struct fr_policy *p, uint32_t op, const struct fr_array *a, double b,
                 struct fr_array *out);

/* x.to(dtype): one rounding, the policy's overflow rule. out as in fr_op. */
int fr_cast(const struct fr_policy *p, const struct fr_array *a, uint32_t dtype,
            struct fr_array *out);

/* X(constant, value, raised by autocast, "name"): a row to one value. */
#define FR_REDUCTIONS(X) \
    X(SUM, 1, 1, "sum") \
    X(MEAN, 2, 0, "mean") \
    X(NORM2, 3, 1, "norm") /* sqrt of the sum of squares, rounded once */ \
    X(AMAX, 4, 0, "amax")  /* NaN wins */

enum {
#define FR_X(name, value, raised, text) FR_REDUCE_##name = value,
    FR_REDUCTIONS(FR_X)
#undef FR_X
};

/* out->v[0] = the reduction of a (out->n is not read; out->v may not lie in a->v). The sum of
 * nothing is 0, its mean NaN, its amax -Inf. 0 or -1 as fr_op. */
int fr_reduce(const struct fr_policy *p, uint32_t reduction, const struct fr_array *a,
              struct fr_array *out);

/* out->v[0] = sum of a[i] * b[i]: one element of a matrix product. Under autocast operands are
 * cast to the element type first. The accumulator rounds to the promoted type once
 * (intermediate's, if set). */
int fr_dot(const struct fr_policy *p, const struct fr_array *a, const struct fr_array *b,
           struct fr_array *out);

/* ---- emulated arithmetic: expressions -------------------------------------------------------- */

/* How models write the mean of squares. X(constant, value, "name", "expression"). */
#define FR_FORMS(X) \
    X(POW_MEAN, 1, "pow-mean", "x.pow(2).mean(-1)") \
    X(MUL_MEAN, 2, "mul-mean", "(x * x).mean(-1)") \
    X(MUL_SUM_DIV, 3, "mul-sum-div", "(x * x).sum(-1) / N") \
    X(NORM, 4, "norm", "x.norm(2, -1) * N**-0.5") \
    X(FLOAT_FIRST, 5, "float-first", "x.float().pow(2).mean(-1)")

enum {
#define FR_X(name, value, text, expression) FR_FORM_##name = value,
    FR_FORMS(FR_X)
#undef FR_X
};

const char *fr_form_name(uint32_t form);       /* NULL for unknown forms */
const char *fr_form_expression(uint32_t form); /* the same */
uint32_t fr_form_find(const char *name);       /* 0 for unknown names and NULL */

/* The functions below run their expression operation by operation and add each output to trace
 * (may be NULL). Rows have n values; work is scratch of FR_WORK_ROWS * n doubles (n of the
 * longest row). x, w, b and dy may have any float type; nothing but outputs, work and trace is
 * written. 0 or -1. */
enum { FR_WORK_ROWS = 8 };

/* Mean of squares by a form, to ret[0]: for NORM that is the root, x.norm(2) * N**-0.5. */
int fr_mean_square(const struct fr_policy *p, uint32_t form, const struct fr_array *x, double *work,
                   struct fr_array *ret, struct fr_op_trace *trace);

/* y = x * rsqrt(mean_square + eps) * w, eps placed as the form's users do (NORM: x / (root + eps)).
 * FLOAT_FIRST computes x_hat in fp32, casts it to x's type, then multiplies w. w NULL: no weight.
 * r, if not NULL, gets the reciprocal root (one value), which the backward needs. */
int fr_rms_norm(const struct fr_policy *p, uint32_t form, const struct fr_array *x,
                const struct fr_array *w, double eps, double *work, struct fr_array *y,
                struct fr_array *r, struct fr_op_trace *trace);

/* What autograd computes for one row: dx, and this row's share of dw (either may be NULL). Formulas
 * are PyTorch's: rsqrt by its result, -0.5 * dr * r^3; pow by 2 * x * dv; mean by dv / N. */
int fr_rms_norm_backward(const struct fr_policy *p, uint32_t form, const struct fr_array *x,
                         const struct fr_array *w, double eps, const struct fr_array *dy,
                         double *work, struct fr_array *dx, struct fr_array *dw,
                         struct fr_op_trace *trace);

/* Layer norm as one kernel with fp32 inside when x is 16 bits (what every framework ships), or
 * step by step in the policy's types when composed is 1. w and b may be NULL. */
int fr_layer_norm(const struct fr_policy *p, uint32_t composed, const struct fr_array *x,
                  const struct fr_array *w, const struct fr_array *b, double eps, double *work,
                  struct fr_array *y, struct fr_op_trace *trace);
int fr_layer_norm_backward(const struct fr_policy *p, uint32_t composed, const struct fr_array *x,
                           const struct fr_array *w, double eps, const struct fr_array *dy,
                           double *work, struct fr_array *dx, struct fr_array *dw,
                           struct fr_array *db, struct fr_op_trace *trace);

/* How a softmax is written. */
enum {
    FR_SOFTMAX_LIBRARY = 0, /* torch.softmax: maximum subtracted, fp32 inside, rounded at the end */
    FR_SOFTMAX_SAFE = 1,    /* the same, composed of operations */
    FR_SOFTMAX_NAIVE = 2,   /* exp(x) / exp(x).sum() */
};
int fr_softmax(const struct fr_policy *p, uint32_t kind, const struct fr_array *x, double *work,
               struct fr_array *y, struct fr_op_trace *trace);

/* Where attention applies its scale. */
enum {
    FR_SCALE_AFTER = 0,  /* (q @ k.T) * scale: the product overflows first */
    FR_SCALE_BEFORE = 1, /* (q * scale) @ k.T */
    FR_SCALE_FUSED = 2,  /* scores stay in fp32, as in fused kernels */
};
/* Scores of one query of d values against k->n / d keys (rows of k): out->v[i]. mask is added
 * when it is not NULL, one value a key. */
int fr_attention_scores(const struct fr_policy *p, uint32_t placing, const struct fr_array *q,
                        const struct fr_array *k, double scale, const struct fr_array *mask,
                        double *work, struct fr_array *out, struct fr_op_trace *trace);

/* out->v[j] = x . w[j], w of out->n rows of x->n values (torch's Linear), plus bias if not NULL. */
int fr_linear(const struct fr_policy *p, const struct fr_array *x, const struct fr_array *w,
              const struct fr_array *bias, struct fr_array *out, struct fr_op_trace *trace);

/* ---- tally: what an array holds, in one pass ---------------------------------------------------------------------------------- */

/* Casts whose overflow is counted. */
enum { FR_BEYOND_F16, FR_BEYOND_BF16, FR_BEYOND_E4M3FN, FR_BEYOND_E5M2, FR_BEYOND_COUNT };

/* Begins zeroed. Counts are exact, as is abs_max. sum_squares is within 2^-14 of the exact sum (relative), and
 * adding the same bytes in other pieces may move it by as much; pieces of whole FR_TALLY_PIECE bytes give the same bits. For integers
 * only elements, zero and abs_max are kept. Complex numbers count as two elements. */
struct fr_tally {
    uint64_t elements;
    uint64_t nan, inf, zero, subnormal;
    uint64_t beyond[FR_BEYOND_COUNT]; /* finite elements that a cast to nearest, ties to even, not saturating, turns to Inf or NaN */
    double abs_max, sum_squares;      /* of the finite elements */
};
#define FR_TALLY_PIECE 16384

/* Adds what `bytes` bytes at p hold (whole elements; any alignment). 0, or -1 for the types it cannot read: fp6 and unknown ones. At the
 * speed of reading memory as long as no block of 16 KiB holds NaN, Inf or a value beyond a smaller type; such a block is read again. */
int fr_tally_add(uint32_t dtype, const void *p, size_t bytes, struct fr_tally *t);
void fr_tally_merge(struct fr_tally *to, const struct fr_tally *t);
uint32_t fr_tally_width(uint32_t dtype); /* bytes of what is counted as one step; 0 = a type that cannot be read */

#ifdef __cplusplus
}
#endif
#endif
