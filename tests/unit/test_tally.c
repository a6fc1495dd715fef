/* SPDX-License-Identifier: Apache-2.0 */
/* Every engine against an oracle that takes elements one by one: counts and the largest magnitude
 * exactly, sums within the bound that the header states. The oracle decides by fr_decode and
 * fr_round whether a cast loses an element. */
#include "numerics/tally.h"
#include "support/t.h"

#include <math.h>

static uint64_t seed = 99;

static uint64_t roll(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static const uint32_t targets[FR_BEYOND_COUNT] = {[FR_BEYOND_F16] = FR_F16,
                                                  [FR_BEYOND_BF16] = FR_BF16,
                                                  [FR_BEYOND_E4M3FN] = FR_F8_E4M3FN,
                                                  [FR_BEYOND_E5M2] = FR_F8_E5M2};

static void oracle_one(double x, double min_normal, long double *squares, struct fr_tally *t)
{
    t->elements++;
    t->nan += isnan(x) != 0;
    t->inf += isinf(x) != 0;
    if (!isfinite(x)) {
        return;
    }
    x = fabs(x);
    t->zero += x == 0;
    t->subnormal += x > 0 && x < min_normal;
    t->abs_max = x > t->abs_max ? x : t->abs_max;
    *squares += (long double)x * (long double)x;
    for (unsigned b = 0; b < FR_BEYOND_COUNT; b++) {
        t->beyond[b] += !isfinite(fr_round(targets[b], x, FR_OVERFLOW_IEEE));
    }
}

static void oracle(uint32_t dtype, const void *p, size_t bytes, struct fr_tally *t)
{
    const double least = fr_dtype_info(dtype)->min_normal;
    long double squares = 0;
    *t = (struct fr_tally){0};
    if (dtype == FR_F64) {
        for (size_t i = 0; i < bytes; i += 8) {
            double x;
            memcpy(&x, (const char *)p + i, 8);
            oracle_one(x, least, &squares, t);
        }
    } else if (dtype == FR_F4_E2M1) {
        for (size_t i = 0; i < bytes; i++) {
            oracle_one(fr_decode(dtype, ((const uint8_t *)p)[i] & 15u), least, &squares, t);
            oracle_one(fr_decode(dtype, ((const uint8_t *)p)[i] >> 4), least, &squares, t);
        }
    } else {
        const size_t width = fr_tally_width(dtype);
        for (size_t i = 0; i < bytes; i += width) {
            uint32_t code = 0;
            memcpy(&code, (const char *)p + i, width);
            oracle_one(fr_decode(dtype, code), least, &squares, t);
        }
    }
    t->sum_squares = (double)squares;
}

static void same(uint32_t dtype, const char *engine, const char *what, size_t n,
                 const struct fr_tally *got, const struct fr_tally *want)
{
    bool ok = got->elements == want->elements && got->nan == want->nan && got->inf == want->inf &&
              got->zero == want->zero && got->subnormal == want->subnormal &&
              got->abs_max == want->abs_max;
    for (unsigned b = 0; b < FR_BEYOND_COUNT; b++) {
        ok = ok && got->beyond[b] == want->beyond[b];
    }
    t_checks_++;
    if (!ok) {
        T_FAIL("%s %s %s, %zu elements: nan %lu/%lu inf %lu/%lu zero %lu/%lu subnormal %lu/%lu max "
               "%g/%g beyond %lu/%lu %lu/%lu %lu/%lu %lu/%lu",
               fr_dtype_info(dtype)->name, engine, what, n, got->nan, want->nan, got->inf,
               want->inf, got->zero, want->zero, got->subnormal, want->subnormal, got->abs_max,
               want->abs_max, got->beyond[0], want->beyond[0], got->beyond[1], want->beyond[1],
               got->beyond[2], want->beyond[2], got->beyond[3], want->beyond[3]);
    }
    if (!(fabs(got->sum_squares - want->sum_squares) <= want->sum_squares * 0x1p-14) &&
        got->sum_squares != want->sum_squares) {
        T_FAIL("%s %s %s, %zu elements: squares %.17g, not %.17g", fr_dtype_info(dtype)->name,
               engine, what, n, got->sum_squares, want->sum_squares);
    }
}

/* ---- contents ---- */

#define MOST 40000 /* elements */
static uint8_t room[MOST * 8 + 64];

static void put(uint32_t dtype, void *p, size_t i, double x)
{
    if (dtype == FR_F64) {
        memcpy((char *)p + 8 * i, &x, 8);
        return;
    }
    const uint32_t code = fr_encode(dtype, x, FR_OVERFLOW_IEEE);
    memcpy((char *)p + i * fr_tally_width(dtype), &code, fr_tally_width(dtype));
}

static double bell(double sigma)
{
    double x = 0;
    for (int i = 0; i < 12; i++) {
        x += (double)(roll() >> 40) * 0x1p-24 - 0.5;
    }
    return x * sigma;
}

enum { CODES, WEIGHTS, ZEROS, SMALL, LARGE, ONE_NAN, RARE, CONTENTS };
static const char *const content_names[] = {
    "any codes", "weights", "zeros", "tiny values", "large values", "one NaN", "a rare large one"};

static void fill(uint32_t dtype, int content, void *p, size_t n)
{
    const struct fr_dtype_info *info = fr_dtype_info(dtype);
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = roll();
        switch (content) {
        case CODES:
            memcpy((char *)p + i * fr_tally_width(dtype), &r, fr_tally_width(dtype));
            break;
        case ZEROS:
            put(dtype, p, i, r % 50 == 0 ? bell(0.1) : r % 2 ? 0.0 : -0.0);
            break;
        case SMALL:
            put(dtype, p, i, bell(info->min_normal * 4));
            break;
        case LARGE:
            put(dtype, p, i, bell(info->max / 4 < 1e150 ? info->max / 4 : 1e150));
            break;
        case ONE_NAN:
            put(dtype, p, i, i == n / 2 && info->has_nan ? NAN : bell(0.5));
            break;
        case RARE:
            put(dtype, p, i, r % 5000 == 0 ? 70000.0 : bell(0.5));
            break;
        default:
            put(dtype, p, i, bell(0.5));
            break;
        }
    }
}

