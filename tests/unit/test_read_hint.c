/* SPDX-License-Identifier: Apache-2.0 */
/* What paths say about their writer, and above all what they do not say. */
#include "read/input.h"
#include "support/t.h"

struct row {
    const char *path;
    int rank, local, task, gpu, attempt;
    const char *node;
    int kind;
};

enum { U = FR_SOURCE_UNKNOWN, R = FR_SOURCE_RANK, C = FR_SOURCE_CONSOLE, K = FR_SOURCE_KERNEL, A = FR_SOURCE_AGENT };

static const struct row rows[] = {
    /* ranks */
    {"runs/42/rank3.log", 3, -1, -1, -1, -1, "", R},
    {"rank_00012.log", 12, -1, -1, -1, -1, "", R},
    {"logs/rank-3/stderr.txt", 3, -1, -1, -1, -1, "", R},
    {"host-gpu3-rank12.txt", 12, -1, -1, 3, -1, "", R},
    {"train.rank7.log.gz", 7, -1, -1, -1, -1, "", R},
    {"RANK_5.out", 5, -1, -1, -1, -1, "", R},
    {"global_rank_9.log", 9, -1, -1, -1, -1, "", R},
    {"rank=4.log", 4, -1, -1, -1, -1, "", R},
    {"rank3_of_8.log", 3, -1, -1, -1, -1, "", R},
    {"logs.tar.gz!run/rank3.log", 3, -1, -1, -1, -1, "", R},
    {"rank3-20260101.log", 3, -1, -1, -1, -1, "", R},
    {"node07_rank12.log", 12, -1, -1, -1, -1, "node07", R},
    {"rank3.log.1", 3, -1, -1, -1, -1, "", R},
    /* ranks of something else, of many, or no ranks */
    {"local_rank_3.log", -1, 3, -1, -1, -1, "", R},
    {"localrank3.log", -1, 3, -1, -1, -1, "", R},
    {"node_rank_2.log", -1, -1, -1, -1, -1, "", U},
    {"mp_rank_00.log", -1, -1, -1, -1, -1, "", U},
    {"tp_rank3.log", -1, -1, -1, -1, -1, "", U},
    {"lora_rank16_train.log", -1, -1, -1, -1, -1, "", U},
    {"rank0-7.log", -1, -1, -1, -1, -1, "", U},
    {"rank0_rank3.log", -1, -1, -1, -1, -1, "", U},
    {"rank3_experiment/console.log", -1, -1, -1, -1, -1, "", C},
    {"sweep_rank_16/train.log", -1, -1, -1, -1, -1, "", U},
    {"2026-03-05/train.log", -1, -1, -1, -1, -1, "", U},
    {"train_20260305_120000.log", -1, -1, -1, -1, -1, "", U},
    {"job_4123.out", -1, -1, -1, -1, -1, "", U},
    {"r3.log", -1, -1, -1, -1, -1, "", U},
    {"train.log.3", -1, -1, -1, -1, -1, "", U},
    {"frankenstein3.log", -1, -1, -1, -1, -1, "", U},
    {"rank.log", -1, -1, -1, -1, -1, "", U},
    {"rank99999999999.log", -1, -1, -1, -1, -1, "", U},
    /* Slurm */
    {"slurm-8_1.out", -1, -1, 1, -1, -1, "", R},
    {"slurm-440575-12.out", -1, -1, 12, -1, -1, "", R},
    {"slurm-14.out", -1, -1, -1, -1, -1, "", C},
    {"logs/train_task3.log", -1, -1, 3, -1, -1, "", R},
    /* torchrun */
    {"none_abcd1234/attempt_0/3/stderr.log", -1, 3, -1, -1, 0, "", R},
    {"run7_k2jx81aa/attempt_2/0/error.json", -1, 0, -1, -1, 2, "", R},
    {"attempt_1_rank3.log", 3, -1, -1, -1, 1, "", R},
    {"torchrun_node0.log", -1, -1, -1, -1, -1, "node0", A},
    {"node0_agent.log", -1, -1, -1, -1, -1, "node0", A},
    /* nodes and kernels */
    {"node07.log", -1, -1, -1, -1, -1, "node07", U},
    {"gpu-node-011.log", -1, -1, -1, -1, -1, "gpu-node-011", U},
    {"pod-worker-3.log", -1, -1, -1, -1, -1, "pod-worker-3", U},
    {"ip-10-2-0-5/messages", -1, -1, -1, -1, -1, "ip-10-2-0-5", K},
    {"dmesg_node0.log", -1, -1, -1, -1, -1, "node0", K},
    {"dmesg.txt", -1, -1, -1, -1, -1, "", K},
    {"var/log/kern.log.1.gz", -1, -1, -1, -1, -1, "", K},
    {"nid001277-dmesg.log", -1, -1, -1, -1, -1, "", K},
    {"journal.json", -1, -1, -1, -1, -1, "", K},
    {"gpu3.log", -1, -1, -1, 3, -1, "", U},
    {"srun.log", -1, -1, -1, -1, -1, "", C},
    {"console.log", -1, -1, -1, -1, -1, "", C},
    {"messages_of_love_to_rank3.log", 3, -1, -1, -1, -1, "", K},
    {"", -1, -1, -1, -1, -1, "", U},
    {"/", -1, -1, -1, -1, -1, "", U},
    {"-", -1, -1, -1, -1, -1, "", U},
    {"!!!", -1, -1, -1, -1, -1, "", U},
};

T_TEST(paths)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *w = &rows[i];
        struct fr_member m;
        int before = t_failed_;
        fr_path_hint(fr_sv_z(w->path), &m);
        T_EQ_INT(m.hint.rank, w->rank);
        T_EQ_INT(m.hint.local_rank, w->local);
        T_EQ_INT(m.hint.task, w->task);
        T_EQ_INT(m.hint.gpu, w->gpu);
        T_EQ_INT(m.attempt, w->attempt);
        T_EQ_SV(m.hint.node, fr_sv_z(w->node));
        T_EQ_INT(m.kind, w->kind);
        if (t_failed_ != before) {
            fprintf(stderr, "    in '%s'\n", w->path);
        }
    }
}

T_TEST(any_bytes)
{
    char path[300];
    uint32_t x = 12345;
    for (unsigned round = 0; round < 20000; round++) {
        size_t n = round % sizeof path;
        for (size_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            path[i] = "rank0123_-.!/gputsk\xff node"[x >> 24 & 15];
        }
        struct fr_member m;
        fr_path_hint((fr_sv){path, n}, &m);
        T_OK(m.hint.rank >= -1 && m.hint.task >= -1);
    }
}

int main(void) { return t_run(); }
