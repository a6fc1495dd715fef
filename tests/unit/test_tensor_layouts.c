/* SPDX-License-Identifier: Apache-2.0 */
/* Folders: what belongs together, what is missing, which step is the last good one. */
#include "unit/tensor_open.h"

#include <stdarg.h>

static char dir[200];

/* A fresh folder; commands run in it, with F the fixtures. */
static const char *folder(const char *commands)
{
    char line[4096];
    if (dir[0] == '\0') {
        snprintf(dir, sizeof dir, "%s/fr-layouts-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        if (mkdtemp(dir) == NULL) {
            exit(1);
        }
    }
    snprintf(line, sizeof line, "rm -rf %s && mkdir %s && cd %s && F=%s && %s", dir, dir, dir, FR_SOURCE_DIR "/tests/fixtures/tensor", commands);
    if (system(line) != 0) {
        fprintf(stderr, "cannot run: %s\n", line);
        exit(1);
    }
    return dir;
}

static void remove_folder(void)
{
    char line[300];
    snprintf(line, sizeof line, "rm -rf %s", dir);
    if (dir[0] != '\0' && system(line) != 0) {
        perror(dir);
    }
}

struct row {
    const char *commands;
    uint8_t kind; /* FR_PROBLEM_KINDS: no problem at all */
    const char *words;
    bool complete; /* the last step */
};

static void check(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct opened o;
        opened_begin(&o, folder(rows[i].commands));
        T_EQ_INT(o.rc, 0);
        bool good = o.rc == 0 && o.c.steps_n > 0 && o.c.steps[o.c.steps_n - 1].complete == rows[i].complete &&
                    (rows[i].kind == FR_PROBLEM_KINDS ? o.c.problems_n == 0 : opened_problem(&o, rows[i].kind, rows[i].words) != NULL);
        T_OK(good);
        if (!good) {
            fprintf(stderr, "%s\n    wanted: %s\n", rows[i].commands, rows[i].words != NULL ? rows[i].words : "no problem");
            opened_show(&o);
        }
        opened_end(&o);
    }
}

