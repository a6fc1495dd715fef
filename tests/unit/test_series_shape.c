/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing by example gives the point that parsing gives, to the last bit, or declines. */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"
#include "series/shape.h"
#include "support/t.h"

static struct fr_shape shape;
static uint64_t dialects; /* of the line that it was learned from */

static uint64_t dialects_of(fr_sv line)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        for (const char *const *l = fr_dialects[i]->literals; *l != NULL; l++) {
            bits |= (uint64_t)fr_sv_has(line, fr_sv_z(*l)) << i;
        }
    }
    return bits;
}

static bool learned(const char *line)
{
    fr_sv s = fr_sv_z(line);
    dialects = dialects_of(s);
    return fr_shape_learn(&shape, s, dialects, 0, 0, 0);
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_point(const struct fr_point *a, const struct fr_point *b)
{
    bool same = a->step == b->step && a->max_step == b->max_step && same_bits(a->epoch, b->epoch) &&
                a->present == b->present && a->missing == b->missing && a->flags == b->flags &&
                a->dialect == b->dialect && a->global_batch == b->global_batch &&
                same_bits(a->attempted, b->attempted) && same_bits(a->best, b->best);
    for (unsigned m = 0; m < FR_METRIC_COUNT_; m++) {
        bool is_there = (a->present >> m & 1) != 0;
        same = same && (!is_there || same_bits(a->value[m], b->value[m]));
    }
    return same;
}

/* 1: the line fits, and what is read is what the parsers say; 0: it does not fit; -1: wrong. */
static int reads(fr_sv line)
{
    struct fr_point want;
    if (!fr_shape_fits(&shape, line)) {
        return 0;
    }
    const struct fr_point *got = fr_shape_point(&shape, line);
    if (!fr_point_parse(line, dialects, &want)) {
        return got == NULL ? 1 : -1;
    }
    return got != NULL && same_point(got, &want) ? 1 : -1;
}

static int after(const char *first, const char *line)
{
    return learned(first) ? reads(fr_sv_z(line)) : 0;
}

static uint64_t state = 20260311;
static uint32_t rnd(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

T_TEST(other_digits_are_read)
{
    T_EQ_INT(after(" iteration       50/    1000 | elapsed time per iteration (ms): 812.5 | "
                   "learning rate: 1.250E-04 | lm loss: 7.125000E+00 | loss scale: 1.0 | grad "
                   "norm: 2.750 | number of skipped iterations:   0 |",
                   " iteration       95/    2000 | elapsed time per iteration (ms): 799.1 | "
                   "learning rate: 3.999E-05 | lm loss: 9.999999E+01 | loss scale: 4.0 | grad "
                   "norm: 0.001 | number of skipped iterations:   1 |"),
             1);
    T_EQ_INT(after("[Rank 0] step=30, skipped=4, lr=[2.5e-05, 2.5e-05], mom=[(0.9, 0.95)]",
                   "[Rank 0] step=31, skipped=5, lr=[9.1e-17, 2.5e-05], mom=[(0.9, 0.95)]"),
             1);
    T_EQ_INT(after("{'loss': 1.8342, 'grad_norm': -0.731, 'learning_rate': 4.5e-05, 'epoch': 0.31}",
                   "{'loss': 0.0000, 'grad_norm': -9.999, 'learning_rate': 4.5e-99, 'epoch': 7.00}"),
             1);
    T_EQ_INT(after("{'loss': 1.12345678901234567, 'epoch': 123456.123456789}",
                   "{'loss': 0.98765432109876543, 'epoch': 999999.999999999}"),
             1);
    T_EQ_INT(after("iter 7: loss 2.5000, time 3.2ms", "iter 9: loss 1.0625, time 9.9ms"), 1);
    T_EQ_INT(after(" 12%|#  | 30/300 [01:00<09:00,  2.0s/it]", " 99%|#  | 31/300 [01:03<08:58,  3.1s/it]"),
             1);
}

T_TEST(anything_else_is_not)
{
    const char *first = "step 0007 | loss = 31.5 | lr 0.5";
    T_EQ_INT(after(first, "step 0008 | loss = 31.25 | lr 0.5"), 0);
    T_EQ_INT(after(first, "step 0008 | loss = 31.5 | lr .50"), 0);
    T_EQ_INT(after(first, "step 000a | loss = 31.5 | lr 0.5"), 0);
    T_EQ_INT(after(first, "step 000: | loss = 31.5 | lr 0.5"), 0);
    T_EQ_INT(after(first, "step 0008 | loss = -1.5 | lr 0.5"), 0);
    T_EQ_INT(after(first, "step 0008 | Loss = 31.5 | lr 0.5"), 0);
    T_EQ_INT(after("step 7 | loss = 31.5 | top1_acc: 0.5", "step 7 | loss = 31.5 | top2_acc: 0.5"), 0);
    T_OK(!learned("step 7 loss 1"));
}

/* Where a value decides what the parsers do, there is no shape. */
T_TEST(values_that_decide)
{
    T_OK(!learned("Epoch [2/10], Step [100/600], Loss: 0.2500")); /* a sum */
    T_OK(!learned(" iteration 5/ 10 | elapsed time per iteration (ms): 100.0 | learning rate: "
                  "1.0E-03 | loss scale: 2.0 | number of skipped iterations:   0 |"));
}

/* The digits of the prefix tell who speaks, those of its time are free. */
T_TEST(prefixes)
{
    fr_sv line = FR_SV("[rank3]: 2025-01-02T03:04:05.678 step 7 | loss = 31.5");
    dialects = dialects_of(line);
    T_OK(fr_shape_learn(&shape, line, dialects, sizeof "[rank3]: 2025-01-02T03:04:05.678 step " - 1,
                        sizeof "[rank3]: " - 1, sizeof "[rank3]: 2025-01-02T03:04:05.678" - 1));
    T_EQ_INT(reads(FR_SV("[rank3]: 2026-12-31T23:59:59.999 step 8 | loss = 12.5")), 1);
    T_EQ_INT(reads(FR_SV("[rank4]: 2025-01-02T03:04:05.678 step 7 | loss = 31.5")), 0);
}

static void try_mutations(const char *text, unsigned *n_read)
{
    char line[FR_SHAPE_BYTES];
    size_t n = strlen(text);
    for (unsigned i = 0; n <= sizeof line && i < 300; i++) {
        memcpy(line, text, n);
        for (size_t k = 0; k < n; k++) {
            bool of_word = k > 0 && (unsigned char)((text[k - 1] | 0x20) - 'a') < 26;
            if (fr_is_digit(text[k]) && !of_word && rnd(4) != 0) {
                line[k] = (char)('0' + (rnd(3) == 0 ? 9 * rnd(2) : rnd(10)));
            }
        }
        if (rnd(8) == 0) {
            line[rnd((uint32_t)n)] = (char)rnd(256);
        }
        int got = reads((fr_sv){line, n});
        t_checks_++;
        *n_read += got == 1;
        if (got < 0) {
            T_FAIL("after '%s': '%.*s'", text, (int)n, line);
        }
    }
}

T_TEST(samples_with_other_digits)
{
    unsigned n_lines = 0, n_shapes = 0, n_read = 0;
    for (unsigned i = 0; i < fr_dialects_count; i++) {
        for (const struct fr_dialect_sample *s = fr_dialects[i]->samples; s->line != NULL; s++) {
            n_lines++;
            if (learned(s->line)) {
                n_shapes++;
                try_mutations(s->line, &n_read);
            }
        }
    }
    T_OK(n_shapes > n_lines / 2);
    T_OK(n_read > n_shapes * 100);
    printf("# %u of %u samples have a shape, %u lines read\n", n_shapes, n_lines, n_read);
}

int main(void)
{
    return t_run();
}
