/* SPDX-License-Identifier: Apache-2.0 */
/* megatron: iter_0000100/mp_rank_TT[_PPP]/model_optim_rng.pt (legacy), or a DCP folder with
 * metadata.json and common.pt (dist). The files are read as what they are; here every
 * tensor-parallel rank must have each pipeline rank. */
#include "tensor/build.h"

struct place {
    uint64_t tensor, pipe;
    bool has_pipe;
};

/* The ranks of a folder "mp_rank_01_003". */
static bool parse(fr_sv folder, struct place *p)
{
    *p = (struct place){0};
    return fr_sv_take(&folder, FR_SV("mp_rank_")) && fr_sv_take_u64(&folder, &p->tensor) &&
           (folder.n == 0 || (fr_sv_take(&folder, FR_SV("_")) &&
                              (p->has_pipe = fr_sv_take_u64(&folder, &p->pipe)))) &&
           p->tensor < 100000 && p->pipe < 100000;
}

static bool is_model(const struct fr_ckpt *c, uint32_t file, struct place *p)
{
    fr_sv path = c->files.v[file].path;
    return fr_sv_eq(fr_path_name(path), FR_SV("model_optim_rng.pt")) &&
           parse(fr_path_name(fr_path_folder(path)), p);
}

static void check_grid(struct fr_ckpt *c, uint32_t step)
{
    struct place p;
    uint64_t tensors = 0, pipes = 0, found = 0;
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE; i = c->notes.v[i].next) {
        if (is_model(c, i, &p)) {
            tensors = p.tensor + 1 > tensors ? p.tensor + 1 : tensors;
            pipes = p.pipe + 1 > pipes ? p.pipe + 1 : pipes;
            found++;
        }
    }
    if (found == 0) {
        return;
    }
    c->steps.v[step].layout = FR_SV("megatron");
    if (found < tensors * pipes) {
        fr_ckpt_say_step(c, FR_PROBLEM_MISSING, true, step, c->steps.v[step].path,
                         "%llu of %llu model files are there, for %llu tensor-parallel and %llu "
                         "pipeline ranks: those of the other ranks are missing",
                         (unsigned long long)found, (unsigned long long)(tensors * pipes),
                         (unsigned long long)tensors, (unsigned long long)pipes);
    }
}

static void check(struct fr_ckpt *c, uint32_t step)
{
    check_grid(c, step);
    for (uint32_t i = fr_ckpt_first(c, step); i != FR_NO_FILE; i = c->notes.v[i].next) {
        bool is_dist = fr_sv_eq(fr_path_name(c->files.v[i].path), FR_SV("common.pt"));
        if (is_dist) {
            c->steps.v[step].layout = FR_SV("megatron");
        }
    }
}

const struct fr_ckpt_layout fr_ckpt_layout_megatron = {
    .name = "megatron", .summary = "Megatron-LM iterations", .check = check,
};