static const uint32_t floats[] = {FR_F16,         FR_BF16,        FR_F32,
                                  FR_F64,         FR_F8_E4M3FN,   FR_F8_E5M2,
                                  FR_F8_E4M3FNUZ, FR_F8_E5M2FNUZ, FR_F8_E8M0};
static const size_t sizes[] = {0,   1,   2,    7,    15,   16,   17,   31,   33,    63,    65,
                               100, 255, 2047, 2048, 2049, 8191, 8192, 8193, 16384, 16385, 40000};

T_TEST(every_engine_equals_the_oracle)
{
    for (unsigned e = 0; e < fr_tally_engines_count; e++) {
        if (!fr_tally_use(fr_tally_engines[e].name)) {
            printf("# %s does not run here\n", fr_tally_engines[e].name);
            continue;
        }
        for (size_t d = 0; d < sizeof floats / sizeof floats[0]; d++) {
            for (int content = 0; content < CONTENTS; content++) {
                for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                    struct fr_tally got = {0}, want;
                    uint8_t *p = room + roll() % 64; /* any alignment */
                    const size_t bytes = sizes[s] * fr_tally_width(floats[d]);
                    fill(floats[d], content, p, sizes[s]);
                    T_EQ_INT(fr_tally_add(floats[d], p, bytes, &got), 0);
                    oracle(floats[d], p, bytes, &want);
                    same(floats[d], fr_tally_engines[e].name, content_names[content], sizes[s],
                         &got, &want);
                }
            }
        }
    }
    fr_tally_use(NULL);
}

