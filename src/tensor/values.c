/* SPDX-License-Identifier: Apache-2.0 */
/* values: each tensor on its own. What is said here is counted, not guessed; only "may go wrong" is
 * a habit: a trained weight is rarely zero, constant or full of subnormals. */
#include "tensor/checking.h"
#include "tensor/place.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <math.h>

#define NEAR_FP16 32752.0 /* half of the limit: one doubling away from Inf */
#define IMPLAUSIBLE 1e15  /* squares of a row still fit fp32 up to about 1e17; nobody has seen this */

static bool role_is(const struct fr_check_tensor *t, const char *role)
{
    return fr_sv_eq(t->role, fr_sv_z(role));
}

static bool is_allowed(const struct fr_checking *k, fr_sv name)
{
    fr_sv rest = fr_sv_z(k->o->allow_nan), pattern;
    char word[256], text[512];
    if (name.n >= sizeof text) {
        return false;
    }
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    while (rest.n > 0) {
        (void)fr_sv_cut(rest, ',', &pattern, &rest);
        if (pattern.n > 0 && pattern.n < sizeof word) {
            memcpy(word, pattern.p, pattern.n);
            word[pattern.n] = '\0';
            if (fnmatch(word, text, 0) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* "17 of 45,088,768 elements are NaN and 2 Inf" */
static struct fr_check_finding *say_nonfinite(struct fr_checking *k, enum fr_rule rule,
                                              struct fr_check_tensor *t, const char *more)
{
    if (t->nan > 0 && t->inf > 0) {
        return fr_found(k, rule, t, FR_SV_NONE,
                        "%" PRIu64 " of %" PRIu64 " elements are NaN and %" PRIu64 " are Inf%s.",
                        t->nan, t->elements, t->inf, more);
    }
    return fr_found(k, rule, t, FR_SV_NONE, "%" PRIu64 " of %" PRIu64 " elements %s %s%s.",
                    t->nan + t->inf, t->elements, t->nan + t->inf == 1 ? "is" : "are",
                    t->nan > 0 ? "NaN" : "Inf", more);
}

static void nonfinite(struct fr_checking *k, struct fr_check_tensor *t)
{
    if (t->nan + t->inf == 0) {
        return;
    }
    if (is_allowed(k, t->name)) {
        say_nonfinite(k, FR_RULE_ALLOWED, t, "; --allow-nan permits it");
    } else if (role_is(t, "optimizer")) {
        say_nonfinite(k, FR_RULE_NAN_OPTIMIZER, t, "");
    } else if (role_is(t, "scale")) {
        say_nonfinite(k, FR_RULE_BAD_SCALE, t, "; every value under such a scale is lost");
    } else if (role_is(t, "buffer") || role_is(t, "other") ||
               fr_sv_find_ci(t->name, FR_SV("mask")) != FR_NPOS) {
        say_nonfinite(k, t->nan > 0 ? FR_RULE_NAN_BUFFER : FR_RULE_INF_BUFFER, t, "");
    } else if (t->nan > 0) {
        say_nonfinite(k, FR_RULE_NAN_WEIGHT, t, "");
    } else {
        struct fr_check_finding *f = say_nonfinite(k, FR_RULE_INF_WEIGHT, t, "");
        if (fr_sv_eq(t->dtype, FR_SV("fp16"))) {
            fr_found_page(f, "fp16-activation-overflow"); /* a cast, too, says the page */
        }
    }
}

static void magnitudes(struct fr_checking *k, struct fr_check_tensor *t)
{
    if (k->o->max_abs > 0 && t->abs_max > k->o->max_abs &&
        (role_is(t, "weight") || role_is(t, "scale"))) {
        fr_found(k, FR_RULE_MAX_ABS, t, FR_SV_NONE,
                 "The largest magnitude is %.6g; --max-abs allows %.6g.", t->abs_max,
                 k->o->max_abs);
    }
    if (fr_sv_eq(t->dtype, FR_SV("fp16")) && t->abs_max >= NEAR_FP16 && t->abs_max > 0) {
        struct fr_check_finding *f = fr_found(
            k, FR_RULE_NEAR_LIMIT, t, FR_SV_NONE,
            "The largest magnitude is %.6g, and fp16 ends at 65504: doubling it gives Inf.",
            t->abs_max);
        fr_found_unknown(f, "Whether any step of the model doubles it.");
    }
    if (t->abs_max >= IMPLAUSIBLE && role_is(t, "weight") && t->dims >= 2 &&
        fr_sv_find_ci(t->name, FR_SV("mask")) == FR_NPOS) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_IMPLAUSIBLE, t, FR_SV_NONE,
                     "The largest magnitude is %.6g. No training leads there; a flipped bit of an "
                     "exponent, or bytes read as another type, do.",
                     t->abs_max);
        fr_found_unknown(f, "Which element was meant to be what: an earlier save or a replica "
                            "tells (--compare, --replicas).");
    } else if (t->beyond[FR_CHECK_F16] > 0 && role_is(t, "weight")) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_BEYOND_FP16, t, FR_SV_NONE,
                     "%" PRIu64 " of %" PRIu64
                     " elements become Inf when cast to fp16 (largest magnitude %.6g).",
                     t->beyond[FR_CHECK_F16], t->elements, t->abs_max);
        fr_found_unknown(
            f, "Whether this model will ever run in fp16; in bf16 and fp32 the values are fine.");
    }
}