T_TEST(sharded_folders)
{
    static const struct row rows[] = {
        {"cp $F/sharded/* .", FR_PROBLEM_KINDS, NULL, true},
        {"cp $F/hf_torch/* .", FR_PROBLEM_KINDS, NULL, true},
        {"cp $F/sharded/* . && rm model-00002*", FR_PROBLEM_MISSING, "the shard 'model-00002-of-00002.safetensors', which it names at byte", false},
        {"cp $F/sharded/* . && rm model.safetensors.index.json model-00001*", FR_PROBLEM_MISSING, "1 of the 2 files of 'model-00002-of-00002.safetensors'", false},
        {"cp $F/sharded/* . && sed -i 's/: 256/: 512/' *.index.json", FR_PROBLEM_SIZE, "promises 512 bytes of tensors (total_size), the shards hold 256", false},
        {"cp $F/torch/old.bin model.safetensors", FR_PROBLEM_HEADER, "is a PyTorch file (a zip) by its first bytes", false},
        {"(cat $F/torch/old.bin; head -c 300 /dev/zero) >m.pt", FR_PROBLEM_HOLE, "300 bytes follow the end of the zip", true},
        {"cp $F/sharded/* . && cp model-00001* model.safetensors", FR_PROBLEM_EXTRA, "from_pretrained loads this file alone", true},
        {"cp $F/sharded/* . && rm model.safetensors.index.json", FR_PROBLEM_MISSING, "but no index.json beside them", true},
        {"cp $F/sharded/* . && printf '{\"a\":' >config.json", FR_PROBLEM_HEADER, "malformed JSON at byte 5", false},
        {"mkdir checkpoint-9 && cd checkpoint-9 && cp $F/torch/old.bin optimizer.pt && cp $F/torch/old.bin scheduler.pt && echo '{}' >trainer_state.json", FR_PROBLEM_TRAINER, "but no model", false},
        {"mkdir checkpoint-9 && cd checkpoint-9 && cp $F/torch/old.bin pytorch_model.bin && cp $F/torch/old.bin scheduler.pt && echo '{\"x\":NaN}' >trainer_state.json", FR_PROBLEM_TRAINER, "not the optimizer", true},
        {"mkdir checkpoint-9 && cd checkpoint-9 && cp $F/torch/old.bin pytorch_model.bin && echo '{\"x\":-Infinity}' >trainer_state.json", FR_PROBLEM_KINDS, NULL, true},
        {"cp $F/sharded/* . && sed -i 's/lm_head.weight/lm_head.other/' *.index.json", FR_PROBLEM_MISSING, "promises 'lm_head.other' at byte", false},
        {"cp $F/sharded/* . && sed -i 's/lm_head.weight/lm_head.other/' *.index.json", FR_PROBLEM_EXTRA, "holds 'lm_head.weight'", false},
        {"cp $F/sharded/* . && sed -i 's/lm_head.weight/model.embed.weight/' *.index.json", FR_PROBLEM_DUPLICATE, "'model.embed.weight' comes twice", false},
        {"cp $F/sharded/* . && sed -i 's/model-00002-of/..\\/model-of/' *.index.json", FR_PROBLEM_HEADER, "outside its folder", false},
        {"cp $F/sharded/* . && truncate -s 100 *.index.json", FR_PROBLEM_HEADER, "malformed JSON at byte 100", false},
        {"cp $F/sharded/* . && truncate -s 300 model-00002*", FR_PROBLEM_TRUNCATED, "20 bytes before what its header promises", false},
        {"cp $F/sharded/* . && touch model-00003-of-00003.safetensors.tmp", FR_PROBLEM_LEFTOVER, "the file it was to become is not there", false},
        {"cp $F/sharded/* . && touch model-00002-of-00002.safetensors.tmp", FR_PROBLEM_LEFTOVER, "the file it was to replace is there", true},
        {"cp $F/sharded/* . && cp model-00002-of-00002.safetensors model-00003-of-00003.safetensors", FR_PROBLEM_EXTRA,
         "model-00003-of-00003.safetensors': is numbered like a shard, but the index 'model.safetensors.index.json' does not name it", true},
        {"cp $F/sharded/* . && cp $F/safetensors/small.safetensors model-00003-of-00003.safetensors && truncate -s 100 *.index.json", FR_PROBLEM_HEADER, "malformed JSON", false},
        {"cp $F/sharded/* . && for i in consolidated adapter_model model.fp16-00001-of-00001 other-00003-of-00003; do cp $F/safetensors/small.safetensors $i.safetensors; done;"
         "cp $F/torch/old.bin training_args.bin; cp $F/torch/old.bin optimizer.pt; cp $F/torch/old.bin model-00003-of-00003.bin",
         FR_PROBLEM_KINDS, NULL, true},
        {"cp $F/sharded/* . && mkdir vae && cp model-00002-of-00002.safetensors vae/model-00001-of-00001.safetensors", FR_PROBLEM_KINDS, NULL, true},
        {"cp $F/sharded/* . && cp model-00002-of-00002.safetensors model-00001-of-00001.safetensors &&"
         "echo '{\"weight_map\": {\"lm_head.weight\": \"model-00001-of-00001.safetensors\", \"model.layers.1.weight\": \"model-00001-of-00001.safetensors\"}}' >old.safetensors.index.json",
         FR_PROBLEM_KINDS, NULL, true},
    };
    check(rows, sizeof rows / sizeof rows[0]);
}