/* Each 16-bit and 8-bit code on its own, in a block of zeros: no neighbour hides it. */
T_TEST(every_code_alone)
{
    static const uint32_t types[] = {FR_F16,         FR_BF16,        FR_F8_E4M3FN, FR_F8_E5M2,
                                     FR_F8_E4M3FNUZ, FR_F8_E5M2FNUZ, FR_F8_E8M0,   FR_F4_E2M1};
    for (unsigned e = 0; e < fr_tally_engines_count; e++) {
        for (size_t d = 0;
             d < sizeof types / sizeof types[0] && fr_tally_use(fr_tally_engines[e].name); d++) {
            const size_t width = fr_tally_width(types[d]);
            for (uint32_t code = 0; code < 1u << (8 * width); code += width == 1 ? 1 : 3) {
                struct fr_tally got = {0}, want;
                memset(room, 0, 256);
                memcpy(room + 128, &code, width);
                fr_tally_add(types[d], room, 256, &got);
                oracle(types[d], room, 256, &want);
                same(types[d], fr_tally_engines[e].name, "one code", code, &got, &want);
            }
        }
    }
    fr_tally_use(NULL);
}

/* The smallest float32 and float64 on the wrong side of each limit, and the largest on the right
 * side. */
T_TEST(limits_of_wide_types)
{
    static const double limits[] = {464,      61440,     65520,   0x1.ffp127, 0x1.fffffep127,
                                    0x1p-126, 0x1p-1022, 0x1p-55, 0x1p60};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (int side = -1; side <= 1; side++) {
            struct fr_tally got = {0}, want;
            const float f = side == 0 ? (float)limits[i]
                                      : nextafterf((float)limits[i], side > 0 ? INFINITY : 0);
            const double x = side == 0 ? limits[i] : nextafter(limits[i], side > 0 ? INFINITY : 0);
            memset(room, 0, 512);
            memcpy(room + 40, &f, 4);
            fr_tally_add(FR_F32, room, 512, &got);
            oracle(FR_F32, room, 512, &want);
            same(FR_F32, "auto", "limit", i, &got, &want);
            memset(room, 0, 512);
            memcpy(room + 40, &x, 8);
            got = (struct fr_tally){0};
            fr_tally_add(FR_F64, room, 512, &got);
            oracle(FR_F64, room, 512, &want);
            same(FR_F64, "auto", "limit", i, &got, &want);
        }
    }
}

T_TEST(integers)
{
    static const int32_t v[] = {0, -7, 3, 0, INT32_MIN};
    static const int64_t w[] = {INT64_MIN, 0};
    static const uint8_t b[] = {0, 1, 1, 255};
    struct fr_tally t = {0};
    T_EQ_INT(fr_tally_add(FR_I32, v, sizeof v, &t), 0);
    T_OK(t.elements == 5 && t.zero == 2 && t.abs_max == 2147483648.0 && t.nan == 0);
    t = (struct fr_tally){0};
    fr_tally_add(FR_I64, w, sizeof w, &t);
    T_OK(t.zero == 1 && t.abs_max == 0x1p63);
    t = (struct fr_tally){0};
    fr_tally_add(FR_U8, b, sizeof b, &t);
    T_OK(t.zero == 1 && t.abs_max == 255);
    t = (struct fr_tally){0};
    fr_tally_add(FR_I8, b, sizeof b, &t);
    T_OK(t.abs_max == 1);
}

T_TEST(what_cannot_be_read)
{
    struct fr_tally t = {0};
    T_EQ_INT(fr_tally_add(FR_F6_E2M3, room, 3, &t), -1);
    T_EQ_INT(fr_tally_add(FR_DTYPE_UNKNOWN, room, 3, &t), -1);
    T_EQ_INT(fr_tally_add(12345, room, 3, &t), -1);
    T_OK(t.elements == 0);
}

T_TEST(pieces_merge)
{
    struct fr_tally whole = {0}, sum = {0};
    fill(FR_F16, WEIGHTS, room, MOST);
    fr_tally_add(FR_F16, room, 2 * MOST, &whole);
    for (size_t at = 0; at < 2 * MOST; at += FR_TALLY_PIECE) {
        struct fr_tally part = {0};
        fr_tally_add(FR_F16, room + at,
                     2 * MOST - at < FR_TALLY_PIECE ? 2 * MOST - at : FR_TALLY_PIECE, &part);
        fr_tally_merge(&sum, &part);
    }
    T_OK(memcmp(&whole, &sum, sizeof whole) == 0);
}

int main(void)
{
    return t_run();
}
