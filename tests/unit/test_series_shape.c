/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing by example gives the point that parsing gives, to the last bit, or declines. */
#include "series/keys.h"
#include "series/num.h"
#include "series/series.h"
#include "series/shape_wide.h"
#include "support/t.h"

static struct fr_shape shape, plain; /* plain: read from by the way that is for any CPU */
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

static bool learned_of(fr_sv line, size_t fixed, size_t from, size_t to)
{
    bool is_learned = fr_shape_learn(&shape, line, dialects, fixed, from, to);
    plain = shape;
    return is_learned;
}

static bool learned(const char *line)
{
    fr_sv s = fr_sv_z(line);
    dialects = dialects_of(s);
    return learned_of(s, 0, 0, 0);
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
    if (fr_shape_fits(&shape, line) != fr_shape_fits_portable(&plain, line)) {
        return -1;
    }
    if (!fr_shape_fits(&shape, line)) {
        return 0;
    }
    const struct fr_point *got = fr_shape_point(&shape, line);
    const struct fr_point *also = fr_shape_point_portable(&plain, line);
    if (!fr_point_parse(line, dialects, &want)) {
        return got == NULL && also == NULL ? 1 : -1;
    }
    return got != NULL && same_point(got, &want) && also != NULL && same_point(also, &want) ? 1
                                                                                            : -1;
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

/* Numbers at both ends of a line, of all lengths, exponents that come and go, numbers that are too
 * long for the usual way. */
T_TEST(numbers_of_all_kinds)
{
    static const char *const lines[] = {
        "1 step 2 loss 3.5 lr 1e-04 grad_norm -0.25 time 12.5",
        "step 123456789012345 | loss 12345678901234.5 | grad_norm 0.12345678901234 | lr 1.0",
        "step 1234567 | loss 1234567890123456.25 | lr 1.2345678e-10 | grad_norm 1.5e+07",
        "{'loss': 1.25, 'grad_norm': 2.5e+02, 'learning_rate': 9.5e-25, 'epoch': 1.5}",
        "{'loss': -1.12345678, 'grad_norm': 1.123456789, 'learning_rate': 1.2e-22, 'epoch': 0.1}",
        "step: 7 loss: 0.123456789 grad_norm: 22.75 lr: 3.125e-05 step_time: 0.5",
        "iter 7: loss -2.5000, time 3.2ms", "iter 70001: loss 2.50001234567, time 3211.25ms"};
    unsigned n_read = 0, n_shapes = 0;
    for (unsigned i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (learned(lines[i])) {
            n_shapes++;
            try_mutations(lines[i], &n_read);
        }
    }
    printf("# %u of %u lines have a shape, %u lines read\n", n_shapes, (unsigned)(sizeof lines / sizeof *lines), n_read);
    T_OK(n_shapes >= 5);
    T_OK(n_read > n_shapes * 50);
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
    T_OK(learned_of(line, sizeof "[rank3]: 2025-01-02T03:04:05.678 step " - 1,
                    sizeof "[rank3]: " - 1, sizeof "[rank3]: 2025-01-02T03:04:05.678" - 1));
    T_EQ_INT(reads(FR_SV("[rank3]: 2026-12-31T23:59:59.999 step 8 | loss = 12.5")), 1);
    T_EQ_INT(reads(FR_SV("[rank4]: 2025-01-02T03:04:05.678 step 7 | loss = 31.5")), 0);
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