T_TEST(dcp_folders)
{
    static const struct row rows[] = {
        {"cp -r $F/dcp2/. .", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/dcp/. .", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/dcp2/. . && rm .metadata", FR_PROBLEM_UNFINISHED, "no .metadata, which is written last", false},
        {"cp -r $F/dcp2/. . && rm __1_0.distcp", FR_PROBLEM_MISSING, "what rank 1 wrote is lost", false},
        {"cp -r $F/dcp2/. . && truncate -s 3000 __1_0.distcp", FR_PROBLEM_TRUNCATED, "ends at byte 3000", false},
        {"cp -r $F/dcp2/. . && rm .metadata && truncate -s 3000 __1_0.distcp", FR_PROBLEM_TRUNCATED, "the blob that begins at byte 1577 has no end", false},
        {"cp -r $F/dcp2/. . && truncate -s 700 .metadata", FR_PROBLEM_TRUNCATED, "cut short", false},
        {"cp -r $F/dcp2/. . && printf x >>__1_0.distcp", FR_PROBLEM_HOLE, "the bytes 3154 to 3155 belong to no chunk", true},
    };
    struct opened o;
    check(rows, sizeof rows / sizeof rows[0]);
    opened_begin(&o, FIXTURE("dcp2"));
    T_EQ_INT(o.c.tensors_n, 4);
    const struct fr_tensor *first = &o.c.tensors[0], *second = &o.c.tensors[1];
    T_EQ_SV(first->name, FR_SV("model.w"));
    T_OK(first->shard && first->rank == 0 && first->chunk[0] == 0 && first->shape[0] == 3);
    T_OK(second->shard && second->rank == 1 && second->chunk[0] == 3);
    opened_end(&o);
    opened_begin(&o, folder("cp -r $F/dcp2/. . && rm .metadata"));
    T_OK(opened_tensor(&o, "__1_0.distcp#2") != NULL && opened_float(&o, "__1_0.distcp#1", 0) == 12.0);
    opened_end(&o);
}

/* A file of a folder cut to each of its prefixes: always a problem, never complete. */
static void every_prefix(const char *commands, const char *name, size_t stride)
{
    static unsigned char all[8192];
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder(commands), name);
    size_t n = slurp(path, all, sizeof all);
    for (size_t i = 0; i < n; i += stride) {
        struct opened o;
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        T_OK(fd >= 0 && write(fd, all, i) == (ssize_t)i && ftruncate(fd, (off_t)i) == 0 && close(fd) == 0);
        opened_begin(&o, dir);
        T_OK(o.rc == 0 && o.c.problems_n > 0 && !o.c.steps[o.c.steps_n - 1].complete);
        opened_end(&o);
    }
}

T_TEST(every_prefix_of_what_holds_a_folder_together)
{
    every_prefix("cp -r $F/dcp2/. .", ".metadata", 1);
    every_prefix("cp -r $F/dcp2/. .", "__1_0.distcp", 5);
    every_prefix("cp -r $F/dcp2/. . && rm .metadata", "__1_0.distcp", 5);
    every_prefix("cp $F/sharded/* .", "model.safetensors.index.json", 1);
    every_prefix("cp -r $F/deepspeed/. .", "global_step100/zero_pp_rank_0_mp_rank_00_optim_states.pt", 5);
}

T_TEST(deepspeed_partitions_get_names)
{
    struct opened o;
    opened_begin(&o, FIXTURE("deepspeed"));
    T_EQ_INT(o.c.problems_n, 0);
    T_EQ_SV(o.c.steps[0].layout, FR_SV("deepspeed"));
    T_EQ_INT(o.c.steps[0].step, 100);
    const struct fr_tensor *t = opened_tensor(&o, "optimizer.fp32.layers.1.weight");
    T_OK(t != NULL && t->rank == 1 && t->elements == 5 && t->role == FR_ROLE_OPTIMIZER);
    T_OK(opened_float(&o, "optimizer.fp32.layers.1.weight", 0) == 6.0 && opened_float(&o, "optimizer.exp_avg.layers.1.weight", 4) == 5.0);
    opened_end(&o);
    opened_begin(&o, FIXTURE("deepspeed3")); /* each parameter over both ranks: 3 + 3, 3 + 2 */
    T_EQ_INT(o.c.tensors_n, 4);
    t = &o.c.tensors[3];
    T_EQ_SV(t->name, FR_SV("optimizer.fp32.layers.1.weight"));
    T_OK(t->rank == 1 && t->elements == 2 && t->chunk[0] == 3 && t->shard);
    opened_end(&o);
}

