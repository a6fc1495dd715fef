/* SPDX-License-Identifier: Apache-2.0 */
/* Peeling by example tells the same speaker and time as peeling, or declines. */
#include "format/form.h"
#include "support/t.h"

static struct fr_arena scratch = FR_ARENA_INIT(0);
static const struct fr_peel_ctx ctx = {.scratch = &scratch, .year = 2026};

static bool same_who(const struct fr_who *a, const struct fr_who *b)
{
    return a->rank == b->rank && a->local_rank == b->local_rank && a->task == b->task &&
           a->pg_rank == b->pg_rank && a->world == b->world && a->gpu == b->gpu &&
           a->pid == b->pid && fr_sv_eq(a->node, b->node) && fr_sv_eq(a->role, b->role);
}

/* 1: found, and as fr_peel has it; 0: not found; -1: found and wrong. */
static int found(struct fr_forms *f, fr_sv line)
{
    struct fr_when when;
    struct fr_record rec;
    const struct fr_form *form = fr_forms_find(f, 1, line, &when);
    if (form == NULL) {
        return 0;
    }
    fr_peel(&ctx, line, &rec);
    return same_who(&form->who, &rec.who) && when.ns == rec.when.ns &&
                   when.basis == rec.when.basis && when.resolution_ns == rec.when.resolution_ns &&
                   rec.outer.basis == FR_TIME_BASIS_NONE
               ? 1
               : -1;
}

static void learn(struct fr_forms *f, const char *line)
{
    struct fr_record rec;
    fr_peel(&ctx, fr_sv_z(line), &rec);
    fr_forms_learn(f, 1, fr_sv_z(line), &rec, &rec.who, 0);
}

static int after(const char *learned, const char *line)
{
    struct fr_forms f = {.n = 0};
    learn(&f, learned);
    return found(&f, fr_sv_z(line));
}

T_TEST(only_the_time_may_differ)
{
    T_EQ_INT(after(" [2025-09-23 01:02:03] iteration       50/    1000 | lm loss: 1.2",
                   " [2025-09-24 23:59:59] iteration       51/    1000 | lm loss: nan"),
             1);
    T_EQ_INT(
        after("[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 5] step=10, x",
              "[2024-05-01 10:00:09,456] [INFO] [logging.py:96:log_dist] [Rank 5] step=2000, y"),
        1);
    T_EQ_INT(after("\033[32m2024-03-05 12:01:04,123\033[0m | \033[1mINFO    \033[0m | a:b:7 - "
                   "step=1 loss=2",
                   "\033[32m2024-03-05 13:00:00,001\033[0m | \033[1mINFO    \033[0m | a:b:7 - "
                   "step=9 loss=3"),
             1);
    T_EQ_INT(after("{'loss': 1.5}", "{'loss': 22.25}"), 1);
    T_EQ_INT(after("[default3]:iter 7: loss 2.5", "[default3]:iter 8: loss 2.25"), 1);
}

T_TEST(another_speaker_or_shape_is_not_known)
{
    T_EQ_INT(after("[default3]:iter 7: loss 2.5", "[default4]:iter 7: loss 2.5"), 0);
    T_EQ_INT(after("[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 5] step=10, x",
                   "[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 6] step=10, x"),
             0);
    T_EQ_INT(after(" [2025-09-23 01:02:03] iteration  5/ 9 |",
                   " [2025-19-23 01:02:03] iteration  5/ 9 |"),
             0);
    T_EQ_INT(after("{'loss': 1.5}", "{'loss': nan}"), 0);
    T_EQ_INT(after("{'loss': 1.5}", "{'loss'"), 0);
    T_EQ_INT(after("1/3 loss 2", "2/3 loss 2"), 0);
    T_EQ_INT(
        after("2025-11-25T12:34:56.1Z stderr F loss: 1", "2025-11-25T12:34:56.1Z stderr F loss: 1"),
        0);
    T_EQ_INT(after("{\"log\":\"loss 1\\n\",\"stream\":\"stderr\"}",
                   "{\"log\":\"loss 1\\n\",\"stream\":\"stderr\"}"),
             0);
}

T_TEST(one_out_of_use_gives_way)
{
    struct fr_forms f = {.n = 0};
    char line[64];
    for (int i = 0; i < 3 * FR_FORMS; i++) {
        snprintf(line, sizeof line, "[rank%d]: loss 1", i);
        learn(&f, line);
        T_EQ_INT(found(&f, fr_sv_z(line)), 1);
    }
    T_EQ_INT(f.n, FR_FORMS);
    T_EQ_INT(found(&f, FR_SV("[rank20]: loss 1")), 0);
    T_EQ_INT(found(&f, FR_SV("[rank0]: loss 1")), 1);
}

/* Any byte may change: what is still found must be peeled alike. */
T_TEST(never_another_answer_than_the_peeler)
{
    static const char *const lines[] = {
        " [2025-09-23 01:02:03.123456] iteration       50/    1000 | lm loss: 1.2 |",
        "[2024-05-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 5] step=10, skipped=0",
        "\033[32m2024-03-05 12:01:04,123\033[0m | \033[1mINFO    \033[0m | a.b:c:7 - step=1 loss=2",
        "2020-03-23 12:03:13 | INFO | train_inner | epoch 003:      5 / 356 loss=9.44",
        "[rank3]: 2024-01-02 03:04:05.123 node07:3 loss 5",
        "(Trainer pid=7, ip=10.0.0.1) loss: 3.5 x",
        "3: [rank3]: loss: 2.5",
        "{'loss': 1.8342, 'grad_norm': 0.731}",
        "INFO:root:loss: 1.5"};
    static const char bytes[] = "0123456789 [](){}:|.,-/TZRanker=\033m";
    uint64_t seed = 42;
    int known = 0;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct fr_forms f = {.n = 0};
        learn(&f, lines[i]);
        for (int round = 0; round < 20000; round++) {
            char line[128];
            size_t n = strlen(lines[i]);
            memcpy(line, lines[i], n);
            for (int k = 0; k < 1 + round % 3; k++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                line[(seed >> 33) % n] = bytes[(seed >> 20) % (sizeof bytes - 1)];
            }
            int got = found(&f, (fr_sv){line, n});
            T_OK(got >= 0);
            known += got;
            fr_arena_reset(&scratch);
        }
    }
    T_OK(known > 1000);
}

T_TEST(nothing_is_peeled_off_a_bar)
{
    static const char *const bars[] = {" 12%|#  | 3/25 [00:01<00:09]", "100%|####", "  3%|",
                                       "0%|x\033[0m"};
    for (size_t i = 0; i < sizeof bars / sizeof *bars; i++) {
        struct fr_record rec;
        static const struct fr_who nobody = FR_WHO_NONE;
        fr_peel(&ctx, fr_sv_z(bars[i]), &rec);
        T_OK(fr_form_is_bar(fr_sv_z(bars[i])));
        T_OK(same_who(&rec.who, &nobody) && rec.when.basis == FR_TIME_BASIS_NONE &&
             rec.outer.basis == FR_TIME_BASIS_NONE);
    }
    T_OK(!fr_form_is_bar(FR_SV("1234%|x")) && !fr_form_is_bar(FR_SV("%|")) &&
         !fr_form_is_bar(FR_SV("12 %|")));
    T_OK(!fr_form_is_bar(FR_SV("")) && !fr_form_is_bar(FR_SV("  ")) &&
         !fr_form_is_bar(FR_SV("12")));
}

int main(void)
{
    return t_run();
}
