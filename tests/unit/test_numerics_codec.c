/* SPDX-License-Identifier: Apache-2.0 */
/* Every code of every type of at most 16 bits, and every boundary between two neighbours, against an
 * oracle that knows a type as a formula and rounds by comparing distances. */
#include "faultrank/numerics.h"
#include "support/t.h"

#include <math.h>
#include <string.h>

/* The formula of a type, typed in here from its specification, not read from the library. */
struct spec {
    uint32_t dtype;
    int exponent_bits, mantissa_bits, bias;
    uint32_t finite;      /* codes 0 .. finite-1 are the non-negative finite values, in order */
    uint32_t over, nan;   /* what overflow and NaN become, IEEE */
    int has_minus_zero;
};

static const struct spec specs[] = {
    {FR_F16, 5, 10, 15, 0x7c00, 0x7c00, 0x7e00, 1},
    {FR_BF16, 8, 7, 127, 0x7f80, 0x7f80, 0x7fc0, 1},
    {FR_F8_E4M3FN, 4, 3, 7, 0x7f, 0x7f, 0x7f, 1},
    {FR_F8_E5M2, 5, 2, 15, 0x7c, 0x7c, 0x7f, 1},
    {FR_F8_E4M3FNUZ, 4, 3, 8, 0x80, 0x80, 0x80, 0},
    {FR_F8_E5M2FNUZ, 5, 2, 16, 0x80, 0x80, 0x80, 0},
    {FR_F6_E2M3, 2, 3, 1, 0x20, 0x1f, 0, 1},
    {FR_F6_E3M2, 3, 2, 3, 0x20, 0x1f, 0, 1},
    {FR_F4_E2M1, 2, 1, 1, 0x8, 0x7, 0, 1},
};
enum { SPECS = sizeof specs / sizeof specs[0] };

static double formula(const struct spec *s, uint32_t code)
{
    int e = (int)(code >> s->mantissa_bits);
    int m = (int)(code & ((1u << s->mantissa_bits) - 1));
    if (e == 0) {
        return ldexp(m, 1 - s->bias - s->mantissa_bits);
    }
    return ldexp(m + (1 << s->mantissa_bits), e - s->bias - s->mantissa_bits);
}

static uint32_t sign_of(const struct spec *s)
{
    return 1u << (s->exponent_bits + s->mantissa_bits);
}

/* Expects a code for value and, with the sign set, for -value. */
static void expect(const struct spec *s, double value, uint32_t mode, uint32_t code)
{
    uint32_t negative = code;
    if (code != s->nan || s->nan == 0 || s->has_minus_zero) { /* fnuz NaN has no sign */
        negative = code == 0 && !s->has_minus_zero ? 0 : code | sign_of(s);
    }
    T_EQ_INT(fr_encode(s->dtype, value, mode), code);
    T_EQ_INT(fr_encode(s->dtype, -value, mode), negative);
}

T_TEST(every_code_is_its_formula)
{
    for (const struct spec *s = specs; s < specs + SPECS; s++) {
        for (uint32_t code = 0; code < s->finite; code++) {
            double value = formula(s, code);
            T_OK(fr_decode(s->dtype, code) == value);
            expect(s, value, FR_OVERFLOW_IEEE, code);
            expect(s, value, FR_OVERFLOW_SATURATE, code);
            if (code > 0 || s->has_minus_zero) {
                double minus = fr_decode(s->dtype, code | sign_of(s));
                T_OK(minus == -value && signbit(minus));
            }
        }
    }
}

T_TEST(codes_past_the_finite_are_inf_or_nan)
{
    for (const struct spec *s = specs; s < specs + SPECS; s++) {
        for (uint32_t code = s->finite; code < sign_of(s); code++) {
            double plus = fr_decode(s->dtype, code), minus = fr_decode(s->dtype, code | sign_of(s));
            int inf = code == s->finite && code == s->over && code != s->nan;
            T_OK(inf ? isinf(plus) && plus > 0 && isinf(minus) && minus < 0 : isnan(plus) && isnan(minus));
        }
        if (!s->has_minus_zero) {
            T_OK(isnan(fr_decode(s->dtype, 0x80)));
        }
    }
}

/* Between two neighbours: the middle goes to the even code, a hair more or less to the nearer one. */
T_TEST(every_middle_goes_to_even)
{
    for (const struct spec *s = specs; s < specs + SPECS; s++) {
        for (uint32_t code = 0; code + 1 < s->finite; code++) {
            double middle = (formula(s, code) + formula(s, code + 1)) / 2;
            expect(s, middle, FR_OVERFLOW_IEEE, code + (code & 1));
            expect(s, nextafter(middle, INFINITY), FR_OVERFLOW_IEEE, code + 1);
            expect(s, nextafter(middle, 0), FR_OVERFLOW_IEEE, code);
        }
    }
}