/* A weight that is zero at step 0 by design: biases, LoRA's B, zero convolutions, the last norm of
 * a residual branch. */
static bool may_be_zero(const struct fr_check_tensor *t)
{
    return !role_is(t, "weight") || fr_place_is_bias(t) || t->elements < 2;
}

static void emptiness(struct fr_checking *k, struct fr_check_tensor *t)
{
    if (t->elements == 0 && role_is(t, "weight")) {
        fr_found_unknown(fr_found(k, FR_RULE_EMPTY, t, FR_SV_NONE, "Its shape has a 0 in it."),
                         "Whether it is meant.");
    } else if (role_is(t, "scale") && t->is_float && t->zero > 0 && t->nan + t->inf == 0) {
        fr_found(k, FR_RULE_BAD_SCALE, t, FR_SV_NONE,
                 "%" PRIu64 " of %" PRIu64
                 " scales are zero; every value under such a scale is lost.",
                 t->zero, t->elements);
    } else if (!may_be_zero(t) && t->zero == t->elements) {
        struct fr_check_finding *f = fr_found(k, FR_RULE_ZERO_TENSOR, t, FR_SV_NONE,
                                              "All %" PRIu64 " elements are zero.", t->elements);
        fr_found_unknown(
            f, "Whether it is meant: some layers begin at zero and are trained away from it.");
    } else if (!may_be_zero(t) && t->dims >= 2 && t->elements >= 64 && t->nan + t->inf == 0 &&
               fabs(t->abs_max - t->rms) <= 1e-6 * t->abs_max) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_CONSTANT, t, FR_SV_NONE,
                     "All %" PRIu64 " elements have the magnitude %.6g.", t->elements, t->abs_max);
        fr_found_unknown(f, "Whether it was trained yet.");
    }
}

static void rows(struct fr_checking *k, struct fr_check_tensor *t)
{
    const bool table = fr_place_is_embedding(t) || fr_place_is_head(t);
    const uint64_t equal = t->equal_rows - t->zero_rows, end = t->zero_rows_at_end;
    struct fr_check_finding *f = NULL;
    if (!role_is(t, "weight") || t->rows == 0 || t->zero == t->elements ||
        (t->zero_rows == 0 && equal == 0)) {
        return;
    }
    if (table) {
        fr_found(k, FR_RULE_UNTRAINED_ROWS, t, FR_SV_NONE,
                 "%" PRIu64 " of %" PRIu64 " rows are zero and %" PRIu64
                 " hold one value; the last %" PRIu64 " rows are zero.",
                 t->zero_rows, t->rows, equal, end);
        return;
    }
    if (end >= 2 && end == t->zero_rows) {
        f = fr_found(k, FR_RULE_ZERO_TAIL, t, FR_SV_NONE,
                     "The last %" PRIu64 " of %" PRIu64
                     " rows are zero, and no other: as a write that stopped leaves them.",
                     end, t->rows);
    } else if (t->zero_rows > 0) {
        f = fr_found(k, FR_RULE_ZERO_ROWS, t, FR_SV_NONE,
                     "%" PRIu64 " of %" PRIu64 " rows are zero, the first is row %" PRIu64 ".",
                     t->zero_rows, t->rows, t->first_zero_row);
    } else {
        f = fr_found(k, FR_RULE_EQUAL_ROWS, t, FR_SV_NONE,
                     "%" PRIu64 " of %" PRIu64
                     " rows hold one value throughout, the first is row %" PRIu64 ".",
                     equal, t->rows, t->first_equal_row);
    }
    fr_found_unknown(f, "Whether it is meant, as in pruned or padded matrices.");
}

static void tiny(struct fr_checking *k, struct fr_check_tensor *t)
{
    const double n = (double)(t->elements - t->zero);
    const bool half = fr_sv_eq(t->dtype, FR_SV("fp16"));
    if (half && role_is(t, "optimizer") && fr_place_is_second_moment(t) && t->elements >= 64 &&
        (double)t->zero > 0.5 * (double)t->elements) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_RISK_ADAM_EPS, t, FR_SV_NONE,
                     "%.1f %% of the second moments are zero in fp16: squares of gradients below "
                     "2.4e-4 vanish, and the update is then divided by eps alone.",
                     100.0 * (double)t->zero / (double)t->elements);
        fr_found_unknown(f, "Whether those gradients were zero anyway.");
    } else if (half && role_is(t, "weight") && t->elements >= 1024 &&
               (double)t->subnormal > 0.2 * n) {
        struct fr_check_finding *f =
            fr_found(k, FR_RULE_SUBNORMAL, t, FR_SV_NONE,
                     "%.1f %% of the elements are subnormal in fp16 (below 6.1e-5): they keep "
                     "fewer bits the smaller they are.",
                     100.0 * (double)t->subnormal / n);
        fr_found_unknown(f, "Whether the model needs those bits.");
    }
}

void fr_check_values(struct fr_checking *k)
{
    for (uint32_t i = 0; i < k->r->tensors.n; i++) {
        struct fr_check_tensor *t = &k->r->tensors.v[i];
        if (!t->scanned) {
            continue;
        }
        if (t->is_float) {
            nonfinite(k, t);
            magnitudes(k, t);
            rows(k, t);
            tiny(k, t);
        }
        emptiness(k, t);
    }
}