T_TEST(layouts_of_ranks)
{
    static const struct row rows[] = {
        {"cp -r $F/deepspeed/. .", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/deepspeed/. . && rm global*/*rank_0_*", FR_PROBLEM_RANK, "rank 0 left no file like this one", false},
        {"cp -r $F/deepspeed/. . && rm global*/*rank_1_*", FR_PROBLEM_MISSING, "speaks of 2 partitions", false},
        {"cp -r $F/deepspeed/. . && printf global_step300 >latest", FR_PROBLEM_POINTER, "names 'global_step300', which is not there", false},
        {"cp -r $F/deepspeed/. . && rm global*/*model_states*", FR_PROBLEM_MISSING, "global_step100': holds the optimizer's shards, but the model's states are not there", false},
        {"cp -r $F/deepspeed3/. . && rm global*/*model_states*", FR_PROBLEM_MISSING, "the model's states are not there", false},
        {"cp -r $F/deepspeed/. . && cd global* && mv mp_rank_00_model_states.pt layer_0_expert_0_mp_rank_00_model_states.pt", FR_PROBLEM_MISSING, "the model's states are not there", false},
        {"cp -r $F/deepspeed/. . && cd global* && for i in zero*; do mv $i bf16_$i; done && rm mp*", FR_PROBLEM_MISSING, "the model's states are not there", false},
        {"cp -r $F/deepspeed/. . && cd global* && rm zero* && mv mp* layer_0_expert_0_mp_rank_00_model_states.pt", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/deepspeed/. . && cd global* && mv mp* layer_00-model_00-model_states.pt", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/deepspeed/. . && cd global* && for i in *; do cp $i $(echo $i | sed s/mp_rank_00/mp_rank_01/); done", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/deepspeed/. . && cd global* && for i in *; do cp $i $(echo $i | sed s/mp_rank_00/mp_rank_01/); done; rm mp_rank_01*", FR_PROBLEM_MISSING, "files of model-parallel ranks are not there: mp_rank_01_model_states.pt", false},
        {"cp -r $F/deepspeed/. . && cd global* && for i in *; do cp $i $(echo $i | sed s/mp_rank_00/mp_rank_01/); done; rm zero*mp_rank_01*", FR_PROBLEM_MISSING, "no optimizer's shard of some model-parallel ranks is there, while others have them: zero_pp_rank_*_mp_rank_01_optim_states.pt", false},
        {"cp -r $F/deepspeed/. . && cd global* && for i in *; do cp $i $(echo $i | sed s/mp_rank_00/mp_rank_02/); done; cp zero_pp_rank_0_mp_rank_00* zero_pp_rank_0_mp_rank_01_optim_states.pt; cp mp_rank_00* mp_rank_01_model_states.pt", FR_PROBLEM_MISSING, "speaks of 2 partitions", false},
        {"cp -r $F/deepspeed3/. . && rm global*/*rank_1*model_states*", FR_PROBLEM_MISSING, "of some ranks one is not there: zero_pp_rank_1_mp_rank_00_model_states.pt", false},
        {"cp -r $F/deepspeed3/. . && cd global* && for i in *; do cp $i $(echo $i | sed s/mp_rank_00/mp_rank_01/); done", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/deepspeed3/. . && cd global* && for i in *; do cp $i $(echo $i | sed s/mp_rank_00/mp_rank_01/); done; rm zero_pp_rank_1_mp_rank_01_*", FR_PROBLEM_MISSING, "as many data-parallel ranks, but some files are not there: zero_pp_rank_1_mp_rank_01_optim_states.pt", false},
        {"cp -r $F/deepspeed/. . && rm latest", FR_PROBLEM_POINTER, "has no file 'latest': load_checkpoint without a tag", true},
        {"mkdir run && cp -r $F/deepspeed/. run && rm run/latest", FR_PROBLEM_KINDS, NULL, true}, /* not the folder that was named */
        {"mkdir -p checkpoint-100 && cp -r $F/deepspeed/. checkpoint-100", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/deepspeed/. . && cp -r global_step100 global_step200", FR_PROBLEM_UNFINISHED, "still names step 100", false},
        {"cp -r $F/deepspeed/. . && : >latest", FR_PROBLEM_UNFINISHED, "is empty or no tag", false},
        {"cp -r $F/megatron/. .", FR_PROBLEM_KINDS, NULL, true},
        {"cp -r $F/megatron/. . && mv iter_0000100/mp_rank_00 iter_0000100/mp_rank_01", FR_PROBLEM_MISSING, "1 of 2 model files", false},
        {"cp -r $F/megatron/. . && printf 200 >latest_checkpointed_iteration.txt", FR_PROBLEM_POINTER, "names '200'", false},
        {"cp -r $F/megatron/. . && rm latest*", FR_PROBLEM_POINTER, "has no latest_checkpointed_iteration.txt", true},
        {"mkdir iter_0000100 && cp -r $F/dcp2/. iter_0000100 && echo '{}' >iter_0000100/metadata.json", FR_PROBLEM_POINTER, "has no latest_checkpointed_iteration.txt", true},
        {"mkdir iter_0000100 && cp -r $F/dcp2/. iter_0000100", FR_PROBLEM_KINDS, NULL, true}, /* nothing says that it is Megatron's */
        {"mkdir iter_0000100 && cp -r $F/dcp2/. iter_0000100 && cp $F/torch/old.bin iter_0000100/common.pt", FR_PROBLEM_UNFINISHED, "no metadata.json", false},
        {"mkdir iter_0000100 && cp -r $F/dcp2/. iter_0000100 && cp $F/torch/old.bin iter_0000100/common.pt && echo '{}' >iter_0000100/metadata.json && echo 100 >latest_checkpointed_iteration.txt",
         FR_PROBLEM_KINDS, NULL, true},
        {"cp $F/torch/old.bin lora_rank16.pt; cp $F/torch/old.bin lowrank8.pt; cp $F/safetensors/small.safetensors lora_rank_16.safetensors", FR_PROBLEM_KINDS, NULL, true},
        {"for i in 0 2; do cp $F/torch/old.bin rng_state_$i.pth; done", FR_PROBLEM_RANK, "rank 1 left no file like this one", true},
        {"for i in 0 1 4; do cp $F/torch/old.bin model_rank_$i.pt; done", FR_PROBLEM_RANK, "ranks 2 to 3 left no file like this one", false},
        {"mkdir checkpoint-5 && cp $F/torch/old.bin checkpoint-5/optimizer.pt", FR_PROBLEM_UNFINISHED, "cannot be resumed", true},
    };
    check(rows, sizeof rows / sizeof rows[0]);
}

T_TEST(a_missing_pointer_is_told_once_and_of_the_root_only)
{
    struct opened o;
    char path[300];
    opened_begin(&o, folder("cp -r $F/deepspeed/. . && cp -r global_step100 global_step200 && cp -r global_step100 global_step300 && rm latest"));
    T_EQ_INT(o.c.problems_n, 1);
    opened_end(&o);
    snprintf(path, sizeof path, "%s/global_step100", dir);
    opened_begin(&o, path);
    T_EQ_INT(o.c.problems_n, 0);
    opened_end(&o);
    snprintf(path, sizeof path, "%s/global_step100/zero_pp_rank_1_mp_rank_00_optim_states.pt", dir); /* one shard, as it was asked for */
    opened_begin(&o, path);
    T_OK(opened_problem(&o, FR_PROBLEM_MISSING, "model's states") == NULL);
    opened_end(&o);
}

T_TEST(names_of_steps)
{
    static const struct { const char *name; int64_t step; } rows[] = {
        {"checkpoint-100", 100}, {"step_200", 200}, {"step200", 200}, {"step-7", 7}, {"iter_0000100", 100}, {"global_step100", 100}, {"checkpoint_3", 3}, {"epoch_2", 2},
        {"nostep", -1}, {"unsloth-3b", -1},
    };
    char commands[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct opened o;
        snprintf(commands, sizeof commands, "mkdir %s && cp $F/safetensors/small.safetensors %s/model.safetensors", rows[i].name, rows[i].name);
        opened_begin(&o, folder(commands));
        T_OK(o.rc == 0 && o.c.steps_n == 1);
        T_EQ_INT(o.rc == 0 ? o.c.steps[0].step : -2, rows[i].step);
        opened_end(&o);
    }
}

T_TEST(the_last_good_step)
{
    struct opened o;
    opened_begin(&o, folder("for i in 8 9 10 11; do mkdir checkpoint-$i; cp $F/sharded/* checkpoint-$i; done; rm checkpoint-11/model-00002*;"
                            "truncate -s 300 checkpoint-10/model-00001*; mkdir tmp-checkpoint-12; cp $F/sharded/* tmp-checkpoint-12;"
                            "cp \"$F/torch/epoch=3-step=10.ckpt\" epoch=0-step=2.ckpt"));
    T_EQ_INT(o.c.steps_n, 6);
    uint32_t last = fr_checkpoint_last_good(&o.c);
    T_OK(last != UINT32_MAX && o.c.steps[last].step == 9 && fr_sv_ends(o.c.steps[last].path, FR_SV("checkpoint-9")));
    T_EQ_INT(o.c.steps[0].step, 2);
    T_OK(fr_sv_ends(o.c.steps[last].config, FR_SV("checkpoint-9/config.json")));
    T_OK(opened_problem(&o, FR_PROBLEM_LEFTOVER, "a temporary folder") != NULL);
    opened_end(&o);
    opened_begin(&o, folder("mkdir checkpoint-1 && touch checkpoint-1/model.safetensors"));
    T_EQ_INT(fr_checkpoint_last_good(&o.c), UINT32_MAX);
    opened_end(&o);
}

T_TEST(what_a_folder_may_hold)
{
    struct opened o;
    opened_begin(&o, folder("mkfifo a.pt; ln -s . loop; ln -s nowhere b.safetensors; ln -s $F/safetensors/small.safetensors c.safetensors;"
                            "mkdir -p 1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18; ln -s .. 1/up.pt; echo hello >notes.txt; echo x >d.gguf; mkdir e.safetensors"));
    T_OK(opened_problem(&o, FR_PROBLEM_UNREADABLE, "a pipe, not a file") != NULL);
    T_OK(opened_problem(&o, FR_PROBLEM_UNREADABLE, "a link to nowhere") != NULL);
    T_OK(opened_problem(&o, FR_PROBLEM_UNREADABLE, "a link back to a folder around it") != NULL);
    T_OK(opened_problem(&o, FR_PROBLEM_FORMAT, ".gguf files are not read") != NULL);
    T_OK(opened_problem(&o, FR_PROBLEM_LIMIT, "nested too deep") != NULL);
    T_EQ_INT(o.c.tensors_n, 9); /* of c.safetensors */
    opened_end(&o);
}

T_TEST(paths_that_are_given)
{
    struct opened o;
    const char *two[] = {FIXTURE("torch/old.bin"), "/nonexistent/model.pt"};
    opened_begin_all(&o, two, 2);
    T_OK(o.rc == 0 && o.c.tensors_n == 3 && opened_problem(&o, FR_PROBLEM_UNREADABLE, "cannot be opened") != NULL);
    opened_end(&o);
    opened_begin_all(&o, two + 1, 1);
    T_OK(o.rc == -FR_ABSENT && strstr(o.err.msg, "/nonexistent/model.pt") != NULL);
    opened_end(&o);
    opened_begin_all(&o, two, 0);
    T_EQ_INT(o.rc, -FR_ABSENT);
    opened_end(&o);
    opened_begin(&o, FIXTURE("sharded/model-00001-of-00002.safetensors")); /* one shard, as it was asked for */
    T_OK(o.c.problems_n == 0 && o.c.tensors_n == 2);
    opened_end(&o);
    opened_begin(&o, FIXTURE("sharded/model.safetensors.index.json")); /* an index stands for its folder */
    T_OK(o.c.problems_n == 0 && o.c.tensors_n == 4);
    opened_end(&o);
    opened_begin(&o, FIXTURE("make_debian.py"));
    T_OK(opened_problem(&o, FR_PROBLEM_FORMAT, "in no checkpoint format that is read") != NULL);
    opened_end(&o);
}

T_TEST(limits_are_told)
{
    struct opened o = {.arena = FR_ARENA_INIT(0)};
    const char *path = FIXTURE("safetensors");
    struct fr_ckpt_limits few = {.tensors = 4};
    T_EQ_INT(fr_checkpoint_open(&path, 1, &few, &o.arena, &o.c, &o.err), 0);
    T_EQ_INT(o.c.tensors_n, 4);
    T_OK(opened_problem(&o, FR_PROBLEM_LIMIT, "more than 4 tensors") != NULL);
    opened_end(&o);
}

int main(void)
{
    int rc = t_run();
    remove_folder();
    return rc;
}