T_TEST(overflow)
{
    for (const struct spec *s = specs; s < specs + SPECS; s++) {
        uint32_t last = s->finite - 1;
        double max = formula(s, last), step = max - formula(s, last - 1), edge = max + step / 2;
        T_OK(fr_dtype_info(s->dtype)->max == max);
        expect(s, nextafter(edge, 0), FR_OVERFLOW_IEEE, last);
        expect(s, edge, FR_OVERFLOW_IEEE, last & 1 ? s->over : last);
        expect(s, nextafter(edge, INFINITY), FR_OVERFLOW_IEEE, s->over);
        expect(s, INFINITY, FR_OVERFLOW_IEEE, s->over);
        expect(s, 1e300, FR_OVERFLOW_IEEE, s->over);
        expect(s, edge, FR_OVERFLOW_SATURATE, last);
        expect(s, INFINITY, FR_OVERFLOW_SATURATE, last);
        T_EQ_INT(fr_encode(s->dtype, NAN, FR_OVERFLOW_IEEE), s->nan);
        T_EQ_INT(fr_encode(s->dtype, -NAN, FR_OVERFLOW_SATURATE), s->nan);
        expect(s, 5e-324, FR_OVERFLOW_IEEE, 0);
    }
    /* the thresholds that people quote */
    T_OK(isinf(fr_round(FR_F16, 65520, FR_OVERFLOW_IEEE)));
    T_OK(fr_round(FR_F16, 65519.99, FR_OVERFLOW_IEEE) == 65504);
    T_OK(isinf(fr_round(FR_BF16, 0x1.ffp127, FR_OVERFLOW_IEEE)));
    T_OK(fr_round(FR_F8_E4M3FN, 464, FR_OVERFLOW_IEEE) == 448);
    T_OK(isnan(fr_round(FR_F8_E4M3FN, 464.1, FR_OVERFLOW_IEEE)));
    T_OK(isinf(fr_round(FR_F8_E5M2, 61440, FR_OVERFLOW_IEEE)));
    T_OK(fr_round(FR_F8_E5M2, 61439, FR_OVERFLOW_IEEE) == 57344);
    T_OK(isnan(fr_round(FR_F8_E4M3FNUZ, 248, FR_OVERFLOW_IEEE)));
    T_OK(fr_round(FR_F4_E2M1, 1e9, FR_OVERFLOW_IEEE) == 6);
}

/* The last unit in the first place where C and we might disagree: floats, against the cast. */
T_TEST(fp32_is_the_cast)
{
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < 400000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ (state >> 31);
        if (i & 1) { /* half of them where floats live, and near a tie */
            bits = (bits & 0x800fffffe0000000u) | ((uint64_t)(1023 - 160 + bits % 300) << 52) |
                   (0x10000000u + (i >> 1) % 3 - 1);
        }
        double value;
        memcpy(&value, &bits, sizeof value);
        float cast = (float)value, back;
        uint32_t code = fr_encode(FR_F32, value, FR_OVERFLOW_IEEE), want;
        memcpy(&want, &cast, sizeof want);
        memcpy(&back, &code, sizeof back);
        T_OK(isnan(value) ? isnan(back) : code == want);
        T_OK(isnan(value) || fr_decode(FR_F32, code) == (double)cast);
    }
}

T_TEST(e8m0)
{
    for (uint32_t code = 0; code < 0xff; code++) {
        double value = ldexp(1, (int)code - 127);
        T_OK(fr_decode(FR_F8_E8M0, code) == value);
        T_EQ_INT(fr_encode(FR_F8_E8M0, value, FR_OVERFLOW_IEEE), code);
        T_EQ_INT(fr_encode(FR_F8_E8M0, -value, FR_OVERFLOW_IEEE), code);
        T_EQ_INT(fr_encode(FR_F8_E8M0, nextafter(1.5 * value, 0), FR_OVERFLOW_IEEE), code);
        T_EQ_INT(fr_encode(FR_F8_E8M0, 1.5 * value, FR_OVERFLOW_IEEE), code + 1);
        T_EQ_INT(fr_encode(FR_F8_E8M0, 1.5 * value, FR_OVERFLOW_SATURATE), code < 0xfe ? code + 1 : code);
    }
    T_OK(isnan(fr_decode(FR_F8_E8M0, 0xff)));
    T_EQ_INT(fr_encode(FR_F8_E8M0, 0, FR_OVERFLOW_IEEE), 0);
    T_EQ_INT(fr_encode(FR_F8_E8M0, NAN, FR_OVERFLOW_SATURATE), 0xff);
    T_EQ_INT(fr_encode(FR_F8_E8M0, INFINITY, FR_OVERFLOW_SATURATE), 0xfe);
}

T_TEST(what_a_type_is)
{
    for (const struct spec *s = specs; s < specs + SPECS; s++) {
        const struct fr_dtype_info *i = fr_dtype_info(s->dtype);
        uint32_t normal = 1u << s->mantissa_bits;
        T_OK(i->min_subnormal == formula(s, 1) && i->min_normal == formula(s, normal));
        uint32_t one = (uint32_t)s->bias << s->mantissa_bits;
        T_OK(formula(s, one) == 1 && i->eps == formula(s, one + 1) - 1);
        T_EQ_INT(i->bits, s->exponent_bits + s->mantissa_bits + 1);
        T_EQ_INT(i->has_nan, s->nan != 0);
        T_EQ_INT(i->has_inf, s->over != s->nan && s->nan != 0);
    }
    T_OK(fr_dtype_info(FR_DTYPE_UNKNOWN) == NULL && fr_dtype_info(FR_DTYPE_END) == NULL);
    for (uint32_t d = 1; d < FR_DTYPE_END; d++) {
        const struct fr_dtype_info *i = fr_dtype_info(d);
        T_OK(i != NULL && i->bits > 0);
        T_EQ_INT(fr_dtype_find(i->name), d);
        T_EQ_INT(fr_dtype_find(i->safetensors), d);
        T_EQ_INT(fr_dtype_find(i->torch), d);
    }
    T_EQ_INT(fr_dtype_find("torch.float16"), FR_F16);
    T_EQ_INT(fr_dtype_find("Half"), FR_F16);
    T_EQ_INT(fr_dtype_find("float"), FR_F32);
    T_EQ_INT(fr_dtype_find("double"), FR_F64);
    T_EQ_INT(fr_dtype_find("float8"), FR_DTYPE_UNKNOWN);
    T_EQ_INT(fr_dtype_find(NULL), FR_DTYPE_UNKNOWN);
}

/* Arrays: any length, any start, no byte touched beyond the last code. */
T_TEST(packed_arrays)
{
    for (uint32_t d = FR_F64; d <= FR_F4_E2M1; d++) {
        unsigned bits = fr_dtype_info(d)->bits;
        for (size_t n = 0; n <= 19; n++) {
            float in[19], out[19];
            uint8_t codes[19 * 8 + 2];
            memset(codes, 0xa5, sizeof codes);
            for (size_t i = 0; i < n; i++) {
                in[i] = (float)ldexp(i & 1 ? -1.5 : 1, (int)(i % 5) - 2);
            }
            T_EQ_INT(fr_packed_size(d, n), (n * bits + 7) / 8);
            T_EQ_INT(fr_encode_n(d, in, n, codes + 1, FR_OVERFLOW_SATURATE), 0);
            T_OK(codes[0] == 0xa5 && codes[1 + fr_packed_size(d, n)] == 0xa5);
            T_EQ_INT(fr_decode_n(d, codes + 1, n, out), 0);
            for (size_t i = 0; i < n; i++) {
                T_OK((double)out[i] == fr_round(d, (double)in[i], FR_OVERFLOW_SATURATE));
            }
        }
    }
    const uint8_t two[] = {0x72}, three[] = {0x41, 0x20, 0x0c};
    float out[4];
    fr_decode_n(FR_F4_E2M1, two, 2, out);
    T_OK(out[0] == 1 && out[1] == 6); /* low nibble first */
    fr_decode_n(FR_F6_E2M3, three, 4, out); /* codes 1, 1, 2, 3 from bit 0 up */
    T_OK(out[0] == 0.125f && out[1] == 0.125f && out[2] == 0.25f && out[3] == 0.375f);
    T_EQ_INT(fr_decode_n(FR_I32, two, 1, out), -1);
    T_EQ_INT(fr_encode_n(FR_C64, out, 1, (uint8_t[8]){0}, 0), -1);
    T_OK(fr_packed_size(FR_F64, SIZE_MAX) == SIZE_MAX && fr_packed_size(0, 3) == 0);
    T_OK(fr_packed_size(FR_F4_E2M1, SIZE_MAX) == SIZE_MAX / 2 + 1);
}

/* The bulk decoders have short cuts; all codes, in arrays long enough to take them. */
T_TEST(bulk_decodes_every_code)
{
    static uint8_t codes[65536 * 2];
    static float values[65536 * 4];
    for (uint32_t d = FR_F16; d <= FR_F4_E2M1; d++) {
        unsigned bits = fr_dtype_info(d)->bits;
        size_t n = bits == 16 ? 65536 : bits == 8 ? 512 : 2048;
        for (size_t i = 0; i < sizeof codes; i++) {
            codes[i] = (uint8_t)(bits == 16 ? i & 1 ? i >> 9 : i >> 1 : i * 5 + i / 256);
        }
        T_EQ_INT(fr_decode_n(d, codes, n, values), 0);
        for (size_t i = 0; i < n; i++) {
            uint32_t code = 0;
            for (unsigned k = 0; k < bits; k++) { /* bit by bit, as the header describes it */
                size_t at = i * bits + k;
                code |= (uint32_t)(codes[at / 8] >> at % 8 & 1) << k;
            }
            double want = fr_decode(d, code);
            T_OK(isnan(want) ? isnan(values[i]) : (double)values[i] == want);
            T_OK(isnan(want) || !signbit(want) == !signbit(values[i])); /* not a bool */
        }
    }
}

int main(void)
{
    return t_run();
}
